"""Words and their vectors, as the encode stage keeps them: words.json beside words.npy."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, write_json

FRAME = ("<s>", "</s>")  # no caption's words, but sentence encoders may set them around it


@dataclass(frozen=True, eq=False)
class Words:
    """Words that have a vector: word v's is vectors[v], (V, E) float32."""

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
        """The number of every known token, in order; the others are left out."""
        known = (self._number.get(token) for token in tokens)
        return np.array([v for v in known if v is not None], dtype=np.int64)

    def rows(self, tokens: Iterable[str]) -> np.ndarray:
        """The vector of every known token, (n, E)."""
        return self.vectors[self.ids(tokens)]

    def coverage(self, captions: Sequence[Sequence[str]]) -> dict[str, int]:
        """How much of tokenised captions has a vector, for the card of an encoding."""
        known = [sum(token in self for token in tokens) for tokens in captions]
        return {
            "words": len(self),
            "tokens": sum(map(len, captions)),
            "known_tokens": sum(known),
            "captions_without_known_words": known.count(0),
        }

    def save(self, folder: Path) -> None:
        """Write words.json and words.npy into `folder`."""
        write_json(folder / "words.json", list(self.words))
        with atomic(folder / "words.npy") as part, part.open("wb") as file:
            np.save(file, self.vectors, allow_pickle=False)

    @classmethod
    def read(cls, folder: Path) -> "Words":
        """What `save` wrote. Raises UserError when a file is malformed or counts disagree."""
        words, vectors = _read_words(folder / "words.json"), _read_vectors(folder / "words.npy")
        if len(words) != len(vectors):
            raise UserError(
                f"{folder}/words.npy: expected {len(words)} vectors, one a word of words.json, "
                f"found {len(vectors)}; delete the folder and run `dvc repro` again"
            )
        return cls(tuple(words), vectors)


def _read_words(path: Path) -> list[str]:
    words = read_json(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        found = json.dumps(words, ensure_ascii=False)[:40]
        raise UserError(
            f"{path}: expected a list of words, found {found}; delete the folder and run "
            f"`dvc repro` again"
        )
    if len(set(words)) < len(words):
        twice = next(word for v, word in enumerate(words) if word in words[:v])
        raise UserError(
            f"{path}: expected every word once, found {twice!r} twice; delete the folder and run "
            f"`dvc repro` again"
        )
    return words


def _read_vectors(path: Path) -> np.ndarray:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: expected an array of word vectors, found none ({reason}); delete the folder "
            f"and run `dvc repro` again"
        ) from error
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2:
        found = f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray) else "others"
        raise UserError(
            f"{path}: expected float32 (V, E), found {found}; delete the folder and run "
            f"`dvc repro` again"
        )
    return vectors
