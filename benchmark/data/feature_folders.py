"""Feature folders: float16 memory maps with a card that says what they are features of."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import read_json

DTYPES = {"pixels": np.uint8, "boxes": np.float32}  # of arrays that are no features


def fingerprint(ids: Sequence[str]) -> str:
    """Identifies a list of items and their order."""
    return sha256("\n".join(ids).encode()).hexdigest()


def as_float16(values: np.ndarray) -> np.ndarray:
    """Features as they are kept: a value beyond the range of float16 becomes its end."""
    largest = np.finfo(np.float16).max
    return np.clip(values, -largest, largest).astype(np.float16)


def read_array(folder: Path, name: str, dataset: str, ids: Sequence[str]) -> np.ndarray:
    """The array `name` of a feature folder, memory-mapped: one row an item of `ids`.

    Raises UserError when the folder holds features of another dataset, of another encoder or of
    other items.
    """
    card = read_json(folder / "card.json")
    if card.get("dataset") != dataset:
        raise UserError(
            f"{folder}/card.json: expected features of {dataset!r}, found {card.get('dataset')!r}"
        )
    if card.get("encoder") != folder.name:
        raise UserError(
            f"{folder}/card.json: expected features of encoder {folder.name!r}, found "
            f"{card.get('encoder')!r}; delete the folder and run `dvc repro` again"
        )
    if card.get("items_sha256") != fingerprint(ids):
        raise UserError(
            f"{folder}/card.json: features of other items than data/prepared/{dataset} has; "
            f"expected {len(ids)} items, found {card.get('items')}; delete the folder and run "
            f"`dvc repro` again"
        )
    return _mapped(folder / f"{name}.npy", len(ids))


def _mapped(path: Path, rows: int) -> np.ndarray:
    try:
        # Copy-on-write: torch wraps it without a copy, and nothing can write to the file.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as an array ({error})") from error
    dtype = DTYPES.get(path.stem, np.float16)
    if array.dtype != dtype or array.shape[0] != rows:
        raise UserError(
            f"{path}: expected {rows} rows of {np.dtype(dtype)}, found {array.shape[0]} of "
            f"{array.dtype}"
        )
    return array
