"""The dual-path CNN against loops written from the paper (tests/oracles/dual_path.py)."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import dual_path as naive
from torch import Tensor, nn

from benchmark.core.files import read_yaml
from benchmark.papers.printed_tables import printed
from benchmark.season.presets import PACKAGE_ROOT, Preset
from methods import Batch, Captions, NotApplicableError, Sizes
from methods import dual_path as method

IMAGE_SIZE, VOCABULARY, CLASSES, LENGTH = 6, 11, 5, 8
TINY = {
    "blocks": "2,1,2,1",
    "text_width": 1 / 64,
    "text_length": LENGTH,
    "word_size": 5,
    "hidden_size": 6,
    "image_hidden_size": 7,
    "embedding_size": 4,
}
OFFICIAL = {"text_pooling": "max", "text_layers": 1, "trailing_norm": True}
STAGE_2 = {"stage": 2, "lambda1": 1.0}
PIXELS = 16  # cropped to 14
FILE = read_yaml(PACKAGE_ROOT / "methods" / "dual_path.yaml")
ROWS = {name: Preset.model_validate(row) for name, row in FILE.items()}


class TinyNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map, with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, IMAGE_SIZE, 3)
        self.norm = nn.BatchNorm2d(IMAGE_SIZE)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        found = self.norm(self.convolution(pixels)).relu()
        corner = found[:, :, 0, 0]  # so that a mirror image is another
        return found.mean((2, 3)) + corner, found


def model_of(**options) -> method.Model:
    """A tiny model in float64, in training mode, with batch norms that have seen something."""
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
    values = torch.randint(1, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    counts = torch.tensor(lengths)
    return Captions(values=values * (torch.arange(max(lengths)) < counts[:, None]), lengths=counts)


def images_of(count: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, IMAGE_SIZE, generator=generator, dtype=torch.float64)


def pixels_of(count: int, seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, 3, PIXELS, PIXELS)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def batch_of(images: Tensor, **fields) -> Batch:
    """Five rows, each of an image and a class of its own."""
    facts = {"captions": captions_of([3, 8, 1, 5, 10]), "group_ids": torch.tensor([7, 2, 9, 4, 5])}
    return Batch(images=images, **facts | {"class_ids": torch.tensor([1, 0, 4, 2, 3])} | fields)


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
            x = naive.batch_norm(x, facts_of(layer))
        else:
            x = naive.relu(x)
    return x


def naive_text(model: method.Model, words: list[int], offset: int):
    """f_text of one sentence, its first word at `offset`, by the loops of the oracle."""
    config, table = model.config, plain(model.words.weight)
    ids = naive.place(words, offset, config.text_length)
    xs = [naive.batch_norm(table[i], facts_of(model.word_norm)) for i in ids]
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


def unit(x) -> np.ndarray:
    return np.asarray(x) / np.sqrt(np.square(x).sum())


# The text CNN ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "expected"), [(32, [32, 32, 16, 8, 8]), (56, [56, 56, 28, 14, 14])]
)
def test_lengths_after_every_stage_are_the_papers(length, expected):
    model = model_of(text_length=length, blocks="3,4,6,3").eval()
    x = torch.zeros(1, TINY["word_size"], length, dtype=torch.float64)
    lengths, ends = [length], {3, 7, 13, 16}
    for number, block in enumerate(model.text_cnn, 1):
        x = block(x)
        if number in ends:
            lengths.append(x.shape[-1])
    assert lengths == expected


@pytest.mark.parametrize(("at", "reached"), [(0, {0, 1}), (3, {3, 4}), (7, {7})])
def test_an_impulse_reaches_its_own_position_and_the_next(at, reached):
    pad, pair = model_of().text_cnn[1].residual[3:5]
    nn.init.ones_(pair.weight)
    x = torch.zeros(1, pair.in_channels, 8, dtype=torch.float64)
    x[:, :, at] = 1
    found = pair(pad(x))
    assert found.shape[-1] == 8
    assert set(found.abs().sum((0, 1)).nonzero()[:, 0].tolist()) == reached


@pytest.mark.parametrize("options", [{}, OFFICIAL, {"text_pooling": "max"}, {"text_layers": 1}])
def test_text_features_are_the_papers(options):
    model, captions = model_of(**options).eval(), captions_of([3, 8, 1, 5, 10])
    (found,) = model.encode_captions(captions)
    for c, offset in enumerate([2, 0, 3, 1, 0]):  # centred: (8 - n) // 2; the last is clipped
        expected = unit(naive_text(model, words_of(captions, c), offset))
        np.testing.assert_allclose(plain(found[c]), expected, rtol=0, atol=1e-10)


def test_left_alignment_starts_at_the_first_position():
    model, captions = model_of(alignment="left").eval(), captions_of([3, 8])
    (found,) = model.encode_captions(captions)
    for c in range(2):
        expected = unit(naive_text(model, words_of(captions, c), 0))
        np.testing.assert_allclose(plain(found[c]), expected, rtol=0, atol=1e-10)
    trained = model.train()._placed(captions)
    assert trained[0].tolist() == [*words_of(captions, 0), 0, 0, 0, 0, 0]


def test_features_of_all_offsets_are_summed():
    model, captions = model_of(test_offsets="all", **OFFICIAL).eval(), captions_of([3, 8, 1, 10])
    (found,) = model.encode_captions(captions)
    for c, offsets in enumerate([6, 1, 8, 1]):
        words = words_of(captions, c)
        expected = unit(sum(naive_text(model, words, offset) for offset in range(offsets)))
        np.testing.assert_allclose(plain(found[c]), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_image_features_are_the_papers(options):
    model, images = model_of(**options).eval(), images_of(3)
    (found,) = model.encode_images(images)
    for x, y in zip(plain(images), plain(found), strict=True):
        np.testing.assert_allclose(y, unit(naive_head(x, model.image_head)), rtol=0, atol=1e-10)


# Table of the layers of figure 2: stage, blocks, input, middle and output width.
LAYERS = ((3, 300, 128, 256), (4, 256, 512, 512), (6, 512, 1024, 1024), (3, 1024, 2048, 2048))


def layer(into: int, out: int, width: int = 1) -> int:
    """A convolution or FC layer without bias."""
    return into * out * width


def block_parameters(into: int, middle: int, out: int) -> int:
    convolutions = layer(into, middle) + layer(middle, middle, 2) + layer(middle, out)
    return convolutions + 2 * (middle + middle + out)  # scale and shift of each batch norm


def text_cnn_parameters() -> int:
    total = 0
    for depth, into, middle, out in LAYERS:
        total += block_parameters(into, middle, out) + layer(into, out) + 2 * out
        total += (depth - 1) * block_parameters(out, out // 4, out)
    return total


def test_full_size_network_has_the_papers_parameters():
    dictionary, classes, padding = 20_074, 29_783, 1
    with torch.device("meta"):
        sizes = Sizes(image=2048, text=dictionary + padding, classes=classes)
        model = method.Model(method.Config(), sizes)
    count = {
        name: sum(x.numel() for x in part.parameters()) for name, part in model.named_children()
    }
    assert count["text_cnn"] == text_cnn_parameters() == 31_357_952
    two_layers = layer(2048, 2048) + 2 * 2048 + layer(2048, 2048)
    assert count["image_head"] == count["text_head"] == two_layers
    expected = (dictionary + padding) * 300 + 2 * 300 + text_cnn_parameters() + 2 * two_layers
    expected += layer(2048, classes)
    assert sum(x.numel() for x in model.parameters() if x.requires_grad) == expected


# Position shift ----------------------------------------------------------------------------


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


@pytest.mark.parametrize("words", [32, 40])
def test_a_full_or_longer_sentence_has_one_place_and_is_clipped(words):
    model = model_of(text_length=32)
    values = torch.arange(1, words + 1).expand(100, words)
    ids = model._placed(Captions(values=values, lengths=torch.full((100,), words)))
    assert (ids == torch.arange(1, 33)).all()


def test_padding_is_zero_and_never_moves():
    model = model_of()
    sum(model.loss(batch_of(images_of(5))).values()).backward()
    assert (model.words.weight[0] == 0).all() and (model.words.weight.grad[0] == 0).all()
    assert (model.words.weight.grad[1:] != 0).any()


def test_word_vectors_start_the_table():
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    vectors = torch.arange(VOCABULARY * 5.0).view(VOCABULARY, 5) + 1
    model = method.Model(method.Config(**TINY), sizes, word_vectors=vectors)
    assert (model.words.weight[1:] == vectors[1:]).all()
    assert (model.words.weight[0] == 0).all()
    with pytest.raises(NotApplicableError, match="expected size 5, found 4"):
        method.Model(method.Config(**TINY), sizes, word_vectors=vectors[:, :4])


def test_batch_norms_are_the_codes():
    norms = [x for x in model_of(**OFFICIAL).modules() if isinstance(x, nn.BatchNorm1d)]
    assert len(norms) == 1 + 6 * 3 + 4 + 2 + 1  # words, blocks, shortcuts, image head, text head
    assert {(x.eps, x.momentum) for x in norms} == {(0.001, 0.05)}


def test_initial_weights_are_the_codes():
    with torch.no_grad():
        model = method.Model(
            method.Config(word_size=60, text_width=0.25, embedding_size=256, hidden_size=256),
            Sizes(image=300, text=50, classes=400),
        )
    for weight, fan_in, factor in (
        (model.image_head[0].weight, 300, 1.0),
        (model.text_cnn[0].residual[4].weight, 2 * 32, 1.0),
        (model.share.weight, 256, 0.1),
    ):
        bound = factor * (3 / fan_in) ** 0.5
        assert 0.98 * bound < weight.abs().max() <= bound
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=0.05)


# Losses ------------------------------------------------------------------------------------


def test_ranking_loss_of_the_hand_example():
    quadruples = (
        *(naive.HAND_IMAGES, naive.HAND_TEXTS),
        *(naive.HAND_WRONG_IMAGES, naive.HAND_WRONG_TEXTS),
    )
    found = method.ranking(*map(torch.from_numpy, quadruples), 1.0)
    assert found.item() == pytest.approx(naive.HAND_RANK, abs=1e-12)
    slow = naive.mean([naive.quadruple(*row, 1.0) for row in zip(*quadruples, strict=True)])
    assert slow == pytest.approx(naive.HAND_RANK, abs=1e-12)


def test_instance_loss_of_the_hand_example():
    model = model_of(embedding_size=2).eval()
    model.share.weight = nn.Parameter(torch.from_numpy(naive.HAND_SHARE))
    features, classes = torch.from_numpy(naive.HAND_FEATURES), torch.tensor(naive.HAND_CLASSES)
    found = model._instance(features, classes).item()
    assert found == pytest.approx(naive.HAND_INSTANCE, abs=1e-12)


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_loss_is_equation_9(options):
    model = model_of(lambda1=0.7, lambda2=0.5, lambda3=0.3, margin=0.4, **options).eval()
    batch = batch_of(images_of(5))
    torch.manual_seed(3)
    terms = model.loss(batch)
    torch.manual_seed(3)
    wrong = method.another_row(batch.class_ids).tolist()
    seen = naive.relu if model.config.trailing_norm else np.asarray
    image = [seen(naive_head(x, model.image_head)) for x in plain(batch.images)]
    offsets = [2, 0, 3, 1, 0]
    text = [seen(naive_text(model, words_of(batch.captions, c), offsets[c])) for c in range(5)]
    share, classes = plain(model.share.weight), batch.class_ids.tolist()
    rank = [
        naive.quadruple(image[b], text[b], image[wrong[b]], text[wrong[b]], 0.4) for b in range(5)
    ]
    expected = {
        "rank": 0.7 * naive.mean(rank),
        "visual": 0.5 * naive.mean([naive.instance(share, image[b], classes[b]) for b in range(5)]),
        "textual": 0.3 * naive.mean([naive.instance(share, text[b], classes[b]) for b in range(5)]),
    }
    assert {name: x.item() for name, x in terms.items()} == pytest.approx(expected, abs=1e-10)
    assert all(value > 0 for value in expected.values())


@pytest.mark.parametrize(
    ("lambdas", "names"),
    [
        ((0.0, 1.0, 1.0), {"visual", "textual"}),
        ((1.0, 0.0, 0.0), {"rank"}),
        ((1.0, 1.0, 1.0), {"rank", "visual", "textual"}),
    ],
)
def test_terms_of_weight_zero_are_left_out(lambdas, names):
    weights = dict(zip(("lambda1", "lambda2", "lambda3"), lambdas, strict=True))
    model = model_of(**weights)
    assert model.loss(batch_of(images_of(5))).keys() == names
    classifies = "visual" in names
    assert any(name.startswith("share.") for name in model.state_dict()) == classifies


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


def test_two_pictures_of_a_person_are_no_negatives_but_those_of_a_cluster_are():
    persons = torch.tensor([1, 1, 1, 1, 0])
    batch = batch_of(images_of(5), class_ids=persons)
    assert model_of(lambda1=1.0)._groups(batch) is persons
    assert model_of(lambda1=1.0, clusters=0.5)._groups(batch) is batch.group_ids


def test_dropout_stands_before_the_classifier_only():
    model = model_of(lambda1=1.0, dropout=0.75)
    batch = batch_of(images_of(5), captions=captions_of([8] * 5))  # one place each
    first, second = ({}, {})
    for terms in (first, second):
        for seed, name in enumerate(("rank", "visual", "textual")):
            torch.manual_seed(seed)  # the negatives are drawn first
            terms[name] = model.loss(batch)[name].item()
        model.dropout.eval()
    assert first["rank"] == pytest.approx(second["rank"], abs=1e-12)
    assert first["visual"] != pytest.approx(second["visual"], abs=1e-3)
    assert first["textual"] != pytest.approx(second["textual"], abs=1e-3)
    model.eval()
    terms = [model._instance(images_of(5)[:, :4], batch.class_ids).item() for _ in range(2)]
    assert terms[0] == terms[1]


# Negatives of a pool -----------------------------------------------------------------------


def pooled_batch() -> Batch:
    """The first five captions of the pool are of the batch's images."""
    return batch_of(
        images_of(5),
        pool=captions_of([4, 8, 2, 7, 3, 1, 6, 5, 8, 10, 2, 3], seed=8),
        pool_ids=torch.tensor([7, 2, 9, 4, 5, 1, 1, 3, 6, 8, 0, 11]),
    )


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_pool_gives_the_hardest_caption_of_another_image(options):
    model, batch = model_of(lambda1=1.0, negatives="pool", **options), pooled_batch()
    torch.manual_seed(4)
    found = model._hardest_of_pool([batch.images], batch)
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
    assert (found == placed[chosen]).all()


def test_pool_negatives_are_encoded_again_with_gradients():
    model, batch = model_of(lambda1=1.0, negatives="pool", margin=3.0).eval(), pooled_batch()
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
    found = torch.autograd.grad(terms["rank"], weight)[0]
    torch.testing.assert_close(found, torch.autograd.grad(expected, weight)[0])


def test_choosing_from_the_pool_cuts_no_gradient_in_bfloat16():
    model, batch = model_of(lambda1=1.0, negatives="pool", lambda2=0.0).float(), pooled_batch()
    with torch.autocast("cpu", torch.bfloat16):
        terms = model.loss(replace(batch, images=batch.images.float()))
    sum(terms.values()).backward()
    for name, x in model.named_parameters():
        assert x.grad is not None and x.grad.isfinite().all(), name
    assert model.text_cnn[0].residual[0].weight.grad.abs().sum() > 0


def test_choosing_from_the_pool_leaves_the_batch_norms_alone():
    model, batch = model_of(lambda1=1.0, negatives="pool"), pooled_batch()
    before = model.word_norm.running_mean.clone()
    model._hardest_of_pool([batch.images], batch)
    assert (model.word_norm.running_mean == before).all()


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


def test_stage_2_starts_from_a_stage_1_of_other_losses():
    only_rank = {"lambda1": 1.0, "lambda2": 0.0, "lambda3": 0.0}
    keys = model_of(**STAGE_2).load_state_dict(model_of(**only_rank).state_dict(), strict=False)
    assert "share.weight" in keys.missing_keys
    rank_2 = model_of(**only_rank | {"stage": 2})
    keys = rank_2.load_state_dict(model_of().state_dict(), strict=False)
    assert keys.unexpected_keys == ["share.weight"]


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
    (found,) = model.encode_images(images)
    for i in range(3):
        sides = []
        for mirrored in (False, True):
            crop = plain(images[i])[:, 1:15, 1:15] / 255.0
            crop = crop[:, :, ::-1].copy() if mirrored else crop
            pooled, _ = model.image_network(torch.from_numpy(crop)[None])
            sides.append(naive_head(plain(pooled[0]), model.image_head))
        assert not np.allclose(*sides)
        np.testing.assert_allclose(plain(found[i]), unit(sum(sides) / 2), rtol=0, atol=1e-10)


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
    found = image[:, top : top + 14, left : left + 14]
    return found.flip(-1) if mirrored else found


def test_training_sees_one_random_crop_and_test_the_same_views_always():
    model, images = model_of(**STAGE_2), pixels_of(4)
    first, second = model._views(images), model._views(images)
    assert len(first) == 1 and not torch.equal(first[0], second[0])
    model.eval()
    first, second = model._views(images), model._views(images)
    assert len(first) == 2 and all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_an_image_network_belongs_to_stage_2():
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    with pytest.raises(ValueError, match="stage 2 needs one"):
        method.Model(method.Config(**TINY | STAGE_2), sizes)
    with pytest.raises(ValueError, match="stage 1 takes none"):
        method.Model(method.Config(**TINY), sizes, image_network=TinyNetwork())


# Options, recipe and presets ---------------------------------------------------------------


def test_scores_are_cosines():
    model = model_of().eval()
    captions = model.encode_captions(captions_of([3, 8, 1]))
    images = model.encode_images(images_of(2))
    for found, left, right in (
        (model.similarity(images, captions), images[0], captions[0]),
        (model.caption_similarity(captions, captions), captions[0], captions[0]),
    ):
        slow = [[naive.cosine(plain(x), plain(y)) for y in right] for x in left]
        np.testing.assert_allclose(plain(found), slow, rtol=0, atol=1e-10)


def test_inputs_follow_the_options():
    first = method.inputs(method.Config())
    assert (first.image, first.text, first.word_vectors, first.clusters) == (
        *("pooled", "words"),
        *(True, 0.0),
    )
    second = method.inputs(method.Config(stage=2, word_init="random", clusters=0.5))
    assert (second.image, second.word_vectors, second.clusters) == ("pixels", False, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage": 3}, "stage: expected 1 or 2, found 3"),
        ({"alignment": "right"}, "alignment: expected shift or left, found 'right'"),
        ({"negatives": "hard"}, "negatives: expected random or pool, found 'hard'"),
        ({"blocks": "3,4,6"}, "blocks: expected four counts like 3,4,6,3, found '3,4,6'"),
        ({"blocks": "3,4,0,3"}, "blocks: expected four counts"),
        ({"text_width": 0.01}, "text_width: expected 1/64 or more"),
        ({"lambda2": 0.0, "lambda3": 0.0}, "one of them has to be above 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        method.Config(**options)


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


@pytest.mark.parametrize("name", ROWS)
def test_presets_are_configurations_and_start_from_stage_1(name):
    row = ROWS[name]
    config = method.Config(**row.options)
    assert name.endswith("_2") == (config.stage == 2) == (row.start is not None)
    assert bool(printed(name)) == (row.family == "paper")
    if row.start:
        start = method.Config(**ROWS[row.start].options)
        shape = {"text_length", "blocks", "hidden_size", "image_hidden_size", "text_layers"}
        assert start.stage == 1
        assert all(getattr(start, key) == getattr(config, key) for key in shape)


def test_every_own_row_of_the_eight_tables_is_reported():
    rows = Counter(
        (entry.table.removeprefix("instance_loss/"), entry.place)
        for name in ROWS
        for entry in printed(name)
    )
    assert rows == {
        ("1", "flickr30k/test"): 6,
        ("2", "flickr30k/val"): 5,
        ("3", "flickr30k/test"): 2,
        ("3", "mscoco_1k/test"): 2,
        ("4", "mscoco_1k/test"): 3,
        ("5", "flickr30k/val"): 2,
        ("6", "flickr30k/val"): 2,
        ("7", "cuhk_pedes/test"): 4,
        ("8", "mscoco_1k/test"): 4,
        ("8", "mscoco_5k/test"): 4,
    }


def test_word_vectors_of_another_size_are_named():
    sizes = Sizes(image=4, text=3, classes=2)
    with pytest.raises(NotApplicableError, match="expected size 300, found 5; set the option"):
        method.Model(method.Config(), sizes, word_vectors=torch.zeros(3, 5))


def test_the_image_cnn_may_learn_more_slowly():
    (phase,) = method.recipe(method.Config(stage=2, image_rate=0.1))
    assert phase.rates == (("image_network.", 0.1),)
    assert method.recipe(method.Config(stage=2))[0].rates == ()
