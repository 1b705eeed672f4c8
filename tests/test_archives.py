"""Text and members of zip and tar archives, read in place. Arrays
of NumPy, read without trust."""

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from benchmark.readers import archives

pytestmark = pytest.mark.usefixtures("empty_folder")
TEXT = "é one\r\ntwo\u2028still two\n"


def loose() -> Path:
    Path("a.txt").write_bytes(TEXT.encode())
    return Path("a.txt")


def zipped() -> Path:
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("a.txt", TEXT)
    return Path("a.zip")


def tarred(*folders: str) -> Path:
    with tarfile.open("a.tar.gz", "w:gz") as archive:
        for folder in folders or ("in",):
            info = tarfile.TarInfo(f"{folder}/a.txt")
            info.size = len(TEXT.encode())
            archive.addfile(info, io.BytesIO(TEXT.encode()))
    return Path("a.tar.gz")


@pytest.mark.parametrize("make", [loose, zipped, tarred])
def test_lines_are_those_of_the_text_wherever_it_lies(make):
    assert archives.lines(make(), "a.txt") == ["é one", "two\u2028still two"]


def test_blanks_at_the_ends_of_lines_are_kept():
    Path("b.txt").write_bytes(b" one \r\n\ttwo\t\n\n")
    assert archives.lines(Path("b.txt"), "b.txt") == [" one ", "\ttwo\t", ""]


@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_member_that_is_not_there_is_refused(make):
    with refused(make(), found="n"):
        archives.text(make(), "b.txt")


def test_a_member_on_a_drive_is_refused():
    with zipfile.ZipFile("c.zip", "w") as archive:
        archive.writestr("C:/a.txt", TEXT)
    with refused("c.zip", "inside", "outside"):
        archives.text(Path("c.zip"), "C:/a.txt")


def test_a_name_in_two_folders_is_refused():
    with refused("a.tar.gz", "a.txt", "2"):
        archives.text(tarred("in", "out"), "a.txt")


def test_a_member_lies_where_its_extent_says():
    with tarfile.open("b.tar", "w") as archive:
        archive.add(loose())
    content = Path("b.tar").read_bytes()
    members = archives.tar_members(io.BytesIO(content), Path("b.tar"))
    start, size = members["a.txt"]
    assert content[start : start + size] == TEXT.encode()


def test_other_bytes_far_behind_the_end_of_a_tar_are_refused():
    with tarfile.open("b.tar", "w") as archive:
        archive.add(loose())
    content = Path("b.tar").read_bytes() + bytes(archives.HEADER) + b"x"
    with pytest.raises(tarfile.ReadError, match="no end"):
        archives.tar_members(io.BytesIO(content), Path("b.tar"))


# Arrays -------------------------------------------------------------------------------


def content(array: np.ndarray, tmp_path) -> bytes:
    np.save(tmp_path / "a.npy", array)
    return (tmp_path / "a.npy").read_bytes()


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.arange(6).reshape(3, 2).T, np.array(["é", "b"])],
)
def test_arrays_come_back_as_written(array, tmp_path):
    read = archives.array_of(content(array, tmp_path))
    assert np.array_equal(read, array) and read.dtype == array.dtype
    assert np.array_equal(archives.mapped(tmp_path / "a.npy"), array)


def test_objects_and_other_sizes_are_refused(tmp_path):
    for wrong in (
        content(np.array([{}]), tmp_path),
        content(np.arange(3), tmp_path)[:-1],
        content(np.arange(3), tmp_path) + b"x",
        b"",
    ):
        with pytest.raises(ValueError):
            archives.array_of(wrong)


def test_only_named_arrays_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(2), b=np.ones(1))
    arrays = archives.arrays_of(tmp_path / "a.npz", ("b", "c"))
    assert list(arrays) == ["b"]


def test_an_array_that_is_there_twice_is_refused(tmp_path):
    array = content(np.arange(2), tmp_path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as zipped:
        zipped.writestr("a.npy", array)
        zipped.writestr("a", array)
    with refused(tmp_path / "a.npz", "every array once", "'a' twice"):
        archives.arrays_of(tmp_path / "a.npz")


def test_a_byte_order_mark_is_no_letter_of_a_text():
    Path("a.txt").write_text("one", encoding="utf-8-sig")
    assert archives.lines(Path("a.txt"), "a.txt") == ["one"]


def test_a_member_of_a_zip_that_is_a_link_is_refused():
    with zipfile.ZipFile("a.zip", "w") as archive:
        info = zipfile.ZipInfo("a.txt")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with refused("a.zip", "no links", "'a.txt'"):
        archives.text(Path("a.zip"), "a.txt")
