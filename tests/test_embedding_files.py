"""Rows that were made elsewhere: whatever order and names they have, each is that of
its item, or the file is refused in one line that names what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import torch
from refusals import refused

from benchmark.core import files
from benchmark.features.embedding_files import (
    forms_of,
    places,
    read_embeddings,
    read_rows,
    read_scores,
)

pytestmark = pytest.mark.usefixtures("empty_folder")

# of images, and names that pandas takes for nothing
IDS = ["NA", "null", "a1", "a2", "nan"]
FILES = [f"pics/COCO_{number:06}.jpg" for number in (7, 12, 3, 140, 9)]
NUMBERS = [7, 12, 3, 140, 9]
CAPTIONS = [f"{image}#{n}" for image in IDS for n in range(2)]
OWNER = np.arange(10) // 2
TRUE = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
OF_CAPTIONS = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
MIX, MIX_C = np.array([3, 0, 4, 2, 1]), np.random.default_rng(2).permutation(10)


def mixed(names: list) -> list:
    return [names[place] for place in MIX]


FRAME = pd.DataFrame(TRUE[MIX])
LISTS = {"embedding": [*map(list, TRUE[MIX])]}


def saved(frame: pd.DataFrame | dict, name: str, **options: object) -> str:
    frame = pd.DataFrame(frame).rename(columns=str)
    getattr(frame, {"csv": "to_csv", "parquet": "to_parquet"}[name.split(".")[1]])(
        name, **options
    )
    return name


def npy(values: np.ndarray, ids: str | None = None) -> str:
    np.save("x.npy", values)
    if ids is not None:
        Path("x_ids.txt").write_bytes(ids.encode())
    return "x.npy"


def npy_beside_bytes(content: bytes) -> str:
    Path("x_ids.txt").write_bytes(content)
    return npy(TRUE)


def npy_notes() -> int:
    return Path("x_log.json").write_text('{"epoch": 7, "image": "a1"}')


def npz(**arrays: np.ndarray | list) -> str:
    np.savez("x.npz", **arrays)
    return "x.npz"


def safetensors(header: object, content: bytes = b"") -> str:
    text = json.dumps(header).encode()
    Path("x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)
    return "x.safetensors"


def tensors(**arrays: tuple[str, np.ndarray]) -> str:
    header, content = {}, b""
    for name, (kind, array) in arrays.items():
        offsets = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": offsets}
        content += array.tobytes()
    return safetensors(header, content)


def mat(ids: str) -> str:
    scipy.io.savemat("x.mat", {"feats": TRUE[MIX].T})
    Path("x_ids.txt").write_text(ids)
    return "x.mat"


def listed(kind: pa.DataType) -> str:
    table = pa.table(
        {"embedding": pa.array(LISTS["embedding"], kind), "id": mixed(IDS)}
    )
    pq.write_table(table, "x.parquet")
    return "x.parquet"


def torch_saved(value: object) -> str:
    torch.save(value, "x.pt")
    return "x.pt"


def lines(*rows: str) -> str:
    Path("x.csv").write_text("\n".join(rows) + "\n")
    return "x.csv"


LINES = [",".join(map(str, row)) for row in FRAME.to_numpy().tolist()]
READ: dict[str, Callable[[], str]] = {
    "pandas index": lambda: saved(FRAME.set_axis(mixed(IDS)), "x.parquet"),
    "named index": lambda: saved(
        FRAME.set_axis(pd.Index(mixed(FILES), name="filename")), "x.parquet"
    ),
    "as categories": lambda: saved(
        {**LISTS, "image_id": pd.Categorical(mixed(IDS))}, "x.parquet", index=False
    ),
    "last CSV column": lambda: saved(FRAME.assign(image_id=mixed(IDS)), "x.csv"),
    "headless CSV": lambda: lines(
        *(f"{name},{row}" for name, row in zip(mixed(IDS), LINES, strict=True))
    ),
    "CSV index": lambda: saved(FRAME.set_axis(mixed(IDS)), "x.csv"),
    "with semicolons": lambda: saved(FRAME.set_axis(mixed(IDS)), "x.csv", sep=";"),
    "with tabs": lambda: (
        Path(saved(FRAME.set_axis(mixed(IDS)), "x.csv", sep="\t")).rename("x.tsv").name
    ),
    "unpadded numbers": lambda: saved({**LISTS, "cocoid": mixed(NUMBERS)}, "x.parquet"),
    "whole floats": lambda: saved(
        {**LISTS, "image_id": np.array(mixed(NUMBERS), float)}, "x.parquet"
    ),
    "padded text": lambda: saved(
        {f"dim_{n}": FRAME[n] for n in FRAME}
        | {"Image": [f"{n:06}" for n in mixed(NUMBERS)]},
        "x.csv",
        index=False,
    ),
    "foreign paths": lambda: saved(
        {**LISTS, "path": [f"C:\\{file}".replace("/", "\\") for file in mixed(FILES)]},
        "x.parquet",
    ),
    "as file names": lambda: npy(
        TRUE[MIX], "\n".join(Path(x).name for x in mixed(FILES))
    ),
    "stems": lambda: npy(TRUE[MIX], "\n".join(Path(x).stem for x in mixed(FILES))),
    "sidecar of Windows": lambda: npy(
        TRUE[MIX], "\ufeff" + " \r\n".join(mixed(IDS)) + "\r\n\r\n"
    ),
    "npz, any name": lambda: npz(x=TRUE[MIX], whatever=np.array(mixed(IDS))),
    "as bytes": lambda: npz(x=TRUE[MIX], names=np.array(mixed(IDS), "S")),
    "npz, both sides": lambda: npz(
        img_embs=TRUE[MIX], img_ids=mixed(IDS), txt_embs=OF_CAPTIONS, txt_ids=CAPTIONS
    ),
    "among others": lambda: npz(
        x=np.vstack([TRUE[:1], TRUE[MIX]]), ids=["z", *mixed(IDS)]
    ),
    "equal rows twice": lambda: npz(
        x=np.vstack([TRUE[MIX], TRUE[1:2]]), ids=[*mixed(IDS), IDS[1]]
    ),
    "large lists": lambda: listed(pa.large_list(pa.float64())),
    "fixed-size lists": lambda: listed(pa.list_(pa.float32(), 3)),
    "MATLAB and sidecar": lambda: mat("\n".join(mixed(IDS))),
    "tensors, numeric ids": lambda: tensors(
        x=("F32", TRUE[MIX]), image_ids=("I64", np.array(mixed(NUMBERS)))
    ),
    "no ids": lambda: npy(TRUE),
    "no ids, other texts": lambda: (
        npy(TRUE)
        * bool(Path("x.txt").write_text("a1 is an id.\n7\n"))
        * bool(npy_notes())
    ),
    "ending in capitals": lambda: Path(npy(TRUE)).rename("x.NPY").name,
    "row per caption": lambda: npy(TRUE[OWNER]),
    "CSV of numbers": lambda: lines(*(",".join(map(str, x)) for x in TRUE.tolist())),
    "lists as text": lambda: saved(LISTS | {"id": mixed(IDS)}, "x.csv", index=False),
    "arrays as text": lambda: saved(
        {"embedding": list(TRUE[MIX]), "id": mixed(IDS)}, "x.csv", index=False
    ),
    "headless tuples": lambda: saved(
        {"id": mixed(IDS), "x": [*map(tuple, TRUE[MIX].tolist())]},
        "x.csv",
        index=False,
        header=False,
    ),
}


def images_of(file: str) -> np.ndarray:
    rows = read_rows(Path(file), "images")
    forms = forms_of(pd.DataFrame({"image_id": IDS, "file": FILES}))
    return rows.values[places(rows, forms, "images", repeats=OWNER)]


def captions_of(file: str) -> np.ndarray:
    rows = read_rows(Path(file), "captions")
    return rows.values[places(rows, [CAPTIONS], "captions")]


@pytest.mark.parametrize("case", READ)
def test_each_row_is_that_of_its_image(case):
    assert images_of(READ[case]()) == pytest.approx(TRUE)


def test_tabs_separate_lists_without_names():
    names = [f"{name}\t{row.tolist()}" for name, row in zip(IDS, TRUE, strict=True)]
    Path("x.tsv").write_text("\n".join(names))
    rows = read_rows(Path("x.tsv"), "images")
    assert rows.ids == {"id": IDS} and rows.values == pytest.approx(TRUE)


def test_a_counter_of_rows_is_no_name_of_a_file():
    forms = forms_of(
        pd.DataFrame({"image_id": ["0.jpg", "1.jpg"], "file": ["0.jpg", "1.jpg"]})
    )
    for name in ("index", "id"):
        file = saved({"embedding": LISTS["embedding"][:2], name: [1, 0]}, "x.parquet")
        with refused(found=f"'0.jpg' (2 such in all): {name} has '1'"):
            places(read_rows(Path(file), "images"), forms, "images")
    file = saved({"embedding": LISTS["embedding"][:2], "image_id": [1, 0]}, "x.parquet")
    assert places(read_rows(Path(file), "images"), forms, "images").tolist() == [1, 0]


def bfloat16(values: np.ndarray) -> np.ndarray:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def test_half_precision_is_read():
    assert images_of(npy(TRUE.astype(np.float16))) == pytest.approx(TRUE, rel=1e-3)
    assert images_of(tensors(x=("BF16", bfloat16(TRUE)))) == pytest.approx(
        TRUE, rel=1e-2
    )


def test_an_id_of_too_many_digits_is_that_of_no_image():
    with refused("x.npy", found="none for"):
        images_of(npy(TRUE, "\n".join([*IDS[1:], "7" * 5000])))


def test_captions_go_by_their_own_ids():
    owners = [IDS[owner] for owner in OWNER]
    names = {"image_id": owners, "caption_id": CAPTIONS}
    frame = pd.DataFrame({**names, "embedding": [*map(list, OF_CAPTIONS)]}).iloc[MIX_C]
    assert np.array_equal(
        captions_of(saved(frame, "x.parquet", index=False)), OF_CAPTIONS
    )
    with refused(expected="ids of captions", found="image_id"):
        captions_of(saved(frame.drop(columns="caption_id"), "x.parquet", index=False))


REFUSED: dict[str, tuple[Callable[[], str], dict[str, str]]] = {
    "row counter": (
        lambda: saved(FRAME.add_prefix("d").reset_index(), "x.parquet"),
        {"found": "index has '0', '1', '2'"},
    ),
    "row counter, CSV": (lambda: saved(FRAME, "x.csv"), {"found": "'0', '1', '2'"}),
    "whole numbers": (
        lambda: saved(FRAME.assign(label=range(5)), "x.parquet"),
        {"where": "'label'", "found": "0"},
    ),
    "another type": (
        lambda: saved(FRAME.assign(**{"3": np.ones(5)}), "x.parquet"),
        {"where": "'3'", "found": "float64"},
    ),
    "name outside series": (
        lambda: saved(FRAME.assign(score=np.float32(1)), "x.parquet"),
        {"where": "'score'", "found": "series"},
    ),
    "columns unordered": (
        lambda: saved(FRAME[[0, 2, 1]], "x.csv", index=False),
        {"where": "'2'"},
    ),
    "column of text": (
        lambda: saved({**LISTS, "text": IDS, "id": IDS}, "x.parquet"),
        {"where": "'text'", "found": "'NA'"},
    ),
    "abbreviated lists": (
        lambda: saved(
            {"embedding": [*np.tile(TRUE, 500)], "id": IDS}, "x.csv", index=False
        ),
        {"where": "'embedding'", "found": "..."},
    ),
    "ragged text lists": (
        lambda: saved(
            {"embedding": ["[1.0]"] * 4 + ["[1.0, 2.0]"]}, "x.csv", index=False
        ),
        {"where": "'embedding'", "found": "1 to 2"},
    ),
    "nameless counter": (
        lambda: saved(FRAME, "x.csv", header=False),
        {"where": "column 0", "found": "0, 1, 2, ..."},
    ),
    "nameless numeric ids": (
        lambda: saved(FRAME.set_axis(mixed(NUMBERS)), "x.csv", header=False),
        {"where": "column 0", "found": "140, 7, 9, ..."},
    ),
    "unknown byte type": (
        lambda: npy(TRUE.astype(np.float16).view("V2")[:, :1].view("V1")),
        {"found": "|V1", "do": "x.astype(numpy.float32)"},
    ),
    "structure": (
        lambda: npy(np.zeros((5, 3), [("a", "u1"), ("b", "u1")])),
        {"expected": "(N, F)", "found": "[('a', 'u1'), ('b', 'u1')]"},
    ),
    "torch dict": (
        lambda: torch_saved({"image": torch.zeros(5, 3), "names": IDS}),
        {"found": "image: Tensor (5, 3), names: list", "do": "torch.save"},
    ),
    "torch list": (
        lambda: torch_saved([torch.zeros(3)] * 5),
        {"found": "Tensor (3,), Tensor (3,), Tensor (3,) and 2 more"},
    ),
    "torch array": (
        lambda: torch_saved(TRUE),
        {"found": "objects of numpy."},
    ),
    "a sparse tensor": (
        lambda: torch_saved(torch.eye(5).to_sparse()),
        {"expected": "dense", "found": "'rows', torch.sparse_coo"},
    ),
    "near rows, one id": (
        lambda: npz(x=np.vstack([TRUE, TRUE[:1] + 1e-6]), ids=[*IDS, IDS[0]]),
        {"found": "'NA' twice"},
    ),
    "ragged lists": (
        lambda: saved(
            {"embedding": [[1.0]] * 4 + [[1.0, 2.0]], "id": IDS}, "x.parquet"
        ),
        {"found": "lists of 2 lengths"},
    ),
    "missing list": (
        lambda: saved(
            {"embedding": [*LISTS["embedding"][:4], None], "id": IDS}, "x.parquet"
        ),
        {"found": "lists of 2 lengths"},
    ),
    "missing id": (
        lambda: saved({**LISTS, "id": [*IDS[:4], None]}, "x.parquet"),
        {"where": "'id'", "found": "nothing"},
    ),
    "two orders": (
        lambda: saved({**LISTS, "image_id": mixed(IDS), "file": FILES}, "x.parquet"),
        {"expected": "image_id and file", "found": "two"},
    ),
    "two-dimensional ids": (
        lambda: npz(x=TRUE, ids=np.array(IDS)[:, None]),
        {"found": "'ids', <U4 (5, 1)"},
    ),
    "scale beside rows": (
        lambda: npz(x=TRUE, logit_scale=100.0),
        {"found": "'logit_scale'"},
    ),
    "too few ids": (
        lambda: npy(TRUE, "a1\na2"),
        {"where": "x_ids.txt", "expected": "5 rows", "found": "2"},
    ),
    "ids in UTF-16": (
        lambda: npy_beside_bytes("\n".join(IDS).encode("utf-16")),
        {"where": "x_ids.txt", "expected": "UTF-8"},
    ),
    "ids elsewhere": (
        lambda: (
            npy(TRUE[MIX]) * bool(Path("x.json").write_text(json.dumps(mixed(IDS))))
        ),
        {"where": "x.json", "do": "x_ids.txt"},
    ),
    "names elsewhere": (
        lambda: (
            npy(TRUE[MIX])
            * bool(Path("x_names.txt").write_text("\r\n".join(mixed(FILES))))
        ),
        {"where": "x_names.txt", "do": "x_ids.txt"},
    ),
    "two list columns": (
        lambda: saved(
            {"image_emb": LISTS["embedding"], "text_emb": LISTS["embedding"]},
            "x.parquet",
        ),
        {"where": "'image_emb'", "found": "lists beside"},
    ),
    "no torch file": (
        lambda: Path(npy(TRUE)).rename("x.pt").name,
        {"where": "x.pt", "expected": "tensors"},
    ),
    "an unknown ending": (
        lambda: Path(npy(TRUE)).rename("x.h5").name,
        {"found": ".h5", "do": "numpy.save"},
    ),
    "one row more": (
        lambda: npy(OF_CAPTIONS[:6]),
        {"expected": "5 images of test", "found": "6"},
    ),
    "unequal caption rows": (
        lambda: npy(OF_CAPTIONS),
        {"found": "10, ", "do": "the images"},
    ),
    "near caption rows": (
        lambda: npy(TRUE[OWNER] + np.float32(1e-6) * OF_CAPTIONS),
        {"found": "10, ", "do": "x[::2]"},
    ),
    "another image": (
        lambda: npz(x=TRUE, ids=[*IDS[:4], "z"]),
        {"found": "'nan' (1 such in all): ids has 'NA', 'null', 'a1'"},
    ),
    "an id twice": (
        lambda: npz(x=TRUE, ids=["NA", *IDS[:4]]),
        {"expected": "once", "found": "'NA' twice"},
    ),
    "no numbers": (
        lambda: npz(x=np.where(TRUE == TRUE[2, 1], np.nan, TRUE), ids=IDS),
        {"found": "row 2, 'a1' (1 such rows)"},
    ),
    "objects": (
        lambda: npz(x=TRUE, ids=np.array(IDS, object)),
        {"found": "pickled objects"},
    ),
    "two arrays": (lambda: npz(x=TRUE, y=TRUE), {"expected": "one", "found": "x, y"}),
    "text": (
        lambda: npy(np.array([["a"]])),
        {"expected": "(N, F)", "found": "<U1 (1, 1)"},
    ),
    "header is list": (
        lambda: safetensors([1]),
        {"expected": ".safetensors"},
    ),
    "a deep header": (
        lambda: (
            Path("x.safetensors").write_bytes(
                (9006).to_bytes(8, "little") + b'{"x": ' + b"[" * 9000
            )
            and "x.safetensors"
        ),
        {"expected": ".safetensors"},
    ),
    "nothing in it": (lambda: lines(""), {"expected": ".csv"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_neither_is_refused_by_its_name(case):
    make, fields = REFUSED[case]
    with refused(**fields) as caught:
        images_of(make())
    assert caught.value.where.startswith("x")


@pytest.mark.parametrize("name", ["x0", "image_id"])
def test_two_columns_of_one_name_are_refused(name):
    columns = [IDS, TRUE[:, 0], IDS if name == "image_id" else TRUE[:, 1]]
    names = ["image_id", "x0", name]
    table = pa.Table.from_arrays(list(map(pa.array, columns)), names)
    pq.write_table(table, "x.parquet")
    with refused("x.parquet", "every column once", f"{name!r} twice"):
        read_rows(Path("x.parquet"), "images")


def test_a_small_file_that_unpacks_to_much_is_refused(monkeypatch):
    monkeypatch.setattr(files, "MOST", 1 << 20)
    values = (
        pa.array([0.0], pa.float32())
        .dictionary_encode()
        .take(pa.array([0] * (1 << 18)))
    )
    table = pa.table(
        {"x": pa.ListArray.from_arrays([0, 1 << 18], values.cast(pa.float32()))}
    )
    pq.write_table(table, "x.parquet", compression="zstd")
    assert Path("x.parquet").stat().st_size < 1000
    with refused(expected="at most 1048576 bytes", found="more"):
        read_rows(Path("x.parquet"), "images")
    pq.write_table(
        pa.table({"id": ["i" * 4096] * 4096, "x0": np.ones(4096)}), "x.parquet"
    )
    # one text, shared
    assert read_rows(Path("x.parquet"), "images").ids["id"][7] == "i" * 4096


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_scores_have_ids_on_both_axes(kind):
    scores = TRUE @ OF_CAPTIONS.T
    if kind == "npz":
        npz(s=scores[MIX][:, MIX_C], a=mixed(IDS), b=[CAPTIONS[c] for c in MIX_C])
    else:
        columns = [CAPTIONS[c] for c in MIX_C]
        saved(pd.DataFrame(scores[MIX][:, MIX_C], mixed(IDS), columns), f"x.{kind}")
    rows = read_rows(Path(f"x.{kind}"), "i2t")
    at = places(rows, [IDS], "images"), places(rows, [CAPTIONS], "captions", axis=1)
    assert rows.values[np.ix_(*at)] == pytest.approx(scores)


def test_columns_in_a_series_are_ids_where_they_are_the_very_ids():
    wanted = ["c2", "c0", "c1"]
    saved(pd.DataFrame(TRUE, IDS, sorted(wanted)), "x.csv")
    rows = read_rows(Path("x.csv"), "i2t")
    assert places(rows, [wanted], "captions", axis=1).tolist() == [2, 0, 1]
    assert places(rows, [["a", "b", "c"]], "captions", axis=1).tolist() == [0, 1, 2]


WHOLE = np.array([[3, -7], [-1, 4], [9, 0], [-5, 2], [6, -8]], np.int8)
FORMATS: dict[str, Callable[[np.ndarray], str]] = {
    "npy": npy,
    "npz": lambda values: npz(x=values),
    "safetensors": lambda values: tensors(
        x=({"|i1": "I8", "|u1": "U8"}[values.dtype.str], values)
    ),
    "pt": lambda values: torch_saved(torch.from_numpy(values)),
    "mat": lambda values: scipy.io.savemat("x.mat", {"feats": values.T}) or "x.mat",
    "mat of doubles": lambda values: (
        scipy.io.savemat("x.mat", {"feats": values.T.astype(float)}) or "x.mat"
    ),
    "columns of parquet": lambda values: saved(values, "x.parquet"),
    "lists of parquet": lambda values: saved({"x": [*values]}, "x.parquet"),
    "columns of CSV": lambda values: saved(values, "x.csv", index=False),
    "CSV without names": lambda values: saved(
        values, "x.csv", index=False, header=False
    ),
    "lists of CSV": lambda values: saved(
        {"x": [*map(list, values.tolist())]}, "x.csv", index=False
    ),
}


@pytest.mark.parametrize("format", FORMATS)
def test_whole_numbers_are_the_same_in_every_format(format):
    rows = read_embeddings(Path(FORMATS[format](WHOLE)), "images")
    assert np.array_equal(rows.values, WHOLE) and rows.whole.low == -8
    file = Path(FORMATS[format](WHOLE.view(np.uint8)))
    with refused(found="from 0 to 255"):
        read_embeddings(file, "captions")
    bits = 2.0 * np.unpackbits(WHOLE.view(np.uint8), axis=1) - 1
    assert np.array_equal(read_embeddings(file, "captions", "bits").values, bits)


def test_words_of_text_keep_their_last_bits():
    words = np.array([[2**64 - 1], [2**63 + 1], [3]], np.uint64)
    for values in (words, words.view(np.int64)):
        file = saved(pd.DataFrame(values).add_prefix("x"), "x.csv", index=False)
        bits = read_embeddings(Path(file), "images", "bits").values
        assert (bits > 0).sum(1).tolist() == [64, 2, 2]


def test_whole_numbers_above_fractions_are_names_of_columns_out_of_order():
    lines("0,2,1", *LINES)
    with refused("column '2'"):
        read_embeddings(Path("x.csv"), "images")


def test_scores_may_be_minus_infinity_and_nothing_else_that_is_no_number():
    scores = np.where(TRUE > 0, TRUE.astype(float), -np.inf)
    assert np.array_equal(read_scores(Path(npy(scores)), "i2t").values, scores)
    assert np.array_equal(
        read_scores(Path(saved(scores, "x.csv", index=False)), "i2t").values, scores
    )
    for value in (np.nan, np.inf):
        with refused(expected="finite numbers, or -inf"):
            read_scores(Path(npy(np.where(TRUE > 0, TRUE, value))), "i2t")
    with refused(expected="finite numbers"):
        read_embeddings(Path(npy(scores)), "images")


def test_scores_may_be_whole_numbers_in_columns():
    counts = pd.DataFrame(np.arange(50).reshape(5, 10), IDS, CAPTIONS)
    for name in ("x.csv", "x.parquet"):
        assert np.array_equal(
            read_scores(Path(saved(counts, name)), "i2t").values, counts
        )


@pytest.mark.parametrize(
    ("read", "what", "name"),
    [
        (read_rows, "images", "text_embeds"),
        (read_embeddings, "captions", "image_embeds"),
        (read_scores, "i2t", "sims_t2i"),
    ],
)
def test_the_only_array_of_a_file_is_not_that_of_the_other_side(read, what, name):
    with refused("x.npz", what, f"{name!r} alone"):
        read(Path(npz(**{name: TRUE})), what)


def test_a_matrix_of_one_direction_holds_for_both():
    for way in ("i2t", "t2i"):
        assert read_scores(Path(npz(sims_i2t=TRUE)), way).values == pytest.approx(TRUE)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_ids_beside_in_another_format_are_refused(ending):
    rows = read_rows(Path(npy(TRUE)), "images")
    Path(f"x_ids.{ending}").write_bytes(b"")
    with refused(f"x_ids.{ending}", "x_ids.txt"):
        places(rows, [IDS], "images")
