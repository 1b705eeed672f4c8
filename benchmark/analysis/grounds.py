"""Why a claim was not run on a board, why nothing is concluded from a comparison, and what else a
conclusion rests on.

Nothing is concluded where the spread of trainings is not known, where nothing varies, near chance,
where fine-tuning cost both presets what they began with, where S depends on the number of bins, of
times that were taken in different settings, and with fewer than 100 test queries in a direction.
Knows no torch.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.departures import Departure, departures, is_below_start, other_encoder
from benchmark.analysis.preset_titles import title_of
from benchmark.analysis.time_settings import time_settings
from benchmark.papers.claimed_quantities import is_time, quantity, sides
from benchmark.papers.printed_tables import Claim


class Cause(StrEnum):
    """What decided a conclusion, or stands in its way."""

    INTERVAL = "interval"  # where the interval lies
    CHANCE = "chance"  # p is too large after Holm's adjustment for what the interval says
    FEW_SEEDS = "few seeds"  # the spread of trainings is not known
    NO_SPREAD = "no spread"  # nothing varies
    COARSE_BINS = "coarse bins"  # of S
    NEAR_CHANCE = "near chance"  # a preset has learned next to nothing
    BELOW_START = "below their start"  # fine-tuning cost both presets what they began with
    OTHER_MACHINE = "unlike machines"  # times hang on them
    FEW_QUERIES = "few test queries"  # boards.MIN_TEST_QUERIES
    UNPLAYABLE = "unplayable"  # no preset plays what the claim is about
    NOT_PLAYED = "not played"  # a preset is not of the season
    NO_RESULT = "no result"  # a preset failed, or cannot be played on this data
    NOT_MEASURED = "not measured"  # a preset's records lack the metric


class Ground(NamedTuple):
    """Why a conclusion was reached."""

    cause: Cause
    reason: str  # a short sentence without its full stop, for readers; plain text


NOTHING_VARIES = Ground(Cause.NO_SPREAD, "nothing varies, so nothing tells the error")


def lack(claim: Claim, board: Board) -> Ground | None:
    """Why a claim was not run; None where it was."""
    if claim.unplayed:
        return Ground(Cause.UNPLAYABLE, claim.unplayed.removesuffix("."))
    for preset in claim.presets:
        standing = board.standing(preset)
        if standing is None:
            return Ground(Cause.NOT_PLAYED, f"{title_of(preset)} was not played")
        if not standing.played:
            lost = standing.outcomes[0].record
            status = lost.status.replace("_", " ")
            return Ground(Cause.NO_RESULT, f"{standing.row.title}: {status}: {lost.reason}")
        if not comparisons.usable(standing, claim.metric):
            heading = quantity(claim.metric).heading
            return Ground(Cause.NOT_MEASURED, f"{heading} of {standing.row.title} was not measured")
    compared = [board.standing(preset) for preset in claim.presets]
    return _untrained(claim, board, compared) or _other_text(compared) or _same_network(compared)


def _untrained(claim: Claim, board: Board, compared: Sequence[Standing]) -> Ground | None:
    """A claim about trained weights is not tested with random ones, nor, where one side alone reads
    word vectors, with vectors that were trained on the captions at hand."""
    if not claim.weights:
        return None
    random = [s for s in compared if Departure.TEXT in departures(board, s)]
    if random:
        return Ground(Cause.NOT_PLAYED, f"{_titles(random)} was played with a random text encoder")
    own_words = [s for s in compared if Departure.WORDS in departures(board, s)]
    if 0 < len(own_words) < len(compared):
        return Ground(Cause.NOT_PLAYED, f"{_titles(own_words)} was played with other word vectors")
    return None


def _titles(standings: Sequence[Standing]) -> str:
    return " and ".join(standing.row.title for standing in standings)


def _other_text(compared: Sequence[Standing]) -> Ground | None:
    """Where a paper compares sentence vectors under one method, each must have had its own ones."""
    if len({s.method for s in compared}) > 1 or len({s.row.sentence for s in compared}) < 2:
        return None
    for standing in compared:
        if other := other_encoder(standing):
            return Ground(Cause.NOT_PLAYED, f"{standing.row.title} was played with {other}")
    return None


def _same_network(compared: Sequence[Standing]) -> Ground | None:
    """Where a paper compares image networks under one method, two must have been played."""
    if len({s.method for s in compared}) > 1 or len({s.row.network for s in compared}) < 2:
        return None
    features = [standing.outcomes[0].record.image_features for standing in compared]
    networks = {settings.get("settings", {}).get("network") for settings in features}
    if len(networks) > 1 or None in networks:
        return None
    return Ground(Cause.NOT_PLAYED, f"all were played with {networks.pop()}")


def obstacle(board: Board, comparison: Comparison) -> Ground | None:
    """Why nothing can be concluded from a comparison, whatever its numbers; None: it can."""
    standings = [board.standing(p) for p in (comparison.first, comparison.second) if p]
    if board.is_small(standings[0].task):
        queries = board.test_queries(standings[0].task)
        return Ground(Cause.FEW_QUERIES, f"nothing can be concluded from {queries} test queries")
    if is_time(comparison.metric):
        settings = {setting for standing in standings for setting in time_settings(standing)}
        if len(settings) > 1:
            reason = f"timed in {len(settings)} settings, of machine, threads or versions"
            return Ground(Cause.OTHER_MACHINE, reason)
    poor = [s.row.title for s in standings if Departure.CHANCE in departures(board, s)]
    if poor and not is_time(comparison.metric):
        return Ground(Cause.NEAR_CHANCE, f"next to nothing was learned by {' and '.join(poor)}")
    lost = [s for s in standings if is_below_start(board, s)]
    if len(lost) > 1 and not is_time(comparison.metric):
        reason = "fine-tuning left both worse than they began, so the order may be that of before"
        return Ground(Cause.BELOW_START, reason)
    if "overlap_s" in sides(comparison.metric):
        coarse = [s.row.title for s in standings if comparisons.is_coarse(s)]
        if coarse:
            return Ground(Cause.COARSE_BINS, f"S of {' and '.join(coarse)} hangs on its bins")
    if comparison.is_of_these_trainings:
        least = min(count for count in comparison.trainings if count)
        if least > 1:
            return NOTHING_VARIES
        of_seeds = "1 seed, and no other preset tells how far trainings lie apart"
        of_times = "timed once, maybe beside other work"
        return Ground(Cause.FEW_SEEDS, of_times if is_time(comparison.metric) else of_seeds)
    return None
