"""TREC runs and judgements from elsewhere, as tools write them rightly and wrongly."""

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from benchmark.commands.result_files import Kind, Order, Reading, Result
from benchmark.commands.trec_runs import read_qrels, read_runs

AS_IT_IS = Reading()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    read_qrels.cache_clear()


# Qrels --------------------------------------------------------------------------------

PAIRS = [(f"q{n}", f"d{n % 7}", int(n % 5 > 0)) for n in range(40)]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("trec", [f"{q} 0 {d} {s}" for q, d, s in PAIRS]),
        (
            "beir.tsv",
            ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{s}" for q, d, s in PAIRS)],
        ),
        (
            "other.tsv",
            ["corpus-id\tquery-id\tscore", *(f"{d}\t{q}\t{s}" for q, d, s in PAIRS)],
        ),
        (
            "last.tsv",
            ["score\tquery_id\tdoc_id", *(f"{s}\t{q}\t{d}" for q, d, s in PAIRS)],
        ),
        ("bare.tsv", [f"{q}\t{d}\t{s}" for q, d, s in PAIRS]),
        ("named.trec", ["qid 0 docno rel", *(f"{q} 0 {d} {s}" for q, d, s in PAIRS)]),
        ("comma.csv", ["score,query,item", *(f"{s},{q},{d}" for q, d, s in PAIRS)]),
        (
            "lines.jsonl",
            [
                json.dumps({"query-id": q, "corpus-id": d, "score": s})
                for q, d, s in PAIRS
            ],
        ),
    ],
)
def test_qrels_are_the_same_in_every_form(name, lines):
    Path(name).write_text("\n".join([*lines, ""]))
    found = read_qrels(Path(name))
    rows = found.pairs[["query", "item", "is_relevant"]].itertuples(
        index=False, name=None
    )
    assert [*rows] == [(q, d, s > 0) for q, d, s in PAIRS]
    assert sorted(found.queries) == sorted(q for q, _, s in PAIRS if s)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["left\tright\tscore", "q\td\t1"], "left, right, score"),
        (["query\tqid\tdoc\tscore", "q\tq\td\t1"], "query, qid, doc, score"),
        (["query\tdoc\tscore", "q\td\thigh"], "no finite number"),
        (["query\tdoc\tscore", "q\td\t1", "q\td\t0"], "a second time"),
        (["query\tdoc\tscore", "q\td"], "2 cells in a row"),
        (["q d 1 0 1"], "5 cells in a row"),
        (["query\tdoc\tscore", "q\td\t0"], "none"),
        ([], "none"),
    ],
)
def test_what_is_no_qrels_is_refused(lines, found):
    Path("some.tsv").write_text("\n".join(lines))
    with refused("some.tsv", "", found):
        read_qrels(Path("some.tsv"))


def test_columns_of_no_meaning_are_named():
    Path("more.tsv").write_text("query-id\tcorpus-id\tnote\tscore\nq\td\tx\t1\n")
    assert any(
        "not used: the columns note" in note
        for note in read_qrels(Path("more.tsv")).notes
    )


# Runs ---------------------------------------------------------------------------------

QUERIES = [f"q{n:02d}" for n in range(60)]
ITEMS = [f"d{n:03d}" for n in range(100)]
RIGHT = np.random.default_rng(5).integers(100, size=60)


class Run:
    """A run of the better items, as a tool may write it."""

    depth = 20
    queries = QUERIES
    quality = 2.5

    def query(self, name: str) -> str:
        return name

    def item(self, name: str) -> str:
        return name

    def rank(self, place: int) -> object:
        return place + 1

    def score(self, similarity: float, place: int) -> float:
        return similarity

    def read(self, reading: Reading = AS_IT_IS) -> Result:
        qrels = [f"{q} 0 {ITEMS[d]} 1" for q, d in zip(QUERIES, RIGHT, strict=True)]
        Path("qrels").write_text("\n".join(qrels))
        lines, rng = [], np.random.default_rng(7)
        for query, right in zip(QUERIES, RIGHT, strict=True):
            similarities = rng.normal(size=100)
            similarities[right] += self.quality
            best = np.argsort(-similarities)[: self.depth]
            for place, at in enumerate(best) if query in self.queries else ():
                score = self.score(float(similarities[at]), place)
                name, rank = self.item(ITEMS[at]), self.rank(place)
                lines.append(f"{self.query(query)} Q0 {name} {rank} {score} tag")
        Path("some.run").write_text("\n".join(lines))
        return read_runs("some.run", read_qrels(Path("qrels")), reading)


USUAL = [
    {},
    {"rank": lambda self, place: place},
    {"rank": lambda self, place: 1},
    {"rank": lambda self, place: "-"},
    {"score": lambda self, similarity, place: -place},
    {"score": lambda self, similarity, place: round(similarity)},
    {"depth": 100},
    {"depth": 1},
    {"depth": 100, "quality": 0},
    {"depth": 100, "quality": -0.5},
    {"queries": QUERIES[:-2]},
]


@pytest.mark.parametrize("facts", USUAL, ids=range(len(USUAL)))
def test_usual_runs_are_read(facts):
    found = type("Usual", (Run,), facts)().read()
    assert found.kind == Kind.RANKS and len(found.table) == 60


RISING = {
    "distances": lambda self, similarity, place: 3 - similarity,
    "the rank": lambda self, similarity, place: place + 1,
    "one rises": lambda self, similarity, place: similarity + 99 * (place == 7),
}


@pytest.mark.parametrize("name", RISING)
def test_scores_that_contradict_ranks_are_refused_until_an_option_decides(name):
    run = type("Rising", (Run,), {"score": RISING[name]})()
    with refused(
        "some.run: query 'q00'", "scores that fall", "60 of 60", "--order ranks"
    ):
        run.read()
    assert run.read(Reading(order=Order.RANKS)).table.equals(Run().read().table)
    by_scores = run.read(Reading(order=Order.SCORES)).table[0]
    assert (by_scores.to_numpy() > 0).sum() > 40


def test_one_query_that_contradicts_is_named():
    def score(self, similarity, place):
        self.lines = getattr(self, "lines", 0) + 1
        return similarity + 9 * (self.lines == 20 * 31)

    run = type("Once", (Run,), {"score": score})()
    with refused("some.run: query 'q30'", "", "(1 of 60 queries)"):
        run.read()


def test_one_score_for_all_says_no_order():
    run = type("Flat", (Run,), {"score": lambda self, similarity, place: 1.0})()
    with refused(
        "some.run: query 'q00'", "scores that differ", "60 of 60", "--order ranks"
    ):
        run.read()
    assert run.read(Reading(order=Order.RANKS)).table.equals(Run().read().table)
    ties = run.read(Reading(order=Order.SCORES))
    assert ties.table[0].min() == 19 and any("tied with" in note for note in ties.notes)


def test_ranks_that_say_no_order_are_no_order():
    run = type("Same", (Run,), {"rank": lambda self, place: 1})()
    with refused("some.run: rank of", "--order ranks", "'1'", "--order scores"):
        run.read(Reading(order=Order.RANKS))


def test_relevant_items_at_the_end_of_whole_lists_are_doubted():
    run = type("Worst", (Run,), {"depth": 100, "quality": -2.5})()
    with refused("some.run: score", "", "over 60 queries"):
        run.read()
    assert run.read(Reading(order=Order.SCORES)).table[0].median() > 80


ITEMS_OF_OTHERS = {
    "row numbers": (lambda self, name: str(int(name[1:])), "0 of them"),
    "others": (lambda self, name: f"x{name}y", "0 of them"),
    "files": (lambda self, name: f"images/{name}.jpg", "'images/d"),
    "case": (lambda self, name: name.upper(), "'D"),
    "case of a half": (
        lambda self, name: name.upper() if int(name[1:]) % 2 else name,
        "'D",
    ),
    "no zeros": (lambda self, name: f"d{int(name[1:])}", "'d"),
}


@pytest.mark.parametrize("name", ITEMS_OF_OTHERS)
def test_items_that_the_qrels_do_not_have_are_refused(name):
    item, found = ITEMS_OF_OTHERS[name]
    with refused("some.run: items", "qrels", found):
        type("Other", (Run,), {"item": item})().read()


def test_queries_in_another_spelling_are_refused():
    for query in (str.upper, lambda name: f"q{int(name[1:])}"):
        with refused("some.run", "queries of qrels", "for 'q0", "name them alike"):
            type(
                "Other", (Run,), {"query": lambda self, name, query=query: query(name)}
            )().read()


def test_many_queries_without_an_answer_are_counted_when_asked_to():
    run = type("Part", (Run,), {"queries": QUERIES[:20]})()
    with refused(
        "some.run", "answers to the 60 queries", "none to 40", "--count-unanswered"
    ):
        run.read()
    found = run.read(Reading(count_unanswered=True))
    assert len(found.table) == 60 and any(
        "no answer to 40" in note for note in found.notes
    )


def test_a_comma_in_the_name_of_a_run_separates_no_seeds():
    Run().read()
    Path("a,b.run").write_bytes(Path("some.run").read_bytes())
    found = read_runs("a,b.run", read_qrels(Path("qrels")), AS_IT_IS)
    assert found.table.columns.tolist() == [0]


def test_a_score_between_0_and_1_is_relevant():
    Path("half.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t0.5\nq\te\t0\n")
    assert read_qrels(Path("half.tsv")).pairs["is_relevant"].tolist() == [True, False]


def test_the_longest_list_of_a_run_tells_its_depth():
    Run().read()
    lines = Path("some.run").read_text().splitlines()
    Path("some.run").write_text("\n".join(lines[:-15]))
    assert read_runs("some.run", read_qrels(Path("qrels")), AS_IT_IS).depth == 20


@pytest.mark.parametrize("order", [(100, 10), (10, 100)])
def test_runs_of_two_depths_are_known_to_the_lesser(order):
    for number, depth in enumerate(order):
        type("Part", (Run,), {"depth": depth})().read()
        Path("some.run").rename(f"{number}.run")
    found = read_runs("0.run,1.run", read_qrels(Path("qrels")), AS_IT_IS)
    assert found.depth == 10 and found.items == set(ITEMS) and not found.lists_all


def test_one_rank_that_is_no_number_orders_nothing():
    Run().read()
    path = Path("some.run")
    path.write_text(path.read_text().replace(" 7 ", " ? ", 1))
    with refused("some.run: rank of", found="'?'", do="--order scores"):
        read_runs("some.run", read_qrels(Path("qrels")), Reading(order=Order.RANKS))


def test_of_several_relevant_items_the_best_counts():
    rows = [f"{query} 0 {item} 1" for query in QUERIES for item in ITEMS[3:7:3]]
    Path("qrels").write_text("\n".join(rows))
    lines = []
    for query in QUERIES:
        for place, item in enumerate(ITEMS[:8]):
            lines.append(f"{query} Q0 {item} {place} {1 / (1 + place)} tag")
    Path("some.run").write_text("\n".join(lines))
    found = read_runs(
        "some.run", read_qrels(Path("qrels")), Reading(order=Order.SCORES)
    )
    assert (found.table == 3).all(axis=None)
