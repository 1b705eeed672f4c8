"""Image-text matchers. One module per published method, loaded by file name.

A method module offers four things and knows nothing of data, metrics, paths, devices or seeds:

    INPUTS   which features and which text it is fed
    Config   a frozen dataclass of every hyper-parameter, each with its source
    Model    an `nn.Module` that fulfils `Matcher`, built as Model(config, sizes)
    recipe   Config -> the phases of its training

Shape legend: I = images, C = captions, B = rows of a batch (row b is a matched pair),
R = regions, W = words, F = input feature size, D = embedding size.
"""

import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Literal, Protocol

from torch import Tensor

Encoding = tuple[Tensor, ...]  # every tensor is indexed by item first

SHARED = ("encoders", "losses")  # files of this folder that are not methods


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a method is fed.

    image: "pooled" (I, F) or "regions" (I, R, F) features.
    text: "tokens", word ids (C, W) with 0 for padding, or "sentence" vectors (C, F).
    """

    image: Literal["pooled", "regions"]
    text: Literal["tokens", "sentence"]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the data decides: image feature size, and vocabulary or sentence vector size."""

    image: int
    text: int


@dataclass(frozen=True, kw_only=True)
class Captions:
    """Text of C captions: `values` is (C, W) word ids or (C, F) vectors.

    `lengths` (C,) counts the words of each row, 1 or more; for vectors it is all ones.
    """

    values: Tensor
    lengths: Tensor


@dataclass(frozen=True, kw_only=True)
class Batch:
    """B matched rows: images[b] goes with captions.values[b]; `image_ids` (B,) tells which
    rows show the same image, so that a second caption of an image is never its negative."""

    images: Tensor
    captions: Captions
    image_ids: Tensor


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One stretch of training with a fixed way of doing it. The training loop plays it."""

    epochs: int
    learning_rates: tuple[float, ...]  # one an epoch
    batch_size: int  # matched pairs drawn
    captions_per_image: int = 1  # >1: neighbourhood sampling adds rows of the same images
    optimiser: Literal["adam", "sgd"] = "adam"
    weight_decay: float = 0.0
    momentum: float = 0.0
    clip_norm: float | None = None  # maximum global gradient norm


class Matcher(Protocol):
    """A published way to score how well an image and a text match."""

    def encode_images(self, images: Tensor) -> Encoding: ...
    def encode_captions(self, captions: Captions) -> Encoding: ...
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor: ...  # (I, C)
    def loss(self, batch: Batch) -> dict[str, Tensor]: ...  # named terms, summed


def names() -> list[str]:
    """Every method of this folder, in alphabetical order."""
    files = Path(__file__).parent.glob("[!_]*.py")
    return sorted(path.stem for path in files if path.stem not in SHARED)


def load(name: str) -> ModuleType:
    """The module of one method: a name such as "scan", or the path of a .py file anywhere."""
    if name.endswith(".py"):
        return _load_file(Path(name))
    if name not in names():
        raise ValueError(f"no method {name!r}; expected one of {', '.join(names())}")
    return import_module(f"methods.{name}")


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such method file")
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module
