"""CycleMatch against loops written from the paper's equations
(tests/oracles/cyclematch.py)."""

import pytest
import torch
from oracles import cyclematch as naive
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import cyclematch as method

# of seven rows: one image thrice, one twice, two once
IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]
IMAGE_SIZE, TEXT_SIZE, HIDDEN, DIMENSIONS = 6, 5, 7, 4
# with visual and textual scores
TRAINED = ["cycle", "i2t2i", "t2i2t", "without_latent", "dual"]


def captions_of(values: Tensor) -> Captions:
    return Captions(values=values, lengths=torch.ones(len(values), dtype=torch.int64))


def batch_of(seed: int, ids: list[int] = IMAGE_IDS) -> Batch:
    rows, generator = torch.tensor(ids), torch.Generator().manual_seed(seed)
    images = torch.randn(32, IMAGE_SIZE, generator=generator, dtype=torch.float64)[rows]
    texts = torch.randn(len(ids), TEXT_SIZE, generator=generator, dtype=torch.float64)
    return Batch(images=images, captions=captions_of(texts), group_ids=rows)


def model_of(**options) -> method.Model:
    """A tiny model in evaluation mode, its batch norms with statistics of their own."""
    torch.manual_seed(0)
    config = method.Config(
        **{
            "hidden_size": HIDDEN,
            "embedding_size": DIMENSIONS,
            "initial_deviation": 0.5,
        }
        | options
    )
    model = method.Model(config, Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)).double()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in model.parameters():
        if parameter.dim() == 1:  # biases, scales and shifts
            nn.init.uniform_(parameter, 0.1, 1.0)
    return model.eval()


def norm_of(norm: nn.BatchNorm1d) -> tuple:
    affine = (
        (None, None)
        if norm.weight is None
        else (norm.weight.tolist(), norm.bias.tolist())
    )
    return norm.running_mean.tolist(), norm.running_var.tolist(), *affine, norm.eps


def layers_of(mapping: method.Mapping) -> dict[str, tuple]:
    """As the oracle takes them."""
    fc1, _, _, fc2, bn2, _, fc3, bn3, _ = mapping.latent
    linear = {"fc1": fc1, "fc2": fc2, "fc3": fc3}
    norms = {"bn2": bn2, "bn3": bn3}
    if hasattr(mapping, "last"):
        linear["fc4"], norms["bn4"] = mapping.last
    layers = {
        name: (
            layer.weight.tolist(),
            None if layer.bias is None else layer.bias.tolist(),
        )
        for name, layer in linear.items()
    }
    return layers | {name: norm_of(norm) for name, norm in norms.items()}


def oracle_inputs(model: method.Model, batch: Batch) -> tuple:
    """f_I2T, f_T2I, the v and the t of a batch."""
    scaled = {"common": naive.common_scale, "component": naive.batch_norm}[
        model.config.scaling
    ]
    vs = [scaled(x, *norm_of(model.image_norm)) for x in batch.images.tolist()]
    ts = [scaled(x, *norm_of(model.text_norm)) for x in batch.captions.values.tolist()]
    return layers_of(model.i2t), layers_of(model.t2i), vs, ts


@pytest.mark.parametrize("k", [1, 3, 50])  # a row has three other images at most
@pytest.mark.parametrize("variant", method.VARIANTS)
@pytest.mark.parametrize("scaling", method.SCALINGS)
def test_terms_are_the_papers(scaling, variant, k):
    options = {
        "variant": variant,
        "scaling": scaling,
        "margin": 0.3,
        "alpha": 1.7,
        "top_k": k,
    }
    model, batch = model_of(**options), batch_of(1)
    terms = model.loss(batch)
    given = oracle_inputs(model, batch)
    for name, term in terms.items():
        expected = getattr(naive, name)(*given, IMAGE_IDS, 0.3, 1.7, k)
        assert term.item() == pytest.approx(expected, abs=1e-10)
        assert expected > 0.01


def test_one_deviation_of_the_batch_divides_all_components_and_is_remembered():
    norm, like = (
        method.CommonScale(3, affine=False).double(),
        nn.BatchNorm1d(3, affine=False),
    )
    like = like.double()
    x_BD = torch.tensor(
        [[1.0, 0.0, -3.0], [3.0, 0.2, 5.0], [5.0, 0.1, 1.0]], dtype=torch.float64
    )
    scaled_BD, _ = norm(x_BD), like(x_BD)
    columns = x_BD.T.tolist()
    means = [sum(column) / 3 for column in columns]
    spreads = [
        sum((x - m) ** 2 for x in of) / 3 for of, m in zip(columns, means, strict=True)
    ]
    remembered = means, spreads, None, None, norm.eps
    expected = [naive.common_scale(x, *remembered) for x in x_BD.tolist()]
    assert scaled_BD.tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    assert torch.equal(norm.running_mean, like.running_mean)
    assert torch.equal(norm.running_var, like.running_var)


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_a_repeated_image_is_one_negative(variant):
    """A margin of a million makes every hinge a million: the loss counts the slots in
    use.

    Rows of images 2, 2 and 5 have 1 + 1 + 1 negatives among images, 1 + 1 + 2 among
    texts. A term counts those of its y, and twice those of its x.
    """
    expected = {
        "i2t2i_dual": 4 + 2 * 3,
        "i2t2i_reconstructed": 3 + 2 * 3,
        "i2t2i_latent": 3 + 2 * 3,
        "t2i2t_dual": 3 + 2 * 4,
        "t2i2t_reconstructed": 4 + 2 * 4,
        "t2i2t_latent": 4 + 2 * 4,
        "latent_match": 4 + 2 * 3,
    }
    model = model_of(variant=variant, margin=1e6, top_k=5)
    slots = {
        name: term * 3 * 5 for name, term in model.loss(batch_of(4, [2, 2, 5])).items()
    }
    for name, count in slots.items():
        assert count.item() / 1e6 == pytest.approx(expected[name], abs=1e-4)


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_scores_are_equation_6_7_and_sentences_are_compared_where_the_module_says(
    variant,
):
    """LatentMatch compares in the latent space only."""
    is_latent = variant == "latent"
    model, batch = model_of(variant=variant), batch_of(5)
    images, captions = (
        model.encode_images(batch.images),
        model.encode_captions(batch.captions),
    )
    scores, averaged = (
        model.scores(images, captions),
        model.similarity(images, captions),
    )
    assert list(scores) == (
        ["latent"] if is_latent else ["visual", "textual", "latent"]
    )
    f, g, vs, ts = oracle_inputs(model, batch)
    for i, v in enumerate(vs):
        for c, t in enumerate(ts):
            if is_latent:
                expected = [naive.s(naive.third(f, v), naive.third(g, t))]
            else:
                expected = naive.scores(f, g, v, t)
            assert [x[i, c].item() for x in scores.values()] == pytest.approx(
                expected, abs=1e-10
            )
            mean = sum(expected[:2]) / len(expected[:2])
            assert averaged[i, c].item() == pytest.approx(mean, abs=1e-10)
    similarities = model.caption_similarity(captions, captions)
    vectors = [(naive.third if is_latent else naive.mapping)(g, t) for t in ts]
    for b, x in enumerate(vectors):
        for c, y in enumerate(vectors):
            assert similarities[b, c].item() == pytest.approx(naive.s(x, y), abs=1e-10)


@pytest.mark.parametrize("variant", TRAINED)
def test_running_statistics_are_those_of_dual_match_without_the_way_back(variant):
    model, dual = (
        model_of(variant=name, dropout=0.0).train() for name in (variant, "dual")
    )
    dual.load_state_dict(model.state_dict())
    for each in (model, dual):
        each.loss(batch_of(9))
    buffers, expected = dict(model.named_buffers()), dict(dual.named_buffers())
    for name in expected:
        if "running" in name:
            assert torch.equal(buffers[name], expected[name]), name
            assert not torch.equal(buffers[name], model_of().get_buffer(name)), name
