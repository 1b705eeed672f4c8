"""The dual-path CNN against loops written from the paper (tests/oracles/dual_path.py)."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from dual_path_models import (
    CLASSES,
    IMAGE_SIZE,
    OFFICIAL,
    TINY,
    VOCABULARY,
    batch_of,
    captions_of,
    images_of,
    model_of,
    naive_head,
    naive_text,
    plain,
    unit,
    words_of,
)
from oracles import dual_path as naive
from torch import nn

from methods import Batch, Captions, NotApplicableError, Sizes
from methods import dual_path as method

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
    response = pair(pad(x))
    assert response.shape[-1] == 8
    assert set(response.abs().sum((0, 1)).nonzero()[:, 0].tolist()) == reached


@pytest.mark.parametrize("options", [{}, OFFICIAL, {"text_pooling": "max"}, {"text_layers": 1}])
def test_text_features_are_the_papers(options):
    model, captions = model_of(**options).eval(), captions_of([3, 8, 1, 5, 10])
    (encoded,) = model.encode_captions(captions)
    for c, offset in enumerate([2, 0, 3, 1, 0]):  # centred: (8 - n) // 2; the last is clipped
        expected = unit(naive_text(model, words_of(captions, c), offset))
        np.testing.assert_allclose(plain(encoded[c]), expected, rtol=0, atol=1e-10)


def test_left_alignment_starts_at_the_first_position():
    model, captions = model_of(alignment="left").eval(), captions_of([3, 8])
    (encoded,) = model.encode_captions(captions)
    for c in range(2):
        expected = unit(naive_text(model, words_of(captions, c), 0))
        np.testing.assert_allclose(plain(encoded[c]), expected, rtol=0, atol=1e-10)
    trained = model.train()._placed(captions)
    assert trained[0].tolist() == [*words_of(captions, 0), 0, 0, 0, 0, 0]


def test_features_of_all_offsets_are_summed():
    model, captions = model_of(test_offsets="all", **OFFICIAL).eval(), captions_of([3, 8, 1, 10])
    (encoded,) = model.encode_captions(captions)
    for c, offsets in enumerate([6, 1, 8, 1]):
        words = words_of(captions, c)
        expected = unit(sum(naive_text(model, words, offset) for offset in range(offsets)))
        np.testing.assert_allclose(plain(encoded[c]), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_image_features_are_the_papers(options):
    model, images = model_of(**options).eval(), images_of(3)
    (encoded,) = model.encode_images(images)
    for x, y in zip(plain(images), plain(encoded), strict=True):
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
    loss = method.ranking(*map(torch.from_numpy, quadruples), 1.0)
    assert loss.item() == pytest.approx(naive.HAND_RANK, abs=1e-12)
    slow = naive.mean([naive.quadruple(*row, 1.0) for row in zip(*quadruples, strict=True)])
    assert slow == pytest.approx(naive.HAND_RANK, abs=1e-12)


def test_instance_loss_of_the_hand_example():
    model = model_of(embedding_size=2).eval()
    model.share.weight = nn.Parameter(torch.from_numpy(naive.HAND_SHARE))
    features, classes = torch.from_numpy(naive.HAND_FEATURES), torch.tensor(naive.HAND_CLASSES)
    loss = model._instance(features, classes).item()
    assert loss == pytest.approx(naive.HAND_INSTANCE, abs=1e-12)


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
    gradient = torch.autograd.grad(terms["rank"], weight)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, weight)[0])


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
