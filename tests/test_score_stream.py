"""Scores of models as a stream of tiles: the same bits whatever memory is allowed."""

import resource
from errno import ENOSPC
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.core.errors import UserError
from benchmark.matching import kept_scores, score_stream
from benchmark.matching.score_stream import ScoreStream
from benchmark.matching.scoring import Encoded
from benchmark.protocol import fusion

IMAGES, CAPTIONS = 23, 61
APPEND = kept_scores.ScoresOnDisk.append


class Counting:
    """A score that knows how often it was computed."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(IMAGES, 5, generator=generator)
        self.captions = torch.randn(CAPTIONS, 5, generator=generator)
        self.pairs = 0

    def similarity(self, images, captions):
        self.pairs += len(images[0]) * len(captions[0])
        return images[0] @ captions[0].T

    def encoded(self) -> Encoded:
        rng = np.random.default_rng(0)
        orders = rng.permutation(IMAGES), rng.permutation(CAPTIONS)
        mixed = (x[order] for x, order in zip((self.images, self.captions), orders, strict=True))
        return Encoded(self, *((x,) for x in mixed), *orders)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(score_stream, "IMAGE_TILE", 5)
    monkeypatch.setattr(score_stream, "CAPTION_TILE", 9)


def whole(stream: ScoreStream) -> np.ndarray:
    matrix = np.full((IMAGES, CAPTIONS), np.nan, np.float32)
    for tile in stream:
        matrix[np.ix_(tile.rows, tile.columns)] = tile.of("i2t")
    return matrix


def full_disk(monkeypatch, tiles: int) -> None:
    """A disk with room for so many tiles."""

    def appended(self, parts):
        if len(self) == tiles:
            raise OSError(ENOSPC, "no space left on the device")
        APPEND(self, parts)

    monkeypatch.setattr(kept_scores.ScoresOnDisk, "append", appended)


@pytest.mark.parametrize("members", [1, 2])
def test_no_bit_hangs_on_where_scores_are_kept(members, monkeypatch):
    matrices = []
    for memory, tiles, passes in ((512, 0, 1), (0, 35, 1), (1e-3, 35, 1), (0, 0, 3)):
        full_disk(monkeypatch, tiles)
        models = [Counting(seed) for seed in range(members)]
        stream = ScoreStream([model.encoded() for model in models], fusion.mean, memory)
        matrices += [whole(stream), whole(stream), whole(stream)]
        assert [model.pairs for model in models] == [passes * IMAGES * CAPTIONS] * members
    assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)
    expected = np.mean([(model.images @ model.captions.T).numpy() for model in models], axis=0)
    np.testing.assert_allclose(matrices[0], expected, rtol=1e-5, atol=1e-6)


def test_what_a_full_disk_does_not_hold_is_computed_again(monkeypatch):
    model = Counting(0)
    full_disk(monkeypatch, tiles=3)
    stream = ScoreStream([model.encoded()], fusion.mean, memory=0)
    first, again = whole(stream), whole(stream)
    assert np.array_equal(first, again)
    assert model.pairs == 2 * IMAGES * CAPTIONS - 3 * 5 * 9
    monkeypatch.setattr(score_stream.disk_space, "free_below", lambda path: 4 * IMAGES)
    assert not ScoreStream([model.encoded()], fusion.mean, memory=0).keeps


def test_a_tile_that_does_not_fit_is_not_in_the_list():
    """Of a file that may not grow any further, as on a full disk."""
    kept = kept_scores.ScoresOnDisk()
    tile = np.ones((8, 16), np.float32)
    kept.append([tile])
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (tile.nbytes + 100, limit[1]))
    try:
        with pytest.raises(OSError):
            kept.append([2 * tile])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert len(kept) == 1
    kept.append([3 * tile])
    assert [kept[place][0][0, 0] for place in (0, 1)] == [1, 3]


def test_scores_on_the_disk_leave_nothing_there():
    stream = ScoreStream([Counting(0).encoded()], fusion.mean, memory=0)
    whole(stream)
    assert stream.kept.file.tell() == 4 * IMAGES * CAPTIONS
    assert not list(Path(".scratch").iterdir())


def test_memory_is_a_setting_of_the_machine(monkeypatch):
    members = [Counting(0).encoded()]
    assert isinstance(ScoreStream(members, fusion.mean).kept, list)
    monkeypatch.setenv(score_stream.MEMORY, "0")
    assert not isinstance(ScoreStream(members, fusion.mean).kept, list)
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv(score_stream.MEMORY, wrong)
        with pytest.raises(UserError) as error:
            ScoreStream(members, fusion.mean)
        assert error.value.where == score_stream.MEMORY


def test_lookers_see_the_scores_of_each_model_once():
    stream = ScoreStream([Counting(seed).encoded() for seed in range(2)], fusion.mean, memory=0)
    seen = []
    stream.lookers.append(lambda member, tile: seen.append((member, tile.of("i2t").size)))
    stream.survey()
    whole(stream)
    assert sum(size for member, size in seen if member == 0) == IMAGES * CAPTIONS
    assert sum(size for _, size in seen) == 2 * IMAGES * CAPTIONS


def test_what_scores_cost_is_counted_once():
    (member,) = members = [Counting(0).encoded()]
    stream = ScoreStream(members, fusion.mean, memory=0)
    stream.survey()
    spent = member.seconds["per_pair"]
    stream.survey()
    assert member.seconds["per_pair"] == spent > 0
