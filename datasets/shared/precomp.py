"""Folders of image features with their captions, as SCAN and VSE++ hand them around.

Lee et al. (2018), Stacked Cross Attention. `f30k_precomp/` and `coco_precomp/` have for each of
train, dev and test the three files

    <split>_caps.txt  a caption a line, five consecutive lines an image
    <split>_ids.txt   the image ids: a line an image, or a line a caption (each id five times)
    <split>_ims.npy   features, (rows, ...): a row an image, or a row a caption, likewise

COCO's also has `testall_*`, all 5,000 test images; its `test_*` are the first 1,000 of them.
Ids are Karpathy's imgid for Flickr30k, and COCO's own for COCO.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from datasets import DataError, Tables
from datasets.shared import archives

STEMS = {"train": "train", "val": "dev", "test": "test"}
ENDS = ("caps.txt", "ids.txt", "ims.npy")
EACH = 5  # captions of an image


@dataclass(frozen=True)
class Part:
    """One split of a folder, in the order of its files."""

    split: str  # train, val, test
    ims: Path  # features, .npy
    captions: list[str]  # five consecutive ones an image
    ids: list[str]  # one an image: `image_id` in `Tables`
    rows_per_image: int  # in ims: 1 or 5; of five equal rows each image needs the first


def files(folder: Path) -> list[Path]:
    """The files that make up train, val and test, whether or not they are there."""
    return [folder / f"{stem}_{end}" for stem in _stems(folder).values() for end in ENDS]


def layout(folder: Path) -> list[Part]:
    """Train, val and test of a folder; of the features only headers and a few rows are read.

    `DataError` where a file is missing or cut, where counts disagree, and where an id occurs in
    two places.
    """
    parts = [_part(folder, split, stem) for split, stem in _stems(folder).items()]
    seen: dict[str, str] = {}
    for part in parts:
        for image_id in part.ids:
            if image_id in seen:
                raise DataError(
                    f"{folder.name}: id {image_id!r}: in {seen[image_id]} and in {part.split}; "
                    "expected every image in one split"
                )
            seen[image_id] = part.split
    return parts


def tables(parts: list[Part], files: Mapping[str, str], notes: list[str]) -> Tables:
    """The tables of a folder; `files` are the pictures of those images that have one."""
    owners = [(image_id, part.split) for part in parts for image_id in part.ids]
    images = pd.DataFrame(owners, columns=["image_id", "split"])
    images["file"] = [files.get(image_id, "") for image_id in images["image_id"]]
    images["group"] = images["image_id"]
    captions = [
        (f"{image_id}#{number}", image_id, part.captions[EACH * row + number])
        for part in parts
        for row, image_id in enumerate(part.ids)
        for number in range(EACH)
    ]
    return Tables(
        images=images[["image_id", "file", "split", "group"]],
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=(*notes, *_picture_notes(images["file"])),
    )


def _picture_notes(file: pd.Series) -> list[str]:
    without = int((file == "").sum())
    return [f"{without} of {len(file)} images have features but no picture."] if without else []


def _stems(folder: Path) -> dict[str, str]:
    """split -> how the names of its files begin."""
    whole = any((folder / f"testall_{end}").is_file() for end in ENDS)
    return STEMS | ({"test": "testall"} if whole else {})


def _part(folder: Path, split: str, stem: str) -> Part:
    captions_file, ids_file, ims = (folder / f"{stem}_{end}" for end in ENDS)
    captions = _captions(captions_file)
    images = len(captions) // EACH
    ids = _ids(ids_file, images)
    return Part(split, ims, captions, ids, _rows_per_image(ims, images))


def _captions(path: Path) -> list[str]:
    found = archives.lines(path, path.name)
    for number, line in enumerate(found, start=1):
        if not line.strip() or "\t" in line:
            raise DataError(
                f"{_place(path)}:{number}: expected a caption without tabs, found {line!r:.80}"
            )
    if not found or len(found) % EACH:
        raise DataError(
            f"{_place(path)}: expected {EACH} lines an image, found {len(found)} lines; "
            "copy the whole file"
        )
    return found


def _ids(path: Path, images: int) -> list[str]:
    """One id an image, of a file that may have each five times."""
    found = [line.strip() for line in archives.lines(path, path.name)]
    each = _per_image(len(found), images, f"{_place(path)}: lines")
    seen: set[str] = set()
    for row, image_id in enumerate(found):
        first = row % each == 0
        expected = "a number that no line before has" if first else repr(found[row - 1])
        if not (_is_new(image_id, seen) if first else image_id == found[row - 1]):
            raise DataError(
                f"{_place(path)}:{row + 1}: expected {expected}, found {image_id!r:.80}"
            )
        seen.add(image_id)
    return found[::each]


def _is_new(image_id: str, seen: set[str]) -> bool:
    return image_id.isdigit() and image_id not in seen


def _rows_per_image(path: Path, images: int) -> int:
    try:
        features = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError(f"{path}: not found; expected beside the captions") from error
    except (ValueError, EOFError, OSError) as error:
        raise DataError(
            f"{_place(path)}: not a whole NumPy array ({error}); copy it again"
        ) from error
    if features.ndim not in (2, 3) or features.dtype.kind != "f":
        raise DataError(
            f"{_place(path)}: expected floating-point features (rows, values) or (rows, regions, "
            f"values), found {features.dtype} {features.shape}"
        )
    each = _per_image(len(features), images, f"{_place(path)}: rows")
    for first in (0, (images - 1) * each):  # all would take minutes
        if any((features[first] != row).any() for row in features[first + 1 : first + each]):
            raise DataError(
                f"{_place(path)}: row {first}: expected {each} equal rows an image, found others"
            )
    return each


def _per_image(found: int, images: int, what: str) -> int:
    if found not in (images, EACH * images):
        raise DataError(
            f"{what}: expected {images} (one an image) or {EACH * images} (one a caption) "
            f"after the captions, found {found}"
        )
    return found // images


def _place(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
