"""Rows and claims by further layers of relevance: boards, bounds, order, verdicts,
page."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from builders import seal_tables
from made_boards import made
from report_seasons import FUSION, IMAGES, OWNERS, draw_nothing, enter_played_season
from scipy.stats import kendalltau

from benchmark.__main__ import main
from benchmark.boards import comparisons
from benchmark.boards.board_layers import BoardLayer, Judged, board_layers
from benchmark.boards.boards import Board
from benchmark.boards.claims_file import ByLayer, ClaimEntry, SeasonClaims
from benchmark.boards.season_boards import read_boards
from benchmark.core.files import read_json
from benchmark.data import results
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks
from benchmark.papers.printed_tables import papers
from benchmark.report.__main__ import write_report
from benchmark.report.pages.ledger_pages import ChangedVerdict, layer_changes
from benchmark.season.parameters import OwnClaim, Params
from benchmark.stats.claim_kinds import Conclusion

CAPTIONS = len(OWNERS)
ASKED = range(0, CAPTIONS, 2)  # the captions that were judged


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """The dataset `open` has two layers: `friends` was judged in part, `all` as a
    whole."""
    params = enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)
    own = [
        OwnClaim(better="scan_t2i_avg", than="scan_i2t_lse", metric=metric)
        for metric in ("rsum", "t2i_r1", "i2t_r1")
    ]
    params = params.model_copy(update={"claims": own})
    folder, rng = Path("data/prepared/open"), np.random.default_rng(0)
    rows = []
    for caption in ASKED:
        for image in range(IMAGES):
            is_own, score = image == OWNERS[caption], rng.choice([0.0, 1.0, 2.0, 3.0])
            pair = ("t2i", f"i{image}", f"c{caption}")
            if is_own or score:
                rows.append(
                    ("friends", *pair, np.inf if is_own else score, is_own or score > 2)
                )
            rows.append(
                ("all", *pair, np.inf if is_own else score, is_own or score > 2)
            )
    columns = ["layer", "way", "image_id", "caption_id", "score", "right"]
    pd.DataFrame(rows, columns=columns).to_parquet(folder / "relevance.parquet")
    rule = {"rule": "own, | and what friends like", "cuts": [2.0]}
    layers = {
        "friends": rule | {"partial": True},
        "all": rule | {"partial": False, "cuts": []},
    }
    seal_tables("open", layers=layers, ways=["i2t", "t2i"], folds=1)
    return params


@pytest.fixture
def board(season) -> Board:
    return next(board for board in read_boards(season) if board.dataset == "open")


def judged(layer: str) -> dict[tuple[int, int], bool]:
    """{(caption, image): right} of a layer, from its file."""
    table = pd.read_parquet("data/prepared/open/relevance.parquet")
    table = table[table["layer"] == layer]
    pairs = zip(
        table["caption_id"].str[1:],
        table["image_id"].str[1:],
        table["right"],
        strict=True,
    )
    return {(int(caption), int(image)): right for caption, image, right in pairs}


def test_a_board_by_a_layer_has_its_recalls(board):
    for layer in ("friends", "all"):
        known, here = judged(layer), board.under(layer)
        assert here.ways == ("t2i",) and here.test_queries("retrieval") == len(ASKED)
        assert [row.preset for row in here.rows] == [
            row.preset for row in board.retrieval.rows
        ]
        for row in here.rows:
            for outcome in row.played:
                answers = outcome.kept.retrieved["t2i"]
                for k in (1, 5, 10):
                    hits = [
                        any(known.get((c, i)) for i in answers[c][:k]) for c in ASKED
                    ]
                    found = outcome.record.metrics[f"t2i_r{k}"]
                    assert found == pytest.approx(100 * np.mean(hits))
                assert set(outcome.record.metrics) == {
                    "t2i_r1",
                    "t2i_r5",
                    "t2i_r10",
                    "rsum",
                }
    for row in board_layers(board)[0].own.rows:  # `own` on the same queries
        for outcome in row.played:
            whole = outcome.kept.scores.best("t2i")[list(ASKED)]
            assert outcome.record.metrics["t2i_r5"] == pytest.approx(
                100 * (whole < 5).mean()
            )


def test_ranks_that_were_kept_under_a_layer_count_before_first_answers(board):
    outcome, layer = board.row(FUSION).outcomes[0], board.layers["friends"]
    counts = layer["t2i"].counts[layer["t2i"].queries]
    places = np.concatenate(
        [np.arange(count) + query for query, count in enumerate(counts)]
    )
    kept = results.Scores(
        ranks=dict(outcome.scores.ranks)
        | {RankKey("t2i", "friends"): Ranks(places, counts)}
    )
    found = replace(outcome, of_layer=kept).by(layer, "friends")
    assert found.record.metrics["t2i_r1"] == pytest.approx(100 / len(ASKED))
    assert found.record.metrics["t2i_medr"] == 6 and found.ranks("t2i").tolist() == [
        *range(12)
    ]
    # Those of other judgements do not count.
    other = Ranks(np.arange(len(ASKED)), np.ones(len(ASKED), int))
    kept = results.Scores(
        ranks=dict(outcome.scores.ranks) | {RankKey("t2i", "friends"): other}
    )
    again = replace(outcome, of_layer=kept).by(layer, "friends").record.metrics
    assert again == outcome.by(layer, "friends").record.metrics


def test_intervals_resample_the_images_of_the_judged_queries(board):
    here = board.under("all")
    assert here.groups.of_queries("t2i").tolist() == [
        OWNERS[caption] for caption in ASKED
    ]
    row = here.rows[0]
    # The two captions of an image were one unit; here one of them was judged.
    hits = [outcome.ranks("t2i") < 1 for outcome in row.played]
    left = 100 * (np.mean(hits, axis=0) - np.mean(hits)) / len(ASKED)
    noise = comparisons.sample_of(here, row, "t2i_r1").mean_noise
    scale = np.sqrt(len(ASKED) / (len(ASKED) - 1))
    assert noise == pytest.approx(left * scale)


def test_bounds_count_unjudged_answers_as_wrong_and_as_right(board):
    friends, everything = board_layers(board)
    assert (friends.card["partial"], everything.card["partial"]) == (True, False)
    known = judged("friends")
    for row in friends.here.rows:
        for k in (1, 5):
            expected = {"wrong": [], "left": [], "right": []}
            for outcome in row.played:
                answers = outcome.kept.retrieved["t2i"]
                said = [[known.get((c, i)) for i in answers[c]] for c in ASKED]
                shortened = [[x for x in of if x is not None] for of in said]
                first = [of[0] for of in shortened if of]
                expected["wrong"].append(
                    np.mean([any(x for x in of[:k]) for of in said])
                )
                expected["right"].append(
                    np.mean([any(x is not False for x in of[:k]) for of in said])
                )
                expected["left"].append(np.mean(first))
            bounds = friends.bounds(row, "t2i", k)
            assert bounds.wrong == pytest.approx(100 * np.mean(expected["wrong"]))
            assert bounds.right == pytest.approx(100 * np.mean(expected["right"]))
            left_out = pytest.approx(100 * np.mean(expected["left"]))
            assert bounds.left_out == (left_out if k == 1 else None)


def test_queries_without_a_judged_answer_are_left_out_with_the_others(board):
    """Of five queries the first judged answers are right, right, wrong, wrong and
    none."""
    (friends, _) = board_layers(board)
    said = [np.array([[1, 0], [0, 1], [0, -1], [-1, 1], [0, 0]], np.int8)]
    with mock.patch.object(BoardLayer, "judged", return_value=said):
        bounds = friends.bounds(friends.here.rows[0], "t2i", 1)
    assert (bounds.wrong, bounds.left_out, bounds.right) == (20.0, 50.0, 80.0)


def test_without_a_judged_answer_nothing_is_left_when_the_others_are_left_out(board):
    (friends, _) = board_layers(board)
    row = friends.here.rows[0]
    unjudged = [np.zeros((len(ASKED), 10), np.int8)]
    with mock.patch.object(BoardLayer, "judged", return_value=unjudged):
        bounds = friends.bounds(row, "t2i", 1)
    assert (bounds.wrong, bounds.left_out, bounds.right) == (0.0, None, 100.0)


def test_rows_that_change_their_order_are_named(season, board):
    path = Path("data/prepared/open/relevance.parquet")
    table = pd.read_parquet(path)
    worst = [
        o.retrieved["t2i"][:, 0] for o in board.row("two_branch_bidirectional").played
    ]
    # whatever the worst row answers first becomes right
    caption, image = (
        table[name].str[1:].astype(int) for name in ("caption_id", "image_id")
    )
    table["right"] |= np.any([first[caption] == image for first in worst], axis=0)
    table.to_parquet(path)
    seal_tables("open")
    (board,) = (board for board in read_boards(season) if board.dataset == "open")
    every = set()
    for layer in board_layers(board):
        own, here = (
            {row.preset: row.mean("t2i_r1") for row in of.rows}
            for of in (layer.own, layer.here)
        )
        swapped = {
            frozenset(pair)
            for pair in combinations(own, 2)
            if (own[pair[0]] - own[pair[1]]) * (here[pair[0]] - here[pair[1]]) < 0
        }
        changes = layer.changes("t2i")
        pairs = {frozenset((c.first.preset, c.second.preset)) for c in changes}
        assert pairs == swapped
        assert all(change.own > 0 > change.here for change in changes)
        expected = kendalltau(
            [*own.values()], [here[preset] for preset in own]
        ).statistic
        assert layer.agreement("t2i") == pytest.approx(expected)
        every |= swapped
    assert every


def test_claims_are_judged_by_each_layer_and_by_own_on_its_queries(board):
    """That on i2t is not told by the layers."""
    for layer in board_layers(board):
        assert list(layer.judged_claims) == [("season", "own_1"), ("season", "own_2")]
        for own, here, (step,) in layer.judged_claims.values():
            metric = own.claim.parts[0].metric
            gaps = [
                of.row("scan_t2i_avg").mean(metric)
                - of.row("scan_i2t_lse").mean(metric)
                for of in (layer.own, layer.here)
            ]
            for verdict, gap in zip((own, here), gaps, strict=True):
                assert verdict.verdicts[0].difference == pytest.approx(gap)
            assert (
                np.mean(step) == pytest.approx(gaps[1] - gaps[0]) and step[0] <= step[1]
            )


def test_a_verdict_changes_if_the_layer_moves_its_difference():
    for conclusions, step, is_changed in (
        (("undecided", "holds"), (0.2, 1.9), True),
        (("undecided", "holds"), (-0.2, 1.9), False),  # by chance
        (("holds", "reversed"), (-3.0, -1.0), True),
        (("holds", "holds"), (0.2, 1.9), False),
    ):
        own, here = (
            SimpleNamespace(conclusion=conclusion) for conclusion in conclusions
        )
        assert Judged(own, here, [(-1.0, 1.0), step]).is_changed is is_changed


def test_the_ledger_names_the_verdicts_that_a_layer_changes():
    claim = next(iter(papers()["scan"].claims))
    facts = {
        "paper": "scan",
        "id": claim.id,
        "conclusion": "holds",
        "reason": "",
        "parts": [],
    }
    facts |= {"is_elsewhere": False, "cautions": [], "decisive": None}
    facts["on_test_set"] = "holds"
    said = {
        "crowd": ("holds", "reversed", True),
        "experts": ("holds", "undecided", False),
    }
    finding = ClaimEntry(**facts, layers=said)
    data = {
        "dataset": "d",
        "title": "D",
        "split": "s",
        "images": 9,
        "test_images": "x",
        "leaders": [],
        "made": made(),
    }
    of = SeasonClaims(season="try", title="T", datasets=[data | {"claims": [finding]}])
    (told,) = layer_changes([of])
    assert told.judged == 1 and told.layers == ["crowd", "experts"]
    changed = ByLayer(Conclusion.HOLDS, Conclusion.REVERSED, True)
    verdict = ChangedVerdict(claim=claim, layer="crowd", conclusions=changed)
    assert told.changed == [verdict]
    assert list(layer_changes([of.model_copy(update={"datasets": []})])) == []


def test_the_site_has_a_board_by_each_layer(season, board):
    pytest.importorskip("itables", reason="no extra site")
    assert main(["site", "try", "--public", "out"]) == 0
    text = Path("out/data/season.js").read_text().partition("=")[2].rstrip(";\n")
    boards = [of for of in json.loads(text)["boards"] if of["dataset"] == "open"]
    assert [of["layer"] for of in boards if of["task"] == "retrieval"] == [
        "",
        "friends",
        "all",
    ]
    for shown in boards[1:]:
        here = board.under(shown["layer"])
        rsum = {row.preset: row.mean("rsum") for row in here.rows}
        assert {row["preset"]: row["metrics"]["rsum"] for row in shown["rows"]} == rsum


def test_judge_takes_presets_by_a_layer(season, board, capsys):
    names = [
        "try:scan_t2i_avg",
        "try:scan_i2t_lse",
        "--dataset",
        "open",
        "--layer",
        "friends",
    ]
    assert main(["judge", *names, "--metric", "t2i_r1"]) == 0
    here = board.under("friends")
    rows = [here.row(name).mean("t2i_r1") for name in ("scan_t2i_avg", "scan_i2t_lse")]
    assert f"difference {rows[0] - rows[1]:+.4g}" in capsys.readouterr().out
    assert main(["judge", *names[:-1], "strangers"]) == 2
    assert "judgements as strangers, found none" in capsys.readouterr().err


def test_another_cut_has_other_right_pairs(board):
    (cut,) = board_layers(board)[0].other_cuts("t2i")
    table = pd.read_parquet("data/prepared/open/relevance.parquet")
    table = table[table["layer"] == "friends"]
    assert cut.least == 2.0
    assert cut.right_pairs == (table["score"] >= 2).sum() > table["right"].sum()
    here = board_layers(board)[0].here
    for row in cut.board.rows:
        assert row.mean("t2i_r1") >= here.row(row.preset).mean("t2i_r1")


def test_a_report_has_the_page_and_claims_json_what_the_layers_say(season, monkeypatch):
    draw_nothing(monkeypatch)
    folder = write_report(season)
    assert "(datasets/open-relevance.md)" in (folder / "README.md").read_text()
    pages = {path.name for path in (folder / "datasets").iterdir()}
    assert pages == {"open.md", "gated.md", "open-relevance.md"}
    assert "(open-relevance.md)" in (folder / "datasets/open.md").read_text()
    page = (folder / "datasets/open-relevance.md").read_text()
    assert page.count("| Two-branch") >= 3 and "own, \\| and what friends like" in page
    rises = re.findall(
        r"R@1 rises by ([-\d.]+) to ([-\d.]+) points over (\d+) rows", page
    )
    assert len(rises) == 2 and all(float(low) <= float(high) for low, high, _ in rises)
    told = {
        d["dataset"]: d["claims"] for d in read_json(folder / "claims.json")["datasets"]
    }
    assert any(claim["layers"] for claim in told["open"])
    assert not any(claim["layers"] for claim in told["gated"])
