"""The two-branch similarity network for phrases against loops written from Algorithm 1."""

from collections import Counter
from dataclasses import replace

import numpy as np
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
from torch import nn

from benchmark.contracts.methods import Inputs, Sizes
from benchmark.contracts.methods import two_branch_phrase_similarity as method
from benchmark.layers.branches import encode_regions

VARIANTS = [  # table 1 (c), in its order, and two of Section 4.4
    {"nonlinear": False, "augmented": False},
    {"augmented": False},
    {"nonlinear": False},
    {},
    {"joint_layers": 1},
    {"joint_layers": 2},
]
SMALL = {"hidden_size": 7, "embedding_size": 4, "joint_size": 6, "last_joint_size": 3}


def model_of(**options) -> method.Model:
    """In evaluation mode, with weights and batch norm statistics that are nobody's initial ones."""
    torch.manual_seed(0)
    sizes = Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)
    model = method.Model(method.Config(**SMALL, **options), sizes).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) - (values > 1) / 2
    return model


def joint_layers(model: method.Model) -> list[tuple[np.ndarray, np.ndarray]]:
    linear = [layer for layer in model.joint if isinstance(layer, nn.Linear)]
    return [(x.weight.detach().numpy(), x.bias.detach().numpy()) for x in linear]


def drawn_pairs(chains: list[int], config: method.Config, seed: int = 0) -> tuple[list, list]:
    """Pairs as the oracle names them, -1 for the true region, and the wrong region of each."""
    torch.manual_seed(seed)
    ious = torch.tensor([IOUS[chain] for chain in chains])
    rows, regions, wrong = (x.tolist() for x in method.pairs(ious, config))
    return [(row, r - 1) for row, r in zip(rows, regions, strict=True)], [r - 1 for r in wrong]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("options", VARIANTS)
def test_loss_is_equation_7_over_algorithm_1(options, seed):
    model, batch = model_of(**options), batch_of(ALONE, seed)
    _, wrong = drawn_pairs(ALONE, model.config, seed)
    torch.manual_seed(seed)
    terms = model.loss(batch)
    true, proposals = (x.detach().numpy() for x in encode_regions(model, batch))
    phrases = model.encode_captions(batch.phrases)[0].detach().numpy()
    pairs = naive.positive_pairs(ious_of(batch), model.config.augmented)
    given = phrases, true, proposals, batch.image_of_row, pairs, wrong, joint_layers(model)
    expected = naive.similarity_loss(*given)
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)
    assert set(terms) == {"matched", "mismatched"}


def test_pairs_by_hand():
    config = method.Config()
    pairs, wrong = drawn_pairs([4, 9, 7, 5], config)
    # Chain 9 has no negative proposal and gives no pair; chain 5 has the true region alone.
    expected = [(0, -1), (0, 0), (0, 1), (0, 2), (2, -1), (2, 0), (3, -1)]
    assert pairs == expected
    allowed = {0: {3, 4}, 2: {1, 2}, 3: {0, 1, 2}}
    assert all(w in allowed[row] for (row, _), w in zip(pairs, wrong, strict=True))
    pairs, _ = drawn_pairs([4, 9, 7, 5], method.Config(augmented=False))
    assert pairs == [(0, -1), (2, -1), (3, -1)]


def test_pairs_balance():
    model, batch = model_of(), batch_of(ALONE)
    seen = []
    model.joint.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    model.loss(batch)
    assert seen == [2 * (4 + 4 + 2 + 2 + 1)]  # chains 4, 4, 2, 7 and 5


def test_every_pair_draws_its_negative_uniformly_among_far_proposals():
    draws = 1500
    pairs, wrong = drawn_pairs([5] * draws + [4] * draws, method.Config())
    for chain, allowed in ((5, [0, 1, 2]), (4, [3, 4])):
        rows = range(draws) if chain == 5 else range(draws, 2 * draws)
        counts = Counter(w for (row, _), w in zip(pairs, wrong, strict=True) if row in rows)
        total, p = counts.total(), 1 / len(allowed)
        assert sorted(counts) == allowed
        spread = 4.5 * (total * p * (1 - p)) ** 0.5
        assert all(abs(count - total * p) <= spread for count in counts.values())
    of_chain_4 = np.reshape(wrong[draws:], (draws, 4))
    assert (of_chain_4 != of_chain_4[:, :1]).any()  # the pairs of a row differ in theirs


def test_absent_proposals_change_nothing_not_even_the_batch_norm():
    model, batch = model_of().train(), batch_of(ALONE)
    absent = torch.zeros(3, 6, dtype=torch.bool)
    absent[0, 5] = absent[2, 3:] = True
    losses = []
    for value in (0.0, 1e3):
        torch.manual_seed(0)
        proposals = batch.proposals.masked_fill(absent[..., None], value)
        losses.append(model.loss(replace(batch, proposals=proposals)))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("options", VARIANTS)
def test_similarity_is_the_score_of_every_pair(options):
    model, batch = model_of(**options), batch_of(ALONE)
    regions, phrases = model.encode_images(batch.regions), model.encode_captions(batch.phrases)
    scores = model.similarity((regions[0][:4],), phrases)
    assert scores.shape == (4, 7)
    layers = joint_layers(model)
    assert len(layers) == options.get("joint_layers", 3)
    for n in range(4):
        for c in range(7):
            given = regions[0][n].detach().numpy(), phrases[0][c].detach().numpy()
            expected = sentences.joint_score(*given, layers)
            assert scores[n, c].item() == pytest.approx(expected, abs=1e-10)


NONLINEAR = (4096 + 6000 + 2) * 1024 + 2 * (1024 * 512 + 512) + 2 * 2 * 512
LINEAR = (4096 + 6000 + 2) * 1024
LAST = (512 * 256 + 256) + (256 + 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, NONLINEAR + (512 * 512 + 512) + LAST),
        ({"joint_layers": 2}, NONLINEAR + LAST),
        ({"joint_layers": 1}, NONLINEAR + 512 + 1),
        ({"nonlinear": False}, LINEAR + (1024 * 512 + 512) + LAST),
    ],
)
def test_full_size_network_has_the_papers_parameters(options, expected):
    with torch.device("meta"):
        model = method.Model(method.Config(**options), Sizes(image=4096, text=6000))
    assert sum(x.numel() for x in model.parameters()) == expected


def test_recipe_is_section_4_3():
    config = method.Config()
    (phase,) = method.recipe(config)
    assert (phase.optimiser, phase.weight_decay, phase.clip_norm) == ("adam", 0.0, None)
    assert (phase.learning_rates, phase.keeps) == ((0.001,) * 8, "last")
    assert (phase.batch_size, phase.captions_per_image) == (100, 1)
    assert method.inputs(config) == Inputs(task="localisation", image="proposals", text="phrase")
