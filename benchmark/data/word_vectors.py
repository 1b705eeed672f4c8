"""Words and their vectors, as they are stored: words.json and words.npy. Knows no torch."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, write_json
from benchmark.data.feature_folders import ENCODE_AGAIN

FRAME = ("<s>", "</s>")  # marks that a sentence encoder may put around a caption


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
        """The row of each token that has a vector, in order; other tokens are left out."""
        numbers = (self._number.get(token) for token in tokens)
        return np.array([v for v in numbers if v is not None], dtype=np.int64)

    def rows(self, tokens: Iterable[str]) -> np.ndarray:
        """The vector of each token that has one, (n, E), in order."""
        return self.vectors[self.ids(tokens)]

    def coverage(self, captions: Sequence[Sequence[str]]) -> dict[str, int]:
        """How many tokens of tokenised captions have a vector, for the card of a feature folder."""
        known_tokens = [sum(token in self for token in tokens) for tokens in captions]
        return {
            "words": len(self),
            "tokens": sum(map(len, captions)),
            "known_tokens": sum(known_tokens),
            "captions_without_known_words": known_tokens.count(0),
        }

    def save(self, folder: Path) -> None:
        """Write words.json and words.npy into `folder`."""
        write_json(folder / "words.json", list(self.words))
        with atomic(folder / "words.npy") as part, part.open("wb") as file:
            np.save(file, self.vectors, allow_pickle=False)

    @classmethod
    def read(cls, folder: Path) -> "Words":
        """What `save` wrote. Raises UserError if a file is malformed or their lengths differ."""
        words, vectors = _read_words(folder / "words.json"), _read_vectors(folder / "words.npy")
        if len(words) != len(vectors):
            raise UserError(
                where=folder / "words.npy",
                expected=f"{len(words)} vectors, one per word of words.json",
                found=len(vectors),
                do=ENCODE_AGAIN,
            )
        return cls(tuple(words), vectors)


def _read_words(path: Path) -> list[str]:
    words = read_json(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        start = json.dumps(words, ensure_ascii=False)[:40]
        raise UserError(where=path, expected="a list of words", found=start, do=ENCODE_AGAIN)
    if len(set(words)) < len(words):
        repeated = next(word for v, word in enumerate(words) if word in words[:v])
        raise UserError(
            where=path, expected="every word once", found=f"{repeated!r} twice", do=ENCODE_AGAIN
        )
    return words


def _read_vectors(path: Path) -> np.ndarray:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            where=path,
            expected="an array of word vectors",
            found=f"none ({reason})",
            do=ENCODE_AGAIN,
        ) from error
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2:
        is_array = isinstance(vectors, np.ndarray)
        kind = f"{vectors.dtype} {vectors.shape}" if is_array else "several arrays"
        raise UserError(where=path, expected="float32 (V, E)", found=kind, do=ENCODE_AGAIN)
    return vectors
