"""A board in the formats of other tools: TREC files and Every Eval Ever.

What cells retrieved, as TREC files, so that outside tools can check the metrics.

    <dataset>.<direction>.qrels                      query 0 item 1
    <dataset>.<direction>.<layer>.qrels              query 0 item 1, or 0 where judged to be wrong
    <dataset>-<preset>-<seed>.<direction>.run        query Q0 item rank score tag

The direction is i2t or t2i, as far as the dataset has them. An item is relevant if it
is of the query's group: the captions of an image, all images of a person; or by a
further layer of relevance, which has queries of its own. Phrase localisation is left
out: its items are boxes, which have no ids.

The literature's R@K is trec_eval's success_K (ir-measures: Success@K). A run holds the
ten best items of a query, so it gives R@K up to K = 10. Ties are broken as in the
evaluation, against the method. Ids are percent-encoded, so that none contains a space;
urllib's `unquote` undoes it.

A board as files of Every Eval Ever, schema 0.3.0: one for each row, with the means
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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import numpy as np
import pandas as pd

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Outcome, Row
from benchmark.core.errors import UserError
from benchmark.core.files import json_text, write_json, write_text
from benchmark.core.records import sentence
from benchmark.data import results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import T2I
from benchmark.scoring.metrics import METRICS, Metric
from benchmark.scoring.relevance import Relevance, layers_of
from benchmark.stats import LEVEL

OTHER = {"i2t": "t2i", "t2i": "i2t"}  # direction -> that whose queries it retrieves
WAYS = tuple(OTHER)
SCHEMA = "0.3.0"
NAME = "rematch"  # of the library, and of who trained; no organisation is behind it
UNITS = {"%": "percent", "share": "proportion"}
OF_CARD = ("source", "licence", "split", "manifest")
FOR_BOTH = "for other test images and other trainings"
FOR_IMAGES = "for other test images, of these trainings alone"


def write_trec(outcomes: Iterable[Outcome], data: Prepared, folder: Path) -> None:
    """Write the qrels of a dataset, and one run per direction and outcome of retrieval
    with a result. Raises UserError where what it retrieved is missing or of another
    split."""
    queries = results.test_queries(data)
    ids = {}
    for way in WAYS:
        ids[way] = np.array([_name(query) for query in queries[way]], dtype=object)
    for qrels in _qrels(data):
        query_P, item_P = qrels.pairs.T
        items = ids[OTHER[qrels.way]][item_P]
        table = pd.DataFrame({"query": ids[qrels.way][query_P], "0": 0, "item": items})
        table["1"] = (np.arange(len(table)) < qrels.right).astype(int)
        names = (_name(data.folder.name), qrels.way, qrels.layer)
        _write(folder / f"{'.'.join(filter(None, names))}.qrels", table)
    for outcome in outcomes:
        if outcome.is_ok and outcome.record.task == "retrieval":
            _write_runs(outcome, ids, folder)


@dataclass(frozen=True)
class Qrels:
    """What counts in a direction by a layer of relevance."""

    way: str
    layer: str  # percent-encoded; "": a caption's own image
    pairs: np.ndarray  # (P, 2), query and item, the right ones first
    right: int  # how many are right; the others were judged to be wrong


def _qrels(data: Prepared) -> Iterator[Qrels]:
    split = data.split("test")
    relevance = Relevance.of(split.group_of_image, split.image_of_caption)
    own = relevance.own(T2I).right
    for way in WAYS:
        if way in data.card.get("ways", WAYS):
            pairs_P2 = own if way == "t2i" else own[:, ::-1]
            yield Qrels(way, "", pairs_P2, len(own))
    for layer, directions in layers_of(data).items():
        for way, pairs in directions.items():
            wrong = np.transpose((pairs.said < 0).nonzero())
            pairs_P2 = np.concatenate([pairs.right, wrong])
            yield Qrels(way, _name(layer), pairs_P2, len(pairs.right))


def _write_runs(outcome: Outcome, ids: Mapping[str, np.ndarray], folder: Path) -> None:
    """One file per direction; `ids` are of its queries, which are the items of the
    other one."""
    record, place = outcome.record, outcome.kept.place
    tag = f"{_name(record.dataset)}-{_name(record.preset)}-{record.seed}"
    for way, items_QK in outcome.kept.retrieved.items():
        if way not in WAYS:
            continue
        queries_Q, items_N = ids[way], ids[OTHER[way]]
        is_within = items_QK.max(initial=0) < len(items_N)
        if len(items_QK) != len(queries_Q) or not is_within:
            expected = f"{len(queries_Q)} queries over {len(items_N)} items"
            other = f"{len(items_QK)} queries over other items"
            raise UserError(place, expected, other, "run: dvc repro")
        count, depth = items_QK.shape
        ranks = np.tile(np.arange(1, depth + 1), count)
        run = pd.DataFrame({"query": queries_Q.repeat(depth), "Q0": "Q0"})
        run = run.assign(item=items_N[items_QK].ravel(), rank=ranks)
        # Tools sort by score, and break ties in different ways: these scores have none.
        run = run.assign(score=depth + 1 - ranks, tag=tag)
        _write(folder / f"{tag}.{way}.run", run)


def _name(text: str) -> str:
    """`text`, percent-encoded: without spaces, separators and quotes."""
    return quote(text, safe="#")


def _write(path: Path, rows: pd.DataFrame) -> None:
    write_text(
        path, rows.to_csv(sep=" ", header=False, index=False, lineterminator="\n")
    )


# Every Eval Ever ----------------------------------------------------------------------


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
