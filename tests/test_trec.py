"""TREC files of evaluated cells: ir-measures reads them and finds the record's recalls."""

from pathlib import Path
from urllib.parse import unquote

import ir_measures
import numpy as np
import pandas as pd
import pytest
from builders import outcome, write_arrays
from ir_measures import Success
from oracles import whole_matrices

from benchmark import protocol
from benchmark.analysis.boards import Outcome
from benchmark.analysis.trec_export import write_trec
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared

WAYS = ("i2t", "t2i")
ODD = (
    "two words",
    "tab\there",
    "a#0",
    "100%",
    "%20",
    "50 %25",
    '"quoted"',
    "\u4e2d/\u6587",
    "d\n0",
)


def ids(count: int, kind: str) -> list[str]:
    """Unique ids, some with everything that a TREC file cannot hold."""
    return [f"{kind} {ODD[number % len(ODD)]} {number}" for number in range(count)]


def prepared(images: int, rng: np.random.Generator) -> Prepared:
    """A dataset of one to five captions per image, with training images before the test images."""
    owners = np.repeat(np.arange(images), rng.integers(1, 6, images))
    splits = np.where(np.arange(images) < images // 3, "train", "test")
    image_ids = np.array(ids(images, "image"), dtype=object)
    captions = {
        "caption_id": ids(len(owners), "caption"),
        "image_id": image_ids[owners],
        "text": "a caption",
        "split": splits[owners],
    }
    return Prepared(
        images=pd.DataFrame({"image_id": image_ids, "split": splits, "group": image_ids}),
        captions=pd.DataFrame(captions),
        regions=pd.DataFrame(columns=["image_id"]),
        card={},
        folder=Path("data/prepared/made up"),
    )


def best_first(scores_QN: np.ndarray, relevant_QN: np.ndarray) -> np.ndarray:
    """The ten best items of each query, (Q, 10); among equal scores the wrong ones come first."""
    return np.array(
        [
            sorted(range(len(scores)), key=lambda item: (-scores[item], relevant[item]))[:10]
            for scores, relevant in zip(scores_QN.tolist(), relevant_QN.tolist(), strict=True)
        ],
        dtype=np.int32,
    )


def played(
    folder: Path, data: Prepared, rng: np.random.Generator, *, levels: int, seed: int = 0
) -> Outcome:
    """A cell with scores of `levels` values: the fewer, the more ties."""
    split = data.split("test")
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    scores = rng.integers(0, levels, relevant.shape) + relevant * (levels // 3)
    both = {"i2t": (scores, relevant), "t2i": (scores.T, relevant.T)}
    ranks = protocol.retrieval_ranks({way: matrix for way, (matrix, _) in both.items()}, relevant)
    retrieved = {way: best_first(*matrices) for way, matrices in both.items()}
    metrics = protocol.retrieval_metrics(ranks)
    return stored(folder / str(seed), seed, retrieved, metrics=metrics)


def stored(folder: Path, seed: int, retrieved: dict, **facts: object) -> Outcome:
    """A cell with what it retrieved."""
    write_arrays(folder, "retrieved", **retrieved)
    return outcome("odd preset", seed, folder=folder, dataset="made up", **facts)


def success(folder: Path, way: str, seed: int = 0) -> dict:
    """Success@1, 5 and 10 in percent, as ir-measures reads and computes them."""
    qrels = ir_measures.read_trec_qrels(str(folder / f"made%20up.{way}.qrels"))
    run = ir_measures.read_trec_run(str(folder / f"made%20up-odd%20preset-{seed}.{way}.run"))
    shares = ir_measures.calc_aggregate([Success @ k for k in (1, 5, 10)], qrels, run)
    return {f"{way}_r{measure['cutoff']}": 100 * value for measure, value in shares.items()}


@pytest.mark.parametrize("levels", [1, 3, 40, 10**6])
@pytest.mark.parametrize("images", [6, 60])
def test_success_of_ir_measures_is_the_recall_of_the_record(tmp_path, images, levels):
    rng = np.random.default_rng([images, levels])
    data = prepared(images, rng)
    cell = played(tmp_path / "cells", data, rng, levels=levels)
    write_trec([cell], data, tmp_path / "trec")
    for way in WAYS:
        expected = {f"{way}_r{k}": cell.record.metrics[f"{way}_r{k}"] for k in (1, 5, 10)}
        assert success(tmp_path / "trec", way) == pytest.approx(expected)


def test_the_made_up_scores_tie_and_the_recalls_tell_something():
    """The test above could not fail if all recalls were 0 or 100, or if no tie mattered."""
    rng = np.random.default_rng([60, 3])
    data = prepared(60, rng)
    split = data.split("test")
    relevant = protocol.relevance(split.group_of_image, split.group_of_caption)
    scores = rng.integers(0, 3, relevant.shape) + relevant
    both = {"i2t": scores, "t2i": scores.T}
    ranks = protocol.retrieval_ranks(both, relevant)
    assert 0 < protocol.retrieval_metrics(ranks)["i2t_r10"] < 100
    assert whole_matrices.tie_gap(both, relevant, ranks)["i2t_r1_tie_gap"] > 0


def test_any_picture_of_a_person_is_relevant_and_only_captions_are_queries(tmp_path):
    """Two pictures per person: each caption finds the other one of its person, second or first."""
    images = ["a1", "b1", "a2", "b2"]
    captions = {"caption_id": ["on a2", "on b1"], "image_id": ["a2", "b1"], "split": "test"}
    data = Prepared(
        images=pd.DataFrame({"image_id": images, "split": "test", "group": ["a", "b", "a", "b"]}),
        captions=pd.DataFrame(captions | {"text": "t"}),
        regions=pd.DataFrame(columns=["image_id"]),
        card={"ways": ["t2i"]},
        folder=Path("data/prepared/people"),
    )
    played = stored(tmp_path / "0", 0, {"t2i": np.array([[1, 0], [3, 2]])})
    write_trec([played], data, tmp_path / "trec")
    names = {path.name for path in (tmp_path / "trec").iterdir()}
    assert names == {"people.t2i.qrels", "made%20up-odd%20preset-0.t2i.run"}
    qrels = (tmp_path / "trec/people.t2i.qrels").read_text().splitlines()
    assert qrels == [
        "on%20a2 0 a1 1",
        "on%20a2 0 a2 1",
        "on%20b1 0 b1 1",
        "on%20b1 0 b2 1",
    ]
    shares = ir_measures.calc_aggregate(
        [Success @ 1, Success @ 5],
        ir_measures.read_trec_qrels(str(tmp_path / "trec/people.t2i.qrels")),
        ir_measures.read_trec_run(str(tmp_path / "trec/made%20up-odd%20preset-0.t2i.run")),
    )
    assert shares == {Success @ 1: 0.5, Success @ 5: 1.0}


def test_phrase_localisation_has_no_files(tmp_path):
    data = prepared(6, np.random.default_rng(0))
    metrics = {"p2r_r1": 50.0}
    localised = stored(tmp_path / "0", 0, {}, metrics=metrics, task="localisation")
    write_trec([localised], data, tmp_path / "trec")
    names = {path.name for path in (tmp_path / "trec").iterdir()}
    assert names == {"made%20up.i2t.qrels", "made%20up.t2i.qrels"}


def test_files_are_what_trec_tools_expect(tmp_path):
    rng = np.random.default_rng(0)
    data = prepared(30, rng)
    write_trec([played(tmp_path / "cells", data, rng, levels=5)], data, tmp_path / "trec")
    for path in (tmp_path / "trec").glob("*.qrels"):
        rows = [line.split(" ") for line in path.read_text().splitlines()]
        assert all(len(row) == 4 and row[1] == "0" and row[3] == "1" for row in rows)
        assert len(rows) == len(data.split("test").caption_rows)
    for path in (tmp_path / "trec").glob("*.run"):
        rows = [line.split(" ") for line in path.read_text().splitlines()]
        assert all(len(row) == 6 and row[1] == "Q0" for row in rows)
        assert {row[5] for row in rows} == {"made%20up-odd%20preset-0"}
        for query in {row[0] for row in rows}:
            of_query = [row for row in rows if row[0] == query]
            assert [int(row[3]) for row in of_query] == list(range(1, 11))
            scores = [float(row[4]) for row in of_query]
            assert all(a > b for a, b in zip(scores, scores[1:], strict=False))
            assert len({row[2] for row in of_query}) == 10


def test_ids_can_be_read_back(tmp_path):
    rng = np.random.default_rng(0)
    data = prepared(30, rng)
    cell = played(tmp_path / "cells", data, rng, levels=5)
    write_trec([cell], data, tmp_path / "trec")
    split = data.split("test")
    images = data.images["image_id"].iloc[split.image_rows].tolist()
    captions = data.captions["caption_id"].iloc[split.caption_rows].tolist()
    lines = (tmp_path / "trec" / "made%20up.i2t.qrels").read_text().splitlines()
    pairs = [tuple(unquote(line.split(" ")[column]) for column in (0, 2)) for line in lines]
    assert pairs == [(images[i], captions[c]) for c, i in enumerate(split.image_of_caption)]
    lines = (tmp_path / "trec" / "made%20up-odd%20preset-0.t2i.run").read_text().splitlines()
    retrieved = cell.arrays("scores/retrieved.npz")["t2i"]
    expected = [(captions[q], images[item]) for q, row in enumerate(retrieved) for item in row]
    assert [tuple(unquote(line.split(" ")[c]) for c in (0, 2)) for line in lines] == expected


def test_qrels_are_shared_and_a_failed_cell_has_no_run(tmp_path):
    rng = np.random.default_rng(0)
    data = prepared(30, rng)
    cells = [played(tmp_path / "cells", data, rng, levels=9, seed=seed) for seed in (0, 1)]
    failed = stored(tmp_path / "cells" / "2", 2, {}, status="failed")
    write_trec([*cells, failed], data, tmp_path / "trec")
    runs = {f"made%20up-odd%20preset-{seed}.{way}.run" for seed in (0, 1) for way in WAYS}
    qrels = {f"made%20up.{way}.qrels" for way in WAYS}
    assert {path.name for path in (tmp_path / "trec").iterdir()} == runs | qrels


def test_retrieved_items_of_another_split_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    cell = played(tmp_path / "cells", prepared(60, rng), rng, levels=9)
    data = prepared(30, rng)
    with pytest.raises(UserError) as error:
        write_trec([cell], data, tmp_path / "trec")
    assert error.value.where.endswith("scores/retrieved.npz: i2t")
    assert error.value.expected.startswith("20 queries over ")
    assert error.value.found.startswith("40 over ")
    assert error.value.do == "run: dvc repro"
    assert not list((tmp_path / "trec").glob("*.run"))
