"""What a method of retrieval is fed: features and captions of one split, as tensors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark import encoders
from benchmark.core.json_objects import read_object
from benchmark.data.feature_folders import read_array
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.data.word_vectors import Words
from benchmark.matching.feeding import ahead, moved, resident, sent
from benchmark.season.parameters import Cell
from methods import Batch, Captions, Inputs, NotApplicableError

CHUNK = 4096  # rows gathered at a time, to bound the memory


@dataclass(frozen=True, kw_only=True)
class SplitInputs:
    """One split on one device. Images stay float16, or uint8, until a batch needs them, and so do
    vectors of captions. Images that do not fit the device stay on the host."""

    images: Tensor  # (I, F), (I, R, F) or (I, 3, S, S)
    captions: Captions
    image_of_caption: Tensor  # (C,) int64, in [0, I)
    group_of_image: Tensor  # (I,) int64
    device: torch.device
    class_of_image: Tensor | None = None  # (I,) int64, of the training split

    def batch(self, rows: np.ndarray, pool_rows: np.ndarray | None = None) -> Batch:
        """The captions at `rows`, each with its image; and the captions at `pool_rows`."""
        return next(self.batches([rows], [pool_rows]))

    def batches(
        self, rows: list[np.ndarray], pool_rows: list[np.ndarray | None]
    ) -> Iterator[Batch]:
        """A batch for each entry of the two lists. Indices are sent to the device at once, images
        that lie on the host one batch ahead."""
        if not rows:
            return
        drawn = sent(rows, self.device)
        pools = [None] * len(rows) if pool_rows[0] is None else sent(pool_rows, self.device)
        images = self._images_of(rows, drawn)
        for n, values in enumerate(images):
            yield self._batch(values, rows[n], drawn[n], pool_rows[n], pools[n])

    def _images_of(self, rows: list[np.ndarray], drawn: tuple[Tensor, ...]) -> Iterator[Tensor]:
        """The images of each batch, on the device."""
        if self.images.device.type == self.device.type:
            return (self.images_at(self.image_of_caption[index]) for index in drawn)
        owners = (torch.from_numpy(self.owners[part]) for part in rows)
        return ahead(self.images_at, owners)

    def _batch(
        self,
        images: Tensor,
        rows: np.ndarray,
        index: Tensor,
        pool_rows: np.ndarray | None,
        pool: Tensor | None,
    ) -> Batch:
        """`index` and `pool` are the rows on the device."""
        owners, has_pool = self.image_of_caption[index], pool is not None
        return Batch(
            images=images,
            captions=self.captions_at(index, torch.from_numpy(rows)),
            group_ids=self.group_of_image[owners],
            class_ids=self.class_of_image[owners] if self.class_of_image is not None else None,
            pool=self.captions_at(pool, torch.from_numpy(pool_rows)) if has_pool else None,
            pool_ids=self.group_of_image[self.image_of_caption[pool]] if has_pool else None,
            ids_on_host=self._groups[self.owners[rows]],
        )

    @cached_property
    def owners(self) -> np.ndarray:
        """(C,) the image of each caption, on the host: rows of one owner are siblings."""
        return self.image_of_caption.cpu().numpy()

    @cached_property
    def _groups(self) -> Tensor:
        return self.group_of_image.cpu()

    @cached_property
    def _counts(self) -> Tensor:
        """(C,) words of each caption, on the host."""
        return self.captions.counts

    @property
    def relevant(self) -> Tensor:
        """(I, C) bool: whether a caption describes an image of the same group."""
        group_C = self.group_of_image[self.image_of_caption]
        return self.group_of_image[:, None] == group_C[None, :]

    def pairs(self) -> Iterator[tuple[Tensor, Captions]]:
        """All matched rows in chunks: images, and their captions."""
        for rows in torch.arange(len(self.image_of_caption)).split(CHUNK):
            batch = self.batch(rows.numpy())
            yield batch.images, batch.captions

    def images_at(self, index: Tensor | slice) -> Tensor:
        """Features as float32; pixels as they are, for the method to crop first."""
        if isinstance(index, Tensor):
            index = index.to(self.images.device)  # pixels stay on the host
        images = moved(self.images[index], self.device)
        return images.float() if images.is_floating_point() else images

    def captions_at(self, index: Tensor | slice, on_host: Tensor | None = None) -> Captions:
        """Vectors as float32, words up to the longest caption. `on_host` is the same index there,
        where it is known."""
        captions = self._captions(index, on_host)
        values = captions.values
        if values.is_floating_point():
            return replace(captions, values=values.float())
        return replace(captions, values=values[:, : int(captions.counts.max())])

    def _captions(self, index: Tensor | slice, on_host: Tensor | None = None) -> Captions:
        there = index.cpu() if isinstance(index, Tensor) and on_host is None else on_host
        return Captions(
            values=self.captions.values[index],
            lengths=self.captions.lengths[index],
            lengths_on_host=self._counts[index if there is None else there],
        )

    def reordered(self, images: Tensor, captions: Tensor) -> "SplitInputs":
        """The same split with its images and its captions in other orders: which row comes first,
        second and so on."""
        place = torch.empty_like(images)
        place[images] = torch.arange(len(images))
        owners = self.image_of_caption[captions.to(self.device)]
        return replace(
            self,
            images=self.images[images.to(self.images.device)],
            captions=self._captions(captions.to(self.device), captions),
            image_of_caption=place.to(self.device)[owners],
            group_of_image=self.group_of_image[images.to(self.device)],
        )

    def first_images(self, count: int | None) -> "SplitInputs":
        """The first `count` images with their captions; None: all."""
        if count is None or count >= len(self.images):
            return self
        kept = (self.image_of_caption < count).nonzero()[:, 0]
        owners = self.image_of_caption[kept]
        return replace(
            self,
            images=self.images[:count],
            captions=self._captions(kept),
            image_of_caption=owners,
            group_of_image=self.group_of_image[:count],
        )

    def with_classes(self, class_of_image: np.ndarray) -> "SplitInputs":
        """The same split with a class for each image, (I,) int64."""
        return replace(self, class_of_image=torch.from_numpy(class_of_image).to(self.device))


def vocabulary_for(data: Prepared, cell: Cell, takes: Inputs) -> Vocabulary | Dictionary | None:
    """Words of the training captions only; None for methods that take sentence vectors."""
    if takes.text == "sentence":
        return None
    texts = data.captions["text"].iloc[data.split("train").caption_rows]
    if takes.text == "tokens":
        return Vocabulary.of(texts, takes.min_count)
    return Dictionary.of(texts, Words.read(Path(cell.words)))


def vocabulary_from(takes: Inputs, words: tuple[str, ...] | None) -> Vocabulary | Dictionary | None:
    """The vocabulary of the words that a checkpoint holds; None where it holds none."""
    if words is None:
        return None
    return Vocabulary(words=words) if takes.text == "tokens" else Dictionary(words=words)


def split_inputs(
    data: Prepared,
    cell: Cell,
    takes: Inputs,
    name: str,
    vocabulary: Vocabulary | Dictionary | None,
    device: torch.device,
) -> SplitInputs:
    """Split `name` of a cell's dataset, in the form its method takes.

    Raises NotApplicableError where the split has no captions or its features lack what the method
    takes, and UserError where the feature folders hold features of something else.
    """
    split = data.split(name)
    if not len(split.caption_rows):
        raise NotApplicableError(f"{cell.dataset}: the {name} split has no captions")
    images = torch.from_numpy(_features(data, cell, takes.image)[_span(split.image_rows)])
    texts = data.captions["text"].iloc[split.caption_rows].tolist()
    if vocabulary:
        values, lengths = (torch.from_numpy(array) for array in vocabulary.encode(texts))
    else:
        values = _vectors(data, split.caption_rows, cell)
        lengths = torch.ones(len(values), dtype=torch.int64)
    return SplitInputs(
        images=images if takes.image == "pixels" else resident(images, device),
        captions=Captions(
            values=values.to(device), lengths=lengths.to(device), lengths_on_host=lengths
        ),
        image_of_caption=torch.from_numpy(split.image_of_caption).to(device),
        group_of_image=torch.from_numpy(split.group_of_image).to(device),
        device=device,
    )


def pooled_features(data: Prepared, cell: Cell, name: str) -> np.ndarray:
    """(I, F) float16, of split `name`."""
    return _features(data, cell, "pooled")[_span(data.split(name).image_rows)]


def word_vectors(cell: Cell, vocabulary: Dictionary) -> Tensor:
    """(V, E), row v for word id v; zeros for padding."""
    vectors = Words.read(Path(cell.words)).rows(vocabulary.words[1:])
    return torch.from_numpy(np.vstack([np.zeros_like(vectors[:1]), vectors]))


def image_network(cell: Cell) -> nn.Module:
    """The network that made the cell's image features, with the weights it had."""
    state = torch.load(Path(cell.images) / "network.pt", weights_only=True)
    network = network_structure(cell, len(state["pooled_mean"]))
    network.load_state_dict(state)
    return network


def network_structure(cell: Cell, size: int) -> nn.Module:
    """The same network without its weights, of pooled size `size`, for a checkpoint to fill."""
    name = read_object(Path(cell.images) / "card.json")["settings"]["network"]
    return encoders.load(cell.backbone).structure(name, size)


def _features(data: Prepared, cell: Cell, kind: str) -> np.ndarray:
    if not (Path(cell.images) / f"{kind}.npy").is_file():
        hint = "; set image.pixels in the season" if kind == "pixels" else ""
        raise NotApplicableError(f"{cell.images}: expected {kind}.npy, found none{hint}")
    used = data.images["image_id"][data.images["split"] != "unused"].tolist()
    return read_array(Path(cell.images), kind, cell.dataset, used)


def _span(rows: np.ndarray) -> slice:
    """The rows of a split are consecutive (prepared_tables.py): a slice of the file is enough."""
    return slice(int(rows[0]), int(rows[-1]) + 1)


def _vectors(data: Prepared, rows: np.ndarray, cell: Cell) -> Tensor:
    ids = data.captions["caption_id"].tolist()
    vectors = read_array(Path(cell.texts), "sentence", cell.dataset, ids)[_span(rows)]
    return torch.from_numpy(vectors)
