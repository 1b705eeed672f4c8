"""Files of Every Eval Ever, from a made-up board: fields and types of its schema of
single samples, and its own validator where that is installed."""

import hashlib
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from made_boards import IMAGES, board, enter_made, row
from pydantic import BaseModel, ConfigDict, Field

from benchmark.boards.boards import Board
from benchmark.boards.eee_export import FOR_BOTH, FOR_IMAGES, write_eee
from benchmark.core.files import read_json
from benchmark.data import prepared_tables
from benchmark.scoring.relevance import queries_of

CARD = {"source": "s", "licence": "l", "split": "drawn", "manifest": "0" * 64}


def made(*rows) -> Board:
    of_rows = board(*rows)
    of_rows.card.update(CARD)
    return of_rows


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


def result(log: dict, metric: str) -> dict:
    named = {each["evaluation_result_id"]: each for each in log["evaluation_results"]}
    return named[f"made.{metric}"]["score_details"]


def test_an_interval_says_whether_it_is_for_other_trainings(tmp_path):
    several = row("a", 0.5, 0.6, 0.7)
    other = row("b", 0.3, 0.35, 0.4)
    methods = []
    for rows in ((several, other), (row("c", 0.5),)):
        path = write_eee(made(*rows), "try", tmp_path / "eee")[0]
        score = result(read_json(path), "rsum")
        methods.append(score["uncertainty"]["confidence_interval"]["method"])
    assert FOR_BOTH in methods[0] and FOR_IMAGES in methods[1]


def test_equal_results_give_one_name_and_others_another(tmp_path):
    paths = set()
    for share in (0.5, 0.5, 0.6):
        paths |= set(write_eee(made(row("a", share)), "try", tmp_path / "eee"))
    assert len(paths) == 2
    assert {path.parent.name for path in paths} == {"a"}


def test_the_score_of_each_seed_is_kept(tmp_path):
    (path,) = write_eee(made(row("a", 0.5, 1.0)), "try", tmp_path / "eee")
    score = result(read_json(path), "i2t_r1")
    assert score["details"] == {"seed_0": "50.0", "seed_1": "100.0"}
    assert score["score"] == 75.0


@pytest.mark.parametrize(
    ("facts", "relation"),
    [
        ({}, "third_party"),
        ({"method": "examples/mine.py"}, "first_party"),
        ({"method": "brought", "family": "brought"}, "other"),
    ],
)
def test_it_is_told_who_evaluates_whose_method(facts, relation, tmp_path):
    (path,) = write_eee(made(row("a", 0.5, **facts)), "try", tmp_path / "eee")
    log = read_json(path)
    assert log["source_metadata"]["evaluator_relationship"] == relation


# Single queries -----------------------------------------------------------------------


class Strict(BaseModel):
    """What the schema requires, and no key that it does not have."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Input(Strict):
    raw: str
    reference: list[str]


class Output(Strict):
    raw: list[str]


class Answer(Strict):
    turn_idx: int = Field(ge=0)
    source: str
    extracted_value: str
    extraction_method: str
    is_terminal: bool


class Evaluation(Strict):
    score: float
    is_correct: bool


class Instance(Strict):
    schema_version: Literal["0.3.0"]
    evaluation_id: str
    model_id: str
    evaluation_name: str
    evaluation_result_id: str
    sample_id: str
    interaction_type: Literal["single_turn"]
    input: Input
    output: Output
    answer_attribution: list[Answer]
    evaluation: Evaluation
    metadata: dict[str, str]


def written_samples(*shares: float) -> tuple[Path, Path]:
    """The samples of a row, and its means."""
    queries = queries_of(prepared_tables.read("made"))
    samples, means = write_eee(made(row("a", *shares)), "try", Path(), queries)
    return samples, means


def instances(samples: Path) -> list[Instance]:
    lines = samples.read_text().splitlines()
    return [Instance.model_validate_json(line) for line in lines]


def test_every_query_of_every_seed_is_a_line_of_the_schema():
    found = instances(written_samples(0.5, 1.0)[0])
    assert len(found) == 2 * 2 * IMAGES  # seeds, directions
    keys = {(line.evaluation_result_id, line.sample_id) for line in found}
    assert len(keys) == 2 * IMAGES
    assert {line.metadata["rematch.seed"] for line in found} == {"0", "1"}
    for line in found:
        assert line.input.reference == [line.metadata["rematch.cluster"]]
        assert line.evaluation.is_correct == (line.output.raw == ["0"])


def test_ranks_in_folds_are_no_further_lines():
    ranks = {"i2t": np.arange(IMAGES), "i2t_fold": np.zeros(IMAGES, int)}
    queries = queries_of(prepared_tables.read("made"))
    folded = made(row("a", 0.5, ranks=ranks))
    samples, _ = write_eee(folded, "try", Path(), queries)
    assert [line.output.raw for line in instances(samples)] == [
        [str(number)] for number in range(IMAGES)
    ]


def test_the_mean_of_the_lines_is_the_score_of_the_result():
    samples, means = written_samples(0.5, 0.8)
    scores: dict[str, list[float]] = {}
    for line in instances(samples):
        scores.setdefault(line.evaluation_result_id, []).append(line.evaluation.score)
    log = read_json(means)
    of = {each["evaluation_result_id"]: each for each in log["evaluation_results"]}
    assert set(scores) == {"made.i2t_r1", "made.t2i_r1"}
    for name, of_lines in scores.items():
        mean = of[name]["score_details"]["score"]
        assert sum(of_lines) / len(of_lines) == pytest.approx(mean)


def test_the_means_name_the_file_of_their_samples():
    samples, means = written_samples(0.5)
    log = read_json(means)
    detailed = log["detailed_evaluation_results"]
    assert detailed["file_path"] == samples.as_posix()
    assert detailed["format"] == "jsonl"
    content = samples.read_bytes()
    assert detailed["checksum"] == hashlib.sha256(content).hexdigest()
    assert detailed["total_rows"] == len(content.splitlines())
    (line, *_) = content.splitlines()
    sample = json.loads(line)
    assert sample["evaluation_id"] == log["evaluation_id"]
    assert sample["model_id"] == log["model_info"]["id"]
    assert samples.name == f"{means.stem}_samples.jsonl"


def test_equal_results_give_equal_bytes():
    first, second = (
        written_samples(0.5)[0].read_bytes(),
        written_samples(0.5)[0].read_bytes(),
    )
    assert first == second


@pytest.mark.filterwarnings("ignore")
def test_their_validator_finds_nothing_wrong(capsys):
    reason = "every_eval_ever is not installed, which needs Python 3.12"
    validate = pytest.importorskip("every_eval_ever.validate", reason=reason)
    files = [str(path) for path in written_samples(0.5, 0.8)]
    assert validate.main([*files, "--format", "json"]) == 0, capsys.readouterr().out
