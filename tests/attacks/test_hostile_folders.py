"""Annotation and YAML files that are made to break a reader, and pictures that are made
to break, overflow or start something: one line each. And what is right for odd but
honest pictures: upright, RGB, 8 bits."""

import io
import json
import os
import random
import struct
import zlib
from pathlib import Path

import layouts
import numpy as np
import pytest
from PIL import Image
from raw_formats import FLICKR
from sieges import OUTSIDE, RAW, besieged, check_line, repelled, repelled_stages

from benchmark.contracts.datasets import UserError, flickr30k_entities, folder
from benchmark.core.command_line import run_stage
from benchmark.core.files import read_json, read_yaml
from benchmark.data import prepared_tables
from benchmark.features.proposals import read_boxes
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare

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
SPLITS = {"a": "train", "b": "val", "c": "test"}


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


# Pictures -----------------------------------------------------------------------------


def noise(size: tuple[int, int] = (40, 30), seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(
        0, 256, (size[1], size[0], 3), dtype=np.uint8
    )
    return Image.fromarray(pixels)


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    content = io.BytesIO()
    picture.save(content, kind, **options)
    return content.getvalue()


def place(name: str = "a.png", content: bytes | None = None) -> Path:
    RAW.mkdir(parents=True)
    # without content the first one is not there
    files = {"train": name, "val": "b.png", "test": "c.png"}
    lines = [
        {"image": file, "caption": f"A {s}.", "split": s} for s, file in files.items()
    ]
    (RAW / "all.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for seed, stem in enumerate("bc"):
        noise(seed=seed).save(RAW / f"{stem}.png")
    if content is not None:
        (RAW / name).write_bytes(content)
    return RAW / name


def chunk(kind: bytes, data: bytes) -> bytes:
    return (
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
    )


def png(
    width: int, height: int, *chunks: bytes, depth: int = 8, colour: int = 2
) -> bytes:
    facts = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", facts), *chunks, chunk(b"IEND", b"")]
    )


POSTSCRIPT = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 9 9
(sprung) (w) file closefile
showpage
"""
EMPTY_DATA = chunk(b"IDAT", zlib.compress(b""))
PPM = b"P6 {} {} 255\n"
TIFF = saved(noise(), "TIFF")
GIF = saved(noise(), "GIF")
BMP = saved(noise(), "BMP")
JPEG, PNG, WEBP = (saved(noise(), kind) for kind in ("JPEG", "PNG", "WEBP"))
PICTURES = {
    "nothing": b"",
    "text": b"<html>not found</html>",
    "PostScript": POSTSCRIPT,
    "an SVG": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "a pickle": b"\x80\x04cpathlib\nPath\n.",
    "a bomb, PNG": png(50_000, 50_000, EMPTY_DATA),
    "a bomb, BMP": BMP[:18] + struct.pack("<ii", 60_000, 60_000) + BMP[26:],
    "a bomb, PPM": b"P6 60000 60000 255\n",
    "size beyond all": png(2**31 - 1, 2**31 - 1, EMPTY_DATA),
    "no size": png(0, 0, EMPTY_DATA),
    "digits without end, PPM": b"P6 " + b"9" * 100_000,
    "no data, PNG": png(40, 30),
    "profile bomb": png(
        *(40, 30, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(48 << 20))))
    ),
    "text bomb": png(
        *(40, 30, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(48 << 20))), EMPTY_DATA)
    ),
    "chunk beyond end": PNG[:33] + struct.pack(">I", 2**31 - 1) + b"IDAT",
    "cut off, PNG": PNG[: len(PNG) // 2],
    "cut off, JPEG": JPEG[: len(JPEG) // 2],
    "markers without end, JPEG": b"\xff\xd8" + b"\xff" * 200_000,
    "recursive directory, TIFF": b"II*\0\x08\0\0\0\x00\x00\x08\0\0\0",
    "65,535 entries, TIFF": b"II*\0\x08\0\0\0\xff\xff" + bytes(4000),
}


# as in a stage: Pillow warns of damage before it refuses it
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", PICTURES)
def test_a_hostile_picture(case):
    place("a.png", PICTURES[case])
    error = repelled_stages("a.png")
    assert "0x" not in error.found


def to_outside(path: Path) -> None:
    noise().save(OUTSIDE / "secret.png")
    path.symlink_to((OUTSIDE / "secret.png").absolute())


LINKS = {
    "to outside image": ("a.png", to_outside),
    "to system file": ("a.png", lambda path: path.symlink_to("/etc/passwd")),
    "to a device": ("a.png", lambda path: path.symlink_to("/dev/zero")),
    "to itself": ("a.png", lambda path: path.symlink_to("a.png")),
    "a pipe": ("a.png", os.mkfifo),
}


@pytest.mark.parametrize("case", LINKS)
def test_a_link_of_a_picture(case):
    name, make = LINKS[case]
    make(place(name))
    repelled_stages(name)


@pytest.mark.parametrize(
    "name", ["../../../outside/a.png", "/etc/passwd", "a\0.png", "\ud800.png"]
)
def test_a_name_that_leads_out(name):
    place("a.png", PNG)
    with besieged(), pytest.raises(UserError) as caught:
        folder.pictures(RAW)(name)
    check_line(caught.value, str(RAW))


def test_a_link_that_stays_inside_and_one_of_the_whole_folder_are_welcome():
    path = place("a.png")
    path.symlink_to("b.png")
    RAW.rename("elsewhere")
    assert (
        run_stage("", fetch.configure, fetch.main, ["mine", "--source", "elsewhere"])
        == 0
    )
    assert RAW.is_symlink()
    assert run_stage("", prepare.configure, prepare.main, ["mine"]) == 0
    (shared,) = prepared_tables.read("mine").card["leakage"]["pictures"]
    assert shared == ["train: a.png", "val: b.png"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_damage_anywhere_is_a_picture_or_one_line(kind):
    content, dice = saved(noise((16, 12)), kind), random.Random(0)
    path = place("a.png", b"")
    open_picture = folder.pictures(RAW)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(dice.randint(1, 8)):
            where = dice.choice([dice.randrange(len(damaged)), dice.randrange(60)])
            damaged[where % len(damaged)] = dice.choice([0, 255, dice.randrange(256)])
        path.write_bytes(damaged)
        try:
            assert open_picture("a.png").mode == "RGB"
        except UserError as error:
            check_line(error, "a.png")


# What is right ------------------------------------------------------------------------
