"""Files of Every Eval Ever, from a made-up board."""

import pytest
from made_boards import board, enter_made, row

from benchmark.boards.boards import Board
from benchmark.boards.eee_export import FOR_BOTH, FOR_IMAGES, write_eee
from benchmark.core.files import read_json

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
