"""The results of a season as the site reads them: data/season.js and data/plots.js.

Files are scripts, which a page that is opened from disk may load: window.rematch.NAME = {...}.
"""

import json
from itertools import combinations
from pathlib import Path
from statistics import stdev

from benchmark.analysis import claims, comparisons
from benchmark.analysis.boards import RANKED_BY, Board, Outcome, Standing
from benchmark.analysis.claims import Verdict
from benchmark.analysis.departures import departures
from benchmark.papers.claimed_quantities import quantity
from benchmark.protocol import METRICS, table_metrics
from benchmark.report.costs import has_costs, query_seconds, training_seconds
from benchmark.report.pages import result_tables
from benchmark.season.parameters import Params

TASKS = ("retrieval", "localisation")
MOST_BINS = 100  # of a drawn distribution


def write(params: Params, boards: list[Board], folder: Path) -> None:
    """data/season.js: leaderboards and claims; data/plots.js: curves and distributions."""
    season = {
        "season": params.season,
        "title": params.title,
        "headings": {name: metric.heading for name, metric in METRICS.items()},
        "boards": [row for board in boards for row in _tasks(board)],
        "claims": [_claim(b.dataset, v) for b in boards for v in claims.verdicts(b)],
    }
    write_script(folder / "data/season.js", "season", season)
    plots = {
        f"{board.dataset}/{standing.preset}": _plots(standing)
        for board in boards
        for standing in board.ranked
    }
    write_script(folder / "data/plots.js", "plots", plots)


def write_script(path: Path, name: str, data: object) -> None:
    """Data as a script that a page loads from disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    path.write_text(f"window.rematch[{json.dumps(name)}]={text};\n", encoding="utf-8")


def _tasks(board: Board) -> list[dict]:
    """One board per task, since rsum adds up different recalls in the two."""
    return [
        _board(of_task, task)
        for task, of_task in zip(TASKS, (board.retrieval, board.localisation), strict=True)
        if of_task.standings
    ]


def _board(board: Board, task: str) -> dict:
    ways = ("p2r",) if task == "localisation" else board.ways
    letters = dict(zip((s.preset for s in board.ranked), result_tables.groups(board), strict=True))
    without = [standing for standing in board.standings if not standing.played]
    return {
        "dataset": board.dataset,
        "task": task,
        "title": board.card["title"],
        "split": f"{board.card['split']}/test",
        "test": board.card["counts"]["test"],
        "small": board.is_small(task),
        "ways": list(ways),
        "metrics": [name for way in ways for name in table_metrics(way)] + ["rsum"],
        "ranked_by": RANKED_BY[task],
        "standings": [_standing(board, s, letters.get(s.preset)) for s in board.ranked + without],
        "pairs": _pairs(board),
    }


def _standing(board: Board, standing: Standing, letter: str | None) -> dict:
    first = standing.outcomes[0].record
    facts = {
        "preset": standing.preset,
        "title": standing.row.title,
        "method": standing.method,
        "family": first.family,
        "status": "ok" if standing.played else first.status,
        "reason": first.reason,
        "group": letter,
        "marks": {str(kind): text for kind, text in departures(board, standing).items()},
        "cells": [_cell(outcome) for outcome in standing.outcomes],
        "metrics": standing.means() if standing.played else {},
    }
    return facts | (_measured(board, standing) if standing.played else {})


def _measured(board: Board, standing: Standing) -> dict:
    metric = RANKED_BY[standing.task]
    values = standing.values(metric)
    of_these = comparisons.interval_over_images(board, standing, metric)
    costs: dict[str, float] = {}
    if has_costs(standing):
        costs["training"] = training_seconds(board, standing)
    if has_costs(standing) and standing.task == "retrieval":
        costs["query"] = query_seconds(standing)
    return {
        "spread": stdev(values) if len(values) > 1 else None,
        "interval": comparisons.interval(board, standing, metric),
        "of_these": of_these,
        "costs": costs,
        "coarse": comparisons.is_coarse(standing),
    }


def _cell(outcome: Outcome) -> dict:
    record = outcome.record
    numbers = {k: v for k, v in record.metrics.items() if isinstance(v, int | float)}
    return {
        "seed": record.seed,
        "folder": str(outcome.folder),
        "status": record.status,
        "reason": record.reason,
        "epoch": record.selected_epoch,
        "parameters": record.parameters,
        "seconds": outcome.training_seconds if outcome.trainings else None,
        "options": {name: str(value) for name, value in record.options.items()},
        "scaled": record.scaled,
        "metrics": numbers,
    }


def _pairs(board: Board) -> dict[str, dict]:
    """first/second -> the difference of the metric that ranks them, its interval and its p."""
    pairs = {}
    for first, second in combinations(board.ranked, 2):
        compared = comparisons.compare(board, first, second, RANKED_BY[first.task])
        if compared is not None:
            estimate = compared.estimate
            pairs[f"{first.preset}/{second.preset}"] = {
                "difference": compared.difference,
                "interval": estimate.interval if estimate else None,
                "p": estimate.p() if estimate else None,
                "of_these": compared.is_of_these_trainings,
            }
    return pairs


def _claim(dataset: str, verdict: Verdict) -> dict:
    decisive = verdict.decisive and verdict.decisive.comparison
    return {
        "dataset": dataset,
        "paper": verdict.paper,
        "where": verdict.claim.where,
        "statement": verdict.claim.statement,
        "elsewhere": verdict.is_elsewhere,
        "presets": verdict.claim.presets,
        "metric": verdict.claim.metric,
        "conclusion": str(verdict.conclusion),
        "on_test_set": str(verdict.on_test_set),
        "reason": verdict.reason,
        "difference": decisive.difference if decisive else None,
        "interval": decisive.interval if decisive else None,
        "decimals": quantity(verdict.claim.metric).decimals,
        "cautions": verdict.cautions,
    }


def _plots(standing: Standing) -> dict:
    curves = [
        {"seed": outcome.record.seed, "val_rsum": outcome.history["val_rsum"].tolist()}
        for outcome in standing.played
        if outcome.history is not None and "val_rsum" in outcome.history
    ]
    if not standing.has_scores or standing.task == "localisation":
        return {"curves": curves}
    return {"curves": curves, "scores": _distribution(standing.played[0])}


def _distribution(outcome: Outcome) -> dict:
    """Shares of matched and unmatched pairs by score, of the first seed; bins joined to at most
    MOST_BINS."""
    arrays = outcome.arrays("scores/similarities.npz")
    if "edges" not in arrays:
        return {}
    joined = -(-len(arrays["matched"]) // MOST_BINS)
    starts = range(0, len(arrays["matched"]), joined)
    edges = [float(arrays["edges"][start]) for start in starts] + [float(arrays["edges"][-1])]
    shares = {}
    for name in ("matched", "unmatched"):
        counts = [float(arrays[name][start : start + joined].sum()) for start in starts]
        shares[name] = [count / max(sum(counts), 1e-12) for count in counts]
    return {"edges": edges, "overlap_s": outcome.record.metrics["overlap_s"], **shares}
