"""The layouts in which people share images and captions: the same twenty images in each
of them become the same prepared tables, but for their names, which follow the rule that
docs/datasets.md states."""

import csv
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import layouts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.contracts.datasets import folder
from benchmark.data import prepared_tables

ROOT = Path(__file__).parent.parent
NAMES = [f"p{number:02}" for number in range(20)]
SPLIT_OF = {
    name: "test" if n % 5 == 1 else "val" if n % 7 == 2 else "train"
    for n, name in enumerate(NAMES)
}
# Hugging Face's words
OFFICIAL = {"train": "train", "val": "validation", "test": "test"}


def texts(name: str) -> list[str]:
    # the second in other letters, with a comma and quotes
    return [f"Image {name} is drawn.", f'Ein „Bild“, "{name}", größer']


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("drawn")
    for number, name in enumerate(NAMES):
        layouts.draw(place / f"{name}.png", number)
    return place


def of(split: str) -> list[str]:
    return [name for name in NAMES if SPLIT_OF[name] == split]


def beside(raw: Path, drawn: Path, place: Callable[[str], str]) -> None:
    """The images, each in a place of its own."""
    for name in NAMES:
        (raw / place(name)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(drawn / f"{name}.png", raw / place(name))


def in_split(name: str) -> str:
    return f"{OFFICIAL[SPLIT_OF[name]]}/{name}.png"


def flat(name: str) -> str:
    return f"{name}.png"


def write_table(path: Path, rows: list[dict], **options: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], **options)
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# Layouts ------------------------------------------------------------------------------


def annotations(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, flat)
    rows = [
        {"image": flat(n), "captions": texts(n), "split": SPLIT_OF[n]} for n in NAMES
    ]
    write_jsonl(raw / "all.jsonl", rows)


def image_folder_csv(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, in_split)
    for split, word in OFFICIAL.items():
        rows = [
            {"file_name": flat(n)}
            | {f"caption_{k}": text for k, text in enumerate(texts(n))}
            for n in of(split)
        ]
        write_table(raw / word / "metadata.csv", rows)


def image_folder_jsonl(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, in_split)
    for split, word in OFFICIAL.items():
        rows = [
            {"file_name": flat(n), "text": text} for n in of(split) for text in texts(n)
        ]
        write_jsonl(raw / word / "metadata.jsonl", rows)


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def image_of(drawn: Path, name: str, path: str | None = None) -> dict:
    return {"bytes": (drawn / f"{name}.png").read_bytes(), "path": path}


def parquet(raw: Path, drawn: Path) -> None:
    """A file of each split, as `push_to_hub` writes them, in row groups of five."""
    (raw / "data").mkdir()
    (raw / "README.md").write_text("---\nlicence: mine\n---\n")
    for split, word in OFFICIAL.items():
        names = of(split)
        table = {
            "image": pa.array([image_of(drawn, n, flat(n)) for n in names], IMAGE),
            "caption": [texts(n) for n in names],
            "sentids": [[2 * NAMES.index(n), 2 * NAMES.index(n) + 1] for n in names],
        }
        file = raw / f"data/{word}-00000-of-00001.parquet"
        pq.write_table(pa.table(table), file, row_group_size=5)


def parquet_of_rows(raw: Path, drawn: Path) -> None:
    """A row for each caption; the splits in a column, which outweighs the name of the
    file."""
    rows = [(name, text) for name in NAMES for text in texts(name)]
    table = {
        "jpg": [image_of(drawn, name)["bytes"] for name, _ in rows],
        "text": [text for _, text in rows],
        "split": [SPLIT_OF[name] for name, _ in rows],
        "filename": [flat(name) for name, _ in rows],
        "img_id": [str(NAMES.index(name)) for name, _ in rows],
    }
    pq.write_table(
        pa.table(table), raw / "test-00000-of-00001.parquet", row_group_size=7
    )


def tar(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def tars_of_texts(raw: Path, drawn: Path) -> None:
    for split in OFFICIAL:
        members = {}
        for name in of(split):
            members[f"./{name}.png"] = image_of(drawn, name)["bytes"]
            members[f"./{name}.txt"] = "\n".join(texts(name)).encode()
        tar(raw / f"mine-{split}-000000.tar", members)


def tars_of_facts(raw: Path, drawn: Path) -> None:
    """Shards in folders, with facts and a class; the text of the first is in both."""
    for split, word in OFFICIAL.items():
        for part in (0, 1):
            members = {}
            for name in of(split)[part::2]:
                members[f"{name}.json"] = json.dumps(
                    {"caption": texts(name), "width": 48}
                ).encode()
                members[f"{name}.cls"] = b"3"
                members[f"{name}.png"] = image_of(drawn, name)["bytes"]
                if name == "p00":
                    members[f"{name}.txt"] = "\n".join(texts(name)).encode()
            tar(raw / word / f"0000{part}.tar", members)


def texts_beside(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, in_split)
    for name in NAMES:
        path = (raw / in_split(name)).with_suffix(".txt")
        path.write_text(
            "\ufeff" + "\r\n".join(texts(name)) + "\r\n\r\n", encoding="utf-8"
        )


def judged(raw: Path, is_asked_by_text: bool) -> None:
    (raw / "qrels").mkdir()
    for split, word in {"train": "train", "val": "dev", "test": "test"}.items():
        pairs = [(f"{n}-{k}", n) for n in of(split) for k in range(2)]
        pairs = [
            (text, image) if is_asked_by_text else (image, text)
            for text, image in pairs
        ]
        lines = [f"{query}\t{answer}\t1" for query, answer in pairs]
        lines.append(f"{pairs[0][0]}\t{pairs[-1][1]}\t0")  # judged, and not right
        (raw / f"qrels/{word}.tsv").write_text(
            "\n".join(["query-id\tcorpus-id\tscore", *lines])
        )


def judgements(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, lambda name: f"images/{name}.png")
    # captions ask for images, in JSON
    write_jsonl(
        raw / "corpus.jsonl", [{"_id": n, "title": "", "text": ""} for n in NAMES]
    )
    rows = [
        {"_id": f"{n}-{k}", "text": t} for n in NAMES for k, t in enumerate(texts(n))
    ]
    write_jsonl(raw / "queries.jsonl", rows)
    judged(raw, True)


def judgements_of_captions(raw: Path, drawn: Path) -> None:
    beside(raw, drawn, lambda name: f"images/{name}.png")
    # images ask for captions, in tables: two captions answer each
    rows = [f"{n}\timages/{n}.png" for n in NAMES]
    (raw / "queries.tsv").write_text("\n".join(["_id\timage", *rows]))
    rows = [f"{n}-{k}\t{t}" for n in NAMES for k, t in enumerate(texts(n))]
    (raw / "corpus.tsv").write_text("\n".join(["_id\ttext", *rows]), encoding="utf-8")
    judged(raw, False)


def shard_of(name: str) -> str:
    part = of(SPLIT_OF[name]).index(name) % 2
    return f"{OFFICIAL[SPLIT_OF[name]]}/0000{part}.tar/{name}.png"


# Layout -> what an image is called, given its name.
RULE = {
    annotations: flat,
    image_folder_csv: in_split,
    image_folder_jsonl: in_split,
    parquet: flat,
    parquet_of_rows: flat,
    tars_of_texts: lambda name: f"mine-{SPLIT_OF[name]}-000000.tar/{name}.png",
    tars_of_facts: shard_of,
    texts_beside: in_split,
    judgements: str,
    judgements_of_captions: str,
}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Path("seasons").mkdir()
    Path("mine").mkdir()
    return Path("mine")


@pytest.mark.parametrize("layout", RULE)
def test_the_same_images_in_each_layout_are_the_same_tables(
    project, drawn, layout, capsys
):
    layout(project, drawn)
    assert main(["init", "mine"]) == 0, capsys.readouterr().err
    assert "mine: 20 images, 40 captions" in capsys.readouterr().out
    data = prepared_tables.read("mine")
    name_of = {RULE[layout](name): name for name in NAMES}
    images = data.images.assign(name=data.images["image_id"].map(name_of)).set_index(
        "name"
    )
    # Prepared tables have train before val before test; within a split, the order of
    # the files.
    assert sorted(images.index) == NAMES
    assert images["split"].to_dict() == SPLIT_OF
    assert (images["group"] == images["image_id"]).all()
    assert set(zip(images["width"], images["height"], strict=True)) == {(48, 36)}
    names = data.captions["image_id"].map(name_of)
    found = {name: part["text"].tolist() for name, part in data.captions.groupby(names)}
    assert found == {name: texts(name) for name in NAMES}
    numbers = data.captions["caption_id"].str.rpartition("#")
    assert (numbers[0] == data.captions["image_id"]).all()
    assert set(numbers[2]) == {"0", "1"}
    open_picture, direct = folder.pictures(project), folder.pictures(drawn)
    for name, file in images["file"].items():
        assert np.array_equal(
            np.asarray(open_picture(file)), np.asarray(direct(flat(name)))
        )


def test_without_splits_the_hash_of_the_name_decides(tmp_path, drawn):
    """A table with names of images is divided as the same names are in a .csv."""
    rows = [{"image": flat(name), "caption": texts(name)[0]} for name in NAMES]
    write_table(tmp_path / "all.csv", rows)
    expected = folder.read(tmp_path).images.set_index("image_id")["split"]
    (tmp_path / "all.csv").unlink()
    table = {"image": pa.array([image_of(drawn, n, flat(n)) for n in NAMES], IMAGE)}
    table["text"] = [texts(name)[0] for name in NAMES]
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    found = folder.read(tmp_path).images.set_index("image_id")["split"]
    assert found.to_dict() == expected.to_dict() and set(found) == {
        "train",
        "val",
        "test",
    }
    (tmp_path / "mine.parquet").unlink()
    members = {f"{n}.{kind}": b"A." for n in NAMES for kind in ("txt", "png")}
    tar(tmp_path / "a.tar", members)
    tables = folder.read(tmp_path)
    assert set(tables.images["split"]) == {"train", "val", "test"}
    assert "sha256 of the path" in " ".join(tables.notes)


# What is told, and what is refused ----------------------------------------------------


def test_keys_of_tables_and_samples_are_told_at_every_depth(tmp_path, drawn):
    names = NAMES[:4]
    table = {
        "image": pa.array([image_of(drawn, n, flat(n)) for n in names], IMAGE),
        "sentences": [
            [{"raw": f"It is {n}.", "rejected": True, "sentid": 1}] for n in names
        ],
        "meta": [{"split": "test", "by": {"site": "x"}} for _ in names],
        "boxes": [[{"x": 1}] for _ in names],
        "img_id": names,
    }
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    unused = ["sentences.rejected", "meta.by.site", "meta.split", "boxes.x"]
    name, _, keys = folder.read(tmp_path).notes[-1].partition(": not used: ")
    assert name == "mine.parquet"
    assert sorted(keys.removesuffix(".").split(", ")) == sorted(unused)
    used, _, _ = folder.told(tmp_path).partition("; not used: the key ")
    assert used == "read mine.parquet: image, sentences.raw"
    (tmp_path / "mine.parquet").unlink()
    members = {}
    for name in names:
        facts = {"caption": "A.", "width": 9, "key": "0", "meta": {"split": "test"}}
        members[f"{name}.json"] = json.dumps(facts).encode()
        members[f"{name}.png"] = image_of(drawn, name)["bytes"]
        members[f"{name}.cls"] = b"1"
    tar(tmp_path / "a.tar", members)
    assert layouts.in_one_note(folder.read(tmp_path), "a.tar: ", ": .cls, meta.split.")


def test_the_json_of_a_sample_may_be_its_captions(tmp_path):
    members = {"a.png": b"", "a.json": b'["One.", "Two."]'}
    members |= {"b.png": b"", "b.json": b'"B."', "c.png": b"", "c.txt": b"C."}
    tar(tmp_path / "all.tar", members)
    captions = folder.read(tmp_path).captions["text"].tolist()
    assert captions == ["One.", "Two.", "B.", "C."]


def test_metadata_in_folders_of_one_split_is_no_layout(tmp_path):
    for place in ("train/a", "train/b"):
        (tmp_path / place).mkdir(parents=True)
        rows = [{"file_name": "a.png", "text": "A."}]
        write_table(tmp_path / place / "metadata.csv", rows)
    with refused(found="none here, but train/a/metadata.csv"):
        folder.read(tmp_path)


def test_folders_of_metadata_without_a_split_are_told(project, drawn):
    image_folder_csv(project, drawn)
    (project / "more").mkdir()
    write_table(project / "more/metadata.csv", [{"file_name": "a.png", "text": "A."}])
    assert layouts.in_one_note(folder.read(project), "1 files", ": more/metadata.csv.")


def test_images_and_texts_without_each_other_are_told(tmp_path):
    for name in (
        "a.png",
        "b.png",
        "c.png",
        "d.png",
        "a.txt",
        "b.txt",
        "c.txt",
        "lost.txt",
    ):
        (tmp_path / name).write_text("It is." if name.endswith(".txt") else "")
    assert layouts.in_one_note(folder.read(tmp_path), "1 images", ".txt", ": d.png.")
    used, _, unused = folder.told(tmp_path).partition("; not used: ")
    assert used == "read a.txt and 2 more files: caption"
    assert unused.endswith(" d.png, lost.txt")
    (tmp_path / "a.jpg").write_bytes(b"")
    with refused("a.txt", "one image", "a.jpg and a.png"):
        folder.read(tmp_path)


def test_two_layouts_in_one_folder_are_refused(tmp_path, drawn):
    parquet(tmp_path, drawn)
    tars_of_texts(tmp_path, drawn)
    with refused("", "one kind", "data/test-00000-of-00001.parquet"):
        folder.read(tmp_path)
    name = "mine-test-000000.tar"
    tables = folder.read(tmp_path, folder.Options(captions=name))
    assert set(tables.images["split"]) == {"test"}
    # An annotation file outweighs them: it may describe what one has unpacked.
    (tmp_path / "all.csv").write_text("image,caption\na.png,A.\nb.png,B.\nc.png,C.\n")
    assert folder.told(tmp_path).startswith("read all.csv: image, caption; not used: ")


def test_tables_that_say_nothing_of_images_are_none(tmp_path, drawn):
    """What img2dataset leaves beside its tars, and what Hugging Face leaves beside its
    tables."""
    tars_of_texts(tmp_path, drawn)
    facts = pa.table({"url": ["x"], "caption": ["A."], "key": ["000"]})
    pq.write_table(facts, tmp_path / "mine-test-000000.parquet")
    for name in ("mine-test-000000_stats.json", "dataset_infos.json"):
        (tmp_path / name).write_text("{}")
    assert len(folder.read(tmp_path).images) == len(NAMES)


def test_two_files_of_metadata_in_a_folder_are_refused(tmp_path):
    for place in ("train", "test"):
        rows = [{"file_name": "a.png", "text": "A."}]
        (tmp_path / place).mkdir()
        write_table(tmp_path / place / "metadata.csv", rows)
        write_jsonl(tmp_path / place / "metadata.jsonl", rows)
    with refused(tmp_path / "test", "one file", "test/metadata.jsonl"):
        folder.read(tmp_path)


def test_a_caption_that_is_null_contradicts_no_text(tmp_path):
    members = {}
    for name, text in (("a", b"A."), ("b", b""), ("c", b"C.")):
        facts = {f"{name}.png": b"", f"{name}.txt": text}
        members |= facts | {f"{name}.json": b'{"caption": null}'}
    tar(tmp_path / "all.tar", members)
    assert folder.read(tmp_path).captions["text"].tolist() == ["A.", "C."]


def test_texts_and_facts_of_a_sample_may_not_contradict(tmp_path):
    members = {"a.png": b"", "a.txt": b"One.", "a.json": b'{"caption": "Two."}'}
    tar(tmp_path / "all.tar", members)
    with refused("all.tar: a: caption", found="'Two.'"):
        folder.read(tmp_path)
