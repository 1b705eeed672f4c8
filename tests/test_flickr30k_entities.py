"""The reader of Flickr30k Entities: a drawn release, and the formats of its files."""

import zipfile
from itertools import product
from pathlib import Path

import layouts
import numpy as np
import pandas as pd
import pytest

from benchmark.contracts.datasets import flickr30k_entities as entities
from benchmark.contracts.datasets.flickr30k_entities import Options

WIDTH, HEIGHT = 60, 40
PARTS = {"train": ["1000092795", "4", "30"], "val": ["2", "7"], "test": ["9", "11"]}
IDS = [image_id for ids in PARTS.values() for image_id in ids]
ODD = IDS[0]  # an image with odd sentences, and a box that belongs to two chains
ODD_LINES = [
    "[/EN#1/people Two young guys] in [/EN#2/clothing red , `` loud '' shirts] stand .",
    "[/EN#1/people A man's] [/EN#2/clothing shirt] is [/EN#4/other a joke] .",
    "[/EN#0/notvisual It] is here to [/EN#1/people/other the 2 men, both] .",
    "Nobody is named - caf\u00e9 \u2028 .",
    "[/EN#2/clothing Shirts]",
]
PEOPLE, SHIRTS = (0, 1, 60, 31), (1, 9, 60, 20)  # the unions of their boxes, half-open
FLAGGED = "<object><name>{}</name><scene>{}</scene><nobndbox>{}</nobndbox></object>"


def boxed(bounds: tuple[int, ...], *chains: object) -> str:
    """An object: pixels from 1, the last one included."""
    names = "".join(f"\t<name>{chain}</name>\n" for chain in chains)
    sides = zip(("xmin", "ymin", "xmax", "ymax"), bounds, strict=True)
    inner = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    return f"<object>\n{names}<bndbox>{inner}</bndbox>\n</object>"


def document(*objects: str) -> str:
    size = (
        f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    )
    return "\n".join(["<annotation>", size, *objects, "</annotation>"])


ODD_XML = document(
    *(boxed((1, 3, 12, 30), 1), boxed((15, 2, 40, 31), 1), boxed((2, 10, 11, 20), 2)),
    *(boxed((19, 12, 60, 20), 2, 1), FLAGGED.format(4, 0, 1)),
)


@pytest.fixture
def loose(tmp_path) -> Path:
    raw = tmp_path / "loose"
    layouts.write_entities(raw, PARTS)
    (raw / f"Sentences/{ODD}.txt").write_bytes("\n".join(ODD_LINES).encode())
    (raw / f"Annotations/{ODD}.xml").write_text(ODD_XML)
    unrelated = ["# format: <imageID> <sentence number>", f"{ODD} 5", "7 1"]
    (raw / "UNRELATED_CAPTIONS").write_text("\n".join(unrelated))
    return raw


@pytest.fixture(params=["loose", "zipped"])
def raw(request, tmp_path, loose) -> Path:
    """Extracted, or as it is downloaded, with what macOS leaves in archives."""
    if request.param == "loose":
        return loose
    zipped = tmp_path / "zipped"
    zipped.mkdir()
    for path in filter(Path.is_file, loose.iterdir()):
        (zipped / path.name).write_bytes(path.read_bytes())
    archives = {"annotations": ("Sentences", "Annotations")}
    for stem, folders in (
        archives | {"flickr30k-images": ("flickr30k-images",)}
    ).items():
        with zipfile.ZipFile(zipped / f"{stem}.zip", "w") as file:
            for path in sorted(
                path for name in folders for path in (loose / name).iterdir()
            ):
                file.write(path, path.relative_to(loose).as_posix())
                file.writestr(f"__MACOSX/{path.relative_to(loose).as_posix()}", b"fork")
    return zipped


# What is read -------------------------------------------------------------------------


def test_tables_are_the_sentences_without_markup_and_the_phrases_with_boxes(raw):
    tables = entities.read(raw)
    captions, regions = tables.captions, tables.regions
    assert tables.images.groupby("split")["image_id"].agg(list).to_dict() == PARTS
    pairs = list(product(IDS, range(5)))
    assert captions["caption_id"].tolist() == [f"{i}.jpg#{k}" for i, k in pairs]
    assert captions["image_id"].tolist() == [i for i, _ in pairs]
    assert captions["text"].tolist()[:10] == [
        "Two young guys in red , `` loud '' shirts stand .",
        "A man's shirt is a joke .",
        "It is here to the 2 men, both .",
        "Nobody is named - caf\u00e9 \u2028 .",
        "Shirts",
        "A woman sees a black hat .",
        "The woman is in the yard .",
        "It is the hat of picture 4 .",
        "Someone in black , outside .",
        "Picture 4 .",
    ]
    expected = [
        (ODD, f"{ODD}.jpg#{k}", words, *box, f"{ODD}/{chain}")
        for k, words, box, chain in (
            *(
                (0, "Two young guys", PEOPLE, 1),
                (0, "red , `` loud '' shirts", SHIRTS, 2),
            ),
            *((1, "A man's", PEOPLE, 1), (1, "shirt", SHIRTS, 2)),
            *((2, "the 2 men, both", PEOPLE, 1), (4, "Shirts", SHIRTS, 2)),
        )
    ]
    expected += [
        ("4", f"4.jpg#{k}", words, *box, f"4/{chain}")
        for k, words, box, chain in (
            *((0, "A woman", layouts.PERSON, 41), (0, "a black hat", layouts.HAT, 42)),
            *(
                (1, "The woman", layouts.PERSON, 41),
                (2, "the hat of picture 4", layouts.HAT, 42),
            ),
            (3, "Someone in black", layouts.PERSON, 41),
        )
    ]
    assert list(regions.itertuples(index=False, name=None))[:11] == expected
    assert len(regions) == 6 + 5 * 6 and regions.columns.tolist() == [
        *("image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain")
    ]
    assert layouts.in_one_note(tables, "7 phrases", "visible")
    assert layouts.in_one_note(tables, "7 phrases", "scene")
    assert len(tables.notes) == 3  # nothing is said of what does not occur
    assert entities.pictures(raw)("4.jpg").size == (WIDTH, HEIGHT)
    files = {path.relative_to(raw).as_posix() for path in entities.inventory(raw)}
    is_zipped = (raw / "annotations.zip").is_file()
    assert all((raw / file).is_file() for file in files)
    assert ("annotations.zip" in files) == is_zipped == ("Sentences/4.txt" not in files)
    card = entities.card()
    assert card.split == "entities" and card.may_publish is False


def test_unrelated_captions_can_be_left_out_with_their_phrases(raw):
    whole = entities.read(raw)
    tables = entities.read(raw, Options(unrelated=False))
    lost = {f"{ODD}.jpg#4", "7.jpg#0"}  # sentences are counted from 1 there
    for name in ("captions", "regions"):
        before = getattr(whole, name)
        kept = before[~before["caption_id"].isin(lost)].reset_index(drop=True)
        pd.testing.assert_frame_equal(getattr(tables, name), kept)
    assert layouts.in_one_note(
        tables, "2 captions", "UNRELATED_CAPTIONS", f" {ODD}, 7."
    )


# Boxes --------------------------------------------------------------------------------


def half_open(*bounds: int) -> tuple[int, ...]:
    return entities.parse_annotation(document(boxed(bounds, 7)), "x").unions["7"]


def plain_iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide, high = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    shared = max(wide, 0) * max(high, 0)
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (a, b)]
    return shared / (sum(areas) - shared)


def pixels(xmin: int, ymin: int, xmax: int, ymax: int) -> set[tuple[int, int]]:
    return set(product(range(xmin, xmax + 1), range(ymin, ymax + 1)))


def test_plain_iou_of_the_boxes_is_the_inclusive_iou_of_the_release():
    rng = np.random.default_rng(0)
    pairs = [((1, 1, 10, 10), (1, 1, 5, 10))]  # 0.5; without the +1 it would be 36 / 81
    for _ in range(50):
        x, y = (np.sort(rng.integers(1, side + 1, (2, 2))) for side in (WIDTH, HEIGHT))
        pairs.append(tuple((x[k, 0], y[k, 0], x[k, 1], y[k, 1]) for k in (0, 1)))
    for a, b in pairs:
        iou = len(pixels(*a) & pixels(*b)) / len(pixels(*a) | pixels(*b))
        assert plain_iou(half_open(*a), half_open(*b)) == pytest.approx(iou)


@pytest.mark.parametrize(
    ("bounds", "clipped"),
    [
        ((0, 0, 5, 5), (0, 0, 5, 5)),
        ((2, 2, WIDTH + 1, HEIGHT + 1), (1, 1, WIDTH, HEIGHT)),
    ],
)
def test_a_box_one_pixel_outside_is_clipped_and_noted(loose, bounds, clipped):
    (loose / f"Annotations/{ODD}.xml").write_text(document(boxed(bounds, 1)))
    tables = entities.read(loose)
    assert tables.regions.iloc[0][["x0", "y0", "x1", "y1"]].tolist() == list(clipped)
    assert layouts.in_one_note(tables, "1 boxes", "clipped")


def test_a_chain_with_a_box_and_a_scene_flag_has_the_box():
    xml = document(FLAGGED.format(7, 1, 0), boxed((1, 1, 2, 2), 7))
    annotation = entities.parse_annotation(xml, "x")
    assert annotation.unions == {"7": (0, 0, 2, 2)} and annotation.boxless == set()


# Markup -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text", "phrases"),
    [
        ("No markup .", "No markup .", []),
        ("[/EN#12/people A]", "A", [("A", "12")]),
        ("[/EN#1/people A][/EN#2/other b]", "Ab", [("A", "1"), ("b", "2")]),
        ("[/EN#1/people/animals/other A dog]'s", "A dog's", [("A dog", "1")]),
        (
            "[/EN#1/people a - b / c , d .] .",
            "a - b / c , d . .",
            [("a - b / c , d .", "1")],
        ),
        ("[/EN#1/people  A  man ] .", " A  man  .", [("A  man", "1")]),
        ("A [sic] sign ] [/EN#3/other x[1] .", "A [sic] sign ] x[1 .", [("x[1", "3")]),
    ],
)
def test_phrases_are_taken_out_of_their_markup(line, text, phrases):
    assert entities.parse_sentence(line, "x") == (text, tuple(phrases))
