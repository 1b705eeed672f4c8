"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score.
"""

import argparse
from dataclasses import replace
from functools import partial
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
from benchmark.matching import method_errors, score_checks, score_stream, scoring, tile_workers
from benchmark.matching.localisation_inputs import phrase_inputs
from benchmark.matching.method_errors import OF_A_METHOD, OF_THE_MACHINE
from benchmark.matching.score_stream import ScoreStream
from benchmark.protocol import fusion
from benchmark.protocol.rank_counts import Picked
from benchmark.protocol.score_tiles import Matrices, Pairing
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
    seconds: dict[str, float] = {}
    with torch.autocast(device.type, torch.bfloat16, enabled=cell.precision == "bfloat16"):
        result = _evaluation(cell, members, data, device, seconds)
    folder = Path(cell.folder)
    files = write_scores(folder, result)
    write_record(folder, record_of(params.season, cell, members, data, result, files))
    cost = provenance(device, seconds, cell.precision, workers)
    write_provenance(folder / "scores/cost.json", cost)
    name = f"{cell.dataset}-{cell.preset}-{cell.seed}"
    method_errors.tell(name, result.status, result.reason)


def _evaluation(
    cell: Cell | Fusion,
    members: list[TrainedCell],
    data: Prepared,
    device: torch.device,
    seconds: dict[str, float],
) -> Evaluation:
    """One without metrics where a member has no weights, its method raises or its scores cannot be
    ranked."""
    for member in members:
        if member.checkpoint.status != "ok":
            return Evaluation(status=member.checkpoint.status, reason=member.checkpoint.reason)
    try:
        if isinstance(cell, Fusion) and cell.how == "weighted":
            return _of_weighted(members, data, device, seconds)
        if members[0].takes.task == "localisation":
            return _of_localisation(members[0], data, device, seconds)
        if isinstance(cell, Fusion):
            return _of_fusion(cell.how, members, data, device, seconds)
        return _of_model(members[0], data, device, seconds)
    except protocol.RefusedError as error:
        return Evaluation(status="failed", reason=str(error))
    except NotApplicableError as error:
        return Evaluation(status="not_applicable", reason=str(error))
    except OF_THE_MACHINE:
        raise
    except OF_A_METHOD as error:
        return Evaluation(status="failed", reason=method_errors.reason(error, cell.folder))


def _of_model(
    trained: TrainedCell, data: Prepared, device: torch.device, seconds: dict[str, float]
) -> Evaluation:
    """Images and captions, scored by one model."""
    split = data.split(SPLIT)
    on_split = model_on_split(trained, data, SPLIT, device)
    result = _streamed([on_split], [trained.part], "average", data, seconds)
    if trained.takes.caption_similarity and "i2t" in data.card["ways"]:
        ranks = _sentence_ranks(on_split)
        if len(ranks):
            result = evaluation.with_sentences(result, ranks, data, split)
    return result.with_samples(figure_samples.of_model(on_split))


def _of_fusion(
    how: str,
    members: list[TrainedCell],
    data: Prepared,
    device: torch.device,
    seconds: dict[str, float],
) -> Evaluation:
    """Images and captions, scored by several models."""
    models = [model_on_split(member, data, SPLIT, device) for member in members]
    return _streamed(models, [member.part for member in members], how, data, seconds)


def _streamed(
    models: list[ModelOnSplit],
    parts: list[str],
    how: str,
    data: Prepared,
    seconds: dict[str, float],
) -> Evaluation:
    """Of scores that pass tile by tile; adds what they cost to `seconds`."""
    split = data.split(SPLIT)
    members = [
        score_stream.encoded(model.model, model.inputs, part)
        for model, part in zip(models, parts, strict=True)
    ]
    sizes = len(split.group_of_image), len(split.group_of_caption)
    samples = [Picked(*score_checks.sample(*sizes)) for _ in members]
    stream = ScoreStream(members, fusion.mean)
    stream.lookers.append(lambda member, tile: samples[member].add(tile, tile.of("i2t")))
    arrays = _weighted_by_query(stream, data) if how == "adaptive" else {}
    result = evaluation.of_retrieval(stream, data, split)
    for model, part, sample in zip(models, parts, samples, strict=True):
        given = sample.rows, sample.columns, sample.scores
        score_checks.check_retrieval(model.model, model.inputs, part, *given)
    for member in members:
        for name, value in member.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + value
    return result.with_samples(arrays)


def _weighted_by_query(stream: ScoreStream, data: Prepared) -> dict[str, np.ndarray]:
    """Let the stream fuse its scores adaptively, which takes one more pass; the weights, for
    figures."""
    split, count = data.split(SPLIT), len(stream.members)
    groups = split.group_of_image, split.group_of_caption, split.image_of_caption
    areas = fusion.Areas(count, Pairing.of(*groups, data.card["folds"]))
    curves = figure_samples.Curves(len(groups[0]), len(groups[1]), count)
    stream.lookers += [areas.add, curves.add]
    stream.survey()
    weights = areas.weights()
    stream.fuse = partial(fusion.fused, weights=weights)
    return curves.arrays(weights)


def _of_weighted(
    members: list[TrainedCell], data: Prepared, device: torch.device, seconds: dict[str, float]
) -> Evaluation:
    """Whole images and regions together (two-branch paper, Eq. 8), weighted as is best for
    validation."""
    val = _two_distances(members, data, "val", device, {})  # what choosing costs is not counted
    test = _two_distances(members, data, SPLIT, device, seconds)
    split = data.split("val")
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    rsums = {
        alpha: protocol.retrieval_metrics(
            protocol.retrieval_ranks(fusion.weighted(*val, alpha), relevant)
        )["rsum"]
        for alpha in fusion.ALPHAS
    }
    alpha = max(fusion.ALPHAS, key=rsums.__getitem__)  # the smallest of equals
    tiles = Matrices(i2t=fusion.weighted(*test, alpha)["i2t"])
    result = evaluation.of_retrieval(tiles, data, data.split(SPLIT))
    return replace(result, metrics=result.metrics | {"alpha": alpha})


def _two_distances(
    members: list[TrainedCell],
    data: Prepared,
    name: str,
    device: torch.device,
    seconds: dict[str, float],
) -> tuple[np.ndarray, np.ndarray]:
    """d and d_rp of Eq. 8, (I, C) each, of split `name`."""
    whole, local = members
    on_split = model_on_split(whole, data, name, device)
    distances = fusion.distance(_scores(on_split, whole.part, seconds))
    inputs = phrase_inputs(data, local.cell, name, device)
    started = now(device)
    nearest = scoring.nearest_regions(local.model(device), inputs).numpy()
    seconds["per_pair"] = seconds.get("per_pair", 0.0) + (now(device) - started) / distances.size
    split = data.split(name)
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    owners = captions.get_indexer(data.regions["caption_id"].iloc[split.region_rows])
    region_distances = fusion.distance(nearest[:, inputs.vector_of_phrase.numpy()])
    return distances, fusion.mean_of_phrases(region_distances, owners, distances)


def _of_localisation(
    trained: TrainedCell, data: Prepared, device: torch.device, seconds: dict[str, float]
) -> Evaluation:
    """Phrases, scored with the proposals of their images."""
    inputs = phrase_inputs(data, trained.cell, SPLIT, device)
    started = now(device)
    model = trained.model(device)
    matrix = scoring.score_proposals(model, inputs)
    seconds["per_pair"] = (now(device) - started) / matrix.numel()
    score_checks.check_localisation(model, inputs, matrix)
    boxes = inputs.boxes[inputs.image_of_phrase]
    regions = data.regions.iloc[data.split(SPLIT).region_rows]
    return evaluation.of_localisation(
        matrix.numpy(), inputs.ious.numpy(), boxes.numpy(), regions["phrase_id"].tolist()
    )


def _scores(on_split: ModelOnSplit, part: str, seconds: dict[str, float]) -> np.ndarray:
    """Scores (I, C) of one trained cell as a whole; adds what they cost to `seconds`."""
    inputs = on_split.inputs
    member = score_stream.encoded(on_split.model, inputs, part)
    matrix = np.empty((len(inputs.images), len(inputs.image_of_caption)), np.float32)
    for tile in ScoreStream([member], fusion.mean, passes=1):
        matrix[np.ix_(tile.rows, tile.columns)] = tile.of("i2t")
    rows, columns = score_checks.sample(*matrix.shape)
    again = rows, columns, matrix[np.ix_(rows, columns)]
    score_checks.check_retrieval(on_split.model, inputs, part, *again)
    for name, value in member.seconds.items():
        seconds[name] = seconds.get(name, 0.0) + value
    return matrix


def _sentence_ranks(on_split: ModelOnSplit) -> np.ndarray:
    """(Q,) ranks of sentence-to-sentence retrieval; a query is a caption whose image has others."""
    owners = on_split.inputs.owners
    is_query = protocol.has_sibling(owners)
    ranks = np.zeros(len(owners), np.int64)
    for block, scores in scoring.sentence_scores(on_split.model, on_split.inputs):
        rows = block.numpy()
        of_block = protocol.sentence_ranks(scores.cpu().numpy(), rows, owners)
        ranks[rows[is_query[rows]]] = of_block
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
