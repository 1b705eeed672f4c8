"""BEIR's layout in someone's own folder: what belongs together, and what is refused."""

import itertools
import json
from pathlib import Path

import pytest
from layouts import in_one_note
from refusals import refused

from benchmark.contracts.datasets import folder
from benchmark.readers.judged_corpora import read_qrels

NAMES = [
    ("query-id", "corpus-id", "score"),
    ("Query_ID", "Doc ID", "Relevance"),
    ("qid", "docno", "label"),
]
PAIRS = {("1", "7"): 2.0, ("7", "1"): 0.0, ("2", "1"): 1.0}


def write_jsonl(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def small_judgements(raw: Path, *pairs: str, images: str = "abc") -> None:
    (raw / "qrels").mkdir()
    for name in images:
        (raw / f"{name}.png").write_bytes(b"")
    write_jsonl(raw / "corpus.jsonl", [{"_id": name} for name in images])
    write_jsonl(
        raw / "queries.jsonl", [{"_id": f"k{n}", "text": f"It is {n}."} for n in "abc"]
    )
    lines = [f"{pair.replace(' ', chr(9))}\t1" for pair in pairs]
    (raw / "qrels/test.tsv").write_text(
        "\n".join(["query-id\tcorpus-id\tscore", *lines])
    )


def test_captions_of_several_images_make_them_a_group(tmp_path):
    small_judgements(tmp_path, "ka a", "ka b", "kb b", "kb a", "kc c")
    tables = folder.read(tmp_path)
    assert tables.images.set_index("image_id")["group"].to_dict() == {
        "a": "a",
        "b": "a",
        "c": "c",
    }
    assert dict(tables.captions[["image_id", "text"]].to_numpy()) == {
        name: f"It is {name}." for name in "abc"
    }


def test_captions_keep_the_numbers_in_their_ids(tmp_path):
    ids = [f"{name}.png#{number}" for number, name in enumerate("abc", start=4)]
    pairs = [f"{caption} {caption[0]}" for caption in ids]
    small_judgements(tmp_path, *pairs)
    rows = [{"_id": caption, "text": "It is."} for caption in ids]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    captions = folder.read(tmp_path).captions["caption_id"]
    assert captions.str.partition("#")[2].tolist() == ["4", "5", "6"]


def test_ids_of_captions_are_no_paths(tmp_path):
    ids = ["/m/0", "../1", "x" * 300]
    small_judgements(tmp_path)
    rows = [{"_id": name, "text": f"It is {name}."} for name in ids]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    pairs = [f"{name}\t{image}\t1" for name, image in zip(ids, "abc", strict=True)]
    head = "query-id\tcorpus-id\tscore"
    (tmp_path / "qrels/test.tsv").write_text("\n".join([head, *pairs]))
    tables = folder.read(tmp_path)
    assert tables.captions.index.tolist() == ids
    assert tables.captions["image_id"].tolist() == list("abc")
    write_jsonl(tmp_path / "queries.jsonl", [*rows, {"_id": "a\0", "text": "b"}])
    with refused("queries.jsonl:4: _id", found="a zero byte"):
        folder.read(tmp_path)


def test_judgements_go_by_the_names_of_their_columns(tmp_path):
    (tmp_path / "qrels").mkdir()
    # ids of both sides are the same numbers: the place of a column says nothing
    image_of = {"0": "2", "1": "0", "2": "1"}
    for number in image_of:
        (tmp_path / f"{number}.png").write_bytes(b"")
    rows = [{"_id": number, "image": f"{number}.png"} for number in image_of]
    write_jsonl(tmp_path / "corpus.jsonl", rows)
    rows = [
        {"_id": caption, "text": f"Image {image}."}
        for caption, image in image_of.items()
    ]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    file = tmp_path / "qrels/test.tsv"
    for head, line in (
        ("query-id\tcorpus-id\tscore", "{q}\t{c}\t1"),
        ("corpus-id\tquery-id\tscore", "{c}\t{q}\t1"),
        ("score\tcorpus-id\tquery-id", "1\t{c}\t{q}"),
    ):
        lines = [line.format(q=q, c=c) for q, c in image_of.items()]
        file.write_text("\n".join([head, *lines]))
        for options in (folder.Options(), folder.Options(captions="corpus.jsonl")):
            captions = folder.read(tmp_path, options).captions
            expected = [f"Image {image}." for image in captions["image_id"]]
            assert captions["text"].tolist() == expected
    file.write_text("\n".join(lines))
    with refused("qrels/test.tsv:1", "columns", "both have", "query-id, corpus-id"):
        folder.read(tmp_path)


def test_captions_and_images_keep_the_names_of_a_corpus(tmp_path):
    small_judgements(tmp_path, "ka a", "kb b", "kc c")
    rows = [
        {"_id": f"k{n}", "text": f"It is {n}.", "metadata": {"split": "val"}}
        for n in "abc"
    ]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    tables = folder.read_for_score(tmp_path)
    assert tables.captions.index.tolist() == ["ka", "kb", "kc"]
    assert tables.captions["image_id"].tolist() == ["a", "b", "c"]
    assert len(tables.notes) == 1 and in_one_note(
        tables, "corpus.jsonl", "metadata.split."
    )


def test_a_corpus_as_a_table_goes_by_names_and_knows_quotation_marks(tmp_path):
    small_judgements(tmp_path, "ka a", "kb b", "kc c")
    (tmp_path / "queries.jsonl").unlink()
    texts = {"ka": '"Fish" says a sign.', "kb": "Two\u2028lines.", "kc": '20"'}
    lines = ["text\t_id", *(f"{text}\t{key}" for key, text in texts.items())]
    (tmp_path / "queries.tsv").write_text("\n".join(lines), encoding="utf-8")
    assert folder.read(tmp_path).captions["text"].tolist() == list(texts.values())


def test_judgements_that_no_group_can_hold_are_refused(tmp_path):
    small_judgements(tmp_path, "ka a", "ka b", "kb b", "kc c")
    with refused("qrels/test.tsv: kb", "a, too", "b", "captions of a group"):
        folder.read(tmp_path)


def test_what_is_not_judged_is_told(tmp_path):
    small_judgements(tmp_path, "ka a", "kb b", images="abcd")
    tables = folder.read(tmp_path)
    assert tables.images["split"].tolist() == ["test", "test", "unused", "unused"]
    assert in_one_note(tables, "1 captions", ": kc.") and in_one_note(
        tables, "2 images", ": c, d."
    )


@pytest.mark.parametrize(
    ("name", "text", "where", "expected", "found"),
    [
        (
            "qrels/dev.tsv",
            "ka\ta\t1",
            "qrels/test.tsv:2: a",
            "one split",
            "test and dev",
        ),
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\nkx\ta\t1",
            "test.tsv:2",
            "queries.jsonl",
            "'kx'",
        ),
        ("qrels/test.tsv", "qid\tdoc\trel\nka a", "test.tsv:2", "3 cells", "'ka a'"),
        (
            "corpus.jsonl",
            '{"_id": "a", "text": "A."}',
            "",
            "none of corpus.jsonl",
            "3 of 3",
        ),
        ("queries.jsonl", '{"_id": 1.5}', "queries.jsonl:1: _id", "occurs once", "1.5"),
    ],
)
def test_judgements_that_are_wrong_are_refused(
    tmp_path, name, text, where, expected, found
):
    small_judgements(tmp_path, "ka a", "kb b", "kc c")
    (tmp_path / name).write_text(text)
    with refused(where, expected, found):
        folder.read(tmp_path)


# Judgements of pairs ------------------------------------------------------------------


def pairs(text: str) -> dict[tuple[str, str], float]:
    return {(x.query, x.item): x.score for x in read_qrels(text, "test.tsv").judgements}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("names", NAMES)
def test_columns_go_by_their_names(names, order):
    rows = [
        names,
        *((query, item, f"{score:g}") for (query, item), score in PAIRS.items()),
    ]
    lines = ["\t".join(row[place] for place in order) for row in rows]
    assert pairs("\r\n".join(lines)) == PAIRS
    assert read_qrels("\n".join(lines), "test.tsv").has_names


def test_without_names_columns_go_by_their_place():
    assert pairs("1\t7\t2\n7\t1\t0\n2\t1\t1") == PAIRS
    assert not read_qrels("1\t7\t2", "test.tsv").has_names
    assert pairs("1 0 7 2\n7 0 1 0\n2 0 1 1\n") == PAIRS  # TREC's
    assert read_qrels("1 0 7 2", "test.tsv").has_names
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
        read_qrels(text, "test.tsv")


def test_what_is_judged_0_does_not_belong(tmp_path):
    small_judgements(tmp_path, "ka a", "kb b", "kc c")
    file = tmp_path / "qrels/test.tsv"
    file.write_text(f"{file.read_text()}\nka\tb\t0\nka\tc\t-1")
    captions = folder.read(tmp_path).captions
    assert captions["image_id"].tolist() == ["a", "b", "c"]


def test_captions_of_a_group_are_dealt_in_turn(tmp_path):
    pairs = [f"k{caption} {image}" for caption in "abc" for image in "abc"]
    small_judgements(tmp_path, *pairs)
    assert folder.read_for_score(tmp_path).captions["image_id"].tolist() == list("abc")


def test_ids_of_one_side_tell_the_columns(tmp_path):
    small_judgements(tmp_path, images="abcd")
    rows = [{"_id": name, "text": f"It is {name}."} for name in "abc"]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    # all queries are ids of the corpus, too, but no caption is called d
    lines = "a\td\t1\nb\tb\t1\nc\tc\t1"
    (tmp_path / "qrels/test.tsv").write_text(lines)
    assert folder.read_for_score(tmp_path).captions["image_id"].tolist() == list("bcd")
