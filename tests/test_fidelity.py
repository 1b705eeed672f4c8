"""The fidelity notes: there for every method of a paper, complete, and true to its options."""

from dataclasses import fields
from pathlib import Path

import pytest

import methods
from benchmark.core.errors import UserError
from benchmark.papers.fidelity_notes import fidelity, read_entries
from benchmark.papers.printed_tables import papers
from benchmark.season.presets import presets

NOTED = sorted(set(fidelity()) - {"protocol"})
ENTRY = "{topic: Loss, paper: Eq. 1, code: not published, ours: as printed}"


def written(tmp_path, *entries: str):
    path = tmp_path / "mine.yaml"
    path.write_text("entries:\n" + "".join(f"  - {entry}\n" for entry in entries))
    return path


def methods_of_papers() -> set[str]:
    """The methods with a preset in a table or a claim of a paper."""
    method_of = {preset: method for preset, (method, _) in presets().items()}
    named = {row.preset for p in papers().values() for t in p.tables.values() for row in t.rows}
    named |= {preset for p in papers().values() for claim in p.claims for preset in claim.presets}
    return {method_of[preset] for preset in named - {None}}


def test_every_method_of_a_paper_has_its_entries_and_so_has_the_protocol():
    """A method of your own needs none."""
    assert methods_of_papers() | {"protocol"} <= set(fidelity())
    assert set(NOTED) <= set(methods.names())
    for name, entries in fidelity().items():
        assert len(entries) >= 10, name


def test_the_methods_of_the_papers_are_all_that_are_here():
    assert methods_of_papers() >= {
        *("cca", "cyclematch", "dual_path", "scan", "two_branch_embedding"),
        *("two_branch_phrase_embedding", "two_branch_phrase_similarity", "two_branch_similarity"),
    }


@pytest.mark.parametrize("name", NOTED)
def test_an_option_is_one_of_the_method(name):
    options_of_config = {field.name for field in fields(methods.load(name).Config)}
    options = {entry.option for entry in fidelity()[name] if entry.option}
    assert options and options <= options_of_config


def test_the_protocol_has_no_options_of_methods():
    assert not any(entry.option for entry in fidelity()["protocol"])


@pytest.mark.parametrize("name", NOTED)
def test_what_a_config_marks_official_or_assumed_has_an_entry(name):
    """Comments of Config say of every option where it comes from."""
    lines = Path(methods.load(name).__file__).read_text(encoding="utf-8").splitlines()
    marked = {
        line.split(":")[0].strip()
        for line in lines
        if line.startswith("    ") and ("# assumed" in line or "official" in line.partition("#")[2])
    }
    options_of_config = {field.name for field in fields(methods.load(name).Config)}
    covered = {entry.option for entry in fidelity()[name]}
    assert marked & options_of_config
    assert marked & options_of_config <= covered


def test_what_is_assumed_says_so_where_a_paper_is_silent():
    for name, entries in fidelity().items():
        for entry in entries:
            if entry.paper == "not stated":
                assert entry.why, f"{name}: {entry.topic}"


def test_entries_are_read_in_their_order(tmp_path):
    path = written(tmp_path, ENTRY, ENTRY.replace("Loss", "Batch"))
    entries = read_entries(path)
    assert [entry.topic for entry in entries] == ["Loss", "Batch"]
    assert (entries[0].why, entries[0].option) == ("", None)


def test_an_unknown_key_is_refused_with_its_place(tmp_path):
    path = written(tmp_path, ENTRY, ENTRY.replace("Loss", "Batch").replace("code:", "codes:"))
    with pytest.raises(UserError, match=r"mine\.yaml: entry 2 \(Batch\): code: .* found nothing"):
        read_entries(path)
    path = written(tmp_path, ENTRY[:-1] + ", colour: red}")
    with pytest.raises(UserError, match=r"entry 1 \(Loss\): colour: expected one of code, option"):
        read_entries(path)


def test_an_entry_without_a_topic_is_refused_with_its_place(tmp_path):
    path = written(tmp_path, ENTRY.replace("topic: Loss, ", ""))
    with pytest.raises(UserError, match=r"entry 1 \(without a topic\): topic: .* found nothing"):
        read_entries(path)


def test_a_topic_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(UserError) as error:
        read_entries(written(tmp_path, ENTRY, ENTRY))
    assert error.value.where.endswith("mine.yaml: entry 2 (Loss)")
    assert (error.value.expected, error.value.do) == ("every topic once", "join the two entries")


def test_a_cell_that_no_table_can_hold_is_refused(tmp_path):
    path = written(tmp_path, ENTRY.replace("as printed", "x" * 161))
    with pytest.raises(UserError, match=r"entry 1 \(Loss\): ours: .*at most 160"):
        read_entries(path)


def test_a_file_without_entries_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("entries: []\n")
    with pytest.raises(UserError, match=r"mine\.yaml: entries: "):
        read_entries(path)
