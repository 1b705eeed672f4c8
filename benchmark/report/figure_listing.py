"""Finds the figures of the report: every file of figures/ is one.

A file of figures/ has two names that are looked for:

    SECTION           where its pictures stand: a key of SECTIONS, or papers/<name of a paper>
    pictures(inputs)  the pictures for these FigureInputs, an iterator of Picture; none where
                      the results have nothing to show

To add a figure, add a file; nothing else has to name it. Within a section, pictures stand in the
alphabetical order of their files. Knows no torch.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from matplotlib.figure import Figure

from benchmark.analysis.boards import Board
from benchmark.analysis.claims import Verdict
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.papers.printed_tables import papers
from benchmark.report import figures
from datasets import OpenPicture

SECTIONS = {
    "first": "first page, once for retrieval and once for phrase localisation",
    "why": "page of a paper, above its tables",
    "result": "page of a dataset, below the leaderboard",
    "similarity": "page of a dataset, below the table of overlaps",
    "training": "page of a dataset, once for retrieval and once for phrase localisation",
    "cost": "page of a dataset, below the table of costs",
    "localisation": "page of a dataset, below the table of phrase localisation",
    "examples": "with the hits and misses of retrieval; may show captions and pictures",
    "phrases": "with phrase localisation; may show phrases and pictures",
    "claims": "page of the claims",
}


@dataclass(frozen=True, kw_only=True)
class FigureInputs:
    """What a figure is drawn from: the results of one dataset."""

    board: Board  # of retrieval; for localisation and phrases, of phrase localisation
    verdicts: Sequence[Verdict] = ()  # section claims: those that the page lists
    paper: str = ""  # pages of papers: the name of its file
    data: Prepared | None = None  # sections examples and phrases: the prepared dataset
    open_picture: OpenPicture | None = None  # the same sections: opens a picture by its file


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure, the name of its file, and its text."""

    name: str
    figure: Figure
    alt: str  # for readers who cannot see it
    caption: str = ""  # plain text below the figure
    is_scalable: bool = True  # False: it holds photographs, so it is saved as PNG only


def pictures(section: str, inputs: FigureInputs) -> Iterator[Picture]:
    """The pictures of every figure of a section.

    Raises UserError for a file of figures/ with an unknown SECTION.
    """
    for module in modules():
        if module.SECTION == section:
            yield from module.pictures(inputs)


def modules() -> Iterator[ModuleType]:
    """The files of figures/ as modules, in alphabetical order."""
    known = [*SECTIONS, *(f"papers/{name}" for name in papers())]
    for name in sorted(module.name for module in pkgutil.iter_modules(figures.__path__)):
        module = import_module(f"{figures.__name__}.{name}")
        if module.SECTION not in known:
            raise UserError(
                f"{module.__file__}: SECTION",
                expected=f"one of {', '.join(known)}",
                found=repr(module.SECTION),
                do="name the section that its pictures stand in",
            )
        yield module
