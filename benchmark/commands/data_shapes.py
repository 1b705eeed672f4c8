"""How much a dataset holds, and the shapes of its features: read where they exist, else derived
from the dataset's card and the season. What neither says is assumed: the constants below.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmark import encoders
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.data.vocabularies import Vocabulary, tokenise
from benchmark.encode.proposals import CELLS
from benchmark.encoders import hglmm, tfidf
from benchmark.season import networks
from benchmark.season.parameters import FeatureSet, Params
from datasets import DataError, Tables

CAPTIONS = 5  # assumed: per image, where the card does not say
PHRASES = 3  # assumed: with a box, per caption
WORDS = 12  # assumed: per caption, before there are captions
VOCABULARY = 10_000  # assumed: words of a dataset, before there are captions
IMPORTED = {"bottom_up": (36, 2048)}  # regions and size of features that are only imported
DETECTED = 1024  # numbers that the box head of torchvision's detectors gives for a box
DRAWN_SIZE = 384  # pooled features of the one network that does not fix their number


class UnknownShapeError(ValueError):
    """A size that nothing tells before a later stage has run. One line: which."""


@dataclass(frozen=True)
class DatasetSize:
    """How much a dataset holds."""

    counts: dict[str, dict[str, int]]  # split -> images, captions, phrases
    groups: int  # of training images
    words: int = VOCABULARY  # of the training captions, rare ones included
    lengths: tuple[int, ...] = (WORDS,)  # words of each training caption

    def total(self, items: str) -> int:
        """Images, captions or phrases of all splits that are used."""
        return sum(counts[items] for split, counts in self.counts.items() if split != "unused")


def dataset_size(dataset: RawDataset) -> DatasetSize:
    """Counted in the prepared tables, else in what code draws, else as the card expects.

    Raises UnknownShapeError where none of them tells.
    """
    if (prepared_tables.ROOT / dataset.name / "card.json").is_file():
        return _counted(prepared_tables.read(dataset.name))
    if _is_drawn(dataset):
        return _counted(dataset.read())
    card, counts = dataset.card, {}
    if "train" not in card.expected_images:
        raise UnknownShapeError(f"{dataset.name}: its size is not known before it is prepared")
    for split, images in card.expected_images.items():
        captions = card.expected_captions.get(split, CAPTIONS * images)
        counts[split] = {"images": images, "captions": captions, "phrases": PHRASES * captions}
    return DatasetSize(counts, groups=counts["train"]["images"])


def _is_drawn(dataset: RawDataset) -> bool:
    try:
        return not dataset.inventory()
    except DataError:
        return False


def _counted(tables: Prepared | Tables) -> DatasetSize:
    images = tables.images.set_index("image_id")
    splits = {
        "images": images["split"],
        "captions": tables.captions["image_id"].map(images["split"]),
        "phrases": tables.regions["image_id"].map(images["split"]),
    }
    texts = tables.captions["text"][splits["captions"] == "train"]
    return DatasetSize(
        counts={
            split: {items: int((of == split).sum()) for items, of in splits.items()}
            for split in images["split"].unique()
        },
        groups=images["group"][images["split"] == "train"].nunique(),
        words=len(Vocabulary.of(texts, 1)),
        lengths=tuple(len(tokenise(text)) for text in texts),
    )


class SeasonShapes:
    """Sizes of a season's datasets, each looked up once, and shapes of its features."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self._sizes: dict[str, DatasetSize] = {}

    def dataset(self, name: str) -> DatasetSize:
        """As `dataset_size`."""
        if name not in self._sizes:
            self._sizes[name] = dataset_size(raw_dataset(self.params, name))
        return self._sizes[name]

    def feature_set(self, folder: str) -> FeatureSet:
        """The feature set that is kept in `folder`."""
        return next(each for each in self.params.feature_sets.values() if each.folder == folder)

    def arrays(self, features: FeatureSet) -> dict[str, tuple[int, ...]]:
        """Shape of one row of every array of a feature folder, by the array's name.

        Raises UnknownShapeError for features that are imported from an unknown network.
        """
        if is_encoded(features):
            paths = Path(features.folder).glob("*.npy")
            return {path.stem: np.load(path, mmap_mode="r").shape[1:] for path in paths}
        if features.kind == "words":
            return {"words": (features.words.size,)}
        if features.kind in ("sentences", "phrases"):
            return {features.kind.removesuffix("s"): (self._text_size(features),)}
        if features.kind == "proposals":
            count, size = features.proposals.count, _box_size(features)
            return {"proposals": (count, size), "boxes": (count, 4), "truths": (size,)}
        return _picture_shapes(features)

    def _text_size(self, features: FeatureSet) -> int:
        sizes = {
            "mean_words": self.feature_set(features.source).words.size,
            "hglmm": hglmm.SIZE,
            "bilstm_max": 2 * features.sentence.hidden,
            "tfidf": tfidf.SIZE,
        }
        return features.sentence.size or sizes[features.encoder]


def is_encoded(features: FeatureSet) -> bool:
    """Whether the feature folder is complete."""
    return (Path(features.folder) / "card.json").is_file()


def _box_size(features: FeatureSet) -> int:
    if features.encoder == networks.DETECTORS:
        return DETECTED
    settings = features.proposals
    return CELLS**2 * _network_sizes(features.encoder, settings.network, settings.input_size)[1]


def _picture_shapes(features: FeatureSet) -> dict[str, tuple[int, ...]]:
    settings = features.image
    if settings.features and settings.network not in IMPORTED:
        raise UnknownShapeError(f"{settings.features}: its sizes are not known before the import")
    if settings.features:
        regions, size = IMPORTED[settings.network]
        return {"pooled": (size,), "regions": (regions, size)}
    pooled, channels = _network_sizes(features.encoder, settings.network, settings.input_size)
    shapes = {"pooled": (pooled,), "regions": (settings.grid**2, channels)}
    return shapes | ({"pixels": (3, settings.pixels, settings.pixels)} if settings.pixels else {})


@cache
def _network_sizes(encoder: str, network: str, side: int) -> tuple[int, int]:
    """Of the pooled features and of the channels of the map, after a forward pass of one image."""
    if encoder == networks.DETECTORS:
        return DETECTED, DETECTED
    with torch.device("meta"):
        pooled, channels = structure(encoder, network).eval()(torch.empty(1, 3, side, side))
    return pooled.shape[1], channels.shape[1]


def structure(encoder: str, network: str) -> nn.Module:
    """An image network without its weights."""
    return encoders.load(encoder).structure(network, DRAWN_SIZE if network == networks.DRAWN else 1)
