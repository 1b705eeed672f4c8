"""The figures of a report on disk: what is shown is saved, what is shown no more is deleted."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmark.figures import look
from benchmark.markdown import escaped
from benchmark.pages.illustrations import Picture


class Album:
    """Saves pictures in the folder figures/ beside the pages, and keeps account of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "figures"
        self.written: list[Path] = []

    def shown(self, picture: Picture, stem: str, up: str = "") -> str:
        """Markdown of a picture that leads to its scalable twin; `up` leads from the page to the
        album's parent."""
        return saved(picture, self.folder, stem, f"{up}figures/", self.written)

    def remove_others(self) -> None:
        remove_others(self.folder, self.written)


def saved(picture: Picture, folder: Path, stem: str, link: str, written: list[Path]) -> str:
    """Write the picture to `folder` and add its files to `written`; gives Markdown: the PNG, which
    leads to its scalable twin where there is one."""
    name = f"{stem}-{picture.name}"
    kinds = ("png", "svg") if picture.is_scalable else ("png",)
    for kind in kinds:
        path = folder / f"{name}.{kind}"
        look.save(picture.figure, path)
        written.append(path)
    shown = f"![{escaped(picture.alt)}]({link}{name}.png)"
    return f"[{shown}]({link}{name}.svg)" if picture.is_scalable else shown


def remove_others(folder: Path, kept: Sequence[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed one too."""
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
        elif path.is_file() and path not in kept:
            path.unlink()
