"""Boards from records; that of several folds against naive loops over the images of
each."""

from dataclasses import replace
from statistics import fmean, stdev, variance

import numpy as np
import pytest
from builders import board, seal_tables, standing
from made_ranks import IMAGES, of_training, outcome, prepare, ranks_of
from refusals import refused
from report_seasons import (
    DATASETS,
    PRESETS,
    edit_record,
    enter_played_season,
    lose_record,
)
from scipy import stats

from benchmark.boards.boards import Board, Row
from benchmark.boards.comparisons import compare, interval, sample_of
from benchmark.boards.season_boards import (
    _board_of_folds,
    levels,
    read_boards,
    resampled_t,
)
from benchmark.season.parameters import Params
from benchmark.stats import comparisons
from benchmark.stats.comparisons import Sample, Spread

COUNT = 6
QUALITIES = {"better": 2.0, "worse": 1.4}


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_a_dataset_has_a_board_with_a_row_per_preset_and_an_outcome_per_seed(season):
    boards = read_boards(season)
    assert [each.dataset for each in boards] == list(DATASETS)
    for of_dataset in boards:
        assert {row.preset for row in of_dataset.rows} == set(PRESETS)
        for row in of_dataset.rows:
            assert [outcome.record.seed for outcome in row.outcomes] == [0, 1]
        assert of_dataset.missing == ()


def test_cells_that_were_not_run_are_left_out_and_named(season, capsys):
    lose_record("open", PRESETS[0], 1)
    _, of_open = read_boards(season)
    assert of_open.missing == (f"open-{PRESETS[0]}-1",)
    assert [o.record.seed for o in of_open.row(PRESETS[0]).outcomes] == [0]
    assert f"open-{PRESETS[0]}-1" in capsys.readouterr().err


def test_a_record_of_another_protocol_is_refused(season):
    edit_record("open", PRESETS[0], 0, protocol_version=0)
    with refused("", do="rematch play try"):
        read_boards(season)


# Folds --------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()


def played(preset: str, fold: int, seeds: tuple[int, ...] = (0,)) -> Row:
    """A row on a fold, whose images are as hard for all rows."""
    cells = []
    for seed in seeds:
        rng = np.random.default_rng([fold, seed])
        cells.append(outcome(preset, seed, ranks_of(rng, QUALITIES[preset])))
    return standing(preset, cells)


def fold_board(fold: int, seeds: tuple[int, ...] = (0,)) -> Board:
    made = board(*[played(preset, fold, seeds) for preset in QUALITIES])
    counts = made.card["counts"] | {"train": {"images": 5 * IMAGES}}
    counts["test"] = counts["test"] | {"images": IMAGES}
    return replace(made, card=made.card | {"counts": counts})


def together(folds: list[Board]) -> Board:
    rows = []
    for row in folds[0].rows:
        outcomes = [o for fold in folds for o in fold.row(row.preset).outcomes]
        rows.append(replace(row, outcomes=outcomes))
    return replace(folds[0], rows=rows, fold_boards=tuple(folds))


def differences(folds: list[Board]) -> list[float]:
    gaps = []
    for fold in folds:
        better, worse = (fold.row(preset).mean("rsum") for preset in QUALITIES)
        gaps.append(better - worse)
    return gaps


def variance_of_difference(fold: Board) -> float:
    left = np.zeros(IMAGES)
    for sign, preset in zip((1, -1), QUALITIES, strict=True):
        cells = fold.row(preset).played
        left += sign * np.mean([of_training(cell, "rsum") for cell in cells], axis=0)
    return float((left**2).sum())


def test_rows_are_compared_fold_by_fold_with_the_variance_between_folds():
    folds = [fold_board(number) for number in range(COUNT)]
    every, gaps = together(folds), differences(folds)
    found = compare(every, *every.rows, "rsum")
    assert found.difference == pytest.approx(fmean(gaps))
    assert found.trainings == (COUNT, COUNT)
    of_images = fmean(map(variance_of_difference, folds))
    wider = max(of_images, variance(gaps))  # no surer than images make it
    assert found.estimate.error == pytest.approx(np.sqrt(wider / COUNT))
    least = stats.t.ppf(0.975, COUNT - 1)
    most = found.estimate.error * least
    low, high = found.interval
    assert (high - low) / 2 <= most * (1 + 1e-9)
    assert found.difference == pytest.approx((low + high) / 2)


def test_a_row_is_uncertain_for_the_images_and_the_trainings_of_folds():
    folds = [fold_board(number) for number in range(COUNT)]
    every = together(folds)
    (better, _), values = every.rows, [fold.rows[0].mean("rsum") for fold in folds]
    sample = sample_of(every, better, "rsum")
    assert list(sample.values.values()) == pytest.approx(values)
    assert sample.units == COUNT * IMAGES
    low, high = interval(every, better, "rsum")
    assert low < fmean(values) < high
    (level, _) = levels(every, folds[0], "rsum")
    assert level.by_fold == pytest.approx(values)
    assert (level.mean, level.deviation) == pytest.approx(
        (fmean(values), stdev(values))
    )
    assert (level.low, level.high) == (low, high)
    assert level.official == pytest.approx(values[0])


def test_a_row_without_a_result_on_one_fold_is_left_out():
    seal_tables("made", title="Made", split="official")
    whole, part = fold_board(1), fold_board(2)
    first, _ = part.rows
    folds = _board_of_folds("made", [whole, replace(part, rows=[first])])
    (row,) = folds.rows
    assert row.preset == first.preset and len(row.outcomes) == 2


def test_seeds_of_one_fold_count_as_their_mean():
    folds = [fold_board(number, (0, 1)) for number in range(COUNT)]
    every = together(folds)
    found = compare(every, *every.rows, "rsum")
    assert found.trainings == (COUNT, COUNT)
    gaps = differences(folds)
    wider = max(fmean(map(variance_of_difference, folds)), variance(gaps))
    assert found.estimate.error == pytest.approx(np.sqrt(wider / COUNT))


def test_of_two_folds_nothing_is_known_of_others():
    every = together([fold_board(number) for number in range(2)])
    found = compare(every, *every.rows, "rsum")
    assert not found.is_paired


def test_the_corrected_resampled_t_allows_for_common_training_images():
    folds = [fold_board(number) for number in range(COUNT)]
    gaps = differences(folds)
    found = resampled_t(together(folds), np.array(gaps))
    expected = np.sqrt((1 / COUNT + 1 / 5) * variance(gaps))
    assert (found.value, found.error) == pytest.approx((fmean(gaps), expected))
    assert found.freedom == COUNT - 1


# noise of an image for both rows, of a training with an image, of a training alone;
# and how often intervals may cover: where trainings add nothing to what images do, the
# variance between folds is still not known better than from six of them
NOISES = {
    "images alone": (2.0, 2.0, 0.0, 0.98),
    "trainings matter little": (2.0, 2.0, 0.1, 0.975),
    "as much as images": (2.0, 2.0, 0.2, 0.97),
    "trainings dominate": (0.3, 0.3, 1.0, 0.97),
}


@pytest.mark.simulation
@pytest.mark.parametrize("name", NOISES)
def test_intervals_of_folds_cover_a_difference_of_nothing(name):
    """Seven folds, of which the first is the official split: six further ones."""
    *noises, most = NOISES[name]
    rng, experiments, covered = np.random.default_rng(3), 4000, 0
    for _ in range(experiments):
        low, high = interval_of_made_up_folds(rng, *noises)
        covered += low <= 0.0 <= high
    print(f"{name}: {100 * covered / experiments:.1f}% of {experiments}")
    assert 0.93 <= covered / experiments <= most


def interval_of_made_up_folds(
    rng: np.random.Generator, hardness: float, luck: float, of_training: float
) -> tuple[float, float]:
    """Of the difference of two rows of the same true level; the second is half as
    sensitive to what makes an image hard."""
    images = 200
    hard = rng.normal(0, hardness, (COUNT, images))
    samples = []
    for share in (1.0, 0.5):
        folds = {}
        for number in range(COUNT):
            values = share * hard[number] + rng.normal(0, luck, images)
            mean = values.mean() + rng.normal(0, of_training)
            left = (values - values.mean()) / np.sqrt(images * (images - 1))
            folds[number] = Sample({0: float(mean)}, {0: left}, images)
        samples.append(comparisons.sample_of_folds(folds))
    alone = Spread(pooled=None, own={})
    return comparisons.compare("ab", samples, alone, is_shared=True).interval
