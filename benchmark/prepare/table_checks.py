"""What a dataset must be before anything is trained on it: whole, and as its card says."""

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
from PIL import Image, UnidentifiedImageError
from tqdm import tqdm

from benchmark.data.boxes import CORNERS
from datasets import SPLITS, Card, DataError, OpenPicture, Tables

USED = SPLITS[:3]  # train, val, test
SLACK = 1.0  # pixels that a box may stick out: some annotations count from 0, some from 1
SIDE = 16  # cells a side of a thumbnail

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
    """What decoding a picture told."""

    width: int
    height: int
    sha256: str  # of size and pixels
    bits: np.uint64  # difference hash: is each cell of an 8 x 8 grid brighter than the one before?
    thumbnail: np.ndarray  # (SIDE, SIDE, 3) uint8


def check_tables(tables: Tables, card: Card) -> None:
    """Raise `DataError` on the first thing that makes the tables unusable."""
    images, captions = tables.images, tables.captions
    _check_ids(tables)
    unknown = ~images["split"].isin(SPLITS)
    _refuse(images[unknown], "image_id", "split", f"expected one of {', '.join(SPLITS)}")
    blank = captions["text"].str.strip() == ""
    _refuse(captions[blank], "caption_id", "text", "expected a caption that is not blank")
    silent = images["split"].isin(USED) & ~images["image_id"].isin(captions["image_id"])
    _refuse(images[silent], "image_id", "split", "the image has no caption; expected at least one")
    _check_counts(tables, card)
    _check_groups(images)
    _check_phrases(tables)


def check_boxes(regions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise `DataError` for a box without an inside, and for one outside its picture.

    `images` has width and height, 0 where there is no picture to measure.
    """
    boxes = regions.assign(box=[f"{list(map(float, box))}" for box in regions[CORNERS].to_numpy()])
    whole = (boxes["x1"] > boxes["x0"]) & (boxes["y1"] > boxes["y0"])
    _refuse_box(boxes[~whole], "expected x0 < x1 and y0 < y1")
    boxes = boxes.merge(images[["image_id", "width", "height"]], on="image_id")
    inside = (boxes[["x0", "y0"]] >= -SLACK).all(axis=1)
    inside &= (boxes["x1"] <= boxes["width"] + SLACK) & (boxes["y1"] <= boxes["height"] + SLACK)
    outside = boxes[~inside & (boxes["width"] > 0)]
    size = outside["width"].astype(str) + " x " + outside["height"].astype(str)
    _refuse_box(outside, f"expected a box in its picture of {size.iloc[0]}" if len(size) else "")


def _check_ids(tables: Tables) -> None:
    images, captions, regions = tables.images, tables.captions, tables.regions
    for table, key in ((images, "image_id"), (captions, "caption_id")):
        _refuse(table[table[key].duplicated()], key, key, "occurs twice; expected unique ids")
    for table, key in ((captions, "caption_id"), (regions, "phrase")):
        strangers = table[~table["image_id"].isin(images["image_id"])]
        _refuse(strangers, key, "image_id", "names an image that is not in the images")
    strangers = regions[~regions["caption_id"].isin(captions["caption_id"])]
    _refuse(strangers, "phrase", "caption_id", "names a caption that is not in the captions")


def _check_phrases(tables: Tables) -> None:
    """Each phrase belongs to its caption, and phrases of one chain to one box of one image."""
    regions = tables.regions
    for column in ("phrase", "chain"):
        blank = regions[column].astype(str).str.strip() == ""
        _refuse(regions[blank], "caption_id", column, "expected one that is not blank")
    owner = tables.captions.set_index("caption_id")["image_id"]
    strays = regions["image_id"] != regions["caption_id"].map(owner)
    _refuse(regions[strays], "phrase", "image_id", "expected the image of the phrase's caption")
    for columns, what in ((["image_id"], "image"), (CORNERS, "box")):
        first = regions.groupby("chain")[columns].transform("first")
        torn = (regions[columns] != first).any(axis=1)
        _refuse(regions[torn], "phrase", "chain", f"expected one {what} a chain, found another")


def _refuse(offenders: pd.DataFrame, key: str, column: str, fault: str) -> None:
    """Raise if there are offenders: the first is named, all are counted."""
    if len(offenders):
        first = offenders.iloc[0]
        raise DataError(
            f"{key} {first[key]!r}: {column} {first[column]!r}: {fault}; "
            f"{len(offenders)} such in all; mend the annotations and fetch again"
        )


def _refuse_box(offenders: pd.DataFrame, fault: str) -> None:
    if len(offenders):
        first = offenders.iloc[0]
        raise DataError(
            f"image_id {first['image_id']!r}: phrase {first['phrase']!r}: box {first['box']}: "
            f"{fault}; {len(offenders)} such in all; mend the annotations and fetch again"
        )


def _check_counts(tables: Tables, card: Card) -> None:
    images = tables.images["split"]
    for name in USED:
        if name not in set(images):
            raise DataError(f"split {name}: no images; expected at least one")
    _expect(card.expected_images, images, "images")
    split_of = tables.images.set_index("image_id")["split"]
    _expect(card.expected_captions, tables.captions["image_id"].map(split_of), "captions")


def _expect(expected: Mapping[str, int], splits: pd.Series, what: str) -> None:
    found = splits.value_counts()
    for name, count in expected.items():
        if found.get(name, 0) != count:
            raise DataError(
                f"split {name}: expected {count} {what}, found {found.get(name, 0)}; "
                "fetch the complete dataset"
            )


def _check_groups(images: pd.DataFrame) -> None:
    used = images[images["split"].isin(USED)]
    pairs = used[["group", "split"]].drop_duplicates()
    torn = pairs[pairs["group"].duplicated(keep=False)]
    if len(torn):
        first = torn["group"].iloc[0]
        splits = " and ".join(torn[torn["group"] == first]["split"])
        raise DataError(
            f"group {first!r}: occurs in the splits {splits}; expected one split a group; "
            f"{torn['group'].nunique()} such in all; mend the splits and fetch again"
        )


def measure(files: list[str], open_picture: OpenPicture, title: str) -> list[Picture]:
    """Decode every picture, in order; `DataError` names the first that cannot be."""
    look = partial(_look, open_picture)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # decoding and hashing release the GIL
        results = list(
            tqdm(pool.map(look, files), total=len(files), desc=f"checking {title}", disable=None)
        )
    bad = [
        (file, result)
        for file, result in zip(files, results, strict=True)
        if isinstance(result, str)
    ]
    if bad:
        raise DataError(
            f"{title}: {bad[0][0]}: {bad[0][1]}; expected a whole picture; "
            f"{len(bad)} such in all; replace and fetch again"
        )
    return results


def _look(open_picture: OpenPicture, file: str) -> Picture | str:
    """The facts of one picture, or why it cannot be used."""
    try:
        picture = open_picture(file)
        content = picture.tobytes()
    except UnidentifiedImageError:
        return "empty or not a picture"  # Pillow's own words hold a memory address
    except BAD_PICTURE as error:
        return f"cannot be decoded ({error})"
    if picture.mode != "RGB":
        return f"mode {picture.mode}, expected RGB"
    return Picture(
        width=picture.width,
        height=picture.height,
        sha256=hashlib.sha256(f"{picture.size}".encode() + content).hexdigest(),
        bits=_bits(picture),
        thumbnail=np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX)),
    )


def _bits(picture: Image.Image) -> np.uint64:
    cells = np.asarray(picture.convert("L").resize((9, 8), Image.Resampling.BOX))
    return np.packbits(cells[:, 1:] > cells[:, :-1]).view(np.uint64)[0]
