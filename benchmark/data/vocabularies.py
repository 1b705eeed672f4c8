"""Words and their ids. Vocabularies are built from training captions only."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from unicodedata import category, normalize

import numpy as np

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")  # as in SCAN's code; their ids:
PAD, START, END, UNKNOWN = range(4)
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
    marks = ""
    for code in chain(range(0x300, 0xFE00), range(0xFE10, 0x20000)):
        if category(chr(code)) in ("Mn", "Mc"):
            marks += chr(code)
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
        counts: Counter[str] = Counter()
        for caption in captions:
            counts.update(tokenise(caption))
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls(words=(*SPECIAL, *sorted(kept)))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, captions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids (C, W) of the words between <start> and <end>, padded with 0, and lengths
        (C,)."""
        number = {word: i for i, word in enumerate(self.words)}
        rows = []
        for caption in captions:
            ids = [number.get(word, UNKNOWN) for word in tokenise(caption)]
            rows.append([START, *ids, END])
        return _padded(rows)


@dataclass(frozen=True)
class Dictionary:
    """Words in the order of their ids, <pad> first; words that it lacks are dropped."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[str], known: Container[str]) -> "Dictionary":
        """The words of `captions` that are `known`, in alphabetical order. Source:
        instance-loss paper, Section III-B."""
        words: set[str] = set()
        for caption in captions:
            words.update(tokenise(caption))
        kept = [word for word in words if word in known]
        return cls(words=(SPECIAL[PAD], *sorted(kept)))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, captions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids (C, W), padded with 0, and lengths (C,). A caption without known words is
        a single padding word, so that every length is at least 1."""
        number = {word: i for i, word in enumerate(self.words)}
        rows = []
        for caption in captions:
            ids = [number[word] for word in tokenise(caption) if word in number]
            rows.append(ids or [PAD])
        return _padded(rows)


def _padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.zeros((len(rows), lengths.max(initial=1)), dtype=np.int64)
    is_word = np.arange(ids.shape[1]) < lengths[:, None]
    ids[is_word] = list(chain.from_iterable(rows))
    return ids, lengths
