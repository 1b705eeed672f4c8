"""Vectors of words: skip-gram (Mikolov et al. 2013), trained here or read from a file.

Files are word2vec's .bin (Google News), GloVe's .txt, and .vec, which is the same below
a line of the number of vectors and their size (a .txt may have it, too). None is ever
unpickled. They are read here and not by gensim, which keeps all 3 million vectors when
a few thousand are needed, and fails at the tokens with spaces of glove.840B.

Captions are in lower case (benchmark.data.vocabularies.tokenise), vector files are not:
only their lower-case entries are used. The papers match case, so names and sentence
starts differ.
"""

import math
import mmap
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import numpy as np
from gensim.models import Word2Vec

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.core.files import opened, readable, sha256
from benchmark.data.feature_folders import FRAME, Words
from benchmark.season.parameters import WordVectors

# Assumed: no paper trains its own vectors. The corpora are small, so all words are
# kept, and epochs repeat until about five million words were seen: with fewer, words
# that share contexts (red, blue) stay alike.
TRAINING = {"sg": 1, "window": 5, "negative": 5, "min_count": 1}
WORDS_SEEN, MOST_EPOCHS = 5_000_000, 100
SEED = 0  # one fit per dataset: cells of different seeds share their features

FLOAT_BYTES = 4
LONGEST = 1 << 20  # characters of a line of a .txt, bytes of a word of a .bin


def words(
    corpus: Sequence[Sequence[str]],
    settings: WordVectors,
    keep: set[str],
) -> tuple[Words, dict]:
    """Words with their vectors, in alphabetical order, and facts for the card.

    `corpus` are the tokenised training captions. Vectors that are trained here are
    those of their words. Vectors of a file are those of `keep`, the words of all
    captions, and of FRAME: there, a word that only test captions have is not fitted to
    them. Raises UserError for a corpus without words, and for a malformed file.
    """
    if settings.vectors is not None:
        path = Path(settings.vectors)
        vectors = _read(path, settings.size, keep)
        facts = {"vectors": path.name, "sha256": sha256(path), "case": "lower"}
    else:
        vectors, facts = _trained(corpus, settings.size)
    order = sorted(vectors)
    table = np.stack([vectors[word] for word in order]).astype(np.float32)
    return Words(tuple(order), table), facts


def _trained(
    corpus: Sequence[Sequence[str]],
    size: int,
) -> tuple[dict[str, np.ndarray], dict]:
    """word -> vector, trained on the corpus; and facts for the card."""
    count = sum(map(len, corpus))
    if count == 0:
        raise UserError(
            "word2vec",
            expected="words in the training captions",
            found="none",
            do="check the captions, or name a file of vectors in the season's `words`",
        )
    epochs = min(math.ceil(WORDS_SEEN / count), MOST_EPOCHS)
    # One worker: with more, gensim's updates race and two runs differ.
    model = Word2Vec(
        corpus,
        vector_size=size,
        seed=SEED,
        workers=1,
        epochs=epochs,
        **TRAINING,
    )
    facts = {"vectors": "trained on the training captions"}
    facts |= {"epochs": epochs, "seed": SEED} | TRAINING
    return dict(zip(model.wv.index_to_key, model.wv.vectors, strict=True)), facts


def _read(path: Path, size: int, keep: set[str]) -> dict[str, np.ndarray]:
    """word -> vector of a file, for the words of `keep` and of FRAME."""
    expected = "a word2vec .bin, a GloVe .txt or a .vec"
    again = "get the file again"
    read = {".bin": _binary, ".txt": _text, ".vec": _text}.get(path.suffix)
    if read is None:
        raise UserError(
            path.name,
            expected=expected,
            found=repr(path.suffix),
            do="unpack the file, or name another one in the season's `words`",
        )
    with readable(path.name, expected, again), opened(path) as file:
        vectors = read(file, path, size, keep | set(FRAME))
    if not vectors.keys() & (keep - set(FRAME)):
        raise UserError(
            path.name,
            expected="vectors for words of the captions",
            found="none",
            do="check the language of the file",
        )
    for vector in vectors.values():
        if not np.isfinite(vector).all():
            raise UserError(
                path.name,
                expected="finite numbers",
                found="NaN or infinity",
                do=again,
            )
    return vectors


def _binary(
    file: BinaryIO,
    path: Path,
    size: int,
    keep: set[str],
) -> dict[str, np.ndarray]:
    """The vectors of `keep` in a word2vec .bin.

    The file starts with the number of vectors and their size; then come the words, each
    followed by its float32 values.
    """
    word_of = {word.encode(): word for word in keep}
    vectors = {}
    count, width = map(int, file.readline(100).split())
    _check_size(path, size, width)
    place = file.tell()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if not 0 < count < len(content):
            raise ValueError(f"{count} vectors announced")
        for number in ProgressBar(range(count), desc="read word vectors", unit="word"):
            space = content.find(b" ", place, place + LONGEST)
            start = space + 1
            end = start + FLOAT_BYTES * width
            if space < 0 or end > len(content):
                raise EOFError(f"{count} vectors announced, {number} whole ones in it")
            # Some files have a newline before a word. If one comes twice, its first
            # vector counts.
            word = word_of.pop(content[place:space].lstrip(b"\n"), None)
            if word is not None:
                vectors[word] = np.frombuffer(content[start:end], "<f4")
            place = end
        if content[place : place + LONGEST].strip(b"\n"):
            raise ValueError(f"{count} vectors announced, more in it")
    return vectors


def _text(
    content: BinaryIO,
    path: Path,
    size: int,
    keep: set[str],
) -> dict[str, np.ndarray]:
    """The vectors of `keep` in a GloVe .txt.

    Each line is a word, which may contain spaces, followed by its numbers. A first line
    of two whole numbers tells how many lines follow and the size of their vectors.
    """
    vectors: dict[str, np.ndarray] = {}
    # Only \n ends a line: some tokens of GloVe are other separators. A byte order mark
    # is no letter of the first word.
    with TextIOWrapper(content, "utf-8-sig", errors="replace", newline="\n") as file:
        first = file.readline(LONGEST).replace("\t", " ").split()
        has_header = len(first) == 2 and all(map(str.isdecimal, first))
        actual = int(first[1]) if has_header else len(first) - 1
        _check_size(path, size, actual)
        if not has_header:
            file.seek(0)
        lines = iter(partial(file.readline, LONGEST), "")
        count = 0
        for line in ProgressBar(lines, desc=f"read {path.name}", unit="word"):
            if len(line) == LONGEST:
                raise ValueError(f"a line of {LONGEST} characters or more")
            count += not line.isspace()
            line = line.replace("\t", " ")
            if line.partition(" ")[0] not in keep:
                continue
            word, *numbers = line.rstrip().rsplit(" ", size)
            if word in keep and word not in vectors:
                if len(numbers) != size:
                    raise ValueError(f"a line of {len(numbers)} numbers")
                vectors[word] = np.array(numbers, dtype=np.float32)
    if has_header and count != int(first[0]):
        raise ValueError(f"{first[0]} vectors announced, {count} in it")
    return vectors


def _check_size(path: Path, expected: int, size: int) -> None:
    """Raise UserError for vectors of another size, and ValueError for a first line that
    tells no size."""
    if size < 1:
        raise ValueError("no vector, and no size of vectors, in its first line")
    if size != expected:
        raise UserError(
            path.name,
            expected=f"vectors of size {expected}",
            found=size,
            do=f"set `size` of the season's `words` to {size}",
        )
