"""Outcomes, rows and boards: means over seeds, order, and what is too small."""

import numpy as np
import pytest
from builders import board, outcome, standing

from benchmark.boards.boards import MIN_TEST_QUERIES, Groups, Row


def row(name: str, *levels: float, **facts: object) -> Row:
    """A seed for each level of rsum."""
    cells = []
    for seed, level in enumerate(levels):
        metrics = {"metrics": {"rsum": level, "p2r_r1": level}}
        cells.append(outcome(name, seed, **(metrics | facts)))
    return standing(name, cells)


def test_a_mean_is_that_of_the_seeds_with_a_result():
    made = row("a", 100.0, 200.0)
    lost = outcome("a", 2, status="failed", reason="why")
    made = standing("a", [*made.outcomes, lost])
    assert made.mean("rsum") == 150.0 and len(made.played) == 2
    assert made.mean("i2t_r1") is None and made.values("i2t_r1") == []
    assert made.means() == {"rsum": 150.0, "p2r_r1": 150.0}


def test_the_best_row_of_retrieval_is_first_and_phrases_come_after():
    phrases = row("phrases", 300.0, task="localisation")
    made = board(phrases, row("low", 100.0), row("high", 200.0))
    assert [each.preset for each in made.ranked] == ["high", "low", "phrases"]
    assert [each.preset for each in made.localisation.ranked] == ["phrases"]
    assert made.retrieval.row("phrases") is None
    assert made.retrieval.whole.row("phrases") is phrases


@pytest.mark.parametrize(("missing", "is_small"), [(0, False), (1, True)])
def test_few_queries_in_one_direction_make_a_board_small(missing, is_small):
    queries = {"images": MIN_TEST_QUERIES - missing, "captions": 5 * MIN_TEST_QUERIES}
    made = board(row("a", 1.0), counts={"test": queries})
    assert made.is_small("retrieval") == is_small
    assert made.test_queries("retrieval") == MIN_TEST_QUERIES - missing


def test_queries_belong_to_the_groups_of_their_images():
    images = {"t2i": np.array([0, 0, 1, 2])}
    groups = Groups(images, np.array([0, 0, 1]))
    assert groups.count == 2
    assert groups.of_queries("t2i").tolist() == [0, 0, 0, 1]
