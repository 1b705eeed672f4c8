"""The two-branch similarity network against loops written from the paper."""

from collections import Counter
from math import log

import numpy as np
import pytest
import torch
from oracles import two_branch as naive
from torch import nn

from methods import Batch, Captions, Inputs, Sizes
from methods import two_branch_similarity as method
from methods.shared.losses import logistic

IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]  # of seven rows: one image thrice, one twice, two once
IMAGE_SIZE, TEXT_SIZE, HIDDEN, DIMENSIONS = 6, 5, 7, 4
VARIANTS = [
    {"joint_layers": 3},
    {"joint_layers": 2},
    {"joint_layers": 1},
    {"joint_layers": 3, "nonlinear": False},
]


def model_of(**options) -> method.Model:
    """A model in evaluation mode, with weights and batch norm statistics that are not initial."""
    torch.manual_seed(0)
    sizes = {"hidden_size": HIDDEN, "embedding_size": DIMENSIONS}
    config = method.Config(**sizes, joint_size=6, last_joint_size=3, **options)
    model = method.Model(config, Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) - (values > 1) / 2
    return model


def batch_of(ids: list[int], seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(8, IMAGE_SIZE, generator=generator, dtype=torch.float64)[ids]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(len(ids), dtype=torch.int64))
    return Batch(images=images, captions=captions, group_ids=torch.tensor(ids))


def encoded(model: method.Model, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    (images,), (texts,) = model.encode_images(batch.images), model.encode_captions(batch.captions)
    return images.detach().numpy(), texts.detach().numpy()


def joint_layers(model: method.Model) -> list[tuple[np.ndarray, np.ndarray]]:
    linear = [layer for layer in model.joint if isinstance(layer, nn.Linear)]
    return [(x.weight.detach().numpy(), x.bias.detach().numpy()) for x in linear]


@pytest.mark.parametrize("options", VARIANTS)
def test_similarity_is_the_score_of_every_pair(options):
    model, batch = model_of(**options), batch_of(IMAGE_IDS)
    images, texts = encoded(model, batch)
    layers = joint_layers(model)
    assert len(layers) == options["joint_layers"]
    scores = model.similarity((torch.tensor(images[:5]),), (torch.tensor(texts),))
    assert scores.shape == (5, 7)
    for i in range(5):
        for c in range(7):
            expected = naive.joint_score(images[i], texts[c], layers)
            assert scores[i, c].item() == pytest.approx(expected, abs=1e-10)
    assert scores.std() > 1e-4


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("options", VARIANTS)
def test_loss_is_equation_7(options, seed):
    model, batch = model_of(**options), batch_of(IMAGE_IDS, seed)
    torch.manual_seed(seed)
    others = method.others(batch.group_ids)[0].tolist()
    torch.manual_seed(seed)
    terms = model.loss(batch)
    expected = naive.similarity_loss(*encoded(model, batch), others, joint_layers(model))
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)
    assert set(terms) == {"matched", "mismatched"}


def test_loss_by_hand():
    # Branches that leave unit vectors alone, and one joint layer of weights 5 log 2. Products:
    #   (1, 0)(0.6, 0.8) and (0, 1)(0.8, -0.6) sum to 0.6 and -0.6, so p = 3 log 2 and -3 log 2;
    #   negatives (1, 0)(0.8, -0.6) and (0, 1)(0.6, 0.8) sum to 0.8 twice, so p = 4 log 2.
    # Positive: log(1 + 1/8) + log(1 + 8); negative: 2 log(1 + 16); four pairs.
    config = method.Config(embedding_size=2, joint_layers=1)
    model = method.Model(config, Sizes(image=2, text=2)).double()
    model.image_branch = model.text_branch = nn.Identity()
    nn.init.constant_(model.joint[0].weight, 5 * log(2))
    images = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    texts = torch.tensor([[0.6, 0.8], [0.8, -0.6]], dtype=torch.float64)
    captions = Captions(values=texts, lengths=torch.ones(2, dtype=torch.int64))
    terms = model.loss(Batch(images=images, captions=captions, group_ids=torch.tensor([5, 2])))
    assert terms["matched"].item() == pytest.approx((log(9 / 8) + log(9)) / 4)
    assert terms["mismatched"].item() == pytest.approx(2 * log(17) / 4)


def test_logistic_by_hand():
    p = torch.tensor(log(3), dtype=torch.float64)
    assert logistic(p, 1).item() == pytest.approx(log(4 / 3))
    assert logistic(p, -1).item() == pytest.approx(log(4))
    assert naive.logistic(log(3), -1) == pytest.approx(log(4))
    far = torch.tensor(1e4, dtype=torch.float64)
    assert logistic(far, -1).item() == pytest.approx(1e4)  # no overflow


def test_loss_of_half_precision_scores_is_summed_in_float32():
    assert logistic(torch.zeros(3, dtype=torch.bfloat16), 1).dtype == torch.float32
    assert logistic(torch.zeros(3, dtype=torch.float64), 1).dtype == torch.float64


def test_joint_oracle_by_hand():
    # products (2, -3); FC (2, -3 + 1); ReLU (2, 0); FC 2 * 2 + 0 * 9 + 1
    layers = [(np.eye(2), np.array([0.0, 1.0])), (np.array([[2.0, 9.0]]), np.array([1.0]))]
    assert naive.joint_score([1.0, 3.0], [2.0, -1.0], layers) == 5.0
    assert naive.joint_score([1.0, 3.0], [2.0, -1.0], [(np.array([[2.0, 9.0]]), [1.0])]) == -22.0


@pytest.mark.parametrize("seed", range(30))
def test_a_negative_never_shows_the_same_image(seed):
    torch.manual_seed(seed)
    ids = torch.randint(0, 4, (int(torch.randint(1, 12, ())),))
    others, present = method.others(ids)
    for b, (c, there) in enumerate(zip(others.tolist(), present.tolist(), strict=True)):
        assert there == any(image != ids[b] for image in ids)
        assert not there or ids[c] != ids[b]


def test_negatives_are_drawn_uniformly():
    torch.manual_seed(0)
    ids, draws = torch.tensor(IMAGE_IDS), 4000
    counts = [Counter() for _ in IMAGE_IDS]
    for _ in range(draws):
        for count, c in zip(counts, method.others(ids)[0].tolist(), strict=True):
            count[c] += 1
    for b, count in enumerate(counts):
        allowed = [c for c in range(len(ids)) if IMAGE_IDS[c] != IMAGE_IDS[b]]
        assert sorted(count) == allowed
        p = 1 / len(allowed)
        deviation = (draws * p * (1 - p)) ** 0.5
        assert all(abs(count[c] - draws * p) < 4.5 * deviation for c in allowed)


def test_one_image_in_all_rows_has_positive_pairs_only():
    model, batch = model_of().train(), batch_of([3, 3, 3])
    terms = model.loss(batch)
    assert terms["mismatched"] == 0
    sum(terms.values()).backward()
    assert all(x.grad.isfinite().all() for x in model.parameters())
    texts = batch.captions
    expected = naive.similarity_loss(
        *encoded(model_of(), batch), [None] * len(texts.values), joint_layers(model)
    )
    assert model_of().loss(batch)["matched"].item() == pytest.approx(expected, abs=1e-10)


def test_branches_are_the_embedding_networks():
    model, batch = model_of(), batch_of(IMAGE_IDS)
    given = batch.images.numpy(), batch.captions.values.numpy()
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, encoded(model, batch), strict=True):
        first, _, dropout, last, norm = branch
        parts = (first.weight, first.bias, last.weight, last.bias)
        parts += (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        parts = [part.detach().numpy() for part in parts]
        for x, y in zip(inputs, outputs, strict=True):
            np.testing.assert_allclose(y, naive.embed(x, *parts, norm.eps), rtol=1e-10, atol=1e-10)
        assert dropout.p == 0.5


def test_linear_branches_are_their_first_layers_alone():
    model, batch = model_of(nonlinear=False), batch_of(IMAGE_IDS)
    (layer,) = model.text_branch
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    for x, y in zip(batch.captions.values.numpy(), encoded(model, batch)[1], strict=True):
        np.testing.assert_allclose(y, naive.embed_linear(x, weight, bias), rtol=1e-10, atol=1e-10)
    assert model.joint[0].in_features == HIDDEN


@pytest.mark.parametrize(
    ("layers", "joint"),
    [
        (3, (512 * 512 + 512) + (512 * 256 + 256) + (256 + 1)),
        (2, (512 * 256 + 256) + (256 + 1)),
        (1, 512 + 1),
    ],
)
def test_full_size_network_has_the_papers_parameters(layers, joint):
    with torch.device("meta"):
        model = method.Model(method.Config(joint_layers=layers), Sizes(image=4096, text=6000))
    second = (2048 * 512 + 512) + 2 * 512  # FC with bias; scale and shift of the batch norm
    expected = (4096 * 2048 + 2048) + second + (6000 * 2048 + 2048) + second + joint
    assert sum(x.numel() for x in model.parameters()) == expected
    assert expected == 22_780_928 + joint


def test_recipe_is_sections_5_1_and_5_3():
    config = method.Config()
    (phase,) = method.recipe(config)
    assert (phase.optimiser, phase.weight_decay, phase.clip_norm) == ("adam", 0.0, None)
    assert phase.learning_rates == (0.0001,) * phase.epochs
    assert (phase.batch_size, phase.captions_per_image) == (500, 1)
    assert method.inputs(config) == Inputs(image="pooled", text="sentence")


def test_unknown_number_of_joint_layers_is_refused():
    with pytest.raises(ValueError, match="joint_layers: expected 1, 2 or 3, found 4"):
        method.Config(joint_layers=4)
