"""What a report reads, refuses, writes and deletes; metrics.json, plots and exported tables."""

import csv
import io
import json
import os
import re
from math import isfinite
from pathlib import Path
from statistics import fmean

import ir_measures
import pandas as pd
import pytest
import torch
import yaml
from report_readers import assert_contained, markdown_pages, on_readme, page
from report_seasons import (
    DATASETS,
    FOLDER,
    FUSION,
    PAPERS,
    PRESETS,
    README,
    amend,
    amend_metrics,
    cells,
    contents,
    enter_played_season,
    enter_reported_season,
    lose,
    record_of,
    season,
)

from benchmark.analysis import boards
from benchmark.analysis.replays import Agreement, Replay, note_replay
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.machine import provenance
from benchmark.papers.printed_tables import papers
from benchmark.report import __main__ as report
from benchmark.report.pages import season_pages
from benchmark.season.parameters import Cell, Fusion, Params


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """A season with every record, in a folder of its own; its report draws no figures."""
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.fixture
def reported(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """As `played`, after `write_report`."""
    return enter_reported_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_the_time_of_a_pair_is_not_rounded_away():
    seconds = {"training": 1234.5678, "per_pair": 2.13456e-8}
    kept = provenance(torch.device("cpu"), seconds, "float32").seconds
    assert kept == {"training": 1235.0, "per_pair": 2.135e-8}


class TestMetrics:
    def read(self) -> dict:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads((FOLDER / "metrics.json").read_text(), parse_constant=refuse)

    def test_they_are_means_over_the_seeds(self, reported):
        metrics = self.read()
        records = [record_of(FUSION, seed) for seed in (0, 1)]
        for name in ("rsum", "i2t_r1", "t2i_medr", "overlap_s", "i2t_r1_tie_gap"):
            expected = sum(record["metrics"][name] for record in records) / 2
            assert metrics["open"][FUSION][name] == pytest.approx(expected)
        assert "overlap_s_low" in records[0]["metrics"]
        assert not {"overlap_s_low", "overlap_s_high"} & set(metrics["open"][FUSION])
        assert set(metrics) == set(DATASETS)
        assert set(metrics["open"]) == {*PRESETS, "claims"}
        numbers = [x for name in PRESETS for x in metrics["open"][name].values()]
        assert all(isfinite(number) for number in numbers)

    def test_the_claims_are_counted(self, reported):
        counts = self.read()["open"]["claims"]
        assert set(counts) == set(Conclusion)
        papers = [yaml.safe_load(path.read_text()) for path in PAPERS.glob("*.yaml")]
        assert sum(counts.values()) == sum(len(paper["claims"]) for paper in papers)
        # Of the four presets no two are compared by a claim.
        assert counts["not run"] == sum(counts.values())

    def test_a_season_in_which_everything_failed_still_has_a_report(self, played):
        params = season(seeds=(0,))
        for cell in cells(params):
            lose(cell.dataset, cell.preset, cell.seed, "out of luck")
        report.write_report(params)
        for dataset in DATASETS:
            assert page(dataset).count("out of luck") == 4
            assert "No preset has a result" in on_readme(dataset)
        metrics = self.read()
        assert set(metrics) == set(DATASETS)
        assert all(set(of_dataset) == {"claims"} for of_dataset in metrics.values())
        for path in markdown_pages():
            assert_contained(path)


def test_plots_are_tables_for_dvc(reported):
    curves = pd.read_csv(FOLDER / "plots/training.csv")
    assert list(curves.columns) == ["epoch", "loss", "val_rsum", "cell"]
    trained = [preset for preset in PRESETS if preset != FUSION]
    named = {
        f"{dataset} {preset} {s}" for dataset in DATASETS for preset in trained for s in (0, 1)
    }
    assert set(curves["cell"]) == named
    assert curves.groupby("cell")["val_rsum"].apply(list).tolist() == [[90, 99, 98]] * len(named)
    assert not re.search(r"\.\d{7}", (FOLDER / "plots/leaderboard.csv").read_text())
    board = pd.read_csv(FOLDER / "plots/leaderboard.csv")
    assert list(board.columns) == ["dataset", "preset", "rsum"]
    assert len(board) == len(DATASETS) * len(PRESETS)
    metrics = json.loads((FOLDER / "metrics.json").read_text())
    for row in board.itertuples():
        assert row.rsum == pytest.approx(metrics[row.dataset][row.preset]["rsum"])


@pytest.mark.parametrize(
    ("preset", "command"),
    [
        ("scan_i2t_lse", "scan_i2t_lse/dvc.yaml:evaluate-1"),
        (FUSION, f"{FUSION}/dvc.yaml:evaluate-1"),
    ],
)
def test_a_missing_record_names_the_cell_and_the_command(played, preset, command):
    Path(f"results/try/open/{preset}/1/record.json").unlink()
    with pytest.raises(UserError) as error:
        report.write_report(played)
    assert error.value.where.endswith(f"open/{preset}/1/record.json")
    assert f"open-{preset}-1" in error.value.expected and error.value.found == "nothing"
    assert error.value.do.endswith(f"dvc repro seasons/try/pipelines/open/{command}")
    assert not README.exists()


@pytest.mark.parametrize(
    "name",
    ["scores/samples.npz", "scores/ranks.parquet", "scores/cost.json", "training/history.csv"],
)
def test_a_missing_file_names_the_cell_and_the_command(played, name):
    Path(f"results/try/open/scan_i2t_lse/1/{name}").unlink()
    with pytest.raises(UserError) as error:
        report.write_report(played)
    assert error.value.where.endswith(name) and error.value.found == "nothing"
    assert error.value.do.endswith("/open/scan_i2t_lse/dvc.yaml:evaluate-1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema_version", 0),
        ("protocol_version", 0),
        ("season", "other"),
        ("dataset", "gated"),
        ("preset", "other"),
        ("seed", 5),
        ("split", "other/test"),
        ("manifest_sha256", "other"),
        ("captions", 1),
    ],
)
def test_a_record_of_another_season_protocol_or_dataset_is_refused(played, name, value):
    amend("scan_i2t_lse", 1, **{name: value})
    with pytest.raises(UserError) as error:
        report.write_report(played)
    assert error.value.where.endswith(f"record.json: {name}")
    assert error.value.expected and error.value.found == repr(value)
    assert error.value.do.endswith("/open/scan_i2t_lse/dvc.yaml:evaluate-1")


def test_a_record_of_other_phrases_is_refused(played):
    amend("scan_i2t_lse", 1, task="localisation", phrases=7)
    with pytest.raises(UserError) as error:
        report.write_report(played)
    assert error.value.where.endswith("phrases")
    assert error.value.expected.startswith("0 ") and error.value.found == "7"
    assert error.value.do.endswith("scan_i2t_lse/dvc.yaml:evaluate-1")


def test_a_record_of_no_declared_cell_is_not_read(reported):
    first = contents(FOLDER)
    stray = Path("results/try/open/scan_i2t_lse/2")
    stray.mkdir()
    (stray / "record.json").write_text("not json")
    Path("results/try/open/unheard_of/0").mkdir(parents=True)
    report.write_report(reported)
    assert contents(FOLDER) == first


def test_without_raw_files_only_the_local_gallery_is_left_out(reported, capsys):
    first = contents(FOLDER)
    os.rename("data/raw/gated", "data/raw/away")
    for path in (FOLDER / "local").rglob("*"):
        if path.is_file():
            path.unlink()
    report.write_report(reported)
    assert "no local gallery of gated" in capsys.readouterr().err
    assert contents(FOLDER) == {k: v for k, v in first.items() if "/local/" not in k}


def test_replays_and_numerics_stand_on_the_first_page(played):
    counts = {str(Agreement.IDENTICAL): 15, str(Agreement.WITHIN): 1}
    note_replay("try", Replay(machine="m | x", fingerprint="ab12", cells=16, agreements=counts))
    pinned = {"mode": "portable", "threads": 1, "fingerprint": "ab12"}
    amend("scan_t2i_avg", 0, numerics=pinned)
    report.write_report(played)
    text = README.read_text()
    assert "1 of 16 records: portable numerics, 1 thread, fingerprint ab12" in text
    assert "15 of 16 records: made before numerics were pinned: a replay gives other" in text
    told = "Replayed on m \\| x, fingerprint ab12: of 16 cells 15 identical, 1 within the spread"
    assert told in text


def test_what_an_earlier_report_left_is_removed(reported):
    first = contents(FOLDER)
    left = ("figures/old.png", "figures/gallery/gone/1.png", "figures/.half.png.12.part")
    pages = ("papers/gone.md", "datasets/gone.md")
    for name in (*left, *pages, "local/gated/gated-words.png"):
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (FOLDER / "local" / "notes.md").write_text("mine")
    report.write_report(reported)
    assert not (FOLDER / "figures" / "gallery" / "gone").exists()
    assert (FOLDER / "local" / "notes.md").read_text() == "mine"
    (FOLDER / "local" / "notes.md").unlink()
    assert contents(FOLDER) == first


def test_a_record_that_changes_changes_only_the_pages_that_show_it(reported):
    first = contents(FOLDER)
    amend_metrics(FUSION, 0, i2t_r10=12.5)
    report.write_report(reported)
    second = contents(FOLDER)
    assert set(second) == set(first)
    changed = {str(Path(n).relative_to(FOLDER)) for n in first if first[n] != second[n]}
    assert changed == {"datasets/open.md", "metrics.json", "papers/scan.md"}


def test_pages_of_what_is_no_longer_in_the_season_are_removed(reported, monkeypatch):
    kept = {"open": reported.datasets["open"]}
    fewer = {key: cell for key, cell in reported.cells.items() if cell.dataset == "open"}
    fused = {key: cell for key, cell in reported.fusions.items() if cell.dataset == "open"}
    changed = reported.model_copy(update={"datasets": kept, "cells": fewer, "fusions": fused})
    some = {"scan": papers()["scan"]}
    monkeypatch.setattr(season_pages, "papers", lambda: some)
    report.write_report(changed)
    assert [path.name for path in (FOLDER / "papers").iterdir()] == ["scan.md"]
    assert [path.name for path in (FOLDER / "datasets").iterdir()] == ["open.md"]
    assert (FOLDER / "local" / "gated.md").is_file()  # the user's own machine, the user's own file
    for path in (README, *(FOLDER / "papers").iterdir()):
        assert "gated" not in path.read_text()


def status_of(*arguments: str) -> int:
    """Status of `python -m benchmark report ...`."""
    return run_stage("report", report.configure, report.main, arguments)


class TestExport:
    def printed(self, capsys, *arguments: str) -> str:
        assert status_of(*arguments) == 0
        return capsys.readouterr().out

    def test_the_list_names_every_table_and_each_can_be_had(self, played, capsys):
        names = self.printed(capsys, "--table", "list").splitlines()
        assert len(names) == len(set(names))
        numbers = {name.partition(" ")[0] for name in names if not name.startswith(DATASETS)}
        assert len(numbers) == 23
        assert {"two_branch/2", "scan/5", "cyclematch/6.2", "instance_loss/8"} <= numbers
        tables = report.tables_of(boards.read_boards(played))
        assert list(tables) == names
        for shown in tables.values():
            for form in report.FORMATS.values():
                assert form(shown).count("\n") > len(shown.rows)
        for dataset in DATASETS:
            assert {f"{dataset}/leaderboard", f"{dataset}/claims-not-run"} <= set(names)
        assert not FOLDER.exists()  # instead of a report

    def test_csv_has_the_numbers_of_the_paper_and_of_here(self, played, capsys):
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "csv")
        heads, *rows = csv.reader(io.StringIO(text))
        assert {len(row) for row in rows} == {len(heads)}
        source = yaml.safe_load((PAPERS / "two_branch.yaml").read_text())["tables"]["2"]
        printed = [row for row in rows if row[2] == "paper"]
        assert [row[0] for row in printed] == [row["label"] for row in source["rows"]]
        recalls = [f"{way} R@{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
        for row, expected in zip(printed, source["rows"], strict=True):
            cells = [row[heads.index(recall)] for recall in recalls]
            numbers = [None if cell == "" else float(cell) for cell in cells]
            assert numbers == expected["numbers"]["flickr30k/test"]
        here = next(row for row in rows if row[2] == "here: Dataset open" and "2 seeds" in row[-1])
        paths = Path("results/try/open/two_branch_bidirectional").glob("*/record.json")
        mean = fmean(json.loads(path.read_text())["metrics"]["i2t_r10"] for path in paths)
        assert here[heads.index("i2t R@10")] == f"{mean:.1f}"

    def test_latex_has_one_table_per_place(self, played, capsys):
        text = self.printed(capsys, "--table", "two_branch/4", "--format", "latex")
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "latex")
        assert r"\toprule" in text and "Deep CCA" in text and "27.9" in text
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1

    def test_markdown_is_what_the_page_has(self, reported, capsys):
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "markdown")
        assert self.printed(capsys, "--table", "two_branch/2") == text
        assert self.printed(capsys, "--table", "open/overlap") in page("open")

    @pytest.mark.parametrize("name", ["two_branch/9", "open/nothing", "", "two_branch"])
    def test_an_unknown_name_is_one_line_and_status_2(self, played, capsys, name):
        if name:
            assert status_of("--table", name) == 2
            shown = capsys.readouterr()
            assert shown.out == ""
            assert shown.err.count("\n") == 1
            assert name in shown.err
            assert "python -m benchmark export prints all names" in shown.err

    def test_outside_tools_find_the_recalls_of_the_records(self, played, capsys):
        assert self.printed(capsys, "--trec", "rankings") == "rankings\n"
        assert not FOLDER.exists()
        files = {path.name for path in Path("rankings").iterdir()}
        named = {f"{cell.dataset}-{cell.preset}-{cell.seed}" for cell in cells(played)}
        expected = {f"{name}.{way}.run" for name in named for way in ("i2t", "t2i")}
        qrels = {f"{dataset}.{way}.qrels" for dataset in DATASETS for way in ("i2t", "t2i")}
        assert files == expected | qrels
        recalls = set()
        for cell in cells(played):
            metrics = json.loads((Path(cell.folder) / "record.json").read_text())["metrics"]
            for way in ("i2t", "t2i"):
                success = self.success(cell, way)
                assert 100 * success == pytest.approx(metrics[f"{way}_r1"])
                recalls.add(success)
        assert len(recalls) > 2  # or the test could not fail

    def success(self, cell: Cell | Fusion, way: str) -> float:
        name = f"{cell.dataset}-{cell.preset}-{cell.seed}"
        qrels = ir_measures.read_trec_qrels(f"rankings/{cell.dataset}.{way}.qrels")
        run = ir_measures.read_trec_run(f"rankings/{name}.{way}.run")
        measure = ir_measures.Success @ 1
        return ir_measures.calc_aggregate([measure], qrels, run)[measure]

    def test_json_prints_the_metrics(self, played, capsys):
        text = self.printed(capsys, "--json")
        assert json.loads(text) == json.loads((FOLDER / "metrics.json").read_text())

    def test_without_arguments_the_first_page_is_named(self, played, capsys):
        assert self.printed(capsys).splitlines()[-1] == str(README)


def test_a_mistake_is_one_line_and_status_2(played, capsys):
    Path("results/try/open/scan_i2t_lse/1/record.json").unlink()
    assert status_of() == 2
    assert capsys.readouterr().err.count("\n") == 1
