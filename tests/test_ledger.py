"""The ledger of claims over all seasons, from claims.json files made by hand."""

import json
from pathlib import Path

import pytest
from report_readers import assert_contained, shown_table, shown_tables
from report_seasons import contents

from benchmark.analysis.claim_ledger import Group, LedgerRow, ledger
from benchmark.analysis.season_claims import (
    Compared,
    Judged,
    Leader,
    Measured,
    SeasonClaims,
    read_seasons,
)
from benchmark.analysis.verdict_rules import Conclusion, Size
from benchmark.commands.ledger import ROOT, write_ledger
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.ledger_figure import unit_of
from benchmark.report.pages.ledger_pages import claim_table, leader_line

CLAIM = papers()["scan"].claims[0]
COMMITTED = Path(__file__).parent.parent / "reports"


def compared(**facts: object) -> Compared:
    """2 points of 4 that are printed."""
    known = {
        "first": "A",
        "second": "B",
        "metric": "rsum",
        "decimals": 1,
        "difference": 2.0,
        "low": 1.0,
        "high": 3.0,
        "is_of_test_set": False,
        "printed": 4.0,
        "margin": 1.5,
        "size": Size.SMALLER,
    }
    return Compared(**(known | facts))


def judged(conclusion: str, claim: str = CLAIM.id, /, **facts: object) -> Judged:
    is_run = conclusion != Conclusion.NOT_RUN
    return Judged(
        paper="scan",
        id=claim,
        conclusion=Conclusion(conclusion),
        reason="the reason",
        is_elsewhere=False,
        cautions=["rising: A"] if is_run else [],
        compared=compared(**facts) if is_run else None,
    )


def season(name: str, *claims: Judged) -> SeasonClaims:
    leader = Leader(
        task="retrieval",
        title="A | b",
        metric="rsum",
        mean=200.0,
        low=190.0,
        high=210.0,
        rivals=["B"],
        rows=4,
        unconverged=2,
        few_seeds=0,
        lacks=["extra input"],
    )
    data = {"dataset": "d", "title": f"Data of {name}", "images": 1000}
    measured = Measured(**data, leaders=[leader], claims=list(claims))
    facts = {"title": f"Season {name}", "commits": ["abc"], "versions": ["2.0"]}
    return SeasonClaims(season=name, datasets=[measured], **facts)


def row(*claims: Judged) -> LedgerRow:
    """The first claim of SCAN, judged so by one season after the other."""
    told = [season(f"s{number}", claim) for number, claim in enumerate(claims)]
    return next(r for r in ledger(told) if (r.paper, r.claim.id) == ("scan", CLAIM.id))


@pytest.mark.parametrize(
    ("conclusions", "group"),
    [
        (["not run"], "untested"),
        (["undecided", "not run"], "undecided"),
        (["holds", "undecided"], "replicated"),
        (["holds", "reversed"], "mixed"),
        (["holds", "no difference beyond the margin"], "mixed"),
        (["undecided", "no difference beyond the margin"], "null"),
        (["no difference beyond the margin", "reversed"], "reversed"),
        (["does not hold: better"], "reversed"),
        (["does not hold: worse", "undecided"], "reversed"),
    ],
)
def test_the_group_follows_from_all_findings(conclusions, group):
    sizes = {"size": Size.AS_PRINTED}
    assert row(*(judged(word, **sizes) for word in conclusions)).group == group


def test_smaller_is_what_is_smaller_wherever_it_was_tested():
    assert row(judged("holds"), judged("holds")).group == Group.SMALLER
    mixed = judged("holds"), judged("holds", size=Size.AS_PRINTED)
    assert row(*mixed).group == Group.REPLICATED


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ([{}], ""),
        ([{"seeds": 1}], "1 more seed"),
        ([{"seeds": 12, "images": 900}, {"seeds": 3}], "3 more seeds"),
        ([{"images": 51_201}, {}], "52,000 images"),
    ],
)
def test_what_would_decide_it_is_the_least_of_all_datasets(needs, words):
    assert row(*(judged("undecided", **facts) for facts in needs)).needs == words


def test_every_claim_has_a_row_once_and_groups_are_in_order():
    rows = ledger([season("s", judged("holds"))])
    told = [(r.paper, r.claim.id) for r in rows]
    assert sorted(told) == sorted((n, c.id) for n, p in papers().items() for c in p.claims)
    order = [list(Group).index(r.group) for r in rows]
    assert order == sorted(order) and len(set(order)) == 2


def test_a_printed_difference_is_drawn_as_one_and_a_denied_one_by_its_margin():
    asserted = row(judged("holds"))
    assert unit_of(asserted, compared(printed=-4.0)) == 4.0
    assert unit_of(asserted, compared(printed=None)) == 1.5
    assert unit_of(asserted, compared(printed=None, margin=0.0, difference=-7.0)) == 7.0
    denied = next(r for r in ledger([]) if r.claim.kind == "alike")
    assert unit_of(denied, compared()) == 1.5


def test_a_table_has_a_row_per_finding():
    table = claim_table([row(judged("undecided", seeds=3), judged("holds", low=None, high=None))])
    first, second = (dict(zip(table.heads, r, strict=True)) for r in table.rows)
    assert first["claim"] == CLAIM.statement and second["claim"] == ""
    assert first["difference, 95% interval"] == "rsum +2.0 [+1.0,\N{NO-BREAK SPACE}+3.0]"
    assert second["difference, 95% interval"] == "rsum +2.0"
    assert (first["data"], first["printed"]) == ("Data of s0 (s0)", "+4.0")


def test_the_leader_stands_with_rivals_and_what_its_board_lacks():
    (leader,) = season("s").datasets[0].leaders
    assert leader_line(leader) == (
        "A | b, rsum 200.0 [190.0,\N{NO-BREAK SPACE}210.0]; 1 of 3 others cannot be told apart "
        "from it. Not to be trusted as a replay: extra input (2 of 4 rows not converged)."
    )
    nothing = {"rivals": [], "unconverged": 0, "low": None, "high": None, "lacks": []}
    alone = leader.model_copy(update=nothing)
    assert leader_line(alone) == "A | b, rsum 200.0; all 3 others are distinguishable from it."


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
        assert f"Of {total} claims of the papers, 1 were tested." in text
        assert f"mixed: **{CLAIM.statement}**" in text
        assert "Data of one (one): rsum +2.0" in text
        assert '1 tested claims rest on presets marked "rising"' in text
        counts = shown_table(text, "mixed").records()
        assert [r["mixed"] for r in counts] == ["0", "0", "1", "0"]
        assert sum(int(r["untested"]) for r in counts) == total - 1
        for path in ROOT.glob("*.md"):
            assert_contained(path)

    def test_the_same_files_give_the_same_bytes(self, written):
        first = contents(ROOT)
        assert {"reports/ledger.png", "reports/ledger.svg", "reports/fidelity.md"} <= set(first)
        write_ledger()
        assert contents(ROOT) == first

    def test_fidelity_has_a_key_to_papers_and_code(self, written):
        key = shown_tables((ROOT / "fidelity.md").read_text())[0]
        assert key.heads == ["method", "paper", "code of the authors"]
        methods = {r[0]: r[2] for r in key.rows}
        assert methods["scan"] == "repository" and methods["cyclematch"] == "not published"
        assert "github.com/kuanghuei/SCAN" in (ROOT / "fidelity.md").read_text()

    def test_without_any_season_the_command_is_named(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UserError, match="python -m benchmark report"):
            write_ledger()

    def test_a_file_that_is_none_names_itself(self, written):
        path = ROOT / "two/claims.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"season": 3}))
        with pytest.raises(UserError, match="two/claims.json"):
            read_seasons(ROOT)


@pytest.mark.skipif(
    not (COMMITTED / "README.md").is_file(), reason="no ledger is committed: run the command"
)
def test_the_committed_ledger_is_what_the_committed_reports_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in COMMITTED.glob("*/claims.json"):
        target = ROOT / path.parent.name / path.name
        target.parent.mkdir(parents=True)
        target.write_bytes(path.read_bytes())
    write_ledger()
    for name in ("README.md", "fidelity.md", "ledger.svg"):
        assert (ROOT / name).read_bytes() == (COMMITTED / name).read_bytes(), name
