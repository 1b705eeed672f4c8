"""The verdicts on claims, as a table and as rows of the forest plot. Knows no torch."""

from collections.abc import Sequence

from benchmark.analysis.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED, Tested, Verdict, counts
from benchmark.analysis.comparisons import Comparison
from benchmark.papers.printed_tables import METRICS
from benchmark.report.figures import forest
from benchmark.report.pages.result_tables import NONE, between, spread
from benchmark.report.table_formats import Cell, Grid

WORDS = ["claim", "verdict", "compared", "metric"]
NUMBERS = ["seeds", "here", "difference", "95% interval", "p, Holm", "printed"]
SAID = {  # of one claim, and of any other number
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
    NOT_RUN: ("was not run", "were not run"),
}
SIGNS = {"ordered": "beats", "alike": "is like", "not_better": "does not beat"}


def claims_grid(title: str, verdicts: Sequence[Verdict]) -> Grid:
    """The verdicts on claims that were run: a row a comparison, the first of a claim tells all."""
    run = [verdict for verdict in verdicts if verdict.verdict != NOT_RUN]
    rows = [row for verdict in run for row in _rows(verdict)]
    return Grid(
        title=title,
        heads=[*WORDS, *NUMBERS, "remark"],
        rows=rows,
        names=len(WORDS),
        has_remarks=True,
    )


def not_run_grid(title: str, verdicts: Sequence[Verdict]) -> Grid:
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
        if verdict.verdict == NOT_RUN
    ]
    return Grid(title=title, heads=heads, rows=rows, names=4, has_remarks=True)


def told(verdicts: Sequence[Verdict]) -> str:
    """How many claims ended how: "1 holds, 0 do not hold, ..."."""
    found = counts(verdicts)
    return ", ".join(f"{n} {SAID[verdict][n != 1]}" for verdict, n in found.items())


def forest_rows(verdict: Verdict) -> list[forest.Comparison]:
    """Of the comparisons that have an interval."""
    margin = verdict.margin
    bounds = {"ordered": (), "alike": (-margin, margin), "not_better": (margin,)}
    return [
        forest.Comparison(
            label=f"{verdict.claim.statement} ({tested.comparison.first} {_sign(verdict)} "
            f"{tested.comparison.second})",
            unit=METRICS[verdict.claim.metric].head,
            difference=tested.comparison.difference,
            low=tested.comparison.interval[0],
            high=tested.comparison.interval[1],
            verdict=tested.side,
            printed=tested.printed,
            bounds=bounds[verdict.claim.kind],
        )
        for tested in verdict.tested
        if tested.comparison.interval
    ]


def _rows(verdict: Verdict) -> list[list[str | Cell]]:
    lean = f", leans to: {verdict.leans}" if verdict.leans else ""
    claim, word = verdict.claim.statement, Cell(verdict.verdict, is_bold=True)
    first, *others = [_pair(verdict, one) for one in verdict.tested]
    rows = [[claim, word, *first, f"{verdict.reason}{lean}. {_source(verdict)}"]]
    return rows + [["", "", *other, ""] for other in others]


def _source(verdict: Verdict) -> str:
    """Where the paper says so, and what is to be known about it."""
    return f"{verdict.paper}: {verdict.claim.where}. {verdict.claim.note}".rstrip()


def _sign(verdict: Verdict) -> str:
    return SIGNS[verdict.claim.kind]


def _metric(verdict: Verdict) -> str:
    return METRICS[verdict.claim.metric].head


def _printed(verdict: Verdict) -> str:
    """What the paper prints of the presets, or of whatever it compares."""
    printed = verdict.printed or verdict.claim.printed
    numbers = [f"{value:.{_decimals(verdict)}f}" for value in printed if value is not None]
    return " against ".join(numbers) or NONE


def _pair(verdict: Verdict, tested: Tested) -> list[str]:
    found = tested.comparison
    decimals = _decimals(verdict)
    return [
        f"{found.first} {_sign(verdict)} {found.second}",
        _metric(verdict),
        str(found.seeds),
        f"{spread(found.firsts, decimals)} against {spread(found.seconds, decimals)}",
        f"{found.difference:+.{decimals}f}",
        _interval(found, decimals),
        NONE if tested.adjusted_p is None else f"{tested.adjusted_p:.2g}",
        NONE if tested.printed is None else f"{tested.printed:+.{decimals}f}",
    ]


def _decimals(verdict: Verdict) -> int:
    return METRICS[verdict.claim.metric].decimals


def _interval(found: Comparison, decimals: int) -> str:
    if found.interval is None:
        return NONE
    return between(f"{found.interval[0]:+.{decimals}f}", f"{found.interval[1]:+.{decimals}f}")
