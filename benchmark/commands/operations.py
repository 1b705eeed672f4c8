"""How many operations a training step of a method takes, and a network for a picture.

Counted are those of matrix products and convolutions, as torch counts them, forward and backward.
They need shapes alone, so that they are counted on torch's meta device, where nothing is
calculated. A loss that looks at values cannot run there: it gets random numbers in small batches of
short captions, from which it is known what a row, a pair of rows, and a word of either cost.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmark import encoders
from benchmark.season.method_options import method_of
from benchmark.train.loop import optimiser_of
from methods import Batch, Captions, Inputs, Phase, RegionBatch, Sizes

WORDS = 20  # assumed: of the longest caption of a batch
FITTING = 3  # assumed: proposals that fit a phrase well; the others hardly do
SCHEDULE = ("epochs", "decay_after", "decay_every")  # options that change no step
DRAWN_SIZE = 384  # of pooled features of the one network whose size is not that of its weights


class UnknownError(ValueError):
    """Something cannot be estimated. One line: why."""


@dataclass(frozen=True)
class Seen:
    """What a network makes of a picture, and the operations that it takes."""

    pooled: int  # F
    map: int  # F'
    operations: int


@dataclass(frozen=True)
class Fed:
    """What a model needs to know beyond its `Sizes`, and the shape of what it is fed."""

    image: tuple[int, ...]  # of one image, or of the proposals of one
    word_size: int  # of given word vectors
    network: tuple[str, str] | None  # module and name, for training from pixels


@dataclass(frozen=True)
class Counted:
    """A model: its parameters, and the operations of one training step of each phase."""

    parameters: int
    steps: tuple[float, ...]


@cache
def seen(module: str, network: str, side: int) -> Seen:
    """Of one picture of side x side pixels. Raises UnknownError for a network without structure."""
    try:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            pooled, found = _structure(module, network).eval()(torch.empty(1, 3, side, side))
    except (AttributeError, KeyError) as error:
        raise UnknownError(f"{network}: the size of its features is not known") from error
    return Seen(pooled.shape[1], found.shape[1], counter.get_total_flops())


@cache
def counted(method_name: str, config: object, sizes: Sizes, fed: Fed) -> Counted:
    """One step of every phase. Methods are anyone's code: whatever one raises becomes an
    UnknownError."""
    method = method_of(method_name)
    task = _Task(method, config, method.inputs(config), sizes, fed)
    try:
        with torch.device("meta"):
            model = task.model()
        steps = tuple(_shared(task, model, phase) for phase in method.recipe(config))
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise UnknownError(f"{type(error).__name__}: {reason}") from error
    return Counted(sum(value.numel() for value in model.parameters()), steps)


COUNTS: dict[tuple, float] = {}  # steps that were counted before


def _shared(task: "_Task", model: nn.Module, phase: Phase) -> float:
    """Steps that differ in nothing but their schedule and their coefficients are counted once."""
    same = {
        name: bool(value) if isinstance(value, float) else value
        for name, value in vars(task.config).items()
        if name not in SCHEDULE
    }
    shapes = [(name, tuple(value.shape)) for name, value in model.named_parameters()]
    phase_of = (phase.batch_size, phase.captions_per_image, phase.pool, phase.terms, phase.rates)
    key = (task.method.__name__, *same.items(), *shapes, task.fed, phase_of)
    if key not in COUNTS:
        COUNTS[key] = _step(task, model, phase)
    return COUNTS[key]


def _structure(module: str, network: str) -> nn.Module:
    size = DRAWN_SIZE if network == encoders.DRAWN else 1
    return encoders.load(module).structure(network, size)


def _step(task: "_Task", on_meta: nn.Module, phase: Phase) -> float:
    try:
        with torch.device("meta"):
            batch = task.batch(phase.batch_size, phase)
        return _operations(on_meta, phase, batch)
    except (RuntimeError, NotImplementedError):  # the loss looks at values
        pass
    fit = _fit(task.takes, phase)
    with torch.random.fork_rng(devices=[]), _one_thread():
        model = task.model()
        found = [_operations(model, phase, task.batch(n, phase, words)) for n, words in fit.points]
    costs = np.linalg.solve([fit.terms(n, words) for n, words in fit.points], found)
    return float(np.dot(fit.terms(phase.batch_size, WORDS), costs))


class _Fit(NamedTuple):
    """Batches that are counted, rows and words a caption, and the terms that add up."""

    points: list[tuple[int, int]]
    terms: Callable[[int, int], list[int]]


def _fit(takes: Inputs, phase: Phase) -> _Fit:
    if phase.pool:  # it costs the same whatever the rows
        return _Fit([(2, WORDS), (4, WORDS), (6, WORDS)], lambda n, w: [1, n, n * n])
    if takes.text in ("tokens", "words"):
        points = [(2, 2), (2, 4), (4, 2), (4, 4)]
        return _Fit(points, lambda n, w: [n, n * w, n * n, n * n * w])
    return _Fit([(2, 1), (4, 1)], lambda n, w: [n, n * n])


@contextmanager
def _one_thread() -> Iterator[None]:
    """So little work that threads, where others use the cores, wait longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _operations(model: nn.Module, phase: Phase, batch: Batch | RegionBatch) -> int:
    optimiser_of(model, phase)  # freezes what the phase freezes
    with FlopCounterMode(display=False) as counter:
        terms = model.train().loss(batch)
        sum(terms[name] for name in phase.terms or terms).backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


@dataclass(frozen=True)
class _Task:
    """A method with its options, and what it is to be fed: on whichever device is the default."""

    method: ModuleType
    config: object
    takes: Inputs
    sizes: Sizes
    fed: Fed

    def model(self) -> nn.Module:
        parts = {}
        if self.takes.word_vectors:
            parts["word_vectors"] = torch.zeros(self.sizes.text, self.fed.word_size)
        if self.takes.image == "pixels":
            parts["image_network"] = _structure(*self.fed.network)
        return self.method.Model(self.config, self.sizes, **parts)

    def batch(self, drawn: int, phase: Phase, words: int = WORDS) -> Batch | RegionBatch:
        """`drawn` rows of different images, each with the siblings it brings."""
        owners = torch.arange(drawn).repeat_interleave(phase.captions_per_image)
        if self.takes.image == "proposals":
            return self._regions(drawn, owners)
        return Batch(
            images=self._images(len(owners)),
            captions=self._captions(len(owners), words),
            group_ids=owners,
            class_ids=owners % max(self.sizes.classes, 1),
            pool=self._captions(phase.pool, words) if phase.pool else None,
            pool_ids=torch.arange(phase.pool) + drawn if phase.pool else None,
        )

    def _regions(self, drawn: int, owners: torch.Tensor) -> RegionBatch:
        return RegionBatch(
            regions=torch.randn(len(owners), self.sizes.image),
            phrases=self._captions(len(owners), 1),
            proposals=torch.randn(drawn, *self.fed.image),
            image_of_row=owners,
            overlaps=torch.where(torch.arange(self.fed.image[0]) < FITTING, 0.8, 0.1).repeat(
                len(owners), 1
            ),
            chain_ids=owners,
        )

    def _images(self, rows: int) -> torch.Tensor:
        if self.takes.image == "pixels":
            return torch.zeros(rows, *self.fed.image, dtype=torch.uint8)
        return torch.randn(rows, *self.fed.image)

    def _captions(self, rows: int, words: int) -> Captions:
        if self.takes.text in ("tokens", "words"):
            values = torch.randint(4, self.sizes.text, (rows, words))
            return Captions(values=values, lengths=torch.full((rows,), words))
        values = torch.randn(rows, self.sizes.text)
        return Captions(values=values, lengths=torch.ones(rows, dtype=torch.int64))
