"""Evaluation results for the Hugging Face Hub, from made-up boards: the fields that its
documentation lists, and its own parser where that is installed."""

from pathlib import Path

import pytest
import yaml
from made_boards import board, enter_made, row

from benchmark.boards.eee_export import FOR_BOTH, FOR_IMAGES
from benchmark.boards.eval_results_export import write_eval_results

# https://huggingface.co/docs/hub/eval-results
REQUIRED = {"dataset", "value"}
OPTIONAL = {"verifyToken", "date", "source", "evaluation_framework", "notes"}
OF_DATASET = {"id", "task_id", "revision"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def results(path: Path) -> list[dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_preset_has_a_file_with_the_fields_of_the_hub():
    boards = [board(row("a", 0.5, 0.7), row("b", 0.3)), board(row("a", 0.1))]
    paths = write_eval_results(boards, Path("out"))
    assert {path.as_posix() for path in paths} == {"out/a.yaml", "out/b.yaml"}
    for path in paths:
        for result in results(path):
            assert REQUIRED <= set(result) <= REQUIRED | OPTIONAL
            assert {"id", "task_id"} <= set(result["dataset"]) <= OF_DATASET
            assert isinstance(result["value"], float)
            assert isinstance(result["notes"], str)
    tasks = [each["dataset"]["task_id"] for each in results(Path("out/a.yaml"))]
    assert tasks.count("rsum") == 2  # of both boards


def test_a_mean_that_is_no_number_is_left_out():
    lost = {"i2t_r1": float("inf"), "t2i_r1": float("nan")}
    write_eval_results([board(row("a", 0.5, metrics=lost))], Path("out"))
    told = {each["dataset"]["task_id"] for each in results(Path("out/a.yaml"))}
    assert "i2t_r5" in told and not lost.keys() & told


def test_a_value_is_the_mean_of_the_seeds_with_its_interval():
    rows = row("a", 0.5, 0.6, 0.7), row("b", 0.3, 0.4, 0.5)
    write_eval_results([board(*rows)], Path("out"))
    of = {each["dataset"]["task_id"]: each for each in results(Path("out/a.yaml"))}
    assert of["i2t_r1"]["value"] == pytest.approx(60)
    assert of["i2t_r1"]["dataset"]["id"] == "rematch/made"
    assert "3 seeds" in of["i2t_r1"]["notes"]
    assert FOR_BOTH in of["i2t_r1"]["notes"]
    write_eval_results([board(row("c", 0.5))], Path("out"))
    (notes,) = [
        each["notes"]
        for each in results(Path("out/c.yaml"))
        if each["dataset"]["task_id"] == "rsum"
    ]
    assert FOR_IMAGES in notes


@pytest.mark.filterwarnings("ignore")
def test_the_parser_of_the_hub_reads_them():
    hub = pytest.importorskip("huggingface_hub")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("this huggingface_hub has no parser of evaluation results")
    (path,) = write_eval_results([board(row("a", 0.5))], Path("out"))
    entries = hub.parse_eval_result_entries(results(path))
    found = {entry.task_id: entry.value for entry in entries}
    assert found["t2i_r1"] == pytest.approx(50)
    assert {entry.dataset_id for entry in entries} == {"rematch/made"}
