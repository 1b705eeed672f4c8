"""Anyone's own pictures and captions: a folder with one annotation file in it, or one of the
layouts in which people share such data.

    .jsonl  one line per image: {"image": "a.jpg", "captions": ["...", "..."]} or "caption": "...";
            optional "split", "group", and "id" (default: the image's path). Lines with the same
            image are merged.
    .csv    (.tsv, .txt) one row per caption; columns image, caption and, optionally, split and
            group, separated by commas, semicolons, tabs or |; or Flickr's a.jpg#0, tab, caption
    .json   a list of such objects as in .jsonl (BLIP), {"a.jpg": ["...", "..."]}, Karpathy's
            format, COCO's captions, or TextCaps

Where none lies beside the images:

    metadata.csv, .jsonl  in each of several folders named after splits, with files in that folder
    .parquet              columns of images (structs with `bytes`, or bytes) and captions
    .tar                  WebDataset: 000.jpg with 000.txt (a caption a line) or 000.json
    .txt                  beside each image: a.jpg and a.txt, a caption a line
    corpus, queries       as .jsonl or .tsv, the one of images, the other of captions, and
                          qrels/test.tsv: which of them belong together, in columns query-id,
                          corpus-id and score

The split is that of the lines, else the last word of a file's path that names one. The other words
of a path do not count. An image in a tar or parquet file is called as its line says, else by the
path of the file and its member, or its row from 0.

`NAMES` lists what else the image, the caption and the split may be called, in any case. More
captions may stand in numbered columns (caption_0, caption_1) or as a list in a cell; a caption may
be an object with a text, whose split and group are those of its image. Keys that are not read are
named in the notes, at every depth. Two keys for one thing are refused unless they agree.

Paths are relative to the folder. A picture that is not there may have its name in another Unicode
form or case, or all of them may be in one folder below; where that is no single file, nothing is
guessed. Without splits, a hash of its path puts each image into train, val or test (80/10/10).
With the options `val` and `test`, so many images of the highest hashes are these splits; with
`val` alone, it is taken from train.
"""

import ast
import csv
import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from unicodedata import normalize
from urllib.parse import unquote

import pandas as pd
from pydantic import BaseModel

from benchmark.contracts.datasets import Card, OpenPicture, Tables, UserError
from benchmark.readers import (
    LONGEST_PATH,
    check_text,
    checked,
    content,
    image_files,
    inside,
    is_file,
    nested_keys,
    opened,
    option_checks,
    parse_json,
    qrels,
    readable,
    reader_notes,
    text_tables,
)
from benchmark.readers import packed_images as packed
from benchmark.readers.flickr_captions import TOKEN_LINE, token_lines
from benchmark.readers.nested_keys import Key
from benchmark.readers.segmenters import segmenter
from benchmark.readers.text_tables import IMAGES, lines_of

CARD = Card(
    title="A folder of pictures and captions",
    source="the user's own",
    licence="unknown",
    split="as annotated, else by hash of the path",
    may_publish=False,
    obtain="place the pictures and one annotation file (.jsonl, .csv, .tsv, .txt, or .json as a "
    "list, Karpathy's, COCO's or TextCaps') in one folder, or one of the layouts of "
    "docs/datasets.md",
)

KINDS = (".jsonl", ".csv", ".json", ".tsv", ".txt", ".token")
NAMES = {  # what a key says -> its names
    "image": tuple(
        "image file_name filename file file_path image_name image_path image_file img img_name "
        "img_path".split()
    ),
    "caption": ("caption", "captions", "caption_str"),
    "split": ("split", "set_name", "set", "subset", "partition"),
    "group": ("group",),
    "id": ("id",),
}
OTHER_CAPTIONS = ("text", "raw", "sentence", "sentences", "comment", "reference_strs")  # else
CAPTION_IDS = ("captionid", "sentid", "sentenceid", "annid", "annotationid")  # but for - and _
IMAGE_IDS = ("cocoid", "imageid", "imgid")  # further names of an image, the first that is there
NUMBERS = ("#", "comment_number")  # which caption of its image: a.jpg#0; Flickr30k's table
NUMBERED = re.compile(r"(?P<stem>.*[^\d ._-])[ ._-]*\d+")
SPLITS = {"validation": "val", "valid": "val", "dev": "val", "training": "train"}
SPLITS |= {"restval": "train"}  # Karpathy's: the rest of COCO's validation set
USES = {"train": "training", "val": "validation"}
LIST = re.compile(  # texts, written as one: a list, a tuple, or COCO's {"raw": text}
    r"""\s*(?:\[\s*['"\[{].*\]|\(\s*['"].*['"]\s*,?\s*\)|\{\s*['"]\w+['"]\s*:.*\})\s*""", re.DOTALL
)
FACTS = ("image_id", "split", "group")  # attributes of an image, on which lines must agree
SHARED = ("split", "group")  # those that may be said of its captions, too
SHARES = {"train": (0.0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1.0)}  # of the hash's range
CORRECT = text_tables.CORRECT
SAMPLE = "correct the sample, or get the file again"
CHOOSE = "name one: rematch init DIR --captions FILE, in a season file the option captions"
ONE_FILE = "write the captions beside the images into one .csv: columns image and caption"
BY_SPLIT = "write them into one file, as one list with a column or key split"
FORMATS = "a list of images, or an object with images (Karpathy, COCO) or data (TextCaps)"
TEXTS = ("txt", "caption", "captions", "text")  # of a sample
COMMON = 0.5  # share of names with an ending from which on one without is no image
MANY = 5  # annotation files from which on it is better to write one
TEXT, MOST = 1 << 20, 1 << 30  # bytes of the text of one image; of many
METADATA = ("metadata.csv", "metadata.jsonl")
NUMBERED_IMAGE = re.compile(rf"(?P<file>{text_tables.IMAGE_NAME.pattern})#(?P<number>\d+)", re.I)
SEPARATOR = re.compile(r"[,;|\t]")
NO_ANNOTATIONS = re.compile(r"dataset_infos?\.json|dataset_dict\.json|.*_stats\.json")
SIDES = ("corpus", "queries")
ITEM_IDS = ("_id", "id")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which annotation file is read, and how."""

    captions: str | None = None  # its path in the folder; None: the only one there is
    val: int | None = None  # groups in the split, where the file names none; None: a tenth
    test: int | None = None
    tokeniser: str | None = None  # for a script without spaces: a name in readers.segmenters

    def __post_init__(self) -> None:
        for option, value in (("val", self.val), ("test", self.test)):
            if value is not None:
                option_checks.check_number("folder", option, value, 1)
        if self.test is not None and self.val is None:
            raise option_checks.refusal("folder", "val", "a number where test has one", self.val)
        if self.tokeniser is not None:
            segmenter(self.tokeniser)


@dataclass(frozen=True)
class Form:
    """What is known of a format beside the names of columns.

    captions  the key of captions, where a format has one for them; "": the names above
    usual     keys that say nothing here and that most files of the format have
    """

    captions: str = ""
    usual: frozenset[Key] = frozenset()


def _keys(text: str) -> frozenset[Key]:
    return frozenset(tuple(key.split(".")) for key in text.split())


PLAIN = Form()
BLIP = Form(usual=_keys("image_id"))
KARPATHY = Form(
    usual=_keys(
        """
        imgid cocoid sentids sentences.tokens sentences.imgid sentences.sentid
        """
    )
)
COCO = Form(
    captions="annotations",
    usual=_keys(
        """
        image_id license coco_url flickr_url date_captured height width annotations.id
        info.description info.url info.version info.year info.contributor
        info.date_created licenses.id licenses.name licenses.url
        """
    ),
)
TEXTCAPS = Form(
    usual=_keys(
        """
        image_id image_classes image_width image_height flickr_original_url
        flickr_300k_url caption_id caption_tokens reference_strs reference_tokens
        """
    )
)
HUGGING_FACE = Form(usual=KARPATHY.usual | _keys("img_id"))
IMG2DATASET = Form(
    usual=_keys(
        """
        key url status error_message width height original_width original_height exif
        md5 sha256
        """
    )
)


OUTSIDE = {  # key of the images -> keys beside it that are read or say nothing
    "images": {"images", "annotations", "dataset", "type"},
    "data": {"data", "dataset_name", "dataset_type", "dataset_version"},
}


@dataclass(frozen=True)
class Record:
    """A line or item of an annotation file."""

    where: str
    facts: dict
    form: Form = PLAIN
    places: tuple[str, ...] = ()  # where each caption stands, if not in the item itself


@dataclass(frozen=True)
class Caption:
    """A caption, and what the file calls it."""

    text: str
    own_id: str | None = None
    number: str | None = None  # among those of its image


@dataclass(frozen=True)
class Sentence:
    """A caption as it stands in a record: in an object, beside other facts, or alone."""

    where: str
    path: Key  # of the object
    text: str
    facts: dict


@dataclass(frozen=True)
class Entry:
    """What one line or item of the annotation file says of one image; `where` locates it."""

    where: str
    file: str
    captions: list[Caption]
    image_id: str | None = None
    split: str | None = None
    group: str | None = None
    own_id: str | None = None  # what else the file calls the image
    is_packed: bool = False  # in a tar or parquet file


@dataclass
class Annotations:
    """Annotation files, and what is met while they are read."""

    paths: list[Path]
    name: str
    entries: list[Entry] = field(default_factory=list)
    used: dict[Key, None] = field(default_factory=dict)  # keys, or columns, that say something
    ids: dict[Key, None] = field(default_factory=dict)  # those of further names
    usual: set[Key] = field(default_factory=set)
    keys: dict[Key, None] = field(default_factory=dict)  # all of them
    notes: list[str] = field(default_factory=list)
    is_regrouped: bool = False  # captions stand in another order than that of their images
    is_one_file: bool = False  # beside the images, or above them

    def unused(self, *, with_ids: bool = True) -> list[Key]:
        """The keys that are not read. Further names are read by `score` alone."""
        read = {*self.used, *self.usual, *(() if with_ids else self.ids)}
        return [key for key in self.keys if key not in read]


Reader = Callable[[Path, list[str], Annotations], Iterator[Entry]]


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotation files and every picture they name."""
    read = _annotations(raw, options)
    files = dict.fromkeys(entry.file for entry in read.entries if not entry.is_packed)
    return [*read.paths, *map(image_files.Folder(raw).path_of, files)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables of the annotation files."""
    read = _annotations(raw, options)
    images = _images(read)
    split, notes = _splits(images, read.name, options)
    notes += reader_notes.unread(read.name, read.unused())
    notes += _numbers_that_mislead(images)
    return _tables(read, images.assign(split=split), notes, options)


def read_for_score(raw: Path, options: Options = Options()) -> Tables:
    """The tables for scores that were made elsewhere, for which no image is trained on.

    The images of the split test are scored. Where the annotations name no split, or one
    alone, all images are: they become test. Raises UserError for several splits without
    test, and as `read` does.
    """
    read = _annotations(raw, options)
    images = _images(read)
    if read.is_one_file:
        _check_endings(read.entries)
    split, notes = _scored_splits(images, read.name)
    notes += reader_notes.unread(read.name, read.unused(with_ids=False))
    places = pd.Series([entry.file for entry in read.entries]).factorize()[0]
    if read.is_regrouped or (places[1:] < places[:-1]).any():
        notes.append(
            "Captions of one image are not all in consecutive rows: without ids, rows are "
            "taken image by image, in the order of the images."
        )
    return _tables(read, images.assign(split=split), notes, options)


def _tables(read: Annotations, images: pd.DataFrame, notes: list[str], options: Options) -> Tables:
    """The tables. The index of images is `imgid` and that of captions `sentid`, where the
    file has such names for all of them."""
    notes = [*notes, *read.notes]
    image_id = dict(zip(images["file"], images["image_id"], strict=True))
    rows = [
        (image_id[entry.file], caption.text, caption.own_id, caption.number)
        for entry in read.entries
        for caption in entry.captions
    ]
    captions = pd.DataFrame(rows, columns=["image_id", "text", "own_id", "number"])
    captions = captions.astype({"image_id": "str", "text": "str"})
    number = captions["number"]
    if number.isna().any() or captions.duplicated(["image_id", "number"]).any():
        number = captions.groupby("image_id").cumcount().astype(str)
    captions.insert(0, "caption_id", captions["image_id"] + "#" + number)
    if options.tokeniser:
        captions["text"] = captions["text"].map(segmenter(options.tokeniser))
        notes.append(f"Captions are the words that {options.tokeniser} finds, with spaces between.")
    return Tables(
        images=_called(images, "imgid")[["image_id", "file", "split", "group"]],
        captions=_called(captions, "sentid")[["caption_id", "image_id", "text"]],
        notes=tuple(notes),
    )


def _called(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table with the column own_id as its index, if that names every row."""
    own_id = table["own_id"]
    if own_id.isna().any() or own_id.duplicated().any():
        return table
    return table.set_index(pd.Index(own_id.astype(str), name=name))


def has_splits(raw: Path, options: Options = Options()) -> bool:
    """Whether the annotation file names splits."""
    return any(entry.split for entry in _annotations(raw, options).entries)


def told(raw: Path, options: Options = Options()) -> str:
    """One line: what of the folder is read, and what is left unused (keys and files)."""
    read = _annotations(raw, options)
    named = {*read.paths, *(raw / entry.file for entry in read.entries)}
    others = [file for file in _files(raw) if raw / file not in named]
    used = ", ".join(map(nested_keys.text_of, read.used))
    left = [f"the key {nested_keys.text_of(key)}" for key in read.unused()]
    left += [f"the files {reader_notes.listed(others)}"] if others else []
    return f"read {read.name}: {used}; not used: {', '.join(left) or 'nothing'}"


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by its path in the folder."""
    return packed.Packed(raw)


def missing(raw: Path, file: str) -> UserError:
    """The error for a picture that the annotations name and that is not there."""
    name = PurePosixPath(file)
    near = [f for f in _files(raw) if name.stem in (PurePosixPath(f).stem, PurePosixPath(f).name)]
    packed = [f for f in _files(raw) if f.lower().endswith((".zip", ".tar", ".gz", ".tgz"))]
    hint = f"did you mean {near[0]}?" if near else f"unpack {packed[0]}?" if packed else ""
    found = "nothing" + (f" ({hint})" if hint else "")
    do = "correct the annotation file or add the image"
    return UserError(raw / file, "an image, as the annotations name it", found, do)


def _files(raw: Path) -> list[str]:
    """The paths of all files of the folder that are not hidden."""
    paths = []
    for place, folders, files in os.walk(raw):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        base = Path(place).relative_to(raw)
        paths += [(base / name).as_posix() for name in sorted(files) if not name.startswith(".")]
    return paths


def _found(raw: Path, options: Options) -> tuple[Reader, list[str]]:
    """How the annotations are read, and the files that hold them."""
    expected = f"one annotation file ({', '.join(KINDS)})"
    asked = _qrels_files(raw)
    if asked and options.captions in (None, *asked):
        return _of_qrels, asked
    named = sorted(p.name for p in raw.glob("[!.]*") if p.suffix.lower() in KINDS)
    beside = {text for text, _ in _texts_beside(raw)} if len(named) > 1 else ()
    # Of several, a read-me is none.
    files = [name for name in named if name not in beside and _is_annotation(raw / name)]
    if options.captions is not None:
        name = _inside(options.captions, "folder: option captions")
        if not is_file(raw / name):
            found = f"nothing ({reader_notes.listed(files) or 'no such file'} could be read)"
            raise UserError(raw / name, expected, found, "correct its name")
        kind = PurePosixPath(name).suffix.lower()
        if kind not in (*KINDS, *PACKED):
            found, do = f"a {kind or 'nameless'} file", "save it as .csv with image and caption"
            raise UserError(raw / name, expected, found, do)
        return PACKED.get(kind, _of_text), [name]
    if len(files) == 1:
        return _of_text, files
    if not files:
        layouts = {read: found for read, find in LAYOUTS.items() if (found := find(raw))}
        if len(layouts) == 1:
            return next(iter(layouts.items()))
        if layouts:
            found = " and ".join(reader_notes.listed(names) for names in layouts.values())
            raise UserError(raw, "one kind of annotations", found, f"keep one kind, or {CHOOSE}")
        if len(named) == 1:
            return _of_text, named
    below = [name for name in _files(raw) if name.lower().endswith(KINDS)]
    if several := files or named or below:
        count = f"{len(files)}: " if files else f"none {'of columns' if named else 'here'}, but "
        is_by_split = len(several) > 1 and all(map(_split_of, several))
        do = BY_SPLIT if is_by_split else ONE_FILE if len(several) > MANY else CHOOSE
        raise UserError(raw, expected, f"{count}{reader_notes.listed(several)}", do)
    kinds = Counter(PurePosixPath(name).suffix or name for name in _files(raw))
    found = "none" + (f" (files of {reader_notes.listed(kinds)})" if kinds else "")
    raise UserError(raw, expected, found, "write a .csv with the columns image and caption")


def _is_annotation(path: Path) -> bool:
    """Whether the beginning of a file looks like annotations; so does what is no file."""
    if path.suffix.lower() in (".json", ".jsonl") or not is_file(path):
        return not NO_ANNOTATIONS.fullmatch(path.name)
    with opened(path) as file:
        start = _decoded(file.read(1 << 16), "replace")
    return bool(_separator(start)) or TOKEN_LINE.match(start) is not None


def _decoded(data: bytes, errors: str = "strict") -> str:
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # as Excel's "Unicode text"
    return data.decode("utf-16" if is_wide else "utf-8-sig", errors)


def _split_of(file: str) -> str | None:
    """The last word of a path that is the name of a split, as written."""
    words = re.split(r"[^a-z]+", file.casefold())
    return next((word for word in reversed(words) if word in {*SPLITS, *USES, "test"}), None)


def _annotations(raw: Path, options: Options) -> Annotations:
    read, files = _found(raw, options)
    if read is not _of_text:  # of several files, or with images in them: no links to others
        _ = [image_files.Folder(raw).path_of(name) for name in files]
    more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
    name = f"{files[0]}{more}" if more else (raw / files[0]).name
    seen = Annotations([raw / file for file in files], name, is_one_file=read is _of_text)
    entries = _once(raw, list(read(raw, files, seen)))
    if not entries:
        raise UserError(name, "at least one image", "none", CORRECT)
    _check_lines(entries)
    named = dict.fromkeys(entry.file for entry in entries if not entry.is_packed)
    moved = _on_disk(raw, list(named))
    seen.notes += _unread_tables(raw, files)
    for given, there in list(moved.items())[:1]:
        note = f"{len(moved)} images are not there as named, but as {there} for {given}."
        seen.notes.append(note)
    for entry in entries:
        if file := moved.get(entry.file):  # the image is known by the name that it was given
            given = entry.image_id or (None if file in named else normalize("NFC", entry.file))
            entry = replace(entry, file=file, image_id=given)
        seen.entries.append(entry)
    return seen


def _unread_tables(raw: Path, read: list[str]) -> list[str]:
    """A note on further tables of the kind that is read, which look like no annotations."""
    kind = PurePosixPath(read[0]).suffix.lower()
    others = []
    if kind == ".parquet":
        tables = [name for name in _files(raw) if name.lower().endswith(packed.PARQUETS)]
        others = [name for name in tables if not _has_captions(raw, name)]
    elif kind in (".csv", ".tsv"):
        tables = sorted(path for path in raw.glob("[!.]*") if path.suffix.lower() == kind)
        others = [path.name for path in tables if not _is_annotation(path)]
    what = "tables without columns of images and captions are not read"
    return [f"{len(others)} {what}: {reader_notes.listed(others)}."] if others else []


def _once(raw: Path, entries: list[Entry]) -> list[Entry]:
    """Rows of tables with the same name of an image and the same bytes, as where each row has one
    caption, are of one image."""
    first: dict[str, Entry] = {}
    contents = packed.Packed(raw)
    digest = lru_cache(maxsize=None)(lambda file: hashlib.sha256(contents.content(file)).digest())
    for row, entry in enumerate(entries):
        other = first.setdefault(entry.image_id or entry.file, entry)
        if entry.is_packed and other.file != entry.file and other.is_packed:
            if digest(other.file) == digest(entry.file):
                entries[row] = replace(entry, file=other.file)
    return entries


# Layouts: readers of files, and where these are ---------------------------------------------------


def _of_text(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """One annotation file beside the images, or above them."""
    for record in _records(raw / files[0], (raw / files[0]).name, seen):
        yield _entry(record, seen)


def _records(path: Path, name: str, seen: Annotations) -> Iterator[Record]:
    with readable(name, "UTF-8 text", "save the file as UTF-8"):
        text = _decoded(content(path))
    kind, is_json = path.suffix.lower(), text.lstrip()[:1] in ("[", "{")
    if kind == ".jsonl":
        return _lines(text, name)
    if is_json or kind == ".json":
        return _json(text, name, seen)
    return _rows(text, name)


def _of_splits(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """Hugging Face's image folder: metadata of each split, with files in the folder of that."""
    for name in files:
        folder = PurePosixPath(name).parent
        for record in _records(raw / name, name, seen):
            entry = _entry(record, seen, path=str(folder))
            yield replace(entry, file=str(folder / entry.file))
    if others := [name for name in _metadata_files(raw) if name not in files]:
        what = "files of metadata are in a folder that names no split, and are not read"
        seen.notes.append(f"{len(others)} {what}: {reader_notes.listed(others)}.")


def _split_files(raw: Path) -> list[str]:
    folder_of = {file: str(PurePosixPath(file).parent) for file in _metadata_files(raw)}
    split_of = {file: _split_of(folder) for file, folder in folder_of.items()}
    split_of = {file: split for file, split in split_of.items() if split}
    return list(split_of) if len(set(split_of.values())) > 1 else []


def _metadata_files(raw: Path) -> list[str]:
    return [file for file in _files(raw) if PurePosixPath(file).name.lower() in METADATA]


def _of_parquet(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """Hugging Face's parquet files."""
    for name in files:
        images, _ = packed.columns(raw / name)
        seen.keys |= dict.fromkeys(packed.keys_of_columns(raw / name))
        seen.used |= {(column,): None for column in images}
        rows = packed.parquet_records(raw / name, _says_something)
        for where, facts, row in rows:
            record = Record(where, facts, HUGGING_FACE)
            file = f"{name}/{row}" if row else None
            yield _entry(record, seen, file, name, is_packed=file is not None)


def _parquet_files(raw: Path) -> list[str]:
    files = [name for name in _files(raw) if name.lower().endswith(packed.PARQUETS)]
    return [name for name in files if _has_captions(raw, name)]


def _has_captions(raw: Path, name: str) -> bool:
    """Whether a table has images, or their names and captions; what cannot be read may have."""
    try:
        images, others = packed.columns(image_files.Folder(raw).path_of(name))
    except UserError:
        return True
    is_named = any(_folded(name) in NAMES["image"] for name in others)
    return bool(images) or is_named and any(map(_caption_name, others))


def _says_something(key: str) -> bool:
    is_id = _plain(key).removesuffix("s") in CAPTION_IDS
    return is_id or bool(_role(key)) or bool(_caption_name(key))


def _of_tars(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """WebDataset: members of one name, up to the first dot, are an image and what is said of it."""
    for name in files:
        path, samples = raw / name, {}
        for member in packed.members(path):
            base = PurePosixPath(member).name
            stem, _, kind = base.partition(".")
            if stem:  # others are hidden
                sample = samples.setdefault(member.removesuffix(base) + stem, {})
                if sample.setdefault(kind.lower(), member) != member:
                    found = f"{member!r:.200} and {sample[kind.lower()]!r:.200}"
                    raise UserError(path, "one member of a kind", found, "keep one of the two")
        for key, sample in samples.items():
            where = f"{name}: {key}"
            image, text = (_of_kinds(sample, kinds, where) for kinds in (IMAGES, TEXTS))
            if image is None:
                found = ", ".join(f".{kind}" for kind in sample)
                raise UserError(where, f"an image (.{', .'.join(IMAGES)})", found, SAMPLE)
            rest = [kind for kind in sample if kind not in (*IMAGES, *TEXTS, "json")]
            seen.keys |= {(f".{kind}",): None for kind in rest}
            facts = {}
            if "json" in sample:
                said = parse_json(_text(path, sample["json"], where), f"{where}.json", SAMPLE)
                facts |= {"caption": said} if isinstance(said, str | list) else _object(said, where)
            if text:
                captions = _lines_of(_text(path, text, where))
                told = facts.get("caption", captions)
                if (_lines_of(told) if isinstance(told, str) else told) != captions:
                    found = f"{captions!r:.60}, but {told!r:.60} in the .json"
                    raise UserError(f"{where}: caption", "the same captions", found, SAMPLE)
                facts["caption"] = captions
            record = Record(where, facts, IMG2DATASET)
            yield _entry(record, seen, f"{name}/{image}", name, is_packed=True)


def _of_kinds(sample: dict[str, str], kinds: Container[str], where: str) -> str | None:
    """The member of a sample that is of one of some kinds; None without one."""
    found = [member for kind, member in sample.items() if kind in kinds]
    if len(found) > 1:
        raise UserError(where, "one image and one text", ", ".join(found), SAMPLE)
    return found[0] if found else None


def _text(path: Path, member: str | None, where: str, most: int = TEXT) -> str:
    """The text of a file, or of a member of a tar."""
    with readable(where, "UTF-8 text", "save it as UTF-8"):
        data = packed.member(path, member, most, where) if member else content(path, most)
        return _decoded(data)


def _lines_of(text: str) -> list[str]:
    """The captions of a text of one image: a line each."""
    return [line.strip() for line in lines_of(text) if line.strip()]


def _of_texts_beside(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """A text of the same name beside each image, with a caption a line."""
    image_of = dict(_texts_beside(raw))
    for name in files:
        record = Record(name, {"caption": _lines_of(_text(raw / name, None, name))})
        yield _entry(record, seen, image_of[name], str(PurePosixPath(name).parent))
    there = [name for name in _files(raw) if _is_image(name) and name not in image_of.values()]
    if there:
        what = f"{len(there)} images have no .txt beside them and are left out"
        seen.notes.append(f"{what}: {reader_notes.listed(there)}.")


def _texts_beside(raw: Path) -> list[tuple[str, str]]:
    """Texts that are no annotation files, and the image of the same name beside each."""
    images: dict[str, str] = {}
    for name in filter(_is_image, files := _files(raw)):
        stem = str(PurePosixPath(name).with_suffix(""))
        if images.setdefault(stem, name) != name and f"{stem}.txt" in files:
            found = f"{images[stem]} and {name}"
            raise UserError(raw / f"{stem}.txt", "one image of this name", found, "rename one")
    pairs = [(name, images.get(name[:-4])) for name in files if name.endswith(".txt")]
    place = image_files.Folder(raw)
    return [
        (name, image) for name, image in pairs if image and not _is_annotation(place.path_of(name))
    ]


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower().removeprefix(".") in IMAGES


LAYOUTS: dict[Reader, Callable[[Path], list[str]]] = {
    _of_splits: _split_files,
    _of_parquet: _parquet_files,
    _of_tars: lambda raw: [n for n in _files(raw) if n.lower().endswith(packed.TARS)],
    _of_texts_beside: lambda raw: [text for text, _ in _texts_beside(raw)],
}
PACKED = {".parquet": _of_parquet, ".tar": _of_tars}


def _qrels_files(raw: Path) -> list[str]:
    """The corpus, the queries and the judgements of BEIR's layout; [] where it is none."""
    sides = [
        next((n for n in (f"{side}.jsonl", f"{side}.tsv") if is_file(raw / n)), "")
        for side in SIDES
    ]
    judged = sorted(f"qrels/{path.name}" for path in raw.glob("qrels/[!.]*.tsv"))
    return [*sides, *judged] if all(sides) and judged else []


def _of_qrels(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """BEIR's layout (Thakur et al. 2021). The images are the side without texts. A caption may
    belong to several images only if these are a group: all of its captions belong to all of it."""
    sides = [_side(raw, name, seen) for name in files[:2]]
    texts = [sum(bool(item.captions) for item in side.values()) for side in sides]
    at = texts.index(min(texts))  # where the images are
    images, captions = sides[at], sides[1 - at]
    if texts[at] or texts[1 - at] < len(captions):
        found = f"{texts[0]} of {len(sides[0])} and {texts[1]} of {len(sides[1])}"
        expected = f"texts in all of {files[1 - at]} and in none of {files[at]}"
        raise UserError(raw, expected, found, CORRECT)
    images_of: dict[str, dict[str, None]] = {caption: {} for caption in captions}
    split_of: dict[str, str | None] = {}
    for name in files[2:]:
        split = _split_of(PurePosixPath(name).name)
        for pair in _judgements(raw / name, name, files, sides):
            if pair.score <= 0:
                continue
            image, caption = (pair.query, pair.item) if at else (pair.item, pair.query)
            if split_of.setdefault(image, split) != split:
                found, where = f"{split} and {split_of[image]}", f"{pair.where}: {image}"
                raise UserError(where, "one split per image", found, CORRECT)
            images_of[caption][image] = None
    members = {image: [image] for image in images}
    for first, *others in filter(None, images_of.values()):  # what shares a caption is a group
        for other in others:
            if members[other] is not members[first]:
                members[first] += members[other]
                members |= dict.fromkeys(members[other], members[first])
    dealt: dict[str, list[Caption]] = {image: [] for image in images}
    for caption, shared in images_of.items():
        group = members[next(iter(shared))] if shared else []
        if alone := [image for image in group if image not in shared]:
            expected = f"{alone[0]}, too, as others of its captions belong to {next(iter(shared))}"
            do = "judge all captions of a group right for all of it, or each for one image"
            raise UserError(f"{files[2]}: {caption}", expected, reader_notes.listed(shared), do)
        for image in sorted(group, key=lambda image: len(dealt[image]))[:1]:  # each in turn
            dealt[image] += captions[caption].captions
    otherwise = "unused" if any(split_of.values()) else None
    for image, item in images.items():
        group, split = members[image], split_of.get(image, otherwise)
        name = group[0] if len(group) > 1 else None
        yield replace(item, captions=dealt[image], split=split, group=name)
    idle = [caption for caption, shared in images_of.items() if not shared]
    for left, what in (
        (idle, "captions have no image in qrels and are left out"),
        ([i for i in images if i not in split_of], "images have no caption in qrels: unused"),
    ):
        seen.notes += [f"{len(left)} {what}: {reader_notes.listed(left)}."] if left else []


def _judgements(
    path: Path, name: str, files: list[str], sides: list[dict[str, Entry]]
) -> list[qrels.Judgement]:
    """The judgements of a file. Raises UserError for ids that the corpus or the queries lack,
    and where nothing tells which column has those of which."""
    corpus, queries = sides
    judged = qrels.read(_text(path, None, name, MOST), name)
    for pair in judged.judgements:
        ids = (pair.query, queries, files[1]), (pair.item, corpus, files[0])
        for key, side, file in ids:
            if key not in side:
                raise UserError(pair.where, f"an id of {file}", f"{key!r:.80}", CORRECT)
    fits_swapped = all(pair.query in corpus and pair.item in queries for pair in judged.judgements)
    if fits_swapped and not judged.has_names:
        expected, found = "names of the columns", "ids that corpus and queries both have"
        do = "write query-id, corpus-id and score, between tabs, into the first line"
        raise UserError(f"{name}:1", expected, found, do)
    return judged.judgements


def _side(raw: Path, name: str, seen: Annotations) -> dict[str, Entry]:
    """The items of the corpus or of the queries, by their ids. One without text is an image: the
    file that it names, else the only one of its id, which may lack the folder and the ending."""
    called: dict[str, list[str]] = {}
    for file in filter(_is_image, _files(raw)):
        path = PurePosixPath(file)
        for short in {file, path.name, path.stem, str(path.with_suffix(""))}:
            called.setdefault(short, []).append(file)
    text, items = _text(raw / name, None, name, MOST), {}
    for record in _lines(text, name) if name.endswith(".jsonl") else _tabbed(text, name):
        where, facts = record.where, record.facts
        key = next((column for column in ITEM_IDS if column in facts), "_id")
        value = facts.get(key)
        if type(value) not in (str, int) or str(value) in items:
            raise UserError(f"{where}: {key}", "an id that occurs once", f"{value!r:.80}", CORRECT)
        nested_keys.gather(seen.keys, facts)
        seen.used[key,] = None
        said = {k: v for k, v in facts.items() if k != key and v not in ("", None)}
        said = {k: v for k, v in said.items() if _caption_name(k) or _folded(k) in NAMES["image"]}
        if not any(map(_caption_name, said)):
            said["caption"] = []
        files = called.get(str(value), [])
        named = any(_folded(column) in NAMES["image"] for column in said)
        file = None if named else files[0] if len(files) == 1 else str(value)
        entry = _entry(replace(record, facts=said), seen, file)
        if len(entry.captions) == 1:
            captions = [replace(entry.captions[0], own_id=str(value))]
            entry = replace(entry, captions=captions)
        items[str(value)] = replace(entry, image_id=str(value))
    return items


def _tabbed(text: str, name: str) -> Iterator[Record]:
    """The rows of a table of items whose columns are separated by tabs."""
    table = text_tables.read(text, name, "\t", lambda column: column in ITEM_IDS)
    for row in table.rows:
        yield Record(f"{name}:{row.line}", dict(zip(table.columns, row.cells, strict=True)))


def _on_disk(raw: Path, names: list[str]) -> dict[str, str]:
    """Name of a picture that is not there -> the one file that it can mean: the same in another
    Unicode form or case, or percent-encoded, else, where this holds for all names, in one folder
    below."""
    named, absent = set(names), [name for name in names if not is_file(raw / name)]
    if not absent:
        return {}
    there: dict[str, list[str]] = {}
    for path in _files(raw):
        there.setdefault(_folded(path), []).append(path)

    def placed(folder: str) -> dict[str, str]:
        found = {  # as named, or with its percent signs read as in a URL
            name: there.get(_folded(folder + name))
            or there.get(_folded(folder + unquote(name)), [])
            for name in absent
        }
        return {name: paths[0] for name, paths in found.items() if is_meant(name, paths)}

    def is_meant(name: str, paths: list[str]) -> bool:
        """Another case is no other name of an image that is named itself."""
        is_same = [normalize("NFC", path) == normalize("NFC", name) for path in paths]
        return len(paths) == 1 and (is_same[0] or paths[0] not in named)

    below = sorted({path.partition("/")[0] for path in _files(raw) if "/" in path})
    whole = [moved for folder in below if len(moved := placed(f"{folder}/")) == len(names)]
    return whole[0] if len(whole) == 1 else placed("")


@lru_cache(maxsize=4096)  # the same few keys in every record
def _folded(text: str) -> str:
    return normalize("NFC", text.strip()).casefold()


@lru_cache(maxsize=4096)
def _plain(key: str) -> str:
    return re.sub(r"[\s_-]", "", _folded(key))


@lru_cache(maxsize=4096)
def _role(key: str) -> str:
    """What a key says, as NAMES has it, or the id of an image; "" for others."""
    if _plain(key) in IMAGE_IDS:
        return "image_id"
    return next((role for role, names in NAMES.items() if _folded(key) in names), "")


def _entry(
    record: Record,
    seen: Annotations,
    file: str | None = None,
    path: str = "",
    is_packed: bool = False,
) -> Entry:
    """What a record says of an image. Its `file` is the one that it names if it is not given; its
    split that of `path` if none is named. The name of an image in a packed file is its id."""
    where, facts = record.where, record.facts
    nested_keys.gather(seen.keys, facts)
    seen.usual |= record.form.usual
    said = {role: _fact(where, facts, role, seen) for role in ("image", "id", *SHARED)}
    if not (said["image"] or file):
        expected = f"a string ({', '.join(NAMES['image'])})"
        raise UserError(
            f"{where}: image", expected, f"None, but {reader_notes.listed(facts)}", CORRECT
        )
    sentences = _sentences(record, seen)
    for sentence in sentences:
        if not sentence.text.strip():
            raise UserError(f"{where}: caption", "a sentence", "a blank", CORRECT)
        check_text(sentence.text, f"{where}: caption", CORRECT)
    roles = {_role(key) for sentence in sentences for key in sentence.facts}
    if roles & {"image", "image_id"}:
        _check_owner(said["image"], facts, sentences, seen)
    for role in SHARED:
        if role in roles:
            said[role] = _shared(role, said[role], sentences, seen)
        check_text(said[role] or "", f"{where}: {role}", CORRECT, LONGEST_PATH)
    file = _inside((file or said["image"]).replace("\\", "/"), f"{where}: image")
    captions = _captions(record, sentences, seen)
    if (numbered := NUMBERED_IMAGE.fullmatch(file)) and len(captions) == 1:
        file = numbered["file"]
        captions = [replace(captions[0], number=numbered["number"])]
    name = said["id"]
    if is_packed and not name and said["image"]:
        name = _inside(said["image"].replace("\\", "/"), f"{where}: image")
    check_text(name or "", f"{where}: id", CORRECT, LONGEST_PATH)
    return Entry(
        where=where,
        file=file,
        captions=captions,
        image_id=name,
        split=said["split"] or _split_of(path),
        group=said["group"],
        own_id=_own_id(facts, IMAGE_IDS, (), seen),
        is_packed=is_packed,
    )


def _sentences(record: Record, seen: Annotations) -> list[Sentence]:
    """The captions of a record. Of several keys some may be blank: images may have fewer
    captions than there are columns."""
    form, facts = record.form, record.facts
    keys = [form.captions] if form.captions else _caption_keys(facts, record.where)
    sentences: list[Sentence] = []
    for key in keys:
        items = _items(facts[key], f"{record.where}: {key}")
        if (key,) in seen.keys:  # texts, which may be objects that were written as text
            seen.used[key,] = None
            for item in items:
                nested_keys.gather(seen.keys, item, (key,))
        for number, item in enumerate(items):
            where = f"{record.where}: {key}[{number}]"
            if record.places:
                where = record.places[number]
            sentences.append(_sentence(item, where, key, seen))
    if len(keys) > 1:
        sentences = [sentence for sentence in sentences if sentence.text.strip()]
    return sentences


def _sentence(item: str | dict, where: str, key: str, seen: Annotations) -> Sentence:
    if isinstance(item, str):
        return Sentence(where, (key,), item, {})
    text = _text_key(item)
    facts = {str(inner): value for inner, value in item.items() if inner != text}
    seen.used[key, text] = None
    return Sentence(where, (key,), item[text], facts)


def _check_owner(
    image: str | None, facts: dict, sentences: list[Sentence], seen: Annotations
) -> None:
    """Raise UserError for a caption that names another image than its own."""
    ids = {_plain(key): value for key, value in facts.items() if _role(key) == "image_id"}
    for sentence in sentences:
        other = _fact(sentence.where, sentence.facts, "image", seen, sentence.path)
        if None not in (image, other) and not _agree(other, image, "image"):
            found = f"{other!r:.60}"
            raise UserError(f"{sentence.where}: image", f"{image!r:.60}", found, CORRECT)
        for key, value in sentence.facts.items() if ids else ():
            if _role(key) == "image_id" and str(ids.get(_plain(key), value)) != str(value):
                expected = f"{ids[_plain(key)]!r:.60}, as of its image"
                found = f"{value!r:.60}"
                raise UserError(f"{sentence.where}: {key}", expected, found, CORRECT)


def _shared(
    role: str, value: str | None, sentences: list[Sentence], seen: Annotations
) -> str | None:
    """A fact of an image that its captions may also state, on which all must agree."""
    place = "its image"
    for sentence in sentences:
        other = _fact(sentence.where, sentence.facts, role, seen, sentence.path)
        if None not in (value, other) and _meaning(role, value) != _meaning(role, other):
            expected = f"{value!r:.60} as of {place}"
            do = f"{CORRECT}: all captions of an image have one {role}"
            raise UserError(f"{sentence.where}: {role}", expected, f"{other!r:.60}", do)
        if value is None and other is not None:
            value, place = other, f"{sentence.where}, a caption of the same image"
    return value


def _meaning(role: str, value: str) -> str:
    """What a value says: of a split, whatever it is called."""
    plain = value.strip().casefold()
    return SPLITS.get(plain, plain) if role == "split" else value


def _captions(record: Record, sentences: list[Sentence], seen: Annotations) -> list[Caption]:
    """The captions, with the ids that the file gives to each, or to all in a list."""
    facts = record.facts
    ids = [_own_id(x.facts, (*CAPTION_IDS, "id"), x.path, seen) for x in sentences]
    for key, value in facts.items():
        if _plain(key).removesuffix("s") in CAPTION_IDS and not any(ids):
            values = value if isinstance(value, list) else [value]
            if len(values) == len(ids) and all(type(each) in (int, str) for each in values):
                ids = [str(each) for each in values]
                seen.ids[key,] = None
    number = None
    for key in (key for key in NUMBERS if key in facts and len(sentences) == 1):
        if str(facts[key]).isdecimal():
            number = str(facts[key])
            seen.used[key,] = None
    return [
        Caption(sentence.text, own_id, number)
        for sentence, own_id in zip(sentences, ids, strict=True)
    ]


def _own_id(facts: dict, names: tuple[str, ...], path: Key, seen: Annotations) -> str | None:
    """The first of the ids of these names, a text or a whole number."""
    keys = [key for key in facts if _plain(key) in names]
    keys = [key for key in keys if type(facts[key]) in (int, str) and facts[key] != ""]
    for key in keys:
        seen.ids[*path, key] = None
    first = min(keys, key=lambda key: names.index(_plain(key)), default=None)
    return None if first is None else str(facts[first])


def _fact(where: str, record: dict, role: str, seen: Annotations, path: Key = ()) -> str | None:
    """The string of one role, None where there is none; a whole number is taken as its digits.
    Several keys may say it if they agree: a path, and its end."""
    values = []
    for key in (key for key in record if _role(key) == role):
        value = str(record[key]) if type(record[key]) is int else record[key]
        seen.used[*path, key] = None
        if value in (None, ""):
            continue
        if not isinstance(value, str):
            raise UserError(f"{where}: {role}", "a string", f"{value!r:.60}", CORRECT)
        if value.strip():
            values.append((value.strip(), key))
    if not values:
        return None
    longest = max(values, key=lambda pair: len(pair[0]))[0]
    if len(values) > 1 and not all(_agree(value, longest, role) for value, _ in values):
        found = " and ".join(f"{key} {value!r:.60}" for value, key in values)
        raise UserError(where, f"one {role}", found, "keep the key that is right")
    if role == "image" and record.get("filepath") and "sentences" in record:  # Karpathy's COCO
        seen.used["filepath",] = None
        return f"{record['filepath']}/{longest}"
    inside_it = [value for value, _ in values if not value.startswith("/")]
    return max(inside_it, key=len) if inside_it else longest


def _agree(a: str, b: str, role: str) -> bool:
    """Whether one of two texts is a path and the other its end; of images, also without
    the ending of the file name."""
    value, path = sorted((a, b), key=len)
    ends = [path]
    if role == "image":
        ends.append(path.removesuffix(PurePosixPath(path).suffix))
    return any(f"/{end}".endswith(f"/{value}") for end in ends)


@lru_cache(maxsize=4096)
def _caption_name(key: str) -> str:
    """What a key would be called without a number, if it is one of captions; else ""."""
    numbered = NUMBERED.fullmatch(_folded(key))
    name = numbered["stem"] if numbered else _folded(key)
    return name if name in (*NAMES["caption"], *OTHER_CAPTIONS) else ""


def _caption_keys(keys: Iterable[str], where: str) -> list[str]:
    """The keys of captions: of one name, alone or with numbers."""
    name_of = {key: name for key in keys if (name := _caption_name(key))}
    names = dict.fromkeys(name_of.values())
    chosen = [name for name in names if name in NAMES["caption"]] or list(names)
    if len(chosen) != 1:
        found = (
            f"both ({' and '.join(chosen)})"
            if chosen
            else f"neither, but {reader_notes.listed(keys)}"
        )
        raise UserError(f"{where}: caption", "either caption or captions", found, CORRECT)
    chosen_keys = [key for key, name in name_of.items() if name == chosen[0]]
    return sorted(chosen_keys, key=_number_of)


def _number_of(key: str) -> tuple[int, str]:
    """What sorts keys by the number at their end; those without one come first."""
    digits = re.search(r"\d*$", key.strip())[0]
    number = digits.lstrip("0")
    return (len(number) + 1 if digits else 0), number


def _items(value: object, where: str) -> list[str | dict]:
    """The captions of one key: a text, an object with a text, or a list of these."""
    items = [value] if isinstance(value, str) else _plain_items(value)
    if items is None:
        raise UserError(where, "text", f"{value!r:.60}", CORRECT)
    captions: list[str | dict] = []
    for item in items:
        captions += _unlisted(item, where) if isinstance(item, str) else [item]
    return captions


def _plain_items(items: object) -> list[str | dict] | None:
    """The items of a list or tuple of texts or of objects with a text, or one such object;
    None for anything else."""
    items = [items] if isinstance(items, dict) else items
    if not isinstance(items, list | tuple):
        return None
    is_text = [isinstance(item, str) or _text_key(item) is not None for item in items]
    return list(items) if all(is_text) else None


def _text_key(item: object) -> str | None:
    """The key of the text of an object that is a caption, as COCO's {"raw": text}; None
    for anything else."""
    if not isinstance(item, dict):
        return None
    keys = [key for key in item if isinstance(key, str) and _caption_name(key)]
    if len(keys) > 1:
        keys = [key for key in keys if _caption_name(key) in NAMES["caption"]] or keys
    return keys[0] if len(keys) == 1 and isinstance(item[keys[0]], str) else None


def _unlisted(text: str, where: str) -> list[str | dict]:
    """The captions of a list that was written as one text, in JSON's or Python's way."""
    if not LIST.fullmatch(text):
        return [text]
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        try:  # Python would join texts without a comma between them, as NumPy writes them
            items = ast.literal_eval(text.strip())
            if isinstance(items, str):  # a sentence in brackets
                return [text]
            items = items if "".join(repr(items).split()) == "".join(text.split()) else None
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            items = None
    if (items := _plain_items(items)) is None:
        do = 'write it as ["...", "..."]'
        raise UserError(where, "a sentence, or a list of sentences", f"{text!r:.80}", do)
    return items


def _lines(text: str, name: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{name}:{number}"
            yield Record(where, _object(parse_json(line, where, CORRECT), where))


def _object(item: object, where: str) -> dict:
    if not isinstance(item, dict):
        raise UserError(where, "an object", f"{str(item)!r:.60}", CORRECT)
    return item


def _rows(text: str, name: str) -> Iterator[Record]:
    """A table with a first line that names the columns, or the lines of Flickr's token files."""
    separator = _separator(text)
    if separator is None and TOKEN_LINE.match(text):
        for where, match in token_lines(lines_of(text), name):
            number = match["caption_id"].rpartition("#")[2]
            facts = {"image": match["file"], "caption": match["text"], "#": number}
            yield Record(where, facts)
        return
    if separator is None:
        captions = ", ".join((*NAMES["caption"], *OTHER_CAPTIONS))
        columns = f"image ({', '.join(NAMES['image'])}) and caption ({captions})"
        found = f"{text.partition(chr(10))[0].strip()!r:.80}"
        expected = f"a first line that names the columns {columns} between , ; | or tabs"
        raise UserError(f"{name}:1", expected, found, CORRECT)
    table = text_tables.read(text, name, separator, _is_image_name)
    captions = _caption_keys(table.columns, f"{name}:1")
    for row in table.rows:
        facts = dict(zip(table.columns, row.cells, strict=True))
        lists = {key: [facts[key]] for key in captions}
        yield Record(f"{name}:{row.line}", facts | lists)


def _is_image_name(column: str) -> bool:
    return _folded(column) in NAMES["image"]


def _separator(text: str) -> str | None:
    """The character that separates the columns of a table, if its first line names them."""
    for separator in ",;\t|":
        try:
            rows = csv.reader(io.StringIO(text[: 1 << 16], newline=""), delimiter=separator)
            header = next(rows, [])
        except csv.Error:
            continue
        if any(map(_is_image_name, header)) and any(map(_caption_name, header)):
            return separator
    return None


def _json(text: str, name: str, seen: Annotations) -> Iterator[Record]:
    try:
        data = parse_json(text, name, CORRECT)
    except UserError as error:
        if "Extra data" not in error.found:
            raise
        yield from _lines(text, name)  # lines of JSON, whatever the file is called
        return
    if not isinstance(data, dict | list):
        raise UserError(name, FORMATS, f"{data!r:.60}", CORRECT)
    if isinstance(data, dict) and "annotations" in data:
        yield from _coco(data, name, seen)
        return
    form, key, items = BLIP, "", data
    if isinstance(data, dict) and any(map(_is_image_name, data)):
        form, items = PLAIN, [data]
    elif isinstance(data, dict) and ("images" in data or "data" in data):
        key = "images" if "images" in data else "data"
        form, items = KARPATHY if key == "images" else TEXTCAPS, data[key]
        nested_keys.gather_unread(seen.keys, data, OUTSIDE[key])
    elif isinstance(data, dict):
        if not all(isinstance(v, str) or _plain_items(v) is not None for v in data.values()):
            do = BY_SPLIT if {*SPLITS, *USES, "test"}.issuperset(data) else CORRECT
            raise UserError(name, FORMATS, f"the keys {reader_notes.listed(data)}", do)
        form, items = PLAIN, [{"image": file, "captions": data[file]} for file in data]
    if not isinstance(items, list):
        raise UserError(f"{name}: {key}", "a list", f"{items!r:.60}", CORRECT)
    for row, item in enumerate(items):
        where = f"{name}: {key}[{row}]"
        yield Record(where, _object(item, where), form)


class CocoImage(BaseModel, strict=True, extra="allow"):
    id: int | str


class CocoCaption(BaseModel, strict=True, extra="allow"):
    image_id: int | str
    caption: str


class Coco(BaseModel):
    """COCO's captions (Lin et al. 2014)."""

    images: list[CocoImage]
    annotations: list[CocoCaption]


def _coco(data: dict, name: str, seen: Annotations) -> Iterator[Record]:
    """The images in their order, each with its captions in theirs."""
    coco = checked(Coco, data, name)
    nested_keys.gather_unread(seen.keys, data, OUTSIDE["images"])
    rows_of: dict[str, list[int]] = {}
    for row, image in enumerate(coco.images):
        if str(image.id) in rows_of:
            where = f"{name}: images[{row}]: id"
            raise UserError(where, "every id once", repr(image.id), CORRECT)
        rows_of[str(image.id)] = []
    for row, annotation in enumerate(coco.annotations):
        if str(annotation.image_id) not in rows_of:
            where, found = f"{name}: annotations[{row}]: image_id", repr(annotation.image_id)
            raise UserError(where, "the id of an image", found, CORRECT)
        rows_of[str(annotation.image_id)].append(row)
    order = [row for rows in rows_of.values() for row in rows]
    seen.is_regrouped |= order != sorted(order)
    for number, image in enumerate(coco.images):
        rows = rows_of[str(image.id)]
        captions = [
            {"caption": coco.annotations[row].caption} | coco.annotations[row].model_extra
            for row in rows
        ]
        facts = {"image_id": image.id} | image.model_extra | {COCO.captions: captions}
        places = tuple(f"{name}: annotations[{row}]" for row in rows)
        yield Record(f"{name}: images[{number}]", facts, COCO, places)


def _inside(file: str, where: str) -> str:
    return inside(file, where, "make it relative to the folder")


def _images(read: Annotations) -> pd.DataFrame:
    """A row for each image; split is None if no line names one, own_id if lines differ."""
    rows: dict[str, dict] = {}
    file_of: dict[str, str] = {}
    for entry in read.entries:
        if entry.image_id and file_of.setdefault(entry.image_id, entry.file) != entry.file:
            expected = f"an id of {entry.file} alone"
            found = f"{entry.image_id!r}, as of {file_of[entry.image_id]}"
            do = f"{CORRECT}; what several images show, such as a person, is called group"
            raise UserError(f"{entry.where}: id", expected, found, do)
        own_id = entry.own_id
        row = rows.setdefault(entry.file, {"file": entry.file} | dict.fromkeys(FACTS))
        for fact in FACTS:
            value, earlier = getattr(entry, fact), row[fact]
            is_given = None not in (value, earlier)
            if is_given and _meaning(fact, value) != _meaning(fact, earlier):
                expected = f"{earlier!r} as in an earlier line with {entry.file}"
                do = f"{CORRECT}; an id of each caption is called caption_id"
                do = do if fact == "image_id" else CORRECT
                raise UserError(f"{entry.where}: {fact}", expected, repr(value), do)
            row[fact] = value if earlier is None else earlier
        row["own_id"] = own_id if row.get("own_id", own_id) == own_id else None
    for row in rows.values():
        row["image_id"] = row["image_id"] or row["file"]
        row["group"] = row["group"] or row["image_id"]
    return pd.DataFrame(rows.values())


def _numbers_that_mislead(images: pd.DataFrame) -> list[str]:
    """A note on ids of images that are the numbers in file names of other images. Prepared
    tables do not have these ids, so `score` finds an image by the number of its file."""
    stems = images["file"].map(lambda file: PurePosixPath(file).stem)
    numbers = stems.str.extract(r"(\d+)$", expand=False).str.lstrip("0")
    ids = images["own_id"].astype("str").str.lstrip("0")
    is_number = numbers.notna().all() and numbers.is_unique and ids.isin(numbers).all()
    others = images[ids != numbers]
    if not is_number or others.empty:
        return []
    first = others.iloc[0]
    return [
        f"Ids of images in the annotations are numbers of other files ({first['file']} has "
        f"{first['own_id']}): vectors for `score --dataset` must name images by their files."
    ]


def _check_lines(entries: list[Entry]) -> None:
    """Raise UserError for a caption with a line that begins with an image and a
    separator: it holds rows of a table whose quotation marks were not closed."""
    files = {entry.file for entry in entries}
    names = text_tables.Names(files | {PurePosixPath(file).name for file in files})
    for entry in entries:
        for caption in entry.captions:
            for line in lines_of(caption.text)[1:]:
                start, *rest = SEPARATOR.split(line, maxsplit=1)
                if rest and start.strip().strip("\"'").strip() in names:
                    expected = "a caption without rows of a table in it"
                    found = f"the line {line!r:.60}"
                    raise UserError(f"{entry.where}: caption", expected, found, CORRECT)


def _check_endings(entries: list[Entry]) -> None:
    """Raise UserError for names without an ending among file names of images: what is
    taken for a row may be the rest of a caption with a line break."""
    bare = [entry for entry in entries if not re.search(r"[./]", entry.file)]
    images = sum(_is_image(entry.file) for entry in entries)
    if bare and images >= COMMON * len(entries):
        expected, found = "a file name with an ending, as of the other images", repr(bare[0].file)
        do = "correct the line, or put quotation marks around a caption with line breaks"
        raise UserError(f"{bare[0].where}: image", expected, found, do)


def _scored_splits(images: pd.DataFrame, name: str) -> tuple[list[str], list[str]]:
    """The split of each image for scores that were made elsewhere, and notes."""
    split = images["split"]
    if split.isna().all():
        note = "The annotations name no split: all images are scored."
        return ["test"] * len(images), [note]
    known, notes = _known_splits(images, name)
    counts = Counter(known)
    if len(counts) == 1 and "test" not in counts and "unused" not in counts:
        notes.append(f"The annotations have {known.iloc[0]} alone: all its images are scored.")
        return ["test"] * len(images), notes
    if "test" not in counts:
        expected = "images of the split test, or of one split alone"
        found = ", ".join(f"{count} of {split}" for split, count in counts.items())
        do = "write the images that are to be scored into a file of their own"
        raise UserError(f"{name}: split", expected, found, do)
    for word in sorted(counts.keys() - {*SHARES, "unused"}):
        notes.append(f"{counts[word]} images are of a split {word}, and are not scored.")
    return known.tolist(), notes


def _splits(images: pd.DataFrame, name: str, options: Options) -> tuple[list[str], list[str]]:
    """The split of each image, and notes on where it comes from."""
    split, groups = images["split"], images["group"]
    if split.isna().all():
        if groups.nunique() < len(SHARES):
            expected, found = f"{len(SHARES)} images or groups to split", groups.nunique()
            raise UserError(name, expected, found, "add images, or name the split of each")
        if options.val and not options.test:
            raise option_checks.refusal("folder", "test", "a number where val has one", None)
        if not options.test:
            return split_by_hash(groups.tolist())
        known = pd.Series("train", images.index)
        known = _with_taken(known, groups, {"test": options.test, "val": options.val})
        note = f"The annotations name no split: {options.test} for test and {options.val} for val"
        note += " by the sha256 of the path (of the group, where one is named)."
        return known.tolist(), [note]
    if options.test:
        found = "splits in the annotations"
        raise UserError("folder: option test", "none", found, "remove val and test")
    known, notes = _known_splits(images, name)
    if options.val:
        if "val" in set(known):
            raise UserError("folder: option val", "none", "a split val", "remove val")
        known = _with_taken(known, groups, {"val": options.val})
        notes.append(
            f"The annotations have no val: {options.val} of train, by the sha256 of paths."
        )
    return known.tolist(), notes


def _known_splits(images: pd.DataFrame, name: str) -> tuple[pd.Series, list[str]]:
    """The splits that the annotations name, in our words, and notes on other words."""
    split = images["split"]
    if split.isna().any():
        found = f"none for {images[split.isna()].iloc[0]['file']}"
        raise UserError(f"{name}: split", "one for all images or for none", found, CORRECT)
    plain = split.map(lambda text: text.strip().casefold())
    known = plain.map(lambda text: SPLITS.get(text, text))
    notes = [
        f"{number} images of the split {other} are used for {USES[SPLITS[other]]}."
        for other, number in Counter(plain).items()
        if other in SPLITS
    ]
    return known, notes


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
    notes = [
        "The annotations name no split: 80/10/10 percent by the sha256 of the path "
        "(of the group, where one is named)."
    ]
    empty = [split for split in SHARES if split not in split_of.values()]
    for split in empty:  # one of the largest split, the nearest
        members = list(split_of.values())
        largest, middle = max(SHARES, key=members.count), sum(SHARES[split]) / 2
        candidates = [group for group, owner in split_of.items() if owner == largest]
        split_of[min(candidates, key=lambda group: abs(position[group] - middle))] = split
    if empty:
        moved = f"{len(empty)} moved to a neighbouring split, which would have been empty."
        notes.append(moved)
    return [split_of[group] for group in groups], notes


def _with_taken(known: pd.Series, groups: pd.Series, numbers: dict[str, int]) -> pd.Series:
    """The splits with so many groups of train in each of `numbers`: the first split has those with
    the highest hashes. Raises UserError where none is left to train on."""
    order = sorted(set(groups[known == "train"]), key=_position, reverse=True)
    if len(order) <= sum(numbers.values()):
        options, least = ([*map(str, reversed(of))] for of in (numbers, numbers.values()))
        expected = f"more than {' + '.join(least)} images or groups in train"
        where = f"folder: option {' and '.join(options)}"
        raise UserError(where, expected, len(order), "lower what is asked for")
    left = iter(order)
    split_of = {group: split for split, count in numbers.items() for group in islice(left, count)}
    return groups.map(split_of).fillna(known)


def _position(name: str) -> float:
    """The hash of a name as a number in [0, 1)."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:12], 16) / 16**12
