"""What Flickr8k, Flickr30k and Flickr30k Entities have in common: the layout of their
caption files and image lists.

Each line of a caption file is name.jpg#k, a tab, a caption. An image is named after its
file. The captions of Flickr30k are also found as a table with the columns image_name,
comment_number and comment, separated by | and blanks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from benchmark.contracts.datasets import Tables, UserError
from benchmark.readers import archives, text_tables
from benchmark.readers.karpathy import UNCHANGED, Entry

TEXT_ZIP = "Flickr8k_text.zip"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "val": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}

TABLE = ("image_name", "comment_number", "comment")  # columns
# One line of that table lacks its second separator.
TORN_LINE = re.compile(r"^([^|\n]+\| *\d)( {2,}[^|\n]+)$", re.MULTILINE)
TOKEN_LINE = re.compile(r"(?P<caption_id>(?P<file>[^#\t]+)#\d+)\t(?P<text>.*\S.*)")


def token_lines(lines: Iterable[str], name: str) -> Iterator[tuple[str, re.Match]]:
    """The place of each line of the caption file `name`, and its parts as TOKEN_LINE
    names them. Raises UserError for a line of another form."""
    for number, line in enumerate(lines, start=1):
        where = f"{name}:{number}"
        match = TOKEN_LINE.fullmatch(line)
        if match is None:
            raise UserError(
                where,
                expected="name#k, a tab and a caption",
                found=f"{line!r:.80}",
                do=UNCHANGED,
            )
        yield where, match


def captions(path: Path, name: str) -> pd.DataFrame:
    """caption_id, file and text of the caption file `name`, which may be in the archive
    `path`."""
    lines = archives.lines(path, name)
    rows = [match.groupdict() for _, match in token_lines(lines, name)]
    return pd.DataFrame(rows, columns=["caption_id", "file", "text"])


def table_captions(path: Path) -> tuple[pd.DataFrame, int]:
    """The columns of `captions` from a table, and the number of lines that lacked their
    second separator. Raises UserError for other columns, and for a line without an
    image, a caption or a number that its image has once."""
    text = archives.text(path, path.name)
    text, torn_lines = TORN_LINE.subn(r"\1|\2", text)
    table = text_tables.read(text, path.name, "|", lambda column: column == TABLE[0])
    if sorted(table.columns) != sorted(TABLE):
        raise UserError(
            f"{path.name}:1",
            expected=f"the columns {', '.join(TABLE)}",
            found=", ".join(table.columns),
            do=UNCHANGED,
        )
    places = [table.columns.index(column) for column in TABLE]
    rows: dict[str, tuple[str, str]] = {}
    for row in table.rows:
        file, number, caption = (row.cells[place] for place in places)
        caption_id = f"{file}#{number}"
        if not number.isdecimal() or not file or not caption or caption_id in rows:
            raise UserError(
                f"{path.name}:{row.line}",
                expected="an image, a caption number used once, and the caption",
                found=f"{row.cells!r:.80}",
                do=UNCHANGED,
            )
        rows[caption_id] = file, caption
    frame = pd.DataFrame(rows.values(), columns=["file", "text"])
    frame.insert(0, "caption_id", list(rows))
    return frame, torn_lines


def listed(
    lists: Mapping[str, tuple[Path, str]],
    image_of: Callable[[str], str],
    expected: str,
) -> dict[str, str]:
    """image -> split, in the order of the lists of images.

    lists     split -> the path of its list, or of an archive with it, and its name
    image_of  the image that a line names; "" for one that names none

    Raises UserError for a line that names no image, or one that a line before has.
    """
    split_of: dict[str, str] = {}
    for split, (path, name) in lists.items():
        for number, line in enumerate(archives.lines(path, name), start=1):
            image = image_of(line.strip())
            if not image or image in split_of:
                fault = f"already in {split_of[image]}" if image else "unknown image"
                raise UserError(
                    f"{name}:{number}",
                    expected=expected,
                    found=f"{line!r:.80}: {fault}",
                    do=UNCHANGED,
                )
            split_of[image] = split
    return split_of


def karpathy_captions(entries: Iterable[Entry]) -> pd.DataFrame:
    """The same columns from Karpathy's JSON; its raw sentences are the official
    captions. The index is `sentid`, where every sentence has one."""
    rows = []
    sentids = []
    for entry in entries:
        sentids += entry.sentids
        for number, text in enumerate(entry.captions):
            rows.append((f"{entry.file}#{number}", entry.file, text))
    frame = pd.DataFrame(rows, columns=["caption_id", "file", "text"])
    if None not in sentids and len(set(sentids)) == len(sentids):
        frame.index = pd.Index(sentids, dtype=int, name="sentid")
    return frame


def tables(
    split_of: dict[str, str],
    captions: pd.DataFrame,
    notes: list[str],
    with_pictures: bool,
) -> Tables:
    """The tables of a dataset.

    split_of       file -> split of every image, in the order of the images
    captions       as `captions` returns them
    with_pictures  False: the images have no files
    """
    images = pd.DataFrame(split_of.items(), columns=["file", "split"])
    ids = images["file"].str.removesuffix(".jpg")
    images = images.assign(image_id=ids, group=ids)
    images = images[["image_id", "file", "split", "group"]]
    captions = captions.assign(image_id=captions["file"].str.removesuffix(".jpg"))
    return Tables(
        images=images if with_pictures else images.assign(file=""),
        captions=captions[["caption_id", "image_id", "text"]],
        notes=tuple(notes),
    )
