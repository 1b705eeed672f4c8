"""Word vectors: stored, trained on training captions only, or loaded, and never
unpickled."""

from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from refusals import holds, refused

from benchmark.data.feature_folders import Words
from benchmark.features import word2vec
from benchmark.season.parameters import WordVectors

CORPUS = [
    text.split()
    for text in ("a red dog", "a green dog runs", "the red cat", "a cat runs")
]
CORPUS = CORPUS * 5


# Trained ------------------------------------------------------------------------------


def test_trained_vectors_are_of_the_training_captions_words(monkeypatch):
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 1000)
    words, facts = word2vec.words(CORPUS, WordVectors(size=8), {"zebra", "dog"})
    assert words.words == ("a", "cat", "dog", "green", "red", "runs", "the")
    assert words.vectors.shape == (7, 8) and words.vectors.dtype == np.float32
    assert holds(facts["vectors"], "training captions")
    assert (facts["epochs"], facts["sg"], facts["seed"]) == (16, 1, 0)  # of 65 words
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 10**9)
    monkeypatch.setattr(word2vec, "MOST_EPOCHS", 3)
    assert word2vec.words(CORPUS, WordVectors(size=8), set())[1]["epochs"] == 3


def test_training_captions_without_words_are_refused():
    with refused("", "training captions", "none"):
        word2vec.words([[], []], WordVectors(size=8), {"dog"})


# Loaded -------------------------------------------------------------------------------


def write_bin(path: Path) -> None:
    rows = [[1, 2], [9, 9], [4, -2], [7, 7], [5, 6]]
    vectors = KeyedVectors(2)
    vectors.add_vectors(
        ["dog", "Dog", "red", "zebra", "</s>"], np.array(rows, np.float32)
    )
    vectors.save_word2vec_format(path, binary=True)


def write_txt(path: Path) -> None:
    """With what glove.840B has: tokens with spaces; and one with a carriage return."""
    lines = ["dog 1 2", "Dog 9 9", ". . . 3 3", "red dog 8 8", "at name@domain.com 3 3"]
    lines += ["x\rred 3 3", "red 4 -2", "dog 0 0", "zebra 7 7", "</s> 5 6"]
    path.write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
    )


def write_vec(path: Path) -> None:
    """fastText's: a line of how many vectors of which size, tabs, a blank at ends of
    lines."""
    path.write_text("4 2\ndog\t1\t2 \nred 4 -2 \nzebra 7 7 \n</s> 5 6 \n")


WRITERS = {"some.bin": write_bin, "some.txt": write_txt, "some.vec": write_vec}
WRITERS["headed.txt"] = write_vec


def load(
    path: Path, size: int = 2, keep=("dog", "red", "at", ".", "lion")
) -> tuple[Words, dict]:
    return word2vec.words(
        [["red"]], WordVectors(vectors=str(path), size=size), set(keep)
    )


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_restricted_to_words_of_the_captions(tmp_path, monkeypatch, name):
    WRITERS[name](tmp_path / name)
    words, facts = load(tmp_path / name)
    # dog in no training caption, zebra in no caption
    assert words.words == ("</s>", "dog", "red")
    assert words.vectors.tolist() == [[5, 6], [1, 2], [4, -2]]
    assert words.vectors.dtype == np.float32
    assert (facts["vectors"], facts["case"], len(facts["sha256"])) == (
        name,
        "lower",
        64,
    )
    with refused(name, "of the captions", "none"):
        load(tmp_path / name, 2, {"lion"})
    # a size is refused before a file is read
    monkeypatch.setattr(word2vec.mmap, "mmap", None)
    with refused(name, "vectors of size 300", "2", "set `size`"):
        load(tmp_path / name, 300)


def entries(count: int, *words: str, end: bytes = b"\n") -> bytes:
    """A .bin that announces `count` words, as the C tool writes it; word v has (v,
    8.625)."""
    vectors = [np.array([v, 8.625], np.float32).tobytes() for v in range(len(words))]
    rows = [
        f"{word} ".encode() + row + end
        for word, row in zip(words, vectors, strict=True)
    ]
    return f"{count} 2\n".encode() + b"".join(rows)


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_bin_is_read_alike_whatever_its_line_ends(tmp_path, end):
    """The value 10.0 contains the byte of a space, and 8.625 that of a line end."""
    names = [*"abcdefghijk", "dog", "café", "dog"]
    (tmp_path / "some.bin").write_bytes(entries(14, *names, end=end))
    words, _ = load(tmp_path / "some.bin", keep=("dog", "café", "k", "lion"))
    assert words.words == ("café", "dog", "k")
    assert words.vectors[:, 0].tolist() == [12, 11, 10]  # that of the first dog
    assert (words.vectors[:, 1] == 8.625).all()


def test_a_cut_text_is_told_by_its_first_line(tmp_path):
    (tmp_path / "some.vec").write_text("3 2\ndog 1 2\nred 4 -2\n\n")
    with refused("some.vec", found="3 vectors announced, 2 in it"):
        load(tmp_path / "some.vec", keep=("dog",))


def test_a_byte_order_mark_is_no_letter_of_a_word(tmp_path):
    (tmp_path / "some.txt").write_text("dog 1 2\nred 4 -2\n", "utf-8-sig")
    words, _ = load(tmp_path / "some.txt", keep=("dog", "red"))
    assert words.words == ("dog", "red")


@pytest.mark.parametrize("text", ["", "\ndog 1 2\n", "2 0\n"])
def test_a_first_line_without_a_vector_is_refused(tmp_path, text):
    (tmp_path / "some.txt").write_text(text)
    with refused("some.txt", found="no vector"):
        load(tmp_path / "some.txt", keep=("dog",))
