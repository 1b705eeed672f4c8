"""The figures of a report on disk: saved where a page shows them, and deleted otherwise."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmark.report import figure_listing, figure_style
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.markdown import escaped


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
        pictures = figure_listing.pictures(name, inputs)
        return [self._saved(picture, f"{stem}-{picture.name}", up) for picture in pictures]

    def _saved(self, picture: Picture, name: str, up: str) -> str:
        """Markdown of the PNG, which leads to the SVG if the picture is scalable."""
        for kind in ("png", "svg") if picture.is_scalable else ("png",):
            path = self.folder / f"{name}.{kind}"
            figure_style.save(picture.figure, path)
            self.written.append(path)
        target = f"{up}{self.link}{name}"
        image = f"![{escaped(picture.alt)}]({target}.png)"
        linked = f"[{image}]({target}.svg)" if picture.is_scalable else image
        return f"{linked}\n\n{escaped(picture.caption)}" if picture.caption else linked

    def remove_others(self) -> None:
        remove_others(self.folder, self.written)


def remove_others(folder: Path, kept: Sequence[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed one too."""
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
        elif path.is_file() and path not in kept:
            path.unlink()
