"""Spaces between the words of scripts without them."""

import pytest
from refusals import refused

from benchmark.readers.segmenters import segmenter


@pytest.mark.parametrize(
    ("text", "words"),
    [("一只狗 runs", "一 只 狗 runs"), ("ที่นี่", "ที่ นี่"), ("A dog.", "A dog."), ("", "")],
)
def test_each_sign_is_a_word(text, words):
    assert segmenter("characters")(text) == words


def test_unknown_names_are_refused():
    with refused("option tokeniser", "characters", "'os'"):
        segmenter("os")
