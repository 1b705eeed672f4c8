"""The two-branch similarity networks, for sentences and phrases, against loops written
from the paper."""

from collections import Counter

import numpy as np
import pytest
import torch
from made_inputs import (
    ALONE,
    IMAGE_SIZE,
    IOUS,
    TEXT_SIZE,
    batch_of,
    captions,
    ious_of,
)
from oracles import two_branch as naive
from oracles import two_branch_phrases as naive_phrases
from torch import nn

from benchmark.contracts.methods import Batch, Sizes
from benchmark.contracts.methods import two_branch_phrase_similarity as phrase_method
from benchmark.contracts.methods import two_branch_similarity as method
from benchmark.layers.branches import encode_regions

# of seven rows: one image thrice, one twice, two once
IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]
VARIANTS = [{}, {"joint_layers": 2}, {"joint_layers": 1}, {"nonlinear": False}]
# of phrases alone
SINGLE = [{"augmented": False}, {"nonlinear": False, "augmented": False}]
SMALL = {"hidden_size": 7, "embedding_size": 4, "joint_size": 6, "last_joint_size": 3}


def model_of(module=method, **options) -> nn.Module:
    """In evaluation mode, with weights and batch norm statistics that are nobody's
    initial ones."""
    torch.manual_seed(0)
    sizes = Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)
    model = module.Model(module.Config(**SMALL, **options), sizes).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) - (values > 1) / 2
    return model


def numbers(rows: int, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, size, generator=generator, dtype=torch.float64)


def joint_layers(model: nn.Module) -> list[tuple[np.ndarray, np.ndarray]]:
    linear = [layer for layer in model.joint if isinstance(layer, nn.Linear)]
    return [(x.weight.detach().numpy(), x.bias.detach().numpy()) for x in linear]


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("module", [method, phrase_method])
def test_similarity_is_the_score_of_every_pair(module, options):
    model = model_of(module, **options)
    images = model.encode_images(numbers(5, IMAGE_SIZE, 1))
    texts = model.encode_captions(captions(numbers(7, TEXT_SIZE, 2)))
    layers, scores = joint_layers(model), model.similarity(images, texts)
    assert len(layers) == options.get("joint_layers", 3)
    pairs = [
        [(x.detach().numpy(), y.detach().numpy()) for y in texts[0]] for x in images[0]
    ]
    expected = [[naive.joint_score(*pair, layers) for pair in row] for row in pairs]
    np.testing.assert_allclose(scores.detach().numpy(), expected, rtol=0, atol=1e-10)
    assert scores.std() > 1e-4


# Sentences ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("options", VARIANTS)
def test_loss_of_sentences_is_equation_7(options, seed):
    model, ids = model_of(**options), torch.tensor(IMAGE_IDS)
    images = numbers(8, IMAGE_SIZE, seed)[ids]
    batch = Batch(
        images=images, captions=captions(numbers(7, TEXT_SIZE, seed)), group_ids=ids
    )
    torch.manual_seed(seed)
    others = method.others(ids)[0].tolist()
    torch.manual_seed(seed)
    terms = model.loss(batch)
    encoded = model.encode_images(batch.images), model.encode_captions(batch.captions)
    pairs = (x.detach().numpy() for (x,) in encoded)
    expected = naive.similarity_loss(*pairs, others, joint_layers(model))
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)
    assert set(terms) == {"matched", "mismatched"}


def test_rows_without_a_sentence_of_another_image_have_no_negative_pair():
    batch = Batch(
        images=numbers(3, IMAGE_SIZE, 0),
        captions=captions(numbers(3, TEXT_SIZE, 0)),
        group_ids=torch.tensor([5, 5, 5]),
    )
    terms = model_of().loss(batch)
    assert terms["mismatched"].item() == 0 and terms["matched"].item() > 0


def check_uniform(counts: Counter, allowed: list[int]) -> None:
    total, p = counts.total(), 1 / len(allowed)
    assert sorted(counts) == allowed
    spread = 4.5 * (total * p * (1 - p)) ** 0.5
    assert all(abs(count - total * p) <= spread for count in counts.values())


def test_negatives_are_drawn_uniformly_among_sentences_of_other_images():
    torch.manual_seed(0)
    drawn = torch.stack(
        [method.others(torch.tensor(IMAGE_IDS))[0] for _ in range(2000)]
    )
    for b, image in enumerate(IMAGE_IDS):
        allowed = [c for c, other in enumerate(IMAGE_IDS) if other != image]
        check_uniform(Counter(drawn[:, b].tolist()), allowed)
    assert method.others(torch.tensor(IMAGE_IDS))[1].all()
    for alone in ([5], [5, 5, 5]):
        assert not method.others(torch.tensor(alone))[1].any()


# Phrases ------------------------------------------------------------------------------


def drawn_pairs(chains: list[int], config: object, seed: int = 0) -> tuple[list, list]:
    torch.manual_seed(seed)
    ious = torch.tensor([IOUS[chain] for chain in chains])
    rows, regions, wrong = (x.tolist() for x in phrase_method.pairs(ious, config))
    # -1 is the true region
    return [(row, r - 1) for row, r in zip(rows, regions, strict=True)], [
        r - 1 for r in wrong
    ]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("options", VARIANTS + SINGLE)
def test_loss_of_phrases_is_equation_7_over_algorithm_1(options, seed):
    model, batch = model_of(phrase_method, **options), batch_of(ALONE, seed)
    pairs, wrong = drawn_pairs(ALONE, model.config, seed)
    assert pairs == naive_phrases.positive_pairs(ious_of(batch), model.config.augmented)
    torch.manual_seed(seed)
    terms = model.loss(batch)
    true, proposals = (x.detach().numpy() for x in encode_regions(model, batch))
    phrases = model.encode_captions(batch.phrases)[0].detach().numpy()
    given = (
        phrases,
        true,
        proposals,
        batch.image_of_row,
        pairs,
        wrong,
        joint_layers(model),
    )
    expected = naive_phrases.similarity_loss(*given)
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)
    assert set(terms) == {"matched", "mismatched"}


def test_every_pair_draws_its_negative_uniformly_among_far_proposals():
    draws = 1500
    allowed = {5: [0, 1, 2], 4: [3, 4], 7: [1, 2]}
    chains = [chain for chain in allowed for _ in range(draws)]
    pairs, wrong = drawn_pairs(chains, phrase_method.Config())
    for chain, among in allowed.items():
        of_chain = [
            w for (row, _), w in zip(pairs, wrong, strict=True) if chains[row] == chain
        ]
        check_uniform(Counter(of_chain), among)
        if chain == 4:  # the pairs of a row differ in theirs
            by_row = np.reshape(of_chain, (draws, 4))
            assert (by_row != by_row[:, :1]).any()
