"""A board as files of Every Eval Ever, schema 0.3.0: one for each row, with the means
of its seeds.

    data/rematch-<season>/rematch/<preset>/<uuid>.json
    data/rematch-<season>/rematch/<preset>/<uuid>_samples.jsonl    its single queries, if asked

The name is made of the content, so that equal results give one name.
`score_details.details` has the value of every seed, `uncertainty.confidence_interval`
the interval of the mean; `method` says for what it is. What a metric's range does
not bound is "Infinity", as the schema has it.

A sample is a line of JSON for each seed, direction and query (instance-level records of
the schema). Its score is the hit at the first place, 100 or 0, so that its mean is R@1
of the aggregate file. `output.raw` is the rank, from 0, of the best right item. Images
and captions may be closed to others: `input.raw` is the id of the query, and
`reference` the image, person or other group whose items are right.

Source: https://github.com/evaleval/every_eval_ever.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from uuid import UUID

import pandas as pd

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Row
from benchmark.core.files import json_text, write_bytes, write_json
from benchmark.core.records import sentence
from benchmark.data.rank_keys import OWN, RankKey
from benchmark.scoring.metrics import METRICS, Metric
from benchmark.stats.significance import LEVEL

SCHEMA = "0.3.0"
NAME = "rematch"  # of the library, and of who trained; no organisation is behind it
UNITS = {"%": "percent", "share": "proportion"}
OF_CARD = ("source", "licence", "split", "manifest")
FOR_BOTH = "for other test images and other trainings"
FOR_IMAGES = "for other test images, of these trainings alone"
# of samples
PREFIX = "rematch."  # of keys in metadata
HIT, MISS = 100.0, 0.0
R1 = "r1"


def write_eee(
    board: Board,
    season: str,
    folder: Path,
    queries: Mapping[RankKey, pd.DataFrame] | None = None,
) -> list[Path]:
    """Write a file for each row with a result, and with `queries` (query and cluster,
    (Q,) in the order of the ranks) one of its samples; returns their paths."""
    paths = []
    for row in board.ranked:
        log = _log(board, row, season)
        digest = hashlib.sha256(json_text(log).encode()).digest()
        uuid = UUID(bytes=digest[:16], version=4)
        place = Path("data", f"{NAME}-{season}", NAME, row.preset)
        if queries is not None:
            samples = place / f"{uuid}_samples.jsonl"
            detailed = _write_samples(board, row, log, queries, folder / samples)
            detailed["file_path"] = samples.as_posix()
            log["detailed_evaluation_results"] = detailed
            paths.append(folder / samples)
        path = folder / place / f"{uuid}.json"
        write_json(path, log | {"retrieved_timestamp": str(int(time.time()))})
        paths.append(path)
    return paths


def _write_samples(
    board: Board,
    row: Row,
    log: dict,
    queries: Mapping[RankKey, pd.DataFrame],
    path: Path,
) -> dict:
    """Write the single queries of a row, with `queries` as of write_eee; returns what
    the aggregate file says of them."""
    lines = []
    for outcome in row.played:
        for key, ranks in outcome.scores.ranks.items():
            metric = f"{key.direction}_{R1}"
            if key.layer != OWN or key.is_of_folds or metric not in METRICS:
                continue
            shared = {
                "schema_version": SCHEMA,
                "evaluation_id": log["evaluation_id"],
                "evaluation_name": f"{board.dataset}.{row.task}",
                "evaluation_result_id": f"{board.dataset}.{metric}",
                "model_id": log["model_info"]["id"],
                "interaction_type": "single_turn",
            }
            table = queries[key]
            facts = zip(table["query"], table["cluster"], ranks.best, strict=True)
            for query, cluster, rank in facts:
                metadata = {
                    f"{PREFIX}seed": str(outcome.record.seed),
                    f"{PREFIX}direction": key.direction,
                    f"{PREFIX}cluster": str(cluster),
                }
                sample = _sample(str(query), str(cluster), int(rank))
                line = shared | sample | {"metadata": metadata}
                lines.append(json.dumps(line, sort_keys=True, ensure_ascii=False))
    content = "".join(f"{line}\n" for line in lines).encode()
    write_bytes(path, content)
    return {
        "format": "jsonl",
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(content).hexdigest(),
        "total_rows": len(lines),
    }


def _log(board: Board, row: Row, season: str) -> dict:
    """Everything but the time."""
    record, card, model = row.record, board.card, f"{NAME}/{row.preset}"
    deployed = "unknown" if row.is_external else "self_deployed"
    departures = list(map(sentence, record.departures))
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
    for name in exported_means(row):
        result = {
            "evaluation_result_id": f"{board.dataset}.{name}",
            "evaluation_name": f"{board.dataset}.{row.task}",
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
    ends = [end if isfinite(end) else json.dumps(end) for end in metric.range]
    return {
        "evaluation_description": metric.formula,
        "metric_id": f"{NAME}.{metric.name}",
        "metric_name": metric.heading,
        "metric_unit": UNITS.get(metric.unit, metric.unit),
        "lower_is_better": metric.less_is_better,
        "score_type": "continuous",
        "min_score": ends[0],
        "max_score": ends[1],
    }


def exported_means(row: Row) -> dict[str, float]:
    """The means of a row that tables show, as far as they are finite."""
    means = {}
    for name, mean in row.means().items():
        if name in METRICS and METRICS[name].in_tables and isfinite(mean):
            means[name] = mean
    return means


def interval_with_scope(
    board: Board, row: Row, metric: str
) -> tuple[tuple[float, float] | None, str]:
    """A finite interval of a mean, or None, and for what it is."""
    ends, is_of_these = comparisons.known_interval(board, row, metric)
    is_finite = ends is not None and all(map(isfinite, ends))
    return ends if is_finite else None, FOR_IMAGES if is_of_these else FOR_BOTH


def _score(board: Board, row: Row, metric: str) -> dict:
    details = {}
    for outcome in row.played:
        record = outcome.record
        details[f"seed_{record.seed}"] = str(record.metrics[metric])
    score = {"score": row.mean(metric), "details": details}
    ends, method = interval_with_scope(board, row, metric)
    if ends is None:
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


# Single queries ------------------------------------------------------------------------


def _sample(query: str, cluster: str, rank: int) -> dict:
    answer = {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": str(rank),
        "extraction_method": "rank_of_best_right_item",
        "is_terminal": True,
    }
    score = HIT if rank == 0 else MISS
    return {
        "sample_id": query,
        "input": {"raw": query, "reference": [cluster]},
        "output": {"raw": [str(rank)]},
        "answer_attribution": [answer],
        "evaluation": {"score": score, "is_correct": rank == 0},
    }
