"""Annotation and YAML files that are made to break a reader: one line each."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import layouts
import pytest
from PIL import Image
from raw_formats import FLICKR, flickr_official, persons
from sieges import OUTSIDE, RAW, repelled, repelled_stages

from benchmark.core.files import read_json, read_yaml
from benchmark.encode.box_files import read_boxes
from datasets import cuhk_pedes, flickr8k, flickr30k, flickr30k_entities, mscoco
from datasets.shared import archives

pytestmark = pytest.mark.usefixtures("field")

LONG = 5_000  # characters of a name
PATHS = ("/etc/passwd", "../outside/secret.txt", "a/../../x.png", "..\\x.png", "", ".", "..", "/")


def line(**facts: object) -> str:
    return json.dumps({"image": "a.png", "caption": "A.", "split": "train"} | facts)


def place(name: str, content: str | bytes) -> None:
    """Three pictures and one annotation file."""
    RAW.mkdir(parents=True)
    for stem in "abc":
        Image.new("RGB", (20, 20)).save(RAW / f"{stem}.png")
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    (RAW / name).write_bytes(data)


def whole(first: str) -> str:
    """Lines of three images, of which the first is given."""
    return "\n".join([first, line(image="b.png", split="val"), line(image="c.png", split="test")])


JSON_LINES = {
    "half a character in a caption": line(caption="A \ud800 b."),
    "half a character in an image": line(image="\udc80.png"),
    "half a character in an id": line(id="x\udfff"),
    "half a character in a group": line(group="\ud83d"),
    "half a character in a split": line(split="tr\ud800ain"),
    "half a character, written out": '{"image": "a.png", "caption": "\ud800"}',
    "a zero byte in a caption": line(caption="A\0b"),
    "a zero byte in an image": line(image="a\0.png"),
    "a zero byte in an id": line(id="\0"),
    "a zero byte, bare": '{"image": "a.png", "caption": "A\0b"}',
    "lists in lists": '{"image": "a.png", "caption": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "objects in objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a long image": line(image="x" * LONG + ".png"),
    "a long folder": line(image="x" * LONG + "/a.png"),
    "many folders": line(image="x/" * LONG + "a.png"),
    "a long id": line(id="x" * LONG),
    "a long group": line(group="x" * LONG),
    "a long number as an id": '{"image": "a.png", "caption": "A.", "id": ' + "9" * LONG + "}",
    "a long number that Python takes": line(id=10**4000),
    "a caption of 200,000 words": line(caption="word " * 200_000),
    "NaN": '{"image": "a.png", "caption": "A.", "id": NaN}',
    "infinity": '{"image": "a.png", "caption": "A.", "weight": -Infinity}',
    "two images": '{"image": "b.png", "image": "a.png", "caption": "A.", "split": "train"}',
    "two captions": '{"image": "a.png", "caption": "A.", "caption": "B.", "split": "train"}',
    "true as an id": line(id=True),
    "a list as an image": line(image=["a.png"]),
    "control characters in an image": line(image="\x1b[2J\x07.png"),
    **{f"the path {path!r}": line(image=path) for path in PATHS},
}


@pytest.mark.parametrize("case", JSON_LINES)
def test_a_hostile_line_of_json(case):
    place("all.jsonl", whole(JSON_LINES[case]))
    repelled_stages("all.jsonl" if "control" not in case else "\\x1b[2J\\x07.png")


HEAD = "image,caption,split\n"
ROWS = "b.png,B.,val\nc.png,C.,test\n"
CSV = {
    "UTF-16": (HEAD + "a.png,A.,train\n" + ROWS).encode("utf-16"),
    "UTF-16 without a mark": (HEAD + "a.png,A.,train\n" + ROWS).encode("utf-16-le"),
    "latin-1": (HEAD + "a.png,Un café.,train\n" + ROWS).encode("latin-1"),
    "a field of a million characters": HEAD + f"a.png,{'x' * 1_000_000},train\n" + ROWS,
    "a field of 100,000 characters": HEAD + f"a.png,{'x' * 100_000},train\n" + ROWS,
    "a quote that never closes": HEAD + 'a.png,"A.,train\n' + ROWS * 20_000,
    "a quote in the middle": HEAD + 'a.png,"A" dog,train\n' + ROWS,
    "a zero byte": HEAD + "a.png,A\0.,train\n" + ROWS,
    "a zero byte in an image": HEAD + "a\0.png,A.,train\n" + ROWS,
    "a column twice": "image,caption,split,caption\na.png,A.,train,B.\n",
    "100,000 columns": "x," * 100_000 + "\n",
    "more fields than columns": HEAD + "a.png,A.,train," + "," * 100_000 + "\n",
    "a long image": HEAD + f"{'x' * LONG}.png,A.,train\n" + ROWS,
    "a path outside": HEAD + "../outside/secret.txt,A.,train\n" + ROWS,
    "only a zero byte": b"\0",
}


@pytest.mark.parametrize("case", CSV)
def test_a_hostile_csv(case):
    place("all.csv", CSV[case])
    repelled_stages("all.csv")


def karpathy(**facts: object) -> str:
    first = {"filename": "a.png", "split": "train", "sentences": [{"raw": "A."}]} | facts
    return json.dumps({"images": [first]})


KARPATHY = {
    "a file outside": karpathy(filename="../outside/secret.txt"),
    "a folder outside": karpathy(filepath="../../outside", filename="secret.txt"),
    "an absolute file": karpathy(filename="/etc/passwd"),
    "an absolute folder": karpathy(filepath="/etc", filename="passwd"),
    "a long file": karpathy(filename="x" * LONG),
    "half a character in a file": karpathy(filename="\ud800.jpg"),
    "half a character in a caption": karpathy(sentences=[{"raw": "\ud800"}]),
    "a zero byte in a caption": karpathy(sentences=[{"raw": "A\0."}]),
    "a long caption": karpathy(sentences=[{"raw": "word " * 200_000}]),
    "lists in lists": "[" * 100_000 + "]" * 100_000,
    "images twice": '{"images": [], "images": []}',
    "NaN as a cocoid": '{"images": [{"filename": "a.jpg", "cocoid": NaN}]}',
    "a long number as an imgid": '{"images": [{"filename": "a.jpg", "imgid": ' + "9" * LONG + "}]}",
    "no object": "[]",
    "zero bytes": "\0" * 1000,
}


@pytest.mark.parametrize("case", KARPATHY)
def test_a_hostile_json_of_karpathy(case):
    place("all.json", KARPATHY[case])
    repelled_stages("all.json")


@pytest.mark.parametrize("case", KARPATHY)
def test_the_same_of_coco_and_flickr(case):
    place("dataset_coco.json", KARPATHY[case])
    (RAW / "dataset_flickr30k.json").write_bytes((RAW / "dataset_coco.json").read_bytes())
    for reader, name in ((mscoco, "dataset_coco.json"), (flickr30k, "dataset_flickr30k.json")):
        options = reader.Options(with_pictures=False)
        repelled(lambda read=reader.read, o=options: read(RAW, o), name)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def loop(path: Path) -> None:
    path.symlink_to(path.name)


# The annotation file of each reader, and how it is read.
ANNOTATIONS = {
    "flickr8k": ("Flickr_8k.trainImages.txt", lambda: flickr8k.read(RAW)),
    "tokens": (
        *("results_20130124.token", lambda: flickr30k.read(RAW, flickr30k.Options(split="m_rnn"))),
    ),
    "lists": ("m_rnn_val.txt", lambda: flickr30k.read(RAW, flickr30k.Options(split="m_rnn"))),
    "cuhk_pedes": ("reid_raw.json", lambda: cuhk_pedes.read(RAW)),
    "entities": ("train.txt", lambda: flickr30k_entities.read(RAW)),
    "sentences": (f"Sentences/{FLICKR['train'][0]}.txt", lambda: flickr30k_entities.read(RAW)),
    "precomp": (
        "f30k_precomp/dev_caps.txt",
        lambda: flickr30k.read(RAW, flickr30k.Options(annotations="precomp")),
    ),
    "features": (
        "f30k_precomp/dev_ims.npy",
        lambda: flickr30k.read(RAW, flickr30k.Options(annotations="precomp")),
    ),
}


def write_all() -> None:
    flickr_official(RAW)
    persons(RAW)
    parts = {"train": ["1"], "dev": ["2"], "test": ["3"]}
    layouts.write_precomp(RAW / "f30k_precomp", parts)
    layouts.write_entities(RAW, FLICKR)
    (RAW / "Images").mkdir()
    layouts.draw(RAW / "Images/1.jpg", 1)
    for name in ("Flickr8k.token.txt", *flickr8k.LISTS.values()):
        (RAW / name).write_text("1.jpg#0\tA.\n" if "token" in name else "")


@pytest.mark.parametrize("put", [Path.mkdir, pipe, device, loop])
@pytest.mark.parametrize("reader", ANNOTATIONS)
def test_what_is_no_file_in_the_place_of_an_annotation_file(reader, put):
    write_all()
    name, read = ANNOTATIONS[reader]
    (RAW / name).unlink()
    put(RAW / name)
    repelled(read, Path(name).name if put is not pipe else "")


@pytest.mark.parametrize("put", [Path.mkdir, pipe, device, unix_socket, loop])
@pytest.mark.parametrize("name", ["all.jsonl", "all.csv", "all.json"])
def test_what_is_no_file_in_the_place_of_my_annotations(name, put, monkeypatch):
    place("readme.txt", "")
    with monkeypatch.context() as patch:
        patch.chdir(RAW)  # the address of a socket is short
        put(Path(name))
    repelled_stages(name)


@pytest.mark.parametrize("text", ["9" * LONG, "../outside/secret", "\0"])
def test_the_lists_of_images_name_no_files(text):
    write_all()
    (RAW / "train.txt").write_text(text)
    repelled(lambda: flickr30k_entities.read(RAW), "Sentences/99" if text[0] == "9" else "train")


MARKED = "[/EN#1/people a man] sees [/EN#2/other a hat] ."
SENTENCES = {
    "open marks": "[/EN#1/people a " * 40_000,
    "marks in marks": "[/EN#1/people " * 1000 + "a" + "]" * 1000,
    "spaces": "[/EN#1 " + " " * 1_000_000 + "]",
    "200,000 words": "word " * 200_000,
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_hostile_sentence_of_entities(case):
    write_all()
    name = f"Sentences/{FLICKR['train'][0]}.txt"
    (RAW / name).write_text("\n".join([SENTENCES[case], *[MARKED] * 4]))
    repelled(lambda: flickr30k_entities.read(RAW), name)


BOX = "<object><name>1</name><bndbox>{}</bndbox></object>"
ENTITY = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
XML = {
    "entities": f"{ENTITY}<annotation>&b;</annotation>",
    "a file by an entity": '<!DOCTYPE a [<!ENTITY a SYSTEM "outside/secret.txt">]><a>&a;</a>',
    "elements in elements": "<a>" * 200_000 + "</a>" * 200_000,
    "a long number": "<annotation><size><width>" + "9" * LONG + "</width></size></annotation>",
    "UTF-16": "<annotation/>".encode("utf-16"),
    "NaN": "<annotation><size><width>NaN</width><height>1</height></size></annotation>",
    "a negative size": "<annotation><size><width>-5</width><height>-5</height></size>"
    + BOX.format("<xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax>")
    + "</annotation>",
    "nothing": "",
}


@pytest.mark.parametrize("case", XML)
def test_a_hostile_xml_of_entities(case):
    write_all()
    path = RAW / f"Annotations/{FLICKR['train'][0]}.xml"
    path.write_bytes(XML[case] if isinstance(XML[case], bytes) else XML[case].encode())
    repelled(lambda: flickr30k_entities.read(RAW), path.name)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
YAML: dict[str, str | bytes] = {
    "a billion laughs": LAUGHS,
    "a billion merged laughs": LAUGHS + "m: {<<: [{x: *i}]}\n",
    "an alias of itself": "a: &a [*a]",
    "a key twice": "title: A\ntitle: B\n",
    "a key twice, deeper": "datasets:\n  pets: {reader: folder, source: a, source: b}\n",
    "an object of Python": "a: !!python/object/apply:os.system ['touch sprung']",
    "an unknown tag": "a: !x 1",
    "UTF-16": "a: 1".encode("utf-16"),
    "latin-1": "a: é".encode("latin-1"),
    "a zero byte": "a: \0",
    "a long number": f"a: {'9' * LONG}",
    "no number": "a: !!int ''",
    "no date": "a: 2001-99-99",
    "no time": "a: !!timestamp x",
    "a list as a key": "? [a]\n: 1",
    "nested to a hundred levels": "a: " + "[" * 200 + "]" * 200,
    "nothing": "",
    "a list": "- a",
}
DEEP = {  # of which the loader's C code would crash
    "brackets": "a: " + "[" * 200_000 + "]" * 200_000,
    "braces": "a: " + "{a: " * 200_000 + "}" * 200_000,
    "dashes": "- " * 200_000 + "a",
    "questions": "? " * 200_000 + "a",
}


@pytest.mark.parametrize("case", YAML | DEEP)
def test_a_hostile_yaml(case):
    content = (YAML | DEEP)[case]
    data = content if isinstance(content, bytes) else content.encode()
    Path("mine.yaml").write_bytes(data)
    repelled(lambda: read_yaml(Path("mine.yaml")), "mine.yaml")


@pytest.mark.parametrize("put", [Path.mkdir, pipe, device, loop])
@pytest.mark.parametrize("read", [read_yaml, read_json])
def test_what_is_no_file_in_the_place_of_a_parameter_file(read, put):
    put(Path("mine.yaml"))
    repelled(lambda: read(Path("mine.yaml")), "mine.yaml")


def test_aliases_of_a_few_lines_are_welcome():
    Path("mine.yaml").write_text("a: &a {x: 1, y: [2, 3]}\nb: {<<: *a, x: 2}\nc: *a\n")
    plain = {"x": 1, "y": [2, 3]}
    assert read_yaml(Path("mine.yaml")) == {"a": plain, "b": plain | {"x": 2}, "c": plain}


def test_an_id_is_no_path_of_a_file_of_boxes():
    (OUTSIDE / "boxes.npz").write_bytes(b"")
    for image_id in ("../outside/boxes", "/outside/boxes", "x" * LONG, "\0"):
        repelled(lambda name=image_id: read_boxes(Path("boxes"), name, (8, 8), 9), "boxes")


@pytest.mark.parametrize("name", ["a.txt", "a.zip", "a.tar.gz"])
@pytest.mark.parametrize("put", [Path.mkdir, pipe, device])
def test_what_is_no_file_in_the_place_of_an_archive(put: Callable, name):
    put(Path(name))
    repelled(lambda: archives.text(Path(name), "a.txt"), name)
