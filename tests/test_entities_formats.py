"""The file formats of Flickr30k Entities: boxes in XML, and sentences with marked phrases."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from entities_release import (
    ALL_IDS,
    HEIGHT,
    WIDTH,
    boxed,
    chains,
    flagged,
    with_objects,
    write_loose,
)

from benchmark.contracts.datasets import flickr30k_entities
from benchmark.contracts.datasets import flickr30k_entities as entities_formats


@pytest.fixture
def loose(tmp_path) -> Path:
    """The release with its archive extracted, and the photographs."""
    write_loose(tmp_path / "loose")
    return tmp_path / "loose"


# Boxes -------------------------------------------------------------------------------------


def half_open(*bounds: int) -> tuple[int, ...]:
    """The box that the reader makes of one in XML."""
    return entities_formats.parse_annotation(with_objects(boxed([7], bounds)), "x").unions["7"]


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
    xml = with_objects(flagged(7, 1), boxed([7], (1, 1, 2, 2)))
    annotation = entities_formats.parse_annotation(xml, "x")
    assert annotation.unions == {"7": (0, 0, 2, 2)} and annotation.boxless == set()


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
    assert entities_formats.parse_sentence(line, "x") == (text, tuple(phrases))
