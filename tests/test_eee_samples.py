"""Samples of Every Eval Ever, with the keys of its schema 0.3.0 of single samples."""

import json
from pathlib import Path

import pytest
from made_boards import IMAGES, board, enter_made, row
from refusals import refused

from benchmark.__main__ import main
from benchmark.boards.eee_export import write_eee
from benchmark.commands.result_files import Kind, Reading, Result, read_table, table_of
from benchmark.data import prepared_tables
from benchmark.scoring.relevance import queries_of

SAMPLES = 200
CARD = {"source": "s", "licence": "l", "split": "drawn", "manifest": "0" * 64}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)
    table_of.cache_clear()


def sample(number: int, score: object, **changes: object) -> dict:
    made = {
        "schema_version": "0.3.0",
        "evaluation_id": "task/org_model/1",
        "model_id": "org/model",
        "evaluation_name": "task",
        "sample_id": f"q{number}",
        "sample_hash": f"{number:064x}",
        "interaction_type": "single_turn",
        "input": {"raw": "a question", "reference": ["a"], "choices": ["a", "b"]},
        "output": {"raw": ["a"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1},
    }
    return made | changes


def hits(share: float, **changes: object) -> list[dict]:
    samples = []
    for number in range(SAMPLES):
        samples.append(sample(number, float(number < share * SAMPLES), **changes))
    return samples


def write(name: str, samples: list[dict]) -> str:
    Path(name).write_text("\n".join(map(json.dumps, samples)))
    return name


def read(name: str) -> Result:
    return read_table(name, "own", None, Reading())


def test_a_sample_is_a_query_whatever_optional_keys_it_has():
    samples = hits(0.6)
    samples[3]["metadata"] = {"subject": "history"}
    samples[5]["error"] = None
    result = read(write("a.jsonl", samples))
    assert result.kind == Kind.HITS
    assert len(result.table) == SAMPLES
    assert result.table.to_numpy().mean() == pytest.approx(0.6)


def test_one_of_several_results_is_named():
    samples = hits(0.6, evaluation_result_id="task.acc")
    samples += hits(0.2, evaluation_result_id="includes:accuracy")
    name = write("a.jsonl", samples)
    chosen = read(f"{name}:includes:accuracy")  # as their converter of Inspect names it
    assert chosen.table.to_numpy().mean() == pytest.approx(0.2)
    with refused(name, expected="FILE:METRIC", found="task.acc, includes:accuracy"):
        read(name)


def test_a_query_has_the_mean_of_its_lines():
    name = write("a.jsonl", [*hits(1.0), *hits(0.0)])
    assert (read(name).table == 0.5).all(axis=None)


@pytest.mark.parametrize("score", ["C", None, [1], float("nan")])
def test_a_score_that_is_no_number_is_refused(score):
    with refused("a.jsonl: row 2"):
        read(write("a.jsonl", [sample(0, 1.0), sample(1, score)]))


def test_a_line_that_lacks_a_key_is_refused():
    short = sample(1, 1.0)
    del short["sample_id"]
    with refused("a.jsonl: row 2: sample_id", found="nothing"):
        read(write("a.jsonl", [sample(0, 1.0), short]))


def test_samples_of_several_evaluations_are_refused():
    samples = [*hits(0.5), sample(0, 1.0, evaluation_id="other")]
    with refused("evaluation_id", found="task/org_model/1, other"):
        read(write("a.jsonl", samples))


def test_a_seed_that_only_some_samples_have_is_refused():
    samples = hits(0.5, metadata={"rematch.seed": "0"})
    samples[3]["metadata"] = {}
    with refused("metadata: rematch.seed", found=f"{SAMPLES - 1} of {SAMPLES}"):
        read(write("a.jsonl", samples))


def test_samples_of_two_models_in_one_file_are_refused():
    samples = [sample(0, 1), sample(0, 0, model_id="org/other")]
    with refused("a.jsonl: model_id", found="org/model, org/other"):
        read(write("a.jsonl", samples))


def test_two_models_are_judged(capsys):
    better, worse = write("a.jsonl", hits(0.8)), write("b.jsonl", hits(0.5))
    assert main(["judge", better, worse, "--check"]) == 0
    assert "holds" in capsys.readouterr().out


def test_what_export_writes_has_its_seeds_and_clusters():
    made = board(row("a", 0.5, 1.0))
    made.card.update(CARD)
    queries = queries_of(prepared_tables.read("made"))
    samples, _ = write_eee(made, "try", Path(), queries)
    result = read(f"{samples}:made.t2i_r1")
    assert result.kind == Kind.HITS
    assert result.table.mean().tolist() == [50, 100]
    assert len(result.table) == IMAGES
    assert set(result.facts["cluster"]) == {f"i{number}" for number in range(IMAGES)}
    assert result.notes == []


def test_blank_lines_are_no_samples():
    path = write("a.jsonl", hits(0.5))
    Path(path).write_text(f"\n \n{Path(path).read_text()}")
    assert len(read(path).table) == SAMPLES
