"""Annotation and YAML files that are made to break a reader: one line each."""

import json
import os
from pathlib import Path

import layouts
import pytest
from PIL import Image
from raw_formats import FLICKR
from sieges import OUTSIDE, RAW, repelled, repelled_stages

from benchmark.contracts.datasets import flickr30k_entities
from benchmark.core.files import read_json, read_yaml
from benchmark.features.proposals import read_boxes

pytestmark = pytest.mark.usefixtures("field")

LONG = 5_000  # characters of a name
PATHS = (
    "/etc/passwd",
    "../outside/secret.txt",
    "a/../../x.png",
    "..\\x.png",
    "",
    ".",
    "..",
    "/",
)


def line(**facts: object) -> str:
    return json.dumps({"image": "a.png", "caption": "A.", "split": "train"} | facts)


def place_with_three_images(name: str, content: str | bytes) -> None:
    RAW.mkdir(parents=True)
    for stem in "abc":
        Image.new("RGB", (20, 20)).save(RAW / f"{stem}.png")
    data = (
        content
        if isinstance(content, bytes)
        else content.encode("utf-8", "surrogatepass")
    )
    (RAW / name).write_bytes(data)


def whole(first: str) -> str:
    return "\n".join(
        [first, line(image="b.png", split="val"), line(image="c.png", split="test")]
    )


JSON_LINES = {
    "a half character": line(caption="A \ud800 b."),
    "a zero byte": line(image="a\0.png"),
    "lists in lists": '{"image": "a.png", "caption": '
    + "[" * 100_000
    + "]" * 100_000
    + "}",
    "a long image": line(image="x" * LONG + ".png"),
    "a long id": '{"image": "a.png", "caption": "A.", "id": ' + "9" * LONG + "}",
    "a caption of 200,000 words": line(caption="word " * 200_000),
    "NaN": '{"image": "a.png", "caption": "A.", "id": NaN}',
    "control characters": line(image="\x1b[2J\x07.png"),
    **{f"the path {path!r}": line(image=path) for path in PATHS},
}


@pytest.mark.parametrize("case", JSON_LINES)
def test_a_hostile_line_of_json(case):
    place_with_three_images("all.jsonl", whole(JSON_LINES[case]))
    repelled_stages("all.jsonl" if "control" not in case else "\\x1b[2J\\x07.png")


HEAD = "image,caption,split\n"
ROWS = "b.png,B.,val\nc.png,C.,test\n"
CSV = {
    "a field of 1,000,000 characters": HEAD + f"a.png,{'x' * 1_000_000},train\n" + ROWS,
    "an open quote": HEAD + 'a.png,"A.,train\n' + ROWS * 20_000,
    "a zero byte": HEAD + "a\0.png,A.,train\n" + ROWS,
    "100,000 columns": "x," * 100_000 + "\n",
    "a path outside": HEAD + "../outside/secret.txt,A.,train\n" + ROWS,
}


@pytest.mark.parametrize("case", CSV)
def test_a_hostile_csv(case):
    place_with_three_images("all.csv", CSV[case])
    repelled_stages("all.csv")


def karpathy(**facts: object) -> str:
    first = {
        "filename": "a.png",
        "split": "train",
        "sentences": [{"raw": "A."}],
    } | facts
    return json.dumps({"images": [first]})


KARPATHY = {
    "a file outside": karpathy(filename="../outside/secret.txt"),
    "a folder outside": karpathy(filepath="../../outside", filename="secret.txt"),
    "an absolute folder": karpathy(filepath="/etc", filename="passwd"),
    "lists in lists": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.parametrize("case", KARPATHY)
def test_a_hostile_json_of_karpathy(case):
    place_with_three_images("all.json", KARPATHY[case])
    repelled_stages("all.json")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [Path.mkdir, pipe, device, loop])
@pytest.mark.parametrize("name", ["all.jsonl", "all.csv", "all.json"])
def test_what_is_no_file_in_the_place_of_my_annotations(name, make):
    place_with_three_images("readme.txt", "")
    make(RAW / name)
    repelled_stages(name)


ENTITY = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
XML = {
    "entities": f"{ENTITY}<annotation>&b;</annotation>",
    "a file entity": '<!DOCTYPE a [<!ENTITY a SYSTEM "outside/secret.txt">]><a>&a;</a>',
    "elements in elements": "<a>" * 200_000 + "</a>" * 200_000,
}


@pytest.mark.parametrize("case", XML)
def test_a_hostile_xml_of_entities(case):
    layouts.write_entities(RAW, FLICKR)
    path = RAW / f"Annotations/{FLICKR['train'][0]}.xml"
    path.write_text(XML[case])
    repelled(lambda: flickr30k_entities.read(RAW), path.name)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
YAML = {
    "a billion laughs": LAUGHS,
    "its own alias": "a: &a [*a]",
    "an object of Python": "a: !!python/object/apply:os.system ['touch sprung']",
    "nested 100 levels": "a: " + "[" * 200 + "]" * 200,
    # The loader's C code would crash of these.
    "brackets": "a: " + "[" * 200_000 + "]" * 200_000,
    "dashes": "- " * 200_000 + "a",
}


@pytest.mark.parametrize("case", YAML)
def test_a_hostile_yaml(case):
    Path("mine.yaml").write_text(YAML[case])
    repelled(lambda: read_yaml(Path("mine.yaml")), "mine.yaml")


@pytest.mark.parametrize("make", [Path.mkdir, pipe, device, loop])
@pytest.mark.parametrize("read", [read_yaml, read_json])
def test_what_is_no_file_in_the_place_of_a_parameter_file(read, make):
    make(Path("mine.yaml"))
    repelled(lambda: read(Path("mine.yaml")), "mine.yaml")


def test_an_id_is_no_path_of_a_file_of_boxes():
    (OUTSIDE / "boxes.npz").write_bytes(b"")
    for image_id in ("../outside/boxes", "/outside/boxes", "x" * LONG, "\0"):
        repelled(
            lambda name=image_id: read_boxes(Path("boxes"), name, (8, 8), 9), "boxes"
        )
