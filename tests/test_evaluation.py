"""Scores that pass tile by tile against what is computed from the whole matrix.

The references are loops over the definitions, or numpy over all scores at once.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from oracles import ranking, whole_matrices
from oracles import rescoring as naive

from benchmark.data.rank_keys import I2T, T2I, RankKey
from benchmark.scoring import distribution_overlap, evaluation, fusion, metrics
from benchmark.scoring.ranking import (
    BestItems,
    LayerRanks,
    Matrices,
    Tile,
    of_direction,
)
from benchmark.scoring.relevance import Relevance

TILES = [(1, 5), (7, 7), (1000, 1000)]
KINDS = ["cosine", "ties", "wide", "far", "alike", "apart"]


def gallery(kind: str, folds: int = 1) -> tuple[np.ndarray, Relevance]:
    """Made-up scores (I, C), and what is relevant."""
    rng = np.random.default_rng(KINDS.index(kind))
    images = 12  # a multiple of the folds
    owners = np.sort(
        np.concatenate([np.arange(images), rng.integers(0, images, 2 * images)])
    )
    relevance = Relevance.of(np.arange(images), owners, folds)
    matched = relevance.matrix
    scores = {
        "cosine": np.clip(rng.normal(0.3 * matched, 0.2), -1, 1),
        "ties": np.round(np.clip(rng.normal(0.3 * matched, 0.3), -1, 1), 1),
        "wide": rng.normal(3 * matched, 2.0),
        "far": 1e9 + rng.normal(matched, 100.0),
        "alike": np.full(matched.shape, 0.25),
        "apart": np.where(matched, 0.9, -0.9),
    }[kind].astype(np.float32)
    return scores, relevance


def tiles_in_disorder(size: tuple[int, int], **scores: np.ndarray) -> list[Tile]:
    rng = np.random.default_rng(7)
    images, captions = (rng.permutation(count) for count in scores["i2t"].shape)
    mixed = {name: matrix[np.ix_(images, captions)] for name, matrix in scores.items()}
    tiles = [
        Tile(images[tile.rows], captions[tile.columns], tile.scores)
        for tile in Matrices(size, **mixed)
    ]
    return tiles[::-1]


def all_ranks_by_loops(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> list[int]:
    rows = zip(scores_QG, relevant_QG, strict=True)
    return [
        place for row, own in rows for place in ranking.places(row, np.flatnonzero(own))
    ]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_by_tiles_is_that_of_the_whole_matrix(kind, tile):
    scores, relevance = gallery(kind)
    matched = relevance.matrix
    by_tiles = evaluation.of_retrieval(tiles_in_disorder(tile, i2t=scores), relevance)
    # single precision is too coarse for bins between the scores
    if kind in ("far", "alike"):
        scores = scores.astype(np.float64)
    both = {"i2t": scores, "t2i": scores.T}
    expected = metrics.retrieval_metrics(whole_matrices.ranks_by_way(both, matched))
    expected |= whole_matrices.tie_gap(both, matched)
    of_scores = whole_matrices.score_metrics(scores[matched], scores[~matched])
    mean = of_scores.pop("mean_unmatched")
    assert by_tiles.metrics["mean_unmatched"] == pytest.approx(mean, rel=1e-9)
    groups = relevance.group_of_image, relevance.group_of_caption
    replicates = whole_matrices.replicates(
        scores,
        *groups,
        distribution_overlap.resamples(len(scores)),
        of_scores["overlap_range"],
    )
    expected |= of_scores | metrics.overlap_interval(of_scores["overlap_s"], replicates)
    assert {name: by_tiles.metrics[name] for name in expected} == expected
    for way, scores_QG in both.items():
        relevant_QG = whole_matrices.by_query(way, matched)
        ranks = by_tiles.scores.ranks[RankKey(way)]
        wanted = [np.flatnonzero(row) for row in relevant_QG]
        assert ranks.best.tolist() == ranking.best_ranks(scores_QG, wanted)
        assert ranks.values.tolist() == all_ranks_by_loops(scores_QG, relevant_QG)
        assert ranks.counts.tolist() == relevant_QG.sum(1).tolist()
        assert by_tiles.retrieved[way].tolist() == best_items(scores_QG, relevant_QG), (
            way
        )
    assert by_tiles.scores.replicates.tolist() == replicates.tolist()
    kept = by_tiles.scores.histograms
    edges = kept.edges.astype(scores.dtype)
    assert kept.matched.tolist() == np.histogram(scores[matched], edges)[0].tolist()
    assert kept.unmatched.tolist() == np.histogram(scores[~matched], edges)[0].tolist()


@pytest.mark.parametrize("place", [0.5, 1.0, -7.0, 1e15, 1e300])
@pytest.mark.parametrize("steps", [1, 40, 999, 5000])
def test_scores_a_few_roundings_apart_are_evaluated(place, steps):
    relevance = gallery("cosine")[1]
    matched = relevance.matrix
    drawn = np.random.default_rng(steps).integers(0, steps + 1, matched.shape)
    drawn[0, 0], drawn[-1, -1] = 0, steps
    scores = place + drawn * np.spacing(abs(place))
    found = evaluation.of_retrieval(Matrices(i2t=scores), relevance)
    ranks = whole_matrices.ranks_by_way({"i2t": scores, "t2i": scores.T}, matched)
    assert found.metrics["rsum"] == metrics.retrieval_metrics(ranks)["rsum"]
    assert 0 <= found.metrics["overlap_s"] <= 1
    kept = found.scores.histograms
    assert (kept.matched.sum(), kept.unmatched.sum()) == (
        matched.sum(),
        (~matched).sum(),
    )
    apart = np.where(matched, place, place - np.spacing(abs(place)))
    far = evaluation.of_retrieval(Matrices(i2t=apart), relevance).metrics
    assert (far["rsum"], far["one_minus_ks"]) == (600.0, 0.0)


def test_what_only_a_row_keeps_is_left_out_where_none_is_written():
    scores, relevance = gallery("cosine")
    of_row = evaluation.of_retrieval(Matrices(i2t=scores), relevance)
    alone = evaluation.of_retrieval(Matrices(i2t=scores), relevance, is_row=False)
    interval = of_row.metrics.keys() - alone.metrics.keys()
    assert interval == set(metrics.INTERVAL_ENDS)
    assert alone.metrics == {name: of_row.metrics[name] for name in alone.metrics}
    assert of_row.retrieved and not alone.retrieved
    assert alone.scores.replicates is None
    for key, ranks in of_row.scores.ranks.items():
        assert alone.scores.ranks[key].values.tolist() == ranks.values.tolist()


@pytest.mark.parametrize("is_partial", [True, False])
def test_first_items_are_there_for_layers_that_people_judged_in_part(
    is_partial, monkeypatch
):
    scores, relevance = gallery("cosine")
    monkeypatch.setattr(evaluation, "relevance_of_test", lambda data, split: relevance)
    monkeypatch.setattr(evaluation, "layers_of", lambda data, split: {})
    card = {"ways": ["i2t"], "layers": {"ours": {"partial": is_partial}}}
    found = evaluation.of_test_split(
        Matrices(i2t=scores), SimpleNamespace(card=card), None, is_row=False
    )
    assert list(found.retrieved) == (["i2t"] if is_partial else [])


def best_items(scores_QG, relevant_QG) -> list[list[int]]:
    """Best first; of equal scores those that are not relevant first, then in their
    order."""
    ranked = [
        sorted(range(len(row)), key=lambda g, row=row, own=own: (-row[g], own[g], g))
        for row, own in zip(scores_QG, relevant_QG, strict=True)
    ]
    return [items[:10] for items in ranked]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("how", ["average", "adaptive"])
def test_fusions_by_tiles_are_those_of_whole_matrices_also_within_folds(how, tile):
    first, relevance = gallery("cosine", folds=3)
    second = gallery("wide", folds=3)[0]
    by_equations = getattr(naive, how)
    whole = by_equations([first, second])
    fold_of = relevance.fold_of_image, relevance.fold_of_caption
    within = naive.within_folds([first, second], *fold_of, by_equations)
    parts = [tiles_in_disorder(tile, i2t=matrix) for matrix in (first, second)]
    fuse = fusion.mean
    if how == "adaptive":
        areas = fusion.Areas(2, relevance)
        for number, tiles in enumerate(parts):
            for block in tiles:
                areas.add(number, block)
        weights = areas.weights()
        np.testing.assert_allclose(weights[I2T], naive.weights([first, second]))
        np.testing.assert_allclose(weights[T2I], naive.weights([first.T, second.T]))

        def fuse(scores, rows, columns):
            return fusion.fused(scores, weights, rows, columns)

    tiles = [
        Tile(
            a.rows,
            a.columns,
            fuse([a.of(I2T), b.of(I2T)], rows=a.rows, columns=a.columns),
        )
        for a, b in zip(*parts, strict=True)
    ]
    ranks = whole_matrices.ranks_by_way(whole, relevance.matrix)
    finite = {way: np.nan_to_num(matrix, neginf=0.0) for way, matrix in within.items()}
    of_folds = whole_matrices.fold_ranks(finite, relevance.matrix, relevance)
    ranks |= {f"{way}_fold": of_way for way, of_way in of_folds.items()}
    found = evaluation.of_retrieval(tiles, relevance).scores.ranks
    assert {key.name: of_key.values.tolist() for key, of_key in found.items()} == {
        way: of_way.values.tolist() for way, of_way in ranks.items()
    }


@pytest.mark.parametrize("tile", [(1, 1), (7, 7), (128, 128)])
def test_ties_count_both_ways_and_items_of_several_images_of_a_group_are_relevant(tile):
    rng = np.random.default_rng(3)
    relevance = Relevance(np.array([0, 1, 0, 2, 1, 2]), np.array([2, 0, 1, 1, 0, 2, 2]))
    groups = {"i2t": (relevance.group_of_image, relevance.group_of_caption)}
    groups["t2i"] = groups["i2t"][::-1]
    scores = rng.integers(0, 3, (6, 7)).astype(np.float32)
    tiles, relevant = tiles_in_disorder(tile, i2t=scores), relevance.matrix
    for way in ("i2t", "t2i"):
        own = relevance.own(RankKey(way))
        assert (own.said.toarray() == whole_matrices.by_query(way, relevant)).all()
        counts, best = LayerRanks(RankKey(way), own), BestItems(*groups[way], 4)
        for block in tiles:
            counts.see(block)
        for block in tiles:
            counts.add(block)
            best.add(*of_direction(way, block, block.of(RankKey(way))))
        by_query = (
            whole_matrices.by_query(way, scores),
            whole_matrices.by_query(way, relevant),
        )
        assert (
            counts.ranks.best.tolist() == whole_matrices.best_ranks(*by_query).tolist()
        )
        assert counts.ranks.values.tolist() == all_ranks_by_loops(*by_query)
        assert (
            counts.by_other_rule.tolist()
            == whole_matrices.optimistic_ranks(*by_query).tolist()
        )
        assert best.items.tolist() == [items[:4] for items in best_items(*by_query)]
        assert (counts.by_other_rule < counts.ranks.best).any()
