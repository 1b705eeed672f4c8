"""Records as JSON: equal ones give equal bytes, and lists of numbers take one line.
Departures from a paper: facts in records, words at the end."""

import json

import pytest
from builders import record
from refusals import refused

from benchmark.core.records import (
    Aspect,
    Departure,
    read_record,
    sentence,
    text_of,
    write_record,
)


def test_a_list_of_numbers_is_one_line():
    text = text_of({"b": [1, 2.5, None], "a": [["x"]]})
    assert '"b": [1, 2.5, null]' in text
    assert text.index('"a"') < text.index('"b"')


def test_a_record_comes_back_as_written(tmp_path):
    written = record()
    write_record(tmp_path, written)
    assert read_record(tmp_path) == written


@pytest.mark.parametrize("content", ["", "[]", '{"season": 7}'])
def test_other_content_is_refused(tmp_path, content):
    (tmp_path / "record.json").write_text(content)
    with refused(tmp_path / "record.json"):
        read_record(tmp_path)


@pytest.mark.parametrize("aspect", Aspect)
def test_every_aspect_has_words_of_its_own(aspect):
    words = sentence(Departure(aspect=aspect, here="x_y", texts="phrase"))
    others = {
        sentence(Departure(aspect=other, here="x_y", texts="phrase"))
        for other in Aspect
        if other != aspect
    }
    assert words and words not in others


def test_what_the_paper_has_is_told_where_it_is_known():
    network = Departure(aspect=Aspect.IMAGE_NETWORK, here="cnn", in_paper="vgg19")
    assert "vgg19" in sentence(network)
    assert "paper" not in sentence(network.model_copy(update={"in_paper": ""}))


def test_lists_in_texts_stay_as_they_are():
    content = {"reason": "expected [ 1,   2 ]", "epochs": [1, 2]}
    text = text_of(content)
    assert json.loads(text) == content and '"epochs": [1, 2]' in text
