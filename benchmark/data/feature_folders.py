"""Feature folders: float16 memory maps, and a card that says what they are features of."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.core.json_objects import read_object
from benchmark.data.prepared_tables import Prepared
from benchmark.season.parameters import FeatureSet

DTYPES = {"pixels": np.uint8, "boxes": np.float32}  # of the arrays that are not features
ENCODE_AGAIN = "delete the folder and run `dvc repro` again"


def sha256_of_items(ids: Sequence[str]) -> str:
    """A hash of a list of items and their order."""
    return sha256("\n".join(ids).encode()).hexdigest()


def card_of(feature_set: FeatureSet, ids: Sequence[str], data: Prepared) -> dict:
    """The card of a feature folder: which dataset and items, encoded with which settings."""
    settings = (
        feature_set.image or feature_set.words or feature_set.sentence or feature_set.proposals
    )
    return {
        "dataset": feature_set.dataset,
        "encoder": Path(feature_set.folder).name,
        "settings": settings.model_dump(),
        "items": len(ids),
        "items_sha256": sha256_of_items(ids),
        "prepared_sha256": data.sha256,
    }


def write_card(folder: Path, card: dict) -> None:
    """Write card.json, which completes a feature folder: it names the sha256 of all other files."""
    paths = sorted(path for path in folder.iterdir() if path.name != "card.json")
    write_json(folder / "card.json", card | {"files": {p.name: files.sha256(p) for p in paths}})


def verified(folder: Path) -> str:
    """The sha256 of a feature folder's card, after all of its files were compared with it.

    Raises UserError where a file was changed, cut off or removed.
    """
    path = folder / "card.json"
    listed = read_object(path).get("files")
    if listed is None:
        raise UserError(
            where=path, expected="digests of its files", found="an older card", do=ENCODE_AGAIN
        )
    for name, digest in listed.items():
        _verify(folder / name, digest)
    return files.sha256(path)


def _verify(path: Path, digest: str) -> None:
    if not path.is_file():
        raise UserError(where=path, expected="a file of features", found="nothing", do=ENCODE_AGAIN)
    state = path.stat()
    if _sha256(path, state.st_size, state.st_mtime_ns) != digest:
        raise UserError(
            where=path, expected="the bytes that were encoded", found="others", do=ENCODE_AGAIN
        )


@cache
def _sha256(path: Path, _size: int, _mtime_ns: int) -> str:
    """Of one state of a file: a process reads it once, which for large features takes seconds."""
    return files.sha256(path)


def as_float16(values: np.ndarray) -> np.ndarray:
    """Features as they are stored; values beyond the range of float16 are clipped to it."""
    largest = np.finfo(np.float16).max
    return np.clip(values, -largest, largest).astype(np.float16)


def read_array(folder: Path, name: str, dataset: str, ids: Sequence[str]) -> np.ndarray:
    """The array `name` of a feature folder, memory-mapped, with one row per item of `ids`.

    Raises UserError when the folder holds features of another dataset, of another encoder or of
    other items, and when the file is not such an array.
    """
    path = folder / "card.json"
    card = read_object(path)
    _check(path, f"features of {dataset!r}", dataset, card.get("dataset"))
    _check(path, f"features of encoder {folder.name!r}", folder.name, card.get("encoder"))
    if card.get("items_sha256") != sha256_of_items(ids):
        raise UserError(
            where=path,
            expected=f"features of the {len(ids)} items of data/prepared/{dataset}",
            found=f"{card.get('items')} other items",
            do=ENCODE_AGAIN,
        )
    return _mapped(folder / f"{name}.npy", len(ids))


def _check(path: Path, expected: str, name: str, found: object) -> None:
    if found != name:
        raise UserError(where=path, expected=expected, found=repr(found), do=ENCODE_AGAIN)


def _mapped(path: Path, rows: int) -> np.ndarray:
    try:
        # Copy-on-write: torch wraps it without a copy, and nothing can write to the file.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(
            where=path, expected="an array", found=f"something else ({error})", do=ENCODE_AGAIN
        ) from error
    dtype = DTYPES.get(path.stem, np.float16)
    if array.dtype != dtype or array.shape[0] != rows:
        raise UserError(
            where=path,
            expected=f"{rows} rows of {np.dtype(dtype)}",
            found=f"{array.shape[0]} of {array.dtype}",
            do=ENCODE_AGAIN,
        )
    return array
