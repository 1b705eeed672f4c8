"""The figures of a report on disk: saved where a page shows them, and deleted otherwise."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from benchmark.report import figure_listing, figure_style
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.markdown import escaped, picture


class FigureFolder:
    """Saves figures in a folder; `written` lists their files.

    `link` is the path of the folder, as seen from the folder of the report's first page.
    """

    def __init__(self, folder: Path, link: str) -> None:
        self.folder, self.link = folder, link
        self.written: list[Path] = []

    def section(self, name: str, inputs: FigureInputs, stem: str, up: str = "") -> list[str]:
        """Save all figures of a section; returns the Markdown of each.

        Their files are called `stem`-<picture>. `up` leads from the page to the folder of the
        report's first page.
        """
        shown = []
        for drawn in figure_listing.figures(name, inputs):
            path = figure_style.save(drawn.figure, self.folder / f"{stem}-{drawn.name}")
            caption = f"\n\n{escaped(drawn.caption)}" if drawn.caption else ""
            shown.append(f"{picture(drawn.alt, self.added(path, up))}{caption}")
        return shown

    def added(self, path: Path, up: str = "") -> str:
        """Note that a page shows a file of the folder; returns the link to it."""
        self.written.append(path)
        return f"{up}{self.link}{path.relative_to(self.folder).as_posix()}"

    def remove_others(self) -> None:
        remove_others(self.folder, self.written)


def remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed one too."""
    kept = set(kept)
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
        elif path.is_file() and path not in kept:
            path.unlink()
