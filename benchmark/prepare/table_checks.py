"""Checks of the tables and boxes of a dataset, before anything is trained on them."""

import pandas as pd

from benchmark.contracts.datasets import SPLITS, Card, Tables
from benchmark.core.errors import UserError
from benchmark.core.names import LONGEST_PATH, LONGEST_TEXT, check_text
from benchmark.data.prepared_tables import CORNERS

USED = SPLITS[:3]  # train, val, test
SLACK = 1.0  # pixels by which a box may stick out: some annotations count from 0, some from 1
CORRECT = "correct the annotations and fetch again"


def check_tables(tables: Tables, card: Card) -> None:
    """Raise UserError for the first fault that makes the tables unusable."""
    check_rows(tables)
    images, captions = tables.images, tables.captions
    for name in USED:
        if name not in set(images["split"]):
            expected = "at least one image (a dataset for score alone has train and val, too)"
            do = "for score alone: rematch score --annotations FILE; else name "
            do += f"{name} as the split of some images"
            raise UserError(f"split {name}", expected, "none", do)
    split_of = images.set_index("image_id")["split"]
    for what, expected, splits in (
        ("images", card.expected_images, images["split"]),
        ("captions", card.expected_captions, captions["image_id"].map(split_of)),
    ):
        for name, count in expected.items():
            if (found := int((splits == name).sum())) != count:
                do = "fetch the complete dataset"
                raise UserError(f"split {name}", f"{count} {what}", found, do)
    groups = images[images["split"].isin(USED)].groupby("group", sort=False)["split"].unique()
    torn = groups[groups.map(len) > 1]
    if len(torn):
        found = f"{' and '.join(torn.iloc[0])}{in_all(len(torn))}"
        do = "correct the splits and fetch again"
        raise UserError(f"group {torn.index[0]!r}", "one split per group", found, do)


def check_rows(tables: Tables) -> None:
    """The same for faults of single rows, whatever splits there are."""
    images, captions, regions = tables.images, tables.captions, tables.regions
    for table, key, columns in (
        (images, "image_id", dict.fromkeys(("image_id", "group", "file"), LONGEST_PATH)),
        (captions, "caption_id", {"caption_id": 2 * LONGEST_PATH, "text": LONGEST_TEXT}),
        (regions, "caption_id", {"phrase": LONGEST_TEXT, "chain": 2 * LONGEST_PATH}),
    ):
        for column, longest in columns.items():
            for name, text in zip(table[key], table[column].astype(str), strict=True):
                check_text(text, f"{key} {name!r:.200}: {column}", CORRECT, longest)

    for table, key in ((images, "image_id"), (captions, "caption_id")):
        _refuse(table[table[key].duplicated()], key, key, "an id that occurs once", "a second row")
    for table, key in ((captions, "caption_id"), (regions, "phrase")):
        strangers = table[~table["image_id"].isin(images["image_id"])]
        _refuse(strangers, key, "image_id", "an image of the table of images")
    strangers = regions[~regions["caption_id"].isin(captions["caption_id"])]
    _refuse(strangers, "phrase", "caption_id", "a caption of the table of captions")

    unknown = images[~images["split"].isin(SPLITS)]
    _refuse(unknown, "image_id", "split", f"one of {', '.join(SPLITS)}")
    blank = captions[captions["text"].str.strip() == ""]
    _refuse(blank, "caption_id", "text", "a caption that is not blank")
    silent = images["split"].isin(USED) & ~images["image_id"].isin(captions["image_id"])
    expected = "at least one caption or the split unused, as "
    expected += "each image is a query, too (no gallery-only images)"
    _refuse(images[silent], "image_id", "split", expected, "none")

    for column in ("phrase", "chain"):
        blank = regions[column].astype(str).str.strip() == ""
        _refuse(regions[blank], "caption_id", column, f"a {column} that is not blank")
    owner = captions.set_index("caption_id")["image_id"]
    strays = regions["image_id"] != regions["caption_id"].map(owner)
    _refuse(regions[strays], "phrase", "image_id", "the image of the phrase's caption")
    for columns, what in ((["image_id"], "image"), (CORNERS, "box")):
        first = regions.groupby("chain")[columns].transform("first")
        torn = (regions[columns] != first).any(axis=1)
        _refuse(regions[torn], "phrase", "chain", f"one {what} per chain", "another one")


def check_boxes(regions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise UserError for a box without area, and for one outside its image.

    `images` has width and height, 0 for an image without a picture.
    """
    boxes = regions.merge(images[["image_id", "width", "height"]], on="image_id")
    is_whole = (boxes["x1"] > boxes["x0"]) & (boxes["y1"] > boxes["y0"])
    is_inside = (boxes[["x0", "y0"]] >= -SLACK).all(axis=1)
    is_inside &= (boxes["x1"] <= boxes["width"] + SLACK) & (boxes["y1"] <= boxes["height"] + SLACK)
    is_bad = ~is_whole | ~is_inside & (boxes["width"] > 0)
    if is_bad.any():
        row = boxes[is_bad].iloc[0]
        within = f"a box in its picture of {row['width']} x {row['height']}"
        where = f"image_id {row['image_id']!r}: phrase {row['phrase']!r}: box"
        found = f"{[float(row[c]) for c in CORNERS]}{in_all(int(is_bad.sum()))}"
        has_area = row["x1"] > row["x0"] and row["y1"] > row["y0"]
        expected = within if has_area else "x0 < x1 and y0 < y1"
        raise UserError(where, expected, found, CORRECT)


def _refuse(offenders: pd.DataFrame, key: str, column: str, expected: str, found: str = "") -> None:
    """Raise if there are offenders: the first is named by its `key`, all are counted. Without
    `found`, the value of `column` is what is found."""
    if len(offenders):
        first = offenders.iloc[0]
        where, value = f"{key} {first[key]!r}: {column}", repr(first[column])
        where, found = (f"{where} {value}", found) if found else (where, value)
        raise UserError(where, expected, f"{found}{in_all(len(offenders))}", CORRECT)


def in_all(count: int) -> str:
    return f" ({count} such in all)"
