"""Phrases that are localised among proposals: their ranks, their inputs, and cells that
are trained and evaluated, against loops and hand-made boxes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
import tiny_cells
import torch
from refusals import refused
from tiny_cells import (
    cell_of,
    evaluated,
    fusion_of,
    history_of,
    scores_on_test,
    train_cell,
)

from benchmark.boards import season_boards
from benchmark.contracts.methods import Captions, NotApplicableError
from benchmark.core.files import read_json
from benchmark.core.records import Aspect, Costs
from benchmark.data.feature_folders import sha256_of_items, write_card
from benchmark.data.prepared_tables import read
from benchmark.data.rank_keys import RankKey
from benchmark.evaluate.trained_cells import trained_cell
from benchmark.scoring import (
    RefusedError,
    evaluation,
    model_scores,
    score_checks,
    validation,
)
from benchmark.scoring.inputs import phrase_inputs, proposal_ious
from benchmark.scoring.ranking import localisation_ranks, ranks_of
from benchmark.season.parameters import SAMPLES, Cell
from benchmark.train import __main__ as train
from seasons import params_of

CPU = torch.device("cpu")
PROPOSALS, PHRASES = (
    Path("data/features/tiny/proposals"),
    Path("data/features/tiny/phrases"),
)
# images, proposals of each, numbers of a region, of a phrase
USED, P, F, WIDTH = 23, 6, 5, 4
SPLITS = {"val": range(12, 17), "test": range(17, 23)}  # places of their images
BARE = 20  # an image of the test split with two proposals


def some_boxes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    low = rng.integers(0, 12, (*shape, 2))
    return np.concatenate([low, low + rng.integers(1, 12, (*shape, 2))], -1).astype(
        np.float32
    )


@pytest.fixture(autouse=True)
def dataset(tmp_path, monkeypatch) -> None:
    """Three phrases an image, two with a right proposal; image 20 has two proposals;
    first captions have two phrases, last ones the third."""
    rng = np.random.default_rng(3)
    boxes, truths = some_boxes(rng, USED, P), some_boxes(rng, USED, 3)
    boxes[:, 1], boxes[:, 0] = truths[:, 0], truths[:, 1]
    boxes[BARE, 2:] = 0
    rows = [
        (
            f"i{n}/{k}",
            f"i{n}",
            f"i{n}#{n % 3 if k == 2 else 0}",
            f"thing {(n + k) % 5}",
            *box,
        )
        for n in range(USED)
        for k, box in enumerate(truths[n])
    ]
    columns = ["phrase_id", "image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1"]
    regions = pd.DataFrame(rows, columns=columns)
    # of the first two
    regions["chain"] = [f"{row[1]}/{row[0].endswith('2')}" for row in rows]
    regions = regions[::-1].reset_index(drop=True)  # in an order of its own
    monkeypatch.setattr(tiny_cells, "NO_REGIONS", regions)
    monkeypatch.chdir(tmp_path)
    tiny_cells.write_dataset()
    images = {
        "boxes": boxes,
        "proposals": rng.normal(size=(USED, P, F)).astype(np.float16),
        "truths": rng.normal(size=(len(regions), F)).astype(np.float16),
    }
    used, distinct = (
        [f"i{n}" for n in range(USED)],
        list(dict.fromkeys(regions["phrase"])),
    )
    texts = {"phrase": rng.normal(size=(len(distinct), WIDTH)).astype(np.float16)}
    folders = (
        (PROPOSALS, images, used, "selective_search"),
        (PHRASES, texts, distinct, "none"),
    )
    for folder, arrays, items, how in folders:
        folder.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        card = {"dataset": "tiny", "encoder": folder.name, "items": len(items)}
        card |= {"items_sha256": sha256_of_items(items), "vectors": "made up"}
        card |= {"prepared_sha256": read("tiny").sha256}
        card["regions_sha256"] = sha256_of_items(regions["phrase_id"].tolist())
        card["settings"] = {"network": "drawn_cnn", "how": how, "standardise": False}
        write_card(folder, card)


def phrase_cell(**changes: object) -> Cell:
    options = {
        "hidden_size": 8,
        "embedding_size": 6,
        "epochs": 2,
        "batch_size": 10,
        "top_k": 5,
    }
    facts = {
        "preset": "phrases",
        "method": "two_branch_phrase_embedding",
        "options": options,
        "images": str(PROPOSALS),
        "texts": str(PHRASES),
        "folder": "data/cells/phrases",
        "network": None,
    }
    return cell_of("two_branch").model_copy(update=facts | changes)


def model_of(cell: Cell) -> torch.nn.Module:
    return trained_cell(cell, read("tiny").sha256).model(CPU)


def test_validation_images_without_a_phrase_are_not_applicable(monkeypatch):
    original = train.inputs.phrase_inputs

    def of_the_fourth_image(data, split, cell, device):
        found = original(data, split, cell, device)
        owners = torch.full_like(found.image_of_phrase, 3)
        return replace(found, image_of_phrase=owners) if split.name == "val" else found

    monkeypatch.setattr(train.inputs, "phrase_inputs", of_the_fourth_image)
    train_cell(phrase_cell(validation_images=3))
    checkpoint = tiny_cells.checkpoint_of("data/cells/phrases")
    assert checkpoint.status == "not_applicable"
    assert "first 3 validation images" in checkpoint.reason
    train_cell(phrase_cell(validation_images=4))
    assert tiny_cells.checkpoint_of("data/cells/phrases").status == "ok"


# Ranks --------------------------------------------------------------------------------


def pixels(box) -> set[tuple[int, int]]:
    x0, y0, x1, y1 = (int(side) for side in box)
    return {(x, y) for x in range(x0, x1) for y in range(y0, y1)}


def naive_iou(box, other) -> float:
    a, b = pixels(box), pixels(other)
    return len(a & b) / len(a | b) if a else float("nan")


def test_ious_count_pixels():
    rng = np.random.default_rng(0)
    boxes, truths = some_boxes(rng, 4, 6), some_boxes(rng, 10)
    boxes[2, 3:] = 0  # an image with three proposals
    image = rng.integers(0, 4, 10)
    ious = proposal_ious(boxes, image, truths)
    expected = [
        [naive_iou(b, t) for b in boxes[i]] for i, t in zip(image, truths, strict=True)
    ]
    np.testing.assert_allclose(ious, expected, rtol=1e-6)
    assert np.isnan(ious[image == 2, 3:]).all() and (image == 2).any()


def test_an_iou_of_exactly_one_half_is_right():
    truth = np.array([[0, 0, 10, 10]], np.float32)
    boxes = np.array([[[0, 0, 10, 5], [0, 0, 10, 4], [0, 0, 20, 10]]], np.float32)
    ious = proposal_ious(boxes, np.array([0]), truth)
    assert ious.tolist() == [[0.5, pytest.approx(0.4), 0.5]]
    assert localisation_ranks(np.array([[0.0, 9.0, 1.0]]), ious).values.tolist() == [
        1,
        2,
    ]


def naive_rank(scores, ious) -> int:
    right = [s for s, o in zip(scores, ious, strict=True) if o >= 0.5]
    if not right:
        return max(len(scores), 10)
    wrong = [s for s, o in zip(scores, ious, strict=True) if o < 0.5]
    return sum(s >= max(right) for s in wrong)


@pytest.mark.parametrize("seed", range(2))
def test_ranks_and_metrics_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (60, 12)).astype(np.float32)  # many ties
    ious = rng.choice(
        [0.0, 0.2, 0.5, 0.9, np.nan], (60, 12), p=[0.5, 0.2, 0.1, 0.05, 0.15]
    )
    ious[7] = 0.3
    ious = ious.astype(np.float32)
    scores[np.isnan(ious)] = np.nan
    expected = [naive_rank(s, o) for s, o in zip(scores, ious, strict=True)]
    metrics, ranks = (
        (found := evaluation.of_localisation(scores, ious)).metrics,
        found.scores,
    )
    assert ranks.best("p2r").tolist() == expected and expected[7] == 12
    right = [max(sum(o >= 0.5 for o in row), 1) for row in ious]
    assert ranks.ranks[RankKey("p2r")].counts.tolist() == right
    for k in (1, 5, 10):
        share = sum(rank < k for rank in expected) / 60
        assert metrics[f"p2r_r{k}"] == pytest.approx(100 * share)
    assert metrics["rsum"] == pytest.approx(
        sum(metrics[f"p2r_r{k}"] for k in (1, 5, 10))
    )
    has_one = [any(o >= 0.5 for o in row) for row in ious]
    assert metrics["p2r_bound"] == pytest.approx(100 * np.mean(has_one))
    chances = [sum(o >= 0.5 for o in row) / sum(o == o for o in row) for row in ious]
    assert metrics["p2r_chance_r1"] == pytest.approx(100 * np.mean(chances))
    recalls = validation.localisation_recalls(torch.tensor(scores), torch.tensor(ious))
    assert recalls == pytest.approx({key: metrics[key] for key in recalls})
    assert set(recalls) == {"p2r_r1", "p2r_r5", "p2r_r10", "rsum"}


def test_scores_that_are_not_finite_are_refused():
    ious = np.array([[0.6, np.nan]], np.float32)
    assert localisation_ranks(np.array([[1.0, np.nan]]), ious).values.tolist() == [0]
    with pytest.raises(RefusedError, match="1 of 1 scores are NaN"):
        localisation_ranks(np.array([[np.nan, 1.0]]), ious)
    with pytest.raises(validation.NotFiniteError):
        validation.localisation_recalls(
            torch.tensor([[np.inf, 1.0]]), torch.tensor(ious)
        )


# Inputs -------------------------------------------------------------------------------


@pytest.fixture
def inputs():
    data = read("tiny")
    return phrase_inputs(data, data.split("test"), phrase_cell(), CPU)


def test_a_batch_is_phrases_with_their_regions_and_proposals(inputs):
    boxes, features = (
        np.load(PROPOSALS / "boxes.npy"),
        np.load(PROPOSALS / "proposals.npy"),
    )
    truths, vectors = np.load(PROPOSALS / "truths.npy"), np.load(PHRASES / "phrase.npy")
    regions = read("tiny").regions
    distinct = list(dict.fromkeys(regions["phrase"]))
    regions = regions[regions["image_id"].isin([f"i{n}" for n in SPLITS["test"]])]
    rows = np.array([7, 0, 8, 1])
    batch = next(inputs.batches([rows], [None]))
    for b, row in enumerate(rows):
        region = regions.iloc[row]
        image = int(region["image_id"][1:])
        np.testing.assert_array_equal(
            batch.regions[b], truths[region.name].astype(np.float32)
        )
        vector = vectors[distinct.index(region["phrase"])].astype(np.float32)
        np.testing.assert_array_equal(batch.phrases.values[b], vector)
        own = batch.proposals[batch.image_of_row[b]]
        np.testing.assert_array_equal(own, features[image].astype(np.float32))
        expected = [
            naive_iou(box, region[["x0", "y0", "x1", "y1"]]) for box in boxes[image]
        ]
        np.testing.assert_allclose(batch.ious[b], expected, rtol=1e-6)
    same = regions["chain"].iloc[rows].to_numpy()
    np.testing.assert_array_equal(
        batch.chain_ids[:, None] == batch.chain_ids[None], same[:, None] == same[None]
    )
    assert len(batch.proposals) == 2 and batch.ious.isnan().any()
    assert inputs.first_images(None) is inputs and inputs.first_images(6) is inputs


class Dot(torch.nn.Module):
    def encode_images(self, images):
        return (images[:, :4],)

    def encode_captions(self, captions):
        return (captions.values,)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T


class Centred(Dot):
    # depends on which regions are scored together

    def similarity(self, images, captions):
        return (images[0] - images[0].mean(0)) @ captions[0].T


def test_the_nearest_region_of_every_image_is_among_its_proposals(inputs):
    nearest = model_scores.nearest_regions(Dot(), inputs)
    score_checks.check_nearest_regions(Dot(), inputs, nearest)
    changed = nearest.clone()
    changed[0, 0] += 1
    with pytest.raises(RefusedError, match="1 of .* scores differ"):
        score_checks.check_nearest_regions(Dot(), inputs, changed)
    boxes = inputs.boxes.clone()
    boxes[1] = 0  # an image without proposals has none; NaN is refused
    bare = replace(inputs, boxes=boxes)
    of_bare = model_scores.nearest_regions(Dot(), bare)
    assert of_bare[1].isnan().all() and of_bare[[0, 2]].equal(nearest[[0, 2]])
    score_checks.check_nearest_regions(Dot(), bare, of_bare)
    vectors = inputs.vectors.clone()
    vectors[inputs.vector_of_phrase[0]] = torch.nan
    with pytest.raises(RefusedError, match="NaN"):
        model_scores.nearest_regions(Dot(), replace(inputs, vectors=vectors))


def test_other_phrases_or_none_have_no_inputs():
    data, cell = read("tiny"), phrase_cell()
    none = replace(data, regions=data.regions.iloc[:0])
    with pytest.raises(NotApplicableError, match="^tiny: .*val"):
        phrase_inputs(none, none.split("val"), cell, CPU)
    other = data.regions.assign(phrase_id=data.regions["phrase_id"] + "x")
    expected, found = "phrases of ", "other phrases"
    with refused(
        PROPOSALS / "card.json", expected, found, f"delete {PROPOSALS} and run"
    ):
        phrase_inputs(replace(data, regions=other), data.split("val"), cell, CPU)


# Cells --------------------------------------------------------------------------------


def products_of(cell: Cell) -> Callable[[int, str], np.ndarray]:
    """(P',) the score of a phrase with each proposal of an image."""
    model, boxes = model_of(cell), np.load(PROPOSALS / "boxes.npy")
    proposals = np.load(PROPOSALS / "proposals.npy").astype(np.float32)
    vectors = np.load(PHRASES / "phrase.npy").astype(np.float32)
    distinct = list(dict.fromkeys(read("tiny").regions["phrase"]))

    @torch.inference_mode()
    def products(image: int, phrase: str) -> np.ndarray:
        regions = torch.from_numpy(proposals[image][boxes[image].any(1)])
        vector = torch.from_numpy(vectors[[distinct.index(phrase)]])
        texts = Captions(values=vector, lengths=torch.ones(1, dtype=torch.int64))
        encoded = model.encode_images(regions), model.encode_captions(texts)
        return model.similarity(*encoded)[:, 0].numpy()

    return products


def looked_up(cell: Cell, images: range) -> tuple[list[int], list[np.ndarray]]:
    """By phrase: best rank of a right proposal, first box."""
    every, products = np.load(PROPOSALS / "boxes.npy"), products_of(cell)
    ranks, firsts = [], []
    for row in read("tiny").regions.itertuples():
        image = int(row.image_id[1:])
        if image not in images:
            continue
        scores, boxes = products(image, row.phrase), every[image]
        truth = np.array([row.x0, row.y0, row.x1, row.y1])
        is_right = [naive_iou(box, truth) >= 0.5 for box in boxes[: len(scores)]]
        order = np.argsort(-scores)
        ranks.append(next((n for n, place in enumerate(order) if is_right[place]), 10))
        firsts.append(boxes[order[0]])
    return ranks, firsts


def test_phrases_are_localised_as_a_loop_over_the_proposals_does():
    cell = phrase_cell()
    train_cell(cell)
    record = evaluated(cell)
    assert (record.status, record.task, record.phrases) == ("ok", "localisation", 18)
    ranks, firsts = looked_up(cell, SPLITS["test"])
    assert tiny_cells.scores_of(cell.folder).best("p2r").tolist() == ranks
    assert 10 in ranks and {0, 1, 2} <= set(ranks)
    for k in (1, 5, 10):
        share = 100 * np.mean([rank < k for rank in ranks])
        assert record.metrics[f"p2r_r{k}"] == pytest.approx(share)
    assert record.metrics["p2r_bound"] == pytest.approx(
        100 * np.mean([r < 10 for r in ranks])
    )
    with np.load(cell.place(SAMPLES)) as arrays:
        np.testing.assert_array_equal(arrays["p2r_boxes"], firsts)


def test_a_record_tells_how_the_features_of_phrases_differ_from_the_papers():
    made = {"standardise": True, "how": "grid"}
    for folder, facts in ((PROPOSALS, {}), (PHRASES, {"weights": "random weights"})):
        card = read_json(folder / "card.json")
        write_card(folder, card | facts | {"settings": card["settings"] | made})
    cell = phrase_cell(network="vgg19")
    train_cell(cell)
    departures = evaluated(cell).departures
    assert [(each.aspect, each.here, each.texts) for each in departures] == [
        (Aspect.IMAGE_NETWORK, "drawn_cnn", None),
        (Aspect.PROPOSALS, "grid", None),
        (Aspect.IMAGES_STANDARDISED, "", None),
        (Aspect.TEXT_VECTORS, "made up", "phrase"),
        (Aspect.RANDOM_TEXT_WEIGHTS, "", "phrase"),
        (Aspect.TEXTS_STANDARDISED, "", "phrase"),
    ]


@pytest.mark.parametrize("count", [None, 2])
def test_training_is_validated_by_the_phrases_of_the_first_images(count):
    cell = phrase_cell(validation_images=count)
    train_cell(cell)
    ranks, _ = looked_up(cell, SPLITS["val"][:count])
    last = history_of(cell.folder).iloc[-1]
    for k in (1, 5):
        assert last[f"val_p2r_r{k}"] == pytest.approx(
            100 * np.mean([rank < k for rank in ranks])
        )


def test_localisation_that_hangs_on_the_batch_is_refused():
    cell = phrase_cell()
    train_cell(cell)
    data = read("tiny")
    inputs = phrase_inputs(data, data.split("test"), cell, CPU)
    model = model_of(cell)
    matrix = model_scores.score_proposals(model, inputs)
    score_checks.check_localisation(model, inputs, matrix)
    changed = matrix.clone()
    changed[7, 1] += 0.5
    with pytest.raises(RefusedError, match=f"1 of {matrix.numel()} scores differ"):
        score_checks.check_localisation(model, inputs, changed)


def test_regions_are_scored_again_in_parts(inputs):
    matrix = model_scores.score_proposals(Centred(), inputs)
    with pytest.raises(RefusedError, match="scores differ"):
        score_checks.check_localisation(Centred(), inputs, matrix)
    nearest = model_scores.nearest_regions(Centred(), inputs)
    with pytest.raises(RefusedError, match="scores differ"):
        score_checks.check_nearest_regions(Centred(), inputs, nearest)


def test_a_board_refuses_a_record_of_other_phrases():
    cell = phrase_cell()
    train_cell(cell)
    record = evaluated(cell)
    counted = {"images": 6, "captions": record.captions, "phrases": 18}
    card = {"split": "official", "manifest": "0" * 64, "counts": {"test": counted}}
    params = params_of(cells={cell.folder: cell})
    costs = Costs(scoring=builders.cost())
    kept = {cell.name: replace(tiny_cells.result_in(cell.folder), costs=costs)}
    assert season_boards._outcome(params, cell, card, kept).record == record
    counted["phrases"] = 17
    with refused(": phrases", "17", "18"):
        season_boards._outcome(params, cell, card, kept)


# Whole images and regions together ----------------------------------------------------


def distances(whole: Cell, phrases: Cell, split: str) -> tuple[np.ndarray, np.ndarray]:
    """d and d_rp of Eq. 8, (I, C) each, phrase by phrase."""
    data, images = read("tiny"), SPLITS[split]
    captions = data.captions[data.captions["split"] == split]["caption_id"].tolist()
    pooled = np.load(tiny_cells.IMAGES / "pooled.npy")[list(images)].astype(np.float32)
    rows = [data.captions["caption_id"].tolist().index(caption) for caption in captions]
    vectors = np.load(tiny_cells.VECTORS / "sentence.npy")[rows].astype(np.float32)
    lengths = torch.ones(len(rows), dtype=torch.int64)
    texts = Captions(values=torch.from_numpy(vectors), lengths=lengths)
    model = model_of(whole)
    with torch.inference_mode():
        encoded = (
            model.encode_images(torch.from_numpy(pooled)),
            model.encode_captions(texts),
        )
        cosines = model.similarity(*encoded).numpy()
    d = np.sqrt(np.maximum(2 - 2 * cosines, 0))
    d_rp, products = d.copy(), products_of(phrases)
    for c, caption in enumerate(captions):
        own = data.regions[data.regions["caption_id"] == caption]["phrase"]
        for i, image in enumerate(images):
            near = [np.sqrt(2 - 2 * products(image, text).max()) for text in own]
            d_rp[i, c] = np.mean(near) if near else d[i, c]
    return d, d_rp


def test_regions_weigh_as_is_best_for_validation(monkeypatch):
    whole, phrases = cell_of("two_branch", folder="data/cells/whole"), phrase_cell()
    fusion = fusion_of(whole, phrases, how="weighted")
    for cell in (whole, phrases):
        train_cell(cell)
    scores = scores_on_test(fusion, whole, phrases, monkeypatch=monkeypatch)
    alpha = evaluated(fusion, whole, phrases).metrics["alpha"]
    d, d_rp = distances(whole, phrases, "test")
    np.testing.assert_allclose(
        scores["i2t"], -((1 - alpha) * d + alpha * d_rp), atol=1e-5
    )
    d, d_rp = distances(whole, phrases, "val")
    split = read("tiny").split("val")
    groups = split.group_of_image
    relevant = groups[:, None] == groups[split.image_of_caption]
    rsums = []
    for step in range(11):
        mixed = -((1 - step / 10) * d + step / 10 * d_rp)
        ways = ranks_of(mixed, relevant), ranks_of(mixed.T, relevant.T)
        rsums.append(
            sum(100 * (way.best < k).mean() for way in ways for k in (1, 5, 10))
        )
    assert alpha == np.argmax(np.round(rsums, 6)) / 10  # the smallest of equals
    assert len(set(np.round(rsums, 6))) > 1


def test_a_pretended_gpu_localises_as_the_cpu_does():
    tiny_cells.check_on_a_pretended_gpu(phrase_cell())
