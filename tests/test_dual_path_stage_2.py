"""The dual-path CNN trained from pixels, its options, recipe and presets."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from dual_path_models import (
    OFFICIAL,
    STAGE_2,
    batch_of,
    captions_of,
    images_of,
    model_of,
    naive_head,
    pixels_of,
    plain,
    unit,
)
from oracles import dual_path as naive
from torch import Tensor

from benchmark.contracts.methods import dual_path as method
from benchmark.core.files import read_yaml
from benchmark.season.plugins import PACKAGE_ROOT, Preset

FILE = read_yaml(PACKAGE_ROOT / "methods" / "dual_path.yaml")
ROWS = {name: Preset.model_validate(row) for name, row in FILE.items()}


# Stage II ----------------------------------------------------------------------------------


def test_stage_2_takes_over_all_of_stage_1():
    first, second = model_of(), model_of(**STAGE_2)
    with torch.no_grad():
        for x in second.parameters():
            x.add_(1.0)
    keys = second.load_state_dict(first.state_dict(), strict=False)
    assert keys.unexpected_keys == []
    assert all(key.startswith("image_network.") for key in keys.missing_keys)
    state = second.state_dict()
    assert all((state[name] == x).all() for name, x in first.state_dict().items())


def test_image_batch_norms_are_frozen_and_the_others_are_not():
    model = model_of(**STAGE_2)
    assert model.training and model.image_network.training and not model.image_network.norm.training
    model.eval()
    model.train()
    assert not model.image_network.norm.training and model.image_head[1].training
    images, texts = (x.running_mean.clone() for x in (model.image_network.norm, model.word_norm))
    sum(model.loss(batch_of(pixels_of(5))).values()).backward()
    assert (model.image_network.norm.running_mean == images).all()
    assert (model.word_norm.running_mean != texts).any()
    assert model.image_network.convolution.weight.grad.abs().sum() > 0
    assert model.image_network.norm.weight.grad.abs().sum() > 0


def test_test_images_are_averaged_with_their_mirror_images():
    model, images = model_of(**STAGE_2).eval(), pixels_of(3)
    (encoded,) = model.encode_images(images)
    for i in range(3):
        sides = []
        for mirrored in (False, True):
            crop = plain(images[i])[:, 1:15, 1:15] / 255.0
            crop = crop[:, :, ::-1].copy() if mirrored else crop
            pooled, _ = model.image_network(torch.from_numpy(crop)[None])
            sides.append(naive_head(plain(pooled[0]), model.image_head))
        assert not np.allclose(*sides)
        np.testing.assert_allclose(plain(encoded[i]), unit(sum(sides) / 2), rtol=0, atol=1e-10)


def test_training_crops_are_random_windows_of_each_image_mirrored_or_not():
    images = pixels_of(200)
    torch.manual_seed(0)
    crops = method.random_crops(images, 14)
    assert crops.shape == (200, 3, 14, 14) and crops.dtype == torch.uint8
    seen = Counter()
    for image, crop in zip(images, crops, strict=True):
        offsets = [
            (top, left, mirrored)
            for top in range(3)
            for left in range(3)
            for mirrored in (False, True)
            if torch.equal(window(image, top, left, mirrored), crop)
        ]
        assert len(offsets) == 1
        seen[offsets[0]] += 1
    assert len(seen) == 18 and max(seen.values()) < 30  # 11 each on average


def window(image: Tensor, top: int, left: int, mirrored: bool) -> Tensor:
    crop = image[:, top : top + 14, left : left + 14]
    return crop.flip(-1) if mirrored else crop


# Options, recipe and presets ---------------------------------------------------------------


def test_scores_are_cosines():
    model = model_of().eval()
    captions = model.encode_captions(captions_of([3, 8, 1]))
    images = model.encode_images(images_of(2))
    for scores, left, right in (
        (model.similarity(images, captions), images[0], captions[0]),
        (model.caption_similarity(captions, captions), captions[0], captions[0]),
    ):
        slow = [[naive.cosine(plain(x), plain(y)) for y in right] for x in left]
        np.testing.assert_allclose(plain(scores), slow, rtol=0, atol=1e-10)


def test_recipe_is_section_6_b():
    (phase,) = method.recipe(method.Config())
    assert phase.learning_rates == (0.001,) * 240
    assert (phase.optimiser, phase.momentum, phase.nesterov) == ("sgd", 0.9, False)
    assert (phase.batch_size, phase.draws, phase.pool, phase.rates) == (32, "images", 0, ())
    (phase,) = method.recipe(method.Config(stage=2, lambda1=1.0, epochs=60, decay_after=40))
    assert phase.learning_rates == pytest.approx((0.001,) * 40 + (0.0001,) * 20)
    (phase,) = method.recipe(method.Config(lambda1=1.0, negatives="pool"))
    assert phase.pool == 256
    assert method.recipe(method.Config(nesterov=True))[0].nesterov


def test_official_rates_are_the_codes():
    options = {"layer_rates": True, "learning_rate": 0.01, **STAGE_2, **OFFICIAL}
    model = model_of(**options)
    (phase,) = method.recipe(model.config)
    kinds = {
        "text_cnn.0.residual.0.weight": 0.01,
        "text_cnn.0.residual.1.weight": 0.02,
        "text_cnn.0.residual.1.bias": 0.01,
        "text_cnn.0.shortcut.1.weight": 0.02,
        "text_cnn.5.residual.8.weight": 0.02,
        "word_norm.weight": 0.02,
        "word_norm.bias": 0.01,
        "words.weight": 0.0001,
        "image_head.0.weight": 0.01,
        "image_head.4.weight": 0.02,
        "text_head.1.weight": 0.02,
        "share.weight": 0.001,
        "image_network.convolution.weight": 0.002,
    }
    assert kinds.keys() <= dict(model.named_parameters()).keys()
    for name, expected in kinds.items():
        fitting = [factor for start, factor in phase.rates if name.startswith(start)]
        assert 0.01 * (fitting + [1.0])[0] == pytest.approx(expected), name


@pytest.mark.parametrize("stage", [1, 2])
def test_official_rows_of_ranking_alone_differ_in_the_losses_only(stage):
    whole = method.Config(**ROWS[f"dual_path_official_{stage}"].options)
    alone = method.Config(**ROWS[f"dual_path_official_rank_{stage}"].options)
    losses = {"lambda1": 1.0, "lambda2": 0.0, "lambda3": 0.0, "negatives": "pool"}
    assert replace(whole, **losses) == alone
