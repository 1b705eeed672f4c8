"""What `prepare` tells of a dataset: what it read, and what of it is out of the ordinary."""

from collections.abc import Sequence

import pandas as pd

from benchmark.prepare.table_checks import Picture
from datasets import SPLITS, printable

LEAST, MOST = 16, 8192  # pixels of a side that is ordinary
LONGEST = 8  # times the shorter side that the longer one ordinarily is, at most
NAMED = 5  # of what is listed


def summary(name: str, images: pd.DataFrame, captions: pd.DataFrame) -> str:
    """For example "prepare pets: 159 pictures, 795 captions: train 107, val 12, test 40"."""
    counts = images["split"].value_counts()
    splits = ", ".join(f"{split} {counts[split]}" for split in SPLITS if split in counts)
    what = "pictures" if (images["file"] != "").all() else "images"
    return f"prepare {name}: {len(images)} {what}, {len(captions)} captions: {splits}"


def oddities(
    images: pd.DataFrame, captions: pd.DataFrame, pictures: Sequence[Picture]
) -> list[str]:
    """Notes on pictures of extreme size or shape, and on images without a caption, if any.

    images    all images, in the order of the table
    pictures  the decoded pictures of those that have a file, in the same order
    """
    sized = list(zip(images["file"][images["file"] != ""], pictures, strict=True))
    extreme = [f"{file} ({p.width} x {p.height})" for file, p in sized if _is_extreme(p)]
    silent = images[~images["image_id"].isin(captions["image_id"])]
    names = silent["file"].where(silent["file"] != "", silent["image_id"]).tolist()
    notes = [
        (
            extreme,
            f"pictures have a side of less than {LEAST} or more than {MOST} pixels, or one more "
            f"than {LONGEST} times the other",
        ),
        (names, "images have no caption"),
    ]
    return [f"{len(items)} {what}: {_listed(items)}." for items, what in notes if items]


def _is_extreme(picture: Picture) -> bool:
    short, long = sorted((picture.width, picture.height))
    return short < LEAST or long > MOST or long > LONGEST * short


def _listed(items: list[str]) -> str:
    more = len(items) - NAMED
    return printable(", ".join(items[:NAMED]) + (f" and {more} more" if more > 0 else ""))
