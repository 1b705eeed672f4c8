"""The pages over all seasons, from claims.json files made by hand."""

import shutil
from pathlib import Path

import pytest
from made_boards import judged, season
from refusals import holds, refused
from report_readers import assert_hostile_text_is_text
from report_seasons import contents

from benchmark.boards.claim_ledger import ledger
from benchmark.commands.ledger import BROUGHT, END, FRONT, ROOT, START, write_ledger
from benchmark.core.files import write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.ledger_pages import (
    anchor,
)

COMMITTED = Path(__file__).parent.parent / "reports"


class TestPages:
    @pytest.fixture
    def written(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        against = judged("reversed", difference=-4.0, low=-5.0, high=-3.0)
        for told in (season("one", judged("holds")), season("two", against)):
            write_json(ROOT / told.season / "claims.json", told.model_dump(mode="json"))
        return write_ledger()

    def test_a_reader_finds_counts_effects_and_evidence(self, written):
        text = written.read_text()
        said = [
            (name, claim) for name, paper in papers().items() for claim in paper.claims
        ]
        total = sum(claim.uncounted == "" for _, claim in said)
        head = next(line for line in text.splitlines() if f"{total} claims" in line)
        assert holds(head, f"{len(papers())} papers", "1 were tested")
        assert "**1 depends on the set-up**" in text
        (line,) = (line for line in text.splitlines() if "](#scan):" in line)
        assert holds(line, "20 claims", "1 tested", "1 depends")
        for of in ledger([]):
            assert text.count(f'<a id="{anchor(of)}"></a>') == 1
        assert text.count("](#") == 2 + len(papers())  # a claim was tested; seasons
        for path in ROOT.glob("*.md"):
            assert_hostile_text_is_text(path)

    def test_the_same_files_give_the_same_bytes(self, written):
        first = contents(ROOT)
        assert {
            f"reports/{name}" for name in ("papers.svg", "ledger.svg", "fidelity.md")
        } <= {*first}
        write_ledger()
        assert contents(ROOT) == first

    def test_without_any_season_the_command_is_named(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with refused(do="rematch report"):
            write_ledger()


def test_the_committed_ledger_is_what_the_committed_reports_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in ("claims.json", "papers/evidence.parquet"):
        for path in COMMITTED.glob(f"*/{kind}"):
            target = ROOT / path.relative_to(COMMITTED)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    brought = COMMITTED.parent / BROUGHT
    if brought.is_dir():
        shutil.copytree(brought, BROUGHT)
    before, rest = (COMMITTED.parent / FRONT).read_text().split(START)
    FRONT.write_text(before + START + "old findings\n" + END + rest.split(END)[1])
    write_ledger()
    assert FRONT.read_bytes() == (COMMITTED.parent / FRONT).read_bytes()
    for name in ("README.md", "fidelity.md", "papers.svg", "ledger.svg"):
        assert (ROOT / name).read_bytes() == (COMMITTED / name).read_bytes(), name


class TestBroughtClaims:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        told = season("one", judged("holds"))
        write_json(ROOT / told.season / "claims.json", told.model_dump(mode="json"))
        folder = BROUGHT / "ours"
        folder.mkdir(parents=True)
        for name, hits in (("better", 300), ("worse", 240)):
            rows = [f"{query},{int(query < hits)}" for query in range(400)]
            text = "\n".join(["query,value", *rows])
            (folder / f"{name}.csv").write_text(text)
        return folder

    def write(self, folder: Path, better: str) -> None:
        results = f"results: {{better: {better}, worse: worse.csv}}"
        claims = "claims: [{better: better, than: worse, statement: '<b>Ours</b>'}]"
        (folder / "claims.yaml").write_text(f"title: Ours\n{results}\n{claims}\n")

    def test_they_are_judged_and_stand_apart(self, folder):
        self.write(folder, "better.csv")
        text = write_ledger().read_text()
        section = text.partition("## Claims that others brought")[2]
        assert holds(section, "### Ours", "better beats worse", "holds")
        assert_hostile_text_is_text(ROOT / "README.md")
        assert "<b>" not in text

    @pytest.mark.parametrize("path", ["../outside.csv", "/etc/hosts", "link.csv"])
    def test_results_elsewhere_are_refused(self, folder, path):
        (folder.parent / "outside.csv").write_text("query,value\n1,1\n")
        (folder / "link.csv").symlink_to("../outside.csv")
        self.write(folder, path)
        with refused(expected="inside the folder"):
            write_ledger()

    @pytest.mark.parametrize("path", ["link.csv:p", "better.csv,{}", "{},better.csv"])
    def test_no_other_spelling_leads_out_of_the_folder(self, folder, path, tmp_path):
        outside = tmp_path / "outside.csv"
        outside.write_text((folder / "better.csv").read_text())
        (folder / "link.csv").symlink_to(outside)
        self.write(folder, f'"{path.format(outside)}"')
        with refused("results.better"):
            write_ledger()

    def test_a_front_page_without_an_end_of_findings_is_left_alone(self, folder):
        text = f"# Front\n{START}Words that nobody wrote here.\n"
        FRONT.write_text(text)
        write_ledger()
        assert FRONT.read_text() == text
