"""What Flickr8k and Flickr30k have in common: the layout of their captions, and Flickr8k's lists.

Each line of a caption file is name.jpg#k, a tab, a caption. An image is named after its file.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from benchmark.contracts.datasets import Tables, UserError
from benchmark.readers import archives
from benchmark.readers.karpathy import Entry

TEXT_ZIP = "Flickr8k_text.zip"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "val": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}

TOKEN_LINE = re.compile(r"(?P<caption_id>(?P<file>[^#\t]+)#\d+)\t(?P<text>.*\S.*)")


def captions(path: Path, name: str) -> pd.DataFrame:
    """caption_id, file and text of the caption file `name`, which may be in the archive `path`."""
    rows = []
    for number, line in enumerate(archives.lines(path, name), start=1):
        match = TOKEN_LINE.fullmatch(line)
        if match is None:
            where, do = f"{name}:{number}", "place an unchanged copy"
            raise UserError(where, "name#k, a tab and a caption", f"{line!r:.80}", do)
        rows.append(match.groupdict())
    return pd.DataFrame(rows, columns=["caption_id", "file", "text"])


def karpathy_captions(entries: Iterable[Entry]) -> pd.DataFrame:
    """The same columns from Karpathy's JSON; its raw sentences are the official captions."""
    rows = [
        (f"{entry.file}#{number}", entry.file, text)
        for entry in entries
        for number, text in enumerate(entry.captions)
    ]
    return pd.DataFrame(rows, columns=["caption_id", "file", "text"])


def tables(split_of: dict[str, str], captions: pd.DataFrame, notes: list[str]) -> Tables:
    """The tables of a dataset.

    split_of  file -> split of every image, in the order of the images
    captions  as `captions` returns them
    """
    images = pd.DataFrame({"file": list(split_of), "split": list(split_of.values())})
    ids = images["file"].str.removesuffix(".jpg")
    captions = captions.assign(image_id=captions["file"].str.removesuffix(".jpg"))
    return Tables(
        images=images.assign(image_id=ids, group=ids)[["image_id", "file", "split", "group"]],
        captions=captions[["caption_id", "image_id", "text"]],
        notes=tuple(notes),
    )
