"""The prepared tables of a dataset, as a report reads them: columns, ids, counts.

Knows no torch.
"""

import numpy as np
import pandas as pd

from benchmark.analysis.score_files import is_text
from benchmark.core.errors import UserError
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared

COLUMNS = {
    "images": ("image_id", "file", "split", "group"),
    "captions": ("caption_id", "image_id", "text", "split"),
    "regions": ("phrase_id", "image_id"),
}


def test_queries(dataset: str, card: dict) -> dict[str, np.ndarray]:
    """The ids of the test queries by direction, in the split's order.

    Raises UserError for tables that a report cannot read, or with other counts than the card.
    """
    data = prepared_tables.read(dataset)
    tables = {"images": data.images, "captions": data.captions, "regions": data.regions}
    for name, table in tables.items():
        _check_columns(table, COLUMNS[name], f"{data.folder}/{name}.parquet")
    for name, key in (("images", "image_id"), ("captions", "caption_id")):
        _check_ids(tables[name][key], f"{data.folder}/{name}.parquet: {key}")
    return _checked_queries(data, card)


def _checked_queries(data: Prepared, card: dict) -> dict[str, np.ndarray]:
    where = f"{data.folder}/captions.parquet"
    tested = data.captions[data.captions["split"] == "test"]
    images = pd.Index(data.images.loc[data.images["split"] == "test", "image_id"])
    counted = card["counts"]["test"]
    if len(images) != counted["images"]:
        path = f"{data.folder}/images.parquet"
        raise UserError(path, f"{counted['images']} test images as on the card", len(images))
    if len(tested) != counted["captions"]:
        raise UserError(where, f"{counted['captions']} test captions as on the card", len(tested))
    owners = images.get_indexer(tested["image_id"])
    if len(owners) and (owners.min() < 0 or (np.diff(owners) < 0).any()):
        raise UserError(where, "captions in the order of their images", "others")
    phrases = data.regions.loc[data.regions["image_id"].isin(images), "phrase_id"]
    return {
        "i2t": images.to_numpy(),
        "t2i": tested["caption_id"].to_numpy(),
        "p2r": phrases.to_numpy(),
    }


def _check_columns(table: pd.DataFrame, names: tuple[str, ...], where: str) -> None:
    for name in names:
        if name not in table.columns:
            raise UserError(where, f"a column {name}", f"only {', '.join(map(str, table.columns))}")
        if not is_text(table[name]):
            raise UserError(f"{where}: {name}", "text", pd.api.types.infer_dtype(table[name]))


def _check_ids(ids: pd.Series, where: str) -> None:
    if not ids.is_unique:
        raise UserError(where, "every id once", repr(ids[ids.duplicated()].iloc[0]))
    if (ids == "").any():
        raise UserError(where, "ids", "an empty one")
