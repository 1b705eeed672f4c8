"""Comparisons where the units are not simply images with captions: phrases, persons, folds."""

from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
from builders import board, ids, standing
from made_ranks import (
    CUTOFFS,
    IMAGES,
    OWNER,
    any_ranks,
    expected_interval,
    outcome,
    played,
    prepare,
    queries_of,
    ranks_of,
    write_ranks,
)

from benchmark.analysis.boards import Outcome, Standing
from benchmark.analysis.comparisons import compare, interval_over_images
from benchmark.core.errors import UserError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """A prepared dataset."""
    monkeypatch.chdir(tmp_path)
    prepare()


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
        span = 100.0 * len(cutoffs)
        expected = expected_interval(self.OF_PHRASE, np.sum(means, axis=0), span)
        assert interval_over_images(board(preset), preset, metric) == pytest.approx(expected)
        assert expected[0] < preset.mean(metric) < expected[1]

    def test_two_presets_are_compared_by_their_phrases(self):
        first, second = self.localiser("a", 4.0), self.localiser("b", 0.5)
        comparison = compare(board(first, second), first, second, "p2r_r1")
        gap = first.mean("p2r_r1") - second.mean("p2r_r1")
        assert comparison.difference == pytest.approx(gap)
        assert comparison.doubt.image_count == len(np.unique(self.OF_PHRASE))
        assert 0 < comparison.estimate.p() < 0.05

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
        expected = expected_interval(self.PERSON[OWNER], hits, 100.0 * len(cutoffs))
        assert interval_over_images(board(preset), preset, metric) == pytest.approx(expected)
        assert preset.mean("rsum") <= 300

    def test_images_of_a_person_that_are_queries_are_drawn_together(self):
        preset = played("a", 1.0)
        values = np.mean([queries_of(o, "i2t_r1")[0][1] for o in preset.played], axis=0)
        expected = expected_interval(self.PERSON, values, 100.0)
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
        expected = expected_interval(OWNER, self.values(preset, "t2i_fold", 5), 100.0)
        assert interval_over_images(results, preset, "fold_t2i_r5") == pytest.approx(expected)
        low, high = interval_over_images(results, preset, "t2i_r5")
        assert low == 0 < high < 10  # of the whole split nothing is found
        low, high = interval_over_images(results, preset, "fold_rsum")
        assert low < preset.mean("fold_rsum") < high

    def test_their_sum_can_be_compared(self):
        first, second = self.judged("a", 9.0), self.judged("b", 1.0)
        comparison = compare(board(first, second), first, second, "fold_rsum")
        gap = first.mean("fold_rsum") - second.mean("fold_rsum")
        assert comparison.difference == pytest.approx(gap)
        assert comparison.estimate.p() < 0.05
        assert compare(board(first, second), first, second, "rsum").difference == 0
