"""What the score of a caption and its image rests on: its words (instance-loss paper, Fig. 11), and
where each of them looks in the image (SCAN, Fig. 4). Of the best row that has such samples."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from benchmark.data.vocabularies import tokenise
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figure_style import BLUE, GREY, ORANGE, WIDTH, drawing, panels, shown

WORD, AROUND = 0.19, 0.9  # inches; of a word, and of a panel's title and axis
ATTENDED = 3  # captions whose attention is drawn
SIDE = 100  # pixels of the longer side of a drawn image
DARKEST = 0.85  # opacity of the veil over a cell without any attention
COLUMNS = 8


def words(inputs: FigureInputs) -> Iterator[ReportFigure]:
    row = next((row for row in inputs.board.ranked if "words_drop" in row.samples), None)
    if row:
        texts = _texts(inputs, row.samples["words_captions"])
        drops = dict(zip(texts, row.samples["words_drop"], strict=True))
        yield ReportFigure(
            name="words",
            figure=word_importance(drops),
            alt=f"{row.title}: how much the score of a caption and its image drops without each of "
            f"its words, {len(drops)} captions",
        )
    row = next((row for row in inputs.board.ranked if "attention" in row.samples), None)
    if row:
        captions = row.samples["attention_captions"][:ATTENDED]
        split = inputs.data.split("test")
        for number, text in enumerate(_texts(inputs, captions)):
            image_row = int(split.image_rows[split.image_of_caption[captions[number]]])
            with inputs.open_image(inputs.data.images["file"].iloc[image_row]) as opened:
                image = opened.convert("RGB")
            yield ReportFigure(
                name=f"attention-{number + 1}",
                figure=attention(image, tokenise(text), row.samples["attention"][number]),
                alt=f"{row.title}: where each word of the caption looks: {text}",
            )


def _texts(inputs: FigureInputs, captions: np.ndarray) -> list[str]:
    rows = inputs.data.split("test").caption_rows
    return [inputs.data.captions["text"].iloc[int(rows[caption])] for caption in captions]


def word_importance(drops: Mapping[str, np.ndarray]) -> Figure:
    """Bars of how much the score of a caption drops without a word, words in reading order; NaN for
    a word that the method does not use.

    Captions are sorted by length, so that panels of one height share a row.
    """
    captions = sorted(drops, key=lambda text: len(tokenise(text)))
    lines = [captions[start : start + 3] for start in range(0, len(captions), 3)]
    longest = [len(tokenise(line[-1])) for line in lines]
    heights = [AROUND + WORD * count for count in longest]
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.4 + sum(heights)), layout="constrained")
        shape = (len(lines), len(lines[0]))
        grid = figure.subplots(*shape, squeeze=False, height_ratios=heights, sharex=True)
        for axes in grid.flat[len(captions) :]:
            axes.set_axis_off()
        for number, (axes, text) in enumerate(zip(grid.flat, captions, strict=False)):
            of_text = tokenise(text)
            values, at = np.nan_to_num(drops[text][: len(of_text)]), np.arange(len(of_text))
            axes.barh(at, values, color=[ORANGE if value > 0 else BLUE for value in values])
            axes.axvline(0, color=GREY, linewidth=0.8)
            axes.set_yticks(at, [shown(word, 14, lines=1) for word in of_text])
            axes.set_ylim(longest[number // 3] - 0.4, -0.6)  # bars of one height
            axes.grid(axis="y", visible=False)
            axes.set_title(shown(text, 36))
        figure.supxlabel("drop of the score when the word is left out", fontsize=9)
    return figure


def attention(image: Image.Image, of_text: Sequence[str], weights: np.ndarray) -> Figure:
    """The image once for each word, bright where the word looks: `weights` (W, G) are over a square
    grid of cells. Every word has its own scale, up to its highest weight, which stands above it."""
    small = image.copy()
    small.thumbnail((SIDE, SIDE))
    width, height = small.size
    side = int(np.sqrt(weights.shape[1]))
    with drawing():
        row = 0.45 + 0.95 * WIDTH / COLUMNS * height / width
        figure, grid = panels(max(1 + len(of_text), COLUMNS), columns=COLUMNS, head=0.2, row=row)
        for axes in grid:
            axes.set_axis_off()
        grid[0].imshow(small, interpolation="none")
        for axes, word, of_word in zip(grid[1:], of_text, weights, strict=False):
            axes.imshow(small, interpolation="none")
            veil = np.zeros((side, side, 4))
            veil[..., 3] = DARKEST * (1 - of_word.reshape(side, side) / max(of_word.max(), 1e-12))
            axes.imshow(veil, extent=(-0.5, width - 0.5, height - 0.5, -0.5), interpolation="none")
            axes.set_title(f"{shown(word, 16, lines=2)}\n{of_word.max():.2f}", fontsize=8)
    return figure


FIGURES = {"examples": words}
