"""Every comparison of the claims with its interval and its verdict, as a forest plot."""

from collections.abc import Iterator, Sequence

from benchmark.boards.claims import Verdict
from benchmark.papers.claimed_quantities import quantity
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import BLUE, GREEN, GREY, ORANGE
from benchmark.report.interval_figure import Line, Look, Mark, intervals
from benchmark.stats.verdicts import Conclusion

LOOKS = {
    Conclusion.HOLDS: Look(title="holds", colour=GREEN),
    Conclusion.REVERSED: Look(title="reversed", colour=ORANGE, marker="X"),
    Conclusion.NO_DIFFERENCE: Look(title="no difference", colour=BLUE, marker="d"),
    Conclusion.BETTER: Look(title="does not hold: better", colour=ORANGE, marker="^"),
    Conclusion.WORSE: Look(title="does not hold: worse", colour=ORANGE, marker="v"),
    Conclusion.UNDECIDED: Look(title="undecided", colour=GREY, marker="s"),
}
MARGIN = Look(title="margin of the claim", colour=GREY, marker="|", size=11)
PRINTED = Look(title="printed in the paper", colour="black", marker="D", face="none")


def claims(inputs: FigureInputs) -> Iterator[ReportFigure]:
    lines = claim_lines(inputs.verdicts)
    if lines:
        yield ReportFigure(
            name="claims",
            figure=intervals(lines, verticals=[0]),
            alt=f"{inputs.board.title}: {len(lines)} comparisons of the claims, each with the "
            "difference, its 95% interval and the printed one",
        )


def claim_lines(verdicts: Sequence[Verdict]) -> list[Line]:
    """One per comparison with an interval; every quantity has its own axis."""
    lines = []
    for verdict in verdicts:
        for pair in (pair for pair in verdict.pairs if pair.interval):
            ends = (pair.margin,) if pair.rule.kind == "not_better" else (-pair.margin, pair.margin)
            marks = [Mark(value=end, look=MARGIN) for end in ends if end]
            marks.append(
                Mark(
                    value=pair.difference,
                    look=LOOKS[pair.conclusion],
                    ends=pair.interval,
                    is_of_these_trainings=pair.comparison.is_of_these_trainings,
                )
            )
            if pair.printed is not None:
                marks.append(Mark(value=pair.printed, look=PRINTED))
            label, heading = verdict.claim.statement, quantity(verdict.claim.metric).heading
            if len(verdict.pairs) > 1:
                label = f"{' over '.join(pair.comparison.titles)}: {label}"
            panel = f"difference of {heading}; right of 0: the first preset is better"
            lines.append(Line(label=label, marks=marks, panel=panel))
    return lines


FIGURES = {"claims": claims}
