"""Pictures that are made to break, overflow or start something: one line each. And what is right
for odd but honest ones: upright, RGB, 8 bits."""

import io
import json
import os
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image
from sieges import OUTSIDE, RAW, besieged, check_line, repelled_stages

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from datasets import DataError, folder

pytestmark = pytest.mark.usefixtures("field")

SPLITS = {"a": "train", "b": "val", "c": "test"}


def noise(size: tuple[int, int] = (40, 30), seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    content = io.BytesIO()
    picture.save(content, kind, **options)
    return content.getvalue()


def place(name: str = "a.png", content: bytes | None = None) -> Path:
    """Three pictures with captions; the first is `name` with this content, or is not there."""
    RAW.mkdir(parents=True)
    files = {"train": name, "val": "b.png", "test": "c.png"}
    lines = [{"image": file, "caption": f"A {s}.", "split": s} for s, file in files.items()]
    (RAW / "all.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for seed, stem in enumerate("bc"):
        noise(seed=seed).save(RAW / f"{stem}.png")
    if content is not None:
        (RAW / name).write_bytes(content)
    return RAW / name


def opened(content: bytes, name: str = "a.png") -> Image.Image:
    place(name, content)
    return folder.pictures(RAW)(name)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes, depth: int = 8, colour: int = 2) -> bytes:
    facts = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(b"IHDR", facts), *chunks, chunk(b"IEND", b"")])


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
    "one byte": b"\x89",
    "text": b"<html>not found</html>",
    "PostScript": POSTSCRIPT,
    "PostScript in a shell of DOS": b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 32, 99) + POSTSCRIPT,
    "a PDF": b"%PDF-1.4\n%%EOF",
    "an SVG": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "an XBM": b"#define a_width 9\n#define a_height 9\nstatic char a_bits[] = {0};",
    "an ICO": saved(noise((32, 32)), "ICO"),
    "a TGA": saved(noise(), "TGA"),
    "a PCX": saved(noise(), "PCX"),
    "an SGI": saved(noise(), "SGI"),
    "a Windows metafile": b"\xd7\xcd\xc6\x9a" + bytes(80),
    "a pickle": b"\x80\x04cpathlib\nPath\n.",
    "a bomb, PNG": png(50_000, 50_000, EMPTY_DATA),
    "a bomb that Pillow only warns of": png(12_000, 12_000, EMPTY_DATA),
    "a bomb, BMP": BMP[:18] + struct.pack("<ii", 60_000, 60_000) + BMP[26:],
    "a bomb, PPM": b"P6 60000 60000 255\n",
    "a bomb, GIF": b"GIF89a" + struct.pack("<HH", 60_000, 60_000) + GIF[10:],
    "a size beyond all": png(2**31 - 1, 2**31 - 1, EMPTY_DATA),
    "a size of nothing": png(0, 0, EMPTY_DATA),
    "a size of nothing, PPM": b"P6 0 0 255\n",
    "a negative size, PPM": b"P6 -9 -9 255\n",
    "no colours, PPM": b"P6 9 9 0\n" + bytes(300),
    "digits without end, PPM": b"P6 " + b"9" * 100_000,
    "no data, PNG": png(40, 30),
    "too little data, PNG": png(40, 30, chunk(b"IDAT", zlib.compress(bytes(100)))),
    "an unknown colour, PNG": png(40, 30, EMPTY_DATA, colour=9),
    "a depth of 200, PNG": png(40, 30, EMPTY_DATA, depth=200),
    "a profile that is a bomb": png(
        *(40, 30, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(48 << 20))))
    ),
    "a text that is a bomb": png(
        *(40, 30, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(48 << 20))), EMPTY_DATA)
    ),
    "a chunk beyond the end": PNG[:33] + struct.pack(">I", 2**31 - 1) + b"IDAT",
    "another checksum": PNG[:-20] + bytes(8) + PNG[-12:],
    "cut off, PNG": PNG[: len(PNG) // 2],
    "cut off, JPEG": JPEG[: len(JPEG) // 2],
    "cut off, WEBP": WEBP[: len(WEBP) // 2],
    "cut off, TIFF": TIFF[: len(TIFF) // 2],
    "cut off, BMP": BMP[: len(BMP) // 2],
    "cut off, GIF": GIF[: len(GIF) // 2],
    "a header alone, JPEG": JPEG[:20],
    "a header alone, PNG": PNG[:33],
    "markers without end, JPEG": b"\xff\xd8" + b"\xff" * 200_000,
    "a size of nothing, JPEG": JPEG.replace(b"\x00\x1e\x00\x28\x03", b"\x00\x00\x00\x00\x03", 1),
    "a directory that points to itself, TIFF": b"II*\0\x08\0\0\0\x00\x00\x08\0\0\0",
    "a directory beyond the end, TIFF": b"II*\0\xff\xff\xff\xff",
    "65,535 entries, TIFF": b"II*\0\x08\0\0\0\xff\xff" + bytes(4000),
    "fractions, TIFF": saved(Image.fromarray(np.full((9, 9), 0.5, np.float32)), "TIFF"),
    "32 bits, TIFF": saved(Image.fromarray(np.full((9, 9), 1 << 20, np.int32)), "TIFF"),
}


@pytest.mark.filterwarnings("ignore")  # as in a stage: Pillow warns of damage before it refuses it
@pytest.mark.parametrize("case", PICTURES)
def test_a_hostile_picture(case):
    place("a.png", PICTURES[case])
    error = repelled_stages("a.png")
    assert "0x" not in error.found


def to_outside(path: Path) -> None:
    noise().save(OUTSIDE / "secret.png")
    path.symlink_to((OUTSIDE / "secret.png").absolute())


def above(path: Path) -> None:
    noise().save(OUTSIDE / "secret.png")
    path.symlink_to("../../../outside/secret.png")


def by_folder(path: Path) -> None:
    noise().save(OUTSIDE / path.name)
    path.parent.symlink_to(OUTSIDE.absolute())


def of_another(path: Path) -> None:
    """The folder that the link names begins like the raw folder."""
    other = RAW.with_name("mine2")
    other.mkdir()
    noise().save(other / "x.png")
    path.symlink_to((other / "x.png").absolute())


LINKS = {
    "to a picture outside": ("a.png", to_outside),
    "by a path above": ("a.png", above),
    "of a folder": ("sub/a.png", by_folder),
    "to a folder of nearly the same name": ("a.png", of_another),
    "to a file of the system": ("a.png", lambda path: path.symlink_to("/etc/passwd")),
    "to a device": ("a.png", lambda path: path.symlink_to("/dev/zero")),
    "to itself": ("a.png", lambda path: path.symlink_to("a.png")),
    "to nothing": ("a.png", lambda path: path.symlink_to("none.png")),
    "no link but a pipe": ("a.png", os.mkfifo),
    "no link but a folder": ("a.png", Path.mkdir),
    "none": ("a.png", lambda path: None),
}


@pytest.mark.parametrize("case", LINKS)
def test_a_link_of_a_picture(case):
    name, make = LINKS[case]
    make(place(name))
    repelled_stages(name)


@pytest.mark.parametrize("name", ["../../../outside/a.png", "/etc/passwd", "a\0.png", "\ud800.png"])
def test_a_name_that_leads_out(name):
    place("a.png", PNG)
    with besieged(), pytest.raises(DataError) as caught:
        folder.pictures(RAW)(name)
    check_line(caught.value, str(RAW))


def test_a_link_that_stays_inside_and_one_of_the_whole_folder_are_welcome():
    path = place("a.png")
    path.symlink_to("b.png")
    RAW.rename("elsewhere")
    assert run_stage("", fetch.configure, fetch.main, ["mine", "--source", "elsewhere"]) == 0
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
        except DataError as error:
            check_line(error, "a.png")


# What is right ---------------------------------------------------------------------------------

TURNS = {  # orientation of EXIF -> how the stored pixels come to stand upright
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: x.swapaxes(0, 1)[:, ::-1],
    7: lambda x: x.swapaxes(0, 1)[::-1, ::-1],
    8: lambda x: x.swapaxes(0, 1)[::-1],
    9: lambda x: x,
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", TURNS)
def test_a_rotated_photograph_is_turned_upright(kind, orientation):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    content = saved(noise(), kind, exif=exif, **options)
    stored = np.asarray(noise())
    if kind == "JPEG":
        stored = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    assert np.array_equal(np.asarray(opened(content)), TURNS[orientation](stored))


def test_prepare_measures_the_upright_picture():
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    place("a.jpg", saved(noise((40, 30)), "JPEG", exif=exif))
    assert run_stage("", fetch.configure, fetch.main, ["mine"]) == 0
    assert run_stage("", prepare.configure, prepare.main, ["mine"]) == 0
    images = prepared_tables.read("mine").images
    assert images[["width", "height"]].values.tolist() == [[30, 40], [40, 30], [40, 30]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exif", [b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM" * 9])
def test_damaged_exif_says_nothing(exif):
    content = saved(noise(), "JPEG", exif=exif)
    assert opened(content).tobytes() == Image.open(io.BytesIO(content)).convert("RGB").tobytes()


ORDINARY = {
    "a JPEG": saved(noise((500, 375)), "JPEG"),
    "a progressive JPEG": saved(noise(), "JPEG", progressive=True, quality=30),
    "a grey JPEG": saved(noise().convert("L"), "JPEG"),
    "a JPEG of CMYK": saved(noise().convert("CMYK"), "JPEG"),
    "a JPEG with a profile": saved(noise(), "JPEG", icc_profile=b"x" * 300, dpi=(72, 72)),
    "a PNG": saved(noise(), "PNG"),
    "a grey PNG": saved(noise().convert("L"), "PNG"),
    "a PNG of a palette": saved(noise().quantize(16), "PNG"),
    "a PNG of one bit": saved(noise().convert("1"), "PNG"),
    "an opaque PNG": saved(noise().convert("RGBA"), "PNG"),
    "a BMP": saved(noise(), "BMP"),
    "a GIF": saved(noise(), "GIF"),
}


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_picture_has_the_pixels_that_pillow_gives(case):
    content = ORDINARY[case]
    expected = Image.open(io.BytesIO(content)).convert("RGB")
    assert opened(content).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_of_grey_are_scaled_to_8(kind):
    values = np.array([[0, 128, 129, 257], [32896, 65406, 65407, 65535]], np.uint16)
    picture = np.asarray(opened(saved(Image.fromarray(values), kind)))
    assert picture[..., 0].tolist() == [[0, 0, 1, 1], [128, 254, 255, 255]]
    assert (picture == picture[..., :1]).all()


def test_12_bits_of_a_ppm_are_scaled_to_8():
    content = b"P5 2 1 4095\n" + struct.pack(">HH", 0, 4095)
    assert np.asarray(opened(content))[..., 0].tolist() == [[0, 255]]


def palette() -> Image.Image:
    picture = Image.new("P", (2, 1))
    picture.putpalette([255, 0, 0, 0, 0, 255])
    picture.putdata([0, 1])
    return picture


def pixels(mode: str, *values: tuple[int, ...]) -> Image.Image:
    picture = Image.new(mode, (len(values), 1))
    picture.putdata(values)
    return picture


SEEN_THROUGH = {  # what is transparent is white
    "RGBA": (pixels("RGBA", (255, 0, 0, 0), (0, 0, 255, 255)), {}, [0, 0, 255]),
    "half": (pixels("RGBA", (255, 0, 0, 0), (0, 0, 255, 128)), {}, [127, 127, 255]),
    "LA": (pixels("LA", (0, 0), (90, 255)), {}, [90, 90, 90]),
    "P": (palette(), {"transparency": 0}, [0, 0, 255]),
    "P, by bytes": (palette(), {"transparency": b"\x00\xff"}, [0, 0, 255]),
    "RGB": (pixels("RGB", (1, 2, 3), (0, 0, 255)), {"transparency": (1, 2, 3)}, [0, 0, 255]),
    "L": (pixels("L", 7, 90), {"transparency": 7}, [90, 90, 90]),
}


@pytest.mark.parametrize("case", SEEN_THROUGH)
def test_what_is_transparent_becomes_white(case):
    picture, options, second = SEEN_THROUGH[case]
    colours = np.asarray(opened(saved(picture, "PNG", **options)))
    assert colours.tolist() == [[[255, 255, 255], second]]


# What prepare tells ----------------------------------------------------------------------------


def prepared(capsys) -> tuple[list[str], list[str]]:
    assert run_stage("", fetch.configure, fetch.main, ["mine"]) == 0
    capsys.readouterr()
    assert run_stage("", prepare.configure, prepare.main, ["mine"]) == 0
    return capsys.readouterr().out.splitlines(), prepared_tables.read("mine").card["notes"]


def test_prepare_says_in_one_line_what_it_read(capsys):
    place("a.png", PNG)
    printed, notes = prepared(capsys)
    assert printed == ["prepare mine: 3 pictures, 3 captions: train 1, val 1, test 1"]
    assert notes == []


def test_prepare_lists_extreme_pictures_and_those_without_a_caption(capsys):
    place("a.png", saved(noise((170, 20)), "PNG"))
    with (RAW / "all.jsonl").open("a") as file:
        for number in range(7):
            row = {"image": f"{number}.png", "split": "unused", "captions": []}
            file.write(f"\n{json.dumps(row)}")
            noise((15, 20)).save(RAW / f"{number}.png")
    printed, notes = prepared(capsys)
    assert printed == [
        "prepare mine: 10 pictures, 3 captions: train 1, val 1, test 1, unused 7",
        *notes,
    ]
    extreme, silent = notes
    assert extreme.startswith("8 pictures have a side of less than 16 or more than 8192 pixels")
    assert "a.png (170 x 20), 0.png (15 x 20)" in extreme and extreme.endswith(" and 3 more.")
    assert silent == "7 images have no caption: 0.png, 1.png, 2.png, 3.png, 4.png and 2 more."
