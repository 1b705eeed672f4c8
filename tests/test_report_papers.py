"""The pages of papers, claims and fidelity, against the YAML files that they are made from."""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

import pytest
import yaml
from report_readers import Shown, on_readme, shown_table, shown_tables
from report_seasons import (
    DATASETS,
    FOLDER,
    FUSION,
    MEMBERS,
    PAPERS,
    PLUS_MINUS,
    PRESETS,
    cells,
    conclude_from_few,
    draw_nothing,
    enter_played_season,
    enter_reported_season,
    lose,
    play,
    prepare,
    record_of,
    season,
)

from benchmark.analysis import boards, claims, significance
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import About, Paper, Row, papers
from benchmark.protocol import METRICS
from benchmark.report import __main__ as report
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures import forest
from benchmark.report.markdown import escaped
from benchmark.report.pages.paper_tables import paper_tables
from benchmark.report.table_formats import as_markdown
from benchmark.season.parameters import Params

ELSEWHERE = "Said of other data: "
RECALLS = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """A season with every record, in a folder of its own; its report draws no figures."""
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.fixture
def reported(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """As `played`, after `write_report` and `write_ledger`."""
    return enter_reported_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_fidelity_sets_paper_code_and_ours_side_by_side(reported):
    text = (FOLDER.parent / "fidelity.md").read_text()
    by_method = {t.heading: t for t in shown_tables(text) if "paper" in t.heads}
    folder = PAPERS.parent / "fidelity"
    for path in folder.glob("*.yaml"):
        entries = yaml.safe_load(path.read_text())["entries"]
        rows = by_method[path.stem].records()
        topics = [" ".join(entry["topic"].split()) for entry in entries]
        assert [row["topic"] for row in rows] == topics
        for row, entry in zip(rows, entries, strict=True):
            assert row["ours"] == " ".join(entry["ours"].split())


class TestPaperPages:
    """The papers' tables against the YAML files, read here as what they are: YAML."""

    def of(self, name: str, paper: Paper | None = None) -> list[Shown]:
        """The whole tables, as they are exported."""
        by_place = paper_tables(paper or papers()[name], boards.read_boards(season())).values()
        tables = [table for of_number in by_place for table in of_number.values()]
        text = "\n".join(f"# {escaped(t.title)}\n\n{as_markdown(t)}" for t in tables)
        return shown_tables(text)

    def test_all_tables_are_there_with_every_row_as_printed(self, played):
        counted = 0
        for path in PAPERS.glob("*.yaml"):
            shown = iter(self.of(path.stem))
            for number, source in yaml.safe_load(path.read_text())["tables"].items():
                counted += 1
                for place in places(source):
                    self.check(next(shown), number, source, place)
            assert next(shown, None) is None
        assert counted == 23

    def check(self, shown: Shown, number: str, table: dict, place: str) -> None:
        assert re.search(rf"\b{re.escape(number)}\b", shown.heading)
        assert place in f"{shown.heading} {shown.lead}"
        expected = [row for row in table["rows"] if place in row["numbers"]]
        printed = [row for row in shown.records() if row["numbers of"] == "paper"]
        assert [row["row"] for row in printed] == [
            " ".join(row["label"].split()) for row in expected
        ]
        for record, row in zip(printed, expected, strict=True):
            assert record["setting"] == " ".join(row.get("setting", "").split())
            assert record["remark"] == " ".join(row.get("note", "").split())
            numbers = dict(zip(table["metrics"], row["numbers"][place], strict=True))
            for metric, value in numbers.items():
                entry = record[METRICS[metric].heading]
                assert entry == "-" if value is None else float(entry) == value
            if set(RECALLS) <= set(numbers):
                terms = [numbers[metric] for metric in RECALLS]
                total = "-" if None in terms else f"{sum(terms):.1f}"
                assert record["rsum"] == total

    def test_own_rows_have_what_was_measured_here_or_a_reason(self, played):
        lose("gated", "scan_t2i_avg", 0, "diverged")
        lose("gated", "scan_t2i_avg", 1, "diverged")
        kinds = defaultdict(int)
        for path in PAPERS.glob("*.yaml"):
            shown = iter(self.of(path.stem))
            for source in yaml.safe_load(path.read_text())["tables"].values():
                for place in places(source):
                    rows = [row for row in source["rows"] if place in row["numbers"]]
                    for row, measured in zip(rows, self.below(next(shown)), strict=True):
                        kinds[self.kind(row, measured)] += 1
        assert min(kinds.values()) > 0
        assert set(kinds) == {"of others", "not in the season", "measured", "lost"}

    def below(self, shown: Shown) -> list[list[dict[str, str]]]:
        """The rows under each printed one."""
        below = []
        for row in shown.records():
            if row["numbers of"] == "paper":
                below.append([])
            else:
                below[-1].append(row)
        return below

    def kind(self, row: dict, measured: list[dict[str, str]]) -> str:
        """What stands under a printed row, having checked that it does."""
        numbers = [[e for head, e in other.items() if head in HEADS] for other in measured]
        if "preset" not in row:
            assert measured == []
            return "of others"
        here = [other for other in measured if other["numbers of"].startswith("here: ")]
        assert [other["numbers of"][6:] for other in here] == ["Dataset gated", "Dataset open"]
        if row["preset"] not in PRESETS:
            assert {other["remark"] for other in measured} == {"not played in this season"}
            assert {entry for entries in numbers for entry in entries} == {"-"}
            return "not in the season"
        assert "2 seeds" in here[1]["remark"] and "not comparable" in here[1]["remark"]
        if row["preset"] == "scan_t2i_avg":
            assert here[0]["remark"] == "failed: diverged"
            assert set(numbers[0]) == {"-"}
            return "lost"
        return "measured"

    def test_numbers_of_another_dataset_are_marked(self, played):
        table = self.of("scan")[0]
        assert "Table 1:" in table.heading
        rows = table.records()
        start = [row["row"] for row in rows].index("SCAN t-i AVG + i-t LSE")
        printed, gated, _, open_, _ = rows[start : start + 5]
        assert list(printed.values())[3:10] == [
            *("67.4", "90.3", "95.8", "48.6", "77.7", "85.2", "465.0")
        ]
        for row in (gated, open_):
            assert "not comparable: other dataset, other features" in row["remark"]
        records = [record_of(FUSION, seed) for seed in (0, 1)]
        mean = fmean(record["metrics"]["t2i_r5"] for record in records)
        assert open_["t2i R@5"].startswith(f"{mean:.1f} \N{PLUS-MINUS SIGN}")

    def test_what_is_not_printed_is_a_dash(self, played):
        """A row may be of the validation split, of our dataset, or with recalls left out."""
        some = {"numbers": {"flickr30k/test": [10.5, *[None] * 4, 60]}}
        full = {"numbers": {"open/val": [10.0] * 6, "open/test": [10.0] * 6}}
        rows = [
            Row(label="some", preset=MEMBERS[0], **some),
            Row.model_construct(label="full", preset=MEMBERS[0], **full),
        ]
        table = printed_tables.Table.model_construct(title="t", metrics=RECALLS, rows=rows)
        splits = {"open": "made"}
        about = About(title="t", authors="a", year=2018, venue="v", source="s", splits=splits)
        paper = Paper.model_construct(paper=about, tables={"1": table}, claims=[])
        flickr, validation, test = self.of("made", paper)
        assert list(flickr.row("some").values())[3:10] == ["10.5", *["-"] * 4, "60.0", "-"]
        assert list(validation.row("full").values())[3:10] == ["10.0"] * 6 + ["60.0"]
        remarks = [
            next(
                row["remark"] for row in part.records() if row["numbers of"] == "here: Dataset open"
            )
            for part in (flickr, validation, test)
        ]
        assert "not comparable: other dataset, other features" in remarks[0]
        assert "not comparable: other split, other features" in remarks[1]
        assert "not comparable: other features" in remarks[2]


def places(source: dict) -> list[str]:
    """Where a table of a YAML file has numbers of."""
    return list(dict.fromkeys(place for row in source["rows"] for place in row["numbers"]))


HEADS = {metric.heading for metric in METRICS.values()}


QUALITY = {
    "scan_i2t_avg": 0.45,
    "scan_i2t_max": 0.45,  # and as long a name: the same scores
    "scan_i2t_lse": -1.0,
    "scan_all_negatives": -1.0,
}


@pytest.fixture(scope="module")
def claimed(tmp_path_factory) -> Path:
    """The folder of a season with three seeds of presets of QUALITY, and its report."""
    folder = tmp_path_factory.mktemp("claimed")
    params = season(seeds=(0, 1, 2), played=tuple(QUALITY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        conclude_from_few(patch)
        draw_nothing(patch)
        for dataset in DATASETS:
            prepare(dataset)
        for cell in cells(params):
            play(cell, QUALITY[cell.preset])
        report.write_report(params)
    return folder


class TestClaims:
    """Three seeds of presets that hit with most queries, or with none."""

    @pytest.fixture
    def verdicts(self, claimed, monkeypatch) -> Shown:
        """The table of what was tested; the working folder is to read, not to change."""
        monkeypatch.chdir(claimed)
        conclude_from_few(monkeypatch)
        return self.exported("claims")

    def exported(self, name: str) -> Shown:
        params = season(seeds=(0, 1, 2), played=tuple(QUALITY))
        text = report.printed_table(boards.read_boards(params), f"open/{name}", "markdown")
        (table,) = shown_tables(text)
        return table

    def row(self, verdicts: Shown, compared: str) -> dict[str, str]:
        return next(row for row in verdicts.records() if row["compared"] == compared)

    def levels(self, preset: str, metric: str) -> list[float]:
        return [record_of(preset, seed)["metrics"][metric] for seed in (0, 1, 2)]

    def test_a_claim_that_holds_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "SCAN i-t AVG beats SCAN i-t AVG, no hard negatives")
        assert (row["on other images"], row["on this test set"]) == ("holds", "holds")
        assert row["metric"] == "i2t R@1"
        first, second = (self.levels(p, "i2t_r1") for p in ("scan_i2t_avg", "scan_all_negatives"))
        means = [f"{fmean(x):.1f} {PLUS_MINUS}{stdev(x):.1f}" for x in (first, second)]
        assert row["here"] == " against ".join(means)
        assert row["difference"] == f"{fmean(first) - fmean(second):+.1f}"
        assert row["printed"] == "+22.1"  # 67.9 - 45.8
        low, high = map(float, row["95% interval"][1:-1].split(","))
        assert 0 < low < float(row["difference"]) < high
        assert "the interval lies above zero" in row["remark"]
        assert "the difference is larger than printed" in row["remark"]
        assert "scan: Section 4.4, table 4" in row["remark"]

    def test_one_that_is_reversed_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "SCAN i-t LSE beats SCAN i-t MAX")
        assert row["on other images"] == "reversed"
        gap = fmean(self.levels("scan_i2t_lse", "rsum")) - fmean(
            self.levels("scan_i2t_max", "rsum")
        )
        assert (row["metric"], row["difference"]) == ("rsum", f"{gap:+.1f}")
        assert row["printed"] == "+20.8"  # 451.4 - 430.6
        assert float(row["95% interval"][1:-1].split(",")[1]) < 0
        assert "the difference is opposite to printed" in row["remark"]

    def test_one_that_is_undecided_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "SCAN i-t AVG beats SCAN i-t MAX")
        assert row["on other images"] == "undecided"
        numbers = [row[head] for head in ("difference", "p", "p after Holm", "printed")]
        assert numbers == ["+0.0", "1", "1", "+21.6"]
        low, high = map(float, row["95% interval"][1:-1].split(","))
        assert low == -high < -6
        assert "the interval covers zero and reaches beyond 6" in row["remark"]

    def test_p_is_adjusted_for_the_claims_of_the_paper_that_were_judged(self, verdicts):
        rows = verdicts.records()
        assert len(rows) == 5
        raw = [float(row["p"]) for row in rows]
        adjusted = [float(row["p after Holm"]) for row in rows]
        assert adjusted == pytest.approx(significance.holm(raw).tolist(), rel=0.2)

    def test_one_that_was_not_run_stands_with_its_reason(self, verdicts):
        rows = self.exported("claims-not-run").records()
        papers = [yaml.safe_load(path.read_text()) for path in PAPERS.glob("*.yaml")]
        said = [" ".join(c["statement"].split()) for paper in papers for c in paper["claims"]]
        shown = [row["claim"].removeprefix(ELSEWHERE) for row in rows]
        tested = {row["claim"].removeprefix(ELSEWHERE) for row in verdicts.records()}
        assert sorted(shown + sorted(tested)) == sorted(said)
        assert sum(row["claim"].startswith(ELSEWHERE) for row in rows) >= 10
        assert all(row["why it was not run"] for row in rows)
        by_compared = {row["compared"]: row for row in rows}
        row = by_compared["SCAN i-t LSE beats SCAN i-t SUM"]
        assert row["why it was not run"] == "SCAN i-t SUM was not played"
        assert row["printed"] == "451.4 against 446.9"
        unplayed = next(row for row in rows if "Even Sum-Max" in row["claim"])
        assert unplayed["why it was not run"] == "SCO is none of the five methods"

    def test_they_are_counted_everywhere_alike(self, verdicts):
        papers = {path.stem: yaml.safe_load(path.read_text()) for path in PAPERS.glob("*.yaml")}
        total = {name: len(paper["claims"]) for name, paper in papers.items()}
        counts = json.loads((FOLDER / "metrics.json").read_text())["open"]["claims"]
        assert {name: count for name, count in counts.items() if count} == {
            "holds": 3,
            "reversed": 1,
            "undecided": 1,
            "not run": sum(total.values()) - 5,
        }
        counted = "3 hold, 1 is reversed, 1 is undecided, {} were not run"
        for text in (on_readme("open"), (FOLDER / "claims.md").read_text()):
            assert counted.format(sum(total.values()) - 5) in text
        assert len(shown_table((FOLDER / "claims.md").read_text(), "verdict").rows) == 5
        assert not (FOLDER / "papers/two_branch.md").exists()  # nothing of it was measured

    def test_only_what_was_compared_is_in_the_forest(self, verdicts):
        params = season(seeds=(0, 1, 2), played=tuple(QUALITY))
        board = boards.read_boards(params)[0]
        verdicts = claims.verdicts(board)
        not_run = [v for v in verdicts if v.conclusion == Conclusion.NOT_RUN]
        run = [verdict for verdict in verdicts if verdict not in not_run]
        assert len(run) == 5
        (drawn,) = forest.pictures(FigureInputs(board=board, verdicts=verdicts))
        (same,) = forest.pictures(FigureInputs(board=board, verdicts=run))
        assert drawn.figure.get_size_inches().tolist() == same.figure.get_size_inches().tolist()
        assert list(forest.pictures(FigureInputs(board=board, verdicts=not_run))) == []
