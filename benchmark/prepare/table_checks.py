"""Checks of the tables and boxes of a dataset, before anything is trained on them."""

import pandas as pd

from benchmark.contracts.datasets import SPLITS, Card, Tables
from benchmark.core.errors import UserError
from benchmark.core.names import LONGEST_PATH, LONGEST_TEXT, check_text
from benchmark.data.prepared_tables import CORNERS

USED = SPLITS[:3]  # train, val, test
# pixels by which a box may stick out: some annotations count from 0, some from 1
SLACK = 1.0
CORRECT = "correct the annotations"


def check_tables(tables: Tables, card: Card) -> None:
    """Raise UserError for the first fault that makes the tables unusable."""
    check_rows(tables)
    images = tables.images
    captions = tables.captions
    for name in USED:
        if name not in set(images["split"]):
            raise UserError(
                f"split {name}",
                expected="at least one image (score needs train and val, too)",
                found="none",
                do=f"name {name} as the split of some images "
                "(for score alone: rematch score --dataset folder --annotations FILE)",
            )
    split_of = images.set_index("image_id")["split"]
    _check_counts("images", card.expected_images, images["split"])
    splits = captions["image_id"].map(split_of)
    _check_counts("captions", card.expected_captions, splits)
    used = images[images["split"].isin(USED)]
    splits_of_group = used.groupby("group", sort=False)["split"].unique()
    divided = splits_of_group[splits_of_group.map(len) > 1]
    if len(divided):
        raise UserError(
            f"group {divided.index[0]!r}",
            expected="one split per group",
            found=f"{' and '.join(divided.iloc[0])}{in_all(len(divided))}",
            do="correct the splits",
        )


def _check_counts(what: str, expected: dict[str, int], splits: pd.Series) -> None:
    """`splits` has that of each row; `expected` how many rows each has."""
    for name, count in expected.items():
        rows = int((splits == name).sum())
        if rows != count:
            raise UserError(
                f"split {name}",
                expected=f"{count} {what}",
                found=rows,
                do="place the complete dataset there",
            )


def check_rows(tables: Tables) -> None:
    """The same for faults of single rows, whatever splits there are."""
    images = tables.images
    captions = tables.captions
    regions = tables.regions
    for column in ("image_id", "group", "file"):
        _check_texts(images, "image_id", column, LONGEST_PATH)
    _check_texts(captions, "caption_id", "caption_id", 2 * LONGEST_PATH)
    _check_texts(captions, "caption_id", "text", LONGEST_TEXT)
    _check_texts(regions, "caption_id", "phrase", LONGEST_TEXT)
    _check_texts(regions, "caption_id", "chain", 2 * LONGEST_PATH)

    for table, key in ((images, "image_id"), (captions, "caption_id")):
        repeated = table[table[key].duplicated()]
        _refuse(repeated, key, key, "an id that occurs once", "a second row")
    for table, key in ((captions, "caption_id"), (regions, "phrase")):
        has_image = table["image_id"].isin(images["image_id"])
        expected = "an image of the table of images"
        _refuse(table[~has_image], key, "image_id", expected)
    has_caption = regions["caption_id"].isin(captions["caption_id"])
    expected = "a caption of the table of captions"
    _refuse(regions[~has_caption], "phrase", "caption_id", expected)

    is_split = images["split"].isin(SPLITS)
    expected = f"one of {', '.join(SPLITS)}"
    _refuse(images[~is_split], "image_id", "split", expected)
    is_text = captions["text"].map(lambda text: isinstance(text, str)).astype(bool)
    _refuse(captions[~is_text], "caption_id", "text", "a text")
    is_blank = captions["text"].str.strip() == ""
    expected = "a caption that is not blank"
    _refuse(captions[is_blank], "caption_id", "text", expected)
    is_used = images["split"].isin(USED)
    is_captioned = images["image_id"].isin(captions["image_id"])
    uncaptioned = images[is_used & ~is_captioned]
    expected = "at least one caption, or the split unused: each image is also a query"
    _refuse(uncaptioned, "image_id", "split", expected, "no caption")

    for column in ("phrase", "chain"):
        is_blank = regions[column].astype(str).str.strip() == ""
        expected = f"a {column} that is not blank"
        _refuse(regions[is_blank], "caption_id", column, expected)
    owner = captions.set_index("caption_id")["image_id"]
    is_stray = regions["image_id"] != regions["caption_id"].map(owner)
    expected = "the image of the phrase's caption"
    _refuse(regions[is_stray], "phrase", "image_id", expected)
    for columns, what in ((["image_id"], "image"), (CORNERS, "box")):
        first = regions.groupby("chain")[columns].transform("first")
        is_other = (regions[columns] != first).any(axis=1)
        expected = f"one {what} per chain"
        _refuse(regions[is_other], "phrase", "chain", expected, "another one")


def _check_texts(table: pd.DataFrame, key: str, column: str, longest: int) -> None:
    """Every text of a column is there, can be stored and has at most so many
    characters."""
    _refuse(table[table[column].isna()], key, column, "a text")
    for name, text in zip(table[key], table[column].astype(str), strict=True):
        check_text(text, f"{key} {name!r:.200}: {column}", CORRECT, longest)


def check_boxes(regions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise UserError for a box without area, and for one outside its image.

    `images` has width and height, 0 for an image without a picture.
    """
    boxes = regions.merge(images[["image_id", "width", "height"]], on="image_id")
    has_area = (boxes["x1"] > boxes["x0"]) & (boxes["y1"] > boxes["y0"])
    is_inside = (boxes[["x0", "y0"]] >= -SLACK).all(axis=1)
    is_inside &= boxes["x1"] <= boxes["width"] + SLACK
    is_inside &= boxes["y1"] <= boxes["height"] + SLACK
    is_bad = ~has_area | ~is_inside & (boxes["width"] > 0)
    if is_bad.any():
        row = boxes[is_bad].iloc[0]
        expected = "x0 < x1 and y0 < y1"
        if has_area[row.name]:
            expected = f"a box in its image of {row['width']} x {row['height']}"
        corners = row[CORNERS].astype(float).tolist()
        raise UserError(
            f"image_id {row['image_id']!r}: phrase {row['phrase']!r}: box",
            expected=expected,
            found=f"{corners}{in_all(is_bad.sum())}",
            do=CORRECT,
        )


def _refuse(
    offenders: pd.DataFrame,
    key: str,
    column: str,
    expected: str,
    found: str = "",
) -> None:
    """Raise if there are offenders: the first is named by its `key`, all are counted.
    Without `found`, the value of `column` is what is found."""
    if offenders.empty:
        return
    first = offenders.iloc[0]
    count = in_all(len(offenders))
    where = f"{key} {first[key]!r}: {column}"
    value = repr(first[column])
    if found:
        raise UserError(
            f"{where} {value}",
            expected=expected,
            found=f"{found}{count}",
            do=CORRECT,
        )
    raise UserError(
        where,
        expected=expected,
        found=f"{value}{count}",
        do=CORRECT,
    )


def in_all(count: int) -> str:
    return f" ({count} such in all)"
