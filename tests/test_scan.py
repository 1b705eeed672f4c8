"""SCAN against loops written from the paper's equations (tests/oracles/scan.py)."""

import numpy as np
import pytest
import torch
from oracles import scan as naive
from torch.nn.functional import normalize

from benchmark.contracts.methods import Batch, Captions, NotApplicableError, Sizes, scan

IMAGES, CAPTIONS, REGIONS, WORDS, FEATURES, VOCABULARY = 5, 6, 4, 7, 9, 20
LAMBDA1, LAMBDA2 = 4.0, 5.0
POOLINGS = {
    "lse": lambda r: naive.lse(r, LAMBDA2),
    "avg": naive.average,
    "sum": naive.summation,
    "max": naive.maximum,
}


def model_of(**options) -> scan.Model:
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "word_size": 5, "regions": REGIONS}
    config = scan.Config(**sizes | {"lambda1": LAMBDA1, "lambda2": LAMBDA2} | options)
    return scan.Model(config, Sizes(image=FEATURES, text=VOCABULARY)).double()


def captions_of(count: int = CAPTIONS, seed: int = 1) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
    values = torch.randint(1, VOCABULARY, (count, WORDS), generator=generator)
    return Captions(
        values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths
    )


def images_of(count: int = IMAGES, seed: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(
        count, REGIONS, FEATURES, generator=generator, dtype=torch.float64
    )


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
@pytest.mark.parametrize("first_stage", [naive.cosines, naive.products])
def test_similarity_is_the_papers(first_stage, direction, pooling):
    """With products, images keep their norms."""
    is_unit = first_stage is naive.cosines
    model = model_of(direction=direction, pooling=pooling, normalise_images=is_unit)
    relevance = naive.relevance_t2i if direction == "t2i" else naive.relevance_i2t

    def expected(regions, words):
        return POOLINGS[pooling](relevance(regions, words, LAMBDA1, first_stage))

    check_scores(model, expected)
    regions, plain = model.encode_images(images_of())[0], model.project(images_of())
    torch.testing.assert_close(regions, normalize(plain, dim=-1) if is_unit else plain)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_sum_max_is_equations_9_and_10(direction):
    expected = naive.sum_max_t2i if direction == "t2i" else naive.sum_max_i2t
    check_scores(
        model_of(direction=direction, attention=False, pooling="sum"), expected
    )


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
    images, words = (
        model.encode_images(images_of()),
        model.encode_captions(captions_of(IMAGES)),
    )
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
            states = naive.bi_gru(
                inputs, gru_weights(model), gru_weights(model, "_reverse")
            )
        else:
            states = naive.gru(inputs, *gru_weights(model))
        torch.testing.assert_close(
            words[c, :length], normalize(torch.tensor(states), dim=-1)
        )
        assert (words[c, length:] == 0).all()


def test_words_that_attend_alone_offer_their_attention():
    offers = []
    for direction in ("t2i", "i2t"):
        for attention in (True, False):
            config = scan.Config(direction=direction, attention=attention)
            offers.append(scan.inputs(config).attention)
    assert offers == [True, False, False, False]


def test_first_regions_are_used_and_no_others():
    model, images = model_of(regions=3), images_of()
    encoded = model.encode_images(images)
    torch.testing.assert_close(
        encoded[0], normalize(model.project(images), dim=-1)[:, :3]
    )
    assert encoded[1].tolist() == [3] * IMAGES
    with pytest.raises(
        NotApplicableError, match="regions: expected 5 or more, found 4"
    ):
        model_of(regions=5).encode_images(images)


@pytest.mark.parametrize("other_captions_negative", [False, True])
@pytest.mark.parametrize("hard_negatives", [False, True])
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_loss_and_its_gradient_are_equations_11_and_12(
    direction, hard_negatives, other_captions_negative
):
    options = {"hard_negatives": hard_negatives, "direction": direction}
    model = model_of(other_captions_negative=other_captions_negative, **options)
    ids = torch.arange(18) // 2 * 5  # more rows than a tile has
    batch = Batch(images=images_of(90)[ids], captions=captions_of(18), group_ids=ids)
    loss = sum(model.loss(batch).values())
    loss.backward()
    fast = {name: x.grad.clone() for name, x in model.named_parameters()}

    images, words = (
        model.encode_images(batch.images),
        model.encode_captions(batch.captions),
    )
    scores, margin = model.similarity(images, words), model.config.margin
    rows = list(range(18)) if other_captions_negative else ids.tolist()
    hinge = naive.hardest_hinge if hard_negatives else naive.sum_hinge
    expected = hinge(scores.detach().numpy(), rows, margin)
    assert loss.item() == pytest.approx(expected, abs=1e-9) and expected > 0

    same = torch.tensor(rows)[:, None] == torch.tensor(rows)
    costs = [
        (margin - scores.diagonal() + scores.T).relu().T.masked_fill(same, 0.0),
        (margin - scores.diagonal() + scores).relu().masked_fill(same, 0.0),
    ]
    slow = sum(
        cost.amax(axis).sum() if hard_negatives else cost.sum()
        for axis, cost in zip((1, 0), costs, strict=True)
    )
    model.zero_grad()
    slow.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(fast[name], parameter.grad, msg=name)


@pytest.mark.parametrize(
    "options", [{}, {"pooling": "lse"}, {"normalise_images": False}]
)
def test_attention_is_the_softmax_over_the_regions(options):
    model, captions = model_of(**options), captions_of(IMAGES)
    images, words = model.encode_images(images_of()), model.encode_captions(captions)
    attention = model.attention(images, words).detach().numpy()
    assert attention.shape == (IMAGES, WORDS, REGIONS)
    first_stage = naive.cosines if model.config.normalise_images else naive.products
    for b, length in enumerate(captions.lengths):
        regions, kept = (
            x.detach().numpy() for x in (images[0][b], words[0][b, :length])
        )
        expected = naive.attention(regions, kept, LAMBDA1, first_stage)
        np.testing.assert_allclose(attention[b, :length], expected, atol=1e-10)
    assert attention.std() > 0.01
