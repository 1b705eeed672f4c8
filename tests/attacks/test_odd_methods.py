"""Methods that fail or score strangely: a row with the reason, or a right result."""

import math
import sys
from pathlib import Path

import pytest
import tiny_cells
from tiny_cells import cell_of, enter, evaluated, scores_of, train_cell

from benchmark.core.files import read_json

sys.path.insert(0, str(tiny_cells.OWN_METHODS))
import odd  # noqa: E402

IN_TRAINING = [
    *odd.FAULTS,
    "recipe raises",
    "built raises",
    "fit raises",
    "evaluation exits",
]
USUAL = (
    "around 1000",
    "around 1e9",
    "times 3e38",
    "times 1e-38",
    "all 3e38",
    "all equal",
)
RANKED = [
    *USUAL,
    "two values",
    "of all sizes",
    "double",
    "half",
    "collapsed",
    "nearly collapsed",
]
REFUSED = ["infinite", "NaN", "transposed", "a vector", "nothing", "complex", "numpy"]


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def played(how: str, capsys: pytest.CaptureFixture):
    cell = cell_of("odd", how=how)
    train_cell(cell)
    record = evaluated(cell)
    said = [
        line for line in capsys.readouterr().err.splitlines() if " failed: " in line
    ]
    return record, said


@pytest.mark.parametrize("how", [*IN_TRAINING, *REFUSED, "test raises"])
def test_what_fails_is_a_row_with_its_reason(how, capsys):
    record, said = played(how, capsys)
    assert record.status == "failed" and record.metrics == {}
    assert (
        record.reason
        and "\n" not in record.reason
        and str(Path.cwd()) not in record.reason
    )
    assert said and all(line.startswith("tiny-odd-0: failed: ") for line in said)
    (costs,) = Path("data/costs/a").glob("training-*.json")
    assert read_json(costs)["seconds"]["training"] >= 0


@pytest.mark.parametrize("how", RANKED)
def test_strange_scores_are_ranked(how, capsys):
    record, said = played(how, capsys)
    assert (record.status, said) == ("ok", []), record.reason
    numbers = [value for value in record.metrics.values() if isinstance(value, float)]
    assert all(map(math.isfinite, numbers))
    assert 0 <= record.metrics["overlap_s"] <= 1 and 0 <= record.metrics["rsum"] <= 600
    assert scores_of().histograms.matched.sum() > 0
