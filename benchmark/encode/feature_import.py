"""Image features that the field already has, as a feature folder.

Nothing is kept but one block: a file is read once, or twice where features are standardised, since
the moments of the training images come first.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmark.core.errors import UserError
from benchmark.core.files import read_json, replaced, write_json
from benchmark.data.feature_folders import as_float16, fingerprint
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import RawDataset
from benchmark.encode.feature_formats import Block, Source, open_source
from benchmark.encode.standardisation import Moments
from benchmark.season.parameters import FeatureSet

LARGEST = float(np.finfo(np.float16).max)  # that a feature folder can hold


def import_features(encoding: FeatureSet, data: Prepared, dataset: RawDataset, card: dict) -> None:
    """Write pooled.npy (I, F) and, where the source has them, regions.npy (I, R, F), in the order
    of the images of the used splits. `pooled` of regions is their mean; their order is kept.

    `card` tells dataset, encoder, settings and items. Features of other images are passed over.
    Raises UserError on the first thing that is wrong, and leaves an older folder as it was.
    """
    used = data.images[data.images["split"] != "unused"]
    source = open_source(dataset.folder / encoding.image.features, dataset.folder)
    scales = {}
    if encoding.image.standardise:
        scales = _scales(source, used)
    with replaced(Path(encoding.folder)) as folder:
        _write(folder, source, used, scales)
        origin = _origin(encoding.image.features, source.files, dataset)
        write_json(folder / "card.json", card | {"weights": origin})


def _scales(source: Source, used: pd.DataFrame) -> dict[str, Moments]:
    """Moments of each array's channels over the training images."""
    is_train = (used["split"] == "train").to_numpy()
    moments: dict[str, Moments] = defaultdict(Moments)
    for rows, values in _aligned(source, used, "measure"):
        for name, part in _arrays(values[is_train[rows]]).items():
            moments[name].add(part)
    return moments


def _write(folder: Path, source: Source, used: pd.DataFrame, scales: dict[str, Moments]) -> None:
    files: dict[str, _Rows] = {}
    for rows, values in _aligned(source, used, "import"):
        for name, part in _arrays(values).items():
            if name in scales:
                part = (part - scales[name].mean) / scales[name].deviation
            if name not in files:
                files[name] = _Rows(folder / f"{name}.npy", (len(used), *part.shape[1:]))
            files[name].set(rows, as_float16(part))


def _arrays(values: np.ndarray) -> dict[str, np.ndarray]:
    """What a feature folder keeps of regions (n, R, F), or of pooled features (n, F)."""
    if values.ndim == 2:
        return {"pooled": values}
    return {"pooled": values.mean(1), "regions": values}


class _Rows:
    """A .npy of float16 whose rows are set in any order.

    Written, not mapped: the pages of a map count as memory of the process.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self._path = path
        self._offset = np.lib.format.open_memmap(path, "w+", np.float16, shape).offset

    def set(self, rows: np.ndarray, values: np.ndarray) -> None:
        with self._path.open("r+b") as file:
            for row, value in zip(rows.tolist(), values, strict=True):
                file.seek(self._offset + row * value.nbytes)
                file.write(value.data)


def _aligned(
    source: Source, used: pd.DataFrame, title: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of the image table (n,), and their features as float32: every image exactly once."""
    index = _index(source, used)
    seen, first, strangers = np.zeros(len(index), bool), None, []
    with tqdm(total=len(index), unit="image", desc=title, disable=None) as bar:
        for block in source.blocks():
            rows = index.get_indexer(block.keys)
            strangers += [key for key, row in zip(block.keys, rows, strict=True) if row < 0]
            known = rows >= 0
            rows, values = rows[known], block.values[known]
            first = first or (block.path, values.shape[1:])
            _check_once(block.path, index, rows, seen)
            _check_shape(block, *first)
            _check_values(block.path, index, rows, values)
            seen[rows] = True
            bar.update(len(rows))
            yield rows, values.astype(np.float32, copy=False)
    _check_complete(source, used, seen, strangers)


def _index(source: Source, used: pd.DataFrame) -> pd.Index:
    """What the files call each image."""
    pairs = zip(used["image_id"], used["file"], strict=True)
    index = pd.Index([source.key_of(image_id, file) for image_id, file in pairs])
    if not index.is_unique:
        key = index[index.duplicated()][0]
        one, other = used["image_id"][index == key].iloc[:2]
        raise UserError(
            f"{source.files[0]}: expected one image that it may call {key!r}, found {one!r} and "
            f"{other!r}; save the features as .npy beside a list of image ids"
        )
    return index


def _check_once(path: Path, index: pd.Index, rows: np.ndarray, seen: np.ndarray) -> None:
    twice = seen[rows] | pd.Index(rows).duplicated()
    if twice.any():
        raise UserError(
            f"{path}: image {index[rows[twice.argmax()]]!r}: expected once, found twice; "
            f"remove one, or get the file again"
        )


def _check_shape(block: Block, path: Path, shape: tuple[int, ...]) -> None:
    """A method takes as many regions of every image."""
    if block.values.shape[1:] != shape:
        raise UserError(
            f"{block.path}: image {block.keys[0]!r}: expected features {shape} as of the first "
            f"image of {path.name}, found {block.values.shape[1:]}; get features of one size, as "
            f"with 36 boxes an image"
        )


def _check_values(path: Path, index: pd.Index, rows: np.ndarray, values: np.ndarray) -> None:
    # The extremes tell, without a copy: of NaN they are NaN, for which no comparison holds.
    if not len(rows) or (values.min() >= -LARGEST and values.max() <= LARGEST):
        return
    bad = ~(np.abs(values.reshape(len(values), -1)) <= LARGEST)
    row = bad.any(1).argmax()
    raise UserError(
        f"{path}: image {index[rows[row]]!r}: expected numbers up to {LARGEST:g}, found "
        f"{values[row].ravel()[bad[row].argmax()]}; get the file again"
    )


def _check_complete(
    source: Source, used: pd.DataFrame, seen: np.ndarray, strangers: list[str]
) -> None:
    if seen.all():
        return
    absent = used["image_id"][~seen]
    others, advice = "", "get the files of all splits"
    if strangers:
        others = f", and {len(strangers)} images that the dataset has not, first {strangers[0]!r}"
        advice += ", or annotations that name the images as they do"
    names = ", ".join(path.name for path in source.files)
    raise UserError(
        f"{source.files[0].parent}: image {absent.iloc[0]!r}: expected features in {names}, found "
        f"those of {seen.sum()} of {len(used)} images{others}; {advice}"
    )


def _origin(features: str, files: list[Path], dataset: RawDataset) -> dict[str, str | int]:
    """What the features were taken from: with its checksum where fetch has made one."""
    manifest = read_json(dataset.manifest)["files"] if dataset.manifest.is_file() else []
    known = {dataset.folder / file["name"]: file["sha256"] for file in manifest}
    if any(path not in known for path in files):
        return {"file": features, "bytes": sum(path.stat().st_size for path in files)}
    if len(files) == 1:
        return {"file": features, "sha256": known[files[0]]}
    return {"file": features, "sha256": fingerprint([known[path] for path in files])}
