"""Where each table and figure of the papers is, from contents made by hand. The notes on
fidelity: there for every method of a paper, complete, and true to its options."""

from dataclasses import fields
from pathlib import Path

import pytest

from benchmark.boards.claims_file import PageContents, SeasonClaims
from benchmark.contracts import methods
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.report.pages.fidelity_page import drawn_table
from benchmark.season.plugins import presets

NOTED = sorted(set(fidelity()) - {"protocol"})


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


# Notes --------------------------------------------------------------------------------


def methods_of_papers() -> set[str]:
    method_of = {preset: method for preset, (method, _) in presets().items()}
    named = {
        row.preset
        for p in papers().values()
        for t in p.tables.values()
        for row in t.rows
    }
    named |= {
        preset
        for p in papers().values()
        for claim in p.claims
        for preset in claim.presets
    }
    return {method_of[preset] for preset in named - {None}}


def test_every_method_of_a_paper_has_its_entries_and_so_has_the_protocol():
    """A method of your own needs none."""
    assert methods_of_papers() | {"protocol"} <= set(fidelity())
    assert set(NOTED) <= set(methods.names())
    for name, entries in fidelity().items():
        assert len(entries) >= 10, name


@pytest.mark.parametrize("name", NOTED)
def test_an_option_is_one_of_the_method(name):
    options_of_config = {field.name for field in fields(methods.load(name).Config)}
    options = {entry.option for entry in fidelity()[name] if entry.option}
    assert options and options <= options_of_config


@pytest.mark.parametrize("name", NOTED)
def test_what_a_config_marks_official_or_assumed_has_an_entry(name):
    """Comments of Config say of every option where it comes from."""
    lines = Path(methods.load(name).__file__).read_text(encoding="utf-8").splitlines()
    marked = {
        line.split(":")[0].strip()
        for line in lines
        if line.startswith("    ")
        and ("# assumed" in line or "official" in line.partition("#")[2])
    }
    options_of_config = {field.name for field in fields(methods.load(name).Config)}
    covered = {entry.option for entry in fidelity()[name]}
    assert marked & options_of_config
    assert marked & options_of_config <= covered
