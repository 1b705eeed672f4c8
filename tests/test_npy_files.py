"""NumPy's files, read without trust."""

import numpy as np
import pytest

from benchmark.readers import npy_files


def content(array: np.ndarray, tmp_path) -> bytes:
    np.save(tmp_path / "a.npy", array)
    return (tmp_path / "a.npy").read_bytes()


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.arange(6).reshape(3, 2).T, np.array(["é", "b"])],
)
def test_arrays_come_back_as_written(array, tmp_path):
    read = npy_files.array_of(content(array, tmp_path))
    assert np.array_equal(read, array) and read.dtype == array.dtype
    assert np.array_equal(npy_files.mapped(tmp_path / "a.npy"), array)


def test_objects_and_other_sizes_are_refused(tmp_path):
    for wrong in (
        content(np.array([{}]), tmp_path),
        content(np.arange(3), tmp_path)[:-1],
        content(np.arange(3), tmp_path) + b"x",
        b"",
    ):
        with pytest.raises(ValueError):
            npy_files.array_of(wrong)


def test_only_named_arrays_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(2), b=np.ones(1))
    arrays = npy_files.arrays_of(tmp_path / "a.npz", ("b", "c"))
    assert list(arrays) == ["b"]
