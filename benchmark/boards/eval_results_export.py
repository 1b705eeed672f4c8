"""Means of a season's rows as evaluation results of the Hugging Face Hub: a file for
each preset, to be put into the folder .eval_results of its model repository.

    FOLDER/<preset>.yaml

A file is a list of results: `dataset` (id and task_id), `value` (the mean of the seeds)
and `notes`. The id is rematch/<dataset> and the task_id the name of the metric; whoever
publishes them writes the id of a benchmark dataset of the Hub, whose eval.yaml declares
these tasks. No time of a run is kept, so there is no date: the Hub takes that of the
commit.

Source: https://huggingface.co/docs/hub/eval-results.
"""

from collections.abc import Iterable
from pathlib import Path

import yaml

from benchmark.boards.boards import Board, Row
from benchmark.boards.eee_export import exported_means, interval_with_scope
from benchmark.core.files import write_text
from benchmark.scoring.metrics import METRICS
from benchmark.stats import PERCENT

OWNER = "rematch"


def write_eval_results(boards: Iterable[Board], folder: Path) -> list[Path]:
    """Write a file for each preset with a result; returns their paths."""
    results: dict[str, list[dict]] = {}
    for board in boards:
        for row in board.ranked:
            results.setdefault(row.preset, []).extend(_results(board, row))
    paths = []
    for preset, of_preset in results.items():
        path = folder / f"{preset}.yaml"
        write_text(path, yaml.safe_dump(of_preset, sort_keys=False, allow_unicode=True))
        paths.append(path)
    return paths


def _results(board: Board, row: Row) -> list[dict]:
    results = []
    for metric, mean in exported_means(row).items():
        result = {
            "dataset": {"id": f"{OWNER}/{board.dataset}", "task_id": metric},
            "value": float(mean),
            "notes": _notes(board, row, metric),
        }
        results.append(result)
    return results


def _notes(board: Board, row: Row, metric: str) -> str:
    """What a reader of the number must know."""
    record, seeds = row.record, len(row.played)
    parts = [f"Mean of {seeds} seeds" if seeds > 1 else "One seed"]
    ends, scope = interval_with_scope(board, row, metric)
    if ends:
        low, high = ends
        parts.append(f"{PERCENT} interval {low:.4g} to {high:.4g}, {scope}")
    parts.append(f"{METRICS[metric].heading} of {record.split}")
    parts.append(f"Rematch, protocol {record.protocol_version}")
    return "; ".join(parts)
