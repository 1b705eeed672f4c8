"""What scores rest on, of the best rows that have such samples: the words of a
caption, for each method (instance-loss paper, Fig. 11), and where each of them looks
in the image (SCAN, Fig. 4). And the boxes that the best row and a baseline choose
for phrases."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from benchmark.boards.boards import Row
from benchmark.data.prepared_tables import CORNERS
from benchmark.data.vocabularies import tokenise
from benchmark.report import figure_style as style
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.pages.examples import evenly
from benchmark.scoring import CORRECT_IOU
from benchmark.scoring.ranking import iou

WORD, AROUND = 0.19, 0.9  # inches; of a word, and of a panel's title and axis
ATTENDED = 3  # captions whose attention is drawn
# pixels of the longer side of a drawn image: of a word, of a phrase
SIDE, LARGE = 100, 300
DARKEST = 0.85  # opacity of the veil over a cell without any attention
COLUMNS = 8
PHRASES = 6  # of a figure
BASELINE = "cca"  # the method beside the best row, if it was run
LOOKS = (  # of the true box, and of those that rows choose
    {"color": style.GREEN, "linestyle": "-", "linewidth": 2.6},
    {"color": style.ORANGE, "linestyle": "--", "linewidth": 1.8},
    {"color": style.BLUE, "linestyle": ":", "linewidth": 2.0},
)


@dataclass(frozen=True)
class Located:
    """A phrase with its image and boxes (1 + S, 4) in pixels, half-open: the true one,
    and that of each of S rows."""

    phrase: str
    image: Image.Image
    boxes: np.ndarray


@dataclass(frozen=True)
class Attended:
    """A caption in its words with its image, and how much each word looks at each cell
    of a square grid over that: weights (W, G)."""

    words: Sequence[str]
    image: Image.Image
    weights: np.ndarray


def words(inputs: FigureInputs) -> Iterator[ReportFigure]:
    best_of = {}  # method -> its best row with such samples
    for row in reversed(inputs.board.ranked):
        if "words_drop" in row.samples:
            best_of[row.method] = row
    for row in best_of.values():
        texts = _texts(inputs, row.samples["words_captions"])
        drops = dict(zip(texts, row.samples["words_drop"], strict=True))
        yield ReportFigure(
            name="words",
            # a file may be called as another method, or have blanks in its name
            part=f"own-{row.preset}" if row.is_own else row.method,
            figure=word_importance(drops),
            alt=f"{row.title}: how much the score of a caption and its image drops without each of "
            f"its words, {len(drops)} captions",
        )
    attending = [row for row in inputs.board.ranked if "attention" in row.samples]
    if attending:
        yield _attention(inputs, attending[0])


def _attention(inputs: FigureInputs, row: Row) -> ReportFigure:
    """Where the words of a few captions look."""
    captions = row.samples["attention_captions"][:ATTENDED]
    split = inputs.split
    images = split.image_rows[split.image_of_caption[captions]]
    files = inputs.data.images["file"].iloc[images]
    texts = _texts(inputs, captions)
    weights = row.samples["attention"]
    attended = []
    for text, file, of_caption in zip(texts, files, weights, strict=False):
        image = _opened(inputs, file)
        attended.append(Attended(tokenise(text), image, of_caption))
    return ReportFigure(
        name="attention",
        figure=attention(attended),
        alt=f"{row.title}: where each word of {len(texts)} captions looks: "
        f"{'; '.join(texts)}",
    )


def _opened(inputs: FigureInputs, file: str) -> Image.Image:
    with inputs.open_image(file) as opened:
        return opened.convert("RGB")


def _texts(inputs: FigureInputs, captions: np.ndarray) -> list[str]:
    rows = inputs.split.caption_rows
    return inputs.data.captions["text"].iloc[rows[captions]].tolist()


def word_importance(drops: Mapping[str, np.ndarray]) -> Figure:
    """Bars of how much the score of a caption drops without a word, words in reading
    order; NaN for a word that the method does not use.

    Captions are sorted by length, so that panels of one height share a row.
    """
    captions = sorted(drops, key=lambda text: len(tokenise(text)))
    lines = [captions[start : start + 3] for start in range(0, len(captions), 3)]
    longest = [len(tokenise(line[-1])) for line in lines]
    heights = [AROUND + WORD * count for count in longest]
    size = (style.WIDTH, 0.4 + sum(heights))
    with style.drawing():
        figure = Figure(figsize=size, layout="constrained")
        layout = {"height_ratios": heights, "sharex": True, "squeeze": False}
        grid = figure.subplots(len(lines), len(lines[0]), **layout)
        for axes in grid.flat[len(captions) :]:
            axes.set_axis_off()
        for number, (axes, text) in enumerate(zip(grid.flat, captions, strict=False)):
            of_text = tokenise(text)
            positions = np.arange(len(of_text))
            values = np.nan_to_num(drops[text][: len(of_text)])
            colours = np.where(values > 0, style.ORANGE, style.BLUE)
            axes.barh(positions, values, color=colours)
            axes.axvline(0, color=style.GREY, linewidth=0.8)
            labels = [style.shown(word, 14, lines=1) for word in of_text]
            axes.set_yticks(positions, labels)
            axes.set_ylim(longest[number // 3] - 0.4, -0.6)  # bars of one height
            axes.grid(axis="y", visible=False)
            axes.set_title(style.shown(text, 36))
        figure.supxlabel("drop of the score when the word is left out", fontsize=9)
    return figure


def attention(captions: Sequence[Attended]) -> Figure:
    """Of each caption the image, and then the image once for each word, bright where
    the word looks. Every word has its own scale, up to its highest weight, which stands
    above it."""
    counts = []  # of the panels of a caption, whole rows
    tallest = 0.0
    for each in captions:
        counts.append(COLUMNS * ceil((1 + len(each.words)) / COLUMNS))
        tallest = max(tallest, each.image.height / each.image.width)
    with style.drawing():
        row = 0.45 + 0.95 * style.WIDTH / COLUMNS * tallest
        figure, grid = style.panels(sum(counts), columns=COLUMNS, head=0.2, row=row)
        for axes in grid:
            axes.set_axis_off()
        start = 0
        for each, count in zip(captions, counts, strict=True):
            _draw_attention(grid[start : start + count], each)
            start += count
    return figure


def _draw_attention(grid: Sequence[Axes], attended: Attended) -> None:
    small = attended.image.copy()
    small.thumbnail((SIDE, SIDE))
    width, height = small.size
    side = int(np.sqrt(attended.weights.shape[1]))
    edges = (-0.5, width - 0.5, height - 0.5, -0.5)
    grid[0].imshow(small, interpolation="none")
    drawn = zip(grid[1:], attended.words, attended.weights, strict=False)
    for axes, word, of_word in drawn:
        axes.imshow(small, interpolation="none")
        highest = of_word.max()
        brightness = of_word.reshape(side, side) / max(highest, 1e-12)
        veil = np.zeros((side, side, 4))
        veil[..., 3] = DARKEST * (1 - brightness)
        axes.imshow(veil, extent=edges, interpolation="none")
        title = f"{style.shown(word, 16, lines=2)}\n{highest:.2f}"
        axes.set_title(title, fontsize=8)


def phrases(inputs: FigureInputs) -> Iterator[ReportFigure]:
    """Evenly spaced phrases of the test split, then evenly spaced ones that the best
    row misses: with its boxes, and those of the best one of BASELINE or, without one,
    of the last row."""
    data = inputs.data
    rows = [row for row in inputs.board.ranked if "p2r_boxes" in row.samples]
    baselines = [row for row in rows[1:] if row.method == BASELINE]
    rows = rows[:1] + (baselines[:1] or rows[1:][-1:])
    if not rows:
        return
    regions = data.regions.iloc[inputs.split.region_rows]
    truths = regions[CORNERS].to_numpy(np.float64)
    chosen = [row.samples["p2r_boxes"] for row in rows]
    boxes = np.stack([truths, *chosen], axis=1)
    overlap_of_best = iou(boxes[:, 1], truths)
    missed = np.flatnonzero(overlap_of_best < CORRECT_IOU)
    files = data.images.set_index("image_id")["file"]
    titles = [row.title for row in rows]
    kinds = {
        "phrases": np.arange(len(regions)),
        f"phrases that {titles[0]} misses": missed,
    }
    drawn = []
    texts = []
    for which, numbers in kinds.items():
        located = []
        for number in evenly(numbers, PHRASES):
            region = regions.iloc[number]
            image = _opened(inputs, files[region["image_id"]])
            located.append(Located(region["phrase"], image, boxes[number]))
        if located:
            listed = "; ".join(each.phrase for each in located)
            texts.append(f"{which}, evenly spaced: {listed}")
        drawn += located
    if drawn:
        yield ReportFigure(
            name="phrases",
            figure=phrase_boxes(drawn, titles),
            alt=f"{' and '.join(titles)}: the true box and the best-scored one of "
            f"{'. Of '.join(texts)}",
        )


def phrase_boxes(phrases: Sequence[Located], titles: Sequence[str]) -> Figure:
    """One panel per phrase with its image and boxes, each but the true one with its
    intersection over union with that; `titles` are of the rows that chose them."""
    with style.drawing():
        figure, grid = style.panels(len(phrases), columns=3, head=0.1, row=2.9)
        for axes, located in zip(grid, phrases, strict=True):
            small = located.image.copy()
            small.thumbnail((LARGE, LARGE))
            axes.imshow(np.asarray(small), interpolation="none")
            axes.set_axis_off()
            scale = np.tile(np.divide(small.size, located.image.size), 2)
            corners = located.boxes * scale - 0.5  # whole numbers: centres of pixels
            for (x0, y0, x1, y1), look in zip(corners, LOOKS, strict=False):
                size = (x1 - x0, y1 - y0)
                axes.add_patch(Rectangle((x0, y0), *size, fill=False, **look))
            truth, *chosen = located.boxes
            overlaps = ", ".join(f"{iou(box, truth):.2f}" for box in chosen)
            phrase = style.shown(located.phrase, 40, lines=2)
            axes.set_title(f"{phrase}\nIoU {overlaps}")
        handles = [Line2D([], [], **look) for look in LOOKS[: 1 + len(titles)]]
        style.legend_below(figure, handles, ["true box", *titles])
    return figure


FIGURES = {"examples": words, "phrases": phrases}
