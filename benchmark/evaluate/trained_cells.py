"""Trained cells as they are evaluated: their checkpoints, models, and inputs of a split."""

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmark.data.prepared_tables import Prepared, Split
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.matching import checkpoints, training_identity
from benchmark.matching.checkpoints import Checkpoint
from benchmark.matching.retrieval_inputs import (
    SplitInputs,
    network_structure,
    split_inputs,
    vocabulary_from,
)
from benchmark.season.method_options import ConfiguredMethod
from benchmark.season.parameter_files import entry
from benchmark.season.parameters import Cell, Fusion, Params
from methods import Encoding, Inputs, Matcher


@dataclass(frozen=True, kw_only=True)
class TrainedCell:
    """One trained cell, and which of its scores count."""

    cell: Cell
    parts: tuple[str, ...]  # named scores; "": its similarity
    method: ConfiguredMethod
    checkpoint: Checkpoint

    @property
    def takes(self) -> Inputs:
        return self.method.takes

    def model(self, device: torch.device) -> nn.Module:
        """The model with its trained weights, in evaluation mode."""
        parts = {}
        if self.takes.image == "pixels":
            parts["image_network"] = network_structure(self.cell, self.checkpoint.sizes.image)
        model = self.method.module.Model(self.method.config, self.checkpoint.sizes, **parts)
        model.load_state_dict(self.checkpoint.state)
        return model.to(device).eval()


@dataclass(frozen=True, kw_only=True)
class ModelOnSplit:
    """A trained model with the split that it is evaluated on."""

    model: Matcher
    parts: tuple[str, ...]  # as of the trained cell
    takes: Inputs
    inputs: SplitInputs
    vocabulary: Vocabulary | Dictionary | None  # None: the method takes sentence vectors
    texts: list[str]  # (C,)
    grid_positions: np.ndarray | None  # (I, R) where each region lies on its image's grid, counted
    # row by row from 0; None without regions of a grid

    def image(self, row: int) -> Encoding:
        """The encoding of the image that caption `row` describes."""
        owner = int(self.inputs.image_of_caption[row])
        return self.model.encode_images(self.inputs.images_at(slice(owner, owner + 1)))


def trained_cells(params: Params, cell: Cell | Fusion) -> list[TrainedCell]:
    """The cell itself, or the trainings that a fusion takes scores of, in its order: one with
    neighbouring parts is there once. Raises UserError without a checkpoint."""
    if isinstance(cell, Cell):
        return [trained_cell(cell)]
    by_folder = {trained.folder: trained for trained in params.cells.values()}
    named = zip(cell.members, cell.parts, strict=True)
    return [
        trained_cell(entry(by_folder, folder, "trained cell"), tuple(part for _, part in parts))
        for folder, parts in groupby(named, key=itemgetter(0))
    ]


def trained_cell(cell: Cell, parts: tuple[str, ...] = ("",)) -> TrainedCell:
    """A cell with its checkpoint. Raises UserError where that was trained otherwise."""
    checkpoint = checkpoints.load(Path(cell.checkpoint))
    training_identity.check(checkpoint.identity, cell)
    method = ConfiguredMethod.of(cell)
    return TrainedCell(cell=cell, parts=parts, method=method, checkpoint=checkpoint)


def model_on_split(
    trained: TrainedCell, data: Prepared, name: str, device: torch.device
) -> ModelOnSplit:
    """A model of retrieval with what it is fed of split `name`."""
    vocabulary = vocabulary_from(trained.takes, trained.checkpoint.words)
    split = data.split(name)
    return ModelOnSplit(
        model=trained.model(device),
        parts=trained.parts,
        takes=trained.takes,
        inputs=split_inputs(data, trained.cell, trained.takes, name, vocabulary, device),
        vocabulary=vocabulary,
        texts=data.captions["text"].iloc[split.caption_rows].tolist(),
        grid_positions=_grid_positions(trained, split),
    )


def has_grid(trained: TrainedCell) -> bool:
    """Whether the cell is fed regions that lie on a grid, not in a detector's boxes."""
    return trained.takes.image == "regions" and _positions_file(trained).is_file()


def _grid_positions(trained: TrainedCell, split: Split) -> np.ndarray | None:
    if not has_grid(trained):
        return None
    positions = np.load(_positions_file(trained), mmap_mode="r", allow_pickle=False)
    return positions[split.image_rows]


def _positions_file(trained: TrainedCell) -> Path:
    return Path(trained.cell.images) / "positions.npy"
