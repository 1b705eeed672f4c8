"""Files of numbers that are made to run code, to overflow or to mislead: one line
each."""

import io
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import feature_files
import numpy as np
import pytest
import scipy.io
import torch
from feature_files import IMAGES, RAW, USED, npy_pooled
from sieges import Trap, repelled
from torch import nn

from benchmark.features import word2vec
from benchmark.features.imported_features import open_source
from benchmark.features.proposals import read_boxes
from benchmark.features.weight_files import fill, read_state
from benchmark.season.parameters import WordVectors

pytestmark = pytest.mark.usefixtures("field")

BOXES = np.array([[0, 0, 4, 4], [1, 1, 8, 8]], np.float64)
OBJECTS = np.array([Trap()] * len(USED), dtype=object)
Made = bytes | str | Callable[[], bytes | str]  # what is large is made by its test


def content(made: Made) -> bytes | str:
    return made() if callable(made) else made


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(text: str, version: bytes = b"\x01\x00", values: bytes = b"") -> bytes:
    data = text.encode("latin-1").ljust(118) + b"\n"
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(data))
    return b"\x93NUMPY" + version + length + data + values


def described(shape: str, descr: str = "'<f4'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def npz(**members: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return archive.getvalue()


NPY = {
    "objects": npy(OBJECTS),
    "a pickle": pickle.dumps(Trap()),
    "objects in structure": npy(
        np.array([(1, Trap())], dtype=[("a", "f4"), ("b", "O")])
    ),
    "a huge shape": header(described("(9999999999, 4096)"), values=bytes(64)),
    "type too wide": header(described("(4, 4)", "'|V2000000000'"), values=bytes(64)),
    "a call": header("__import__('os').system('touch sprung')"),
    "deep brackets": header("(" * 9000 + ")" * 9000),
    "header beyond end": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31 - 1) + b"{}",
    "NaN": npy(np.full((12, 3), np.nan, np.float32)),
    "cut off": npy(np.ones((12, 3), np.float32))[:-1],
}


@pytest.fixture
def raw_folder(field) -> None:
    RAW.mkdir(parents=True)


@pytest.mark.usefixtures("raw_folder")
@pytest.mark.parametrize("case", NPY)
def test_hostile_features(case):
    npy_pooled()
    (RAW / "mine.npy").write_bytes(NPY[case])
    repelled(lambda: feature_files.load("mine.npy"), "mine.npy")


def bomb(shape: str) -> bytes:
    # unpacked a thousand times larger than packed
    return npz(boxes=header(described(shape), values=bytes(48 << 20)))


NPZ = {
    "objects": npz(boxes=npy(OBJECTS)),
    "objects as scores": npz(boxes=npy(BOXES), scores=npy(OBJECTS[:2])),
    "a pickle": npz(boxes=pickle.dumps(Trap())),
    "a bomb": lambda: bomb("(3145728, 4)"),
    "bomb, other shape": lambda: bomb("(2, 4)"),
    "a member above": npz(**{"boxes": npy(BOXES), "../../outside/x": b""}),
    **{f"{case} (npy)": npz(boxes=array) for case, array in NPY.items()},
}


def boxes_of(made: Made, suffix: str) -> None:
    path = Path(f"boxes/7{suffix}")
    path.parent.mkdir()
    path.write_bytes(content(made))
    repelled(lambda: read_boxes(path.parent, "7", (8, 8), 10), path.name)


@pytest.mark.parametrize("case", NPZ)
def test_hostile_boxes(case):
    boxes_of(NPZ[case], ".npz")


def mat(**variables: object) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, variables)
    return file.getvalue()


MAT_HEAD = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(
    name: str, rows: int, columns: int, values: bytes, size: int | None = None
) -> bytes:
    """A variable of doubles in MATLAB's format 5, whose size may be said to be
    another."""
    flags = element(6, struct.pack("<II", 6, 0))
    shape = element(5, struct.pack("<ii", rows, columns))
    tag = struct.pack("<II", 9, len(values) if size is None else size)
    return element(14, flags + shape + element(1, name.encode()) + tag + values)


def packed(data: bytes) -> bytes:
    compressed = zlib.compress(data, 9)
    return MAT_HEAD + struct.pack("<II", 15, len(compressed)) + compressed


def bombs_of(name: str, columns: int) -> dict[str, Made]:
    large = 48 << 20  # bytes of nothing
    rows, numbers = large // 8 // columns, bytes(8 * columns * 2)
    return {
        "a bomb": lambda: packed(matrix(name, rows, columns, bytes(large))),
        "a bomb beside": lambda: (
            packed(matrix("other", 1, 1, bytes(large)))
            + matrix(name, 2, columns, numbers)
        ),
    }


def of_variable(name: str, columns: int) -> dict[str, Made]:
    numbers = bytes(8 * columns * 2)
    cells = np.array([[Trap().__class__.__name__, 1]], dtype=object)
    return {
        **bombs_of(name, columns),
        "a huge shape": MAT_HEAD + matrix(name, 2**31 - 1, columns, numbers),
        "a huge size": MAT_HEAD + matrix(name, 2, columns, numbers, size=2**32 - 8),
        "version 7.3": b"MATLAB 7.3".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n",
        "cells": mat(**{name: cells}),
        "a pickle": pickle.dumps(Trap()),
        "cut off": mat(**{name: np.ones((2, columns))})[:-9],
    }


BBS = of_variable("bbs", 4) | {"NaN": mat(bbs=np.full((2, 4), np.nan))}


@pytest.mark.parametrize("case", BBS)
def test_hostile_boxes_of_matlab(case):
    boxes_of(BBS[case], ".mat")


# Word vectors and weights -------------------------------------------------------------

VALUES = struct.pack("<2f", 1, 2)
BIN = {
    "a huge count": b"99999999999999 2\nman " + VALUES,
    "a huge size": b"1 99999999999\nman " + VALUES,
    "cut off": b"2 2\nman " + VALUES + b"dog " + VALUES[:-1],
    "NaN": b"1 2\nman " + struct.pack("<2f", 1, np.nan),
    "endless word": lambda: b"1 2\n" + b"x" * (20 << 20),
}
TEXT = {
    "NaN": b"man 1 nan\n",
    "endless line": lambda: b"man 1 2\n" + b"x" * (100 << 20),
    "a pickle": pickle.dumps(Trap()),
}
VECTORS = {f"{case}.bin": data for case, data in BIN.items()}
VECTORS |= {f"{case}.txt": data for case, data in TEXT.items()}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("case", VECTORS)
def test_hostile_word_vectors(case):
    path = Path(f"vectors{Path(case).suffix}")
    path.write_bytes(content(VECTORS[case]))
    settings = WordVectors(vectors=str(path), size=2)
    repelled(lambda: word2vec.words([["man"]], settings, {"man"}), path.name)


def torch_saved(state: object, **options: object) -> bytes:
    file = io.BytesIO()
    torch.save(state, file, **options)
    return file.getvalue()


def weights_with_pickle(
    change: Callable[[bytes], bytes], pack: int = zipfile.ZIP_STORED
) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(torch_saved({"weight": torch.ones(2, 2)}))) as old:
        with zipfile.ZipFile(archive, "w", pack) as new:
            for name in old.namelist():
                data = old.read(name)
                new.writestr(name, change(data) if name.endswith("data.pkl") else data)
    return archive.getvalue()


WEIGHTS = {
    "trap beside tensors": torch_saved({"weight": torch.ones(2, 2), "trap": Trap()}),
    "trap, old format": torch_saved(Trap(), _use_new_zipfile_serialization=False),
    "a pickle": pickle.dumps(Trap()),
    "a whole network": torch_saved(nn.Linear(2, 2)),
    "another shape": torch_saved({"weight": torch.ones(99, 2)}),
    "tensor beyond storage": weights_with_pickle(
        lambda data: data.replace(b"K\x02K\x02\x86", b"M\xff\xffK\x02\x86")
    ),
    "a bomb": lambda: weights_with_pickle(
        lambda data: data + bytes(48 << 20), zipfile.ZIP_DEFLATED
    ),
    "cut off": torch_saved({"weight": torch.ones(2, 2)})[:-90],
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_hostile_weights(case):
    path = Path("network-1.pth")
    path.write_bytes(content(WEIGHTS[case]))
    repelled(lambda: fill(nn.Linear(2, 2, bias=False), path), path.name)


READERS = {
    "network-1.pth": lambda name: read_state(Path(name)),
    "words.bin": lambda name: word2vec.words(
        [["man"]], WordVectors(vectors=name, size=2), {"man"}
    ),
    "words.txt": lambda name: word2vec.words(
        [["man"]], WordVectors(vectors=name, size=2), {"man"}
    ),
    "mine.npy": lambda name: open_source(Path(name), RAW, IMAGES),
    "mine.mat": lambda name: open_source(Path(name), RAW, IMAGES),
    "mine.tsv": lambda name: list(open_source(Path(name), RAW, IMAGES).blocks()),
    "7.mat": lambda name: read_boxes(Path(), "7", (8, 8), 10),
}


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_in_the_place_of_numbers(name, put):
    put(Path(name))
    repelled(lambda: READERS[name](name), name)


def test_the_trap_works():
    pickle.loads(pickle.dumps(Trap()))
    assert Path("sprung").exists()
