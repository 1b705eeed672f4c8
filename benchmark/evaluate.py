"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: the mean score of two trainings.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import methods
from benchmark import checkpoints, overlap, protocol, scoring
from benchmark.checkpoints import Checkpoint
from benchmark.costs import write_provenance
from benchmark.devices import make_deterministic, pick
from benchmark.files import atomic, read_json
from benchmark.inputs import read_data, split_inputs
from benchmark.options import configured, method_of, spelt_out
from benchmark.params import Cell, Fusion, Params, entry, read_params
from benchmark.prepared import Prepared
from benchmark.provenance import provenance
from benchmark.records import Record, write_record
from benchmark.stage import run_stage
from benchmark.text import Vocabulary

SPLIT = "test"
TOP = 10  # items kept of every ranking, for galleries
SAMPLES = 2000  # scores kept of each distribution, for plots


@dataclass(frozen=True, kw_only=True)
class Member:
    """One trained cell, loaded."""

    cell: Cell
    config: object
    checkpoint: Checkpoint
    takes: methods.Inputs


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Scores of a whole split with what follows from them."""

    scores: np.ndarray
    relevant: np.ndarray
    ranks: dict[str, np.ndarray]
    metrics: dict


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a key of `cells` or `fusions` in params.yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_params()
    cell = entry({**params.cells, **params.fusions}, arguments.cell, "cell")
    evaluate_cell(params, cell)


def evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    """Write record.json, ranks.parquet, similarities.npz, retrieved.npz and scoring.json."""
    make_deterministic()
    device = pick(params.device)
    members = [_member(part) for part in _parts(params, cell)]
    data = read_data(members[0].cell)
    failure = next((m.checkpoint.failure for m in members if m.checkpoint.failure), "")
    seconds: dict[str, float] = {}
    judged = None
    if not failure:
        try:
            judged = _judge(params, members, data, device, seconds)
        except protocol.RefusedError as error:
            failure = str(error)
    folder = Path(cell.folder)
    _write_arrays(folder, judged, data)
    write_record(folder, _record(params, cell, members, data, judged, failure))
    write_provenance(folder / "scoring.json", provenance(device, seconds))


def _parts(params: Params, cell: Cell | Fusion) -> list[Cell]:
    if isinstance(cell, Cell):
        return [cell]
    by_folder = {trained.folder: trained for trained in params.cells.values()}
    return [entry(by_folder, folder, "trained cell") for folder in (cell.left, cell.right)]


def _member(cell: Cell) -> Member:
    method = method_of(cell.method)
    return Member(
        cell=cell,
        config=configured(method, cell.options, f"preset {cell.preset}"),
        checkpoint=checkpoints.load(Path(cell.folder) / "checkpoint.pt"),
        takes=method.INPUTS,
    )


def _judge(
    params: Params,
    members: list[Member],
    data: Prepared,
    device: torch.device,
    seconds: dict[str, float],
) -> Judged:
    scores = np.mean([_scores(params, m, data, device, seconds) for m in members], axis=0)
    split = data.split(SPLIT)
    relevant = protocol.relevance(split.image_of_caption, len(split.image_rows))
    ranks = protocol.both_ways(scores, relevant)
    metrics = protocol.retrieval_metrics(ranks)
    metrics |= protocol.tie_gap(scores, relevant, ranks)
    metrics |= protocol.overlap_metrics(scores[relevant], scores[~relevant])
    return Judged(scores=scores, relevant=relevant, ranks=ranks, metrics=metrics)


def _scores(
    params: Params, member: Member, data: Prepared, device: torch.device, seconds: dict
) -> np.ndarray:
    """Test scores (I, C) of one trained cell; adds what they cost to `seconds`."""
    checkpoint = member.checkpoint
    vocabulary = Vocabulary(words=checkpoint.words) if checkpoint.words else None
    inputs = split_inputs(data, member.cell, member.takes, SPLIT, vocabulary, device)
    model = method_of(member.cell.method).Model(member.config, checkpoint.sizes)
    model.load_state_dict(checkpoint.state)
    model.to(device).eval()
    enabled = params.precision == "bfloat16"
    with torch.autocast(device.type, torch.bfloat16, enabled=enabled):
        scores = scoring.score(model, inputs)
    matrix = scores.matrix.cpu().numpy()
    images, captions = matrix.shape
    for name, value in {
        "per_image": scores.image_seconds / images,
        "per_caption": scores.caption_seconds / captions,
        "per_pair": scores.pair_seconds / (images * captions),
    }.items():
        seconds[name] = seconds.get(name, 0.0) + value
    return matrix


def _record(
    params: Params,
    cell: Cell | Fusion,
    members: list[Member],
    data: Prepared,
    judged: Judged | None,
    failure: str,
) -> Record:
    split, first = data.split(SPLIT), members[0]
    options = {m.cell.preset: spelt_out(m.config) for m in members}
    return Record(
        protocol_version=protocol.VERSION,
        season=params.season,
        dataset=cell.dataset,
        split=f"{data.card['split']}/{SPLIT}",
        images=len(split.image_rows),
        captions=len(split.caption_rows),
        manifest_sha256=data.card["manifest"],
        preset=cell.preset,
        method=first.cell.method,
        family=first.cell.family,
        seed=cell.seed,
        options=options[cell.preset] if isinstance(cell, Cell) else {"average": options},
        scaled=sorted({name for m in members for name in m.cell.scaled}),
        image_features=_feature_facts(first.cell.images),
        text_features=_text_facts(members),
        deviations=_deviations(members),
        parameters=sum(m.checkpoint.parameters for m in members),
        selected_epoch=first.checkpoint.epoch if isinstance(cell, Cell) else None,
        status="failed" if failure else "ok",
        reason=failure,
        metrics=judged.metrics if judged else {},
    )


def _feature_facts(folder: str) -> dict:
    card = read_json(Path(folder) / "card.json")
    return {key: card[key] for key in ("encoder", "settings", "weights") if key in card}


def _text_facts(members: list[Member]) -> dict:
    words = members[0].checkpoint.words
    if words:
        return {"vocabulary": len(words)}
    card = read_json(Path(members[0].cell.texts) / "card.json")
    return {key: value for key, value in card.items() if not key.startswith("items")}


def _deviations(members: list[Member]) -> list[str]:
    """Where the features differ from the papers', whatever the method."""
    settings = read_json(Path(members[0].cell.images) / "card.json")["settings"]
    found = [f"image features: {settings['network']}"]
    if members[0].takes.image == "regions":
        grid = settings["grid"]
        found.append(f"regions: a {grid} x {grid} grid instead of a detector's boxes")
    if settings["standardise"]:
        found.append("image features standardised with training statistics")
    if members[0].takes.text == "sentence":
        text = read_json(Path(members[0].cell.texts) / "card.json")
        found.append(f"sentence vectors: mean {text['settings']['encoder']}, {text['vectors']}")
        if text["settings"]["standardise"]:
            found.append("sentence vectors standardised with training statistics")
    return found


def _write_arrays(folder: Path, judged: Judged | None, data: Prepared) -> None:
    split = data.split(SPLIT)
    queries = {
        "i2t": data.images["image_id"].iloc[split.image_rows],
        "t2i": data.captions["caption_id"].iloc[split.caption_rows],
    }
    ranks = judged.ranks if judged else {}
    frames = [
        pd.DataFrame({"direction": way, "query": queries[way].to_numpy(), "rank": found})
        for way, found in ranks.items()
    ]
    empty = pd.DataFrame({"direction": [], "query": [], "rank": []})
    with atomic(folder / "ranks.parquet") as part:
        (pd.concat(frames) if frames else empty).to_parquet(part, index=False)
    _savez(folder / "similarities.npz", _distributions(judged) if judged else {})
    _savez(folder / "retrieved.npz", _retrieved(judged.scores) if judged else {})


def _distributions(judged: Judged) -> dict[str, np.ndarray]:
    """Histograms of matched and unmatched scores over S's bins, and evenly spaced samples."""
    low, high = judged.metrics["overlap_range"]
    found = {"edges": np.linspace(low, high, overlap.BINS + 1)}
    for name, mask in (("matched", judged.relevant), ("unmatched", ~judged.relevant)):
        values = judged.scores[mask]
        found[name] = overlap.shares(values, overlap.BINS, low, high)
        ordered = np.sort(values)
        found[f"{name}_sample"] = ordered[np.linspace(0, len(ordered) - 1, SAMPLES).astype(int)]
    return found


def _retrieved(scores: np.ndarray) -> dict[str, np.ndarray]:
    """The best `TOP` captions of every image and images of every caption, best first."""
    return {
        "i2t": np.argsort(-scores, axis=1, kind="stable")[:, :TOP].astype(np.int32),
        "t2i": np.argsort(-scores.T, axis=1, kind="stable")[:, :TOP].astype(np.int32),
    }


def _savez(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
