"""`tune` trains with other options, notes what validation says, and leaves nothing else."""

from pathlib import Path

import pandas as pd
import pytest
import tiny_cells
from refusals import refused

from benchmark.analysis import tuning_trials
from benchmark.commands import tune
from benchmark.report.pages.tuning_table import tuning
from seasons import params_of

FILE = Path("seasons/test/tuning.csv")


@pytest.fixture(autouse=True)
def season(tmp_path, monkeypatch):
    tiny_cells.enter(tmp_path, monkeypatch)
    cell = tiny_cells.cell_of("two_branch", folder="results/test/tiny/two_branch/0")
    params = params_of(cells={cell.key: cell}).model_copy(update={"season": "test"})
    monkeypatch.setattr(tune, "read_params", lambda name: params)
    return params


def tried(*options: str, preset: str = "two_branch") -> None:
    line = [preset, *(part for text in options for part in ("--option", text))]
    parser = tune.argparse.ArgumentParser()
    tune.configure(parser)
    tune.main(parser.parse_args(line))


def test_a_trial_is_what_a_training_with_these_options_says_of_validation(capsys):
    tried("learning_rate=0.002", "epochs=4")
    tiny_cells.train_cell(tiny_cells.cell_of("two_branch", learning_rate=0.002, epochs=4))
    epoch = tiny_cells.checkpoint_of().epoch
    rsum = tiny_cells.history_of().val_rsum[epoch - 1]
    said = f"two_branch epochs=4 learning_rate=0.002: epoch {epoch}, rsum {rsum:.1f}\n"
    assert capsys.readouterr().out == said
    header, row = FILE.read_text().splitlines()
    assert header == "dataset,preset,options,epoch,val_rsum"
    assert row == f"tiny,two_branch,epochs=4 learning_rate=0.002,{epoch},{rsum:.1f}"


def test_of_test_items_nothing_is_read(capsys):
    tried("epochs=2")
    first = FILE.read_text()
    FILE.unlink()
    tiny_cells.write_dataset(bad="test")
    tried("epochs=2")
    assert FILE.read_text() == first


def test_nothing_is_left_but_the_row(capsys):
    before = {path for path in Path.cwd().rglob("*") if path.is_file()}
    tried("epochs=2")
    assert {path for path in Path.cwd().rglob("*") if path.is_file()} - before == {FILE.absolute()}


def test_what_was_tried_is_not_tried_again(capsys, monkeypatch):
    tried("epochs=2", "learning_rate=0.01")
    monkeypatch.delattr(tune, "train_cell")
    tried("learning_rate=0.01", "epochs=2")
    assert capsys.readouterr().out.endswith("tried before\n")
    assert len(pd.read_csv(FILE)) == 1


def test_trials_are_kept_in_the_order_of_presets(capsys):
    FILE.parent.mkdir(parents=True)
    FILE.write_text("dataset,preset,options,epoch,val_rsum\ntiny,vse,epochs=1,1,100.0\n")
    tried("epochs=2")
    tried("epochs=1")
    rows = pd.read_csv(FILE)
    assert rows.preset.tolist() == ["two_branch", "two_branch", "vse"]
    assert rows.options.tolist() == ["epochs=2", "epochs=1", "epochs=1"]


def test_options_that_the_method_lacks_and_presets_of_no_training_are_refused():
    with refused("two_branc", "two_branch"):
        tried("epochs=2", preset="two_branc")
    with refused(found="learning_rat"):
        tried("learning_rat=2")
    with refused("--option", "KEY=VALUE"):
        tried("epochs")
    assert not FILE.exists()


def test_the_report_shows_trials_and_which_the_season_takes(season):
    assert tuning(season, "tiny") is None
    FILE.parent.mkdir(parents=True)
    options = season.cells["tiny-two_branch-0"].options
    trials = [tuning_trials.spelt(options | {"epochs": epochs}) for epochs in (3, 30)]
    rows = "".join(f"tiny,two_branch,{text},2,{n}.5\n" for n, text in enumerate(trials))
    FILE.write_text(f"dataset,preset,options,epoch,val_rsum\n{rows}other,x,a=1,1,1.0\n")
    table = tuning(season, "tiny")
    assert [row[-2:] for row in table.rows] == [["0.5", "yes"], ["1.5", ""]]


def test_a_file_with_other_columns_is_refused():
    FILE.parent.mkdir(parents=True)
    FILE.write_text("preset,rsum\nvse,1\n")
    with refused("seasons/test/tuning.csv", "the columns dataset, preset", "preset, rsum"):
        tuning_trials.read_trials("test")
