"""Made-up boards for tests of figures."""

import builders
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.data.results import Histograms
from benchmark.report.interval_figure import Look

HOSTILE = (
    "_a_ $x^2$ $\\frac{$ <script>x</script> & %d \\\n\r\tnew line \N{DOG FACE} ]]> \x07"
)
LONG = "word " * 80 + "x" * 200
NAMES = (HOSTILE, LONG, "")
IMAGES = 30
HISTORY = pd.DataFrame(
    {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.9], "val_rsum": [10.0, 30.0, 20.0]}
)
LOOK = Look(title="l", colour="black")


def enter_made(tmp_path, monkeypatch) -> None:
    """A working folder with the dataset of the boards."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("made", np.arange(IMAGES))


def histograms(matched: np.ndarray, unmatched: np.ndarray) -> Histograms:
    edges = np.linspace(-1, 1, 1001)
    return Histograms(
        edges=edges,
        matched=np.histogram(matched, edges)[0],
        unmatched=np.histogram(unmatched, edges)[0],
    )


def row(preset: str, *shares: float, title: str | None = None, **facts: object):
    """One training per share of the queries that find their item in the first
    position."""
    outcomes = []
    for seed, share in enumerate(shares):
        ranks = np.where(np.arange(IMAGES) < share * IMAGES, 0, 12)
        metrics = {"overlap_s": 1 - share, "one_minus_ks": 1.1 - share}
        given = {
            "ranks": {"i2t": ranks, "t2i": ranks},
            "seconds": {"per_image": 1e-3, "per_pair": 1e-5},
            "images": IMAGES,
            "captions": IMAGES,
            "metrics": metrics | {"mean_matched": share, "mean_unmatched": 0.1},
            "selected_epoch": 2,
            "history": HISTORY,
        }
        outcomes.append(builders.outcome(preset, seed, **(given | facts)))
    return builders.standing(preset, outcomes, title or preset)


def board(*rows):
    return builders.board(
        *rows, title="Made", ways=["i2t", "t2i"], reader="shapes", split="drawn"
    )


def points_of_marker(axes: Axes, marker: str) -> list[list[float]]:
    drawn = [line.get_xydata() for line in axes.lines if line.get_marker() == marker]
    return np.concatenate(drawn).tolist() if drawn else []


def titles(figure: Figure) -> list[str]:
    """Of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]
