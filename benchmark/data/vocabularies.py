"""Words and their ids. Vocabularies are built from training captions only."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from unicodedata import category, normalize

import numpy as np

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")  # ids 0 to 3, as in SCAN's code
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")  # letters and digits of any script


def tokenise(text: str) -> list[str]:
    """The words and numbers of `text` in lower case, without punctuation, in Unicode's
    form NFC. The marks on a letter (vowel signs of Hindi and Thai, accents that stand
    alone) belong to its word, as do joiners between two letters."""
    if text.isascii():
        return WORD.findall(text.lower())
    return _marked().findall(normalize("NFC", text.lower()))


@cache
def _marked() -> re.Pattern:
    """WORD, where marks may follow a letter: characters of Mn and Mc, but not those
    that choose between pictures of an emoji."""
    signs = (
        chr(code) for code in range(0x300, 0x20000) if not 0xFE00 <= code <= 0xFE0F
    )
    marks = "".join(sign for sign in signs if category(sign) in ("Mn", "Mc"))
    letter = rf"[^\W_][{marks}]*(?:[\u200c\u200d](?=[^\W_]))?"
    return re.compile(rf"(?:{letter})+(?:['\u2019](?:[^\W\d_][{marks}]*)+)?")


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids; the first four are `SPECIAL`."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[str], min_count: int) -> "Vocabulary":
        """The words that occur at least `min_count` times in `captions`, in
        alphabetical order."""
        counts = Counter(word for caption in captions for word in tokenise(caption))
        kept = sorted(word for word, count in counts.items() if count >= min_count)
        return cls(words=(*SPECIAL, *kept))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, captions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids (C, W) of the words between <start> and <end>, padded with 0, and lengths
        (C,)."""
        number = {word: i for i, word in enumerate(self.words)}
        rows = [
            [1, *(number.get(word, 3) for word in tokenise(text)), 2]
            for text in captions
        ]
        return _padded(rows)


@dataclass(frozen=True)
class Dictionary:
    """Words in the order of their ids, <pad> first; words that it lacks are dropped."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[str], known: Container[str]) -> "Dictionary":
        """The words of `captions` that are `known`, in alphabetical order. Source:
        instance-loss paper, Section III-B."""
        words = {word for caption in captions for word in tokenise(caption)}
        return cls(words=(SPECIAL[0], *sorted(word for word in words if word in known)))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, captions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids (C, W), padded with 0, and lengths (C,). A caption without known words is
        a single padding word, so that every length is at least 1."""
        number = {word: i for i, word in enumerate(self.words)}
        rows = [
            [number[w] for w in tokenise(text) if w in number] or [0]
            for text in captions
        ]
        return _padded(rows)


def _padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.zeros((len(rows), lengths.max(initial=1)), dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = (
        np.concatenate(rows) if rows else []
    )
    return ids, lengths
