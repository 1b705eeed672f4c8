"""A pair of results as it is put to the rules of verdicts: two presets of a season, or
what was made elsewhere, query by query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pandas as pd

from benchmark.boards import comparisons as of_boards
from benchmark.boards import flags
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board, Row
from benchmark.boards.claims import margin_of
from benchmark.commands import conventions
from benchmark.commands.result_files import (
    ENOUGH,
    METRIC,
    ONE_WAY,
    VALUE,
    Kind,
    Result,
)
from benchmark.core.errors import UserError, suggested
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks
from benchmark.features.embedding_files import NOWHERE
from benchmark.papers.printed_tables import Part, sides
from benchmark.scoring.corrections import GRIDS
from benchmark.scoring.metrics import (
    FOLDS,
    METRICS,
    RECALLED_K,
    SUMMED_K,
    Metric,
    query_terms,
)
from benchmark.season.plugins import presets
from benchmark.stats import comparisons, significance, verdicts
from benchmark.stats.claim_kinds import ClaimKind, Conclusion
from benchmark.stats.comparisons import Comparison, Sample, Spread
from benchmark.stats.significance import ROUNDING, Constant
from benchmark.stats.verdicts import Flag, Rule, Verdict

DECLARED = {
    name.removeprefix(f"{metric.direction}_")
    for name, metric in METRICS.items()
    if metric.direction and not metric.is_of_folds
}
R1 = "r1"  # what is judged of ranks in one direction
THESE_TRAININGS = (
    "nothing is known of other trainings: the verdict is for these very ones, and for "
    "other queries alone"
)
NO_SCALE = "margin 0, as the scale of the values is not known: --margin gives another"
BoardAndRow = tuple[Board, Row]  # of a preset


@dataclass(frozen=True, kw_only=True)
class Question:
    """A claim on A and B, as it is asked of every pair. Raises UserError for a margin
    that is no number from 0."""

    kind: ClaimKind
    metric: str | None  # None: the usual one of the results
    margin: float | None  # None: that of verdicts
    is_reversed: bool = False  # it names B first

    def __post_init__(self) -> None:
        check_margin(self.margin)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A pair of results, to be concluded on together with others."""

    verdict: Verdict
    unit: str  # what is drawn anew: images, queries, clusters
    queries: int
    notes: list[str]  # what a reader must know


def check_margin(margin: float | None) -> None:
    """Raise UserError for a margin that is given and is no number from 0."""
    if margin is not None and not 0 <= margin < inf:
        raise UserError("--margin", "a number from 0", margin, "correct it")


def concluded(judged: Sequence[Judged]) -> list[Verdict]:
    """The verdicts on pairs with what they conclude, with Holm's p over them."""
    settled = []
    for (verdict,) in verdicts.judge([[each.verdict] for each in judged]):
        blocked = verdict.blocked
        is_identical = blocked is not None and blocked.letter == flags.identical.letter
        # Identical results are no evidence of a difference, and satisfy a claim that
        # denies one: for these trainings, as a refactored program repeats them.
        if is_identical and verdict.rule.kind.denies:
            verdict = replace(
                verdict,
                conclusion=Conclusion.HOLDS,
                on_test_set=Conclusion.HOLDS,
                reason="identical for these trainings",
                blocked=None,
            )
        settled.append(verdict)
    return settled


# Presets of a season ------------------------------------------------------------------


def of_season(first: BoardAndRow, second: BoardAndRow, question: Question) -> Judged:
    """A pair of presets as their report puts it. All rows of the board tell how far
    trainings lie apart. Raises UserError for a metric that one of them lacks."""
    (board, row), (other_board, against) = first, second
    names = [row.preset, against.preset]
    metric = question.metric or RANKED_BY[row.task]
    for side in sides(metric):
        if side not in METRICS:
            raise no_metric(side, list(board.ways))
    if board is not other_board:
        raise UserError(
            ", ".join(names),
            expected="presets of one season, on one dataset",
            found=f"{board.dataset} of {row.played[0].record.season} and "
            f"{other_board.dataset} of {against.played[0].record.season}",
            do="choose presets of one season, or judge tables: rematch export --queries",
        )
    comparison = of_boards.compare(board, row, against, metric)
    if comparison is None:
        expected = f"{metric} of both on one dataset"
        advice = "choose other presets, or another metric"
        raise UserError(", ".join(names), expected, "none", advice)
    is_half = len(board.ways) == 1
    compared = flags.Compared(board=board, comparison=comparison)
    verdict = Verdict(
        comparison=comparison,
        rule=_rule(question, metric, comparison, is_half),
        blocked=flags.obstacle(compared),
        biases=flags.biases(compared),
    )
    cautions = flags.claim_flags(board, names, [verdict])
    return Judged(
        verdict=verdict,
        unit="images",
        queries=board.queries_in(directions_of(metric, board.ways)),
        notes=[flags.said(flag) for flag in cautions],
    )


def no_metric(name: str, ways: Sequence[str]) -> UserError:
    """For a name that is no metric of these directions."""
    known = ["rsum", *(f"{way}_{R1}" for way in ways), "..."]
    if len(ways) == 1:
        known = [f"r{cut}" for cut in RECALLED_K] + ["medr", "mrr", "..."]
    near = suggested(name, {*METRICS, *DECLARED} if len(ways) == 1 else METRICS)
    for way in ways:
        if f"{way}_{name}" in METRICS:
            near = f"{name!r}, of which direction is not said"
            break
    return UserError(
        METRIC,
        expected=f"one of {', '.join(known)}",
        found=near,
        do="name one with --metric, or after 'by' in the claim",
    )


def trains(preset: str) -> bool:
    """Whether a preset has trainings of its own; "" where none is known."""
    if preset.endswith(tuple(f"_{how}" for how in GRIDS)):  # a season's correction
        return False
    _, declared = presets().get(preset, (None, None))
    if declared is None:
        return True
    return not declared.fuse and declared.options.get("trains", True) is True


def _rule(
    question: Question, metric: str, comparison: Comparison, is_half: bool
) -> Rule:
    """With the margin of a difference that nobody printed, if none is given; 0 without
    a metric."""
    margin = margin_for(question, metric, comparison.level, is_half)
    return Rule(kind=question.kind, margin=margin)


def margin_for(
    question: Question, metric: str, level: float, is_half: bool = False
) -> float:
    """What counts as no difference of a metric; `level` is the better of two values."""
    if question.margin is not None:
        return question.margin
    if not metric:
        return 0.0
    part = Part(presets=["a", "b"], kind=question.kind.name, metric=metric)
    is_half = is_half and "rsum" in metric
    return margin_of(part, None, is_half, level)


# Results from anywhere ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What two results are compared by."""

    kind: Kind  # of their values
    shown: str  # its name, as it was asked for
    metric: str = ""  # its key; "": values of an unknown scale
    terms: Sequence[Metric] = ()  # means over queries that add up to it, of ranks

    @property
    def is_of_one_way(self) -> bool:
        """Whether it is an rsum of a single direction."""
        return len(self.terms) == len(SUMMED_K)

    @property
    def less_is_better(self) -> bool:
        return self.kind == Kind.RANKS and METRICS[self.metric].less_is_better


def measure_of(first: Result, second: Result, asked: str | None) -> Measure:
    """Raises UserError for a metric that their ranks do not give."""
    kind = conventions.common_kind(first, second)
    if kind == Kind.HITS:  # whose unit and margin they have
        return Measure(kind=kind, shown=VALUE, metric=f"{ONE_WAY}_{R1}")
    if kind != Kind.RANKS:
        return Measure(kind=kind, shown=VALUE)
    ways = list(first.table.index.unique("direction"))
    is_one_way = len(ways) == 1
    shown = asked or (R1 if is_one_way else "rsum")
    metric = shown
    if shown in DECLARED and is_one_way:
        key = RankKey.read(ways[0])
        metric = f"{FOLDS if key.is_of_folds else ''}{key.direction}_{shown}"
    if metric not in METRICS:
        raise no_metric(shown, ways)
    recalls = [f"{RankKey.read(way).direction}_{R1}" for way in ways]
    terms = query_terms(metric, recalls)
    is_known = {term.rank_key.column for term in terms} <= set(ways)
    if not terms or not is_known or any(term.needs_all for term in terms):
        expected = f"a mean over queries of their best ranks of {', '.join(ways)}"
        where, advice = f"{first.name}: {shown}", "name another --metric"
        raise UserError(where, expected, "another", advice)
    for result in (first, second):
        refuse_heap(result, terms)
    return Measure(kind=Kind.RANKS, shown=shown, metric=metric, terms=terms)


@dataclass(frozen=True, kw_only=True)
class MeasuredResults:
    """Results on the same queries by what they are compared by."""

    measure: Measure
    samples: Mapping[str, Sample]  # by name; of others on these queries, too
    spread: Spread  # how far their trainings lie apart
    notes: list[str]  # what a reader must know


def measured_together(
    results: Sequence[Result], given: Sequence[Result], metric: str | None
) -> MeasuredResults:
    """Of results that can be compared; of all that are `given`, those on the same
    queries tell how far trainings lie apart. Raises UserError for a metric that the
    results do not have."""
    first, *others = results
    notes = [*first.notes]
    for other in others:
        notes += [*other.notes, *conventions.notes(first, other)]
    notes = list(dict.fromkeys(notes))  # several may have the same one
    measures = [measure_of(first, other, metric) for other in others or [first]]
    # hits that count as values beside one result do so beside all
    of_values = [each for each in measures if each.kind == Kind.VALUES]
    measure = (of_values or measures)[-1]
    # places that are known of all, where something was not found; None: all places
    depths = [each.depth for each in results if np.isinf(each.table).any(axis=None)]
    cut = min(depths, default=None)
    if cut is not None and any(value_at(cut, term) for term in measure.terms):
        known = {1: "", 2: ", to which both are known"}
        scope = known.get(len(results), ", to which all are known")
        notes.append(f"{measure.shown} of ranks below {cut}{scope}; others count 0")
    samples = {result.name: sampled(result, measure, cut) for result in results}
    presets_of = {result.name: result.preset for result in results}
    for other in given:
        if other.name not in samples and all(
            is_comparable(result, other) for result in results
        ):
            samples[other.name] = sampled(other, measure, cut)
            presets_of[other.name] = other.preset
    trained = [name for name in samples if trains(presets_of[name])]
    spread = comparisons.spread(samples, trained)
    return MeasuredResults(measure=measure, samples=samples, spread=spread, notes=notes)


def of_files(
    first: Result, second: Result, given: Sequence[Result], question: Question
) -> Judged:
    """The same of results from anywhere, which can be compared. The seeds of all that
    are given on the same queries tell how far trainings lie apart. Raises UserError for
    a metric that they do not have."""
    measured = measured_together([first, second], given, question.metric)
    measure, notes = measured.measure, [*measured.notes]
    comparison = compared(first, second, measured)
    if comparison.is_of_these_trainings:
        notes.append(THESE_TRAININGS)
    if not measure.metric and question.margin is None:
        notes.append(NO_SCALE)
    if isinstance(comparison.estimate, Constant):
        alike = "the difference is the same for all"
        notes.append(f"{alike}: p is that of the exact sign test")
    blocked = too_few(first)
    if blocked is None and _bytes_of(first) == _bytes_of(second):
        blocked = flags.identical.flag("identical results")
    verdict = Verdict(
        comparison=comparison,
        rule=_rule(question, measure.metric, comparison, measure.is_of_one_way),
        blocked=blocked,
    )
    return Judged(
        verdict=verdict,
        unit=unit_of(first),
        queries=queries_of(first, measure),
        notes=notes,
    )


def directions_of(metric: str, ways: Sequence[str]) -> set[str]:
    """The directions of the queries that a metric, or a difference of two, is of."""
    directions = set()
    for side in sides(metric):
        terms = query_terms(side, [f"{way}_{R1}" for way in ways])
        directions |= {term.direction for term in terms}
    return directions or set(ways)


def queries_of(result: Result, measure: Measure) -> int:
    """How many queries a result is measured on."""
    ways = result.table.index.get_level_values("direction")
    if not measure.terms:
        return len(ways)
    return int(ways.isin({term.direction for term in measure.terms}).sum())


def compared(first: Result, second: Result, measured: MeasuredResults) -> Comparison:
    """The difference of two of the results that are measured."""
    samples = [measured.samples[result.name] for result in (first, second)]
    reach, units = reach_of([first, second], measured.measure), 0
    differences_G = samples[0].mean_noise - samples[1].mean_noise
    if np.abs(differences_G).max() * len(differences_G) <= ROUNDING * reach:
        units = int(effective_clusters(first))  # all clusters have one difference
    names = (first.name, second.name)
    return comparisons.compare(
        names,
        samples,
        measured.spread,
        less_is_better=measured.measure.less_is_better,
        metric=measured.measure.shown,
        titles=names,
        reach=reach if units else 0.0,
        units=units,
    )


def too_few(result: Result) -> Flag | None:
    """Why nothing can be concluded from its queries, however they lie."""
    queries, clusters = fewest_queries(result), effective_clusters(result)
    if queries >= MIN_TEST_QUERIES and clusters >= ENOUGH:
        return None
    worth = f"{len(cluster_sizes(result))} clusters, worth {clusters:.1f} of equal size"
    few = f"nothing can be concluded from {queries} queries in {worth}"
    return flags.few_queries.flag(few)


def _bytes_of(result: Result) -> list[bytes]:
    """The values of each seed, in an order that does not depend on their names; of
    hits in per cent, since one side may have 0 and 1 and the other 0 and 100."""
    table = result.percent if result.kind == Kind.HITS else result.table
    return sorted(column.to_numpy().tobytes() for _, column in table.items())


def fewest_queries(result: Result) -> int:
    """Of the direction that has the fewest."""
    directions = result.table.index.get_level_values("direction")
    return int(directions.value_counts().min())


def unit_of(result: Result) -> str:
    """What is drawn anew."""
    sizes = cluster_sizes(result)
    return "queries" if len(sizes) == sizes.sum() else "clusters"


def cluster_sizes(result: Result) -> pd.Series:
    """Queries of each cluster."""
    return result.facts["cluster"].value_counts()


def effective_clusters(result: Result) -> float:
    """How many clusters of equal size tell as much."""
    sizes = cluster_sizes(result)
    return sizes.sum() ** 2 / (sizes**2).sum()


def is_comparable(first: Result, second: Result) -> bool:
    """Whether both are on one convention, as far as that shows."""
    try:
        conventions.check(first, second)
    except UserError:
        return False
    return True


def value_at(rank: float, term: Metric) -> float:
    """What a metric gives a query of this rank."""
    return float(term.of_queries(Ranks.of_best(np.array([rank])))[0])


def refuse_heap(result: Result, terms: Sequence[Metric]) -> None:
    """Raise UserError where so many queries have the last rank that they may be those
    that were not found, and a metric would count them as found."""
    last = conventions.heap_at_end(result)
    if last is None:
        return
    for term in terms:
        if value_at(last, term) > np.ptp(term.range) / 2:
            count = int((result.table == last).sum(axis=None))
            expected = "ranks up to its K of all queries"
            evidence = (
                f"rank {last}, the last one, in {count} rows: a hit, or not found?"
            )
            advice = (
                "leave it empty if not found, or add a column depth: how many items "
            )
            advice += "were listed"
            raise UserError(
                f"{result.name}: {term.heading}", expected, evidence, advice
            )


def reach_of(both: Sequence[Result], measure: Measure) -> float:
    """The largest difference that a query can have: of values, which they have here."""
    if measure.kind == Kind.HITS:
        return 100.0
    if measure.kind == Kind.RANKS:
        return float(sum(np.ptp(term.range) for term in measure.terms))
    values = np.concatenate([result.table.to_numpy().ravel() for result in both])
    return float(np.ptp(values))


def interval_of_level(result: Result, measured: MeasuredResults) -> tuple[float, float]:
    """For other queries and, where something is known of them, for other trainings: of
    means within known bounds Wilson's, of other values Student's. Clusters of unequal
    size tell their variance as well as fewer equal ones do, so t has the degrees of
    freedom of those."""
    sample, measure = measured.samples[result.name], measured.measure
    variance = float(np.square(sample.mean_noise).sum())
    freedom = max(effective_clusters(result) - 1, 1.0)
    t = significance.t_of(freedom)
    level, ends = sample.mean, (-np.inf, np.inf)
    if measure.kind == Kind.VALUES:
        half = t * float(np.sqrt(variance))
        low, high = level - half, level + half
    else:
        ends = 0.0, reach_of([result], measure)
        low, high = significance.score_interval(level, variance, ends[1], sample.units)
        wider = t / significance.Z
        low, high = level - wider * (level - low), level + wider * (high - level)
    part = measured.spread.part(result.name, len(sample.values))
    if part is not None:
        low, high = significance.with_seeds(level, (low, high), part)
    return max(low, ends[0]), min(high, ends[1])


def sampled(result: Result, measure: Measure, cut: int | None = None) -> Sample:
    """The mean of each seed. Ranks from `cut` count as not found. Raises UserError for
    a metric beyond the ranks that are known."""
    codes, _ = pd.factorize(result.facts["cluster"])
    cluster_of_query = pd.Series(codes, result.facts.index)
    if not measure.terms:
        table = result.percent if measure.kind == Kind.HITS else result.table
        values = {seed: column.to_numpy() for seed, column in table.items()}
        return comparisons.sample_of_queries([(codes, values)])
    table, end = result.table, result.depth
    if cut is not None:
        table, end = table.where(table < cut, np.inf), cut
    means = []
    for term in measure.terms:
        clusters_Q = cluster_of_query.loc[[term.rank_key.column]].to_numpy()
        values = {}
        for seed, ranks in table.loc[[term.rank_key.column]].items():
            nearest = Ranks.of_best(ranks.replace(np.inf, end).to_numpy())
            farthest = Ranks.of_best(ranks.replace(np.inf, NOWHERE).to_numpy())
            values[seed] = term.of_queries(farthest)
            gap = np.abs(term.of_queries(nearest) - values[seed]).max()
            # The next item may be the one that was not found, and a hit.
            if gap > np.ptp(term.range) / 2:
                evidence = f"queries not found among the first {end}"
                advice = (
                    "name a metric of fewer items, or add a column depth: how many "
                )
                advice += "items were listed"
                heading = term.heading.removeprefix(f"{term.direction} ")
                where = f"{result.name}: {heading}"
                raise UserError(where, "ranks to its K", evidence, advice)
        means.append((clusters_Q, values))
    return comparisons.sample_of_queries(means)
