"""`tune` trains with other options, notes what validation says, and leaves nothing
else."""

from pathlib import Path

import builders
import pandas as pd
import pytest
import tiny_cells
from refusals import refused

from benchmark.boards.boards import Board
from benchmark.commands import tune
from benchmark.report.pages import dataset_tables
from benchmark.season import tuning
from benchmark.season.parameters import Cell
from benchmark.train import __main__ as train
from seasons import params_of

FILE = Path("seasons/test/tuning.csv")
FAILING = [
    ("breaks", "breaks_at=2"),
    ("odd", "how=fit raises"),
    ("odd", "how=recipe raises"),
]


def cell_of(kind: str, **changes: object) -> Cell:
    cell = tiny_cells.cell_of(kind, folder=f"data/cells/test/tiny/{kind}/0")
    return cell.model_copy(update=changes)


@pytest.fixture(autouse=True)
def season(tmp_path, monkeypatch):
    """A preset that is trained, one in closed form, and two whose training fails."""
    tiny_cells.enter(tmp_path, monkeypatch)
    cca = cell_of("two_branch", preset="cca", method="cca", options={})
    cells = [cell_of("two_branch"), cca, cell_of("breaks"), cell_of("odd")]
    known = {cell.key: cell for cell in cells}
    params = params_of(cells=known).model_copy(update={"season": "test"})
    monkeypatch.setattr(tune, "read_params", lambda *names: params)
    return params


def tried(*options: str, preset: str = "two_branch", dataset: str = "tiny") -> None:
    line = [preset, *(part for text in options for part in ("--option", text))]
    line += ["--dataset", dataset]
    parser = tune.argparse.ArgumentParser()
    tune.configure(parser)
    tune.main(parser.parse_args(line))


def test_a_trial_is_what_a_training_with_these_options_says_of_validation(capsys):
    tried("learning_rate=0.002", "epochs=4")
    tiny_cells.train_cell(
        tiny_cells.cell_of("two_branch", learning_rate=0.002, epochs=4)
    )
    epoch = tiny_cells.checkpoint_of().epoch
    rsum = tiny_cells.history_of().val_rsum[epoch - 1]
    line = f"two_branch epochs=4 learning_rate=0.002: epoch {epoch}, rsum {rsum:.1f}\n"
    assert capsys.readouterr().out.startswith(line)
    header, row = FILE.read_text().splitlines()
    assert header == "dataset,preset,options,epoch,val_rsum"
    assert row == f"tiny,two_branch,epochs=4 learning_rate=0.002,{epoch},{rsum:.1f}"


def test_of_test_items_nothing_is_read_and_nothing_is_left_but_the_row(capsys):
    before = everything()
    tried("epochs=2")
    assert everything() - before == {*FILE.parents, FILE} - {Path()}
    first = FILE.read_text()
    FILE.unlink()
    tiny_cells.write_dataset(bad="test")
    tried("epochs=2")
    assert FILE.read_text() == first


def everything() -> set[Path]:
    """Files and folders, but for scratch files."""
    return {path for path in Path().rglob("*") if ".scratch" not in path.parts}


@pytest.mark.parametrize(("preset", "option"), FAILING)
def test_a_trial_that_fails_leaves_nothing(capsys, preset, option):
    before = everything()
    with refused(f"preset {preset}", "to its end", do="try other options"):
        tried(option, preset=preset)
    assert everything() == before


def test_a_closed_form_is_validated_as_it_was_fitted(capsys, monkeypatch):
    said, recalls = [], train.recalls

    def of_validation(*given) -> dict[str, float]:
        metrics = recalls(*given)
        said.append(metrics["rsum"])
        return metrics

    monkeypatch.setattr(train, "recalls", of_validation)
    rows = []
    for ridge in (0.001, 100.0):
        said.clear()
        tried(f"regulariser={ridge}", preset="cca")
        assert len(set(said)) == 1  # as it was fitted, and loaded
        rows.append(f"tiny,cca,regulariser={ridge},0,{said[0]:.1f}")
    line = "cca regulariser=0.001: closed form, rsum "
    assert capsys.readouterr().out.startswith(line)
    assert FILE.read_text().splitlines()[1:] == rows
    assert rows[0].split(",")[-1] != rows[1].split(",")[-1]


def test_what_was_tried_is_not_tried_again(capsys, monkeypatch):
    tried("epochs=2", "learning_rate=0.01")
    monkeypatch.delattr(tune, "train_cell")
    tried("learning_rate=0.01", "epochs=2")
    assert capsys.readouterr().out.endswith("already tried\n")
    assert len(pd.read_csv(FILE)) == 1


def test_options_that_the_method_lacks_and_presets_of_no_training_are_refused():
    with refused("two_branc", "two_branch"):
        tried("epochs=2", preset="two_branc")
    with refused(found="learning_rat"):
        tried("learning_rat=2")
    with refused("--option", "KEY=VALUE"):
        tried("epochs")
    with refused("dataset 'tin'", "one of tiny"):
        tried("epochs=2", dataset="tin")
    assert not FILE.exists()


OF_BOARD = {"dataset": "tiny", "method": "two_branch_embedding"}
RISING = pd.DataFrame({"epoch": [1, 2, 3], "val_rsum": [100.0, 250.25, 200.0]})


def board_of(**options: object) -> Board:
    """`options` of one of two presets; a third is of another method."""
    tried = builders.outcome(
        "two_branch", options=options, history=RISING, selected_epoch=2, **OF_BOARD
    )
    other = builders.outcome("vse", history=RISING, **(OF_BOARD | {"method": "vse"}))
    standings = [
        builders.standing(each.record.preset, [each]) for each in (tried, other)
    ]
    return builders.board(*standings, dataset="tiny", title="Tiny")


def write_trials(*rows: str) -> None:
    FILE.parent.mkdir(parents=True)
    FILE.write_text("\n".join([",".join(tuning.COLUMNS), *rows, ""]))


def test_the_report_shows_trials_and_which_the_season_takes(season):
    board = board_of(epochs=3, learning_rate=0.1)
    assert len(dataset_tables.tuning(season, board)) == 0
    lines = [f"tiny,two_branch,epochs={epochs},2,{epochs}.5" for epochs in (3, 30)]
    write_trials(*lines, "other,x,a=1,1,1.0", "tiny,left_out,a=1 gone=2,1,1.0")
    assert [
        [*row[1:3], str(row[3]), row[4]]
        for row in dataset_tables.tuning(season, board).rows
    ] == [
        ["epochs=3", 2, "3.5", "yes"],
        ["epochs=30", 2, "30.5", ""],
        ["a=1 gone=2", 1, "1.0", ""],
    ]
