"""What a season will cost, before it is played: device hours and disk. Estimated, not measured.

Hours: the operations (benchmark.commands.operations) of every training step of every cell, and those of the
image networks for every picture, divided by RATE; and OVERHEAD for every step.
Left out: validation and evaluation; what runs on the host (text encoders, k-means, selective
search); detectors and the heads of boxes; methods in closed form. Nothing that was played before
is subtracted from the hours.
"""

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.commands.operations import Counted, Fed, Seen, UnknownError, counted, seen
from benchmark.core.files import read_json
from benchmark.data import prepared_tables
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.encode.proposals import CELLS
from benchmark.encoders import hglmm, tfidf
from benchmark.season.method_options import configured, method_of
from benchmark.season.parameters import Cell, FeatureSet, Params
from methods import Inputs, Phase, Sizes

RATE = 10e12  # operations a second. Assumed: what one data-centre GPU sustains in float32
OVERHEAD = 0.005  # seconds a step. Assumed: what is no product, and waiting
VOCABULARY = 10_000  # assumed: words of a dataset
CAPTIONS = 5  # assumed: of an image, where the card does not say
PHRASES = 3  # assumed: with a box, of a caption
REGIONS = 36  # of imported features of detectors
DETECTED = 1024  # size of what the box head of torchvision's detectors makes of a box
IMPORTED = {"bottom_up": 2048}  # networks whose features are only imported
GIB = 2**30
HALF = 2  # bytes of a number in a feature folder
SINGLE = 4  # bytes of a number in a checkpoint

Counts = dict[str, dict[str, int]]  # split -> images, captions, phrases


def estimate(params: Params, absent: list[str]) -> dict:
    """Hours and GiB of a season; `absent` are the datasets whose raw files are missing."""
    season = _Season(params)
    feature_sets, not_encoded = _known(season.encoding_hours, params.feature_sets)
    cells, not_trained = _known(season.training_hours, params.cells)
    return {
        "kind": "estimated, not measured",
        "assumed": f"{RATE / 1e12:g} TFLOP/s sustained, {1000 * OVERHEAD:g} ms more a step",
        "device_hours": _rounded(
            {"encoding": sum(feature_sets.values()), "training": sum(cells.values())}
        ),
        "hours_of_cells": _rounded(cells),
        "not_counted": not_encoded | not_trained,
        "disk_gib": _rounded(season.disk(absent)),
    }


def _known(of: Callable, items: dict) -> tuple[dict[str, float], dict[str, str]]:
    """What is known of each item, and why nothing is known of the others."""
    known, unknown = {}, {}
    for key, item in items.items():
        try:
            known[key] = of(item)
        except UnknownError as error:
            unknown[key] = str(error)
    return known, unknown


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.3g}") for key, value in values.items()}


def counts_of(dataset: RawDataset) -> Counts:
    """Of the prepared dataset, else what its card expects, else what is drawn. Raises
    UnknownError."""
    path = prepared_tables.ROOT / dataset.name / "card.json"
    if path.is_file():
        return read_json(path)["counts"]
    card = dataset.card
    if "train" not in card.expected_images:
        return _drawn(dataset)
    found = {}
    for split, images in card.expected_images.items():
        captions = card.expected_captions.get(split, CAPTIONS * images)
        found[split] = {"images": images, "captions": captions, "phrases": PHRASES * captions}
    return found


def _drawn(dataset: RawDataset) -> Counts:
    """Of a dataset that is code; of others nothing is known before they are prepared."""
    try:
        is_code = not dataset.inventory()
    except ValueError:  # DataError: the files are not there
        is_code = False
    if not is_code:
        raise UnknownError(f"{dataset.name}: its size is not known before it is prepared")
    tables = dataset.read()
    split_of = tables.images.set_index("image_id")["split"]
    splits = {
        "images": tables.images["split"],
        "captions": tables.captions["image_id"].map(split_of),
        "phrases": tables.regions["image_id"].map(split_of),
    }
    return {
        name: {what: int((of == name).sum()) for what, of in splits.items()}
        for name in split_of.unique()
    }


@dataclass
class _Season:
    """A season, and what was found out about its datasets."""

    params: Params
    found: dict[str, Counts] = field(default_factory=dict)

    def training_hours(self, cell: Cell) -> float:
        """Of all steps of a cell. Raises UnknownError."""
        method = method_of(cell.method)
        if hasattr(method.Model, "fit"):
            raise UnknownError("closed form: solved at once, on the host")
        config = configured(method, cell.options, f"preset {cell.preset}")
        takes, model = method.inputs(config), self.counted(cell)
        hours = 0.0
        for phase, operations in zip(method.recipe(config), model.steps, strict=True):
            steps = phase.epochs * math.ceil(self.rows(cell, phase, takes) / phase.batch_size)
            hours += steps * (operations / RATE + OVERHEAD) / 3600
        return hours

    def rows(self, cell: Cell, phase: Phase, takes: Inputs) -> int:
        """What an epoch draws."""
        train = self.counts(cell.dataset)["train"]
        return train["phrases" if takes.text == "phrase" else phase.draws]

    def encoding_hours(self, encoding: FeatureSet) -> float:
        """Of an image network for all pictures; text encoders run on the host. Raises
        UnknownError."""
        settings = encoding.image or encoding.proposals
        if settings is None or (encoding.image and settings.features):
            return 0.0
        if encoding.encoder == "faster_rcnn" or (encoding.proposals and settings.how == "rpn"):
            raise UnknownError("a detector: its operations depend on what it finds")
        passes = 2 if encoding.image and settings.flip else 1
        look = seen(encoding.encoder, settings.network, settings.input_size)
        return passes * self.total(encoding, "images") * look.operations / RATE / 3600

    def counted(self, cell: Cell) -> Counted:
        method = method_of(cell.method)
        config = configured(method, cell.options, f"preset {cell.preset}")
        return counted(cell.method, config, *self.shapes(cell, method.inputs(config)))

    def counts(self, name: str) -> Counts:
        if name not in self.found:
            self.found[name] = counts_of(raw_dataset(self.params, name))
        return self.found[name]

    def total(self, encoding: FeatureSet, what: str) -> int:
        counts = self.counts(encoding.dataset)
        return sum(counts[split].get(what, 0) for split in counts if split != "unused")

    # Shapes

    def shapes(self, cell: Cell, takes: Inputs) -> tuple[Sizes, Fed]:
        """What the cell's model is built for and fed, as far as it can be known beforehand."""
        image = self.at(cell.images)
        pooled, shape = _image_shape(image, takes.image)
        groups = self.counts(cell.dataset)["train"]["images"]
        text, word_size = VOCABULARY, 0
        if takes.text in ("sentence", "phrase"):
            text = self.text_size(self.at(cell.texts))
        elif takes.text == "words":
            word_size = self.at(cell.words).words.size
        network = (image.encoder, image.image.network) if takes.image == "pixels" else None
        sizes = Sizes(image=pooled, text=text, classes=round(groups * (takes.clusters or 1)))
        return sizes, Fed(image=shape, word_size=word_size, network=network)

    def at(self, folder: str) -> FeatureSet:
        return next(one for one in self.params.feature_sets.values() if one.folder == folder)

    def text_size(self, encoding: FeatureSet) -> int:
        """Of the vectors of sentences or phrases."""
        settings = encoding.sentence
        made = {
            "mean_words": self.at(encoding.source).words.size,
            "hglmm": hglmm.SIZE,
            "bilstm_max": 2 * settings.hidden,
            "tfidf": tfidf.SIZE,
        }
        return settings.size or made[encoding.encoder]

    # Disk

    def disk(self, absent: list[str]) -> dict[str, float]:
        """GiB that are still to be written; DVC keeps a copy of every checkpoint."""
        features, _ = _known(self.features_gib, self.params.feature_sets)
        checkpoints, _ = _known(self.checkpoint_gib, self.params.cells)
        sizes = {
            "raw_files": sum(raw_dataset(self.params, name).card.raw_gib for name in absent),
            "features": sum(features.values()),
            "checkpoints": 2 * sum(checkpoints.values()),
        }
        return sizes | {"needed": sum(sizes.values()), "free": shutil.disk_usage(".").free / GIB}

    def features_gib(self, encoding: FeatureSet) -> float:
        if (Path(encoding.folder) / "card.json").is_file():
            return 0.0
        of = {
            "words": lambda: VOCABULARY * encoding.words.size * SINGLE,
            "sentences": lambda: self.texts_bytes(encoding, "captions"),
            "phrases": lambda: self.texts_bytes(encoding, "phrases"),
            "pictures": lambda: self.total(encoding, "images") * _image_bytes(encoding),
            "proposals": lambda: self.boxes_bytes(encoding),
        }
        return of[encoding.kind]() / GIB

    def texts_bytes(self, encoding: FeatureSet, what: str) -> int:
        return self.total(encoding, what) * self.text_size(encoding) * HALF

    def boxes_bytes(self, encoding: FeatureSet) -> int:
        proposals = self.total(encoding, "images") * encoding.proposals.count
        return (proposals + self.total(encoding, "phrases")) * _box_size(encoding) * HALF

    def checkpoint_gib(self, cell: Cell) -> float:
        if (Path(cell.folder) / "checkpoint.pt").is_file():
            return 0.0
        return self.counted(cell).parameters * SINGLE / GIB


def _image_shape(encoding: FeatureSet, kind: str) -> tuple[int, tuple[int, ...]]:
    """Feature size that a model is built for, and the shape of one image."""
    if encoding.proposals:
        size = _box_size(encoding)
        return size, (encoding.proposals.count, size)
    settings, look = encoding.image, _seen(encoding)
    if kind == "pixels":
        return look.pooled, (3, settings.pixels, settings.pixels)
    if kind == "pooled":
        return look.pooled, (look.pooled,)
    return look.map, (_regions(encoding), look.map)


def _regions(encoding: FeatureSet) -> int:
    return REGIONS if encoding.image.features else encoding.image.grid**2


def _seen(encoding: FeatureSet) -> Seen:
    settings = encoding.image
    if settings.network in IMPORTED:
        size = IMPORTED[settings.network]
        return Seen(pooled=size, map=size, operations=0)
    return seen(encoding.encoder, settings.network, settings.input_size)


def _box_size(encoding: FeatureSet) -> int:
    """Of the features of a proposal."""
    settings = encoding.proposals
    if encoding.encoder == "faster_rcnn":
        return DETECTED
    return CELLS**2 * seen(encoding.encoder, settings.network, settings.input_size).map


def _image_bytes(encoding: FeatureSet) -> int:
    look = _seen(encoding)
    return (look.pooled + _regions(encoding) * look.map) * HALF + 3 * encoding.image.pixels**2
