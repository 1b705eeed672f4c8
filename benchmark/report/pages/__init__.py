"""The pages of the report, and their templates: Markdown with the filters of
markdown.py.

A file of this folder with a function `pages` adds pages to the report of a season: it
takes SeasonInputs and yields a Page for each. To add a page, add a file and its
template; nothing else has to name it. The first page links to all of them, in the
alphabetical order of their files.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.report.markdown import code, escaped, inside
from benchmark.report.tables import as_markdown
from benchmark.stats import PERCENT

if TYPE_CHECKING:
    from jinja2 import Environment

    from benchmark.boards.boards import Board
    from benchmark.report.figure_listing import FigureFolder
    from benchmark.season.parameters import Declaration

TEMPLATES = Path(__file__).parents[1] / "templates"
FOLDED = "<details>\n<summary>{1}</summary>\n\n{0}</details>\n\n"


@cache
def environment() -> Environment:
    """How templates are filled: made when it is asked for, as a verb that takes a cell
    of a page need not wait for Jinja."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Markdown, not HTML: templates pass text from elsewhere to `escaped`
        autoescape=False,
    )
    made.filters |= {
        "escaped": escaped,
        "inside": inside,
        "code": code,
        "table": as_markdown,
        "folded": FOLDED.format,
    }
    made.globals["PERCENT"] = PERCENT
    return made


@dataclass(frozen=True)
class SeasonInputs:
    """What the pages of a season are made of."""

    params: Declaration
    boards: Sequence[Board]
    folds: Sequence[Board]  # of the datasets that have any
    figures: FigureFolder  # saves those that a page shows


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a season's report, and what the first page says of it."""

    path: str  # from the report's folder
    text: str  # Markdown
    title: str  # of the link
    about: str  # pages about the same share a line
    # the numbers of the papers' tables that it shows, by paper
    tables: Mapping[str, list[str]] = field(default_factory=dict)


def listed_pages(inputs: SeasonInputs) -> Iterator[Page]:
    """The pages that the files of this folder add."""
    modules = pkgutil.iter_modules(__path__)
    for name in sorted(module.name for module in modules):
        module = import_module(f"{__name__}.{name}")
        if hasattr(module, "pages"):
            yield from module.pages(inputs)


def filled(template: str, **values: object) -> str:
    """The template of this file name with its values; raises jinja2.UndefinedError if
    one is missing."""
    return environment().get_template(template).render(**values)
