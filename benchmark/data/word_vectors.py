"""Words and their vectors, as they are stored: words.json and words.npy. Knows no torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.files import atomic, read_json, readable, write_json
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
        """What `save` wrote. Raises UserError where the files are damaged or do not fit."""
        words, path = read_json(folder / "words.json"), folder / "words.npy"
        with readable(path, "word vectors", ENCODE_AGAIN):
            vectors = np.load(path, allow_pickle=False)
            if len(set(words)) != len(vectors) or vectors.dtype != np.float32 or vectors.ndim != 2:
                expected = f"float32 ({len(set(words))}, E), one row per word of words.json"
                found = f"{vectors.dtype} {vectors.shape}"
                raise UserError(path, expected, found, ENCODE_AGAIN)
        return cls(tuple(words), vectors)
