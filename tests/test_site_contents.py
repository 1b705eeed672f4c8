"""What the site is told of claims, from made-up records; test_site.py opens the page itself."""

import json
from pathlib import Path

import pytest
from builders import board, outcome, standing

from benchmark.analysis import claims
from benchmark.commands import site_contents
from benchmark.papers.printed_tables import About, Claim, Paper
from seasons import params_of

ABOUT = About(title="t", authors="a", year=2019, venue="v", source="s")
VALUES = {"a": 14.0, "b": 10.0, "c": 12.0}  # means of three seeds each
SPREAD = (-0.1, 0.0, 0.1)


def told(monkeypatch, metric: str, *presets: str, scale: float = 1.0) -> dict:
    """What data/season.js says of one claim on presets with VALUES, or with a part of them."""
    claim = Claim(id="c", statement="s", where="w", metric=metric, presets=list(presets))
    paper = Paper(paper=ABOUT, tables={}, claims=[claim])
    monkeypatch.setattr(claims, "papers", lambda: {"paper": paper})
    standings = []
    for preset in VALUES:
        values = [scale * (VALUES[preset] + step) for step in SPREAD]
        metrics = [{metric: value, "one_minus_ks": 1.0} for value in values]
        seeds = [outcome(preset, seed, metrics=m) for seed, m in enumerate(metrics)]
        standings.append(standing(preset, seeds))
    made = board(*standings)
    monkeypatch.setattr(site_contents, "_tasks", lambda board: [])
    monkeypatch.setattr(site_contents, "_plots", lambda standing: {})
    monkeypatch.setattr(type(made), "ranked", [])
    site_contents.write(params_of(), [made], Path())
    text = Path("data/season.js").read_text().partition("=")[2].rstrip(";\n")
    return json.loads(text)["claims"][0]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_pair_that_decides_is_shown(monkeypatch):
    """a is better than b, but b is worse than c, which reverses the claim."""
    claim = told(monkeypatch, "p2r_bound", "a", "b", "c")
    assert claim["conclusion"] == "reversed"
    assert claim["difference"] == pytest.approx(VALUES["b"] - VALUES["c"])
    assert claim["interval"][0] < claim["difference"] < claim["interval"][1] < 0


@pytest.mark.parametrize(("metric", "scale", "decimals"), [("rsum", 1, 1), ("overlap_s", 0.01, 4)])
def test_numbers_have_the_decimals_of_their_metric(monkeypatch, metric, scale, decimals):
    claim = told(monkeypatch, metric, "b", "a", scale=scale)
    assert claim["decimals"] == decimals
    assert abs(claim["difference"]) == pytest.approx(4 * scale)


def test_no_time_is_told_of_what_was_not_trained_here():
    assert site_contents._cell(outcome("mine", training=[]))["seconds"] is None
    assert site_contents._cell(outcome("trained", training=[2.0, 3.0]))["seconds"] == 5.0
