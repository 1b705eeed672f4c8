"""Annotation files as people have them: read where nothing is ambiguous, else
refused."""

import io
import json
import sys
from pathlib import Path
from types import ModuleType
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from layouts import in_one_note
from PIL import Image
from refusals import check, refusal, refused

from benchmark.__main__ import main
from benchmark.commands import init
from benchmark.contracts.datasets import folder
from benchmark.contracts.datasets.folder import Options
from benchmark.core.files import read_json
from benchmark.data.vocabularies import tokenise
from benchmark.prepare import __main__ as prepare
from benchmark.prepare.leakage import measure, twins
from benchmark.readers.image_files import WHOLE, upright_rgb

FILES = [f"{stem}.jpg" for stem in "abcd"]
SPLITS = ("train", "train", "val", "test")
ONE = {file: [f"It is {file[0]}, here."] for file in FILES}
TWO = {file: [*texts, f"Again {file[0]}."] for file, texts in ONE.items()}


def table(head: str, row: str, separator: str = ",") -> str:
    """A row for each file: {f}, {c} and {d} its captions, {s} its split; @
    separates."""
    rows = [
        row.format(
            f=f,
            c=TWO[f][0].replace(",", "" if separator == "," else ","),
            d=TWO[f][1],
            s=s,
        )
        for f, s in zip(FILES, SPLITS, strict=True)
    ]
    return "\n".join([head, *rows]).replace("@", separator) + "\n"


def items(**keys: object) -> list[dict]:
    """An object per file: functions of file, captions and split."""
    facts = [
        (file, TWO[file], split) for file, split in zip(FILES, SPLITS, strict=True)
    ]
    return [{key: make(*fact) for key, make in keys.items()} for fact in facts]


FILE, TEXTS, SPLIT = (lambda f, t, s: f), (lambda f, t, s: t), (lambda f, t, s: s)
PLAIN = {file: [text.replace(",", "") for text in texts] for file, texts in ONE.items()}
BOTH = {file: [PLAIN[file][0], TWO[file][1]] for file in FILES}
COCO = {
    "images": [
        {"id": n, "file_name": f, "split": s}
        for n, (f, s) in enumerate(zip(FILES, SPLITS, strict=True))
    ],
    "annotations": [
        {"id": 9, "image_id": str(n), "caption": text}
        for n, file in enumerate(FILES)
        for text in TWO[file]
    ],
}
READ = {  # name of the file, content -> captions of each image
    ("semicolons.csv", table("image@caption", "{f}@{c}", ";")): ONE,
    ("bars.csv", table("image_name@ comment_number@ comment", "{f}@ 0@ {c}", "|")): ONE,
    (
        "signs.csv",
        table("image_name@ comment_number@ comment", '{f}@ 0@ " {c} " is said', "|"),
    ): {file: [f'" {texts[0]} " is said'] for file, texts in ONE.items()},
    ("signs.tsv", table("image@caption", '{f}@"{c}" is said', "\t")): {
        file: [f'"{texts[0]}" is said'] for file, texts in ONE.items()
    },
    ("poem.tsv", table("caption@image", '"{c}\n{d}, twice"@{f}', "\t")): {
        file: [f"{texts[0]}\n{texts[1]}, twice"] for file, texts in TWO.items()
    },
    ("numbered_names.csv", table("image,caption", "{f}#0,{c}\n{f}#1,{d}")): BOTH,
    ("backwards.csv", table("caption_10,caption_9,image", "{d},{c},{f}")): BOTH,
    ("tabs.tsv", table("image@caption", "{f}@{c}", "\t")): ONE,
    ("captions.txt", table("image,caption", "{f},{c}")): PLAIN,
    ("UPPER.CSV", table("Image,Caption", "{f},{c}")): PLAIN,
    ("bom.csv", "\ufeff" + table("image,caption", "{f},{c}")): PLAIN,
    ("quoted.csv", table("image,caption", '{f},"It said ""{c}"", twice"')): {
        file: [f'It said "{PLAIN[file][0]}", twice'] for file in FILES
    },
    ("pandas.csv", table("image,caption,caption.1", "{f},{c},{d}")): BOTH,
    (
        "numbered.csv",
        table("filename,caption_0,caption_1,caption_2", "{f},{c},{d},"),
    ): BOTH,
    ("json_cell.csv", table("image,caption", '{f},"[""{c}"", ""{d}""]"')): BOTH,
    ("python_cell.csv", table("image,caption", "{f},\"['{c}', '{d}']\"")): BOTH,
    ("tuple_cell.csv", table("image,caption", "{f},\"('{c}', '{d}')\"")): BOTH,
    (
        "coco_cell.csv",
        table("filename,sentences", "{f},\"{{'sentid': 1, 'raw': '{c}'}}\""),
    ): PLAIN,
    ("dicts_cell.csv", table("image,sentences", '{f},"[{{""raw"": ""{c}""}}]"')): PLAIN,
    ("bracket.csv", table("image,caption", "{f},(It is {{here}}) ['{c}']")): {
        file: [f"(It is {{here}}) ['{PLAIN[file][0]}']"] for file in FILES
    },
    (
        "one_text.jsonl",
        "\n".join(json.dumps({"image": f, "captions": TWO[f][1]}) for f in FILES),
    ): {file: TWO[file][1:] for file in FILES},
    ("file_path.json", json.dumps(items(file_path=FILE, captions=TEXTS))): TWO,
    ("excel.csv", table("image,caption,,", "{f},{c},,")): PLAIN,
    ("backslash.csv", table("image,caption", ".\\{f},{c}")): PLAIN,
    ("same.csv", table("image,file_name,caption", "./{f},{f},{c}")): PLAIN,
    ("results_20130124.token", table("", "{f}#0\t{c}\n{f}#1\t{d}")[1:]): BOTH,
    ("blip.json", json.dumps(items(image=FILE, caption=TEXTS))): TWO,
    ("lines.json", "\n".join(map(json.dumps, items(image=FILE, captions=TEXTS)))): TWO,
    ("mapping.json", json.dumps(TWO)): TWO,
    (
        "textcaps.json",
        json.dumps({"data": items(image_name=FILE, reference_strs=TEXTS)}),
    ): TWO,
    ("coco.json", json.dumps(COCO)): TWO,
    (
        "metadata.jsonl",
        "\n".join(map(json.dumps, items(file_name=FILE, text=TEXTS))),
    ): TWO,
}


def place(raw: Path, name: str, text: str | bytes, files: list[str] = FILES) -> Path:
    """Pictures of noise, and an annotation file."""
    rng = np.random.default_rng(0)
    for file in files:
        (raw / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), np.uint8)).save(
            raw / file, "JPEG"
        )
    (raw / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return raw


def captions(raw: Path, **options: object) -> dict[str, list[str]]:
    tables = folder.read(raw, Options(**options))
    texts = tables.captions.groupby("image_id", sort=False)["text"].agg(list)
    files = dict(zip(tables.images["image_id"], tables.images["file"], strict=True))
    assert all((raw / file).is_file() for file in files.values())
    return texts.to_dict()


@pytest.mark.parametrize(("name", "text"), READ, ids=[name for name, _ in READ])
def test_what_is_not_ambiguous_is_read(tmp_path, name, text):
    assert captions(place(tmp_path, name, text)) == READ[name, text]


def test_utf_16_of_excel_is_read(tmp_path):
    text = table("image@caption", "{f}@{c} é", "\t").encode("utf-16")
    assert captions(place(tmp_path, "c.txt", text))["a.jpg"] == ["It is a, here. é"]


def test_a_name_in_another_form(tmp_path):
    composed, apart = normalize("NFC", "é.jpg"), normalize("NFD", "é.jpg")
    names = [(composed, apart), (apart, composed), ("E.JPG", "e.jpg")]
    names.append(("my%20dog%C3%A9.jpg", "my dogé.jpg"))
    for number, (given, there) in enumerate(names):
        text = table("image,caption", "{f},{c}") + f"{given},Other.\n"
        raw = place(tmp_path / str(number), "c.csv", text, [*FILES, there])
        assert captions(raw)[normalize("NFC", given)] == ["Other."]
        assert raw / there in folder.inventory(raw)
        assert "1 images" in folder.read(raw).notes[-1]


def test_another_case_is_no_other_name_of_an_image_that_is_named_itself(tmp_path):
    raw = place(tmp_path, "c.csv", table("image,caption", "{f},{c}") + "A.jpg,Other.\n")
    if not (raw / "A.jpg").is_file():  # a system that tells them apart
        tables = folder.read(raw)
        assert tables.images["file"].tolist() == [*FILES, "A.jpg"]  # which is not there
        texts = tables.captions.set_index("caption_id")["text"]
        assert texts["A.jpg#0"] == "Other." and "a.jpg#1" not in texts


def test_images_in_one_folder_below_but_not_in_one_of_two(tmp_path):
    text = table("image,caption", "{f},{c}")
    raw = place(tmp_path, "captions.txt", text, [f"Images/{file}" for file in FILES])
    assert captions(raw) == PLAIN
    place(raw, "captions.txt", text, [f"Other/{file}" for file in FILES])
    assert folder.read(raw).images["file"].tolist() == FILES  # which are not there
    assert "did you mean Images/a.jpg?" in folder.missing(raw, "a.jpg").found
    (raw / "images.ZIP").write_bytes(b"PK")
    assert folder.missing(raw, "z.jpg").found == "nothing (unpack images.ZIP?)"


def line(**facts: object) -> str:
    return json.dumps({"image": "a.jpg", "caption": "A."} | facts)


HEAD = "image,caption\n"
CELLS = ("c.csv:2", "of sentences")
REFUSED = {  # name of the file, content -> where, expected, found
    ("c.jsonl", line(file_name="b.jpg")): (
        "c.jsonl:1",
        "one image",
        "image 'a.jpg' and file_name",
    ),
    ("c.csv", "image,Image,caption\na.jpg,b.jpg,A.\n"): (
        "c.csv:2",
        "one image",
        "Image 'b.jpg'",
    ),
    ("c.csv", f'{HEAD}a.jpg,"A sign\nb.jpg,A wheel of 20"\n'): (
        *("c.csv:2", "ends before", "line 3 is a row of its own"),
    ),
    ("c.csv", f'{HEAD}a.jpg,"A sign\nb.jpg,B.\n'): (
        "c.csv:2",
        "CSV, separated by ','",
        "line 3",
    ),
    ("c.jsonl", line(caption="A.\nb.jpg,B.")): (
        "c.jsonl:1: caption",
        "without rows",
        "'b.jpg,B.'",
    ),
    ("c.json", json.dumps([{"image": "a.jpg", "caption": 'A.\n"x.png"|B.'}])): (
        *("c.json: [0]: caption", "without rows", "x.png"),
    ),
    ("c.csv", "image,text,raw\na.jpg,A.,B.\n"): ("c.csv:1", "either", "text and raw"),
    ("c.csv", f"{HEAD}a.jpg,\"['A' 'B']\"\n"): (*CELLS, "'A' 'B'"),
    ("c.csv", f"{HEAD}a.jpg,\"{{'tokens': ['A']}}\"\n"): (*CELLS, "'tokens'"),
    ("c.csv", "image|caption\na.jpg|A.\nb.jpg   B.\n"): (
        "c.csv:3",
        "separated by '|'",
        "1",
    ),
    ("c.tsv", '"image"\t"caption"\na.jpg\t"A.\nb.jpg\tB."\n'): (
        *(
            "c.tsv:2",
            "ends before",
            "line 3 is a row of its own ('b.jpg",
        ),
    ),
    ("c.csv", "a.jpg,A.\n"): (
        "c.csv:1",
        "first line",
        "'a.jpg,A.'",
    ),
    ("c.csv", f"{HEAD}/home/b/a.jpg,A.\n"): (
        "c.csv:2: image",
        "inside",
        "/home/b/a.jpg",
    ),
    ("c.csv", f"{HEAD}a.jpg,Caf\xe9.\n".encode("latin-1")): ("c.csv", "UTF-8", "0xe9"),
    ("c.jsonl", '{"image": "a.jpg", "conversations": []}'): (
        *("c.jsonl:1: caption", "caption", "neither, but image, conversations"),
    ),
    ("c.jsonl", '{"photo_id": 3, "caption": "A."}'): (
        *(
            "c.jsonl:1: image",
            "a string (image, file_name",
            "None, but photo_id, caption",
        ),
    ),
    ("c.json", '{"info": {}, "words": 3}'): (
        "c.json",
        "Karpathy, COCO",
        "the keys info, words",
    ),
    ("c.json", "5"): ("c.json", "of images", "5"),
    ("c.json", "null"): ("c.json", "of images", "None"),
    ("c.csv", "id,image,caption\n0,a.jpg,A.\n1,a.jpg,B.\n"): (
        "c.csv:3: image_id",
        "'0' as",
        "'1'",
    ),
    ("c.json", '{"image": "a.jpg", "caption": "A."}'): ("c.json", "3 images", "1"),
    ("c.csv", "id,image,caption\n7,a.jpg,A.\n7,b.jpg,B.\n"): (
        *("c.csv:3: id", "b.jpg alone", "'7', as of a.jpg"),
    ),
    ("c.csv", "image,caption,caption\na.jpg,A.,B.\n"): (
        "c.csv:1",
        "every column once",
        "caption",
    ),
    ("c.xlsx", "PK"): ("", "one annotation file", "none (files of .jpg, .xlsx)"),
}


@pytest.mark.parametrize(("name", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_ambiguous_is_refused_in_one_line(tmp_path, name, text):
    with refused(*REFUSED[name, text]) as caught:
        folder.read(place(tmp_path, name, text))
    assert "again" not in caught.value.do  # the file is whole


def test_which_file_is_meant(tmp_path):
    raw = place(tmp_path, "c.csv", table("image,caption", "{f},{c}"))
    (raw / "README.txt").write_text("Four images.")
    assert captions(raw) == PLAIN
    (raw / "d.tsv").write_text("image\tcaption\n")
    with refused(found="2: c.csv, d.tsv", do="--captions FILE"):
        folder.read(raw)
    with refused(found="c.csv, d.tsv could be read", do="correct its name"):
        folder.read(raw, Options(captions="x.csv"))
    with refused(found="a .jpg file", do="save it as .csv"):
        folder.read(raw, Options(captions="a.jpg"))
    below = place(
        tmp_path / "up/train", "metadata.csv", table("file_name,text", "{f},{c}")
    ).parent
    with refused(found="none here, but train/metadata.csv", do="--captions"):
        folder.read(below)


def test_splits_as_keys_of_one_file(tmp_path):
    parts = {"train": items(image=FILE, captions=TEXTS), "validation": []}
    with refused(
        "c.json",
        "of images",
        "the keys train, validation",
        "column or key",
    ):
        folder.read(place(tmp_path, "c.json", json.dumps(parts)))


ONE_FILE = "one list with a column"


@pytest.mark.parametrize(
    ("names", "do"),
    [
        (["train.csv", "val.csv", "test.csv"], ONE_FILE),
        (["captions_train2014.json", "captions_val2014.json"], ONE_FILE),
        (
            [f"{file}.json" for file in "abcdef"],
            "one .csv",
        ),
        (["one.csv", "two.csv"], "rematch init DIR --captions FILE"),
    ],
)
def test_the_next_step_where_files_are_several(tmp_path, names, do):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(table("image,caption", "{f},{c}"))
    with refused(found=names[0], do=do):
        folder.read(tmp_path)


@pytest.mark.parametrize(
    ("head", "val"),
    [
        ("split", "validation"),
        ("Set", "Valid"),
        ("subset", "dev"),
        ("partition", "val"),
    ],
)
def test_names_of_the_column_of_splits_and_of_validation(tmp_path, head, val):
    text = table(f"image,caption,{head}", "{f},{c},{s}").replace(",val", f",{val}")
    tables = folder.read(place(tmp_path, "c.csv", text))
    assert tuple(tables.images["split"]) == SPLITS
    assert len(tables.notes) == (val != "val")


def test_keys_and_files_that_are_not_used_are_told(tmp_path):
    raw = place(tmp_path, "c.csv", table("image,caption,img_id,raw,", "{f},{c},0,x,7"))
    (raw / "notes.md").write_text("x")
    read, unused = folder.told(raw).split("; ")
    assert read.endswith(": image, caption")
    assert unused.endswith(
        "img_id, the key raw, the key without a name, the files notes.md"
    )
    assert "c.csv: not used: img_id, raw, without a name." in folder.read(raw).notes


def coco(
    of_images: dict | None = None, of_captions: dict | None = None, **outside: object
) -> str:
    """COCO's captions with further keys: row -> what is added there."""
    data = {
        "images": [{"id": n, "file_name": file} for n, file in enumerate(FILES)],
        "annotations": [
            {"id": 10 * n + k, "image_id": n, "caption": text}
            for n, file in enumerate(FILES)
            for k, text in enumerate(TWO[file])
        ],
    }
    for part, more in (("images", of_images), ("annotations", of_captions)):
        for row, facts in (more or {}).items():
            data[part][row] |= facts
    return json.dumps(data | outside)


def karpathy(of_sentences: dict | None = None, **of_images: object) -> str:
    """Karpathy's JSON with further keys of every sentence, and of every image."""
    images = [
        {
            "filename": f,
            "split": s,
            "imgid": n,
            "sentids": [2 * n, 2 * n + 1],
            "cocoid": n,
        }
        | {
            "sentences": [
                {"raw": text, "tokens": text.split(), "imgid": n, "sentid": 2 * n + k}
                | (of_sentences or {})
                for k, text in enumerate(TWO[f])
            ]
        }
        | of_images
        for n, (f, s) in enumerate(zip(FILES, SPLITS, strict=True))
    ]
    return json.dumps({"images": images, "dataset": "mine"})


NESTED = {
    "meta": {"split": "test", "by": {"site": "x"}, "empty": {}},
    "boxes": [{"xy": [1, 2]}],
}
LISTED = "meta.split, meta.by.site, boxes.xy"
LEFT = {  # name of the file, content -> keys that are not used, at every depth
    (
        "coco.json",
        coco({0: NESTED}, {1: {"is_rejected": True}, 2: {"by": {"who": 3}}}),
    ): (f"{LISTED}, annotations.is_rejected, annotations.by.who"),
    ("coco.json", coco(splits={"test": [1]}, info={"year": 1, "split": "val"})): (
        "splits.test, info.split"
    ),
    (
        "coco.json",
        coco({0: {"license": 1, "coco_url": "x", "flickr_url": "y", "height": 9}}),
    ): "",
    (
        "coco.json",
        coco({0: {"width": 9, "date_captured": "x"}}, info={"year": 2014}),
    ): "",
    ("karpathy.json", karpathy()): "",
    (
        "karpathy.json",
        karpathy({"rejected": False, "by": {"who": 1}}, quality={"blur": 1}),
    ): ("sentences.rejected, sentences.by.who, quality.blur"),
    ("lines.jsonl", "\n".join(map(json.dumps, items(image=FILE, captions=TEXTS)))): "",
    (
        "metadata.jsonl",
        "\n".join(json.dumps(x | NESTED) for x in items(file_name=FILE, text=TEXTS)),
    ): LISTED,
    (
        "blip.json",
        json.dumps([x | NESTED for x in items(image=FILE, caption=TEXTS)]),
    ): LISTED,
    ("blip.json", json.dumps(items(image=FILE, caption=TEXTS, image_id=FILE))): "",
    (
        "objects.json",
        json.dumps({f: [{"raw": "A.", "ok": False}] for f in FILES}),
    ): "captions.ok",
    ("objects.csv", table("image,sentences", "{f},\"[{{'raw': '{c}', 'ok': 1}}]\"")): (
        "sentences.ok"
    ),
    (
        "textcaps.json",
        json.dumps({"data": items(image_name=FILE, reference_strs=TEXTS)}),
    ): "",
    (
        "textcaps.json",
        json.dumps(
            {"data": items(image_name=FILE, caption_str=FILE, image_id=FILE, ocr=TEXTS)}
        ),
    ): "ocr",
}


@pytest.mark.parametrize(("name", "text"), LEFT, ids=range(len(LEFT)))
def test_keys_that_are_not_used_are_named_at_every_depth(tmp_path, name, text):
    raw, left = place(tmp_path, name, text), LEFT[name, text]
    for read in (folder.read, folder.read_for_score):
        notes = [note for note in read(raw).notes if "not used" in note]
        assert notes == ([f"{name}: not used: {left}."] if left else [])
    named = [f"the key {key}" for key in left.split(", ") if key]
    assert folder.told(raw).endswith(f"not used: {', '.join(named) or 'nothing'}")


def test_a_split_of_captions_is_that_of_their_image(tmp_path):
    # several words for one split, on captions, on images, or on both
    of_captions = {2 * n: {"split": split} for n, split in enumerate(SPLITS)}
    of_captions |= {1: {"split": "training"}, 5: {"split": "Validation"}}
    texts = {
        "coco.json": coco(of_captions=of_captions),
        "both.json": coco({n: {"split": s} for n, s in enumerate(SPLITS)}, of_captions),
        "objects.json": json.dumps(
            {f: [{"raw": "A.", "split": s}] for f, s in zip(FILES, SPLITS, strict=True)}
        ),
    }
    for name, text in texts.items():
        raw = place(tmp_path / name, name, text)
        assert tuple(folder.read(raw).images["split"]) == SPLITS
        assert "split" in folder.told(raw).partition("not used")[0]
        assert folder.has_splits(raw)


def test_a_group_of_captions_is_that_of_their_image(tmp_path):
    of_captions = {row: {"group": f"g{row // 4}"} for row in range(8)}
    raw = place(tmp_path, "c.json", coco(of_captions=of_captions))
    images = folder.read_for_score(raw).images
    assert images["group"].tolist() == ["g0", "g0", "g1", "g1"]


CONTRADICTIONS = {  # content -> where, expected, found
    coco(of_captions={4: {"split": "val"}, 5: {"split": "test"}}): (
        *("annotations[5]: split", "'val' as of c.json: annotations[4]", "'test'"),
    ),
    coco({2: {"split": "val"}}, {5: {"split": "test"}}): (
        *("annotations[5]: split", "'val' as of its image", "'test'"),
    ),
    coco(of_captions={6: {"group": "x"}, 7: {"group": "y"}}): (
        *("annotations[7]: group", "'x' as of c.json: annotations[6]", "'y'"),
    ),
    coco(of_captions={3: {"file_name": "c.jpg"}}): (
        "annotations[3]: image",
        "'b.jpg'",
        "'c.jpg'",
    ),
    coco({0: {"split": "test"}}): (
        "c.json: split",
        "for all images",
        "none for",
    ),
    karpathy({"split": "test"}): (
        "images[0]: sentences[0]: split",
        "'train' as of its",
        "'test'",
    ),
    karpathy({"imgid": 3}): (
        "images[0]: sentences[0]: imgid",
        "0, as of its image",
        "3",
    ),
}


@pytest.mark.parametrize("text", CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_captions_of_one_image_that_contradict_are_refused(tmp_path, text):
    with refused(*CONTRADICTIONS[text]):
        folder.read(place(tmp_path, "c.json", text))


def test_without_a_split_test_a_single_split_is_scored_whole_and_of_several_none(
    tmp_path,
):
    for words, images, note in (
        (("val",) * 4, 4, "have val alone"),
        (("Validation",) * 4, 4, "have val alone"),
        (("train",) * 4, 4, "have train alone"),
        (SPLITS, 1, ""),
        (("test", "unused") * 2, 2, ""),
        (("test", "testing") * 2, 2, "2 images are of a split testing"),
    ):
        rows = [
            {"image": f, "caption": "A.", "split": s}
            for f, s in zip(FILES, words, strict=True)
        ]
        tables = folder.read_for_score(place(tmp_path, "c.json", json.dumps(rows)))
        assert (tables.images["split"] == "test").sum() == images
        assert any(note in text for text in tables.notes) or not note
    for words, found in (
        (("train", "val") * 2, "2 of train, 2 of val"),
        (("unused",) * 4, "4 of unused"),
    ):
        rows = [
            {"image": f, "caption": "A.", "split": s}
            for f, s in zip(FILES, words, strict=True)
        ]
        with refused("c.json: split", "one split alone", found, "their own"):
            folder.read_for_score(place(tmp_path, "c.json", json.dumps(rows)))


def test_the_rest_of_a_caption_is_no_image(tmp_path):
    """A line break without quotation marks, after which the separator stands as often
    as in a row. Without pictures, only the name tells."""
    text = "image,caption\na.jpg,A dog\nred, running\nb.jpg,B.\nc.jpg,C.\n"
    (tmp_path / "c.csv").write_text(text)
    with refused("c.csv:3: image", "with an ending", "'red'", "quotation marks"):
        folder.read_for_score(tmp_path)
    (tmp_path / "c.csv").write_text(
        text.replace(".jpg", "").replace("\nred, running", "")
    )
    assert len(folder.read_for_score(tmp_path).images) == 3


def test_captions_apart_from_each_other_are_told_where_rows_have_no_ids(tmp_path):
    note = "without ids, rows are taken image by image"
    apart = "image,caption\n" + "".join(f"{f},A.\n" for f in (*FILES, *FILES))
    together = "image,caption\n" + "".join(f"{f},A.\n{f},B.\n" for f in FILES)
    for text, is_told in ((apart, True), (together, False)):
        notes = folder.read_for_score(place(tmp_path, "c.csv", text)).notes
        assert any(note in line for line in notes) == is_told
    (tmp_path / "c.csv").unlink()
    data = json.loads(coco())
    for is_told in (False, True):
        notes = folder.read_for_score(place(tmp_path, "c.json", json.dumps(data))).notes
        assert any(note in line for line in notes) == is_told
        data["annotations"].reverse()


def test_captions_keep_the_numbers_that_the_file_gives_them(tmp_path):
    tokens = "".join(f"{f}#{k}\t{f} {k}\n" for f in FILES for k in (1, 0))
    bars = "image_name| comment_number| comment\n"
    bars += "".join(f"{f}| {k}| {f} {k}\n" for f in FILES for k in (1, 0))
    for number, (name, text) in enumerate((("c.token", tokens), ("c.csv", bars))):
        captions = folder.read(place(tmp_path / str(number), name, text)).captions
        assert (captions["caption_id"].str.replace("#", " ") == captions["text"]).all()
    once = folder.read(place(tmp_path, "c.token", tokens.replace("#1", "#0"))).captions
    assert once["caption_id"].tolist()[:2] == ["a.jpg#0", "a.jpg#1"]  # in their order


@pytest.mark.parametrize(
    ("ids", "is_told"),
    [([1, 2, 3, 4], False), ([2, 1, 3, 4], True), ([91, 92, 93, 94], False)],
)
def test_ids_that_are_numbers_of_other_files_are_told(tmp_path, ids, is_told):
    files = [f"p0{number}.jpg" for number in range(1, 5)]
    data = {
        "images": [{"id": i, "file_name": f} for i, f in zip(ids, files, strict=True)],
        "annotations": [{"image_id": number, "caption": "A."} for number in ids],
    }
    notes = folder.read(place(tmp_path, "c.json", json.dumps(data), files)).notes
    # vectors with such ids would be found by the numbers in file names
    assert any("(p01.jpg has 2)" in note for note in notes) == is_told


def test_tables_that_are_not_read_are_told(tmp_path):
    raw = place(tmp_path, "c.csv", table("image,caption", "{f},{c}"))
    (raw / "test.csv").write_text("picture;words\ne.jpg;E.\n")
    assert in_one_note(folder.read(raw), "1 tables", ": test.csv.")


def test_coco_may_say_splits(tmp_path):
    images = folder.read(place(tmp_path, "c.json", json.dumps(COCO))).images
    assert tuple(images["split"]) == SPLITS


def test_val_is_taken_from_train(tmp_path):
    text = table("image,caption,split", "{f},{c},{s}").replace(",val", ",train")
    raw = place(tmp_path, "c.csv", text)
    images = folder.read(raw, Options(val=1)).images
    assert sorted(images["split"]) == ["test", "train", "train", "val"]
    assert images["split"].iloc[3] == "test"
    counted = init.count(raw, None)
    assert (counted.val, counted.test, counted.val_is_taken) == (1, 1, True)
    assert "{val: 1}" in init.season_text("x", raw, None, counted)
    with refused("option val", "more than 3", "3"):
        folder.read(raw, Options(val=3))
    place(tmp_path, "c.csv", table("image,caption,split", "{f},{c},{s}"))
    with refused("option val", found="a split val"):
        folder.read(raw, Options(val=1))
    place(tmp_path, "c.csv", table("image,caption", "{f},{c}"))
    with refused("option test", found="None"):
        folder.read(raw, Options(val=1))


CHINESE = "红色的狗在街上跑。"


def test_a_tokeniser_for_scripts_without_spaces(tmp_path, monkeypatch):
    raw = place(tmp_path, "c.csv", table("image,caption", f"{{f}},A {CHINESE}"))
    apart = captions(raw, tokeniser="characters")["a.jpg"]
    assert apart == ["A 红 色 的 狗 在 街 上 跑 。"]
    fake = ModuleType("jieba")
    fake.lcut = lambda text: ["A", " ", "红色", "的", "狗"]
    monkeypatch.setitem(sys.modules, "jieba", fake)
    assert captions(raw, tokeniser="jieba")["a.jpg"] == ["A 红色 的 狗"]
    monkeypatch.setitem(sys.modules, "jieba", None)
    with refused("option tokeniser", "the library jieba", "none", "pip install jieba"):
        Options(tokeniser="jieba")
    with refused("option tokeniser", "one of characters, jieba", "'os'"):
        Options(tokeniser="os")


WORDS = {  # one text in two normal forms -> words
    "बिल्ली बैठी है।": ["बिल्ली", "बैठी", "है"],
    "Tiếng Việt, pêche": ["tiếng", "việt", "pêche"],
    "مُحَمَّد يَكْتُبُ": ["مُحَمَّد", "يَكْتُبُ"],
    "ที่นี่ ร้านน้ำ": ["ที่นี่", "ร้านน้ำ"],
    "می\u200cخواهم": ["می\u200cخواهم"],
    "l’été 1\ufe0f\u20e3 a_b": ["l’été", "1", "a", "b"],
}


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_marks_belong_to_their_word(text, form):
    assert tokenise(normalize(form, text)) == [
        normalize("NFC", word) for word in WORDS[text]
    ]


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parent.parent
    Path("params.yaml").write_bytes((root / "params.yaml").read_bytes())
    Path("seasons").mkdir()
    return place(Path("own"), "c.csv", table("image,caption,split", "{f},{c},{s}"))


ODD = {  # what every caption is -> what is noted of it
    "{c} &amp; more": "4 captions have HTML",
    "a/DT dog/NN {c}": "4 captions have part-of-speech tags",
    CHINESE: "4 captions are in a script",
    "Zebra {f}": "",
    "{c}|||Other": "4 captions have a separator",
    "<start> {c} </s>": "4 captions have tags",
    "None": "4 captions have the name of a missing",
    "🐕!": "4 captions have no word",
    # another one than those of train
    "{t}": "2 captions of val and test (of 2) have no word",
}


@pytest.mark.parametrize("text", ODD)
def test_what_is_odd_in_captions_is_noted(text):
    images = pd.DataFrame({"image_id": FILES, "file": FILES, "width": 90, "height": 90})
    facts = zip(FILES, SPLITS, strict=True)
    texts = [
        text.format(f=f, c="It is.", t="x" if s == "train" else "y") for f, s in facts
    ]
    captions = {"caption_id": FILES, "image_id": FILES, "split": SPLITS, "text": texts}
    notes = prepare.oddities(images, pd.DataFrame(captions), [])
    assert any(ODD[text] in note for note in notes) if ODD[text] else notes == []


def test_equal_captions_and_black_pictures_are_noted(project, capsys):
    deep = np.random.default_rng(0).integers(0, 4096, (20, 20), np.uint16)
    Image.fromarray(deep).save(project / "a.jpg", "PNG")
    text = table("image,caption,split", "{f},{c},{s}\n{f},{c},{s}")
    place(project, "c.csv", text, FILES[1:])
    assert main(["init", "own"]) == 0
    told = capsys.readouterr().out
    assert "1 pictures" in told and "a.jpg" in told
    assert "4 images have" in told
    notes = read_json(Path("data/cards/own/card.json"))["notes"]
    assert any("more than once" in note and note in told for note in notes)
    assert (
        told.splitlines()[-1] == "read c.csv: image, split, caption; not used: nothing"
    )


def test_a_refused_init_leaves_nothing_and_names_the_folder_once(project):
    (project / "c.csv").unlink()
    rows = items(image=FILE, captions=TEXTS, split=SPLIT)
    rows[-1]["captions"] = []
    head = "image,caption,split"
    for name, text, item in (
        ("c.csv", table(head, "{f},{c},test"), "split train"),
        ("c.csv", table(head, "{f},{c},{s}") + "e.jpg,A.,test\n", "e.jpg"),
        (
            "c.jsonl",
            "\n".join(line(image=f, captions=[], split="test") for f in FILES),
            "c.jsonl",
        ),
        ("c.jsonl", "\n".join(map(json.dumps, [*rows, rows[-1]])), "split 'test'"),
    ):
        place(project, name, text)
        error = refusal(init, "own")
        check(error, where=item)
        assert str(error).count("own") == 1
        left = {path for path in Path().rglob("*") if path.parts[0] != "own"}
        assert left == {Path("params.yaml"), Path("seasons")}
        (project / name).unlink()


def test_a_folder_without_latin_letters_needs_a_name(project, capsys):
    project.rename("照片")
    check(refusal(init, "照片"), where="照片", do="--name")
    assert main(["init", "照片", "--name", "photos"]) == 0


def test_twins_within_test_are_counted(tmp_path):
    """Two equal images, a near one, an equal one of the same group, and one of
    train."""
    noise = np.random.default_rng(0).integers(0, 240, (5, 7, 3), dtype=np.uint8)
    scene = Image.fromarray(noise).resize((90, 60), Image.Resampling.BICUBIC)
    near = scene.point(lambda value: min(255, value + 3))
    other = scene.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    shown = {"a": scene, "b": scene, "c": near, "d": other, "e": other, "t": other}
    texts = ("A cat.", "a cat", "A dog.", "Cow", "cow", "Cow")
    facts = zip(shown, texts, ["test"] * 5 + ["train"], "abcddt", strict=True)
    lines = ["image,caption,split,group", *map(",".join, facts)]
    place(tmp_path, "c.csv", "\n".join(lines) + "\n", [])
    tables = folder.read(tmp_path)
    texts = tables.captions.merge(tables.images[["image_id", "split"]])
    pictures = measure(list(tables.images["file"]), shown.get, "mine")
    assert twins(tables.images, texts, pictures) == {"images": 3, "captions": 2}


KINDS = {
    b"\0\0\0\x20ftypavif": "AVIF",
    b"\0\0\0\x18ftypheic": "HEIC",
    b"\0\0\0\x0cjP  \r\n\x87\n": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"<!DOCTYPE html>": "a web page",
    b"version https://git-lfs.github.com/spec/v1": "Git LFS",
    b"": "an empty file",
    b"what": "no image",
}


def test_files_of_other_kinds_are_named():
    for start, kind in KINDS.items():
        with refused("a", WHOLE, kind):
            upright_rgb(io.BytesIO(start + b"\0" * 90 if start else b""), "a")
