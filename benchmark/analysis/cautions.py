"""What of the presets of a claim speaks against trusting the verdict on it. Knows no torch."""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.departures import Departure, departures
from benchmark.papers.claimed_quantities import is_time, quantity
from benchmark.papers.equal_settings import scaled_differently

CAUTIONS = (
    Departure.CHANCE,
    Departure.START,
    Departure.TEXT,
    Departure.ENCODER,
    Departure.INPUT,
    Departure.RISING,
    Departure.EARLY,
    Departure.ADDED,
)
UNEQUAL = "unequal settings"
EVENED = "evened settings"
TUNED = "tuned on one side"
THESE_IMAGES = "these test images"
SAID_AT_ONCE = (  # beside a verdict
    Departure.CHANCE,
    Departure.START,
    Departure.TEXT,
    Departure.INPUT,
    Departure.EARLY,
    UNEQUAL,
    EVENED,
    TUNED,
)


def cautions(board: Board, compared: Sequence[Comparison], presets: Iterable[str]) -> list[str]:
    """What is said of the presets of a claim, then of each comparison."""
    standings = [board.standing(preset) for preset in presets]
    named = {
        kind: [s.row.title for s in standings if kind in departures(board, s)] for kind in CAUTIONS
    }
    of_presets = [f"{kind}: {'; '.join(whose)}" for kind, whose in named.items() if whose]
    of_pair = (_unequal, _evened, _tuned, _weaker_member, _of_these_images)
    of_pairs = [caution(board, comparison) for comparison in compared for caution in of_pair]
    return of_presets + list(dict.fromkeys(filter(None, of_pairs)))


def _unequal(board: Board, comparison: Comparison) -> str:
    """What a season scales of two presets of one method to different values."""
    standings = _of_one_method(board, comparison)
    if not standings:
        return ""
    records = [standing.outcomes[0].record for standing in standings]
    changed = [{n: r.options[n] for n in r.scaled if n in r.options} for r in records]
    others = scaled_differently(*changed, *(standing.row.options for standing in standings))
    values = {name: [str(record.options.get(name)) for record in records] for name in others}
    named = [f"{name} {' and '.join(of)}" for name, of in values.items() if len(set(of)) > 1]
    return f"{UNEQUAL}: {', '.join(named)}" if named else ""


def _evened(board: Board, comparison: Comparison) -> str:
    """What the paper has different for two presets of one method, and the season has not."""
    standings = _of_one_method(board, comparison)
    if not standings:
        return ""
    records = [standing.outcomes[0].record for standing in standings]
    rows = [standing.row.options for standing in standings]
    named = [
        name
        for name in sorted({*records[0].scaled, *records[1].scaled})
        if rows[0].get(name) != rows[1].get(name)
        and records[0].options.get(name) == records[1].options.get(name)
    ]
    return f"{EVENED}: {', '.join(named)}" if named else ""


def _tuned(board: Board, comparison: Comparison) -> str:
    """Which of two presets, or of their methods, had trials on validation alone. Trials of one
    preset serve its method: against another method they count for all of its presets."""
    names = (comparison.first, comparison.second)
    standings = [standing for name in names if (standing := board.standing(name))]
    tried = [s for s in standings if s.preset in board.tried]
    if len({s.method for s in standings}) > 1:
        methods = {s.method for s in board.standings if s.preset in board.tried}
        tried = [s for s in standings if s.method in methods]
    return f"{TUNED}: {tried[0].row.title}" if len(standings) == 2 and len(tried) == 1 else ""


def _of_one_method(board: Board, comparison: Comparison) -> list[Standing]:
    """Both presets, if both are trained alike: anew, or from another one; else none."""
    names = (comparison.first, comparison.second)
    standings = [standing for name in names if (standing := board.standing(name))]
    kinds = {(s.method, bool(s.row.start), bool(s.row.fuse)) for s in standings}
    is_one = len(standings) == 2 and len(kinds) == 1 and not standings[0].row.fuse
    return standings if is_one else []


def _weaker_member(board: Board, comparison: Comparison) -> str:
    """Where a fusion is compared with one of its members, and another one scores higher here."""
    fusion, metric = board.standing(comparison.first), comparison.metric
    names = [of.partition(":")[0] for of in fusion.row.fuse.of] if fusion.row.fuse else []
    if comparison.second not in names or quantity(metric).unit != "%":
        return ""
    means = {name: float(np.mean(comparisons.values(board.standing(name), metric)))
             for name in names if board.standing(name)}  # fmt: skip
    best = max(means, key=means.get)
    if best == comparison.second:
        return ""
    other = f"{board.standing(best).row.title} alone has {quantity(metric).heading}"
    return f"weaker member: {comparison.titles[1]}; {other} {means[best]:.1f}"


def _of_these_images(board: Board, comparison: Comparison) -> str:
    """Where nothing is known of other images: of times there is no sense in that."""
    is_known = comparison.interval is None or comparison.doubt.image_count
    if is_known or is_time(comparison.metric):
        return ""
    return f"{THESE_IMAGES}: the interval is for other trainings only"
