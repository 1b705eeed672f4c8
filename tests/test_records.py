"""Records as JSON: equal ones give equal bytes, and lists of numbers take one line."""

import pytest
from builders import record
from refusals import refused

from benchmark.core.records import read_record, text_of, write_record


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
