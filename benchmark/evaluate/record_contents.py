"""What the record of a cell says: identity, inputs, deviations from the paper, metrics."""

from pathlib import Path

from benchmark import protocol
from benchmark.core.json_objects import read_object
from benchmark.core.records import Record
from benchmark.data.prepared_tables import Prepared
from benchmark.evaluate.evaluation import SPLIT, Evaluation
from benchmark.evaluate.trained_cells import TrainedCell, has_grid
from benchmark.matching.training_identity import computed
from benchmark.season.method_options import spelt_out
from benchmark.season.parameters import Cell, Fusion

RANDOM_WEIGHTS = "random weights"  # as the card of sentence vectors has it
VECTORS = ("sentence", "phrase")  # texts that come as feature folders


def record_of(
    season: str,
    cell: Cell | Fusion,
    members: list[TrainedCell],
    data: Prepared,
    evaluation: Evaluation,
    files: dict[str, str],
) -> Record:
    """The record of a cell, or of a fusion of `members`; `files` are digests of what it keeps."""
    first = members[0]
    return Record(
        protocol_version=protocol.VERSION,
        season=season,
        **_split_facts(first, data),
        **_preset_facts(cell, members),
        image_features=_image_facts(first),
        text_features=_text_facts(first),
        deviations=list(dict.fromkeys(line for member in members for line in _deviations(member))),
        status=evaluation.status,
        reason=evaluation.reason,
        metrics=protocol.with_formula_versions(evaluation.metrics),
        trainings={member.cell.preset: _training_facts(member) for member in members},
        numerics=computed(),
        files=files,
    )


def _training_facts(member: TrainedCell) -> dict:
    """What decided the weights, apart from the options: they stand in the record already."""
    identity = member.checkpoint.identity
    return {name: identity[name] for name in ("prepared", "features", "code", "numerics")}


def _split_facts(first: TrainedCell, data: Prepared) -> dict:
    split, task = data.split(SPLIT), first.takes.task
    return {
        "dataset": first.cell.dataset,
        "split": f"{data.card['split']}/{SPLIT}",
        "images": len(split.image_rows),
        "captions": len(split.caption_rows),
        "task": task,
        "phrases": len(split.region_rows) if task == "localisation" else 0,
        "manifest_sha256": data.card["manifest"],
    }


def _preset_facts(cell: Cell | Fusion, members: list[TrainedCell]) -> dict:
    """Of a fusion, method and family are those of its first member."""
    first, is_trained = members[0], isinstance(cell, Cell)
    options = {member.cell.preset: spelt_out(member.method.config) for member in members}
    parameters = {member.cell.preset: member.checkpoint.parameters for member in members}
    return {
        "preset": cell.preset,
        "method": first.cell.method,
        "family": first.cell.family,
        "seed": cell.seed,
        "options": options[cell.preset] if is_trained else _fused(cell, members, options),
        "scaled": sorted({name for member in members for name in member.cell.scaled}),
        "parameters": sum(parameters.values()),
        "selected_epoch": first.checkpoint.epoch if is_trained else None,
    }


def _fused(cell: Fusion, members: list[TrainedCell], options: dict[str, dict]) -> dict:
    """How scores become one, of which they are, and the options of their presets."""
    names = [(member.cell.preset, part) for member in members for part in member.parts]
    of = [f"{preset}:{part}" if part else preset for preset, part in names]
    return {"how": cell.how, "of": of, "presets": options}


def _image_facts(member: TrainedCell) -> dict:
    card = _card(member.cell.images)
    return {key: card[key] for key in ("encoder", "settings", "weights") if key in card}


def _text_facts(member: TrainedCell) -> dict:
    words = member.checkpoint.words
    if words:
        return {"vocabulary": len(words)}
    if member.takes.text not in VECTORS:  # never trained
        return {}
    return {k: value for k, value in _card(member.cell.texts).items() if not k.startswith("items")}


def _deviations(member: TrainedCell) -> list[str]:
    """Where the features differ from the paper's, whatever the method."""
    lines = _image_deviations(member)
    if member.takes.word_vectors:
        lines.append(f"word vectors: {_card(member.cell.words)['vectors']}")
    if member.takes.text in VECTORS:
        lines += _vector_deviations(member)
    return lines


def _image_deviations(member: TrainedCell) -> list[str]:
    settings, lines = _card(member.cell.images)["settings"], []
    if settings["network"] != member.cell.network:
        paper = f", in the paper {member.cell.network}" if member.cell.network else ""
        lines.append(f"image features: {settings['network']}{paper}")
    if has_grid(member):
        grid = settings["grid"]
        lines.append(f"regions: a {grid} x {grid} grid instead of a detector's boxes")
    if member.takes.task == "localisation" and settings["how"] != "file":
        lines.append(f"proposals: {settings['how'].replace('_', ' ')} instead of EdgeBoxes")
    if settings["standardise"] and member.takes.image != "pixels":
        lines.append("image features standardised with training statistics")
    return lines


def _vector_deviations(member: TrainedCell) -> list[str]:
    card, kind = _card(member.cell.texts), member.takes.text
    lines = [f"{kind} vectors: word vectors {card['vectors']}"]
    if card.get("weights") == RANDOM_WEIGHTS:
        lines.append(f"{kind} vectors: random LSTM weights instead of published ones")
    if card["settings"]["standardise"]:
        lines.append(f"{kind} vectors standardised with training statistics")
    return lines


def _card(folder: str) -> dict:
    return read_object(Path(folder) / "card.json")
