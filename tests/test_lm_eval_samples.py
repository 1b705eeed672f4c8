"""Samples that lm-evaluation-harness logs, with the keys that it writes."""

import json
from pathlib import Path

import pandas as pd
import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands.judge import beside
from benchmark.commands.lm_eval_samples import as_results
from benchmark.commands.result_files import Kind, Reading, read_table, table_of

DOCUMENTS = 200


@pytest.fixture(autouse=True)
def fresh() -> None:
    table_of.cache_clear()


def logged(path: Path, share: float, metrics: dict, filters=("none",)) -> Path:
    """`metrics` has for each name what a right answer counts, and a wrong one."""
    lines = []
    for kind in filters:
        for document in range(DOCUMENTS):
            is_right = document < share * DOCUMENTS
            sample = {
                "doc_id": document,
                "doc": {"question": f"q{document}", "choices": ["a", "b"]},
                "target": "a",
                "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": " a"}},
                "resps": [[["-1.5", "False"]], [["-2.5", "False"]]],
                "filtered_resps": [["-1.5", "False"], ["-2.5", "False"]],
                "filter": kind,
                "metrics": list(metrics),
                "doc_hash": f"{document:064x}",
                "prompt_hash": f"{document:064x}",
                "target_hash": f"{document:064x}",
            }
            for name, (right, wrong) in metrics.items():
                sample[name] = right if is_right else wrong
            lines.append(json.dumps(sample))
    path.write_text("\n".join(lines))
    return path


def read(name: str):
    return read_table(name, "own", None, Reading())


def test_a_document_is_a_query(tmp_path):
    path = logged(tmp_path / "samples_arc_easy.jsonl", 0.6, {"acc": (1.0, 0.0)})
    result = read(str(path))
    assert result.kind == Kind.HITS
    assert len(result.table) == DOCUMENTS
    assert result.table.to_numpy().mean() == pytest.approx(0.6)


def test_the_only_metric_can_be_named(tmp_path):
    path = logged(tmp_path / "samples.jsonl", 0.6, {"acc": (1.0, 0.0)})
    assert read(f"{path}:acc").table.to_numpy().mean() == pytest.approx(0.6)
    with refused("em"):
        read(f"{path}:em")
    assert main(["judge", f"{path}:acc", str(path), "--claim", "A = B"]) == 0


def test_other_metrics_tell_nothing_of_trainings(tmp_path):
    metrics = {"acc": (1.0, 0.0), "acc_norm": (0.0, 1.0)}
    path = logged(tmp_path / "samples.jsonl", 0.7, metrics)
    assert beside({f"{path}:acc": Reading()}) == {}


def test_samples_without_a_metric_are_refused(tmp_path):
    with refused("samples.jsonl", expected="metric"):
        read(str(logged(tmp_path / "samples.jsonl", 0.7, {})))


def test_one_of_several_metrics_is_named(tmp_path):
    metrics = {"acc": (1.0, 0.0), "acc_norm": (0.0, 1.0)}
    path = logged(tmp_path / "samples.jsonl", 0.7, metrics)
    assert read(f"{path}:acc").table.to_numpy().mean() == pytest.approx(0.7)
    assert read(f"{path}:acc_norm").table.to_numpy().mean() == pytest.approx(0.3)
    with refused(str(path)):
        read(str(path))


def test_one_of_several_filters_is_named(tmp_path):
    filters = ("strict-match", "flexible-extract")
    path = logged(tmp_path / "samples.jsonl", 0.7, {"exact_match": (1, 0)}, filters)
    name = f"{path}:exact_match-flexible-extract"
    assert len(read(name).table) == DOCUMENTS


def test_a_metric_without_numbers_is_refused(tmp_path):
    path = logged(tmp_path / "samples.jsonl", 0.7, {"perplexity": ([1, 2], [3, 4])})
    with refused("perplexity"):
        read(str(path))


def test_a_metric_without_numbers_hides_no_other_one(tmp_path):
    metrics = {"f1": ([1, 1], [1, 0]), "acc": (1.0, 0.0)}
    path = logged(tmp_path / "samples.jsonl", 0.7, metrics)
    assert read(f"{path}:acc").table.to_numpy().mean() == pytest.approx(0.7)
    with refused("value of query", expected="a number", found="[1, 1]"):
        read(f"{path}:f1")


def test_documents_without_a_filter_are_kept():
    row = {"doc_id": 0, "metrics": ["acc"], "acc": 1.0, "filter": "none"}
    table = pd.DataFrame([row, row | {"doc_id": 1, "filter": None}])
    assert as_results(table, "samples.jsonl")["query"].tolist() == [0, 1]


def test_two_models_are_judged(tmp_path, capsys):
    better = logged(tmp_path / "better.jsonl", 0.8, {"acc": (1.0, 0.0)})
    worse = logged(tmp_path / "worse.jsonl", 0.5, {"acc": (1.0, 0.0)})
    assert main(["judge", str(better), str(worse), "--check"]) == 0
    assert "holds" in capsys.readouterr().out
