"""Phrases, their proposals and which proposals are right, against loops and hand-made boxes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmark.contracts.methods import NotApplicableError
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.data.feature_folders import sha256_of_items
from benchmark.data.prepared_tables import Prepared
from benchmark.scoring import RefusedError, evaluation, model_scores, score_checks
from benchmark.scoring.inputs import phrase_inputs, proposal_ious
from benchmark.scoring.relevance import localisation_ranks
from benchmark.season.parameters import Cell
from benchmark.train import selection

SPLITS = ("train",) * 3 + ("val",) * 2 + ("test",) * 3 + ("unused",)
P, F = 12, 5
IMAGES, TEXTS = Path("proposals"), Path("phrases")


def pixels(box) -> set[tuple[int, int]]:
    x0, y0, x1, y1 = (int(side) for side in box)
    return {(x, y) for x in range(x0, x1) for y in range(y0, y1)}


def naive_iou(box, other) -> float:
    a, b = pixels(box), pixels(other)
    return len(a & b) / len(a | b) if a else float("nan")


def some_boxes(rng, shape) -> np.ndarray:
    low = rng.integers(0, 12, (*shape, 2))
    return np.concatenate([low, low + rng.integers(1, 12, (*shape, 2))], -1).astype(np.float32)


def test_ious_count_pixels():
    rng = np.random.default_rng(0)
    boxes, truths = some_boxes(rng, (4, 6)), some_boxes(rng, (10,))
    boxes[2, 3:] = 0  # an image with three proposals
    image = rng.integers(0, 4, 10)
    ious = proposal_ious(boxes, image, truths)
    expected = [[naive_iou(b, t) for b in boxes[i]] for i, t in zip(image, truths, strict=True)]
    np.testing.assert_allclose(ious, expected, rtol=1e-6)
    assert np.isnan(ious[image == 2, 3:]).all() and (image == 2).any()


def test_an_iou_of_exactly_one_half_is_right():
    truth = np.array([[0, 0, 10, 10]], np.float32)
    boxes = np.array([[[0, 0, 10, 5], [0, 0, 10, 4], [0, 0, 20, 10]]], np.float32)
    ious = proposal_ious(boxes, np.array([0]), truth)
    assert ious.tolist() == [[0.5, pytest.approx(0.4), 0.5]]
    assert localisation_ranks(np.array([[0.0, 9.0, 1.0]]), ious).values.tolist() == [1, 2]


def naive_rank(scores, ious) -> int:
    right = [s for s, o in zip(scores, ious, strict=True) if o >= 0.5]
    if not right:
        return max(len(scores), 10)
    wrong = [s for s, o in zip(scores, ious, strict=True) if o < 0.5]
    return sum(s >= max(right) for s in wrong)


@pytest.mark.parametrize("seed", range(4))
def test_ranks_and_metrics_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (60, P)).astype(np.float32)  # many ties
    ious = rng.choice([0.0, 0.2, 0.5, 0.9, np.nan], (60, P), p=[0.5, 0.2, 0.1, 0.05, 0.15])
    ious[7] = 0.3
    ious = ious.astype(np.float32)
    scores[np.isnan(ious)] = np.nan
    expected = [naive_rank(s, o) for s, o in zip(scores, ious, strict=True)]
    metrics, ranks = (found := evaluation.of_localisation(scores, ious)).metrics, found.scores
    assert ranks.best("p2r").tolist() == expected and expected[7] == P
    right = [max(sum(o >= 0.5 for o in row), 1) for row in ious]
    assert ranks.all("p2r").counts.tolist() == right
    for k in (1, 5, 10):
        share = sum(rank < k for rank in expected) / 60
        assert metrics[f"p2r_r{k}"] == pytest.approx(100 * share)
    assert metrics["rsum"] == pytest.approx(sum(metrics[f"p2r_r{k}"] for k in (1, 5, 10)))
    has_one = [any(o >= 0.5 for o in row) for row in ious]
    assert metrics["p2r_bound"] == pytest.approx(100 * np.mean(has_one))
    chances = [sum(o >= 0.5 for o in row) / sum(o == o for o in row) for row in ious]
    assert metrics["p2r_chance_r1"] == pytest.approx(100 * np.mean(chances))
    recalls = selection.localisation_recalls(torch.tensor(scores), torch.tensor(ious))
    assert recalls == pytest.approx({key: metrics[key] for key in recalls})
    assert set(recalls) == {"p2r_r1", "p2r_r5", "p2r_r10", "rsum"}


def test_scores_that_are_not_finite_are_refused():
    ious = np.array([[0.6, np.nan]], np.float32)
    assert localisation_ranks(np.array([[1.0, np.nan]]), ious).values.tolist() == [0]
    with pytest.raises(RefusedError, match="1 of 1 scores are NaN"):
        localisation_ranks(np.array([[np.nan, 1.0]]), ious)
    with pytest.raises(selection.NotFiniteError):
        selection.localisation_recalls(torch.tensor([[np.inf, 1.0]]), torch.tensor(ious))


# Inputs ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def made() -> Prepared:
    """Nine images, of which one is unused and one of train has two proposals only."""
    rng = np.random.default_rng(5)
    ids = [f"i{n}" for n in range(len(SPLITS))]
    images = pd.DataFrame({"image_id": ids, "split": SPLITS, "group": ids})
    captions = pd.DataFrame({"caption_id": [f"{i}#0" for i in ids], "image_id": ids, "text": "a"})
    captions["split"] = SPLITS
    rows = [
        (f"{i}#0/{k}", i, f"{i}#0", f"thing {(n + k) % 4}", *box, f"{i}/{k // 2}")
        for n, i in enumerate(ids)
        for k, box in enumerate(some_boxes(rng, (3,)))
        if i != "i6"
    ]
    columns = ["phrase_id", "image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
    regions = pd.DataFrame(rows[::-1], columns=columns)  # in an order of its own
    boxes = some_boxes(rng, (8, P))
    boxes[1, 2:] = 0
    features = rng.normal(size=(8, P, F)).astype(np.float16)
    IMAGES.mkdir()
    TEXTS.mkdir()
    np.save(IMAGES / "boxes.npy", boxes)
    np.save(IMAGES / "proposals.npy", features)
    np.save(IMAGES / "truths.npy", rng.normal(size=(len(regions), F)).astype(np.float16))
    phrases = list(dict.fromkeys(regions["phrase"]))
    np.save(TEXTS / "phrase.npy", rng.normal(size=(len(phrases), 4)).astype(np.float16))
    for folder, items in ((IMAGES, ids[:-1]), (TEXTS, phrases)):
        card = {"dataset": "d", "encoder": folder.name, "items_sha256": sha256_of_items(items)}
        card["items"] = len(items)
        card |= {"regions_sha256": sha256_of_items(regions["phrase_id"].tolist())}
        write_json(folder / "card.json", card)
    return Prepared(images=images, captions=captions, regions=regions, card={}, folder=Path("d"))


def cell() -> Cell:
    return Cell(
        dataset="d", preset="p", seed=0, method="x", family="x", options={}, scaled=[],
        network=None, images=str(IMAGES), texts=str(TEXTS), folder="x",
    )  # fmt: skip


@pytest.fixture
def inputs():
    return phrase_inputs(made(), cell(), "train", torch.device("cpu"))


def test_a_batch_is_phrases_with_their_regions_and_proposals(inputs):
    boxes, features = np.load(IMAGES / "boxes.npy"), np.load(IMAGES / "proposals.npy")
    truths, vectors = np.load(IMAGES / "truths.npy"), np.load(TEXTS / "phrase.npy")
    regions = regions_of_train()
    rows = np.array([8, 0, 4, 1])
    batch = next(inputs.batches([rows], [None]))
    for b, row in enumerate(rows):
        region = regions.iloc[row]
        image = int(region["image_id"][1:])
        np.testing.assert_array_equal(batch.regions[b], truths[region["row"]].astype(np.float32))
        vector = vectors[region["vector"]].astype(np.float32)
        np.testing.assert_array_equal(batch.phrases.values[b], vector)
        own = batch.proposals[batch.image_of_row[b]]
        np.testing.assert_array_equal(own, features[image].astype(np.float32))
        truth = region[["x0", "y0", "x1", "y1"]]
        expected = [naive_iou(box, truth) for box in boxes[image]]
        np.testing.assert_allclose(batch.ious[b], expected, rtol=1e-6)
    same = regions["chain"].iloc[rows].to_numpy()
    np.testing.assert_array_equal(
        batch.chain_ids[:, None] == batch.chain_ids[None], same[:, None] == same[None]
    )
    assert len(batch.proposals) == regions["image_id"].iloc[rows].nunique() < len(rows)
    assert batch.ious.isnan().any()


def regions_of_train() -> pd.DataFrame:
    """The region table of `made`, in its order: rows of train, with their row numbers."""
    rng = np.random.default_rng(5)
    rows = []
    for n in range(len(SPLITS)):
        for k, box in enumerate(some_boxes(rng, (3,))):
            if n != 6:
                rows.append((f"i{n}", f"thing {(n + k) % 4}", *box, f"i{n}/{k // 2}"))
    table = pd.DataFrame(
        rows[::-1], columns=["image_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
    )
    table["row"] = np.arange(len(table))
    distinct = list(dict.fromkeys(table["phrase"]))
    table["vector"] = [distinct.index(phrase) for phrase in table["phrase"]]
    return table[table["image_id"].isin(["i0", "i1", "i2"])].reset_index(drop=True)


def test_the_first_images_bring_their_phrases(inputs):
    fewer = inputs.first_images(2)
    kept = regions_of_train()["image_id"].isin(["i0", "i1"])
    kept = torch.tensor(kept.to_numpy())
    assert torch.equal(fewer.ious.nan_to_num(-1), inputs.ious[kept].nan_to_num(-1))
    assert len(fewer.proposals) == len(fewer.boxes) == 2
    assert inputs.first_images(None) is inputs and inputs.first_images(3) is inputs


class Dot(torch.nn.Module):
    """Scores a region and a phrase by the product of their first four numbers."""

    def encode_images(self, images):
        return (images[:, :4],)

    def encode_captions(self, captions):
        return (captions.values,)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T


def test_every_phrase_meets_the_proposals_of_its_image(inputs):
    scores = model_scores.score_proposals(Dot(), inputs)
    batch = next(inputs.batches([np.arange(9)], [None]))
    for n in range(9):
        expected = batch.proposals[batch.image_of_row[n]][:, :4] @ batch.phrases.values[n]
        torch.testing.assert_close(scores[n], expected)


def test_the_nearest_region_of_every_image_is_among_its_proposals(inputs):
    nearest = model_scores.nearest_regions(Dot(), inputs)
    boxes, wanted = np.load(IMAGES / "boxes.npy"), sorted(set(inputs.vector_of_phrase.tolist()))
    assert nearest.shape == (3, len(wanted))
    for image in range(3):
        there = boxes[image].any(1)
        assert there.sum() == (2 if image == 1 else P)
        for place, v in enumerate(wanted):
            products = inputs.proposals[image][:, :4].float() @ inputs.vectors[v].float()
            expected = float(products[torch.tensor(there)].max())
            assert float(nearest[image, place]) == pytest.approx(expected, abs=1e-5)
    score_checks.check_nearest_regions(Dot(), inputs, nearest)
    nearest = nearest.clone()
    nearest[0, 0] += 1
    with pytest.raises(RefusedError, match="1 of .* scores differ"):
        score_checks.check_nearest_regions(Dot(), inputs, nearest)


def test_an_image_without_proposals_has_no_nearest_region_and_nan_is_refused(inputs):
    boxes = inputs.boxes.clone()
    boxes[1] = 0
    bare = replace(inputs, boxes=boxes)
    nearest = model_scores.nearest_regions(Dot(), bare)
    assert nearest[1].isnan().all() and nearest[[0, 2]].isfinite().all()
    score_checks.check_nearest_regions(Dot(), bare, nearest)
    vectors = inputs.vectors.clone()
    vectors[inputs.vector_of_phrase[0]] = torch.nan
    with pytest.raises(RefusedError, match="scores are NaN or infinite"):
        model_scores.nearest_regions(Dot(), replace(inputs, vectors=vectors))


def test_a_split_without_phrases_is_not_applicable():
    data = made()
    data = replace(data, regions=data.regions.iloc[:0])
    with pytest.raises(NotApplicableError, match="^d: the val split has no phrases with boxes$"):
        phrase_inputs(data, cell(), "val", torch.device("cpu"))


def test_features_of_other_boxes_are_refused():
    data = made()
    other = data.regions.assign(phrase_id=data.regions["phrase_id"] + "x")
    with pytest.raises(UserError) as error:
        phrase_inputs(replace(data, regions=other), cell(), "val", torch.device("cpu"))
    assert (error.value.where, error.value.expected, error.value.found) == (
        "proposals/card.json",
        "features of the phrases of d",
        "features of other phrases",
    )
    assert error.value.do == "delete proposals and run `dvc repro` again"
