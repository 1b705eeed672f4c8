"""Six losses on the same two heads, against loops (tests/oracles) and the methods they
are from."""

import math
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import get_args, get_type_hints

import pytest
import torch
from oracles import layers, two_branch
from oracles import vse as naive
from oracles.dual_path import instance
from test_vse import IDS, batch_of

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import projection as method

SMALL = {"hidden_size": 6, "embedding_size": 4, "input_dropout": 0.0, "dropout": 0.0}
SIZES = Sizes(image=5, text=7, classes=10)
LOSSES = list(method.LOSSES)


def model_of(loss: str, **options) -> method.Model:
    torch.manual_seed(0)
    return method.Model(method.Config(loss=loss, **SMALL | options), SIZES).double()


def batch() -> Batch:
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(
        len(IDS), SIZES.text, generator=generator, dtype=torch.float64
    )
    captions = Captions(values=vectors, lengths=torch.ones(len(IDS), dtype=torch.int64))
    drawn = batch_of(IDS)
    return replace(drawn, captions=captions, class_ids=drawn.group_ids)


def encodings(model: method.Model) -> tuple[torch.Tensor, torch.Tensor]:
    rows = batch()
    return model.encode_images(rows.images)[0], model.encode_captions(rows.captions)[0]


def cosines(model: method.Model) -> list[list[float]]:
    images, captions = encodings(model)
    return model.similarity((images,), (captions,)).tolist()


def found(model: method.Model) -> list[float]:
    return [term.item() for term in model.loss(batch()).values()]


def test_the_heads_are_the_same_under_every_loss_of_the_option():
    assert list(get_args(get_type_hints(method.Config)["loss"])) == LOSSES
    expected = encodings(model_of(LOSSES[0]))
    for loss in LOSSES:
        assert all(map(torch.equal, encodings(model_of(loss)), expected)), loss


@pytest.mark.parametrize("side", [0, 1])
def test_a_head_is_two_layers_with_a_relu_between(side):
    model = model_of("info_nce")
    head = (model.image_head, model.text_head)[side]
    w1, b1, w2, b2 = (x.tolist() for x in head.parameters())
    rows = (batch().images, batch().captions.values)[side]
    for encoded, row in zip(encodings(model)[side], rows.tolist(), strict=True):
        expected = layers.unit(
            layers.affine(w2, layers.relu(layers.affine(w1, row, b1)), b2)
        )
        assert encoded.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 1 / 300])
def test_info_nce_is_the_oracles_with_a_learned_scale_that_stops_at_100(temperature):
    model = model_of("info_nce", temperature=temperature)
    assert model.t.exp().item() == pytest.approx(1 / temperature, rel=1e-6)
    terms = model.loss(batch())
    expected = naive.info_nce(cosines(model), IDS, min(model.t.exp().item(), 100.0))
    assert [term.item() for term in terms.values()] == pytest.approx(expected, rel=1e-9)
    sum(terms.values()).backward()
    assert model.t.grad != 0  # beyond 100 it comes down again


def test_the_sigmoid_loss_is_the_oracles():
    model = model_of("sigmoid", temperature=0.1)
    assert (model.t.item(), model.b.item()) == pytest.approx(
        (math.log(10), -10), rel=1e-6
    )
    (pairs,) = found(model)
    assert pairs == pytest.approx(
        naive.sigmoid(cosines(model), IDS, model.t.exp().item(), -10)
    )
    model.loss(batch())["pairs"].backward()
    assert model.t.grad != 0 and model.b.grad != 0


@pytest.mark.parametrize(
    ("loss", "which"), [("hardest_negative", 0), ("all_negatives", 1)]
)
def test_hinges_are_those_of_vse(loss, which):
    model = model_of(loss)
    expected = naive.losses(cosines(model), IDS, 0.2)[which]
    assert found(model) == pytest.approx(expected, rel=1e-12)


def test_triplets_are_those_of_two_branch_networks():
    model = model_of("top_k", margin=0.05, top_k=2)
    images, captions = (x.detach().numpy() for x in encodings(model))
    rest = (images, captions, IDS, 0.05)
    expected = [
        two_branch.bidirectional(*rest, 1.0, 0.0, 2),
        two_branch.bidirectional(*rest, 0.0, 1.5, 2),
    ]
    assert found(model) == pytest.approx(expected, rel=1e-9)
    assert min(expected) > 0


def test_the_instance_loss_is_the_log_probability_of_the_own_class():
    model, rows = model_of("instance"), batch()
    expected = []
    for f_BD in (model.image_head(rows.images), model.text_head(rows.captions.values)):
        costs = map(partial(instance, model.share.weight.tolist()), f_BD.tolist(), IDS)
        expected.append(fmean(costs))
    assert found(model) == pytest.approx(expected, rel=1e-9)
