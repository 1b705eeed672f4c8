"""Every metric, declared once: its key in records, its heading in tables, its formula.

To add a metric, add an entry to one of the lists below. It is then in every record
written from now on, in the tables of results, and known to the papers' tables and
claims. Records without it stay valid; tables show a dash for them. Those of ALL_RANKS
are in no record: they follow from the ranks beside it, whenever somebody asks. To
change a formula, raise `protocol` in benchmark/versions.yaml.

Q = queries, N = phrases, P = proposals of an image. Imports no torch.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, mul

import numpy as np

from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks
from benchmark.scoring.distribution_overlap import BINS, ScoreSummary, interval

INTERVAL_ENDS = ("overlap_s_low", "overlap_s_high")  # of one training, over test images
MICRO = "\N{MICRO SIGN}s"
SUMMED_K = (1, 5, 10)  # the R@K that rsum adds up
RECALLED_K = SUMMED_K  # the R@K of records
# R@K -> directions whose leaderboard shows it beside the metric that ranks
LEADERBOARD_K = {1: ("i2t", "t2i"), 5: ("p2r",), 10: ("p2r",)}
SUMMED_DIRECTIONS = ("i2t", "t2i", "p2r")  # rsum adds up those that a record has
# directions that are ranked within folds of the test split, too
FOLDED = ("i2t", "t2i")
FOLDS = "fold_"  # before the key of a metric: its mean over folds


@dataclass(frozen=True)
class Metric:
    """One number of a record.

    `compute` takes what the comment beside the metric's list says. A metric of ranks is
    declared once for all its directions, and without them in name and heading: METRICS
    has an entry for each. If it is a mean over queries, `of_queries` gives the values
    of the queries, (Q,) for their ranks: intervals and tests then resample the images.
    Other metrics vary with their seeds only.
    """

    name: str  # key in the record: i2t_r1; as declared: r1
    heading: str  # of a table's column: i2t R@1; as declared: R@1
    formula: str  # in words
    compute: Callable[..., float]
    unit: str
    range: tuple[float, float]  # smallest and largest value
    of_queries: Callable[[Ranks], np.ndarray] | None = None
    decimals: int = 1  # as papers print it
    less_is_better: bool = False
    # queries "2" items; (): the metric is not of ranks
    directions: tuple[str, ...] = ()
    # whether it is of all relevant items of a query, not of the best one
    needs_all: bool = False
    in_records: bool = True
    in_tables: bool = True  # whether tables of a direction have a column for it
    # directions whose leaderboard has a column for it, beside the metric that ranks
    in_leaderboards: tuple[str, ...] = ()
    direction: str = ""  # in METRICS: the one of `directions` that this entry is about
    is_of_folds: bool = False  # in METRICS: the mean over the folds of the test split

    @property
    def rank_key(self) -> RankKey:
        """Which ranks of a cell the metric is of, by the layer own."""
        return RankKey(self.direction, is_of_folds=self.is_of_folds)


# The formulas. Ranks are zero-based.


def recall_at(k: int, ranks: Ranks) -> float:
    """Share of queries with a relevant item in the top k, in percent.

    The literature's R@K: trec_eval's success, not information retrieval's recall.
    """
    return 100 * float((ranks.best < k).mean())


def hits_at(k: int, ranks: Ranks) -> np.ndarray:
    """100 for each query with a relevant item in the top k, else 0, (Q,)."""
    return 100.0 * (ranks.best < k)


def reciprocal_ranks(ranks: Ranks) -> np.ndarray:
    """100 / position of the best relevant item, (Q,)."""
    return 100.0 / (ranks.best + 1)


def _precisions(ranks: Ranks) -> np.ndarray:
    """Precision at each relevant item, (N,): its place among them over its position."""
    first_Q = ranks.counts.cumsum() - ranks.counts
    nth_N = np.arange(len(ranks.values)) - first_Q[ranks.queries]
    return 100.0 * (nth_N + 1) / (ranks.values + 1)


def _sums(ranks: Ranks, values_N: np.ndarray) -> np.ndarray:
    return np.bincount(ranks.queries, values_N, minlength=len(ranks))


def average_precisions(ranks: Ranks) -> np.ndarray:
    """Mean precision at the relevant items, (Q,)."""
    return _sums(ranks, _precisions(ranks)) / ranks.counts


def average_precisions_at_r(ranks: Ranks) -> np.ndarray:
    """Mean precision at the R relevant items, with 0 for those that are not among the
    first R items, (Q,). Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV
    Caption, 2022."""
    is_first_N = ranks.values < ranks.counts[ranks.queries]
    return _sums(ranks, _precisions(ranks) * is_first_N) / ranks.counts


def r_precisions(ranks: Ranks) -> np.ndarray:
    """Share of the R relevant items that are among the first R items, in percent,
    (Q,)."""
    is_first_N = ranks.values < ranks.counts[ranks.queries]
    return 100.0 * _sums(ranks, is_first_N) / ranks.counts


def gains_at(k: int, ranks: Ranks) -> np.ndarray:
    """nDCG of the first k with gains of 0 and 1, in percent, (Q,)."""
    gains_N = np.where(ranks.values < k, 1 / np.log2(ranks.values + 2.0), 0.0)
    ideal_K = (1 / np.log2(np.arange(k) + 2.0)).cumsum()
    return 100.0 * _sums(ranks, gains_N) / ideal_K[np.minimum(ranks.counts, k) - 1]


def inverse_penalties(ranks: Ranks) -> np.ndarray:
    """Number of relevant items over the position of the last one, in percent, (Q,). Ye
    et al., Deep Learning for Person Re-identification, TPAMI 2021."""
    return 100.0 * ranks.counts / (ranks.values[ranks.counts.cumsum() - 1] + 1)


def _gained_by_ties(ranks_Q: np.ndarray, by_other_rule_Q: np.ndarray) -> float:
    gained = 100 * float((by_other_rule_Q < 1).mean())
    return gained - 100 * float((ranks_Q < 1).mean())


def _bound(right_NP: np.ndarray, is_there_NP: np.ndarray) -> float:
    return 100 * float(right_NP.any(1).mean())


def _chance(right_NP: np.ndarray, is_there_NP: np.ndarray) -> float:
    return 100 * float((right_NP.sum(1) / np.maximum(is_there_NP.sum(1), 1)).mean())


# The declarations.

ALL = ("i2t", "t2i", "s2s", "p2r")
PERCENT = {"unit": "%", "range": (0.0, 100.0)}
OF_RANKS = PERCENT | {"directions": ALL}
RANK = {
    "unit": "rank",
    "range": (1.0, np.inf),
    "less_is_better": True,
    "directions": ALL,
}
TIES = {
    "unit": "points",
    "range": (0.0, 100.0),
    "less_is_better": True,
    "in_tables": False,
}
SHARE = {"unit": "share", "range": (0.0, 1.0), "decimals": 4, "less_is_better": True}
SCORE = {"unit": "score", "range": (-np.inf, np.inf), "decimals": 4}
LOW = SCORE | {"less_is_better": True}
TIME = {"range": (0.0, np.inf), "less_is_better": True}


def _recall(k: int) -> Metric:
    formula = f"share of queries with a relevant item among the first {k}"
    compute, of_queries = partial(recall_at, k), partial(hits_at, k)
    return Metric(
        f"r{k}",
        f"R@{k}",
        formula,
        compute,
        of_queries=of_queries,
        in_leaderboards=LEADERBOARD_K.get(k, ()),
        **OF_RANKS,
    )


def _time(name: str, what: str, formula: str, unit: str = MICRO) -> Metric:
    per_second, decimals = (1e6, 2) if unit == MICRO else (1e3, 0)
    heading = f"{what} ({unit})"
    compute = partial(mul, per_second)
    return Metric(name, heading, formula, compute, unit=unit, decimals=decimals, **TIME)


def _of_bins(bins: int) -> Callable[[ScoreSummary], float]:
    return lambda summary: summary.overlaps[bins]


SUM = "sum of R@1, R@5 and R@10 of every direction that is retrieved"
MEAN = "mean rank, counted from 1"
MEDIAN = "floor of the median zero-based rank, plus 1"
GAP = "R@1 if ties counted for the method, minus R@1"
BOUND = "share of phrases with a right proposal at all"
CHANCE = "R@1 that a random order of the proposals expects"
OVERLAP = "area under the lower of the densities of matched and of unmatched pairs"
HALF = "S from histograms of half the bins"
DOUBLE = "S from histograms of double the bins"
DISTANCE = (
    "1 - the Kolmogorov-Smirnov distance of matched and unmatched pairs, bounds S"
)
MATCHED = "mean score of matched pairs"
UNMATCHED = "mean score of unmatched pairs"

RANK_METRICS = (  # compute(ranks)
    *map(_recall, RECALLED_K),
    Metric(
        "medr",
        "MedR",
        MEDIAN,
        lambda ranks: int(np.median(ranks.best)) + 1,
        decimals=0,
        **RANK,
    ),
    Metric(
        "meanr",
        "MeanR",
        MEAN,
        lambda ranks: float(ranks.best.mean()) + 1,
        in_tables=False,
        **RANK,
    ),
)


POSITION = "100 / position of the best relevant item, mean over queries"
PRECISION = "mean precision at the relevant items, mean over queries"
AT_R = "the same, with 0 for those that are not among the first R of R relevant ones"
R_PRECISION = (
    "share of relevant items among the first R of R relevant ones, mean over queries"
)
NDCG = "discounted gains of the first 10, 1 for a relevant item, over the largest possible ones"
PENALTY = "number of relevant items / position of the last one, mean over queries"


def _mean_over_queries(
    name: str,
    heading: str,
    formula: str,
    of_queries: Callable[[Ranks], np.ndarray],
    needs_all: bool = True,
) -> Metric:
    return Metric(
        name,
        heading,
        formula,
        lambda ranks: float(of_queries(ranks).mean()),
        of_queries=of_queries,
        needs_all=needs_all,
        in_records=False,
        in_tables=False,
        **OF_RANKS,
    )


ALL_RANKS = (  # compute(ranks), of the ranks beside a record
    _mean_over_queries("mrr", "MRR", POSITION, reciprocal_ranks, needs_all=False),
    _mean_over_queries("map", "mAP", PRECISION, average_precisions),
    _mean_over_queries("map_r", "mAP@R", AT_R, average_precisions_at_r),
    _mean_over_queries("r_precision", "R-precision", R_PRECISION, r_precisions),
    _mean_over_queries("ndcg10", "nDCG@10", NDCG, partial(gains_at, 10)),
    _mean_over_queries("minp", "mINP", PENALTY, inverse_penalties),
)
TIE_GAP = Metric(  # compute(ranks_Q, by_other_rule_Q)
    "r1_tie_gap",
    "R@1 gained by ties",
    GAP,
    _gained_by_ties,
    directions=("i2t", "t2i"),
    **TIES,
)
PROPOSAL_METRICS = (  # compute(right_NP, is_there_NP), of phrase localisation
    Metric("p2r_bound", "upper bound", BOUND, _bound, **PERCENT),
    Metric("p2r_chance_r1", "R@1 by chance", CHANCE, _chance, **PERCENT),
)
SCORE_METRICS = (  # compute(summary)
    Metric("overlap_s", "S", OVERLAP, _of_bins(BINS), **SHARE),
    Metric(
        "overlap_s_half_bins", "S, half the bins", HALF, _of_bins(BINS // 2), **SHARE
    ),
    Metric(
        "overlap_s_double_bins",
        "S, double the bins",
        DOUBLE,
        _of_bins(BINS * 2),
        **SHARE,
    ),
    Metric("one_minus_ks", "1 - KS", DISTANCE, attrgetter("one_minus_ks"), **SHARE),
    Metric(
        "mean_matched", "mean of matched", MATCHED, attrgetter("mean_matched"), **SCORE
    ),
    Metric(
        "mean_unmatched",
        "mean of unmatched",
        UNMATCHED,
        attrgetter("mean_unmatched"),
        **LOW,
    ),
)
TIMES = (  # compute(seconds), of the costs
    _time("per_pair", "score a pair", "time to score a pair"),
    _time("per_image", "encode an image", "time to encode an image"),
    _time("per_caption", "encode a caption", "time to encode a caption"),
    _time("per_batch", "train a batch", "time of a training step", unit="ms"),
)
RSUM = Metric("rsum", "rsum", SUM, sum, unit="%", range=(0.0, 600.0))  # of its recalls


def _in_directions(metrics: Iterable[Metric]) -> list[Metric]:
    """The metrics of ranks as a record has them, once for each of their directions."""
    declared = list(metrics)
    in_directions = []
    for way in ALL:
        for metric in declared:
            if way in metric.directions:
                name, heading = f"{way}_{metric.name}", f"{way} {metric.heading}"
                named = replace(metric, name=name, heading=heading, direction=way)
                in_directions.append(named)
    return in_directions


def _of_folds(metric: Metric) -> Metric:
    """The mean of a metric over the folds of the test split."""
    return replace(
        metric,
        name=f"{FOLDS}{metric.name}",
        heading=f"{metric.heading}, mean of folds",
        decimals=max(1, metric.decimals),
        is_of_folds=True,
    )


def _by_name() -> dict[str, Metric]:
    of_ranks = _in_directions((*RANK_METRICS, *ALL_RANKS))
    folded = [metric for metric in of_ranks if metric.direction in FOLDED]
    of_folds = map(_of_folds, (*folded, RSUM))
    others = (RSUM, *PROPOSAL_METRICS, *SCORE_METRICS, *TIMES)
    everything = (*of_ranks, *others, *of_folds, *_in_directions([TIE_GAP]))
    return {metric.name: metric for metric in everything}


METRICS = _by_name()  # every metric by its key in the record
RSUMS = (RSUM.name, f"{FOLDS}{RSUM.name}")
LARGEST_K = max(RECALLED_K)


def table_metrics(direction: str, folds: bool = False) -> tuple[str, ...]:
    """The metrics that tables of results show for a direction, in their order."""
    names = []
    for name, metric in METRICS.items():
        is_asked = metric.direction == direction and metric.is_of_folds == folds
        if is_asked and metric.in_tables:
            names.append(name)
    return tuple(names)


def leaderboard_metrics(direction: str) -> list[str]:
    """The metrics of a direction that leaderboards show beside the one that ranks."""
    names = []
    for name, metric in METRICS.items():
        is_asked = metric.direction == direction and not metric.is_of_folds
        if is_asked and direction in metric.in_leaderboards:
            names.append(name)
    return names


def rsum_terms(directions: Iterable[str]) -> tuple[str, ...]:
    """The recalls that rsum adds up over these directions."""
    terms = []
    for direction in directions:
        terms += [f"{direction}_r{k}" for k in SUMMED_K]
    return tuple(terms)


def query_terms(name: str, measured: Collection[str]) -> list[Metric]:
    """The means over queries that add up to a metric: itself, or of rsum its recalls.

    `measured` are the metrics of the record, which tell the directions of rsum. Empty:
    the metric is not a mean over queries.
    """
    metric = METRICS[name]
    if name in RSUMS:
        directions = [way for way in SUMMED_DIRECTIONS if f"{way}_r1" in measured]
        prefix = FOLDS if metric.is_of_folds else ""
        return [METRICS[f"{prefix}{term}"] for term in rsum_terms(directions)]
    return [metric] if metric.of_queries else []


# From ranks and scores to the metrics of a record -------------------------------------


def rank_metrics(
    direction: str, ranks: Ranks, metrics: Iterable[Metric] = RANK_METRICS
) -> dict[str, float]:
    """Every metric of the ranks of one direction, under the record's keys: i2t_r1
    and so on. Those of all relevant items are left out where only the best ones are
    known."""
    values = {}
    for metric in metrics:
        is_known = ranks.knows_all or not metric.needs_all
        if direction in metric.directions and is_known:
            values[f"{direction}_{metric.name}"] = metric.compute(ranks)
    return values


def retrieval_metrics(ranks: Mapping[str, Ranks]) -> dict[str, float]:
    """The metrics of every direction, and rsum over all of them."""
    values = {}
    for way, of_way in ranks.items():
        values |= rank_metrics(way, of_way)
    terms = [values[term] for term in rsum_terms(ranks)]
    return values | {RSUM.name: RSUM.compute(terms)}


def fold_metrics(
    ranks: Mapping[str, Ranks], fold_of_query: Mapping[str, np.ndarray]
) -> dict[str, float | dict]:
    """Means over the folds under fold_i2t_r1 and so on; each fold's value under
    fold_values.

    `ranks` are within folds; `fold_of_query` has the fold of each query, (Q,), by
    direction.
    """
    folds = int(max(fold.max() for fold in fold_of_query.values())) + 1
    values: dict[str, list[float]] = {}
    for fold in range(folds):
        within = {}
        for way, of_way in ranks.items():
            within[way] = of_way.at(fold_of_query[way] == fold)
        for name, value in retrieval_metrics(within).items():
            values.setdefault(name, []).append(value)
    means = {f"{FOLDS}{name}": float(np.mean(values[name])) for name in values}
    return means | {"fold_values": values}


def tie_metrics(
    ranks: Mapping[str, Ranks], by_other_rule: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """How much a metric would gain if ties counted for the method instead of against
    it; `by_other_rule` are the best ranks (Q,) if they did."""
    gaps = {}
    for way, of_way in ranks.items():
        gap = TIE_GAP.compute(of_way.best, by_other_rule[way])
        gaps[f"{way}_{TIE_GAP.name}"] = gap
    return gaps


def localisation_metrics(
    ranks: Ranks, right_NP: np.ndarray, is_there_NP: np.ndarray
) -> dict[str, float]:
    """The metrics of the ranks with their rsum, and the limits that the proposals set:
    `right_NP` says which are right, `is_there_NP` which exist."""
    measured = retrieval_metrics({"p2r": ranks})
    for metric in PROPOSAL_METRICS:
        measured[metric.name] = metric.compute(right_NP, is_there_NP)
    return measured


def score_metrics(summary: ScoreSummary) -> dict[str, float | list]:
    """S and the other metrics of scores, with the range and bins of S."""
    settings = {"overlap_range": list(summary.range), "overlap_bins": BINS}
    return settings | {metric.name: metric.compute(summary) for metric in SCORE_METRICS}


def overlap_interval(estimate: float, replicates_R: np.ndarray) -> dict[str, float]:
    """The interval of S of this training over test images; empty: there is none."""
    ends = interval(estimate, replicates_R)
    return dict(zip(INTERVAL_ENDS, ends, strict=True)) if ends else {}
