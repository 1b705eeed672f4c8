"""Which page shows what of the papers, as the ledger reads it."""

import pytest
from refusals import refused

from benchmark.core.files import write_json
from benchmark.report.page_contents import FILE, PageContents, read_contents


@pytest.mark.parametrize(
    ("pattern", "is_drawn"),
    [
        ("words", True),
        (r"cyclematch\w*-found", True),
        ("word", False),
        (r"match\w*-found", False),
        ("", False),
    ],
)
def test_a_pattern_matches_a_whole_name(pattern, is_drawn):
    page = PageContents(path="p.md", figures=["words", "cyclematch_adaptive-found"])
    assert page.draws(pattern) == is_drawn


def test_a_table_is_of_one_paper():
    page = PageContents(path="p.md", tables={"scan": ["1"]})
    assert page.has("scan", "1")
    assert not page.has("scan", "2") and not page.has("cyclematch", "1")


class TestFiles:
    def test_seasons_come_by_name_and_those_without_the_file_are_left_out(
        self, tmp_path
    ):
        (tmp_path / "none").mkdir()
        for season in ("b", "a"):
            pages = [{"path": "p.md", "tables": {}, "figures": ["words"]}]
            content = {"season": season, "pages": pages}
            write_json(tmp_path / season / FILE, content)
        seasons = read_contents(tmp_path)
        assert [season.season for season in seasons] == ["a", "b"]
        assert seasons[0].pages == [PageContents(path="p.md", figures=["words"])]

    def test_another_file_is_refused_with_the_command_that_writes_it(self, tmp_path):
        write_json(tmp_path / "a" / FILE, {"season": "a"})
        with refused(where=FILE, do="rematch report --season a"):
            read_contents(tmp_path)
