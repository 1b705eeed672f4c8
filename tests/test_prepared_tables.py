"""Prepared tables: rows of splits, queries, and boxes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmark.data.prepared_tables import (
    TABLES,
    Prepared,
    Split,
    area,
    has_sibling,
    images_of_queries,
    iou,
    union,
)


def data_of(splits: list[str], owners: list[int]) -> Prepared:
    ids = [f"i{n}" for n in range(len(splits))]
    images = pd.DataFrame({"image_id": ids, "split": splits, "group": ids})
    captions = pd.DataFrame({"image_id": [ids[owner] for owner in owners]})
    captions["split"] = [splits[owner] for owner in owners]
    regions = pd.DataFrame({"image_id": ["i2", "i0", "i1"]})
    return Prepared(images, captions, regions, {}, None)


def test_rows_of_a_split_and_the_image_of_each_query():
    data = data_of(["train", "test", "test", "unused"], [0, 1, 1, 2, 3])
    split = data.split("test")
    assert split.image_rows.tolist() == [1, 2]
    assert split.caption_rows.tolist() == [1, 2, 3]
    assert split.image_of_caption.tolist() == [0, 0, 1]
    assert split.region_rows.tolist() == [0, 2]
    queries = images_of_queries(data)
    assert queries["t2i"].tolist() == [0, 0, 1] and queries["s2s"].tolist() == [0, 0]
    assert queries["p2r"].tolist() == [1, 0]
    assert data.used_images["image_id"].tolist() == ["i0", "i1", "i2"]
    assert len(data.split("val").image_rows) == 0
    with pytest.raises(ValueError, match="dev"):
        data.split("dev")


def test_the_digest_is_of_each_table_and_of_the_raw_files(tmp_path):
    data = data_of(["test"], [0])
    for name in TABLES:
        (tmp_path / f"{name}.parquet").write_text(name)
    made = [replace(data, folder=tmp_path, card={"manifest": m}) for m in "aab"]
    digests = [of.sha256 for of in made]
    for name in TABLES:
        (tmp_path / f"{name}.parquet").write_text("other")
        digests.append(made[0].sha256)
    assert digests[0] == digests[1] and len(set(digests)) == 2 + len(TABLES)


def test_siblings_share_an_image():
    assert has_sibling(np.array([0, 0, 1, 3, 3])).tolist() == [1, 1, 0, 1, 1]


# Boxes --------------------------------------------------------------------------------


def test_area_and_union_by_hand():
    boxes = np.array([[0.0, 0, 2, 3], [1, 1, 5, 2], [4, 4, 1, 9]])
    assert area(boxes).tolist() == [6, 4, 0]
    assert union(boxes[:2]).tolist() == [0, 0, 5, 3]


def test_iou_is_that_of_counted_pixels():
    rng = np.random.default_rng(0)
    a, b = (
        np.sort(rng.integers(0, 13, (n, 2, 2)), axis=1).reshape(n, 4) for n in (9, 7)
    )
    expected = np.zeros((9, 7))
    for (i, first), (j, second) in ((x, y) for x in enumerate(a) for y in enumerate(b)):
        masks = np.zeros((2, 13, 13), bool)
        for mask, (x0, y0, x1, y1) in zip(masks, (first, second), strict=True):
            mask[y0:y1, x0:x1] = True
        total = (masks[0] | masks[1]).sum()
        expected[i, j] = (masks[0] & masks[1]).sum() / total if total else 0
    ious = iou(a[:, None].astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(ious, expected, atol=1e-6)
    assert ious.dtype == np.float32 and (expected > 0.2).any()


def test_a_box_without_area_has_no_iou_not_even_with_itself():
    nothing, box = np.zeros((1, 4)), np.array([[0.0, 0, 4, 4]])
    assert iou(nothing, nothing).tolist() == iou(nothing, box).tolist() == [0]
    assert iou(np.zeros((0, 4)), box).shape == (0,)


def test_rows_of_a_split_are_a_slice():
    none = np.array([], dtype=np.int64)
    split = Split(
        image_rows=np.array([3, 4, 5]),
        caption_rows=np.array([7, 8]),
        image_of_caption=np.array([0, 2]),
        group_of_image=np.array([0, 1, 2]),
        region_rows=none,
        image_of_region=none,
    )
    assert np.arange(9)[split.images].tolist() == [3, 4, 5]
    assert np.arange(9)[split.captions].tolist() == [7, 8]
