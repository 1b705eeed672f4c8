"""VSE-infinity against loops written from its code (tests/oracles/vse.py)."""

import pytest
import torch
from oracles import scan as naive_scan
from oracles import vse as naive
from oracles.layers import unit

from benchmark.contracts.methods import Batch, Captions, NotApplicableError, Sizes
from benchmark.contracts.methods import vse_infinity as method

IDS = [4, 4, 7, 9, 7, 2]  # two images fill two rows each
REGIONS, FEATURES, VOCABULARY, WORDS, VECTOR = 5, 6, 9, 7, 3
SMALL = {"regions": REGIONS, "embedding_size": 4, "word_size": 3} | {
    "position_size": 6,
    "state_size": 4,
}
POOLINGS = ["gpo", "average", "max"]


def model_of(text: str = "bigru", **options) -> method.Model:
    torch.manual_seed(0)
    config = method.Config(text=text, **SMALL | options)
    size = VOCABULARY if text == "bigru" else VECTOR
    return method.Model(config, Sizes(image=FEATURES, text=size)).double()


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def captions_of(text: str, width: int = WORDS, noise: float = 0.0) -> Captions:
    """Of 1 to 7 words; padding holds `noise`, where it is no word id."""
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(1, WORDS + 1, (len(IDS),), generator=generator)
    there = torch.arange(width) < lengths[:, None]
    if text == "bigru":
        ids = torch.randint(1, VOCABULARY, (len(IDS), WORDS), generator=generator)
        values = torch.nn.functional.pad(ids, (0, width - WORDS)) * there
    else:
        vectors = numbers(len(IDS), WORDS, VECTOR)
        values = torch.nn.functional.pad(vectors, (0, 0, 0, width - WORDS))
        values = values.masked_fill(~there[..., None], noise)
    return Captions(values=values, lengths=lengths)


def batch_of(text: str) -> Batch:
    images = numbers(10, REGIONS, FEATURES, seed=5)
    return Batch(
        images=images[IDS], captions=captions_of(text), group_ids=torch.tensor(IDS)
    )


def gpo() -> method.Gpo:
    torch.manual_seed(0)
    made = method.Gpo(method.Config(**SMALL)).double()
    torch.nn.init.normal_(made.score.weight)
    return made


def counted(*counts: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random vectors (N, K, D), which of them are kept (any, not the first ones), and
    how many."""
    x_NKD, counts_N = numbers(len(counts), WORDS, 4), torch.tensor(counts)
    order_NK = numbers(len(counts), WORDS, seed=8).argsort(1)
    return x_NKD, order_NK < counts_N[:, None], counts_N


# Pooling ------------------------------------------------------------------------------


def test_all_weight_on_the_first_place_is_the_maximum_and_equal_weights_are_the_mean():
    x_NKD, kept_NK, counts_N = counted(WORDS, 3, 1)
    first_NK = torch.zeros(3, WORDS, dtype=torch.float64)
    first_NK[:, 0] = 1.0
    maximum = method.Maximum()(x_NKD, kept_NK, counts_N)
    assert torch.equal(method.weighted(x_NKD, kept_NK, first_NK), maximum)
    equal_NK = (torch.arange(WORDS) < counts_N[:, None]) / counts_N[:, None].double()
    average = method.Average()(x_NKD, kept_NK, counts_N)
    torch.testing.assert_close(method.weighted(x_NKD, kept_NK, equal_NK), average)
    for row in range(3):
        vectors = x_NKD[row][kept_NK[row]]
        assert torch.equal(maximum[row], vectors.amax(0))
        torch.testing.assert_close(average[row], vectors.mean(0))


def test_the_operator_is_the_oracles():
    x_NKD, kept_NK, counts_N = counted(WORDS, 4, 1, 4, 2)
    operator = gpo()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    of_gru = {
        name: value.detach().numpy() for name, value in operator.gru.named_parameters()
    }
    ahead = [of_gru[name] for name in names]
    back = [of_gru[f"{name}_reverse"] for name in names]
    (score,) = operator.score.weight.tolist()
    weights_NK, pooled_ND = (
        operator.weights(counts_N, WORDS),
        operator(x_NKD, kept_NK, counts_N),
    )
    for row, count in enumerate(counts_N.tolist()):
        places = [
            naive.position(place, SMALL["position_size"]) for place in range(count)
        ]
        theta = naive.weights(naive_scan.bi_gru(places, ahead, back), score, 0.1)
        found = weights_NK[row].tolist()
        # rates of places are float32
        assert found[:count] == pytest.approx(theta, rel=1e-5)
        assert found[count:] == [0.0] * (WORDS - count)
        vectors = x_NKD[row][kept_NK[row]].tolist()
        expected = naive.pooled(vectors, found[:count])
        assert pooled_ND[row].tolist() == pytest.approx(expected, rel=1e-12)
    assert len({tuple(row) for row in weights_NK.tolist()}) == 4  # one for each count


@pytest.mark.parametrize("name", POOLINGS)
def test_what_is_not_kept_has_no_part_and_gets_no_gradient(name):
    pool = method.pooling(name, method.Config(**SMALL)).double()
    x_NKD, kept_NK, counts_N = counted(WORDS, 3, 1)
    x_NKD.requires_grad_()
    pooled = pool(x_NKD, kept_NK, counts_N)
    pooled.square().sum().backward()
    assert x_NKD.grad[~kept_NK].abs().max() == 0 < x_NKD.grad[kept_NK].abs().max()
    other_NKD = x_NKD.detach().masked_fill(~kept_NK[..., None], 1e6)
    assert torch.equal(pool(other_NKD, kept_NK, counts_N), pooled)


def test_a_region_in_five_is_dropped_and_one_at_least_is_kept():
    torch.manual_seed(0)
    assert method.some_kept(2000, 36, 0.2).double().mean().item() == pytest.approx(
        0.8, abs=0.01
    )
    alone = method.some_kept(500, 2, 0.99).sum(1)
    assert alone.min() == 1 and (alone == 1).sum() > 400
    assert method.some_kept(50, 3, 0.0).all()


# The model ----------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("text", ["bigru", "contextual"])
def test_padding_of_any_width_and_content_never_leaks(text, pooling):
    model = model_of(text, text_pooling=pooling).eval()
    (expected,) = model.encode_captions(captions_of(text))
    (found,) = model.encode_captions(captions_of(text, WORDS + 6, noise=1e3))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    longest = int(captions_of(text).lengths[0])
    alone = captions_of(text)
    alone = Captions(values=alone.values[:1, :longest], lengths=alone.lengths[:1])
    torch.testing.assert_close(model.encode_captions(alone)[0], expected[:1])


@pytest.mark.parametrize("text", ["bigru", "contextual"])
def test_a_caption_is_its_pooled_words_of_unit_length(text):
    model, captions = model_of(text, text_pooling="average").eval(), captions_of(text)
    (encoded,) = model.encode_captions(captions)
    for row, length in enumerate(captions.lengths.tolist()):
        given = captions.values[row, :length]
        if text == "bigru":
            words = (
                model.gru(model.embed(given)[None])[0][0].unflatten(-1, (2, -1)).mean(1)
            )
        else:
            words = given @ model.describe.weight.T + model.describe.bias
        expected = unit(words.mean(0).tolist())
        assert encoded[row].tolist() == pytest.approx(expected, rel=1e-9)


def test_an_image_is_its_pooled_regions_of_unit_length_and_more_regions_do_not_count():
    model, images = (
        model_of(image_pooling="max").eval(),
        numbers(4, REGIONS + 2, FEATURES),
    )
    with pytest.raises(
        NotApplicableError, match="regions: expected 5 or more, found 4"
    ):
        model.encode_images(images[:, :4])
    part = model.project
    torch.nn.init.normal_(part.norm.running_mean)
    for encoded, regions in zip(model.encode_images(images)[0], images, strict=True):
        rows = []
        for region in regions[:REGIONS]:
            hidden = part.hidden.weight @ region + part.hidden.bias
            hidden = (hidden - part.norm.running_mean) * (1 + part.norm.eps) ** -0.5
            rest = part.out.weight @ hidden.clamp(min=0) + part.out.bias
            rows.append(part.linear.weight @ region + part.linear.bias + rest)
        expected = unit(torch.stack(rows).amax(0).tolist())
        assert encoded.tolist() == pytest.approx(expected, rel=1e-9)


def test_regions_are_dropped_in_training_alone():
    model, images = model_of(region_dropout=0.5), numbers(4, REGIONS, FEATURES)
    model.project.eval()  # batch norm apart
    assert not torch.equal(
        model.encode_images(images)[0], model.encode_images(images)[0]
    )
    state = torch.get_rng_state()
    model.eval()
    assert torch.equal(model.encode_images(images)[0], model.encode_images(images)[0])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("text", ["bigru", "contextual"])
def test_the_loss_is_that_of_vse_with_all_negatives_and_with_the_hardest(text):
    model, batch = model_of(text, region_dropout=0.0).eval(), batch_of(text)
    images, captions = (
        model.encode_images(batch.images),
        model.encode_captions(batch.captions),
    )
    scores = model.similarity(images, captions).tolist()
    hardest, total = naive.losses(scores, IDS, 0.2)
    terms = model.loss(batch)
    assert list(terms) == [*method.WARM_UP, *method.REST]
    assert [x.item() for x in terms.values()] == pytest.approx(
        [*total, *hardest], rel=1e-9
    )
