"""Published image features, imported as a feature folder. Knows no torch.

Only one block is in memory at a time: a file is read once, or twice if features are standardised,
since mean and deviation of the training images come first.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core import disk_space
from benchmark.core.errors import UserError
from benchmark.core.files import read_json, replaced
from benchmark.core.progress_bars import ProgressBar
from benchmark.data.feature_folders import as_float16, card_of, sha256_of_items, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import RawDataset
from benchmark.encode.feature_formats import Block, Source, open_source
from benchmark.encode.standardisation import Standardiser
from benchmark.season.parameters import FeatureSet

LARGEST = float(np.finfo(np.float16).max)  # number that a feature folder can hold


def import_features(feature_set: FeatureSet, data: Prepared, dataset: RawDataset) -> None:
    """Write pooled.npy (I, F) and, if the source has regions, regions.npy (I, R, F).

    Images are those of the used splits, in the order of the image table; features of others are
    skipped. `pooled` is the mean of the regions, whose order is kept.
    Raises UserError or DataError for features that cannot be used, and then leaves an older folder
    as it was.
    """
    settings, used = feature_set.image, data.used_images
    source = open_source(dataset.folder / settings.features, dataset.folder)
    standardisers = _standardisers(source, used) if settings.standardise else {}
    with replaced(Path(feature_set.folder)) as folder:
        _write(folder, source, used, standardisers)
        origin = _origin(settings.features, source.files, dataset)
        card = card_of(feature_set, used["image_id"], data) | {"weights": origin}
        write_card(folder, card)


def _standardisers(source: Source, used: pd.DataFrame) -> dict[str, Standardiser]:
    """Mean and deviation of each array over the training images."""
    is_train = (used["split"] == "train").to_numpy()
    standardisers: dict[str, Standardiser] = defaultdict(Standardiser)
    for rows, values in _aligned(source, used, "measure"):
        for name, part in _arrays(values[is_train[rows]]).items():
            standardisers[name].add(part)
    return standardisers


def _write(
    folder: Path, source: Source, used: pd.DataFrame, standardisers: dict[str, Standardiser]
) -> None:
    files: dict[str, _Rows] = {}
    for rows, values in _aligned(source, used, "import"):
        for name, part in _arrays(values).items():
            if name in standardisers:
                part = standardisers[name](part)
            if name not in files:
                files[name] = _Rows(folder / f"{name}.npy", (len(used), *part.shape[1:]))
            files[name].set(rows, as_float16(part))


def _arrays(values: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a feature folder, from regions (n, R, F) or from pooled features (n, F)."""
    if values.ndim == 2:
        return {"pooled": values}
    return {"pooled": values.mean(1), "regions": values}


class _Rows:
    """A .npy file of float16 whose rows are written in any order.

    Written, not mapped: the pages of a map count as memory of the process.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self._path = path
        self._offset = np.lib.format.open_memmap(path, "w+", np.float16, shape).offset
        disk_space.reserve(path, path.stat().st_size)

    def set(self, rows: np.ndarray, values: np.ndarray) -> None:
        with self._path.open("r+b") as file:
            for row, value in zip(rows.tolist(), values, strict=True):
                file.seek(self._offset + row * value.nbytes)
                file.write(value.data)


def _aligned(
    source: Source, used: pd.DataFrame, title: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of the image table (n,) with their features, float32; every image exactly once."""
    index = _index(source, used)
    seen, first, others = np.zeros(len(index), bool), None, []
    with ProgressBar(total=len(index), unit="image", desc=title) as bar:
        for block in source.blocks():
            rows = index.get_indexer(block.keys)
            others += [key for key, row in zip(block.keys, rows, strict=True) if row < 0]
            is_used = rows >= 0
            rows, values = rows[is_used], block.values[is_used]
            first = first or (block.path, values.shape[1:])
            _check_once(block.path, index, rows, seen)
            _check_shape(block, *first)
            _check_values(block.path, index, rows, values)
            seen[rows] = True
            bar.update(len(rows))
            yield rows, values.astype(np.float32, copy=False)
    _check_complete(source, used, seen, others)


def _index(source: Source, used: pd.DataFrame) -> pd.Index:
    """The name of each image in the files."""
    pairs = zip(used["image_id"], used["file"], strict=True)
    index = pd.Index([source.key_of(image_id, file) for image_id, file in pairs])
    if not index.is_unique:
        key = index[index.duplicated()][0]
        first, second = used["image_id"][index == key].iloc[:2]
        raise UserError(
            where=source.files[0],
            expected=f"one image that it may call {key!r}",
            found=f"{first!r} and {second!r}",
            do="save the features as .npy beside a list of image ids",
        )
    return index


def _check_once(path: Path, index: pd.Index, rows: np.ndarray, seen: np.ndarray) -> None:
    repeated = seen[rows] | pd.Index(rows).duplicated()
    if repeated.any():
        raise UserError(
            where=f"{path}: image {index[rows[repeated.argmax()]]!r}",
            expected="once",
            found="twice",
            do="remove one, or get the file again",
        )


def _check_shape(block: Block, path: Path, shape: tuple[int, ...]) -> None:
    """Methods need the same number of regions in every image."""
    if block.values.shape[1:] != shape:
        raise UserError(
            where=f"{block.path}: image {block.keys[0]!r}",
            expected=f"features {shape} as of the first image of {path.name}",
            found=block.values.shape[1:],
            do="get features of one size, as with 36 boxes per image",
        )


def _check_values(path: Path, index: pd.Index, rows: np.ndarray, values: np.ndarray) -> None:
    # The extremes need no copy; those of NaN are NaN, for which no comparison holds.
    if not len(rows) or (values.min() >= -LARGEST and values.max() <= LARGEST):
        return
    bad = ~(np.abs(values.reshape(len(values), -1)) <= LARGEST)
    row = bad.any(1).argmax()
    raise UserError(
        where=f"{path}: image {index[rows[row]]!r}",
        expected=f"numbers up to {LARGEST:g}",
        found=values[row].ravel()[bad[row].argmax()],
        do="get the file again",
    )


def _check_complete(
    source: Source, used: pd.DataFrame, seen: np.ndarray, others: list[str]
) -> None:
    """Check that all used images were `seen`; `others` are names of images that are not used."""
    if seen.all():
        return
    found, do = f"those of {seen.sum()} of {len(used)} images", "get the files of all splits"
    if others:
        found += f", and {len(others)} images that the dataset does not use, first {others[0]!r}"
        do += ", or annotations that name the images as they do"
    raise UserError(
        where=f"{source.files[0].parent}: image {used['image_id'][~seen].iloc[0]!r}",
        expected=f"features in {', '.join(path.name for path in source.files)}",
        found=found,
        do=do,
    )


def _origin(features: str, files: list[Path], dataset: RawDataset) -> dict[str, str | int]:
    """Where the features come from: name and checksum, or size if fetch has made no checksum."""
    manifest = read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
    sha256_of = {dataset.folder / file["name"]: file["sha256"] for file in manifest}
    if any(path not in sha256_of for path in files):
        return {"file": features, "bytes": sum(path.stat().st_size for path in files)}
    if len(files) == 1:
        return {"file": features, "sha256": sha256_of[files[0]]}
    return {"file": features, "sha256": sha256_of_items([sha256_of[path] for path in files])}
