"""The reader of Flickr30k Entities, on sixteen drawn pictures in the layout of the release."""

import dataclasses
import re
import zipfile
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

import benchmark.papers.printed_tables
from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameters import DatasetSettings
from benchmark.season.parameter_files import write_params
from datasets import DataError, flickr30k_entities
from datasets.shared import entities
from seasons import params_of

WIDTH, HEIGHT = 60, 40
COUNTS = {"train": 9, "val": 3, "test": 4}
IDS = {
    split: [str(1000092795 * (k + 1) + first) for k in range(COUNTS[split])]
    for first, split in enumerate(COUNTS)
}
ALL_IDS = [image_id for ids in IDS.values() for image_id in ids]
SHARED = 19  # x of the third person's shirt, which belongs to two chains
FOUND = [  # sentence, words, whose chain: the phrases that have boxes
    (0, "Two young guys", "people"),
    (0, "red , `` loud '' shirts", "shirts"),
    (1, "A man's", "people"),
    (1, "shirt", "shirts"),
    (2, "the 2 men, both", "people"),
    (4, "Shirts", "shirts"),
]


def chains(row: int) -> dict[str, int]:
    """Chains are numbered on through all images."""
    return {what: 10 * row + k for k, what in enumerate(("people", "shirts", "yard", "joke"), 1)}


def sentence_lines(row: int) -> list[str]:
    people, shirts, yard, joke = chains(row).values()
    return [
        f"[/EN#{people}/people Two young guys] in [/EN#{shirts}/clothing red , `` loud '' shirts]"
        f" stand in [/EN#{yard}/scene the yard] .",
        f"[/EN#{people}/people A man's] [/EN#{shirts}/clothing shirt] is picture {row} .",
        f"[/EN#0/notvisual It] is [/EN#{joke}/other a joke] to "
        f"[/EN#{people}/people/other the 2 men, both] .",
        f"Nobody is named in picture {row} - caf\u00e9 \u2028 .",
        f"[/EN#{shirts}/clothing Shirts]",
    ]


def boxes(row: int) -> list[tuple[tuple[str, ...], tuple[int, int, int, int]]]:
    """Whose, and xmin ymin xmax ymax: counted from 1, the last pixel included."""
    return [
        (("people",), (1 + row % 5, 3, 12, 30)),
        (("people",), (15, 2, 40, 31 + row % 4)),
        (("shirts",), (2, 10, 11, 20)),
        (("shirts", "people"), (SHARED, 12, WIDTH, 20)),
    ]


def boxed(names: Iterable[object], bounds: tuple[object, ...]) -> str:
    inner = "".join(
        f"\t\t\t<{side}>{value}</{side}>\n"
        for side, value in zip(("xmin", "ymin", "xmax", "ymax"), bounds, strict=True)
    )
    return f"{named(names)}\t\t<bndbox>\n{inner}\t\t</bndbox>\n\t</object>\n"


def flagged(name: int, scene: int) -> str:
    flags = f"\t\t<scene>{scene}</scene>\n\t\t<nobndbox>{1 - scene}</nobndbox>\n"
    return f"{named([name])}{flags}\t</object>\n"


def named(names: Iterable[object]) -> str:
    return "\t<object>\n" + "".join(f"\t\t<name>{name}</name>\n" for name in names)


def xml(row: int) -> str:
    number = chains(row)
    objects = [boxed([number[who] for who in names], bounds) for names, bounds in boxes(row)]
    objects += [flagged(number["yard"], scene=1), flagged(number["joke"], scene=0)]
    return document(ALL_IDS[row], objects)


def document(image_id: str, objects: list[str]) -> str:
    size = f"\t\t<width>{WIDTH}</width>\n\t\t<height>{HEIGHT}</height>\n\t\t<depth>3</depth>\n"
    head = f"\t<filename>{image_id}.jpg</filename>\n\t<size>\n{size}\t</size>\n"
    return f"<annotation>\n{head}{''.join(objects)}</annotation>"


def expected_box(row: int, who: str) -> tuple[float, float, float, float]:
    """By counting the pixels, one by one, between the outermost boxes of the chain."""
    columns, rows = set(), set()
    for names, (xmin, ymin, xmax, ymax) in boxes(row):
        if who in names:
            columns |= set(range(xmin, xmax + 1))
            rows |= set(range(ymin, ymax + 1))
    return (min(columns) - 1, min(rows) - 1, max(columns), max(rows))


@pytest.fixture
def loose(tmp_path) -> Path:
    """The release with its archive extracted, and the photographs."""
    raw = tmp_path / "loose"
    for name in ("Sentences", "Annotations", "flickr30k-images"):
        (raw / name).mkdir(parents=True)
    for split, ids in IDS.items():
        (raw / f"{split}.txt").write_text("\n".join(ids) + "\n" * (split != "train"))
    for row, image_id in enumerate(ALL_IDS):
        text = "\n".join(sentence_lines(row)) + "\n"
        (raw / "Sentences" / f"{image_id}.txt").write_bytes(text.encode())
        (raw / "Annotations" / f"{image_id}.xml").write_text(xml(row))
        picture = Image.new("RGB", (WIDTH, HEIGHT), (15 * row, 255 - 15 * row, 0))
        picture.save(raw / "flickr30k-images" / f"{image_id}.jpg")
    unrelated = ["# format: <imageID> <sentence number>", f"{ALL_IDS[3]} 5", f"{ALL_IDS[7]} 1"]
    (raw / "UNRELATED_CAPTIONS").write_text("\n".join(unrelated))
    return raw


@pytest.fixture
def zipped(tmp_path, loose) -> Path:
    """The release as it is downloaded, and the photographs as .zip."""
    raw = tmp_path / "zipped"
    raw.mkdir()
    for name in ("train.txt", "val.txt", "test.txt", "UNRELATED_CAPTIONS"):
        (raw / name).write_bytes((loose / name).read_bytes())
    pack(raw / "annotations.zip", loose, ("Sentences", "Annotations"))
    pack(raw / "flickr30k-images.zip", loose, ("flickr30k-images",))
    return raw


def pack(archive: Path, root: Path, folders: Iterable[str]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(path for name in folders for path in (root / name).iterdir()):
            file.write(path, path.relative_to(root).as_posix())
            file.writestr(f"__MACOSX/{path.relative_to(root).as_posix()}", b"fork")


@pytest.fixture(params=["loose", "zipped"])
def raw(request) -> Path:
    return request.getfixturevalue(request.param)


# What is read ------------------------------------------------------------------------------


def test_images_are_those_of_the_lists_in_their_order(raw):
    images = flickr30k_entities.read(raw).images
    assert images.columns.tolist() == ["image_id", "file", "split", "group"]
    assert images["image_id"].tolist() == ALL_IDS
    assert images["split"].tolist() == [split for split, ids in IDS.items() for _ in ids]
    assert images["file"].tolist() == [f"{image_id}.jpg" for image_id in ALL_IDS]
    assert images["group"].tolist() == ALL_IDS


def test_captions_are_the_sentences_without_markup(raw):
    captions = flickr30k_entities.read(raw).captions
    assert captions["caption_id"].tolist() == [
        f"{i}.jpg#{k}" for i, k in product(ALL_IDS, range(5))
    ]
    assert captions["image_id"].tolist() == [i for i, _ in product(ALL_IDS, range(5))]
    assert captions["text"].tolist()[10:15] == [
        "Two young guys in red , `` loud '' shirts stand in the yard .",
        "A man's shirt is picture 2 .",
        "It is a joke to the 2 men, both .",
        "Nobody is named in picture 2 - caf\u00e9 \u2028 .",
        "Shirts",
    ]


def test_regions_are_the_phrases_of_chains_with_boxes(raw):
    regions = flickr30k_entities.read(raw).regions
    expected = [
        (
            image_id,
            f"{image_id}.jpg#{k}",
            words,
            *expected_box(row, who),
            f"{image_id}/{chain[who]}",
        )
        for row, image_id in enumerate(ALL_IDS)
        for chain in [chains(row)]
        for k, words, who in FOUND
    ]
    assert list(regions.itertuples(index=False, name=None)) == expected
    columns = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
    assert regions.columns.tolist() == columns


def test_a_chain_has_the_union_of_its_boxes_and_an_object_may_belong_to_two(loose):
    regions = flickr30k_entities.read(loose).regions
    first = regions.iloc[0]
    # people: (1, 3, 12, 30), (15, 2, 40, 31) and, with the shirts, (19, 12, 60, 20)
    assert first[["x0", "y0", "x1", "y1"]].tolist() == [0, 1, 60, 31]
    second = regions.iloc[1]  # shirts: (2, 10, 11, 20) and (19, 12, 60, 20)
    assert second[["x0", "y0", "x1", "y1"]].tolist() == [1, 9, 60, 20]


def test_phrases_stand_in_their_captions(loose):
    tables = flickr30k_entities.read(loose)
    text = tables.captions.set_index("caption_id")["text"]
    assert all(row.phrase in text[row.caption_id] for row in tables.regions.itertuples())


def test_what_is_left_out_is_counted(raw):
    notes = flickr30k_entities.read(raw).notes
    assert "16 phrases name nothing visible and are no regions." in notes
    assert "32 phrases name the scene or what has no box; no regions." in notes
    assert len(notes) == 3  # nothing is said of what does not occur


def test_archive_and_folders_give_the_same_tables(loose, zipped):
    one, other = flickr30k_entities.read(loose), flickr30k_entities.read(zipped)
    for name in ("images", "captions", "regions"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))
    assert one.notes == other.notes


def test_unrelated_captions_can_be_left_out_with_their_phrases(raw):
    whole = flickr30k_entities.read(raw)
    tables = flickr30k_entities.read(raw, unrelated=False)
    lost = {f"{ALL_IDS[3]}.jpg#4", f"{ALL_IDS[7]}.jpg#0"}  # sentences are counted from 1 there
    assert set(whole.captions["caption_id"]) - set(tables.captions["caption_id"]) == lost
    assert len(whole.captions) - len(tables.captions) == 2
    assert not set(tables.regions["caption_id"]) & lost
    assert len(whole.regions) - len(tables.regions) == 1 + 2
    assert "2 captions that UNRELATED_CAPTIONS lists are left out." in tables.notes


def test_without_pictures_the_files_have_no_name(zipped):
    whole = flickr30k_entities.read(zipped)
    (zipped / "flickr30k-images.zip").unlink()
    tables = flickr30k_entities.read(zipped, with_pictures=False)
    assert set(tables.images["file"]) == {""}
    pd.testing.assert_frame_equal(tables.regions, whole.regions)
    with pytest.raises(DataError, match="no picture; place flickr30k-images/ .*drop the option"):
        flickr30k_entities.pictures(zipped, with_pictures=False)("")
    for function in (flickr30k_entities.inventory, flickr30k_entities.pictures):
        with pytest.raises(DataError, match="no pictures; expected flickr30k-images/ or"):
            function(zipped)


def test_pictures_are_the_same_from_both_layouts(loose, zipped):
    packed, folder = flickr30k_entities.pictures(zipped), flickr30k_entities.pictures(loose)
    for image_id in ALL_IDS[::5]:
        picture = packed(f"{image_id}.jpg")
        assert (picture.mode, picture.size) == ("RGB", (WIDTH, HEIGHT))
        assert picture.tobytes() == folder(f"{image_id}.jpg").tobytes()


def names(paths: list[Path], raw: Path) -> list[str]:
    return sorted(path.relative_to(raw).as_posix() for path in paths)


def test_inventory(loose, zipped):
    lists = ["train.txt", "val.txt", "test.txt"]
    archives = ["annotations.zip", "flickr30k-images.zip"]
    assert names(flickr30k_entities.inventory(zipped), zipped) == sorted(archives + lists)
    related = flickr30k_entities.inventory(zipped, unrelated=False, with_pictures=False)
    assert names(related, zipped) == sorted([archives[0], *lists, "UNRELATED_CAPTIONS"])
    kinds = ("Sentences/{}.txt", "Annotations/{}.xml", "flickr30k-images/{}.jpg")
    every = [kind.format(image_id) for kind, image_id in product(kinds, ALL_IDS)]
    assert names(flickr30k_entities.inventory(loose), loose) == sorted(every + lists)


def test_card():
    card = flickr30k_entities.card()
    assert card.expected_images == {"train": 29783, "val": 1000, "test": 1000}
    assert sum(card.expected_captions.values()) == 158915
    related = flickr30k_entities.card(unrelated=False)
    assert sum(related.expected_captions.values()) == 158915 - 21
    assert related.split == card.split and card.form and card.raw_gib > 4
    assert "UNRELATED_CAPTIONS" in related.checklist[-1]
    features = flickr30k_entities.card(with_pictures=False)
    assert not features.form and "images" not in features.obtain + "".join(features.checklist)
    assert {remote.name for remote in card.remote} >= {"annotations.zip", "test.txt"}


def test_the_split_has_the_name_that_the_paper_uses():
    papers = Path(benchmark.papers.printed_tables.__file__).parent
    paper = yaml.safe_load((papers / "two_branch.yaml").read_text(encoding="utf-8"))
    assert flickr30k_entities.card().split == paper["paper"]["splits"]["flickr30k_entities"]


# Boxes -------------------------------------------------------------------------------------


def with_objects(*objects: str) -> str:
    return document("1", list(objects))


def half_open(*bounds: int) -> tuple[int, ...]:
    """The box that the reader makes of one in XML."""
    return entities.parse_annotation(with_objects(boxed([7], bounds)), "x").unions["7"]


def plain_iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide, high = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    shared = max(wide, 0) * max(high, 0)
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (a, b)]
    return shared / (sum(areas) - shared)


def pixels(xmin: int, ymin: int, xmax: int, ymax: int) -> set[tuple[int, int]]:
    return set(product(range(xmin, xmax + 1), range(ymin, ymax + 1)))


@pytest.mark.parametrize(
    ("a", "b", "iou"),
    [
        ((1, 1, 10, 10), (6, 1, 15, 10), 50 / 150),
        ((1, 1, 10, 10), (1, 1, 5, 10), 0.5),  # without the +1 it would be 36 / 81
        ((1, 1, 1, 1), (1, 1, 2, 1), 0.5),
        ((1, 1, 10, 10), (11, 1, 20, 10), 0.0),
        ((3, 4, 3, 4), (3, 4, 3, 4), 1.0),
    ],
)
def test_plain_iou_of_the_boxes_is_the_inclusive_iou_of_the_release(a, b, iou):
    assert plain_iou(half_open(*a), half_open(*b)) == iou
    assert len(pixels(*a) & pixels(*b)) / len(pixels(*a) | pixels(*b)) == iou


def test_inclusive_iou_on_many_boxes():
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, y = (np.sort(rng.integers(1, side + 1, (2, 2))) for side in (WIDTH, HEIGHT))
        a, b = ((x[k, 0], y[k, 0], x[k, 1], y[k, 1]) for k in (0, 1))
        iou = len(pixels(*a) & pixels(*b)) / len(pixels(*a) | pixels(*b))
        assert plain_iou(half_open(*a), half_open(*b)) == pytest.approx(iou)


def test_a_box_of_the_whole_picture():
    assert half_open(1, 1, WIDTH, HEIGHT) == (0, 0, WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("bounds", "clipped"),
    [
        ((0, 0, 5, 5), (0, 0, 5, 5)),
        ((2, 2, WIDTH + 1, HEIGHT + 1), (1, 1, WIDTH, HEIGHT)),
    ],
)
def test_a_box_one_pixel_outside_is_clipped_and_noted(loose, bounds, clipped):
    path = loose / "Annotations" / f"{ALL_IDS[0]}.xml"
    path.write_text(with_objects(boxed([chains(0)["people"]], bounds)))
    tables = flickr30k_entities.read(loose)
    assert tables.regions.iloc[0][["x0", "y0", "x1", "y1"]].tolist() == list(clipped)
    assert any(note.startswith("1 boxes reached a pixel over the border") for note in tables.notes)


def test_a_chain_with_a_box_and_a_scene_flag_has_the_box():
    found = entities.parse_annotation(with_objects(flagged(7, 1), boxed([7], (1, 1, 2, 2))), "x")
    assert found.unions == {"7": (0, 0, 2, 2)} and found.boxless == set()


def test_chains_that_the_xml_does_not_know_are_noted(loose):
    path = loose / "Annotations" / f"{ALL_IDS[2]}.xml"
    path.write_text(with_objects(boxed([chains(2)["shirts"]], (1, 1, 9, 9))))
    tables = flickr30k_entities.read(loose)
    assert "5 phrases have a chain that their XML does not know; no regions." in tables.notes
    words = tables.regions.loc[tables.regions["image_id"] == ALL_IDS[2], "phrase"]
    assert words.tolist() == ["red , `` loud '' shirts", "shirt", "Shirts"]


def test_an_image_without_objects_whose_sentences_name_nothing_visible_is_noted(loose):
    (loose / xml_of(2)).write_text(with_objects())
    lines = "[/EN#0/notvisual It] is here .\n" + "Nobody is named .\n" * 4
    (loose / sentences_of(2)).write_text(lines)
    tables = flickr30k_entities.read(loose)
    assert "1 images have an XML without any object." in tables.notes
    assert ALL_IDS[2] not in set(tables.regions["image_id"])
    assert ALL_IDS[2] in set(tables.images["image_id"])


# Markup ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text", "phrases"),
    [
        ("No markup .", "No markup .", []),
        ("[/EN#12/people A]", "A", [("A", "12")]),
        ("[/EN#1/people A][/EN#2/other b]", "Ab", [("A", "1"), ("b", "2")]),
        ("[/EN#1/people/animals/other A dog]'s", "A dog's", [("A dog", "1")]),
        ("[/EN#1/people a - b / c , d .] .", "a - b / c , d . .", [("a - b / c , d .", "1")]),
        ("[/EN#1/people  A  man ] .", " A  man  .", [("A  man", "1")]),
        ("A [sic] sign ] [/EN#3/other x[1] .", "A [sic] sign ] x[1 .", [("x[1", "3")]),
    ],
)
def test_markup(line, text, phrases):
    assert entities.parse_sentence(line, "x") == (text, tuple(phrases))


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("[/EN#1/people A man runs .", "/EN#1/people"),
        ("[/EN#1/people A man in [/EN#2/clothing a shirt] runs .", "/EN#2/clothing"),
        ("[/EN#1/people A man in [/EN#2/clothing a shirt]] runs .", "/EN#2/clothing"),
        ("[/EN#1/people ] runs .", "/EN#1/people"),
        ("[/EN#1/people] runs .", "/EN#1/people"),
        ("[/EN#x/people A man] runs .", "/EN#x/people"),
        ("[/EN#/people A man] runs .", "/EN#/people"),
    ],
)
def test_bad_markup(loose, line, item):
    lines = sentence_lines(4)
    lines[2] = line
    (loose / "Sentences" / f"{ALL_IDS[4]}.txt").write_text("\n".join(lines))
    place = re.escape(f"Sentences/{ALL_IDS[4]}.txt:3: [{item}")
    with pytest.raises(DataError, match=place) as error:
        flickr30k_entities.read(loose)
    assert "\n" not in str(error.value)


# Malformed releases ------------------------------------------------------------------------


def sentences_of(row: int) -> str:
    return f"Sentences/{ALL_IDS[row]}.txt"


def xml_of(row: int) -> str:
    return f"Annotations/{ALL_IDS[row]}.xml"


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
MALFORMED = {
    "no list": (remove("val.txt"), "val.txt: not found"),
    "no such sentences": (remove(sentences_of(1)), f"{sentences_of(1)}: not found"),
    "no such boxes": (remove(xml_of(5)), f"{xml_of(5)}: not found, but its image is in train.txt"),
    "image without sentences": (
        rewrite("test.txt", IDS["test"][1], "123"),
        "Sentences/123.txt: not found, but its image is in test.txt",
    ),
    "no number": (rewrite("test.txt", IDS["test"][1], "12.jpg"), "test.txt:2: '12.jpg': not a num"),
    "outside": (rewrite("test.txt", IDS["test"][0], "../1"), "test.txt:1: '../1': not a number"),
    "two splits": (
        rewrite("test.txt", IDS["test"][2], IDS["train"][0]),
        f"test.txt:3: '{IDS['train'][0]}': already in train",
    ),
    "four sentences": (rewrite(sentences_of(1), FOURTH, ""), f"{sentences_of(1)}: expected 5 sent"),
    "six sentences": (
        rewrite(sentences_of(1), FOURTH, "One .\nMore .\n"),
        f"{sentences_of(1)}: expected 5 sentences, a line each, found 6",
    ),
    "blank sentence": (rewrite(sentences_of(1), FOURTH, " \t\n"), f"{sentences_of(1)}:4: expected"),
    "sentences not UTF-8": (fill(sentences_of(6), b"\xff\n" * 5), f"{sentences_of(6)}: damaged"),
    "no sentences": (fill(sentences_of(6), b""), f"{sentences_of(6)}: expected 5 sentences"),
    "truncated XML": (cut(xml_of(2)), f"{xml_of(2)}: not whole XML"),
    "no XML": (fill(xml_of(2), b""), f"{xml_of(2)}: not whole XML"),
    "entities": (fill(xml_of(2), BOMB), f"{xml_of(2)}: has a DOCTYPE, an ENTITY or zero bytes"),
    "outside document type": (
        fill(xml_of(2), f'<!DOCTYPE x SYSTEM "x.dtd">{with_objects()}'),
        f"{xml_of(2)}: has a DOCTYPE, an ENTITY or zero bytes",
    ),
    "entities in UTF-16": (fill(xml_of(2), BOMB.encode("utf-16")), f"{xml_of(2)}: damaged"),
    "entities in UTF-16 without mark": (
        fill(xml_of(2), BOMB.encode("utf-16-be")),
        f"{xml_of(2)}: has a DOCTYPE, an ENTITY or zero bytes",
    ),
    "no size": (fill(xml_of(2), b"<annotation/>"), f"{xml_of(2)}: no size; expected"),
    "no width": (rewrite(xml_of(2), ">60</width>", "></width>"), f"{xml_of(2)}: width: expected a"),
    "no coordinate": (
        rewrite(xml_of(2), "<xmin>15</xmin>", ""),
        f"{xml_of(2)}: object 2: xmin: expected a whole number, found None",
    ),
    "fraction": (
        rewrite(xml_of(2), "<xmin>15<", "<xmin>15.5<"),
        f"{xml_of(2)}: object 2: xmin: expected a whole number, found '15.5'",
    ),
    "backwards": (
        rewrite(xml_of(2), "<xmax>40<", "<xmax>14<"),
        f"{xml_of(2)}: object 2: box 15 2 14 33 (xmin ymin xmax ymax): ends before it begins",
    ),
    "two pixels to the left": (
        rewrite(xml_of(2), "<xmin>15<", "<xmin>-1<"),
        f"{xml_of(2)}: object 2: box -1 2 40 33 (xmin ymin xmax ymax) reaches outside",
    ),
    "two pixels below": (
        rewrite(xml_of(2), "<ymax>33<", "<ymax>42<"),
        f"{xml_of(2)}: object 2: box 15 2 40 42 (xmin ymin xmax ymax) reaches outside",
    ),
    "a pixel wide, and outside": (
        fill(xml_of(2), with_objects(boxed([1], (WIDTH + 1, 2, WIDTH + 1, 9)))),
        f"{xml_of(2)}: object 1: box 61 2 61 9 (xmin ymin xmax ymax) reaches outside",
    ),
    "no object": (
        fill(xml_of(2), with_objects()),
        f"{xml_of(2)}: expected objects, as the sentences name 'Two young guys', found none",
    ),
    "no name": (
        rewrite(xml_of(2), "<name>21</name>", ""),
        f"{xml_of(2)}: object 1: name: expected one or more chain numbers, found []",
    ),
    "name is no number": (
        rewrite(xml_of(2), "<name>21</name>", "<name>dog</name>"),
        f"{xml_of(2)}: object 1: name: expected one or more chain numbers, found ['dog']",
    ),
    "object without box": (
        fill(xml_of(2), with_objects(flagged(1, scene=1), f"{named([2])}\t</object>\n")),
        f"{xml_of(2)}: object 2: expected a bndbox, or scene or nobndbox, found neither",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_releases_stop_with_one_line(loose, case):
    spoil, message = MALFORMED[case]
    spoil(loose)
    with pytest.raises(DataError, match=re.escape(message)) as error:
        flickr30k_entities.read(loose)
    assert "\n" not in str(error.value)


def test_a_release_without_any_box_is_refused(loose):
    for path in (loose / "Annotations").iterdir():
        path.write_text(with_objects(flagged(1, scene=1)))
    with pytest.raises(DataError, match="no phrase of Sentences has a box in Annotations"):
        flickr30k_entities.read(loose)


def test_nothing_there(tmp_path, loose):
    with pytest.raises(DataError, match="train.txt: not found"):
        flickr30k_entities.inventory(tmp_path / "nowhere")
    for name in ("Sentences", "Annotations"):
        (loose / name).rename(loose / f"other {name}")
    with pytest.raises(DataError, match="no annotations; expected annotations.zip, or folders"):
        flickr30k_entities.inventory(loose)


@pytest.mark.parametrize("line", ["99 1", f"{ALL_IDS[0]} 6", f"{ALL_IDS[0]} 0", "12,3", ALL_IDS[0]])
def test_bad_line_of_unrelated_captions(loose, line):
    path = loose / "UNRELATED_CAPTIONS"
    path.write_text(f"{path.read_text()}\n{line}\n")
    flickr30k_entities.read(loose)
    with pytest.raises(DataError, match=f"UNRELATED_CAPTIONS:4: '{line}': expected a listed image"):
        flickr30k_entities.read(loose, unrelated=False)
    path.unlink()
    with pytest.raises(DataError, match="UNRELATED_CAPTIONS: not found"):
        flickr30k_entities.read(loose, unrelated=False)


@pytest.mark.parametrize("name", ["../evil.xml", "/etc/evil", "Annotations/../../b.xml", "..\\b"])
@pytest.mark.parametrize("archive", ["annotations.zip", "flickr30k-images.zip"])
def test_archive_with_a_member_outside_is_refused(zipped, archive, name):
    with zipfile.ZipFile(zipped / archive, "a") as file:
        file.writestr(name, b"x")
    with pytest.raises(DataError, match=f"{archive}: member {re.escape(repr(name))} points"):
        flickr30k_entities.read(zipped)
        flickr30k_entities.pictures(zipped)


def test_archive_that_is_not_whole(zipped):
    content = (zipped / "annotations.zip").read_bytes()
    (zipped / "annotations.zip").write_bytes(content[:-30])
    with pytest.raises(DataError, match="annotations.zip: not a whole zip archive"):
        flickr30k_entities.read(zipped)


def test_archive_with_a_damaged_member(zipped):
    content = bytearray((zipped / "annotations.zip").read_bytes())
    with zipfile.ZipFile(zipped / "annotations.zip") as file:
        start = file.getinfo(xml_of(3)).header_offset
    for position in range(start + 90, start + 100):  # past the header, in what is compressed
        content[position] ^= 255
    (zipped / "annotations.zip").write_bytes(bytes(content))
    place = re.escape(xml_of(3))
    with pytest.raises(DataError, match=f"annotations.zip/{place}: damaged"):
        flickr30k_entities.read(zipped)


def test_archive_without_a_member(zipped, loose):
    (loose / xml_of(3)).unlink()
    pack(zipped / "annotations.zip", loose, ("Sentences", "Annotations"))
    with pytest.raises(DataError, match=f"annotations.zip/{re.escape(xml_of(3))}: not found"):
        flickr30k_entities.read(zipped)


# Through the stages ------------------------------------------------------------------------


@pytest.fixture
def active(tmp_path, monkeypatch) -> None:
    """Stages run in a fresh folder, with a card that expects the small numbers."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    captions = {split: 5 * count for split, count in COUNTS.items()}
    card = dataclasses.replace(
        flickr30k_entities.CARD, expected_images=COUNTS, expected_captions=captions
    )
    monkeypatch.setattr(flickr30k_entities, "CARD", card)
    write_params(
        params_of(datasets={"flickr30k_entities": DatasetSettings(reader="flickr30k_entities")})
    )


def run(stage, *words: str) -> int:
    return run_stage("", stage.configure, stage.main, ["flickr30k_entities", *words])


@pytest.mark.usefixtures("active")
def test_fetch_and_prepare(raw):
    assert run(fetch, "--source", str(raw)) == 0
    assert run(prepare) == 0
    data = prepared_tables.read("flickr30k_entities")
    assert {split: count["images"] for split, count in data.card["counts"].items() if count} == {
        **COUNTS,
        "unused": 0,
    }
    assert data.card["split"] == "entities" and data.card["may_publish"] is False
    assert set(data.images["width"]) == {WIDTH} and set(data.images["height"]) == {HEIGHT}
    regions = pd.read_parquet(prepared_tables.ROOT / "flickr30k_entities" / "regions.parquet")
    assert len(regions) == len(FOUND) * len(ALL_IDS) and regions["phrase_id"].is_unique
    assert regions["chain"].iloc[0] == f"{ALL_IDS[0]}/1"
    box = regions[["x0", "y0", "x1", "y1"]].iloc[1]
    assert box.tolist() == [1.0, 9.0, 60.0, 20.0]


@pytest.mark.usefixtures("active")
def test_prepare_without_pictures(zipped, capsys):
    (zipped / "flickr30k-images.zip").unlink()
    assert run(fetch, "--source", str(zipped)) == 2
    *checklist, line = capsys.readouterr().err.splitlines()
    assert checklist[0].startswith("[ ] flickr30k-images/ or") and checklist[1].startswith("[x]")
    assert "no pictures; expected flickr30k-images/ or flickr30k-images.zip" in line
    settings = Path("params.yaml").read_text()
    Path("params.yaml").write_text(
        settings.replace("options: {}", "options: {with_pictures: false}", 1)
    )
    assert run(fetch, "--source", str(zipped)) == 0
    assert run(prepare) == 0
    assert set(prepared_tables.read("flickr30k_entities").images["file"]) == {""}


@pytest.mark.usefixtures("active")
def test_pictures_of_another_size_than_the_xml_says_are_refused(loose, capsys):
    path = loose / "flickr30k-images" / f"{ALL_IDS[6]}.jpg"
    Image.new("RGB", (WIDTH // 2, HEIGHT)).save(path)
    assert run(fetch, "--source", str(loose)) == 0
    assert run(prepare) == 2
    line = capsys.readouterr().err
    assert ALL_IDS[6] in line and "box" in line and line.count("\n") == 1


@pytest.mark.usefixtures("active")
def test_a_missing_picture_stops_prepare_with_one_line(loose, capsys):
    (loose / "flickr30k-images" / f"{ALL_IDS[6]}.jpg").unlink()
    assert run(fetch, "--source", str(loose)) == 0
    assert run(prepare) == 2
    line = capsys.readouterr().err
    assert f"{ALL_IDS[6]}.jpg" in line and line.count("\n") == 1


@pytest.mark.usefixtures("active")
def test_a_missing_annotation_stops_fetch(loose, capsys):
    (loose / xml_of(3)).unlink()
    assert run(fetch, "--source", str(loose)) == 2
    *checklist, line = capsys.readouterr().err.splitlines()
    assert f"{xml_of(3)}: not found; 1 of" in line
    assert all(entry.startswith("[x] ") for entry in checklist)


@pytest.mark.usefixtures("active")
def test_an_empty_list_stops_prepare(loose, capsys):
    (loose / "val.txt").write_bytes(b"")
    assert run(fetch, "--source", str(loose)) == 0
    assert run(prepare) == 2
    assert "split val: no images" in capsys.readouterr().err
