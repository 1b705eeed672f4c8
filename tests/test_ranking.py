"""Letters of rows, of made-up records."""

import numpy as np
import pytest
from builders import board, standing
from made_ranks import IMAGES, any_ranks, outcome, played, prepare, ranks_of

from benchmark.boards.boards import Row
from benchmark.boards.comparisons import compare, rank_intervals, rivals


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """A prepared dataset."""
    monkeypatch.chdir(tmp_path)
    prepare()


def shifted(preset: str, worse: int, seeds: tuple[int, ...] = (0, 1, 2)) -> Row:
    cells = []
    for seed in seeds:
        ranks = ranks_of(np.random.default_rng(seed), 3.0)
        cells.append(
            outcome(
                preset, seed, {way: of_way + worse for way, of_way in ranks.items()}
            )
        )
    return standing(preset, cells)


def test_rows_that_differ_by_one_image_are_rivals():
    a, c = shifted("a", 0), shifted("c", 8)
    cells = []
    for seed in (0, 1, 2):
        ranks = ranks_of(np.random.default_rng(seed), 3.0)
        ranks["i2t"] = np.where(np.arange(IMAGES) == 0, 50, ranks["i2t"])
        cells.append(outcome("b", seed, ranks))
    results = board(c, standing("b", cells), a)
    assert [s.preset for s in results.ranked] == ["a", "b", "c"]
    assert rivals(results) == [[2], [1], []]
    assert rank_intervals(results) == [(1, 2), (1, 2), (3, 3)]


def test_of_too_few_queries_nobody_is_told_apart():
    presets = shifted("a", 0), shifted("b", 8)
    assert rivals(board(*presets)) == [[], []]
    few = {"test": {"images": 99, "captions": 495}}
    assert rivals(board(*presets, counts=few)) == [[2], [1]]


def test_nobody_is_put_in_front_by_evidence_of_the_opposite():
    best = {way: np.zeros_like(ranks) for way, ranks in any_ranks().items()}
    # the member has a further, very good training: ahead by all, behind by the shared
    member = shifted("m", 6)
    member.outcomes.append(outcome("m", 9, best))
    fuse = {"how": "average", "of": ["m:visual", "m:textual"]}
    fused = standing("f", shifted("f", 5).outcomes, fuse=fuse)
    results = board(member, fused)
    assert [s.preset for s in results.ranked] == ["m", "f"]
    comparison = compare(results, *results.ranked, "rsum")
    assert comparison.difference < 0 and comparison.estimate.p() < 0.05
    assert rivals(results) == [[2], [1]]


def test_failures_have_no_rivals():
    lost = standing("b", [outcome("b", 0, any_ranks(), status="failed")])
    assert rivals(board(played("a", 1.0), lost)) == [[]]
    assert rivals(board(lost)) == []
