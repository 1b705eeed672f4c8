"""Batches of phrases and regions for the tests of methods that localise phrases, and
captions of made-up words with vectors of these words.

Helper module, not a test.
"""

import numpy as np
import torch
from torch import Tensor

from benchmark.contracts.methods import Captions, RegionBatch
from benchmark.data.feature_folders import Words
from benchmark.season.parameters import SentenceEncoder

NONE = float("nan")
IOUS = {  # chain -> IoUs with the proposals of its image
    4: [0.9, 0.7, 0.75, 0.1, 0.29, NONE],
    2: [0.2, 0.0, 0.3, 0.8, 0.5, NONE],
    # neither a positive proposal nor a negative one
    9: [0.4, 0.5, 0.6, 0.69, 0.3, 0.35],
    7: [0.7, 0.1, 0.2, NONE, NONE, NONE],
    5: [0.0, 0.0, 0.1, NONE, NONE, NONE],  # no positive one
}
IMAGE = {4: 0, 2: 0, 9: 1, 7: 2, 5: 2}  # chain -> image
ALONE = [4, 9, 4, 2, 7, 9, 5]  # chains of the rows, without sampling
IMAGE_SIZE, TEXT_SIZE = 6, 5
SMALL = SentenceEncoder(centres=2, hidden=3)
VOCABULARY = [f"w{n:02}" for n in range(20)]


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


# Captions of made-up words ------------------------------------------------------------


def words_with_vectors(vocabulary: list[str], size: int = 3) -> Words:
    rows = [
        np.random.default_rng(int(word[1:])).normal(size=size) for word in vocabulary
    ]
    return Words(tuple(vocabulary), np.array(rows, dtype=np.float32))


def captions_of(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(VOCABULARY, rng.integers(2, 8))) for _ in range(count)]


CAPTIONS = captions_of(50)
IS_TRAIN = np.arange(50) < 40
WORDS = words_with_vectors(VOCABULARY)
