"""The fidelity notes: there for every method of a paper, complete, and true to its
options."""

from dataclasses import fields
from pathlib import Path

import pytest

from benchmark.contracts import methods
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.season.plugins import presets

NOTED = sorted(set(fidelity()) - {"protocol"})


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
