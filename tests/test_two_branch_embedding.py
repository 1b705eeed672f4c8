"""The two-branch embedding network against loops written from the paper."""

import numpy as np
import pytest
import torch
from oracles import two_branch as naive
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import two_branch_embedding as method
from benchmark.layers.losses import distance, text_neighbourhood

IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]  # of seven rows: one image thrice, one twice, two once
IMAGE_SIZE, TEXT_SIZE, HIDDEN, DIMENSIONS = 6, 5, 7, 4
VOCABULARY, WORDS = 12, 6
LSTM = {"text": "lstm", "word_size": 3, "lstm_size": 5, "lstm_hidden_size": 8}
OFFICIAL = {
    "neighbourhood_sampling": True,
    "lambda4": 0.05,
    "norm_first": True,
    "norm_momentum": 0.9,
    "repeats_negative": True,
    "distance_epsilon": 0.0001,
}


def unit_vectors(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images and texts (B, D) of one batch, rows of one image alike, and image ids."""
    ids = torch.tensor(IMAGE_IDS)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(8, DIMENSIONS, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), DIMENSIONS, generator=generator, dtype=torch.float64)
    return normalize(images, dim=1), normalize(texts, dim=1), ids


def model_of(**options) -> method.Model:
    torch.manual_seed(0)
    config = method.Config(hidden_size=HIDDEN, embedding_size=DIMENSIONS, **options)
    size = VOCABULARY if config.text == "lstm" else TEXT_SIZE
    return method.Model(config, Sizes(image=IMAGE_SIZE, text=size)).double()


def batch_of(seed: int) -> Batch:
    ids = torch.tensor(IMAGE_IDS)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(8, IMAGE_SIZE, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(len(ids), dtype=torch.int64))
    return Batch(images=images, captions=captions, group_ids=ids)


def sentences_of(count: int, seed: int) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, WORDS + 1, (count,), generator=generator)
    values = torch.randint(1, VOCABULARY, (count, WORDS), generator=generator)
    return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)


def unsettle(model: method.Model, seed: int) -> None:
    """Weights and batch norm statistics that are nobody's initial ones."""
    generator = torch.Generator().manual_seed(seed)
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand(values.shape, generator=generator, dtype=values.dtype) / 2


def plain(*values: Tensor) -> list[np.ndarray]:
    return [value.detach().numpy() for value in values]


def numbers(norm: torch.nn.BatchNorm1d) -> list[np.ndarray]:
    return plain(norm.running_mean, norm.running_var, norm.weight, norm.bias)


@pytest.mark.parametrize("k", [1, 2, 3, 50])  # text anchors have three negatives at most
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_terms_are_the_papers(seed, k):
    images, texts, ids = unit_vectors(seed)
    across, within = distance(images, texts), distance(texts, texts)
    margin = 0.3
    expected = naive.image_to_text(images, texts, ids.tolist(), margin, k)
    assert method.image_anchor(across, ids, margin, k).item() == pytest.approx(expected, abs=1e-10)
    expected = naive.text_to_image(images, texts, ids.tolist(), margin, k)
    term = method.sentence_anchor(across, ids, margin, k).item()
    assert term == pytest.approx(expected, abs=1e-10)
    expected = naive.text_neighbourhood(texts, ids.tolist(), margin, k)
    term = text_neighbourhood(within, ids, margin, k).item()
    assert term == pytest.approx(expected, abs=1e-10)
    assert expected > 0


@pytest.mark.parametrize("k", [2, 30])
@pytest.mark.parametrize(("lambda2", "lambda4"), [(1.5, 0.05), (0.0, 0.0), (1.5, 0.0)])
def test_loss_is_equation_6(lambda2, lambda4, k):
    model = model_of(
        margin=0.4, top_k=k, lambda2=lambda2, lambda4=lambda4, neighbourhood_sampling=True
    ).eval()
    batch = batch_of(1)
    terms = model.loss(batch)
    images = model.encode_images(batch.images)[0].detach()
    texts = model.encode_captions(batch.captions)[0].detach()
    expected = naive.loss(images, texts, IMAGE_IDS, 0.4, 1.0, lambda2, 0, lambda4, k)
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)
    assert len(terms) == 1 + (lambda2 > 0) + (lambda4 > 0)


def test_branch_is_the_papers_with_its_batch_norm_statistics():
    model, batch = model_of(), batch_of(3)
    generator = torch.Generator().manual_seed(4)
    for branch in (model.image_branch, model.text_branch):
        for values in (branch[4].running_mean, branch[4].running_var):
            values.copy_(torch.rand(DIMENSIONS, generator=generator) + 0.5)
        for weight in branch.parameters():
            weight.data.add_(torch.rand(weight.shape, generator=generator) / 4)
    model.eval()
    encoded = model.encode_images(batch.images)[0], model.encode_captions(batch.captions)[0]
    given = batch.images, batch.captions.values
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, encoded, strict=True):
        first, _, _, last, norm = branch
        parts = (first.weight, first.bias, last.weight, last.bias)
        parts += (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        parts = [part.detach().numpy() for part in parts]
        for x, y in zip(inputs.numpy(), outputs.detach().numpy(), strict=True):
            np.testing.assert_allclose(y, naive.embed(x, *parts, norm.eps), rtol=1e-10, atol=1e-10)


def test_linear_variant_is_the_first_layer_alone():
    model, batch = model_of(nonlinear=False), batch_of(3)
    (layer,) = model.text_branch
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    for x, y in zip(
        batch.captions.values.numpy(),
        model.encode_captions(batch.captions)[0].detach().numpy(),
        strict=True,
    ):
        np.testing.assert_allclose(y, naive.embed_linear(x, weight, bias), rtol=1e-10, atol=1e-10)
    assert len(y) == HIDDEN


def test_recipe_is_sections_5_1_and_5_3():
    (phase,) = method.recipe(method.Config())
    assert (phase.optimiser, phase.weight_decay, phase.clip_norm) == ("adam", 0.0, None)
    assert phase.learning_rates == (0.0001,) * phase.epochs
    assert (phase.batch_size, phase.captions_per_image) == (500, 1)
    (phase,) = method.recipe(method.Config(neighbourhood_sampling=True))
    assert phase.captions_per_image == 2


def test_hyper_parameters_are_the_papers():
    config = method.Config()
    assert (config.margin, config.lambda1, config.lambda2) == (0.05, 1.0, 1.5)
    assert (config.top_k, config.dropout) == (10, 0.5)


def test_constraints_need_neighbourhood_sampling():
    with pytest.raises(ValueError, match="lambda4.*neighbourhood_sampling"):
        method.Config(lambda4=0.05)


def test_full_size_network_has_the_papers_parameters():
    with torch.device("meta"):
        model = method.Model(method.Config(), Sizes(image=4096, text=6000))
    second = (2048 * 512 + 512) + 2 * 512  # FC with bias; scale and shift of the batch norm
    expected = (4096 * 2048 + 2048) + second + (6000 * 2048 + 2048) + second
    assert expected == 22_780_928
    assert sum(x.numel() for x in model.parameters()) == expected


def test_lstm_sentence_is_the_last_state_of_its_words():
    model, captions = model_of(**LSTM).eval(), sentences_of(9, seed=5)
    unsettle(model, seed=6)
    encoded = model.encode_captions(captions)[0].detach().numpy()
    lstm, (first, _, _, last, norm) = model.sentences.lstm, model.text_branch
    weights = plain(lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0)
    layers = plain(first.weight, first.bias, last.weight, last.bias)
    vectors = model.sentences.embed.weight.detach().numpy()
    assert len(set(captions.lengths.tolist())) > 3
    for ids, length, y in zip(captions.values, captions.lengths, encoded, strict=True):
        state = naive.lstm(vectors[ids[:length].numpy()], *weights)
        expected = naive.embed(state, *layers, *numbers(norm), norm.eps)
        np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)


def test_official_branch_normalises_after_the_first_layer():
    model, batch = model_of(**OFFICIAL).eval(), batch_of(3)
    unsettle(model, seed=4)
    encoded = model.encode_images(batch.images)[0], model.encode_captions(batch.captions)[0]
    given = batch.images, batch.captions.values
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, encoded, strict=True):
        first, norm, _, _, last = branch
        (w1,), (w2, b2) = plain(first.weight), plain(last.weight, last.bias)
        for x, y in zip(inputs.numpy(), outputs.detach().numpy(), strict=True):
            expected = naive.official_embed(x, w1, *numbers(norm), w2, b2, norm.eps)
            np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)
        assert norm.momentum == 0.9


# Draws of two sentences, sentence 2g and 2g + 1 of one image: image 4 is drawn thrice, 6 twice.
DRAWN_IDS = [4, 4, 6, 6, 4, 4, 9, 9, 4, 4, 6, 6]


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("seed", [0, 1])
def test_official_loss_is_the_codes(seed, k):
    model = model_of(**OFFICIAL | {"margin": 0.4, "top_k": k}).eval()
    ids, generator = torch.tensor(DRAWN_IDS), torch.Generator().manual_seed(seed)
    images = torch.randn(10, IMAGE_SIZE, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(len(ids), dtype=torch.int64))
    terms = model.loss(Batch(images=images, captions=captions, group_ids=ids))
    x, y = plain(model.encode_images(images[::2])[0], model.encode_captions(captions)[0])
    image, sentence, neighbours = naive.official_terms(x, y, 2, 0.4, k)
    assert terms["image_anchor"].item() == pytest.approx(image, abs=1e-10)
    assert terms["sentence_anchor"].item() == pytest.approx(1.5 * sentence, abs=1e-10)
    term = terms["sentence_neighbourhood"].item()
    assert term == pytest.approx(0.05 * neighbours, abs=1e-10)
    assert min(image, sentence, neighbours) > 0


@pytest.mark.parametrize(
    ("ids", "rows", "expected"),
    [
        (DRAWN_IDS, 2, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]),
        ([4, 4, 4, 4], 2, [1, 1, 2, 2]),  # one image, drawn twice in a row
        ([4, 4, 6, 4], 1, [1, 2, 3, 4]),  # no siblings are drawn
        ([0, 1, 2, 3], 2, [1, 2, 3, 4]),  # rows that show different images are never siblings
    ],
)
def test_draws_are_counted_by_their_place(ids, rows, expected):
    assert method.draws(torch.tensor(ids), rows).tolist() == expected
