"""How the methods differ from their papers, as data: what a paper prints, what its authors' code
does, and what is done here.

One YAML file for each method of a paper, and protocol.yaml for data and evaluation: a list
`entries` of topics. Transcribed from the papers, the authors' repositories and methods/*.py. A
method of your own needs none.
"""

from functools import cache
from pathlib import Path

from pydantic import Field

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.season.parameters import Strict
from benchmark.season.presets import shown

FOLDER = Path(__file__).parent / "fidelity"

LONGEST = 160  # characters: an entry has to fit a column of a table


class Entry(Strict):
    """One topic: what paper, official code and this implementation do."""

    topic: str = Field(min_length=1, max_length=40)
    paper: str = Field(min_length=1, max_length=LONGEST)  # what is printed, and where
    code: str = Field(min_length=1, max_length=LONGEST)  # what the authors' code does, if published
    ours: str = Field(min_length=1, max_length=LONGEST)  # what is done here
    why: str = Field("", max_length=LONGEST)  # why ours departs from the paper, or it is silent
    option: str | None = None  # field of the method's Config that switches it


class Entries(Strict):
    entries: list[dict] = Field(min_length=1)


@cache
def fidelity() -> dict[str, list[Entry]]:
    """The entries of every file, by its name: a method or `protocol`.

    Raises UserError that names file, entry and field of a mistake.
    """
    return {path.stem: read_entries(path) for path in sorted(FOLDER.glob("*.yaml"))}


def read_entries(path: Path) -> list[Entry]:
    """The entries of a file, in its order. Raises UserError, also for a repeated topic."""
    entries: list[Entry] = []
    for number, data in enumerate(checked(Entries, read_yaml(path), shown(path)).entries, start=1):
        where = f"{shown(path)}: entry {number} ({data.get('topic', 'without a topic')})"
        entry = checked(Entry, data, where)
        if entry.topic in (other.topic for other in entries):
            raise UserError(where, "every topic once", "this one twice", "join the two entries")
        entries.append(entry)
    return entries
