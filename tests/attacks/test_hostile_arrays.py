"""Files of numbers that are made to run code, to overflow or to mislead: one line each."""

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
from feature_files import RAW, USED, npy_pooled, scan_folder, tsv_file, tsv_row, write_tsv
from sieges import Trap, repelled
from torch import nn

from benchmark.encode.box_files import read_boxes
from benchmark.encode.feature_formats import open_source
from benchmark.encoders import word2vec
from benchmark.encoders.weight_files import fill, read_state
from benchmark.season.parameters import WordVectors
from datasets.shared import precomp

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
    "objects in a structure": npy(np.array([(1, Trap())], dtype=[("a", "f4"), ("b", "O")])),
    "a huge shape": header(described("(9999999999, 4096)"), values=bytes(64)),
    "a shape beyond all": header(described(f"({10**30}, {10**30})"), values=bytes(64)),
    "a shape of a few bytes": header(described("(12, 2147483647)"), values=bytes(64)),
    "a negative shape": header(described("(-1, -16)"), values=bytes(64)),
    "a shape of nothing": header(described("(0, 9999999999)")),
    "a shape that is no tuple": header(described("[4, 4]"), values=bytes(64)),
    "many dimensions": header(described("(1,) * 99"), values=bytes(64)),
    "a hundred dimensions": header(described(str((1,) * 100)), values=bytes(4)),
    "an unknown type": header(described("(4, 4)", "'<q77'"), values=bytes(64)),
    "a type of many bytes": header(described("(4, 4)", "'|V2000000000'"), values=bytes(64)),
    "a type that is a list of itself": header(described("(4, 4)", "[" * 40 + "]" * 40)),
    "a call": header("__import__('os').system('touch sprung')"),
    "no brackets close": header("{" * 100),
    "deep brackets": header("(" * 9000 + ")" * 9000),
    "a long header": header("'" + "x" * 60_000 + "'"),
    "a header beyond the end": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31 - 1) + b"{}",
    "version 9": header(described("(4, 4)"), b"\x09\x00"),
    "an npz": npz(boxes=npy(BOXES)),
    "text": npy(np.array([["a", "b"]] * 12)),
    "complex numbers": npy(np.ones((12, 3), np.complex64)),
    "whole numbers": npy(np.ones((12, 3), np.int64)),
    "NaN": npy(np.full((12, 3), np.nan, np.float32)),
    "infinity": npy(np.full((12, 3), -np.inf, np.float32)),
    "one number": npy(np.float32(1)),
    "cut off": npy(np.ones((12, 3), np.float32))[:-1],
    "nothing": b"",
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


@pytest.mark.usefixtures("raw_folder")
@pytest.mark.parametrize("case", sorted(NPY.keys() - {"NaN", "infinity"}))
def test_hostile_features_of_precomp(case):
    scan_folder()
    (RAW / "f30k_precomp/dev_ims.npy").write_bytes(NPY[case])
    repelled(lambda: precomp.layout(RAW / "f30k_precomp"), "dev_ims.npy")


def bomb(shape: str) -> bytes:
    """An array of nothing whose member is a thousand times larger than packed."""
    return npz(boxes=header(described(shape), values=bytes(48 << 20)))


def forged(declared: int) -> bytes:
    """An .npz whose member is said to have another size."""
    data = bytearray(npz(boxes=npy(BOXES)))
    start = data.index(b"PK\x01\x02") + 24
    data[start : start + 4] = struct.pack("<I", declared)
    return bytes(data)


NPZ = {
    "objects": npz(boxes=npy(OBJECTS)),
    "objects as scores": npz(boxes=npy(BOXES), scores=npy(OBJECTS[:2])),
    "a pickle": npz(boxes=pickle.dumps(Trap())),
    "a pickle for an archive": pickle.dumps(Trap()),
    "a bomb": lambda: bomb("(3145728, 4)"),
    "a bomb of another shape": lambda: bomb("(2, 4)"),
    "a small size": forged(1),
    "a large size": forged(1 << 30),
    "no member": npz(),
    "another member": npz(other=npy(BOXES)),
    "a member above": npz(**{"boxes": npy(BOXES), "../../outside/x": b""}),
    "no zip": b"<html>not found</html>",
    "an array for an archive": npy(BOXES),
    "NaN as a score": npz(boxes=npy(BOXES), scores=npy(np.array([np.nan, 1]))),
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


def matrix(name: str, rows: int, columns: int, values: bytes, size: int | None = None) -> bytes:
    """A variable of doubles in MATLAB's format 5, whose size may be said to be another."""
    flags = element(6, struct.pack("<II", 6, 0))
    shape = element(5, struct.pack("<ii", rows, columns))
    tag = struct.pack("<II", 9, len(values) if size is None else size)
    return element(14, flags + shape + element(1, name.encode()) + tag + values)


def packed(data: bytes) -> bytes:
    compressed = zlib.compress(data, 9)
    return MAT_HEAD + struct.pack("<II", 15, len(compressed)) + compressed


def version_4(name: str, rows: int, columns: int) -> bytes:
    head = struct.pack("<iiiii", 0, rows, columns, 0, len(name) + 1)
    return head + name.encode() + b"\0" + bytes(64)


def bombs_of(name: str, columns: int) -> dict[str, Made]:
    large = 48 << 20  # bytes of nothing
    rows, numbers = large // 8 // columns, bytes(8 * columns * 2)
    return {
        "a bomb": lambda: packed(matrix(name, rows, columns, bytes(large))),
        "a bomb of another shape": lambda: packed(matrix(name, 2, columns, bytes(large))),
        "a bomb beside": lambda: (
            packed(matrix("other", 1, 1, bytes(large))) + matrix(name, 2, columns, numbers)
        ),
    }


def of_variable(name: str, columns: int) -> dict[str, Made]:
    numbers = bytes(8 * columns * 2)
    cells = np.array([[Trap().__class__.__name__, 1]], dtype=object)
    return {
        **bombs_of(name, columns),
        "a huge shape": MAT_HEAD + matrix(name, 2**31 - 1, columns, numbers),
        "a huge packed shape": packed(matrix(name, 2**31 - 1, columns, numbers)),
        "a huge size": MAT_HEAD + matrix(name, 2, columns, numbers, size=2**32 - 8),
        "a huge packed size": packed(matrix(name, 2, columns, numbers, size=2**32 - 8)),
        "a negative shape": MAT_HEAD + matrix(name, -2, -columns, numbers),
        "version 4, a huge shape": version_4(name, 2**31 - 1, 2**31 - 1),
        "version 4, a negative shape": version_4(name, -2, columns),
        "version 7.3": b"MATLAB 7.3".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n",
        "cells": mat(**{name: cells}),
        "a structure": mat(**{name: {"a": 1}}),
        "text": mat(**{name: "abcd"}),
        "complex numbers": mat(**{name: np.ones((2, columns), complex)}),
        "no numbers": mat(**{name: np.zeros((0, columns))}) if columns != 4 else MAT_HEAD,
        "another variable": mat(other=1.0),
        "a pickle": pickle.dumps(Trap()),
        "a head alone": MAT_HEAD,
        "cut off": mat(**{name: np.ones((2, columns))})[:-9],
        "ones": b"\xff" * 500,
        "nothing": b"",
    }


BBS = of_variable("bbs", 4) | {"NaN": mat(bbs=np.full((2, 4), np.nan))}
FEATS = of_variable("feats", len(USED)) | {"NaN": mat(feats=np.full((3, len(USED)), np.nan))}


@pytest.mark.parametrize("case", BBS)
def test_hostile_boxes_of_matlab(case):
    boxes_of(BBS[case], ".mat")


@pytest.mark.usefixtures("raw_folder")
@pytest.mark.parametrize("case", FEATS)
def test_hostile_features_of_matlab(case):
    (RAW / "feats_ids.txt").write_text("\n".join(USED))
    (RAW / "feats.mat").write_bytes(content(FEATS[case]))
    repelled(lambda: feature_files.load("feats.mat"), "feats.mat")


ROW = tsv_row(USED[0], np.ones((4, 3), np.float32))


def with_field(number: int, text: str) -> str:
    return "\t".join([*ROW[:number], text, *ROW[number + 1 :]])


TSV = {
    "a line without end": lambda: "x" * (100 << 20),
    "boxes without end": with_field(3, "9" * 4000),
    "minus one box": with_field(3, "-1"),
    "no box": with_field(3, "0"),
    "no features": with_field(5, ""),
    "an id without end": with_field(0, "9" * 5000),
    "no base64": with_field(5, "!" * 64),
    "NaN": "\t".join(tsv_row(USED[0], np.full((4, 3), np.nan, np.float32))),
    "zero bytes": "\0" * 1000,
    "UTF-16": "\t".join(ROW).encode("utf-16").decode("latin-1"),
}


@pytest.mark.usefixtures("raw_folder")
@pytest.mark.parametrize("case", TSV)
def test_a_hostile_tsv(case):
    tsv_file()
    write_tsv(RAW / "boxes_36.tsv", [])
    (RAW / "boxes_36.tsv").write_text(content(TSV[case]), encoding="latin-1")
    repelled(lambda: feature_files.load("boxes_36.tsv"), "boxes_36.tsv")


# Word vectors and weights ----------------------------------------------------------------------

VALUES = struct.pack("<2f", 1, 2)
BIN = {
    "a huge count": b"99999999999999 2\nman " + VALUES,
    "a count beyond all": b"9" * 60 + b" 2\nman " + VALUES,
    "a count that is no length": b"%d 2\nman " % 2**63 + VALUES,
    "a negative count": b"-1 2\nman " + VALUES,
    "no count": b"0 2\n",
    "a huge size": b"1 99999999999\nman " + VALUES,
    "a negative size": b"1 -2\nman " + VALUES,
    "a fraction": b"1.5 2\nman " + VALUES,
    "one number": b"1\nman " + VALUES,
    "no line": b"\xff" * 500,
    "cut off": b"2 2\nman " + VALUES + b"dog " + VALUES[:-1],
    "more than announced": b"1 2\nman " + VALUES + b"dog " + VALUES,
    "NaN": b"1 2\nman " + struct.pack("<2f", 1, np.nan),
    "infinity": b"1 2\nman " + struct.pack("<2f", 1, np.inf),
    "a word without end": lambda: b"1 2\n" + b"x" * (20 << 20),
    "a pickle": pickle.dumps(Trap()),
    "nothing": b"",
}
TEXT = {
    "NaN": b"man 1 nan\n",
    "infinity": b"man inf 1\n",
    "a number beyond all": b"man 1e999 1\n",
    "no number": b"man 1 x\n",
    "fewer numbers": b"dog 1 2\nman 1\n",
    "a line without end": lambda: b"man 1 2\n" + b"x" * (100 << 20),
    "a first line without end": lambda: b"1 " * (50 << 20),
    "a size of its own": b"9999999 300\nman 1 2\n",
    "zero bytes": b"\0" * 5000,
    "UTF-16": "man 1 2\n".encode("utf-16"),
    "a pickle": pickle.dumps(Trap()),
    "nothing": b"",
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


def repacked(change: Callable[[bytes], bytes], pack: int = zipfile.ZIP_STORED) -> bytes:
    """Weights whose pickle is changed."""
    archive = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(torch_saved({"weight": torch.ones(2, 2)}))) as old:
        with zipfile.ZipFile(archive, "w", pack) as new:
            for name in old.namelist():
                data = old.read(name)
                new.writestr(name, change(data) if name.endswith("data.pkl") else data)
    return archive.getvalue()


WEIGHTS = {
    "a trap": torch_saved(Trap()),
    "a trap beside tensors": torch_saved({"weight": torch.ones(2, 2), "trap": Trap()}),
    "a trap in the old format": torch_saved(Trap(), _use_new_zipfile_serialization=False),
    "a pickle": pickle.dumps(Trap()),
    "a pickle of tensors' names": pickle.dumps({"weight": [1.0] * 4}),
    "a whole network": torch_saved(nn.Linear(2, 2)),
    "numbers for names": torch_saved({1: torch.ones(2, 2)}),
    "another shape": torch_saved({"weight": torch.ones(99, 2)}),
    "another name": torch_saved({"heavy": torch.ones(2, 2)}),
    "a tensor beyond its storage": repacked(
        lambda data: data.replace(b"K\x02K\x02\x86", b"M\xff\xffK\x02\x86")
    ),
    "a bomb": lambda: repacked(lambda data: data + bytes(48 << 20), zipfile.ZIP_DEFLATED),
    "an empty pickle": repacked(lambda data: b""),
    "a list": torch_saved([torch.ones(2, 2)]),
    "cut off": torch_saved({"weight": torch.ones(2, 2)})[:-90],
    "no zip": b"<html>not found</html>",
    "nothing": b"",
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_hostile_weights(case):
    path = Path("network-1.pth")
    path.write_bytes(content(WEIGHTS[case]))
    repelled(lambda: fill(nn.Linear(2, 2, bias=False), path), path.name)


READERS = {
    "network-1.pth": lambda name: read_state(Path(name)),
    "words.bin": lambda name: word2vec.words([["man"]], WordVectors(vectors=name, size=2), {"man"}),
    "words.txt": lambda name: word2vec.words([["man"]], WordVectors(vectors=name, size=2), {"man"}),
    "mine.npy": lambda name: open_source(Path(name), RAW),
    "mine.mat": lambda name: open_source(Path(name), RAW),
    "mine.tsv": lambda name: list(open_source(Path(name), RAW).blocks()),
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
