"""Words and their ids; vocabularies are built from training captions only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.contracts.methods import Inputs
from benchmark.data.feature_folders import Words
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.scoring.inputs import vocabulary_for


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
def test_words_are_lower_case_without_punctuation(text, words):
    assert tokenise(text) == words


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


def test_unknown_words_are_dropped_and_a_caption_without_known_words_is_padding():
    dictionary = Dictionary.of(["a b c"], {"a", "b", "c"})
    ids, lengths = dictionary.encode(["B zebra a", "", "zebra", "<pad> c c c", "c"])
    assert ids.tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 0], [3, 3, 3], [3, 0, 0]]
    assert lengths.tolist() == [2, 1, 1, 3, 1]
    assert (ids.dtype, lengths.dtype) == (np.int64, np.int64)
    ids, lengths = dictionary.encode(["zebra", ""])  # a batch without any known word
    assert (ids.tolist(), lengths.tolist()) == ([[0], [0]], [1, 1])
    assert [len(array) for array in dictionary.encode([])] == [0, 0]


def four_splits() -> Prepared:
    splits = ["train", "val", "test", "unused"]
    images = pd.DataFrame(
        {"image_id": list("abcd"), "split": splits, "group": list("abcd")}
    )
    captions = pd.DataFrame(
        {
            "image_id": list("aabcd"),
            "split": ["train", "train", "val", "test", "unused"],
            "text": [
                "seen",
                "seen twice",
                "validation",
                "hidden hidden seen",
                "left out",
            ],
        }
    )
    regions = pd.DataFrame(columns=["image_id"])
    return Prepared(images, captions, regions, {}, Path("unused"))


TAKES = {
    text: Inputs(image="pooled", text=text) for text in ("tokens", "words", "sentence")
}


def test_only_training_captions_enter_the_vocabulary_and_the_dictionary():
    data = four_splits()
    texts = data.captions["text"].iloc[data.split("train").caption_rows]
    twice = replace(TAKES["tokens"], min_count=2)
    assert vocabulary_for(TAKES["tokens"], texts, None).words[4:] == ("seen", "twice")
    assert vocabulary_for(twice, texts, None).words[4:] == ("seen",)
    assert vocabulary_for(TAKES["sentence"], texts, None) is None
    # Vectors may be known of words that only test captions have.
    words = ("hidden", "seen", "twice", "validation")
    known = Words(words, np.zeros((4, 2), np.float32))
    vocabulary = vocabulary_for(TAKES["words"], texts, known)
    assert vocabulary == Dictionary(words=("<pad>", "seen", "twice"))
