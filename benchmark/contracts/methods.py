"""Image-text matchers. One module per published method, loaded by file name.

A method module offers four things and knows nothing of data, metrics, paths, devices or
seeds:

    Config   a frozen dataclass of every hyper-parameter, each with its range and its source
    inputs   Config -> `Inputs`: what the method is fed, and what its Model offers
    Model    an `nn.Module` that fulfils `Matcher`, built as Model(config, sizes)
    recipe   Config -> the phases of its training

Its presets lie beside it in a YAML file of the same name. A Model may have four more
methods. Each of them is declared by a field of `Inputs`; one that is not declared is
never called:

    fit(pairs)                                         closed form: called once, before the phases,
                                                       with all matched training rows in chunks,
                                                       each (images, captions)
    scores(images, captions) -> named (I, C)           parts of its score, for late fusion
    caption_similarity(captions, captions) -> (C, C)   for sentence-to-sentence retrieval
    attention(images, captions) -> (B, W, R)           how much word w of caption b, as it was
                                                       fed, attends to region r of image b; sums
                                                       to 1 over R; the rows of padding are
                                                       undefined

A method of phrase localisation is a `Matcher` whose images are regions and whose
captions are phrases; its `loss` gets a `RegionBatch`.

A score must follow from its picture, its text, and the parameters and buffers of Model
alone. Items come in an order drawn at random, in batches and tiles of any size, and are
scored a second time in other ones, by a model that is loaded from the checkpoint and
sees each part of the split without the others: a cell whose scores differ is `failed`.
So Model may not count rows, keep statistics of a batch or of a split in evaluation, or
draw at random there. What it freezes by `requires_grad_(False)` stays frozen. It sets
no seed: every generator has the cell's. A call leaves the mode, training or evaluation,
and the numbers that it is given as they were. A file of your own runs in a process of
its own. This finds mistakes; a method that wants to cheat runs in the same process as
its judge, and can.

Shape legend: I = images, C = captions, B = rows of a batch (row b is a matched pair),
R = regions, P = proposals, W = words, F = input feature size, D = embedding size.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

if TYPE_CHECKING:  # torch takes a second that lists and help need not wait for
    from torch import Tensor

from benchmark.contracts import HOME

FOLDER = HOME / "methods"
# its files are submodules of this module: plug-ins, loaded by name
__path__ = [str(FOLDER)]

# Ranges of hyper-parameters, for the fields of a `Config`; they are checked with the
# season.
# of layers, batches, lists; epochs
Size = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
# of what there may be none
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]  # learning rates, factors
# of terms of a loss; margins
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]  # dropout, momentum
Fraction = Annotated[float, Field(ge=0, le=1)]  # overlaps, slopes

Encoding = tuple["Tensor", ...]  # every tensor is indexed by item first


class NotApplicableError(ValueError):
    """Data that cannot give a preset its inputs. One line: what was expected, what was
    found."""


class OptionError(ValueError):
    """A value that a `Config` refuses: the `option`, what is `expected` and what was
    `found`."""

    def __init__(self, option: str, expected: str, found: object) -> None:
        self.option = option
        self.expected = expected
        self.found = found
        super().__init__(f"{option}: expected {expected}, found {found!r}")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a method is fed, and what its Model offers beyond `Matcher`.

    image: "pooled" (I, F) or "regions" (I, R, F) features, most salient region first,
    or "pixels" (I, 3, S, S) uint8. With pixels Model gets a keyword `image_network`, an
    `nn.Module` from pixels in [0, 1] to (pooled (I, F), map (I, F', h, w)), pretrained.
    "proposals" (I, P, F) are features of boxes where something may be, for
    localisation. text: "tokens", word ids (C, W) with 0 for padding, framed by <start>
    and <end>, rare words as <unk>; "words", ids of the words that have a vector and no
    others; "sentence" vectors (C, F); "contextual" vectors (C, W, F) of the tokens of
    each caption, those that frame it among them, zeros for padding; "phrase" vectors
    (C, F), for localisation. min_count: with tokens, how often a word occurs in the
    training captions to be no rare word. word_vectors: Model gets a keyword
    `word_vectors`, (V, E), row v for word id v. clusters: 0, or the number of k-means
    clusters of the images per group; they replace the groups as classes. fit,
    caption_similarity, attention: whether Model has the method of this name. scores:
    the names in what `Model.scores` returns, in its order; empty where it has no
    `scores`.
    """

    task: Literal["retrieval", "localisation"] = "retrieval"
    image: Literal["pooled", "regions", "pixels", "proposals"]
    text: Literal["tokens", "words", "sentence", "contextual", "phrase"]
    min_count: int = 1
    word_vectors: bool = False
    clusters: float = 0.0
    fit: bool = False
    scores: tuple[str, ...] = ()
    caption_similarity: bool = False
    attention: bool = False

    def __post_init__(self) -> None:
        localises = self.task == "localisation"
        takes_proposals = self.image == "proposals"
        takes_phrases = self.text == "phrase"
        if takes_proposals != localises or takes_phrases != localises:
            raise ValueError(
                f"inputs: expected proposals and phrases for localisation and for nothing else, "
                f"found {self.image} and {self.text} for {self.task}"
            )


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes that the data decides.

    image: size of an image feature. text: size of the vocabulary, or of a vector of
    text. classes: how many classes the training images have.
    """

    image: int
    text: int
    classes: int = 0


@dataclass(frozen=True, kw_only=True)
class Captions:
    """Text of C captions: `values` is (C, W) word ids, (C, F) vectors, or (C, W, F) of
    tokens.

    `lengths` (C,) counts the words of each row, 1 or more (a row without known words is
    one padding); for (C, F) vectors it is all ones. `lengths_on_host` are the same
    numbers there, where they are known: reading those of a GPU makes it wait.
    """

    values: Tensor
    lengths: Tensor
    lengths_on_host: Tensor | None = None

    @property
    def counts(self) -> Tensor:
        """(C,) `lengths` on the host."""
        return (
            self.lengths.cpu() if self.lengths_on_host is None else self.lengths_on_host
        )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """B matched rows: images[b] goes with captions.values[b]. With neighbourhood
    sampling a drawn caption is followed by its siblings, other captions of the same
    image.

    `group_ids` (B,) tells which rows show the same group (image, or person), so that
    another caption of the group is never a negative; `class_ids` (B,) in [0, classes)
    is the group or cluster of each row, for methods that classify. `pool` are more
    training captions, drawn at random, where a phase asks for them; `pool_ids` are
    their groups. `ids_on_host` are the group ids there, to count without waiting for a
    GPU.
    """

    images: Tensor
    captions: Captions
    group_ids: Tensor
    class_ids: Tensor | None = None
    pool: Captions | None = None
    pool_ids: Tensor | None = None
    ids_on_host: Tensor | None = None

    @property
    def counted_ids(self) -> Tensor:
        """(B,) group ids on the host."""
        return self.group_ids.cpu() if self.ids_on_host is None else self.ids_on_host


@dataclass(frozen=True, kw_only=True)
class RegionBatch:
    """B matched rows: a phrase, the true region that it names, and the proposals of its
    image.

    With neighbourhood sampling a drawn phrase is followed by another one of its chain.
    """

    regions: Tensor  # (B, F) features of the true region
    phrases: Captions  # B rows
    proposals: Tensor  # (U, P, F) of the U images in the batch
    image_of_row: Tensor  # (B,) int64, in [0, U)
    # (B, P) intersection over union of each proposal of the row's image with its true
    # region, in [0, 1]; NaN where the image has fewer than P proposals
    ious: Tensor
    # (B,) int64; rows of one chain name the same thing of the same image
    chain_ids: Tensor
    ids_on_host: Tensor | None = None  # chain_ids and
    ious_on_host: Tensor | None = None  # ious there, to count without waiting for a GPU
    present_on_host: int | None = None  # how many proposals the U images have

    @property
    def counted_ids(self) -> Tensor:
        """(B,) chain ids on the host."""
        return self.chain_ids.cpu() if self.ids_on_host is None else self.ids_on_host

    @property
    def counted_ious(self) -> Tensor:
        """(B, P) `ious` on the host."""
        return self.ious.cpu() if self.ious_on_host is None else self.ious_on_host

    @property
    def present(self) -> int:
        """How many proposals the U images have."""
        if self.present_on_host is not None:
            return self.present_on_host
        images_B = self.image_of_row.cpu()
        of_row_B = (~self.counted_ious.isnan()).sum(1)
        of_image_U = images_B.new_zeros(len(self.proposals)).index_copy(
            0, images_B, of_row_B
        )
        return int(of_image_U.sum())


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a training: epochs with the same optimiser, batches and loss terms.

    An epoch draws every caption (phrase) once, or every image once with one of its
    captions; the siblings of a phrase are the other phrases of its chain. `rates` are
    pairs (start of a parameter's name, factor on its learning rate); the first pair
    that fits counts, and a factor of 0 freezes the parameter. `keeps` of the last phase
    says which epoch of the whole training is kept: the best one on validation, or the
    last one, where the paper's length is fixed.
    """

    epochs: int
    learning_rates: tuple[float, ...]  # one per epoch
    batch_size: int  # matched pairs drawn
    draws: Literal["captions", "images"] = "captions"
    # >1: neighbourhood sampling adds rows of the same images
    captions_per_image: int = 1
    pool: int = 0  # more captions to choose negatives from
    optimiser: Literal["adam", "sgd"] = "adam"
    weight_decay: float = 0.0
    momentum: float = 0.0
    nesterov: bool = False
    rates: tuple[tuple[str, float], ...] = ()
    clip_norm: float | None = None  # maximum global gradient norm
    # loss terms that count; empty: all that the method gives
    terms: tuple[str, ...] = ()
    keeps: Literal["best", "last"] = "best"


class Matcher(Protocol):
    """A published way to score how well an image and a text match."""

    def encode_images(self, images: Tensor) -> Encoding: ...
    def encode_captions(self, captions: Captions) -> Encoding: ...
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor: ...  # (I, C)
    # named terms, summed
    def loss(self, batch: Batch | RegionBatch) -> dict[str, Tensor]: ...


def names() -> list[str]:
    """Every method of this folder, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


def load(name: str) -> ModuleType:
    """The module of one method: a name such as "scan", or the path of a .py file
    anywhere, which may import modules that lie beside it.

    Raises ValueError for an unknown name and for a path without a file.
    """
    if not name.endswith(".py"):
        if name not in names():
            raise ValueError(
                f"no method {name!r}; expected one of {', '.join(names())}"
            )
        return import_module(f"{__name__}.{name}")
    path = Path(name)
    if not path.is_file():
        raise ValueError(f"{path}: no such method file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last: files beside it hide no library
    # loaded anew with it: they may keep a state
    for known, loaded in sys.modules.copy().items():
        is_beside = os.path.dirname(getattr(loaded, "__file__", None) or "") == folder
        if is_beside and "." not in known and known != "__main__":
            del sys.modules[known]
    # none of a library's
    spec = spec_from_file_location(f"{__name__}.of_file.{path.stem}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module
