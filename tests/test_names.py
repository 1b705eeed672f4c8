"""Names, paths and texts: what may become a folder, a file or a word of a command."""

import pytest
from refusals import refused

from benchmark.core import names


@pytest.mark.parametrize("name", ["a", "7", "scan_t2i-avg", "x" * 64])
def test_plain_names_are_taken_as_they_are(name):
    assert names.checked_name(name, "here") == name


@pytest.mark.parametrize("name", ["", "_a", "-a", "a b", "a/b", "é", "x" * 65, 7, None])
def test_names_that_may_not_be(name):
    with refused("here", names.EXPECTED):
        names.checked_name(name, "here")


@pytest.mark.parametrize("path", ["a", "a/b.jpg", "./a//b.jpg", "...", "é"])
def test_paths_inside_a_folder_are_taken(path):
    assert not names.leads_outside(path)
    assert "//" not in names.inside(path, "here", "correct it")


@pytest.mark.parametrize(
    "path", ["", "/a", "..", "a/../../b", "a\\b", "a\0b", "x" * 300]
)
def test_paths_that_lead_outside_or_that_no_file_can_have(path):
    with refused("here", do="correct it"):
        names.inside(path, "here", "correct it")


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [("a_folds", True), ("a_fold3", True), ("a_fold0", False), ("folds_a", False)],
)
def test_names_of_folds_and_of_their_folder_are_reserved(name, is_taken):
    assert names.is_reserved(name) == is_taken


def test_texts_that_no_file_can_hold():
    names.check_text("x" * 9, "here", "shorten it", 9)
    for text in ("x" * 10, "a\0", "\ud800"):
        with refused("here", do="shorten it"):
            names.check_text(text, "here", "shorten it", 9)
