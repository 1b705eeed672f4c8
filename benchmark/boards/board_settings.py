"""Options of two rows that a claim compares: what a season made unequal, or equal."""

from typing import NamedTuple

from benchmark.boards.boards import Row
from benchmark.papers.printed_tables import unequal
from benchmark.season.parameters import Option


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
