"""Figures of words: what a score loses when one is left out of the caption."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from benchmark.figures.look import COLOURS, GREY, drawing, legend_above, panels, shown

STRONGEST = 3  # words that are marked, as in the paper
MOST = 40  # words of a caption that are drawn
ROW = 0.19  # inches; of a word
NEEDED, HELPFUL, HARMFUL = COLOURS[1], COLOURS[4], COLOURS[0]


@dataclass(frozen=True, kw_only=True)
class CaptionWords:
    """A caption word by word, with what the score of its own image drops by without each."""

    title: str
    words: Sequence[str]
    drops: np.ndarray  # (W,); NaN for a word that the method is not fed


def importance(captions: Sequence[CaptionWords]) -> Figure:
    """Bars of how much the score drops without a word, one panel a caption, in reading order
    (instance-loss paper: finding discriminative words)."""
    with drawing():
        longest = min(MOST, max(len(caption.words) for caption in captions))
        figure, grid = panels(len(captions), columns=3, head=0.4, row=0.9 + ROW * longest)
        for axes, caption in zip(grid, captions, strict=True):
            _bars(axes, caption, longest)
        _share_scale(grid)
        figure.supxlabel("drop of the score when the word is left out", fontsize=9)
        handles = [Patch(color=colour) for colour in (NEEDED, HELPFUL, HARMFUL)]
        titles = [f"largest drops, up to {STRONGEST}", "score drops", "score rises"]
        legend_above(figure, handles, titles)
    return figure


def strongest(drops: np.ndarray) -> set[int]:
    """Places of the largest positive drops."""
    order = np.argsort(-np.nan_to_num(drops, nan=-np.inf), kind="stable")[:STRONGEST]
    return {int(place) for place in order if drops[place] > 0}


def _bars(axes: Axes, caption: CaptionWords, longest: int) -> None:
    drops = np.asarray(caption.drops, dtype=np.float64)[:MOST]
    words = list(caption.words)[:MOST]
    places, best = np.arange(len(words)), strongest(drops)
    axes.barh(
        places, np.nan_to_num(drops), color=[_colour(i, d, best) for i, d in enumerate(drops)]
    )
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(places, [shown(word, 14, lines=1) for word in words])
    for tick, drop in zip(axes.get_yticklabels(), drops, strict=True):
        tick.set_color(GREY if np.isnan(drop) else "black")
    axes.set_ylim(longest - 0.4, -0.6)  # the same height of a bar in every panel
    axes.grid(axis="y", visible=False)
    left = len(caption.words) - len(words)
    more = f"\n(first {MOST} words; {left} more)" if left else ""
    axes.set_title(shown(caption.title, 36) + more)


def _share_scale(grid: Sequence[Axes]) -> None:
    """Drops of different captions are drops of the same score."""
    low, high = (
        end([axes.get_xlim()[side] for axes in grid]) for side, end in ((0, min), (1, max))
    )
    for axes in grid:
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(4))


def _colour(place: int, drop: float, best: set[int]) -> str:
    if place in best:
        return NEEDED
    return HELPFUL if drop > 0 else HARMFUL
