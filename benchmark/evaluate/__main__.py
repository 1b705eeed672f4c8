"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score, or a correction of
it.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark.core import numerics
from benchmark.core.command_line import add_season, alone, lock_of, run_stage
from benchmark.core.devices import begin, now, provenance
from benchmark.core.errors import entry
from benchmark.core.files import read_object, sha256, write_arrays, write_bytes
from benchmark.core.records import RECORD, Costs, Record, write_record
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared, has_sibling
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.data.results import ELSEWHERE, RANKS, RETRIEVED, SAMPLES, Ranks
from benchmark.evaluate import figure_samples
from benchmark.evaluate.trained_cells import (
    SPLIT,
    ModelOnSplit,
    TrainedCell,
    model_on_split,
    record_facts,
    trained_cells,
)
from benchmark.scoring import (
    checkpoints,
    corrections,
    evaluation,
    fusion,
    metrics,
    model_scores,
    score_checks,
)
from benchmark.scoring.corrections import Asked, Corrected
from benchmark.scoring.equal_items import first_equal
from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.inputs import phrase_inputs
from benchmark.scoring.model_scores import Encoded, ScoreStream
from benchmark.scoring.ranking import Matrices, Tile, ranks_of, sentence_ranks
from benchmark.scoring.relevance import Relevance, layers_of
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Cell, Fusion, Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a trained cell or a fusion")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season, arguments.cell)
    cell = entry(params.everything, arguments.cell, "cell")
    numerics.require(cell.numerics, cell.threads)
    evaluate_cell(params, cell)


def evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    """Evaluate a cell; write its record and ranks into its folder, the first answers
    and samples for figures to where the cell says, and elsewhere what it cost."""
    with alone(lock_of(cell.folder), f"evaluate {cell.folder}"):
        device = begin(params.device, cell.precision)
        members = trained_cells(params, cell)
        data = prepared_tables.read(cell.dataset)
        half = torch.autocast(
            device.type, torch.bfloat16, enabled=cell.precision == "bfloat16"
        )
        with half, chdir("."):  # back, wherever the method went
            result = _result(cell, members, data, device)
        folder = Path(cell.folder)
        retrieved, samples = (
            Path(cell.place(Path(x).name)) for x in (RETRIEVED, SAMPLES)
        )
        write_bytes(folder / RANKS, results.scores_npz(result.scores))
        # empty if git keeps both
        Path(ELSEWHERE, cell.inside).mkdir(parents=True, exist_ok=True)
        write_bytes(retrieved, results.retrieved_npz(result.retrieved))
        write_arrays(samples, result.samples)
        files = {RANKS: folder / RANKS, RETRIEVED: retrieved, SAMPLES: samples}
        training = read_object(Path(cell.history)) if isinstance(cell, Cell) else {}
        scoring = provenance(device, result.seconds, cell.precision)
        facts = record_facts(params.season, cell, members, data)
        facts["starts_alike"] = training.get("starts_alike", False)
        record = Record(
            **facts,
            status=result.status,
            reason=result.reason,
            metrics=result.metrics,
            sampled=figure_samples.sampled(result.samples),
            files={name: sha256(path) for name, path in files.items()},
            history=training.get("history", {}),
        )
        write_record(folder, record)
        of_cell, cost = Path(cell.costs), None
        if isinstance(cell, Cell):
            cost = results.read_training_cost(of_cell, Path(cell.checkpoint))
        costs = Costs(training=cost, scoring=scoring)
        results.write_cell_costs(of_cell, folder / RECORD, costs)
        checkpoints.tell(cell.key, result.status, result.reason)


def _result(
    cell: Cell | Fusion,
    members: list[TrainedCell],
    data: Prepared,
    device: torch.device,
) -> Evaluation:
    """One without metrics where a member has no weights, its method raises or its
    scores cannot be ranked."""
    for checkpoint in (member.checkpoint for member in members):
        if checkpoint.status != "ok":
            return Evaluation(status=checkpoint.status, reason=checkpoint.reason)
    try:
        if isinstance(cell, Fusion) and cell.how == "weighted":
            return _of_weighted(members, data, device)
        if members[0].takes.task == "localisation":
            return _of_localisation(members[0], data, device)
        models = [model_on_split(member, data, SPLIT, device) for member in members]
        if isinstance(cell, Fusion):
            return _streamed(models, cell, data)
        return _of_model(models[0], cell, data)
    except checkpoints.OF_A_METHOD as error:
        return Evaluation(**checkpoints.outcome(error, cell.folder))


# Images and captions ------------------------------------------------------------------


def _of_model(on_split: ModelOnSplit, cell: Cell, data: Prepared) -> Evaluation:
    """Scored by one model."""
    result = _streamed([on_split], cell, data)
    if on_split.trained.takes.caption_similarity and "i2t" in data.card["ways"]:
        ranks = _sentence_ranks(on_split)
        if len(ranks):
            scores = replace(
                result.scores, ranks=result.scores.ranks | {RankKey("s2s"): ranks}
            )
            found = result.metrics | metrics.rank_metrics("s2s", ranks)
            result = replace(result, metrics=found, scores=scores)
    return replace(result, samples=result.samples | figure_samples.of_model(on_split))


def _streamed(
    models: list[ModelOnSplit], cell: Cell | Fusion, data: Prepared
) -> Evaluation:
    """Scored by several models, or by parts of one, tile by tile. Adaptive fusion takes
    one more pass, which finds its weights."""
    relevance, how = (
        _relevance(data),
        cell.how if isinstance(cell, Fusion) else "average",
    )
    sizes = len(relevance.group_of_image), len(relevance.group_of_caption)
    members = [
        model_scores.encoded(each.model, each.inputs, each.trained.parts)
        for each in models
    ]
    stream = ScoreStream(members, fusion.mean)
    groups = [score_checks.Groups(*sizes) for _ in range(stream.count)]
    stream.observers.append(lambda number, tile: groups[number].add(tile, tile.of(I2T)))
    samples = {}
    if how == "adaptive":
        areas = fusion.Areas(stream.count, relevance)
        curves = figure_samples.Curves(*sizes, stream.count)
        stream.observers += [areas.add, curves.add]
        for _ in stream:  # for its observers
            pass
        weights = areas.weights()
        stream.fuse = partial(fusion.fused, weights=weights)
        samples = curves.arrays(weights)
    tiles = (
        _corrected(stream, models, cell, data) if how in corrections.GRIDS else stream
    )
    found = _evaluated(tiles, data)
    told = found.metrics | ({"correction": tiles.facts} if tiles is not stream else {})
    named = [(each, part) for each in models for part in each.trained.parts]
    for (each, part), first in zip(named, groups, strict=True):
        score_checks.check_retrieval(each.again(), each.inputs, part, first)
    seconds = dict(sum((Counter(member.seconds) for member in members), Counter()))
    return replace(
        found, metrics=told, samples=found.samples | samples, seconds=seconds
    )


def _relevance(data: Prepared) -> Relevance:
    split = data.split(SPLIT)
    return Relevance.of(
        split.group_of_image, split.image_of_caption, data.card["folds"]
    )


def _evaluated(tiles: Iterable[Tile], data: Prepared) -> Evaluation:
    """With what is kept of every cell that scores images with captions. S in
    resamples is among it, too, so that a file of an earlier version is written again
    to the byte."""
    split, ways = data.split(SPLIT), data.card["ways"]
    similarity = figure_samples.similarity(
        len(split.group_of_image), split.image_of_caption
    )
    observers, layers = [similarity.add], layers_of(data)
    found = evaluation.of_retrieval(tiles, _relevance(data), ways, observers, layers)
    samples = {
        "similarity": similarity.scores.astype(np.float32),
        "overlap_replicates": found.scores.replicates.astype(np.float32),
    }
    return replace(found, samples=samples)


def _sentence_ranks(on_split: ModelOnSplit) -> Ranks:
    """Of sentence-to-sentence retrieval; a query is a caption whose image has
    others."""
    owners = on_split.inputs.owners
    every, queries, values = np.arange(len(owners)), [], []
    first = score_checks.Groups(len(owners), len(owners))
    for block, block_scores in model_scores.sentence_scores(
        on_split.model, on_split.inputs
    ):
        rows, scores_QC = block.numpy(), block_scores.cpu().numpy()
        first.add(Tile(rows, every, {}), scores_QC)
        ranks = sentence_ranks(scores_QC, rows, owners)
        queries.append(rows[has_sibling(owners)[rows]][ranks.queries])
        values.append(ranks.values)
    score_checks.check_sentences(on_split.again(), on_split.inputs, first)
    query = np.concatenate(queries)
    order = query.argsort(kind="stable")
    counts = np.bincount(query, minlength=len(owners))
    return Ranks(np.concatenate(values)[order], counts[has_sibling(owners)])


# Corrections --------------------------------------------------------------------------


def _corrected(
    stream: ScoreStream, models: list[ModelOnSplit], cell: Fusion, data: Prepared
) -> Corrected:
    """With a bank of training queries that the seed draws, and for each direction what
    validation chooses. The cost of the row has neither in it."""
    device, how, val = models[0].inputs.device, cell.how, data.split("val")
    on_val, banks = [], []
    for trained in (each.trained for each in models):
        of = model_on_split(trained, data, "val", device)
        on_val.append(model_scores.encoded(of.model, of.inputs, trained.parts))
        if how != "dual_softmax":
            rng = np.random.default_rng(cell.seed)
            of = model_on_split(trained, data, "train", device)
            sizes = len(of.inputs.images), len(of.inputs.owners)
            drawn = (
                torch.from_numpy(rng.permutation(size)[: corrections.BANK])
                for size in sizes
            )
            banks.append(
                model_scores.encoded(of.model, of.inputs.chosen(*drawn), trained.parts)
            )
    of_val = Relevance.of(val.group_of_image, val.image_of_caption)
    asked = _asked(data.card["ways"], ScoreStream(on_val, fusion.mean), banks)
    given = {way: corrections.chosen(how, *of, of_val) for way, of in asked.items()}
    return Corrected(how, _asked(data.card["ways"], stream, banks), given)


def _asked(
    ways: list[str], stream: ScoreStream, banks: list[Encoded]
) -> dict[str, list[Asked]]:
    """By direction the scores of a split with its own queries, and with those of the
    bank."""
    found = {}
    for way in ways:
        kinds = ("images", "image_order", "first_image")
        if way == "t2i":
            kinds = ("captions", "caption_order", "first_caption")
        pairs = zip(stream.members, banks, strict=bool(banks))
        mixed = [
            replace(m, seconds={}, **{k: vars(b)[k] for k in kinds}) for m, b in pairs
        ]
        streams = stream, ScoreStream(mixed, fusion.mean) if mixed else stream
        found[way] = []
        for each in streams:
            sizes = len(each.members[0].image_order), len(each.members[0].caption_order)
            found[way].append(
                Asked(way, *(sizes if way == "i2t" else sizes[::-1]), each)
            )
    return found


# Phrases and proposals ----------------------------------------------------------------


def _of_localisation(
    trained: TrainedCell, data: Prepared, device: torch.device
) -> Evaluation:
    """Phrases, scored with the proposals of their images."""
    inputs = phrase_inputs(data, trained.cell, SPLIT, device)
    started = now(device)
    matrix = model_scores.score_proposals(trained.model(device), inputs)
    seconds = {"per_pair": (now(device) - started) / matrix.numel()}
    score_checks.check_localisation(trained.model(device), inputs, matrix)
    scores_NP, ious_NP = matrix.numpy(), inputs.ious.numpy()
    for image, proposals_PF in enumerate(inputs.proposals):
        rows = np.flatnonzero(inputs.image_of_phrase == image)
        scores_NP[rows] = scores_NP[np.ix_(rows, first_equal(proposals_PF.numpy()))]
    best_N = np.where(np.isnan(ious_NP), -np.inf, scores_NP).argmax(1)
    boxes_NP4 = inputs.boxes[inputs.image_of_phrase].numpy()
    boxes = boxes_NP4[np.arange(len(best_N)), best_N].astype(np.float32)
    found = evaluation.of_localisation(scores_NP, ious_NP)
    return replace(found, samples={"p2r_boxes": boxes}, seconds=seconds)


def _of_weighted(
    members: list[TrainedCell], data: Prepared, device: torch.device
) -> Evaluation:
    """Whole images and regions together (two-branch paper, Eq. 8), weighted as is best
    for validation."""
    *val, _ = _two_distances(members, data, "val", device)
    split = data.split("val")
    relevant_IC = Relevance.of(split.group_of_image, split.image_of_caption).matrix
    rsums = {}
    for alpha in fusion.ALPHAS:
        scores_IC = fusion.weighted(*val, alpha)
        i2t, t2i = (
            ranks_of(scores_IC, relevant_IC),
            ranks_of(scores_IC.T, relevant_IC.T),
        )
        rsums[alpha] = metrics.retrieval_metrics({"i2t": i2t, "t2i": t2i})["rsum"]
    alpha = max(fusion.ALPHAS, key=rsums.__getitem__)  # the smallest of equals
    # choosing costs nothing
    *test, seconds = _two_distances(members, data, SPLIT, device)
    found = _evaluated(Matrices(i2t=fusion.weighted(*test, alpha)), data)
    return replace(found, metrics=found.metrics | {"alpha": alpha}, seconds=seconds)


def _two_distances(
    members: list[TrainedCell], data: Prepared, name: str, device: torch.device
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """d and d_rp of Eq. 8 of split `name`, (I, C) each, and what they cost."""
    whole, local = members
    on_split = model_on_split(whole, data, name, device)
    inputs = phrase_inputs(data, local.cell, name, device)
    member = model_scores.encoded(on_split.model, on_split.inputs, whole.parts)
    scores = np.empty((len(member.image_order), len(member.caption_order)), np.float32)
    first = score_checks.Groups(*scores.shape)
    for tile in ScoreStream([member], fusion.mean):
        scores[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
        first.add(tile, tile.of(I2T))
    (part,) = whole.parts
    score_checks.check_retrieval(on_split.again(), on_split.inputs, part, first)
    distances = fusion.distance(scores)
    model = local.model(device)
    started = now(device)
    nearest = model_scores.nearest_regions(model, inputs)
    spent = {"per_pair": (now(device) - started) / distances.size}
    score_checks.check_nearest_regions(local.model(device), inputs, nearest)
    split = data.split(name)
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    owners = captions.get_indexer(data.regions["caption_id"].iloc[split.region_rows])
    place = inputs.vector_of_phrase.unique(return_inverse=True)[1]
    region_distances = fusion.distance(nearest.numpy()[:, place.numpy()])
    of_regions = fusion.mean_of_phrases(region_distances, owners, distances)
    of_regions = of_regions[:, _first_equal_captions(member, owners, place.numpy())]
    return distances, of_regions, dict(Counter(member.seconds) + Counter(spent))


def _first_equal_captions(
    member: Encoded, owner_of_phrase: np.ndarray, phrases: np.ndarray
) -> np.ndarray:
    """(C,) for each caption of a split the first one with the same text and the same
    phrases."""
    text_C = np.empty_like(member.caption_order)
    text_C[member.caption_order] = member.first_caption
    order = np.lexsort((phrases, owner_of_phrase))
    ends_C = np.bincount(owner_of_phrase, minlength=len(text_C)).cumsum()
    phrases_C = np.split(phrases[order], ends_C[:-1])
    return first_equal(
        np.append(each, text) for text, each in zip(text_C, phrases_C, strict=True)
    )


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
