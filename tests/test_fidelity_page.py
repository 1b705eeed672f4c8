"""Where each table and figure of the papers is, from contents made by hand."""

from benchmark.boards.claims_file import PageContents, SeasonClaims
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.fidelity_page import drawn_table


def test_tables_and_figures_stand_with_the_pages_that_show_them():
    """A figure by its name, a gallery by a row of it."""
    pages = [
        PageContents(
            path="papers/cyclematch.md",
            tables={"cyclematch": ["6.2"]},
            figures=["spaces"],
        ),
        PageContents(path="papers/scan.md", tables={"scan": ["1"]}),
        PageContents(path="datasets/d.md", figures=["vse-found", "words"]),
    ]
    gallery = PageContents(path="datasets/d.md", figures=["cyclematch_adaptive-found"])
    seasons = [
        SeasonClaims(season="a", title="A", datasets=[], pages=pages),
        SeasonClaims(season="b", title="B", datasets=[], pages=[gallery]),
    ]
    table = drawn_table(seasons).splitlines()[2:]
    lines = [line.strip("| ").split(" | ") for line in table]
    found = {(paper, number): place for paper, number, _, place in lines}
    assert len(found) == len(lines)
    for paper in papers().values():
        assert all(
            any(number == f"table {n}" for _, number in found) for n in paper.tables
        )
    assert found["cyclematch", "table 6.2"] == "[a](a/papers/cyclematch.md)"
    assert found["cyclematch", "table 6.3"] == "on no published page"
    assert found["scan", "table 1"] == "[a](a/papers/scan.md)"
    assert found["instance_loss", "table 1"] == "on no published page"
    assert found["cyclematch", "figure 6.4"] == "[a](a/papers/cyclematch.md)"
    assert found["cyclematch", "figure 6.8"] == "[b](b/datasets/d.md)"
    assert found["instance_loss", "figure 11"] == "[a](a/datasets/d.md)"
    assert found["cyclematch", "table 6.1"].endswith("no result")
