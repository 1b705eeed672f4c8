"""Batches of phrases and regions for the tests of methods that localise phrases."""

import torch
from torch import Tensor, nn

from methods import Captions, RegionBatch

NONE = float("nan")
IOUS = {  # chain -> IoUs with the proposals of its image
    4: [0.9, 0.7, 0.75, 0.1, 0.29, NONE],
    2: [0.2, 0.0, 0.3, 0.8, 0.5, NONE],
    9: [0.4, 0.5, 0.6, 0.69, 0.3, 0.35],  # neither a positive proposal nor a negative one
    7: [0.7, 0.1, 0.2, NONE, NONE, NONE],
    5: [0.0, 0.0, 0.1, NONE, NONE, NONE],  # no positive one
}
IMAGE = {4: 0, 2: 0, 9: 1, 7: 2, 5: 2}  # chain -> image
ALONE = [4, 9, 4, 2, 7, 9, 5]  # chains of the rows, without sampling
IMAGE_SIZE, TEXT_SIZE = 6, 5


def batch_of(chains: list[int], seed: int = 1) -> RegionBatch:
    """Random features, in float64, for rows of the chains above."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return RegionBatch(
        regions=numbers(10, IMAGE_SIZE)[chains],
        phrases=captions(numbers(len(chains), TEXT_SIZE)),
        proposals=numbers(3, 6, IMAGE_SIZE),
        image_of_row=torch.tensor([IMAGE[chain] for chain in chains]),
        ious=torch.tensor([IOUS[chain] for chain in chains]),
        chain_ids=torch.tensor(chains),
    )


def ious_of(batch: RegionBatch) -> list[list[float]]:
    """As written above, not as float32 has them: 0.7 is 0.7."""
    return [IOUS[chain] for chain in batch.chain_ids.tolist()]


def captions(vectors: Tensor) -> Captions:
    return Captions(values=vectors, lengths=torch.ones(len(vectors), dtype=torch.int64))


CONCEPTS, PICTURES, PROPOSALS = 8, 20, 10
LOOKS_SIZE, WORDS_SIZE = 12, 10


def drawn_pictures(seed: int, siblings: int = 1) -> RegionBatch:
    """Pictures of three concepts: two proposals near to each, and four of nothing. A phrase is a
    noisy vector of its concept, as a region is, in a space of its own."""
    world, generator = (torch.Generator().manual_seed(number) for number in (0, seed))
    looks = torch.randn(CONCEPTS, LOOKS_SIZE, generator=world)
    words = torch.randn(CONCEPTS, WORDS_SIZE, generator=world)
    shown = torch.rand(PICTURES, CONCEPTS, generator=generator).argsort(1)[:, :3]
    proposals = torch.randn(PICTURES, PROPOSALS, LOOKS_SIZE, generator=generator)
    proposals[:, :6] = looks[shown.repeat_interleave(2, 1)] + 0.3 * proposals[:, :6]
    chains = torch.arange(3 * PICTURES).repeat_interleave(siblings)
    concepts = shown.flatten()[chains]
    near = torch.arange(PROPOSALS) // 2 == (chains % 3)[:, None]
    noise = torch.randn(len(chains), WORDS_SIZE, generator=generator)
    return RegionBatch(
        regions=looks[concepts],
        phrases=captions(words[concepts] + 0.3 * noise),
        proposals=proposals,
        image_of_row=chains // 3,
        ious=torch.where(near, 0.8, 0.1),
        chain_ids=chains,
    )


@torch.no_grad()
def found_in_new_pictures(model: nn.Module) -> float:
    """Share of the phrases whose best proposal of their picture is a right one; 0.2 by chance."""
    batch = drawn_pictures(seed=1000)
    rows = torch.arange(len(batch.chain_ids))
    regions = model.eval().encode_images(batch.proposals.flatten(0, 1))
    scores = model.similarity(regions, model.encode_captions(batch.phrases)).T
    own = scores.unflatten(1, (PICTURES, PROPOSALS))[rows, batch.image_of_row]
    return float((batch.ious[rows, own.argmax(1)] >= 0.5).float().mean())
