"""Cells that cross a method with the yardstick: each differs from VSE, or from
dual-path, in one half alone."""

from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest
import torch
from oracles.dual_path import instance
from test_methods import tiny
from test_vse import IDS, batch_of

from benchmark.commands import check
from benchmark.contracts.methods import (
    Batch,
    Captions,
    Sizes,
    two_branch_embedding,
    vse,
)
from benchmark.season.plugins import method_of, own_presets

FOLDER = "examples/crossed"
NAMES = [
    "gru_under_instance_loss",
    "gru_under_triplets",
    "vse_on_text_cnn",
    "vse_on_vectors",
]
SMALL = {"embedding_size": 4, "word_size": 3}
SIZES = Sizes(image=5, text=9, classes=10)


def crossed(name: str, **options):
    method = method_of(f"{FOLDER}/{name}.py")
    torch.manual_seed(0)
    return method.Model(method.Config(**options), SIZES).double()


def yardstick() -> vse.Model:
    torch.manual_seed(0)
    return vse.Model(vse.Config(**SMALL), SIZES).double()


def with_classes(ids: list[int]) -> Batch:
    batch = batch_of(ids)
    return replace(batch, class_ids=batch.group_ids)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract(name):
    path = f"{FOLDER}/{name}.py"
    for row in [None, *(row for _, row in own_presets({name: path}).values())]:
        promises = check.check(tiny(path, row))
        assert [each.note for each in promises if not each.is_kept] == []


@pytest.mark.parametrize("name", ["gru_under_triplets", "gru_under_instance_loss"])
def test_under_another_loss_the_networks_are_the_yardsticks(name):
    model, plain, batch = crossed(name, **SMALL), yardstick(), batch_of(IDS)
    ours, theirs = (x.encode_captions(batch.captions)[0] for x in (model, plain))
    torch.testing.assert_close(ours, theirs)
    ours, theirs = (x.encode_images(batch.images)[0] for x in (model, plain))
    torch.testing.assert_close(ours, theirs)


def test_the_triplets_are_those_of_two_branch_networks():
    model, batch = crossed("gru_under_triplets", **SMALL), batch_of(IDS)
    (x,), (y,) = (
        model.encode_images(batch.images),
        model.encode_captions(batch.captions),
    )
    d, rest = torch.cdist(x, y), (batch.group_ids, 0.05, 10)
    expected = [
        two_branch_embedding.image_anchor(d, *rest),
        1.5 * two_branch_embedding.sentence_anchor(d, *rest),
    ]
    torch.testing.assert_close(list(model.loss(batch).values()), expected)


def test_the_instance_loss_is_the_log_probability_of_the_own_class():
    model, batch = crossed("gru_under_instance_loss", **SMALL), with_classes(IDS)
    terms = model.loss(batch)
    for name, (f,) in (
        ("visual", model.encode_images(batch.images)),
        ("textual", model.encode_captions(batch.captions)),
    ):
        costs = map(
            partial(instance, model.share.weight.tolist()), (16 * f).tolist(), IDS
        )
        assert terms[name].item() == pytest.approx(fmean(costs), rel=1e-6)


def test_on_vectors_the_loss_is_the_yardsticks():
    model = crossed("vse_on_vectors", **SMALL)
    batch = batch_of(IDS)
    vectors = torch.randn(len(IDS), 9, dtype=torch.float64)
    captions = Captions(values=vectors, lengths=torch.ones(len(IDS), dtype=torch.long))
    scores = model.similarity(
        model.encode_images(batch.images), model.encode_captions(captions)
    )
    costs = vse.hinges(scores, batch.group_ids[:, None] != batch.group_ids, 0.2)
    terms = model.loss(replace(batch, captions=captions))
    assert terms["image_anchor"].item() == pytest.approx(costs[0].amax(1).sum().item())
    assert terms["caption_anchor"].item() == pytest.approx(
        costs[1].amax(0).sum().item()
    )
