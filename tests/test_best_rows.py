"""What the best row of a board is the best of."""

from dataclasses import replace

import pandas as pd
from builders import board, outcome, standing

from benchmark.boards.best_rows import choice_of, level_of, validation_of
from benchmark.boards.boards import Row
from benchmark.season.tuning import Trial

CORRECTED = {"correction": {"how": "nnn"}}


def row(preset: str, rsum: float, *validation: float, **more: object) -> Row:
    """With a training for each best validation rsum; one without any."""
    metrics = {"rsum": rsum} | more.pop("metrics", {})
    cells = []
    for seed, best in enumerate(validation or (None,)):
        values = [] if best is None else [best - 9, best, best - 1]
        history = pd.DataFrame({"val_rsum": values}) if values else None
        cells.append(outcome(preset, seed, metrics=metrics, history=history))
    return standing(preset, cells, **more)


def fused(preset: str, rsum: float, how: str, *of: str) -> Row:
    metrics = CORRECTED if how == "nnn" else {}
    return row(preset, rsum, metrics=metrics, fuse={"how": how, "of": list(of)})


def test_the_best_row_is_named_with_those_that_are_chosen_otherwise():
    rows = [
        row("a", 300.0, 350.0, 352.0),
        fused("a_nnn", 318.0, "nnn", "a"),
        fused("a_qb_norm", 310.0, "nnn", "a"),
        row("b", 290.0, 340.0, 366.0),
        fused("b_nnn", 295.0, "nnn", "b"),
        row("cca", 305.0),
    ]
    on = board(*rows)
    choice = choice_of(replace(on, tried={"a": [trial("a")], "z": [trial("z")]}))
    assert (choice.rows, choice.corrected, choice.bases) == (6, 3, 2)
    assert (choice.tried, choice.is_tried, choice.validated) == (1, True, 2)
    named = choice.best, choice.uncorrected, choice.on_validation
    assert [found.preset for found in named] == ["a_nnn", "cca", "b"]
    assert validation_of(choice.on_validation) == 353.0
    assert level_of(choice.best) == 318.0
    assert not choice_of(replace(on, tried={"b": [trial("b")]})).is_tried


def trial(preset: str) -> Trial:
    return Trial(dataset="made", preset=preset, options={}, epoch=1, val_rsum=1.0)


def test_a_mean_of_scores_is_no_correction():
    rows = [row("a", 300.0, 350.0), fused("both", 310.0, "average", "a", "b")]
    choice = choice_of(board(*rows))
    assert (choice.corrected, choice.bases) == (0, 0)
    assert choice.best == choice.uncorrected == rows[1]
    assert choice.on_validation == rows[0]


def test_of_external_rows_and_of_none_nothing_is_known():
    brought = row("clip", 400.0, metrics=CORRECTED)
    choice = choice_of(board(brought))
    assert (choice.rows, choice.corrected, choice.uncorrected) == (1, 1, None)
    assert choice.on_validation is None and choice.validated == 0
    assert choice_of(board(row("a", 1.0)).localisation) is None
    assert choice_of(board()) is None
