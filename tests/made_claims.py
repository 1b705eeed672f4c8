"""Claims of a made-up paper, and presets whose metrics are worked out by hand."""

from itertools import pairwise

import pytest
from builders import outcome, standing

from benchmark.boards import claims
from benchmark.boards.boards import Board, Row
from benchmark.boards.claims import Verdict, verdicts
from benchmark.papers.printed_tables import About, Claim, Paper, Table

ABOUT = About(title="t", authors="a", year=2019, venue="v", source="s")
MORE, LESS = "p2r_bound", "overlap_s"  # is better; images are not known, the margin of MORE is 1


def played(preset: str, values: list[float], metric: str = MORE, **row: object) -> Row:
    """Seeds 0, 1, ... with these values."""
    metrics = [{metric: value, "one_minus_ks": 1.0} for value in values]  # no S is above its bound
    outcomes = [outcome(preset, seed, metrics=m) for seed, m in enumerate(metrics)]
    return standing(preset, outcomes, **row)


def fed(preset: str, level: float, row: dict | None = None, **facts: object) -> Row:
    """Three seeds around a level, with these facts in their records."""
    values = enumerate(around(level))
    cells = [outcome(preset, seed, **({"metrics": {MORE: x}} | facts)) for seed, x in values]
    return standing(preset, cells, **(row or {}))


def timed(preset: str, mean: float, **facts: object) -> Row:
    """Three seeds around a mean time of a pair, in microseconds."""
    values = enumerate(around(mean, 0.03))
    cells = [outcome(preset, s, seconds={"per_pair": 1e-6 * x}, **facts) for s, x in values]
    return standing(preset, cells)


def around(level: float, spread: float = 0.1) -> list[float]:
    """Three values with this mean and standard deviation."""
    return [level - spread, level, level + spread]


def claim(*presets: str, **facts: object) -> Claim:
    """On a preset, on two, or with a part for each neighbours of a chain."""
    given = {"id": "c", "statement": "s", "where": "w", "metric": MORE}
    if len(presets) > 2:
        given["parts"] = [list(pair) for pair in pairwise(presets)]
    elif presets:
        given["presets"] = list(presets)
    return Claim(**(given | facts))


def judge(
    monkeypatch: pytest.MonkeyPatch,
    on: Board,
    *made: Claim,
    tables: dict[str, Table] | None = None,
    paper: str = "paper",
) -> list[Verdict]:
    """The verdicts of a board on these claims of a paper, and on no other."""
    numbered = [claim.model_copy(update={"id": f"c{n}"}) for n, claim in enumerate(made)]
    of_paper = {paper: Paper(paper=ABOUT, tables=tables or {}, claims=numbered)}
    monkeypatch.setattr(claims, "papers", lambda: of_paper)
    return verdicts(on)


def blocks(verdict: Verdict) -> str:
    """The letters of the flags that keep it from being decided, or run."""
    return "".join(flag.letter for flag in verdict.flags if flag.blocks)
