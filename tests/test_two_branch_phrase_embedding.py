"""The two-branch embedding network for phrases against loops written from Algorithm 1."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from oracles import two_branch as sentences
from oracles import two_branch_phrases as naive
from region_batches import (
    ALONE,
    IMAGE_SIZE,
    IOUS,
    TEXT_SIZE,
    batch_of,
    ious_of,
)
from torch import Tensor

from benchmark.contracts.methods import Inputs, RegionBatch, Sizes
from benchmark.contracts.methods import two_branch_phrase_embedding as method
from benchmark.layers.branches import encode_regions
from benchmark.layers.losses import draw

PAIRED = [4, 4, 9, 9, 2, 2, 7, 7, 4, 4, 5, 5]  # chains of the rows, with sampling
HIDDEN, DIMENSIONS = 7, 4
SINGLE = {"lambda1": 0.0, "lambda2": 1.0, "augmented": False}
ROWS = {  # table 1 (b), in its order
    "linear": SINGLE | {"nonlinear": False},
    "single": SINGLE,
    "bidirectional": {"augmented": False},
    "augmented": {},
    "sampling": {"neighbourhood_sampling": True},
    "constraints": {"neighbourhood_sampling": True, "lambda3": 0.1, "lambda4": 0.1},
}


def config_of(**options) -> method.Config:
    return method.Config(hidden_size=HIDDEN, embedding_size=DIMENSIONS, **options)


def model_of(**options) -> method.Model:
    """In evaluation mode, with weights and batch norm statistics that are nobody's initial ones."""
    torch.manual_seed(0)
    sizes = Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)
    model = method.Model(config_of(**options), sizes).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) / 2
    return model


def loss_of(model: method.Model, batch: RegionBatch, seed: int = 0) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return model.loss(batch)


def regions_of(model: method.Model, batch: RegionBatch, seed: int) -> tuple[list, list]:
    """Target rows, and the encodings of the regions that each is paired with, as they are drawn."""
    c = model.config
    true, proposals = (x.detach().numpy() for x in encode_regions(model, batch))
    targets = list(range(0, len(true), 2 if c.neighbourhood_sampling else 1))
    ious = ious_of(batch)
    allowed = torch.zeros(len(targets), 6, dtype=torch.bool)
    for t, row in enumerate(targets):
        allowed[t, naive.positives(ious[row])] = True
    torch.manual_seed(seed)
    columns, present = draw(allowed, c.augmented + c.neighbourhood_sampling)
    regions = []
    for t, row in enumerate(targets):
        drawn = [] if c.augmented else [true[row]]
        for column, there in zip(columns[t].tolist(), present[t].tolist(), strict=True):
            drawn.append(proposals[batch.image_of_row[row], column] if there else true[row])
        regions.append(drawn)
    return targets, regions


@pytest.mark.parametrize("k", [1, 2, 30])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("row", ROWS)
def test_loss_is_equation_6_over_algorithm_1(row, seed, k):
    model = model_of(**ROWS[row], margin=0.4, top_k=k)
    c, n = model.config, 2 if "neighbourhood_sampling" in ROWS[row] else 1
    batch = batch_of(PAIRED if n == 2 else ALONE, seed)
    terms = loss_of(model, batch, seed)
    targets, regions = regions_of(model, batch, seed)
    phrases = model.encode_captions(batch.phrases)[0].detach().numpy()
    proposals = encode_regions(model, batch)[1].detach().numpy()
    images, ious, chains = batch.image_of_row, ious_of(batch), batch.chain_ids.tolist()
    sampled = (images, ious, targets, regions, 0.4, k)
    expected = {"phrase_anchor": c.lambda2 * naive.phrase_anchor(phrases, proposals, *sampled)}
    if c.lambda1:
        term = naive.image_anchor(phrases, chains, targets, regions, n, 0.4, k)
        expected["image_anchor"] = c.lambda1 * term
    if c.lambda3:
        term = naive.region_neighbourhood(proposals, *sampled)
        expected["region_neighbourhood"] = 0.1 * term
        term = sentences.text_neighbourhood(phrases, chains, 0.4, k)
        expected["phrase_neighbourhood"] = 0.1 * term
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(expected, abs=1e-6)
    assert min(expected.values()) > 0


@pytest.mark.parametrize("chain", IOUS)
@pytest.mark.parametrize("options", [{}, {"neighbourhood_sampling": True}])
def test_augmented_positives_are_drawn_uniformly_among_near_proposals(chain, options):
    draws, config = 3000, config_of(**options)
    ious = torch.tensor([IOUS[chain]] * draws)
    columns = torch.arange(6.0).repeat(draws, 1)[..., None]  # the encoding tells which one it is
    true = torch.full((draws, 1), -1.0)
    torch.manual_seed(0)
    positives = method.positive_regions(true, columns, ious >= 0.7, config)[..., 0].int().tolist()
    allowed = naive.positives(IOUS[chain])
    for s, counts in enumerate(Counter(column) for column in zip(*positives, strict=True)):
        left = len(allowed) - s  # a second one is another one, where there is any
        if left <= 0:
            assert counts == {-1: draws}
        else:
            p = 1 / len(allowed)
            assert sorted(counts) == allowed
            spread = 4.5 * (draws * p * (1 - p)) ** 0.5
            assert all(abs(count - draws * p) <= spread for count in counts.values())
    if options and len(allowed) > 1:
        assert all(first != second for first, second in positives)


@pytest.mark.parametrize("row", ["bidirectional", "constraints"])
def test_phrases_of_one_chain_are_never_negatives(row):
    model = model_of(**ROWS[row], margin=5.0)  # every triplet violates
    terms = loss_of(model, batch_of([4] * 6))
    assert terms["image_anchor"] == 0
    assert terms.get("phrase_neighbourhood", 0) == 0
    assert terms["phrase_anchor"] > 0


@pytest.mark.parametrize("row", ["linear", "constraints"])
def test_absent_proposals_change_nothing_not_even_the_batch_norm(row):
    model, batch = model_of(**ROWS[row]).train(), batch_of(PAIRED)
    absent = torch.zeros(3, 6, dtype=torch.bool)
    absent[0, 5] = absent[2, 3:] = True
    losses = []
    for value in (0.0, 1e3):
        proposals = batch.proposals.masked_fill(absent[..., None], value)
        losses.append(loss_of(model, replace(batch, proposals=proposals)))
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 2 * 512 + 512 * 1024 * 2 + 2 * 512 + 2 * 512 + (4096 + 6000 + 2) * 1024),
        ({"nonlinear": False}, 4096 * 1024 + 1024 + 6000 * 1024 + 1024),
    ],
)
def test_full_size_network_has_the_papers_parameters(options, expected):
    with torch.device("meta"):
        model = method.Model(method.Config(**options), Sizes(image=4096, text=6000))
    assert sum(x.numel() for x in model.parameters()) == expected


def test_recipe_is_section_4_3():
    (phase,) = method.recipe(method.Config())
    assert (phase.optimiser, phase.weight_decay, phase.clip_norm) == ("adam", 0.0, None)
    assert phase.learning_rates == (0.001,) * 8
    assert (phase.batch_size, phase.captions_per_image) == (100, 1)
    (phase,) = method.recipe(method.Config(**ROWS["sampling"]))
    assert phase.captions_per_image == 2
    assert method.inputs(method.Config()) == Inputs(
        task="localisation", image="proposals", text="phrase"
    )


def test_neighbourhood_terms_count_in_two_more_epochs_only():
    first, second = method.recipe(method.Config(**ROWS["constraints"]))
    assert (first.epochs, second.epochs) == (8, 2)
    assert (first.captions_per_image, second.captions_per_image) == (2, 2)
    assert second.keeps == "last"  # of 8 + 2, as the sampling row keeps the last of 8
    (sampling,) = method.recipe(method.Config(**ROWS["sampling"]))
    assert sampling.keeps == "last"
    terms = loss_of(model_of(**ROWS["constraints"]), batch_of(PAIRED))
    assert set(first.terms) == {"phrase_anchor", "image_anchor"}
    assert set(terms) - set(first.terms) == {"region_neighbourhood", "phrase_neighbourhood"}
    assert set(second.terms or terms) == set(terms)


def test_hyper_parameters_are_the_papers():
    config = method.Config()
    assert (config.lambda1, config.lambda2, config.lambda3, config.lambda4) == (1, 4, 0, 0)
    assert (config.top_k, config.positive_iou, config.negative_iou) == (30, 0.7, 0.3)
