"""SCAN against loops written from the paper's equations (tests/oracles/scan.py)."""

import numpy as np
import pytest
import torch
from oracles import scan as naive
from torch.nn.functional import normalize

from benchmark.contracts.methods import Batch, Captions, NotApplicableError, Sizes, scan
from benchmark.core.files import read_yaml
from benchmark.season.plugins import PACKAGE_ROOT, Preset

IMAGES, CAPTIONS, REGIONS, WORDS, FEATURES, VOCABULARY = 5, 6, 4, 7, 9, 20
LAMBDA1, LAMBDA2 = 4.0, 5.0
POOLINGS = {
    "lse": lambda r: naive.lse(r, LAMBDA2),
    "avg": naive.average,
    "sum": naive.summation,
    "max": naive.maximum,
}
ROWS = {name: Preset(**row) for name, row in read_yaml(PACKAGE_ROOT / "methods/scan.yaml").items()}


def model_of(**options) -> scan.Model:
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "word_size": 5, "regions": REGIONS}
    config = scan.Config(**sizes | {"lambda1": LAMBDA1, "lambda2": LAMBDA2} | options)
    return scan.Model(config, Sizes(image=FEATURES, text=VOCABULARY)).double()


def captions_of(count: int = CAPTIONS, seed: int = 1) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
    values = torch.randint(1, VOCABULARY, (count, WORDS), generator=generator)
    return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)


def images_of(count: int = IMAGES, seed: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, REGIONS, FEATURES, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_similarity_is_the_papers(direction, pooling):
    relevance = naive.relevance_t2i if direction == "t2i" else naive.relevance_i2t

    def expected(regions, words):
        return POOLINGS[pooling](relevance(regions, words, LAMBDA1))

    check_scores(model_of(direction=direction, pooling=pooling), expected)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_sum_max_is_equations_9_and_10(direction):
    expected = naive.sum_max_t2i if direction == "t2i" else naive.sum_max_i2t
    check_scores(model_of(direction=direction, attention=False, pooling="sum"), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_images_that_are_not_normalised_keep_their_norms(direction, pooling):
    model = model_of(direction=direction, pooling=pooling, normalise_images=False)
    relevance = naive.relevance_t2i if direction == "t2i" else naive.relevance_i2t
    regions = model.encode_images(images_of())[0]
    torch.testing.assert_close(regions, model.project(images_of()))

    def expected(regions, words):
        return POOLINGS[pooling](relevance(regions, words, LAMBDA1, naive.products))

    check_scores(model, expected)


def check_scores(model: scan.Model, expected) -> None:
    """Every score is `expected` of the regions and the words of its pair."""
    captions = captions_of()
    images, words = model.encode_images(images_of()), model.encode_captions(captions)
    scores = model.similarity(images, words).detach().numpy()
    assert scores.shape == (IMAGES, CAPTIONS)
    for i in range(IMAGES):
        for c in range(CAPTIONS):
            regions = images[0][i].detach().numpy()
            kept = words[0][c, : captions.lengths[c]].detach().numpy()
            assert scores[i, c] == pytest.approx(expected(regions, kept), abs=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalise_images": False},
        {"attention": False, "pooling": "sum"},
        {"pooling": "max"},
        {"pooling": "lse"},
    ],
)
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_pair_similarity_is_the_diagonal(direction, options):
    model = model_of(direction=direction, **options)
    images, words = model.encode_images(images_of()), model.encode_captions(captions_of(IMAGES))
    whole = model.similarity(images, words)
    torch.testing.assert_close(model.pair_similarity(images, words), whole.diagonal())


def gru_weights(model: scan.Model, suffix: str = "") -> tuple[np.ndarray, ...]:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return tuple(getattr(model.gru, f"{x}_l0{suffix}").detach().numpy() for x in names)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_words_are_averaged_gru_states(bidirectional):
    model, captions = model_of(bidirectional=bidirectional), captions_of()
    words = model.encode_captions(captions)[0].detach()
    for c, length in enumerate(captions.lengths):
        inputs = model.embed(captions.values[c, :length]).detach().numpy()
        if bidirectional:
            states = naive.bi_gru(inputs, gru_weights(model), gru_weights(model, "_reverse"))
        else:
            states = naive.gru(inputs, *gru_weights(model))
        torch.testing.assert_close(words[c, :length], normalize(torch.tensor(states), dim=-1))
        assert (words[c, length:] == 0).all()


def test_first_regions_are_used_and_no_others():
    model, images = model_of(regions=3), images_of()
    encoded = model.encode_images(images)
    torch.testing.assert_close(encoded[0], normalize(model.project(images), dim=-1)[:, :3])
    assert encoded[1].tolist() == [3] * IMAGES
    with pytest.raises(NotApplicableError, match="regions: expected 5 or more, found 4"):
        model_of(regions=5).encode_images(images)


@pytest.mark.parametrize("other_captions_negative", [False, True])
def test_loss_and_its_gradient_are_those_of_all_pairs(other_captions_negative):
    model = model_of(other_captions_negative=other_captions_negative)
    ids = torch.tensor([0, 1, 2, 0, 3, 4])
    batch = Batch(images=images_of(5)[ids], captions=captions_of(6), group_ids=ids)
    loss = sum(model.loss(batch).values())
    loss.backward()
    fast = {name: x.grad.clone() for name, x in model.named_parameters()}

    scores = model.similarity(
        model.encode_images(batch.images), model.encode_captions(batch.captions)
    )
    plain = scores.detach().numpy()
    if other_captions_negative:
        expected = naive.hardest_hinge_diagonal(plain, model.config.margin)
    else:
        expected = naive.hardest_hinge(plain, ids.tolist(), model.config.margin)
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    assert expected > 0

    same = torch.eye(6) > 0 if other_captions_negative else ids[:, None] == ids[None, :]
    wrong = scores.masked_fill(same, -np.inf)
    matched, margin = scores.diagonal(), model.config.margin
    slow = (margin - matched + wrong.max(1).values).relu().sum()
    slow = slow + (margin - matched + wrong.max(0).values).relu().sum()
    model.zero_grad()
    slow.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(fast[name], parameter.grad, msg=name)


@pytest.mark.parametrize("other_captions_negative", [False, True])
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_loss_of_all_negatives_is_equation_11(direction, other_captions_negative):
    model = model_of(
        direction=direction,
        hard_negatives=False,
        other_captions_negative=other_captions_negative,
    )
    ids = torch.arange(18) // 2 * 5  # more rows than a tile has
    batch = Batch(images=images_of(90)[ids], captions=captions_of(18), group_ids=ids)
    terms = model.loss(batch)
    sum(terms.values()).backward()
    tiled = {name: x.grad.clone() for name, x in model.named_parameters()}

    images, words = model.encode_images(batch.images), model.encode_captions(batch.captions)
    scores, margin = model.similarity(images, words), model.config.margin
    rows = list(range(18)) if other_captions_negative else ids.tolist()
    expected = naive.sum_hinge(scores.detach().numpy(), rows, margin)
    assert sum(terms.values()).item() == pytest.approx(expected, abs=1e-10)

    slow = 0.0
    for b in range(18):
        for other in (x for x in range(18) if rows[x] != rows[b]):
            slow = slow + (margin - scores[b, b] + scores[b, other]).relu()
            slow = slow + (margin - scores[b, b] + scores[other, b]).relu()
    model.zero_grad()
    slow.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(tiled[name], parameter.grad, msg=name)


def test_recipe_is_appendix_a():
    (phase,) = scan.recipe(scan.Config())
    assert phase.learning_rates == pytest.approx((0.0002,) * 15 + (0.00002,) * 15)
    assert (phase.batch_size, phase.clip_norm, phase.optimiser) == (128, 2.0, "adam")


PROJECTION = 2048 * 1024 + 1024
EMBEDDING = 8481 * 300
GRU = 3 * 1024 * (300 + 1024) + 2 * 3 * 1024  # three gates; PyTorch's two biases each


@pytest.mark.parametrize(
    ("preset", "directions"), [("scan_i2t_avg", 2), ("scan_one_directional_gru", 1)]
)
def test_full_size_network_has_the_papers_parameters(preset, directions):
    with torch.device("meta"):
        config = scan.Config(**ROWS[preset].options)
        model = scan.Model(config, Sizes(image=2048, text=8481))
    expected = PROJECTION + EMBEDDING + directions * GRU
    assert expected == {1: 8_715_948, 2: 12_789_420}[directions]
    assert sum(x.numel() for x in model.parameters() if x.requires_grad) == expected


def naive_attention(regions, words, lambda1: float, first_stage) -> list[list[float]]:
    """alpha'[j][i] of word j and region i, Section 3.1: thresholded s of a region normalised over
    the words, then for each word the softmax over the regions."""
    s = first_stage(regions, words)
    s_bar = [naive.unit_or_zero([naive.positive(value) for value in row]) for row in s]
    return [naive.softmax([row[j] for row in s_bar], lambda1) for j in range(len(words))]


@pytest.mark.parametrize("options", [{}, {"pooling": "lse"}, {"normalise_images": False}])
def test_attention_is_the_softmax_over_the_regions(options):
    model, captions = model_of(**options), captions_of(IMAGES)
    images, words = model.encode_images(images_of()), model.encode_captions(captions)
    attention = model.attention(images, words).detach().numpy()
    assert attention.shape == (IMAGES, WORDS, REGIONS)
    first_stage = naive.cosines if model.config.normalise_images else naive.products
    for b, length in enumerate(captions.lengths):
        regions, kept = (x.detach().numpy() for x in (images[0][b], words[0][b, :length]))
        expected = naive_attention(regions, kept, LAMBDA1, first_stage)
        np.testing.assert_allclose(attention[b, :length], expected, atol=1e-10)
    assert attention.std() > 0.01
