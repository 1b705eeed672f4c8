"""From the scores of a split to metrics, ranks and samples for figures. Knows no model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from benchmark import protocol
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.evaluate import figure_samples
from benchmark.protocol import distribution_overlap, score_tiles
from benchmark.protocol.rank_counts import BestItems, Picked, RankCounts
from benchmark.protocol.score_distributions import Distributions, UnmatchedOrder
from benchmark.protocol.score_tiles import Pairing, Tile

SPLIT = "test"  # the split that is evaluated


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the evaluation of a cell ended, and what follows from its scores, if it has any."""

    status: str = "ok"  # ok, failed or not_applicable
    reason: str = ""
    metrics: dict = field(default_factory=dict)
    ranks: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # direction ->
    # ids of the queries, their ranks
    similarities: dict[str, np.ndarray] = field(default_factory=dict)
    retrieved: dict[str, np.ndarray] = field(default_factory=dict)
    samples: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # per image, caption and pair

    def with_samples(self, more: dict[str, np.ndarray]) -> "Evaluation":
        return replace(self, samples=self.samples | more)

    @property
    def rank_table(self) -> pd.DataFrame:
        """One row per query and direction: direction, query, rank (0-based)."""
        frames = [pd.DataFrame({"direction": [], "query": [], "rank": []})]
        frames += [
            pd.DataFrame({"direction": way, "query": queries, "rank": ranks_Q})
            for way, (queries, ranks_Q) in self.ranks.items()
        ]
        return pd.concat(frames)


def of_retrieval(
    tiles: Iterable[Tile],
    data: Prepared,
    split: Split,
) -> Evaluation:
    """Evaluate the scores of a split, which are passed twice, in the directions that the dataset's
    card names. S is of the scores of image queries.

    Raises protocol.RefusedError for scores that are not finite, and where there is nothing to
    distinguish.
    """
    ways, folds = data.card["ways"], data.card["folds"]
    groups = split.group_of_image, split.group_of_caption
    if len(np.unique(np.concatenate(groups))) == 1:
        raise protocol.RefusedError(f"the {SPLIT} split has no unmatched pair: one group alone")
    pairing = Pairing.of(*groups, split.image_of_caption, folds)
    names = [*ways, *(f"{way}_fold" for way in ways if folds > 1)]
    order = UnmatchedOrder()
    overview = score_tiles.overview(tiles, pairing, names, order.count)
    drawn = distribution_overlap.resamples(int(split.group_of_image.max()) + 1)
    distributions = Distributions(
        overview, order, pairing, drawn, protocol.BIN_COUNTS, figure_samples.SCORES
    )
    counts = {name: RankCounts(name, overview, pairing) for name in names}
    items = {way: BestItems(way, pairing, figure_samples.TOP) for way in ways}
    similarity = figure_samples.similarity(len(split.group_of_image), split.image_of_caption)
    for tile in tiles:
        pairs = pairing.matched(tile)
        for name, count in counts.items():
            count.add(tile, tile.of(name).astype(overview.dtype(name), copy=False))
        for way, best in items.items():
            best.add(tile, tile.of(way))
        distributions.add(tile, pairs)
        similarity.add(tile, tile.of("i2t"))
    distributions.finish()
    return _evaluation(distributions, counts, items, similarity, data, split)


def _evaluation(
    distributions: Distributions,
    counts: dict[str, RankCounts],
    items: dict[str, BestItems],
    similarity: Picked,
    data: Prepared,
    split: Split,
) -> Evaluation:
    """From what was counted. The ranks within folds are those of names like i2t_fold."""
    ranks = {name: count.ranks for name, count in counts.items()}
    whole = {way: ranks[way] for way in items}
    metrics = protocol.retrieval_metrics(whole)
    metrics |= protocol.tie_metrics(whole, {way: counts[way].optimistic for way in items})
    metrics |= protocol.summary_metrics(distributions.summary)
    replicates = distributions.bootstrap.replicates
    metrics |= protocol.overlap_interval(metrics["overlap_s"], replicates)
    if len(ranks) > len(whole):
        in_fold = {way: ranks[f"{way}_fold"] for way in whole}
        metrics |= protocol.fold_metrics(in_fold, split.image_of_caption, data.card["folds"])
    return Evaluation(
        metrics=metrics,
        ranks=_with_queries(ranks, data, split),
        similarities=distributions.arrays,
        retrieved={way: best.items for way, best in items.items()},
        samples={
            "similarity": similarity.scores.astype(np.float32),
            "overlap_replicates": replicates.astype(np.float32),
        },
    )


def of_localisation(
    scores_NP: np.ndarray, ious_NP: np.ndarray, boxes_NP4: np.ndarray, phrase_ids: Sequence[str]
) -> Evaluation:
    """Evaluate the scores of N phrases with the P proposals of their images.

    `ious_NP` is NaN where an image has fewer than P. Raises protocol.RefusedError for scores that
    are not finite.
    """
    ranks = protocol.localisation_ranks(scores_NP, ious_NP)
    best_N = np.where(np.isnan(ious_NP), -np.inf, scores_NP).argmax(1)
    return Evaluation(
        metrics=protocol.localisation_metrics(ranks, ious_NP),
        ranks={"p2r": (np.asarray(phrase_ids), ranks)},
        samples={"p2r_boxes": boxes_NP4[np.arange(len(best_N)), best_N].astype(np.float32)},
    )


def with_sentences(
    evaluation: Evaluation, ranks: np.ndarray, data: Prepared, split: Split
) -> Evaluation:
    """With the ranks of sentence-to-sentence retrieval, whose queries are the captions that have a
    sibling."""
    queries = _caption_ids(data, split)[protocol.has_sibling(split.image_of_caption)]
    return replace(
        evaluation,
        metrics=evaluation.metrics | protocol.rank_metrics("s2s", ranks),
        ranks=evaluation.ranks | {"s2s": (queries, ranks)},
    )


def _with_queries(
    ranks: dict[str, np.ndarray], data: Prepared, split: Split
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    images = data.images["image_id"].iloc[split.image_rows].to_numpy()
    queries = {"i2t": images, "t2i": _caption_ids(data, split)}
    return {way: (queries[way.removesuffix("_fold")], ranks_Q) for way, ranks_Q in ranks.items()}


def _caption_ids(data: Prepared, split: Split) -> np.ndarray:
    return data.captions["caption_id"].iloc[split.caption_rows].to_numpy()
