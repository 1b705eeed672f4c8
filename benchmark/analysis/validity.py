"""Marks that say at a glance why a row should not be trusted as a replay of its paper.

Eight properties, each at its own place: a letter where the row lacks it, a dot where it has it, a
dash where there is no sense in asking. Knows no torch.
"""

from collections.abc import Container
from typing import NamedTuple

from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.departures import (
    ENOUGH,
    Departure,
    departures,
    is_convergence_known,
)

HAS = "\N{MIDDLE DOT}"
DOES_NOT_APPLY = "-"
OF_TRAINED = "C"  # that does not apply where no training tells
OF_OWN = "F"  # letters that do not apply to own methods: there is no paper
OF_BROUGHT = "CSFTX"  # and to what was brought along: nothing is known of how it was made


class Mark(NamedTuple):
    """A property that a row may lack."""

    letter: str
    lack: str  # what the letter says
    departures: tuple[Departure, ...]  # any of these is the lack
    brief: str  # the same in two or three words


MARKS = (
    Mark("C", "not converged", (Departure.RISING,), "not converged"),
    Mark("S", f"fewer than {ENOUGH} seeds", (Departure.FEW,), "few seeds"),
    Mark(
        "F",
        "other features, regions, word vectors or text encoder than the paper's",
        (Departure.FEATURES, Departure.REGIONS, Departure.WORDS, Departure.ENCODER),
        "other features",
    ),
    Mark("T", "text encoder with random weights", (Departure.TEXT,), "random text encoder"),
    Mark("X", "extra input at test time", (Departure.INPUT,), "extra input"),
    Mark(
        "P",
        "test pictures with a twin in training or validation",
        (Departure.SPLIT,),
        "twin pictures",
    ),
    Mark("K", "commit of the code not known", (Departure.COMMIT,), "unknown commit"),
    Mark("N", "near chance", (Departure.CHANCE,), "near chance"),
)
_DASH = f"{DOES_NOT_APPLY} does not apply"
LEGEND = ", ".join([*(f"{mark.letter} {mark.lack}" for mark in MARKS), _DASH])
BRIEF_LEGEND = ", ".join([*(f"{mark.letter} {mark.brief}" for mark in MARKS), _DASH])


def lacks(shown: str) -> list[str]:
    """What the letters of a row's marks say."""
    return [mark.lack for mark in MARKS if mark.letter in shown]


def marks(board: Board, standing: Standing) -> str:
    """One character per mark of MARKS: its letter, HAS or DOES_NOT_APPLY."""
    lacking = departures(board, standing)
    no_sense = OF_OWN * standing.is_own + OF_BROUGHT * standing.is_brought
    no_sense += OF_TRAINED * (not is_convergence_known(board, standing))
    return "".join(_mark(mark, lacking, mark.letter in no_sense) for mark in MARKS)


def _mark(mark: Mark, lacking: Container[Departure], has_no_sense: bool) -> str:
    if has_no_sense:
        return DOES_NOT_APPLY
    return mark.letter if any(kind in lacking for kind in mark.departures) else HAS
