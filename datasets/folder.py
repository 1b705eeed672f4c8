"""Anyone's own pictures and captions: a folder with one annotation file in it.

    .jsonl  a line an image: {"image": "a.jpg", "captions": ["...", "..."]} or "caption": "...";
            optional "split", "group", and "id" (default: the image's path). Lines that name the
            same image are taken together.
    .csv    columns image, caption and, optional, split, group; a row a caption
    .json   Karpathy's format

Paths are relative to the folder, with forward slashes. Without splits, each image is put into
train, val or test (80/10/10) by a hash of its path.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from datasets import Card, DataError, OpenPicture, Tables
from datasets.shared import karpathy, picture_stores

CARD = Card(
    title="A folder of pictures and captions",
    source="the user's own",
    licence="unknown",
    split="as annotated, else by hash of the path",
    may_publish=False,
    obtain="place the pictures and one annotation file (.jsonl, .csv or Karpathy's .json) "
    "in one folder",
)

KINDS = (".jsonl", ".csv", ".json")
FACTS = ("image_id", "split", "group")  # what may be said once of an image
SHARES = {"train": (0.0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1.0)}  # of the hash's range


@dataclass(frozen=True)
class Entry:
    """What one place of the annotation file says of one image."""

    place: str
    file: str
    captions: list[str]
    image_id: str | None = None
    split: str | None = None
    group: str | None = None


def card(*, captions: str | None = None) -> Card:
    """The same, whatever the options."""
    return CARD


def inventory(raw: Path, *, captions: str | None = None) -> list[Path]:
    """The annotation file and every picture it names."""
    path = _annotation_file(raw, captions)
    files = dict.fromkeys(entry.file for entry in _entries(path))
    return [path, *(raw / file for file in files)]


def read(raw: Path, *, captions: str | None = None) -> Tables:
    """The tables; `captions` names the annotation file, by default the only one there is."""
    path = _annotation_file(raw, captions)
    entries = list(_entries(path))
    if not entries:
        raise DataError(f"{path.name}: no images; expected at least one")
    images = pd.DataFrame(_merged(entries).values())
    split, notes = _splits(images, path.name)
    return Tables(
        images=images.assign(split=split)[["image_id", "file", "split", "group"]],
        captions=_captions(entries, images),
        notes=tuple(notes),
    )


def pictures(raw: Path, *, captions: str | None = None) -> OpenPicture:
    """A function that opens a picture by its path in the folder."""
    return picture_stores.Folder(raw)


def _annotation_file(raw: Path, asked: str | None) -> Path:
    if asked is not None:
        name = _inside(asked, "option captions")
        if not (raw / name).is_file() or PurePosixPath(name).suffix not in KINDS:
            raise DataError(f"{raw / name}: expected an annotation file ({', '.join(KINDS)})")
        return raw / name
    found = sorted(path for path in raw.glob("[!.]*") if path.suffix in KINDS)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise DataError(
            f"{raw}: expected one annotation file ({', '.join(KINDS)}), found {names}; "
            "name it with the option captions"
        )
    return found[0]


def _entries(path: Path) -> Iterator[Entry]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: not UTF-8 ({error})") from error
    reader = {".jsonl": _jsonl, ".csv": _csv, ".json": _json}[path.suffix]
    for entry in reader(text, path.name):
        for caption in entry.captions:
            if not caption.strip():
                raise DataError(f"{entry.place}: caption: blank; expected a sentence")
        yield entry


def _jsonl(text: str, name: str) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _jsonl_entry(line, f"{name}:{number}")


def _jsonl_entry(line: str, place: str) -> Entry:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error})") from error
    if not isinstance(data, dict):
        raise DataError(f"{place}: expected an object, found {line!r:.60}")
    words = {key: _word(data, key, place) for key in ("image", "id", "split", "group")}
    return Entry(
        place=place,
        file=_inside(words["image"], f"{place}: image"),
        captions=_sentences(data, place),
        image_id=words["id"],
        split=words["split"],
        group=words["group"],
    )


def _word(data: dict, key: str, place: str) -> str | None:
    """A string that is not empty; a number counts as its digits."""
    found = data.get(key)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if found is None and key != "image":
        return None
    if not isinstance(found, str) or not found:
        raise DataError(f"{place}: {key}: expected a string, found {found!r:.60}")
    return found


def _sentences(data: dict, place: str) -> list[str]:
    if ("caption" in data) == ("captions" in data):
        raise DataError(f"{place}: caption: expected either caption or captions")
    key = "caption" if "caption" in data else "captions"
    found = [data[key]] if key == "caption" else data[key]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DataError(f"{place}: {key}: expected text, found {data[key]!r:.60}")
    return found


def _csv(text: str, name: str) -> Iterator[Entry]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for key in ("image", "caption"):
            if key not in (rows.fieldnames or []):
                raise DataError(f"{name}:1: {key}: expected this column, found {rows.fieldnames}")
        for row in rows:
            yield _csv_entry(row, f"{name}:{rows.line_num}")
    except csv.Error as error:
        raise DataError(f"{name}:{rows.line_num}: not CSV ({error})") from error


def _csv_entry(row: dict, place: str) -> Entry:
    if None in row or None in row.values():
        raise DataError(f"{place}: expected as many cells as columns; quote captions with commas")
    return Entry(
        place=place,
        file=_inside(row["image"], f"{place}: image"),
        captions=[row["caption"]],
        split=row.get("split") or None,
        group=row.get("group") or None,
    )


def _json(text: str, name: str) -> Iterator[Entry]:
    for entry in karpathy.parse(text, name):
        file = _inside(entry.file, f"{entry.place}: filename")
        yield Entry(entry.place, file, entry.captions, split=entry.split)


def _inside(file: str, place: str) -> str:
    """The path, tidied, if it names something in the folder by its words alone."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in file:
        raise DataError(f"{place}: {file!r}: expected a path inside the folder")
    return str(path)


def _merged(entries: list[Entry]) -> dict[str, dict]:
    """file -> row of the images table, with split None where no line names one."""
    rows: dict[str, dict] = {}
    for entry in entries:
        row = rows.setdefault(entry.file, {"file": entry.file} | dict.fromkeys(FACTS))
        for fact in FACTS:
            said, known = getattr(entry, fact), row[fact]
            if None not in (said, known) and said != known:
                raise DataError(
                    f"{entry.place}: {fact}: {said!r}, but an earlier line says {known!r} "
                    f"of {entry.file}"
                )
            row[fact] = said if known is None else known
    for row in rows.values():
        row["image_id"] = row["image_id"] or row["file"]
        row["group"] = row["group"] or row["image_id"]
    return rows


def _captions(entries: list[Entry], images: pd.DataFrame) -> pd.DataFrame:
    image_id = dict(zip(images["file"], images["image_id"], strict=True))
    rows = [(image_id[entry.file], text) for entry in entries for text in entry.captions]
    table = pd.DataFrame(rows, columns=["image_id", "text"], dtype="str")
    number = table.groupby("image_id").cumcount().astype(str)
    table["caption_id"] = table["image_id"] + "#" + number
    return table[["caption_id", "image_id", "text"]]


def _splits(images: pd.DataFrame, name: str) -> tuple[list[str], list[str]]:
    """The split of each image, and what to tell of how it came about."""
    said = images["split"]
    if said.notna().all():
        return _without_restval(said.tolist())
    if said.notna().any():
        first = images[said.isna()].iloc[0]["file"]
        raise DataError(f"{name}: split: {first} has none, others have; give all images one")
    if images["group"].nunique() < len(SHARES):
        raise DataError(f"{name}: expected {len(SHARES)} images or groups to split, found fewer")
    return split_by_hash(images["group"].tolist())


def _without_restval(said: list[str]) -> tuple[list[str], list[str]]:
    """Karpathy's "restval" is what COCO's validation set has left over, used for training."""
    number = said.count("restval")
    notes = [f"{number} images of the split restval are used for training."] if number else []
    return ["train" if split == "restval" else split for split in said], notes


def split_by_hash(groups: list[str]) -> tuple[list[str], list[str]]:
    """A split for the image of each group, whatever other groups there are; and notes on it.

    A group's name is the image's path where none is set. If a split would be empty, the group
    whose hash is nearest to it moves there; that takes three groups at least.
    """
    position = {group: _position(group) for group in groups}
    split_of = {
        group: next(split for split, (low, high) in SHARES.items() if low <= where < high)
        for group, where in position.items()
    }
    moved = _fill_empty(split_of, position)
    notes = [
        "The annotations name no split: 80/10/10 percent by the sha256 of the path "
        "(of the group, where one is named)."
    ]
    if moved:
        notes.append(f"{moved} moved to a neighbouring split, which would have been empty.")
    return [split_of[group] for group in groups], notes


def _position(name: str) -> float:
    """Where a name falls in [0, 1)."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:12], 16) / 16**12


def _fill_empty(split_of: dict[str, str], position: dict[str, float]) -> int:
    """Give each empty split a member of the largest one; the number of moves."""
    moved = 0
    for split, (low, high) in SHARES.items():
        members = list(split_of.values())
        if split in members:
            continue
        largest = max(SHARES, key=members.count)
        candidates = [name for name, owner in split_of.items() if owner == largest]
        distance = {name: abs(position[name] - (low + high) / 2) for name in candidates}
        split_of[min(candidates, key=distance.get)] = split
        moved += 1
    return moved
