"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import methods
from benchmark import checkpoints, fusion, overlap, protocol, ranking, samples, scoring
from benchmark.checkpoints import Checkpoint
from benchmark.costs import write_provenance
from benchmark.devices import make_deterministic, pick
from benchmark.files import atomic, read_json
from benchmark.inputs import network_structure, read_data, split_inputs, vocabulary_from
from benchmark.options import configured, method_of, spelt_out
from benchmark.params import Cell, Fusion, Params, entry, read_params
from benchmark.prepared import Prepared, Split
from benchmark.provenance import provenance
from benchmark.records import Record, write_record
from benchmark.samples import Played
from benchmark.stage import run_stage

SPLIT = "test"


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
    samples: dict[str, np.ndarray]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a key of `cells` or `fusions` in params.yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_params()
    cell = entry({**params.cells, **params.fusions}, arguments.cell, "cell")
    evaluate_cell(params, cell)


def evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    """Write record.json, ranks.parquet, similarities.npz, retrieved.npz, samples.npz and
    scoring.json."""
    make_deterministic()
    device = pick(params.device)
    members = [_member(part, name) for part, name in _parts(params, cell)]
    data = read_data(members[0].cell)
    status, reason = _outcome(members)
    seconds: dict[str, float] = {}
    judged = None
    if status == "ok":
        narrow = params.precision == "bfloat16"
        try:
            with torch.autocast(device.type, torch.bfloat16, enabled=narrow):
                judged = _judge(cell, members, data, device, seconds)
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
    cell: Cell | Fusion,
    members: list[Member],
    data: Prepared,
    device: torch.device,
    seconds: dict[str, float],
) -> Judged:
    played = [_played(member, data, device) for member in members]
    parts = [member.part for member in members]
    matrices = [_scores(*one, seconds) for one in zip(played, parts, strict=True)]
    how = cell.how if isinstance(cell, Fusion) else "average"
    judged = _judge_scores(fusion.HOW[how](matrices), data.split(SPLIT))
    if isinstance(cell, Fusion):
        extra = samples.of_fusion(matrices) if how == "adaptive" else {}
        return replace(judged, samples=judged.samples | extra)
    siblings = _sentence_ranks(played[0])
    return replace(
        judged,
        ranks=judged.ranks | siblings,
        metrics=judged.metrics | _sentence_metrics(siblings),
        samples=judged.samples | samples.of_model(played[0]),
    )


def _judge_scores(scores: dict[str, np.ndarray], split: Split) -> Judged:
    """What follows from the scores alone."""
    owners = split.image_of_caption
    relevant = protocol.relevance(owners, len(split.image_rows))
    ranks = protocol.both_ways(scores, relevant)
    metrics = protocol.retrieval_metrics(ranks)
    metrics |= protocol.tie_gap(scores, relevant, ranks)
    metrics |= protocol.overlap_metrics(scores["i2t"][relevant], scores["i2t"][~relevant])
    drawn = overlap.resamples(len(split.image_rows))
    replicates = overlap.replicates(scores["i2t"], owners, drawn, metrics["overlap_range"])
    metrics |= protocol.overlap_interval(metrics["overlap_s"], replicates)
    kept = samples.of_scores(scores["i2t"], owners)
    kept |= {"overlap_replicates": replicates.astype(np.float32)}
    return Judged(scores=scores, relevant=relevant, ranks=ranks, metrics=metrics, samples=kept)


def _played(member: Member, data: Prepared, device: torch.device) -> Played:
    """A member's model and what it is fed of the test split."""
    vocabulary = vocabulary_from(member.takes, member.checkpoint.words)
    split = data.split(SPLIT)
    return Played(
        model=_model(member).to(device).eval(),
        inputs=split_inputs(data, member.cell, member.takes, SPLIT, vocabulary, device),
        vocabulary=vocabulary,
        texts=data.captions["text"].iloc[split.caption_rows].tolist(),
        places=_places(member, split),
    )


def _places(member: Member, split: Split) -> np.ndarray | None:
    """Where on the grid the regions of the test images are; None without regions of a grid."""
    path = Path(member.cell.images) / "places.npy"
    if member.takes.image != "regions" or not path.is_file():
        return None
    return np.load(path, mmap_mode="r", allow_pickle=False)[split.image_rows]


def _scores(played: Played, part: str, seconds: dict[str, float]) -> np.ndarray:
    """Test scores (I, C) of one trained cell; adds what they cost to `seconds`."""
    scores = scoring.score(played.model, played.inputs, part=part)
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


def _sentence_ranks(played: Played) -> dict[str, np.ndarray]:
    """Sentence-to-sentence retrieval, `s2s`, for methods that embed text."""
    if not hasattr(played.model, "caption_similarity"):
        return {}
    owners = played.inputs.image_of_caption.cpu().numpy()
    ranks = [
        protocol.sentence_ranks(scores.cpu().numpy(), rows, owners)
        for rows, scores in scoring.sentence_scores(played.model, played.inputs)
    ]
    found = np.concatenate(ranks)
    return {"s2s": found} if len(found) else {}


def _sentence_metrics(ranks: dict[str, np.ndarray]) -> dict[str, float]:
    return ranking.summary("s2s", ranks["s2s"]) if ranks else {}


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
    with atomic(folder / "ranks.parquet") as part:
        _rank_table(judged, data).to_parquet(part, index=False)
    _savez(folder / "similarities.npz", _distributions(judged) if judged else {})
    _savez(folder / "retrieved.npz", _retrieved(judged) if judged else {})
    _savez(folder / "samples.npz", judged.samples if judged else {})


def _rank_table(judged: Judged | None, data: Prepared) -> pd.DataFrame:
    """A row a query and direction; s2s asks for every caption that has a sibling."""
    split = data.split(SPLIT)
    captions = data.captions["caption_id"].iloc[split.caption_rows].to_numpy()
    frames = [pd.DataFrame({"direction": [], "query": [], "rank": []})]
    if judged:
        queries = {
            "i2t": data.images["image_id"].iloc[split.image_rows].to_numpy(),
            "t2i": captions,
            "s2s": captions[protocol.has_sibling(split.image_of_caption)],
        }
        frames = [
            pd.DataFrame({"direction": way, "query": queries[way], "rank": found})
            for way, found in judged.ranks.items()
        ]
    return pd.concat(frames)


def _distributions(judged: Judged) -> dict[str, np.ndarray]:
    bounds = judged.metrics["overlap_range"]
    return samples.distributions(judged.scores["i2t"], judged.relevant, bounds)


def _retrieved(judged: Judged) -> dict[str, np.ndarray]:
    relevant = {"i2t": judged.relevant, "t2i": judged.relevant.T}
    return {way: samples.retrieved(judged.scores[way], relevant[way]) for way in relevant}


def _savez(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
