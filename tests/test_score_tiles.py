"""Scores that pass tile by tile against what is computed from the whole matrix.

The references are loops over the definitions, or numpy over all scores at once.
"""

import numpy as np
import pytest
from oracles import fusion as naive
from oracles import whole_matrices

from benchmark import protocol
from benchmark.checks.evaluation_sizes import made_up_split
from benchmark.evaluate import evaluation
from benchmark.protocol import distribution_overlap, fusion
from benchmark.protocol.rank_counts import BestItems, RankCounts
from benchmark.protocol.score_distributions import UnmatchedOrder
from benchmark.protocol.score_tiles import Matrices, Pairing, Tile, overview

TILES = [(1, 1), (7, 7), (128, 128), (1000, 1000)]
KINDS = ["cosine", "ties", "wide", "far", "alike", "apart"]


def gallery(kind: str, folds: int = 1):
    """Made-up scores (I, C), and the split and the data that they are of."""
    rng = np.random.default_rng(KINDS.index(kind))
    images = 12  # a multiple of the folds
    owners = np.sort(np.concatenate([np.arange(images), rng.integers(0, images, 2 * images)]))
    matched = np.arange(images)[:, None] == owners[None]
    scores = {
        "cosine": np.clip(rng.normal(0.3 * matched, 0.2), -1, 1),
        "ties": np.round(np.clip(rng.normal(0.3 * matched, 0.3), -1, 1), 1),
        "wide": rng.normal(3 * matched, 2.0),
        "far": 1e9 + rng.normal(matched, 100.0),
        "alike": np.full(matched.shape, 0.25),
        "apart": np.where(matched, 0.9, -0.9),
    }[kind].astype(np.float32)
    return scores, matched, *made_up_split(owners, folds)


def in_disorder(size: tuple[int, int], **scores: np.ndarray) -> list[Tile]:
    """Tiles of reordered images and captions, the last ones first."""
    rng = np.random.default_rng(7)
    images, captions = (rng.permutation(count) for count in scores["i2t"].shape)
    mixed = {name: matrix[np.ix_(images, captions)] for name, matrix in scores.items()}
    tiles = [
        Tile(images[tile.rows], captions[tile.columns], tile.scores)
        for tile in Matrices(size, **mixed)
    ]
    return tiles[::-1]


def distribution_arrays(scores, matched, range) -> dict[str, np.ndarray]:
    arrays = {}
    for name, values in (("matched", scores[matched]), ("unmatched", scores[~matched])):
        arrays[name] = distribution_overlap.shares(values, distribution_overlap.BINS, *range)
        places = np.linspace(0, len(values) - 1, 2000).astype(int)
        arrays[f"{name}_sample"] = np.sort(values)[places]
    return arrays


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_by_tiles_is_that_of_the_whole_matrix(kind, tile):
    scores, matched, split, data = gallery(kind)
    by_tiles = evaluation.of_retrieval(in_disorder(tile, i2t=scores), data, split)
    if kind in ("far", "alike"):  # single precision is too coarse for bins between the scores
        scores = scores.astype(np.float64)
    both = {"i2t": scores, "t2i": scores.T}
    ranks = protocol.retrieval_ranks(both, matched)
    expected = protocol.retrieval_metrics(ranks) | whole_matrices.tie_gap(both, matched, ranks)
    of_scores = protocol.score_metrics(scores[matched], scores[~matched])
    mean = of_scores.pop("mean_unmatched")
    assert by_tiles.metrics["mean_unmatched"] == pytest.approx(mean, rel=1e-9)
    replicates = whole_matrices.replicates(
        scores,
        split.group_of_image,
        split.group_of_caption,
        distribution_overlap.resamples(len(scores)),
        of_scores["overlap_range"],
    )
    expected |= of_scores | protocol.overlap_interval(of_scores["overlap_s"], replicates)
    assert {name: by_tiles.metrics[name] for name in expected} == expected
    for way, (_, of_way) in by_tiles.ranks.items():
        assert of_way.tolist() == ranks[way].tolist()
    for name, array in distribution_arrays(scores, matched, of_scores["overlap_range"]).items():
        assert by_tiles.similarities[name].dtype == array.dtype
        assert by_tiles.similarities[name].tolist() == array.tolist(), name
    assert by_tiles.samples["overlap_replicates"].tolist() == replicates.astype(np.float32).tolist()
    for way, best in by_tiles.retrieved.items():
        assert best.tolist() == best_items(both[way], protocol.by_query(way, matched)), way


def best_items(scores_QG, relevant_QG) -> list[list[int]]:
    """Best first; of equal scores those that are not relevant first, then in their order."""
    ranked = [
        sorted(range(len(row)), key=lambda g, row=row, own=own: (-row[g], own[g], g))
        for row, own in zip(scores_QG, relevant_QG, strict=True)
    ]
    return [items[:10] for items in ranked]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("how", ["average", "adaptive"])
def test_fusions_by_tiles_are_those_of_whole_matrices_also_within_folds(how, tile):
    first, matched, split, data = gallery("cosine", folds=3)
    second = gallery("wide", folds=3)[0]
    fold_of = protocol.fold_of(split.image_of_caption, 3)
    by_equations = getattr(naive, how)
    whole = by_equations([first, second])
    within = naive.within_folds([first, second], *fold_of, by_equations)
    parts = [in_disorder(tile, i2t=matrix) for matrix in (first, second)]
    fuse = fusion.mean
    if how == "adaptive":
        groups = split.group_of_image, split.group_of_caption, split.image_of_caption
        areas = fusion.Areas(2, Pairing.of(*groups, 3))
        for number, tiles in enumerate(parts):
            for block in tiles:
                areas.add(number, block)
        weights = areas.weights()
        np.testing.assert_allclose(weights["i2t"], naive.weights([first, second]))
        np.testing.assert_allclose(weights["t2i"], naive.weights([first.T, second.T]))

        def fuse(scores, rows, columns):
            return fusion.fused(scores, weights, rows, columns)

    tiles = [
        Tile(a.rows, a.columns, fuse([a.of("i2t"), b.of("i2t")], rows=a.rows, columns=a.columns))
        for a, b in zip(*parts, strict=True)
    ]
    by_tiles = evaluation.of_retrieval(tiles, data, split)
    ranks = protocol.retrieval_ranks(whole, matched)
    ranks |= {
        f"{way}_fold": of_way
        for way, of_way in whole_matrices.fold_ranks(
            {way: np.nan_to_num(matrix, neginf=0.0) for way, matrix in within.items()},
            matched,
            split.image_of_caption,
            3,
        ).items()
    }
    assert {way: of_way.tolist() for way, (_, of_way) in by_tiles.ranks.items()} == {
        way: of_way.tolist() for way, of_way in ranks.items()
    }


@pytest.mark.parametrize("tile", TILES[:3])
def test_ties_count_both_ways_and_items_of_several_images_of_a_group_are_relevant(tile):
    rng = np.random.default_rng(3)
    of_image, of_caption = np.array([0, 1, 0, 2, 1, 2]), np.array([2, 0, 1, 1, 0, 2, 2])
    scores = rng.integers(0, 3, (6, 7)).astype(np.float32)
    relevant = of_image[:, None] == of_caption[None]
    pairing, tiles = Pairing(of_image, of_caption), in_disorder(tile, i2t=scores)
    overall = overview(tiles, pairing, ["i2t", "t2i"])
    assert sorted(zip(overall.images, overall.captions, strict=True)) == list(
        zip(*map(np.ndarray.tolist, np.nonzero(relevant)), strict=True)
    )
    for way in ("i2t", "t2i"):
        counts, best = RankCounts(way, overall, pairing), BestItems(way, pairing, 4)
        for block in tiles:
            counts.add(block, block.of(way))
            best.add(block, block.of(way))
        by_query = protocol.by_query(way, scores), protocol.by_query(way, relevant)
        assert counts.ranks.tolist() == protocol.positive_ranks(*by_query).tolist()
        assert counts.optimistic.tolist() == whole_matrices.optimistic_ranks(*by_query).tolist()
        assert best.items.tolist() == [items[:4] for items in best_items(*by_query)]
        assert (counts.ties > 0).any()


@pytest.mark.parametrize("cells", [1, 3, 50, 2**18])
def test_order_statistics_do_not_depend_on_the_cells(cells, monkeypatch):
    monkeypatch.setattr("benchmark.protocol.score_distributions.CELLS", cells)
    scores, matched, _, _ = gallery("ties")
    order, pairs = UnmatchedOrder(), np.nonzero(matched)
    order.count(scores)
    points = np.linspace(-1, 1, 21)
    order.ask(np.arange(0, (~matched).sum(), 5), points, scores[pairs])
    order.keep(scores, pairs)
    order.finish()
    unmatched = np.sort(scores[~matched])
    assert order.ranked.tolist() == unmatched[::5].tolist()
    assert order.counts_below.tolist() == [(unmatched < point).sum() for point in points]
    expected = distribution_overlap.one_minus_ks(scores[matched], unmatched)
    assert order.one_minus_ks == expected


def test_scores_that_are_not_finite_are_counted_and_refused():
    scores, _, split, data = gallery("cosine")
    scores[3, 4], scores[0, 0], scores[-1, -1] = np.nan, np.inf, -np.inf
    with pytest.raises(protocol.RefusedError, match=f"^3 of {scores.size} scores are NaN"):
        evaluation.of_retrieval(in_disorder((5, 7), i2t=scores), data, split)


def test_settled_bins_change_no_replicate():
    """Most bins settle after the first tiles; counted to the end, they give the same bits."""
    scores, matched, split, _ = gallery("cosine")
    drawn = distribution_overlap.resamples(len(scores))
    edges = distribution_overlap.edges_of(scores.dtype, (-1.0, 1.0), 20)
    groups, pairs = (split.group_of_image, split.group_of_caption), np.nonzero(matched)
    pairing = Pairing(*groups)
    early, late = (
        distribution_overlap.Bootstrap(*groups, drawn, edges, pairs[0], scores[pairs])
        for _ in range(2)
    )
    late._settle = lambda: None
    late.is_open[:] = True
    for tile in in_disorder((2, 9), i2t=scores):
        for bootstrap in (early, late):
            bootstrap.add(tile.rows, tile.columns, tile.of("i2t"), pairing.matched(tile))
    assert (early.q_NR <= late.q_NR).all() and (early.q_NR < late.q_NR).any()
    assert early.replicates.tolist() == late.replicates.tolist()
