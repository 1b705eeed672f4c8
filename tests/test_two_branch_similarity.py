"""The two-branch similarity network against loops written from the paper."""

from collections import Counter

import numpy as np
import pytest
import torch
from oracles import two_branch as naive
from torch import nn

from benchmark.contracts.methods import Batch, Captions, Inputs, Sizes
from benchmark.contracts.methods import two_branch_similarity as method

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
