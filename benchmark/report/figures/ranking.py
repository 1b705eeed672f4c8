"""The leaderboard at a glance: the main metric of every row with its interval, by rank group."""

from collections.abc import Iterator

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import BLUE, GREY
from benchmark.report.interval_figure import Line, Look, intervals, row_mark
from benchmark.scoring import METRICS

NOT_CONVERGED = "C"  # letter of a flag
CONVERGED = Look(title="converged, or not trained in epochs", colour=BLUE)
CUT_SHORT = Look(title="not converged", colour=GREY, face="white")
WHOLE = (float("-inf"), float("inf"))  # of an axis


def leaderboard(inputs: FigureInputs) -> Iterator[ReportFigure]:
    if len(inputs.board.ranked) > 1:
        lines = leaderboard_lines(inputs.board)
        yield ReportFigure(
            name="ranking",
            figure=intervals(lines, band="not told apart from the best"),
            alt=f"{inputs.board.title}: all {len(lines)} rows with a result, each with its 95% "
            f"interval, from {lines[0].label} to {lines[-1].label}",
        )


def leaderboard_lines(board: Board) -> list[Line]:
    """One per row with a result, best first. A band is behind those that cannot be told apart from
    the best, where any two could be."""
    metric = RANKED_BY[board.ranked[0].task]
    letters = comparisons.rank_letters(board)
    if not comparisons.is_compared(board):
        letters = [""] * len(letters)
    lines = []
    for row, group in zip(board.ranked, letters, strict=True):
        marked = flags.letters(flags.row_flags(board, row))
        look = CUT_SHORT if NOT_CONVERGED in marked else CONVERGED
        lines.append(
            Line(
                label=row.title,
                marks=[row_mark(board, row, metric, look)],
                panel=f"{METRICS[metric].heading} on test. Right: rank group; seeds; flags",
                band=WHOLE if set(group) & set(letters[0]) else None,
                beside=f"{group or '-'}; {len(row.played)}; {marked or '-'}",
            )
        )
    return lines


FIGURES = {"first": leaderboard}
