"""The dual-path CNN against loops written from the paper (tests/oracles/dual_path.py)."""

from collections import Counter

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

from benchmark.contracts.methods import Batch, Captions, NotApplicableError, Sizes
from benchmark.contracts.methods import dual_path as method

# The text CNN ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, OFFICIAL, {"text_pooling": "max"}, {"text_layers": 1}])
def test_text_features_are_the_papers(options):
    model, captions = model_of(**options).eval(), captions_of([3, 8, 1, 5, 10])
    (encoded,) = model.encode_captions(captions)
    for c, offset in enumerate([2, 0, 3, 1, 0]):  # centred: (8 - n) // 2; the last is clipped
        expected = unit(naive_text(model, words_of(captions, c), offset))
        np.testing.assert_allclose(plain(encoded[c]), expected, rtol=0, atol=1e-10)


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


def test_word_vectors_start_the_table():
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    vectors = torch.arange(VOCABULARY * 5.0).view(VOCABULARY, 5) + 1
    model = method.Model(method.Config(**TINY), sizes, word_vectors=vectors)
    assert (model.words.weight[1:] == vectors[1:]).all()
    assert (model.words.weight[0] == 0).all()
    with pytest.raises(NotApplicableError, match="expected size 5, found 4"):
        method.Model(method.Config(**TINY), sizes, word_vectors=vectors[:, :4])


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
