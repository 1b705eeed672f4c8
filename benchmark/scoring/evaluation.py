"""From the scores of a split to metrics, ranks and histograms. Knows no model and no torch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from benchmark.data.results import Scores, of_layer
from benchmark.scoring import distribution_overlap, metrics
from benchmark.scoring.distribution_overlap import Bootstrap, Distributions
from benchmark.scoring.relevance import (
    CORRECT_IOU,
    BestItems,
    Layer,
    LayerRanks,
    RankCounts,
    RefusedError,
    Relevance,
    Tile,
    localisation_ranks,
    of_direction,
)

TOP = 10  # items kept of each query
LARGE, COARSE = 1e12, 1e-3  # of scores in single precision, which has 7 digits


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the evaluation of a cell ended, and what follows from its scores, if it has any."""

    status: str = "ok"  # ok, failed or not_applicable
    reason: str = ""
    metrics: dict = field(default_factory=dict)
    scores: Scores = Scores()
    retrieved: dict[str, np.ndarray] = field(default_factory=dict)  # way -> first items (Q, K)
    samples: dict[str, np.ndarray] = field(default_factory=dict)  # for figures
    seconds: dict[str, float] = field(default_factory=dict)  # per image, caption and pair


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a first pass over scores finds, by their names."""

    images: np.ndarray  # (M,) of the matched pairs, image by image
    captions: np.ndarray  # (M,)
    matched: dict[str, np.ndarray]  # (M,) scores
    ranges: dict[str, tuple[float, float]]  # smallest and largest score
    mean_unmatched: float  # of i2t

    def dtype(self, name: str) -> np.dtype:
        """Double precision where single is too coarse for bins between scores, or too small for
        their range."""
        low, high = self.ranges[name]
        largest = max(abs(low), abs(high))
        is_usual = largest < LARGE and (high - low) > COARSE * largest
        return self.matched[name].dtype if is_usual else np.dtype(np.float64)


def overview(
    tiles: Iterable[Tile],
    relevance: Relevance,
    names: Iterable[str],
    layers: Iterable[LayerRanks] = (),
) -> Overview:
    """Pass over the scores of `names` and of i2t. Raises RefusedError for scores that are not
    finite."""
    names, total = list(dict.fromkeys(["i2t", *names])), 0.0
    found: list[tuple[np.ndarray, ...]] = []  # images, captions and scores of matched pairs
    ranges, bad = dict.fromkeys(names, (np.inf, -np.inf)), dict.fromkeys(names, 0)
    for tile in tiles:
        pairs = relevance.pairs(tile.rows, tile.columns)
        for name in names:
            scores, (low, high) = tile.of(name), ranges[name]
            least, most = float(scores.min()), float(scores.max())
            ranges[name] = min(low, least), max(high, most)
            if not (np.isfinite(least) and np.isfinite(most)):
                bad[name] += int((~np.isfinite(scores)).sum())
        of_pairs = (tile.of(name)[pairs].copy() for name in names)
        found.append((tile.rows[pairs[0]], tile.columns[pairs[1]], *of_pairs))
        total += float(tile.of("i2t").sum(dtype=np.float64))
        for layer in layers:
            layer.see(tile)
    for count in bad.values():
        if count:
            raise RefusedError(f"{count} of {relevance.size} scores are NaN or infinite")
    images, captions, *scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((captions, images))
    matched = {name: values[order] for name, values in zip(names, scores, strict=True)}
    unmatched = total - float(matched["i2t"].sum(dtype=np.float64))
    return Overview(
        images=images[order],
        captions=captions[order],
        matched=matched,
        ranges=ranges,
        mean_unmatched=unmatched / max(relevance.size - len(images), 1),
    )


def of_retrieval(
    tiles: Iterable[Tile],
    relevance: Relevance,
    ways: Sequence[str] = ("i2t", "t2i"),
    lookers: Sequence = (),
    layers: Mapping[str, Mapping[str, Layer]] = MappingProxyType({}),
) -> Evaluation:
    """Evaluate the scores of a split, which are passed twice, in the directions `ways`. S is of the
    scores of image queries. `lookers` see each tile and its scores of i2t in the second pass.
    Ranks and metrics of further `layers` of relevance, by name and direction, are kept apart.

    Raises RefusedError for scores that are not finite, and where there is nothing to distinguish.
    """
    groups = relevance.group_of_image, relevance.group_of_caption
    if len(np.unique(np.concatenate(groups))) == 1:
        raise RefusedError("the test split has no unmatched pair: one group alone")
    has_folds = relevance.fold_of_image is not None
    names = [*ways, *(f"{way}_fold" for way in ways if has_folds)]
    of_layers = {
        of_layer(way, name): LayerRanks(way, layer)
        for name, directions in layers.items()
        for way, layer in directions.items()
        if way in ways
    }
    seen = overview(tiles, relevance, names, of_layers.values())
    counts = {name: rank_counts(name, seen, relevance) for name in names}
    best = {way: BestItems(*(groups if way == "i2t" else groups[::-1]), TOP) for way in ways}
    matched_M, dtype = seen.matched["i2t"].astype(seen.dtype("i2t")), seen.dtype("i2t")
    distributions = Distributions(matched_M, seen.ranges["i2t"], relevance.size)
    drawn_RG = distribution_overlap.resamples(int(relevance.group_of_image.max()) + 1)
    edges = distributions.edges[distribution_overlap.BINS]
    bootstrap = Bootstrap(*groups, drawn_RG, edges, seen.images, matched_M)
    for tile in tiles:
        for name, count in counts.items():
            of_name = tile.of(name).astype(seen.dtype(name), copy=False)
            queries, _, scores_QG = of_direction(name, tile, of_name)
            gallery_QG = None
            if name.endswith("_fold"):
                in_fold = relevance.in_fold(tile.rows, tile.columns)
                gallery_QG = in_fold if name == "i2t_fold" else in_fold.T
            count.add(queries, scores_QG, gallery_QG)
        for layer in of_layers.values():
            layer.add(tile, seen.dtype(layer.way))
        for way, items in best.items():
            items.add(*of_direction(way, tile, tile.of(way)))
        scores = tile.of("i2t").astype(dtype, copy=False)
        distributions.add(scores)
        pairs = relevance.pairs(tile.rows, tile.columns)
        bootstrap.add(tile.rows, tile.columns, scores, pairs)
        for look in lookers:
            look(tile, tile.of("i2t"))
    ranks = {name: count.ranks for name, count in counts.items()}
    whole = {way: ranks[way] for way in ways}
    found = metrics.retrieval_metrics(whole)
    found |= metrics.tie_metrics(whole, {way: counts[way].optimistic for way in ways})
    found |= metrics.score_metrics(distributions.summary(seen.mean_unmatched))
    found |= metrics.overlap_interval(found["overlap_s"], bootstrap.replicates)
    if has_folds:
        within = {way: ranks[f"{way}_fold"] for way in ways}
        found |= metrics.fold_metrics(within, relevance.fold_of_query)
    ranks |= {name: layer.counts.ranks for name, layer in of_layers.items()}
    kept = Scores(ranks=ranks, histograms=distributions.histograms, replicates=bootstrap.replicates)
    retrieved = {way: items.items for way, items in best.items()}
    return Evaluation(metrics=found, scores=kept, retrieved=retrieved)


def rank_counts(name: str, seen: Overview, relevance: Relevance) -> RankCounts:
    """Of a direction, or within the folds of the test split."""
    scores_M = seen.matched[name].astype(seen.dtype(name))
    query_M = seen.images if name.startswith("i2t") else seen.captions
    if name.endswith("_fold"):
        of_images, of_captions = relevance.fold_of_image, relevance.fold_of_caption
        own_M = of_images[seen.images] == of_captions[seen.captions]
        query_M, scores_M = query_M[own_M], scores_M[own_M]
    return RankCounts(query_M, scores_M, relevance.queries(name))


def of_localisation(scores_NP: np.ndarray, ious_NP: np.ndarray) -> Evaluation:
    """Evaluate the scores of N phrases with the P proposals of their images.

    `ious_NP` is NaN where an image has fewer than P. Raises RefusedError for scores that are not
    finite.
    """
    ranks = localisation_ranks(scores_NP, ious_NP)
    right_NP, is_there_NP = ious_NP >= CORRECT_IOU, ~np.isnan(ious_NP)
    found = metrics.localisation_metrics(ranks, right_NP, is_there_NP)
    return Evaluation(metrics=found, scores=Scores(ranks={"p2r": ranks}))
