"""The two-branch network against loops written from the paper (tests/oracles/two_branch.py)."""

import numpy as np
import pytest
import torch
from oracles import two_branch as naive
from torch import Tensor
from torch.nn.functional import normalize

from methods import Batch, Captions, Sizes
from methods import two_branch_embedding as method

IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]  # of seven rows: one image thrice, one twice, two once
IMAGE_SIZE, TEXT_SIZE, HIDDEN, DIMENSIONS = 6, 5, 7, 4


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
    return method.Model(config, Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)).double()


def batch_of(seed: int) -> Batch:
    ids = torch.tensor(IMAGE_IDS)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(8, IMAGE_SIZE, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(len(ids), dtype=torch.int64))
    return Batch(images=images, captions=captions, image_ids=ids)


@pytest.mark.parametrize("k", [1, 2, 3, 50])  # text anchors have three negatives at most
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_terms_are_the_papers(seed, k):
    images, texts, ids = unit_vectors(seed)
    across, within = method.distance(images, texts), method.distance(texts, texts)
    margin = 0.3
    expected = naive.image_to_text(images, texts, ids.tolist(), margin, k)
    assert method.image_anchor(across, ids, margin, k).item() == pytest.approx(expected, abs=1e-10)
    expected = naive.text_to_image(images, texts, ids.tolist(), margin, k)
    found = method.sentence_anchor(across, ids, margin, k).item()
    assert found == pytest.approx(expected, abs=1e-10)
    expected = naive.text_neighbourhood(texts, ids.tolist(), margin, k)
    found = method.sentence_neighbourhood(within, ids, margin, k).item()
    assert found == pytest.approx(expected, abs=1e-10)
    assert expected > 0


@pytest.mark.parametrize(
    ("k", "image", "sentence", "neighbourhood"),
    [(1, 0.84, 0.84, 0.104), (2, 0.57, 0.47, 0.052), (9, 4.76 / 36, 3.76 / 36, 0.208 / 18)],
)
def test_terms_of_the_hand_example(k, image, sentence, neighbourhood):
    images, texts = torch.tensor(naive.HAND_IMAGES), torch.tensor(naive.HAND_TEXTS)
    ids = torch.tensor(naive.HAND_IDS)
    across, within = method.distance(images, texts), method.distance(texts, texts)
    assert method.image_anchor(across, ids, 1.0, k).item() == pytest.approx(image)
    assert method.sentence_anchor(across, ids, 1.0, k).item() == pytest.approx(sentence)
    assert method.sentence_neighbourhood(within, ids, 1.0, k).item() == pytest.approx(neighbourhood)


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


def test_without_neighbours_the_term_is_zero_and_moves_nothing():
    _, texts, _ = unit_vectors(0)
    within = method.distance(texts.requires_grad_(), texts)
    term = method.sentence_neighbourhood(within, torch.arange(len(texts)), 0.3, 2)
    term.backward()
    assert term.item() == 0
    assert (texts.grad == 0).all()


def test_branch_is_the_papers_with_its_batch_norm_statistics():
    model, batch = model_of(), batch_of(3)
    generator = torch.Generator().manual_seed(4)
    for branch in (model.image_branch, model.text_branch):
        for values in (branch[4].running_mean, branch[4].running_var):
            values.copy_(torch.rand(DIMENSIONS, generator=generator) + 0.5)
        for weight in branch.parameters():
            weight.data.add_(torch.rand(weight.shape, generator=generator) / 4)
    model.eval()
    found = model.encode_images(batch.images)[0], model.encode_captions(batch.captions)[0]
    given = batch.images, batch.captions.values
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, found, strict=True):
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
