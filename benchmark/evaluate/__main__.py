"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score.
"""

import argparse
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark import protocol
from benchmark.core import numerics
from benchmark.core.command_line import add_season, run_stage
from benchmark.core.devices import begin, now
from benchmark.core.files import atomic, sha256
from benchmark.core.locks import alone, lock_of
from benchmark.core.machine import provenance
from benchmark.core.provenance import write_provenance
from benchmark.core.records import write_record
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.evaluate import evaluation, figure_samples
from benchmark.evaluate.evaluation import SPLIT, Evaluation
from benchmark.evaluate.record_contents import record_of
from benchmark.evaluate.trained_cells import (
    ModelOnSplit,
    TrainedCell,
    model_on_split,
    trained_cells,
)
from benchmark.matching import method_errors, score_checks, scoring, tile_workers
from benchmark.matching.localisation_inputs import phrase_inputs
from benchmark.matching.method_errors import OF_A_METHOD, OF_THE_MACHINE
from benchmark.matching.score_stream import ScoreStream
from benchmark.protocol import fusion
from benchmark.protocol.rank_counts import Picked
from benchmark.protocol.score_tiles import Matrices, Pairing, Tile
from benchmark.season.parameter_files import entry, read_params
from benchmark.season.parameters import Cell, Fusion, Params
from methods import NotApplicableError

SCORES = ("ranks.parquet", "retrieved.npz", "samples.npz", "similarities.npz")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a trained cell or a fusion")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    cell = entry({**params.cells, **params.fusions}, arguments.cell, "cell")
    numerics.require(cell.numerics, cell.threads)
    evaluate_cell(params, cell)


def evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    """Evaluate a cell and write into its folder record.json, and into scores/ ranks.parquet,
    similarities.npz, retrieved.npz, samples.npz and cost.json."""
    with alone(lock_of(cell.folder), f"evaluate {cell.folder}"):
        _evaluate_cell(params, cell)


def _evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    workers = tile_workers.allowed_workers()
    device = begin(params.device, cell.precision)
    members = trained_cells(params, cell)
    data = prepared_tables.read(cell.dataset)
    with torch.autocast(device.type, torch.bfloat16, enabled=cell.precision == "bfloat16"):
        result = _evaluation(cell, members, data, device)
    folder = Path(cell.folder)
    files = write_scores(folder, result)
    write_record(folder, record_of(params.season, cell, members, data, result, files))
    cost = provenance(device, result.seconds, cell.precision, workers)
    write_provenance(folder / "scores/cost.json", cost)
    name = f"{cell.dataset}-{cell.preset}-{cell.seed}"
    method_errors.tell(name, result.status, result.reason)


def _evaluation(
    cell: Cell | Fusion, members: list[TrainedCell], data: Prepared, device: torch.device
) -> Evaluation:
    """One without metrics where a member has no weights, its method raises or its scores cannot be
    ranked."""
    for member in members:
        if member.checkpoint.status != "ok":
            return Evaluation(status=member.checkpoint.status, reason=member.checkpoint.reason)
    try:
        if isinstance(cell, Fusion) and cell.how == "weighted":
            return _of_weighted(members, data, device)
        if members[0].takes.task == "localisation":
            return _of_localisation(members[0], data, device)
        if isinstance(cell, Fusion):
            return _of_fusion(cell.how, members, data, device)
        return _of_model(members[0], data, device)
    except protocol.RefusedError as error:
        return Evaluation(status="failed", reason=str(error))
    except NotApplicableError as error:
        return Evaluation(status="not_applicable", reason=str(error))
    except OF_THE_MACHINE:
        raise
    except OF_A_METHOD as error:
        return Evaluation(status="failed", reason=method_errors.reason(error, cell.folder))


def _of_model(trained: TrainedCell, data: Prepared, device: torch.device) -> Evaluation:
    """Images and captions, scored by one model."""
    split = data.split(SPLIT)
    on_split = model_on_split(trained, data, SPLIT, device)
    result = _streamed([on_split], "average", data)
    if trained.takes.caption_similarity and "i2t" in data.card["ways"]:
        ranks = _sentence_ranks(on_split)
        if len(ranks):
            result = evaluation.with_sentences(result, ranks, data, split)
    return result.with_samples(figure_samples.of_model(on_split))


def _of_fusion(
    how: str, members: list[TrainedCell], data: Prepared, device: torch.device
) -> Evaluation:
    """Images and captions, scored by several models, or by parts of one."""
    models = [model_on_split(member, data, SPLIT, device) for member in members]
    return _streamed(models, how, data)


def _streamed(models: list[ModelOnSplit], how: str, data: Prepared) -> Evaluation:
    """Of scores that pass tile by tile."""
    split = data.split(SPLIT)
    members = [scoring.encoded(each.model, each.inputs, each.parts) for each in models]
    stream = ScoreStream(members, fusion.mean)
    sizes = len(split.group_of_image), len(split.group_of_caption)
    samples = [Picked(*score_checks.sample(*sizes)) for _ in range(stream.count)]
    stream.lookers.append(lambda number, tile: samples[number].add(tile, tile.of("i2t")))
    arrays = _weighted_by_query(stream, data) if how == "adaptive" else {}
    result = evaluation.of_retrieval(stream, data, split)
    named = [(each, part) for each in models for part in each.parts]
    for (each, part), sample in zip(named, samples, strict=True):
        score_checks.check_retrieval(each.model, each.inputs, part, sample)
    seconds = _sum([member.seconds for member in members])
    return replace(result, seconds=seconds).with_samples(arrays)


def _sum(costs: list[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for name, seconds in chain.from_iterable(cost.items() for cost in costs):
        total[name] = total.get(name, 0.0) + seconds
    return total


def _weighted_by_query(stream: ScoreStream, data: Prepared) -> dict[str, np.ndarray]:
    """Let the stream fuse its scores adaptively, which takes one more pass; the weights, for
    figures."""
    split = data.split(SPLIT)
    groups = split.group_of_image, split.group_of_caption, split.image_of_caption
    areas = fusion.Areas(stream.count, Pairing.of(*groups, data.card["folds"]))
    curves = figure_samples.Curves(len(groups[0]), len(groups[1]), stream.count)
    stream.lookers += [areas.add, curves.add]
    stream.survey()
    weights = areas.weights()
    stream.fuse = partial(fusion.fused, weights=weights)
    return curves.arrays(weights)


def _of_weighted(members: list[TrainedCell], data: Prepared, device: torch.device) -> Evaluation:
    """Whole images and regions together (two-branch paper, Eq. 8), weighted as is best for
    validation."""
    val = _two_distances(members, data, "val", device)
    test = _two_distances(members, data, SPLIT, device)
    split = data.split("val")
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    rsums = {
        alpha: protocol.retrieval_metrics(
            protocol.retrieval_ranks(fusion.weighted(*val.both, alpha), relevant)
        )["rsum"]
        for alpha in fusion.ALPHAS
    }
    alpha = max(fusion.ALPHAS, key=rsums.__getitem__)  # the smallest of equals
    tiles = Matrices(i2t=fusion.weighted(*test.both, alpha)["i2t"])
    result = evaluation.of_retrieval(tiles, data, data.split(SPLIT))
    metrics = result.metrics | {"alpha": alpha}
    return replace(result, metrics=metrics, seconds=test.seconds)  # what choosing costs is left out


@dataclass(frozen=True)
class _Distances:
    """d and d_rp of Eq. 8, (I, C) each, and what they cost."""

    both: tuple[np.ndarray, np.ndarray]
    seconds: dict[str, float]


def _two_distances(
    members: list[TrainedCell], data: Prepared, name: str, device: torch.device
) -> _Distances:
    """Of split `name`."""
    whole, local = members
    on_split = model_on_split(whole, data, name, device)
    inputs = phrase_inputs(data, local.cell, name, device)
    scores, seconds = _scores(on_split)
    distances = fusion.distance(scores)
    model = local.model(device)
    started = now(device)
    nearest = scoring.nearest_regions(model, inputs)
    spent = {"per_pair": (now(device) - started) / distances.size}
    score_checks.check_nearest_regions(model, inputs, nearest)
    split = data.split(name)
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    owners = captions.get_indexer(data.regions["caption_id"].iloc[split.region_rows])
    place = inputs.vector_of_phrase.unique(return_inverse=True)[1]
    region_distances = fusion.distance(nearest.numpy()[:, place.numpy()])
    of_regions = fusion.mean_of_phrases(region_distances, owners, distances)
    return _Distances((distances, of_regions), _sum([seconds, spent]))


def _of_localisation(trained: TrainedCell, data: Prepared, device: torch.device) -> Evaluation:
    """Phrases, scored with the proposals of their images."""
    inputs = phrase_inputs(data, trained.cell, SPLIT, device)
    started = now(device)
    model = trained.model(device)
    matrix = scoring.score_proposals(model, inputs)
    spent = {"per_pair": (now(device) - started) / matrix.numel()}
    score_checks.check_localisation(model, inputs, matrix)
    boxes = inputs.boxes[inputs.image_of_phrase]
    regions = data.regions.iloc[data.split(SPLIT).region_rows]
    result = evaluation.of_localisation(
        matrix.numpy(), inputs.ious.numpy(), boxes.numpy(), regions["phrase_id"].tolist()
    )
    return replace(result, seconds=spent)


def _scores(on_split: ModelOnSplit) -> tuple[np.ndarray, dict[str, float]]:
    """The scores (I, C) of a model as a whole, and what they cost."""
    inputs, (part,) = on_split.inputs, on_split.parts
    member = scoring.encoded(on_split.model, inputs, on_split.parts)
    matrix = np.empty((len(inputs.images), len(inputs.image_of_caption)), np.float32)
    sample = Picked(*score_checks.sample(*matrix.shape))
    for tile in ScoreStream([member], fusion.mean, passes=1):
        matrix[np.ix_(tile.rows, tile.columns)] = tile.of("i2t")
        sample.add(tile, tile.of("i2t"))
    score_checks.check_retrieval(on_split.model, inputs, part, sample)
    return matrix, member.seconds


def _sentence_ranks(on_split: ModelOnSplit) -> np.ndarray:
    """(Q,) ranks of sentence-to-sentence retrieval; a query is a caption whose image has others."""
    owners = on_split.inputs.owners
    is_query, every = protocol.has_sibling(owners), np.arange(len(owners))
    ranks = np.zeros(len(owners), np.int64)
    sample = Picked(*score_checks.sample(len(owners), len(owners)))
    for block, block_scores in scoring.sentence_scores(on_split.model, on_split.inputs):
        rows, scores_QC = block.numpy(), block_scores.cpu().numpy()
        sample.add(Tile(rows, every, {}), scores_QC)
        of_block = protocol.sentence_ranks(scores_QC, rows, owners)
        ranks[rows[is_query[rows]]] = of_block
    score_checks.check_sentences(on_split.model, on_split.inputs, sample)
    return ranks[is_query]


def write_scores(results: Path, result: Evaluation) -> dict[str, str]:
    """Write what a cell keeps beside its record; the digests of these files."""
    folder = results / "scores"
    with atomic(folder / "ranks.parquet") as part:
        result.rank_table.to_parquet(part, index=False)
    _savez(folder / "similarities.npz", result.similarities)
    _savez(folder / "retrieved.npz", result.retrieved)
    _savez(folder / "samples.npz", result.samples)
    return {f"scores/{name}": sha256(folder / name) for name in SCORES}


def _savez(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
