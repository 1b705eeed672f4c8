"""What a cell's method is fed: features and captions of one split, as tensors."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmark import prepared
from benchmark.features import read_array
from benchmark.params import Cell
from benchmark.prepared import Prepared, Split
from benchmark.text import Vocabulary
from methods import Batch, Captions, Inputs, Sizes


@dataclass(frozen=True, kw_only=True)
class SplitInputs:
    """One split on one device. Images stay float16 until a batch asks for them."""

    images: Tensor  # (I, F) or (I, R, F)
    captions: Captions
    image_of_caption: Tensor  # (C,) int64, in [0, I)
    device: torch.device

    def batch(self, rows: np.ndarray) -> Batch:
        """The captions at `rows`, each with its image."""
        index = torch.from_numpy(rows).to(self.captions.values.device)
        owners = self.image_of_caption[index]
        return Batch(
            images=self.images_at(owners), captions=self.captions_at(index), image_ids=owners
        )

    def images_at(self, index: Tensor | slice) -> Tensor:
        return self.images[index].to(self.device).float()

    def captions_at(self, index: Tensor | slice) -> Captions:
        lengths = self.captions.lengths[index]
        values = self.captions.values[index]
        if not values.is_floating_point():
            values = values[:, : int(lengths.max())]
        return Captions(values=values, lengths=lengths)

    def first_images(self, count: int | None) -> "SplitInputs":
        """The first `count` images with their captions; None: all."""
        if count is None or count >= len(self.images):
            return self
        kept = (self.image_of_caption < count).nonzero()[:, 0]
        captions = Captions(values=self.captions.values[kept], lengths=self.captions.lengths[kept])
        return SplitInputs(
            images=self.images[:count],
            captions=captions,
            image_of_caption=self.image_of_caption[kept],
            device=self.device,
        )


def vocabulary_of(data: Prepared, min_count: int) -> Vocabulary:
    """Words of the training captions only."""
    rows = data.split("train").caption_rows
    return Vocabulary.of(data.captions["text"].iloc[rows], min_count)


def split_inputs(
    data: Prepared,
    cell: Cell,
    takes: Inputs,
    name: str,
    vocabulary: Vocabulary | None,
    device: torch.device,
) -> SplitInputs:
    """Split `name` of a cell's dataset, in the form its method takes."""
    split = data.split(name)
    used = data.images["image_id"][data.images["split"] != "unused"].tolist()
    features = read_array(Path(cell.images), takes.image, cell.dataset, used)
    images = torch.from_numpy(features[_span(split.image_rows)])
    if vocabulary:
        captions = _words(data, split, vocabulary)
    else:
        captions = _vectors(data, split, cell)
    return SplitInputs(
        images=images.to(device),
        captions=Captions(values=captions.values.to(device), lengths=captions.lengths.to(device)),
        image_of_caption=torch.from_numpy(split.image_of_caption).to(device),
        device=device,
    )


def sizes_of(inputs: SplitInputs, vocabulary: Vocabulary | None) -> Sizes:
    """What the data decides of a model's shape."""
    text = len(vocabulary) if vocabulary else inputs.captions.values.shape[1]
    return Sizes(image=inputs.images.shape[-1], text=text)


def read_data(cell: Cell) -> Prepared:
    """The prepared dataset of a cell."""
    return prepared.read(cell.dataset)


def _span(rows: np.ndarray) -> slice:
    """The rows of a split lie together (prepared.py), so that a slice of the file is enough."""
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _words(data: Prepared, split: Split, vocabulary: Vocabulary) -> Captions:
    texts = data.captions["text"].iloc[split.caption_rows].tolist()
    ids, lengths = vocabulary.encode(texts)
    return Captions(values=torch.from_numpy(ids), lengths=torch.from_numpy(lengths))


def _vectors(data: Prepared, split: Split, cell: Cell) -> Captions:
    ids = data.captions["caption_id"].tolist()
    rows = read_array(Path(cell.texts), "sentence", cell.dataset, ids)[_span(split.caption_rows)]
    values = torch.from_numpy(rows).float()
    return Captions(values=values, lengths=torch.ones(len(values), dtype=torch.int64))
