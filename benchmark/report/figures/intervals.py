"""Numbers with their intervals: every row of a leaderboard, and every comparison of
the claims with its verdict, as a forest plot."""

from collections.abc import Iterator, Sequence

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.boards.claims import ClaimTest
from benchmark.core.confidence import PERCENT
from benchmark.papers.printed_tables import quantity
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import BLUE, GREEN, GREY, ORANGE
from benchmark.report.interval_figure import Line, Look, Mark, intervals, row_mark
from benchmark.scoring import METRICS
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.verdicts import Verdict

CONVERGED = Look(title="converged, or not trained in epochs", colour=BLUE)
CUT_SHORT = Look(title="not converged", colour=GREY, face="white")
WHOLE = (float("-inf"), float("inf"))  # of an axis
NOT_BETTER = Look(title="not better by the margin", colour=ORANGE, marker="p")
LOOKS = {
    Conclusion.HOLDS: Look(title="holds", colour=GREEN),
    Conclusion.REVERSED: Look(title="reversed", colour=ORANGE, marker="X"),
    Conclusion.NO_DIFFERENCE: Look(title="no difference", colour=BLUE, marker="d"),
    Conclusion.BETTER: Look(title="does not hold: better", colour=ORANGE, marker="^"),
    Conclusion.WORSE: Look(title="does not hold: worse", colour=ORANGE, marker="v"),
    Conclusion.NOT_BETTER: NOT_BETTER,
    Conclusion.UNDECIDED: Look(title="undecided", colour=GREY, marker="s"),
}
MARGIN = Look(title="margin of the claim", colour=GREY, marker="|", size=11)
PRINTED = Look(title="printed in the paper", colour="black", marker="D", face="none")


def leaderboard(inputs: FigureInputs) -> Iterator[ReportFigure]:
    if len(inputs.board.ranked) > 1:
        lines = leaderboard_lines(inputs.board)
        ends = f"from {lines[0].label} to {lines[-1].label}"
        yield ReportFigure(
            name="ranking",
            figure=intervals(lines, band="not significantly different from the best"),
            alt=f"{inputs.board.title}: all {len(lines)} rows with a result, each with "
            f"its {PERCENT} interval, {ends}",
        )


def leaderboard_lines(board: Board) -> list[Line]:
    """One per row with a result, best first. A band is behind those not significantly
    different from the best, where any two could be."""
    metric = RANKED_BY[board.ranked[0].task]
    alike = set()  # ranks
    if comparisons.is_compared(board):
        alike = {1, *comparisons.rivals(board)[0]}
    lines = []
    for rank, row in enumerate(board.ranked, 1):
        letters = flags.letters(flags.row_flags(board, row))
        is_cut_short = flags.has_flag(board, row, flags.NOT_CONVERGED)
        look = CUT_SHORT if is_cut_short else CONVERGED
        line = Line(
            label=row.title,
            marks=[row_mark(board, row, metric, look)],
            panel=f"{METRICS[metric].heading} on test. Right: seeds; flags",
            text=f"{len(row.played)}; {letters or '-'}",
            band=WHOLE if rank in alike else None,
        )
        lines.append(line)
    return lines


def claims(inputs: FigureInputs) -> Iterator[ReportFigure]:
    lines = claim_lines(inputs.claim_tests)
    if lines:
        yield ReportFigure(
            name="claims",
            figure=intervals(lines, verticals=[0]),
            alt=f"{inputs.board.title}: {len(lines)} comparisons of the claims, each "
            f"with the difference, its {PERCENT} interval and the printed one",
        )


def claim_lines(claim_tests: Sequence[ClaimTest]) -> list[Line]:
    """One per comparison with an interval; every quantity has its own axis."""
    lines = []
    for claim_test in claim_tests:
        for verdict in claim_test.verdicts:
            if not claim_test.is_counted or not verdict.interval:
                continue
            label = claim_test.claim.statement
            if len(claim_test.verdicts) > 1:
                label = f"{verdict.comparison.names}: {label}"
            heading = quantity(verdict.comparison.metric).heading
            panel = f"difference of {heading}; right of 0: the first preset is better"
            lines.append(Line(label=label, marks=_verdict_marks(verdict), panel=panel))
    return lines


def _verdict_marks(verdict: Verdict) -> list[Mark]:
    """The ends of the margin, the measured difference and the printed one."""
    marks = []
    if verdict.margin and not verdict.rule.kind.is_one_sided:
        marks.append(Mark(value=-verdict.margin, look=MARGIN))
    if verdict.margin:
        marks.append(Mark(value=verdict.margin, look=MARGIN))
    measured = Mark(
        value=verdict.difference,
        look=LOOKS[verdict.conclusion],
        ends=verdict.interval,
        is_of_these_trainings=verdict.comparison.is_of_these_trainings,
    )
    marks.append(measured)
    if verdict.printed is not None:
        marks.append(Mark(value=verdict.printed, look=PRINTED))
    return marks


FIGURES = {"first": leaderboard, "claims": claims}
