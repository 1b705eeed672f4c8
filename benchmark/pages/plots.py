"""Tables for `dvc plots`: training curves and the leaderboard as CSV. Knows no torch."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmark.files import write_text
from benchmark.outcomes import Board

CURVES = ("epoch", "loss", "val_rsum")


def write_plots(boards: Sequence[Board], folder: Path) -> None:
    """Write training.csv, a row an epoch, and leaderboard.csv, a row a preset."""
    write_text(folder / "training.csv", _training(boards).to_csv(index=False, lineterminator="\n"))
    write_text(
        folder / "leaderboard.csv", _leaderboard(boards).to_csv(index=False, lineterminator="\n")
    )


def _training(boards: Sequence[Board]) -> pd.DataFrame:
    curves = [
        outcome.history[list(CURVES)].assign(
            cell=f"{board.dataset} {s.preset} {outcome.record.seed}"
        )
        for board in boards
        for s in board.standings
        for outcome in s.played
        if outcome.history is not None
    ]
    return pd.concat(curves) if curves else pd.DataFrame(columns=[*CURVES, "cell"])


def _leaderboard(boards: Sequence[Board]) -> pd.DataFrame:
    rows = [
        {"dataset": board.dataset, "preset": standing.preset, "rsum": standing.mean("rsum")}
        for board in boards
        for standing in board.ranked
    ]
    return pd.DataFrame(rows, columns=["dataset", "preset", "rsum"])
