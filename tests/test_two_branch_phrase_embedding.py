"""The two-branch embedding network for phrases against loops written from Algorithm
1."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from made_inputs import ALONE, IMAGE_SIZE, IOUS, TEXT_SIZE, batch_of, ious_of
from oracles import two_branch as sentences
from oracles import two_branch_phrases as naive
from torch import Tensor, nn

from benchmark.contracts.methods import RegionBatch, Sizes
from benchmark.contracts.methods import two_branch_phrase_embedding as method
from benchmark.contracts.methods import (
    two_branch_phrase_similarity as similarity_method,
)
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


def model_of(module=method, **options) -> nn.Module:
    """In evaluation mode, with weights and batch norm statistics that are nobody's
    initial ones."""
    torch.manual_seed(0)
    sizes = Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)
    config = module.Config(hidden_size=HIDDEN, embedding_size=DIMENSIONS, **options)
    model = module.Model(config, sizes).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) / 2
    return model


def loss_of(model: nn.Module, batch: RegionBatch, seed: int = 0) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return model.loss(batch)


def regions_of(model: method.Model, batch: RegionBatch, seed: int) -> tuple[list, list]:
    """Target rows, and the encodings of the regions that each is paired with, as they
    are drawn."""
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
            drawn.append(
                proposals[batch.image_of_row[row], column] if there else true[row]
            )
        regions.append(drawn)
    return targets, regions


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 2), (2, 30)])
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
    expected = {
        "phrase_anchor": c.lambda2 * naive.phrase_anchor(phrases, proposals, *sampled)
    }
    if c.lambda1:
        term = naive.image_anchor(phrases, chains, targets, regions, n, 0.4, k)
        expected["image_anchor"] = c.lambda1 * term
    if c.lambda3:
        term = naive.region_neighbourhood(proposals, *sampled)
        expected["region_neighbourhood"] = 0.1 * term
        term = sentences.text_neighbourhood(phrases, chains, 0.4, k)
        expected["phrase_neighbourhood"] = 0.1 * term
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        expected, abs=1e-6
    )
    assert min(expected.values()) > 0


@pytest.mark.parametrize("chain", IOUS)
@pytest.mark.parametrize("options", [{}, {"neighbourhood_sampling": True}])
def test_augmented_positives_are_drawn_uniformly_among_near_proposals(chain, options):
    draws, config = 3000, method.Config(**options)
    ious = torch.tensor([IOUS[chain]] * draws)
    # the encoding tells which one it is
    columns = torch.arange(6.0).repeat(draws, 1)[..., None]
    true = torch.full((draws, 1), -1.0)
    torch.manual_seed(0)
    positives = (
        method.positive_regions(true, columns, ious >= 0.7, config)[..., 0]
        .int()
        .tolist()
    )
    allowed = naive.positives(IOUS[chain])
    for s, counts in enumerate(
        Counter(column) for column in zip(*positives, strict=True)
    ):
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


@pytest.mark.parametrize(
    ("module", "options"),
    [(method, ROWS["linear"]), (method, ROWS["constraints"]), (similarity_method, {})],
)
def test_absent_proposals_change_nothing_not_even_the_batch_norm(module, options):
    model, batch = model_of(module, **options).train(), batch_of(PAIRED)
    absent = torch.zeros(3, 6, dtype=torch.bool)
    absent[0, 5] = absent[2, 3:] = True
    losses = []
    for value in (0.0, 1e3):
        proposals = batch.proposals.masked_fill(absent[..., None], value)
        losses.append(loss_of(model, replace(batch, proposals=proposals)))
    assert losses[0] == losses[1]
