"""Comparisons of made-up records against naive loops over their queries, and against
SciPy; also of phrases, persons and folds, whose units are not simply images with
captions."""

from pathlib import Path
from statistics import fmean, variance

import builders
import numpy as np
import pandas as pd
import pytest
from builders import board, ids, keep_ranks, standing
from builders import outcome as trained
from made_ranks import (
    CAPTIONS,
    CUTOFFS,
    EACH,
    IMAGES,
    OWNER,
    any_ranks,
    expected_interval,
    interaction_of,
    noise_of_images,
    outcome,
    played,
    prepare,
    ranks_of,
    timed,
    varied,
)
from scipy import stats

from benchmark.boards.boards import Row
from benchmark.boards.comparisons import (
    compare,
    interval,
    interval_over_images,
    is_coarse,
    seed_part,
    trainings_of,
    values,
)
from benchmark.core.errors import UserError
from benchmark.season.parameters import BROUGHT
from benchmark.stats import significance
from benchmark.stats.comparisons import FREEDOM_FOR_SINGLES


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """A prepared dataset."""
    monkeypatch.chdir(tmp_path)
    prepare()


@pytest.mark.parametrize("metric", ["rsum", "i2t_r5", "t2i_r1", "s2s_r1"])
def test_an_interval_is_wilsons_with_the_variance_over_images_with_their_captions(
    metric,
):
    preset = played("a", 1.0)
    square = (noise_of_images(preset, metric) ** 2).sum()
    span = 600.0 if metric == "rsum" else 100.0
    # sentence queries are the captions with a sibling: other images have none
    asked = int((np.array(EACH) > 1).sum()) if metric == "s2s_r1" else IMAGES
    expected = significance.score_interval(preset.mean(metric), square, span, asked)
    assert interval_over_images(board(preset), preset, metric) == pytest.approx(
        expected
    )
    assert expected[0] < preset.mean(metric) < expected[1]


@pytest.mark.parametrize("seeds", [2, 3])
def test_the_interval_of_a_preset_is_for_other_trainings_too(seeds):
    preset = varied("a", [2.0, 3.0, 2.2][:seeds])
    results, rsums = board(preset), preset.values("rsum")
    main = max(0.0, variance(rsums) - interaction_of(preset, "rsum")) / seeds
    reach = stats.t.ppf(0.975, seeds - 1) * np.sqrt(main)
    low, high = interval_over_images(results, preset, "rsum")
    mean = fmean(rsums)
    ends = mean - np.hypot(mean - low, reach), mean + np.hypot(high - mean, reach)
    expected = max(0.0, ends[0]), min(600.0, ends[1])
    assert interval(results, preset, "rsum") == pytest.approx(expected)
    assert main > 0


def test_all_presets_tell_how_far_trainings_lie_apart():
    presets = [
        played(name, quality)
        for name, quality in zip("abc", (1.0, 1.5, 2.0), strict=True)
    ]
    part = seed_part(board(*presets), presets[0], "rsum")
    assert part.variance == pytest.approx(
        fmean(variance(p.values("rsum")) for p in presets)
    )
    assert part.interaction == pytest.approx(
        fmean(interaction_of(p, "rsum") for p in presets)
    )
    assert (part.freedom, part.counts) == (6, (3,))


@pytest.mark.parametrize("qualities", [[1.0, 1.1], [0.1, 9.0, 0.5]])
def test_a_row_that_was_brought_changes_nothing_for_others(qualities):
    rows = [played(name, 1.0) for name in "abc"]
    guest = varied("g", qualities, family=BROUGHT)
    with_guest = board(*rows, guest)
    for row in rows:
        alone = seed_part(board(*rows), row, "rsum")
        assert seed_part(with_guest, row, "rsum") == alone
    part = seed_part(with_guest, guest, "rsum")
    if len(qualities) == 2:  # as any other row
        assert part.variance == pytest.approx(alone.variance) and part.counts == (2,)
    else:  # far apart
        assert part.variance == pytest.approx(variance(guest.values("rsum")))
        assert part.is_own and part.freedom == 2
    others = [varied(name, [1.0, 1.2], family=BROUGHT) for name in "de"]
    assert seed_part(board(*others), others[0], "rsum").freedom == 2


def test_a_single_training_takes_the_spread_of_enough_others():
    single = played("s", 1.0, (7,))
    others = [
        played(name, 1.0, seeds) for name, seeds in (("a", (0, 1, 2)), ("b", (3, 4, 5)))
    ]
    assert seed_part(board(single, *others), single, "rsum") is None
    assert interval(board(single, *others), single, "rsum") is None
    more = [*others, varied("c", [1.0, 1.2, 1.1])]
    part = seed_part(board(single, *more), single, "rsum")
    assert part.freedom == FREEDOM_FOR_SINGLES == 6
    low, high = interval(board(single, *more), single, "rsum")
    part = part._replace(counts=(1,))
    over_images = interval_over_images(board(single), single, "rsum")
    expected = significance.with_seeds(single.mean("rsum"), over_images, part)
    assert (low, high) == pytest.approx(expected)


def test_a_comparison_has_both_sources_of_doubt():
    first, second = played("a", 2.0), played("b", 1.0, (3, 4, 5))
    results = board(first, second)
    comparison = compare(results, first, second, "rsum")
    assert (comparison.first, comparison.second, comparison.metric) == (
        "a",
        "b",
        "rsum",
    )
    assert comparison.difference == pytest.approx(
        first.mean("rsum") - second.mean("rsum")
    )
    assert not comparison.is_paired and comparison.trainings == (3, 3)
    images = (
        (noise_of_images(first, "rsum") - noise_of_images(second, "rsum")) ** 2
    ).sum()
    spread = fmean(variance(p.values("rsum")) for p in (first, second))
    inside = fmean(interaction_of(p, "rsum") for p in (first, second))
    assert comparison.estimate.error**2 == pytest.approx(
        images + max(0.0, spread - inside) * 2 / 3
    )
    assert comparison.on_test_set.error**2 <= comparison.estimate.error**2
    assert comparison.doubt.interaction == pytest.approx(min(images, 2 / 3 * inside))


def test_shared_trainings_are_paired():
    """A fusion and its member: seed 0 of the member alone is left out."""
    member = played("a", 2.0, (0, 1, 2, 3))
    fused = standing(
        "f",
        [
            outcome("f", seed, ranks_of(np.random.default_rng(seed), 2.2))
            for seed in (1, 2, 3)
        ],
        fuse={"how": "average", "of": ["a:visual", "a:textual"]},
    )
    results = board(member, fused)
    comparison = compare(results, fused, member, "rsum")
    rsums = {cell.record.seed: cell.record.metrics["rsum"] for cell in member.played}
    gaps = [c.record.metrics["rsum"] - rsums[c.record.seed] for c in fused.played]
    assert comparison.is_paired and comparison.trainings == (3, 3)
    assert comparison.difference == pytest.approx(fmean(gaps))
    (part,) = comparison.doubt.seeds
    assert (part.variance, part.freedom) == (pytest.approx(variance(gaps)), 2)


def test_presets_of_the_same_trainings_are_paired_and_count_once():
    ranks = [ranks_of(np.random.default_rng(seed), 2.0) for seed in range(3)]
    identity = {"code": "c", "features": {"f": "1"}}

    def of(name: str, start: str | None = None, **changed: object) -> Row:
        facts = {"trainings": {name: identity | changed}}
        cells = [outcome(name, seed, ranks[seed], **facts) for seed in range(3)]
        return standing(name, cells, start=start)

    first, second, other, started = (
        of("a"),
        of("b"),
        of("c", code="d"),
        of("d", start="c"),
    )
    results = board(first, second, other, started)
    trained = [trainings_of(results, s) for s in results.rows]
    assert trained == [{"a"}, {"a"}, {"c"}, {"d"}]
    assert compare(results, first, second, "rsum").is_paired
    assert not compare(results, first, other, "rsum").is_paired
    parts = [seed_part(results, s, "rsum") for s in (first, second)]
    assert parts[0] == parts[1] and parts[0].freedom == 3 * 2  # of a, c and d
    ends = [interval(results, s, "rsum") for s in (first, second)]
    assert ends[0] == ends[1]


def test_the_time_of_an_epoch_is_that_of_its_training():
    """Duration over epochs; a cell without a training of its own has none."""
    history = pd.DataFrame({"epoch": [1, 2, 3, 4]})
    few, many = (
        standing(
            name,
            [
                trained(name, n, training=[duration + n], history=history)
                for n in (0, 2)
            ],
        )
        for name, duration in (("few", 40.0), ("many", 80.0))
    )
    fused = standing("fused", [trained("fused", training=[40.0, 80.0])])
    results = board(few, many, fused)
    saved = compare(results, few, many, "per_epoch")
    assert saved.difference == pytest.approx((80 - 40) / 4)  # less is better
    assert compare(results, fused, many, "per_epoch") is None


def test_a_difference_of_two_metrics_is_compared_and_stands_for_itself():
    first, second = played("a", 2.0), played("b", 1.0)
    results = board(first, second)
    comparison = compare(results, first, second, "t2i_r1 - i2t_r1")
    gains = [p.mean("t2i_r1") - p.mean("i2t_r1") for p in (first, second)]
    assert comparison.difference == pytest.approx(gains[0] - gains[1])
    left = [
        noise_of_images(p, "t2i_r1") - noise_of_images(p, "i2t_r1")
        for p in (first, second)
    ]
    assert comparison.doubt.images == pytest.approx(((left[0] - left[1]) ** 2).sum())
    alone = compare(results, first, None, "t2i_r1 - i2t_r1")
    assert (alone.second, alone.trainings) == ("", (3, 0))
    assert alone.difference == pytest.approx(gains[0])
    assert alone.doubt.images == pytest.approx((left[0] ** 2).sum())


def test_seeds_without_ranks_of_sentences_do_not_count():
    first, second = played("a", 2.0), played("b", 1.0)
    keep_ranks(
        second.outcomes[0], {way: r for way, r in any_ranks().items() if way != "s2s"}
    )
    comparison = compare(board(first, second), first, second, "s2s_r1")
    assert comparison.trainings == (3, 2)
    assert comparison.seconds == second.values("s2s_r1")[1:]
    assert len(values(second, "s2s_r1")) == 3
    assert compare(board(first, second), first, second, "rsum").trainings == (3, 3)


def test_times_have_their_trainings_and_less_is_better():
    first, second = timed("a", [1e-6, 2e-6, 3e-6]), timed("b", [5e-6, 7e-6, 7e-6])
    comparison = compare(board(first, second), first, second, "per_pair")
    # each preset has its own spread
    welch = stats.ttest_ind([5.0, 7.0, 7.0], [1.0, 2.0, 3.0], equal_var=False)
    expected = welch.confidence_interval(0.95)
    assert values(first, "per_pair") == pytest.approx([1.0, 2.0, 3.0])
    assert comparison.difference == pytest.approx(13 / 3)
    assert comparison.interval == pytest.approx(tuple(expected))
    # the freedom of the worse known
    half = stats.t.ppf(0.975, 2) * np.sqrt((1 + 4 / 3) / 3)
    assert comparison.on_test_set.interval == pytest.approx(
        (13 / 3 - half, 13 / 3 + half)
    )
    assert interval_over_images(board(first, second), first, "per_pair") is None


def test_correlations_of_sampled_images_count_where_features_are_not_standardised():
    after = (0.1, 0.2, 0.3)
    for settings, is_known in (
        ({}, True),
        ({"settings": {"standardise": True}}, False),
    ):
        cells = [
            trained("a", seed, sampled=of_seed, image_features=settings)
            for seed, x in enumerate(after)
            for of_seed in [{"correlation_before": 0.4, "correlation_after": x}]
        ]
        metric, preset = "correlation_before - correlation_after", standing("a", cells)
        comparison = compare(board(preset), preset, None, metric)
        assert (comparison is not None) == is_known
        if is_known:
            assert comparison.firsts == pytest.approx([0.3, 0.2, 0.1])
            expected = stats.ttest_1samp([0.3, 0.2, 0.1], 0).confidence_interval(0.95)
            assert comparison.interval == pytest.approx(tuple(expected))
    assert values(standing("a", [trained("a")]), "correlation_before") == []


class TestOverlap:
    """S has resamples of its own, the same ones for every cell."""

    def cells(self, preset: str, level: float) -> Row:
        ranks = any_ranks()
        metrics = [{"overlap_s": level + 0.01 * seed**2} for seed in range(3)]
        return standing(
            preset,
            [
                outcome(preset, s, ranks, metrics=of_seed)
                for s, of_seed in enumerate(metrics)
            ],
        )

    def replicate(self, preset: Row, seed: int) -> np.ndarray:
        rng = np.random.default_rng([len(preset.preset), seed])
        replicates = rng.normal(preset.values("overlap_s")[seed], 0.03, 200).astype(
            np.float32
        )
        keep_ranks(preset.outcomes[seed], any_ranks(), replicates=replicates)
        return replicates.astype(float)

    def test_their_paired_difference_is_the_images_part(self):
        first, second = self.cells("a", 0.2), self.cells("bb", 0.3)
        both = [
            [self.replicate(preset, seed) for seed in range(3)]
            for preset in (first, second)
        ]
        comparison = compare(board(first, second), first, second, "overlap_s")
        gaps = np.mean(both[1], axis=0) - np.mean(both[0], axis=0)
        assert comparison.difference == pytest.approx(0.1)  # less overlap is better
        assert comparison.doubt.images == pytest.approx(np.var(gaps, ddof=1))
        high, low = np.quantile(np.mean(both[0], axis=0), [0.025, 0.975])
        twice = 2 * np.mean(values(first, "overlap_s"))
        alone = (twice - low, twice - high)  # reflected
        assert interval_over_images(
            board(first, second), first, "overlap_s"
        ) == pytest.approx(alone)

    def test_it_depends_on_its_bins_above_its_bound_or_where_other_bins_give_another(
        self,
    ):
        def preset(**metrics: float) -> Row:
            return standing("a", [outcome("a", 0, any_ranks(), metrics=metrics)])

        fine = {"overlap_s": 0.5, "one_minus_ks": 0.55}
        assert not is_coarse(preset(**fine))
        # densities that cross twice
        assert is_coarse(preset(**fine | {"overlap_s": 0.57}))
        bins = {"overlap_s_half_bins": 0.724, "overlap_s_double_bins": 0.672}
        assert is_coarse(preset(overlap_s=0.7, one_minus_ks=0.8, **bins))
        bins = {"overlap_s_half_bins": 0.51, "overlap_s_double_bins": 0.495}
        assert not is_coarse(preset(**fine, **bins))
        assert not is_coarse(preset(t2i_r1=50.0))  # of ranks alone: it has no bins


def test_ranks_of_another_split_are_named():
    preset = played("a", 1.0, (0,))
    ranks = {"i2t": np.zeros(IMAGES, int), "t2i": np.zeros(CAPTIONS - 1, int)}
    keep_ranks(preset.outcomes[0], ranks)
    with pytest.raises(UserError) as error:
        interval_over_images(board(preset), preset, "t2i_r1")
    assert error.value.expected == f"the {CAPTIONS} queries of the test split"
    assert error.value.found == str(CAPTIONS - 1)


# Queries whose units are not simply images with captions ------------------------------

# some images have none
OF_PHRASE = np.random.default_rng(5).integers(0, IMAGES - 3, 70)
PERSON = np.arange(IMAGES) // 3  # of an image; captions are the only queries


def searcher_of_one_way(way: str, owner: np.ndarray, **facts: object) -> Row:
    cells = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ranks = rng.poisson(rng.exponential(4, IMAGES)[owner])
        cells.append(outcome("a", seed, {way: ranks}, **facts))
    return standing("a", cells)


@pytest.mark.parametrize("metric", ["p2r_r1", "rsum", "t2i_r5", "t2i rsum"])
def test_an_interval_is_that_of_drawing_images_with_their_phrases_or_persons(metric):
    if metric.startswith("t2i"):
        builders.prepare(
            "made", OWNER, trained=2, groups=[f"person {n}" for n in PERSON]
        )
        way, owner, facts = "t2i", PERSON[OWNER], {}
    else:
        builders.write_regions(
            Path("data/prepared/made"), ["t1", *ids("i", OF_PHRASE), "t0"]
        )
        way, owner, facts = "p2r", OF_PHRASE, {"task": "localisation"}
    metric = metric.removeprefix("t2i ")
    preset = searcher_of_one_way(way, owner, **facts)
    cutoffs = CUTOFFS if metric == "rsum" else [int(metric[-1])]
    ranks = np.stack([cell.ranks(way) for cell in preset.played])
    hits = sum(100.0 * (ranks < k).mean(0) for k in cutoffs)
    expected = expected_interval(owner, hits, 100.0 * len(cutoffs))
    assert interval_over_images(board(preset), preset, metric) == pytest.approx(
        expected
    )
    assert expected[0] < preset.mean(metric) < expected[1]
    assert preset.mean("rsum") <= 300


def test_an_interval_of_the_folds_is_of_their_ranks():
    within = [ranks_of(np.random.default_rng(seed), 1.0) for seed in range(3)]
    cells = [
        outcome(
            "a", seed, {way: 99 + x for way, x in of.items()} | {"t2i_fold": of["t2i"]}
        )
        for seed, of in enumerate(within)
    ]
    preset = standing("a", cells)
    hits = 100.0 * (np.stack([of["t2i"] for of in within]) < 5).mean(0)
    expected = expected_interval(OWNER, hits, 100.0)
    assert interval_over_images(board(preset), preset, "fold_t2i_r5") == pytest.approx(
        expected
    )
    low, high = interval_over_images(board(preset), preset, "t2i_r5")
    assert low == 0 < high < 10  # of the whole split nothing is found
