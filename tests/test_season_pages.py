"""Pages of a season."""

import sys
from pathlib import Path

import pytest
from report_seasons import enter_played_season

from benchmark.boards.season_boards import read_boards
from benchmark.papers.printed_tables import papers
from benchmark.report import pages as page_folder
from benchmark.report.figure_listing import FigureFolder
from benchmark.report.pages.season_pages import SeasonPages, season_pages
from benchmark.season.parameters import Params

ADDED = """\
from benchmark.report.pages import Page


def pages(inputs):
    for board in inputs.boards:
        path = f"datasets/{board.dataset}-added.md"
        yield Page(path=path, text="New.\\n", title=board.title, about="what is new")
"""


@pytest.fixture
def params(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.fixture
def pages(params, tmp_path) -> SeasonPages:
    figures = FigureFolder(tmp_path / "figures")
    return season_pages(params, read_boards(params), figures)


def test_there_is_a_page_for_each_dataset_and_each_paper_that_was_measured(pages):
    measured = ("scan", "two_branch")
    expected = {"README.md", "claims.md", "datasets/gated.md", "datasets/open.md"}
    expected |= {f"papers/{name}.md" for name in measured}
    assert pages.texts.keys() == expected
    assert set(measured) < papers().keys()


def test_contents_name_the_tables_that_pages_of_papers_show(pages):
    tables = {page.path: page.tables for page in pages.contents}
    for name in ("scan", "two_branch"):
        numbers = tables[f"papers/{name}.md"][name]
        assert numbers and set(numbers) <= papers()[name].tables.keys()
        for number in numbers:
            title = papers()[name].tables[number].title.split(":")[0]
            assert title in pages.texts[f"papers/{name}.md"].replace("\\", "")


def test_a_file_of_the_folder_adds_a_page_that_the_first_page_links_to(
    params, tmp_path, monkeypatch
):
    Path("more").mkdir()
    Path("more/added_page.py").write_text(ADDED)
    monkeypatch.setattr(page_folder, "__path__", [*page_folder.__path__, "more"])
    boards = read_boards(params)
    try:
        made = season_pages(params, boards, FigureFolder(tmp_path / "figures"))
    finally:
        sys.modules.pop(f"{page_folder.__name__}.added_page", None)
    for board in boards:
        path = f"datasets/{board.dataset}-added.md"
        assert made.texts[path] == "New.\n"
        assert f"]({path})" in made.texts["README.md"]
    assert "- What is new: [" in made.texts["README.md"]


def test_two_pages_of_one_path_are_refused(params, tmp_path, monkeypatch):
    more = tmp_path / "twice"
    more.mkdir()
    (more / "added_page.py").write_text(ADDED.replace("-added", ""))
    monkeypatch.setattr(page_folder, "__path__", [*page_folder.__path__, str(more)])
    boards = read_boards(params)
    try:
        with pytest.raises(ValueError, match="datasets/"):
            season_pages(params, boards, FigureFolder(tmp_path / "figures"))
    finally:
        sys.modules.pop(f"{page_folder.__name__}.added_page", None)
