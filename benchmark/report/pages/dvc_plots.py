"""Tables for `dvc plots`: training curves and the leaderboards as CSV. Knows no torch."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmark.analysis.boards import Board
from benchmark.core.files import write_text
from benchmark.protocol import METRICS, table_metrics
from benchmark.protocol.metrics import PROPOSAL_METRICS
from benchmark.report.pages.figure_files import remove_others

DECIMALS = 6
CURVES = ("epoch", "loss", "val_rsum")
LOCALISED = (
    *(name for name in table_metrics("p2r") if METRICS[name].of_queries),
    *(metric.name for metric in PROPOSAL_METRICS),
)


def write_plots(boards: Sequence[Board], folder: Path) -> None:
    """Write training.csv, one row per epoch, and leaderboard.csv, one row per preset; if phrases
    are localised, localisation.csv as well."""
    tables = {
        "training.csv": _training(boards),
        "leaderboard.csv": _leaderboard(boards, "retrieval", ("rsum",)),
        "localisation.csv": _leaderboard(boards, "localisation", LOCALISED),
    }
    if not len(tables["localisation.csv"]):
        del tables["localisation.csv"]
    for name, rows in tables.items():
        write_text(folder / name, rows.to_csv(index=False, lineterminator="\n"))
    remove_others(folder, [folder / name for name in tables])


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
        | {metric: _rounded(standing.mean(metric)) for metric in metrics}
        for board in boards
        for standing in board.ranked
        if standing.task == task
    ]
    return pd.DataFrame(rows, columns=["dataset", "preset", *metrics])


def _rounded(mean: float | None) -> float | None:
    """Without the digits that adding up leaves behind: 120.6, not 120.60000000000001."""
    return None if mean is None else round(mean, DECIMALS)
