"""Comparisons of made-up records against naive loops over their queries, and against SciPy."""

from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
from builders import board, ids, standing, write_arrays
from scipy import stats

from benchmark.analysis import significance
from benchmark.analysis.boards import Outcome, Standing
from benchmark.analysis.comparisons import (
    compare,
    interval,
    interval_over_images,
    rank_groups,
    values,
)
from benchmark.core.errors import UserError

CUTOFFS = (1, 5, 10)
EACH = [1, 3, 2, 5, 1, 2, 4, 2, 3, 2] * 4  # captions of each image
IMAGES, CAPTIONS = len(EACH), sum(EACH)
OWNER = np.repeat(np.arange(IMAGES), EACH)
WITH_SIBLING = np.flatnonzero(np.array(EACH)[OWNER] > 1)
QUERIES = {"s2s": ids("c", WITH_SIBLING)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """A prepared dataset whose test split comes after two training images."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("made", OWNER, trained=2)


def ranks_of(rng: np.random.Generator, quality: float) -> dict[str, np.ndarray]:
    """Ranks of every query; the images that are hard are so for all their queries."""
    hard = rng.exponential(4, IMAGES) / quality
    owners = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    return {way: rng.poisson(hard[owner]) for way, owner in owners.items()}


def any_ranks() -> dict[str, np.ndarray]:
    return ranks_of(np.random.default_rng(0), 1.0)


def outcome(preset: str, seed: int, ranks: dict[str, np.ndarray], **changes: object) -> Outcome:
    """A cell with these ranks; metrics and seconds may be changed, or its status."""
    return builders.outcome(preset, seed, ranks=ranks, queries=QUERIES, **changes)


def write_ranks(folder: Path, ranks: dict[str, np.ndarray]) -> None:
    builders.write_ranks(folder, ranks, QUERIES)


def played(preset: str, quality: float, seeds: tuple[int, ...] = (0, 1, 2)) -> Standing:
    """Seeds that share what is hard, as presets do: only the quality differs."""
    ranks = {seed: ranks_of(np.random.default_rng(seed), quality) for seed in seeds}
    return standing(preset, [outcome(preset, seed, drawn) for seed, drawn in ranks.items()])


def timed(preset: str, seconds: list[float], name: str = "per_pair") -> Standing:
    ranks = any_ranks()
    return standing(
        preset,
        [outcome(preset, seed, ranks, seconds={name: s}) for seed, s in enumerate(seconds)],
    )


def queries_of(cell: Outcome, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each recall of a metric its queries: their images, and their values in percent."""
    images = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    recalls = [(way, k) for way in ("i2t", "t2i") for k in CUTOFFS]
    if metric != "rsum":
        recalls = [metric.split("_r")]
    frame = pd.read_parquet(cell.folder / "scores/ranks.parquet")
    return [
        (images[way], 100.0 * (frame[frame.direction == way]["rank"].to_numpy() < int(k)))
        for way, k in recalls
    ]


def naive_replicates(preset: Standing, metric: str, drawn: np.ndarray) -> np.ndarray:
    """The metric, the mean over the seeds, of the queries of the images that were drawn."""
    of_seeds = [queries_of(cell, metric) for cell in preset.played]
    times = drawn.astype(int)
    return np.array(
        [
            np.mean([sum(np.repeat(v, row[i]).mean() for i, v in parts) for parts in of_seeds])
            for row in times
        ]
    )


@pytest.mark.parametrize("metric", ["rsum", "i2t_r5", "t2i_r1"])
def test_an_interval_is_that_of_drawing_images_with_their_captions(metric):
    preset = played("a", 1.0)
    drawn = significance.weights(IMAGES)
    naive = naive_replicates(preset, metric, drawn)
    expected = tuple(np.quantile(naive, [0.025, 0.975]))
    assert interval_over_images(board(preset), preset, metric) == pytest.approx(expected)
    assert expected[0] < preset.mean(metric) < expected[1]


@pytest.mark.parametrize("seeds", [(0, 1), (0, 1, 2)])
def test_the_interval_of_a_preset_is_for_other_seeds_too(seeds):
    preset = played("a", 1.0, seeds)
    rsums = np.array(preset.values("rsum"))
    mean, reach = rsums.mean(), stats.t.ppf(0.975, len(seeds) - 1) * stats.sem(rsums)
    low, high = interval_over_images(board(preset), preset, "rsum")
    expected = (mean - np.hypot(mean - low, reach), mean + np.hypot(high - mean, reach))
    assert interval(board(preset), preset, "rsum") == pytest.approx(expected)
    assert expected[0] < low < high < expected[1]


def test_of_one_seed_a_preset_has_no_interval_and_its_test_set_has_one():
    preset = played("a", 1.0, (0,))
    lost = outcome("a", 1, any_ranks(), status="failed")
    for outcomes in (preset.outcomes, [*preset.outcomes, lost]):
        single = standing("a", outcomes)
        assert interval(board(single), single, "rsum") is None
        low, high = interval_over_images(board(single), single, "rsum")
        assert low < single.mean("rsum") < high


def test_an_interval_stays_in_the_range_of_its_metric():
    best, other = any_ranks(), any_ranks()
    best = {way: np.zeros_like(ranks) for way, ranks in best.items()}
    preset = standing("a", [outcome("a", 0, best), outcome("a", 1, other)])
    assert interval(board(preset), preset, "rsum") == (0, 600)


def test_sentence_queries_are_the_captions_with_a_sibling():
    preset = played("a", 1.0)
    queried = np.flatnonzero(np.array(EACH) > 1)  # other images have no query and are never drawn
    drawn = np.zeros((significance.RESAMPLES, IMAGES))
    drawn[:, queried] = significance.weights(len(queried))
    naive = naive_replicates(preset, "s2s_r1", drawn)
    expected = tuple(np.quantile(naive, [0.025, 0.975]))
    assert interval_over_images(board(preset), preset, "s2s_r1") == pytest.approx(expected)


def test_sentence_queries_are_found_by_their_caption_whatever_their_order():
    preset = played("a", 1.0)
    before = interval_over_images(board(preset), preset, "s2s_r5")
    for cell in preset.played:
        path = cell.folder / "scores/ranks.parquet"
        pd.read_parquet(path)[::-1].reset_index(drop=True).query("direction == 's2s'").to_parquet(
            path
        )
    assert interval_over_images(board(preset), preset, "s2s_r5") == pytest.approx(before)


def test_a_comparison_has_the_seeds_difference_and_both_sources_of_doubt():
    first, second = played("a", 2.0), played("b", 1.0)
    comparison = compare(board(first, second), first, second, "rsum")
    gaps = np.subtract(first.values("rsum"), second.values("rsum"))
    assert (comparison.first, comparison.second, comparison.metric, comparison.seeds) == (
        "a",
        "b",
        "rsum",
        3,
    )
    assert comparison.difference == pytest.approx(gaps.mean())
    assert comparison.std == pytest.approx(gaps.std(ddof=1))
    drawn = significance.weights(IMAGES)
    naive = naive_replicates(first, "rsum", drawn) - naive_replicates(second, "rsum", drawn)
    expected = significance.difference_interval(gaps, naive)
    assert comparison.interval == pytest.approx(expected)
    assert comparison.interval[1] - comparison.interval[0] > 2 * 1.96 * np.std(naive)


def test_p_exchanges_images_with_all_their_queries_and_seeds():
    first, second = played("a", 1.0), played("b", 1.05)
    comparison = compare(board(first, second), first, second, "t2i_r5")
    shares = np.zeros(IMAGES)
    for preset, sign in ((first, 1), (second, -1)):
        for cell in preset.played:
            for image, value in zip(*queries_of(cell, "t2i_r5")[0], strict=True):
                shares[image] += sign * value / CAPTIONS / 3
    scipys = stats.permutation_test(
        (shares, np.zeros(IMAGES)),
        lambda a, b, axis: np.sum(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=100_000,
        rng=0,
    ).pvalue
    assert comparison.difference == pytest.approx(shares.sum())
    assert comparison.p == pytest.approx(scipys, abs=4 * np.sqrt(scipys * (1 - scipys) / 10_000))
    assert 0.001 < scipys < 0.9


def test_turned_round_everything_turns_but_p():
    first, second = played("a", 1.0), played("b", 1.5)
    there = compare(board(first, second), first, second, "i2t_r1")
    back = compare(board(first, second), second, first, "i2t_r1")
    assert there.difference == pytest.approx(-back.difference)
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))
    assert (there.p, there.std) == (back.p, pytest.approx(back.std))


def test_only_common_seeds_are_compared():
    first, second = played("a", 2.0, (0, 1, 2, 3)), played("b", 1.0, (3, 1, 7))
    comparison = compare(board(first, second), first, second, "rsum")
    rsums = [
        {cell.record.seed: cell.record.metrics["rsum"] for cell in preset.played}
        for preset in (first, second)
    ]
    gaps = [rsums[0][seed] - rsums[1][seed] for seed in (1, 3)]
    assert comparison.seeds == 2
    assert comparison.difference == pytest.approx(np.mean(gaps))
    assert comparison.std == pytest.approx(np.std(gaps, ddof=1))


def test_without_a_common_seed_there_is_no_comparison():
    first, second = played("a", 2.0, (0,)), played("b", 1.0, (1,))
    assert compare(board(first, second), first, second, "rsum") is None


def test_a_failed_seed_does_not_count():
    first, second = played("a", 2.0), played("b", 1.0)
    second.outcomes[1] = outcome("b", 1, any_ranks(), status="failed")
    assert compare(board(first, second), first, second, "rsum").seeds == 2


def test_one_seed_has_an_interval_for_other_images_and_no_deviation():
    first, second = played("a", 2.0, (0,)), played("b", 1.0, (0,))
    comparison = compare(board(first, second), first, second, "rsum")
    drawn = significance.weights(IMAGES)
    naive = naive_replicates(first, "rsum", drawn) - naive_replicates(second, "rsum", drawn)
    margin = 1.959964 * np.std(naive, ddof=1)
    assert comparison.std is None
    assert comparison.interval == pytest.approx(
        (comparison.difference - margin, comparison.difference + margin)
    )


def test_seeds_without_ranks_of_sentences_do_not_count():
    """Old records have the metric alone."""
    first, second = played("a", 2.0), played("b", 1.0)
    path = second.outcomes[0].folder / "scores/ranks.parquet"
    frame = pd.read_parquet(path)
    frame[frame.direction != "s2s"].to_parquet(path)
    comparison = compare(board(first, second), first, second, "s2s_r1")
    gaps = np.subtract(first.values("s2s_r1"), second.values("s2s_r1"))[1:]
    assert comparison.seeds == 2
    assert comparison.difference == pytest.approx(gaps.mean())
    assert len(values(second, "s2s_r1")) == 3
    assert compare(board(first, second), first, second, "rsum").seeds == 3


def test_times_have_their_seeds_and_less_is_better():
    first, second = timed("a", [1e-6, 2e-6, 3e-6]), timed("b", [5e-6, 7e-6, 7e-6])
    comparison = compare(board(first, second), first, second, "per_pair")
    expected = stats.ttest_1samp([4.0, 5.0, 4.0], 0).confidence_interval(0.95)
    assert values(first, "per_pair") == pytest.approx([1.0, 2.0, 3.0])
    assert comparison.difference == pytest.approx(13 / 3)
    assert comparison.interval == pytest.approx(tuple(expected))
    assert comparison.p is None
    assert interval_over_images(board(first, second), first, "per_pair") is None


def test_of_one_seed_a_time_has_no_interval():
    first, second = timed("a", [1e-6]), timed("b", [5e-6])
    assert compare(board(first, second), first, second, "per_pair").interval is None


def test_what_was_not_measured_is_not_compared():
    first, second = timed("a", [1e-6], "per_pair"), timed("b", [5e-6], "per_image")
    assert compare(board(first, second), first, second, "per_pair") is None
    assert compare(board(first, second), first, second, "p2r_r1") is None
    assert values(first, "per_batch") == []
    assert interval_over_images(board(first), first, "p2r_r1") is None
    assert interval_over_images(board(first), first, "overlap_s") is None


class TestOverlap:
    """S has replicates of its own, of the same resamples for every cell."""

    def cells(self, preset: str, level: float) -> Standing:
        ranks = any_ranks()
        metrics = [{"overlap_s": level + 0.01 * seed**2} for seed in range(3)]
        return standing(
            preset,
            [outcome(preset, s, ranks, metrics=of_seed) for s, of_seed in enumerate(metrics)],
        )

    def replicate(self, preset: Standing, seed: int) -> np.ndarray:
        rng = np.random.default_rng([len(preset.preset), seed])
        replicates = rng.normal(preset.values("overlap_s")[seed], 0.03, 200)
        write_arrays(preset.outcomes[seed].folder, "samples", overlap_replicates=replicates)
        return replicates

    def test_their_paired_difference_is_the_images_part(self):
        first, second = self.cells("a", 0.2), self.cells("bb", 0.3)
        both = [[self.replicate(preset, seed) for seed in range(3)] for preset in (first, second)]
        comparison = compare(board(first, second), first, second, "overlap_s")
        expected = significance.difference_interval(
            np.full(3, 0.1), np.mean(both[1], axis=0) - np.mean(both[0], axis=0)
        )
        assert comparison.difference == pytest.approx(0.1)  # less overlap is better
        assert comparison.interval == pytest.approx(expected)
        assert comparison.p is None
        high, low = np.quantile(np.mean(both[0], axis=0), [0.025, 0.975])
        twice = 2 * np.mean(values(first, "overlap_s"))
        alone = (twice - low, twice - high)  # reflected
        assert interval_over_images(board(first, second), first, "overlap_s") == pytest.approx(
            alone
        )

    def test_where_one_cell_has_none_the_seeds_are_left(self):
        first, second = self.cells("a", 0.2), self.cells("bb", 0.3)
        second.played[1].record.metrics["overlap_s"] += 0.05
        for preset, seed in ((first, 0), (first, 1), (first, 2), (second, 0), (second, 1)):
            self.replicate(preset, seed)
        write_arrays(second.outcomes[2].folder, "samples")
        comparison = compare(board(first, second), first, second, "overlap_s")
        expected = stats.ttest_1samp([0.1, 0.15, 0.1], 0).confidence_interval(0.95)
        assert comparison.interval == pytest.approx(tuple(expected))
        assert interval_over_images(board(first, second), second, "overlap_s") is None


class TestRankGroups:
    def test_those_who_are_alike_share_a_group(self):
        """a and b differ by one image; c is far behind."""
        ranks = ranks_of(np.random.default_rng(0), 3.0)
        other = ranks | {"i2t": np.where(np.arange(IMAGES) == 0, 50, ranks["i2t"])}
        worse = {way: of_way + 8 for way, of_way in ranks.items()}
        presets = [
            standing(name, [outcome(name, seed, of_preset) for seed in (0, 1)])
            for name, of_preset in (("c", worse), ("b", other), ("a", ranks))
        ]
        results = board(*presets)
        assert [s.preset for s in results.ranked] == ["a", "b", "c"]
        assert rank_groups(results) == [1, 1, 2]

    def test_of_too_few_queries_nobody_is_told_apart(self):
        presets = played("a", 9.0), played("b", 1.0)
        assert rank_groups(board(*presets)) == [1, 2]
        few = {"test": {"images": 99, "captions": 495}}
        assert rank_groups(board(*presets, counts=few)) == [1, 1]

    def test_p_is_that_of_the_comparison(self):
        """Two presets are one comparison: they share a group if and only if p is over 0.05."""
        seen = set()
        for quality in (1.0, 1.1, 1.2, 1.5, 2.0, 4.0):
            results = board(played("a", quality), played("b", 1.0))
            p = compare(results, *results.standings, "rsum").p
            assert rank_groups(results) == ([1, 2] if p <= 0.05 else [1, 1])
            seen.add(p <= 0.05)
        assert seen == {True, False}

    def test_only_common_seeds_tell_apart(self):
        """With seed 0 they are the same; the first has a second seed, and a much better one."""
        ranks = any_ranks()
        best = {way: np.zeros_like(of_way) for way, of_way in ranks.items()}
        first = standing("a", [outcome("a", 0, ranks), outcome("a", 1, best)])
        assert rank_groups(board(first, standing("b", [outcome("b", 0, ranks)]))) == [1, 1]

    def test_without_a_common_seed_nobody_is_told_apart(self):
        assert rank_groups(board(played("a", 9.0, (0,)), played("b", 1.0, (1,)))) == [1, 1]

    def test_failures_are_in_no_group(self):
        lost = standing("b", [outcome("b", 0, any_ranks(), status="failed")])
        assert rank_groups(board(played("a", 1.0), lost)) == [1]
        assert rank_groups(board(lost)) == []


def expected_interval(owner: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Of a mean over queries, their owners drawn with all that is theirs; owners without a query
    are never drawn."""
    distinct, owner = np.unique(owner, return_inverse=True)
    means = [
        np.concatenate([np.repeat(values[owner == o], times) for o, times in enumerate(row)]).mean()
        for row in significance.weights(len(distinct)).astype(int)
    ]
    return tuple(np.quantile(means, [0.025, 0.975]))


class TestPhrases:
    """Queries of phrase localisation, whose units are the images; some images have none."""

    COUNT = 70
    OF_PHRASE = np.random.default_rng(5).integers(0, IMAGES - 3, COUNT)  # in no order

    @pytest.fixture(autouse=True)
    def regions(self, folder) -> None:
        builders.write_regions(Path("data/prepared/made"), ["t1", *ids("i", self.OF_PHRASE), "t0"])

    def localiser(
        self, preset: str, quality: float, seeds: tuple[int, ...] = (0, 1, 2)
    ) -> Standing:
        return standing(preset, [self.cell(preset, seed, quality) for seed in seeds])

    def cell(self, preset: str, seed: int, quality: float) -> Outcome:
        rng = np.random.default_rng(seed)
        ranks = rng.poisson(rng.exponential(4, IMAGES)[self.OF_PHRASE] / quality)
        return builders.outcome(preset, seed, ranks={"p2r": ranks}, task="localisation")

    def values(self, cell: Outcome, k: int) -> np.ndarray:
        return 100.0 * (
            pd.read_parquet(cell.folder / "scores/ranks.parquet")["rank"].to_numpy() < k
        )

    @pytest.mark.parametrize("metric", ["p2r_r1", "p2r_r5", "rsum"])
    def test_an_interval_is_that_of_drawing_images_with_their_phrases(self, metric):
        preset = self.localiser("a", 1.0)
        cutoffs = CUTOFFS if metric == "rsum" else [int(metric[-1])]
        means = [np.mean([self.values(o, k) for o in preset.played], axis=0) for k in cutoffs]
        expected = expected_interval(self.OF_PHRASE, np.sum(means, axis=0))
        assert interval_over_images(board(preset), preset, metric) == pytest.approx(expected)
        assert expected[0] < preset.mean(metric) < expected[1]

    def test_two_presets_are_compared_by_their_phrases(self):
        first, second = self.localiser("a", 2.0), self.localiser("b", 1.0)
        comparison = compare(board(first, second), first, second, "p2r_r1")
        gaps = np.subtract(first.values("p2r_r1"), second.values("p2r_r1"))
        assert comparison.difference == pytest.approx(gaps.mean())
        assert 0 < comparison.p < 0.05 and comparison.interval[0] < comparison.difference

    def test_groups_are_of_the_presets_that_localise_and_of_no_other(self):
        """rsum of phrases is at most 300, that of both directions 600."""
        poor, good = self.localiser("poor", 0.1), self.localiser("good", 50.0)
        results = board(played("r", 9.0), poor, good)
        assert [s.preset for s in results.localisation.ranked] == ["good", "poor"]
        assert rank_groups(results.localisation) == [1, 2]
        assert [s.preset for s in results.retrieval.ranked] == ["r"]
        assert rank_groups(results.retrieval) == [1]

    def test_tasks_are_never_ranked_against_each_other(self):
        lowest = standing("low", [outcome("low", 0, {w: r + 99 for w, r in any_ranks().items()})])
        results = board(self.localiser("p", 50.0), lowest, self.localiser("q", 0.1))
        assert lowest.mean("rsum") == 0 < results.standings[2].mean("rsum")
        assert [s.preset for s in results.ranked] == ["low", "p", "q"]

    def test_phrases_of_another_split_are_named(self):
        preset = self.localiser("a", 1.0, (0,))
        write_ranks(preset.outcomes[0].folder, {"p2r": np.array([0])})
        with pytest.raises(UserError) as error:
            interval_over_images(board(preset), preset, "p2r_r1")
        assert error.value.where.endswith("scores/ranks.parquet: p2r")
        assert str(self.COUNT) in error.value.expected
        assert error.value.found == "1"


class TestPersons:
    """Captions are the only queries; all images and captions of a person belong together."""

    PERSON = np.arange(IMAGES) // 3  # of an image

    @pytest.fixture(autouse=True)
    def persons(self, folder) -> None:
        groups = [f"person {number}" for number in self.PERSON]
        builders.prepare("made", OWNER, trained=2, groups=groups)

    def searcher(self, preset: str, quality: float) -> Standing:
        cells = []
        for seed in (0, 1, 2):
            rng = np.random.default_rng(seed)
            ranks = rng.poisson(rng.exponential(4, IMAGES)[self.PERSON[OWNER]] / quality)
            cells.append(outcome(preset, seed, {"t2i": ranks}))
        return standing(preset, cells)

    @pytest.mark.parametrize("metric", ["t2i_r5", "rsum"])
    def test_an_interval_is_that_of_drawing_persons(self, metric):
        preset = self.searcher("a", 1.0)
        cutoffs = CUTOFFS if metric == "rsum" else [5]
        ranks = [pd.read_parquet(o.folder / "scores/ranks.parquet")["rank"] for o in preset.played]
        hits = sum(100.0 * (np.stack(ranks) < k).mean(0) for k in cutoffs)
        expected = expected_interval(self.PERSON[OWNER], hits)
        assert interval_over_images(board(preset), preset, metric) == pytest.approx(expected)
        assert preset.mean("rsum") <= 300

    def test_presets_are_told_apart_by_the_sum_of_three(self):
        results = board(self.searcher("poor", 0.1), self.searcher("good", 50.0))
        assert [s.preset for s in results.ranked] == ["good", "poor"]
        assert rank_groups(results) == [1, 2]

    def test_images_of_a_person_that_are_queries_are_drawn_together(self):
        preset = played("a", 1.0)
        values = np.mean([queries_of(o, "i2t_r1")[0][1] for o in preset.played], axis=0)
        expected = expected_interval(self.PERSON, values)
        assert interval_over_images(board(preset), preset, "i2t_r1") == pytest.approx(expected)


class TestFolds:
    """Ranks within the folds of the test split are another direction with the same queries."""

    def judged(self, preset: str, quality: float) -> Standing:
        cells = []
        for seed in (0, 1, 2):
            within = ranks_of(np.random.default_rng(seed), quality)
            whole = {way: 99 + ranks for way, ranks in within.items()}
            folds = {f"{way}_fold": within[way] for way in ("i2t", "t2i")}
            cells.append(outcome(preset, seed, whole | folds))
        return standing(preset, cells)

    def values(self, preset: Standing, way: str, k: int) -> np.ndarray:
        frames = [pd.read_parquet(o.folder / "scores/ranks.parquet") for o in preset.played]
        ranks = [frame.loc[frame["direction"] == way, "rank"].to_numpy() for frame in frames]
        return 100.0 * (np.stack(ranks) < k).mean(0)

    def test_an_interval_of_the_folds_is_of_their_ranks(self):
        preset = self.judged("a", 1.0)
        results = board(preset)
        expected = expected_interval(OWNER, self.values(preset, "t2i_fold", 5))
        assert interval_over_images(results, preset, "fold_t2i_r5") == pytest.approx(expected)
        assert interval_over_images(results, preset, "t2i_r5") == (
            0,
            0,
        )  # of the whole split nothing is found
        low, high = interval_over_images(results, preset, "fold_rsum")
        assert low < preset.mean("fold_rsum") < high

    def test_their_sum_can_be_compared(self):
        first, second = self.judged("a", 9.0), self.judged("b", 1.0)
        comparison = compare(board(first, second), first, second, "fold_rsum")
        gaps = np.subtract(first.values("fold_rsum"), second.values("fold_rsum"))
        assert comparison.difference == pytest.approx(gaps.mean())
        assert comparison.p < 0.05
        assert compare(board(first, second), first, second, "rsum").difference == 0


def test_a_file_that_was_written_anew_is_read_anew():
    preset = played("a", 1.0, (0,))
    before = interval_over_images(board(preset), preset, "i2t_r1")
    write_ranks(preset.outcomes[0].folder, ranks_of(np.random.default_rng(0), 9.0))
    assert interval_over_images(board(preset), preset, "i2t_r1") != before


def test_ranks_of_another_split_are_named():
    preset = played("a", 1.0, (0,))
    ranks = {"i2t": np.zeros(IMAGES, int), "t2i": np.zeros(CAPTIONS - 1, int)}
    write_ranks(preset.outcomes[0].folder, ranks)
    with pytest.raises(UserError) as error:
        interval_over_images(board(preset), preset, "t2i_r1")
    folder = preset.outcomes[0].folder
    assert error.value.where == f"{folder}/scores/ranks.parquet: t2i"
    assert error.value.expected == f"the {CAPTIONS} queries of the test split"
    assert error.value.found == str(CAPTIONS - 1)
    assert error.value.do == "run: dvc repro"


def test_prepared_data_that_is_missing_is_named():
    preset = played("a", 1.0, (0,))
    Path("data/prepared/made/captions.parquet").unlink()
    with pytest.raises(UserError) as error:
        interval_over_images(board(preset), preset, "rsum")
    assert error.value.where.endswith("captions.parquet") and error.value.found == "nothing"
    assert error.value.do.endswith(" made")
