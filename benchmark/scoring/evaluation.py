"""From the scores of a split to metrics, ranks and histograms. Knows no model and no
torch."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from benchmark.data.prepared_tables import Prepared, Split
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.data.results import Ranks, Scores
from benchmark.scoring import metrics
from benchmark.scoring.distribution_overlap import (
    BINS,
    Bootstrap,
    Distributions,
    resamples,
)
from benchmark.scoring.ranking import (
    CORRECT_IOU,
    NO_RELEVANT,
    BestItems,
    LayerRanks,
    RefusedError,
    Tile,
    localisation_ranks,
    of_direction,
    tiles_of_right_pairs,
)
from benchmark.scoring.relevance import (
    LayerPairs,
    Relevance,
    layers_of,
    relevance_of_test,
)
from benchmark.scoring.ties import TiedItems

TOP = 10  # items kept of each query
LARGE, COARSE = 1e12, 1e-3  # of scores in single precision, which has 7 digits


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the evaluation of a cell ended, and what follows from its scores, if it has
    any."""

    status: str = "ok"  # ok, failed or not_applicable
    reason: str = ""
    metrics: dict = field(default_factory=dict)
    scores: Scores = Scores()
    # way -> first items (Q, K)
    retrieved: dict[str, np.ndarray] = field(default_factory=dict)
    samples: dict[str, np.ndarray] = field(default_factory=dict)  # for figures
    # of the layer own, by direction; no file keeps it
    ties: dict[str, TiedItems] = field(default_factory=dict)
    # per image, caption and pair
    seconds: dict[str, float] = field(default_factory=dict)


def of_test_split(
    tiles: Iterable[Tile],
    data: Prepared,
    split: Split,
    observers: Sequence[Callable] = (),
    is_row: bool = True,
) -> Evaluation:
    """Evaluate the scores of a test split in its directions and by all its layers of
    relevance, as `of_retrieval`. First items are there for layers of which people
    judged some pairs, too."""
    layer_cards = data.card.get("layers", {})
    is_partial = any(card["partial"] for card in layer_cards.values())
    return of_retrieval(
        tiles,
        relevance_of_test(data, split),
        data.card["ways"],
        observers,
        layers_of(data, split),
        is_row or is_partial,
    )


def of_retrieval(
    tiles: Iterable[Tile],
    relevance: Relevance,
    ways: Sequence[str] = ("i2t", "t2i"),
    observers: Sequence[Callable] = (),
    layers: Mapping[str, Mapping[str, LayerPairs]] = MappingProxyType({}),
    is_row: bool = True,
) -> Evaluation:
    """Evaluate the scores of a split, which are passed twice, in the directions `ways`.
    S is of the scores of image queries. `observers` see each tile and its scores of i2t
    in the second pass. Ranks and metrics of further `layers` of relevance, by name and
    direction, are kept apart. What only a row of a season keeps, S in resamples and the
    first items of each query, is left out unless it `is_row`.

    Raises RefusedError for scores that are not finite, and where there is nothing to
    distinguish.
    """
    groups = relevance.group_of_image, relevance.group_of_caption
    if len(np.unique(np.concatenate(groups))) == 1:
        raise RefusedError("the test split has no unmatched pair: one group alone")
    counts = _counts_of_own(relevance, ways)
    for name, directions in layers.items():
        for way, pairs in directions.items():
            if way in ways:
                key = RankKey(way, name)
                counts[key] = LayerRanks(key, pairs)
    i2t = counts.get(I2T) or LayerRanks(I2T, relevance.own(I2T))
    seen = _first_pass(tiles, {i2t, *counts.values()}, relevance.size)
    matched_M = i2t.score_QR[i2t.is_there_QR].astype(seen.precision)
    total_matched = float(matched_M.sum(dtype=np.float64))
    if seen.is_coarse:  # for bins between scores, or for their range
        matched_M = matched_M.astype(np.float64)
    distributions = Distributions(matched_M, (seen.low, seen.high), relevance.size)
    images_M = np.repeat(np.arange(len(groups[0])), i2t.counts)
    bootstrap = None
    if is_row:
        bootstrap = Bootstrap(
            *groups,
            resamples(int(relevance.group_of_image.max()) + 1),
            distributions.edges[BINS],
            images_M,
            matched_M,
        )
    total, best = 0.0, {}
    for way in ways if is_row else ():
        groups_of_way = groups if way == "i2t" else groups[::-1]
        best[way] = BestItems(*groups_of_way, TOP)
    for tile in tiles:
        for count in counts.values():
            count.add(tile)
        for way, items in best.items():
            items.add(*of_direction(way, tile, tile.of(RankKey(way))))
        total += float(tile.of(I2T).sum(dtype=np.float64))
        scores = tile.of(I2T).astype(matched_M.dtype, copy=False)
        distributions.add(scores)
        if bootstrap:
            matched = i2t.nth_of(tile.rows, tile.columns)
            bootstrap.add(tile.rows, tile.columns, scores, (matched.row, matched.col))
        for observe in observers:
            observe(tile, tile.of(I2T))
    mean_unmatched = (total - total_matched) / max(relevance.size - len(matched_M), 1)
    ranks = {key: count.ranks for key, count in counts.items()}
    by_other_rule = {way: counts[RankKey(way)].by_other_rule for way in ways}
    measured = _rank_metrics(ranks, by_other_rule, relevance)
    measured |= metrics.score_metrics(distributions.summary(mean_unmatched))
    kept = Scores(ranks=ranks, histograms=distributions.histograms)
    if bootstrap:
        kept = replace(kept, replicates=bootstrap.replicates)
        measured |= metrics.overlap_interval(measured["overlap_s"], kept.replicates)
    retrieved = {way: items.items for way, items in best.items()}
    ties = {way: counts[RankKey(way)].tied for way in ways}
    return Evaluation(metrics=measured, scores=kept, retrieved=retrieved, ties=ties)


@dataclass(frozen=True)
class _Seen:
    """What the first pass tells of the scores of i2t."""

    low: float
    high: float
    precision: np.dtype

    @property
    def is_coarse(self) -> bool:
        """Whether single precision is too coarse for their range."""
        largest = max(abs(self.low), abs(self.high))
        return largest >= LARGE or self.high - self.low <= COARSE * largest


def _first_pass(
    tiles: Iterable[Tile], counts: Collection[LayerRanks], pairs: int
) -> _Seen:
    """Let all counts see the scores. Raises RefusedError for scores that are not
    finite."""
    if getattr(tiles, "range", None):
        for tile in tiles_of_right_pairs(tiles, counts):
            for count in counts:
                count.see(tile)
        return _Seen(*tiles.range, tile.of(I2T).dtype)
    low, high = np.inf, -np.inf
    bad = Counter()  # by the ranks that scores count for
    for tile in tiles:
        ends = {}
        for key, scores in tile.scores.items():
            ends[key] = float(scores.min()), float(scores.max())
            if not np.isfinite(ends[key]).all():
                bad[key] += np.count_nonzero(~np.isfinite(scores))
        low, high = min(low, ends[I2T][0]), max(high, ends[I2T][1])
        for count in counts:
            count.see(tile)
    if bad:
        count = next(iter(bad.values()))
        raise RefusedError(f"{count} of {pairs} scores are NaN or infinite")
    return _Seen(low, high, tile.of(I2T).dtype)


def _rank_metrics(
    ranks: Mapping[RankKey, Ranks],
    by_other_rule: Mapping[str, np.ndarray],
    relevance: Relevance,
) -> dict[str, float | dict]:
    """The metrics by `own` of the whole split, and of its folds; `by_other_rule` has
    the best ranks (Q,) of each direction by the other rule for ties."""
    whole = {way: ranks[RankKey(way)] for way in by_other_rule}
    measured = metrics.retrieval_metrics(whole)
    measured |= metrics.tie_metrics(whole, by_other_rule)
    if relevance.fold_of_image is not None:
        within = {way: ranks[RankKey(way, is_of_folds=True)] for way in whole}
        measured |= metrics.fold_metrics(within, relevance.fold_of_query)
    return measured


def _counts_of_own(
    relevance: Relevance, ways: Sequence[str]
) -> dict[RankKey, LayerRanks]:
    """What counts ranks by `own`, in the whole split and within folds. Raises
    ValueError for a query without a relevant item."""
    galleries: dict[RankKey, Callable | None] = {RankKey(way): None for way in ways}
    if relevance.fold_of_image is not None:
        for way in ways:
            galleries[RankKey(way, is_of_folds=True)] = relevance.in_fold
    counts = {}
    for key, gallery in galleries.items():
        counts[key] = LayerRanks(key, relevance.own(key), gallery)
        if not counts[key].counts.all():
            raise ValueError(NO_RELEVANT)
    return counts


def of_localisation(scores_NP: np.ndarray, ious_NP: np.ndarray) -> Evaluation:
    """Evaluate the scores of N phrases with the P proposals of their images.

    `ious_NP` is NaN where an image has fewer than P. Raises RefusedError for scores
    that are not finite.
    """
    ranks = localisation_ranks(scores_NP, ious_NP)
    right_NP, is_there_NP = ious_NP >= CORRECT_IOU, ~np.isnan(ious_NP)
    measured = metrics.localisation_metrics(ranks, right_NP, is_there_NP)
    scores = Scores(ranks={RankKey("p2r"): ranks})
    return Evaluation(metrics=measured, scores=scores)
