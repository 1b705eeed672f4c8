"""Prepared tables: rows of splits, queries, and boxes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmark.data.prepared_tables import (
    TABLES,
    Prepared,
    Split,
    has_sibling,
    images_of_queries,
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


def test_rows_of_a_split_are_a_slice():
    none = np.array([], dtype=np.int64)
    split = Split(
        name="test",
        image_rows=np.array([3, 4, 5]),
        caption_rows=np.array([7, 8]),
        image_of_caption=np.array([0, 2]),
        group_of_image=np.array([0, 1, 2]),
        region_rows=none,
        image_of_region=none,
    )
    assert np.arange(9)[split.images].tolist() == [3, 4, 5]
    assert np.arange(9)[split.captions].tolist() == [7, 8]
