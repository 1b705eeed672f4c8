"""`judge` on tables, TREC runs and presets, against SciPy and naive loops."""

import csv
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean, variance

import ir_measures
import numpy as np
import pandas as pd
import pytest
from made_ranks import SETTINGS, judged
from refusals import check, holds, refusal
from scipy import stats

from benchmark.__main__ import main
from benchmark.boards import claims
from benchmark.boards.season_boards import read_boards
from benchmark.commands import judge
from benchmark.core.files import read_json
from benchmark.data import prepared_tables
from benchmark.papers.printed_tables import papers
from benchmark.season.parameter_files import read_params
from benchmark.stats.claim_kinds import KINDS

ROOT = Path(__file__).parent.parent
QUESTIONS = 300


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def judge_one(*words: object) -> dict:
    (found,) = judge_all(*words)
    return found


def judge_all(*words: object) -> list[dict]:
    assert main(["judge", *map(str, words), "--out", "found.json"]) == 0
    return read_json(Path("found.json"))


def refused_line(capsys, *words: object) -> str:
    capsys.readouterr()
    assert main(["judge", *map(str, words)]) == 2
    told = capsys.readouterr()
    assert (
        told.out == ""
        and told.err.startswith("rematch: ")
        and told.err.count("\n") == 1
    )
    assert told.err.strip().isprintable() and len(told.err) < 2000
    return told.err


def write(
    path: str, rows: Iterable[Sequence[object]], heads: str = "query value"
) -> str:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads.split(), *rows])
    return path


def near_six_digits(*expected: float) -> list:
    return [pytest.approx(value, rel=2e-5, abs=1e-9) for value in expected]


def numbers(found: dict) -> list[float]:
    return [found[key] for key in ("difference", "low", "high", "p")]


def paired_t(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Difference, interval and p of the paired t test."""
    test = stats.ttest_rel(first, second)
    ends = test.confidence_interval(0.95)
    return [fmean(first) - fmean(second), ends.low, ends.high, test.pvalue]


def answers(seed: int, share: float, questions: int = QUESTIONS) -> list[int]:
    # questions are as hard for all
    hard = np.random.default_rng(0).normal(size=questions)
    own = np.random.default_rng(seed).normal(size=questions)
    return [int(x) for x in hard + own < sqrt(2) * stats.norm.ppf(share)]


# A table from elsewhere ---------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 100])
def test_hits_of_300_questions_are_a_paired_t_test(scale):
    first, second = answers(1, 0.7), answers(2, 0.55)
    for path, hits in (("a.csv", first), ("b.csv", second)):
        write(path, ((f"q{n}", scale * hit) for n, hit in enumerate(hits)))
    found = judge_one("a.csv", "b.csv")
    assert numbers(found) == near_six_digits(
        *paired_t([100 * x for x in first], [100 * x for x in second])
    )
    assert (found["conclusion"], found["margin"]) == ("holds", 1.0)
    assert (found["queries"], found["units"], found["unit"]) == (300, 300, "queries")
    assert found["is_of_these_trainings"] and found["seeds"] == [1, 1]
    assert any(
        "these very ones, and for other queries alone" in note
        for note in found["notes"]
    )
    assert any("no clusters" in note for note in found["notes"])


def test_questions_about_one_text_go_together():
    first, second = answers(1, 0.66), answers(2, 0.62)
    texts = [f"text {number % 40 if number % 9 else 0}" for number in range(QUESTIONS)]
    for path, hits in (("a.csv", first), ("b.csv", second)):
        rows = zip(range(QUESTIONS), hits, texts, strict=True)
        write(path, rows, "query value cluster")
    found = judge_one("a.csv", "b.csv", "--margin", 2)
    gaps = [100 * (a - b) for a, b in zip(first, second, strict=True)]
    mean, units = fmean(gaps), sorted(set(texts))
    left = [
        sum(g - mean for g, t in zip(gaps, texts, strict=True) if t == text)
        for text in units
    ]
    error = sqrt(sum(x * x for x in left) * len(units) / (len(units) - 1)) / QUESTIONS
    half = stats.t.ppf(0.975, len(units) - 1) * error
    p = 2 * stats.t.sf(abs(mean) / error, len(units) - 1)
    assert numbers(found) == near_six_digits(mean, mean - half, mean + half, p)
    assert (found["units"], found["unit"], found["conclusion"]) == (
        40,
        "clusters",
        "undecided",
    )
    assert found["limit"]["folds"] > 1 and "clusters" in found["decides"]
    assert found["reason"].endswith("beyond 2")


@pytest.mark.parametrize("ending", [".tsv", ".parquet", ".jsonl"])
def test_the_same_numbers_in_every_format(ending):
    values = np.random.default_rng(5).normal(size=(2, 120)).round(6)
    for path, of in zip("ab", values, strict=True):
        table = pd.DataFrame(
            {"query": range(120), "value": of, "cluster": np.arange(120) // 2}
        )
        table.to_csv(f"{path}.csv", index=False)
        if ending == ".tsv":
            table.to_csv(f"{path}{ending}", index=False, sep="\t")
        elif ending == ".parquet":
            table.to_parquet(f"{path}{ending}")
        else:
            table.to_json(f"{path}{ending}", orient="records", lines=True)
    expected, found = judge_one("a.csv", "b.csv"), judge_one(f"a{ending}", f"b{ending}")
    assert numbers(found) == numbers(expected)
    assert found["margin"] == 0 and any("scale" in note for note in found["notes"])


def test_numbers_may_be_true_and_false():
    for name in "ab":
        noise = np.random.default_rng(ord(name)).normal(size=200)
        lines = [
            json.dumps({"query": n, "value": bool(x > 0)}) for n, x in enumerate(noise)
        ]
        Path(f"{name}.jsonl").write_text("\n".join(lines))
    assert judge_one("a.jsonl", "b.jsonl")["margin"] == 1.0


@pytest.mark.parametrize(
    ("claim", "kind", "difference"),
    [
        ("A > B", "ordered", 10),
        ("B > A", "ordered", -10),
        ("B not better than A by value", "not_better", -10),
        ("A = B by value", "alike", 10),
    ],
)
def test_a_claim_may_name_either_side_first(claim, kind, difference):
    noise = np.random.default_rng(0).normal(size=150)
    write("mine.csv", enumerate(10 + noise))
    write("yours.csv", enumerate(noise[::-1]))
    found = judge_one("mine.csv", "yours.csv", "--claim", claim, "--margin", 4)
    assert (found["kind"], found["margin"]) == (kind, 4)
    assert found["difference"] == pytest.approx(difference)
    expected = {"ordered": ["reversed", "holds"], "not_better": ["holds"] * 2}
    expected["alike"] = ["", "does not hold: better"]
    assert found["conclusion"] == expected[kind][difference > 0]


@pytest.mark.parametrize(
    ("claim", "on_letters"),
    [
        ("ours > theirs by r5", "A > B by r5"),
        ("theirs not better than ours", "B not better than A"),
        ("ours.csv=B", "A = B"),
        ("B > A", "B > A"),
        ("mine > theirs", "mine > theirs"),
        ("no claim", "no claim"),
    ],
)
def test_a_claim_may_name_the_files(claim, on_letters):
    assert judge.on_a_and_b(claim, "ours.csv", "folder/theirs.csv") == on_letters


def test_a_name_that_both_sides_have_says_nothing():
    claim = "x > y/x.csv"
    assert judge.on_a_and_b(claim, "x.csv", "y/x.csv") == claim


def test_a_claim_may_name_the_presets():
    assert judge.on_a_and_b("vse > cca", "flickr8k:vse", "flickr8k:cca") == "A > B"


def test_several_pairs_are_adjusted_by_holm():
    pairs = [("a", "b"), ("c", "b"), ("d", "b")]
    for name, share in (("a", 0.7), ("b", 0.6), ("c", 0.68), ("d", 0.61)):
        write(f"{name}.csv", enumerate(answers(ord(name), share)))
    more = [
        word
        for first, second in pairs[1:]
        for word in ("--pair", f"{first}.csv", f"{second}.csv")
    ]
    found = judge_all("a.csv", "b.csv", *more)
    assert [(of["first"][0], of["second"][0]) for of in found] == pairs
    order, least = sorted(range(3), key=lambda n: found[n]["p"]), 0.0
    for place, n in enumerate(order):
        least = max(least, min(1.0, (3 - place) * found[n]["p"]))
        assert found[n]["adjusted_p"] == pytest.approx(least, rel=1e-4)


# Seeds --------------------------------------------------------------------------------


def trained(
    path: str, shares: dict[int, float], clusters: int = 60
) -> dict[int, list[int]]:
    """A table of questions in fives, with a column of seeds; the hits by seed."""
    hits = {
        seed: answers(1000 * ord(path) + seed, share) for seed, share in shares.items()
    }
    rows = [(n, h, s, n % clusters) for s, of in hits.items() for n, h in enumerate(of)]
    write(f"{path}.csv", rows, "query value seed cluster")
    return hits


def test_the_seeds_of_both_tell_how_far_trainings_lie_apart():
    both = [
        trained("a", {0: 0.7, 1: 0.8, 2: 0.6}),
        trained("b", {3: 0.55, 4: 0.65, 5: 0.5}),
    ]
    left, spreads, lucks = [], [], []
    for hits in both:
        of_seed = []
        for of in hits.values():
            mean = fmean(of)
            sums = [
                sum(100 * (x - mean) for x in of[c::60]) / QUESTIONS for c in range(60)
            ]
            of_seed.append([x * sqrt(60 / 59) for x in sums])
        means = [fmean(x) for x in zip(*of_seed, strict=True)]
        left.append(means)
        spreads.append(variance(100 * fmean(of) for of in hits.values()))
        squares = (
            sum((x - m) ** 2 for x, m in zip(of, means, strict=True)) for of in of_seed
        )
        lucks.append(sum(squares) / 2)
    images = sum((a - b) ** 2 for a, b in zip(*left, strict=True))
    weight, spread, luck = 2 / 3, fmean(spreads), fmean(lucks)
    main_part = weight * max(0.0, spread - luck)
    whole = images + main_part
    freedom = whole**2 / (images**2 / 59 + (weight * spread) ** 2 / 4)
    means = [100 * fmean(x for of in hits.values() for x in of) for hits in both]
    value, half = means[0] - means[1], stats.t.ppf(0.975, max(freedom, 4)) * sqrt(whole)
    p = 2 * stats.t.sf(abs(value) / sqrt(whole), max(freedom, 4))
    found = judge_one("a.csv", "b.csv")
    assert main_part > 0
    assert numbers(found) == near_six_digits(value, value - half, value + half, p)
    assert not found["is_of_these_trainings"]
    limits = 1 - (images - min(images, weight * luck)) / whole
    assert found["share_of_trainings"] == pytest.approx(limits, rel=1e-4)


# Ranks --------------------------------------------------------------------------------


def exported_ranks(name: str, quality: float, images: int = 110) -> str:
    rng, rows = np.random.default_rng(ord(name)), []
    for seed, image in product(range(3), range(images)):
        hard = (image % 10) / quality
        for caption in range(4):
            way, query = (
                ("t2i", f"i{image}#{caption}") if caption else ("i2t", f"i{image}")
            )
            rows.append(
                ("flickr8k", name, seed, way, query, f"i{image}", rng.poisson(hard))
            )
    write(f"{name}.csv", rows, "dataset preset seed direction query cluster rank")
    return f"{name}.csv"


def test_rsum_of_ranks_by_naive_loops():
    tables = [
        pd.read_csv(exported_ranks(name, quality))
        for name, quality in (("a", 2.0), ("b", 1.5))
    ]
    found = judge_one("a.csv", "b.csv", "--claim", "A > B by rsum")
    value = 0.0
    for sign, table in zip((1, -1), tables, strict=True):
        for way, k in product(("i2t", "t2i"), (1, 5, 10)):
            ranks = table["rank"][table["direction"] == way]
            value += sign * 100 * sum(rank < k for rank in ranks) / len(ranks)
    assert found["difference"] == pytest.approx(value, rel=1e-5)
    assert (found["margin"], found["units"], found["queries"]) == (6, 110, 440)
    of_one = judge_one("a.csv", "b.csv", "--metric", "t2i_r1")
    hits = [table[table["direction"] == "t2i"]["rank"] < 1 for table in tables]
    assert of_one["difference"] == pytest.approx(
        100 * (hits[0].mean() - hits[1].mean()), rel=1e-5
    )
    level = 100 * max(of.mean() for of in hits)
    assert of_one["margin"] == pytest.approx(min(1, level / 10), rel=1e-5)
    assert of_one["queries"] == 330
    more = [tables[0].assign(direction=way) for way in ("s2s", "i2t_fold", "t2i_fold")]
    # of which rsum knows nothing
    pd.concat([tables[0], *more]).to_csv("a.csv", index=False)
    assert judge_one("a.csv", "b.csv") == found
    # that each is known to a depth says that 9 is no mark of what was not found
    of_9 = [of.assign(rank=9) for of in more]
    pd.concat([tables[1], *of_9]).assign(depth=1000).to_csv("b.csv", index=False)
    folds = judge_one("a.csv", "b.csv", "--metric", "fold_rsum")
    assert folds["difference"] == pytest.approx(
        2 * 100 * sum((tables[0]["rank"] < k).mean() - (k > 9) for k in (1, 5, 10)),
        rel=1e-5,
    )
    for path, table in zip(("a.csv", "b.csv"), tables, strict=True):
        table[table["direction"] == "t2i"].to_csv(path, index=False)
    # a point for each of three recalls
    half = judge_one("a.csv", "b.csv", "--metric", "rsum")
    assert half["margin"] == 3 and half["difference"] != found["difference"]


def test_layers_are_kept_apart():
    rows = [(n, n % 3, layer) for n in range(150) for layer in ("own", "experts")]
    write("a.csv", rows, "query rank layer")
    write("b.csv", ((n, (n + 1) % 4, "own") for n in range(150)), "query rank layer")
    found = judge_one("a.csv", "b.csv", "--metric", "r1")
    assert any(
        "using layer own (also there: experts)" in note for note in found["notes"]
    )
    error = refusal(judge, "a.csv", "b.csv", "--layer", "experts")
    check(error, "b.csv: layer", "experts", "own")
    write("b.csv", ((n, 1) for n in range(150)), "query rank")
    error = refusal(judge, "a.csv", "b.csv", "--layer", "experts")
    check(error, "b.csv: layer", "experts", "own")


# TREC ---------------------------------------------------------------------------------


def trec(
    seeds: Sequence[int], depth: int = 20, queries: int = 120, levels: int = 40
) -> None:
    """`all.qrels`; runs with ties, and one of them with a gap."""
    rng = np.random.default_rng(9)
    right = {
        q: set(rng.choice(60, rng.integers(1, 4), replace=False))
        for q in range(queries)
    }
    lines = [f"q{q} 0 d{d} {int(d in right[q])}" for q in right for d in range(60)]
    Path("all.qrels").write_text(
        "\n".join([*lines, "q999 0 d1 0", ""]), encoding="utf-8"
    )
    for seed in seeds:
        rng, lines = np.random.default_rng(seed), []
        for q in range(queries):
            scores = rng.integers(0, levels, 60) + [
                levels * 0.4 * (d in right[q]) for d in range(60)
            ]
            best = sorted(range(60), key=lambda d: (-scores[d], d))[:depth]
            lines += [
                f"q{q} Q0 d{d} {n} {scores[d]} tag" for n, d in enumerate(best, 1)
            ]
        lines = [line for line in lines if not line.startswith(f"q{seed} ")] + [
            "x Q0 d1 1 1.0 tag"
        ]
        Path(f"{seed}.run").write_text("\n".join(lines) + "\n", encoding="utf-8")


def success(seed: int, k: int) -> list[float]:
    """100 for each query with a relevant item among its k best, where ties count
    against it."""
    qrels = [line.split() for line in Path("all.qrels").read_text().splitlines()]
    run = [line.split() for line in Path(f"{seed}.run").read_text().splitlines()]
    hits = []
    for query in dict.fromkeys(words[0] for words in qrels if words[3] == "1"):
        right = {words[2] for words in qrels if words[0] == query and words[3] == "1"}
        items = [(-float(w[4]), w[2] in right) for w in run if w[0] == query]
        hits.append(100.0 * any(is_right for _, is_right in sorted(items)[:k]))
    return hits


@pytest.mark.parametrize("k", [1, 5, 10])
def test_trec_runs_are_a_paired_t_test_of_their_hits(k):
    trec([3, 4])
    found = judge_one("3.run", "4.run", "--qrels", "all.qrels", "--metric", f"r{k}")
    assert numbers(found) == near_six_digits(*paired_t(success(3, k), success(4, k)))
    notes = "\n".join(found["notes"])
    assert "not found, as 'q" in notes and "known below 20" in notes
    for facts in (
        ("3.run", "no answer", "1 queries", "'q3'"),
        ("3.run", "1 queries", "judgements"),
        ("all.qrels", "1 queries", "no relevant item"),
    ):
        assert any(holds(note, *facts) for note in found["notes"]), facts


def test_without_ties_hits_are_those_of_ir_measures():
    trec([3, 4], levels=10**9)
    found = judge_one("3.run", "4.run", "--qrels", "all.qrels", "--metric", "r5")
    means = []
    for path in ("3.run", "4.run"):
        both = ir_measures.read_trec_qrels("all.qrels"), ir_measures.read_trec_run(path)
        measure = ir_measures.Success @ 5
        of = {m.query_id: m.value for m in ir_measures.iter_calc([measure], *both)}
        means.append(100 * sum(of.get(f"q{q}", 0.0) for q in range(120)) / 120)
    assert found["difference"] == pytest.approx(means[0] - means[1], rel=1e-5)


def test_a_recall_beyond_the_depth_of_a_run_is_refused():
    trec([3, 4], depth=6)
    words = ("3.run", "4.run", "--qrels", "all.qrels", "--metric")
    judge_one(*words, "r5")
    check(refusal(judge, *words, "r10"), "3.run: R@10", found="first 6")


# What cannot be compared --------------------------------------------------------------

PLAIN = [(f"q{n}", n % 2) for n in range(150)]
RANKED = [("i2t", f"q{n}", n % 7) for n in range(150)]
WITH = {
    "cluster": [(q, v, f"c{q}") for q, v in PLAIN],
    "dataset": [(q, v, "mscoco") for q, v in PLAIN],
    "gallery": [(q, v, 1000) for q, v in PLAIN],
    "layer": [(q, v, "experts") for q, v in PLAIN],
    "seed": [(q, v, 0) for q, v in PLAIN],
}
QUERY, SEEDED = "query value", "query value seed"
UNFIT = {  # rows and heads of b.csv, and what the fields of the error hold
    "other queries": (
        [("other", 1), *PLAIN[1:]],
        QUERY,
        {"expected": "same queries", "found": "1 in a.csv alone, as 'q0', 1 in b.csv"},
    ),
    "fewer": (PLAIN[1:], QUERY, {"found": "1 in a.csv alone, as 'q0'"}),
    "ranks": (
        RANKED,
        "direction query rank",
        {"expected": "same kind", "found": "hits in a.csv (0 to 1) and ranks in b.csv"},
    ),
    "other values": (
        [(q, v / 2) for q, v in PLAIN],
        QUERY,
        {"expected": "same kind", "found": "values in b.csv", "do": "--scale 1"},
    ),
    "clusters": (
        WITH["cluster"],
        "query value cluster",
        {"where": "'q0'", "expected": "same cluster", "found": "'q0' and 'cq0'"},
    ),
    "layer": (
        WITH["layer"],
        "query value layer",
        {"where": "b.csv: layer", "expected": "own", "found": "experts"},
    ),
    "twice": (
        [*PLAIN, PLAIN[0]],
        QUERY,
        {
            "where": "b.csv: seed of query 'q0'",
            "expected": "one row",
            "found": "2 such",
        },
    ),
    "a seed lacks": (
        [*WITH["seed"], ("q0", 1, 1)],
        SEEDED,
        {"where": "b.csv", "expected": "each of 2 seeds"},
    ),
    "no name": (
        [("", 1), *PLAIN],
        QUERY,
        {"where": "query of query ''", "expected": "name", "found": "''"},
    ),
    "words": (
        [("q0", "good"), *PLAIN[1:]],
        QUERY,
        {"where": "value of query 'q0'", "expected": "number", "found": "'good'"},
    ),
    "NaN": (
        [("q0", "nan"), *PLAIN[1:]],
        QUERY,
        {"where": "value of query 'q0'", "expected": "number", "found": "'nan'"},
    ),
    "infinity": (
        [("q0", "inf"), *PLAIN[1:]],
        QUERY,
        {"where": "value of query 'q0'", "expected": "number", "found": "'inf'"},
    ),
    "nothing": (
        [("q0", ""), *PLAIN[1:]],
        QUERY,
        {"where": "value of query 'q0'", "expected": "number", "found": "''"},
    ),
    "no rows": ([], QUERY, {"where": "b.csv", "expected": "a row", "found": "none"}),
    "no values": (
        PLAIN,
        "query hit",
        {"where": "b.csv", "expected": "query and value", "found": "query, hit"},
    ),
    "two kinds": (
        WITH["seed"],
        "query value rank",
        {"where": "b.csv", "expected": "once", "found": "query, value, rank"},
    ),
    "one column twice": (
        WITH["seed"],
        "query value Query",
        {"where": "b.csv", "expected": "once", "found": "query, value, query"},
    ),
    "a longer row": (
        [*PLAIN, ("q", 1, 2)],
        QUERY,
        {"where": "b.csv", "found": "3 cells in a row, and 2"},
    ),
    "a shorter row": (
        [*PLAIN, ("q",)],
        QUERY,
        {"where": "b.csv", "found": "1 cells in a row, and 2"},
    ),
    "an odd seed": (
        [(q, v, "one") for q, v in PLAIN],
        SEEDED,
        {"where": "seed of query 'q0'", "expected": "whole number", "found": "'one'"},
    ),
    "two presets": (
        [(*x, p) for x in PLAIN for p in "ab"],
        "query value preset",
        {"where": "preset of query 'q0'", "expected": "'a'", "found": "'b'"},
    ),
    "a long name": (
        [("q" * 5000, 1), *PLAIN],
        QUERY,
        {"where": "b.csv", "found": "1024 letters"},
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_cannot_be_compared_is_refused(name):
    rows, heads, fields = UNFIT[name]
    write("a.csv", [(q, 1 - v) for q, v in PLAIN])
    write("b.csv", rows, heads)
    check(refusal(judge, "a.csv", "b.csv"), **fields)


def test_a_refusal_is_one_line_on_the_command_line(capsys):
    write("a.csv", [(q, 1 - v) for q, v in PLAIN])
    write("b.csv", PLAIN[1:])
    assert "'q0'" in refused_line(capsys, "a.csv", "b.csv")


@pytest.mark.parametrize("head", ["dataset", "gallery"])
def test_another_gallery_is_refused(head):
    write("a.csv", WITH[head], f"query value {head}")
    write("b.csv", [(q, 1 - v, 5000) for q, v, _ in WITH[head]], f"query value {head}")
    error = refusal(judge, "a.csv", "b.csv")
    check(error, "a.csv, b.csv", head, f"{WITH[head][0][2]} and 5000")
    write("b.csv", [(q, 1 - v) for q, v in PLAIN])  # which says nothing of it
    judge_one("a.csv", "b.csv")


def test_what_was_not_found_is_said_and_bounds_the_metric():
    write("a.csv", RANKED, "direction query rank")
    write(
        "b.csv",
        [*RANKED[:-2], ("i2t", "q148", ""), ("i2t", "q149", -1)],
        "direction query rank",
    )
    found = judge_one("a.csv", "b.csv", "--metric", "r5")
    (note,) = (note for note in found["notes"] if "not found" in note)
    assert holds(note, "b.csv", "2 of 150", "'q148'", "below 7")
    hits = [rank < 5 for *_, rank in RANKED]
    assert found["difference"] == pytest.approx(100 * sum(hits[-2:]) / 150, rel=1e-5)
    rows = [*RANKED[:-2], ("i2t", "q148", ""), ("i2t", "q149", -1)]
    write("c.csv", [(*row, 10) for row in rows], "direction query rank depth")
    notes = judge_one("a.csv", "c.csv", "--metric", "r10")["notes"]
    assert "known below 10" in notes[-2]
    error = refusal(judge, "a.csv", "b.csv", "--metric", "r10")
    check(error, "b.csv: R@10", found="first 7")
    write("c.csv", [(*row, "x") for row in rows], "direction query rank depth")
    error = refusal(judge, "a.csv", "c.csv")
    check(error, "c.csv: depth of query 'q0'", "whole", "'x'")
    # a longer list tells nothing of a shorter
    far = [("t2i", f"q{n}", 10 + n) for n in range(150)]
    for path, rows in (
        ("a.csv", RANKED),
        ("b.csv", [*RANKED[:-1], ("i2t", "q149", "")]),
    ):
        write(path, [*rows, *far], "direction query rank")
    error = refusal(judge, "a.csv", "b.csv", "--metric", "rsum")
    check(error, "a.csv: R@10", found="first 7")


A_AND_B = {"where": "--claim", "expected": "A and B"}
MIXED = {"where": "judge", "expected": "options of these"}
MISTAKES = [  # words, and what the fields of the error hold
    (("a.csv", "a.csv"), {"where": "judge", "expected": "two", "found": "a.csv twice"}),
    (("a.csv", "b.csv", "--margin", "nan"), {"where": "--margin", "found": "nan"}),
    (("a.csv", "b.csv", "--margin=-1"), {"where": "--margin", "found": "-1"}),
    (("a.csv", "b.csv", "--claim", "A is good"), A_AND_B),
    (("a.csv", "b.csv", "--claim", "A > C"), A_AND_B),
    (("a.csv", "b.csv", "--claim", "A > A"), A_AND_B),
    (("a.csv", "b.csv", "--claim", "mine > B"), A_AND_B),
    (
        ("a.csv", "b.csv", "--claim", "A > B by r1", "--metric", "r5"),
        {"where": "--metric", "expected": "r1", "found": "r5"},
    ),
    (
        ("a.csv", "b.csv", "--metric", "r1"),
        {"where": "--metric", "expected": "value", "found": "r1", "do": "column rank"},
    ),
    (("c.csv", "d.csv", "--metric", "r11"), {"where": "metric", "found": "r1?"}),
    (
        ("c.csv", "d.csv", "--metric", "medr"),
        {"where": "c.csv: medr", "expected": "mean"},
    ),
    (
        ("c.csv", "d.csv", "--metric", "t2i_r1"),
        {"where": "c.csv: t2i_r1", "expected": "i2t"},
    ),
    (("a.csv", "b.csv", "--season", "demo"), MIXED | {"found": "--season"}),
    (("a.csv", "b.csv", "--dataset", "shapes"), MIXED | {"found": "--dataset"}),
    (
        ("x.run", "b.run", "--qrels", "q", "--layer", "experts"),
        {"where": "--layer", "expected": "table", "found": "--qrels"},
    ),
    (
        ("a.csv", "none.csv"),
        {"where": "none.csv", "expected": ".csv", "found": "nothing"},
    ),
    (("a.csv", "x.run"), {"where": "x.run", "found": ".run", "do": ".csv"}),
    (
        ("a.csv", "b.csv", "--qrels", "none"),
        {"where": "none", "expected": "query 0 item score"},
    ),
    (
        ("a.csv", "b.csv", "--out", "x.html"),
        {"where": "--out", "expected": ".json", "found": "x.html"},
    ),
    (("../a:b", "../a:c"), {"where": "--season"}),
    (
        ("a.csv", "b.csv", "--claim", "A > B by rsum"),
        {"where": "--metric", "expected": "value", "found": "rsum"},
    ),
    (("a.csv", "b"), {"found": "nothing"}),
]


@pytest.mark.parametrize(("words", "fields"), MISTAKES)
def test_other_mistakes_are_refused(words, fields):
    write("a.csv", PLAIN)
    write("b.csv", [(q, 1 - v) for q, v in PLAIN])
    write("c.csv", PLAIN, "query rank")
    write("d.csv", [(q, 1 - v) for q, v in PLAIN], "query rank")
    Path("x.run").write_text("q Q0 d 1 1 t\n")
    check(refusal(judge, *words), **fields)


HOSTILE = [
    *(
        ("a.jsonl", of)
        for of in (b'{"query": NaN, "value": 1}', b'{"query": 1, "value": [1]}')
    ),
    *(("a.jsonl", of) for of in (b"[" * 10**5, b"1", b"{}")),
    *(
        ("a.csv", of)
        for of in (b"\xff\xfe", b'query,value\n"', b"", b"\0", b"query\n1\n")
    ),
    ("a.csv", b"query,value\n" + b"q," * 9),
    *(("a.parquet", of) for of in (b"PAR1", b"", b"PAR1" + bytes(100) + b"PAR1")),
    *(
        ("a.run", of)
        for of in (b"q Q0 d 1 nan t", b"q Q0 d 1 1", b"", b"q Q0 d 1 1 t u")
    ),
    ("a.run", b"q Q0 d 1 1 t\nq Q0 d 2 1 t"),
]


@pytest.mark.parametrize(("name", "content"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_are_refused_in_one_line(name, content, capsys):
    Path(name).write_bytes(content)
    write("b.csv", PLAIN)
    Path("b.run").write_text("q Q0 d 1 1.0 t\n")
    Path("qrels").write_text("q 0 d 1\n")
    words = ("b.run", "--qrels", "qrels") if name == "a.run" else ("b.csv",)
    assert refused_line(capsys, name, *words).startswith(f"rematch: {name}")


def test_texts_of_files_do_nothing_in_terminal_or_page(capsys):
    name = "a\x1b[31m <b>![x](y).csv"
    write(name, PLAIN, "query value")
    write("b.csv", [(q, 1 - v) for q, v in PLAIN])
    assert main(["judge", name, "b.csv", "--out", "page.md"]) == 0
    told, page = capsys.readouterr().out, Path("page.md").read_text(encoding="utf-8")
    assert "\x1b" not in told + page
    assert "<b>" not in page.replace("\\<", "") and "![" not in page.replace("\\!", "")


def test_nothing_is_concluded_from_few_queries_or_from_equal_ones():
    write("a.csv", [(n, 1) for n in range(60)])
    write("b.csv", [(n, n % 2) for n in range(60)])
    few = judge_one("a.csv", "b.csv")
    assert few["conclusion"] == "undecided" and "60 queries" in few["reason"]
    write("a.csv", [(n, n % 4, n % 10) for n in range(600)], "query value cluster")
    write("b.csv", [(n, n % 3, n % 10) for n in range(600)], "query value cluster")
    assert (
        "10 clusters, worth 10.0 of equal size" in judge_one("a.csv", "b.csv")["reason"]
    )
    write("a.csv", PLAIN)
    write("b.csv", PLAIN)
    assert judge_one("a.csv", "b.csv")["reason"] == "identical results"


@pytest.mark.parametrize(
    ("claim", "status", "conclusion"),
    [
        ("A = B", 0, "holds"),
        ("A not better than B", 0, "holds"),
        ("A > B", 2, "undecided"),
    ],
)
def test_a_refactor_that_repeats_all_results_passes(claim, status, conclusion, capsys):
    for name in ("a.csv", "b.csv"):
        write(name, PLAIN)
    words = ["judge", "a.csv", "b.csv", "--claim", claim, "--format", "json"]
    assert main([*words, "--check"]) == status
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["conclusion"], found["on_test_set"]) == (conclusion, conclusion)
    assert found["levels"] == [50.0, 50.0] and found["p"] is None
    # what is too little to tell a difference is too little to tell that there is none
    for name in ("a.csv", "b.csv"):
        write(name, PLAIN[:60])
    assert main([*words, "--check"]) == 2


def test_check_exits_with_the_worst_conclusion(capsys):
    for number, name in enumerate(("best", "good", "bad")):
        write(f"{name}.csv", enumerate(answers(number, 0.8 - 0.25 * number)))
    write("like_good.csv", enumerate(answers(7, 0.55)))
    for words, status in (
        (("best.csv", "bad.csv"), 0),
        (("bad.csv", "best.csv"), 1),
        (("good.csv", "like_good.csv"), 2),
        (("best.csv", "bad.csv", "--pair", "good.csv", "like_good.csv"), 2),
        (("bad.csv", "best.csv", "--pair", "good.csv", "like_good.csv"), 1),
        (("bad.csv", "none.csv"), 3),
        (("bad.csv", "best.csv", "--no-such-option"), 3),
    ):
        assert main(["judge", *words, "--check"]) == status, words
        if status < 3:
            assert main(["judge", *words]) == 0, words


def test_json_on_stdout_is_the_file(capsys):
    for number, name in enumerate(("a.csv", "b.csv")):
        write(name, enumerate(answers(number, 0.6)))
    words = ["judge", "a.csv", "b.csv", "--format", "json", "--out", "x.json"]
    assert main(words) == 0
    assert capsys.readouterr().out == Path("x.json").read_text(encoding="utf-8")


def test_a_difference_that_all_queries_have_is_decided_by_the_exact_test():
    write("right.csv", [(q, 1) for q, _ in PLAIN])
    write("wrong.csv", [(q, 0) for q, _ in PLAIN])
    found = judge_one("right.csv", "wrong.csv")
    test = stats.binomtest(150, 150, 0.5)
    assert found["conclusion"] == "holds" and found["difference"] == 100
    assert found["p"] == pytest.approx(test.pvalue, rel=1e-5)
    least = stats.binomtest(150, 150).proportion_ci(method="exact").low
    assert found["low"] == pytest.approx(100 * (2 * least - 1), rel=1e-5)
    assert judge_one("wrong.csv", "right.csv")["conclusion"] == "reversed"
    write("a.csv", [(q, 0, 10) for q, _ in PLAIN], "query rank depth")
    write(
        "b.csv",
        [(q, 2 + n % 3, 10) for n, (q, _) in enumerate(PLAIN)],
        "query rank depth",
    )
    ranks = judge_one("a.csv", "b.csv", "--metric", "r1")
    assert (ranks["conclusion"], ranks["p"]) == ("holds", found["p"])
    both = judge_one("a.csv", "b.csv", "--metric", "r10", "--claim", "A = B")
    assert (both["conclusion"], both["difference"], both["p"]) == ("undecided", 0, 1)
    assert both["limit"] is None and 1 < both["high"] == -both["low"] < 3
    # of which each cluster has as many
    few = [(n, 1 + n % 2, n % 10) for n in range(600)]
    write("a.csv", [(q, 1, c) for q, _, c in few], "query value cluster")
    write("b.csv", [(q, 0, c) for q, _, c in few], "query value cluster")
    assert "10 clusters" in judge_one("a.csv", "b.csv")["reason"]


def test_a_shift_of_all_values_is_no_rounding_error():
    values = np.random.default_rng(0).normal(size=150)
    write("a.csv", enumerate(values + 0.5))
    write("b.csv", enumerate(values))
    found = judge_one("a.csv", "b.csv")
    span = np.ptp([*values, *values + 0.5])
    assert found["conclusion"] == "holds"
    assert found["p"] == pytest.approx(2 * (span / (span + 0.5)) ** 150, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_values_of_any_unit_are_judged_alike(unit):
    values, others = np.random.default_rng(0).normal(size=(2, 150))
    write("a.csv", enumerate(unit * (others + 0.1)))
    write("b.csv", enumerate(unit * values))
    found = judge_one("a.csv", "b.csv")
    assert found["p"] == pytest.approx(
        stats.ttest_rel(others + 0.1, values).pvalue, rel=1e-5
    )


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_values_far_from_zero_are_judged_alike(offset):
    values, others = np.random.default_rng(0).normal(size=(2, 150))
    write("a.csv", enumerate(offset + others + 0.1))
    write("b.csv", enumerate(offset + values))
    expected = stats.ttest_rel(others + 0.1, values).pvalue
    found = judge_one("a.csv", "b.csv")
    assert found["p"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_constant_difference_of_any_unit_is_no_spread(unit):
    values = np.random.default_rng(1).normal(size=150)
    write("a.csv", enumerate(unit * values + unit / 10))
    write("b.csv", enumerate(unit * values))
    judged = judge_one("a.csv", "b.csv")
    span = np.ptp([*values, *values + 0.1])
    assert judged["p"] == pytest.approx(2 * (span / (span + 0.1)) ** 150, rel=1e-4)


# Conventions --------------------------------------------------------------------------


def scores(seed: int, level: float) -> np.ndarray:
    """A metric in [0, 1] of 150 queries, of which some are hard for all."""
    hard = np.random.default_rng(0).normal(size=150)
    own = np.random.default_rng(seed).normal(size=150)
    return 1 / (1 + np.exp(-level - hard - own / 2))


def test_fractions_and_percentages_are_put_on_one_scale_by_an_option():
    good, poor = scores(1, 1), scores(2, 0)
    write("fraction.csv", enumerate(good))
    write("percent.csv", enumerate(100 * poor))
    error = refusal(judge, "fraction.csv", "percent.csv")
    check(error, expected="one scale", do="--scale 100,1 ")
    error = refusal(judge, "percent.csv", "fraction.csv", "--claim", "B > A")
    check(error, expected="one scale", do="--scale 1,100 ")
    found = judge_one("fraction.csv", "percent.csv", "--scale", "100,1")
    assert numbers(found) == near_six_digits(*paired_t(100 * good, 100 * poor))
    turned = judge_one(
        "percent.csv", "fraction.csv", "--scale", "1,100", "--claim", "B > A"
    )
    assert numbers(turned) == numbers(found)
    as_they_are = judge_one("fraction.csv", "percent.csv", "--scale", "1")
    assert as_they_are["difference"] < 0


def test_ranks_from_1_are_read_so_by_an_option():
    good = np.random.default_rng(1).geometric(0.6, 150)
    poor = np.random.default_rng(2).geometric(0.4, 150)
    write("a1.csv", enumerate(good), "query rank")
    write("b1.csv", enumerate(poor), "query rank")
    write("b0.csv", enumerate(poor - 1), "query rank")
    error = refusal(judge, "a1.csv", "b0.csv")
    check(error, "a1.csv: rank", "ranks from 0", do="--first-rank 1")
    error = refusal(judge, "a1.csv", "b0.csv", "--first-rank", "1")
    check(error, "b0.csv: rank of query")
    mixed = judge_one("a1.csv", "b0.csv", "--first-rank", "1,0")
    hits = [100 * (ranks == 1) for ranks in (good, poor)]
    assert numbers(mixed) == near_six_digits(*paired_t(*hits))
    turned = judge_one("b0.csv", "a1.csv", "--first-rank", "0,1", "--claim", "B > A")
    assert numbers(turned) == numbers(mixed)
    of_five = judge_one("a1.csv", "b1.csv", "--first-rank", "1", "--metric", "r5")
    assert numbers(of_five) == near_six_digits(
        *paired_t(100 * (good <= 5), 100 * (poor <= 5))
    )


def test_metrics_of_lists_that_end_count_to_the_depth_of_both():
    ranks = np.random.default_rng(1).geometric(0.2, 150) - 1
    listed = [rank if rank < 10 else "" for rank in ranks]
    write("whole.csv", enumerate(ranks), "query rank")
    write("listed.csv", enumerate(listed), "query rank")
    longer = [rank if rank < 15 else "" for rank in ranks]
    assert listed != longer and "" in longer
    write("longer.csv", enumerate(longer), "query rank")
    for other in ("whole.csv", "longer.csv"):
        found = judge_one(other, "listed.csv", "--metric", "mrr")
        assert found["difference"] == 0 and any(
            "ranks below 10" in note for note in found["notes"]
        )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--first-rank", "2"),
        ("--first-rank", "1,0,1"),
        ("--scale", "0"),
        ("--scale", "nan"),
        ("--scale", "x,1"),
        ("--order", "distances"),
    ],
)
def test_options_that_say_no_reading_are_refused(option, value):
    write("a.csv", PLAIN)
    write("b.csv", [(q, 1 - v) for q, v in PLAIN])
    error = refusal(judge, "a.csv", "b.csv", option, value)
    check(error, option, found=repr(value))


def test_options_without_use_and_two_readings_of_a_file_are_refused():
    write("a.csv", PLAIN)
    write("b.csv", [(q, 1 - v) for q, v in PLAIN])
    both = ("a.csv", "b.csv")
    check(refusal(judge, *both, "--order", "ranks"), "--order", "TREC", "a.csv")
    error = refusal(judge, *both, "--first-rank", "1")
    check(error, "--first-rank", "table of ranks", "a.csv")
    error = refusal(judge, *both, "--count-unanswered")
    check(error, "--count-unanswered", "TREC", "a.csv")
    error = refusal(judge, *both, "--pair", "b.csv", "a.csv", "--scale", "1,2")
    check(error, "--pair", "reading of b.csv")


def test_of_an_unreadable_file_what_can_be_read_is_told():
    Path("means.json").write_text('{"scores": {"test": [{"ndcg_at_10": 0.5}]}}')
    write("a.csv", PLAIN)
    error = refusal(judge, "means.json", "a.csv")
    check(error, "means.json", ".jsonl", ".json file", ".jsonl")
    assert "name it" not in error.do


def test_a_p_that_is_too_small_for_a_number_is_no_zero(capsys):
    write("a.csv", [(n, 1) for n in range(1200)])
    write("b.csv", [(n, 0) for n in range(1200)])
    judge_one("a.csv", "b.csv")
    assert "p < 1e-300" in capsys.readouterr().out


def test_the_examples_of_the_documentation_run(capsys):
    text = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    (block,) = [
        of for of in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "judge" in of
    ]
    for number, name in enumerate(("mine", "theirs", "older")):
        write(f"{name}.csv", enumerate(answers(number, 0.7 - number / 10)))
    for name in ("ranks", "theirs"):
        pd.read_csv(exported_ranks(name[0], 2.0)).to_parquet(f"{name}.parquet")
    trec([3, 4, 5])
    for old, new in ((3, "mine"), (4, "their0"), (5, "their1")):
        Path(f"{old}.run").rename(f"{new}.run")
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    # the last one is of a season, which test_six_claims has
    for words in commands[:-1]:
        assert words[0] == "rematch" and main(words[1:]) == 0, words
        assert " by " in capsys.readouterr().out
    assert Path("verdict.md").is_file() and Path("verdict.json").is_file()


# A season -----------------------------------------------------------------------------

SIX = [  # paper, claim, part
    ("instance_loss", "stage_1_instance_beats_ranking", 1),
    ("two_branch", "nonlinear_beats_linear", 0),
    ("two_branch", "lstm_is_comparable", 0),
    ("two_branch", "constraints_do_not_help_across_views", 0),
    ("cyclematch", "latent_embeddings_help", 0),
    ("cyclematch", "three_scores_no_better_than_two", 1),
]


@pytest.mark.skipif(
    not (ROOT / prepared_tables.ROOT / "flickr8k/images.parquet").is_file(),
    reason="needs data/prepared",
)
def test_six_claims_of_flickr8k_are_judged_as_in_its_report(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    (reported,) = read_json(Path("reports/flickr8k/claims.json"))["datasets"]
    verdicts = claims.claim_tests(*read_boards(read_params("flickr8k")))
    for paper, name, number in SIX:
        claim = next(of for of in papers()[paper].claims if of.id == name)
        finding = next(
            of for of in reported["claims"] if (of["paper"], of["id"]) == (paper, name)
        )
        part, expected = claim.parts[number], finding["parts"][number]
        words = [f"flickr8k:{preset}" for preset in part.presets]
        words += ["--claim", f"A {KINDS[part.kind].sign} B by {part.metric}"]
        words += [
            "--margin",
            repr(expected["margin"]),
            "--out",
            str(tmp_path / "found.json"),
        ]
        assert main(["judge", *words]) == 0
        (found,) = read_json(tmp_path / "found.json")
        same = (
            "conclusion",
            "difference",
            "low",
            "high",
            "margin",
            "is_of_these_trainings",
        )
        assert [found[key] for key in same] == [expected[key] for key in same]
        # Those of the report are adjusted by Holm over the claims of the paper; this
        # one is not.
        verdict = next(
            of for of in verdicts if (of.paper, of.claim.id) == (paper, name)
        )
        assert (
            found["p"]
            == found["adjusted_p"]
            == float(f"{verdict.verdicts[number].p:.6g}")
        )
        if found["limit"] and expected["folds"]:
            assert found["limit"]["folds"] <= expected["folds"]


# Simulations --------------------------------------------------------------------------


def is_plausible(share: float, runs: int, low: float, high: float) -> bool:
    ends = stats.binom.ppf(0.001, runs, low), stats.binom.ppf(0.999, runs, high)
    return ends[0] <= round(share * runs) <= ends[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hits", "ranks, clustered"])
def test_judge_covers_and_seldom_errs(name, monkeypatch):
    found = judged(SETTINGS[name], 150, seed=1)
    assert all(is_plausible(share, 150, 0.94, 0.97) for share in found[:2]), found
    assert is_plausible(found.false, found.runs, 0.0, 0.05), found


@pytest.mark.simulation
def test_coverage_and_false_alarms_are_those_that_are_meant():
    print()
    for seed, (name, setting) in enumerate(SETTINGS.items()):
        found = judged(setting, 1500, seed)
        *shares, runs = found
        told = " | ".join(f"{100 * share:.1f}" for share in shares)
        print(f"{name} | {told} | {runs}", flush=True)
        assert all(is_plausible(share, runs, 0.94, 0.97) for share in shares[:2]), name
        assert is_plausible(found.false, runs, 0.0, 0.05), name


def test_other_presets_of_the_files_are_those_of_every_seed():
    heads = "query value preset"
    for seed, presets in ((0, ["ours", "theirs", ""]), (1, ["ours"])):
        hits = answers(seed, 0.7)
        rows = [(n, hit, preset) for preset in presets for n, hit in enumerate(hits)]
        write(f"{seed}.csv", rows, heads)
    write("other.csv", enumerate(answers(2, 0.6)))
    assert judge_one("0.csv,1.csv:ours", "other.csv")["seeds"] == [2, 1]


def test_a_direction_of_folds_alone_is_judged_by_its_recall():
    for path, share in (("a.csv", 0.7), ("b.csv", 0.4)):
        hits = answers(1, share)
        rows = [(f"q{n}", 1 - hit, "t2i_fold") for n, hit in enumerate(hits)]
        write(path, rows, "query rank direction")
    default = judge_one("a.csv", "b.csv", "--first-rank", "0")
    asked = ("--metric", "fold_t2i_r1")
    named = judge_one("a.csv", "b.csv", "--first-rank", "0", *asked)
    assert numbers(default) == numbers(named)


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_both_sides_are_known_as_far_as_the_side_that_lacks_some(order):
    ranks = [n % 9 for n in range(QUESTIONS)]
    write("a.csv", enumerate(ranks), "query rank")
    write("b.csv", enumerate(r if r < 5 else "" for r in ranks), "query rank")
    found = judge_one(*order, "--first-rank", "0", "--metric", "mrr")
    assert found["difference"] == 0 and found["levels"][0] == found["levels"][1]
