"""Whether what a cell left behind is of the test split: shapes, kinds and ranges. Knows no torch.

Where a record lists no digests, nothing else tells one file from another.
"""

import numpy as np
import pandas as pd

from benchmark.core.errors import UserError
from benchmark.core.records import Record
from benchmark.protocol import METRICS, distribution_overlap

ITEMS = {"i2t": "captions", "t2i": "images"}  # of a direction's gallery
DIRECTIONS = {metric.ranks for metric in METRICS.values() if metric.ranks}
CURVES = ("epoch", "loss", "val_rsum")  # of a history
AXES = {  # of samples, by the beginning of their names; of overlap_replicates there are RESAMPLES
    "similarity": 2,
    "overlap_replicates": 1,
    "correlation_before": 2,
    "correlation_after": 2,
    "tsne_": 2,
    "weights_": 2,
    "curves_": 3,
    "curve_queries_": 1,
    "words_captions": 1,
    "words_drop": 2,
    "attention_captions": 1,
    "attention": 3,
    "p2r_boxes": 2,
}
POINTERS = ("curve_queries_", "words_captions", "attention_captions")  # whole numbers


def check_ranks(
    ranks: pd.DataFrame, record: Record, queries: dict[str, np.ndarray], where: str
) -> None:
    """Raises UserError where ranks are not those of these queries, by direction."""
    kinds = {"direction", "query", "rank"}
    if not kinds <= set(ranks.columns):
        raise UserError(where, f"the columns {', '.join(sorted(kinds))}", list(ranks.columns))
    if len(ranks) and not is_text(ranks["direction"]):
        raise UserError(f"{where}: direction", "text", ranks["direction"].dtype)
    directions = set(ranks["direction"].unique())
    if record.status == "ok" and not directions:
        raise UserError(where, "ranks", "none")
    unknown = sorted(directions - DIRECTIONS)
    if unknown:
        raise UserError(f"{where}: direction", f"one of {', '.join(sorted(DIRECTIONS))}", unknown)
    missing = [f"{way}_r1" for way in ("i2t", "t2i", "p2r") if f"{way}_r1" in record.metrics]
    for name in missing:
        if name.removesuffix("_r1") not in directions:
            raise UserError(f"{where}: {name.removesuffix('_r1')}", "its ranks", "none")
    for direction, rows in ranks.groupby("direction", sort=False):
        _check_ranks_of(direction, rows, record, queries, f"{where}: {direction}")


def _check_ranks_of(
    direction: str,
    rows: pd.DataFrame,
    record: Record,
    queries: dict[str, np.ndarray],
    where: str,
) -> None:
    values = pd.to_numeric(rows["rank"], errors="coerce").to_numpy(np.float64)
    items = max(record.images, record.captions)
    highest = np.inf if direction == "p2r" else items
    if not len(values) or not ((values >= 0) & (values < highest) & (values % 1 == 0)).all():
        raise UserError(where, f"whole ranks from 0 to below {highest}", "others")
    if is_text(rows["rank"]):
        raise UserError(where, "numbers", "text")
    of = direction.removesuffix("_fold")
    expected = queries["t2i" if of == "s2s" else of]
    if of == "s2s":  # captions that have a sibling, and no others
        is_same = rows["query"].is_unique and set(rows["query"].to_numpy()) <= set(expected)
    else:
        is_same = np.array_equal(rows["query"].to_numpy(), expected)
    if not is_same:
        found = f"{len(rows)} others"
        raise UserError(where, f"the {len(expected)} queries of the test split", found)


def check_similarities(arrays: dict[str, np.ndarray], where: str) -> None:
    """Raises UserError where there are no samples of both kinds of scores."""
    for name in ("matched_sample", "unmatched_sample"):
        if name not in arrays:
            raise UserError(f"{where}: {name}", "scores", "nothing")
        _check_numbers(arrays[name], 1, f"{where}: {name}")
        if not arrays[name].size or not np.isfinite(arrays[name]).all():
            raise UserError(f"{where}: {name}", "finite scores", "none or others")


def check_retrieved(
    arrays: dict[str, np.ndarray], record: Record, ways: list[str], where: str
) -> None:
    """Raises UserError where the best items are not those of every query over its gallery."""
    counts = {"i2t": record.images, "t2i": record.captions}
    for way in ways:
        if way not in arrays:
            raise UserError(f"{where}: {way}", "the best items of every query", "nothing")
        items_QK, gallery = arrays[way], getattr(record, ITEMS[way])
        _check_numbers(items_QK, 2, f"{where}: {way}")
        is_whole = np.issubdtype(items_QK.dtype, np.integer)
        count, depth = items_QK.shape
        ordered = np.sort(items_QK, axis=1)
        is_fit = is_whole and depth and count == counts[way]
        is_fit = is_fit and 0 <= ordered.min() and ordered.max() < gallery
        if not is_fit or (np.diff(ordered, axis=1) == 0).any():
            expected = f"{counts[way]} queries with different items of {gallery}"
            raise UserError(f"{where}: {way}", expected, f"{count} with {depth}, or others")


def check_samples(arrays: dict[str, np.ndarray], record: Record, where: str) -> None:
    """Raises UserError where the data of a figure has another shape or kind."""
    for name, array in arrays.items():
        axes = next(
            (AXES[start] for start in sorted(AXES, reverse=True) if name.startswith(start)), 0
        )
        if axes:
            _check_numbers(array, axes, f"{where}: {name}")
        if name.startswith(POINTERS):
            _check_pointers(name, array, record, f"{where}: {name}")
    for name, (is_fit, expected) in _shapes(arrays, record).items():
        if not is_fit:
            raise UserError(f"{where}: {name}", expected, arrays[name].shape)


def _shapes(arrays: dict[str, np.ndarray], record: Record) -> dict[str, tuple[bool, str]]:
    """Whether arrays fit to each other, and what is expected of each."""
    checks: dict[str, tuple[bool, str]] = {}
    count = distribution_overlap.RESAMPLES
    for name, array in arrays.items():
        shape = array.shape
        if name == "overlap_replicates":
            # A resample of a single group has no unmatched pairs, and so no overlap: NaN.
            is_known = not np.isinf(array).any() and not np.isnan(array).all()
            is_whole = shape == (count,) and bool(is_known)
            checks[name] = is_whole, f"{count} numbers, some of them finite"
        elif name.startswith("correlation_"):
            checks[name] = shape[0] == shape[1], "as many rows as columns"
        elif name.startswith("tsne_"):
            checks[name] = shape[1] == 2 and shape[0] % 2 == 0, "pairs of points"
        elif name in ("words_drop", "attention"):
            captions = arrays.get(name.replace("_drop", "") + "_captions", np.empty(0))
            checks[name] = len(captions) == len(array), f"{len(captions)} captions"
        elif name == "p2r_boxes":
            checks[name] = shape == (record.phrases, 4), f"{record.phrases} boxes"
    if "attention" in arrays and checks["attention"][0]:
        cells = arrays["attention"].shape[2]
        checks["attention"] = round(cells**0.5) ** 2 == cells, "a square grid"
    return checks


def _check_pointers(name: str, array: np.ndarray, record: Record, where: str) -> None:
    count = record.images if name.endswith("i2t") else record.captions
    is_whole = np.issubdtype(array.dtype, np.integer)
    if not is_whole or (len(array) and not 0 <= array.min() <= array.max() < count):
        raise UserError(where, f"rows below {count}", "others")


def check_history(history: pd.DataFrame, record: Record, where: str) -> None:
    """Raises UserError where epochs are not numbered, or the selected one is none of them."""
    columns = CURVES
    missing = [name for name in columns if name not in history.columns]
    if len(history) and missing:
        raise UserError(where, f"the columns {', '.join(columns)}", f"no {missing[0]}")
    for name in columns if len(history) else ():
        if not pd.api.types.is_numeric_dtype(history[name]) or not np.isfinite(history[name]).all():
            raise UserError(f"{where}: {name}", "finite numbers", "others")
    if len(history) and list(history["epoch"]) != [*range(1, len(history) + 1)]:
        raise UserError(f"{where}: epoch", "1, 2, 3 and so on", "others")
    if (record.selected_epoch or 0) > len(history):
        expected = f"the epoch {record.selected_epoch} that record.json names"
        raise UserError(where, expected, f"{len(history)} epochs")


def is_text(column: pd.Series) -> bool:
    """Whether all values of a column are text."""
    kind = pd.api.types.infer_dtype(column, skipna=False)
    return not len(column) or (kind == "string" and column.notna().all())


def _check_numbers(array: np.ndarray, axes: int, where: str) -> None:
    is_number = np.issubdtype(array.dtype, np.number) and not np.iscomplexobj(array)
    if not is_number or array.ndim != axes:
        raise UserError(where, f"numbers with {axes} axes", f"{array.dtype} with {array.ndim}")
