"""TREC files of evaluated cells: ir-measures reads them and finds the record's
recalls."""

from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest
from builders import keep_arrays, outcome
from ir_measures import Success
from oracles import whole_matrices

from benchmark.boards.boards import Outcome
from benchmark.boards.trec_export import write_trec
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.data.results import RETRIEVED
from benchmark.scoring.metrics import retrieval_metrics

WAYS = ("i2t", "t2i")
ODD = (
    "two words",
    "tab\there",
    "a#0",
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
    """A dataset of one to five captions per image, with training images before the test
    images."""
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
        images=pd.DataFrame(
            {"image_id": image_ids, "split": splits, "group": image_ids}
        ),
        captions=pd.DataFrame(captions),
        regions=pd.DataFrame(columns=["image_id", "phrase_id"]),
        card={},
        folder=Path("data/prepared/made up"),
    )


def best_first(scores_QN: np.ndarray, relevant_QN: np.ndarray) -> np.ndarray:
    """(Q, 10); among equal scores the wrong ones come first."""
    return np.array(
        [
            sorted(
                range(len(scores)), key=lambda item: (-scores[item], relevant[item])
            )[:10]
            for scores, relevant in zip(
                scores_QN.tolist(), relevant_QN.tolist(), strict=True
            )
        ],
        dtype=np.int32,
    )


def played(
    data: Prepared, rng: np.random.Generator, *, levels: int, seed: int = 0
) -> Outcome:
    """A cell with scores of `levels` values: the fewer, the more ties."""
    split = data.split("test")
    relevant = np.equal.outer(split.group_of_image, split.group_of_caption)
    scores = 1.0 * rng.integers(0, levels, relevant.shape) + relevant * (levels // 3)
    both = {"i2t": (scores, relevant), "t2i": (scores.T, relevant.T)}
    ranks = whole_matrices.ranks_by_way(
        {way: matrix for way, (matrix, _) in both.items()}, relevant
    )
    retrieved = {way: best_first(*matrices) for way, matrices in both.items()}
    metrics = retrieval_metrics(ranks)
    return stored(seed, retrieved, metrics=metrics)


def stored(seed: int, retrieved: dict, **facts: object) -> Outcome:
    """A cell with what it retrieved."""
    made = outcome("odd preset", seed, dataset="made up", **facts)
    keep_arrays(made, RETRIEVED, **retrieved)
    return made


def success(folder: Path, way: str, seed: int = 0) -> dict:
    """Success@1, 5 and 10 in percent, as ir-measures reads and computes them."""
    qrels = ir_measures.read_trec_qrels(str(folder / f"made%20up.{way}.qrels"))
    run = ir_measures.read_trec_run(
        str(folder / f"made%20up-odd%20preset-{seed}.{way}.run")
    )
    shares = ir_measures.calc_aggregate([Success @ k for k in (1, 5, 10)], qrels, run)
    return {
        f"{way}_r{measure['cutoff']}": 100 * value for measure, value in shares.items()
    }


@pytest.mark.parametrize(("images", "levels"), [(6, 1), (60, 3), (60, 10**6)])
def test_success_of_ir_measures_is_the_recall_of_the_record(tmp_path, images, levels):
    rng = np.random.default_rng([images, levels])
    data = prepared(images, rng)
    cell = played(data, rng, levels=levels)
    failed = stored(2, {}, status="failed")
    write_trec([cell, failed], data, tmp_path / "trec")
    runs = {f"made%20up-odd%20preset-0.{way}.run" for way in WAYS}
    qrels = {f"made%20up.{way}.qrels" for way in WAYS}
    assert {path.name for path in (tmp_path / "trec").iterdir()} == runs | qrels
    for way in WAYS:
        expected = {
            f"{way}_r{k}": cell.record.metrics[f"{way}_r{k}"] for k in (1, 5, 10)
        }
        assert success(tmp_path / "trec", way) == pytest.approx(expected)


def test_any_image_of_a_person_is_relevant_and_only_captions_are_queries(tmp_path):
    # two images a person: each caption finds the other one, second or first
    images = ["a1", "b1", "a2", "b2"]
    captions = {
        "caption_id": ["on a2", "on b1"],
        "image_id": ["a2", "b1"],
        "split": "test",
    }
    data = Prepared(
        images=pd.DataFrame(
            {"image_id": images, "split": "test", "group": ["a", "b", "a", "b"]}
        ),
        captions=pd.DataFrame(captions | {"text": "t"}),
        regions=pd.DataFrame(columns=["image_id", "phrase_id"]),
        card={"ways": ["t2i"]},
        folder=Path("data/prepared/made up"),
    )
    played = stored(0, {"t2i": np.array([[1, 0], [3, 2]])})
    folder = tmp_path / "trec"
    write_trec([played], data, folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"made%20up.t2i.qrels", "made%20up-odd%20preset-0.t2i.run"}
    qrels = (folder / "made%20up.t2i.qrels").read_text().splitlines()
    assert qrels == [
        f"on%20{image} 0 {image[0]}{n} 1" for image in ("a2", "b1") for n in (1, 2)
    ]
    assert success(folder, "t2i") == {"t2i_r1": 50.0, "t2i_r5": 100.0, "t2i_r10": 100.0}


def test_retrieved_items_of_another_split_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    cell = played(prepared(60, rng), rng, levels=9)
    data = prepared(30, rng)
    with pytest.raises(UserError) as error:
        write_trec([cell], data, tmp_path / "trec")
    assert error.value.expected.startswith("20 queries over ")
    assert not (tmp_path / "trec").exists()
