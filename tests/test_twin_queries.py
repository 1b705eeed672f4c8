"""Scores without the queries of twins, against sums over queries written out."""

from dataclasses import replace

import builders
import numpy as np
import pandas as pd
import pytest

from benchmark.boards.boards import Board
from benchmark.boards.twin_queries import named_twins, twins_in_all, without_twins

OWNERS = np.array([0, 0, 1, 2, 2, 2])  # of the captions; the twins are pictures 0 and 2
RANKS = {"i2t": np.array([0, 4, 9]), "t2i": np.array([0, 1, 7, 0, 30, 5])}
LEAKAGE = {
    "pictures": [["train: 9.png", "test: 0.png"]],
    "near_pictures": [
        ["val: 8.png", "test: 2.png", 3],
        ["train: 9.png", "val: 8.png", 4],
    ],
    "items": {"pictures": {"test": 1}, "near_pictures": {"test": 3}},
}


@pytest.fixture
def made(tmp_path, monkeypatch) -> Board:
    monkeypatch.chdir(tmp_path)
    folder = builders.prepare("made", OWNERS)
    images = pd.read_parquet(folder / "images.parquet")
    files = [f"{number}.png" for number in range(len(images))]
    images.assign(file=files).to_parquet(folder / "images.parquet")
    builders.seal_tables("made")
    cell = builders.outcome("a", 0, ranks=RANKS, dataset="made", images=3, captions=6)
    card = {"title": "Made", "leakage": LEAKAGE}
    return builders.board(builders.standing("a", [cell], "A"), dataset="made", **card)


def rsum_by_hand(kept: dict[str, list[int]]) -> float:
    total = 0.0
    for way, queries in kept.items():
        for k in (1, 5, 10):
            hits = sum(1 for query in queries if RANKS[way][query] < k)
            total += 100 * hits / len(queries)
    return total


def test_only_queries_of_other_pictures_count(made):
    (standing,) = made.rows
    assert named_twins(made.card) == {"0.png", "2.png"} and twins_in_all(made.card) == 3
    assert without_twins(made, standing, "rsum") == pytest.approx(
        rsum_by_hand({"i2t": [1], "t2i": [2]})
    )
    none = replace(made, card=made.card | {"leakage": {}})
    whole = rsum_by_hand({"i2t": [0, 1, 2], "t2i": list(range(6))})
    assert without_twins(none, standing, "rsum") == pytest.approx(whole)
    pictures = [[f"test: {n}.png", "val: 9.png"] for n in range(3)]
    every = replace(made, card=made.card | {"leakage": {"pictures": pictures}})
    assert without_twins(every, standing, "rsum") is None
