"""Anyone's own pictures and captions: a folder with one annotation file in it.

    .jsonl  one line per image: {"image": "a.jpg", "captions": ["...", "..."]} or "caption": "...";
            optional "split", "group", and "id" (default: the image's path). Lines with the same
            image are merged.
    .csv    one row per caption; columns image, caption and, optionally, split and group
    .json   Karpathy's format, or COCO's captions

The image may also be called file_name, filename or file, and the caption text, as in metadata.csv
and metadata.jsonl of Hugging Face.

Paths are relative to the folder, with forward slashes. Without splits, a hash of its path puts each
image into train, val or test (80/10/10). With the options `val` and `test`, so many images of the
highest hashes are these splits.
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from benchmark.contracts.datasets import Card, OpenPicture, Tables, UserError
from benchmark.readers import (
    LONGEST_PATH,
    check_text,
    content,
    image_files,
    inside,
    is_file,
    karpathy,
    option_checks,
    parse_json,
    readable,
)

CARD = Card(
    title="A folder of pictures and captions",
    source="the user's own",
    licence="unknown",
    split="as annotated, else by hash of the path",
    may_publish=False,
    obtain="place the pictures and one annotation file (.jsonl, .csv, Karpathy's or COCO's .json) "
    "in one folder",
)

KINDS = (".jsonl", ".csv", ".json")
NAMES = {"file_name": "image", "filename": "image", "file": "image", "text": "caption"}
FACTS = ("image_id", "split", "group")  # attributes of an image, on which lines must agree
SHARES = {"train": (0.0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1.0)}  # of the hash's range
CORRECT = "correct the annotation file"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which annotation file is read."""

    captions: str | None = None  # its path in the folder; None: the only one there is
    val: int | None = None  # groups in the split, where the file names none; None: a tenth
    test: int | None = None

    def __post_init__(self) -> None:
        for option, value in (("val", self.val), ("test", self.test)):
            if value is not None:
                option_checks.check_number("folder", option, value, 1)
        if (self.val is None) != (self.test is None):
            raise option_checks.refusal("folder", "val", "a number where test has one", self.val)


@dataclass(frozen=True)
class Entry:
    """What one line or item of the annotation file says of one image; `where` locates it."""

    where: str
    file: str
    captions: list[str]
    image_id: str | None = None
    split: str | None = None
    group: str | None = None


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotation file and every picture it names."""
    path = _annotation_file(raw, options)
    files = dict.fromkeys(entry.file for entry in _entries(path))
    return [path, *map(image_files.Folder(raw).path_of, files)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables of the annotation file."""
    path = _annotation_file(raw, options)
    entries = list(_entries(path))
    if not entries:
        raise UserError(path.name, "at least one image", "none", CORRECT)
    images = pd.DataFrame(_merged(entries).values())
    split, notes = _splits(images, path.name, options)
    return Tables(
        images=images.assign(split=split)[["image_id", "file", "split", "group"]],
        captions=_captions(entries, images),
        notes=tuple(notes),
    )


def has_splits(raw: Path, options: Options = Options()) -> bool:
    """Whether the annotation file names splits."""
    return any(entry.split for entry in _entries(_annotation_file(raw, options)))


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by its path in the folder."""
    return image_files.Folder(raw)


def _annotation_file(raw: Path, options: Options) -> Path:
    if options.captions is not None:
        name = _inside(options.captions, "folder: option captions")
        is_there, kind = is_file(raw / name), PurePosixPath(name).suffix
        if not is_there or kind not in KINDS:
            found = f"a {kind or 'nameless'} file" if is_there else "nothing"
            expected = f"an annotation file ({', '.join(KINDS)})"
            raise UserError(raw / name, expected, found, "correct the option captions")
        return raw / name
    files = sorted(path for path in raw.glob("[!.]*") if path.suffix in KINDS)
    if len(files) != 1:
        raise UserError(
            raw,
            f"one annotation file ({', '.join(KINDS)})",
            ", ".join(path.name for path in files) or "none",
            "name it with the option captions",
        )
    return files[0]


def _entries(path: Path) -> Iterator[Entry]:
    with readable(path.name, "UTF-8 text", "save the file as UTF-8"):
        text = content(path).decode("utf-8-sig")
    reader = {".jsonl": _jsonl, ".csv": _csv, ".json": _json}[path.suffix]
    for entry in reader(text, path.name):
        for caption in entry.captions:
            if not caption.strip():
                raise UserError(f"{entry.where}: caption", "a sentence", "a blank", CORRECT)
            check_text(caption, f"{entry.where}: caption", CORRECT)
        for fact in FACTS:
            value, where = getattr(entry, fact) or "", f"{entry.where}: {fact}"
            check_text(value, where, CORRECT, LONGEST_PATH)
        yield entry


def _jsonl(text: str, name: str) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _jsonl_entry(line, f"{name}:{number}")


def _jsonl_entry(line: str, where: str) -> Entry:
    data = parse_json(line, where, CORRECT)
    if not isinstance(data, dict):
        raise UserError(where, "an object", f"{line!r:.60}", CORRECT)
    data = dict(zip(_renamed(list(data)), data.values(), strict=True))
    words = {key: _word(data, key, where) for key in ("image", "id", "split", "group")}
    return Entry(
        where=where,
        file=_inside(words["image"], f"{where}: image"),
        captions=_sentences(data, where),
        image_id=words["id"],
        split=words["split"],
        group=words["group"],
    )


def _word(data: dict, key: str, where: str) -> str | None:
    """A string that is not empty; a whole number is taken as its digits."""
    value = data.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None and key != "image":
        return None
    if not isinstance(value, str) or not value:
        raise UserError(f"{where}: {key}", "a string", f"{value!r:.60}", CORRECT)
    return value


def _sentences(data: dict, where: str) -> list[str]:
    if ("caption" in data) == ("captions" in data):
        found = "both" if "caption" in data else "neither"
        raise UserError(f"{where}: caption", "either caption or captions", found, CORRECT)
    key = "caption" if "caption" in data else "captions"
    texts = [data[key]] if key == "caption" else data[key]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{where}: {key}", "text", f"{data[key]!r:.60}", CORRECT)
    return texts


def _csv(text: str, name: str) -> Iterator[Entry]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if rows.fieldnames:
            rows.fieldnames = _renamed(rows.fieldnames)
        for key in ("image", "caption"):
            if key not in (rows.fieldnames or []):
                raise UserError(f"{name}:1", f"a column {key}", rows.fieldnames, CORRECT)
        if len(set(rows.fieldnames)) < len(rows.fieldnames):
            raise UserError(f"{name}:1", "every column once", rows.fieldnames, CORRECT)
        for row in rows:
            yield _csv_entry(row, f"{name}:{rows.line_num}")
    except csv.Error as error:
        where, found = f"{name}:{rows.line_num}", f"something else ({error})"
        raise UserError(where, "CSV", found, CORRECT) from error


def _csv_entry(row: dict, where: str) -> Entry:
    if None in row or None in row.values():
        found = "more" if None in row else "fewer"
        quote = "put quotation marks around captions with commas"
        raise UserError(where, "as many entries as columns", found, quote)
    return Entry(
        where=where,
        file=_inside(row["image"], f"{where}: image"),
        captions=[row["caption"]],
        split=row.get("split") or None,
        group=row.get("group") or None,
    )


def _renamed(keys: list[str]) -> list[str]:
    """Other names of image and caption as ours, unless ours are there, too."""
    return [NAMES[key] if key in NAMES and NAMES[key] not in keys else key for key in keys]


def _json(text: str, name: str) -> Iterator[Entry]:
    data = parse_json(text, name, CORRECT)
    if isinstance(data, dict) and "annotations" in data:
        yield from _coco(data, name)
        return
    for entry in karpathy.parse(text, name):
        file = _inside(entry.file, f"{entry.where}: filename")
        yield Entry(entry.where, file, entry.captions, split=entry.split)


def _coco(data: dict, name: str) -> Iterator[Entry]:
    """COCO's captions (Lin et al. 2014): {"images": [{"id", "file_name"}], "annotations":
    [{"image_id", "caption"}]}. The images in their order, each with its captions in theirs."""
    by_id: dict[int | str, Entry] = {}
    for row, image in enumerate(_items(data, "images", name)):
        where = f"{name}: images[{row}]"
        number = _member(image, "id", (int, str), where)
        if number in by_id:
            raise UserError(f"{where}: id", "every id once", repr(number), CORRECT)
        file = _inside(_member(image, "file_name", (str,), where), f"{where}: file_name")
        by_id[number] = Entry(where, file, [])
    for row, annotation in enumerate(_items(data, "annotations", name)):
        where = f"{name}: annotations[{row}]"
        number = _member(annotation, "image_id", (int, str), where)
        if number not in by_id:
            raise UserError(f"{where}: image_id", "the id of an image", repr(number), CORRECT)
        by_id[number].captions.append(_member(annotation, "caption", (str,), where))
    yield from by_id.values()


def _items(data: dict, key: str, name: str) -> list:
    items = data.get(key)
    if not isinstance(items, list):
        raise UserError(f"{name}: {key}", "a list", f"{items!r:.60}", CORRECT)
    return items


def _member(item: object, key: str, kinds: tuple[type, ...], where: str):
    value = item.get(key) if isinstance(item, dict) else None
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UserError(f"{where}: {key}", expected, f"{value!r:.60}", CORRECT)
    return value


def _inside(file: str, where: str) -> str:
    return inside(file, where, "correct the path")


def _merged(entries: list[Entry]) -> dict[str, dict]:
    """file -> row of the images table; split is None if no line names one."""
    rows: dict[str, dict] = {}
    for entry in entries:
        row = rows.setdefault(entry.file, {"file": entry.file} | dict.fromkeys(FACTS))
        for fact in FACTS:
            value, earlier = getattr(entry, fact), row[fact]
            if None not in (value, earlier) and value != earlier:
                expected = f"{earlier!r} as in an earlier line with {entry.file}"
                raise UserError(f"{entry.where}: {fact}", expected, repr(value), CORRECT)
            row[fact] = value if earlier is None else earlier
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


def _splits(images: pd.DataFrame, name: str, options: Options) -> tuple[list[str], list[str]]:
    """The split of each image, and notes on where it comes from."""
    split = images["split"]
    if split.notna().any() and options.test:
        found = "splits in the annotations"
        raise UserError("folder: option test", "none", found, "remove val and test")
    if split.notna().all():
        return _without_restval(split.tolist())
    if split.notna().any():
        first = images[split.isna()].iloc[0]["file"]
        found = f"none for {first}"
        raise UserError(f"{name}: split", "one for all images or for none", found, CORRECT)
    groups = images["group"].nunique()
    if groups < len(SHARES):
        expected = f"{len(SHARES)} images or groups to split"
        raise UserError(name, expected, groups, "add images, or name the split of each")
    if options.test:
        return split_by_number(images["group"].tolist(), options.val, options.test)
    return split_by_hash(images["group"].tolist())


def _without_restval(splits: list[str]) -> tuple[list[str], list[str]]:
    """Karpathy's "restval", the rest of COCO's validation set, is used for training."""
    number = splits.count("restval")
    notes = [f"{number} images of the split restval are used for training."] if number else []
    return ["train" if split == "restval" else split for split in splits], notes


def split_by_hash(groups: list[str]) -> tuple[list[str], list[str]]:
    """The split of each image, given the name of its group, and notes.

    `groups` must have at least three different names. The split of a group does not depend on the
    other groups; only if a split would be empty, the group whose hash is nearest to it moves there.
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


def split_by_number(groups: list[str], val: int, test: int) -> tuple[list[str], list[str]]:
    """The split of each image, given the name of its group, and notes: the groups with the highest
    hashes are test, the next ones val. Raises UserError where none is left to train on."""
    ordered = sorted(set(groups), key=_position, reverse=True)
    if len(ordered) <= val + test:
        expected = f"more than {val} + {test} images or groups"
        raise UserError("folder: options val and test", expected, len(ordered), "lower them")
    named = ["test"] * test + ["val"] * val
    split_of = dict.fromkeys(ordered, "train") | dict(zip(ordered, named, strict=False))
    note = f"The annotations name no split: {test} for test and {val} for val"
    notes = [f"{note} by the sha256 of the path (of the group, where one is named)."]
    return [split_of[group] for group in groups], notes


def _position(name: str) -> float:
    """The hash of a name as a number in [0, 1)."""
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
