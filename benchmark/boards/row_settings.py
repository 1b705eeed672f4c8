"""What a row was run with, for its flags.

Its text encoder and word vectors, where they are not those of its paper, and whether
the encoder was trained on the captions of the dataset. The options of two rows that a
season made unequal, or equal, unlike the paper. The settings in which its times were
measured: times of different settings cannot be compared.
"""

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.records import Aspect, Departure, Provenance, Record
from benchmark.papers.printed_tables import unequal
from benchmark.papers.training_data import ENCODERS, SEASON, TextEncoder, holders
from benchmark.season.parameters import Option


def is_of_features(departure: Departure) -> bool:
    """Whether a departure is one of features, not of a text encoder, which has a flag
    of its own. Text vectors count if they come from word vectors."""
    if departure.aspect != Aspect.TEXT_VECTORS:
        return True
    return departure.reads_words and departure.texts != "contextual"


def reads_other_words(record: Record) -> bool:
    """Whether a method, or its text encoder, reads word vectors that the paper does not
    have."""
    of_words = (Aspect.WORD_VECTORS, Aspect.TEXT_VECTORS)
    read = [each for each in record.departures if each.aspect in of_words]
    return any(map(is_of_features, read))


def other_encoder(row: Row) -> str:
    """Name of the sentence vectors that it read; "" where they are of the paper's
    encoder."""
    folder = row.record.text_features.get("encoder", "")
    of_paper = row.declared.sentence
    if not of_paper or not folder:
        return ""
    is_of_paper = folder.removeprefix("phrases_").startswith(of_paper)
    return "" if is_of_paper else folder


@dataclass(frozen=True)
class CaptionsSeen:
    """A text encoder that was trained on the captions of a dataset."""

    encoder: TextEncoder
    corpus: str  # of those that it was trained on, the smallest that has the captions


def captions_seen(board: Board, row: Row) -> CaptionsSeen | None:
    """The text encoder of a row, or an external row itself, that was trained on the
    captions of the dataset; None if it is not known to be. What the season file says
    comes first."""
    name = row.preset if row.is_external else row.record.text_features.get("weights")
    if not name:
        return None
    own = tuple(board.trained_on.get(name, ()))
    known = [TextEncoder(weights=name, trained_on=own, source=SEASON)]
    known += [encoder for encoder in ENCODERS if encoder.weights == name]
    for encoder in known:
        for corpus in holders([board.dataset, board.card.get("reader", "")]):
            if corpus in encoder.trained_on:
                return CaptionsSeen(encoder, corpus)
    return None


# Options of two rows ------------------------------------------------------------------


class Unequal(NamedTuple):
    """An option that a season scaled to different values in two rows, and that is equal
    in the paper."""

    name: str
    first: Option
    second: Option

    def __str__(self) -> str:
        return f"{self.name} {self.first} and {self.second}"


class SettingsOfPair(NamedTuple):
    """What differs between two rows of one method."""

    unequal: list[Unequal]
    evened: list[str]  # different in the paper, equal here


def settings_of_pair(first: Row, second: Row) -> SettingsOfPair:
    """What differs between two rows of one method that both start anew or both start
    from another row; nothing for other pairs and for fusions."""
    start_alike = bool(first.declared.start) == bool(second.declared.start)
    is_fused = first.declared.fuse or second.declared.fuse
    if first.method != second.method or not start_alike or is_fused:
        return SettingsOfPair([], [])
    record, other_record = first.record, second.record
    here, other_here = record.options, other_record.options
    paper, other_paper = first.declared.options, second.declared.options
    names = unequal(record, other_record, first.declared, second.declared)
    differing = [Unequal(name, here.get(name), other_here.get(name)) for name in names]
    evened = []
    for name in sorted({*record.scaled, *other_record.scaled}):
        is_same_in_paper = paper.get(name) == other_paper.get(name)
        if here.get(name) == other_here.get(name) and not is_same_in_paper:
            evened.append(name)
    return SettingsOfPair(differing, evened)


# Times --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TimeSetting:
    """Where and beside what something was timed."""

    machine: str
    device: str
    threads: int | None  # None: on a GPU
    fingerprint: str  # how the processor computes; "": on a GPU
    stages_at_once: int
    torch: str

    def __str__(self) -> str:
        facts = [self.machine, self.device]
        if self.threads is not None:
            facts[1:] = [f"threads: {self.threads}", f"fingerprint {self.fingerprint}"]
        if self.stages_at_once > 1:
            facts.append(f"{self.stages_at_once} stages at once")
        return ", ".join([*facts, f"torch {self.torch}"])


def time_settings(row: Row) -> list[TimeSetting]:
    """The settings of all trainings and scorings of a row; several if its seeds were
    run in different ones."""
    settings = set()
    for outcome in row.played:
        for costs in (*outcome.trainings, outcome.scoring):
            settings.add(_setting(outcome, costs))
    return sorted(settings, key=str)


def board_time_settings(board: Board) -> list[TimeSetting]:
    """The settings of all rows of a board; external rows have no times."""
    rows = [row for row in board.rows if not row.is_external]
    return sorted({*chain.from_iterable(map(time_settings, rows))}, key=str)


def _setting(outcome: Outcome, costs: Provenance) -> TimeSetting:
    is_on_cpu = costs.device == "cpu"
    fingerprint = outcome.record.numerics.get("fingerprint", "unknown")
    return TimeSetting(
        machine=costs.machine,
        device=costs.device,
        threads=costs.threads if is_on_cpu else None,
        fingerprint=fingerprint if is_on_cpu else "",
        stages_at_once=costs.jobs or 1,
        torch=costs.packages.get("torch", "unknown"),
    )
