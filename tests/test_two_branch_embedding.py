"""The two-branch embedding network against loops written from the paper."""

import numpy as np
import pytest
import torch
from oracles import layers
from oracles import two_branch as naive
from torch import Tensor

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import two_branch_embedding as method

# of seven rows: one image thrice, one twice, two once
IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]
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
    return Captions(
        values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths
    )


def unsettled(seed: int, **options) -> method.Model:
    """In evaluation mode, with weights and batch norm statistics that are nobody's
    initial ones."""
    model, generator = model_of(**options).eval(), torch.Generator().manual_seed(seed)
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += (
                torch.rand(values.shape, generator=generator, dtype=values.dtype) / 2
            )
    return model


def plain(*values: Tensor) -> list[np.ndarray]:
    return [value.detach().numpy() for value in values]


def numbers(norm: torch.nn.BatchNorm1d) -> list[np.ndarray]:
    return plain(norm.running_mean, norm.running_var, norm.weight, norm.bias)


# of three negatives
@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 2), (2, 3), (0, 50)])
@pytest.mark.parametrize(("lambda2", "lambda4"), [(1.5, 0.05), (0.0, 0.0), (1.5, 0.0)])
def test_terms_are_those_of_equation_6(lambda2, lambda4, seed, k):
    model = model_of(
        margin=0.4,
        top_k=k,
        lambda2=lambda2,
        lambda4=lambda4,
        neighbourhood_sampling=True,
    ).eval()
    batch = batch_of(seed)
    x, y = plain(
        model.encode_images(batch.images)[0], model.encode_captions(batch.captions)[0]
    )
    expected = {
        "image_anchor": naive.image_to_text(x, y, IMAGE_IDS, 0.4, k),
        "sentence_anchor": lambda2 * naive.text_to_image(x, y, IMAGE_IDS, 0.4, k),
        "sentence_neighbourhood": lambda4
        * naive.text_neighbourhood(y, IMAGE_IDS, 0.4, k),
    }
    expected = {name: value for name, value in expected.items() if value}
    terms = {name: term.item() for name, term in model.loss(batch).items()}
    assert terms == pytest.approx(expected, abs=1e-10)
    assert len(terms) == 1 + (lambda2 > 0) + (lambda4 > 0)


def linear(branch: torch.nn.Sequential, x: np.ndarray) -> np.ndarray:
    # the first layer alone
    return naive.embed_linear(x, *plain(branch[0].weight, branch[0].bias))


def embedded(branch: torch.nn.Sequential, x: np.ndarray) -> np.ndarray:
    first, _, _, last, norm = branch
    parts = plain(first.weight, first.bias, last.weight, last.bias)
    return naive.embed(x, *parts, *numbers(norm), norm.eps)


def official(branch: torch.nn.Sequential, x: np.ndarray) -> np.ndarray:
    first, norm, _, _, last = branch
    assert norm.momentum == 0.9
    (w1,), (w2, b2) = plain(first.weight), plain(last.weight, last.bias)
    # normalised after the first layer
    return naive.official_embed(x, w1, *numbers(norm), w2, b2, norm.eps)


BRANCHES = [({}, embedded), ({"nonlinear": False}, linear), (OFFICIAL, official)]


@pytest.mark.parametrize(("options", "expected"), BRANCHES)
def test_branches_are_the_papers_and_the_codes(options, expected):
    model, batch = unsettled(4, **options), batch_of(3)
    encoded = (
        model.encode_images(batch.images)[0],
        model.encode_captions(batch.captions)[0],
    )
    given = batch.images, batch.captions.values
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, encoded, strict=True):
        for x, y in zip(*plain(inputs, outputs), strict=True):
            np.testing.assert_allclose(y, expected(branch, x), rtol=1e-10, atol=1e-10)


def test_each_term_has_its_weight():
    weights = {"image_anchor": "lambda1", "sentence_anchor": "lambda2"}
    batch = batch_of(0)
    for term, weight in weights.items():
        losses = []
        for value in (1.0, 3.0):
            model = model_of(**{weight: value}).eval()
            losses.append(float(model.loss(batch)[term].detach()))
        assert losses[0] > 0 and losses[1] == pytest.approx(3 * losses[0])


def test_lstm_sentence_is_the_last_state_of_its_words():
    model, captions = unsettled(6, **LSTM), sentences_of(9, seed=5)
    (encoded,) = plain(*model.encode_captions(captions))
    lstm = model.sentences.lstm
    weights = plain(
        lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0
    )
    (vectors,) = plain(model.sentences.embed.weight)
    assert len(set(captions.lengths.tolist())) > 3
    for ids, length, y in zip(captions.values, captions.lengths, encoded, strict=True):
        state = layers.lstm(vectors[ids[:length].numpy()], *weights)[-1]
        np.testing.assert_allclose(
            y, embedded(model.text_branch, state), rtol=1e-10, atol=1e-10
        )


# Draws of two sentences, sentence 2g and 2g + 1 of one image: image 4 is drawn thrice,
# 6 twice.
DRAWN_IDS = [4, 4, 6, 6, 4, 4, 9, 9, 4, 4, 6, 6]


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 3), (0, 40)])
def test_official_loss_is_the_codes(seed, k):
    model = model_of(**OFFICIAL | {"margin": 0.4, "top_k": k}).eval()
    ids, generator = torch.tensor(DRAWN_IDS), torch.Generator().manual_seed(seed)
    images = torch.randn(10, IMAGE_SIZE, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(len(ids), dtype=torch.int64))
    terms = model.loss(Batch(images=images, captions=captions, group_ids=ids))
    x, y = plain(
        model.encode_images(images[::2])[0], model.encode_captions(captions)[0]
    )
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
        # rows that show different images are never siblings
        ([0, 1, 2, 3], 2, [1, 2, 3, 4]),
    ],
)
def test_draws_are_counted_by_their_place(ids, rows, expected):
    assert method.draws(torch.tensor(ids), rows).tolist() == expected
