"""A dataset's checklist compared with a raw folder: what is there, what must be downloaded."""

from pathlib import Path

from datasets import Card, Needed, RemoteFile


def checklist(card: Card, raw: Path) -> list[tuple[bool, Needed]]:
    """Every entry of the card's checklist, and whether its files are in the folder `raw`."""
    return [(_is_there(raw, needed), needed) for needed in card.checklist]


def marked(entries: list[tuple[bool, Needed]]) -> list[str]:
    """The entries of a checklist as lines, each with a box that is ticked or empty."""
    return [f"[{'x' if there else ' '}] {needed}" for there, needed in entries]


def downloads(card: Card, raw: Path) -> list[RemoteFile]:
    """The files to be downloaded: neither they nor their substitutes are in the folder."""
    entries = checklist(card, raw)
    return [remote for remote in card.remote if not _is_needless(remote.name, raw, entries)]


def _is_needless(name: str, raw: Path, entries: list[tuple[bool, Needed]]) -> bool:
    """Whether a file is there, or all entries that name it are complete without it."""
    of_name = [there for there, needed in entries if any(name in way for way in needed.ways)]
    return (raw / name).exists() or (bool(of_name) and all(of_name))


def _is_there(raw: Path, needed: Needed) -> bool:
    return any(all(_is_filled(raw, name) for name in way) for way in needed.ways)


def _is_filled(raw: Path, name: str) -> bool:
    """Whether there is such a file, or such a folder that is not empty."""
    paths = raw.glob(name.rstrip("/"))
    return any(not path.is_dir() or any(path.glob("[!.]*")) for path in paths)
