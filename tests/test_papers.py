"""Figures after those of the papers."""

import re

import builders
import numpy as np
import pytest
from made_boards import (
    HISTORY,
    board,
    enter_made,
    histograms,
    row,
)
from refusals import holds

from benchmark.data.results import SAMPLES
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures import papers as drawn_papers


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def instance_figures(*rows, samples: dict | None = None) -> dict:
    for each in rows:
        kept = histograms(np.array([0.5]), np.array([0.1]))
        builders.keep_ranks(each.played[0], {}, histograms=kept)
    if samples:
        builders.keep_arrays(rows[0].played[0], SAMPLES, **samples)
    return {
        of.name: of
        for of in drawn_papers.instance_loss(FigureInputs(board=board(*rows)))
    }


def test_losses_and_correlations_have_the_numbers_of_the_paper_and_of_numpy():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(6, 8))
    vectors = {"before": spread + 3 * rng.normal(size=8), "after": spread}
    expected = {when: np.corrcoef(of) for when, of in vectors.items()}
    samples = {
        f"correlation_{when}": of.astype(np.float16) for when, of in expected.items()
    }
    rows = [row("dual_path_instance_1", 0.75), row("dual_path_rank_1", 0.5)]
    found = instance_figures(*rows, samples=samples)
    assert list(found) == ["losses", "correlations"]
    rank, instance = (axes.get_title() for axes in found["losses"].figure.axes)
    assert "S 0.5000 (paper 0.2563)" in rank and "S 0.2500 (paper 0.1633)" in instance
    assert "mean of P 0.750, of Q 0.100" in instance
    means = []
    for axes, of in zip(
        found["correlations"].figure.axes, expected.values(), strict=False
    ):
        (image,) = axes.images
        assert image.get_clim() == (-1, 1)
        assert np.abs(image.get_array() - of).max() < 1e-3  # half precision
        means.append(
            np.mean([abs(of[i, j]) for i in range(6) for j in range(6) if i != j])
        )
    told = re.search(
        r"goes from (\S+) to (\S+): it recurs", found["correlations"].caption
    ).groups()
    assert (
        list(map(float, told)) == pytest.approx(means, abs=1e-3) and means[0] > means[1]
    )


def test_the_branch_whose_loss_halves_first_converges_first():
    slow, quick, later = [8.0, 7.0, 6.0], [8.0, 3.0, 1.0], [8.0, 4.0, 3.0]
    for visual, textual, told in (
        (quick, later, ["epoch 2 for images", "epoch 3 for texts", "recurs"]),
        (slow, quick, ["no epoch for images", "epoch 2 for texts", "does not recur"]),
        (quick, slow, ["epoch 2 for images", "no epoch for texts", "recurs"]),
    ):
        history = HISTORY.assign(loss_visual=visual, loss_textual=textual)
        found = instance_figures(row("dual_path_instance_1", 0.5, history=history))[
            "branches"
        ]
        assert holds(found.caption, *told)
        lines = found.figure.axes[0].lines
        assert [list(line.get_ydata()) for line in lines] == [visual, textual]
        assert [list(line.get_xdata()) for line in lines] == [[1, 2, 3]] * 2
    assert list(instance_figures(row("dual_path_instance_1", 0.5))) == ["losses"]


def cyclematch_figures(preset: str, samples: dict, **declared: object) -> list:
    (made,) = board(row(preset, 0.5)).rows
    made = builders.standing(preset, made.outcomes, "P", **declared)
    builders.keep_arrays(made.outcomes[0], SAMPLES, **samples)
    return list(drawn_papers.cyclematch(FigureInputs(board=board(made))))


def test_a_map_joins_every_image_with_its_caption():
    points = np.array([[0, 0], [4, 0], [0, 4], [1, 0], [5, 0], [1, 4.0]], np.float32)
    (found,) = cyclematch_figures("cyclematch", {"tsne_visual": points})
    (axes,) = found.figure.axes
    images, captions, joined = axes.collections
    assert axes.get_title() == "P: visual space"
    assert images.get_offsets().tolist() == points[:3].tolist()
    assert captions.get_offsets().tolist() == points[3:].tolist()
    pairs = [segment.tolist() for segment in joined.get_segments()]
    assert pairs == [[points[i].tolist(), points[i + 3].tolist()] for i in range(3)]
    others = [
        np.linalg.norm(points[i] - points[3 + j])
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    assert f"P: visual space {1 / np.median(others):.2f}. It recurs" in found.caption


def test_adaptive_weights_curves_and_scores_are_those_of_the_samples():
    samples = {
        "weights_i2t": [[0.2, 0.4], [0.8, 0.6]],
        "weights_t2i": [[0.3], [0.7]],
        "curve_queries_i2t": [1],
        "curve_queries_t2i": [0],
        "curves_i2t": [[[3, 2, 1.0]], [[1, 0, -1.0]]],
        "curves_t2i": [[[5, 4.0]], [[9, 8.0]]],
        "similarity": [[3.0, -1], [0, 1]],
    }
    fuse = {"of": ["m:visual", "m:textual"], "how": "adaptive"}
    given = {name: np.array(of_way) for name, of_way in samples.items()}
    curves, histogram, matrix = cyclematch_figures(
        "cyclematch_adaptive", given, fuse=fuse
    )
    image, caption = curves.figure.axes
    assert (image.get_title(), caption.get_title()) == (
        "image query 1",
        "caption query 0",
    )
    visual, textual = image.lines[:2]
    assert visual.get_xydata().tolist() == [[0, 3], [50, 2], [100, 1]]
    assert textual.get_ydata().tolist() == [1, 0, -1]
    labels = [text.get_text() for text in image.get_legend().get_texts()]
    assert labels == ["visual: weight 0.400", "textual: weight 0.600"]
    assert holds(histogram.caption, "33% do", "does not recur")
    assert "visual 0.30 ± 0.08, textual 0.70 ± 0.08" in histogram.caption
    visual, textual = histogram.figure.axes[0].patches[1:]
    assert visual.get_xy()[:, 0].min() == 0.2 and textual.get_xy()[:, 0].max() == 0.8
    assert matrix.figure.axes[0].images[0].get_array().tolist() == [[1, 0], [0.25, 0.5]]
