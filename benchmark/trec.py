"""What evaluated cells retrieved, as TREC files, so that outside tools can check the metrics.

    <dataset>.<way>.qrels                      query 0 item 1
    <dataset>-<preset>-<seed>.<way>.run        query Q0 item rank score tag

`way` is i2t or t2i. The literature's R@K is trec_eval's success_K (ir-measures: Success@K): the
run holds the ten best items of a query, and no K is larger. Ties are broken as evaluate does,
against the method. Ids are percent-encoded, so that none holds a space; urllib's `unquote` undoes
it.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from benchmark.errors import UserError
from benchmark.files import write_text
from benchmark.outcomes import Outcome
from benchmark.prepared import Prepared

SPLIT = "test"


def write_trec(outcomes: Iterable[Outcome], data: Prepared, folder: Path) -> None:
    """Write the qrels of a dataset and the runs of those of its cells that were played."""
    write_qrels(data, folder)
    for outcome in outcomes:
        if outcome.is_ok:
            write_runs(outcome, data, folder)


def write_qrels(data: Prepared, folder: Path) -> None:
    """Write which captions each test image has, and which image each test caption has."""
    split, ids = data.split(SPLIT), _ids(data)
    images, captions = ids["image"][split.image_of_caption], ids["caption"]
    for way, queries, items in (("i2t", images, captions), ("t2i", captions, images)):
        rows = pd.DataFrame({"query": queries, "iteration": 0, "item": items, "relevance": 1})
        _write(folder / f"{_name(data.folder.name)}.{way}.qrels", rows)


def write_runs(outcome: Outcome, data: Prepared, folder: Path) -> None:
    """Write what a cell retrieved, in both directions.

    Raises UserError where retrieved.npz is not of this split.
    """
    record, ids = outcome.record, _ids(data)
    name = f"{_name(record.dataset)}-{_name(record.preset)}-{record.seed}"
    retrieved = outcome.arrays("retrieved.npz")
    for way, queries, items in (
        ("i2t", ids["image"], ids["caption"]),
        ("t2i", ids["caption"], ids["image"]),
    ):
        found_QK = retrieved[way]
        if len(found_QK) != len(queries) or found_QK.max() >= len(items):
            raise UserError(
                f"{outcome.folder}/retrieved.npz: {way}: expected {len(queries)} queries over "
                f"{len(items)} items as in {data.folder}, found {len(found_QK)} over "
                f"{found_QK.max() + 1} or more; run evaluate again"
            )
        _write(folder / f"{name}.{way}.run", _run(queries, items[found_QK], name))


def _run(queries_Q: np.ndarray, items_QK: np.ndarray, tag: str) -> pd.DataFrame:
    count, depth = items_QK.shape
    ranks_K = np.arange(1, depth + 1)
    return pd.DataFrame(
        {
            "query": queries_Q.repeat(depth),
            "Q0": "Q0",
            "item": items_QK.ravel(),
            "rank": np.tile(ranks_K, count),
            # Tools sort by score and break ties their own way: these say the order, nothing more.
            "score": np.tile(depth + 1 - ranks_K, count),
            "tag": tag,
        }
    )


def _ids(data: Prepared) -> dict[str, np.ndarray]:
    """Encoded ids of the test images and captions, in the split's order."""
    split = data.split(SPLIT)
    images = data.images["image_id"].iloc[split.image_rows]
    captions = data.captions["caption_id"].iloc[split.caption_rows]
    return {
        "image": np.array([_name(text) for text in images], dtype=object),
        "caption": np.array([_name(text) for text in captions], dtype=object),
    }


def _name(text: str) -> str:
    """`text` without spaces, separators and quotes; different texts stay different."""
    return quote(text, safe="#")


def _write(path: Path, rows: pd.DataFrame) -> None:
    write_text(path, rows.to_csv(sep=" ", header=False, index=False, lineterminator="\n"))
