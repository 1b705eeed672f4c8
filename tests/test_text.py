"""Words, their numbers, and that only training captions are counted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.inputs import vocabulary_of
from benchmark.prepared import Prepared
from benchmark.text import Vocabulary, tokenise


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man's 2 dogs, running.", ["a", "man's", "2", "dogs", "running"]),
        ("black-and-white T-shirt", ["black", "and", "white", "t", "shirt"]),
        ("the dogs' ball 'here'", ["the", "dogs", "ball", "here"]),
        (" ... !", []),
        ("", []),
        ("tab\tand\nnewline", ["tab", "and", "newline"]),
    ],
)
def test_tokenise(text, words):
    assert tokenise(text) == words


def test_vocabulary_is_alphabetical_after_the_special_words():
    vocabulary = Vocabulary.of(["b a c", "a B", "b", "d"], min_count=2)
    assert vocabulary.words == ("<pad>", "<start>", "<end>", "<unk>", "a", "b")
    assert len(vocabulary) == 6
    assert Vocabulary.of(["b a c", "a B", "b", "d"], min_count=3).words[4:] == ("b",)
    assert Vocabulary.of(["c b", "a"], min_count=1).words[4:] == ("a", "b", "c")
    assert Vocabulary.of(["d", "b", "a b"], 1) == Vocabulary.of(["a b", "b", "d"], 1)


def test_captions_become_numbers_between_start_and_end():
    vocabulary = Vocabulary.of(["a b c"], min_count=1)
    ids, lengths = vocabulary.encode(["B a", "", "c zebra c", "<start>"])
    assert ids.tolist() == [
        [1, 5, 4, 2, 0],
        [1, 2, 0, 0, 0],
        [1, 6, 3, 6, 2],
        [1, 3, 2, 0, 0],  # a caption cannot speak of the special words
    ]
    assert lengths.tolist() == [4, 2, 5, 3]
    assert (ids.dtype, lengths.dtype) == (np.int64, np.int64)
    ids, lengths = vocabulary.encode([])
    assert len(ids) == len(lengths) == 0


def test_only_training_captions_enter_the_vocabulary():
    images = pd.DataFrame({"image_id": list("abcd"), "split": ["train", "val", "test", "unused"]})
    captions = pd.DataFrame(
        {
            "image_id": list("aabcd"),
            "split": ["train", "train", "val", "test", "unused"],
            "text": ["seen", "seen twice", "validation", "hidden hidden seen", "left out"],
        }
    )
    data = Prepared(images, captions, pd.DataFrame(), {}, Path("unused"))
    assert vocabulary_of(data, 1).words[4:] == ("seen", "twice")
    assert vocabulary_of(data, 2).words[4:] == ("seen",)
