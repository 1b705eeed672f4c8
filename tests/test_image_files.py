"""What is right for odd but honest images: upright, RGB, 8 bits, white behind what is
clear."""

import io
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import ExifTags, Image
from refusals import refused

from benchmark.readers.image_files import Archive, Folder, upright_rgb

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


def read(image: Image.Image, kind: str, **options: object) -> np.ndarray:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return np.asarray(upright_rgb(file, "a"))


def test_names_are_those_of_one_folder_of_an_archive(tmp_path):
    files = ["in/b.jpg", "in/a.jpg", "in/.c.jpg", "in/d.png", "in/more/e.jpg", "f.jpg"]
    with ZipFile(tmp_path / "a.zip", "w") as zipped:
        for file in files:
            zipped.writestr(file, b"")
    assert Archive(tmp_path / "a.zip", "in").names() == ["a.jpg", "b.jpg"]


def test_a_link_to_a_folder_whose_name_begins_alike_leads_out(tmp_path):
    for name in ("raw", "raw2"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw2/b.jpg").write_bytes(b"")
    (tmp_path / "raw/a.jpg").symlink_to(tmp_path / "raw2/b.jpg")
    with refused("raw/a.jpg", "in this folder", "a link to"):
        Folder(tmp_path / "raw").path_of("a.jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", TURNS)
def test_a_rotated_photograph_is_turned_upright(kind, orientation):
    noise = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    exif = Image.Exif()
    stored = read(Image.fromarray(noise), kind)  # with the losses of JPEG
    exif[ExifTags.Base.Orientation] = orientation
    turned = read(Image.fromarray(noise), kind, exif=exif)
    assert np.array_equal(turned, TURNS[orientation](stored))


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_of_grey_are_scaled_to_8(kind):
    values = np.array([[0, 128, 129, 257], [32896, 65406, 65407, 65535]], np.uint16)
    picture = read(Image.fromarray(values), kind)
    assert picture[..., 0].tolist() == [[0, 0, 1, 1], [128, 254, 255, 255]]
    assert (picture == picture[..., :1]).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_becomes_white(mode):
    image = Image.new(mode, (2, 1))
    if mode == "P":
        image.putpalette([255, 0, 0, 0, 0, 255])
    clear, second = {
        "RGBA": ((255, 0, 0, 0), (0, 0, 255, 255)),
        "LA": ((0, 0), (90, 255)),
    }.get(mode, (0, 1))
    image.putpixel((0, 0), clear)
    image.putpixel((1, 0), second)
    colours = read(image, "PNG", **({"transparency": 0} if mode == "P" else {}))
    blue = [90, 90, 90] if mode == "LA" else [0, 0, 255]
    assert colours.tolist() == [[[255, 255, 255], blue]]


def test_what_is_transparent_in_16_bits_becomes_white():
    values = np.array([[7, 0, 65535]], np.uint16)
    colours = read(Image.fromarray(values), "PNG", transparency=7)
    assert colours[0, :, 0].tolist() == [255, 0, 255]


def test_numbers_below_0_are_no_colours():
    file = io.BytesIO()
    Image.fromarray(np.array([[-5, 9]], np.int32)).save(file, "TIFF")
    with refused("a", found="32 bits"):
        upright_rgb(file, "a")
