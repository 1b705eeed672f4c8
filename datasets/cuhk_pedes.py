"""CUHK-PEDES: 40,206 pictures of 13,003 persons, each picture described by at least two people.

Li, Xiao, Li, Zhou, Yue and Wang (2017), CVPR. The raw folder holds `reid_raw.json` and `imgs/`,
or a folder `CUHK-PEDES` with them. The JSON is a list with an item a picture:

    {"split": "train", "captions": ["...", "..."], "file_path": "cam_a/1.jpg", "id": 7}

where `file_path` is below imgs/ and `id` is the person, the group here; other keys are ignored. A
few pictures have more than two captions: Zheng et al. (2020), Dual-path, keep them all, the
evaluator of the dataset's authors takes the first two.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from datasets import Card, DataError, OpenPicture, Tables
from datasets.shared import archives, picture_stores

ANNOTATIONS = "reid_raw.json"
FOLDER = "CUHK-PEDES"
PICTURES = "imgs"
SPLITS = ("train", "val", "test")
IMAGES = {"train": 34054, "val": 3078, "test": 3074}
CAPTIONS = {  # captions_per_image -> split -> captions
    None: {"train": 68126, "val": 6158, "test": 6156},
    2: {"train": 68108, "val": 6156, "test": 6148},
}


@dataclass(frozen=True)
class Entry:
    """One picture of the file; `place` locates it in error messages."""

    place: str
    file: str
    split: str
    person: str
    captions: list[str]


def card(*, captions_per_image: int | None = None) -> Card:
    """The counts of captions are known for all captions and for two an image."""
    _check(captions_per_image)
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
            f"{ANNOTATIONS} or {FOLDER}/{ANNOTATIONS}: captions, persons and splits; the page "
            "above links to it (caption_all.json has no splits and will not do)",
            f"{PICTURES}/ or {FOLDER}/{PICTURES}/: 40,206 pictures in the folders CUHK01, CUHK03, "
            "Market, cam_a, cam_b, test_query and train_query (some copies lack folders)",
        ),
        raw_gib=1.0,
        expected_images=IMAGES,
        expected_captions=CAPTIONS.get(captions_per_image, {}),
        ways=("t2i",),
    )


def inventory(raw: Path, *, captions_per_image: int | None = None) -> list[Path]:
    """The annotations and every picture that they name."""
    _check(captions_per_image)
    folder = _find(raw, PICTURES)
    files = [folder / entry.file for entry in _entries(raw)]
    return [_find(raw, ANNOTATIONS), *files]


def read(raw: Path, *, captions_per_image: int | None = None) -> Tables:
    """The tables; `captions_per_image` keeps the first so many of each image, None keeps all."""
    _check(captions_per_image)
    entries = _entries(raw)
    images = [(_image_id(e.file), e.file, e.split, e.person) for e in entries]
    captions = [
        (f"{_image_id(e.file)}#{k}", _image_id(e.file), text.strip())
        for e in entries
        for k, text in enumerate(e.captions[:captions_per_image])
    ]
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=_notes(entries, captions_per_image),
    )


def pictures(raw: Path, *, captions_per_image: int | None = None) -> OpenPicture:
    """A function that opens a picture by its path below imgs/."""
    _check(captions_per_image)
    return picture_stores.Folder(_find(raw, PICTURES))


def _check(captions_per_image: int | None) -> None:
    number = captions_per_image
    if number is not None and (type(number) is not int or number < 1):
        raise DataError(
            "cuhk_pedes: option captions_per_image must be null or a whole number of at least 1, "
            f"got {number!r}; correct it where the option is set"
        )


def _find(raw: Path, name: str) -> Path:
    """What is called `name` in the raw folder or in its folder CUHK-PEDES."""
    candidates = (raw / name, raw / FOLDER / name)
    found = next((path for path in candidates if path.exists()), None)
    if found is None:
        raise DataError(f"{raw}: no {name}; expected it there or in {FOLDER}/")
    return found


def _entries(raw: Path) -> list[Entry]:
    """The items of the annotations, in their order, checked one by one and together."""
    path = _find(raw, ANNOTATIONS)
    try:
        items = json.loads(archives.text(path, ANNOTATIONS))
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); place a whole copy") from error
    if not isinstance(items, list) or not items:
        raise DataError(f"{path}: expected a list of items, found {items!r:.60}")
    entries = [_entry(item, f"{ANNOTATIONS}: [{row}]") for row, item in enumerate(items)]
    _check_unique(entries)
    _check_persons(entries)
    return entries


def _entry(item: object, place: str) -> Entry:
    file = _member(item, "file_path", str, place)
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.suffix or "\\" in file:
        raise DataError(
            f"{place}: file_path: expected a picture below {PICTURES}/, found {file!r:.80}"
        )
    split = _member(item, "split", str, f"{place} {file}")
    if split not in SPLITS:
        known = ", ".join(SPLITS)
        raise DataError(f"{place} {file}: split: expected one of {known}, found {split!r:.60}")
    captions = _member(item, "captions", list, f"{place} {file}")
    if not captions:
        raise DataError(f"{place} {file}: captions: none; expected at least one")
    for k, caption in enumerate(captions):
        _check_caption(caption, f"{place} {file}: captions[{k}]")
    person = _member(item, "id", int, f"{place} {file}")
    return Entry(place, str(path), split, str(person), captions)


def _member(item: object, key: str, kind: type, place: str):
    found = item.get(key) if isinstance(item, dict) else None
    if type(found) is not kind:  # a bool is no id
        raise DataError(f"{place}: {key}: expected {kind.__name__}, found {found!r:.60}")
    return found


def _check_caption(caption: object, place: str) -> None:
    if not isinstance(caption, str) or not caption.strip():
        raise DataError(f"{place}: expected a sentence, found {caption!r:.60}")
    if any(mark in caption.strip() for mark in "\t\r\n"):
        raise DataError(f"{place}: expected one line without tabs, found {caption!r:.60}")


def _check_unique(entries: list[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(_image_id(entry.file), entry)
        if other is not entry:
            raise DataError(
                f"{entry.place}: file_path: {entry.file!r} has the name of {other.place}; "
                "expected every picture once"
            )


def _check_persons(entries: list[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(entry.person, entry)
        if other.split != entry.split:
            raise DataError(
                f"{entry.place} {entry.file}: id {entry.person} is in the split {entry.split}, but "
                f"{other.place} {other.file} has it in {other.split}; expected one split a person"
            )


def _image_id(file: str) -> str:
    return str(PurePosixPath(file).with_suffix(""))


def _notes(entries: list[Entry], captions_per_image: int | None) -> tuple[str, ...]:
    persons = Counter(split for split, _ in {(e.split, e.person) for e in entries})
    told = ", ".join(f"{persons[split]} ({split})" for split in SPLITS)
    more = sum(len(entry.captions) > 2 for entry in entries)
    return (
        f"The group of an image is its person; persons: {told}.",
        f"{more} images have more than two captions; used of each image: "
        f"{captions_per_image or 'all'}.",
    )
