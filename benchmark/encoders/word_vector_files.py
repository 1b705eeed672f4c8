"""Formats of files of word vectors: word2vec's .bin (Google News) and GloVe's .txt.

Neither is ever unpickled. They are read here and not by gensim, which keeps all 3 million vectors
when a few thousand are needed, and fails at the tokens with spaces of glove.840B.
"""

from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmark.core.errors import UserError
from benchmark.core.progress_bars import ProgressBar
from datasets import DataError
from datasets.shared.plain_files import opened

LONGEST_LINE = 1 << 20  # characters of a line of a .txt
MOST_WORDS = 1 << 32  # in any file
CHUNK = 1 << 20  # bytes of a .bin read at once; more than any word and its vector take


def _binary(path: Path, size: int, keep: set[str]) -> dict[str, np.ndarray]:
    """The vectors of `keep` in a word2vec .bin.

    The file starts with the number of vectors and their size; then come the words, each followed by
    its float32 values.
    """
    word_of, vectors = {word.encode(): word for word in keep}, {}
    try:
        with opened(path) as file:
            count, width = map(int, file.readline(100).split())
            _check_size(path, size, width)
            if not 0 < count < MOST_WORDS:
                raise ValueError(f"{count} vectors announced")
            for written, values in _entries(file, count, 4 * width):
                word = word_of.pop(written, None)  # if a word comes twice, its first vector counts
                if word is not None:
                    vectors[word] = np.frombuffer(values, "<f4")
    except DataError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, "a word2vec .bin file", error) from error
    return vectors


def _entries(file: BinaryIO, count: int, width: int) -> Iterator[tuple[bytes, bytes]]:
    """`count` words, each with the `width` bytes after its space; some files add a newline."""
    ahead, at = b"", 0  # bytes that were read, and where the next word starts in them
    for number in ProgressBar(range(count), desc="read word vectors", unit="word"):
        end = ahead.find(b" ", at)
        while end < 0 or len(ahead) <= end + width:
            chunk = file.read(CHUNK)
            if not chunk:
                raise EOFError(f"{count} vectors announced, {number} whole ones in it")
            if end < 0 and len(ahead) - at > CHUNK:
                raise ValueError(f"a word of more than {CHUNK} bytes")
            ahead, at = ahead[at:] + chunk, 0
            end = ahead.find(b" ")
        yield ahead[at:end].lstrip(b"\n"), ahead[end + 1 : end + 1 + width]
        at = end + 1 + width
    if (ahead[at:] + file.read(2)).strip(b"\n"):
        raise ValueError(f"{count} vectors announced, more in it")


def _text(path: Path, size: int, keep: set[str]) -> dict[str, np.ndarray]:
    """The vectors of `keep` in a GloVe .txt.

    Each line is a word, which may contain spaces, followed by its numbers.
    """
    vectors: dict[str, np.ndarray] = {}
    try:
        # Only \n ends a line: some tokens of GloVe are other separators.
        with (
            opened(path) as content,
            TextIOWrapper(content, "utf-8", errors="replace", newline="\n") as file,
        ):
            _check_size(path, size, file.readline(LONGEST_LINE).rstrip().count(" "))
            file.seek(0)
            lines = iter(partial(file.readline, LONGEST_LINE), "")
            for line in ProgressBar(lines, desc=f"read {path.name}", unit="word"):
                if len(line) == LONGEST_LINE:
                    raise ValueError(f"a line of {LONGEST_LINE} characters or more")
                if line.partition(" ")[0] in keep:
                    word, *numbers = line.rstrip().rsplit(" ", size)
                    if word in keep and word not in vectors:
                        vectors[word] = _row(numbers, size)
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(path, "a GloVe .txt file", error) from error
    return vectors


def _unreadable(path: Path, expected: str, error: Exception) -> UserError:
    return UserError(
        where=path.name,
        expected=expected,
        found=f"something else ({error})",
        do="check the path, or get the file again",
    )


def _row(numbers: list[str], size: int) -> np.ndarray:
    if len(numbers) != size:
        raise ValueError(f"a line of {len(numbers)} numbers")
    return np.array(numbers, dtype=np.float32)


def _check_size(path: Path, expected: int, size: int) -> None:
    if size != expected:
        raise UserError(
            where=path.name,
            expected=f"vectors of size {expected}",
            found=size,
            do="set `size` of the season's `words` to the file's",
        )


READERS = {".bin": _binary, ".txt": _text}  # suffix -> (path, size, words to keep) -> their vectors
