"""The figures: they show any text, give the same bytes twice, and are found by their files."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import builders
import matplotlib
import numpy as np
import pytest
from figure_rows import curve, forest_row, located, price, sweep
from matplotlib.figure import Figure
from PIL import Image

from benchmark.core.errors import UserError
from benchmark.report import figure_listing, figure_style, figures
from benchmark.report.density_panels import Scores
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures import (
    density_by_loss,
    embedding_maps,
    example_scores,
    forest,
    fusion_weights,
    image_correlations,
    overlap_intervals,
    phrase_boxes,
    quality_and_cost,
    recall_by_regions,
    score_densities,
    training_curves,
    word_importance,
    word_to_region_attention,
)
from benchmark.report.matrix_panels import Matrix

HOSTILE = "_a_ $x^2$ $\\frac{$ <script>x</script> & %d \\\n\r\tnew line \N{DOG FACE} ]]> \x07"
LONG = "word " * 80 + "x" * 200
NAMES = (HOSTILE, LONG, "")


def drawn_similarities(names: tuple[str, ...]) -> Figure:
    scores = Scores(matched=np.array([0.5, 0.6]), unmatched=np.array([0.0, 0.1, 0.2]))
    return score_densities.score_densities(
        [score_densities.Panel(title=name, overlap=0.1, bound=0.1, scores=scores) for name in names]
    )


def drawn_losses(names: tuple[str, ...]) -> Figure:
    facts = {"overlap": 0.1, "mean_matched": 0.5, "mean_unmatched": 0.1}
    facts |= {"scores": Scores(matched=np.array([0.5]), unmatched=np.array([0.1]))}
    return density_by_loss.density_by_loss(
        [density_by_loss.LossPanel(title=name, **facts) for name in names]
    )


def drawn_overlaps(names: tuple[str, ...]) -> Figure:
    facts = {"overlap": 0.2, "ends": (0.1, 0.3), "half_bins": 0.25, "double_bins": 0.15}
    return overlap_intervals.overlap_intervals(
        [overlap_intervals.OverlapRow(title=name, bound=0.18, **facts) for name in names]
    )


def drawn_correlations(names: tuple[str, ...]) -> Figure:
    values = np.eye(3, dtype=np.float16)
    return image_correlations.image_correlations(
        [Matrix(title=name, values=values) for name in names]
    )


def drawn_similarity(names: tuple[str, ...]) -> Figure:
    values = np.zeros((1, 1), dtype=np.float32)
    return example_scores.example_scores([Matrix(title=name, values=values) for name in names])


def drawn_spaces(names: tuple[str, ...]) -> Figure:
    points = np.zeros((2, 2), dtype=np.float32)
    return embedding_maps.embedding_maps(
        [embedding_maps.Space(title=name, points=points) for name in names]
    )


def drawn_curves(names: tuple[str, ...]) -> Figure:
    curves, weights = np.zeros((len(names), 1)), np.ones(len(names))
    return fusion_weights.score_curves(
        [
            fusion_weights.QueryCurves(title=name, members=names, curves=curves, weights=weights)
            for name in names
        ]
    )


def drawn_weights(names: tuple[str, ...]) -> Figure:
    weights = np.full((len(names), 1), 1 / len(names))
    return fusion_weights.fusion_weights(
        [fusion_weights.QueryWeights(title=name, members=names, weights=weights) for name in names]
    )


def drawn_importance(names: tuple[str, ...]) -> Figure:
    drops = np.linspace(-1, 1, len(names))
    return word_importance.word_importance(
        [word_importance.CaptionWords(title=name, words=names, drops=drops) for name in names]
    )


def drawn_attention(names: tuple[str, ...]) -> Figure:
    return word_to_region_attention.word_to_region_attention(
        word_to_region_attention.Attended(
            title=names[0],
            picture=np.zeros((4, 6, 3), dtype=np.uint8),
            words=names,
            weights=np.full((len(names), 2, 2), 0.25),
        )
    )


def drawn_localisation(names: tuple[str, ...]) -> Figure:
    boxes = [[0.0, 0.0, 30.0, 30.0], [10.0, 20.0, 30.0, 40.0]]
    return phrase_boxes.phrase_boxes([located(name, *boxes) for name in names], names[:2])


def drawn_regions(names: tuple[str, ...]) -> Figure:
    return recall_by_regions.recall_by_regions([sweep(name) for name in names])


def drawn_quality(names: tuple[str, ...]) -> Figure:
    return quality_and_cost.quality_and_cost([price(name) for name in names])


def drawn_forest(names: tuple[str, ...]) -> Figure:
    return forest.forest([forest_row(name, unit=name) for name in names])


def drawn_training(names: tuple[str, ...]) -> Figure:
    return training_curves.training_curves([curve(name, method=name) for name in names])


DRAWN = [value for name, value in list(globals().items()) if name.startswith("drawn_")]


class TestEveryFigure:
    @pytest.mark.parametrize("draw", DRAWN)
    def test_any_text_leaves_its_width_and_no_date_and_no_script(
        self, draw: Callable[[tuple[str, ...]], Figure], tmp_path: Path
    ):
        """Equal bytes are tested in test_report.py, with another process."""
        figure = draw(NAMES)
        for kind in ("png", "svg"):
            figure_style.save(figure, tmp_path / f"one.{kind}")
        with Image.open(tmp_path / "one.png") as picture:
            assert picture.width == figure_style.WIDTH * figure_style.DPI
            assert picture.info.keys() <= {"dpi"}
            assert picture.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)
        text = (tmp_path / "one.svg").read_text(encoding="utf-8")
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
        assert "svg" in tags and not tags & {"script", "date", "creator"}
        assert not re.search(r"20\d\d-\d\d-\d\d|atplotlib v", text)

    @pytest.mark.parametrize("draw", DRAWN)
    def test_keeps_all_of_its_text_inside(self, draw: Callable[[tuple[str, ...]], Figure]):
        figure = draw((HOSTILE, "plain"))
        with figure_style.drawing():
            figure.draw_without_rendering()
            ends = figure.get_tightbbox()  # inches
        width, height = figure.get_size_inches()
        assert ends.x0 > -0.01 and ends.y0 > -0.01
        assert ends.x1 < width + 0.01 and ends.y1 < height + 0.01


def test_matrices_and_dots_make_no_large_svg(tmp_path):
    rng = np.random.default_rng(0)
    matrix = Matrix(title="t", values=rng.uniform(-1, 1, (100, 100)))
    clouds = [
        fusion_weights.QueryWeights(
            title="t", members=["a", "b"], weights=np.stack([share, 1 - share])
        )
        for share in (rng.uniform(0.4, 0.6, count) for count in (1000, 5000))
    ]
    drawn = (
        image_correlations.image_correlations([matrix] * 2),
        fusion_weights.fusion_weights(clouds),
    )
    for figure in drawn:
        figure_style.save(figure, tmp_path / "figure.svg")
        assert (tmp_path / "figure.svg").stat().st_size < 300_000  # 6,000 dots as paths: 700,000


class TestStyle:
    def test_the_markup_of_mathematics_is_text(self):
        with figure_style.drawing():
            text = Figure().text(0, 0, "$x$ costs $5")
        assert not text.get_parse_math()

    def test_text_is_wrapped_cut_and_freed_of_what_the_font_lacks(self):
        assert figure_style.shown("a\n b\t$c$", 40) == "a b $c$"
        assert figure_style.shown("one two three", 7) == "one two\nthree"
        assert (
            figure_style.shown("one two three four", 5, lines=2)
            == "one\ntwo\N{HORIZONTAL ELLIPSIS}"
        )
        assert figure_style.shown("x" * 30, 10, lines=1) == "x" * 9 + "\N{HORIZONTAL ELLIPSIS}"
        assert figure_style.shown("\N{DOG FACE}\x07\u72d7", 9) == "???"
        assert figure_style.shown("caf\u00e9 \u0434\u0430", 9) == "caf\u00e9 \u0434\u0430"
        assert figure_style.shown("", 9) == ""

    def test_73_presets_of_five_methods_look_different(self):
        methods = [f"m{i % 5}" for i in range(60)] + ["m0"] * 13
        styles = figure_style.styles(methods)
        assert len({(style.colour, style.marker) for style in styles}) == 73
        pairs = list(zip(styles, methods, strict=True))
        markers = [{s.marker for s, method in pairs if method == f"m{i}"} for i in range(5)]
        assert sum(map(len, markers)) == len(set.union(*markers))

    def test_lines_of_one_method_look_different(self):
        styles = figure_style.styles(["m"] * 30)
        assert len({(style.colour, style.dash) for style in styles}) == 30

    def test_a_user_configuration_changes_nothing(self, tmp_path):
        figure_style.save(drawn_quality(("a",)), tmp_path / "plain.png")
        with matplotlib.rc_context({"font.size": 30, "savefig.facecolor": "red"}):
            figure_style.save(drawn_quality(("a",)), tmp_path / "changed.png")
        assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "changed.png").read_bytes()

    def test_positions_are_rounded_since_the_layout_s_last_digits_are_chance(self, tmp_path):
        figure = drawn_forest(("a", "b"))
        figure_style.save(figure, tmp_path / "a.svg")
        places = np.array([axes.get_position().bounds for axes in figure.axes])
        assert (
            np.abs(places - places.round(figure_style.DIGITS)).max() < 1e-12
        )  # x1 - x0 is inexact
        assert len(np.unique(places)) > 4

    def test_a_failed_save_leaves_nothing(self, tmp_path):
        with pytest.raises(KeyError):
            figure_style.save(Figure(), tmp_path / "a.pdf")
        assert not list(tmp_path.iterdir())


DROPPED = """
from matplotlib.figure import Figure

from benchmark.report.figure_listing import Picture

SECTION = "{section}"


def pictures(inputs):
    figure = Figure(figsize=(1, 1))
    yield Picture(name="dropped", figure=figure, alt=inputs.board.card["title"], caption="Why.")
"""


class TestListing:
    """Files of figures/ register themselves; here, one in another folder is listed as well."""

    @pytest.fixture
    def drop(self, tmp_path, monkeypatch) -> Callable[[str, str], None]:
        """Adds a figure file of a name with a section."""
        monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])

        def drop(name: str, section: str) -> None:
            (tmp_path / f"{name}.py").write_text(DROPPED.format(section=section))

        return drop

    def test_a_file_is_all_that_a_figure_needs(self, drop):
        drop("dropped_alone", "result")
        inputs = FigureInputs(board=builders.board(title="Made up"))
        (picture,) = figure_listing.pictures("result", inputs)
        assert (picture.name, picture.alt, picture.caption) == ("dropped", "Made up", "Why.")
        assert list(figure_listing.pictures("claims", inputs)) == []

    def test_an_unknown_section_is_refused_with_the_known_ones(self, drop):
        drop("dropped_astray", "nowhere")
        with pytest.raises(UserError) as error:
            list(figure_listing.pictures("result", FigureInputs(board=builders.board())))
        assert error.value.where.endswith("dropped_astray.py: SECTION")
        assert error.value.found == "'nowhere'"
        assert "similarity" in error.value.expected and "papers/scan" in error.value.expected
        assert error.value.do

    def test_every_file_of_the_folder_says_where_it_stands(self):
        folder = Path(figures.__file__).parent
        names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert {module.__name__.rpartition(".")[2] for module in figure_listing.modules()} == names
