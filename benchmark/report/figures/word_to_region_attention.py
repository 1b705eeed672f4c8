"""Where in the picture each word of a caption looks, after Fig. 4 of the SCAN paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from benchmark.analysis.boards import Standing
from benchmark.data.vocabularies import tokenise
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.figure_style import COLOURS, WIDTH, drawing, panels, shown

SECTION = "examples"
CAPTIONS = 3  # that are drawn
SIDE = 160  # pixels of the longer side of a drawn picture
DARKEST = 0.15  # brightness of a cell without any attention
COLUMNS = 8


@dataclass(frozen=True, kw_only=True)
class Attended:
    """A picture, the words of its caption, and their attention over the picture's grid cells."""

    title: str
    picture: Image.Image | np.ndarray  # RGB; an array (H, W, 3) of bytes
    words: Sequence[str]
    weights: np.ndarray  # (W, grid, grid), not negative


def pictures(inputs: FigureInputs) -> Iterator[Picture]:
    """Of the best preset that has attention."""
    standings = (s for s in inputs.board.ranked if "attention" in s.samples)
    best = next(standings, None)
    if best:
        for number in range(min(CAPTIONS, len(best.samples["attention"]))):
            attended = _attended(best, number, inputs)
            yield Picture(
                name=f"attention-{number + 1}",
                figure=word_to_region_attention(attended),
                alt=f"{best.row.title}: where each word of the caption looks: {attended.title}",
                is_scalable=False,
            )


def _attended(standing: Standing, number: int, inputs: FigureInputs) -> Attended:
    samples, data = standing.samples, inputs.data
    split = data.split("test")
    caption = int(samples["attention_captions"][number])
    text = data.captions["text"].iloc[int(split.caption_rows[caption])]
    words = tokenise(text)
    weights = samples["attention"][number][: len(words)]
    side = int(np.sqrt(weights.shape[1]))
    image_row = int(split.image_rows[split.image_of_caption[caption]])
    with inputs.open_picture(data.images["file"].iloc[image_row]) as opened:
        picture = opened.convert("RGB")
    return Attended(
        title=text, picture=picture, words=words, weights=weights.reshape(len(words), side, side)
    )


def word_to_region_attention(attended: Attended) -> Figure:
    """The picture once for each word, bright where the word looks, its strongest cell outlined.

    Every word has its own scale: full brightness is the word's highest weight, which stands below
    the word.
    """
    small = _small(attended.picture)
    height, width, _ = small.shape
    row = 0.45 + 0.95 * WIDTH / COLUMNS * height / width
    with drawing():
        count = 1 + len(attended.words)
        figure, grid = panels(max(count, COLUMNS), columns=COLUMNS, head=0.5, row=row)
        for axes in grid[count:]:
            axes.set_axis_off()
        _picture(grid[0], small, "picture")
        for axes, word, weights in zip(
            grid[1:count], attended.words, attended.weights, strict=True
        ):
            bright = brightness(weights, width, height)
            seen = np.round(small * bright[..., None]).astype(np.uint8)
            _picture(axes, seen, f"{shown(word, 16, lines=2)}\n{weights.max():.2f}")
            _outline(axes, weights, width, height)
        figure.suptitle(shown(attended.title, 130), fontsize=9)
    return figure


def brightness(weights: np.ndarray, width: int, height: int) -> np.ndarray:
    """Attention (grid, grid) as factors (height, width) from DARKEST to 1, smooth between the
    centres of the cells."""
    shares = weights.astype(np.float32) / max(float(weights.max()), 1e-12)
    smooth = Image.fromarray(shares).resize((width, height), Image.Resampling.BILINEAR)
    return DARKEST + (1 - DARKEST) * np.asarray(smooth, dtype=np.float64)


def _small(picture: Image.Image | np.ndarray) -> np.ndarray:
    """The picture as bytes (H, W, 3), its longer side at most SIDE."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image = image.convert("RGB")
    image.thumbnail((SIDE, SIDE))
    return np.asarray(image)


def _picture(axes: Axes, pixels: np.ndarray, title: str) -> None:
    axes.imshow(pixels)
    axes.set_title(title, fontsize=8)
    axes.set_axis_off()


def _outline(axes: Axes, weights: np.ndarray, width: int, height: int) -> None:
    row, column = np.unravel_index(int(np.argmax(weights)), weights.shape)
    rows, columns = weights.shape
    size = (width / columns, height / rows)
    corner = (column * size[0] - 0.5, row * size[1] - 0.5)  # pixels are centred on whole numbers
    axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=COLOURS[1], linewidth=1.6))
