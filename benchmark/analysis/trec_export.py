"""What evaluated cells retrieved, as TREC files, so that outside tools can check the metrics.

    <dataset>.<direction>.qrels                      query 0 item 1
    <dataset>-<preset>-<seed>.<direction>.run        query Q0 item rank score tag

The direction is i2t or t2i, as far as the dataset has them. An item is relevant if it is of the
query's group: the captions of an image, all pictures of a person. Phrase localisation is left out:
its items are boxes, which have no ids.

The literature's R@K is trec_eval's success_K (ir-measures: Success@K). A run holds the ten best
items of a query, so it gives R@K up to K = 10. Ties are broken as in the evaluation, against the
method. Ids are percent-encoded, so that none contains a space; urllib's `unquote` undoes it.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from benchmark.analysis.boards import Outcome
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.data.prepared_tables import Prepared

SPLIT = "test"
DIRECTIONS = ("i2t", "t2i")


def write_trec(outcomes: Iterable[Outcome], data: Prepared, folder: Path) -> None:
    """Write the qrels of a dataset, and one run per direction and outcome of retrieval with a
    result. Raises as `write_runs`."""
    write_qrels(data, folder)
    for outcome in outcomes:
        if outcome.is_ok and outcome.record.task == "retrieval":
            write_runs(outcome, data, folder)


def write_qrels(data: Prepared, folder: Path) -> None:
    """Write which test captions and test images are of the same group."""
    split, ids = data.split(SPLIT), _ids(data)
    images = pd.DataFrame({"image": ids["image"], "group": split.group_of_image})
    captions = pd.DataFrame({"caption": ids["caption"], "group": split.group_of_caption})
    pairs = captions.merge(images, on="group")  # in the order of the captions, then of the images
    for direction, query, item in (("i2t", "image", "caption"), ("t2i", "caption", "image")):
        if direction in data.card.get("ways", DIRECTIONS):
            rows = pd.DataFrame({"query": pairs[query], "iteration": 0, "item": pairs[item]})
            path = folder / f"{_name(data.folder.name)}.{direction}.qrels"
            _write(path, rows.assign(relevance=1))


def write_runs(outcome: Outcome, data: Prepared, folder: Path) -> None:
    """Write what a cell retrieved, one file per direction.

    Raises UserError where scores/retrieved.npz is of another split.
    """
    record, ids = outcome.record, _ids(data)
    name = f"{_name(record.dataset)}-{_name(record.preset)}-{record.seed}"
    retrieved = outcome.arrays("scores/retrieved.npz")
    for direction, queries, items in (
        ("i2t", ids["image"], ids["caption"]),
        ("t2i", ids["caption"], ids["image"]),
    ):
        if direction not in retrieved:
            continue
        items_QK = retrieved[direction]
        if not _is_fit(items_QK, len(queries), len(items)):
            raise UserError(
                f"{outcome.folder}/scores/retrieved.npz: {direction}",
                f"{len(queries)} queries over {len(items)} items as in {data.folder}",
                f"{len(items_QK)} over other items",
                "run: dvc repro",
            )
        _write(folder / f"{name}.{direction}.run", _run(queries, items[items_QK], name))


def _is_fit(items_QK: np.ndarray, queries: int, items: int) -> bool:
    is_whole = items_QK.ndim == 2 and np.issubdtype(items_QK.dtype, np.integer)
    if not is_whole or len(items_QK) != queries or not items_QK.size:
        return False
    return 0 <= int(items_QK.min()) and int(items_QK.max()) < items


def _run(queries_Q: np.ndarray, items_QK: np.ndarray, tag: str) -> pd.DataFrame:
    count, depth = items_QK.shape
    ranks_K = np.arange(1, depth + 1)
    return pd.DataFrame(
        {
            "query": queries_Q.repeat(depth),
            "Q0": "Q0",
            "item": items_QK.ravel(),
            "rank": np.tile(ranks_K, count),
            # Tools sort by score, and break ties in different ways: these scores have none.
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
        "image": _encoded(images, f"{data.folder}/images.parquet: image_id"),
        "caption": _encoded(captions, f"{data.folder}/captions.parquet: caption_id"),
    }


def _encoded(ids: pd.Series, where: str) -> np.ndarray:
    for text in ids:
        if not isinstance(text, str) or not text:  # an empty column would shift the others
            raise UserError(where, "text that is not empty", repr(text), "run: dvc repro --force")
    return np.array([_name(text) for text in ids], dtype=object)


def _name(text: str) -> str:
    """`text`, percent-encoded: without spaces, separators and quotes."""
    return quote(text, safe="#")


def _write(path: Path, rows: pd.DataFrame) -> None:
    write_text(path, rows.to_csv(sep=" ", header=False, index=False, lineterminator="\n"))
