"""CUHK-PEDES: 40,206 images of 13,003 persons, each described by at least two people.

Li, Xiao, Li, Zhou, Yue and Wang (2017), CVPR. The raw folder holds `reid_raw.json` and
`imgs/`, or a folder `CUHK-PEDES` with them. The JSON is a list with one item per
image:

    {"split": "train", "captions": ["...", "..."], "file_path": "cam_a/1.jpg", "id": 7}

where `file_path` is below imgs/ and `id` is the person, which is the group here. Other
keys than these and the release's `processed_tokens` are named in the notes. A few
images have more than two captions: Zheng et al. (2020), Dual-path, keep them all, the
evaluator of the dataset's authors takes the first two.

Two later datasets of persons come in the same layout and are read with the option
`release`:

    ICFG-PEDES  Ding, Ding, Shao and Tao (2021), arXiv 2107.12666: ICFG-PEDES.json;
                no val
    RSTPReid    Zhu et al. (2021), DSSL, ACM Multimedia: data_captions.json, with
                img_path for file_path

Where nothing is for val, the option `val` takes so many persons from train, those of
the highest sha256: no checkpoint may be selected on test, as is often done with
ICFG-PEDES.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pandas as pd

from benchmark.contracts.datasets import Card, Needed, OpenPicture, Tables, UserError
from benchmark.readers import (
    archives,
    check_text,
    image_files,
    inside,
    nested_keys,
    option_checks,
    parse_json,
    reader_notes,
)

PICTURES = "imgs"
SPLITS = ("train", "val", "test")
KEYS = {"split", "captions", "id", "processed_tokens"}  # that are read, or are no news


@dataclass(frozen=True, kw_only=True)
class Release:
    """What differs between datasets of this layout. Its name is that of its folder."""

    annotations: str
    source: str
    obtain: str
    form: str
    pictures: str  # what lies in imgs/
    images: Mapping[str, int]  # split -> images
    # captions_per_image -> split -> captions
    captions: Mapping[int | None, Mapping[str, int]]
    file: str = "file_path"  # the key of an image's path
    hint: str = ""


RELEASES = {
    "CUHK-PEDES": Release(
        annotations="reid_raw.json",
        source="Li, Xiao, Li, Zhou, Yue and Wang (2017), Person Search with Natural "
        "Language Description, CVPR, 5187-5196",
        obtain="ask for it from a university address (academic use only): "
        "tong.xiao.work@gmail.com; ",
        form="https://github.com/ShuangLI59/"
        "Person-Search-with-Natural-Language-Description",
        pictures="40,206 pictures in the folders CUHK01, CUHK03, Market, cam_a, "
        "cam_b, test_query and train_query (some copies lack folders)",
        images={"train": 34054, "val": 3078, "test": 3074},
        captions={
            None: {"train": 68126, "val": 6158, "test": 6156},
            2: {"train": 68108, "val": 6156, "test": 6148},
        },
        hint="; the page above links to it (caption_all.json has no splits and cannot "
        "replace it)",
    ),
    "ICFG-PEDES": Release(
        annotations="ICFG-PEDES.json",
        source="Ding, Ding, Shao and Tao (2021), Semantically Self-Aligned Network for "
        "Text-to-Image Part-aware Person Re-identification, arXiv 2107.12666",
        obtain="ask its authors for it; ",
        form="https://github.com/zifyloo/SSAN",
        pictures="54,522 pictures in the folders train and test",
        images={"train": 34674, "test": 19848},
        captions={None: {"train": 34674, "test": 19848}},  # one caption each
    ),
    "RSTPReid": Release(
        annotations="data_captions.json",
        source="Zhu, Wang, Li, Wan, Jin, Wang, Hu and Hua (2021), DSSL: Deep "
        "Surroundings-person Separation Learning for Text-based Person Retrieval, ACM "
        "Multimedia, 209-217",
        obtain="ask its authors for it; ",
        form="https://github.com/NjtechCVLab/RSTPReid-Dataset",
        pictures="20,505 pictures",
        # five of each of 4,101 persons
        images={"train": 18505, "val": 1000, "test": 1000},
        captions={None: {"train": 37010, "val": 2000, "test": 2000}},
        file="img_path",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which dataset it is, which captions are kept, and where val comes from."""

    captions_per_image: int | None = None  # the first so many of each image; None: all
    release: str = "CUHK-PEDES"  # a name in RELEASES
    # persons taken from train, where the annotations have no val
    val: int | None = None

    def __post_init__(self) -> None:
        option_checks.check_choice("cuhk_pedes", "release", self.release, RELEASES)
        for option in ("captions_per_image", "val"):
            value = getattr(self, option)
            if value is not None:
                option_checks.check_number("cuhk_pedes", option, value, least=1)
        if self.val and "val" in RELEASES[self.release].images:
            expected = f"none, as {self.release} has a split val"
            raise option_checks.refusal("cuhk_pedes", "val", expected, self.val)


@dataclass(frozen=True)
class Entry:
    """One image of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str
    person: str
    captions: list[str]
    unread: tuple[nested_keys.Key, ...]

    @property
    def image_id(self) -> str:
        return str(PurePosixPath(self.file).with_suffix(""))


def card(options: Options = Options()) -> Card:
    """The counts of captions are known for all captions, and of CUHK-PEDES for two per
    image; those of train are not where persons of it become val."""
    name, release = options.release, RELEASES[options.release]
    images = dict(release.images)
    captions = dict(release.captions.get(options.captions_per_image, {}))
    # Of the papers' numbers, those on CUHK-PEDES are on the split of this name.
    split = "official" if name == "CUHK-PEDES" else f"official of {name}"
    if options.val:
        split = f"{split}, val: {options.val} persons of train"
        images.pop("train")
        captions.pop("train", None)
    annotations = release.annotations
    what = f"captions, persons and splits{release.hint}"
    checklist = (
        Needed(what, ways=((annotations,), (f"{name}/{annotations}",))),
        Needed(release.pictures, ways=((f"{PICTURES}/",), (f"{name}/{PICTURES}/",))),
    )
    return Card(
        title=name,
        source=release.source,
        licence="academic use only, on request; the pictures keep the terms of their "
        "datasets",
        split=split,
        may_publish=False,
        obtain=f"{release.obtain}place {annotations} and {PICTURES}/ in one folder",
        form=release.form,
        checklist=checklist,
        raw_gib=1.0,
        expected_images=images,
        expected_captions=captions,
        ways=("t2i",),
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotations and every image that they name."""
    folder = image_files.Folder(_find(raw, options, PICTURES))
    files = [folder.path_of(entry.file) for entry in _entries(raw, options)]
    return [_find(raw, options, RELEASES[options.release].annotations), *files]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables: the group of an image is its person."""
    entries = _entries(raw, options)
    images, captions = [], []
    for entry in entries:
        image_id = entry.image_id
        images.append((image_id, entry.file, entry.split, entry.person))
        kept = entry.captions[: options.captions_per_image]
        for number, text in enumerate(kept):
            captions.append((f"{image_id}#{number}", image_id, text.strip()))
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=tuple(_notes(entries, options)),
    )


def _notes(entries: list[Entry], options: Options) -> list[str]:
    """What the persons are, which captions and keys are not used, and what is val."""
    split_of = {entry.person: entry.split for entry in entries}
    persons = Counter(split_of.values())
    counts = ", ".join(f"{persons[split]} ({split})" for split in SPLITS)
    more, used = 0, options.captions_per_image or "all"
    unread: list[nested_keys.Key] = []
    for entry in entries:
        more += len(entry.captions) > 2
        unread += entry.unread
    notes = [
        f"The group of an image is its person; persons: {counts}.",
        f"{more} images have more than two captions; used of each image: {used}.",
        *_left_out(entries, options),
        *reader_notes.unread(RELEASES[options.release].annotations, unread),
    ]
    if options.val:
        notes.append(
            f"The annotations have no val: {options.val} persons of train, by the "
            "sha256."
        )
    return notes


def _left_out(entries: list[Entry], options: Options) -> list[str]:
    """A note on the captions that are not used, if there are any."""
    each = options.captions_per_image
    dropped, images = 0, []
    for entry in entries:
        if each and len(entry.captions) > each:
            dropped += len(entry.captions) - each
            images.append(entry.image_id)
    return [reader_notes.left_out(f"{dropped} captions", images)] if images else []


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens an image by its path below imgs/."""
    return image_files.Folder(_find(raw, options, PICTURES))


def _find(raw: Path, options: Options, name: str) -> Path:
    """The path of `name` in the raw folder or in its folder named after the release."""
    for path in (raw / name, raw / options.release / name):
        if path.exists():
            return path
    expected = f"{name}, there or in {options.release}/"
    raise UserError(raw, expected, "nothing", f"place {name} in the raw folder")


def _entries(raw: Path, options: Options) -> list[Entry]:
    """The items of the annotations in their order, checked separately and together."""
    release = RELEASES[options.release]
    path = _find(raw, options, release.annotations)
    items = parse_json(archives.text(path, path.name), path, "place a whole copy")
    if not isinstance(items, list) or not items:
        advice = "place an unchanged copy"
        raise UserError(path, "a list of items", f"{items!r:.60}", advice)
    entries = []
    try:
        for row, item in enumerate(items):
            entries.append(_entry(item, f"{path.name}: [{row}]", release))
        _check_together(entries, release)
    except UserError as error:
        advice = f"correct {path.name}, or place an unchanged copy"
        raise UserError(error.where, error.expected, error.found, advice) from error
    return _with_val(entries, options.val) if options.val else entries


def _with_val(entries: list[Entry], val: int) -> list[Entry]:
    """The same with so many persons of train in val."""
    persons = {entry.person for entry in entries if entry.split == "train"}
    in_val = sum(entry.split == "val" for entry in entries)
    if in_val or len(persons) <= val:
        expected = f"no val, and more than {val} persons in train"
        actual = f"{in_val} images in val and {len(persons)} persons in train"
        advice = "remove or lower it"
        raise UserError("cuhk_pedes: option val", expected, actual, advice)
    order = sorted(persons, key=_digest)
    chosen, moved = set(order[-val:]), []
    for entry in entries:
        split = "val" if entry.person in chosen else entry.split
        moved.append(replace(entry, split=split))
    return moved


def _digest(person: str) -> str:
    return hashlib.sha256(person.encode()).hexdigest()


def _entry(item: object, where: str, release: Release) -> Entry:
    """Raises UserError without advice, which depends on the file."""
    file = _member(item, release.file, str, where)
    expected = f"an image below {PICTURES}/"
    path = PurePosixPath(inside(file, f"{where}: {release.file}", "", expected))
    if not path.suffix:
        raise UserError(f"{where}: {release.file}", expected, f"{file!r:.80}")
    where_file = f"{where} {file}"
    split = _member(item, "split", str, where_file)
    if split not in SPLITS:
        expected = f"one of {', '.join(SPLITS)}"
        raise UserError(f"{where_file}: split", expected, f"{split!r:.60}")
    captions = _member(item, "captions", list, where_file)
    _check_captions(captions, f"{where_file}: captions")
    person = _member(item, "id", int, where_file)
    unread: dict[nested_keys.Key, None] = {}
    nested_keys.gather_unread(unread, item, KEYS | {release.file})
    return Entry(where, str(path), split, str(person), captions, tuple(unread))


def _check_captions(captions: list, where: str) -> None:
    if not captions:
        raise UserError(where, "at least one", "none")
    for number, caption in enumerate(captions):
        place = f"{where}[{number}]"
        if not isinstance(caption, str) or not caption.strip():
            raise UserError(place, "a sentence", f"{caption!r:.60}")
        if any(mark in caption.strip() for mark in "\t\r\n"):
            raise UserError(place, "one line without tabs", f"{caption!r:.60}")
        check_text(caption, place, "")


def _member(item: object, key: str, kind: type, where: str):
    value = item.get(key) if isinstance(item, dict) else None
    if type(value) is not kind:  # a bool is no id
        raise UserError(f"{where}: {key}", kind.__name__, f"{value!r:.60}")
    return value


def _check_together(entries: list[Entry], release: Release) -> None:
    """Raise UserError for an image that occurs twice, and for a person in two
    splits."""
    first_of_image: dict[str, Entry] = {}
    first_of_person: dict[str, Entry] = {}
    for entry in entries:
        other = first_of_image.setdefault(entry.image_id, entry)
        if other is not entry:
            where = f"{entry.where}: {release.file}"
            actual = f"{entry.file!r}, the name of {other.where}"
            raise UserError(where, "every image once", actual)
        other = first_of_person.setdefault(entry.person, entry)
        if other.split != entry.split:
            where = f"{entry.where} {entry.file}: id {entry.person}"
            actual = f"{entry.split}, but {other.split} in {other.where} {other.file}"
            raise UserError(where, "one split per person", actual)
