"""CUHK-PEDES: 40,206 pictures of 13,003 persons, each picture described by at least two people.

Li, Xiao, Li, Zhou, Yue and Wang (2017), CVPR. The raw folder holds `reid_raw.json` and `imgs/`,
or a folder `CUHK-PEDES` with them. The JSON is a list with one item per picture:

    {"split": "train", "captions": ["...", "..."], "file_path": "cam_a/1.jpg", "id": 7}

where `file_path` is below imgs/ and `id` is the person, which is the group here; other keys are
ignored. A few pictures have more than two captions: Zheng et al. (2020), Dual-path, keep them all,
the evaluator of the dataset's authors takes the first two.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from benchmark.contracts.datasets import Card, Needed, OpenPicture, Tables, UserError
from benchmark.readers import (
    archives,
    check_text,
    image_files,
    inside,
    option_checks,
    parse_json,
)

ANNOTATIONS = "reid_raw.json"
FOLDER = "CUHK-PEDES"
PICTURES = "imgs"
SPLITS = ("train", "val", "test")
IMAGES = {"train": 34054, "val": 3078, "test": 3074}
CAPTIONS = {  # captions_per_image -> split -> captions
    None: {"train": 68126, "val": 6158, "test": 6156},
    2: {"train": 68108, "val": 6156, "test": 6148},
}
CORRECT = f"correct {ANNOTATIONS}, or place an unchanged copy"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which captions are kept."""

    captions_per_image: int | None = None  # the first so many of each image; None: all

    def __post_init__(self) -> None:
        if self.captions_per_image is not None:
            option_checks.check_number(
                "cuhk_pedes", "captions_per_image", self.captions_per_image, least=1
            )


@dataclass(frozen=True)
class Entry:
    """One picture of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str
    person: str
    captions: list[str]


def card(options: Options = Options()) -> Card:
    """The counts of captions are known for all captions and for two per image."""
    return Card(
        title="CUHK-PEDES",
        source="Li, Xiao, Li, Zhou, Yue and Wang (2017), Person Search with Natural Language "
        "Description, CVPR, 5187-5196",
        licence="academic use only, on request; the pictures keep the terms of their datasets",
        split="official",
        may_publish=False,
        obtain="ask for it from a university address (academic use only): "
        f"tong.xiao.work@gmail.com; place {ANNOTATIONS} and {PICTURES}/ in one folder",
        form="https://github.com/ShuangLI59/Person-Search-with-Natural-Language-Description",
        checklist=(
            Needed(
                "captions, persons and splits; the page above links to it (caption_all.json has "
                "no splits and cannot replace it)",
                ways=((ANNOTATIONS,), (f"{FOLDER}/{ANNOTATIONS}",)),
            ),
            Needed(
                "40,206 pictures in the folders CUHK01, CUHK03, Market, cam_a, cam_b, test_query "
                "and train_query (some copies lack folders)",
                ways=((f"{PICTURES}/",), (f"{FOLDER}/{PICTURES}/",)),
            ),
        ),
        raw_gib=1.0,
        expected_images=IMAGES,
        expected_captions=CAPTIONS.get(options.captions_per_image, {}),
        ways=("t2i",),
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotations and every picture that they name."""
    folder = image_files.Folder(_find(raw, PICTURES))
    files = [folder.path_of(entry.file) for entry in _entries(raw)]
    return [_find(raw, ANNOTATIONS), *files]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables: the group of an image is its person."""
    entries = _entries(raw)
    images = [(_image_id(e.file), e.file, e.split, e.person) for e in entries]
    captions = [
        (f"{_image_id(e.file)}#{k}", _image_id(e.file), text.strip())
        for e in entries
        for k, text in enumerate(e.captions[: options.captions_per_image])
    ]
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=_notes(entries, options.captions_per_image),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by its path below imgs/."""
    return image_files.Folder(_find(raw, PICTURES))


def _find(raw: Path, name: str) -> Path:
    """The path of `name` in the raw folder or in its folder CUHK-PEDES."""
    for path in (raw / name, raw / FOLDER / name):
        if path.exists():
            return path
    raise UserError(
        raw, f"{name}, there or in {FOLDER}/", "nothing", f"place {name} in the raw folder"
    )


def _entries(raw: Path) -> list[Entry]:
    """The items of the annotations in their order, checked separately and together."""
    path = _find(raw, ANNOTATIONS)
    text = archives.text(path, ANNOTATIONS)
    items = parse_json(text, path, "place a whole copy")
    if not isinstance(items, list) or not items:
        raise UserError(path, "a list of items", f"{items!r:.60}", "place an unchanged copy")
    entries = [_entry(item, f"{ANNOTATIONS}: [{row}]") for row, item in enumerate(items)]
    _check_unique(entries)
    _check_persons(entries)
    return entries


def _entry(item: object, where: str) -> Entry:
    file = _member(item, "file_path", str, where)
    expected = f"a picture below {PICTURES}/"
    path = PurePosixPath(inside(file, f"{where}: file_path", CORRECT, expected))
    if not path.suffix:
        raise UserError(f"{where}: file_path", expected, f"{file!r:.80}", CORRECT)
    where_file = f"{where} {file}"
    split = _member(item, "split", str, where_file)
    if split not in SPLITS:
        expected = f"one of {', '.join(SPLITS)}"
        raise UserError(f"{where_file}: split", expected, f"{split!r:.60}", CORRECT)
    captions = _member(item, "captions", list, where_file)
    if not captions:
        raise UserError(f"{where_file}: captions", "at least one", "none", CORRECT)
    for k, caption in enumerate(captions):
        _check_caption(caption, f"{where_file}: captions[{k}]")
    person = _member(item, "id", int, where_file)
    return Entry(where, str(path), split, str(person), captions)


def _member(item: object, key: str, kind: type, where: str):
    value = item.get(key) if isinstance(item, dict) else None
    if type(value) is not kind:  # a bool is no id
        raise UserError(f"{where}: {key}", kind.__name__, f"{value!r:.60}", CORRECT)
    return value


def _check_caption(caption: object, where: str) -> None:
    if not isinstance(caption, str) or not caption.strip():
        raise UserError(where, "a sentence", f"{caption!r:.60}", CORRECT)
    if any(mark in caption.strip() for mark in "\t\r\n"):
        raise UserError(where, "one line without tabs", f"{caption!r:.60}", CORRECT)
    check_text(caption, where, CORRECT)


def _check_unique(entries: list[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(_image_id(entry.file), entry)
        if other is not entry:
            raise UserError(
                f"{entry.where}: file_path",
                "every picture once",
                f"{entry.file!r}, the name of {other.where}",
                CORRECT,
            )


def _check_persons(entries: list[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(entry.person, entry)
        if other.split != entry.split:
            raise UserError(
                f"{entry.where} {entry.file}: id {entry.person}",
                "one split per person",
                f"{entry.split}, but {other.split} in {other.where} {other.file}",
                CORRECT,
            )


def _image_id(file: str) -> str:
    return str(PurePosixPath(file).with_suffix(""))


def _notes(entries: list[Entry], captions_per_image: int | None) -> tuple[str, ...]:
    persons = Counter(split for split, _ in {(e.split, e.person) for e in entries})
    counts = ", ".join(f"{persons[split]} ({split})" for split in SPLITS)
    more = sum(len(entry.captions) > 2 for entry in entries)
    return (
        f"The group of an image is its person; persons: {counts}.",
        f"{more} images have more than two captions; used of each image: "
        f"{captions_per_image or 'all'}.",
    )
