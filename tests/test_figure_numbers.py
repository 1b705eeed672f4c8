"""The figures carry the right numbers: read back from what matplotlib would draw."""

from types import SimpleNamespace

import numpy as np
import pytest
from figure_rows import curve, forest_row, lines, located, price, sweep
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Rectangle, StepPatch
from PIL import Image

from benchmark.analysis.verdict_rules import Conclusion
from benchmark.data import boxes
from benchmark.report import figure_style
from benchmark.report.density_panels import Scores
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


class TestDistributions:
    PANEL = density_by_loss.LossPanel(
        title="both",
        overlap=0.25,
        mean_matched=0.5,
        mean_unmatched=0.1,
        scores=Scores(matched=np.linspace(0.2, 0.8, 400), unmatched=np.linspace(-0.4, 0.6, 400)),
        printed=density_by_loss.Printed(overlap=0.0914, mean_matched=0.24),
    )

    def test_densities_and_the_area_under_both_are_those_of_the_samples(self):
        (axes,) = density_by_loss.density_by_loss([self.PANEL]).axes
        filled = [
            patch for patch in axes.patches if isinstance(patch, StepPatch) and patch.get_fill()
        ]
        q, p, both = (patch.get_data() for patch in filled)
        for drawn, low, high in ((q, -0.4, 0.6), (p, 0.2, 0.8)):
            middles = (drawn.edges[1:] + drawn.edges[:-1]) / 2
            inside = (middles > low + 0.02) & (middles < high - 0.02)
            outside = (middles < low - 0.02) | (middles > high + 0.02)
            assert drawn.values[inside] == pytest.approx(1 / (high - low), rel=0.3)
            assert not drawn.values[outside].any()
            assert (drawn.values * np.diff(drawn.edges)).sum() == pytest.approx(1)
        shared = (both.values * np.diff(both.edges)).sum()
        assert shared == pytest.approx(0.4, abs=0.03)  # from 0.2 to 0.6, under a density of 1

    def test_the_numbers_of_the_paper_stand_beside_ours(self):
        (axes,) = density_by_loss.density_by_loss([self.PANEL]).axes
        title = axes.get_title()
        assert "S 0.2500 (paper 0.0914)" in title
        assert "mean of P 0.5000 (paper 0.2400)" in title
        assert title.endswith("mean of Q 0.1000")
        assert [points.tolist() for points in lines(axes, "D")] == [[[0.24, 0.0]]]
        dashed = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
        assert dashed == [0.5, 0.1]

    def test_loss_panels_share_both_scales(self):
        narrow = density_by_loss.LossPanel(
            title="narrow",
            overlap=0.0,
            mean_matched=0.3,
            mean_unmatched=0.0,
            scores=Scores(
                matched=np.linspace(0.29, 0.31, 9), unmatched=np.linspace(-0.01, 0.01, 9)
            ),
        )
        first, second = density_by_loss.density_by_loss([self.PANEL, narrow]).axes
        assert first.get_xlim() == second.get_xlim()
        assert first.get_ylim() == second.get_ylim()

    def test_scores_all_alike_can_be_drawn(self):
        equal = Scores(matched=np.full(9, 0.5), unmatched=np.full(9, 0.5))
        facts = {"overlap": 1.0, "mean_matched": 0.5, "mean_unmatched": 0.5}
        panel = density_by_loss.LossPanel(title="t", scores=equal, **facts)
        low, high = density_by_loss.density_by_loss([panel]).axes[0].get_xlim()
        assert low < 0.5 < high
        panel = score_densities.Panel(title="t", overlap=1.0, bound=1.0, scores=equal)
        low, high = score_densities.score_densities([panel]).axes[0].get_xlim()
        assert low < 0.5 < high

    def test_an_overlap_is_drawn_with_interval_bins_and_bound(self):
        rows = [
            overlap_intervals.OverlapRow(
                title=name,
                overlap=0.2 + shift,
                ends=(0.1 + shift, 0.3 + shift),
                half_bins=0.25 + shift,
                double_bins=0.15 + shift,
                bound=0.18 + shift,
            )
            for name, shift in (("best", 0.0), ("_other", 0.5))
        ]
        (axes,) = overlap_intervals.overlap_intervals(rows).axes
        assert lines(axes, "o")[0].tolist() == [[0.2, 0], [0.7, 1]]
        assert lines(axes, "|")[0][:, 0] == pytest.approx([0.18, 0.68])
        assert lines(axes, overlap_intervals.CARETDOWN)[0][:, 0] == pytest.approx([0.25, 0.75])
        assert lines(axes, overlap_intervals.CARETUP)[0][:, 0] == pytest.approx([0.15, 0.65])
        (spans,) = (c for c in axes.collections if isinstance(c, LineCollection))
        assert [path[:, 0].tolist() for path in spans.get_segments()] == [[0.1, 0.3], [0.6, 0.8]]
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["best", "_other"]
        assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
        assert axes.get_xlim()[0] == 0

    def test_the_overlap_of_one_seed_has_a_dotted_interval_that_is_called_so(self):
        facts = {"overlap": 0.2, "half_bins": 0.25, "double_bins": 0.15, "bound": 0.18}
        rows = [
            overlap_intervals.OverlapRow(
                title="one", ends=(0.1, 0.3), is_of_these_trainings=True, **facts
            ),
            overlap_intervals.OverlapRow(title="none", ends=None, **facts),
        ]
        figure = overlap_intervals.overlap_intervals(rows)
        (spans,) = (c for c in figure.axes[0].collections if isinstance(c, LineCollection))
        assert [path.tolist() for path in spans.get_segments()] == [[[0.1, 0], [0.3, 0]]]
        assert spans.get_linestyle()[0][1]  # dashes
        shown = [text.get_text() for text in figure.legends[0].get_texts()]
        assert "95% of S over test images, these trainings only" in shown
        assert "95% interval of S" not in shown


class TestMatrices:
    def test_correlations_share_a_scale_and_tell_the_mean_off_the_diagonal(self):
        first = np.array([[1, 0.5, -0.25], [0.5, 1, 0], [-0.25, 0, 1]], dtype=np.float16)
        second = np.eye(3, dtype=np.float16)
        figure = image_correlations.image_correlations(
            [
                Matrix(title="before", values=first),
                Matrix(title="after", values=second),
            ]
        )
        before, after = figure.axes[:2]
        assert before.get_title() == "before\nmean |r| off the diagonal: 0.250"
        assert after.get_title() == "after\nmean |r| off the diagonal: 0.000"
        assert before.images[0].get_clim() == after.images[0].get_clim() == (-1, 1)
        assert np.array_equal(before.images[0].get_array(), first)

    def test_a_single_image_has_nothing_off_the_diagonal(self):
        assert image_correlations.mean_off_diagonal(np.ones((1, 1), dtype=np.float16)) == 0

    def test_similarities_are_rescaled_to_the_range_of_the_panel(self):
        values = np.array([[3.0, -1.0], [0.0, 1.0]], dtype=np.float32)
        figure = example_scores.example_scores([Matrix(title="t", values=values)])
        (image,) = figure.axes[0].images
        assert image.get_array().tolist() == [[1.0, 0.0], [0.25, 0.5]]
        assert image.get_clim() == (0, 1)

    def test_scores_all_alike_are_zeros(self):
        assert example_scores.rescaled(np.full((2, 2), 7.0)).tolist() == [[0, 0], [0, 0]]


def test_a_space_joins_every_image_with_its_caption():
    points = np.arange(12, dtype=np.float32).reshape(6, 2)
    (axes,) = embedding_maps.embedding_maps(
        [embedding_maps.Space(title="visual", points=points)]
    ).axes
    joined, images, captions = axes.collections
    assert images.get_offsets().tolist() == points[:3].tolist()
    assert captions.get_offsets().tolist() == points[3:].tolist()
    pairs = [segment.tolist() for segment in joined.get_segments()]
    assert pairs == [[points[i].tolist(), points[i + 3].tolist()] for i in range(3)]


class TestFusion:
    def test_curves_run_over_the_gallery_and_the_weights_are_written(self):
        curves = np.array([[0.9, 0.5, -0.3], [0.4, 0.2, 0.1]], dtype=np.float32)
        weights = np.array([0.428, 0.572])
        query = fusion_weights.QueryCurves(
            title="q", members=["visual", "_b"], curves=curves, weights=weights
        )
        (axes,) = fusion_weights.score_curves([query]).axes
        first, second, zero = axes.lines
        assert first.get_xdata().tolist() == [0, 50, 100]
        assert np.array_equal(first.get_ydata(), curves[0])
        assert np.array_equal(second.get_ydata(), curves[1])
        assert set(zero.get_ydata()) == {0}
        shown = [text.get_text() for text in axes.get_legend().get_texts()]
        assert shown == ["visual: weight 0.428", "_b: weight 0.572"]

    def test_weights_are_one_dot_per_query_and_member_on_a_shared_scale(self):
        images = np.array([[0.25, 0.5, 0.75], [0.75, 0.5, 0.25]], dtype=np.float32)
        captions = np.array([[0.5] * 4, [0.5] * 4], dtype=np.float32)
        clouds = [
            fusion_weights.QueryWeights(title=title, members=["visual", "textual"], weights=weights)
            for title, weights in (("images", images), ("captions", captions))
        ]
        left, right = fusion_weights.fusion_weights(clouds).axes
        visual, textual = left.collections
        assert visual.get_offsets().tolist() == [[0, 0.25], [1, 0.5], [2, 0.75]]
        assert textual.get_offsets()[:, 1].tolist() == [0.75, 0.5, 0.25]
        assert left.get_ylim() == right.get_ylim()
        assert left.lines[0].get_ydata()[0] == 0.5  # equal weights
        shown = [text.get_text() for text in left.get_legend().get_texts()]
        assert shown[0] == "visual: mean 0.500, sd 0.204"

    def test_the_caption_says_what_the_weights_of_both_directions_are(self):
        weights = {"weights_i2t": [[0.2, 0.4], [0.8, 0.6]], "weights_t2i": [[0.3], [0.7]]}
        curves = {"curve_queries_i2t": [0], "curve_queries_t2i": [0]}
        curves |= {name: np.zeros((2, 1, 3)) for name in ("curves_i2t", "curves_t2i")}
        standing = SimpleNamespace(
            preset="cyclematch_adaptive",
            samples=curves | {name: np.array(of_way) for name, of_way in weights.items()},
            samples_seed=0,
            row=SimpleNamespace(title="P", fuse=SimpleNamespace(of=["m:visual", "m:textual"])),
        )
        board = SimpleNamespace(card={"title": "D"}, standing={standing.preset: standing}.get)
        _, histograms = fusion_weights.pictures(SimpleNamespace(board=board))
        assert "33% do: it does not recur" in histograms.caption
        assert "visual 0.30 ± 0.08, textual 0.70 ± 0.08" in histograms.caption


class TestWords:
    def test_bars_are_the_drops_in_reading_order_and_the_strongest_stand_out(self):
        drops = np.array([0.1, -0.2, 0.3, np.nan, 0.05, 0.4], dtype=np.float32)
        caption = word_importance.CaptionWords(title="t", words=list("abcdef"), drops=drops)
        (axes,) = word_importance.word_importance([caption]).axes
        bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        assert [bar.get_width() for bar in bars] == pytest.approx([0.1, -0.2, 0.3, 0, 0.05, 0.4])
        colours = [to_hex(bar.get_facecolor()).upper() for bar in bars]
        needed, helpful, harmful = (
            word_importance.NEEDED,
            word_importance.HELPFUL,
            word_importance.HARMFUL,
        )
        assert [colours[i] for i in (0, 1, 2, 4, 5)] == [needed, harmful, needed, helpful, needed]
        labels = axes.get_yticklabels()
        assert [label.get_text() for label in labels] == list("abcdef")
        grey = [label.get_color() == figure_style.GREY for label in labels]
        assert grey == [False, False, False, True, False, False]

    def test_no_word_is_strongest_that_does_not_lower_the_score(self):
        assert word_importance.strongest(np.array([-1.0, 0.0, np.nan, 0.2])) == {3}
        assert word_importance.strongest(np.array([np.nan])) == set()

    def test_of_a_long_caption_the_rest_is_counted(self):
        many = word_importance.MOST + 12
        caption = word_importance.CaptionWords(title="t", words=["w"] * many, drops=np.ones(many))
        (axes,) = word_importance.word_importance([caption]).axes
        assert len(axes.patches) == word_importance.MOST
        assert "12 more" in axes.get_title()

    def test_captions_share_the_scale_of_drops(self):
        captions = [
            word_importance.CaptionWords(title="t", words=["w"], drops=np.array([drop]))
            for drop in (0.1, -2)
        ]
        first, second = word_importance.word_importance(captions).axes
        assert first.get_xlim() == second.get_xlim()
        assert first.get_xlim()[0] <= -2 and first.get_xlim()[1] >= 0.1


class TestAttention:
    WEIGHTS = np.zeros((2, 2, 3))
    WEIGHTS[0, 1, 2] = 1.0
    WEIGHTS[1] = 1 / 6

    def drawn(self) -> list[Axes]:
        picture = Image.new("RGB", (300, 200), (200, 100, 50))
        figure = word_to_region_attention.word_to_region_attention(
            word_to_region_attention.Attended(
                title="t", picture=picture, words=["dog", "$a$"], weights=self.WEIGHTS
            )
        )
        return [axes for axes in figure.axes if axes.images]

    def test_the_picture_comes_first_and_is_small(self):
        first, *rest = self.drawn()
        pixels = first.images[0].get_array()
        assert max(pixels.shape) == word_to_region_attention.SIDE
        assert pixels.shape[1] / pixels.shape[0] == pytest.approx(1.5, abs=0.02)
        assert (pixels == (200, 100, 50)).all()
        assert [axes.get_title() for axes in rest] == ["dog\n1.00", "$a$\n0.17"]

    def test_it_is_bright_where_the_word_looks_and_dark_elsewhere(self):
        _, peaked, even = (np.array(axes.images[0].get_array(), float) for axes in self.drawn())
        assert peaked[-1, -1] == pytest.approx([200, 100, 50], abs=1)
        dark = word_to_region_attention.DARKEST * np.array([200, 100, 50])
        assert peaked[0, 0] == pytest.approx(dark, abs=1)
        assert (abs(even - (200, 100, 50)) <= 1).all()
        row = peaked[-1, :, 0]
        assert (np.diff(row) >= 0).all() and np.diff(row).max() < 10  # no edges between cells

    def test_the_strongest_cell_is_outlined(self):
        axes = self.drawn()[1]
        height, width, _ = axes.images[0].get_array().shape
        (box,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        assert box.get_xy() == pytest.approx((2 * width / 3 - 0.5, height / 2 - 0.5))
        assert (box.get_width(), box.get_height()) == pytest.approx((width / 3, height / 2))

    def test_many_words_are_wrapped(self):
        count = 3 * word_to_region_attention.COLUMNS
        weights = np.full((count, 2, 2), 0.25)
        picture = np.zeros((8, 8, 3), dtype=np.uint8)
        figure = word_to_region_attention.word_to_region_attention(
            word_to_region_attention.Attended(
                title="t", picture=picture, words=["w"] * count, weights=weights
            )
        )
        shown = [axes for axes in figure.axes if axes.images]
        assert len(shown) == count + 1
        assert shown[0].get_gridspec().get_geometry() == (4, word_to_region_attention.COLUMNS)

    def test_attention_of_zero_everywhere_can_be_drawn(self):
        brightness = word_to_region_attention.brightness(np.zeros((2, 2)), 4, 4)
        assert brightness == pytest.approx(np.full((4, 4), word_to_region_attention.DARKEST))


class TestPhraseBoxes:
    def test_overlaps_are_shares_of_the_area_that_either_box_covers(self):
        truth = np.array([10.0, 20.0, 30.0, 40.0])  # 20 x 20
        cases = {
            (10.0, 20.0, 30.0, 40.0): 1.0,
            (20.0, 20.0, 40.0, 40.0): 1 / 3,  # 200 of 600
            (10.0, 20.0, 30.0, 30.0): 0.5,  # half of it
            (30.0, 20.0, 50.0, 40.0): 0.0,  # side by side: half-open boxes share no pixel
            (0.0, 0.0, 100.0, 100.0): 0.04,
        }
        overlaps = boxes.iou(np.array(list(cases)), truth)
        assert overlaps == pytest.approx(list(cases.values()))
        assert boxes.iou(np.zeros(4), np.zeros(4)) == 0

    def test_boxes_stand_at_their_places_in_the_smaller_picture(self):
        """A picture of 600 x 900 is drawn with a third of its sides."""
        dog = phrase_boxes.Located(
            phrase="a dog",
            picture=Image.new("RGB", (600, 900)),
            truth=np.array([0.0, 0.0, 600.0, 900.0]),
            chosen=np.array([[150.0, 300.0, 450.0, 600.0]]),
        )
        figure = phrase_boxes.phrase_boxes([dog], ["best"])
        (axes,) = figure.axes
        assert axes.images[0].get_array().shape == (300, 200, 3)
        true, best = (patch.get_bbox().extents for patch in axes.patches)
        assert true == pytest.approx([-0.5, -0.5, 199.5, 299.5])
        assert best == pytest.approx([49.5, 99.5, 149.5, 199.5])
        assert axes.get_title() == "a dog\nIoU 0.17"  # 300 x 300 of 600 x 900

    def test_the_true_box_and_each_preset_look_different_and_are_named(self):
        boxes = [[0.0, 0.0, 30.0, 30.0], [10.0, 20.0, 30.0, 40.0]]
        figure = phrase_boxes.phrase_boxes([located("p", *boxes)], ["best", "baseline"])
        patches = figure.axes[0].patches
        looks = {(to_hex(p.get_edgecolor()), str(p.get_linestyle())) for p in patches}
        assert len(looks) == len(patches) == 3
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["true box", "best", "baseline"]
        colours = [to_hex(line.get_color()) for line in legend.get_lines()]
        assert colours == [to_hex(patch.get_edgecolor()) for patch in patches]
        assert figure.axes[0].get_title() == "p\nIoU 0.18, 1.00"  # 200 of 900 + 400 - 200


class TestRegions:
    def test_recalls_deviations_and_times_stand_at_their_numbers_of_regions(self):
        ours = sweep(
            "ours",
            regions=np.array([12, 36]),
            i2t_r1=np.array([20.0, 25.0]),
            t2i_r1=np.array([10.0, 15.0]),
            i2t_deviation=np.array([1.0, 2.0]),
            t2i_deviation=np.array([0.5, 0.0]),
            microseconds=np.array([6.0, 9.0]),
        )
        left, middle, right = recall_by_regions.recall_by_regions([ours]).axes
        assert left.lines[0].get_xydata().tolist() == [[12, 20], [36, 25]]
        assert middle.lines[0].get_xydata().tolist() == [[12, 10], [36, 15]]
        assert right.lines[0].get_xydata().tolist() == [[12, 6], [36, 9]]
        bars = [segment[:, 1].tolist() for segment in left.collections[0].get_segments()]
        assert bars == [[19, 21], [23, 27]]
        assert not right.collections
        assert left.get_xticks().tolist() == [12, 36]

    def test_the_paper_is_dotted_grey_and_ours_solid(self):
        left = recall_by_regions.recall_by_regions(
            [sweep("ours"), sweep("paper", is_printed=True)]
        ).axes[0]
        looks = [(line.get_linestyle(), line.get_color()) for line in left.lines if line.get_ls()]
        assert looks[0] == ("-", figure_style.COLOURS[0])
        assert (":", figure_style.GREY) in looks

    def test_times_far_apart_are_on_a_logarithmic_axis(self):
        slow = sweep("slow", microseconds=np.array([700.0]))
        assert (
            recall_by_regions.recall_by_regions([sweep("fast"), slow]).axes[2].get_yscale() == "log"
        )
        assert recall_by_regions.recall_by_regions([sweep("fast")]).axes[2].get_yscale() == "linear"


class TestCosts:
    def test_points_stand_at_their_times_and_rsum(self):
        prices = [price("a", 10.0, 0.5, 100.0), price("b", None, 2.0, 120.0)]
        left, right = quality_and_cost.quality_and_cost(prices).axes
        assert [points.tolist() for points in lines(left, "o")] == [[[10, 100]]]
        assert [points.tolist() for points in lines(right, "o")] == [[[0.5, 100]], [[2, 120]]]
        assert left.get_xscale() == right.get_xscale() == "log"
        assert left.get_ylim() == right.get_ylim()
        low, high = right.get_xlim()
        assert low < 0.5 and high > 2

    def test_without_any_training_the_other_panel_is_drawn(self):
        shown = [price("fusion", None), price("trained")]
        said = quality_and_cost.not_shown(shown, timed_otherwise=1)
        assert said.endswith(" 0.0 s there: fusion. Left out: 1 preset that was timed otherwise.")
        assert quality_and_cost.not_shown(shown[1:], timed_otherwise=0) == ""
        left, right = quality_and_cost.quality_and_cost([price("fusion", None)]).axes
        assert not lines(left, "o") and lines(right, "o")

    def test_the_front_is_what_no_other_beats_in_both(self):
        rng = np.random.default_rng(0)
        times, rsums = rng.integers(1, 9, 40).tolist(), rng.integers(1, 9, 40).tolist()
        points = list(zip(times, rsums, strict=True))
        best = {
            (t, r)
            for t, r in points
            if not any(u <= t and s >= r and (u, s) != (t, r) for u, s in points)
        }
        front = [points[place] for place in quality_and_cost.front(times, rsums)]
        assert set(front) == best and len(front) == len(best)
        assert front == sorted(front)

    def test_every_preset_is_in_the_legend_even_with_an_underscore(self):
        titles = [f"_preset {number}" for number in range(73)]
        figure = quality_and_cost.quality_and_cost([price(title) for title in titles])
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == titles


class TestForest:
    def test_a_row_is_difference_interval_print_and_margin(self):
        rows = [
            forest_row("first", difference=2.0, low=1.0, high=3.5, printed=4.0),
            forest_row(
                "second", difference=-1.0, low=-2.0, high=0.5, conclusion=Conclusion.UNDECIDED
            ),
            forest_row("third", conclusion=Conclusion.REVERSED, bounds=(-1.0, 1.0)),
        ]
        (axes,) = forest.forest(rows).axes
        places = axes.get_yticks()
        assert list(places) == sorted(places)
        assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
        assert lines(axes, "o")[0].tolist() == [[2.0, places[0]]]
        assert lines(axes, "s")[0].tolist() == [[-1.0, places[1]]]
        assert lines(axes, "X")[0].tolist() == [[1.0, places[2]]]
        assert [points.tolist() for points in lines(axes, "D")] == [[[4.0, places[0]]]]
        bounds = [points for points in lines(axes, "|") if len(points)]
        assert [points[:, 0].tolist() for points in bounds] == [[-1, 1]]
        spans = [span.get_segments()[0] for span in axes.collections]
        assert [span[:, 0].tolist() for span in spans] == [[1, 3.5], [-2, 0.5], [0.5, 1.5]]
        colours = [to_rgb(span.get_color()[0]) for span in axes.collections]
        assert len(set(colours)) == 3
        (legend,) = forest.forest(rows).legends
        shown = [text.get_text() for text in legend.get_texts()]
        verdicts = ["holds", "reversed", "undecided"]
        assert shown == [*verdicts, "printed in the paper", "margin of the claim"]

    def test_the_interval_of_one_seed_is_dotted_and_called_so(self):
        both = [forest_row("one", is_of_these_trainings=True), forest_row("three")]
        figure = forest.forest(both)
        dotted, solid = (span.get_linestyle()[0] for span in figure.axes[0].collections)
        assert dotted[1] and not solid[1]  # dashes
        shown = [text.get_text() for text in figure.legends[0].get_texts()]
        assert shown == ["holds", "95% over test images, these trainings only"]

    def test_what_is_printed_far_away_is_an_arrow_that_leaves_the_intervals_readable(self):
        near = forest_row("near", low=1.0, difference=2.0, high=3.0)
        far = forest_row("far", printed=72.0), forest_row("below", printed=-40.0)
        (axes,) = forest.forest([near, *far]).axes
        low, high = axes.get_xlim()
        assert (low, high) == pytest.approx((-0.45, 3.45))
        places = axes.get_yticks()
        assert lines(axes, ">")[0].tolist() == [[high, places[1]]]
        assert lines(axes, "<")[0].tolist() == [[low, places[2]]]
        assert [text.get_text() for text in axes.texts] == ["+72", "-40"]

    def test_a_difference_far_beyond_all_others_is_an_arrow_too(self):
        near = [forest_row(f"near {n}", low=1.0, difference=2.0, high=3.0) for n in range(3)]
        far = forest_row("far", low=200.0, difference=244.8, high=256.0)
        (axes,) = forest.forest([*near, far]).axes
        low, high = axes.get_xlim()
        assert high < 20 and -10 < low
        assert lines(axes, ">")[0].tolist() == [[high, axes.get_yticks()[3]]]
        assert [text.get_text() for text in axes.texts] == ["+245"]

    def test_differences_in_other_units_have_an_axis_of_their_own(self):
        rows = [forest_row("a"), forest_row("b", unit="S", difference=0.01), forest_row("c")]
        first, second = forest.forest(rows).axes
        assert [label.get_text() for label in first.get_yticklabels()] == ["a", "c"]
        assert [label.get_text() for label in second.get_yticklabels()] == ["b"]
        assert "difference of S" in second.get_xlabel()

    def test_it_grows_with_its_rows_and_their_labels(self):
        single, many = (forest.forest([forest_row("a")] * count) for count in (1, 60))
        grown = many.get_figheight() - single.get_figheight()
        assert grown == pytest.approx(59 * (forest.GAP + forest.LINE), rel=0.1)
        long = forest.forest([forest_row("word " * 30)])
        assert long.get_figheight() > single.get_figheight()


class TestTraining:
    def test_a_dot_marks_the_selected_epoch_and_only_first_seeds_have_a_name(self):
        epochs, rsum = np.array([1, 2, 3]), np.array([10.0, 30.0, 20.0])
        facts = {"epochs": epochs, "rsum": rsum, "loss": np.array([3.0, 2.0, 1.9]), "selected": 2}
        curves = [curve("_a", **facts), curve("_a", is_first_seed=False, **facts)]
        left, right = training_curves.training_curves(curves).axes
        assert left.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1.9]]
        assert [points.tolist() for points in lines(right, "o")] == [[[2, 30]]] * 2
        assert [text.get_text() for text in right.get_legend().get_texts()] == ["_a"]

    def test_a_method_with_many_presets_has_a_higher_row(self):
        few, many = (
            training_curves.training_curves([curve(f"p{i}") for i in range(n)]).get_figheight()
            for n in (2, 40)
        )
        assert many > few


def test_what_table_5_shows_is_of_the_numbers_of_regions_that_were_played():
    def of(*pairs: tuple[int, float]) -> recall_by_regions.Sweep:
        regions, recalls = zip(*pairs, strict=True)
        return sweep("s", regions=np.array(regions), i2t_r1=np.array(recalls))

    printed = of((12, 50.0), (24, 60.0), (36, 70.0))
    caption = recall_by_regions._caption(printed, of((12, 3.0), (24, 4.0)))
    assert "best with 24 of 12, 24 regions. Here it is best with 24: it recurs" in caption
    caption = recall_by_regions._caption(printed, of((12, 3.0), (24, 4.0), (36, 3.5)))
    assert "best with 36 of 12, 24, 36 regions. Here it is best with 24: it does not" in caption
