"""The few metrics that `export --metrics` keeps for DVC; test_compare.py has tables and ranks."""

import shutil
from pathlib import Path

import pytest
from refusals import refused
from report_seasons import contents

from benchmark.__main__ import main
from benchmark.commands.export import write_metrics
from benchmark.core.files import read_json, write_json

COMMITTED = sorted((Path(__file__).parent.parent / "reports").glob("*/metrics.json"))
FOLDER = Path("reports/try")
GOOD = {"d": {"a": {"rsum": 100.12345, "t2i_r1": 7, "medr": 3.5}, "claims": {"holds": 2}}}


@pytest.fixture(autouse=True)
def reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_json(FOLDER / "metrics.json", GOOD)


def everything() -> dict[str, bytes]:
    return contents(Path())


def test_a_row_has_a_file_of_few_metrics():
    assert write_metrics(FOLDER) == FOLDER / "metrics"
    assert list(contents(FOLDER / "metrics")) == ["reports/try/metrics/d/a.json"]
    assert read_json(FOLDER / "metrics/d/a.json") == {"rsum": 100.123, "t2i_r1": 7}


def test_rows_that_are_gone_are_removed():
    write_metrics(FOLDER)
    write_json(FOLDER / "metrics.json", {"d": {"b": {"rsum": 1.0}}, "e": {"a": {"rsum": 2.0}}})
    write_metrics(FOLDER)
    names = ["reports/try/metrics/d/b.json", "reports/try/metrics/e/a.json"]
    assert list(contents(FOLDER / "metrics")) == names
    assert {path.name for path in FOLDER.iterdir()} == {"metrics", "metrics.json"}


@pytest.mark.parametrize(
    ("metrics", "where"),
    [
        ({"d": {"../../up": {"rsum": 1.0}}}, "../../up"),
        ({"d": {"/up": {"rsum": 1.0}}}, "/up"),
        ({"..": {"a": {"rsum": 1.0}}}, ".."),
        ({"d": {"a": {"rsum": "1 point"}}}, "rsum"),
        ({"d": [1]}, "d"),
        ([], ""),
    ],
)
def test_what_no_report_has_changes_nothing(metrics, where):
    write_metrics(FOLDER)
    write_json(FOLDER / "metrics.json", metrics)
    before = everything()
    with refused(f"metrics.json{': ' * bool(where)}", do="benchmark report --season try") as error:
        write_metrics(FOLDER)
    assert where in error.value.where
    assert everything() == before


def test_before_a_report_there_is_nothing_to_export():
    with refused("reports/none/metrics.json", found="nothing", do="report --season none"):
        write_metrics(Path("reports/none"))
    assert not Path("reports/none").exists()


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_files_are_those_of_their_reports(path):
    shutil.copy(path, FOLDER / "metrics.json")
    write_metrics(FOLDER)
    written, known = (contents(folder / "metrics") for folder in (FOLDER, path.parent))
    assert written and list(written.values()) == list(known.values())


def test_a_season_without_a_report_is_told_in_one_line(capsys):
    root = COMMITTED[0].parents[2]
    shutil.copytree(root / "seasons", "seasons", ignore=shutil.ignore_patterns("pipelines"))
    assert main(["export", "--metrics", "--season", "demo"]) == 2
    told = capsys.readouterr().err
    assert "reports/demo/metrics.json" in told and len(told.splitlines()) == 1
