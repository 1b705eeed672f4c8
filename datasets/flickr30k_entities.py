"""Flickr30k Entities: 31,783 photographs, five captions each, and boxes for their
phrases.

Plummer et al. (2017), IJCV 123. The raw folder holds

    train.txt, val.txt, test.txt   the authors' partition: one image id per line
    annotations.zip                Sentences/<id>.txt and Annotations/<id>.xml, or the
                                   two folders
    UNRELATED_CAPTIONS             captions that do not fit their image; for
                                   `unrelated=False` only
    flickr30k-images               <id>.jpg, as a folder or .zip; unless
                                   `with_pictures=False`

Archives are read in place; nothing is ever extracted from them.

A sentence marks its phrases as `[/EN#<chain>/<type>/<type> <words>]`. All phrases of an
image with the same chain name the same things; chain 0 names nothing visible. The XML
of an image is PASCAL's: boxes are whole pixels, counted from 1, and include their last
row and column. Here boxes are half-open (x0 = xmin - 1, x1 = xmax), so that width = x1
- x0, and the intersection over union of two boxes is that of the inclusive originals.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pandas as pd

from benchmark.contracts.datasets import (
    Card,
    Needed,
    OpenPicture,
    RemoteFile,
    Tables,
    UserError,
)
from benchmark.readers import (
    archives,
    content,
    flickr_captions,
    image_files,
    readable,
    reader_notes,
)

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
# rows of UNRELATED_CAPTIONS; none is of an image of val or test
UNRELATED_IN_TRAIN = 21

REGION = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
NO_BOX = (0, 0, 0, 0)
UNRELATED_LINE = re.compile(rf"(\d+)\s+([1-{CAPTIONS}])")

LONGEST_LINE = 20_000  # characters of a sentence with its markup
MOST_TAGS = 20_000  # of the XML of one image
NOT_VISUAL = "0"  # the chain of phrases that name nothing in the image

PHRASE = re.compile(r"\[/EN#(?P<chain>\d+)(?:/[^\s\]]*)? (?P<words>\s*[^\s\]][^\]]*)\]")
OPENING = re.compile(r"\[/EN#\S*")
SIDES = ("xmin", "ymin", "xmax", "ymax")
FATES = {  # why phrases are no regions -> what notes say of them
    "not visual": "name nothing visible and are no regions.",
    "boxless": "name the scene or what has no box; no regions.",
    "unknown": "have a chain that their XML does not know; no regions.",
}

Box = tuple[int, int, int, int]  # x0, y0, x1, y1: half-open pixels


class Sentence(NamedTuple):
    """A sentence without its markup, and its phrases in their order: words, and the
    number (from the file, as text) of the things that they name."""

    text: str
    phrases: tuple[tuple[str, str], ...]


class Annotation(NamedTuple):
    """The content of the XML of one image."""

    unions: dict[str, Box]  # chain -> the smallest box around all boxes of the chain
    boxless: frozenset[str]  # chains marked as the whole scene, or as without a box
    clipped: int  # boxes that reached one pixel over the border of the image

    @property
    def is_empty(self) -> bool:
        """Whether there is no object, not even one without a box."""
        return not self.unions and not self.boxless


class Entry(NamedTuple):
    """The release's annotations of one image."""

    image_id: str
    sentences: list[Sentence]
    annotation: Annotation


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which captions are kept, and whether there are images."""

    unrelated: bool = True  # False: the captions of UNRELATED_CAPTIONS are left out
    # False: images are not looked for, as for imported features
    with_pictures: bool = True


def card(options: Options = Options()) -> Card:
    """What the options need, and how many captions they leave."""
    boxes = Needed(
        "sentences and boxes", ((ARCHIVE,), (f"{SENTENCES}/", f"{ANNOTATIONS}/"))
    )
    checklist = [boxes, Needed("the image ids of each split", (tuple(LISTS.values()),))]
    in_train, obtained, form, size = 5 * 29783, f"{ARCHIVE} and ", "", 0.3
    if options.with_pictures:
        ways = ((f"{IMAGES}/",), (f"{IMAGES}.zip",))
        checklist.insert(0, Needed("the 31,783 photographs, after the form", ways))
        obtained, form, size = f"{PHOTOGRAPHS}, {obtained}", FORM, 4.5
    if not options.unrelated:
        what = "captions that do not fit their image"
        checklist.append(Needed(what, ((UNRELATED,),)))
        in_train -= UNRELATED_IN_TRAIN
    return Card(
        title="Flickr30k Entities",
        source="Plummer, Wang, Cervantes, Caicedo, Hockenmaier and Lazebnik (2017), "
        "Flickr30k Entities: Collecting Region-to-Phrase Correspondences for Richer "
        "Image-to-Sentence Models, IJCV 123, 74-93",
        licence="photographs for non-commercial research and education, under "
        "Flickr's terms of use; the annotations state none",
        split="entities",
        may_publish=False,
        remote=tuple(map(_remote, [ARCHIVE, *LISTS.values(), UNRELATED])),
        obtain=f"place {obtained}{', '.join(LISTS.values())} in one folder",
        form=form,
        checklist=tuple(checklist),
        raw_gib=size,
        expected_images={"train": 29783, "val": 1000, "test": 1000},
        expected_captions={"train": in_train, "val": 5000, "test": 5000},
    )


def _remote(name: str) -> RemoteFile:
    return RemoteFile(name=name, urls=(f"{RELEASE}/{name}",))


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: archives where there are any, else the files of every listed
    image."""
    annotations = _annotation_files(raw, _splits(raw))
    lists = [raw / name for name in LISTS.values()]
    if not options.unrelated:
        lists.append(raw / UNRELATED)
    photographs = _store(raw).files() if options.with_pictures else []
    return [*lists, *annotations, *photographs]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables, with the boxes of the phrases."""
    split_of = _splits(raw)
    entries = _entries(raw, split_of)
    captions, phrases = _captions_and_phrases(entries)
    notes = [f"The captions are the lines of {SENTENCES}, verbatim but for the markup."]
    if not options.unrelated:
        dropped = _unrelated(raw, split_of)
        is_dropped = captions["caption_id"].isin(dropped)
        images = dict.fromkeys(captions["image_id"][is_dropped])
        captions = captions[~is_dropped].reset_index(drop=True)
        phrases = phrases[~phrases["caption_id"].isin(dropped)]
        what = f"{len(dropped)} captions that {UNRELATED} lists"
        notes.append(reader_notes.left_out(what, images))
    regions = phrases.loc[phrases["fate"] == "kept", REGION].reset_index(drop=True)
    if regions.empty:
        expected = f"phrases of {SENTENCES} with boxes in {ANNOTATIONS}"
        raise UserError(raw, expected, "not a single one", AGAIN)
    return Tables(
        images=_images(split_of, options),
        captions=captions,
        regions=regions,
        notes=(*notes, *_notes(phrases, entries)),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens an image by name; safe to share between threads and
    processes."""
    if not options.with_pictures:
        advice = f"place {PHOTOGRAPHS}, and drop the option with_pictures: false"
        return image_files.absent(advice)
    return _store(raw)


def _store(raw: Path) -> image_files.Store:
    """Where the images are."""
    advice = "place it there (for features alone, set the option with_pictures: false)"
    return image_files.needed(
        raw, archive=f"{IMAGES}.zip", inside=IMAGES, folders=(IMAGES,), do=advice
    )


def _annotation_files(raw: Path, ids: Iterable[str]) -> list[Path]:
    if (raw / ARCHIVE).is_file():
        return [raw / ARCHIVE]
    if not (raw / SENTENCES).is_dir() and not (raw / ANNOTATIONS).is_dir():
        expected = f"{ARCHIVE}, or folders {SENTENCES} and {ANNOTATIONS}"
        raise UserError(raw, expected, "no annotations", f"place {ARCHIVE} there")
    paths = []
    for image_id in ids:
        paths += (raw / name for name in _names(image_id))
    return paths


def _names(image_id: str) -> tuple[str, str]:
    return f"{SENTENCES}/{image_id}.txt", f"{ANNOTATIONS}/{image_id}.xml"


# Lists --------------------------------------------------------------------------------


def _splits(raw: Path) -> dict[str, str]:
    """image_id -> split, in the order of the lists."""
    return flickr_captions.listed(
        {split: (raw / name, name) for split, name in LISTS.items()},
        lambda line: line if line.isdecimal() else "",
        "the id of another image, a number",
    )


def _unrelated(raw: Path, split_of: dict[str, str]) -> set[str]:
    """The caption_ids of UNRELATED_CAPTIONS, whose sentences are counted from 1."""
    caption_ids = set()
    for number, line in enumerate(archives.lines(raw / UNRELATED, UNRELATED), start=1):
        if line.startswith("#"):
            continue
        match = UNRELATED_LINE.fullmatch(line.strip())
        if match is None or match[1] not in split_of:
            expected = (
                "a listed image id and the number of one of its sentences, "
                f"1 to {CAPTIONS}"
            )
            raise UserError(
                f"{raw / UNRELATED}:{number}", expected, f"{line!r:.40}", AGAIN
            )
        caption_ids.add(_caption_id(match[1], int(match[2]) - 1))
    return caption_ids


def _caption_id(image_id: str, row: int) -> str:
    return f"{image_id}.jpg#{row}"  # as in Flickr30k's own caption file


# Sentences and boxes ------------------------------------------------------------------


@contextmanager
def _release(raw: Path) -> Iterator[Callable[[str], bytes]]:
    """Reads a file of Sentences and Annotations by its path: on disk, or inside the
    archive."""
    if not (raw / ARCHIVE).is_file():
        yield lambda name: content(raw / name)
        return
    with archives.unzipped(raw / ARCHIVE) as zipped:
        yield lambda name: archives.content_of(zipped, raw / ARCHIVE, name)


def _entries(raw: Path, split_of: dict[str, str]) -> list[Entry]:
    """Of every image. Raises UserError where sentences name anything visible, and the
    XML has no object, not even one without a box."""
    archive, entries = raw / ARCHIVE, []
    place = archive if archive.is_file() else raw
    with _release(raw) as read_bytes:
        for image_id, split in split_of.items():
            expected = f"the annotations of an image of {LISTS[split]}, UTF-8 text"
            texts = []
            for name in _names(image_id):
                with readable(place / name, expected, AGAIN):
                    texts.append(read_bytes(name).decode("utf-8"))
            entry = _entry(image_id, *texts)
            entries.append(entry)
    return entries


def _entry(image_id: str, text: str, xml: str) -> Entry:
    """The annotations of an image in the contents of its two files."""
    text_name, xml_name = _names(image_id)
    sentences = _sentences(text, text_name)
    annotation = parse_annotation(xml, xml_name)
    if annotation.is_empty:
        for sentence in sentences:
            for words, chain in sentence.phrases:
                if chain != NOT_VISUAL:
                    expected = f"objects, as the sentences name {words!r:.40}"
                    raise UserError(xml_name, expected, "none", AGAIN)
    return Entry(image_id, sentences, annotation)


def _sentences(text: str, name: str) -> list[Sentence]:
    # str.splitlines would also split at rarer characters, which a sentence may contain.
    lines = text.rstrip().split("\n")
    if len(lines) != CAPTIONS:
        raise UserError(name, f"{CAPTIONS} sentences, one per line", len(lines), AGAIN)
    sentences = []
    for number, line in enumerate(lines, start=1):
        sentences.append(parse_sentence(line.strip(), f"{name}:{number}"))
    return sentences


def parse_sentence(line: str, where: str) -> Sentence:
    """One line of Sentences/<image>.txt; `where` starts the message of a
    `UserError`."""
    if len(line) > LONGEST_LINE:  # the patterns take the square of its length
        length = f"{len(line)} characters"
        raise UserError(where, f"at most {LONGEST_LINE} characters", length, AGAIN)
    text = PHRASE.sub(lambda match: match["words"], line)
    wrong = OPENING.search(text)
    if wrong:
        expected = "[/EN#number/type words], closed and without other markup inside"
        raise UserError(where, expected, f"{wrong[0]:.40}", AGAIN)
    if not text.strip():
        raise UserError(where, "a sentence", "a blank line", AGAIN)
    phrases = []
    for match in PHRASE.finditer(line):
        phrases.append((match["words"].strip(), match["chain"]))
    return Sentence(text, tuple(phrases))


def parse_annotation(text: str, where: str) -> Annotation:
    """Annotations/<image>.xml; `where` starts the message of a `UserError`."""
    root = _root(text, where)
    size = root.find("size")
    if size is None:
        expected = "the image's width and height"
        raise UserError(f"{where}: size", expected, "nothing", AGAIN)
    width, height = _whole(size, "width", where), _whole(size, "height", where)
    boxes: dict[str, list[Box]] = defaultdict(list)
    named: set[str] = set()
    clipped = 0
    for number, thing in enumerate(root.findall("object"), start=1):
        place = f"{where}: object {number}"
        chains = _chains(thing, place)
        named.update(chains)
        bounds = thing.findall("bndbox")
        flags = thing.find("scene"), thing.find("nobndbox")
        if not bounds and flags == (None, None):
            expected = "a bndbox, or scene or nobndbox"
            raise UserError(place, expected, "neither", AGAIN)
        for element in bounds:
            box, is_clipped = _box(element, width, height, place)
            clipped += is_clipped
            for chain in chains:
                boxes[chain].append(box)
    unions = {chain: _union(members) for chain, members in boxes.items()}
    return Annotation(unions, frozenset(named - unions.keys()), clipped)


def _chains(thing: Element, where: str) -> list[str]:
    """The numbers of the things that an object shows."""
    chains = [(name.text or "").strip() for name in thing.findall("name")]
    if not chains or not all(map(str.isdecimal, chains)):
        raise UserError(f"{where}: name", "one or more chain numbers", chains, AGAIN)
    return chains


def _root(text: str, where: str) -> Element:
    # Entities could expand a small file to a huge one; text with zero bytes may be
    # UTF-16, in which they would not be recognised.
    if any(mark in text for mark in ("<!DOCTYPE", "<!ENTITY", "\0")):
        expected = "XML without DOCTYPE, ENTITY and zero bytes, as in the release"
        raise UserError(where, expected, "one of them", AGAIN)
    # elements inside one another: taken apart by recursion
    if text.count("<") > MOST_TAGS:
        raise UserError(where, f"at most {MOST_TAGS} tags", text.count("<"), AGAIN)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UserError(
            where, "whole XML", f"something else ({error})", AGAIN
        ) from error


def _box(bounds: Element, width: int, height: int, where: str) -> tuple[Box, bool]:
    """The box, half-open and clipped to the image, and whether that changed it.
    Raises UserError for one that reaches more than a pixel outside, which rounding
    cannot explain."""
    sides = xmin, ymin, xmax, ymax = [_whole(bounds, side, where) for side in SIDES]
    x0, y0 = max(xmin - 1, 0), max(ymin - 1, 0)
    x1, y1 = min(xmax, width), min(ymax, height)
    is_near = min(xmin, ymin) >= 0 and xmax <= width + 1 and ymax <= height + 1
    expected = ""
    if xmax < xmin or ymax < ymin:
        expected = "a box that ends after it begins"
    elif not is_near or x0 >= x1 or y0 >= y1:
        expected = f"a box within the image of {width} x {height} pixels"
    if expected:
        numbers = f"xmin ymin xmax ymax {' '.join(map(str, sides))}"
        raise UserError(f"{where}: box", expected, numbers, AGAIN)
    return (x0, y0, x1, y1), [x0 + 1, y0 + 1, x1, y1] != sides


def _whole(parent: Element, tag: str, where: str) -> int:
    text = parent.findtext(tag)
    try:
        return int(text)
    except (TypeError, ValueError):
        place = f"{where}: {tag}"
        raise UserError(place, "a whole number", f"{text!r:.40}", AGAIN) from None


def _union(boxes: list[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


# Tables -------------------------------------------------------------------------------


def _images(split_of: dict[str, str], options: Options) -> pd.DataFrame:
    rows = []
    for image_id, split in split_of.items():
        file = f"{image_id}.jpg" if options.with_pictures else ""
        rows.append((image_id, file, split, image_id))
    return pd.DataFrame(rows, columns=["image_id", "file", "split", "group"])


def _captions_and_phrases(entries: list[Entry]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every sentence, and every phrase of it: the columns of regions, and `fate`: kept,
    or why not."""
    captions, phrases = [], []
    for image_id, sentences, annotation in entries:
        for row, sentence in enumerate(sentences):
            caption_id = _caption_id(image_id, row)
            captions.append((caption_id, image_id, sentence.text))
            for words, chain in sentence.phrases:
                box = annotation.unions.get(chain, NO_BOX)
                named = (image_id, caption_id, words, *box, f"{image_id}/{chain}")
                phrases.append((*named, _fate(chain, annotation)))
    return (
        pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        pd.DataFrame(phrases, columns=[*REGION, "fate"]),
    )


def _fate(chain: str, annotation: Annotation) -> str:
    if chain == NOT_VISUAL:
        return "not visual"
    if chain in annotation.unions:
        return "kept"
    return "boxless" if chain in annotation.boxless else "unknown"


def _notes(phrases: pd.DataFrame, entries: list[Entry]) -> list[str]:
    """Counts of what is irregular or left out, if it occurs."""
    counts = phrases["fate"].value_counts()
    notes = []
    for fate, what in FATES.items():
        if count := counts.get(fate, 0):
            notes.append(f"{count} phrases {what}")
    if empty := sum(entry.annotation.is_empty for entry in entries):
        notes.append(f"{empty} images have an XML without any object.")
    if clipped := sum(entry.annotation.clipped for entry in entries):
        what = (
            "boxes reached a pixel over the border of their picture and were clipped."
        )
        notes.append(f"{clipped} {what}")
    return notes
