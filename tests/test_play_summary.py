"""What `play` says at its end."""

from pathlib import Path

import pytest
from report_seasons import HOSTILE, enter_played_season, lose

from benchmark.commands.play_summary import told_cells, told_failures, told_report
from benchmark.core.files import write_json
from benchmark.season.parameter_files import activate
from benchmark.season.parameters import Params


@pytest.fixture
def params(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "try", monkeypatch)


def test_cells_without_a_result_share_a_line_if_they_share_a_reason(params):
    everything = [*params.cells, *params.fusions]
    assert [*told_cells(params, everything)] == []
    for seed in (0, 1):
        lose("open", "scan_t2i_avg", seed, HOSTILE)
    lose("gated", "scan_i2t_lse", 1, "no boxes", status="not_applicable")
    first, second = told_cells(params, everything)
    assert first == "1 cell without a result: gated/scan_i2t_lse 1: not applicable: no boxes"
    begin = "2 cells without a result: open/scan_t2i_avg 0, 1: a | b <script>"
    assert second.startswith(begin) and "\n" not in second
    Path("results/try/gated/scan_i2t_lse/1/record.json").unlink()
    assert [*told_cells(params, everything)] == [second]
    assert [*told_cells(params, ["open-scan_t2i_avg-1"])] == [
        second.replace("2 cells", "1 cell").replace("0, 1", "1")
    ]


def test_the_report_is_named_with_the_best_presets_of_each_task(params):
    last = "report: reports/try/README.md; to explore: python -m benchmark site"
    assert [*told_report(params)] == [last]
    for preset, rsum in {"a": 1.0, "b": 12.34, "c": 9.0, "d": 8.0}.items():
        write_json(Path(f"reports/try/metrics/open/{preset}.json"), {"rsum": rsum, "i2t_r1": 0.1})
    for preset, (rsum, r1) in {"boxes": (99.0, 20.0), "more": (90.0, 21.0)}.items():
        write_json(Path(f"reports/try/metrics/open/{preset}.json"), {"rsum": rsum, "p2r_r1": r1})
    assert [*told_report(params)] == [
        "open, retrieval, highest rsum of 4: b 12.3, c 9.0, d 8.0",
        "open, localisation, highest p2r R@1 of 2: more 21.0, boxes 20.0",
        last,
    ]
    activate("demo")
    assert [*told_report(params)][-1] == f"{last} --season try"


def test_a_cause_is_said_once_and_the_stages_that_wait_are_counted():
    assert [*told_failures({}, 0)] == []
    assert [*told_failures({"a": "x"}, 0)] == ["a: x"]
    assert [*told_failures({"a": "x"}, 1)] == ["a: x", "1 stage waits for it"]
    assert [*told_failures({"a": "x", "b": "y"}, 34)] == ["a: x", "b: y", "34 stages wait for them"]
