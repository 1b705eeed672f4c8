"""The verdict on a dataset in ten lines, for a reader who reads nothing else. Knows no torch."""

from collections.abc import Sequence

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.claims import FAILS, HOLDS, SEEDS, UNDECIDED, Verdict
from benchmark.papers.printed_tables import papers, printed
from benchmark.report.markdown import escaped
from benchmark.report.pages import result_tables
from benchmark.report.pages.claim_tables import told
from benchmark.report.pages.illustrations import query_seconds, training_seconds
from benchmark.report.pages.paper_tables import obstacles

NAMED = 6  # claims or presets that a line names


def lines(board: Board, verdicts: Sequence[Verdict]) -> list[str]:
    """Sentences as Markdown, the most wanted first."""
    if not board.ranked:
        return ["No preset has a result.", _lost(board)]
    found = [
        *_retrieving(board.retrieval),
        _localising(board.localisation),
        _claims(verdicts),
        _named(verdicts, HOLDS, "Holding"),
        _named(verdicts, FAILS, "Not holding"),
        _leaning(verdicts),
        _printed(board),
        _overlap(board.retrieval),
        _seeds(board),
        _lost(board),
    ]
    return [line for line in found if line]


def _retrieving(board: Board) -> list[str]:
    return [_best(board), _cheapest(board)] if board.ranked else []


def _best(board: Board) -> str:
    best = board.ranked[0]
    interval = result_tables.interval(board, best, "rsum")
    text = f"Best: **{_name(best)}**, rsum {best.mean('rsum'):.1f} (95% interval {interval})"
    return f"{text}{_apart(board)}."


def _localising(board: Board) -> str:
    if not board.ranked:
        return ""
    best = board.ranked[0]
    interval = result_tables.interval(board, best, "p2r_r1")
    return (
        f"Localises phrases best: **{_name(best)}**, R@1 {best.mean('p2r_r1'):.1f} (95% interval "
        f"{interval}; by chance {best.mean('p2r_chance_r1'):.1f}, at most "
        f"{best.mean('p2r_bound'):.1f}){_apart(board)}."
    )


def _apart(board: Board) -> str:
    """Who else may be the best; empty where there is nobody else."""
    groups = comparisons.rank_groups(board)
    level = [_name(s) for s, group in zip(board.ranked, groups, strict=True) if group == 1][1:]
    if len(groups) == 1:
        return ""
    if not level:
        return "; every other preset is told apart from it"
    return f"; not told apart from it: {_listed(level)}"


def _cheapest(board: Board) -> str:
    trained = [s for s in board.ranked if training_seconds(s)]
    fastest = min(board.ranked, key=query_seconds)
    quickest = min(trained, key=training_seconds, default=fastest)
    return (
        f"Cheapest: a query takes the least with {_name(fastest)} "
        f"({1e3 * query_seconds(fastest):.2g} ms, rsum {fastest.mean('rsum'):.1f}), training with "
        f"{_name(quickest)} ({training_seconds(quickest):.0f} s, "
        f"rsum {quickest.mean('rsum'):.1f})."
    )


def _claims(verdicts: Sequence[Verdict]) -> str:
    return f"Of {len(verdicts)} claims of the papers {told(verdicts)}: [claims](claims.md)."


def _named(verdicts: Sequence[Verdict], kind: str, head: str) -> str:
    names = [escaped(v.claim.statement.rstrip(".")) for v in verdicts if v.verdict == kind]
    return f"{head}: {_listed(names, '; ')}." if names else ""


def _leaning(verdicts: Sequence[Verdict]) -> str:
    undecided = [verdict for verdict in verdicts if verdict.verdict == UNDECIDED]
    few = sum(f"{SEEDS} are needed" in verdict.reason for verdict in undecided)
    if not undecided:
        return ""
    towards = sum(verdict.leans == HOLDS for verdict in undecided)
    return (
        f"Undecided claims: {len(undecided)}, leaning to holding: {towards}, with too few seeds "
        f"for a verdict: {few}."
    )


def _printed(board: Board) -> str:
    comparable = [standing for standing in board.ranked if _has_counterpart(board, standing)]
    if comparable:
        presets = f"{len(comparable)} preset{'s' if len(comparable) != 1 else ''}"
        return f"Printed numbers can be compared with ours for {presets}."
    return (
        "Printed numbers stand beside ours for orientation only: no paper measured this data with "
        "these features and this budget."
    )


def _has_counterpart(board: Board, standing: Standing) -> bool:
    """Whether a paper prints a number that may be compared with ours."""
    return any(
        not obstacles(papers()[row.table.partition("/")[0]], board, standing, row.place)
        for row in printed(standing.preset)
    )


def _overlap(board: Board) -> str:
    fit = [standing for standing in board.ranked if not comparisons.is_coarse(standing)]
    if not fit:
        return ""
    least = min(fit, key=lambda standing: standing.mean("overlap_s"))
    return (
        f"Matched and unmatched pairs overlap least with {_name(least)}: "
        f"S = {least.mean('overlap_s'):.3f}."
    )


def _seeds(board: Board) -> str:
    enough, count = sum(len(s.played) >= SEEDS for s in board.ranked), len(board.ranked)
    others = "; of the others small differences may be luck" if enough < count else ""
    return f"Presets played with {SEEDS} seeds or more: {enough} of {count}{others}."


def _lost(board: Board) -> str:
    lost = [outcome for outcome in board.outcomes if not outcome.is_ok]
    if not lost:
        return f"Cells with a result: all {len(board.outcomes)}."
    reasons = f"[the reasons](datasets/{board.dataset}.md)"
    return f"Cells without a result: {len(lost)} of {len(board.outcomes)}, with {reasons}."


def _name(standing: Standing) -> str:
    return escaped(standing.row.title)


def _listed(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - NAMED
    return between.join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
