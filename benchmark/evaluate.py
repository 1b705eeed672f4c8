"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import methods
from benchmark import checkpoints, fusion, overlap, protocol, ranking, scoring
from benchmark.checkpoints import Checkpoint
from benchmark.costs import write_provenance
from benchmark.devices import make_deterministic, pick
from benchmark.files import atomic, read_json
from benchmark.inputs import (
    SplitInputs,
    network_structure,
    read_data,
    split_inputs,
    vocabulary_from,
)
from benchmark.options import configured, method_of, spelt_out
from benchmark.params import Cell, Fusion, Params, entry, read_params
from benchmark.prepared import Prepared
from benchmark.provenance import provenance
from benchmark.records import Record, write_record
from benchmark.stage import run_stage

SPLIT = "test"
TOP = 10  # items kept of every ranking, for galleries
SAMPLES = 2000  # scores kept of each distribution, for plots


@dataclass(frozen=True, kw_only=True)
class Member:
    """One trained cell, loaded, and which of its scores counts."""

    cell: Cell
    part: str  # a named score; "": its similarity
    config: object
    checkpoint: Checkpoint
    takes: methods.Inputs


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Scores of a whole split, a row a query, with what follows from them."""

    scores: dict[str, np.ndarray]
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
    members = [_member(part, name) for part, name in _parts(params, cell)]
    data = read_data(members[0].cell)
    status, reason = _outcome(members)
    seconds: dict[str, float] = {}
    judged = None
    if status == "ok":
        try:
            judged = _judge(params, cell, members, data, device, seconds)
        except protocol.RefusedError as error:
            status, reason = "failed", str(error)
        except methods.NotApplicableError as error:
            status, reason = "not_applicable", str(error)
    folder = Path(cell.folder)
    _write_arrays(folder, judged, data)
    write_record(folder, _record(params, cell, members, data, judged, status, reason))
    write_provenance(folder / "scoring.json", provenance(device, seconds))


def _parts(params: Params, cell: Cell | Fusion) -> list[tuple[Cell, str]]:
    if isinstance(cell, Cell):
        return [(cell, "")]
    by_folder = {trained.folder: trained for trained in params.cells.values()}
    trained = [entry(by_folder, folder, "trained cell") for folder in cell.members]
    return list(zip(trained, cell.parts, strict=True))


def _member(cell: Cell, part: str) -> Member:
    method = method_of(cell.method)
    config = configured(method, cell.options, f"preset {cell.preset}")
    return Member(
        cell=cell,
        part=part,
        config=config,
        checkpoint=checkpoints.load(Path(cell.folder) / "checkpoint.pt"),
        takes=method.inputs(config),
    )


def _outcome(members: list[Member]) -> tuple[str, str]:
    """Status and reason of the first member that has no weights to judge."""
    for member in members:
        if member.checkpoint.status != "ok":
            return member.checkpoint.status, member.checkpoint.reason
    return "ok", ""


def _judge(
    params: Params,
    cell: Cell | Fusion,
    members: list[Member],
    data: Prepared,
    device: torch.device,
    seconds: dict[str, float],
) -> Judged:
    extras: dict[str, float] = {}
    matrices = [_scores(params, m, data, device, seconds, extras) for m in members]
    scores = fusion.HOW[cell.how if isinstance(cell, Fusion) else "average"](matrices)
    split = data.split(SPLIT)
    relevant = protocol.relevance(split.image_of_caption, len(split.image_rows))
    ranks = protocol.both_ways(scores, relevant)
    metrics = protocol.retrieval_metrics(ranks)
    metrics |= extras if isinstance(cell, Cell) else {}
    metrics |= protocol.tie_gap(scores, relevant, ranks)
    metrics |= protocol.overlap_metrics(scores["i2t"][relevant], scores["i2t"][~relevant])
    return Judged(scores=scores, relevant=relevant, ranks=ranks, metrics=metrics)


def _scores(
    params: Params,
    member: Member,
    data: Prepared,
    device: torch.device,
    seconds: dict,
    extras: dict,
) -> np.ndarray:
    """Test scores (I, C) of one trained cell; adds what they cost to `seconds`, and how well its
    captions find their siblings to `extras`."""
    vocabulary = vocabulary_from(member.takes, member.checkpoint.words)
    inputs = split_inputs(data, member.cell, member.takes, SPLIT, vocabulary, device)
    model = _model(member).to(device).eval()
    enabled = params.precision == "bfloat16"
    with torch.autocast(device.type, torch.bfloat16, enabled=enabled):
        scores = scoring.score(model, inputs, part=member.part)
        if hasattr(model, "caption_similarity"):
            extras |= _sentence_metrics(model, inputs)
    matrix = scores.matrix.cpu().numpy()
    images, captions = matrix.shape
    for name, value in {
        "per_image": scores.image_seconds / images,
        "per_caption": scores.caption_seconds / captions,
        "per_pair": scores.pair_seconds / (images * captions),
    }.items():
        seconds[name] = seconds.get(name, 0.0) + value
    return matrix


def _model(member: Member) -> torch.nn.Module:
    """The member's model with its trained weights."""
    parts = {}
    if member.takes.image == "pixels":
        parts["image_network"] = network_structure(member.cell, member.checkpoint.sizes.image)
    method = method_of(member.cell.method)
    model = method.Model(member.config, member.checkpoint.sizes, **parts)
    model.load_state_dict(member.checkpoint.state)
    return model


def _sentence_metrics(model: torch.nn.Module, inputs: SplitInputs) -> dict[str, float]:
    """Sentence-to-sentence retrieval, for methods that embed text."""
    owners = inputs.image_of_caption.cpu().numpy()
    ranks = [
        protocol.sentence_ranks(scores.cpu().numpy(), rows, owners)
        for rows, scores in scoring.sentence_scores(model, inputs)
    ]
    found = np.concatenate(ranks)
    return ranking.summary("s2s", found) if len(found) else {}


def _record(
    params: Params,
    cell: Cell | Fusion,
    members: list[Member],
    data: Prepared,
    judged: Judged | None,
    status: str,
    reason: str,
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
        options=options[cell.preset] if isinstance(cell, Cell) else {cell.how: options},
        scaled=sorted({name for m in members for name in m.cell.scaled}),
        image_features=_feature_facts(first.cell.images),
        text_features=_text_facts(first),
        deviations=_deviations(first),
        parameters=sum({m.cell.preset: m.checkpoint.parameters for m in members}.values()),
        selected_epoch=first.checkpoint.epoch if isinstance(cell, Cell) else None,
        status=status,
        reason=reason,
        metrics=judged.metrics if judged else {},
    )


def _feature_facts(folder: str) -> dict:
    card = read_json(Path(folder) / "card.json")
    return {key: card[key] for key in ("encoder", "settings", "weights") if key in card}


def _text_facts(member: Member) -> dict:
    words = member.checkpoint.words
    if words:
        return {"vocabulary": len(words)}
    if member.takes.text != "sentence":  # never trained
        return {}
    card = read_json(Path(member.cell.texts) / "card.json")
    return {key: value for key, value in card.items() if not key.startswith("items")}


def _deviations(member: Member) -> list[str]:
    """Where the features differ from the paper's, whatever the method."""
    settings = read_json(Path(member.cell.images) / "card.json")["settings"]
    paper = f", in the paper {member.cell.network}" if member.cell.network else ""
    found = []
    if settings["network"] != member.cell.network:
        found.append(f"image features: {settings['network']}{paper}")
    if member.takes.image == "regions":
        grid = settings["grid"]
        found.append(f"regions: a {grid} x {grid} grid instead of a detector's boxes")
    if settings["standardise"] and member.takes.image != "pixels":
        found.append("image features standardised with training statistics")
    if member.takes.word_vectors:
        card = read_json(Path(member.cell.words) / "card.json")
        found.append(f"word vectors: {card['vectors']}")
    if member.takes.text == "sentence":
        card = read_json(Path(member.cell.texts) / "card.json")
        found.append(f"sentence vectors: word vectors {card['vectors']}")
        if card.get("weights") == "random":
            found.append("sentence vectors: random LSTM weights instead of published ones")
        if card["settings"]["standardise"]:
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
    _savez(folder / "retrieved.npz", _retrieved(judged) if judged else {})


def _distributions(judged: Judged) -> dict[str, np.ndarray]:
    """Histograms of matched and unmatched scores over S's bins, and evenly spaced samples."""
    low, high = judged.metrics["overlap_range"]
    found = {"edges": np.linspace(low, high, overlap.BINS + 1)}
    for name, mask in (("matched", judged.relevant), ("unmatched", ~judged.relevant)):
        values = judged.scores["i2t"][mask]
        found[name] = overlap.shares(values, overlap.BINS, low, high)
        ordered = np.sort(values)
        found[f"{name}_sample"] = ordered[np.linspace(0, len(ordered) - 1, SAMPLES).astype(int)]
    return found


def _retrieved(judged: Judged) -> dict[str, np.ndarray]:
    """The best `TOP` captions of every image and images of every caption, best first."""
    return {
        way: np.argsort(-scores, axis=1, kind="stable")[:, :TOP].astype(np.int32)
        for way, scores in judged.scores.items()
    }


def _savez(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
