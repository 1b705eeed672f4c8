"""Scores that hang on the order of items, on chance, on a batch or on a tile are no result."""

import pytest
import torch
from tiny_cells import cell_of, enter, evaluated, ranks_of, train_cell, write_dataset

from benchmark.matching import score_checks, scoring
from benchmark.protocol import RefusedError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


@pytest.mark.parametrize("how", ["rows", "chance", "batch", "tile", "sentences"])
def test_scores_of_more_than_a_picture_and_a_text_fail(how):
    cell = cell_of("misbehaves", how=how)
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "failed" and record.metrics == {}
    assert "differ when they are computed again in other batches and another order" in record.reason
    assert len(ranks_of()) == 0


def test_scores_of_a_picture_and_a_text_do_not():
    cell = cell_of("misbehaves", how="pair")
    train_cell(cell)
    assert evaluated(cell).status == "ok"


def test_the_order_of_the_file_tells_nothing(monkeypatch):
    """Without the second scoring, a method that counts rows is as good as chance."""
    monkeypatch.setattr("benchmark.matching.score_checks.check_retrieval", lambda *_: None)
    write_dataset(captions_of_image=2)
    cell = cell_of("misbehaves", how="rows")
    train_cell(cell)
    metrics = evaluated(cell).metrics
    assert metrics["t2i_r1"] < 50


def test_a_single_score_has_no_spread():
    score_checks._compare(torch.ones(1, 1), torch.ones(1, 1), CPU)
    with pytest.raises(RefusedError, match="1 of 1 scores differ"):
        score_checks._compare(torch.ones(1, 1), torch.zeros(1, 1), CPU)


def test_scores_on_the_host_are_as_exact_as_the_device_that_made_them(monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: kind == "cuda")
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda kind: torch.bfloat16)
    first, again = torch.tensor([1.0, -1.0]), torch.tensor([1.01, -1.0])
    score_checks._compare(first, again, torch.device("cuda:0"))
    with pytest.raises(RefusedError, match="1 of 2 scores differ"):
        score_checks._compare(first, again, CPU)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_encodings_of_any_width_become_one(shape):
    parts = [torch.ones(2, 4, *shape), torch.ones(1, 6, *shape)]
    (whole,) = scoring.joined([(part,) for part in parts])
    assert whole.shape == (3, 6, *shape)
    assert (whole[:2, :4] == 1).all() and (whole[:2, 4:] == 0).all() and (whole[2] == 1).all()


@pytest.mark.parametrize("kind", ["scan", "two_branch", "pixels"])
def test_real_methods_agree_with_themselves_by_far(kind, monkeypatch):
    """A hundredth of the rounding that is allowed would do."""
    for table in (score_checks.OF_LARGEST, score_checks.OF_SPREAD):
        monkeypatch.setitem(table, torch.float32, table[torch.float32] / 100)
    cell = cell_of(kind)
    train_cell(cell)
    assert evaluated(cell).status == "ok"
