"""Anyone's own images and captions: a folder with one annotation file in it, or one
of the layouts in which people share such data.

    .jsonl  one line per image: {"image": "a.jpg", "captions": ["...", "..."]} or
            "caption": "..."; optional "split", "group", and "id" (default: the image's
            path). Lines with the same image are merged.
    .csv    (.tsv, .txt) one row per caption; columns image, caption and, optionally,
            split and group, separated by commas, semicolons, tabs or |; or Flickr's
            a.jpg#0, tab, caption
    .json   a list of such objects as in .jsonl (BLIP), {"a.jpg": ["...", "..."]},
            Karpathy's format, COCO's captions, or TextCaps

Where none lies beside the images:

    metadata.csv, .jsonl  in each of several folders named after splits, with files in
                          that folder
    .parquet              columns of images (structs with `bytes`, or bytes), captions
    .tar                  WebDataset: 000.jpg with 000.txt (a caption a line) or .json
    .txt                  beside each image: a.jpg and a.txt, a caption a line
    corpus, queries       as .jsonl or .tsv, the one of images, the other of captions,
                          and qrels/test.tsv: which of them belong together, in columns
                          query-id, corpus-id and score

The split is that of the lines, else the last word of a file's path that names one. The
other words of a path do not count. An image in a tar or parquet file is called as its
line says, else by the path of the file and its member, or its row from 0.

`readers.key_names` lists what else the image, the caption and the split may be called,
in any case. More captions may stand in numbered columns (caption_0, caption_1) or as a
list in a cell; a caption may be an object with a text, whose split and group are those
of its image. Keys that are not read are named in the notes, at every depth. Two keys
for one thing are refused unless they agree.

Paths are relative to the folder. An image that is not there may have its name in
another Unicode form or case, or all of them may be in one folder below; where that is
no single file, nothing is guessed. Without splits, a hash of its path puts each image
into train, val or test (80/10/10). With the options `val` and `test`, so many images of
the highest hashes are these splits; with `val` alone, it is taken from train.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from unicodedata import normalize

import pandas as pd

from benchmark.contracts.datasets import Card, OpenPicture, Tables, UserError
from benchmark.readers import (
    folder_files,
    folder_layouts,
    hash_splits,
    image_files,
    key_names,
    nested_keys,
    option_checks,
    reader_notes,
    text_tables,
)
from benchmark.readers import packed_images as packed
from benchmark.readers.annotations import Annotations, Entry
from benchmark.readers.segmenters import segmenter
from benchmark.readers.text_tables import CORRECT

CARD = Card(
    title="A folder of pictures and captions",
    source="the user's own",
    licence="unknown",
    split="as annotated, else by hash of the path",
    may_publish=False,
    obtain="place the pictures and one annotation file (.jsonl, .csv, .tsv, .txt, or "
    ".json as a list, Karpathy's, COCO's or TextCaps') in one folder, or one of the "
    "layouts of docs/datasets.md",
)

# attributes of an image, on which lines must agree
FACTS = ("image_id", "split", "group")
COMMON = 0.5  # share of names with an ending from which on one without is no image
SEPARATOR = re.compile(r"[,;|\t]")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which annotation file is read, and how."""

    captions: str | None = None  # its path in the folder; None: the only one there is
    # groups in the split, where the file names none; None: a tenth
    val: int | None = None
    test: int | None = None
    # for a script without spaces: a name in readers.segmenters
    tokeniser: str | None = None

    def __post_init__(self) -> None:
        for option in ("val", "test"):
            value = getattr(self, option)
            if value is not None:
                option_checks.check_number("folder", option, value, least=1)
        if self.test is not None and self.val is None:
            expected = "a number where test has one"
            raise option_checks.refusal("folder", "val", expected, self.val)
        if self.tokeniser is not None:
            segmenter(self.tokeniser)


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The annotation files and every image they name."""
    annotations = _annotations(raw, options)
    files = _loose(annotations.entries)
    return [*annotations.paths, *map(image_files.Folder(raw).path_of, files)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables of the annotation files."""
    annotations = _annotations(raw, options)
    images = _images(annotations)
    split, notes = _splits(images, annotations.name, options)
    notes += reader_notes.unread(annotations.name, annotations.unused())
    notes += _numbers_that_mislead(images)
    return _tables(annotations, images.assign(split=split), notes, options)


def read_for_score(raw: Path, options: Options = Options()) -> Tables:
    """The tables for scores that were made elsewhere, for which no image is trained on.

    The images of the split test are scored. Where the annotations name no split, or one
    alone, all images are: they become test. Raises UserError for several splits without
    test, and as `read` does.
    """
    annotations = _annotations(raw, options)
    images = _images(annotations)
    if annotations.is_one_file:
        _check_endings(annotations.entries)
    split, notes = _scored_splits(images, annotations.name)
    unread = annotations.unused(with_ids=False)
    notes += reader_notes.unread(annotations.name, unread)
    files = [entry.file for entry in annotations.entries]
    numbers, _ = pd.Series(files).factorize()
    if annotations.is_regrouped or (numbers[1:] < numbers[:-1]).any():
        notes.append(
            "Captions of one image are not all in consecutive rows: without ids, rows "
            "are taken image by image, in the order of the images."
        )
    return _tables(annotations, images.assign(split=split), notes, options)


def has_splits(raw: Path, options: Options = Options()) -> bool:
    """Whether the annotation file names splits."""
    return any(entry.split for entry in _annotations(raw, options).entries)


def told(raw: Path, options: Options = Options()) -> str:
    """One line: what of the folder is read, and what is left unused (keys and
    files)."""
    annotations = _annotations(raw, options)
    named = {*annotations.paths, *(raw / entry.file for entry in annotations.entries)}
    others = [file for file in folder_files.below(raw) if raw / file not in named]
    used = ", ".join(map(nested_keys.text_of, annotations.used))
    unused = [f"the key {nested_keys.text_of(key)}" for key in annotations.unused()]
    if others:
        unused.append(f"the files {reader_notes.listed(others)}")
    return (
        f"read {annotations.name}: {used}; not used: {', '.join(unused) or 'nothing'}"
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens an image by its path in the folder."""
    return packed.Packed(raw)


def missing(raw: Path, file: str) -> UserError:
    """The error for an image that the annotations name and that is not there."""
    stem, actual = PurePosixPath(file).stem, "nothing"
    archives = folder_files.ending_in(raw, ARCHIVES)
    if archives:
        actual = f"nothing (unpack {archives[0]}?)"
    for name in folder_files.below(raw):
        path = PurePosixPath(name)
        if stem in (path.stem, path.name):
            actual = f"nothing (did you mean {name}?)"
            break
    advice = "correct the annotation file or add the image"
    return UserError(raw / file, "an image, as the annotations name it", actual, advice)


# Entries ------------------------------------------------------------------------------


def _annotations(raw: Path, options: Options) -> Annotations:
    """The annotations of the folder; each entry has the file that its name means."""
    source = folder_layouts.source(raw, options.captions)
    files, is_one_file = source.files, source.reader is folder_layouts.of_text
    name = (raw / files[0]).name
    if len(files) > 1:
        name = f"{files[0]} and {len(files) - 1} more files"
    if not is_one_file:  # of several files, or with images in them: no links to others
        folder = image_files.Folder(raw)
        for file in files:
            folder.path_of(file)
    paths = [raw / file for file in files]
    annotations = Annotations(paths, name, is_one_file=is_one_file)
    entries = list(source.reader(raw, files, annotations))
    if not entries:
        raise UserError(name, "at least one image", "none", CORRECT)
    entries = _with_equal_images_joined(raw, entries)
    _check_lines(entries)
    folder_layouts.note_unread_tables(raw, files, annotations)
    annotations.entries = _moved(raw, entries, annotations.notes)
    return annotations


def _loose(entries: list[Entry]) -> dict[str, None]:
    """The images that are files of their own, each once."""
    return dict.fromkeys(entry.file for entry in entries if not entry.is_packed)


def _with_equal_images_joined(raw: Path, entries: list[Entry]) -> list[Entry]:
    """Rows of tables with the same name of an image and the same bytes, as where each
    row has one caption, are of one image."""
    contents = packed.Packed(raw)

    @cache
    def digest(file: str) -> bytes:
        return hashlib.sha256(contents.content(file)).digest()

    first: dict[str, Entry] = {}
    joined = []
    for entry in entries:
        other = first.setdefault(entry.image_id or entry.file, entry)
        is_other_row = entry.is_packed and other.is_packed and entry.file != other.file
        if is_other_row and digest(other.file) == digest(entry.file):
            entry = replace(entry, file=other.file)
        joined.append(entry)
    return joined


def _moved(raw: Path, entries: list[Entry], notes: list[str]) -> list[Entry]:
    """The entries, each with the file that its name means; adds a note on the others'
    names. An image is known by the name that it was given."""
    named = _loose(entries)
    path_of = folder_files.meant(raw, list(named))
    if path_of:
        given, path = next(iter(path_of.items()))
        notes.append(
            f"{len(path_of)} images are not there as named, but as {path} for {given}."
        )
    moved = []
    for entry in entries:
        path, image_id = path_of.get(entry.file), entry.image_id
        if path and path not in named:
            image_id = image_id or normalize("NFC", entry.file)
        moved.append(replace(entry, file=path or entry.file, image_id=image_id))
    return moved


def _check_lines(entries: list[Entry]) -> None:
    """Raise UserError for a caption with a line that begins with an image and a
    separator: it holds rows of a table whose quotation marks were not closed."""
    files = {entry.file for entry in entries}
    base_names = {PurePosixPath(file).name for file in files}
    names = text_tables.Names(files | base_names)
    for entry in entries:
        for caption in entry.captions:
            for line in text_tables.lines_of(caption.text)[1:]:
                if _is_row(line, names):
                    where = f"{entry.where}: caption"
                    expected = "a caption without rows of a table in it"
                    raise UserError(where, expected, f"the line {line!r:.60}", CORRECT)


def _is_row(line: str, names: text_tables.Names) -> bool:
    """Whether a line begins with one of the names and a separator."""
    start, *rest = SEPARATOR.split(line, maxsplit=1)
    return bool(rest) and start.strip().strip("\"'").strip() in names


def _check_endings(entries: list[Entry]) -> None:
    """Raise UserError for names without an ending among file names of images: what is
    taken for a row may be the rest of a caption with a line break."""
    bare = [entry for entry in entries if not re.search(r"[./]", entry.file)]
    images = sum(folder_files.is_image(entry.file) for entry in entries)
    if bare and images >= COMMON * len(entries):
        first = bare[0]
        expected = "a file name with an ending, as of the other images"
        advice = (
            "correct the line, or put quotation marks around a caption with line breaks"
        )
        raise UserError(f"{first.where}: image", expected, repr(first.file), advice)


# Tables -------------------------------------------------------------------------------


def _images(annotations: Annotations) -> pd.DataFrame:
    """A row for each image; split is None if no line names one, own_id if lines
    differ."""
    rows: dict[str, dict] = {}
    file_of: dict[str, str] = {}
    for entry in annotations.entries:
        _check_id(entry, file_of)
        row = rows.get(entry.file)
        if row is None:
            row = {"file": entry.file, "own_id": entry.own_id} | dict.fromkeys(FACTS)
            rows[entry.file] = row
        for fact in FACTS:
            row[fact] = _agreed(entry, fact, row[fact])
        if row["own_id"] != entry.own_id:
            row["own_id"] = None
    for row in rows.values():
        row["image_id"] = row["image_id"] or row["file"]
        row["group"] = row["group"] or row["image_id"]
    return pd.DataFrame(rows.values())


def _check_id(entry: Entry, file_of: dict[str, str]) -> None:
    """Raise UserError for an id that another image has; adds it to `file_of`."""
    if not entry.image_id:
        return
    file = file_of.setdefault(entry.image_id, entry.file)
    if file != entry.file:
        actual = f"{entry.image_id!r}, as of {file}"
        advice = (
            f"{CORRECT}; what several images show, such as a person, is called group"
        )
        expected = f"an id of {entry.file} alone"
        raise UserError(f"{entry.where}: id", expected, actual, advice)


def _agreed(entry: Entry, fact: str, earlier: str | None) -> str | None:
    """A fact of an image, of which earlier lines said `earlier`."""
    value = getattr(entry, fact)
    if earlier is None:
        return value
    if value is not None and not key_names.is_same(fact, value, earlier):
        advice = CORRECT
        if fact == "image_id":
            advice = f"{CORRECT}; an id of each caption is called caption_id"
        expected = f"{earlier!r} as in an earlier line with {entry.file}"
        raise UserError(f"{entry.where}: {fact}", expected, repr(value), advice)
    return earlier


def _numbers_that_mislead(images: pd.DataFrame) -> list[str]:
    """A note on ids of images that are the numbers in file names of other images.
    Prepared tables do not have these ids, so `score` finds an image by the number of
    its file."""
    stems = images["file"].map(lambda file: PurePosixPath(file).stem)
    numbers = stems.str.extract(r"(\d+)$", expand=False).str.lstrip("0")
    ids = images["own_id"].astype("str").str.lstrip("0")
    is_number = numbers.notna().all() and numbers.is_unique and ids.isin(numbers).all()
    others = images[ids != numbers]
    if not is_number or others.empty:
        return []
    first = others.iloc[0]
    return [
        "Ids of images in the annotations are numbers of other files "
        f"({first['file']} has {first['own_id']}): vectors for `score --dataset` must "
        "name images by their files."
    ]


def _tables(
    annotations: Annotations, images: pd.DataFrame, notes: list[str], options: Options
) -> Tables:
    """The tables. The index of images is `imgid` and that of captions `sentid`, where
    the file has such names for all of them."""
    captions = _captions(annotations.entries, images)
    notes = [*notes, *annotations.notes]
    if options.tokeniser:
        captions["text"] = captions["text"].map(segmenter(options.tokeniser))
        notes.append(
            f"Captions are the words that {options.tokeniser} finds, with spaces "
            "between."
        )
    return Tables(
        images=_called(images, "imgid")[["image_id", "file", "split", "group"]],
        captions=_called(captions, "sentid")[["caption_id", "image_id", "text"]],
        notes=tuple(notes),
    )


def _captions(entries: list[Entry], images: pd.DataFrame) -> pd.DataFrame:
    """A row for each caption. It keeps the number that the file gives it among those of
    its image, if all captions have such numbers."""
    image_id_of = dict(zip(images["file"], images["image_id"], strict=True))
    rows = []
    for entry in entries:
        image_id = image_id_of[entry.file]
        for caption in entry.captions:
            rows.append((image_id, caption.text, caption.own_id, caption.number))
    captions = pd.DataFrame(rows, columns=["image_id", "text", "own_id", "number"])
    captions = captions.astype({"image_id": "str", "text": "str"})
    number = captions["number"]
    if number.isna().any() or captions.duplicated(["image_id", "number"]).any():
        number = captions.groupby("image_id").cumcount().astype(str)
    captions.insert(0, "caption_id", captions["image_id"] + "#" + number)
    return captions


def _called(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table with the column own_id as its index, if that names every row."""
    own_id = table["own_id"]
    if own_id.isna().any() or own_id.duplicated().any():
        return table
    return table.set_index(pd.Index(own_id.astype(str), name=name))


# Splits -------------------------------------------------------------------------------


def _scored_splits(images: pd.DataFrame, name: str) -> tuple[list[str], list[str]]:
    """The split of each image for scores that were made elsewhere, and notes."""
    all_are_test = ["test"] * len(images)
    if images["split"].isna().all():
        return all_are_test, ["The annotations name no split: all images are scored."]
    known, notes = _known_splits(images, name)
    counts = Counter(known)
    if len(counts) == 1 and "test" not in counts and "unused" not in counts:
        only = known.iloc[0]
        notes.append(f"The annotations have {only} alone: all its images are scored.")
        return all_are_test, notes
    if "test" not in counts:
        expected = "images of the split test, or of one split alone"
        actual = ", ".join(f"{count} of {split}" for split, count in counts.items())
        advice = "write the images that are to be scored into a file of their own"
        raise UserError(f"{name}: split", expected, actual, advice)
    for word in sorted(counts.keys() - {*hash_splits.SHARES, "unused"}):
        notes.append(
            f"{counts[word]} images are of a split {word}, and are not scored."
        )
    return known.tolist(), notes


def _splits(
    images: pd.DataFrame, name: str, options: Options
) -> tuple[list[str], list[str]]:
    """The split of each image, and notes on where it comes from."""
    groups = images["group"]
    if images["split"].isna().all():
        return _new_splits(groups, name, options)
    if options.test:
        actual = "splits in the annotations"
        raise UserError("folder: option test", "none", actual, "remove val and test")
    known, notes = _known_splits(images, name)
    if options.val:
        if "val" in set(known):
            raise UserError("folder: option val", "none", "a split val", "remove val")
        known = hash_splits.with_taken(known, groups, {"val": options.val})
        notes.append(
            f"The annotations have no val: {options.val} of train, by the sha256 of "
            "paths."
        )
    return known.tolist(), notes


def _new_splits(
    groups: pd.Series, name: str, options: Options
) -> tuple[list[str], list[str]]:
    """The splits of images for which the annotations name none, and notes."""
    least = len(hash_splits.SHARES)
    if groups.nunique() < least:
        expected = f"{least} images or groups to split"
        advice = "add images, or name the split of each"
        raise UserError(name, expected, groups.nunique(), advice)
    if options.val and not options.test:
        expected = "a number where val has one"
        raise option_checks.refusal("folder", "test", expected, None)
    if not options.test:
        return hash_splits.split_by_hash(groups.tolist())
    known = pd.Series("train", groups.index)
    numbers = {"test": options.test, "val": options.val}
    known = hash_splits.with_taken(known, groups, numbers)
    note = (
        f"The annotations name no split: {options.test} for test and {options.val} for "
        "val by the sha256 of the path (of the group, where one is named)."
    )
    return known.tolist(), [note]


def _known_splits(images: pd.DataFrame, name: str) -> tuple[pd.Series, list[str]]:
    """The splits that the annotations name, in our words, and notes on other words."""
    split = images["split"]
    if split.isna().any():
        file = images[split.isna()].iloc[0]["file"]
        expected = "one for all images or for none"
        raise UserError(f"{name}: split", expected, f"none for {file}", CORRECT)
    notes = []
    plain = split.map(lambda text: text.strip().casefold())
    for word, count in Counter(plain).items():
        if word in key_names.SPLITS:
            use = key_names.USES[key_names.SPLITS[word]]
            notes.append(f"{count} images of the split {word} are used for {use}.")
    return split.map(key_names.our_split), notes
