"""A score must follow from its image and its text alone, in a split of any size."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from benchmark.contracts.methods import Captions
from benchmark.scoring import RefusedError, model_scores, score_checks
from benchmark.scoring.inputs import SplitInputs
from benchmark.scoring.ranking import Tile
from benchmark.scoring.score_checks import Groups

# Images and captions. The fourth has one pair less than three groups of the common
# size.
SIZES = [(2, 2), (6, 11), (40, 110), (100, 2499), (700, 700)]
SIZE = 8


class Product:
    def encode_images(self, images):
        return (images,)

    def encode_captions(self, captions):
        return (captions.values,)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T


class MeanOfCaptions(Product):
    """As if centred: of all captions that were encoded so far."""

    def __init__(self):
        self.seen = []

    def encode_captions(self, captions):
        self.seen.append(captions.values)
        return super().encode_captions(captions)

    def similarity(self, images, captions):
        return images[0] @ (captions[0] - torch.cat(self.seen).mean(0)).T


class BankOfImages(Product):
    # a caption's score is less its mean with all images encoded so far
    def __init__(self):
        self.seen = []

    def encode_images(self, images):
        self.seen.append(images)
        return super().encode_images(images)

    def similarity(self, images, captions):
        scores = images[0] @ captions[0].T
        return scores - (torch.cat(self.seen) @ captions[0].T).mean(0)


def split_of(images: int, captions: int) -> SplitInputs:
    rng = torch.Generator().manual_seed(0)
    return SplitInputs(
        images=torch.randn(images, SIZE, generator=rng),
        captions=Captions(
            values=torch.randn(captions, SIZE, generator=rng),
            lengths=torch.ones(captions, dtype=torch.int64),
        ),
        image_of_caption=torch.arange(captions) % images,
        group_of_image=torch.arange(images),
        device=torch.device("cpu"),
    )


def check_again(model: type[Product], images: int, captions: int) -> None:
    inputs = split_of(images, captions)
    split = model_scores.encoded(model(), inputs)
    (scores,) = split.scores(slice(None), slice(None))
    first = Groups(images, captions)
    first.add(Tile(split.image_order, split.caption_order, {}), scores)
    score_checks.check_retrieval(model(), inputs, "", first)


@pytest.mark.parametrize("size", SIZES)
def test_no_group_is_the_whole_split_and_every_item_is_scored_again(size):
    groups = Groups(*size)
    for kind, count in zip((groups.images, groups.captions), size, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate(kind)), np.arange(count))
        assert all(0 < len(part) < count for part in kind)


@pytest.mark.parametrize("size", SIZES)
def test_what_follows_from_the_pair_alone_passes(size):
    check_again(Product, *size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", [MeanOfCaptions, BankOfImages])
def test_what_follows_from_other_items_of_the_split_is_refused(model, size):
    with pytest.raises(RefusedError, match="scores differ"):
        check_again(model, *size)


@pytest.mark.parametrize(
    ("size", "wrong"), [((1, 9), MeanOfCaptions), ((9, 1), BankOfImages)]
)
def test_one_image_or_caption_alone_is_scored_with_part_of_the_others(size, wrong):
    check_again(Product, *size)
    with pytest.raises(RefusedError, match="scores differ"):
        check_again(wrong, *size)


class LaterSentences(Product):
    # as if the last bits of a product hung on the place of a row

    def caption_similarity(self, captions, others):
        return captions[0] @ others[0].T + torch.arange(len(others[0]))


def test_equal_captions_have_one_score_with_every_sentence():
    inputs = split_of(6, 11)
    inputs.captions.values[7] = inputs.captions.values[2]
    ((_, scores),) = model_scores.sentence_scores(LaterSentences(), inputs)
    assert scores[:, 7].equal(scores[:, 2]) and not scores[:, 7].equal(scores[:, 3])


@pytest.mark.parametrize(("gap", "is_refused"), [(0.12, False), (0.13, True)])
def test_scores_of_a_coarse_step_may_differ_by_a_quarter_of_their_spread(
    gap, is_refused
):
    """Of 0.5, beside ten millions: a step of single precision is 1."""
    first = 1e7 + torch.arange(2).double().repeat(50)
    refusal = pytest.raises(RefusedError) if is_refused else nullcontext()
    with refusal:
        score_checks._compare(first, first + gap, torch.device("cpu"))


def test_one_pair_alone_is_scored_again():
    check_again(Product, 1, 1)
