"""A board as files of Every Eval Ever, schema 0.3.0: one for each row, with the means
of its seeds.

    data/rematch-<season>/rematch/<preset>/<uuid>.json

The name is made of the content, so that equal results give one name.
`score_details.details` has the value of every seed, `uncertainty.confidence_interval`
the interval of the mean; `method` says for what it is. What a metric's range does
not bound is "Infinity", as the schema has it.
"""

import hashlib
import json
import time
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from uuid import UUID

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Row
from benchmark.core.files import json_text, write_json
from benchmark.core.records import sentence
from benchmark.scoring.metrics import METRICS, Metric
from benchmark.stats.significance import LEVEL

SCHEMA = "0.3.0"
NAME = "rematch"  # of the library, and of who trained; no organisation is behind it
UNITS = {"%": "percent", "share": "proportion"}
OF_CARD = ("source", "licence", "split", "manifest")
FOR_BOTH = "for other test images and other trainings"
FOR_IMAGES = "for other test images, of these trainings alone"


def write_eee(board: Board, season: str, folder: Path) -> list[Path]:
    """Write a file for each row with a result; returns their paths."""
    paths = []
    for row in board.ranked:
        log = _log(board, row, season)
        digest = hashlib.sha256(json_text(log).encode()).digest()
        name = f"{UUID(bytes=digest[:16], version=4)}.json"
        path = folder / "data" / f"{NAME}-{season}" / NAME / row.preset / name
        write_json(path, log | {"retrieved_timestamp": str(int(time.time()))})
        paths.append(path)
    return paths


def _log(board: Board, row: Row, season: str) -> dict:
    """Everything but the time."""
    record, card, model = row.record, board.card, f"{NAME}/{row.preset}"
    deployed = "unknown" if row.is_external else "self_deployed"
    departures = [sentence(departure) for departure in record.departures]
    seeds = [outcome.record.seed for outcome in row.played]
    of_model = {
        "deployment_type": deployed,
        "model_availability": "unknown",
        "method": record.method,
        "options": json.dumps(record.options, sort_keys=True),
        "deviations_from_the_paper": json.dumps(departures),
        "seeds": json.dumps(seeds),
    }
    commits = json.dumps(sorted({facts.git_commit for facts in row.costs}))
    of_library = {"protocol": str(record.protocol_version), "commits": commits}
    relation = "third_party"
    if row.is_external:
        relation = "other"
    elif row.is_own:
        relation = "first_party"
    engine = row.outcomes[0].scoring.packages.get("torch", "unknown")
    source = {
        "dataset_name": board.title,
        "source_type": "other",
        "additional_details": {key: str(card[key]) for key in OF_CARD},
    }
    results = []
    for name, mean in row.means().items():
        if name in METRICS and METRICS[name].in_tables and isfinite(mean):
            result = {
                "evaluation_result_id": f"{board.dataset}.{name}",
                "evaluation_name": f"{board.dataset}.{record.task}",
                "source_data": source,
                "metric_config": _config(METRICS[name]),
                "score_details": _score(board, row, name),
            }
            results.append(result)
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{NAME}-{season}-{board.dataset}/{model}/{card['manifest'][:12]}",
        "source_metadata": {
            "source_name": "Rematch",
            "source_type": "evaluation_run",
            "source_organization_name": "Rematch",
            "evaluator_relationship": relation,
        },
        "eval_library": {
            "name": NAME,
            "version": version("rematch-benchmark"),
            "additional_details": of_library,
        },
        "model_info": {
            "name": row.title,
            "id": model,
            "developer": NAME,
            "inference_engine": {"name": "PyTorch", "version": engine},
            "additional_details": of_model,
        },
        "evaluation_results": results,
    }


def _config(metric: Metric) -> dict:
    low, high = metric.range
    return {
        "evaluation_description": metric.formula,
        "metric_id": f"{NAME}.{metric.name}",
        "metric_name": metric.heading,
        "metric_unit": UNITS.get(metric.unit, metric.unit),
        "lower_is_better": metric.less_is_better,
        "score_type": "continuous",
        "min_score": _end(low),
        "max_score": _end(high),
    }


def _end(end: float) -> float | str:
    """Of a range, as the schema has it."""
    return end if isfinite(end) else str(end).replace("inf", "Infinity")


def _score(board: Board, row: Row, metric: str) -> dict:
    details = {}
    for outcome in row.played:
        record = outcome.record
        details[f"seed_{record.seed}"] = str(record.metrics[metric])
    score = {"score": row.mean(metric), "details": details}
    ends, method = comparisons.interval(board, row, metric), FOR_BOTH
    if ends is None:
        ends, method = comparisons.interval_over_images(board, row, metric), FOR_IMAGES
    if ends is None or not all(map(isfinite, ends)):
        return score
    interval = {
        "lower": ends[0],
        "upper": ends[1],
        "confidence_level": LEVEL,
        "method": method,
    }
    images = board.card["counts"]["test"]["images"]
    return score | {
        "uncertainty": {"confidence_interval": interval, "num_samples": images}
    }
