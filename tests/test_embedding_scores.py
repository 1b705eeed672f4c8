"""Cosines of embeddings as a stream: what the whole matrix gives, to the last byte,
whatever the tiles, and in little memory. MaxSim of token matrices, against loops over
its definition."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmark.core import command_line
from benchmark.data.rank_keys import I2T
from benchmark.scoring import embedding_scores, score_stream
from benchmark.scoring.corrections import GRIDS, Asked, Corrected
from benchmark.scoring.embedding_scores import (
    Cosines,
    TokenMatrices,
    cosine_stream,
    max_sim_stream,
    units,
)
from benchmark.scoring.evaluation import Evaluation, of_retrieval
from benchmark.scoring.ranking import Matrices, direction_ranks
from benchmark.scoring.relevance import LayerPairs, Relevance

IMAGES, EACH, SIZE = 45, 3, 7
OWNER = np.repeat(np.arange(IMAGES), EACH)
CAPTIONS = len(OWNER)
TILES = [(2, 16), (8, 16), (13, 64), (512, 1024)]
GIVEN = {name: {"beta": 4.0} for name in GRIDS} | {"nnn": {"k": 3, "alpha": 0.7}}
FEW_IMAGES, FEW_EACH, TOKEN_SIZE = 14, 2, 6
OWNER_OF_FEW = np.repeat(np.arange(FEW_IMAGES), FEW_EACH)


def vectors(kind: type = np.float32, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (I, F) and (C, F). Some are there several times, far apart; many
    more have equal coordinates in another order, and so equal cosines with some."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(IMAGES, SIZE))
    captions = images[OWNER] + rng.normal(size=(CAPTIONS, SIZE))
    images[[7, 30, 44]] = images[2]
    images[31] = images[30, ::-1]
    captions[[5, 6, 80, 134]] = captions[1]
    captions[100:110] = np.sign(captions[100:110])
    places = (images, "images"), (captions, "captions")
    return tuple(units(x.astype(kind), name, [""] * len(x)) for x, name in places)


def matrix(images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """All cosines at once, rounded from double precision; equal rows have those of the
    first."""
    whole = images.astype(np.float64) @ captions.astype(np.float64).T
    first = []
    for rows in (images, captions):
        _, place, inverse = np.unique(
            rows, axis=0, return_index=True, return_inverse=True
        )
        first.append(place[inverse.ravel()])
    if images.dtype == np.float64:
        return (np.round(whole * 2**40) / 2**40)[np.ix_(*first)]
    return whole.astype(images.dtype)[np.ix_(*first)]


def judgements() -> dict[str, LayerPairs]:
    """A layer with judgements of half of the queries."""
    rng, layer = np.random.default_rng(3), {}
    for way, shape in (("i2t", (IMAGES, CAPTIONS)), ("t2i", (CAPTIONS, IMAGES))):
        said = rng.choice([0, 1, -1], shape, p=[0.8, 0.1, 0.1]).astype(np.int8)
        said[rng.random(len(said)) < 0.5] = 0
        layer[way] = LayerPairs(csr_array(said * (said > 0).any(1, keepdims=True)))
    return layer


def evaluated(tiles) -> Evaluation:
    relevance = Relevance.of(np.arange(IMAGES), OWNER, folds=3)
    return of_retrieval(tiles, relevance, layers={"people": judgements()})


def check_same_ranks(found: Evaluation, expected: Evaluation) -> None:
    """All ranks and first items, byte for byte."""
    assert found.scores.ranks.keys() == expected.scores.ranks.keys()
    for key, ranks in expected.scores.ranks.items():
        assert found.scores.ranks[key].values.tobytes() == ranks.values.tobytes(), key
        assert found.scores.ranks[key].counts.tobytes() == ranks.counts.tobytes(), key
    for way, items in expected.retrieved.items():
        assert found.retrieved[way].tobytes() == items.tobytes(), way


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("memory", ["0", "512"])
@pytest.mark.parametrize("tile", TILES)
def test_a_stream_is_the_whole_matrix_to_the_byte(tile, memory, kind, monkeypatch):
    monkeypatch.setattr(score_stream, "STREAM_TILE", tile)
    monkeypatch.setenv(score_stream.MEMORY, memory)
    given = vectors(kind)
    whole = matrix(*given)
    assert (whole[2] == whole[44]).all()
    expected = evaluated(Matrices(i2t=whole))
    stream = cosine_stream(*given, keeps=True)
    found = evaluated(stream)
    check_same_ranks(found, expected)
    # a sum over tiles
    mean = pytest.approx(expected.metrics["mean_unmatched"], rel=1e-12)
    assert found.metrics == expected.metrics | {"mean_unmatched": mean}
    assert found.scores.histograms.edges[[0, -1]].tolist() == [-1, 1]
    for name in ("matched", "unmatched"):
        both = (getattr(of.scores.histograms, name).sum() for of in (found, expected))
        assert len(set(both)) == 1
    assert all(tile.of(I2T).dtype == kind for tile in stream)
    assert bool(stream.kept) == (memory != "0")


@pytest.mark.parametrize("how", GRIDS)
@pytest.mark.parametrize("tile", TILES[1:])
def test_corrections_of_a_stream_are_those_of_whole_matrices(how, tile, monkeypatch):
    monkeypatch.setattr(score_stream, "STREAM_TILE", tile)
    monkeypatch.setenv(score_stream.MEMORY, "0")
    (images, captions), (bank_images, bank_captions) = vectors(), vectors(seed=1)
    banks = {"i2t": (bank_images, captions), "t2i": (images, bank_captions)}
    of_streams, of_matrices = {}, {}
    stream, whole = cosine_stream(images, captions), matrix(images, captions)
    for way, bank in banks.items():
        if how == "dual_softmax":
            bank = images, captions
        of_bank = Asked.of(way, cosine_stream(*bank))
        of_streams[way] = Asked.of(way, stream), of_bank
        split = replace(of_streams[way][0], tiles=Matrices(i2t=whole))
        of_matrices[way] = split, replace(of_bank, tiles=Matrices(i2t=matrix(*bank)))
    parameters = dict.fromkeys(banks, GIVEN[how])
    found = evaluated(Corrected(how, of_streams, parameters))
    expected = evaluated(Corrected(how, of_matrices, parameters))
    check_same_ranks(found, expected)
    assert found.metrics["rsum"] == expected.metrics["rsum"]


def test_no_rank_hangs_on_where_a_row_stands():
    images, captions = vectors()
    rng = np.random.default_rng(5)
    orders = rng.permutation(IMAGES), rng.permutation(CAPTIONS)
    group = np.argsort(orders[0])  # the new place of each image
    relevance = Relevance(np.arange(IMAGES), OWNER)
    mixed = Relevance(np.arange(IMAGES), group[OWNER[orders[1]]])
    plain = direction_ranks(cosine_stream(images, captions), relevance)
    moved = cosine_stream(images[orders[0]], captions[orders[1]])
    ranks = direction_ranks(moved, mixed)
    for way, order in zip(("i2t", "t2i"), orders, strict=True):
        assert ranks[way].best.tolist() == plain[way].best[order].tolist()


def test_codes_of_bits_tie_as_their_distances_do():
    rng = np.random.default_rng(0)
    images, captions = rng.choice([-1.0, 1.0], (2, 40, 24)).astype(np.float32)
    apart = (images[:, None] != captions).sum(2)
    x, y = (units(codes, "codes", []) for codes in (images, captions))
    (tile,) = cosine_stream(x, y)
    scores = np.empty(apart.shape, np.float32)
    scores[np.ix_(tile.rows, tile.columns)] = tile.of(I2T)
    assert len(np.unique(scores)) == len(np.unique(apart))
    np.testing.assert_allclose(scores, 1 - apart / 12, atol=2e-6)


def test_vectors_are_codes_only_if_all_of_them_are(monkeypatch):
    monkeypatch.setattr(embedding_scores, "ROWS_AT_ONCE", 2)
    some = np.array([[1.0, -1.0], [1.0, 1.0], [3.0, 4.0], [0.0, 2.0]])
    expected = [[0.5**0.5, -(0.5**0.5)], [0.5**0.5, 0.5**0.5], [0.6, 0.8], [0.0, 1.0]]
    np.testing.assert_allclose(units(some, "some", list("abcd")), expected)


def test_every_pair_is_multiplied_once_but_for_few(monkeypatch):
    """A second time those of the tiles with right pairs, along the diagonal."""
    pairs, scores = [], Cosines.scores

    def counted(self, rows, columns):
        pairs.append((rows.stop - rows.start) * (columns.stop - columns.start))
        return scores(self, rows, columns)

    monkeypatch.setattr(Cosines, "scores", counted)
    monkeypatch.setattr(score_stream, "STREAM_TILE", (5, 15))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(count, SIZE)) for count in (IMAGES, CAPTIONS)]
    stream = cosine_stream(*(units(x, "", [""]) for x in given))
    of_retrieval(stream, Relevance.of(np.arange(IMAGES), OWNER))
    assert sum(pairs) == IMAGES * CAPTIONS + IMAGES // 5 * 5 * 15


def peak_of(rows: int, monkeypatch) -> int:
    """The most bytes that ranks take beside the vectors, of which half are there
    twice."""
    rng = np.random.default_rng(0)
    images = np.repeat(rng.normal(size=(rows // 2, 8)), 2, axis=0)
    captions = rng.permutation(np.repeat(rng.normal(size=(rows, 8)), 2, axis=0))
    given = [units(x.astype(np.float32), "", [""]) for x in (images, captions)]
    monkeypatch.setattr(score_stream, "STREAM_TILE", (64, 64))
    monkeypatch.setenv(score_stream.MEMORY, "0")
    relevance = Relevance.of(np.arange(rows), np.repeat(np.arange(rows), 2))
    tracemalloc.start()
    direction_ranks(cosine_stream(*given), relevance)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_grows_with_the_items_and_not_with_their_pairs(monkeypatch):
    small, large = peak_of(400, monkeypatch), peak_of(800, monkeypatch)
    assert large < 2.5 * small
    assert large < 4 * 800 * 1600 / 2  # of the whole matrix


def test_long_work_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(command_line, "LINE_EVERY", 0)
    monkeypatch.setattr(command_line, "LOOK_EVERY", 0)
    monkeypatch.setattr(score_stream, "STREAM_TILE", (8, 8))
    for _ in cosine_stream(*vectors()):
        pass
    assert "score: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_vectors_of_one_direction_tie_whatever_their_lengths(kind):
    rng = np.random.default_rng(8)
    images = rng.integers(1, 9, (40, 12)).astype(kind)
    captions = units(rng.integers(1, 9, (120, 12)).astype(kind), "b", [""] * 120)
    both = units(np.concatenate([images, 3 * images]), "a", [""] * 80)
    order = np.random.default_rng(9).permutation(80)
    stream = Cosines(both[order], captions)
    (scores,) = stream.scores(slice(80), slice(120))
    by_image = scores[stream.image_order.argsort()][order.argsort()]
    assert (by_image[:40] == by_image[40:]).all()


# MaxSim -------------------------------------------------------------------------------


def tokens(kind: type = np.float32) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Matrices (t, F) of images, and of captions whose tokens are near some of
    theirs."""
    rng = np.random.default_rng(0)
    images = [
        rng.normal(size=(rng.integers(1, 9), TOKEN_SIZE)) for _ in range(FEW_IMAGES)
    ]
    captions = []
    for owner in OWNER_OF_FEW:
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
    monkeypatch.setattr(embedding_scores, "TOKENS_AT_ONCE", at_once)
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
    monkeypatch.setattr(embedding_scores, "TOKENS_AT_ONCE", at_once)
    monkeypatch.setenv(score_stream.MEMORY, "0")
    stream = max_sim_stream(*given)
    assert np.array_equal(whole(stream), expected)
    relevance = Relevance.of(np.arange(FEW_IMAGES), OWNER_OF_FEW)
    ranks = direction_ranks(stream, relevance)
    of_matrix = direction_ranks(Matrices(i2t=expected), relevance)
    for way, of_way in of_matrix.items():
        assert ranks[way].values.tobytes() == of_way.values.tobytes()


def test_items_are_chosen_with_their_tokens():
    images, _ = tokens()
    matrices = stored(images)
    assert matrices.chosen(np.arange(FEW_IMAGES)) is matrices
    some = np.array([5, 0, 5])
    chosen = matrices.chosen(some)
    for item, found in zip(some, chosen, strict=True):
        assert np.array_equal(found, images[item])
    means = [image.mean(0) for image in images]
    np.testing.assert_allclose(matrices.means, means, rtol=1e-5, atol=1e-6)


def test_captions_of_the_same_tokens_in_another_order_tie():
    rng = np.random.default_rng(4)
    images, _ = tokens()
    caption = rng.normal(size=(30, TOKEN_SIZE)).astype(np.float32)
    captions = [rng.permutation(caption) for _ in range(2 * FEW_IMAGES)]
    scores = whole(max_sim_stream(stored(images), stored(captions)))
    assert (scores == scores[:, :1]).all()
