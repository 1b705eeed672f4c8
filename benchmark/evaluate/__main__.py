"""Stage: one cell -> its record. The only stage that sees the test split.

A cell has the scores of one training, or is a fusion: the scores of several trainings
made into one score, or corrected scores.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark.core import numerics
from benchmark.core.command_line import add_season, alone, lock_of, run_stage
from benchmark.core.devices import Stopwatch, begin, provenance
from benchmark.core.errors import entry
from benchmark.core.files import read_object, sha256
from benchmark.core.records import RECORD, Costs, Record, write_record
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared, Split, Splits, has_sibling
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.data.results import RANKS, RETRIEVED, SAMPLES, Ranks
from benchmark.evaluate import figure_samples
from benchmark.evaluate.trained_cells import (
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
from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.inputs import phrase_inputs
from benchmark.scoring.model_scores import Encoded
from benchmark.scoring.ranking import Matrices, Tile, ranks_of, sentence_ranks
from benchmark.scoring.relevance import Relevance, relevance_of_test
from benchmark.scoring.score_stream import ScoreStream, first_equal
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
    data = prepared_tables.read(cell.dataset)
    with alone(lock_of(cell.folder), f"evaluate {cell.folder}"):
        device = begin(params.device, cell.precision)
        members = trained_cells(params, cell, data.sha256)
        splits = data.splits()
        half = torch.autocast(
            device.type, torch.bfloat16, enabled=cell.precision == "bfloat16"
        )
        with half:
            result = _evaluate(cell, members, data, splits, device)
        sampled = figure_samples.sampled(result.samples)
        facts = record_facts(params.season, cell, members, data, splits.test)
        folder = Path(cell.folder)
        paths = {
            RANKS: folder / RANKS,
            RETRIEVED: Path(cell.place(Path(RETRIEVED).name)),
            SAMPLES: Path(cell.place(Path(SAMPLES).name)),
        }
        results.write_cell_arrays(
            folder,
            cell.inside,
            paths,
            result.scores,
            result.retrieved,
            result.samples,
        )
        training = read_object(Path(cell.history)) if isinstance(cell, Cell) else {}
        scoring = provenance(device, result.seconds, cell.precision)
        record = Record(
            **facts,
            starts_alike=training.get("starts_alike", False),
            status=result.status,
            reason=result.reason,
            metrics=result.metrics,
            sampled=sampled,
            files={name: sha256(path) for name, path in paths.items()},
            history=training.get("history", {}),
        )
        write_record(folder, record)
        costs_folder = Path(cell.costs)
        of_training = None
        if isinstance(cell, Cell):
            checkpoint = Path(cell.checkpoint)
            of_training = results.read_training_cost(costs_folder, checkpoint)
        costs = Costs(training=of_training, scoring=scoring)
        results.write_cell_costs(costs_folder, folder / RECORD, costs)
        checkpoints.log_failure(cell.key, result.status, result.reason)


def _evaluate(
    cell: Cell | Fusion,
    members: list[TrainedCell],
    data: Prepared,
    splits: Splits,
    device: torch.device,
) -> Evaluation:
    """The evaluation of a cell. It has no metrics if a member has no weights, its
    method raises an error or its scores cannot be ranked."""
    for member in members:
        checkpoint = member.checkpoint
        if checkpoint.status != "ok":
            return Evaluation(status=checkpoint.status, reason=checkpoint.reason)
    try:
        # back to this folder if the method leaves it
        with chdir("."):
            if isinstance(cell, Fusion) and cell.how == "weighted":
                return _evaluate_weighted(members, data, splits, device)
            test = splits.test
            if members[0].takes.task == "localisation":
                return _evaluate_localisation(members[0], data, test, device)
            models = [model_on_split(each, data, test, device) for each in members]
            if isinstance(cell, Fusion):
                return _evaluate_streamed(models, cell, data, splits)
            return _evaluate_model(models[0], cell, data, splits)
    except checkpoints.OF_A_METHOD as error:
        return Evaluation(**checkpoints.failure_of(error, cell.folder))


# Images and captions ------------------------------------------------------------------


def _evaluate_model(
    on_split: ModelOnSplit, cell: Cell, data: Prepared, splits: Splits
) -> Evaluation:
    """Scored by one model."""
    result = _evaluate_streamed([on_split], cell, data, splits)
    if on_split.trained.takes.caption_similarity and "i2t" in data.card["ways"]:
        ranks = _sentence_ranks(on_split)
        if len(ranks):
            measured = result.metrics | metrics.rank_metrics("s2s", ranks)
            all_ranks = result.scores.ranks | {RankKey("s2s"): ranks}
            scores = replace(result.scores, ranks=all_ranks)
            result = replace(result, metrics=measured, scores=scores)
    return replace(result, samples=result.samples | figure_samples.of_model(on_split))


def _evaluate_streamed(
    models: list[ModelOnSplit], cell: Cell | Fusion, data: Prepared, splits: Splits
) -> Evaluation:
    """Scored by several models, or by parts of one, tile by tile. Adaptive fusion takes
    one more pass, which finds its weights."""
    how_fused = cell.how if isinstance(cell, Fusion) else "average"
    test = splits.test
    sizes = len(test.image_rows), len(test.caption_rows)
    members = [_encoded(on_split) for on_split in models]
    stream = ScoreStream(members, fusion.mean)
    groups = [score_checks.Groups(*sizes) for _ in range(stream.count)]

    def observe(number: int, tile: Tile) -> None:
        groups[number].add(tile, tile.of(I2T))

    stream.observers.append(observe)
    tiles = stream
    facts = {}
    samples = {}
    if how_fused in corrections.GRIDS:
        tiles = _corrected(stream, models, cell, data, splits)
        facts = {"correction": tiles.facts}
    elif how_fused == "adaptive":
        relevance = relevance_of_test(data, test)
        areas = fusion.Areas(stream.count, relevance)
        curves = figure_samples.Curves(*sizes, stream.count)
        stream.observers += [areas.add, curves.add]
        for _ in stream:  # for its observers
            pass
        weights = areas.weights()
        stream.fuse = partial(fusion.fused, weights=weights)
        samples = curves.arrays(weights)
    result = _evaluate_tiles(tiles, data, test)
    _check_again(models, groups)
    seconds = Counter()
    for member in members:
        seconds += Counter(member.seconds)
    return replace(
        result,
        metrics=result.metrics | facts,
        samples=result.samples | samples,
        seconds=dict(seconds),
    )


def _check_again(models: list[ModelOnSplit], groups: list[score_checks.Groups]) -> None:
    """Compute every part of every model again, against what the first pass saw."""
    first_scores = iter(groups)
    for on_split in models:
        for part in on_split.trained.parts:
            model = on_split.again()
            first = next(first_scores)
            score_checks.check_retrieval(model, on_split.inputs, part, first)


def _encoded(on_split: ModelOnSplit) -> Encoded:
    parts = on_split.trained.parts
    return model_scores.encoded(on_split.model, on_split.inputs, parts)


def _evaluate_tiles(tiles: Iterable[Tile], data: Prepared, split: Split) -> Evaluation:
    """The evaluation of tiles on the test split, with the samples that every cell of
    retrieval keeps. S of the resamples is one of them, as in earlier versions, so that
    the bytes of the file stay the same."""
    images = len(split.group_of_image)
    similarity = figure_samples.similarity(images, split.image_of_caption)
    result = evaluation.of_test_split(tiles, data, split, [similarity.add])
    samples = {
        "similarity": similarity.scores.astype(np.float32),
        "overlap_replicates": result.scores.replicates.astype(np.float32),
    }
    return replace(result, samples=samples)


def _sentence_ranks(on_split: ModelOnSplit) -> Ranks:
    """Of sentence-to-sentence retrieval; a query is a caption whose image has
    others."""
    model = on_split.model
    inputs = on_split.inputs
    owners = inputs.owners
    captions = np.arange(len(owners))
    is_query = has_sibling(owners)
    queries = []
    values = []
    first = score_checks.Groups(len(owners), len(owners))
    for block, block_scores in model_scores.sentence_scores(model, inputs):
        rows = block.numpy()
        scores_QC = block_scores.cpu().numpy()
        first.add(Tile(rows, captions, {}), scores_QC)
        ranks = sentence_ranks(scores_QC, rows, owners)
        query_rows = rows[is_query[rows]]
        queries.append(query_rows[ranks.queries])
        values.append(ranks.values)
    score_checks.check_sentences(on_split.again(), inputs, first)
    query = np.concatenate(queries)
    order = query.argsort(kind="stable")
    counts = np.bincount(query, minlength=len(owners))
    return Ranks(np.concatenate(values)[order], counts[is_query])


# Corrections --------------------------------------------------------------------------


def _corrected(
    stream: ScoreStream,
    models: list[ModelOnSplit],
    cell: Fusion,
    data: Prepared,
    splits: Splits,
) -> Corrected:
    """Corrected scores, with a bank of training queries that the seed draws and the
    parameters of each direction that are best on validation. Neither counts in the
    cost of the row."""
    device = models[0].inputs.device
    ways = data.card["ways"]
    on_val = []
    banks = []
    for on_split in models:
        trained = on_split.trained
        on_val.append(_encoded(model_on_split(trained, data, splits.val, device)))
        if cell.how != "dual_softmax":
            on_train = model_on_split(trained, data, splits.train, device)
            banks.append(_encoded_bank(on_train, cell.seed))
    val = splits.val
    relevance = Relevance.of(val.group_of_image, val.image_of_caption)
    val_stream = ScoreStream(on_val, fusion.mean)
    asked_of_val = _asked_by_way(ways, val_stream, banks)
    asked_of_test = _asked_by_way(ways, stream, banks)
    parameters = {}
    for way, (of_val, of_bank) in asked_of_val.items():
        parameters[way] = corrections.chosen(cell.how, of_val, of_bank, relevance)
    return Corrected(cell.how, asked_of_test, parameters)


def _encoded_bank(on_train: ModelOnSplit, seed: int) -> Encoded:
    """Training images, and captions, that the seed draws."""
    inputs = on_train.inputs
    rng = np.random.default_rng(seed)
    drawn = []
    for size in (len(inputs.images), len(inputs.owners)):
        rows = rng.permutation(size)[: corrections.BANK]
        drawn.append(torch.from_numpy(rows))
    bank = inputs.chosen(*drawn)
    return model_scores.encoded(on_train.model, bank, on_train.trained.parts)


def _asked_by_way(
    ways: Sequence[str], stream: ScoreStream, banks: list[Encoded]
) -> dict[str, tuple[Asked, Asked]]:
    """By direction the scores of a split with its own queries, and with those of the
    bank."""
    asked_of = {}
    for way in ways:
        of_bank = stream
        if banks:
            mixed = []
            for member, bank in zip(stream.members, banks, strict=True):
                mixed.append(_with_queries(way, member, bank))
            of_bank = ScoreStream(mixed, fusion.mean)
        asked_of[way] = Asked.of(way, stream), Asked.of(way, of_bank)
    return asked_of


def _with_queries(way: str, member: Encoded, bank: Encoded) -> Encoded:
    """The items of a member with the queries of a bank."""
    if way == "i2t":
        return replace(
            member,
            seconds={},
            images=bank.images,
            image_order=bank.image_order,
            first_image=bank.first_image,
        )
    return replace(
        member,
        seconds={},
        captions=bank.captions,
        caption_order=bank.caption_order,
        first_caption=bank.first_caption,
    )


# Phrases and proposals ----------------------------------------------------------------


def _evaluate_localisation(
    trained: TrainedCell, data: Prepared, split: Split, device: torch.device
) -> Evaluation:
    """Phrases, scored with the proposals of their images."""
    inputs = phrase_inputs(data, split, trained.cell, device)
    watch = Stopwatch(device)
    matrix = model_scores.score_proposals(trained.model(device), inputs)
    seconds = {"per_pair": watch.lap() / matrix.numel()}
    score_checks.check_localisation(trained.model(device), inputs, matrix)
    scores_NP = matrix.numpy()
    ious_NP = inputs.ious.numpy()
    for image, proposals_PF in enumerate(inputs.proposals):
        rows = np.flatnonzero(inputs.image_of_phrase == image)
        first_P = first_equal(proposals_PF.numpy())
        scores_NP[rows] = scores_NP[np.ix_(rows, first_P)]
    best_N = np.where(np.isnan(ious_NP), -np.inf, scores_NP).argmax(1)
    boxes_NP4 = inputs.boxes[inputs.image_of_phrase].numpy()
    boxes = boxes_NP4[np.arange(len(best_N)), best_N].astype(np.float32)
    result = evaluation.of_localisation(scores_NP, ious_NP)
    return replace(result, samples={"p2r_boxes": boxes}, seconds=seconds)


@dataclass(frozen=True, eq=False)
class Distances:
    """d and d_rp of Eq. 8 of the two-branch paper, of a split, and what they cost."""

    whole: np.ndarray  # (I, C)
    regions: np.ndarray  # (I, C)
    seconds: dict[str, float]

    def scores(self, alpha: float) -> np.ndarray:
        """(I, C), with the weight `alpha` of regions."""
        return fusion.weighted(self.whole, self.regions, alpha)


def _evaluate_weighted(
    members: list[TrainedCell], data: Prepared, splits: Splits, device: torch.device
) -> Evaluation:
    """Whole images and regions together (two-branch paper, Eq. 8), weighted as is best
    for validation."""
    val = splits.val
    of_val = _distances(members, data, val, device)
    relevant_IC = Relevance.of(val.group_of_image, val.image_of_caption).matrix
    rsums = {}
    for alpha in fusion.ALPHAS:
        scores_IC = of_val.scores(alpha)
        ranks = {
            "i2t": ranks_of(scores_IC, relevant_IC),
            "t2i": ranks_of(scores_IC.T, relevant_IC.T),
        }
        rsums[alpha] = metrics.retrieval_metrics(ranks)["rsum"]
    alpha = max(rsums, key=rsums.get)  # the smallest one on ties
    of_test = _distances(members, data, splits.test, device)
    tiles = Matrices(i2t=of_test.scores(alpha))
    result = _evaluate_tiles(tiles, data, splits.test)
    measured = result.metrics | {"alpha": alpha}
    # choosing costs nothing
    return replace(result, metrics=measured, seconds=of_test.seconds)


def _distances(
    members: list[TrainedCell], data: Prepared, split: Split, device: torch.device
) -> Distances:
    """Those of a split."""
    whole, local = members
    on_split = model_on_split(whole, data, split, device)
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    caption_of_region = data.regions["caption_id"].iloc[split.region_rows]
    owners = captions.get_indexer(caption_of_region)
    member = _encoded(on_split)
    scores = _checked_scores(on_split, member)
    distances = fusion.distance(scores)
    inputs = phrase_inputs(data, split, local.cell, device)
    model = local.model(device)
    watch = Stopwatch(device)
    nearest = model_scores.nearest_regions(model, inputs)
    spent = {"per_pair": watch.lap() / distances.size}
    score_checks.check_nearest_regions(local.model(device), inputs, nearest)
    # the column of each phrase in `nearest`, which has distinct phrases
    _, inverse = inputs.vector_of_phrase.unique(return_inverse=True)
    phrases = inverse.numpy()
    of_phrases = fusion.distance(nearest.numpy()[:, phrases])
    of_regions = fusion.mean_of_phrases(of_phrases, owners, distances)
    first_C = _first_equal_captions(member, owners, phrases)
    seconds = Counter(member.seconds) + Counter(spent)
    return Distances(distances, of_regions[:, first_C], dict(seconds))


def _checked_scores(on_split: ModelOnSplit, member: Encoded) -> np.ndarray:
    """Scores (I, C) of a model with one part, computed twice."""
    images = len(member.image_order)
    captions = len(member.caption_order)
    scores = np.empty((images, captions), np.float32)
    first = score_checks.Groups(images, captions)
    for tile in ScoreStream([member], fusion.mean):
        scores[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
        first.add(tile, tile.of(I2T))
    (part,) = on_split.trained.parts
    score_checks.check_retrieval(on_split.again(), on_split.inputs, part, first)
    return scores


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
    both = zip(phrases_C, text_C, strict=True)
    return first_equal(np.append(phrases, text) for phrases, text in both)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
