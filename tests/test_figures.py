"""The figures: the numbers drawn are those of the board, read back from what matplotlib
would draw; any text can stand in them; they give the same bytes twice; their files are
found by themselves."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import builders
import numpy as np
import pandas as pd
import pytest
from made_ledger import judged, season
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from benchmark.boards.claim_ledger import ledger
from benchmark.core.errors import UserError
from benchmark.data.results import SAMPLES, Histograms
from benchmark.papers.printed_tables import papers
from benchmark.report import figure_listing, figure_style, figures
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures import cost, images, similarity, training
from benchmark.report.figures import papers as drawn_papers
from benchmark.report.figures.intervals import claim_lines, leaderboard_lines
from benchmark.report.interval_figure import Line, Look, Mark, intervals
from benchmark.report.ledger_figures import ledger_figure
from benchmark.stats.claim_kinds import KINDS, Conclusion
from benchmark.stats.verdicts import Rule

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


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
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


def points(axes: Axes, marker: str) -> list[list[float]]:
    """Of all marks of a kind."""
    drawn = [line.get_xydata() for line in axes.lines if line.get_marker() == marker]
    return np.concatenate(drawn).tolist() if drawn else []


def titles(figure: Figure) -> list[str]:
    """Of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


# Any text, the same bytes ---


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
    return cost.quality_and_cost(made, made.rows)


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
        Image.new("RGB", (6, 4)), names, np.full((len(names), 4), 0.25)
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
    """Of each shape its tag, style, text, other attributes, and all numbers of its
    place."""
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
    with pytest.raises(UserError, match="found nowhere; name the section") as error:
        list(figure_listing.figures("result", inputs))
    assert "similarity" in str(error.value) and "papers/scan" in str(error.value)


# Intervals ---


def test_marks_intervals_and_bands_stand_at_their_numbers():
    marks = [
        Mark(value=2.0, look=LOOK, ends=(1.0, 3.5)),
        Mark(value=0.5, look=Look(title="other", colour="red", marker="D"), shift=0.05),
    ]
    lines = [
        Line(label="first", marks=marks, panel="p", text="x"),
        Line(label="second", marks=marks[:1], panel="p", band=(1.0, 2.0)),
        Line(label="third", marks=marks[:1], panel="q"),
    ]
    upper, lower = intervals(lines, band="true there").axes
    places = upper.get_yticks()
    assert [label.get_text() for label in upper.get_yticklabels()] == [
        "first",
        "second",
    ]
    assert upper.get_ylim()[0] > upper.get_ylim()[1]  # the first one on top
    assert points(upper, "o") == [[2, places[0]], [2, places[1]]]
    assert points(upper, "D") == [[0.5, pytest.approx(places[0] + 0.05)]]
    (spans,) = upper.collections
    assert [span[:, 0].tolist() for span in spans.get_segments()] == [
        [1, 3.5],
        [1, 3.5],
    ]
    (band,) = upper.patches
    assert (band.get_x(), band.get_width()) == (1, 1)
    assert band.get_y() < places[1] < band.get_y() + band.get_height()
    assert titles(upper.figure) == ["l", "other", "true there"]
    assert lower.get_title(loc="left") == "q" and points(lower, "o")[0][0] == 2


def test_the_ranking_has_the_means_and_intervals_of_the_leaderboard():
    made = board(row("poor", 0.1, 0.2, 0.1), row("best", 0.9, 1.0, 0.9))
    best, poor = leaderboard_lines(made)
    assert (best.label, poor.label) == ("best", "poor")
    recall = 100 * np.mean([27, 30, 27]) / IMAGES
    (mark,) = best.marks
    # R@1 = R@5 = R@10 of both directions
    assert mark.value == pytest.approx(6 * recall)
    assert mark.ends[0] < mark.value < mark.ends[1] <= 600
    assert best.band and not poor.band
    assert best.text.split("; ")[0] == "3"
    (alone,) = leaderboard_lines(board(row("alone", 0.5)))
    assert alone.marks[0].is_of_these_trainings and alone.band is None


def pair(
    conclusion: str, difference: float, printed: float | None, kind: str = "ordered"
):
    comparison = SimpleNamespace(
        is_of_these_trainings=False, metric="i2t_r1", names="A over B"
    )
    return SimpleNamespace(
        conclusion=Conclusion(conclusion),
        difference=difference,
        interval=(difference - 1, difference + 1),
        printed=printed,
        margin=1.5,
        rule=Rule(kind=KINDS[kind], margin=1.5),
        comparison=comparison,
    )


def test_the_claims_have_their_differences_margins_and_printed_ones():
    claim = SimpleNamespace(statement="A beats B.")
    pairs = [pair("holds", 2.0, 4.3), pair("undecided", 0.2, None, "not_better")]
    verdict = SimpleNamespace(claim=claim, verdicts=pairs, is_counted=True)
    first, second = claim_lines([verdict])
    assert [mark.value for mark in first.marks] == [-1.5, 1.5, 2.0, 4.3]
    assert [mark.value for mark in second.marks] == [1.5, 0.2]
    assert (first.marks[2].look.title, second.marks[1].look.title) == (
        "holds",
        "undecided",
    )
    assert first.marks[2].ends == (1.0, 3.0) and "R@1" in first.panel
    assert first.label == "A over B: A beats B."
    pairs[1].interval = None
    assert len(claim_lines([verdict])) == 1
    verdict.is_counted = False
    assert claim_lines([verdict]) == []


# Over all seasons ---

SCAN = [claim for claim in papers()["scan"].claims if claim.presets]
DENIED = next(claim for claim in SCAN if claim.parts[0].kind == "alike")


def rows_of(*found, split: str = "official"):
    return ledger([season("s", *found, dataset="d", title="Data", split=split)])


def test_the_ledger_draws_shares_of_the_printed_difference():
    figure = ledger_figure(
        rows_of(judged("holds", SCAN[0].id), judged("undecided", DENIED.id))
    )
    asserted, denied = figure.axes
    assert [x for x, _ in points(asserted, "o")] == [0.5]
    assert [x for x, _ in points(asserted, "|")] == [1.0]
    (span,) = asserted.collections[0].get_segments()
    assert span[:, 0].tolist() == [0.25, 0.75]
    assert points(denied, "o")[0][0] == pytest.approx(2 / 1.5)  # in margins
    assert (denied.patches[0].get_x(), denied.patches[0].get_width()) == (-1, 2)
    assert {"Data (s)", "printed in the paper", "holds in this test"} <= set(
        titles(figure)
    )


# Boards ---


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


def instance_figures(*rows, samples: dict | None = None) -> dict:
    """The figures of the paper, by name."""
    for each in rows:
        kept = histograms(np.array([0.5]), np.array([0.1]))
        builders.keep_ranks(each.played[0], {}, histograms=kept)
    if samples:
        builders.keep_arrays(rows[0].played[0], SAMPLES, **samples)
    return {
        of.name: of
        for of in drawn_papers.instance_loss(FigureInputs(board=board(*rows)))
    }


def test_losses_and_correlations_have_the_numbers_of_the_paper_and_of_numpy():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(6, 8))
    vectors = {"before": spread + 3 * rng.normal(size=8), "after": spread}
    expected = {when: np.corrcoef(of) for when, of in vectors.items()}
    samples = {
        f"correlation_{when}": of.astype(np.float16) for when, of in expected.items()
    }
    rows = [row("dual_path_instance_1", 0.75), row("dual_path_rank_1", 0.5)]
    found = instance_figures(*rows, samples=samples)
    assert list(found) == ["losses", "correlations"]
    rank, instance = (axes.get_title() for axes in found["losses"].figure.axes)
    assert "S 0.5000 (paper 0.2563)" in rank and "S 0.2500 (paper 0.1633)" in instance
    assert "mean of P 0.750, of Q 0.100" in instance
    means = []
    for axes, of in zip(
        found["correlations"].figure.axes, expected.values(), strict=False
    ):
        (image,) = axes.images
        assert image.get_clim() == (-1, 1)
        assert np.abs(image.get_array() - of).max() < 1e-3  # half precision
        means.append(
            np.mean([abs(of[i, j]) for i in range(6) for j in range(6) if i != j])
        )
    told = re.search(
        r"goes from (\S+) to (\S+): it recurs", found["correlations"].caption
    ).groups()
    assert (
        list(map(float, told)) == pytest.approx(means, abs=1e-3) and means[0] > means[1]
    )


def test_the_branch_whose_loss_halves_first_converges_first():
    slow, quick, later = [8.0, 7.0, 6.0], [8.0, 3.0, 1.0], [8.0, 4.0, 3.0]
    for visual, textual, told in (
        (quick, later, "epoch 2 for images and in epoch 3 for texts: it rec"),
        (slow, quick, "no epoch for images and in epoch 2 for texts: it does"),
        (quick, slow, "epoch 2 for images and in no epoch for texts: it rec"),
    ):
        history = HISTORY.assign(loss_visual=visual, loss_textual=textual)
        found = instance_figures(row("dual_path_instance_1", 0.5, history=history))[
            "branches"
        ]
        assert told in found.caption
        lines = found.figure.axes[0].lines
        assert [list(line.get_ydata()) for line in lines] == [visual, textual]
        assert [list(line.get_xdata()) for line in lines] == [[1, 2, 3]] * 2
    assert list(instance_figures(row("dual_path_instance_1", 0.5))) == ["losses"]


def cyclematch_figures(preset: str, samples: dict, **declared: object) -> list:
    (made,) = board(row(preset, 0.5)).rows
    made = builders.standing(preset, made.outcomes, "P", **declared)
    builders.keep_arrays(made.outcomes[0], SAMPLES, **samples)
    return list(drawn_papers.cyclematch(FigureInputs(board=board(made))))


def test_a_map_joins_every_image_with_its_caption():
    points = np.array([[0, 0], [4, 0], [0, 4], [1, 0], [5, 0], [1, 4.0]], np.float32)
    (found,) = cyclematch_figures("cyclematch", {"tsne_visual": points})
    (axes,) = found.figure.axes
    images, captions, joined = axes.collections
    assert axes.get_title() == "P: visual space"
    assert images.get_offsets().tolist() == points[:3].tolist()
    assert captions.get_offsets().tolist() == points[3:].tolist()
    pairs = [segment.tolist() for segment in joined.get_segments()]
    assert pairs == [[points[i].tolist(), points[i + 3].tolist()] for i in range(3)]
    others = [
        np.linalg.norm(points[i] - points[3 + j])
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    assert f"P: visual space {1 / np.median(others):.2f}. It recurs" in found.caption


def test_adaptive_weights_curves_and_scores_are_those_of_the_samples():
    samples = {
        "weights_i2t": [[0.2, 0.4], [0.8, 0.6]],
        "weights_t2i": [[0.3], [0.7]],
        "curve_queries_i2t": [1],
        "curve_queries_t2i": [0],
        "curves_i2t": [[[3, 2, 1.0]], [[1, 0, -1.0]]],
        "curves_t2i": [[[5, 4.0]], [[9, 8.0]]],
        "similarity": [[3.0, -1], [0, 1]],
    }
    fuse = {"of": ["m:visual", "m:textual"], "how": "adaptive"}
    given = {name: np.array(of_way) for name, of_way in samples.items()}
    curves, histogram, matrix = cyclematch_figures(
        "cyclematch_adaptive", given, fuse=fuse
    )
    image, caption = curves.figure.axes
    assert (image.get_title(), caption.get_title()) == (
        "image query 1",
        "caption query 0",
    )
    visual, textual = image.lines[:2]
    assert visual.get_xydata().tolist() == [[0, 3], [50, 2], [100, 1]]
    assert textual.get_ydata().tolist() == [1, 0, -1]
    labels = [text.get_text() for text in image.get_legend().get_texts()]
    assert labels == ["visual: weight 0.400", "textual: weight 0.600"]
    assert "33% do: it does not recur" in histogram.caption
    assert "visual 0.30 ± 0.08, textual 0.70 ± 0.08" in histogram.caption
    visual, textual = histogram.figure.axes[0].patches[1:]
    assert visual.get_xy()[:, 0].min() == 0.2 and textual.get_xy()[:, 0].max() == 0.8
    assert matrix.figure.axes[0].images[0].get_array().tolist() == [[1, 0], [0.25, 0.5]]


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


def test_attention_uncovers_the_image_where_a_word_looks():
    weights = np.array([[0, 0, 0, 0.8]])
    figure = images.attention(Image.new("RGB", (300, 200)), ["dog"], weights)
    plain, dog = (axes for axes in figure.axes if axes.images)
    assert plain.images[0].get_array().shape[:2] == (67, 100)
    dark = images.DARKEST
    assert dog.images[1].get_array()[..., 3].tolist() == [[dark, dark], [dark, 0]]
    assert dog.get_title() == "dog\n0.80"


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


def test_costs_stand_at_their_times_and_rsum():
    made = board(row("a", 0.5, 0.7, training=[10.0]), row("b", 0.9, training=[]))
    left, right = cost.quality_and_cost(made, made.rows).axes
    a, b = (each.mean("rsum") for each in made.rows)
    assert points(left, "o") == [[10, a]]
    milliseconds = 1000 * (1e-3 + IMAGES * 1e-5)
    assert points(right, "o") == [[milliseconds, a], [milliseconds, b]]
    assert (
        left.get_xscale() == right.get_xscale() == "log"
        and left.get_ylim() == right.get_ylim()
    )
    # The front is what no other beats in both.
    made = list(map(tuple, np.random.default_rng(0).integers(1, 9, (40, 2)).tolist()))
    best = {
        x
        for x in made
        if not any(y[0] <= x[0] and y[1] >= x[1] and y != x for y in made)
    }
    assert cost.front(made) == sorted(best)


def test_curves_are_the_epochs_and_a_dot_marks_the_selected_one():
    left, right = training.training_curves(board(row("_a", 0.5, 0.6))).axes
    assert left.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1.9]]
    assert right.lines[0].get_xydata().tolist() == [[1, 10], [2, 30], [3, 20]]
    assert points(right, "o") == [[2, 30]]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["_a"]
