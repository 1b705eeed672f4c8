"""Scores of models as a stream of tiles: the same bits whatever memory is allowed."""

from itertools import product

import numpy as np
import pytest
import torch
from refusals import refused

from benchmark.core.errors import UserError
from benchmark.data.rank_keys import I2T
from benchmark.scoring import fusion, score_stream
from benchmark.scoring.checkpoints import failure_of
from benchmark.scoring.model_scores import Encoded
from benchmark.scoring.ranking import spans
from benchmark.scoring.score_stream import EqualScores, ScoreStream, first_equal

IMAGES, CAPTIONS = 23, 61


class Counting:
    """A score that knows how often it was computed."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(IMAGES, 5, generator=generator)
        self.captions = torch.randn(CAPTIONS, 5, generator=generator)
        self.pairs = 0
        self.error = 0.0  # of a score, by where it stands

    def similarity(self, images, captions):
        self.pairs += len(images[0]) * len(captions[0])
        scores = images[0] @ captions[0].T
        return scores + self.error * torch.arange(scores.numel()).view_as(scores)

    def encoded(self) -> Encoded:
        rng = np.random.default_rng(0)
        orders = rng.permutation(IMAGES), rng.permutation(CAPTIONS)
        mixed = (
            x[order]
            for x, order in zip((self.images, self.captions), orders, strict=True)
        )
        images, captions = mixed
        first = first_equal(images.numpy()), first_equal(captions.numpy())
        return Encoded(self, (images,), (captions,), *orders, *first)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(score_stream, "STREAM_TILE", (5, 9))


def whole(stream: ScoreStream) -> np.ndarray:
    matrix = np.full((IMAGES, CAPTIONS), np.nan, np.float32)
    for tile in stream:
        matrix[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
    return matrix


@pytest.mark.parametrize("members", [1, 2])
def test_no_bit_hangs_on_whether_scores_are_kept_or_computed_again(
    members, monkeypatch
):
    matrices = []
    for memory, passes in (("512", 1), ("0.001", 3)):
        monkeypatch.setenv(score_stream.MEMORY, memory)
        models = [Counting(seed) for seed in range(members)]
        stream = ScoreStream([model.encoded() for model in models], fusion.mean)
        matrices += [whole(stream), whole(stream), whole(stream)]
        assert [model.pairs for model in models] == [
            passes * IMAGES * CAPTIONS
        ] * members
    assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)
    expected = np.mean(
        [(model.images @ model.captions.T).numpy() for model in models], axis=0
    )
    np.testing.assert_allclose(matrices[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("memory", ["512", "0.001"])
def test_equal_items_tie_wherever_they_stand(memory, monkeypatch):
    monkeypatch.setenv(score_stream.MEMORY, memory)
    model = Counting(0)
    model.images[20] = model.images[3].clone()
    model.captions[[7, 60]] = model.captions[30].clone()
    model.error = 1e-6
    stream = ScoreStream([model.encoded()], fusion.mean)
    for matrix in (whole(stream), whole(stream)):
        assert np.array_equal(matrix[20], matrix[3])
        assert np.array_equal(matrix[:, 7], matrix[:, 30])
        assert np.array_equal(matrix[:, 60], matrix[:, 30])
        assert len(np.unique(matrix)) == (IMAGES - 1) * (CAPTIONS - 2)


@pytest.mark.parametrize("text", ["512MB", "", "-1", "nan"])
def test_a_memory_that_is_no_number_is_no_failure_of_the_method(text, monkeypatch):
    monkeypatch.setenv(score_stream.MEMORY, text)
    with refused("REMATCH_MEMORY", "MB", repr(text)) as caught:
        ScoreStream([Counting(0).encoded()], fusion.mean)
    with pytest.raises(UserError):
        failure_of(caught.value, "results/x")


def test_the_first_pass_is_looked_at_and_timed_and_no_other(monkeypatch):
    monkeypatch.setenv(score_stream.MEMORY, "0")
    members = [Counting(seed).encoded() for seed in range(2)]
    stream, seen = ScoreStream(members, fusion.mean), []
    stream.observers.append(
        lambda member, tile: seen.append((member, tile.of(I2T).size))
    )
    whole(stream)
    spent = [member.seconds["per_pair"] for member in members]
    whole(stream)
    assert sum(size for member, size in seen if member == 0) == IMAGES * CAPTIONS
    assert sum(size for _, size in seen) == 2 * IMAGES * CAPTIONS
    assert [member.seconds["per_pair"] for member in members] == spent and min(
        spent
    ) > 0


# Equal items --------------------------------------------------------------------------


def test_tiles_of_some_pairs_have_the_scores_of_a_whole_pass():
    model, copies = Counting(0), [3, 7, 50]
    model.captions[copies] = model.captions[3].clone()
    model.images[[1, 20]] = model.images[1].clone()
    model.error = 1e-3
    stream = ScoreStream([model.encoded()], fusion.mean, keeps=False)
    expected = whole(stream)
    for image, caption in product(range(IMAGES), copies):
        found = np.full_like(expected, np.nan)
        for tile in stream.holding(np.array([image]), np.array([caption])):
            found[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
        assert found[image, caption] == expected[image, caption]


def test_first_equal_compares_numbers():
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [2.0, 1e-30], [2.0, 0.0]])
    assert first_equal(rows).tolist() == [0, 1, 0, 3, 1]


def test_first_equal_of_rows_of_unequal_lengths():
    words = [np.array([3, 5]), np.array([3]), np.array([3, 5, 0]), np.array([3])]
    assert first_equal(words).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (4, 3), (IMAGES, CAPTIONS)])
@pytest.mark.parametrize(
    "kinds", [(IMAGES, CAPTIONS), (4, CAPTIONS), (IMAGES, 3), (2, 2)]
)
def test_equal_items_have_the_scores_of_the_first_one(size, kinds):
    rng = np.random.default_rng(0)
    image_kind = rng.integers(kinds[0], size=IMAGES)
    caption_kind = rng.integers(kinds[1], size=CAPTIONS)
    first_image, first_caption = first_equal(image_kind), first_equal(caption_kind)
    # all of them unequal
    scores = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    equals = EqualScores(first_image, first_caption, size)
    levelled = np.full_like(scores, np.nan)
    for _ in range(2):  # passes
        for rows, columns in product(spans(IMAGES, size[0]), spans(CAPTIONS, size[1])):
            before = scores[rows, columns].copy()
            levelled[rows, columns] = equals.made_equal(before, rows, columns)
            assert np.array_equal(before, scores[rows, columns])
        for image, caption in product(range(IMAGES), range(CAPTIONS)):
            expected = scores[first_image[image], first_caption[caption]]
            assert levelled[image, caption] == expected
