"""The figures: any text can stand in them, they give the same bytes twice, and their files
are found by themselves."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from made_boards import (
    HOSTILE,
    NAMES,
    board,
    enter_made,
    histograms,
    row,
    titles,
)
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from refusals import refused

from benchmark.report import figure_listing, figure_style, figures
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures import images, similarity, training
from benchmark.report.figures import papers as drawn_papers
from benchmark.report.figures.intervals import Line, Look, Mark, intervals


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


BOXES = np.array([[0.0, 0.0, 30.0, 30.0], [10.0, 20.0, 30.0, 40.0]])
SCORES = histograms(np.array([0.5, 0.6]), np.array([0.0, 0.1, 0.2]))


def drawn_intervals(names: tuple[str, ...]) -> Figure:
    marks = [
        Mark(value=1.0, look=Look(title=name, colour="black"), ends=(0, 2))
        for name in names
    ]
    return intervals([Line(label=n, marks=marks, panel=n, text=n[:9]) for n in names])


def drawn_boards(names: tuple[str, ...]) -> Figure:
    rows = [
        row(f"p{at}", 0.5, title=name, method=name) for at, name in enumerate(names)
    ]
    return training.training_curves(board(*rows))


def drawn_costs(names: tuple[str, ...]) -> Figure:
    made = board(*(row(f"p{at}", 0.5, title=name) for at, name in enumerate(names)))
    return training.quality_and_cost(made, made.rows)


DRAWN = [
    drawn_intervals,
    drawn_boards,
    drawn_costs,
    lambda names: similarity.densities(
        [figure_style.shown(name, 44) for name in names],
        [SCORES] * len(names),
        [(-1, 1)] * 3,
    ),
    lambda names: figure_style.matrix_panels(
        dict.fromkeys(names, np.eye(3)), ("a", "b", "c"), "cividis", 0
    ),
    lambda names: drawn_papers.space_maps(dict.fromkeys(names, np.eye(4)[:, :2])),
    lambda names: drawn_papers.score_curves(
        {"q": (np.eye(len(names)), np.ones(len(names)))}, names
    ),
    lambda names: drawn_papers.weight_histograms(
        {"q": np.full((len(names), 4), 0.3)}, names
    ),
    lambda names: images.word_importance({names[0]: np.linspace(-1, 1, 400)}),
    lambda names: images.attention(
        [
            images.Attended(
                names, Image.new("RGB", (6, 4)), np.full((len(names), 4), 0.25)
            )
        ]
    ),
    lambda names: images.phrase_boxes(
        [images.Located(name, Image.new("RGB", (60, 90)), BOXES) for name in names],
        names[:1],
    ),
]


@pytest.mark.parametrize("draw", DRAWN)
def test_any_text_can_be_drawn_and_the_same_bytes_come_twice(
    draw: Callable, tmp_path: Path
):
    first, second = (
        figure_style.save(draw(NAMES), tmp_path / name) for name in ("a", "b")
    )
    text = first.read_text(encoding="utf-8")
    assert first.suffix == ".svg" and second.read_text(encoding="utf-8") == text
    tags = {
        element.tag.rpartition("}")[2]
        for element in ElementTree.fromstring(text).iter()
    }
    assert "svg" in tags and not tags & {"script", "date", "creator"}
    assert not re.search(r"20\d\d-\d\d-\d\d|atplotlib v", text)


KEPT = {"clip-path", "class", "id", "viewBox"}


@pytest.mark.parametrize("draw", [drawn_intervals, *DRAWN[3:6]])
def test_a_compact_figure_has_the_same_shapes_at_the_same_places_in_the_same_styles(
    draw: Callable,
):
    with figure_style.drawing():
        file = BytesIO()
        draw(NAMES).savefig(file, format="svg", metadata={"Date": None})
    whole, small = (
        ElementTree.fromstring(file.getvalue()),
        figure_style.compact(file.getvalue()),
    )
    assert len(small) < 0.9 * len(file.getvalue())
    for one, other in zip(
        leaves(whole), leaves(ElementTree.fromstring(small)), strict=True
    ):
        assert one[:-1] == other[:-1] and other[-1] == pytest.approx(
            one[-1], abs=0.0051
        )


def leaves(element, style: str = ""):
    """By shape: tag, style, text, attributes, numbers of its place."""
    style = element.get("style", style)
    for child in element:
        yield from leaves(child, style)
    places = " ".join(element.get(name, "") for name in ("d", "x", "y", "transform"))
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", places)]
    if not len(element):
        left = {name: element.get(name) for name in KEPT & element.attrib.keys()}
        yield element.tag, style, (element.text or "").strip(), left, numbers


@pytest.mark.parametrize("draw", DRAWN)
def test_all_text_is_inside(draw: Callable):
    figure = draw((HOSTILE, "plain", ""))
    with figure_style.drawing():
        figure.draw_without_rendering()
        ends = figure.get_tightbbox()  # inches
    width, height = figure.get_size_inches()
    assert ends.x0 > -0.01 and ends.y0 > -0.01
    assert ends.x1 < width + 0.01 and ends.y1 < height + 0.01


def test_a_large_figure_is_a_png(tmp_path, monkeypatch):
    small = figure_style.save(drawn_intervals(("a",)), tmp_path / "a")
    monkeypatch.setattr(figure_style, "MOST_BYTES", 10)
    large = [
        figure_style.save(drawn_intervals(("a",)), tmp_path / name)
        for name in ("b", "c")
    ]
    assert [path.name for path in (small, *large)] == ["a.svg", "b.png", "c.png"]
    assert (
        large[0].read_bytes() == large[1].read_bytes()
        and not (tmp_path / "b.svg").exists()
    )
    with Image.open(large[0]) as image:
        assert image.width == figure_style.WIDTH * figure_style.DPI


def test_text_is_wrapped_cut_and_freed_of_what_the_font_lacks():
    cut = "\N{HORIZONTAL ELLIPSIS}"
    assert figure_style.shown("a\n b\t$c$", 40) == "a b $c$"
    assert figure_style.shown("one two three", 7) == "one two\nthree"
    assert figure_style.shown("one two three four", 5, lines=2) == f"one\ntwo{cut}"
    assert figure_style.shown("\N{DOG FACE}\x07\u72d7caf\u00e9", 9) == "???caf\u00e9"


# Files of figures/ ---

DROPPED = """
from matplotlib.figure import Figure

from benchmark.report.figure_listing import ReportFigure


def bars(inputs):
    figure = Figure(figsize=(1, 1))
    yield ReportFigure(name="dropped", figure=figure, alt=inputs.board.title, caption="Why.")


FIGURES = {{"{section}": bars}}
"""


def test_a_file_is_all_that_a_figure_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    (tmp_path / "dropped_alone.py").write_text(DROPPED.format(section="result"))
    inputs = FigureInputs(board=board())
    (found,) = figure_listing.figures("result", inputs)
    assert (found.name, found.alt, found.caption) == ("dropped", "Made", "Why.")
    assert list(figure_listing.figures("claims", inputs)) == []
    (tmp_path / "dropped_astray.py").write_text(DROPPED.format(section="nowhere"))
    with refused("dropped_astray.py", "papers/scan", "nowhere", "section") as error:
        list(figure_listing.figures("result", inputs))
    assert "similarity" in error.value.expected


# Intervals ---


def test_words_are_bars_in_reading_order_on_one_scale():
    drops = {
        "One two three": np.array([0.1, -0.2, np.nan, np.nan]),
        "four": np.array([3.0]),
    }
    first, second = images.word_importance(drops).axes[:2]
    assert [bar.get_width() for bar in second.patches] == [0.1, -0.2, 0]
    assert [label.get_text() for label in second.get_yticklabels()] == [
        "one",
        "two",
        "three",
    ]
    colours = [to_hex(bar.get_facecolor()).upper() for bar in second.patches[:2]]
    assert colours == [figure_style.ORANGE, figure_style.BLUE]
    assert first.get_xlim() == second.get_xlim()
    assert first.get_xlim()[0] < -0.2 and first.get_xlim()[1] > 3


def test_methods_of_one_file_name_have_figures_of_their_own():
    words = {"words_drop": np.ones((1, 2)), "words_captions": np.array([0])}
    rows = []
    for preset, method in (("a", "scan"), ("b", "my/scan.py"), ("c", "my own/scan.py")):
        row = {"preset": preset, "title": preset, "method": method, "samples": words}
        rows.append(SimpleNamespace(**row, is_own=method.endswith(".py")))
    split = SimpleNamespace(caption_rows=np.array([0]))
    texts = pd.DataFrame({"text": ["a dog"]})
    data = SimpleNamespace(captions=texts, split=lambda name: split)
    inputs = FigureInputs(board=SimpleNamespace(ranked=rows), data=data)
    names = [figure.file for figure in images.words(inputs)]
    assert sorted(names) == ["words-own-b", "words-own-c", "words-scan"]


def test_attention_uncovers_the_image_where_a_word_looks():
    weights = np.array([[0, 0, 0, 0.8]])
    of_dog = images.Attended(["dog"], Image.new("RGB", (300, 200)), weights)
    figure = images.attention([of_dog, of_dog])
    plain, dog, _, again = (axes for axes in figure.axes if axes.images)
    assert plain.images[0].get_array().shape[:2] == (67, 100)
    dark = images.DARKEST
    assert dog.images[1].get_array()[..., 3].tolist() == [[dark, dark], [dark, 0]]
    assert dog.get_title() == again.get_title() == "dog\n0.80"


def test_boxes_stand_at_their_places_in_the_smaller_image():
    """An image of 600 x 900 is drawn with a third of its sides."""
    boxes = np.array([[0, 0, 600.0, 900.0], [150, 300, 450, 600]])
    located = images.Located("a dog", Image.new("RGB", (600, 900)), boxes)
    figure = images.phrase_boxes([located], ["best"])
    (axes,) = figure.axes
    assert axes.images[0].get_array().shape == (300, 200, 3)
    true, best = (patch.get_bbox().extents for patch in axes.patches)
    assert true == pytest.approx([-0.5, -0.5, 199.5, 299.5])
    assert best == pytest.approx([49.5, 99.5, 149.5, 199.5])
    assert axes.get_title() == "a dog\nIoU 0.17"  # 300 x 300 of 600 x 900
    assert titles(figure) == ["true box", "best"]
