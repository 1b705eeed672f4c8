"""Evaluation of tiny cells and fusions: records, ranks by loops, and what is
refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import rescoring as naive
from refusals import refused
from tiny_cells import (
    IMAGES,
    KINDS,
    PREPARED,
    WORDS,
    cell_of,
    enter,
    evaluated,
    fusion_of,
    result_in,
    scores_of,
    scores_on_test,
    train_cell,
    write_dataset,
)

from benchmark.collect.__main__ import collect
from benchmark.core.command_line import guarded
from benchmark.core.records import read_record
from benchmark.data import prepared_tables, results
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.scoring import model_scores
from benchmark.season.parameters import RETRIEVED, SAMPLES, Cell
from seasons import params_of


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    yield
    torch.use_deterministic_algorithms(False)


def test_test_scores_that_are_not_finite_are_a_failed_record():
    cell = cell_of("two_branch")
    write_dataset(bad="test")
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "failed"
    assert "scores are NaN or infinite" in record.reason


@pytest.mark.parametrize("kind", KINDS)
def test_evaluating_twice_gives_the_same_bytes(kind):
    cell = cell_of(kind)
    train_cell(cell)
    runs = []
    for _ in range(2):
        assert evaluated(cell).status == "ok"
        files = ("record.json", "scores/ranks.npz")
        paths = [f"{cell.folder}/{name}" for name in files]
        paths += map(cell.place, (RETRIEVED, SAMPLES))
        runs.append([Path(path).read_bytes() for path in paths])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kept", [(SAMPLES, RETRIEVED), (SAMPLES,), ()])
def test_what_git_kept_of_an_earlier_evaluation_does_not_stay(kept):
    cell = cell_of("two_branch", folder="data/cells/try/tiny/two_branch/0")
    others = tuple({SAMPLES, RETRIEVED} - set(kept))
    for rate, keeps in ((0.01, others), (0.2, kept)):
        options = cell.options | {"learning_rate": rate}
        changed = cell.model_copy(update={"keeps": keeps, "options": options})
        train_cell(changed)
        assert evaluated(changed).status == "ok"
        params = params_of(datasets={"tiny": {}}, cells={changed.key: changed})
        collect(params, "tiny")
    result = results.read_kept("try", "tiny")["two_branch/0"]
    in_git = {Path(name).name for name in result.arrays} - {Path(results.RANKS).name}
    assert in_git == set(kept)
    assert result.samples and result.retrieved  # with the checksums of the record
    assert len(list(Path("data").rglob(SAMPLES))) == 1


def rank_of(scores: np.ndarray, image: int) -> int:
    # test images are i17 to i22, in groups of an even and an odd one
    groups = [(17 + i) // 2 for i in range(len(scores))]
    best = max(scores[i] for i in range(len(scores)) if groups[i] == groups[image])
    return sum(
        scores[i] >= best for i in range(len(scores)) if groups[i] != groups[image]
    )


def test_a_record_tells_what_was_played(monkeypatch):
    cell = cell_of("scan")
    train_cell(cell)
    test_scores = scores_on_test(cell, monkeypatch=monkeypatch)
    scores = test_scores["i2t"]
    assert (test_scores["t2i"] == scores.T).all()
    record = json.loads(Path("data/cells/a/record.json").read_text())
    captions = pd.read_parquet(PREPARED / "captions.parquet").query("split == 'test'")
    assert scores.shape == (6, len(captions))
    assert (record["images"], record["captions"]) == scores.shape
    assert (record["status"], record["split"], record["seed"]) == (
        "ok",
        "official/test",
        0,
    )
    assert record["options"]["epochs"] == 3 and record["options"]["margin"] == 0.2
    assert record["scaled"] == ["epochs"]
    assert record["text_features"] == {"vocabulary": 4 + len(WORDS)}
    (departure,) = record["departures"]
    assert (departure["aspect"], departure["here"]) == ("grid_regions", "2")
    assert "s2s_r1" not in record["metrics"]
    assert record["history"]["epoch"] == [1, 2, 3]
    costs = results.read_cell_costs(Path(cell.costs), Path("data/cells/a/record.json"))
    assert costs.training.seconds["training"] > 0
    assert costs.scoring.seconds["per_pair"] > 0
    queries, kept = results.test_queries(prepared_tables.read("tiny")), scores_of()
    assert queries["i2t"].tolist() == [f"i{n}" for n in range(17, 23)]
    assert queries["t2i"].tolist() == captions["caption_id"].tolist()
    assert record["metrics"]["t2i_r1"] == pytest.approx(
        100 * (kept.best("t2i") < 1).mean()
    )
    for row, (_, caption) in enumerate(captions.iterrows()):
        own = int(caption["image_id"][1:]) - 17
        assert kept.best("t2i")[row] == rank_of(scores[:, row], own)
    relevant = (np.arange(17, 23) // 2)[:, None] == captions["image_id"].str[1:].astype(
        int
    ).to_numpy() // 2
    assert kept.ranks[I2T].counts.tolist() == relevant.sum(1).tolist()
    retrieved = result_in(cell.folder).retrieved
    assert retrieved["t2i"].shape == (len(captions), 6)
    assert (retrieved["i2t"][:, 0] == scores.argmax(1)).all()
    assert kept.histograms.matched.sum() == relevant.sum()
    assert kept.histograms.unmatched.sum() == (~relevant).sum()


def two_members() -> tuple[Cell, Cell]:
    first, second = (
        cell_of("scan"),
        cell_of("scan", folder="data/cells/b", direction="i2t"),
    )
    second = second.model_copy(update={"preset": "other"})
    for cell in (first, second):
        train_cell(cell)
    return first, second


def test_a_fusion_of_parts_encodes_their_training_once_and_keeps_their_order(
    monkeypatch,
):
    parted, other = cell_of("two_scores"), cell_of("two_scores", folder="data/cells/b")
    for cell in (parted, other):
        train_cell(cell)
    # and that of the other: one seed
    first = scores_on_test(parted, monkeypatch=monkeypatch)["i2t"]
    counts, encoded = [], model_scores.encoded
    fused = fusion_of(parted, parted, parts=("first", "second"))
    with monkeypatch.context() as patch:
        patch.setattr(
            model_scores,
            "encoded",
            lambda *given: counts.append(given[2]) or encoded(*given),
        )
        record = evaluated(fused, parted)
    assert record.status == "ok" and counts == [("first", "second")]
    assert record.options["of"] == ["two_scores:first", "two_scores:second"]
    scores = scores_on_test(fused, parted, monkeypatch=monkeypatch)["i2t"]
    np.testing.assert_allclose(
        scores, (first + np.sin(first)) / 2, rtol=1e-5, atol=1e-6
    )
    parts = ("second", "first", "second")
    fused = fusion_of(parted, other, parted, how="adaptive", parts=parts)
    record = evaluated(fused, parted, other)
    weights = result_in(fused.folder).samples["weights_i2t"]
    expected = naive.weights([np.sin(first), first, np.sin(first)])
    np.testing.assert_allclose(weights, expected, rtol=1e-3)
    assert record.sampled.keys() == {"weights_inside", "weights_outside"}
    assert sum(record.sampled.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_no_method_is_blamed_for_a_small_machine(error, monkeypatch, capsys):
    cell = cell_of("two_branch")
    train_cell(cell)

    def scored(*given):
        raise error

    monkeypatch.setattr(model_scores, "encoded", scored)
    status = guarded(lambda arguments: evaluated(cell), None)
    assert status == 2 and not Path("data/cells/a/record.json").exists()
    assert "\nrematch: out of memory: data/cells/a: " in capsys.readouterr().err


def test_a_fusion_scores_the_mean_of_its_members_and_fuses_a_fold_as_if_it_were_all(
    monkeypatch,
):
    members = two_members()
    matrices = [
        scores_on_test(cell, monkeypatch=monkeypatch)["i2t"] for cell in members
    ]
    scores = scores_on_test(fusion_of(*members), *members, monkeypatch=monkeypatch)
    np.testing.assert_allclose(
        scores["i2t"], (matrices[0] + matrices[1]) / 2, rtol=1e-6
    )
    assert (scores["t2i"] == scores["i2t"].T).all()
    assert not np.allclose(matrices[0], matrices[1])
    records = [read_record(Path("data/cells") / name) for name in ("a", "b", "fused")]
    assert records[2].parameters == records[0].parameters + records[1].parameters
    options = records[2].options
    assert (options["how"], options["of"]) == ("average", ["scan", "other"])
    assert set(options["presets"]) == {"scan", "other"}
    assert (records[2].selected_epoch, records[2].preset) == (None, "fused")
    whole = prepared_tables.read("tiny")
    in_folds = replace(whole, card=whole.card | {"folds": 3})
    monkeypatch.setattr(prepared_tables, "read", lambda name: in_folds)
    for how in ("adaptive", "average"):
        scores_on_test(fusion_of(*members, how=how), *members, monkeypatch=monkeypatch)
        check_folds(how, matrices, whole.split("test").image_of_caption)


def check_folds(
    how: str, matrices: list[np.ndarray], image_of_caption: np.ndarray
) -> None:
    fold_of_image = np.arange(6) // 2
    kept, others = scores_of("data/cells/fused"), 0
    within = {
        way: kept.ranks[RankKey(way, is_of_folds=True)].best for way in ("i2t", "t2i")
    }
    for fold in range(3):
        images, captions = (
            fold_of_image == fold,
            fold_of_image[image_of_caption] == fold,
        )
        parts = [matrix[np.ix_(images, captions)] for matrix in matrices]
        own = np.searchsorted(np.flatnonzero(images), image_of_caption[captions])
        scores = getattr(naive, how)(parts)
        expected = [
            rank_of(row, image) for row, image in zip(scores["t2i"], own, strict=True)
        ]
        assert within["t2i"][captions].tolist() == expected
        best = [max(row[own == image]) for image, row in enumerate(scores["i2t"])]
        expected = [
            int((row[own != image] >= best[image]).sum())
            for image, row in enumerate(scores["i2t"])
        ]
        assert within["i2t"][images].tolist() == expected
        shares = naive.weights(parts), naive.weights(matrices)[:, images]
        others += not np.allclose(*shares)
    assert others  # weights among all items are others than those within a fold


@pytest.mark.parametrize("stage", ["train", "evaluate"])
@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (
            lambda path: path.write_bytes(b"\0" + path.read_bytes()[1:]),
            "",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-9]),
            "",
        ),
        (Path.unlink, "nothing"),
    ],
)
def test_damaged_features_are_refused(stage, damage, found):
    cell = cell_of("two_branch")
    if stage == "evaluate":
        train_cell(cell)
    damage(IMAGES / "pooled.npy")
    run = {"train": train_cell, "evaluate": evaluated}[stage]
    with refused("grid/pooled.npy", found=found):
        run(cell)
