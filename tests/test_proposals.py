"""Boxes: their overlap, selective search against a grouping written from its
definition, and files by hand."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import refused
from scipy.io import savemat

from benchmark.features.proposals import (
    _grouped,
    _union,
    read_boxes,
    selective_search,
)
from benchmark.scoring.ranking import area, iou

SIZE = (40, 30)  # width and height


def picture_of(*things: tuple, size: tuple[int, int] = (96, 96)) -> Image.Image:
    """Rectangles (box, colour) on a plain ground, the later ones on top."""
    picture = Image.new("RGB", size, (172, 212, 238))
    for box, colour in things:
        picture.paste(colour, box)
    return picture


RED, BLUE = (214, 32, 38), (36, 86, 214)


# Boxes --------------------------------------------------------------------------------


def test_area_and_union_by_hand():
    boxes = np.array([[0.0, 0, 2, 3], [1, 1, 5, 2], [4, 4, 1, 9]])
    assert area(boxes).tolist() == [6, 4, 0]
    assert _union(boxes[:2]).tolist() == [0, 0, 5, 3]


def test_iou_is_that_of_counted_pixels():
    rng = np.random.default_rng(0)
    a, b = (
        np.sort(rng.integers(0, 13, (n, 2, 2)), axis=1).reshape(n, 4) for n in (9, 7)
    )
    expected = np.zeros((9, 7))
    for (i, first), (j, second) in ((x, y) for x in enumerate(a) for y in enumerate(b)):
        masks = np.zeros((2, 13, 13), bool)
        for mask, (x0, y0, x1, y1) in zip(masks, (first, second), strict=True):
            mask[y0:y1, x0:x1] = True
        total = (masks[0] | masks[1]).sum()
        expected[i, j] = (masks[0] & masks[1]).sum() / total if total else 0
    ious = iou(a[:, None].astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(ious, expected, atol=1e-6)
    assert ious.dtype == np.float32 and (expected > 0.2).any()


def test_a_box_without_area_has_no_iou_not_even_with_itself():
    nothing, box = np.zeros((1, 4)), np.array([[0.0, 0, 4, 4]])
    assert iou(nothing, nothing).tolist() == iou(nothing, box).tolist() == [0]
    assert iou(np.zeros((0, 4)), box).shape == (0,)


# Selective search ---------------------------------------------------------------------


def test_boxes_of_a_large_photograph_are_in_its_own_pixels():
    box = (100, 75, 300, 225)
    boxes = selective_search(picture_of((box, RED), size=(500, 375)))
    assert iou(np.array(box), boxes).max() > 0.97
    assert boxes[0].tolist() == [0, 0, 500, 375]
    tall = selective_search(picture_of((box, RED), size=(375, 500)))
    assert tall[0].tolist() == [0, 0, 375, 500]


def noise(seed: int = 0, squares: int = 8) -> Image.Image:
    values = np.random.default_rng(seed).integers(
        0, 256, (squares, squares, 3), dtype=np.uint8
    )
    return Image.fromarray(values.repeat(6, axis=0).repeat(6, axis=1))


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (96, 96), (600, 2)])
def test_a_plain_picture_is_one_box(size):
    assert selective_search(picture_of(size=size)).tolist() == [[0, 0, *size]]


def naive_grouping(labels: np.ndarray, pixels: np.ndarray) -> set[tuple]:
    """Boxes from `labels` to one segment, pixel by pixel."""

    def box(mask):
        y, x = mask.nonzero()
        return x.min(), y.min(), x.max() + 1, y.max() + 1

    def touch(a, b):
        sides = (
            a[1:] & b[:-1],
            a[:-1] & b[1:],
            a[:, 1:] & b[:, :-1],
            a[:, :-1] & b[:, 1:],
        )
        return any(side.any() for side in sides)

    def similarity(a, b):
        edges = np.linspace(0, 256, 26)
        colour = sum(
            np.minimum(
                *(np.histogram(pixels[m][:, c], edges)[0] / m.sum() for m in (a, b))
            ).sum()
            for c in range(3)
        )
        x0, y0, x1, y1 = box(a | b)
        both = a.sum() + b.sum()
        fill = 1 - ((x1 - x0) * (y1 - y0) - both) / labels.size
        return colour + (1 - both / labels.size) + fill

    masks = [labels == label for label in np.unique(labels)]
    boxes = {box(mask) for mask in masks}
    while len(masks) > 1:
        pairs = [pair for pair in combinations(masks, 2) if touch(*pair)]
        a, b = max(pairs, key=lambda pair: similarity(*pair))
        masks = [mask for mask in masks if mask is not a and mask is not b] + [a | b]
        boxes.add(box(masks[-1]))
    return {tuple(map(int, corners)) for corners in boxes}


@pytest.mark.parametrize("seed", range(3))
def test_grouping_is_that_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)
    labels = np.arange(30).reshape(6, 5).repeat(4, axis=0).repeat(4, axis=1)
    labels[rng.random(labels.shape) < 0.1] = 7  # uneven, and in pieces
    boxes = _grouped(labels, pixels)
    assert len(boxes) == 59
    assert {tuple(map(int, box)) for box in boxes} == naive_grouping(labels, pixels)
    assert boxes[-1].tolist() == [0, 0, 20, 24]


# Files --------------------------------------------------------------------------------


def boxes_of(folder: Path, image_id: str, count: int = 200) -> np.ndarray:
    return read_boxes(folder, image_id, SIZE, count)


def test_npz_boxes_come_by_falling_score(tmp_path):
    boxes = np.array([[0, 0, 4, 4], [1, 2, 30.5, 20], [5, 5, 9, 9], [0, 0, 40, 30]])
    np.savez(tmp_path / "a.npz", boxes=boxes, scores=[0.1, 0.9, 0.1, 0.5])
    by_score = boxes_of(tmp_path, "a")
    assert (
        by_score.tolist() == boxes[[1, 3, 0, 2]].tolist()
        and by_score.dtype == np.float32
    )
    assert boxes_of(tmp_path, "a", count=2).tolist() == boxes[[1, 3]].tolist()
    boxes[1, 2] = 30
    np.savez(tmp_path / "b.npz", boxes=boxes.astype(np.int16))
    assert boxes_of(tmp_path, "b").tolist() == boxes.tolist()


def test_edge_boxes_become_half_open_boxes(tmp_path):
    """x, y, w, h from pixel 1, read as inclusive corners x to x + w: w + 1 pixels."""
    bbs = np.array([[1, 1, 9, 4, 0.2], [11, 6, 29, 24, 0.7]])
    savemat(tmp_path / "a.mat", {"bbs": bbs})
    assert boxes_of(tmp_path, "a").tolist() == [[10, 5, 40, 30], [0, 0, 10, 5]]
    savemat(tmp_path / "b.mat", {"bbs": bbs[:, :4].astype(np.uint16)})
    assert boxes_of(tmp_path, "b").tolist() == [[0, 0, 10, 5], [10, 5, 40, 30]]


def test_a_box_that_ends_at_the_last_pixel_is_cut_there(tmp_path):
    """EdgeBoxes' x + w of a box at the right border is one past the last inclusive
    pixel."""
    savemat(tmp_path / "a.mat", {"bbs": np.array([[31.0, 21, 10, 10, 1]])})
    assert boxes_of(tmp_path, "a").tolist() == [[30, 20, 40, 30]]
    np.savez(tmp_path / "b.npz", boxes=[[-1, -0.5, 41, 30]])
    assert boxes_of(tmp_path, "b").tolist() == [[0, 0, 40, 30]]


GOOD = [0, 0, 5, 5]
MALFORMED = {  # arrays of a.npz -> where, expected and found of the error
    "outside": (
        {"boxes": [GOOD, [0, 0, 42, 5]]},
        ("a.npz: row 2", "40 x 30 pixels", "0, 0, 42, 5"),
    ),
    "shape": ({"boxes": [[0, 0, 5]]}, ("boxes", "numbers (n, 4)", "(1, 3)")),
    "scores": ({"boxes": [GOOD], "scores": [1, 2]}, ("scores", "1, one per box", "2")),
}


@pytest.mark.parametrize("arrays, fields", MALFORMED.values(), ids=MALFORMED)
def test_malformed_boxes_are_refused(tmp_path, arrays, fields):
    np.savez(tmp_path / "a.npz", **arrays)
    where, expected, found = fields
    with refused(tmp_path / "a.npz", expected, found) as caught:
        boxes_of(tmp_path, "a")
    assert caught.value.where.endswith(where) and caught.value.do
