"""Find the figures of the report, of which every file of figures/ draws some, and save
them.

Each file of figures/ defines FIGURES = {section: function}. A section is a key of
SECTIONS, or papers/<name of a paper>; a function takes FigureInputs and yields
ReportFigure, none where the results have nothing to show. To add a figure, add a file;
nothing else has to name it. Within a section, figures stand in the alphabetical order
of their files.
"""

import pkgutil
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path

from matplotlib.figure import Figure

from benchmark.boards.boards import Board
from benchmark.boards.claims import ClaimTest
from benchmark.contracts.datasets import OpenPicture
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.papers.printed_tables import papers
from benchmark.report import figure_style
from benchmark.report import figures as figure_package
from benchmark.report.markdown import escaped, picture

SECTIONS = {
    "first": "first page, once for retrieval and once for phrase localisation",
    "result": "page of a dataset, below the leaderboard",
    "similarity": "page of a dataset, below the table of overlaps",
    "training": "page of a dataset, once for retrieval and once for phrase localisation",
    "cost": "page of a dataset, below the table of costs",
    "examples": "with the hits and misses of retrieval; may show captions and images",
    "phrases": "with phrase localisation; may show phrases and images",
    "claims": "page of the claims",
}


@dataclass(frozen=True, kw_only=True)
class FigureInputs:
    """What a figure is drawn from: the results of one dataset."""

    board: Board  # of one task
    claim_tests: Sequence[ClaimTest] = ()  # section claims: those that the page lists
    data: Prepared | None = None  # sections examples and phrases: the prepared dataset
    # the same sections: opens an image by its file
    open_image: OpenPicture | None = None

    @cached_property
    def split(self) -> Split:
        """The test split of `data`."""
        return self.data.split("test")


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """A figure with its text."""

    name: str  # what is drawn, by which papers name it
    figure: Figure
    alt: str  # for readers who cannot see it
    caption: str = ""  # plain text below the figure
    part: str = ""  # which one, where a section draws several of the same name

    @property
    def file(self) -> str:
        """The end of the name of its file."""
        return f"{self.name}-{self.part}" if self.part else self.name


def figures(section: str, inputs: FigureInputs) -> Iterator[ReportFigure]:
    """The figures of a section. Raises UserError for a file with an unknown one."""
    known = {*SECTIONS, *(f"papers/{name}" for name in papers())}
    modules = pkgutil.iter_modules(figure_package.__path__)
    for name in sorted(module.name for module in modules):
        module = import_module(f"{figure_package.__name__}.{name}")
        if not module.FIGURES.keys() <= known:
            raise UserError(
                f"{module.__file__}: FIGURES",
                expected=f"some of {', '.join(sorted(known))}",
                found=", ".join(module.FIGURES),
                do="name the section where the figure stands",
            )
        if section in module.FIGURES:
            yield from module.FIGURES[section](inputs)


@dataclass(frozen=True)
class FigureFolder:
    """Saves the figures of pages in a folder, and notes which page shows which.

    A page is named by its path from the folder of the report's first page.
    """

    folder: Path  # beside the report's first page, or the local one
    written: list[Path] = field(default_factory=list)
    # page -> names of its figures; of a gallery <preset>-found
    shown: dict[str, list[str]] = field(default_factory=dict)

    def save_section(
        self, name: str, inputs: FigureInputs, stem: str, page: str
    ) -> str:
        """Save all figures of a section; returns their Markdown, each followed by a
        blank line. Their files are called `stem`-<figure>."""
        text = ""
        for drawn in figures(name, inputs):
            path = self.folder / f"{stem}-{drawn.file}"
            saved = figure_style.save(drawn.figure, path)
            text += f"{picture(drawn.alt, self.added(saved, drawn.name, page))}\n\n"
            if drawn.caption:
                text += f"{escaped(drawn.caption)}\n\n"
        return text

    def added(self, path: Path, name: str, page: str) -> str:
        """Note that a page shows a file of the folder under a name; returns the link
        from the page to it."""
        self.written.append(path)
        names = self.shown.setdefault(page, [])
        if name not in names:
            names.append(name)
        file = path.relative_to(self.folder.parent).as_posix()
        return posixpath.relpath(file, posixpath.dirname(page) or ".")


def remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed
    one too."""
    kept = set(kept)
    # in reverse, so that a folder comes after what is in it
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and path not in kept:
            path.unlink()
