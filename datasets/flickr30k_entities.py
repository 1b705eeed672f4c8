"""Flickr30k Entities: 31,783 photographs, five captions each, and boxes for their phrases.

Plummer et al. (2017), IJCV 123. The raw folder holds

    train.txt, val.txt, test.txt   the authors' partition: one image id per line
    annotations.zip                Sentences/<id>.txt and Annotations/<id>.xml, or the two folders
    UNRELATED_CAPTIONS             captions that do not fit their image; for `unrelated=False` only
    flickr30k-images               <id>.jpg, as a folder or .zip; unless `with_pictures=False`

Archives are read in place; nothing is ever extracted from them.

A sentence marks its phrases as `[/EN#<chain>/<type>/<type> <words>]`. All phrases of an image with
the same chain name the same things; chain 0 names nothing visible. The XML of an image is PASCAL's:
boxes are whole pixels, counted from 1, and include their last row and column. Here boxes are
half-open (x0 = xmin - 1, x1 = xmax), so that width = x1 - x0, and the intersection over union of
two boxes is that of the inclusive originals.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pandas as pd

from benchmark.contracts.datasets import Card, Needed, OpenPicture, RemoteFile, Tables, UserError
from benchmark.readers import archives, content, image_files, readable

FORM = "https://forms.illinois.edu/sec/229675"
RELEASE = "https://github.com/BryanPlummer/flickr30k_entities/raw/master"

LISTS = {"train": "train.txt", "val": "val.txt", "test": "test.txt"}
ARCHIVE = "annotations.zip"
SENTENCES, ANNOTATIONS = "Sentences", "Annotations"
UNRELATED = "UNRELATED_CAPTIONS"
IMAGES = "flickr30k-images"
PHOTOGRAPHS = f"{IMAGES}/ or {IMAGES}.zip"
AGAIN = "fetch the release again"

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
        Needed("the 31,783 photographs, after the form", ((f"{IMAGES}/",), (f"{IMAGES}.zip",))),
        Needed("sentences and boxes", ((ARCHIVE,), (f"{SENTENCES}/", f"{ANNOTATIONS}/"))),
        Needed("the image ids of each split", (tuple(LISTS.values()),)),
    ),
    raw_gib=4.5,
    expected_images={"train": 29783, "val": 1000, "test": 1000},
    expected_captions={"train": 5 * 29783, "val": 5000, "test": 5000},
)

REGION = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
NO_BOX = (0, 0, 0, 0)
UNRELATED_LINE = re.compile(rf"(\d+)\s+([1-{CAPTIONS}])")

LONGEST_LINE = 20_000  # characters of a sentence with its markup
MOST_TAGS = 20_000  # of the XML of one image
NOT_VISUAL = "0"  # the chain of phrases that name nothing in the picture

PHRASE = re.compile(r"\[/EN#(?P<chain>\d+)(?:/[^\s\]]*)? (?P<words>\s*[^\s\]][^\]]*)\]")
OPENING = re.compile(r"\[/EN#\S*")
SIDES = ("xmin", "ymin", "xmax", "ymax")


class Phrase(NamedTuple):
    """Words of a sentence, and the number (from the file, as text) of the things they name."""

    words: str
    chain: str


class Sentence(NamedTuple):
    """A sentence without its markup, and its phrases in their order."""

    text: str
    phrases: tuple[Phrase, ...]


class Box(NamedTuple):
    """Half-open pixels."""

    x0: int
    y0: int
    x1: int
    y1: int


@dataclass(frozen=True)
class Annotation:
    """The content of the XML of one image."""

    unions: dict[str, Box]  # chain -> the smallest box around all boxes of the chain
    boxless: frozenset[str]  # chains marked as the whole scene, or as without a box
    clipped: int  # boxes that reached one pixel over the border of the picture

    @property
    def chains(self) -> frozenset[str]:
        """Everything that has an object."""
        return self.boxless | self.unions.keys()


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which captions are kept, and whether there are pictures."""

    unrelated: bool = True  # False: the captions of UNRELATED_CAPTIONS are left out
    with_pictures: bool = True  # False: pictures are not looked for, as for imported features


class Entry(NamedTuple):
    """The release's annotations of one image."""

    image_id: str
    sentences: list[Sentence]
    annotation: Annotation


class Release(NamedTuple):
    """Where Sentences and Annotations are, and what reads a file there by its path."""

    place: Path
    read: Callable[[str], bytes]


def card(options: Options = Options()) -> Card:
    """What the options need, and how many captions they leave."""
    chosen = CARD if options.unrelated else _related(CARD)
    return chosen if options.with_pictures else _without_pictures(chosen)


def _related(card: Card) -> Card:
    """The card without unrelated captions, all of which are of training images."""
    captions = dict(card.expected_captions)
    captions["train"] -= UNRELATED_IN_TRAIN
    checklist = (*card.checklist, Needed("captions that do not fit their image", ((UNRELATED,),)))
    return replace(card, checklist=checklist, expected_captions=captions)


def _without_pictures(card: Card) -> Card:
    obtain = f"place {ARCHIVE} and {', '.join(LISTS.values())} in one folder"
    return replace(card, obtain=obtain, form="", checklist=card.checklist[1:], raw_gib=0.3)


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: archives where there are any, else the files of every listed image."""
    annotations = _annotation_files(raw, list(_splits(raw)))
    lists = [raw / name for name in (*LISTS.values(), *([] if options.unrelated else [UNRELATED]))]
    photographs = _store(raw).files() if options.with_pictures else []
    return [*lists, *annotations, *photographs]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables, with the boxes of the phrases."""
    split_of = _splits(raw)
    entries = _entries(raw, split_of)
    captions, phrases = _captions(entries), _phrases(entries)
    notes = [f"The captions are the lines of {SENTENCES}, verbatim but for the markup."]
    if not options.unrelated:
        dropped = _unrelated(raw, split_of)
        captions = captions[~captions["caption_id"].isin(dropped)].reset_index(drop=True)
        phrases = phrases[~phrases["caption_id"].isin(dropped)]
        notes.append(f"{len(dropped)} captions that {UNRELATED} lists are left out.")
    regions = phrases.loc[phrases["fate"] == "kept", REGION].reset_index(drop=True)
    if regions.empty:
        raise UserError(
            raw, f"phrases of {SENTENCES} with boxes in {ANNOTATIONS}", "not a single one", AGAIN
        )
    return Tables(
        images=_images(split_of, options.with_pictures),
        captions=captions,
        regions=regions,
        notes=(*notes, *_notes(phrases, entries)),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and processes."""
    if not options.with_pictures:
        return image_files.absent(f"place {PHOTOGRAPHS}, and drop the option with_pictures: false")
    return _store(raw)


def _store(raw: Path) -> image_files.Store:
    """Where the pictures are."""
    store = image_files.find(raw, archive=f"{IMAGES}.zip", inside=IMAGES, folders=(IMAGES,))
    if store is None:
        raise UserError(
            raw,
            f"{PHOTOGRAPHS} with .jpg files in it",
            "no pictures",
            "place it there (for features alone, set the option with_pictures: false)",
        )
    return store


def _annotation_files(raw: Path, ids: list[str]) -> list[Path]:
    if (raw / ARCHIVE).is_file():
        return [raw / ARCHIVE]
    if not (raw / SENTENCES).is_dir() and not (raw / ANNOTATIONS).is_dir():
        expected = f"{ARCHIVE}, or folders {SENTENCES} and {ANNOTATIONS}"
        raise UserError(raw, expected, "no annotations", f"place {ARCHIVE} there")
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
                fault = f", already in {split_of[image_id]}" if image_id in split_of else ""
                where, found = f"{raw / name}:{number}", f"{line!r:.40}{fault}"
                raise UserError(where, "the id of another image, a number", found, AGAIN)
            split_of[image_id] = split
    return split_of


def _unrelated(raw: Path, split_of: dict[str, str]) -> set[str]:
    """The caption_ids of UNRELATED_CAPTIONS, whose sentences are counted from 1."""
    caption_ids = set()
    for number, line in enumerate(archives.lines(raw / UNRELATED, UNRELATED), start=1):
        if line.startswith("#"):
            continue
        match = UNRELATED_LINE.fullmatch(line.strip())
        if match is None or match[1] not in split_of:
            expected = f"a listed image id and the number of one of its sentences, 1 to {CAPTIONS}"
            raise UserError(f"{raw / UNRELATED}:{number}", expected, f"{line!r:.40}", AGAIN)
        caption_ids.add(_caption_id(match[1], int(match[2]) - 1))
    return caption_ids


def _caption_id(image_id: str, row: int) -> str:
    return f"{image_id}.jpg#{row}"  # as in Flickr30k's own caption file


# Sentences and boxes -----------------------------------------------------------------------


@contextmanager
def _release(raw: Path) -> Iterator[Release]:
    """The folder of Sentences and Annotations: on disk, or inside the archive."""
    if not (raw / ARCHIVE).is_file():
        yield Release(raw, lambda name: content(raw / name))
        return
    with archives.unzipped(raw / ARCHIVE) as zipped:
        yield Release(raw / ARCHIVE, lambda name: archives.content_of(zipped, raw / ARCHIVE, name))


def _entries(raw: Path, split_of: dict[str, str]) -> list[Entry]:
    with _release(raw) as release:
        return [_entry(release, image_id, LISTS[split]) for image_id, split in split_of.items()]


def _entry(release: Release, image_id: str, listed: str) -> Entry:
    text, xml = _names(image_id)
    sentences = _sentences(_content(release, text, listed), text)
    entry = Entry(image_id, sentences, parse_annotation(_content(release, xml, listed), xml))
    _check_objects(entry, xml)
    return entry


def _check_objects(entry: Entry, xml: str) -> None:
    """If the sentences name anything visible, the XML must have an object, even one without box."""
    visible = [
        words
        for sentence in entry.sentences
        for words, chain in sentence.phrases
        if chain != NOT_VISUAL
    ]
    if visible and not entry.annotation.chains:
        expected = f"objects, as the sentences name {visible[0]!r:.40}"
        raise UserError(xml, expected, "none", AGAIN)


def _content(release: Release, name: str, listed: str) -> str:
    expected = f"the annotations of an image of {listed}, UTF-8 text"
    with readable(release.place / name, expected, AGAIN):
        return release.read(name).decode("utf-8")


def _sentences(text: str, name: str) -> list[Sentence]:
    # str.splitlines would also split at rarer characters, which a sentence may contain.
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if len(lines) != CAPTIONS:
        raise UserError(name, f"{CAPTIONS} sentences, one per line", len(lines), AGAIN)
    return [parse_sentence(line, f"{name}:{row}") for row, line in enumerate(lines, start=1)]


def parse_sentence(line: str, where: str) -> Sentence:
    """One line of Sentences/<image>.txt; `where` starts the message of a `UserError`."""
    if len(line) > LONGEST_LINE:  # the patterns take the square of its length
        found = f"{len(line)} characters"
        raise UserError(where, f"at most {LONGEST_LINE} characters", found, AGAIN)
    text = PHRASE.sub(lambda match: match["words"], line)
    wrong = OPENING.search(text)
    if wrong:
        expected = "[/EN#number/type words], closed and without other markup inside"
        raise UserError(where, expected, f"{wrong[0]:.40}", AGAIN)
    if not text.strip():
        raise UserError(where, "a sentence", "a blank line", AGAIN)
    phrases = (Phrase(match["words"].strip(), match["chain"]) for match in PHRASE.finditer(line))
    return Sentence(text, tuple(phrases))


def parse_annotation(text: str, where: str) -> Annotation:
    """Annotations/<image>.xml; `where` starts the message of a `UserError`."""
    root = _root(text, where)
    size = _size(root, where)
    boxes: dict[str, list[Box]] = defaultdict(list)
    named, clipped = set(), 0
    for number, thing in enumerate(root.findall("object"), start=1):
        where_object = f"{where}: object {number}"
        chains = _chains(thing, where_object)
        named.update(chains)
        for bounds in _bounds(thing, where_object):
            box = _inside(bounds, size, where_object)
            clipped += box != bounds
            for chain in chains:
                boxes[chain].append(box)
    unions = {chain: _union(members) for chain, members in boxes.items()}
    return Annotation(unions, frozenset(named - unions.keys()), clipped)


def _root(text: str, where: str) -> Element:
    # Entities could expand a small file to a huge one; text with zero bytes may be UTF-16, in which
    # they would not be recognised.
    if any(mark in text for mark in ("<!DOCTYPE", "<!ENTITY", "\0")):
        expected = "XML without DOCTYPE, ENTITY and zero bytes, as in the release"
        raise UserError(where, expected, "one of them", AGAIN)
    if text.count("<") > MOST_TAGS:  # elements inside one another: taken apart by recursion
        raise UserError(where, f"at most {MOST_TAGS} tags", text.count("<"), AGAIN)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UserError(where, "whole XML", f"something else ({error})", AGAIN) from error


def _size(root: Element, where: str) -> tuple[int, int]:
    size = root.find("size")
    if size is None:
        raise UserError(f"{where}: size", "the picture's width and height", "nothing", AGAIN)
    return _whole(size, "width", where), _whole(size, "height", where)


def _chains(thing: Element, where: str) -> list[str]:
    chains = [(name.text or "").strip() for name in thing.findall("name")]
    if not chains or not all(chain.isdecimal() for chain in chains):
        raise UserError(f"{where}: name", "one or more chain numbers", chains, AGAIN)
    return chains


def _bounds(thing: Element, where: str) -> list[Box]:
    """The boxes of an object; none if it is marked as having none."""
    elements = thing.findall("bndbox")
    if not elements and thing.find("scene") is None and thing.find("nobndbox") is None:
        raise UserError(where, "a bndbox, or scene or nobndbox", "neither", AGAIN)
    return [_half_open(element, where) for element in elements]


def _half_open(bounds: Element, where: str) -> Box:
    xmin, ymin, xmax, ymax = (_whole(bounds, side, where) for side in SIDES)
    if xmax < xmin or ymax < ymin:
        found = f"xmin ymin xmax ymax {xmin} {ymin} {xmax} {ymax}"
        raise UserError(f"{where}: box", "a box that ends after it begins", found, AGAIN)
    return Box(xmin - 1, ymin - 1, xmax, ymax)


def _whole(parent: Element, tag: str, where: str) -> int:
    text = parent.findtext(tag)
    try:
        return int(text)
    except (TypeError, ValueError):
        found = f"{text!r:.40}"
        raise UserError(f"{where}: {tag}", "a whole number", found, AGAIN) from None


def _inside(box: Box, size: tuple[int, int], where: str) -> Box:
    """The box clipped to the picture. Raises UserError for one that reaches more than a pixel
    outside, which rounding cannot explain."""
    width, height = size
    x0, y0, x1, y1 = box
    clipped = Box(max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
    farthest = max(abs(a - b) for a, b in zip(box, clipped, strict=True))
    if farthest > 1 or clipped.x0 >= clipped.x1 or clipped.y0 >= clipped.y1:
        found = f"xmin ymin xmax ymax {x0 + 1} {y0 + 1} {x1} {y1}"
        expected = f"a box within the picture of {width} x {height} pixels"
        raise UserError(f"{where}: box", expected, found, AGAIN)
    return clipped


def _union(boxes: list[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))


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
    """Every phrase of every sentence: the columns of regions, and `fate`: kept, or why not."""
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
    """Counts of what is irregular or left out, if it occurs."""
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
