"""Flickr30k Entities: 31,783 photographs, five captions each, and boxes for their
phrases.

Plummer et al. (2017), IJCV 123. The raw folder holds

    train.txt, val.txt, test.txt   the authors' partition: one image id per line
    annotations.zip                Sentences/<id>.txt and Annotations/<id>.xml, or the two folders
    UNRELATED_CAPTIONS             captions that do not fit their image; for `unrelated=False` only
    flickr30k-images               <id>.jpg, as a folder or .zip; unless `with_pictures=False`

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
NOT_VISUAL = "0"  # the chain of phrases that name nothing in the picture

PHRASE = re.compile(r"\[/EN#(?P<chain>\d+)(?:/[^\s\]]*)? (?P<words>\s*[^\s\]][^\]]*)\]")
OPENING = re.compile(r"\[/EN#\S*")
SIDES = ("xmin", "ymin", "xmax", "ymax")

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
    clipped: int  # boxes that reached one pixel over the border of the picture


class Entry(NamedTuple):
    """The release's annotations of one image."""

    image_id: str
    sentences: list[Sentence]
    annotation: Annotation


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which captions are kept, and whether there are pictures."""

    unrelated: bool = True  # False: the captions of UNRELATED_CAPTIONS are left out
    # False: pictures are not looked for, as for imported features
    with_pictures: bool = True


def card(options: Options = Options()) -> Card:
    """What the options need, and how many captions they leave."""
    files = [ARCHIVE, *LISTS.values()]
    photographs = Needed(
        "the 31,783 photographs, after the form", ((f"{IMAGES}/",), (f"{IMAGES}.zip",))
    )
    unrelated = Needed("captions that do not fit their image", ((UNRELATED,),))
    train = 5 * 29783 - (0 if options.unrelated else UNRELATED_IN_TRAIN)
    return Card(
        title="Flickr30k Entities",
        source="Plummer, Wang, Cervantes, Caicedo, Hockenmaier and Lazebnik (2017), Flickr30k "
        "Entities: Collecting Region-to-Phrase Correspondences for Richer Image-to-Sentence "
        "Models, IJCV 123, 74-93",
        licence="photographs for non-commercial research and education, under Flickr's terms of "
        "use; the annotations state none",
        split="entities",
        may_publish=False,
        remote=tuple(
            RemoteFile(name=name, urls=(f"{RELEASE}/{name}",))
            for name in (*files, UNRELATED)
        ),
        obtain=f"place {f'{PHOTOGRAPHS}, ' if options.with_pictures else ''}{ARCHIVE} and "
        f"{', '.join(LISTS.values())} in one folder",
        form=FORM if options.with_pictures else "",
        checklist=(
            *([photographs] if options.with_pictures else []),
            Needed(
                "sentences and boxes",
                ((ARCHIVE,), (f"{SENTENCES}/", f"{ANNOTATIONS}/")),
            ),
            Needed("the image ids of each split", (tuple(LISTS.values()),)),
            *([] if options.unrelated else [unrelated]),
        ),
        raw_gib=4.5 if options.with_pictures else 0.3,
        expected_images={"train": 29783, "val": 1000, "test": 1000},
        expected_captions={"train": train, "val": 5000, "test": 5000},
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: archives where there are any, else the files of every listed
    image."""
    annotations = _annotation_files(raw, _splits(raw))
    lists = [
        raw / name
        for name in (*LISTS.values(), *([] if options.unrelated else [UNRELATED]))
    ]
    photographs = _store(raw).files() if options.with_pictures else []
    return [*lists, *annotations, *photographs]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables, with the boxes of the phrases."""
    split_of = _splits(raw)
    entries = _entries(raw, split_of)
    images = [
        (image_id, f"{image_id}.jpg" if options.with_pictures else "", split, image_id)
        for image_id, split in split_of.items()
    ]
    captions, phrases = _captions_and_phrases(entries)
    notes = [f"The captions are the lines of {SENTENCES}, verbatim but for the markup."]
    if not options.unrelated:
        dropped = _unrelated(raw, split_of)
        listed = captions[captions["caption_id"].isin(dropped)]
        captions = captions[~captions["caption_id"].isin(dropped)].reset_index(
            drop=True
        )
        phrases = phrases[~phrases["caption_id"].isin(dropped)]
        what = f"{len(dropped)} captions that {UNRELATED} lists"
        notes.append(reader_notes.left_out(what, dict.fromkeys(listed["image_id"])))
    regions = phrases.loc[phrases["fate"] == "kept", REGION].reset_index(drop=True)
    if regions.empty:
        expected = f"phrases of {SENTENCES} with boxes in {ANNOTATIONS}"
        raise UserError(raw, expected, "not a single one", AGAIN)
    return Tables(
        images=pd.DataFrame(images, columns=["image_id", "file", "split", "group"]),
        captions=captions,
        regions=regions,
        notes=(*notes, *_notes(phrases, entries)),
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and
    processes."""
    if not options.with_pictures:
        return image_files.absent(
            f"place {PHOTOGRAPHS}, and drop the option with_pictures: false"
        )
    return _store(raw)


def _store(raw: Path) -> image_files.Store:
    """Where the pictures are."""
    do = "place it there (for features alone, set the option with_pictures: false)"
    return image_files.needed(
        raw, archive=f"{IMAGES}.zip", inside=IMAGES, folders=(IMAGES,), do=do
    )


def _annotation_files(raw: Path, ids: Iterable[str]) -> list[Path]:
    if (raw / ARCHIVE).is_file():
        return [raw / ARCHIVE]
    if not (raw / SENTENCES).is_dir() and not (raw / ANNOTATIONS).is_dir():
        expected = f"{ARCHIVE}, or folders {SENTENCES} and {ANNOTATIONS}"
        raise UserError(raw, expected, "no annotations", f"place {ARCHIVE} there")
    return [raw / name for image_id in ids for name in _names(image_id)]


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
            expected = f"a listed image id and the number of one of its sentences, 1 to {CAPTIONS}"
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
    place, entries = raw / ARCHIVE if (raw / ARCHIVE).is_file() else raw, []
    with _release(raw) as read_bytes:
        for image_id, split in split_of.items():
            texts = []
            for name in _names(image_id):
                expected = f"the annotations of an image of {LISTS[split]}, UTF-8 text"
                with readable(place / name, expected, AGAIN):
                    texts.append(read_bytes(name).decode("utf-8"))
            text, xml = _names(image_id)
            sentences, annotation = (
                _sentences(texts[0], text),
                parse_annotation(texts[1], xml),
            )
            phrases = [phrase for sentence in sentences for phrase in sentence.phrases]
            visible = [words for words, chain in phrases if chain != NOT_VISUAL]
            if visible and not annotation.unions and not annotation.boxless:
                expected = f"objects, as the sentences name {visible[0]!r:.40}"
                raise UserError(xml, expected, "none", AGAIN)
            entries.append(Entry(image_id, sentences, annotation))
    return entries


def _sentences(text: str, name: str) -> list[Sentence]:
    # str.splitlines would also split at rarer characters, which a sentence may contain.
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if len(lines) != CAPTIONS:
        raise UserError(name, f"{CAPTIONS} sentences, one per line", len(lines), AGAIN)
    return [
        parse_sentence(line, f"{name}:{row}") for row, line in enumerate(lines, start=1)
    ]


def parse_sentence(line: str, where: str) -> Sentence:
    """One line of Sentences/<image>.txt; `where` starts the message of a
    `UserError`."""
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
    phrases = (
        (match["words"].strip(), match["chain"]) for match in PHRASE.finditer(line)
    )
    return Sentence(text, tuple(phrases))


def parse_annotation(text: str, where: str) -> Annotation:
    """Annotations/<image>.xml; `where` starts the message of a `UserError`."""
    root = _root(text, where)
    size = root.find("size")
    if size is None:
        raise UserError(
            f"{where}: size", "the picture's width and height", "nothing", AGAIN
        )
    width, height = (_whole(size, tag, where) for tag in ("width", "height"))
    boxes: dict[str, list[Box]] = defaultdict(list)
    named, clipped = set(), 0
    for number, thing in enumerate(root.findall("object"), start=1):
        where_object = f"{where}: object {number}"
        chains = [(name.text or "").strip() for name in thing.findall("name")]
        if not chains or not all(chain.isdecimal() for chain in chains):
            raise UserError(
                f"{where_object}: name", "one or more chain numbers", chains, AGAIN
            )
        named.update(chains)
        elements = thing.findall("bndbox")
        if (
            not elements
            and thing.find("scene") is None
            and thing.find("nobndbox") is None
        ):
            raise UserError(
                where_object, "a bndbox, or scene or nobndbox", "neither", AGAIN
            )
        for element in elements:
            box, is_clipped = _box(element, width, height, where_object)
            clipped += is_clipped
            for chain in chains:
                boxes[chain].append(box)
    unions = {chain: _union(members) for chain, members in boxes.items()}
    return Annotation(unions, frozenset(named - unions.keys()), clipped)


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
    """The box, half-open and clipped to the picture, and whether that changed it.
    Raises UserError for one that reaches more than a pixel outside, which rounding
    cannot explain."""
    sides = xmin, ymin, xmax, ymax = [_whole(bounds, side, where) for side in SIDES]
    x0, y0, x1, y1 = (
        max(xmin - 1, 0),
        max(ymin - 1, 0),
        min(xmax, width),
        min(ymax, height),
    )
    expected = ""
    if xmax < xmin or ymax < ymin:
        expected = "a box that ends after it begins"
    elif (
        min(xmin, ymin) < 0
        or xmax > width + 1
        or ymax > height + 1
        or x0 >= x1
        or y0 >= y1
    ):
        expected = f"a box within the picture of {width} x {height} pixels"
    if expected:
        found = f"xmin ymin xmax ymax {' '.join(map(str, sides))}"
        raise UserError(f"{where}: box", expected, found, AGAIN)
    return (x0, y0, x1, y1), [x0 + 1, y0 + 1, x1, y1] != sides


def _whole(parent: Element, tag: str, where: str) -> int:
    text = parent.findtext(tag)
    try:
        return int(text)
    except (TypeError, ValueError):
        found = f"{text!r:.40}"
        raise UserError(f"{where}: {tag}", "a whole number", found, AGAIN) from None


def _union(boxes: list[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


# Tables -------------------------------------------------------------------------------


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
    fates = phrases["fate"].value_counts()
    bare = sum(
        not entry.annotation.unions and not entry.annotation.boxless
        for entry in entries
    )
    clipped = sum(entry.annotation.clipped for entry in entries)
    counted = [
        (
            fates.get("not visual", 0),
            "phrases name nothing visible and are no regions.",
        ),
        (
            fates.get("boxless", 0),
            "phrases name the scene or what has no box; no regions.",
        ),
        (
            fates.get("unknown", 0),
            "phrases have a chain that their XML does not know; no regions.",
        ),
        (bare, "images have an XML without any object."),
        (
            clipped,
            "boxes reached a pixel over the border of their picture and were clipped.",
        ),
    ]
    return [f"{count} {what}" for count, what in counted if count]
