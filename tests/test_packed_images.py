"""Images in tar and parquet files."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from refusals import refused

from benchmark.readers import packed_images
from benchmark.readers.packed_images import Packed

pytestmark = pytest.mark.usefixtures("empty_folder")
TABLE = Path("a.parquet")


def png(value: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (value, 0, 0)).save(file, "PNG")
    return file.getvalue()


def value_of(name: str) -> int:
    return int(np.asarray(Packed(Path("."))(name))[0, 0, 0])


def write_table(images: list) -> None:
    columns = {"image": images, "caption": ["one", "two", "three"]}
    pq.write_table(pa.table(columns), TABLE, row_group_size=2)


STRUCTS = [{"bytes": png(n), "path": f"{n}.png"} for n in range(3)]


@pytest.mark.parametrize("images", [[png(n) for n in range(3)], STRUCTS])
def test_an_image_is_found_by_its_row(images):
    write_table(images)
    assert [value_of(f"a.parquet/{row}") for row in range(3)] == [0, 1, 2]
    assert packed_images.columns(TABLE) == (["image"], ["caption"])
    # as Spark names the folder of a table
    Path("b.parquet").mkdir()
    TABLE.rename("b.parquet/part.parquet")
    assert value_of("b.parquet/part.parquet/2") == 2
    with refused("a.parquet/1", found="nothing"):
        Packed(Path(".")).content("a.parquet/1")


def test_rows_of_large_pages_are_read_one_by_one(monkeypatch):
    write_table(STRUCTS)
    monkeypatch.setattr(packed_images, "VALUES", 1)
    rows = packed_images.parquet_records(TABLE, "caption".__eq__)
    assert [facts["caption"] for _, facts, _ in rows] == ["one", "two", "three"]


def test_a_table_that_changes_is_read_again():
    sizes = set()
    for time, images in enumerate(([b"a", b"b", b"c"], [b"d", b"e", b"f"])):
        write_table(images)
        os.utime(TABLE, (time, time))
        assert Packed(Path(".")).content("a.parquet/2") == images[2]
        sizes.add(TABLE.stat().st_size)
    assert len(sizes) == 1


def test_records_have_the_wanted_columns_and_the_paths_of_images():
    write_table(STRUCTS)
    rows = list(packed_images.parquet_records(TABLE, "caption".__eq__))
    assert [number for _, _, number in rows] == ["0", "1", "2"]
    assert rows[2][1] == {"image": "2.png", "caption": "three"}
    with refused("a.parquet", "captions", "image, caption"):
        list(packed_images.parquet_records(TABLE, "text".__eq__))
    names = ["caption.0", "caption.1"]
    columns = {"image": STRUCTS} | dict.fromkeys(names, list("abc"))
    pq.write_table(pa.table(columns), TABLE)
    ((_, facts, _), *_) = packed_images.parquet_records(TABLE, names.__contains__)
    assert facts == {"image": "0.png", "caption.0": "a", "caption.1": "a"}


def test_keys_of_structs_and_of_lists_of_structs():
    rows = [{"split": "test", "sentences": [{"raw": "A."}]}]
    pq.write_table(pa.Table.from_pylist([{"image": STRUCTS[0], "facts": rows}]), TABLE)
    keys = packed_images.keys_of_columns(TABLE)
    assert set(keys) == {
        ("image",),
        ("facts", "split"),
        ("facts", "sentences", "raw"),
    }


def test_an_image_is_found_in_a_tar():
    with tarfile.open("a.tar", "w") as archive:
        for n in range(2):
            info = tarfile.TarInfo(f"in/{n}.png")
            info.size = len(png(n))
            archive.addfile(info, io.BytesIO(png(n)))
    assert list(packed_images.members(Path("a.tar"))) == ["in/0.png", "in/1.png"]
    assert value_of("a.tar/in/1.png") == 1
    with refused("a.tar/in/2.png", found="nothing"):
        value_of("a.tar/in/2.png")


def test_more_rows_than_a_file_can_hold_are_refused():
    pq.write_table(
        pa.table({"image": ["a.png"] * 9999, "caption": ["x"] * 9999}), TABLE
    )
    with refused("a.parquet", "of their own", "9999 in"):
        list(packed_images.parquet_records(TABLE, "caption".__eq__))


def test_one_image_in_many_rows_is_refused(monkeypatch):
    image = np.random.default_rng(0).bytes(3000)
    pq.write_table(pa.table({"image": [image] * 100, "caption": ["x"] * 100}), TABLE)
    assert Packed(Path(".")).content("a.parquet/7") == image
    packed_images._row_group.cache_clear()
    monkeypatch.setattr(packed_images.files, "ALWAYS", 1)
    with refused("a.parquet: row group 0", "of their own", "many rows"):
        Packed(Path(".")).content("a.parquet/7")
