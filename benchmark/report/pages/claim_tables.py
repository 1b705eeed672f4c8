"""The verdicts on claims as tables. Knows no torch."""

from collections.abc import Sequence

from benchmark.analysis.claims import Conclusion, Tested, Verdict, counts
from benchmark.analysis.comparisons import Comparison
from benchmark.protocol import METRICS
from benchmark.report.pages.result_tables import NONE, between, spread
from benchmark.report.table_formats import Entry, Table

WORDS = ["claim", "verdict", "compared", "metric"]
INTERVAL = "95% interval"
OF_TEST_SET = "95% over test images, these trainings only"  # an interval of a single seed
VERBS = {  # of one claim, and of several
    Conclusion.HOLDS: ("holds", "hold"),
    Conclusion.FAILS: ("does not hold", "do not hold"),
    Conclusion.UNDECIDED: ("is undecided", "are undecided"),
    Conclusion.NOT_RUN: ("was not run", "were not run"),
}
SIGNS = {"ordered": "beats", "alike": "is like", "not_better": "does not beat"}


def claims_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The verdicts on claims that were run: one row per comparison, the verdict in the first."""
    run = [verdict for verdict in verdicts if verdict.conclusion != Conclusion.NOT_RUN]
    compared = [tested.comparison for verdict in run for tested in verdict.tested]
    intervals = [INTERVAL, *[OF_TEST_SET] * any(map(is_of_test_set, compared))]
    numbers = ["seeds", "here", "difference", *intervals, "p, Holm", "printed"]
    return Table(
        title=title,
        heads=[*WORDS, *numbers, "remark"],
        rows=[row for verdict in run for row in _rows(verdict, intervals)],
        names=len(WORDS),
        has_remarks=True,
    )


def not_run_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The claims that were not run, with the reason and with what the paper prints."""
    heads = ["claim", "why it was not run", "compared", "metric", "printed", "remark"]
    rows = [
        [
            verdict.claim.statement,
            verdict.reason,
            f" {_sign(verdict)} ".join(verdict.claim.presets) or NONE,
            _metric(verdict),
            _printed(verdict),
            _source(verdict),
        ]
        for verdict in verdicts
        if verdict.conclusion == Conclusion.NOT_RUN
    ]
    return Table(title=title, heads=heads, rows=rows, names=4, has_remarks=True)


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims have each conclusion: "1 holds, 0 do not hold, ..."."""
    numbers = counts(verdicts)
    return ", ".join(f"{numbers[key]} {verbs[numbers[key] != 1]}" for key, verbs in VERBS.items())


def is_of_test_set(comparison: Comparison) -> bool:
    """Whether the interval says nothing of other trainings: there is a single common seed."""
    return comparison.seeds == 1 and comparison.interval is not None


def _rows(verdict: Verdict, intervals: Sequence[str]) -> list[list[str | Entry]]:
    lean = f", leans to: {verdict.leans}" if verdict.leans else ""
    claim, conclusion = verdict.claim.statement, Entry(verdict.conclusion, is_bold=True)
    first, *others = [_pair(verdict, tested, intervals) for tested in verdict.tested]
    rows = [[claim, conclusion, *first, f"{verdict.reason}{lean}. {_source(verdict)}"]]
    return rows + [["", "", *other, ""] for other in others]


def _source(verdict: Verdict) -> str:
    """Where the paper says so, with the note on the claim."""
    return f"{verdict.paper}: {verdict.claim.where}. {verdict.claim.note}".rstrip()


def _sign(verdict: Verdict) -> str:
    return SIGNS[verdict.claim.kind]


def _metric(verdict: Verdict) -> str:
    return METRICS[verdict.claim.metric].heading


def _printed(verdict: Verdict) -> str:
    """The numbers that the paper prints for what it compares."""
    printed = verdict.printed or verdict.claim.printed
    numbers = [f"{value:.{_decimals(verdict)}f}" for value in printed if value is not None]
    return " against ".join(numbers) or NONE


def _pair(verdict: Verdict, tested: Tested, intervals: Sequence[str]) -> list[str]:
    comparison, decimals = tested.comparison, _decimals(verdict)
    own = OF_TEST_SET if is_of_test_set(comparison) else INTERVAL
    ends = _interval(comparison, decimals)
    return [
        f"{comparison.first} {_sign(verdict)} {comparison.second}",
        _metric(verdict),
        str(comparison.seeds),
        f"{spread(comparison.firsts, decimals)} against {spread(comparison.seconds, decimals)}",
        f"{comparison.difference:+.{decimals}f}",
        *(ends if head == own else NONE for head in intervals),
        NONE if tested.adjusted_p is None else f"{tested.adjusted_p:.2g}",
        NONE if tested.printed is None else f"{tested.printed:+.{decimals}f}",
    ]


def _decimals(verdict: Verdict) -> int:
    return METRICS[verdict.claim.metric].decimals


def _interval(comparison: Comparison, decimals: int) -> str:
    if comparison.interval is None:
        return NONE
    low, high = comparison.interval
    return between(f"{low:+.{decimals}f}", f"{high:+.{decimals}f}")
