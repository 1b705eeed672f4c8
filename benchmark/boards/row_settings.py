"""What a row was run with: its text encoder and word vectors, beside those of its paper,
and which encoders have read the captions of test before; options of two rows that a
claim compares, which a season made unequal, or equal; and in which settings its times
were measured. Times of different settings cannot be compared."""

from dataclasses import dataclass
from typing import NamedTuple

from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.records import Aspect, Departure, Provenance, Record
from benchmark.papers.printed_tables import unequal
from benchmark.papers.training_data import ENCODERS, SEASON, TextEncoder, holders
from benchmark.season.parameters import Option


def is_of_features(departure: Departure) -> bool:
    """Whether it is one of features. Vectors of texts count where they come from word
    vectors; encoders have a flag of their own."""
    if departure.aspect != Aspect.TEXT_VECTORS:
        return True
    return departure.reads_words and departure.texts != "contextual"


def reads_other_words(record: Record) -> bool:
    """Whether a method, or its text encoder, reads word vectors that the paper does not
    have."""
    of_words = (Aspect.WORD_VECTORS, Aspect.TEXT_VECTORS)
    for departure in record.departures:
        if departure.aspect in of_words and is_of_features(departure):
            return True
    return False


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
    """The training of a row's text encoder, or of an external row, where it has the
    captions of the dataset; None where nothing is known of such a one. What the season
    file says comes first."""
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
    """An option of two rows that a season scaled to different values, which the paper
    has not."""

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
    """Of rows that are trained alike, anew or from another one; nothing of others."""
    is_start = bool(first.declared.start), bool(second.declared.start)
    is_alike = first.method == second.method and is_start[0] == is_start[1]
    if not is_alike or first.declared.fuse or second.declared.fuse:
        return SettingsOfPair([], [])
    records, presets = (first.record, second.record), (first.declared, second.declared)
    here, there = records[0].options, records[1].options
    differing = [
        Unequal(name, here.get(name), there.get(name))
        for name in unequal(*records, *presets)
    ]
    evened = []
    for name in sorted({*records[0].scaled, *records[1].scaled}):
        in_paper = presets[0].options.get(name) == presets[1].options.get(name)
        if here.get(name) == there.get(name) and not in_paper:
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
        device = self.device
        if self.threads is not None:
            device = f"threads: {self.threads}, fingerprint {self.fingerprint}"
        beside = ""
        if self.stages_at_once > 1:
            beside = f", {self.stages_at_once} stages at once"
        return f"{self.machine}, {device}{beside}, torch {self.torch}"


def time_settings(row: Row) -> list[TimeSetting]:
    """Of all trainings and scorings; several where seeds were run in different
    ones."""
    settings = set()
    for outcome in row.played:
        for costs in (*outcome.trainings, outcome.scoring):
            settings.add(_setting(outcome, costs))
    return sorted(settings, key=str)


def settings_of(board: Board) -> list[TimeSetting]:
    """Those in which times of its rows were measured; external rows have none."""
    settings = set()
    for row in board.rows:
        if not row.is_external:
            settings |= set(time_settings(row))
    return sorted(settings, key=str)


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
