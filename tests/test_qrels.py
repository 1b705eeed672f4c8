"""Judgements: columns by their names, in any order."""

import itertools

import pytest
from refusals import refused

from benchmark.readers import qrels

NAMES = [
    ("query-id", "corpus-id", "score"),
    ("Query_ID", "Doc ID", "Relevance"),
    ("qid", "docno", "label"),
]
PAIRS = {("1", "7"): 2.0, ("7", "1"): 0.0, ("2", "1"): 1.0}


def pairs(text: str) -> dict[tuple[str, str], float]:
    return {(x.query, x.item): x.score for x in qrels.read(text, "test.tsv").judgements}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("names", NAMES)
def test_columns_go_by_their_names(names, order):
    rows = [
        names,
        *((query, item, f"{score:g}") for (query, item), score in PAIRS.items()),
    ]
    lines = ["\t".join(row[place] for place in order) for row in rows]
    assert pairs("\r\n".join(lines)) == PAIRS
    assert qrels.read("\n".join(lines), "test.tsv").has_names


def test_without_names_columns_go_by_their_place():
    assert pairs("1\t7\t2\n7\t1\t0\n2\t1\t1") == PAIRS
    assert not qrels.read("1\t7\t2", "test.tsv").has_names
    assert pairs("1 0 7 2\n7 0 1 0\n2 0 1 1\n") == PAIRS  # TREC's
    assert qrels.read("1 0 7 2", "test.tsv").has_names
    assert pairs("iter\tscore\tqid\tpid\n0\t2\t1\t7") == {("1", "7"): 2.0}


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        ("a\tb\tc\n1\t7\t2", ":1", "a, b, c"),
        ("query-id\tcorpus-id\tscore\tannotator\n1\t7\t2\t3", ":1", "annotator"),
        ("query-id\tqid\tscore\n1\t7\t2", ":1", "query-id, qid, score"),
        ("query-id\tscore\tscore\n1\t7\t2", ":1", "score, score"),
        ("query-id,corpus-id,score\n1,7,2", ":1", "query-id,corpus-id,score"),
        ("1\t7\ttwo\n1\t7\t2", ":1", "1, 7, two"),
        ("query-id\tcorpus-id\tscore\n1\t7", ":2", "'1\\t7'"),
        ("score\tcorpus-id\tquery-id\nx\t7\t1", ":2", "'x\\t7\\t1'"),
        ("query-id\tcorpus-id\tscore\n1\t7\t2\n1\t7\t0", ":3", "0"),
        ("1\t2", ":1", "1 2"),
        ("", ":1", "nothing"),
    ],
)
def test_what_is_unclear_is_refused(text, where, found):
    with refused(f"test.tsv{where}", found=found):
        qrels.read(text, "test.tsv")
