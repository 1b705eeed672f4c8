"""From the scores of a split to metrics, ranks and samples for figures. Knows no model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from benchmark import protocol
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.evaluate import figure_samples
from benchmark.protocol import distribution_overlap

SPLIT = "test"  # the split that is evaluated
LARGE, COARSE = 1e12, 1e-3  # of scores in single precision, which has 7 digits


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
    scores: dict[str, np.ndarray],
    data: Prepared,
    split: Split,
    within_folds: dict[str, np.ndarray] | None = None,
) -> Evaluation:
    """Evaluate scores with one row per query, i2t (I, C) and t2i (C, I), in the directions that
    the dataset's card names; S is of i2t. `within_folds` are the scores within each fold, if they
    are others. Raises protocol.RefusedError for scores that are not finite, and where there is
    nothing to distinguish."""
    ways, folds = data.card["ways"], data.card["folds"]
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    if relevant.all():
        raise protocol.RefusedError(f"the {SPLIT} split has no unmatched pair: one group alone")
    scores = {way: _workable(scores[way]) for way in {"i2t", *ways}}
    scores, matrix = {way: scores[way] for way in ways}, scores["i2t"]
    ranks = protocol.retrieval_ranks(scores, relevant)
    metrics = protocol.retrieval_metrics(ranks)
    metrics |= protocol.tie_gap(scores, relevant, ranks)
    metrics |= protocol.score_metrics(matrix[relevant], matrix[~relevant])
    drawn = distribution_overlap.resamples(int(split.group_of_image.max()) + 1)
    groups = split.group_of_image, split.group_of_caption
    replicates = distribution_overlap.replicates(matrix, *groups, drawn, metrics["overlap_range"])
    metrics |= protocol.overlap_interval(metrics["overlap_s"], replicates)
    if folds > 1:
        of_ways = {way: (within_folds or scores)[way] for way in ways}
        in_fold = protocol.fold_ranks(of_ways, relevant, split.image_of_caption, folds)
        metrics |= protocol.fold_metrics(in_fold, split.image_of_caption, folds)
        ranks |= {f"{way}_fold": ranks_Q for way, ranks_Q in in_fold.items()}
    kept = figure_samples.of_scores(matrix, split.image_of_caption)
    return Evaluation(
        metrics=metrics,
        ranks=_with_queries(ranks, data, split),
        similarities=figure_samples.distributions(matrix, relevant, metrics["overlap_range"]),
        retrieved={
            way: figure_samples.retrieved(scores[way], protocol.by_query(way, relevant))
            for way in ways
        },
        samples=kept | {"overlap_replicates": replicates.astype(np.float32)},
    )


def _workable(scores: np.ndarray) -> np.ndarray:
    """The scores in double precision where single is too coarse for bins between them, or too
    small for their range."""
    low, high = float(scores.min()), float(scores.max())
    largest = max(abs(low), abs(high))
    is_usual = largest < LARGE and (high - low) > COARSE * largest
    return scores if is_usual else scores.astype(np.float64)


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
