"""The figures of a report on disk: what is shown is saved, what is shown no more is deleted."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmark.report import figure_style
from benchmark.report.markdown import escaped
from benchmark.report.pages.illustrations import Picture


class Album:
    """Saves pictures in a folder, and keeps account of them; `link` leads from the pages to it."""

    def __init__(self, folder: Path, link: str) -> None:
        self.folder, self.link = folder, link
        self.written: list[Path] = []

    def shown(self, picture: Picture, stem: str, up: str = "") -> str:
        """Markdown of a picture: the PNG, which leads to its scalable twin where there is one.

        `up` leads from the page to the folder that the link starts from.
        """
        name = f"{stem}-{picture.name}"
        for kind in ("png", "svg") if picture.is_scalable else ("png",):
            path = self.folder / f"{name}.{kind}"
            figure_style.save(picture.figure, path)
            self.written.append(path)
        at = f"{up}{self.link}{name}"
        shown = f"![{escaped(picture.alt)}]({at}.png)"
        return f"[{shown}]({at}.svg)" if picture.is_scalable else shown

    def remove_others(self) -> None:
        remove_others(self.folder, self.written)


def remove_others(folder: Path, kept: Sequence[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed one too."""
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
        elif path.is_file() and path not in kept:
            path.unlink()
