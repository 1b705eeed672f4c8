"""Trained cells as they are evaluated: their checkpoints, models, inputs of a split,
and what the record says beside the result: identity, inputs, departures from the
paper."""

from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmark.contracts.methods import Encoding, Inputs, Matcher
from benchmark.core.errors import entry
from benchmark.core.files import read_object
from benchmark.core.records import Aspect, Departure
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.scoring import checkpoints
from benchmark.scoring.inputs import SplitInputs, split_inputs, vocabulary_from
from benchmark.season.parameters import Cell, Fusion, Params
from benchmark.season.plugins import ConfiguredMethod, versions

SPLIT = "test"  # the split that is evaluated
POSITIONS = "positions.npy"  # of regions on a grid
RANDOM_WEIGHTS = "random weights"  # as the card of sentence vectors has it
IDENTITY = ("prepared", "features", "numerics")  # of a training, in records
NAMED = {"encoder", "settings", "weights"}  # of a card of image features, in records
VECTORS = ("sentence", "contextual", "phrase")  # texts that come as feature folders


@dataclass(frozen=True, kw_only=True)
class TrainedCell:
    """One trained cell, and which of its scores count."""

    cell: Cell
    method: ConfiguredMethod
    checkpoint: checkpoints.Checkpoint
    parts: tuple[str, ...] = ("",)  # named scores; "": its similarity

    @property
    def takes(self) -> Inputs:
        return self.method.takes

    def model(self, device: torch.device) -> nn.Module:
        """A new model with the trained weights, of a method file that is loaded anew:
        nothing that another model saw is left in it."""
        method = ConfiguredMethod.of(self.cell)
        return checkpoints.model_of(self.checkpoint, self.cell, method, device)


@dataclass(frozen=True, kw_only=True)
class ModelOnSplit:
    """A trained model with the split that it is evaluated on."""

    trained: TrainedCell
    model: Matcher
    split: Split  # its rows of the tables
    inputs: SplitInputs
    # None: the method takes sentence vectors
    vocabulary: Vocabulary | Dictionary | None
    texts: list[str]  # (C,)
    # (I, R) where each region lies on its image's grid, counted row by row from 0; None
    # without regions of a grid
    grid_positions: np.ndarray | None

    def again(self) -> nn.Module:
        """Another model with the same weights."""
        return self.trained.model(self.inputs.device)

    def image(self, row: int) -> Encoding:
        """The encoding of the image that caption `row` describes."""
        owner = int(self.inputs.image_of_caption[row])
        return self.model.encode_images(self.inputs.images_at(slice(owner, owner + 1)))


def trained_cells(
    params: Params, cell: Cell | Fusion, tables: str
) -> list[TrainedCell]:
    """The cell itself, or the trainings that a fusion takes scores of, in its order:
    one with neighbouring parts is there once. `tables` is the digest of the dataset's
    tables. Raises UserError without a checkpoint."""
    cells = [cell]
    if isinstance(cell, Fusion):
        known = {trained.folder: trained for trained in params.cells.values()}
        folders = dict.fromkeys(cell.members)
        cells = [entry(known, folder, "trained cell") for folder in folders]
    trained = {}
    for each in cells:
        trained[each.folder] = trained_cell(each, tables)
    if isinstance(cell, Cell):
        return list(trained.values())
    named = zip(cell.members, cell.parts, strict=True)
    members = []
    for folder, group in groupby(named, key=itemgetter(0)):
        parts = tuple(part for _, part in group)
        members.append(replace(trained[folder], parts=parts))
    return members


def trained_cell(cell: Cell, tables: str) -> TrainedCell:
    """A cell with its checkpoint. Raises UserError where that was trained otherwise."""
    checkpoint = checkpoints.load(Path(cell.checkpoint))
    checkpoints.check_identity(checkpoint.identity, cell, tables)
    method = ConfiguredMethod.of(cell)
    return TrainedCell(cell=cell, method=method, checkpoint=checkpoint)


def model_on_split(
    trained: TrainedCell, data: Prepared, split: Split, device: torch.device
) -> ModelOnSplit:
    """A model of retrieval with what it is fed of a split."""
    takes = trained.takes
    vocabulary = vocabulary_from(takes, trained.checkpoint.words)
    inputs = split_inputs(data, split, trained.cell, takes, vocabulary, device)
    positions = None
    if has_grid(trained):
        path = Path(trained.cell.images, POSITIONS)
        positions = np.load(path, mmap_mode="r", allow_pickle=False)[split.image_rows]
    return ModelOnSplit(
        trained=trained,
        model=trained.model(device),
        split=split,
        inputs=inputs,
        vocabulary=vocabulary,
        texts=data.captions["text"].iloc[split.caption_rows].tolist(),
        grid_positions=positions,
    )


def has_grid(trained: TrainedCell) -> bool:
    """Whether the cell is fed regions that lie on a grid, not in a detector's boxes."""
    return (
        trained.takes.image == "regions"
        and Path(trained.cell.images, POSITIONS).is_file()
    )


# Records ------------------------------------------------------------------------------


def record_facts(
    season: str,
    cell: Cell | Fusion,
    members: list[TrainedCell],
    data: Prepared,
    split: Split,
) -> dict:
    """Fields of the record of a cell, or of a fusion of `members`, whose method, family
    and features are those of its first member."""
    first = members[0]
    is_trained = isinstance(cell, Cell)
    task = first.takes.task
    options = {}
    parameters = {}
    trainings = {}
    scaled = set()
    for member in members:
        preset = member.cell.preset
        identity = member.checkpoint.identity
        options[preset] = asdict(member.method.config)
        parameters[preset] = member.checkpoint.parameters
        trainings[preset] = {name: identity[name] for name in IDENTITY}
        scaled |= set(member.cell.scaled)
    if not is_trained:
        fused = {"how": cell.how, "of": _names_of_parts(members)}
        options[cell.preset] = {**fused, "presets": dict(options)}
    image_card = _card(first.cell.images)
    return {
        "protocol_version": versions()["protocol"],
        "season": season,
        "dataset": cell.dataset,
        "split": f"{data.card['split']}/{split.name}",
        "images": len(split.image_rows),
        "captions": len(split.caption_rows),
        "task": task,
        "phrases": len(split.region_rows) if task == "localisation" else 0,
        "manifest_sha256": data.card["manifest"],
        "preset": cell.preset,
        "method": first.cell.method,
        "family": first.cell.family,
        "seed": cell.seed,
        "options": options[cell.preset],
        "scaled": sorted(scaled),
        "image_features": {k: v for k, v in image_card.items() if k in NAMED},
        "text_features": _text_facts(first),
        "departures": distinct_departures(members),
        "parameters": sum(parameters.values()),
        "selected_epoch": first.checkpoint.epoch if is_trained else None,
        "trainings": trainings,
        "numerics": checkpoints.process_numerics(),
    }


def _names_of_parts(members: list[TrainedCell]) -> list[str]:
    """What a record calls the scores that a fusion takes: PRESET, or PRESET:PART."""
    names = []
    for member in members:
        for part in member.parts:
            end = f":{part}" if part else ""
            names.append(f"{member.cell.preset}{end}")
    return names


def _text_facts(member: TrainedCell) -> dict:
    words = member.checkpoint.words
    if words:
        return {"vocabulary": len(words)}
    if member.takes.text not in VECTORS:  # never trained
        return {}
    card = _card(member.cell.texts)
    return {k: value for k, value in card.items() if not k.startswith("items")}


def distinct_departures(members: list[TrainedCell]) -> list[Departure]:
    """Where the features of all members differ from the paper's, each difference
    once."""
    departures: list[Departure] = []
    for member in members:
        for departure in [*_image_departures(member), *_text_departures(member)]:
            if departure not in departures:
                departures.append(departure)
    return departures


def _image_departures(member: TrainedCell) -> list[Departure]:
    takes = member.takes
    in_paper = member.cell.network or ""
    settings = _card(member.cell.images)["settings"]
    network = settings["network"]
    departures = []
    if network != in_paper:
        departures.append(
            Departure(aspect=Aspect.IMAGE_NETWORK, here=network, in_paper=in_paper)
        )
    if has_grid(member):
        side = str(settings["grid"])
        departures.append(Departure(aspect=Aspect.GRID_REGIONS, here=side))
    if takes.task == "localisation" and settings["how"] != "file":
        departures.append(Departure(aspect=Aspect.PROPOSALS, here=settings["how"]))
    if settings["standardise"] and takes.image != "pixels":
        departures.append(Departure(aspect=Aspect.IMAGES_STANDARDISED))
    return departures


def _text_departures(member: TrainedCell) -> list[Departure]:
    takes = member.takes
    departures = []
    if takes.word_vectors:
        vectors = _card(member.cell.words)["vectors"]
        departures.append(Departure(aspect=Aspect.WORD_VECTORS, here=vectors))
    if takes.text not in VECTORS:
        return departures
    card = _card(member.cell.texts)
    reads_words = "vectors" in card
    departures.append(
        Departure(
            aspect=Aspect.TEXT_VECTORS,
            here=card["vectors"] if reads_words else card["weights"],
            texts=takes.text,
            reads_words=reads_words,
        )
    )
    if card.get("weights") == RANDOM_WEIGHTS:
        departures.append(
            Departure(aspect=Aspect.RANDOM_TEXT_WEIGHTS, texts=takes.text)
        )
    if card["settings"]["standardise"]:
        departures.append(Departure(aspect=Aspect.TEXTS_STANDARDISED, texts=takes.text))
    return departures


def _card(folder: str) -> dict:
    return read_object(Path(folder) / "card.json")
