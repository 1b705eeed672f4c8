"""Made-up data for `check`, and how the promises of a method ended on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from traceback import extract_tb
from types import ModuleType

import torch
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

# of the made-up data; the same in every run
SIZES = Sizes(image=24, text=40, classes=8)
REGIONS, WORDS, SIDE, POOL, PROPOSALS, VECTOR = 64, 7, 64, 5, 6, 300
FITTING, NOISE = 2, 0.3  # proposals that fit; what tells them from the true region
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors
# captions; tokens have <start> and <end>
SHORTEST = {"tokens": 2, "words": 1, "contextual": 1}
PAIRS, FITTED = 8, 64  # of a training; of what is fitted in closed form


@dataclass(frozen=True)
class Promise:
    """Something that the contract asks of a method, and how it ended."""

    what: str
    is_kept: bool | None  # None: it was not tried
    note: str = ""


class BrokenError(Exception):
    """A promise that the method does not keep, in a few words."""


@dataclass
class Trial:
    """A method with the options of one preset, and how its promises ended."""

    module: ModuleType
    options: dict
    row: Preset | None = None
    ended: list[Promise] = field(default_factory=list)

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
        lengths[0], lengths[1:2] = WORDS, SHORTEST[self.takes.text]
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
        """Notes to fill; an error inside is a broken promise, and where the method
        raised it."""
        notes: list[str] = []
        try:
            yield notes
            self.ended.append(Promise(what, True, "; ".join(notes)))
        except (Exception, SystemExit) as error:
            note = " ".join(str(error).split())[:300]
            if not isinstance(error, BrokenError | RefusedError | UserError):
                note = f"{type(error).__name__}: {note}"
                frames = extract_tb(error.__traceback__)
                lines = [f.lineno for f in frames if f.filename == self.module.__file__]
                if lines:
                    note += f" (line {lines[-1]})"
            self.ended.append(Promise(what, False, note))


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
