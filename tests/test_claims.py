"""Verdicts on made-up claims about made-up records, worked out by hand and with
Student's t."""

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from builders import board, outcome, standing
from made_ranks import played as mapped
from made_ranks import prepare
from refusals import holds
from scipy import stats

from benchmark.boards import boards, claims, comparisons
from benchmark.boards.boards import Board
from benchmark.boards.claims import ClaimTest, claim_tests, metric_at, not_run
from benchmark.boards.comparisons import Comparison
from benchmark.boards.flags import BLOCKING
from benchmark.core.records import Aspect, Departure
from benchmark.papers.printed_tables import (
    OWN,
    RECALLS,
    About,
    Claim,
    Paper,
    Row,
    Table,
    effects,
    papers,
    quantity,
)
from benchmark.report.pages import ledger_pages
from benchmark.season.plugins import presets
from benchmark.season.tuning import Trial
from benchmark.stats.claim_kinds import ORDERED, Conclusion, Side
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Flag, Limit, Rule, Verdict

ABOUT = About(title="t", authors="a", year=2019, venue="v", source="s")
# is better; images are not known, the margin of MORE is 1
MORE, LESS = "p2r_bound", "overlap_s"
WITH_RSUM = {"metrics": {"rsum": 300.0, "p2r_bound": 50.0}}


def played(
    preset: str, values: list[float], metric: str = MORE, **row: object
) -> boards.Row:
    """Seeds 0, 1, ... with these values."""
    # no S is above its bound
    metrics = [{metric: value, "one_minus_ks": 1.0} for value in values]
    outcomes = [outcome(preset, seed, metrics=m) for seed, m in enumerate(metrics)]
    return standing(preset, outcomes, **row)


def fed(
    preset: str, level: float, row: dict | None = None, **facts: object
) -> boards.Row:
    values = enumerate(around(level))
    cells = [
        outcome(preset, seed, **({"metrics": {MORE: x}} | facts)) for seed, x in values
    ]
    return standing(preset, cells, **(row or {}))


def timed(preset: str, mean: float, **facts: object) -> boards.Row:
    # microseconds a pair
    values = enumerate(around(mean, 0.03))
    cells = [
        outcome(preset, s, seconds={"per_pair": 1e-6 * x}, **facts) for s, x in values
    ]
    return standing(preset, cells)


def around(level: float, spread: float = 0.1) -> list[float]:
    """Mean and standard deviation."""
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
) -> list[ClaimTest]:
    numbered = [
        claim.model_copy(update={"id": f"c{n}"}) for n, claim in enumerate(made)
    ]
    of_paper = {paper: Paper(paper=ABOUT, tables=tables or {}, claims=numbered)}
    monkeypatch.setattr(claims, "papers", lambda: of_paper)
    claim_tests.cache_clear()
    return claim_tests(on)


def blocking_letters(verdict: ClaimTest) -> str:
    return "".join(
        flag.letter for flag in verdict.flags if flag not in verdict.cautions
    )


ALL_PRESETS = list(presets())


@pytest.fixture
def claimed(monkeypatch):
    return partial(judge, monkeypatch)


@pytest.fixture
def own(monkeypatch):
    """As `claimed`, of a season's own claims."""
    return partial(judge, monkeypatch, paper=OWN)


# What blocks a claim ------------------------------------------------------------------


COARSE = [
    outcome("b", seed, metrics={LESS: 0.3, "one_minus_ks": 0.2}) for seed in range(3)
]


def of_few(task: str = "retrieval", **changes: int) -> Board:
    counted = {"images": 100, "captions": 100, "phrases": 100} | changes
    return board(
        fed("a", 12, task=task), fed("b", 10, task=task), counts={"test": counted}
    )


def of_one_direction() -> Board:
    counted = {"images": 12, "captions": 100}
    results = board(
        played("a", around(12)), played("b", around(9)), counts={"test": counted}
    )
    results.card["ways"] = ["t2i"]
    results.__dict__["groups"] = boards.Groups({}, np.arange(12))
    return results


def tuned(name: str, level: float, *best: float) -> list[boards.Row]:
    def history(value: float) -> pd.DataFrame:
        return pd.DataFrame({"epoch": [1, 2, 3], "val_rsum": [value] * 3})

    facts = {"metrics": {MORE: 9.0}, "history": history(100.0)}
    # what it goes on from reached 100 on validation
    start = [outcome(f"{name}_start", seed, **facts) for seed in range(3)]
    cells = [
        outcome(
            name, seed, metrics={MORE: value}, history=history(best[seed % len(best)])
        )
        for seed, value in enumerate(around(level))
    ]
    return [
        standing(f"{name}_start", start),
        standing(name, cells, start=f"{name}_start"),
    ]


def fine_tuned(best_of_a: list[float], best_of_b: list[float]) -> Board:
    return board(*tuned("a", 12, *best_of_a), *tuned("b", 10, *best_of_b))


def on_machines(first: str, second: str, jobs: int = 1) -> Board:
    rows = [timed("a", 3, numerics={"fingerprint": first})]
    rows += [timed("b", 6, numerics={"fingerprint": second})]
    for cell in (cell for row in rows for cell in row.outcomes):
        facts = cell.scoring.model_copy(update={"jobs": jobs})
        object.__setattr__(cell.kept.costs, "scoring", facts)
    return board(*rows)


def encoded(other: str, own: str = "") -> Board:
    """`other` read another text encoder than in the paper; `own` have none."""
    rows = []
    for name, level, method in (("a", 12, "m"), ("b", 10, "n")):
        encoder = "hglmm_1000" if name in other else "bilstm_max_h512"
        facts = {"text_features": {"encoder": encoder}, "method": method}
        declared = {"sentence": "bilstm_max", "of_paper": name not in own}
        rows.append(fed(name, level, declared, **facts))
    return board(*rows)


def scaled(preset: str, level: float, values: dict, **row: object) -> boards.Row:
    """A row whose season gives it these values of batch and depth."""
    facts = {
        "options": {"epochs": 9, "depth": 1} | values,
        "scaled": ["batch", "depth"],
    }
    return fed(preset, level, row, **facts)


def of_times(first: int, second: int) -> Board:
    both = (("a", 5, first), ("b", 6, second))
    facts = {"scaled": ["batch"]}
    return board(
        *(timed(x, mean, options={"batch": of}, **facts) for x, mean, of in both)
    )


RSUM, TIME = {"metric": "rsum"}, {"metric": "per_pair", "printed": [6.0, 10.0]}
FELL = "{} ended worse"
MANY = [played(name, around(5)) for name in "cde"]
SMALL = scaled("b", 10, {"batch": 32})
BATCHES = "batch 128 and 32"
LACKS = {"out_of_reach": "It needs more."}
NOT_FAIR = {"because": "Not fair.", "favours": "unknown"}
BLOCKS = [  # letter, board, facts of the claim, what the reason holds
    ("L", of_few(images=99), {}, "99"),
    ("L", of_few(captions=24), {}, "24"),
    ("L", of_few("localisation", phrases=7, images=12), {}, "7"),
    (
        "Y",
        on_machines("x", "y"),
        TIME,
        "2 settings",
    ),
    ("Y", on_machines("x", "x", jobs=2), TIME, "beside other stages"),
    (
        "N",
        board(played("a", around(120), "rsum"), played("b", around(90), "rsum")),
        RSUM,  # three times the rsum of random scores is 96 here
        "b",
    ),
    ("D", fine_tuned([90], [110]), {}, FELL.format("a")),
    ("D", fine_tuned([110], [90]), {}, FELL.format("b")),
    ("D", fine_tuned([90], [90]), {}, FELL.format("a and b")),
    # one training of three
    ("D", fine_tuned([110], [99, 150, 150]), {}, FELL.format("b")),
    ("U", board(scaled("a", 12, {"batch": 128}), SMALL), {}, BATCHES),
    ("U", of_times(32, 128), TIME, "batch 32 and 128"),
    ("U", board(fed("a", 12), fed("b", 10)), {"bias": NOT_FAIR}, "Not fair"),
    ("2", board(played("a", around(12)), played("b", around(10))), LACKS, "It needs"),
    ("G", encoded("a"), {}, "a has another"),
    ("G", encoded("b"), {}, "b has another"),
    (
        "Z",
        board(played("a", around(0.1, 0.01), LESS), standing("b", COARSE)),
        {"metric": LESS},
        "b",
    ),
    (
        "S",
        board(played("a", [15.0]), played("b", [10.0])),
        {},
        "1 seed",
    ),
    # as a median rank
    ("O", board(played("a", [7.0] * 3), played("b", [6.0] * 3)), {}, "nothing varies"),
]
FREE = [  # board, facts of the claim
    (of_few(phrases=7), {}),
    (of_one_direction(), {}),  # queries of the other one do not count
    (board(played("a", [15.0]), played("b", [10.0]), *MANY), {}),
    (on_machines("x", "x"), TIME),
    (board(played("a", around(120), "rsum"), played("b", around(100), "rsum")), RSUM),
    (fine_tuned([110], [110]), {}),
    (encoded(""), {}),
    (encoded("ab"), {}),
    (encoded("a", own="a"), {}),
    (encoded("b", own="a"), {}),
    (board(scaled("a", 12, {"batch": 32}), SMALL), {}),
    (
        board(scaled("a", 12, {"batch": 32, "depth": 9}, options={"depth": 4}), SMALL),
        {},
    ),
    (board(scaled("a", 12, {"batch": 128}, start="c"), SMALL), {}),
    (
        board(
            scaled("a", 12, {"batch": 32}),
            fed("b", 10, options={"batch": 32, "depth": 1}),
        ),
        {},
    ),
]


@pytest.mark.parametrize(("letter", "on", "facts", "reason"), BLOCKS)
def test_what_blocks_leaves_a_claim_undecided_and_says_why(
    claimed, letter, on, facts, reason
):
    (verdict,) = claimed(on, claim("a", "b", **facts))
    assert (verdict.conclusion, verdict.on_test_set) == ("undecided", "undecided")
    assert (blocking_letters(verdict), verdict.verdicts[0].limit) == (letter, None)
    assert holds(verdict.reason, reason)
    assert [flag.letter for flag in verdict.flags].count(letter) == 1


@pytest.mark.parametrize(("on", "facts"), FREE)
def test_what_does_not_block_is_decided(claimed, on, facts):
    (verdict,) = claimed(on, claim("a", "b", **facts))
    assert (verdict.conclusion, blocking_letters(verdict)) == ("holds", "")


def test_the_list_of_what_blocks_is_complete():
    elsewhere = {"M", "H"}  # identical results and trials, below
    assert {letter for letter, *_ in BLOCKS} | elsewhere == BLOCKING.keys()


def test_of_equal_ranks_nothing_is_concluded_and_more_seeds_would_not_help(
    own, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    prepare()
    rows = (mapped("a", 1.0), mapped("b", 1.0), mapped("c", 2.0))
    same, apart = own(board(*rows), *(claim("a", x, metric="rsum") for x in "bc"))
    assert (same.conclusion, same.reason, blocking_letters(same)) == (
        "undecided",
        "identical results",
        "M",
    )
    assert same.verdicts[0].limit is None
    assert blocking_letters(apart) == ""


def test_seeds_and_evened_settings_that_differ_are_said(claimed):
    rows = played("a", around(12)), played("b", [10.0]), played("c", around(9))
    (verdict,) = claimed(board(*rows), claim("a", "b"))
    unlike = "seeds 0, 1 and 2 of a against seed 0 of b"
    assert Flag("1", unlike) in verdict.flags
    evened = scaled("a", 12, {"batch": 32, "depth": 1}, options={"depth": 4})
    (verdict,) = claimed(board(evened, SMALL), claim("a", "b"))
    assert sentences_of(verdict, "Q") == ["depth"] and blocking_letters(verdict) == ""


class TestSeveralParts:
    def judge(self, own, **values: list[float]) -> ClaimTest:
        results = board(*(played(name, levels) for name, levels in values.items()))
        return own(results, claim(*values))[0]

    def test_one_that_was_not_run_is_named_and_the_others_are_judged(self, claimed):
        results = board(played("a", around(14)), played("b", around(12)))
        (verdict,) = claimed(results, claim("a", "b", "c", "a"))
        assert (
            verdict.conclusion,
            len(verdict.verdicts),
            blocking_letters(verdict),
        ) == (
            "holds",
            1,
            "",
        )
        (lost,) = sentences_of(verdict, "R")
        assert holds(lost, "in part", "c")
        (verdict,) = claimed(results, claim("c", "a", "d"))
        assert (verdict.conclusion, blocking_letters(verdict)) == ("not run", "R")
        assert holds(verdict.reason, "c") and not holds(verdict.reason, "d")


@pytest.mark.parametrize(
    ("pair", "favours", "conclusion"),
    [
        ("ab", "first", "reversed"),
        ("ab", "second", "undecided"),
        ("ba", "second", "holds"),
        ("ba", "first", "undecided"),
    ],
)
def test_what_goes_against_a_bias_of_its_entry_stands(
    claimed, pair, favours, conclusion
):
    results = board(played("a", around(10)), played("b", around(12)))
    bias = {"because": "It is so.", "favours": favours}
    (verdict,) = claimed(results, claim(*pair, bias=bias))
    assert verdict.conclusion == conclusion
    (bias,) = [flag for flag in verdict.flags if flag.favours]
    assert (bias.letter, bias.sentence, bias.favours) == ("U", "It is so", favours)
    assert (bias in verdict.cautions) == (conclusion != "undecided")


def compared_as(
    first, second, metric: str, difference: float, doubt: Doubt
) -> Comparison:
    """A comparison with this difference; no level makes a margin smaller."""
    names = [row.preset if row else "" for row in (first, second)]
    facts = {
        "metric": metric,
        "firsts": [500.0] * 5,
        "seconds": [500.0] * 5,
        "doubt": doubt,
    }
    both = {"first": names[0], "second": names[1], "titles": tuple(names)}
    return Comparison(**both, difference=difference, **facts)


@pytest.mark.parametrize(
    "facts", [{"uncounted": "No."}, {"only_there": True, "place": "flickr30k/test"}]
)
def test_what_does_not_count_is_shown_and_neither_counted_nor_adjusted_with(
    claimed, facts
):
    levels = {"a": 12, "b": 10, "c": 11}
    results = board(
        *(played(x, around(of, 0.5)) for x, of in levels.items()), reader="flickr8k"
    )
    verdicts = claimed(results, claim("a", "b"), claim("a", "c"))
    assert verdicts[0].verdicts[0].adjusted_p == pytest.approx(
        2 * verdicts[0].verdicts[0].p
    )
    assert sum(claims.counts(verdicts).values()) == 2
    verdicts = claimed(results, claim("a", "b"), claim("a", "c", **facts))
    assert [verdict.is_counted for verdict in verdicts] == [True, False]
    for (pair,) in (verdict.verdicts for verdict in verdicts):
        assert pair.adjusted_p == pair.p and pair.conclusion == "holds"
    assert sum(claims.counts(verdicts).values()) == 1


def test_a_single_preset_is_tested_on_a_difference_of_metrics(claimed):
    metrics = [{"mean_matched": x, "mean_unmatched": 0.1} for x in around(0.5, 0.01)]
    preset = standing(
        "a", [outcome("a", seed, metrics=m) for seed, m in enumerate(metrics)]
    )
    made = claim("a", metric="mean_matched - mean_unmatched", printed=[0.9, 0.2])
    (verdict,) = claimed(board(preset), made)
    assert (verdict.conclusion, verdict.verdicts[0].comparison.second) == ("holds", "")
    assert verdict.verdicts[0].comparison.difference == pytest.approx(0.4)
    assert verdict.verdicts[0].printed == pytest.approx(0.7)
    expected = stats.ttest_1samp(around(0.4, 0.01), 0).confidence_interval(0.95)
    assert verdict.verdicts[0].comparison.interval == pytest.approx(tuple(expected))


def test_a_sentence_about_a_dataset_is_the_same_comparison_elsewhere(claimed):
    results = board(played("a", around(12)), played("b", around(10)), reader="flickr8k")
    made = claim("a", "b", place="flickr30k/test", only_there=True)
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [True]
    results.card["reader"] = "flickr30k"
    assert [verdict.is_elsewhere for verdict in claimed(results, made)] == [False]
    general = claim("a", "b", place="mscoco_1k/test")
    assert [verdict.is_elsewhere for verdict in claimed(results, general)] == [False]


def test_a_claim_about_trained_weights_is_not_tested_with_random_or_own_ones(claimed):
    random = {
        "departures": [Departure(aspect=Aspect.RANDOM_TEXT_WEIGHTS, texts="sentence")]
    }
    results = board(fed("a", 12, **random), fed("b", 10))
    needs, other = claimed(
        results, claim("a", "b", weights="a trained encoder"), claim("a", "b")
    )
    assert needs.conclusion == "not run"
    assert holds(needs.reason, "a", "random") and not holds(needs.reason, "b")
    assert other.flags[0] == Flag("T", "a")
    assert [flag.letter for flag in other.flags] == ["T", "I"]
    own = {"departures": [Departure(aspect=Aspect.WORD_VECTORS, here="trained here")]}
    made = claim("a", "b", weights="vectors of elsewhere")
    (verdict,) = claimed(board(fed("a", 12, **own), fed("b", 10)), made)
    assert verdict.conclusion == "not run"
    assert holds(verdict.reason, "a", "word vectors")
    (verdict,) = claimed(board(fed("a", 12, **own), fed("b", 10, **own)), made)
    assert verdict.conclusion == "holds"


def test_a_claim_that_was_not_run_says_why(claimed):
    def lack(made: Claim, *rows: boards.Row) -> str:
        (verdict,) = claimed(board(*rows), made)
        assert (verdict.conclusion, verdict.on_test_set, verdict.verdicts) == (
            "not run",
        ) * 2 + ([],)
        assert blocking_letters(verdict) == "R"
        return verdict.reason

    first, made = fed("a", 12), claim("a", "b")
    untimed = claim(unplayed="Untimed.", printed=[3, 2])
    assert lack(untimed) == "Untimed"
    assert holds(lack(made, first), "b", "not run")
    lost = standing("b", [outcome("b", status="not_applicable", reason="two captions")])
    assert holds(lack(made, first, lost), "b", "not applicable", "two captions")
    unmeasured = lack(made, first, played("b", [1.0] * 3, LESS))
    assert holds(unmeasured, "b", "upper bound")
    # Presets of one encoder may be fed another one together; those of two may not.
    row, encoder = (
        {"sentence": "bilstm_max"},
        {"text_features": {"encoder": "hglmm_1000"}},
    )
    other = fed("a", 12, row, **encoder)
    alike = board(other, fed("b", 10, row, **encoder))
    assert [verdict.conclusion for verdict in claimed(alike, made)] == ["holds"]
    apart = fed("b", 10, {"sentence": "hglmm"})
    assert holds(lack(made, other, apart), "a", "hglmm_1000")


def test_what_networks_do_needs_two_of_them(claimed):
    def seen(preset: str, network: str, level: float) -> boards.Row:
        facts = {"image_features": {"settings": {"network": network}}, "method": "m"}
        return fed(
            preset, level, {"network": {"a": "resnet50", "b": "vgg19"}[preset]}, **facts
        )

    apart, alike = (
        board(seen("a", "mobile", 12), seen("b", of, 10))
        for of in ("squeeze", "mobile")
    )
    assert [verdict.conclusion for verdict in claimed(apart, claim("a", "b"))] == [
        "holds"
    ]
    (verdict,) = claimed(alike, claim("a", "b"))
    assert blocking_letters(verdict) == "R" and holds(verdict.reason, "mobile")


def test_what_was_said_of_folds_is_judged_by_their_means(own):
    def folded(preset: str, whole: float, in_folds: float) -> boards.Row:
        values = zip(around(whole), around(in_folds), strict=True)
        metrics = [
            {"rsum": of_split, "fold_rsum": of_folds} for of_split, of_folds in values
        ]
        return standing(
            preset, [outcome(preset, s, metrics=m) for s, m in enumerate(metrics)]
        )

    # b is better on the whole split, a on the folds of 1,000 images
    results = board(folded("a", 510.0, 530.0), folded("b", 520.0, 520.0), folds=5)
    rows = [
        Row(
            label=name,
            preset=name,
            numbers={"mscoco_1k/test": [50, 80, 90, 40, 70, last]},
        )
        for name, last in (("a", 85), ("b", 81))
    ]
    tables = {"1": Table(title="t", metrics=list(RECALLS), rows=rows)}
    of_1k = claim("a", "b", metric="rsum", place="mscoco_1k/test", table="1")
    made = [
        of_1k,
        claim("a", "b", metric="rsum", place="mscoco_5k/test"),
        claim("a", "b", **RSUM),
    ]
    verdicts = own(results, *made, tables=tables)
    assert [of.conclusion for of in verdicts] == ["holds", "reversed", "reversed"]
    pairs = [of.verdicts[0] for of in verdicts]
    assert [of.comparison.metric for of in pairs] == ["fold_rsum", "rsum", "rsum"]
    assert pairs[0].comparison.difference == pytest.approx(10.0)
    assert (pairs[0].printed, pairs[0].margin) == (4.0, 2.0)
    results.card["folds"] = 1
    (verdict,) = own(results, of_1k, tables=tables)
    assert verdict.verdicts[0].comparison.metric == "rsum"
    assert verdict.verdicts[0].comparison.difference == pytest.approx(-10.0)
    results.card["folds"] = 5
    results.rows[0].played[0].record.metrics.update(
        {"fold_i2t_r1": 3.0, "fold_t2i_r1": 4.0}
    )
    metric = metric_at(results, "mscoco_1k/test", "t2i_r1 - i2t_r1")
    assert metric == "fold_t2i_r1 - fold_i2t_r1"


def needs(verdict: ClaimTest) -> str:
    """What would decide it, as the ledger says."""
    return ledger_pages.needs(verdict.verdicts, verdict.decisive)


def test_a_part_with_the_opposite_difference_decides_what_a_claim_needs(claimed):
    """Of several, the one that needs least; without one, that which needs most."""
    levels = {"a": 10.0, "b": 10.5, "c": 7.5, "d": 12.7}
    results = board(
        *(played(name, around(level, 2.0)) for name, level in levels.items())
    )
    ahead, behind, twice, never = claimed(
        results,
        claim(parts=[["b", "c"], ["d", "a"]]),
        claim(parts=[["d", "b"], ["c", "a"]]),
        claim(parts=[["c", "a"], ["a", "d"]]),
        claim(parts=[["b", "c"], ["b", "a"]]),  # too near for any number of seeds
    )
    seeds = [
        [pair.limit.seeds for pair in of.verdicts]
        for of in (ahead, behind, twice, never)
    ]
    assert needs(ahead) == f"{max(seeds[0])} more seeds" and seeds[0] == sorted(
        seeds[0]
    )
    assert (
        needs(behind) == f"{seeds[1][1]} more seeds"
        and behind.decisive == behind.verdicts[1]
    )
    assert needs(twice) == f"{seeds[2][1]} more seeds" and seeds[2][1] < seeds[2][0]
    assert twice.decisive == twice.verdicts[1]
    assert needs(never).startswith("more than 20 seeds") and None in seeds[3]


@pytest.mark.parametrize(
    ("levels", "conclusion"), [((10, 12, 15), "reversed"), ((20, 12, 10.5), "holds")]
)
def test_of_reversed_parts_the_surest_decides_and_of_those_that_hold_the_least_sure(
    own, levels, conclusion
):
    rows = [
        played(name, around(of, 0.3)) for name, of in zip("abc", levels, strict=True)
    ]
    (verdict,) = own(board(*rows), claim("a", "b", "c"))
    assert (
        {pair.conclusion for pair in verdict.verdicts}
        == {verdict.conclusion}
        == {conclusion}
    )
    assert verdict.decisive == verdict.verdicts[1]
    facts = {
        "holds": ["b over c", "least sure of 2", "above zero"],
        "reversed": ["b over c", "below zero"],
    }
    assert holds(verdict.reason, *facts[conclusion])


def sentences_of(verdict: ClaimTest, letter: str) -> list[str]:
    return [flag.sentence for flag in verdict.flags if flag.letter == letter]


TRIED = {"dataset": "made", "preset": "a", "epoch": 1, "val_rsum": 100.0}
RATE = [Trial(options={"rate": 1}, **TRIED)]
BOTH = [Trial(options={"rate": 1, "epochs": 3}, **TRIED)]


def test_settings_that_do_not_suit_the_untried_row_favour_the_other(claimed):
    early = pd.DataFrame({"epoch": range(1, 9), "val_rsum": [9.0, *[8.0] * 7]})
    late = early.assign(val_rsum=range(8))
    for levels, history, letter, conclusion in (
        ((12, 10), early, "H", "undecided"),
        ((10, 12), early, "", "reversed"),  # against the row that was tried
        ((12, 10), late, "", "holds"),
    ):
        rows = [
            fed(name, of, method="m", history=curve)
            for name, of, curve in zip("ab", levels, (late, history), strict=True)
        ]
        (verdict,) = claimed(replace(board(*rows), tried={"a": RATE}), claim("a", "b"))
        assert (verdict.conclusion, blocking_letters(verdict)) == (conclusion, letter)
        assert "H" in [flag.letter for flag in verdict.flags]


@pytest.mark.parametrize(
    ("methods", "tried", "untrained", "blocked", "told"),
    [
        ("mm", {"a": RATE}, "", "", ["a alone"]),
        ("mm", {"b": RATE}, "", "", ["b alone"]),
        ("mm", {"a": RATE, "b": RATE}, "", "", []),
        ("mm", {"c": RATE}, "", "", []),
        ("mn", {"a": RATE}, "", "H", ["b had no trials"]),
        # those of any preset of a method
        ("mn", {"c": RATE}, "", "H", ["b had no trials"]),
        # a closed form has options to try, too
        ("mn", {"a": RATE}, "b", "H", ["b had no trials"]),
        ("mn", {}, "", "", []),
        ("mn", {}, "b", "", []),
        ("mn", {"a": RATE, "b": RATE}, "", "", []),
        (
            "mn",
            {"a": BOTH, "c": RATE, "b": RATE},
            *("", "", ["a: 2 trials (epochs, rate)", "b: 1 trial (rate)"]),
        ),
    ],
)
def test_trials_that_one_side_alone_had_are_named_or_block(
    claimed, methods, tried, untrained, blocked, told
):
    """a beats b; c is of a's method, and in no claim."""
    epochs = pd.DataFrame({"epoch": [1, 2]})
    levels = zip("abc", (12, 10, 9), (*methods, methods[0]), strict=True)
    rows = [
        fed(name, of, method=method, history=None if name in untrained else epochs)
        for name, of, method in levels
    ]
    (verdict,) = claimed(replace(board(*rows), tried=tried), claim("a", "b"))
    conclusion = "undecided" if blocked else "holds"
    assert (verdict.conclusion, verdict.on_test_set) == (conclusion, conclusion)
    assert blocking_letters(verdict) == blocked
    if blocked:
        assert holds(verdict.reason, *told) and verdict.verdicts[0].limit is None
    else:
        sentences = sentences_of(verdict, "H")
        assert len(sentences) == bool(told)
        assert all(holds(sentence, *told) for sentence in sentences)


def common(
    preset: str, level: float, scaling: str = "common", **row: object
) -> boards.Row:
    return fed(preset, level, row, options={"scaling": scaling} if scaling else {})


# scores differently what c trained
AGAIN = common("b", 10, start="c", options={"trains": False})


@pytest.mark.parametrize(
    ("rows", "lack"),
    [
        ([common("b", 10)], ""),
        ([common("b", 10, "component")], "b component scaling"),
        ([common("b", 10, "")], "b another scaling"),
        ([AGAIN, common("c", 9)], ""),
        ([AGAIN, common("c", 9, "component")], "b component scaling"),
        ([AGAIN], "b another scaling"),
    ],
)
def test_all_trainings_of_both_rows_have_to_have_the_settings_of_a_claim(
    claimed, rows, lack
):
    results, made = board(common("a", 12), *rows), {"settings": {"scaling": "common"}}
    (verdict,) = claimed(results, claim("a", "b", **made))
    assert verdict.conclusion == ("not run" if lack else "holds")
    assert blocking_letters(verdict) == ("R" if lack else "")
    assert not lack or holds(verdict.reason, *lack.split())
    assert claimed(results, claim("a", "b"))[0].conclusion == "holds"


@pytest.mark.parametrize(
    ("kind", "printed", "is_narrow"),
    [
        ("alike", [108.0, 100.0], False),  # twice 8, or a tenth of 104
        ("alike", [112.0, 100.0], True),
        ("alike", [100.0, 112.0], True),
        ("not_better", [112.0, 100.0], True),
        ("not_better", [100.0, 112.0], False),  # what it denies is not printed
        ("ordered", [300.0, 100.0], False),
    ],
)
def test_a_margin_below_the_printed_difference_that_is_denied_is_named(
    claimed, kind, printed, is_narrow
):
    results = board(played("a", around(104), "rsum"), played("b", around(103), "rsum"))
    (verdict,) = claimed(
        results, claim("a", "b", metric="rsum", kind=kind, printed=printed)
    )
    assert len(sentences_of(verdict, "3")) == is_narrow


def test_every_claim_of_every_paper_gets_a_verdict():
    drawn = claim_tests(board(reader="folder"))
    expected = [
        (name, claim.id) for name, paper in papers().items() for claim in paper.claims
    ]
    assert [(verdict.paper, verdict.claim.id) for verdict in drawn] == expected
    assert len(drawn) > 40
    assert {verdict.conclusion for verdict in drawn} == {Conclusion.NOT_RUN}
    assert all(verdict.reason for verdict in drawn)


class TestClaimsOfThePapers:
    @pytest.fixture
    def judged(self, monkeypatch):
        def judge(compare) -> list[ClaimTest]:
            monkeypatch.setattr(
                comparisons, "usable", lambda s, metric: {0: s.outcomes[0]}
            )
            monkeypatch.setattr(comparisons, "is_coarse", lambda s: False)
            monkeypatch.setattr(comparisons, "compare", compare)
            settings = {
                k: v
                for paper in papers().values()
                for claim in paper.claims
                for k, v in claim.settings.items()
            }
            rows = [
                standing(name, [outcome(name, options=settings)])
                for name in ALL_PRESETS
            ]
            return claim_tests(board(*rows, reader="flickr30k"))

        return judge

    def made(
        self, first, second, metric: str, difference: float, error: float
    ) -> Comparison:
        part = SeedPart((5, 5), error**2 * 2.5, 0.0, 30, is_own=False)
        doubt = Doubt(images=0.0, interaction=0.0, image_count=0, seeds=(part,))
        compared = compared_as(first, second, metric, difference, doubt)
        key = (first.preset, second.preset if second else "", metric)
        levels = self.levels().get(key, (0.0, 0.0))
        return replace(compared, firsts=[levels[0]], seconds=[levels[1]])

    @staticmethod
    @cache
    def levels() -> dict[tuple[str, str, str], tuple[float, float]]:
        known = {}
        for paper in papers().values():
            for part in (part for made in paper.claims for part in made.parts):
                values = effects(paper, part) if part.presets else None
                if values:
                    pair = (*part.presets, *[""] * (len(part.presets) == 1))
                    known[(*pair, part.metric)] = values
        return known

    def printed(self) -> dict[tuple[str, str, str], float]:
        differences = {}
        for (*pair, metric), (first, second) in self.levels().items():
            sign = -1 if quantity(metric).less_is_better else 1
            differences[(*pair, metric)] = sign * (first - second)
        return differences

    @pytest.mark.parametrize("noise", [-1.0, 0.0, 1.0])
    def test_each_holds_on_the_numbers_that_its_paper_prints(self, judged, noise):
        printed, tried = self.printed(), 0

        def compare(on, first, second, metric):
            key = (first.preset, second.preset if second else "", metric)
            gap = printed.get(key, 0.0)
            error = abs(gap) / 30 or 0.05
            return self.made(first, second, metric, gap + noise * error, error)

        for verdict in judged(compare):
            known = verdict.verdicts and all(
                t.printed is not None for t in verdict.verdicts
            )
            units = {quantity(pair.comparison.metric).unit for pair in verdict.verdicts}
            if known and (verdict.claim.bias or verdict.claim.out_of_reach):
                assert (
                    blocking_letters(verdict)
                    and verdict.conclusion == Conclusion.UNDECIDED
                )
            elif known and units <= {"%", "share", "score"}:
                tried += 1
                assert verdict.conclusion == Conclusion.HOLDS, verdict.claim.id
                assert {t.size for t in verdict.verdicts} <= {"as printed", None}
        assert tried > 50


def test_a_method_without_trials_may_still_win(claimed):
    """Its opponent, which was tried, is the one that is favoured."""
    epochs = pd.DataFrame({"epoch": [1, 2]})
    rows = [
        fed("a", 12, method="m", history=epochs),
        fed("b", 10, method="n", history=epochs),
    ]
    (won,) = claimed(replace(board(*rows), tried={"b": RATE}), claim("a", "b"))
    assert (won.conclusion, blocking_letters(won)) == ("holds", "")
    (open_,) = claimed(replace(board(*rows), tried={"a": RATE}), claim("a", "b"))
    assert (open_.conclusion, blocking_letters(open_)) == ("undecided", "H")
    (bias,) = won.verdicts[0].biases
    assert holds(bias.sentence, "a had no trials") and bias.favours == Side.SECOND
    assert bias in won.flags


def test_an_option_favours_the_row_that_was_tried_with_it(claimed):
    """Where both were, each has what its validation prefers."""
    rows = scaled("a", 12, {"batch": 128}), scaled("b", 10, {"batch": 32})
    batch = [Trial(dataset="d", preset="b", options={"batch": 64}, epoch=1, val_rsum=9)]
    tried = {
        "": {},
        "a": {"a": batch},
        "b": {"b": batch},
        "ab": dict.fromkeys("ab", batch),
    }
    favoured = {}
    for names, trials in tried.items():
        (of_both,) = claimed(replace(board(*rows), tried=trials), claim("a", "b"))
        favoured[names] = [bias.favours for bias in of_both.verdicts[0].biases]
    assert favoured == {
        "": [Side.UNKNOWN],
        "a": [Side.FIRST],
        "b": [Side.SECOND],
        "ab": [],
    }


@pytest.mark.parametrize(
    ("kind", "levels", "is_hidden"),
    [
        ("ordered", (10.3, 10.0), True),
        ("ordered", (10.0, 10.3), True),
        ("ordered", (10.0, 10.0), False),
        ("ordered", (15.0, 10.0), False),
        ("alike", (10.3, 10.0), True),
        ("not_better", (10.3, 10.0), True),
        ("not_better", (10.0, 10.3), False),  # a loss is none that is denied
    ],
)
def test_a_margin_that_hides_a_difference_is_named(claimed, kind, levels, is_hidden):
    rows = [
        played(name, around(of, 0.02)) for name, of in zip("ab", levels, strict=True)
    ]
    (verdict,) = claimed(board(*rows), claim("a", "b", kind=kind))
    assert bool(sentences_of(verdict, "6")) == is_hidden


# Why a part was not run ---------------------------------------------------------------


def plain_row(
    name: str, *, network: str | None = None, status: str = "ok", **facts: object
):
    declared = {"network": network} if network else {}
    cell = outcome(name, 0, status=status, reason="why", **(WITH_RSUM | facts))
    return standing(name, [cell], **declared)


def claim_of(**facts: object) -> Claim:
    known = {"id": "c", "statement": "s", "where": "w", "metric": "p2r_bound"}
    return Claim(**(known | {"presets": ["a", "b"]} | facts))


def reason_of(claim: Claim, *rows) -> str:
    return not_run(board(*rows), claim, claim.parts[0])


@pytest.mark.parametrize(
    ("limit", "expected"), [(Limit(3, 9), Limit(None, 3)), (None, None)]
)
def test_further_trainings_of_rows_over_folds_are_further_folds(limit, expected):
    doubt = Doubt(images=0.0, interaction=0.0, image_count=0, seeds=())
    pair = Comparison(first="a", second="b", difference=1.0, doubt=doubt)
    rule = Rule(kind=ORDERED, margin=1.0)
    verdict = Verdict(comparison=pair, rule=rule, limit=limit)
    assert claims._of_folds(verdict).limit == expected


def test_of_rows_with_results_a_part_is_run():
    assert reason_of(claim_of(), plain_row("a"), plain_row("b")) == ""


def test_a_row_that_is_missing_or_failed_is_named():
    assert reason_of(claim_of(), plain_row("a")).startswith("b ")
    assert "not applicable: why" in reason_of(
        claim_of(), plain_row("a"), plain_row("b", status="not_applicable", metrics={})
    )
    unmeasured = reason_of(claim_of(), plain_row("a"), plain_row("b", metrics={}))
    assert "of b" in unmeasured


def test_a_claim_about_a_setting_needs_it():
    wanted = claim_of(settings={"scaling": "component"})
    alike = {"options": {"scaling": "component"}}
    assert reason_of(wanted, plain_row("a", **alike), plain_row("b", **alike)) == ""
    other = {"options": {"scaling": "none"}}
    assert "none scaling" in reason_of(
        wanted, plain_row("a", **alike), plain_row("b", **other)
    )


@pytest.mark.parametrize(("fed", "is_run"), [(("x", "y"), True), (("x", "x"), False)])
def test_what_a_paper_compares_by_networks_needs_two(fed, is_run):
    rows = []
    for name, network, in_paper in zip("ab", fed, ("vgg", "resnet"), strict=True):
        facts = {"image_features": {"settings": {"network": network}}}
        rows.append(plain_row(name, network=in_paper, **facts))
    assert (reason_of(claim_of(), *rows) == "") == is_run


def test_what_cannot_be_played_says_why():
    unplayed = claim_of(presets=[], unplayed="No data.")
    assert reason_of(unplayed, plain_row("a")) == "No data"
