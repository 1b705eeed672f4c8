"""The dual-path CNN against loops written from the paper
(tests/oracles/dual_path.py)."""

from collections import Counter

import numpy as np
import pytest
import torch
from oracles import dual_path as naive
from oracles.layers import unit
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Captions, NotApplicableError, Sizes
from benchmark.contracts.methods import dual_path as method

IMAGE_SIZE, VOCABULARY, CLASSES, LENGTH = 6, 11, 5, 8
TINY = {
    "blocks": "2,1,2,1",
    "text_width": 1 / 64,
    "text_length": LENGTH,
    "word_size": 5,
}
TINY |= {"hidden_size": 6, "image_hidden_size": 7, "embedding_size": 4}
OFFICIAL = {"text_pooling": "max", "text_layers": 1, "trailing_norm": True}
STAGE_2 = {"stage": 2, "lambda1": 1.0}
PIXELS = 16  # cropped to 14


class TinyNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map, with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, IMAGE_SIZE, 3)
        self.norm = nn.BatchNorm2d(IMAGE_SIZE)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.norm(self.convolution(pixels)).relu()
        corner = maps[:, :, 0, 0]  # so that a mirror image is another
        return maps.mean((2, 3)) + corner, maps


def model_of(**options) -> method.Model:
    """A tiny model in float64, in training mode, with batch norms that have seen
    something."""
    torch.manual_seed(0)
    config = method.Config(**TINY | options)
    network = TinyNetwork() if config.stage == 2 else None
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    model = method.Model(config, sizes, image_network=network).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                for values in (module.running_var, module.weight):
                    values.copy_(torch.rand(values.shape, generator=generator) + 0.5)
                for values in (module.running_mean, module.bias):
                    values.copy_(torch.rand(values.shape, generator=generator) - 0.5)
    return model


def captions_of(lengths: list[int], seed: int = 1) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(
        1, VOCABULARY, (len(lengths), max(lengths)), generator=generator
    )
    counts = torch.tensor(lengths)
    return Captions(
        values=values * (torch.arange(max(lengths)) < counts[:, None]), lengths=counts
    )


def images_of(count: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, IMAGE_SIZE, generator=generator, dtype=torch.float64)


def pixels_of(count: int, seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, 3, PIXELS, PIXELS)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def batch_of(images: Tensor, **fields) -> Batch:
    """Five rows, each of an image and a class of its own."""
    facts = {
        "captions": captions_of([3, 8, 1, 5, 10]),
        "group_ids": torch.tensor([7, 2, 9, 4, 5]),
    }
    return Batch(
        images=images, **facts | {"class_ids": torch.tensor([1, 0, 4, 2, 3])} | fields
    )


def plain(x: Tensor) -> np.ndarray:
    return x.detach().numpy()


def facts_of(norm: nn.BatchNorm1d) -> tuple:
    values = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    return (*map(plain, values), norm.eps)


def naive_head(x, head: nn.Sequential):
    for layer in head:
        if isinstance(layer, nn.Linear):
            x = naive.affine(plain(layer.weight), x)
        elif isinstance(layer, nn.BatchNorm1d):
            x = naive.batch_norm(x, *facts_of(layer))
        else:
            x = naive.relu(x)
    return x


def naive_text(model: method.Model, words: list[int], offset: int):
    """f_text of one sentence, its first word at `offset`, by the loops of the
    oracle."""
    config, table = model.config, plain(model.words.weight)
    ids = naive.place(words, offset, config.text_length)
    xs = [naive.batch_norm(table[i], *facts_of(model.word_norm)) for i in ids]
    blocks = iter(model.text_cnn)
    for depth, stride in zip(config.blocks.split(","), (1, 2, 2, 1), strict=True):
        for first in [True] + [False] * (int(depth) - 1):
            block = next(blocks)
            layers = [*block.residual, *(block.shortcut if first else ())]
            weights = [plain(x.weight) for x in layers if isinstance(x, nn.Conv1d)]
            norms = [facts_of(x) for x in layers if isinstance(x, nn.BatchNorm1d)]
            xs = naive.block(xs, weights, norms, stride if first else 1, first)
    pool = {"average": naive.average, "max": naive.maximum}[config.text_pooling]
    return naive_head(pool(xs), model.text_head)


def words_of(captions: Captions, c: int) -> list[int]:
    return captions.values[c, : captions.lengths[c]].tolist()


# The text CNN -------------------------------------------------------------------------


# (8 - n) // 2; the last: clipped
CENTRES = [range(2, 3), range(1), range(3, 4), range(1, 2), range(1)]
ALL = [range(6), range(1), range(8), range(4), range(1)]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        *[({}, CENTRES), (OFFICIAL, CENTRES), ({"text_pooling": "max"}, CENTRES)],
        *[({"text_layers": 1}, CENTRES), ({"test_offsets": "all"} | OFFICIAL, ALL)],
    ],
)
def test_text_features_are_the_sums_over_offsets_of_the_paper(options, offsets):
    model, captions = model_of(**options).eval(), captions_of([3, 8, 1, 5, 10])
    (encoded,) = model.encode_captions(captions)
    for c, starts in enumerate(offsets):
        words = words_of(captions, c)
        expected = unit(sum(naive_text(model, words, offset) for offset in starts))
        np.testing.assert_allclose(plain(encoded[c]), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_image_features_are_the_papers(options):
    model, images = model_of(**options).eval(), images_of(3)
    (encoded,) = model.encode_images(images)
    for x, y in zip(plain(images), plain(encoded), strict=True):
        np.testing.assert_allclose(
            y, unit(naive_head(x, model.image_head)), rtol=0, atol=1e-10
        )


# Position shift -----------------------------------------------------------------------


@pytest.mark.parametrize(("words", "offsets"), [(9, 24), (31, 2), (1, 32)])
def test_shift_draws_every_offset_equally_often(words, offsets):
    model, draws = model_of(text_length=32), 400 * offsets
    values = torch.arange(1, words + 1).expand(draws, words)
    torch.manual_seed(0)
    captions = Captions(values=values, lengths=torch.full((draws,), words))
    ids = model._placed(captions)
    starts = (ids == 1).long().argmax(1)
    counts = torch.bincount(starts, minlength=offsets).double()
    assert len(counts) == offsets
    assert ((counts - 400).square() / 400).sum() < 1.5 * offsets + 15  # chi-square
    for row, start in zip(ids[:50].tolist(), starts[:50].tolist(), strict=True):
        assert row == naive.place(list(range(1, words + 1)), start, 32)


def test_word_vectors_start_the_table():
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    vectors = torch.arange(VOCABULARY * 5.0).view(VOCABULARY, 5) + 1
    model = method.Model(method.Config(**TINY), sizes, word_vectors=vectors)
    assert (model.words.weight[1:] == vectors[1:]).all()
    assert (model.words.weight[0] == 0).all()
    with pytest.raises(NotApplicableError, match="expected size 5, found 4"):
        method.Model(method.Config(**TINY), sizes, word_vectors=vectors[:, :4])


# Losses -------------------------------------------------------------------------------


def test_losses_of_the_hand_examples():
    quadruples = (
        *(naive.HAND_IMAGES, naive.HAND_TEXTS),
        *(naive.HAND_WRONG_IMAGES, naive.HAND_WRONG_TEXTS),
    )
    loss = method.ranking(*map(torch.from_numpy, quadruples), 1.0).item()
    slow = naive.mean(
        [naive.quadruple(*row, 1.0) for row in zip(*quadruples, strict=True)]
    )
    assert [loss, slow] == pytest.approx([naive.HAND_RANK] * 2, abs=1e-12)
    model = model_of(embedding_size=2).eval()
    model.share.weight = nn.Parameter(torch.from_numpy(naive.HAND_SHARE))
    features, classes = (
        torch.from_numpy(naive.HAND_FEATURES),
        torch.tensor(naive.HAND_CLASSES),
    )
    loss = model._instance(features, classes).item()
    assert loss == pytest.approx(naive.HAND_INSTANCE, abs=1e-12)


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_loss_is_equation_9(options):
    model = model_of(
        lambda1=0.7, lambda2=0.5, lambda3=0.3, margin=0.4, **options
    ).eval()
    batch = batch_of(images_of(5))
    torch.manual_seed(3)
    terms = model.loss(batch)
    torch.manual_seed(3)
    wrong = method.another_row(batch.class_ids).tolist()
    seen = naive.relu if model.config.trailing_norm else np.asarray
    image = [seen(naive_head(x, model.image_head)) for x in plain(batch.images)]
    offsets = [2, 0, 3, 1, 0]
    text = [
        seen(naive_text(model, words_of(batch.captions, c), offsets[c]))
        for c in range(5)
    ]
    share, classes = plain(model.share.weight), batch.class_ids.tolist()
    rank = [
        naive.quadruple(image[b], text[b], image[wrong[b]], text[wrong[b]], 0.4)
        for b in range(5)
    ]
    expected = {
        "rank": 0.7 * naive.mean(rank),
        "visual": 0.5
        * naive.mean([naive.instance(share, image[b], classes[b]) for b in range(5)]),
        "textual": 0.3
        * naive.mean([naive.instance(share, text[b], classes[b]) for b in range(5)]),
    }
    assert {name: x.item() for name, x in terms.items()} == pytest.approx(
        expected, abs=1e-10
    )
    assert all(value > 0 for value in expected.values())


def test_a_pool_is_drawn_where_it_is_ranked():
    pools = []
    for weight in (0.0, 1.0):
        for negatives in ("random", "pool"):
            config = method.Config(lambda1=weight, negatives=negatives, pool_size=9)
            pools.append(method.recipe(config)[0].pool)
    assert pools == [0, 0, 0, 9]


def test_negatives_are_random_rows_of_other_groups():
    groups = torch.tensor([4, 1, 4, 4, 2, 1])
    torch.manual_seed(0)
    draws = torch.stack([method.another_row(groups) for _ in range(300)])
    for b, group in enumerate(groups.tolist()):
        allowed = {c for c, other in enumerate(groups.tolist()) if other != group}
        assert set(draws[:, b].tolist()) == allowed
        counts = Counter(draws[:, b].tolist()).values()
        assert min(counts) > 0.6 * 300 / len(allowed)
    assert method.another_row(torch.zeros(3)).tolist() == [0, 1, 2]


# Negatives of a pool ------------------------------------------------------------------


def pooled_batch() -> Batch:
    # the first five captions of the pool are of the batch's images
    return batch_of(
        images_of(5),
        pool=captions_of([4, 8, 2, 7, 3, 1, 6, 5, 8, 10, 2, 3], seed=8),
        pool_ids=torch.tensor([7, 2, 9, 4, 5, 1, 1, 3, 6, 8, 0, 11]),
    )


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_pool_gives_the_hardest_caption_of_another_image(options):
    model, batch = model_of(lambda1=1.0, negatives="pool", **options), pooled_batch()
    torch.manual_seed(4)
    hardest = model._hardest_of_pool([batch.images], batch)
    assert model.training and model.text_cnn.training
    torch.manual_seed(4)
    placed = model._placed(batch.pool)
    model.eval()
    seen = naive.relu if model.config.trailing_norm else np.asarray
    images = [seen(naive_head(x, model.image_head)) for x in plain(batch.images)]
    texts = []
    for p in range(len(placed)):
        start = placed[p].tolist().index(batch.pool.values[p, 0].item())
        texts.append(seen(naive_text(model, words_of(batch.pool, p), start)))
    ids = batch.group_ids.tolist(), batch.pool_ids.tolist()
    chosen = naive.hardest_of_pool(images, ids[0], texts, ids[1])
    assert len(set(chosen)) > 1
    assert (hardest == placed[chosen]).all()


def test_pool_negatives_are_encoded_again_with_gradients():
    model, batch = (
        model_of(lambda1=1.0, negatives="pool", margin=3.0).eval(),
        pooled_batch(),
    )
    torch.manual_seed(6)
    terms = model.loss(batch)
    torch.manual_seed(6)
    ids = model._hardest_of_pool([batch.images], batch)
    wrong = method.another_row(batch.class_ids)
    image, text = model._image_features([batch.images]), model._text_features(ids)
    matched = model._text_features(model._placed(batch.captions))
    expected = method.ranking(image, matched, image[wrong], text, 3.0)
    assert terms["rank"].item() == pytest.approx(expected.item(), abs=1e-10)
    weight = model.text_cnn[0].residual[0].weight
    gradient = torch.autograd.grad(terms["rank"], weight)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, weight)[0])


# Stage II -----------------------------------------------------------------------------


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
    assert (
        model.training
        and model.image_network.training
        and not model.image_network.norm.training
    )
    model.eval()
    model.train()
    assert not model.image_network.norm.training and model.image_head[1].training
    images, texts = (
        x.running_mean.clone() for x in (model.image_network.norm, model.word_norm)
    )
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
        np.testing.assert_allclose(
            plain(encoded[i]), unit(sum(sides) / 2), rtol=0, atol=1e-10
        )


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


# Options, recipe and presets ----------------------------------------------------------


def test_official_rates_are_the_codes():
    options = {"layer_rates": True, "learning_rate": 0.01, **STAGE_2, **OFFICIAL}
    model = model_of(**options)
    (phase,) = method.recipe(model.config)
    kinds = {
        "text_cnn.0.residual.0.weight": 0.01,
        "text_cnn.0.residual.1.weight": 0.02,
        "text_cnn.0.residual.1.bias": 0.01,
        "text_cnn.5.residual.8.weight": 0.02,
        "word_norm.weight": 0.02,
        "words.weight": 0.0001,
        "image_head.0.weight": 0.01,
        "image_head.4.weight": 0.02,
        "share.weight": 0.001,
        "image_network.convolution.weight": 0.002,
    }
    assert kinds.keys() <= dict(model.named_parameters()).keys()
    for name, expected in kinds.items():
        fitting = [factor for start, factor in phase.rates if name.startswith(start)]
        assert 0.01 * (fitting + [1.0])[0] == pytest.approx(expected), name
