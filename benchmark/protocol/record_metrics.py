"""From ranks and scores to the metrics of a record. Knows no torch.

N = phrases, P = proposals of an image, R = resamples.
"""

import numpy as np

from benchmark.protocol import distribution_overlap
from benchmark.protocol.metrics import (
    PROPOSAL_METRICS,
    RANK_METRICS,
    RSUM,
    SCORE_METRICS,
    TIE_METRICS,
    ScoreSummary,
    rsum_terms,
)
from benchmark.protocol.ranks import CORRECT_IOU, fold_of

BIN_COUNTS = tuple(distribution_overlap.BINS * share // 2 for share in (1, 2, 4))
INTERVAL_ENDS = ("overlap_s_low", "overlap_s_high")  # of one training, over test images


def rank_metrics(direction: str, ranks_Q: np.ndarray) -> dict[str, float]:
    """Every metric of the ranks of one direction, under the record's keys: i2t_r1 and so on."""
    return {
        f"{direction}_{metric.name}": metric.compute(ranks_Q)
        for metric in RANK_METRICS
        if direction in metric.directions
    }


def retrieval_metrics(ranks: dict[str, np.ndarray]) -> dict[str, float]:
    """The metrics of every direction, and rsum over all of them."""
    metrics = {}
    for direction, ranks_Q in ranks.items():
        metrics |= rank_metrics(direction, ranks_Q)
    return metrics | {"rsum": _rsum(metrics, ranks)}


def fold_metrics(
    ranks: dict[str, np.ndarray], image_of_caption_C: np.ndarray, folds: int
) -> dict[str, float | dict]:
    """Means over the folds under fold_i2t_r1 and so on; each fold's value under fold_values."""
    fold_of_image, fold_of_caption = fold_of(image_of_caption_C, folds)
    fold_of_query = {"i2t": fold_of_image, "t2i": fold_of_caption}
    metrics_of_folds = [
        retrieval_metrics(
            {way: ranks_Q[fold_of_query[way] == fold] for way, ranks_Q in ranks.items()}
        )
        for fold in range(folds)
    ]
    values = {name: [metrics[name] for metrics in metrics_of_folds] for name in metrics_of_folds[0]}
    means = {f"fold_{name}": float(np.mean(of_folds)) for name, of_folds in values.items()}
    return means | {"fold_values": values}


def tie_metrics(
    ranks: dict[str, np.ndarray], optimistic: dict[str, np.ndarray]
) -> dict[str, float]:
    """How much a metric would gain if ties counted for the method instead of against it."""
    return {
        f"{direction}_{metric.name}": metric.compute(ranks[direction], optimistic[direction])
        for direction in ranks
        for metric in TIE_METRICS
        if direction in metric.directions
    }


def localisation_metrics(ranks_N: np.ndarray, ious_NP: np.ndarray) -> dict[str, float]:
    """The metrics of the ranks with their rsum, and the limits that the proposals set.

    `ious_NP` is NaN where an image has fewer than P proposals.
    """
    metrics = rank_metrics("p2r", ranks_N)
    right_NP, is_there_NP = ious_NP >= CORRECT_IOU, ~np.isnan(ious_NP)
    limits = {metric.name: metric.compute(right_NP, is_there_NP) for metric in PROPOSAL_METRICS}
    return metrics | {"rsum": _rsum(metrics, ["p2r"])} | limits


def score_metrics(matched: np.ndarray, unmatched: np.ndarray) -> dict[str, float | list]:
    """S and the other metrics of two samples of scores, with the range and bins of S."""
    span = distribution_overlap.range_of_bins(*distribution_overlap.support(matched, unmatched))
    summary = ScoreSummary(
        range=span,
        overlaps={
            bins: distribution_overlap.overlap(matched, unmatched, bins, span)
            for bins in BIN_COUNTS
        },
        one_minus_ks=distribution_overlap.one_minus_ks(matched, unmatched),
        mean_matched=float(np.mean(matched, dtype=np.float64)),
        mean_unmatched=float(np.mean(unmatched, dtype=np.float64)),
    )
    return summary_metrics(summary)


def summary_metrics(summary: ScoreSummary) -> dict[str, float | list]:
    """The same from what is known of the scores."""
    settings = {"overlap_range": list(summary.range), "overlap_bins": distribution_overlap.BINS}
    return settings | {metric.name: metric.compute(summary) for metric in SCORE_METRICS}


def overlap_interval(estimate: float, replicates_R: np.ndarray) -> dict[str, float]:
    """The 95% interval of S of this training, had other images been drawn; empty: there is none."""
    ends = distribution_overlap.interval(estimate, replicates_R)
    return dict(zip(INTERVAL_ENDS, ends, strict=True)) if ends else {}


def _rsum(metrics: dict[str, float], directions) -> float:
    return RSUM.compute(metrics[term] for term in rsum_terms(directions))
