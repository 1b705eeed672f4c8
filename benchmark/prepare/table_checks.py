"""Checks of the tables, boxes and pictures of a dataset, before anything is trained on them."""

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.progress_bars import ProgressBar
from benchmark.data.boxes import CORNERS
from datasets import SPLITS, Card, DataError, OpenPicture, Tables
from datasets.shared.name_checks import LONGEST_PATH, LONGEST_TEXT, fault_of

USED = SPLITS[:3]  # train, val, test
SLACK = 1.0  # pixels by which a box may stick out: some annotations count from 0, some from 1
SIDE = 16  # width and height of a thumbnail, in pixels
CORRECT = "correct the annotations and fetch again"
WHOLE, AGAIN = "a whole picture", "replace it and fetch again"

# What Pillow, zipfile and zlib raise for damaged pictures.
BAD_PICTURE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    Image.DecompressionBombError,
)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The facts of a decoded picture."""

    width: int
    height: int
    sha256: str  # of size and pixels
    bits: np.uint64  # difference hash, 8 x 8: whether each pixel of a 9 x 8 copy is brighter than
    # its left neighbour
    thumbnail: np.ndarray  # (SIDE, SIDE, 3) uint8


def check_tables(tables: Tables, card: Card) -> None:
    """Raise DataError for the first fault that makes the tables unusable."""
    images, captions = tables.images, tables.captions
    _check_texts(tables)
    _check_ids(tables)
    unknown = ~images["split"].isin(SPLITS)
    _refuse(images[unknown], "image_id", "split", f"one of {', '.join(SPLITS)}")
    blank = captions["text"].str.strip() == ""
    _refuse(captions[blank], "caption_id", "text", "a caption that is not blank")
    silent = images["split"].isin(USED) & ~images["image_id"].isin(captions["image_id"])
    _refuse(images[silent], "image_id", "split", "at least one caption", "none")
    _check_counts(tables, card)
    _check_groups(images)
    _check_phrases(tables)


def check_boxes(regions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise DataError for a box without area, and for one outside its picture.

    `images` has width and height, 0 for an image without a picture.
    """
    boxes = regions.assign(box=[f"{list(map(float, box))}" for box in regions[CORNERS].to_numpy()])
    whole = (boxes["x1"] > boxes["x0"]) & (boxes["y1"] > boxes["y0"])
    _refuse_box(boxes[~whole], "x0 < x1 and y0 < y1")
    boxes = boxes.merge(images[["image_id", "width", "height"]], on="image_id")
    inside = (boxes[["x0", "y0"]] >= -SLACK).all(axis=1)
    inside &= (boxes["x1"] <= boxes["width"] + SLACK) & (boxes["y1"] <= boxes["height"] + SLACK)
    outside = boxes[~inside & (boxes["width"] > 0)]
    size = outside["width"].astype(str) + " x " + outside["height"].astype(str)
    _refuse_box(outside, f"a box in its picture of {size.iloc[0]}" if len(size) else "")


def _check_texts(tables: Tables) -> None:
    """Names and captions must be texts that files can hold, and of a length that one reads."""
    for table, key, columns in (
        (tables.images, "image_id", {"image_id": LONGEST_PATH, "group": LONGEST_PATH}),
        (tables.images, "image_id", {"file": LONGEST_PATH}),
        (tables.captions, "caption_id", {"caption_id": 2 * LONGEST_PATH, "text": LONGEST_TEXT}),
        (tables.regions, "caption_id", {"phrase": LONGEST_TEXT, "chain": 2 * LONGEST_PATH}),
    ):
        for column, longest in columns.items():
            _check_column(table, key, column, longest)


def _check_column(table: pd.DataFrame, key: str, column: str, longest: int) -> None:
    texts = table[column].astype(str)
    long = texts.str.len() > longest
    if long.any():
        first = texts[long].iloc[0]
        where, found = f"{key} {table[key][long].iloc[0]!r:.200}: {column}", f"{len(first)}"
        found = f"{found}, {first!r:.40}...{_in_all(int(long.sum()))}"
        raise DataError(where, f"at most {longest} characters", found, CORRECT)
    if fault_of("".join(texts)):
        faults = texts.map(fault_of)
        first = faults[faults != ""].index[0]
        where, found = f"{key} {table[key][first]!r:.200}: {column}", f"{texts[first]!r:.60}"
        raise DataError(where, "text", f"{faults[first]} in {found}", CORRECT)


def _check_ids(tables: Tables) -> None:
    images, captions, regions = tables.images, tables.captions, tables.regions
    for table, key in ((images, "image_id"), (captions, "caption_id")):
        _refuse(table[table[key].duplicated()], key, key, "an id that occurs once", "a second row")
    for table, key in ((captions, "caption_id"), (regions, "phrase")):
        strangers = table[~table["image_id"].isin(images["image_id"])]
        _refuse(strangers, key, "image_id", "an image of the table of images")
    strangers = regions[~regions["caption_id"].isin(captions["caption_id"])]
    _refuse(strangers, "phrase", "caption_id", "a caption of the table of captions")


def _check_phrases(tables: Tables) -> None:
    """A phrase must have the image of its caption, a chain one image and one box."""
    regions = tables.regions
    for column in ("phrase", "chain"):
        blank = regions[column].astype(str).str.strip() == ""
        _refuse(regions[blank], "caption_id", column, f"a {column} that is not blank")
    owner = tables.captions.set_index("caption_id")["image_id"]
    strays = regions["image_id"] != regions["caption_id"].map(owner)
    _refuse(regions[strays], "phrase", "image_id", "the image of the phrase's caption")
    for columns, what in ((["image_id"], "image"), (CORNERS, "box")):
        first = regions.groupby("chain")[columns].transform("first")
        torn = (regions[columns] != first).any(axis=1)
        _refuse(regions[torn], "phrase", "chain", f"one {what} per chain", "another one")


def _refuse(offenders: pd.DataFrame, key: str, column: str, expected: str, found: str = "") -> None:
    """Raise if there are offenders: the first is named by its `key`, all are counted. Without
    `found`, the value of `column` is what is found."""
    if len(offenders):
        first = offenders.iloc[0]
        where, value = f"{key} {first[key]!r}: {column}", repr(first[column])
        where, found = (f"{where} {value}", found) if found else (where, value)
        raise DataError(where, expected, f"{found}{_in_all(len(offenders))}", CORRECT)


def _refuse_box(offenders: pd.DataFrame, expected: str) -> None:
    if len(offenders):
        first = offenders.iloc[0]
        where = f"image_id {first['image_id']!r}: phrase {first['phrase']!r}: box"
        raise DataError(where, expected, f"{first['box']}{_in_all(len(offenders))}", CORRECT)


def _in_all(count: int) -> str:
    return f" ({count} such in all)"


def _check_counts(tables: Tables, card: Card) -> None:
    images = tables.images["split"]
    for name in USED:
        if name not in set(images):
            raise DataError(f"split {name}", "at least one image", "none", CORRECT)
    _expect(card.expected_images, images, "images")
    split_of = tables.images.set_index("image_id")["split"]
    _expect(card.expected_captions, tables.captions["image_id"].map(split_of), "captions")


def _expect(expected: Mapping[str, int], splits: pd.Series, what: str) -> None:
    counts = splits.value_counts()
    for name, count in expected.items():
        found = counts.get(name, 0)
        if found != count:
            complete = "fetch the complete dataset"
            raise DataError(f"split {name}", f"{count} {what}", found, complete)


def _check_groups(images: pd.DataFrame) -> None:
    used = images[images["split"].isin(USED)]
    pairs = used[["group", "split"]].drop_duplicates()
    torn = pairs[pairs["group"].duplicated(keep=False)]
    if len(torn):
        first = torn["group"].iloc[0]
        splits = " and ".join(torn[torn["group"] == first]["split"])
        found = f"{splits}{_in_all(torn['group'].nunique())}"
        do = "correct the splits and fetch again"
        raise DataError(f"group {first!r}", "one split per group", found, do)


def measure(files: list[str], open_picture: OpenPicture, title: str) -> list[Picture]:
    """The facts of all pictures, in order. Raises DataError if one cannot be decoded."""
    decode = partial(_decoded, open_picture)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # decoding and hashing release the GIL
        results = list(
            ProgressBar(pool.map(decode, files), total=len(files), desc=f"checking {title}")
        )
    bad = [
        (file, result)
        for file, result in zip(files, results, strict=True)
        if isinstance(result, DataError)
    ]
    if bad:
        file, fault = bad[0]
        found = f"{fault.found}{_in_all(len(bad))}"
        raise DataError(f"{title}: {file}", fault.expected, found, fault.do or AGAIN)
    return results


def _decoded(open_picture: OpenPicture, file: str) -> Picture | DataError:
    """The facts of one picture, or why it cannot be used."""
    try:
        picture = open_picture(file)
        content = picture.tobytes()
    except DataError as error:
        return error
    except BAD_PICTURE as error:  # of a reader that opens its pictures itself
        return DataError(file, WHOLE, f"one that cannot be decoded ({error})", AGAIN)
    if picture.mode != "RGB":
        return DataError(file, WHOLE, f"mode {picture.mode} instead of RGB", AGAIN)
    return Picture(
        width=picture.width,
        height=picture.height,
        sha256=hashlib.sha256(f"{picture.size}".encode() + content).hexdigest(),
        bits=_bits(picture),
        thumbnail=np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX)),
    )


def _bits(picture: Image.Image) -> np.uint64:
    pixels = np.asarray(picture.convert("L").resize((9, 8), Image.Resampling.BOX))
    return np.packbits(pixels[:, 1:] > pixels[:, :-1]).view(np.uint64)[0]
