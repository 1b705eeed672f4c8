"""The trials of seasons: their options have values, and rows stay as they are."""

from dataclasses import replace

import pytest
from refusals import refused

from benchmark.season import tuning
from benchmark.season.tuning import Trial, add_trial, file_of, read_trials
from seasons import ROOT

COMMITTED = sorted(path.parent.name for path in ROOT.glob("seasons/*/tuning.csv"))
HEADER = ",".join(tuning.COLUMNS)


@pytest.fixture
def season(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    return "test"


def write(season: str, *rows: str) -> None:
    file_of(season).parent.mkdir(parents=True)
    file_of(season).write_text("\n".join([HEADER, *rows, ""]))


def trial_of(preset: str, **options: object) -> Trial:
    return Trial(dataset="d", preset=preset, options=options, epoch=2, val_rsum=9.5)


@pytest.mark.parametrize("name", COMMITTED)
def test_a_new_row_leaves_the_committed_ones_as_they_are(season, name):
    text = (ROOT / file_of(name)).read_text()
    file_of(season).parent.mkdir(parents=True)
    file_of(season).write_text(text)
    add_trial(season, trial_of("vse", epochs=3))
    lines = file_of(season).read_text().splitlines()
    lines.remove("d,vse,epochs=3,2,9.5")
    assert lines == text.splitlines()


def test_options_have_values(season):
    write(season, "d,vse,rate=1e-05 epochs=20 flat=True start=None kind=fit,2,9.5")
    (trial,) = read_trials(season)
    assert trial.options == {
        "rate": 1e-5,
        "epochs": 20,
        "flat": True,
        "start": None,
        "kind": "fit",
    }
    assert (trial.epoch, trial.val_rsum) == (2, 9.5)


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("", True),
        ("epochs=20", True),
        ("epochs=20.0 rate=0.00001", True),
        ("flat=true", True),
        ("flat=1", False),
        ("epochs=2", False),
        ("gone=1", False),
        ("gone=null", True),
    ],
)
def test_a_season_takes_a_trial_whatever_the_spelling_of_its_options(text, is_taken):
    cell = {"epochs": 20, "rate": 1e-05, "flat": True}
    trial = trial_of("vse", **tuning.parsed(text))
    assert trial.is_taken(cell) == is_taken


def test_an_empty_line_is_no_trial(season):
    write(season, "d,vse,epochs=2,1,9.5", "", "d,vse,epochs=3,1,9.5")
    assert len(read_trials(season)) == 2


def test_no_file_is_no_trial(season):
    assert read_trials(season) == []


def test_a_trial_that_is_written_twice_is_one_row(season):
    for _ in range(2):
        add_trial(season, trial_of("vse", epochs=2))
    add_trial(season, trial_of("vse", epochs=2, rate=0.1))
    add_trial(season, trial_of("cca", epochs=2))
    presets = [trial.preset for trial in read_trials(season)]
    assert presets == ["cca", "vse", "vse"]


def test_trials_of_a_dataset_stand_together(season):
    for dataset, preset in (("e", "cca"), ("d", "vse"), ("e", "vse"), ("d", "cca")):
        add_trial(season, replace(trial_of(preset), dataset=dataset))
    cells = [(trial.dataset, trial.preset) for trial in read_trials(season)]
    assert cells == [("d", "cca"), ("d", "vse"), ("e", "cca"), ("e", "vse")]


@pytest.mark.parametrize(
    "row", ["d,vse,epochs=2,two,9.5", "d,vse,epochs=2,2,high", "d,vse,epochs,2,9.5"]
)
def test_a_row_that_is_no_trial_is_refused_by_its_line(season, row):
    write(season, "d,vse,epochs=2,1,9.5", row)
    with refused(f"{file_of(season)}: line 3"):
        read_trials(season)


def test_other_columns_are_refused(season):
    write(season)
    file_of(season).write_text("dataset,preset\n")
    with refused(file_of(season), expected=tuning.COLUMNS[-1], found="preset"):
        read_trials(season)


def test_a_value_with_a_space_is_read_as_it_was_written(season):
    trial = trial_of("vse", epochs=3, note="a b", rate=0.5)
    add_trial(season, trial)
    assert read_trials(season) == [trial]
