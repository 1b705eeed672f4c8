"""Trials of a method for `check`: made-up data that it is given, which of its promises
it keeps on them, and whether it learns to score a few made-up pairs highest.

B = pairs, N = proposals that do not fit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from traceback import extract_tb
from types import ModuleType

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Inputs,
    Phase,
    RegionBatch,
    Sizes,
)
from benchmark.core.errors import UserError
from benchmark.features import drawn_cnn
from benchmark.scoring.ranking import RefusedError
from benchmark.season.plugins import Preset, configured, inputs_of
from benchmark.train.resumable_loop import seed_all

# the made-up data, the same in every run
SIZES = Sizes(image=24, text=40, classes=8)
REGIONS = 64  # of an image
SIDE = 64  # of an image, in pixels
WORDS = 7  # of the longest caption
VECTOR = 300  # size of a word vector
POOL = 5  # captions
PROPOSALS = 6  # of an image
FITTING = 2  # proposals of an image that fit a phrase
NOISE = 0.3  # by which their features differ from those of the true region
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors
# words of the shortest caption; tokens include <start> and <end>
SHORTEST = {"tokens": 2, "words": 1, "contextual": 1}
PAIRS = 8  # of a training
FITTED = 64  # pairs for a fit in closed form
# the training
RATES = 0.005, 0.0005  # of Adam; the second if nothing is learned with the first
STEPS = 240  # of a phase at most
LOOK_EVERY = 20  # steps between two looks at the scores
LOWER = 0.7  # share of its first value to which the loss must fall, or
SMALL = 1e-3  # to this value
LEAD = 0.25  # of true pairs over every other pairing, in standard deviations of scores
REGION_LEAD = 1.0  # of true regions over proposals that do not fit
FITS = 0.5  # intersection over union of a proposal that may be as good as the truth
SHOWN = 3  # wrong pairs that a message names


@dataclass(frozen=True)
class Promise:
    """Something that the contract asks of a method, and whether the method does it."""

    what: str
    is_kept: bool | None  # None: it was not tried
    note: str = ""


class BrokenError(Exception):
    """A promise that the method does not keep, in a few words."""


@dataclass
class Trial:
    """A method with the options of one preset, and the promises that were tried."""

    module: ModuleType
    options: dict
    row: Preset | None = None
    promises: list[Promise] = field(default_factory=list)

    @cached_property
    def config(self) -> object:
        return configured(self.module, self.options, "preset")

    @cached_property
    def takes(self) -> Inputs:
        return inputs_of(self.module, self.options, "preset")

    def built(self) -> nn.Module:
        parts = {}
        if self.takes.word_vectors:
            parts["word_vectors"] = _random(3, SIZES.text, VECTOR)
        if self.takes.image == "pixels":
            parts["image_network"] = drawn_cnn.Network(SIZES.image // 2)
        return self.module.Model(self.config, SIZES, **parts)

    def model(self, seed: int = 0) -> nn.Module:
        seed_all(seed)
        model = self.built()
        if self.takes.fit:
            model.fit([(self.images(FITTED), self.captions(FITTED))])
        return model

    def images(self, count: int) -> Tensor:
        """(I, F), (I, R, F) or (I, 3, S, S); regions of localisation are (I, F)."""
        if self.takes.image == "pixels":
            generator = torch.Generator().manual_seed(1)
            pixels = torch.rand(count, 3, 1, 1, generator=generator)
            return (255 * pixels).to(torch.uint8).repeat(1, 1, SIDE, SIDE)
        if self.takes.image == "regions":
            return _random(1, count, REGIONS, SIZES.image)
        return _random(1, count, SIZES.image)

    def captions(self, count: int) -> Captions:
        """Vectors (C, F), or word ids (C, W) or vectors (C, W, F). The first caption is
        the longest that is made up, the second the shortest that data can have."""
        if self.takes.text in VECTORS:
            values = _random(2, count, SIZES.text)
            return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
        generator = torch.Generator().manual_seed(2)
        lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
        lengths[0] = WORDS
        lengths[1:2] = SHORTEST[self.takes.text]  # if there is a second caption
        is_word = torch.arange(WORDS) < lengths[:, None]
        if self.takes.text == "contextual":
            values = _random(2, count, WORDS, SIZES.text) * is_word[:, :, None]
            return Captions(values=values, lengths=lengths)
        values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
        return Captions(values=values * is_word, lengths=lengths)

    def batch(self, groups: list[int], phases: list[Phase]) -> Batch | RegionBatch:
        """Rows of these groups, each a class, with a pool where a phase asks for one.
        Of regions, every chain is in an image of its own, with two proposals that fit,
        as like its true region as overlapping boxes are; the last image lacks its last
        proposal."""
        ids = torch.tensor(groups)
        if self.takes.task == "retrieval":
            pool = {}
            if any(phase.pool for phase in phases):
                pool = {"pool": self.captions(POOL), "pool_ids": torch.arange(POOL)}
            return Batch(
                images=self.images(int(ids.max()) + 1)[ids],
                captions=self.captions(len(ids)),
                group_ids=ids,
                class_ids=ids % SIZES.classes,
                **pool,
            )
        chain = max((phase.captions_per_image for phase in phases), default=1)
        ids = ids.repeat_interleave(chain)
        count = int(ids.max()) + 1
        fits = torch.arange(PROPOSALS) < FITTING
        ious = torch.where(fits, 0.8, 0.1).repeat(len(ids), 1)
        ious[ids == count - 1, -1] = torch.nan
        proposals = _random(4, count, PROPOSALS, SIZES.image)
        noise = NOISE * proposals[:, :FITTING]
        proposals[:, :FITTING] = self.images(count)[:, None] + noise
        proposals[-1, -1] = 0.0
        phrases = self.captions(count)
        return RegionBatch(
            regions=self.images(count)[ids],
            phrases=Captions(values=phrases.values[ids], lengths=phrases.lengths[ids]),
            proposals=proposals,
            image_of_row=ids,
            ious=ious,
            chain_ids=ids,
        )

    def with_other(self, batch: Batch | RegionBatch, side: str) -> Batch | RegionBatch:
        """The batch with other images, or other captions, of the same shapes."""
        if side == "images" and isinstance(batch, Batch):
            return replace(batch, images=_other(batch.images))
        if side == "images":
            regions = _other(batch.regions)
            proposals = _other(batch.proposals)
            return replace(batch, regions=regions, proposals=proposals)
        name = "captions" if isinstance(batch, Batch) else "phrases"
        captions = getattr(batch, name)
        others = replace(captions, values=_other(captions.values))
        return replace(batch, **{name: others})

    @contextmanager
    def promise(self, what: str) -> Iterator[list[str]]:
        """Record whether a promise is kept: it is broken if the body raises an error.

        The body may add notes to the list. A note on an error that the method raised
        names the line.
        """
        notes: list[str] = []
        try:
            yield notes
            self.promises.append(Promise(what, True, "; ".join(notes)))
        except (Exception, SystemExit) as error:
            note = " ".join(str(error).split())[:300]
            if not isinstance(error, BrokenError | RefusedError | UserError):
                note = f"{type(error).__name__}: {note}"
                frames = extract_tb(error.__traceback__)
                lines = [f.lineno for f in frames if f.filename == self.module.__file__]
                if lines:
                    note += f" (line {lines[-1]})"
            self.promises.append(Promise(what, False, note))


def _other(values: Tensor) -> Tensor:
    """Vectors with their numbers in reverse, the next word for each, or the negative of
    pixels."""
    if values.is_floating_point():
        return values.flip(-1)
    if values.dtype == torch.uint8:
        return 255 - values
    return torch.where(values > 0, values % (SIZES.text - 1) + 1, 0)


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# What a method learns -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Mean scores of the true pairs, and of the best pairing without a true pair."""

    true: float
    other: float
    spread: float  # standard deviation of all scores
    lead: float  # how many of these the true pairs must score higher
    # the caption of each image in the best other pairing; empty for regions
    partners: tuple[int, ...] = ()

    @property
    def is_learned(self) -> bool:
        """Whether the true pairs lead; False if a score is not finite."""
        return self.true - self.other > self.lead * self.spread

    @property
    def mistake(self) -> str:
        """What is wrong if the true pairs do not lead."""
        if not self.partners:
            return (
                f"true regions score {self.true:.3g} on average, proposals that do not "
                f"fit {self.other:.3g}: is a target of the loss wrong?"
            )
        pairs = []
        for image, caption in enumerate(self.partners[:SHOWN]):
            pairs.append(f"image {image + 1} with caption {caption + 1}")
        return (
            f"true pairs score {self.true:.3g} on average, others up to "
            f"{self.other:.3g}, as {', '.join(pairs)}: is a target of the loss, its "
            f"sign or that of the score wrong?"
        )


class Training:
    """A training on one batch of made-up pairs."""

    def __init__(
        self, trial: Trial, phases: list[Phase], rate: float = RATES[0]
    ) -> None:
        self.trial = trial
        self.model = trial.model(seed=5).train()
        self.batch = trial.batch(list(range(PAIRS)), phases)
        self.trained = [x for x in self.model.parameters() if x.requires_grad]
        self.start = [x.detach().clone() for x in self.trained]
        self.optimiser = torch.optim.Adam(self.trained, lr=rate)
        self.losses: list[float] = []  # of the steps of the present phase
        self.has_fallen = False  # whether the loss of a phase fell as far as it must
        self.note = ""  # how far it fell

    def step(self, phase: Phase) -> None:
        """One step with the terms that the phase counts."""
        terms = self.model.loss(self.batch)
        loss = sum(terms[name] for name in phase.terms or terms)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.losses.append(float(loss.detach()))
        if len(self.losses) > 1 and not self.has_fallen:
            first = self.losses[0]
            last = self.losses[-1]
            if first < 0:
                self.has_fallen = last < first
            else:
                self.has_fallen = last <= max(LOWER * first, SMALL)
            steps = f"{len(self.losses)} steps of Adam"
            self.note = f"from {first:.3g} to {last:.3g} in {steps}"

    def pairing(self) -> Pairing:
        """How the model scores the pairs of the batch now."""
        self.model.eval()
        pairing = pairing_of(self.trial, self.model)
        self.model.train()
        return pairing

    def moved(self) -> set[str]:
        """Names of the parameters that are no longer as they began."""
        name_of = {x: name for name, x in self.model.named_parameters()}
        moved = set()
        for parameter, start in zip(self.trained, self.start, strict=True):
            if not parameter.equal(start):
                moved.add(name_of[parameter])
        return moved


def learned(trial: Trial, phases: list[Phase]) -> tuple[Training, Pairing]:
    """A training that ends as soon as the loss has fallen and the true pairs lead. If
    that happens with no rate, the whole training with the last one."""
    for rate in RATES:
        training = Training(trial, phases, rate)
        for phase in phases:
            training.losses = []
            while len(training.losses) < STEPS:
                for _ in range(LOOK_EVERY):
                    training.step(phase)
                pairing = training.pairing()
                if training.has_fallen and pairing.is_learned:
                    return training, pairing
    return training, pairing


@torch.no_grad()
def pairing_of(trial: Trial, model: nn.Module) -> Pairing:
    """How a model in evaluation mode scores the pairs that it was trained on or fitted
    to."""
    if trial.takes.task == "localisation" and not trial.takes.fit:
        return _pairing_of_regions(trial, model)
    count = FITTED if trial.takes.fit else PAIRS
    images = model.encode_images(trial.images(count)[:PAIRS])
    first_captions = _rows(trial.captions(count), slice(PAIRS))
    captions = model.encode_captions(first_captions)
    scores_BB = model.similarity(images, captions).double().cpu()
    if not scores_BB.isfinite().all():
        return Pairing(true=np.nan, other=np.nan, spread=np.nan, lead=LEAD)
    others_BB = scores_BB.clone().fill_diagonal_(-torch.inf)
    rows_B, partners_B = linear_sum_assignment(others_BB.numpy(), maximize=True)
    return Pairing(
        true=float(scores_BB.diagonal().mean()),
        other=float(scores_BB[rows_B, partners_B].mean()),
        spread=float(scores_BB.std()),
        lead=LEAD,
        partners=tuple(partners_B.tolist()),
    )


def _pairing_of_regions(trial: Trial, model: nn.Module) -> Pairing:
    """Each phrase with its true region, and with proposals of its image that do not
    fit."""
    batch = trial.batch(list(range(PAIRS)), [])
    true = []
    others = []
    for row, image in enumerate(batch.image_of_row.tolist()):
        this_row = slice(row, row + 1)
        elsewhere = batch.proposals[image][batch.ious[row] < FITS]
        regions = torch.cat([batch.regions[this_row], elsewhere])
        phrase = model.encode_captions(_rows(batch.phrases, this_row))
        encoded = model.encode_images(regions)
        scores = model.similarity(encoded, phrase).double()[:, 0]
        true.append(scores[:1])
        others.append(scores[1:])
    true_B = torch.cat(true)
    others_N = torch.cat(others)
    return Pairing(
        true=float(true_B.mean()),
        other=float(others_N.mean()),
        spread=float(torch.cat([true_B, others_N]).std()),
        lead=REGION_LEAD,
    )


def _rows(captions: Captions, rows: slice) -> Captions:
    values = captions.values[rows]
    lengths = captions.lengths[rows]
    return replace(captions, values=values, lengths=lengths)


def side_names(
    model: nn.Module, images: Tensor, captions: Captions
) -> dict[str, set[str]]:
    """Names of the trained parameters that encodings of images alone follow from, and
    those that encodings of captions do. Empty where encodings carry no gradient."""
    of_images = _parameters_behind(model, model.encode_images(images))
    of_captions = _parameters_behind(model, model.encode_captions(captions))
    return {"images": of_images - of_captions, "captions": of_captions - of_images}


def _parameters_behind(model: nn.Module, encoding: tuple[Tensor, ...]) -> set[str]:
    trained = {name: x for name, x in model.named_parameters() if x.requires_grad}
    ends = [x.float().sum() for x in encoding if x.requires_grad]
    if not ends or not trained:
        return set()
    parameters = list(trained.values())
    gradients = torch.autograd.grad(sum(ends), parameters, allow_unused=True)
    behind = set()
    for name, gradient in zip(trained, gradients, strict=True):
        if gradient is not None:
            behind.add(name)
    return behind
