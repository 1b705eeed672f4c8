"""The yardstick against loops written from VSE++ (tests/oracles/vse.py)."""

import pytest
import torch
from oracles import layers
from oracles import vse as naive
from torch import Tensor

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import vse as method

IDS = [4, 4, 7, 9, 7, 2]  # two images fill two rows each
FEATURES, VOCABULARY, WORDS = 5, 9, 6


def model_of(**options) -> method.Model:
    torch.manual_seed(0)
    config = method.Config(**{"embedding_size": 4, "word_size": 3} | options)
    return method.Model(config, Sizes(image=FEATURES, text=VOCABULARY)).double()


def batch_of(ids: list[int], seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, WORDS + 1, (len(ids),), generator=generator)
    values = torch.randint(1, VOCABULARY, (len(ids), WORDS), generator=generator)
    values = values * (torch.arange(WORDS) < lengths[:, None])
    pictures = torch.randn(10, FEATURES, generator=generator, dtype=torch.float64)
    return Batch(
        images=pictures[ids],
        captions=Captions(values=values, lengths=lengths),
        group_ids=torch.tensor(ids),
    )


def scores_of(model: method.Model, batch: Batch) -> Tensor:
    return model.similarity(
        model.encode_images(batch.images), model.encode_captions(batch.captions)
    )


@pytest.mark.parametrize("other_captions_negative", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.2, 1.5])
def test_the_loss_is_the_oracles(margin, other_captions_negative):
    batch, common = batch_of(IDS), {"margin": margin}
    common["other_captions_negative"] = other_captions_negative
    model = model_of(**common)
    ids = range(len(IDS)) if other_captions_negative else IDS
    expected = naive.losses(scores_of(model, batch).tolist(), ids, margin)
    for options, pair in zip(({}, {"hard_negatives": False}), expected, strict=True):
        terms = model_of(**options, **common).loss(batch)
        assert list(terms) == ["image_anchor", "caption_anchor"]
        assert [x.item() for x in terms.values()] == pytest.approx(pair, rel=1e-12)
    # negatives differ, and all of them cost more
    assert min(expected[1]) > min(expected[0]) > 0


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_sentence_is_the_mean_of_its_last_states(bidirectional):
    model, batch = model_of(bidirectional=bidirectional), batch_of(IDS)
    (encoded,) = model.encode_captions(batch.captions)
    weights = {name: x.tolist() for name, x in model.gru.named_parameters()}
    kinds = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    for row, ids in enumerate(batch.captions.values.tolist()):
        words = [
            model.embed.weight[n].tolist() for n in ids[: batch.captions.lengths[row]]
        ]
        states = [layers.gru(words, *(weights[kind] for kind in kinds))[-1]]
        if bidirectional:
            backwards = [weights[f"{kind}_reverse"] for kind in kinds]
            states.append(layers.gru(words[::-1], *backwards)[-1])
        mean = sum(states) / len(states)
        assert encoded[row].tolist() == pytest.approx(layers.unit(mean), rel=1e-10)


def test_an_image_is_one_linear_layer_between_unit_lengths():
    model, images = model_of(), batch_of(IDS).images
    torch.nn.init.normal_(model.project.bias)
    weight, bias = model.project.weight.tolist(), model.project.bias.tolist()
    for encoded, image in zip(
        model.encode_images(images)[0], images.tolist(), strict=True
    ):
        expected = layers.unit(layers.affine(weight, layers.unit(image), bias))
        assert encoded.tolist() == pytest.approx(expected, rel=1e-12)
