"""Small made-up data of every kind that a method can be fed, for trying a method.

I = images, C = captions, F = size of an image feature, W = words.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from methods import Batch, Captions, Inputs, Phase, RegionBatch, Sizes

SIZES = Sizes(image=24, text=40, classes=8)
REGIONS, WORDS, SIDE, POOL, PROPOSALS, VECTOR = 36, 7, 64, 5, 6, 300
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors


class SmallNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, SIZES.image, 3, 4)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        features = self.convolution(pixels - 0.5).relu()
        return features.mean((2, 3)), features


@dataclass(frozen=True)
class MadeUp:
    """Data for a method that takes this; the same in every run."""

    takes: Inputs

    def parts(self) -> dict[str, object]:
        """The keywords that the Model gets beside its config and sizes."""
        parts: dict[str, object] = {}
        if self.takes.word_vectors:
            parts["word_vectors"] = self._random(3, SIZES.text, VECTOR)
        if self.takes.image == "pixels":
            parts["image_network"] = SmallNetwork()
        return parts

    def images(self, count: int) -> Tensor:
        """(I, F), (I, R, F) or (I, 3, S, S); regions of localisation are (I, F)."""
        if self.takes.image == "pixels":
            pixels = torch.rand(count, 3, 1, 1, generator=torch.Generator().manual_seed(1))
            return (255 * pixels).to(torch.uint8).repeat(1, 1, SIDE, SIDE)
        shape = (REGIONS, SIZES.image) if self.takes.image == "regions" else (SIZES.image,)
        return self._random(1, count, *shape)

    def captions(self, count: int) -> Captions:
        if self.takes.text in VECTORS:
            values = self._random(2, count, SIZES.text)
            return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
        generator = torch.Generator().manual_seed(2)
        lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
        lengths[0] = WORDS
        values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
        return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)

    def batch(self, groups: list[int], phases: list[Phase]) -> Batch | RegionBatch:
        """Rows of these groups, each a class, with a pool where a phase asks for one."""
        if self.takes.task == "localisation":
            return self._regions(groups, max((p.captions_per_image for p in phases), default=1))
        ids = torch.tensor(groups)
        pool = {"pool": self.captions(POOL), "pool_ids": torch.arange(POOL)}
        return Batch(
            images=self.images(int(ids.max()) + 1)[ids],
            captions=self.captions(len(ids)),
            group_ids=ids,
            class_ids=ids % SIZES.classes,
            **(pool if any(phase.pool for phase in phases) else {}),
        )

    def batch_of(self, phase: Phase) -> Batch | RegionBatch:
        """As many rows as a phase draws, each drawn one of a group of its own."""
        drawn = torch.arange(phase.batch_size)
        if self.takes.task == "retrieval":
            drawn = drawn.repeat_interleave(phase.captions_per_image)
        return self.batch(drawn.tolist(), [phase])

    def _regions(self, chains: list[int], siblings: int) -> RegionBatch:
        """Every chain in a picture of its own, with two proposals that fit; the last picture lacks
        its last proposal."""
        ids = torch.tensor(chains).repeat_interleave(siblings)
        pictures = int(ids.max()) + 1
        ious = torch.where(torch.arange(PROPOSALS) < 2, 0.8, 0.1).repeat(len(ids), 1)
        ious[ids == pictures - 1, -1] = torch.nan
        proposals = self._random(4, pictures, PROPOSALS, SIZES.image)
        proposals[-1, -1] = 0.0
        phrases = self.captions(pictures)
        return RegionBatch(
            regions=self.images(pictures)[ids],
            phrases=Captions(values=phrases.values[ids], lengths=phrases.lengths[ids]),
            proposals=proposals,
            image_of_row=ids,
            ious=ious,
            chain_ids=ids,
        )

    def _random(self, seed: int, *shape: int) -> Tensor:
        return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
