"""SCAN against loops written from the paper's equations (tests/oracles/scan.py)."""

import numpy as np
import pytest
import torch
from oracles import scan as naive
from torch.nn.functional import normalize

from methods import Batch, Captions, Sizes, scan

IMAGES, CAPTIONS, REGIONS, WORDS, FEATURES, VOCABULARY = 5, 6, 4, 7, 9, 20
LAMBDA1, LAMBDA2 = 4.0, 5.0


def model_of(**options) -> scan.Model:
    torch.manual_seed(0)
    config = scan.Config(embedding_size=8, word_size=5, lambda1=LAMBDA1, lambda2=LAMBDA2, **options)
    return scan.Model(config, Sizes(image=FEATURES, text=VOCABULARY)).double()


def captions_of(count: int = CAPTIONS, seed: int = 1) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
    values = torch.randint(1, VOCABULARY, (count, WORDS), generator=generator)
    return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)


def images_of(count: int = IMAGES, seed: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, REGIONS, FEATURES, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("pooling", ["lse", "avg"])
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_similarity_is_the_papers(direction, pooling):
    model, captions = model_of(direction=direction, pooling=pooling), captions_of()
    images, words = model.encode_images(images_of()), model.encode_captions(captions)
    scores = model.similarity(images, words).detach().numpy()
    relevance = naive.relevance_t2i if direction == "t2i" else naive.relevance_i2t
    pool = {"lse": lambda r: naive.lse(r, LAMBDA2), "avg": naive.average}[pooling]
    for i in range(IMAGES):
        for c in range(CAPTIONS):
            regions = images[0][i].detach().numpy()
            kept = words[0][c, : captions.lengths[c]].detach().numpy()
            expected = pool(relevance(regions, kept, LAMBDA1))
            assert scores[i, c] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_pair_similarity_is_the_diagonal(direction):
    model = model_of(direction=direction)
    images, words = model.encode_images(images_of()), model.encode_captions(captions_of(IMAGES))
    whole = model.similarity(images, words)
    torch.testing.assert_close(model.pair_similarity(images, words), whole.diagonal())


def test_words_are_averaged_gru_states():
    model, captions = model_of(), captions_of()
    words = model.encode_captions(captions)[0].detach()
    gru = model.gru
    weights = [
        tuple(
            getattr(gru, f"{name}_l0{suffix}").detach().numpy()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        for suffix in ("", "_reverse")
    ]
    for c, length in enumerate(captions.lengths):
        inputs = model.embed(captions.values[c, :length]).detach().numpy()
        expected = normalize(torch.tensor(np.array(naive.bi_gru(inputs, *weights))), dim=-1)
        torch.testing.assert_close(words[c, :length], expected)
        assert (words[c, length:] == 0).all()


@pytest.mark.parametrize("other_captions_negative", [False, True])
def test_loss_and_its_gradient_are_those_of_all_pairs(other_captions_negative):
    model = model_of(other_captions_negative=other_captions_negative)
    ids = torch.tensor([0, 1, 2, 0, 3, 4])
    batch = Batch(images=images_of(5)[ids], captions=captions_of(6), image_ids=ids)
    loss = sum(model.loss(batch).values())
    loss.backward()
    fast = {name: x.grad.clone() for name, x in model.named_parameters()}

    scores = model.similarity(
        model.encode_images(batch.images), model.encode_captions(batch.captions)
    )
    plain = scores.detach().numpy()
    if other_captions_negative:
        expected = naive.hardest_hinge_diagonal(plain, model.config.margin)
    else:
        expected = naive.hardest_hinge(plain, ids.tolist(), model.config.margin)
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    assert expected > 0

    same = torch.eye(6) > 0 if other_captions_negative else ids[:, None] == ids[None, :]
    wrong = scores.masked_fill(same, -np.inf)
    matched, margin = scores.diagonal(), model.config.margin
    slow = (margin - matched + wrong.max(1).values).relu().sum()
    slow = slow + (margin - matched + wrong.max(0).values).relu().sum()
    model.zero_grad()
    slow.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(fast[name], parameter.grad, msg=name)


def test_one_image_in_all_rows_moves_no_weight():
    model = model_of()
    ids = torch.zeros(3, dtype=torch.int64)
    batch = Batch(images=images_of(1)[ids], captions=captions_of(3), image_ids=ids)
    sum(model.loss(batch).values()).backward()
    assert all(x.grad.abs().max() < 1e-12 for x in model.parameters())


def test_official_threshold_leaks():
    captions, images = captions_of(), images_of()
    hard, soft = model_of(), model_of(leak=0.1)
    first, second = (
        m.similarity(m.encode_images(images), m.encode_captions(captions)) for m in (hard, soft)
    )
    assert not torch.allclose(first, second)


def test_unknown_direction_and_pooling_are_refused():
    with pytest.raises(ValueError, match="expected t2i or i2t, found 'up'"):
        scan.Config(direction="up")
    with pytest.raises(ValueError, match="expected lse or avg, found 'best'"):
        scan.Config(pooling="best")


def test_recipe_is_appendix_a():
    (phase,) = scan.recipe(scan.Config())
    assert phase.learning_rates == pytest.approx((0.0002,) * 15 + (0.00002,) * 15)
    assert (phase.batch_size, phase.clip_norm, phase.optimiser) == (128, 2.0, "adam")
