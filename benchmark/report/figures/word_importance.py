"""Drop of the score without each word of a caption (instance-loss paper: discriminative words)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from benchmark.analysis.boards import Standing
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import tokenise
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, GREY, WIDTH, drawing, legend_above, shown

SECTION = "examples"
STRONGEST = 3  # words that are marked, as in the paper
MOST = 40  # words of a caption that are drawn
COLUMNS = 3
ROW, AROUND = 0.19, 0.9  # inches; of a word, and of a panel's title and axis
NEEDED, HELPFUL, HARMFUL = COLOURS[1], COLOURS[4], COLOURS[0]


@dataclass(frozen=True, kw_only=True)
class CaptionWords:
    """A caption, and by how much the score of its own image drops without each of its words."""

    title: str
    words: Sequence[str]
    drops: np.ndarray  # (W,); NaN for a word that the method does not use


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    """Of the best preset that has word importances."""
    standings = (s for s in inputs.board.ranked if "words_drop" in s.samples)
    best = next(standings, None)
    if best:
        captions = _captions(best, inputs.data)
        yield Picture(
            name="words",
            figure=word_importance(captions),
            alt=f"{best.row.title}: how much the score of a caption and its picture drops without "
            f"each of its words, {len(captions)} captions",
        )


def _captions(standing: Standing, data: Prepared) -> list[CaptionWords]:
    """Sorted by length, so that panels of one height share a row."""
    samples, rows = standing.samples, data.split("test").caption_rows
    captions = []
    for caption, drops in zip(samples["words_captions"], samples["words_drop"], strict=True):
        text = data.captions["text"].iloc[int(rows[caption])]
        words = tokenise(text)
        captions.append(CaptionWords(title=text, words=words, drops=drops[: len(words)]))
    return sorted(captions, key=lambda caption: len(caption.words))


def word_importance(captions: Sequence[CaptionWords]) -> Figure:
    """Bars of how much the score drops without a word, one panel per caption, in reading order."""
    lines = [captions[start : start + COLUMNS] for start in range(0, len(captions), COLUMNS)]
    longest = [min(MOST, max(len(caption.words) for caption in line)) for line in lines]
    heights = [AROUND + ROW * words for words in longest]
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.4 + sum(heights)), layout="constrained")
        grid = figure.subplots(len(lines), len(lines[0]), squeeze=False, height_ratios=heights)
        for line, row, words in zip(lines, grid, longest, strict=True):
            for axes, caption in zip(row, line, strict=False):
                _bars(axes, caption, words)
            for axes in row[len(line) :]:
                axes.remove()
        _share_scale(figure.axes, np.concatenate([caption.drops for caption in captions]))
        figure.supxlabel("drop of the score when the word is left out", fontsize=9)
        handles = [Patch(color=colour) for colour in (NEEDED, HELPFUL, HARMFUL)]
        titles = [f"largest drops, up to {STRONGEST}", "score drops", "score rises"]
        legend_above(figure, handles, titles)
    return figure


def strongest(drops: np.ndarray) -> set[int]:
    """Indices of the largest positive drops."""
    order = np.argsort(-np.nan_to_num(drops, nan=-np.inf), kind="stable")[:STRONGEST]
    return {int(index) for index in order if drops[index] > 0}


def _bars(axes: Axes, caption: CaptionWords, longest: int) -> None:
    drops = np.asarray(caption.drops, dtype=np.float64)[:MOST]
    words = list(caption.words)[:MOST]
    positions, best = np.arange(len(words)), strongest(drops)
    axes.barh(
        positions, np.nan_to_num(drops), color=[_colour(i, d, best) for i, d in enumerate(drops)]
    )
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(positions, [shown(word, 14, lines=1) for word in words])
    for tick, drop in zip(axes.get_yticklabels(), drops, strict=True):
        tick.set_color(GREY if np.isnan(drop) else "black")
    axes.set_ylim(longest - 0.4, -0.6)  # bars of one height in all panels
    axes.grid(axis="y", visible=False)
    left = len(caption.words) - len(words)
    more = f"\n(first {MOST} words; {left} more)" if left else ""
    axes.set_title(shown(caption.title, 36) + more)


def _share_scale(grid: Sequence[Axes], drops: np.ndarray) -> None:
    """Give all panels one scale: drops of different captions are drops of the same score."""
    ends = [0.0, *drops[np.isfinite(drops)]]
    low, high = min(ends), max(ends)
    room = 0.05 * (high - low) or 1.0
    for axes in grid:
        axes.set_xlim(low - room, high + room)
        axes.xaxis.set_major_locator(MaxNLocator(4))


def _colour(index: int, drop: float, best: set[int]) -> str:
    if index in best:
        return NEEDED
    return HELPFUL if drop > 0 else HARMFUL
