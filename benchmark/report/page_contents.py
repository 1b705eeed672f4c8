"""Which tables and figures of the papers each page of a season shows, as data.

A report writes reports/<season>/papers/shown.json while it builds its pages; the page
on fidelity reads these files, and no Markdown.
"""

import re
from pathlib import Path

from benchmark.core.errors import Strict, checked, corrected_by
from benchmark.core.files import read_object
from benchmark.core.names import Name

FILE = "papers/shown.json"  # from the folder of the season's report


class PageContents(Strict):
    """What a page shows."""

    path: str  # from the folder of the season's report
    tables: dict[str, list[str]] = {}  # paper -> numbers of its tables
    # names of figures (ReportFigure.name); of a gallery <preset>-found
    figures: list[str] = []

    def has(self, paper: str, number: str) -> bool:
        """Whether it has a table of a paper."""
        return number in self.tables.get(paper, ())

    def draws(self, pattern: str) -> bool:
        """Whether it has a figure whose whole name matches, as papers name theirs."""
        return any(re.fullmatch(pattern, name) for name in self.figures)


class SeasonContents(Strict):
    """The pages of a season that show something of the papers, by path."""

    season: Name
    pages: list[PageContents]


def read_contents(folder: Path) -> list[SeasonContents]:
    """Every <season>/papers/shown.json of a folder, by name. Raises UserError for one
    that is none."""
    seasons = []
    for path in sorted(folder.glob(f"*/{FILE}")):
        with corrected_by(f"rematch report --season {path.parents[1].name}"):
            seasons.append(checked(SeasonContents, read_object(path), str(path)))
    return seasons
