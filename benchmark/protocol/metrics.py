"""Every metric, declared once: its key in records, its heading in tables, its formula.

To add a metric, add an entry to one of the lists below. It is then in every record written from
now on, in the tables of results, and known to the papers' tables and claims. Records without it
stay valid; tables show a dash for them. To change a formula, raise the entry's `version`: records
of another version are refused, and have to be evaluated again.

Q = queries, N = phrases, P = proposals of an image. Knows no torch.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmark.protocol import distribution_overlap

VERSION = 1  # of what all metrics share: relevance, ties, galleries; others never share a table
FORMULA_VERSIONS = "formula_versions"  # in a record: metric -> version, of those that are not 1
MICRO = "\N{MICRO SIGN}s"
SUMMED_K = (1, 5, 10)  # the R@K that rsum adds up
SUMMED_DIRECTIONS = ("i2t", "t2i", "p2r")  # rsum adds up those that a record has
FOLDED = ("i2t", "t2i")  # directions that are ranked within folds of the test split, too


@dataclass(frozen=True, kw_only=True)
class ScoreSummary:
    """What the metrics of scores are made of: matched and unmatched pairs."""

    range: tuple[float, float]  # of the bins
    overlaps: dict[int, float]  # number of bins -> S
    one_minus_ks: float
    mean_matched: float
    mean_unmatched: float


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number of a record.

    `compute` takes what the comment beside the metric's list says. A metric of ranks is declared
    once for all its directions, and without them in name and heading: METRICS has an entry for
    each. If it is a mean over queries, `of_queries` gives the values of the queries, (Q,) for (Q,)
    ranks: intervals and tests then resample the images. Other metrics vary with their seeds only.
    """

    name: str  # key in the record: i2t_r1; as declared: r1
    heading: str  # of a table's column: i2t R@1; as declared: R@1
    unit: str
    range: tuple[float, float]  # smallest and largest value
    formula: str  # in words
    compute: Callable[..., float]
    of_queries: Callable[[np.ndarray], np.ndarray] | None = None
    decimals: int = 1  # as papers print it
    less_is_better: bool = False
    directions: tuple[str, ...] = ()  # queries "2" items; (): the metric is not of ranks
    in_tables: bool = True  # whether tables of a direction have a column for it
    cutoff: int = 0  # K of R@K
    direction: str = ""  # in METRICS: the one of `directions` that this entry is about
    is_of_folds: bool = False  # in METRICS: the mean over the folds of the test split
    version: int = 1  # of the formula; a recall's new version is also one of rsum

    @property
    def ranks(self) -> str:
        """The direction under which ranks.parquet has the ranks of the metric."""
        return f"{self.direction}_fold" if self.is_of_folds else self.direction


# The formulas. Ranks are zero-based.


def recall_at(k: int, ranks_Q: np.ndarray) -> float:
    """Share of queries with a relevant item in the top k, in percent.

    The literature's R@K: trec_eval's success, not information retrieval's recall.
    """
    return 100 * float((ranks_Q < k).mean())


def hits_at(k: int, ranks_Q: np.ndarray) -> np.ndarray:
    """100 for each query with a relevant item in the top k, else 0, (Q,)."""
    return 100.0 * (ranks_Q < k)


def median_rank(ranks_Q: np.ndarray) -> int:
    """Floor of the median zero-based rank, plus 1."""
    return int(np.floor(np.median(ranks_Q))) + 1


def mean_rank(ranks_Q: np.ndarray) -> float:
    """Mean rank, counted from 1."""
    return float(ranks_Q.mean()) + 1


def _gained_by_ties(ranks_Q: np.ndarray, optimistic_Q: np.ndarray) -> float:
    return recall_at(1, optimistic_Q) - recall_at(1, ranks_Q)


def _reachable(right_NP: np.ndarray, is_there_NP: np.ndarray) -> float:
    return 100 * float(right_NP.any(1).mean())


def _recall_by_chance(right_NP: np.ndarray, is_there_NP: np.ndarray) -> float:
    return 100 * float((right_NP.sum(1) / np.maximum(is_there_NP.sum(1), 1)).mean())


def _mean_matched(summary: ScoreSummary) -> float:
    return summary.mean_matched


def _mean_unmatched(summary: ScoreSummary) -> float:
    return summary.mean_unmatched


def _one_minus_ks(summary: ScoreSummary) -> float:
    return summary.one_minus_ks


def _overlap(bins: int, summary: ScoreSummary) -> float:
    return summary.overlaps[bins]


def _times(factor: float, seconds: float) -> float:
    return factor * seconds


# The declarations.

ALL = ("i2t", "t2i", "s2s", "p2r")
PERCENT = {"unit": "%", "range": (0.0, 100.0)}
RANK = {"unit": "rank", "range": (1.0, np.inf), "less_is_better": True, "directions": ALL}
SHARE = {"unit": "share", "range": (0.0, 1.0), "decimals": 4, "less_is_better": True}
SCORE = {"unit": "score", "range": (-np.inf, np.inf), "decimals": 4}
TIME = {"range": (0.0, np.inf), "less_is_better": True}


def _recall(k: int) -> Metric:
    return Metric(
        name=f"r{k}",
        heading=f"R@{k}",
        formula=f"share of queries with a relevant item among the first {k}",
        compute=partial(recall_at, k),
        of_queries=partial(hits_at, k),
        directions=ALL,
        cutoff=k,
        **PERCENT,
    )


RANK_METRICS = (  # compute(ranks_Q)
    _recall(1),
    _recall(5),
    _recall(10),
    Metric(
        name="medr",
        heading="MedR",
        formula="floor of the median zero-based rank, plus 1",
        compute=median_rank,
        decimals=0,
        **RANK,
    ),
    Metric(
        name="meanr",
        heading="MeanR",
        formula="mean rank, counted from 1",
        compute=mean_rank,
        in_tables=False,
        **RANK,
    ),
)
TIE_METRICS = (  # compute(ranks_Q, optimistic_Q)
    Metric(
        name="r1_tie_gap",
        heading="R@1 gained by ties",
        unit="points",
        range=(0.0, 100.0),
        formula="R@1 if ties counted for the method, minus R@1",
        compute=_gained_by_ties,
        less_is_better=True,
        directions=("i2t", "t2i"),
        in_tables=False,
    ),
)
PROPOSAL_METRICS = (  # compute(right_NP, is_there_NP), of phrase localisation
    Metric(
        name="p2r_bound",
        heading="upper bound",
        formula="share of phrases with a right proposal at all",
        compute=_reachable,
        **PERCENT,
    ),
    Metric(
        name="p2r_chance_r1",
        heading="R@1 by chance",
        formula="R@1 that a random order of the proposals expects",
        compute=_recall_by_chance,
        **PERCENT,
    ),
)
SCORE_METRICS = (  # compute(summary)
    Metric(
        name="overlap_s",
        heading="S",
        formula="area under the lower of the densities of matched and of unmatched pairs",
        compute=partial(_overlap, distribution_overlap.BINS),
        **SHARE,
    ),
    Metric(
        name="overlap_s_half_bins",
        heading="S, half the bins",
        formula="S from histograms of half as many bins",
        compute=partial(_overlap, distribution_overlap.BINS // 2),
        **SHARE,
    ),
    Metric(
        name="overlap_s_double_bins",
        heading="S, double the bins",
        formula="S from histograms of twice as many bins",
        compute=partial(_overlap, distribution_overlap.BINS * 2),
        **SHARE,
    ),
    Metric(
        name="one_minus_ks",
        heading="1 - KS",
        formula="1 - the Kolmogorov-Smirnov distance of matched and unmatched pairs, bounds S",
        compute=_one_minus_ks,
        **SHARE,
    ),
    Metric(
        name="mean_matched",
        heading="mean of matched",
        formula="mean score of matched pairs",
        compute=_mean_matched,
        **SCORE,
    ),
    Metric(
        name="mean_unmatched",
        heading="mean of unmatched",
        formula="mean score of unmatched pairs",
        compute=_mean_unmatched,
        less_is_better=True,
        **SCORE,
    ),
)
TIMES = (  # compute(seconds), of the cost files
    Metric(
        name="per_pair",
        heading=f"score a pair ({MICRO})",
        unit=MICRO,
        formula="time to score a pair",
        compute=partial(_times, 1e6),
        decimals=2,
        **TIME,
    ),
    Metric(
        name="per_image",
        heading=f"encode an image ({MICRO})",
        unit=MICRO,
        formula="time to encode an image",
        compute=partial(_times, 1e6),
        decimals=2,
        **TIME,
    ),
    Metric(
        name="per_caption",
        heading=f"encode a caption ({MICRO})",
        unit=MICRO,
        formula="time to encode a caption",
        compute=partial(_times, 1e6),
        decimals=2,
        **TIME,
    ),
    Metric(
        name="per_batch",
        heading="train a batch (ms)",
        unit="ms",
        formula="time of a training step",
        compute=partial(_times, 1e3),
        decimals=0,
        **TIME,
    ),
)
RSUM = Metric(  # compute(values), of the recalls that it adds up
    name="rsum",
    heading="rsum",
    unit="%",
    range=(0.0, 600.0),
    formula="sum of R@1, R@5 and R@10 of every direction that is retrieved",
    compute=sum,
)


def _in_direction(metric: Metric, direction: str) -> Metric:
    """The metric as a record has it for one of its directions."""
    return replace(
        metric,
        name=f"{direction}_{metric.name}",
        heading=f"{direction} {metric.heading}",
        direction=direction,
    )


def _of_folds(metric: Metric) -> Metric:
    """The metric as a mean over the folds of the test split."""
    return replace(
        metric,
        name=f"fold_{metric.name}",
        heading=f"{metric.heading}, mean of folds",
        decimals=max(1, metric.decimals),
        is_of_folds=True,
    )


def _by_name() -> dict[str, Metric]:
    of_ranks = [_in_direction(m, d) for d in ALL for m in RANK_METRICS if d in m.directions]
    of_folds = [_of_folds(m) for m in (*of_ranks, RSUM) if m.direction in ("", *FOLDED)]
    of_ties = [_in_direction(m, d) for m in TIE_METRICS for d in m.directions]
    others = (RSUM, *PROPOSAL_METRICS, *SCORE_METRICS, *TIMES)
    return {metric.name: metric for metric in (*of_ranks, *others, *of_folds, *of_ties)}


METRICS = _by_name()  # every metric by its key in the record
LARGEST_K = max(metric.cutoff for metric in RANK_METRICS)


def table_metrics(direction: str, folds: bool = False) -> tuple[str, ...]:
    """The metrics that tables of results show for a direction, in their order."""
    return tuple(
        name
        for name, metric in METRICS.items()
        if metric.direction == direction and metric.is_of_folds == folds and metric.in_tables
    )


def rsum_terms(directions: Iterable[str]) -> tuple[str, ...]:
    """The recalls that rsum adds up over these directions."""
    return tuple(f"{direction}_r{k}" for direction in directions for k in SUMMED_K)


def query_terms(name: str, measured: Collection[str]) -> list[Metric]:
    """The means over queries that add up to a metric: itself, or of rsum its recalls.

    `measured` are the metrics of the record, which tell the directions of rsum. Empty: the metric
    is not a mean over queries.
    """
    if name in ("rsum", "fold_rsum"):
        directions = [d for d in SUMMED_DIRECTIONS if f"{d}_r1" in measured]
        prefix = name.removesuffix("rsum")
        return [METRICS[f"{prefix}{term}"] for term in rsum_terms(directions)]
    metric = METRICS[name]
    return [metric] if metric.of_queries else []


def with_formula_versions(metrics: dict) -> dict:
    """A record's metrics, with the version of every formula that is not the first one."""
    versions = {name: METRICS[name].version for name in metrics if name in METRICS}
    changed = {name: version for name, version in versions.items() if version != 1}
    return metrics | ({FORMULA_VERSIONS: changed} if changed else {})


def outdated(metrics: Mapping) -> list[str]:
    """The metrics of a record whose formula has another version today."""
    versions = metrics.get(FORMULA_VERSIONS, {})
    return [
        name
        for name in metrics
        if name in METRICS and METRICS[name].version != versions.get(name, 1)
    ]
