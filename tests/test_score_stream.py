"""Scores of models as a stream of tiles: the same bits whatever memory is allowed."""

import numpy as np
import pytest
import torch
from refusals import refused

from benchmark.core.errors import UserError
from benchmark.data.rank_keys import I2T
from benchmark.scoring import fusion, score_stream
from benchmark.scoring.checkpoints import outcome
from benchmark.scoring.equal_items import first_equal
from benchmark.scoring.model_scores import Encoded
from benchmark.scoring.score_stream import ScoreStream

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
        outcome(caught.value, "results/x")


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
