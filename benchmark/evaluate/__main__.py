"""Stage: one cell -> its record. The only stage that sees the test split.

A cell is a training, or a fusion: scores of trainings as one score.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch

import methods
from benchmark import protocol
from benchmark.core.command_line import run_stage
from benchmark.core.devices import make_deterministic, pick
from benchmark.core.files import atomic, read_json
from benchmark.core.machine import provenance
from benchmark.core.provenance import write_provenance
from benchmark.core.records import Record, write_record
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.evaluate import evaluation, figure_samples
from benchmark.evaluate.evaluation import Judged
from benchmark.evaluate.figure_samples import Played
from benchmark.matching import checkpoints, localisation, scoring
from benchmark.matching.checkpoints import Checkpoint
from benchmark.matching.localisation import phrase_inputs
from benchmark.matching.retrieval_inputs import (
    network_structure,
    read_data,
    split_inputs,
    vocabulary_from,
)
from benchmark.protocol import fusion
from benchmark.season.method_options import configured, method_of, spelt_out
from benchmark.season.parameters import Cell, Fusion, Params, entry, read_params

SPLIT = "test"
RANDOM_WEIGHTS = "random weights"  # as the card of sentence vectors has it
VECTORS = ("sentence", "phrase")  # texts that come as feature folders


@dataclass(frozen=True, kw_only=True)
class Member:
    """One trained cell, loaded, and which of its scores counts."""

    cell: Cell
    part: str  # a named score; "": its similarity
    config: object
    checkpoint: Checkpoint
    takes: methods.Inputs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a key of `cells` or `fusions` in params.yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_params()
    cell = entry({**params.cells, **params.fusions}, arguments.cell, "cell")
    evaluate_cell(params, cell)


def evaluate_cell(params: Params, cell: Cell | Fusion) -> None:
    """Write record.json, scores/ranks.parquet, scores/similarities.npz, scores/retrieved.npz, scores/samples.npz and
    scores/cost.json."""
    make_deterministic()
    device = pick(params.device)
    members = [_member(part, name) for part, name in _parts(params, cell)]
    data = read_data(members[0].cell)
    status, reason = _outcome(members)
    seconds: dict[str, float] = {}
    judged = Judged(metrics={}, ranks={})
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
    _write_arrays(folder, judged)
    write_record(folder, _record(params, cell, members, data, judged, status, reason))
    write_provenance(folder / "scores/cost.json", provenance(device, seconds))


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
    split = data.split(SPLIT)
    if isinstance(cell, Fusion) and cell.how == "weighted":
        return _judge_weighted(members, data, device, seconds)
    if members[0].takes.image == "proposals":
        return _judge_localisation(members[0], data, device, seconds)
    played = [_played(member, data, SPLIT, device) for member in members]
    parts = [member.part for member in members]
    matrices = [_scores(*one, seconds) for one in zip(played, parts, strict=True)]
    how = cell.how if isinstance(cell, Fusion) else "average"
    judged = evaluation.of_retrieval(fusion.HOW[how](matrices), data, split)
    if isinstance(cell, Fusion):
        return judged.with_samples(figure_samples.of_fusion(matrices) if how == "adaptive" else {})
    siblings = _sentence_ranks(played[0], data)
    if len(siblings):
        judged = evaluation.with_sentences(judged, siblings, data, split)
    return judged.with_samples(figure_samples.of_model(played[0]))


def _judge_weighted(
    members: list[Member], data: Prepared, device: torch.device, seconds: dict[str, float]
) -> Judged:
    """Whole images and regions together (two-branch paper, Eq. 8), as validation would have it."""
    val = _two_distances(members, data, "val", device, {})  # what choosing costs is not counted
    test = _two_distances(members, data, SPLIT, device, seconds)
    split = data.split("val")
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    recalls = {
        alpha: protocol.retrieval_metrics(
            protocol.retrieval_ranks(fusion.weighted(*val, alpha), relevant)
        )["rsum"]
        for alpha in fusion.ALPHAS
    }
    alpha = max(fusion.ALPHAS, key=recalls.__getitem__)  # the smallest of equals
    judged = evaluation.of_retrieval(fusion.weighted(*test, alpha), data, data.split(SPLIT))
    return replace(judged, metrics=judged.metrics | {"alpha": alpha})


def _two_distances(
    members: list[Member],
    data: Prepared,
    name: str,
    device: torch.device,
    seconds: dict[str, float],
) -> tuple[np.ndarray, np.ndarray]:
    """d and d_rp of Eq. 8, (I, C) each, of split `name`."""
    whole, local = members
    played = _played(whole, data, name, device)
    distances = fusion.distance(_scores(played, whole.part, seconds))
    inputs = phrase_inputs(data, local.cell, name, device)
    started = perf_counter()
    nearest = localisation.nearest_regions(_model(local).to(device).eval(), inputs).numpy()
    seconds["per_pair"] = seconds.get("per_pair", 0.0) + (perf_counter() - started) / distances.size
    split = data.split(name)
    captions = pd.Index(data.captions["caption_id"].iloc[split.caption_rows])
    owners = captions.get_indexer(data.regions["caption_id"].iloc[split.region_rows])
    region_distances = fusion.distance(nearest[:, inputs.vector_of_phrase.numpy()])
    return distances, fusion.mean_of_phrases(region_distances, owners, distances)


def _judge_localisation(
    member: Member, data: Prepared, device: torch.device, seconds: dict[str, float]
) -> Judged:
    inputs = phrase_inputs(data, member.cell, SPLIT, device)
    started = perf_counter()
    scores = localisation.score_proposals(_model(member).to(device).eval(), inputs).numpy()
    seconds["per_pair"] = (perf_counter() - started) / scores.size
    boxes = inputs.boxes[inputs.image_of_phrase]
    regions = data.regions.iloc[data.split(SPLIT).region_rows]
    return evaluation.of_localisation(
        scores, inputs.overlaps.numpy(), boxes.numpy(), regions["phrase_id"].tolist()
    )


def _played(member: Member, data: Prepared, name: str, device: torch.device) -> Played:
    """A member's model and what it is fed of a split."""
    vocabulary = vocabulary_from(member.takes, member.checkpoint.words)
    split = data.split(name)
    return Played(
        model=_model(member).to(device).eval(),
        inputs=split_inputs(data, member.cell, member.takes, name, vocabulary, device),
        vocabulary=vocabulary,
        texts=data.captions["text"].iloc[split.caption_rows].tolist(),
        places=_places(member, split),
    )


def _places(member: Member, split: Split) -> np.ndarray | None:
    """Where on the grid the regions of the images are; None without regions of a grid."""
    path = Path(member.cell.images) / "places.npy"
    if member.takes.image != "regions" or not path.is_file():
        return None
    return np.load(path, mmap_mode="r", allow_pickle=False)[split.image_rows]


def _scores(played: Played, part: str, seconds: dict[str, float]) -> np.ndarray:
    """Scores (I, C) of one trained cell; adds what they cost to `seconds`."""
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


def _sentence_ranks(played: Played, data: Prepared) -> np.ndarray:
    """Sentence-to-sentence retrieval, for methods that embed text, where images have sentences of
    their own to be found."""
    if not hasattr(played.model, "caption_similarity") or "i2t" not in data.card["ways"]:
        return np.array([])
    owners = played.inputs.owners
    ranks = [
        protocol.sentence_ranks(scores.cpu().numpy(), rows, owners)
        for rows, scores in scoring.sentence_scores(played.model, played.inputs)
    ]
    return np.concatenate(ranks)


def _record(
    params: Params,
    cell: Cell | Fusion,
    members: list[Member],
    data: Prepared,
    judged: Judged,
    status: str,
    reason: str,
) -> Record:
    split, first = data.split(SPLIT), members[0]
    options = {m.cell.preset: spelt_out(m.config) for m in members}
    is_localisation = first.takes.image == "proposals"
    return Record(
        protocol_version=protocol.VERSION,
        season=params.season,
        dataset=cell.dataset,
        split=f"{data.card['split']}/{SPLIT}",
        images=len(split.image_rows),
        captions=len(split.caption_rows),
        task="localisation" if is_localisation else "retrieval",
        phrases=len(split.region_rows) if is_localisation else 0,
        manifest_sha256=data.card["manifest"],
        preset=cell.preset,
        method=first.cell.method,
        family=first.cell.family,
        seed=cell.seed,
        options=options[cell.preset] if isinstance(cell, Cell) else {cell.how: options},
        scaled=sorted({name for m in members for name in m.cell.scaled}),
        image_features=_feature_facts(first.cell.images),
        text_features=_text_facts(first),
        deviations=list(dict.fromkeys(one for m in members for one in _deviations(m))),
        parameters=sum({m.cell.preset: m.checkpoint.parameters for m in members}.values()),
        selected_epoch=first.checkpoint.epoch if isinstance(cell, Cell) else None,
        status=status,
        reason=reason,
        metrics=protocol.with_formula_versions(judged.metrics),
    )


def _feature_facts(folder: str) -> dict:
    card = read_json(Path(folder) / "card.json")
    return {key: card[key] for key in ("encoder", "settings", "weights") if key in card}


def _text_facts(member: Member) -> dict:
    words = member.checkpoint.words
    if words:
        return {"vocabulary": len(words)}
    if member.takes.text not in VECTORS:  # never trained
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
    if member.takes.image == "regions" and (Path(member.cell.images) / "places.npy").is_file():
        grid = settings["grid"]
        found.append(f"regions: a {grid} x {grid} grid instead of a detector's boxes")
    if member.takes.image == "proposals" and settings["how"] != "file":
        found.append(f"proposals: {settings['how'].replace('_', ' ')} instead of EdgeBoxes")
    if settings["standardise"] and member.takes.image != "pixels":
        found.append("image features standardised with training statistics")
    if member.takes.word_vectors:
        card = read_json(Path(member.cell.words) / "card.json")
        found.append(f"word vectors: {card['vectors']}")
    if member.takes.text in VECTORS:
        card = read_json(Path(member.cell.texts) / "card.json")
        kind = member.takes.text
        found.append(f"{kind} vectors: word vectors {card['vectors']}")
        if card.get("weights") == RANDOM_WEIGHTS:
            found.append(f"{kind} vectors: random LSTM weights instead of published ones")
        if card["settings"]["standardise"]:
            found.append(f"{kind} vectors standardised with training statistics")
    return found


def _write_arrays(folder: Path, judged: Judged) -> None:
    with atomic(folder / "scores/ranks.parquet") as part:
        judged.rank_table.to_parquet(part, index=False)
    _savez(folder / "scores/similarities.npz", judged.similarities)
    _savez(folder / "scores/retrieved.npz", judged.retrieved)
    _savez(folder / "scores/samples.npz", judged.samples)


def _savez(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
