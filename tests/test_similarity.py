"""Densities of scores and S."""

import numpy as np
import pytest
from made_boards import enter_made, histograms

from benchmark.report.figures import similarity


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def test_densities_and_the_area_under_both_are_those_of_the_scores():
    each = histograms(np.linspace(0.2, 0.8, 40_000), np.linspace(-0.4, 0.6, 40_000))
    low, high = similarity.limits([each])
    assert (low, high) == (pytest.approx(-0.4, abs=0.01), pytest.approx(0.8, abs=0.01))
    (axes,) = similarity.densities(["t"], [each], [(-0.5, 0.9)]).axes
    q, p, both = (patch.get_data() for patch in axes.patches)
    for drawn, start, end in ((q, -0.4, 0.6), (p, 0.2, 0.8)):
        middles = (drawn.edges[1:] + drawn.edges[:-1]) / 2
        inside = (middles > start + 0.02) & (middles < end - 0.02)
        assert drawn.values[inside] == pytest.approx(1 / (end - start), rel=0.02)
        assert (drawn.values * np.diff(drawn.edges)).sum() == pytest.approx(1)
    assert (both.values * np.diff(both.edges)).sum() == pytest.approx(0.4, abs=0.01)
    equal = histograms(np.full(9, 0.5), np.full(9, 0.5))
    low, high = similarity.limits([equal])
    assert low <= 0.5 <= high and low < high
