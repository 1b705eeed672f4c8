"""Feature folders: float16 memory maps or words and their vectors, and a card that says
what they are features of. Imports no torch."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import Dictionary

# of what is no feature
DTYPES = {"pixels": np.uint8, "boxes": np.float32, "ends": np.int64}
FRAME = ("<s>", "</s>")  # marks that a sentence encoder may put around a caption
ENCODE_AGAIN = "delete the folder and run `dvc repro` again"


def sha256_of_items(ids: Sequence[str]) -> str:
    """A hash of a list of items and their order."""
    return sha256("\n".join(ids).encode()).hexdigest()


def card_of(feature_set: Any, ids: Sequence[str], data: Prepared) -> dict:
    """The card of a feature folder: which dataset and items, encoded with which
    settings. A feature set of a season has one of four kinds of them."""
    of_images = feature_set.image or feature_set.proposals
    settings = of_images or feature_set.words or feature_set.sentence
    settings = settings.model_dump()
    if settings.get("weights"):  # wherever the folder of weights lies on this machine
        settings["weights"] = Path(settings["weights"]).name
    facts = _facts_of_items(Path(feature_set.folder), feature_set.dataset, ids)
    return facts | {"settings": settings, "prepared_sha256": data.sha256}


def _facts_of_items(folder: Path, dataset: str, ids: Sequence[str]) -> dict:
    """What a card says of the items that a folder has features of."""
    facts = {"dataset": dataset, "encoder": folder.name}
    return facts | {"items": len(ids), "items_sha256": sha256_of_items(ids)}


def write_card(folder: Path, card: dict) -> None:
    """Write card.json, which completes a feature folder: it names the sha256 of all
    other files."""
    digests = {}
    for path in sorted(folder.iterdir()):
        if path.name != "card.json":
            digests[path.name] = files.sha256(path)
    files.write_json(folder / "card.json", card | {"files": digests})


def verified(folder: Path, tables: str | None = None) -> str:
    """The sha256 of a feature folder's card, after all of its files were compared with
    it. Raises UserError where a file was changed, cut off or removed, and for features
    of others than the `tables` with this digest, if it is given."""
    path = folder / "card.json"
    card = files.read_object(path)
    if tables is not None and card.get("prepared_sha256") != tables:
        raise UserError(
            path,
            expected="features of the present data/prepared",
            found="features of other tables",
            do=ENCODE_AGAIN,
        )
    for name, digest in card.get("files", {}).items():
        file = folder / name
        if not file.is_file():
            raise UserError(
                file,
                expected="a file of features",
                found="nothing",
                do=ENCODE_AGAIN,
            )
        actual = files.sha256_once(file)
        if actual != digest:
            raise UserError(
                file,
                expected=f"sha256 {digest}, as in card.json",
                found=actual,
                do=ENCODE_AGAIN,
            )
    return files.sha256(path)


def as_float16(values: np.ndarray) -> np.ndarray:
    """Features as they are stored; values beyond the range of float16 are clipped to
    it."""
    largest = np.finfo(np.float16).max
    return np.clip(values, -largest, largest).astype(np.float16)


def array_at(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array at `path`, to be written to; a new one is filled with zeros. Raises
    UserError where the disk has no room for it."""
    if path.is_file():
        return np.lib.format.open_memmap(path, mode="r+")
    files.require_space(path, int(np.prod(shape)) * np.dtype(dtype).itemsize)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    # a map of bytes that are only claimed would kill the process on a full disk
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def read_array(folder: Path, name: str, dataset: str, ids: Sequence[str]) -> np.ndarray:
    """The array `name` of a feature folder, memory-mapped, with one row per item of
    `ids`.

    Raises UserError when the folder holds features of another dataset, of another
    encoder or of other items, and when the file is not such an array.
    """
    expected = _facts_of_items(folder, dataset, ids)
    card = files.read_object(folder / "card.json")
    for key, value in expected.items():
        if card.get(key) != value:
            raise UserError(
                f"{folder / 'card.json'}: {key}",
                expected=repr(value),
                found=repr(card.get(key)),
                do=ENCODE_AGAIN,
            )
    path = folder / f"{name}.npy"
    with files.readable(path, "an array", ENCODE_AGAIN):
        # Copy-on-write: torch wraps it without a copy, and nothing can write to the
        # file.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        dtype = DTYPES.get(name, np.float16)
        if array.dtype != dtype or len(array) != len(ids):
            raise UserError(
                path,
                expected=f"{len(ids)} rows of {np.dtype(dtype)}",
                found=f"{len(array)} of {array.dtype}",
                do=ENCODE_AGAIN,
            )
    return array


@dataclass(frozen=True, eq=False)
class Words:
    """V words and their vectors (V, E), float32: that of words[v] is vectors[v]."""

    words: tuple[str, ...]
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._number

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: v for v, word in enumerate(self.words)}

    def ids(self, tokens: Iterable[str]) -> np.ndarray:
        """The row of each token that has a vector, in order; other tokens are left
        out."""
        known = [self._number[token] for token in tokens if token in self._number]
        return np.array(known, dtype=np.int64)

    def rows(self, tokens: Iterable[str]) -> np.ndarray:
        """The vector of each token that has one, (n, E), in order."""
        return self.vectors[self.ids(tokens)]

    def rows_by_id(self, vocabulary: Dictionary) -> np.ndarray:
        """(V, E), row v for word id v of words that all have a vector; zeros for
        padding."""
        rows = self.rows(vocabulary.words[1:])
        return np.vstack([np.zeros_like(rows[:1]), rows])

    def coverage(self, captions: Sequence[Sequence[str]]) -> dict[str, int]:
        """How many tokens of tokenised captions have a vector, for the card of a
        feature folder."""
        known_tokens = [len(self.ids(tokens)) for tokens in captions]
        return {
            "words": len(self),
            "tokens": sum(map(len, captions)),
            "known_tokens": sum(known_tokens),
            "captions_without_known_words": known_tokens.count(0),
        }

    def save(self, folder: Path) -> None:
        """Write words.json and words.npy into `folder`."""
        files.write_json(folder / "words.json", list(self.words))
        with files.atomic(folder / "words.npy") as part, part.open("wb") as file:
            np.save(file, self.vectors, allow_pickle=False)

    @classmethod
    def read(cls, folder: Path) -> "Words":
        """What `save` wrote. Raises UserError where the files are damaged."""
        words = files.read_json(folder / "words.json")
        path = folder / "words.npy"
        with files.readable(path, "word vectors", ENCODE_AGAIN):
            vectors = np.load(path, allow_pickle=False)
        return cls(tuple(words), vectors)
