"""Looks, panels and scales."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmark.report import figure_style as style


def test_a_marker_shows_the_method_and_colour_and_dash_the_preset():
    count = len(style.COLOURS) + 1
    looks = style.styles(["scan"] * count + ["vse"])
    of_scan = looks[:count]
    assert {marker for _, marker, _ in of_scan} == {style.MARKERS[0]}
    assert looks[-1][1] == style.MARKERS[1]
    assert len(set(of_scan)) == count
    # as many presets as colours, and the next one is dashed
    assert of_scan[0][0] == of_scan[-1][0] and of_scan[0][2] != of_scan[-1][2]


def test_panels_that_are_too_many_are_blank():
    figure, grid = style.panels(4, columns=3, head=0.5, row=2.0)
    assert len(grid) == 4 and len(figure.axes) == 6
    assert [axes.axison for axes in figure.axes] == [True] * 4 + [False] * 2
    assert figure.get_size_inches().tolist() == [style.WIDTH, 4.5]


def test_a_legend_makes_the_figure_higher_by_its_lines():
    heights = []
    for count in (3, 6):
        figure, (axes,) = style.panels(1, columns=1, head=0, row=2.0)
        handles = axes.plot(np.zeros((2, count)))
        style.legend_below(figure, handles, [f"row {n}" for n in range(count)])
        heights.append(figure.get_size_inches()[1])
    assert heights[1] - heights[0] == pytest.approx(style.LEGEND_ROW)
    assert heights[0] > 2.0


def test_ticks_of_a_long_logarithmic_axis_are_powers_of_ten():
    axes = Figure().subplots()
    style.log_scale(axes.xaxis, [1, 50])
    assert {1, 2, 5, 10, 20, 50} <= set(
        axes.xaxis.get_major_locator().tick_values(1, 50)
    )
    style.log_scale(axes.xaxis, [1, 5000])
    ticks = axes.xaxis.get_major_locator().tick_values(1, 5000)
    assert set(np.round(np.log10(ticks) % 1, 9)) == {0}
    assert axes.xaxis.get_major_formatter()(0.5, 0) == "0.5"
