"""Word vectors: stored, trained on training captions only, or loaded, and never unpickled."""

import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import forks
import numpy as np
import pytest
from gensim.models import KeyedVectors

from benchmark.core.errors import UserError
from benchmark.data.word_vectors import Words
from benchmark.encoders import word2vec, word_vector_files
from benchmark.season.parameters import WordVectors

CORPUS = [text.split() for text in ("a red dog", "a green dog runs", "the red cat", "a cat runs")]
CORPUS = CORPUS * 5
WORDS = Words(("cat", "dog", "red"), np.array([[0, 1], [2, 3], [4, 5]], dtype=np.float32))
FIT = """
import hashlib
from benchmark.encoders import word2vec, word_vector_files
from benchmark.season.parameters import WordVectors
word2vec.WORDS_SEEN = 1000
captions = ["a red dog", "a green dog runs", "the red cat", "a cat runs"] * 5
words, _ = word2vec.words([text.split() for text in captions], WordVectors(size=8), set())
print(hashlib.sha256(repr(words.words).encode() + words.vectors.tobytes()).hexdigest())
"""


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


# Words ----------------------------------------------------------------------------------------


def test_words_with_a_vector_have_rows():
    assert "dog" in WORDS and "zebra" not in WORDS and len(WORDS) == 3
    assert WORDS.ids(["red", "zebra", "cat", "red"]).tolist() == [2, 0, 2]
    assert WORDS.rows(["red", "zebra", "cat", "red"]).tolist() == [[4, 5], [0, 1], [4, 5]]
    assert WORDS.rows(["zebra"]).shape == WORDS.rows([]).shape == (0, 2)
    assert WORDS.rows(["red"]).dtype == np.float32


def test_coverage_counts_tokens():
    assert WORDS.coverage([["red", "red", "zebra"], [], ["zebra"], ["dog"]]) == {
        "words": 3,
        "tokens": 5,
        "known_tokens": 3,
        "captions_without_known_words": 2,
    }


def test_words_are_read_as_they_were_saved(tmp_path):
    WORDS.save(tmp_path / "words")
    assert sorted(path.name for path in (tmp_path / "words").iterdir()) == [
        "words.json",
        "words.npy",
    ]
    saved = Words.read(tmp_path / "words")
    assert saved.words == WORDS.words
    assert np.array_equal(saved.vectors, WORDS.vectors) and saved.vectors.dtype == np.float32


def refused(read: Callable[..., object], *given: object) -> UserError:
    with pytest.raises(UserError) as caught:
        read(*given)
    assert "\n" not in str(caught.value) and caught.value.do
    return caught.value


def other_json(folder: Path) -> None:
    (folder / "words.json").write_text('["cat", 3, "red"]', encoding="utf-8")


def repeat_a_word(folder: Path) -> None:
    (folder / "words.json").write_text('["cat", "red", "red"]', encoding="utf-8")


def drop_a_word(folder: Path) -> None:
    (folder / "words.json").write_text('["cat", "red"]', encoding="utf-8")


def cut_vectors(folder: Path) -> None:
    path = folder / "words.npy"
    path.write_bytes(path.read_bytes()[:-4])


def empty_vectors(folder: Path) -> None:
    (folder / "words.npy").write_bytes(b"")


def remove_vectors(folder: Path) -> None:
    (folder / "words.npy").unlink()


def pickle_vectors(folder: Path) -> None:
    np.save(folder / "words.npy", np.array([Trap()] * 3, dtype=object), allow_pickle=True)


def bare_pickle(folder: Path) -> None:
    (folder / "words.npy").write_bytes(pickle.dumps(Trap()))


def double_vectors(folder: Path) -> None:
    np.save(folder / "words.npy", WORDS.vectors.astype(np.float64))


def flat_vectors(folder: Path) -> None:
    np.save(folder / "words.npy", WORDS.vectors[:, 0])


@pytest.mark.parametrize(
    ("change", "file", "expected", "found"),
    [
        (other_json, "words.json", "a list of words", '["cat", 3'),
        (repeat_a_word, "words.json", "every word once", "'red' twice"),
        (drop_a_word, "words.npy", "2 vectors, one per word of words.json", "3"),
        (cut_vectors, "words.npy", "an array of word vectors", "none ("),
        (empty_vectors, "words.npy", "an array of word vectors", "none ("),
        (remove_vectors, "words.npy", "an array of word vectors", "none ("),
        (pickle_vectors, "words.npy", "an array of word vectors", "none ("),
        (bare_pickle, "words.npy", "an array of word vectors", "none ("),
        (double_vectors, "words.npy", "float32 (V, E)", "float64"),
        (flat_vectors, "words.npy", "float32 (V, E)", "float32 (3,)"),
    ],
)
def test_malformed_words_are_refused(tmp_path, monkeypatch, change, file, expected, found):
    monkeypatch.chdir(tmp_path)
    WORDS.save(tmp_path)
    change(tmp_path)
    error = refused(Words.read, tmp_path)
    assert (error.where, error.expected) == (str(tmp_path / file), expected)
    assert error.found.startswith(found)
    assert not Path("sprung").exists()


def test_broken_json_is_refused(tmp_path):
    WORDS.save(tmp_path)
    (tmp_path / "words.json").write_text("[", encoding="utf-8")
    with pytest.raises(UserError, match="words.json: .*JSON") as caught:
        Words.read(tmp_path)
    assert "\n" not in str(caught.value)


# Trained --------------------------------------------------------------------------------------


def test_trained_vectors_are_of_the_training_captions_words(monkeypatch):
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 1000)
    words, facts = word2vec.words(CORPUS, WordVectors(size=8), {"zebra", "dog"})
    assert words.words == ("a", "cat", "dog", "green", "red", "runs", "the")
    assert words.vectors.shape == (7, 8) and words.vectors.dtype == np.float32
    assert facts["vectors"] == "trained on the training captions"
    assert (facts["epochs"], facts["sg"], facts["seed"]) == (16, 1, 0)  # of 65 words
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 10**9)
    monkeypatch.setattr(word2vec, "MOST_EPOCHS", 3)
    assert word2vec.words(CORPUS, WordVectors(size=8), set())[1]["epochs"] == 3


def test_no_other_word_shapes_trained_vectors(monkeypatch):
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 1000)
    first, _ = word2vec.words(CORPUS, WordVectors(size=8), {"zebra"})
    second, _ = word2vec.words(CORPUS, WordVectors(size=8), {"dog", "lion"})
    other, _ = word2vec.words([*CORPUS, ["zebra", "dog"]], WordVectors(size=8), {"zebra"})
    assert np.array_equal(first.vectors, second.vectors)
    assert not np.array_equal(first.rows(["dog"]), other.rows(["dog"]))


def test_words_that_share_contexts_come_close(monkeypatch):
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 20_000)
    corpus = [["a", colour, "dog", "runs"] for colour in ("red", "green")] * 50
    corpus += [["the", "cat", verb, "there", "now"] for verb in ("sleeps", "waits")] * 50
    words, _ = word2vec.words(corpus, WordVectors(size=8), set())
    unit = words.vectors / np.linalg.norm(words.vectors, axis=1, keepdims=True)
    red, green, sleeps = (unit[words.ids([word])[0]] for word in ("red", "green", "sleeps"))
    assert red @ green > red @ sleeps + 0.1


def test_training_captions_without_words_are_refused():
    error = refused(word2vec.words, [[], []], WordVectors(size=8), {"dog"})
    assert (error.expected, error.found) == ("words in the training captions", "none")


@pytest.mark.slow
def test_two_fits_agree_whatever_the_hash_seed():
    first, second = forks.with_two_hash_seeds(FIT)
    assert first == second
    assert len(first.strip()) == 64


# Loaded ---------------------------------------------------------------------------------------


def write_bin(path: Path) -> None:
    rows = [[1, 2], [9, 9], [4, -2], [7, 7], [5, 6]]
    vectors = KeyedVectors(2)
    vectors.add_vectors(["dog", "Dog", "red", "zebra", "</s>"], np.array(rows, np.float32))
    vectors.save_word2vec_format(path, binary=True)


def write_txt(path: Path) -> None:
    """With what glove.840B has: tokens with spaces; and one with a carriage return."""
    lines = [
        "dog 1 2",
        "Dog 9 9",
        ". . . 3 3",
        "red dog 8 8",
        "at name@domain.com 3 3",
        "x\rred 3 3",
    ]
    lines += ["red 4 -2", "dog 0 0", "zebra 7 7", "</s> 5 6"]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


WRITERS = {"some.bin": write_bin, "some.txt": write_txt}


def load(path: Path, size: int = 2, keep=("dog", "red", "at", ".", "lion")) -> tuple[Words, dict]:
    return word2vec.words([["red"]], WordVectors(vectors=str(path), size=size), set(keep))


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_restricted_to_words_of_the_captions(tmp_path, name):
    WRITERS[name](tmp_path / name)
    words, facts = load(tmp_path / name)
    assert words.words == ("</s>", "dog", "red")  # dog in no training caption, zebra in no caption
    assert words.vectors.tolist() == [[5, 6], [1, 2], [4, -2]]
    assert words.vectors.dtype == np.float32
    assert (facts["vectors"], facts["case"], len(facts["sha256"])) == (name, "lower", 64)


@pytest.mark.parametrize("name", WRITERS)
def test_another_size_is_refused_before_the_file_is_read(tmp_path, monkeypatch, name):
    WRITERS[name](tmp_path / name)
    monkeypatch.setattr(word_vector_files, "_entries", None)
    monkeypatch.setattr(word_vector_files, "_row", None)
    error = refused(load, tmp_path / name, 300)
    assert (error.where, error.expected, error.found) == (name, "vectors of size 300", "2")
    assert error.do.startswith("set `size`")


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_without_words_of_the_captions_is_refused(tmp_path, name):
    WRITERS[name](tmp_path / name)
    error = refused(load, tmp_path / name, 2, {"lion"})
    assert error.where == name
    assert (error.expected, error.found) == ("vectors for words of the captions", "none")


def entries(count: int, *words: str, end: bytes = b"\n") -> bytes:
    """A .bin that announces `count` words, as the C tool writes it; word v has (v, 8.625)."""
    vectors = [np.array([v, 8.625], np.float32).tobytes() for v in range(len(words))]
    rows = [f"{word} ".encode() + row + end for word, row in zip(words, vectors, strict=True)]
    return f"{count} 2\n".encode() + b"".join(rows)


@pytest.mark.parametrize("chunk", [6, 17, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_bin_is_read_alike_whatever_its_line_ends_and_chunks(tmp_path, monkeypatch, end, chunk):
    """The value 10.0 contains the byte of a space, and 8.625 that of a line end."""
    monkeypatch.setattr(word_vector_files, "CHUNK", chunk)
    names = [*"abcdefghijk", "dog", "café", "dog"]
    (tmp_path / "some.bin").write_bytes(entries(14, *names, end=end))
    words, _ = load(tmp_path / "some.bin", keep=("dog", "café", "k", "lion"))
    assert words.words == ("café", "dog", "k")
    assert words.vectors[:, 0].tolist() == [12, 11, 10]  # that of the first dog
    assert (words.vectors[:, 1] == 8.625).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (entries(3, "dog", "red"), "3 vectors announced, 2 whole ones in it"),
        (entries(1, "dog", "red"), "1 vectors announced, more in it"),
        (entries(2, "dog", "red")[:-3], "2 vectors announced, 1 whole ones in it"),
        (b"2 2\n" + b"x" * 3_000_000, "a word of more than 1048576 bytes"),
    ],
)
def test_a_bin_whose_count_is_wrong_is_refused(tmp_path, content, message):
    (tmp_path / "some.bin").write_bytes(content)
    error = refused(load, tmp_path / "some.bin")
    assert (error.where, error.expected) == ("some.bin", "a word2vec .bin file")
    assert error.found == f"something else ({message})"


def test_only_the_words_of_the_captions_are_kept_of_a_bin(tmp_path, monkeypatch):
    monkeypatch.setattr(word_vector_files, "CHUNK", 1 << 14)
    path, rows = tmp_path / "some.bin", np.ones((20_000, 50), np.float32)
    with path.open("wb") as file:
        file.write(b"20000 50\n")
        file.writelines(f"w{v} ".encode() + row.tobytes() for v, row in enumerate(rows))
    tracemalloc.start()
    words, _ = load(path, 50, keep=("w7", "w19999"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert words.words == ("w19999", "w7")
    assert peak < path.stat().st_size / 10


def test_a_broken_bin_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_bin(tmp_path / "some.bin")
    whole = (tmp_path / "some.bin").read_bytes()
    for content in (b"", whole[:-5], b"\x00\x01\x02", b"<html>", pickle.dumps(Trap())):
        (tmp_path / "some.bin").write_bytes(content)
        error = refused(load, tmp_path / "some.bin")
        assert (error.where, error.expected) == ("some.bin", "a word2vec .bin file")
    error = refused(load, tmp_path / "other.bin")
    assert (error.where, error.expected) == ("other.bin", "a word2vec .bin file")
    assert not Path("sprung").exists()


def test_a_broken_txt_is_refused(tmp_path):
    path = tmp_path / "some.txt"
    for content in ("dog 1 2\nred 4\n", "dog 1 2\nred 4 x\n"):
        path.write_text(content, encoding="utf-8")
        error = refused(load, path)
        assert (error.where, error.expected) == ("some.txt", "a GloVe .txt file")
    for content in ("", "<html>\n"):
        path.write_text(content, encoding="utf-8")
        error = refused(load, path)
        assert (error.expected, error.found) == ("vectors of size 2", "0")
    error = refused(load, tmp_path / "other.txt")
    assert (error.where, error.expected) == ("other.txt", "a GloVe .txt file")


def test_vectors_with_nan_are_refused(tmp_path):
    (tmp_path / "some.txt").write_text("dog 1 nan\nred 4 2\n", encoding="utf-8")
    error = refused(load, tmp_path / "some.txt")
    assert str(error) == ("some.txt: expected numbers, found NaN or infinity; get the file again")


def test_other_kinds_of_files_are_refused(tmp_path):
    (tmp_path / "some.pkl").write_bytes(pickle.dumps(Trap()))
    error = refused(load, tmp_path / "some.pkl")
    assert (error.where, error.found) == ("some.pkl", "'.pkl'")
    assert error.expected == "a word2vec .bin or a GloVe .txt"


def test_words_json_is_readable(tmp_path):
    Words(("été", "犬"), np.zeros((2, 2), np.float32)).save(tmp_path)
    assert json.loads((tmp_path / "words.json").read_text(encoding="utf-8")) == ["été", "犬"]
