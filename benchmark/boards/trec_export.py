"""What cells retrieved, as TREC files, so that outside tools can check the metrics.

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
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from benchmark.boards.boards import Outcome
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.data import results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import T2I
from benchmark.scoring.relevance import Relevance, layers_of

OTHER = {"i2t": "t2i", "t2i": "i2t"}  # direction -> that whose queries it retrieves
WAYS = tuple(OTHER)


def write_trec(outcomes: Iterable[Outcome], data: Prepared, folder: Path) -> None:
    """Write the qrels of a dataset, and one run per direction and outcome of retrieval
    with a result. Raises UserError where what it retrieved is missing or of another
    split; nothing of the dataset is written then."""
    queries = results.test_queries(data)
    ids = {}
    for way in WAYS:
        ids[way] = np.array([_name(query) for query in queries[way]], dtype=object)
    retrieving = []
    for outcome in outcomes:
        if outcome.is_ok and outcome.record.task == "retrieval":
            _check_retrieved(outcome, ids)
            retrieving.append(outcome)
    split, stem = data.split("test"), folder / _name(data.folder.name)
    relevance = Relevance.of(split.group_of_image, split.image_of_caption)
    own_P2 = relevance.own(T2I).right
    for way in data.card.get("ways", WAYS):
        pairs_P2 = own_P2 if way == "t2i" else own_P2[:, ::-1]
        _write_qrels(f"{stem}.{way}.qrels", ids, way, pairs_P2, len(pairs_P2))
    for layer, directions in layers_of(data, split).items():
        for way, pairs in directions.items():
            wrong = np.transpose((pairs.said < 0).nonzero())
            pairs_P2 = np.concatenate([pairs.right, wrong])
            path = f"{stem}.{way}.{_name(layer)}.qrels"
            _write_qrels(path, ids, way, pairs_P2, len(pairs.right))
    for outcome in retrieving:
        _write_runs(outcome, ids, folder)


def _check_retrieved(outcome: Outcome, ids: Mapping[str, np.ndarray]) -> None:
    """Raises UserError where what it retrieved is missing or of another split."""
    for way, items_QK in outcome.kept.retrieved.items():
        if way not in WAYS:
            continue
        queries, items = len(ids[way]), len(ids[OTHER[way]])
        if len(items_QK) != queries or items_QK.max(initial=0) >= items:
            expected = f"{queries} queries over {items} items"
            other = f"{len(items_QK)} queries over other items"
            raise UserError(outcome.kept.place, expected, other, "run: dvc repro")


def _write_qrels(
    path: str, ids: Mapping[str, np.ndarray], way: str, pairs_P2: np.ndarray, right: int
) -> None:
    """Pairs of query and item in a direction: so many that are right, then those that
    were judged to be wrong."""
    queries, items = ids[way][pairs_P2[:, 0]], ids[OTHER[way]][pairs_P2[:, 1]]
    table = pd.DataFrame({"query": queries, "0": 0, "item": items})
    table["1"] = (np.arange(len(table)) < right).astype(int)
    _write(Path(path), table)


def _write_runs(outcome: Outcome, ids: Mapping[str, np.ndarray], folder: Path) -> None:
    """One file per direction; `ids` are of its queries, which are the items of the
    other one."""
    record = outcome.record
    tag = f"{_name(record.dataset)}-{_name(record.preset)}-{record.seed}"
    for way, items_QK in outcome.kept.retrieved.items():
        if way not in WAYS:
            continue
        queries_Q, items_N = ids[way], ids[OTHER[way]]
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
