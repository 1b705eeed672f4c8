"""Flickr30k Entities: 31,783 photographs, five captions each, and boxes for their phrases.

Plummer et al. (2017), IJCV 123. The raw folder holds

    train.txt, val.txt, test.txt   the authors' partition: image ids, one a line
    annotations.zip                Sentences/<id>.txt and Annotations/<id>.xml, or the two folders
    UNRELATED_CAPTIONS             only for `unrelated=False`: captions that do not fit their image
    flickr30k-images               <id>.jpg, as a folder or .zip; not for `with_pictures=False`

Archives are read in place; nothing is ever extracted from them.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from datasets import Card, DataError, OpenPicture, RemoteFile, Tables
from datasets.shared import archives, picture_stores
from datasets.shared.entities import (
    NOT_VISUAL,
    Annotation,
    Sentence,
    parse_annotation,
    parse_sentence,
)

FORM = "https://forms.illinois.edu/sec/229675"
RELEASE = "https://github.com/BryanPlummer/flickr30k_entities/raw/master"

LISTS = {"train": "train.txt", "val": "val.txt", "test": "test.txt"}
ARCHIVE = "annotations.zip"
SENTENCES, ANNOTATIONS = "Sentences", "Annotations"
UNRELATED = "UNRELATED_CAPTIONS"
IMAGES = "flickr30k-images"
PHOTOGRAPHS = f"{IMAGES}/ or {IMAGES}.zip"

CAPTIONS = 5  # of every image
UNRELATED_IN_TRAIN = 21  # rows of UNRELATED_CAPTIONS; none is of an image of val or test

CARD = Card(
    title="Flickr30k Entities",
    source="Plummer, Wang, Cervantes, Caicedo, Hockenmaier and Lazebnik (2017), Flickr30k "
    "Entities: Collecting Region-to-Phrase Correspondences for Richer Image-to-Sentence Models, "
    "IJCV 123, 74-93",
    licence="photographs for non-commercial research and education, under Flickr's terms of use; "
    "the annotations state none",
    split="entities",
    may_publish=False,
    remote=tuple(
        RemoteFile(name=name, urls=(f"{RELEASE}/{name}",))
        for name in (ARCHIVE, *LISTS.values(), UNRELATED)
    ),
    obtain=f"place {PHOTOGRAPHS}, {ARCHIVE} and {', '.join(LISTS.values())} in one folder",
    form=FORM,
    checklist=(
        f"{PHOTOGRAPHS}: the 31,783 photographs, after the form",
        f"{ARCHIVE} or {{{SENTENCES},{ANNOTATIONS}}}/: sentences and boxes",
        "{train,val,test}.txt: the image ids of each split",
    ),
    raw_gib=4.5,
    expected_images={"train": 29783, "val": 1000, "test": 1000},
    expected_captions={"train": 5 * 29783, "val": 5000, "test": 5000},
)

REGION = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
NO_BOX = (0, 0, 0, 0)
UNRELATED_LINE = re.compile(rf"(\d+)\s+([1-{CAPTIONS}])")


class Entry(NamedTuple):
    """What the release has of one image."""

    image_id: str
    sentences: list[Sentence]
    annotation: Annotation


def card(*, unrelated: bool = True, with_pictures: bool = True) -> Card:
    """What the options need, and how many captions they leave."""
    chosen = CARD if unrelated else _related(CARD)
    return chosen if with_pictures else _without_pictures(chosen)


def _related(card: Card) -> Card:
    """Of the unrelated captions all are for training."""
    captions = dict(card.expected_captions)
    captions["train"] -= UNRELATED_IN_TRAIN
    checklist = (*card.checklist, f"{UNRELATED}: captions that do not fit their image")
    return replace(card, checklist=checklist, expected_captions=captions)


def _without_pictures(card: Card) -> Card:
    obtain = f"place {ARCHIVE} and {', '.join(LISTS.values())} in one folder"
    return replace(card, obtain=obtain, form="", checklist=card.checklist[1:], raw_gib=0.3)


def inventory(raw: Path, *, unrelated: bool = True, with_pictures: bool = True) -> list[Path]:
    """The files in use: archives where there are any, else the files of every listed image."""
    annotations = _annotation_files(raw, list(_splits(raw)))
    lists = [raw / name for name in (*LISTS.values(), *([] if unrelated else [UNRELATED]))]
    photographs = _store(raw).files() if with_pictures else []
    return [*lists, *annotations, *photographs]


def read(raw: Path, *, unrelated: bool = True, with_pictures: bool = True) -> Tables:
    """The tables.

    unrelated      False: the captions that the release lists as not of their image are left out
    with_pictures  False: none are looked for, as where features are imported
    """
    split_of = _splits(raw)
    entries = _entries(raw, split_of)
    captions, phrases = _captions(entries), _phrases(entries)
    notes = [f"The captions are the lines of {SENTENCES}, verbatim but for the markup."]
    if not unrelated:
        dropped = _unrelated(raw, split_of)
        captions = captions[~captions["caption_id"].isin(dropped)].reset_index(drop=True)
        phrases = phrases[~phrases["caption_id"].isin(dropped)]
        notes.append(f"{len(dropped)} captions that {UNRELATED} lists are left out.")
    regions = phrases.loc[phrases["fate"] == "kept", REGION].reset_index(drop=True)
    if regions.empty:
        raise DataError(f"{raw}: no phrase of {SENTENCES} has a box in {ANNOTATIONS}; fetch again")
    return Tables(
        images=_images(split_of, with_pictures),
        captions=captions,
        regions=regions,
        notes=(*notes, *_notes(phrases, entries)),
    )


def pictures(raw: Path, *, unrelated: bool = True, with_pictures: bool = True) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and processes."""
    if not with_pictures:
        return picture_stores.absent(
            f"place {PHOTOGRAPHS}, and drop the option with_pictures: false"
        )
    return _store(raw)


def _store(raw: Path) -> picture_stores.Store:
    """Where the pictures are."""
    store = picture_stores.find(raw, archive=f"{IMAGES}.zip", inside=IMAGES, folders=(IMAGES,))
    if store is None:
        raise DataError(
            f"{raw}: no pictures; expected {PHOTOGRAPHS} with .jpg files in it (features "
            "alone need the option with_pictures: false)"
        )
    return store


def _annotation_files(raw: Path, ids: list[str]) -> list[Path]:
    if (raw / ARCHIVE).is_file():
        return [raw / ARCHIVE]
    if not (raw / SENTENCES).is_dir() and not (raw / ANNOTATIONS).is_dir():
        raise DataError(
            f"{raw}: no annotations; expected {ARCHIVE}, or folders {SENTENCES} and {ANNOTATIONS}"
        )
    return [raw / name for image_id in ids for name in _names(image_id)]


def _names(image_id: str) -> tuple[str, str]:
    return f"{SENTENCES}/{image_id}.txt", f"{ANNOTATIONS}/{image_id}.xml"


# Lists -------------------------------------------------------------------------------------


def _splits(raw: Path) -> dict[str, str]:
    """image_id -> split, in the order of the lists."""
    split_of: dict[str, str] = {}
    for split, name in LISTS.items():
        for number, line in enumerate(archives.lines(raw / name, name), start=1):
            image_id = line.strip()
            if not image_id.isdecimal() or image_id in split_of:
                known = split_of.get(image_id)
                fault = f"already in {known}" if known else "not a number"
                raise DataError(
                    f"{raw / name}:{number}: {line!r:.40}: {fault}; expected a new image id"
                )
            split_of[image_id] = split
    return split_of


def _unrelated(raw: Path, split_of: dict[str, str]) -> set[str]:
    """The caption_ids of UNRELATED_CAPTIONS, whose sentences are counted from 1."""
    found = set()
    for number, line in enumerate(archives.lines(raw / UNRELATED, UNRELATED), start=1):
        if line.startswith("#"):
            continue
        match = UNRELATED_LINE.fullmatch(line.strip())
        if match is None or match[1] not in split_of:
            raise DataError(
                f"{raw / UNRELATED}:{number}: {line!r:.40}: expected a listed image id and the "
                f"number of one of its sentences, 1 to {CAPTIONS}; fetch it again"
            )
        found.add(_caption_id(match[1], int(match[2]) - 1))
    return found


def _caption_id(image_id: str, row: int) -> str:
    return f"{image_id}.jpg#{row}"  # as in Flickr30k's own caption file


# Sentences and boxes -----------------------------------------------------------------------


@contextmanager
def _release(raw: Path) -> Iterator[Path | zipfile.Path]:
    """The folder of Sentences and Annotations: on the disk, or inside the archive."""
    if not (raw / ARCHIVE).is_file():
        yield raw
        return
    archives.members(raw / ARCHIVE)  # refuses members that point outside
    with zipfile.ZipFile(raw / ARCHIVE) as archive:
        yield zipfile.Path(archive)


def _entries(raw: Path, split_of: dict[str, str]) -> list[Entry]:
    with _release(raw) as release:
        return [_entry(release, image_id, LISTS[split]) for image_id, split in split_of.items()]


def _entry(release: Path | zipfile.Path, image_id: str, listed: str) -> Entry:
    text, xml = _names(image_id)
    sentences = _sentences(_content(release / text, listed), text)
    entry = Entry(image_id, sentences, parse_annotation(_content(release / xml, listed), xml))
    _check_objects(entry, xml)
    return entry


def _check_objects(entry: Entry, xml: str) -> None:
    """Whatever the sentences name that can be seen has an object, if only one without a box."""
    visible = [
        words
        for sentence in entry.sentences
        for words, chain in sentence.phrases
        if chain != NOT_VISUAL
    ]
    if visible and not entry.annotation.chains:
        raise DataError(
            f"{xml}: expected objects, as the sentences name {visible[0]!r:.40}, found none; "
            "fetch the release again"
        )


def _content(path: Path | zipfile.Path, listed: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path}: not found, but its image is in {listed}; fetch again") from error
    except archives.DAMAGED as error:
        raise DataError(f"{path}: damaged ({error}); fetch the release again") from error


def _sentences(text: str, name: str) -> list[Sentence]:
    # Not str.splitlines: a sentence may hold one of the rarer characters it splits at.
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if len(lines) != CAPTIONS:
        raise DataError(
            f"{name}: expected {CAPTIONS} sentences, a line each, found {len(lines)}; fetch again"
        )
    return [parse_sentence(line, f"{name}:{row}") for row, line in enumerate(lines, start=1)]


# Tables ------------------------------------------------------------------------------------


def _images(split_of: dict[str, str], with_pictures: bool) -> pd.DataFrame:
    rows = [
        (image_id, f"{image_id}.jpg" if with_pictures else "", split, image_id)
        for image_id, split in split_of.items()
    ]
    return pd.DataFrame(rows, columns=["image_id", "file", "split", "group"])


def _captions(entries: list[Entry]) -> pd.DataFrame:
    rows = [
        (_caption_id(entry.image_id, row), entry.image_id, sentence.text)
        for entry in entries
        for row, sentence in enumerate(entry.sentences)
    ]
    return pd.DataFrame(rows, columns=["caption_id", "image_id", "text"])


def _phrases(entries: list[Entry]) -> pd.DataFrame:
    """Every phrase of every sentence: the columns of regions, and `fate`, what becomes of it."""
    rows = []
    for image_id, sentences, annotation in entries:
        for row, sentence in enumerate(sentences):
            caption_id = _caption_id(image_id, row)
            for words, chain in sentence.phrases:
                box = annotation.unions.get(chain, NO_BOX)
                named = (image_id, caption_id, words, *box, f"{image_id}/{chain}")
                rows.append((*named, _fate(chain, annotation)))
    return pd.DataFrame(rows, columns=[*REGION, "fate"])


def _fate(chain: str, annotation: Annotation) -> str:
    if chain == NOT_VISUAL:
        return "not visual"
    if chain in annotation.unions:
        return "kept"
    return "boxless" if chain in annotation.boxless else "unknown"


def _notes(phrases: pd.DataFrame, entries: list[Entry]) -> list[str]:
    """What is irregular or left out, in numbers; nothing of what does not occur."""
    fates = phrases["fate"].value_counts()
    bare = sum(not entry.annotation.chains for entry in entries)
    clipped = sum(entry.annotation.clipped for entry in entries)
    counted = [
        (fates.get("not visual", 0), "phrases name nothing visible and are no regions."),
        (fates.get("boxless", 0), "phrases name the scene or what has no box; no regions."),
        (fates.get("unknown", 0), "phrases have a chain that their XML does not know; no regions."),
        (bare, "images have an XML without any object."),
        (clipped, "boxes reached a pixel over the border of their picture and were clipped."),
    ]
    return [f"{count} {what}" for count, what in counted if count]
