"""Malformed releases of Flickr30k Entities: each fault is one line that names file and item."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from entities_release import (
    ALL_IDS,
    IDS,
    WIDTH,
    boxed,
    flagged,
    named,
    pack,
    sentences_of,
    with_objects,
    write_loose,
    write_zipped,
    xml_of,
)
from refusals import refused

from datasets import flickr30k_entities
from datasets.flickr30k_entities import Options


@pytest.fixture
def loose(tmp_path) -> Path:
    """The release with its archive extracted, and the photographs."""
    write_loose(tmp_path / "loose")
    return tmp_path / "loose"


@pytest.fixture
def zipped(tmp_path, loose) -> Path:
    """The release as it is downloaded, and the photographs as .zip."""
    write_zipped(tmp_path / "zipped", loose)
    return tmp_path / "zipped"


# Malformed releases ------------------------------------------------------------------------


def rewrite(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Replaces the first `old` in a file of the raw folder."""

    def spoil(raw: Path) -> None:
        text = (raw / name).read_text(encoding="utf-8")
        assert old in text
        (raw / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return spoil


def fill(name: str, content: str | bytes) -> Callable[[Path], int]:
    content = content.encode() if isinstance(content, str) else content
    return lambda raw: (raw / name).write_bytes(content)


def cut(name: str) -> Callable[[Path], int]:
    return lambda raw: (raw / name).write_bytes((raw / name).read_bytes()[:-20])


def remove(name: str) -> Callable[[Path], None]:
    return lambda raw: (raw / name).unlink()


FOURTH = "Nobody is named in picture 1 - caf\u00e9 \u2028 .\n"
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><annotation>&a;</annotation>'
NO_ENTITIES = "XML without DOCTYPE, ENTITY and zero bytes"
NUMBER = "the id of another image, a number"
INSIDE = "a box within the picture of 60 x 40 pixels"
MALFORMED = {  # case -> fault, and where, expected, found
    "no list": (remove("val.txt"), "val.txt", "a text file", "nothing"),
    "no such sentences": (remove(sentences_of(1)), sentences_of(1), "of train.txt", "nothing"),
    "no such boxes": (remove(xml_of(5)), xml_of(5), "an image of train.txt", "nothing"),
    "image without sentences": (
        rewrite("test.txt", IDS["test"][1], "123"),
        *("Sentences/123.txt", "the annotations of an image of test.txt", "nothing"),
    ),
    "no number": (
        rewrite("test.txt", IDS["test"][1], "12.jpg"),
        *("test.txt:2", NUMBER, "'12.jpg'"),
    ),
    "outside": (rewrite("test.txt", IDS["test"][0], "../1"), "test.txt:1", NUMBER, "'../1'"),
    "two splits": (
        rewrite("test.txt", IDS["test"][2], IDS["train"][0]),
        *("test.txt:3", NUMBER, f"'{IDS['train'][0]}', already in train"),
    ),
    "four sentences": (
        rewrite(sentences_of(1), FOURTH, ""),
        *(sentences_of(1), "5 sentences, one per line", "4"),
    ),
    "six sentences": (
        rewrite(sentences_of(1), FOURTH, "One .\nMore .\n"),
        *(sentences_of(1), "5 sentences, one per line", "6"),
    ),
    "blank sentence": (
        rewrite(sentences_of(1), FOURTH, " \t\n"),
        *(f"{sentences_of(1)}:4", "a sentence", "a blank line"),
    ),
    "sentences not UTF-8": (
        fill(sentences_of(6), b"\xff\n" * 5),
        *(sentences_of(6), "UTF-8 text", "damage"),
    ),
    "no sentences": (fill(sentences_of(6), b""), sentences_of(6), "5 sentences", "1"),
    "truncated XML": (cut(xml_of(2)), xml_of(2), "whole XML", "damage"),
    "no XML": (fill(xml_of(2), b""), xml_of(2), "whole XML", "damage"),
    "entities": (fill(xml_of(2), BOMB), xml_of(2), NO_ENTITIES, "one of them"),
    "outside document type": (
        fill(xml_of(2), f'<!DOCTYPE x SYSTEM "x.dtd">{with_objects()}'),
        *(xml_of(2), NO_ENTITIES, "one of them"),
    ),
    "entities in UTF-16": (
        fill(xml_of(2), BOMB.encode("utf-16")),
        *(xml_of(2), "UTF-8 text", "damage"),
    ),
    "entities in UTF-16 without mark": (
        fill(xml_of(2), BOMB.encode("utf-16-be")),
        *(xml_of(2), NO_ENTITIES, "one of them"),
    ),
    "no size": (
        fill(xml_of(2), b"<annotation/>"),
        *(f"{xml_of(2)}: size", "the picture's width and height", "nothing"),
    ),
    "no width": (
        rewrite(xml_of(2), ">60</width>", "></width>"),
        *(f"{xml_of(2)}: width", "a whole number", "''"),
    ),
    "no coordinate": (
        rewrite(xml_of(2), "<xmin>15</xmin>", ""),
        *(f"{xml_of(2)}: object 2: xmin", "a whole number", "None"),
    ),
    "fraction": (
        rewrite(xml_of(2), "<xmin>15<", "<xmin>15.5<"),
        *(f"{xml_of(2)}: object 2: xmin", "a whole number", "'15.5'"),
    ),
    "backwards": (
        rewrite(xml_of(2), "<xmax>40<", "<xmax>14<"),
        *(f"{xml_of(2)}: object 2: box", "ends after it begins", "xmin ymin xmax ymax 15 2 14 33"),
    ),
    "two pixels to the left": (
        rewrite(xml_of(2), "<xmin>15<", "<xmin>-1<"),
        *(f"{xml_of(2)}: object 2: box", INSIDE, "xmin ymin xmax ymax -1 2 40 33"),
    ),
    "two pixels below": (
        rewrite(xml_of(2), "<ymax>33<", "<ymax>42<"),
        *(f"{xml_of(2)}: object 2: box", INSIDE, "xmin ymin xmax ymax 15 2 40 42"),
    ),
    "a pixel wide, and outside": (
        fill(xml_of(2), with_objects(boxed([1], (WIDTH + 1, 2, WIDTH + 1, 9)))),
        *(f"{xml_of(2)}: object 1: box", INSIDE, "xmin ymin xmax ymax 61 2 61 9"),
    ),
    "no object": (
        fill(xml_of(2), with_objects()),
        *(xml_of(2), "objects, as the sentences name 'Two young guys'", "none"),
    ),
    "no name": (
        rewrite(xml_of(2), "<name>21</name>", ""),
        *(f"{xml_of(2)}: object 1: name", "one or more chain numbers", "[]"),
    ),
    "name is no number": (
        rewrite(xml_of(2), "<name>21</name>", "<name>dog</name>"),
        *(f"{xml_of(2)}: object 1: name", "one or more chain numbers", "['dog']"),
    ),
    "object without box": (
        fill(xml_of(2), with_objects(flagged(1, scene=1), f"{named([2])}\t</object>\n")),
        *(f"{xml_of(2)}: object 2", "a bndbox, or scene or nobndbox", "neither"),
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_releases_stop_with_one_line(loose, case):
    spoil, *fields = MALFORMED[case]
    spoil(loose)
    with refused(*fields):
        flickr30k_entities.read(loose)


def test_a_release_without_any_box_is_refused(loose):
    for path in (loose / "Annotations").iterdir():
        path.write_text(with_objects(flagged(1, scene=1)))
    with refused(loose, "phrases of Sentences with boxes in Annotations", "not a single one"):
        flickr30k_entities.read(loose)


def test_nothing_there(tmp_path, loose):
    with refused("train.txt", "a text file", "nothing"):
        flickr30k_entities.inventory(tmp_path / "nowhere")
    for name in ("Sentences", "Annotations"):
        (loose / name).rename(loose / f"other {name}")
    with refused(loose, "annotations.zip, or folders Sentences", "no annotations"):
        flickr30k_entities.inventory(loose)


@pytest.mark.parametrize("line", ["99 1", f"{ALL_IDS[0]} 6", f"{ALL_IDS[0]} 0", "12,3", ALL_IDS[0]])
def test_bad_line_of_unrelated_captions(loose, line):
    path = loose / "UNRELATED_CAPTIONS"
    path.write_text(f"{path.read_text()}\n{line}\n")
    flickr30k_entities.read(loose)
    with refused("UNRELATED_CAPTIONS:4", "a listed image id", repr(line)):
        flickr30k_entities.read(loose, Options(unrelated=False))
    path.unlink()
    with refused("UNRELATED_CAPTIONS", "a text file", "nothing"):
        flickr30k_entities.read(loose, Options(unrelated=False))


@pytest.mark.parametrize("name", ["../evil.xml", "/etc/evil", "Annotations/../../b.xml", "..\\b"])
@pytest.mark.parametrize("archive", ["annotations.zip", "flickr30k-images.zip"])
def test_archive_with_a_member_outside_is_refused(zipped, archive, name):
    with zipfile.ZipFile(zipped / archive, "a") as file:
        file.writestr(name, b"x")
    with refused(archive, "members inside it", f"{name!r}, outside"):
        flickr30k_entities.read(zipped)
        flickr30k_entities.pictures(zipped)


def test_archive_that_is_not_whole(zipped):
    content = (zipped / "annotations.zip").read_bytes()
    (zipped / "annotations.zip").write_bytes(content[:-30])
    with refused("annotations.zip", "a whole zip archive", "damage"):
        flickr30k_entities.read(zipped)


def test_archive_with_a_damaged_member(zipped):
    content = bytearray((zipped / "annotations.zip").read_bytes())
    with zipfile.ZipFile(zipped / "annotations.zip") as file:
        start = file.getinfo(xml_of(3)).header_offset
    for position in range(start + 90, start + 100):  # past the header, in what is compressed
        content[position] ^= 255
    (zipped / "annotations.zip").write_bytes(bytes(content))
    with refused(f"annotations.zip/{xml_of(3)}", "UTF-8 text", "damage"):
        flickr30k_entities.read(zipped)


def test_archive_without_a_member(zipped, loose):
    (loose / xml_of(3)).unlink()
    pack(zipped / "annotations.zip", loose, ("Sentences", "Annotations"))
    with refused(f"annotations.zip/{xml_of(3)}", "the annotations of an image", "nothing"):
        flickr30k_entities.read(zipped)
