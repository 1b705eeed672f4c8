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

from collections.abc import Iterable
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

WAYS = ("i2t", "t2i")


def write_trec(outcomes: Iterable[Outcome], data: Prepared, folder: Path) -> None:
    """Write the qrels of a dataset, and one run per direction and outcome of retrieval
    with a result. Raises UserError where what it retrieved is missing or of another
    split."""
    split, queries = data.split("test"), results.test_queries(data)
    ids = {
        way: np.array([_name(query) for query in queries[way]], dtype=object)
        for way in WAYS
    }
    relevance = Relevance.of(split.group_of_image, split.image_of_caption)
    own = relevance.own(T2I).right
    qrels = {
        (way, ""): (own if way == "t2i" else own[:, ::-1], len(own)) for way in WAYS
    }
    qrels = {
        key: of for key, of in qrels.items() if key[0] in data.card.get("ways", WAYS)
    }
    for layer, directions in layers_of(data).items():
        for way, of in directions.items():
            both = [of.right, np.transpose((of.said < 0).nonzero())]
            qrels[way, _name(layer)] = np.concatenate(both), len(both[0])
    for (way, layer), (pairs_P2, right) in qrels.items():
        (query_P, item_P), items = pairs_P2.T, ids["t2i" if way == "i2t" else "i2t"]
        table = pd.DataFrame(
            {"query": ids[way][query_P], "0": 0, "item": items[item_P]}
        )
        table["1"] = (np.arange(len(table)) < right).astype(int)
        name = ".".join(filter(None, (_name(data.folder.name), way, layer)))
        _write(folder / f"{name}.qrels", table)
    for outcome in (
        of for of in outcomes if of.is_ok and of.record.task == "retrieval"
    ):
        record = outcome.record
        tag = f"{_name(record.dataset)}-{_name(record.preset)}-{record.seed}"
        retrieved = outcome.kept.retrieved
        for query, item in (WAYS, WAYS[::-1]):
            if query not in retrieved:
                continue
            items_QK, queries_Q, items_N = retrieved[query], ids[query], ids[item]
            if len(items_QK) != len(queries_Q) or items_QK.max(initial=0) >= len(
                items_N
            ):
                expected = f"{len(queries_Q)} queries over {len(items_N)} items"
                found = f"{len(items_QK)} over others"
                raise UserError(outcome.kept.place, expected, found, "run: dvc repro")
            count, depth = items_QK.shape
            ranks = np.tile(np.arange(1, depth + 1), count)
            run = pd.DataFrame({"query": queries_Q.repeat(depth), "Q0": "Q0"})
            run = run.assign(item=items_N[items_QK].ravel(), rank=ranks)
            # Tools sort by score, and break ties in different ways: these scores have
            # none.
            _write(
                folder / f"{tag}.{query}.run",
                run.assign(score=depth + 1 - ranks, tag=tag),
            )


def _name(text: str) -> str:
    """`text`, percent-encoded: without spaces, separators and quotes."""
    return quote(text, safe="#")


def _write(path: Path, rows: pd.DataFrame) -> None:
    write_text(
        path, rows.to_csv(sep=" ", header=False, index=False, lineterminator="\n")
    )
