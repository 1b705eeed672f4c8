"""Metrics: declared once, measured from ranks, and not missed by records without them."""

import shutil
from dataclasses import replace
from pathlib import Path

import forks
import numpy as np
import pytest
from builders import outcome, standing
from oracles import whole_matrices
from report_seasons import enter_played_season, record_of

from benchmark import protocol
from benchmark.analysis.boards import read_boards
from benchmark.core.errors import UserError
from benchmark.protocol import METRICS, metrics, table_metrics
from benchmark.protocol.metrics import RANK_METRICS, outdated, query_terms, with_formula_versions
from benchmark.season.parameters import Params

ROOT = Path(__file__).parents[1]
SETTINGS = {"overlap_range", "overlap_bins"}  # of S, in a record beside its metrics
INTERVAL = {"overlap_s_low", "overlap_s_high"}
# What a new metric is: one entry in protocol/metrics.py.
ENTRY = """    _recall(20),
    Metric(
        name="mrr",
        heading="MRR",
        unit="share",
        range=(0.0, 1.0),
        formula="mean of 1 / rank, the rank counted from 1",
        compute=lambda ranks_Q: float((1 / (ranks_Q + 1)).mean()),
        of_queries=lambda ranks_Q: 1 / (ranks_Q + 1),
        directions=ALL,
        decimals=3,
    ),
"""
PLAYED = """
from pathlib import Path
import numpy as np
from builders import board, outcome, prepare, standing
from benchmark import protocol
from benchmark.analysis.comparisons import compare, interval_over_images
from benchmark.papers.printed_tables import About, Paper, Row, Table
from benchmark.report.pages.paper_tables import paper_tables
from benchmark.report.pages.result_tables import leaderboard

prepare("made", np.repeat(np.arange(4), 2))
ranks = {"i2t": np.array([0, 1, 3, 15]), "t2i": np.array([0, 0, 1, 1, 3, 3, 9, 9])}
scores = {"overlap_s": 0.3, "one_minus_ks": 0.4}
new = outcome("new", ranks=ranks, metrics=scores)
assert new.record.metrics["i2t_r20"] == 100 and new.record.metrics["i2t_r10"] == 75
assert abs(new.record.metrics["i2t_mrr"] - (1 + 1 / 2 + 1 / 4 + 1 / 16) / 4) < 1e-12
old = outcome("old", ranks=ranks, metrics=scores)
for name in [name for name in old.record.metrics if name.endswith(("_r20", "_mrr"))]:
    del old.record.metrics[name]
assert not protocol.metrics.outdated(old.record.metrics)
played = board(standing("new", [new]), standing("old", [old]), title="Made", split="s", reader="r")

def texts(table):
    return [[entry.text for entry in row] for row in table.entries]

table = leaderboard(played)
rows = {row[0]: dict(zip(table.heads, row)) for row in texts(table)}
assert rows["new"]["i2t R@20"] == "100.0" and rows["old"]["i2t R@20"] == "-", rows
assert rows["new"]["i2t MRR"] == "0.453" and rows["old"]["i2t MRR"] == "-", rows
assert rows["new"]["rsum"] == rows["old"]["rsum"]
low, high = interval_over_images(played, played.standings[0], "i2t_mrr")
assert low < new.record.metrics["i2t_mrr"] < high
assert compare(played, *played.standings, "i2t_mrr") is None
about = About(title="t", authors="a", year=2019, venue="v", source="s")
row = Row(label="A", preset="new", numbers={"flickr30k/test": [90.0, 0.5]})
printed = Table(title="t", metrics=["i2t_r20", "i2t_mrr"], rows=[row])
paper = Paper(paper=about, tables={"1": printed}, claims=[])
(table,) = paper_tables(paper, [played])["1"].values()
assert table.heads[3:5] == ["i2t R@20", "i2t MRR"], table.heads
assert texts(table)[0][3:5] == ["90.0", "0.500"], table.rows
assert texts(table)[1][3:5] == ["100.0", "0.453"], table.rows
"""


def test_a_new_metric_is_one_entry(tmp_path):
    """In a copy of the tree: it is measured, in the tables, and old records have a dash."""
    for room in ("benchmark", "methods", "datasets"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=skip)
    path = tmp_path / "benchmark/protocol/metrics.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    _recall(10),\n", "    _recall(10),\n" + ENTRY, 1))
    played = forks.python(PLAYED, tmp_path)
    assert played.status == 0, played.said


def measured(rng: np.random.Generator) -> dict:
    """Everything that an evaluation measures."""
    owners = np.repeat(np.arange(6), 2)
    relevant = protocol.relevance(np.arange(6), owners)
    scores = {"i2t": rng.uniform(-1, 1, (6, 12))}
    scores["t2i"] = scores["i2t"].T
    ranks = protocol.retrieval_ranks(scores, relevant)
    numbers = protocol.retrieval_metrics(ranks) | whole_matrices.tie_gap(scores, relevant, ranks)
    numbers |= protocol.score_metrics(scores["i2t"][relevant], scores["i2t"][~relevant])
    numbers |= protocol.overlap_interval(numbers["overlap_s"], rng.uniform(0, 1, 50))
    within = whole_matrices.fold_ranks(scores, relevant, owners, folds=2)
    numbers |= protocol.fold_metrics(within, owners, folds=2)
    numbers |= protocol.rank_metrics("s2s", rng.integers(0, 9, 12))
    ious, proposals = rng.uniform(0, 1, (9, 4)), rng.normal(size=(9, 4))
    ious[:3, 2:] = np.nan
    lost = protocol.localisation_ranks(proposals, ious)
    return numbers | protocol.localisation_metrics(lost, ious)


@pytest.mark.parametrize("seed", range(3))
def test_every_number_of_a_record_is_declared_and_in_its_range(seed):
    numbers = measured(np.random.default_rng(seed))
    assert set(numbers) - set(METRICS) == SETTINGS | INTERVAL | {"fold_values"}
    times = {"per_pair", "per_image", "per_caption", "per_batch"}
    assert set(METRICS) - set(numbers) == times
    for name in set(numbers) & set(METRICS):
        low, high = METRICS[name].range
        assert low <= numbers[name] <= high, name


@pytest.mark.parametrize("metric", RANK_METRICS, ids=lambda metric: metric.name)
def test_a_metric_of_queries_is_the_mean_of_their_values(metric):
    if metric.of_queries:
        ranks = np.random.default_rng(0).poisson(6, 200)
        assert metric.of_queries(ranks).mean() == pytest.approx(metric.compute(ranks))


def test_headings_are_unique():
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)


def test_tables_have_the_recalls_and_the_median_of_a_direction():
    assert table_metrics("p2r") == ("p2r_r1", "p2r_r5", "p2r_r10", "p2r_medr")
    folded = ("fold_t2i_r1", "fold_t2i_r5", "fold_t2i_r10", "fold_t2i_medr")
    assert table_metrics("t2i", folds=True) == folded
    assert table_metrics("s2s", folds=True) == ()


def test_rsum_adds_up_the_recalls_of_the_directions_that_a_record_has():
    names = [term.name for term in query_terms("rsum", {"t2i_r1", "s2s_r1"})]
    assert names == ["t2i_r1", "t2i_r5", "t2i_r10"]
    assert [term.name for term in query_terms("s2s_r5", {})] == ["s2s_r5"]
    assert query_terms("i2t_medr", {"i2t_r1"}) == query_terms("overlap_s", {}) == []


class TestFormulaVersions:
    @pytest.fixture
    def changed(self, monkeypatch) -> None:
        """The formula of i2t_r5 is the second one."""
        second = replace(METRICS["i2t_r5"], version=2)
        monkeypatch.setitem(metrics.METRICS, "i2t_r5", second)

    def test_the_first_versions_are_not_written(self):
        assert with_formula_versions({"i2t_r5": 1.0, "overlap_bins": 200}) == {
            "i2t_r5": 1.0,
            "overlap_bins": 200,
        }

    def test_only_a_changed_formula_voids_a_record(self, changed):
        record = {"i2t_r1": 1.0, "i2t_r5": 1.0, "overlap_bins": 200}
        assert outdated(record) == ["i2t_r5"]
        assert outdated({"i2t_r1": 1.0}) == []
        assert outdated(with_formula_versions(record)) == []

    def test_going_back_to_the_first_formula_voids_records_of_the_second(self, changed):
        record = with_formula_versions({"i2t_r5": 1.0})
        assert record == {"i2t_r5": 1.0, "formula_versions": {"i2t_r5": 2}}
        metrics.METRICS["i2t_r5"] = replace(METRICS["i2t_r5"], version=1)
        assert outdated(record) == ["i2t_r5"]


class TestReading:
    """A record of another formula is refused, and the message names the command to run."""

    @pytest.fixture
    def params(self, tmp_path_factory, tmp_path, monkeypatch) -> Params:
        """A played season."""
        return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)

    def test_a_record_of_today_is_read(self, params):
        board = {board.dataset: board for board in read_boards(params)}["open"]
        played = {standing.preset: standing for standing in board.standings}["scan_t2i_avg"]
        records = [record_of("scan_t2i_avg", seed) for seed in (0, 1)]
        assert played.values("rsum") == [record["metrics"]["rsum"] for record in records]

    def test_a_record_of_another_formula_is_refused(self, params, monkeypatch):
        monkeypatch.setitem(METRICS, "i2t_r5", replace(METRICS["i2t_r5"], version=2))
        with pytest.raises(UserError) as error:
            read_boards(params)
        assert error.value.where.endswith("bidirectional/0/record.json: metrics.i2t_r5")
        assert error.value.expected == "version 2 of its formula"
        assert error.value.found == "version 1"
        assert error.value.do.startswith("run: dvc repro seasons/try/pipelines/")
        assert error.value.do.endswith("/two_branch_bidirectional/dvc.yaml:evaluate-0")


class TestStandings:
    """What a record lacks has no mean; it is not the mean of the seeds that have it."""

    def test_a_metric_that_a_seed_lacks_has_no_mean(self):
        preset = standing(
            "a",
            [
                outcome("a", 0, metrics={"rsum": 1.0, "i2t_r1": 2.0}),
                outcome("a", 1, metrics={"rsum": 2.0}),
                outcome("a", 2, status="failed"),
            ],
        )
        assert (preset.values("rsum"), preset.mean("rsum")) == ([1.0, 2.0], 1.5)
        assert (preset.values("i2t_r1"), preset.mean("i2t_r1")) == ([], None)
        assert preset.means() == {"rsum": 1.5}

    def test_folds_that_a_seed_lacks_are_none(self):
        values = {"fold_values": {"i2t_r1": [10.0, 20.0]}}
        preset = standing("a", [outcome("a", seed, metrics=values) for seed in (0, 1)])
        assert preset.by_fold("i2t_r1") == [[10.0, 20.0], [10.0, 20.0]]
        assert preset.by_fold("i2t_r5") == []
