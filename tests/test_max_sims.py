"""MaxSim of token matrices, against loops over its definition."""

import numpy as np
import pytest

from benchmark.data.rank_keys import I2T
from benchmark.scoring import max_sims, score_stream
from benchmark.scoring.max_sims import TokenMatrices, max_sim_stream
from benchmark.scoring.ranking import Matrices, direction_ranks
from benchmark.scoring.relevance import Relevance

IMAGES, EACH, SIZE = 14, 2, 6
OWNER = np.repeat(np.arange(IMAGES), EACH)


def tokens(kind: type = np.float32) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Matrices (t, F) of images, and of captions whose tokens are near some of
    theirs."""
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(rng.integers(1, 9), SIZE)) for _ in range(IMAGES)]
    captions = []
    for owner in OWNER:
        count = rng.integers(1, 6)
        near = images[owner][rng.integers(len(images[owner]), size=count)]
        captions.append(near + 0.7 * rng.normal(size=near.shape))
    images[9], captions[3], captions[26] = images[4], captions[20], captions[20]
    return [x.astype(kind) for x in images], [x.astype(kind) for x in captions]


def max_sim(image: np.ndarray, caption: np.ndarray) -> float:
    """By its definition."""
    total = 0.0
    for word in caption:
        total += max(float(np.dot(word, patch)) for patch in image)
    return total


def stored(matrices: list[np.ndarray]) -> TokenMatrices:
    return TokenMatrices(np.concatenate(matrices), np.array(list(map(len, matrices))))


def whole(stream) -> np.ndarray:
    scores = np.full(stream.shape, np.nan, np.float32)
    for tile in stream:
        scores[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
    return scores


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("at_once", [1, 7, 2048])
def test_scores_are_those_of_loops(at_once, kind, monkeypatch):
    monkeypatch.setattr(max_sims, "TOKENS_AT_ONCE", at_once)
    images, captions = tokens(kind)
    scores = whole(max_sim_stream(stored(images), stored(captions)))
    wide = [[x.astype(float) for x in matrices] for matrices in (images, captions)]
    expected = [[max_sim(image, caption) for caption in wide[1]] for image in wide[0]]
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    assert scores.dtype == np.float32
    assert (scores[9] == scores[4]).all() and (scores[:, 3] == scores[:, 26]).all()


@pytest.mark.parametrize("tile", [(1, 3), (5, 4), (512, 1024)])
@pytest.mark.parametrize("at_once", [1, 7, 2048])
def test_ranks_do_not_hang_on_tiles(tile, at_once, monkeypatch):
    given = [stored(matrices) for matrices in tokens()]
    expected = whole(max_sim_stream(*given))
    monkeypatch.setattr(score_stream, "STREAM_TILE", tile)
    monkeypatch.setattr(max_sims, "TOKENS_AT_ONCE", at_once)
    monkeypatch.setenv(score_stream.MEMORY, "0")
    stream = max_sim_stream(*given)
    assert np.array_equal(whole(stream), expected)
    relevance = Relevance.of(np.arange(IMAGES), OWNER)
    ranks = direction_ranks(stream, relevance)
    of_matrix = direction_ranks(Matrices(i2t=expected), relevance)
    for way, of_way in of_matrix.items():
        assert ranks[way].values.tobytes() == of_way.values.tobytes()


def test_items_are_chosen_with_their_tokens():
    images, _ = tokens()
    matrices = stored(images)
    assert matrices.chosen(np.arange(IMAGES)) is matrices
    some = np.array([5, 0, 5])
    chosen = matrices.chosen(some)
    for item, found in zip(some, chosen, strict=True):
        assert np.array_equal(found, images[item])
    means = [image.mean(0) for image in images]
    np.testing.assert_allclose(matrices.means, means, rtol=1e-5, atol=1e-6)


def test_captions_of_the_same_tokens_in_another_order_tie():
    rng = np.random.default_rng(4)
    images, _ = tokens()
    caption = rng.normal(size=(30, SIZE)).astype(np.float32)
    captions = [rng.permutation(caption) for _ in range(2 * IMAGES)]
    scores = whole(max_sim_stream(stored(images), stored(captions)))
    assert (scores == scores[:, :1]).all()
