"""`export`: tables in every format, ranks of every query, TREC files, few metrics for DVC."""

import json
import shutil
from pathlib import Path

import ir_measures
import pandas as pd
import pytest
from refusals import refused
from report_seasons import (
    CAPTIONS,
    DATASETS,
    FUSION,
    IMAGES,
    PRESETS,
    cells,
    contents,
    enter_played_season,
    record_of,
)

from benchmark.__main__ import main
from benchmark.commands.export import write_metrics
from benchmark.core.files import read_json, write_json
from benchmark.season.parameters import Params

COMMITTED = sorted((Path(__file__).parent.parent / "reports").glob("*/metrics.json"))
FOLDER = Path("reports/try")


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def exported(capsys, *words: str) -> str:
    assert main(["export", "--season", "try", *words]) == 0
    return capsys.readouterr().out


def test_the_list_names_every_table_and_each_can_be_had(played, capsys):
    names = exported(capsys).splitlines()
    assert len(names) == len(set(names))
    numbers = {name.partition(" ")[0] for name in names if not name.startswith(DATASETS)}
    assert len(numbers) == 23
    assert {"two_branch/2", "scan/5", "cyclematch/6.2", "instance_loss/8"} <= numbers
    for dataset in DATASETS:
        assert {f"{dataset}/{name}" for name in ("leaderboard", "i2t", "overlap", "claims")} <= {
            *names
        }
    for form in ("csv", "json", "latex", "markdown"):
        text = exported(capsys, "open/leaderboard", "--format", form)
        assert text.count("\n") > len(PRESETS)
    assert not FOLDER.exists()  # instead of a report


def test_json_has_the_numbers_of_the_records(played, capsys):
    table = json.loads(exported(capsys, "open/leaderboard", "--format", "json"))
    rows = {row[0]: dict(zip(table["heads"], row, strict=True)) for row in table["rows"]}
    assert set(rows) == set(PRESETS)
    rsums = [record_of(FUSION, seed)["metrics"]["rsum"] for seed in (0, 1)]
    assert rows[FUSION]["rsum"] == pytest.approx(sum(rsums) / 2)
    assert rows[FUSION]["seeds"] == 2


def test_a_number_stands_for_the_tables_of_all_places(played, capsys):
    text = exported(capsys, "two_branch/4", "--format", "latex")
    assert text.count(r"\begin{tabular}") == 2 * len(DATASETS)


def test_every_rank_is_exported_with_its_ids(played, capsys):
    assert main(["export", "--season", "try", "--queries", "all.csv"]) == 2
    assert "--queries: expected a .parquet file, found all.csv" in capsys.readouterr().err
    exported(capsys, "--queries", "all.parquet")
    table = pd.read_parquet("all.parquet")
    assert list(table) == ["season", "dataset", "preset", "seed", "direction", "query", "rank"]
    assert len(table) == len(cells(played)) * (IMAGES + CAPTIONS)
    mine = table[(table.preset == FUSION) & (table.dataset == "open") & (table.seed == 1)]
    metrics = record_of(FUSION, 1)["metrics"]
    for way in ("i2t", "t2i"):
        ranks = mine.loc[mine.direction == way, "rank"]
        assert 100 * (ranks < 1).mean() == pytest.approx(metrics[f"{way}_r1"])
    assert set(mine.loc[mine.direction == "i2t", "query"]) == {f"i{n}" for n in range(IMAGES)}


def test_outside_tools_find_the_recalls_of_the_records(played, capsys):
    assert exported(capsys, "--trec", "rankings") == "rankings\n"
    recalls = set()
    for cell in cells(played):
        metrics = json.loads((Path(cell.folder) / "record.json").read_text())["metrics"]
        for way in ("i2t", "t2i"):
            name = f"rankings/{cell.dataset}-{cell.preset}-{cell.seed}.{way}.run"
            qrels = ir_measures.read_trec_qrels(f"rankings/{cell.dataset}.{way}.qrels")
            run, measure = ir_measures.read_trec_run(name), ir_measures.Success @ 1
            success = ir_measures.calc_aggregate([measure], qrels, run)[measure]
            assert 100 * success == pytest.approx(metrics[f"{way}_r1"])
            recalls.add(success)
    assert len(recalls) > 2  # or the test could not fail


def test_results_of_other_raw_files_are_told_in_a_line(played, capsys):
    card = Path("data/prepared/open/card.json")
    write_json(card, read_json(card) | {"manifest": "other"})
    assert main(["export", "--season", "try"]) == 2
    told = capsys.readouterr().err
    assert "expected results of the raw files that data/prepared/open was read from" in told
    assert "run: rematch play try" in told and len(told.splitlines()) == 1


class TestMetrics:
    GOOD = {"d": {"a": {"rsum": 100.12345, "t2i_r1": 7, "medr": 3.5}, "claims": {"holds": 2}}}

    @pytest.fixture(autouse=True)
    def reported(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write_json(FOLDER / "metrics.json", self.GOOD)

    def test_a_row_has_a_file_of_few_metrics_and_rows_that_are_gone_have_none(self):
        assert write_metrics(FOLDER) == FOLDER / "metrics"
        assert list(contents(FOLDER / "metrics")) == ["reports/try/metrics/d/a.json"]
        assert read_json(FOLDER / "metrics/d/a.json") == {"rsum": 100.123, "t2i_r1": 7}
        write_json(FOLDER / "metrics.json", {"e": {"b": {"rsum": 1.0}}})
        write_metrics(FOLDER)
        assert list(contents(FOLDER / "metrics")) == ["reports/try/metrics/e/b.json"]

    def test_before_a_report_there_is_nothing_to_export(self):
        with refused("reports/none/metrics.json", found="nothing"):
            write_metrics(Path("reports/none"))

    @pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
    def test_committed_files_are_those_of_their_reports(self, path):
        shutil.copy(path, FOLDER / "metrics.json")
        write_metrics(FOLDER)
        written, known = (contents(folder / "metrics") for folder in (FOLDER, path.parent))
        assert written and list(written.values()) == list(known.values())
