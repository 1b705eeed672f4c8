"""Tables for `dvc plots`: training curves and the leaderboards as CSV. Knows no torch."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmark.analysis.boards import Board
from benchmark.core.files import write_text
from benchmark.report.pages.figure_files import remove_others

CURVES = ("epoch", "loss", "val_rsum")
LOCALISED = ("p2r_r1", "p2r_r5", "p2r_r10", "p2r_bound", "p2r_chance_r1")


def write_plots(boards: Sequence[Board], folder: Path) -> None:
    """Write training.csv, a row an epoch, and leaderboard.csv, a row a preset; where phrases are
    localised, localisation.csv as well."""
    found = {
        "training.csv": _training(boards),
        "leaderboard.csv": _leaderboard(boards, "retrieval", ("rsum",)),
        "localisation.csv": _leaderboard(boards, "localisation", LOCALISED),
    }
    if not len(found["localisation.csv"]):
        del found["localisation.csv"]
    for name, rows in found.items():
        write_text(folder / name, rows.to_csv(index=False, lineterminator="\n"))
    remove_others(folder, [folder / name for name in found])


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


def _leaderboard(boards: Sequence[Board], task: str, metrics: Sequence[str]) -> pd.DataFrame:
    rows = [
        {"dataset": board.dataset, "preset": standing.preset}
        | {metric: standing.mean(metric) for metric in metrics}
        for board in boards
        for standing in board.ranked
        if standing.task == task
    ]
    return pd.DataFrame(rows, columns=["dataset", "preset", *metrics])
