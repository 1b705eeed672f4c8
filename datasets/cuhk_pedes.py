"""CUHK-PEDES: 40,206 pictures of 13,003 persons, each picture described by at least two
people.

Li, Xiao, Li, Zhou, Yue and Wang (2017), CVPR. The raw folder holds `reid_raw.json` and
`imgs/`, or a folder `CUHK-PEDES` with them. The JSON is a list with one item per
picture:

    {"split": "train", "captions": ["...", "..."], "file_path": "cam_a/1.jpg", "id": 7}

where `file_path` is below imgs/ and `id` is the person, which is the group here. Other
keys than these and the release's `processed_tokens` are named in the notes. A few
pictures have more than two captions: Zheng et al. (2020), Dual-path, keep them all, the
evaluator of the dataset's authors takes the first two.

Two later datasets of persons come in the same layout and are read with the option
`release`:

    ICFG-PEDES  Ding, Ding, Shao and Tao (2021), arXiv 2107.12666: ICFG-PEDES.json; no val
    RSTPReid    Zhu et al. (2021), DSSL, ACM Multimedia: data_captions.json, img_path for file_path

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
    file: str = "file_path"  # the key of a picture's path
    hint: str = ""


RELEASES = {
    "CUHK-PEDES": Release(
        annotations="reid_raw.json",
        source="Li, Xiao, Li, Zhou, Yue and Wang (2017), Person Search with Natural Language "
        "Description, CVPR, 5187-5196",
        obtain="ask for it from a university address (academic use only): "
        "tong.xiao.work@gmail.com; ",
        form="https://github.com/ShuangLI59/Person-Search-with-Natural-Language-Description",
        pictures="40,206 pictures in the folders CUHK01, CUHK03, Market, cam_a, cam_b, test_query "
        "and train_query (some copies lack folders)",
        images={"train": 34054, "val": 3078, "test": 3074},
        captions={
            None: {"train": 68126, "val": 6158, "test": 6156},
            2: {"train": 68108, "val": 6156, "test": 6148},
        },
        hint="; the page above links to it (caption_all.json has no splits and cannot replace it)",
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
        source="Zhu, Wang, Li, Wan, Jin, Wang, Hu and Hua (2021), DSSL: Deep Surroundings-person "
        "Separation Learning for Text-based Person Retrieval, ACM Multimedia, 209-217",
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
            if (value := getattr(self, option)) is not None:
                option_checks.check_number("cuhk_pedes", option, value, least=1)
        if self.val and "val" in RELEASES[self.release].images:
            expected = f"none, as {self.release} has a split val"
            raise option_checks.refusal("cuhk_pedes", "val", expected, self.val)


@dataclass(frozen=True)
class Entry:
    """One picture of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str
    person: str
    captions: list[str]
    unread: tuple[nested_keys.Key, ...]


def card(options: Options = Options()) -> Card:
    """The counts of captions are known for all captions, and of CUHK-PEDES for two per
    image; those of train are not where persons of it become val."""
    release, name = RELEASES[options.release], options.release
    counts = (release.images, release.captions.get(options.captions_per_image, {}))
    kept = [s for s in SPLITS if not (options.val and s == "train")]
    images, captions = ({s: of[s] for s in kept if s in of} for of in counts)
    return Card(
        title=name,
        source=release.source,
        licence="academic use only, on request; the pictures keep the terms of their datasets",
        # Of the papers' numbers, those on CUHK-PEDES are on the split of this name.
        split=("official" if name == "CUHK-PEDES" else f"official of {name}")
        + (f", val: {options.val} persons of train" if options.val else ""),
        may_publish=False,
        obtain=f"{release.obtain}place {release.annotations} and {PICTURES}/ in one folder",
        form=release.form,
        checklist=(
            Needed(
                f"captions, persons and splits{release.hint}",
                ways=((release.annotations,), (f"{name}/{release.annotations}",)),
            ),
            Needed(
                release.pictures, ways=((f"{PICTURES}/",), (f"{name}/{PICTURES}/",))
            ),
        ),
        raw_gib=1.0,
        expected_images=images,
        expected_captions=captions,
        ways=("t2i",),
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotations and every picture that they name."""
    folder = image_files.Folder(_find(raw, options, PICTURES))
    files = [folder.path_of(entry.file) for entry in _entries(raw, options)]
    return [_find(raw, options, RELEASES[options.release].annotations), *files]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables: the group of an image is its person."""
    entries = _entries(raw, options)
    images = [(_image_id(e.file), e.file, e.split, e.person) for e in entries]
    captions = [
        (f"{_image_id(e.file)}#{k}", _image_id(e.file), text.strip())
        for e in entries
        for k, text in enumerate(e.captions[: options.captions_per_image])
    ]
    persons = Counter(split for split, _ in {(e.split, e.person) for e in entries})
    counts = ", ".join(f"{persons[split]} ({split})" for split in SPLITS)
    more, used = (
        sum(len(e.captions) > 2 for e in entries),
        options.captions_per_image or "all",
    )
    notes = [
        f"The group of an image is its person; persons: {counts}.",
        f"{more} images have more than two captions; used of each image: {used}.",
        *_left_out(entries, options),
    ]
    annotations = RELEASES[options.release].annotations
    notes += reader_notes.unread(
        annotations, (key for e in entries for key in e.unread)
    )
    if options.val:
        notes.append(
            f"The annotations have no val: {options.val} persons of train, by the sha256."
        )
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=tuple(notes),
    )


def _left_out(entries: list[Entry], options: Options) -> list[str]:
    """A note on the captions that are not used, if there are any."""
    each = options.captions_per_image
    more = [entry for entry in entries if each and len(entry.captions) > each]
    if not more:
        return []
    dropped = sum(len(entry.captions) - each for entry in more)
    images = [_image_id(entry.file) for entry in more]
    return [reader_notes.left_out(f"{dropped} captions", images)]


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by its path below imgs/."""
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
        raise UserError(
            path, "a list of items", f"{items!r:.60}", "place an unchanged copy"
        )
    correct = f"correct {path.name}, or place an unchanged copy"
    try:
        entries = [
            _entry(item, f"{path.name}: [{row}]", release)
            for row, item in enumerate(items)
        ]
        _check_together(entries, release)
    except UserError as error:
        raise UserError(error.where, error.expected, error.found, correct) from error
    return _with_val(entries, options.val) if options.val else entries


def _with_val(entries: list[Entry], val: int) -> list[Entry]:
    """The same with so many persons of train in val."""
    persons = {entry.person for entry in entries if entry.split == "train"}
    found = Counter(entry.split for entry in entries)["val"]
    if found or len(persons) <= val:
        expected = f"no val, and more than {val} persons in train"
        found = f"{found} images in val and {len(persons)} persons in train"
        raise UserError("cuhk_pedes: option val", expected, found, "remove or lower it")
    order = sorted(
        persons, key=lambda person: hashlib.sha256(person.encode()).hexdigest()
    )
    chosen = set(order[-val:])
    return [replace(e, split="val") if e.person in chosen else e for e in entries]


def _entry(item: object, where: str, release: Release) -> Entry:
    file = _member(item, release.file, str, where)
    expected = f"a picture below {PICTURES}/"
    path = PurePosixPath(inside(file, f"{where}: {release.file}", "", expected))
    if not path.suffix:
        raise UserError(f"{where}: {release.file}", expected, f"{file!r:.80}")
    where_file = f"{where} {file}"
    split = _member(item, "split", str, where_file)
    if split not in SPLITS:
        expected = f"one of {', '.join(SPLITS)}"
        raise UserError(f"{where_file}: split", expected, f"{split!r:.60}")
    captions = _member(item, "captions", list, where_file)
    if not captions:
        raise UserError(f"{where_file}: captions", "at least one", "none")
    for k, caption in enumerate(captions):
        place = f"{where_file}: captions[{k}]"
        if not isinstance(caption, str) or not caption.strip():
            raise UserError(place, "a sentence", f"{caption!r:.60}")
        if any(mark in caption.strip() for mark in "\t\r\n"):
            raise UserError(place, "one line without tabs", f"{caption!r:.60}")
        check_text(caption, place, "")
    person = _member(item, "id", int, where_file)
    unread: dict[nested_keys.Key, None] = {}
    nested_keys.gather_unread(unread, item, KEYS | {release.file})
    return Entry(where, str(path), split, str(person), captions, tuple(unread))


def _member(item: object, key: str, kind: type, where: str):
    value = item.get(key) if isinstance(item, dict) else None
    if type(value) is not kind:  # a bool is no id
        raise UserError(f"{where}: {key}", kind.__name__, f"{value!r:.60}")
    return value


def _check_together(entries: list[Entry], release: Release) -> None:
    of_picture: dict[str, Entry] = {}
    of_person: dict[str, Entry] = {}
    for entry in entries:
        other = of_picture.setdefault(_image_id(entry.file), entry)
        if other is not entry:
            found = f"{entry.file!r}, the name of {other.where}"
            raise UserError(
                f"{entry.where}: {release.file}", "every picture once", found
            )
        other = of_person.setdefault(entry.person, entry)
        if other.split != entry.split:
            where = f"{entry.where} {entry.file}: id {entry.person}"
            found = f"{entry.split}, but {other.split} in {other.where} {other.file}"
            raise UserError(where, "one split per person", found)


def _image_id(file: str) -> str:
    return str(PurePosixPath(file).with_suffix(""))
