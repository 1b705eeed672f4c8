"""The pages over all seasons, from claims.json files made by hand."""

from pathlib import Path

import pytest
from made_ledger import CLAIM, judged, row, season
from refusals import refused
from report_readers import assert_contained, shown_table
from report_seasons import contents

from benchmark.boards.claim_ledger import Group
from benchmark.commands.ledger import ROOT, write_ledger
from benchmark.core.files import write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.ledger_pages import claim_table, leaders, statement

COMMITTED = Path(__file__).parent.parent / "reports"


def test_a_sentence_on_other_data_is_the_same_comparison_here():
    elsewhere = judged("holds").model_copy(update={"is_elsewhere": True})
    assert statement(row(elsewhere)) == f"Said of other data: {CLAIM.statement}"
    assert statement(row(elsewhere, judged("holds"))) == CLAIM.statement
    assert statement(row(judged("not run"))) == CLAIM.statement


def test_a_table_has_a_row_per_finding():
    open_ = judged("undecided", seeds=3)
    unknown = judged("holds", low=None, high=None, pairs=2)
    first, second = claim_table([row(open_, unknown)]).frame.to_dict("records")
    assert first["claim"] == CLAIM.statement and second["claim"] == ""
    shown = first["difference, 95% interval"]
    assert (shown.value, shown.low, shown.high) == (2.0, 1.0, 3.0)
    assert second["difference, 95% interval"].low is None
    assert (first["data"], str(first["printed"])) == ("Data of s0 (s0)", "+4.0")
    assert second["data"] == "Data of s1 (s1): A against B"
    assert (first["needed"], second["needed"]) == ("3 more seeds", "")
    assert (first["verdict"], second["verdict"]) == ("undecided", "holds")


def test_the_leader_stands_with_its_interval_and_how_many_rivals():
    told = season("s", judged("holds"))
    (line,) = leaders([told]).frame.to_dict("records")
    leader = told.datasets[0].leaders[0]
    assert line["best row"] == leader.best.title and line["of rows"] == len(leader.places)
    assert line["cannot be told apart"] == len(leader.rivals)
    level = line["level, 95% interval"]
    assert (level.value, level.low, level.high) == (leader.best.mean, 190.0, 210.0)


class TestPages:
    @pytest.fixture
    def written(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        for told in (season("one", judged("holds")), season("two", judged("reversed"))):
            write_json(ROOT / told.season / "claims.json", told.model_dump(mode="json"))
        return write_ledger()

    def test_a_reader_finds_counts_surprises_and_what_is_open(self, written):
        text = written.read_text()
        total = sum(len(paper.claims) for paper in papers().values())
        assert f"Of {total} claims of the papers 1 were tested here. **0 hold**" in text
        assert f"mixed (holds in 1 of 2 tests): **{CLAIM.statement}**" in text
        assert "Data of one (one) holds, rsum +2.0" in text
        key = {r["group"]: int(r["claims"]) for r in shown_table(text, "claims").records()}
        assert key == dict.fromkeys(Group, 0) | {Group.MIXED: 1, Group.UNTESTED: total - 1}
        for path in ROOT.glob("*.md"):
            assert_contained(path)

    def test_the_same_files_give_the_same_bytes(self, written):
        first = contents(ROOT)
        assert {f"reports/{name}" for name in ("papers.svg", "ledger.svg", "fidelity.md")} <= {
            *first
        }
        write_ledger()
        assert contents(ROOT) == first

    def test_without_any_season_the_command_is_named(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with refused(do="rematch report"):
            write_ledger()


def test_the_committed_ledger_is_what_the_committed_reports_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in COMMITTED.glob("*/claims.json"):
        target = ROOT / path.parent.name / path.name
        target.parent.mkdir(parents=True)
        target.write_bytes(path.read_bytes())
    write_ledger()
    for name in ("README.md", "fidelity.md", "papers.svg", "ledger.svg"):
        assert (ROOT / name).read_bytes() == (COMMITTED / name).read_bytes(), name
