"""What figures are drawn from, made up, and what their axes show."""

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from benchmark.analysis.verdict_rules import Conclusion
from benchmark.report import figure_style
from benchmark.report.figures import (
    forest,
    phrase_boxes,
    quality_and_cost,
    recall_by_regions,
    training_curves,
)


def located(
    phrase: str, *chosen: list[float], truth: tuple = (10, 20, 30, 40)
) -> phrase_boxes.Located:
    return phrase_boxes.Located(
        phrase=phrase,
        picture=Image.new("RGB", (60, 90), "white"),
        truth=np.array(truth),
        chosen=np.array(chosen),
    )


def sweep(title: str, **changes: object) -> recall_by_regions.Sweep:
    ways = ("i2t_r1", "t2i_r1", "i2t_deviation", "t2i_deviation")
    facts = {way: np.array([1.0]) for way in ways}
    facts |= {"regions": np.array([36]), "microseconds": np.array([7.0])}
    return recall_by_regions.Sweep(**({"title": title} | facts | changes))


def price(title: str, seconds: float | None = 5.0, milliseconds: float = 0.1, rsum: float = 9.0):
    return quality_and_cost.Price(
        title=title,
        style=figure_style.styles(["m"])[0],
        rsum=rsum,
        deviation=1.0,
        training_seconds=seconds,
        query_milliseconds=milliseconds,
    )


def forest_row(label: str, **changes: object) -> forest.ForestRow:
    facts = {"unit": "rsum", "difference": 1.0, "low": 0.5, "high": 1.5}
    facts |= {"conclusion": Conclusion.HOLDS}
    return forest.ForestRow(**({"label": label} | facts | changes))


def curve(title: str, **changes: object) -> training_curves.Curve:
    facts = {
        "title": title,
        "method": "m",
        "style": figure_style.styles(["m"])[0],
        "is_first_seed": True,
        "epochs": np.array([1]),
        "loss": np.array([2.0]),
        "rsum": np.array([3.0]),
        "selected": 1,
    }
    return training_curves.Curve(**(facts | changes))


def lines(axes: Axes, marker: str) -> list[np.ndarray]:
    """Points (N, 2) of every line of that marker."""
    return [line.get_xydata() for line in axes.lines if line.get_marker() == marker]
