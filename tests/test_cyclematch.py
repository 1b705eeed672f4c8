"""CycleMatch against loops written from the paper's equations (tests/oracles/cyclematch.py)."""

import pytest
import torch
from oracles import cyclematch as naive
from torch import Tensor, nn

from methods import Batch, Captions, Sizes
from methods import cyclematch as method

IMAGE_IDS = [3, 7, 3, 1, 7, 3, 0]  # of seven rows: one image thrice, one twice, two once
IMAGE_SIZE, TEXT_SIZE, HIDDEN, DIMENSIONS = 6, 5, 7, 4
TRAINED = ["cycle", "i2t2i", "t2i2t", "without_latent", "dual"]  # with visual and textual scores


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
        **{"hidden_size": HIDDEN, "embedding_size": DIMENSIONS, "initial_deviation": 0.5} | options
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
    affine = (None, None) if norm.weight is None else (norm.weight.tolist(), norm.bias.tolist())
    return norm.running_mean.tolist(), norm.running_var.tolist(), *affine, norm.eps


def layers_of(mapping: method.Mapping) -> dict[str, tuple]:
    """The layers of one mapping, by the paper's names, as the oracle takes them."""
    fc1, _, _, fc2, bn2, _, fc3, bn3, _ = mapping.latent
    linear = {"fc1": fc1, "fc2": fc2, "fc3": fc3}
    norms = {"bn2": bn2, "bn3": bn3}
    if hasattr(mapping, "last"):
        linear["fc4"], norms["bn4"] = mapping.last
    layers = {
        name: (layer.weight.tolist(), None if layer.bias is None else layer.bias.tolist())
        for name, layer in linear.items()
    }
    return layers | {name: norm_of(norm) for name, norm in norms.items()}


def oracle_inputs(model: method.Model, batch: Batch) -> tuple:
    """f_I2T, f_T2I, the v and the t of a batch."""
    vs = [naive.batch_norm(norm_of(model.image_norm), x) for x in batch.images.tolist()]
    ts = [naive.batch_norm(norm_of(model.text_norm), x) for x in batch.captions.values.tolist()]
    return layers_of(model.i2t), layers_of(model.t2i), vs, ts


@pytest.mark.parametrize("k", [1, 3, 50])  # a row has three other images at most
@pytest.mark.parametrize("variant", method.VARIANTS)
def test_terms_are_the_papers(variant, k):
    model, batch = model_of(variant=variant, margin=0.3, alpha=1.7, top_k=k), batch_of(1)
    terms = model.loss(batch)
    given = oracle_inputs(model, batch)
    for name, term in terms.items():
        expected = getattr(naive, name)(*given, IMAGE_IDS, 0.3, 1.7, k)
        assert term.item() == pytest.approx(expected, abs=1e-10)
        assert expected > 0.01


def test_variants_sum_the_terms_of_table_6_1():
    expected = {
        "latent": {"latent_match"},
        "dual": {"i2t2i_dual", "t2i2t_dual"},
        "without_latent": {
            "i2t2i_dual",
            "t2i2t_dual",
            "i2t2i_reconstructed",
            "t2i2t_reconstructed",
        },
        "i2t2i": {"i2t2i_dual", "i2t2i_reconstructed", "i2t2i_latent", "t2i2t_dual"},
        "t2i2t": {"t2i2t_dual", "t2i2t_reconstructed", "t2i2t_latent", "i2t2i_dual"},
        "cycle": {
            "i2t2i_dual",
            "t2i2t_dual",
            "i2t2i_reconstructed",
            "t2i2t_reconstructed",
            "i2t2i_latent",
            "t2i2t_latent",
        },
    }
    assert {name: set(terms) for name, terms in method.VARIANTS.items()} == expected
    for variant, terms in expected.items():
        assert set(model_of(variant=variant).loss(batch_of(2))) == terms


class Given:
    """A cycle of given vectors, and of no others."""

    def __init__(self, vectors: dict[str, list]) -> None:
        for name, rows in vectors.items():
            setattr(self, name, torch.tensor(rows, dtype=torch.float64))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("name", "v", "t", "kinds"),
    [
        ("i2t2i_dual", {"dual": "X"}, {"source": "Y"}, ("image", "text")),
        ("i2t2i_reconstructed", {"reconstructed": "X", "source": "Y"}, {}, ("image", "image")),
        ("i2t2i_latent", {"latent": "X", "returning_latent": "Y"}, {}, ("image", "image")),
        ("t2i2t_dual", {"source": "Y"}, {"dual": "X"}, ("text", "image")),
        ("t2i2t_reconstructed", {}, {"reconstructed": "X", "source": "Y"}, ("text", "text")),
        ("t2i2t_latent", {}, {"latent": "X", "returning_latent": "Y"}, ("text", "text")),
        ("latent_match", {"latent": "X"}, {"latent": "Y"}, ("image", "text")),
    ],
)
def test_terms_of_the_hand_example(monkeypatch, name, v, t, kinds, k):
    hand = {"X": naive.HAND_X, "Y": naive.HAND_Y}
    v, t = (Given({part: hand[rows] for part, rows in given.items()}) for given in (v, t))
    monkeypatch.setitem(method.VARIANTS, "cycle", (name,))
    model = model_of(margin=naive.HAND_MARGIN, alpha=naive.HAND_ALPHA, top_k=k)
    monkeypatch.setattr(model, "from_images", lambda images: v)
    monkeypatch.setattr(model, "from_texts", lambda captions: t)
    terms = model.loss(batch_of(0, naive.HAND_IDS))
    expected = naive.HAND_EXPECTED[*kinds, k]
    assert terms[name].item() == pytest.approx(expected, abs=1e-12)
    rest = (*kinds, naive.HAND_IDS, naive.HAND_MARGIN, naive.HAND_ALPHA, k)
    assert naive.ranking(naive.HAND_X, naive.HAND_Y, *rest) == pytest.approx(expected, abs=1e-12)


def test_defaults_weigh_and_keep_what_the_paper_does():
    """Two rows of two images, s = [[0.6, 0.8], [0.8, 0.6]]: each hinge is 0.1 - 0.6 + 0.8 = 0.3.

    Each half keeps one negative a row in 50 slots, 0.6 / 100, and the second one counts twice.
    """
    s_BB = torch.tensor([[0.6, 0.8], [0.8, 0.6]], dtype=torch.float64)
    others_BB = ~torch.eye(2, dtype=torch.bool)
    first, second = method.ranking(s_BB, others_BB, others_BB, method.Config())
    assert (first.item(), second.item()) == pytest.approx((0.006, 0.012), abs=1e-12)


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_items_of_the_same_image_are_never_negatives(variant):
    """One image in all rows: no negative is left, whatever the captions say."""
    model = model_of(variant=variant, margin=5.0)
    assert all(term.item() == 0 for term in model.loss(batch_of(3, [2, 2, 2, 2])).values())
    assert all(term.item() > 0 for term in model.loss(batch_of(3, [2, 2, 2, 1])).values())


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_a_repeated_image_is_one_negative(variant):
    """A margin of a million makes every hinge a million: the loss counts the slots in use.

    Rows of images 2, 2 and 5 have 1 + 1 + 1 negatives among images, 1 + 1 + 2 among texts. A term
    counts those of its y, and twice those of its x.
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
    slots = {name: term * 3 * 5 for name, term in model.loss(batch_of(4, [2, 2, 5])).items()}
    for name, count in slots.items():
        assert count.item() / 1e6 == pytest.approx(expected[name], abs=1e-4)


@pytest.mark.parametrize("variant", TRAINED)
def test_scores_are_equation_6_7(variant):
    model, batch = model_of(variant=variant), batch_of(5)
    images, captions = model.encode_images(batch.images), model.encode_captions(batch.captions)
    scores, averaged = model.scores(images, captions), model.similarity(images, captions)
    assert list(scores) == ["visual", "textual", "latent"]
    f, g, vs, ts = oracle_inputs(model, batch)
    for i, v in enumerate(vs):
        for c, t in enumerate(ts):
            expected = naive.scores(f, g, v, t)
            assert [x[i, c].item() for x in scores.values()] == pytest.approx(expected, abs=1e-10)
            assert averaged[i, c].item() == pytest.approx(sum(expected[:2]) / 2, abs=1e-10)


def test_latent_match_scores_in_the_latent_space_only():
    model, batch = model_of(variant="latent"), batch_of(5)
    images, captions = model.encode_images(batch.images), model.encode_captions(batch.captions)
    ((name, scores),) = model.scores(images, captions).items()
    assert name == "latent"
    assert torch.equal(scores, model.similarity(images, captions))
    f, g, vs, ts = oracle_inputs(model, batch)
    for i, v in enumerate(vs):
        for c, t in enumerate(ts):
            expected = naive.s(naive.third(f, v), naive.third(g, t))
            assert scores[i, c].item() == pytest.approx(expected, abs=1e-10)


def test_scores_of_two_images_and_two_captions_by_hand():
    images = (
        torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        torch.tensor([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
        torch.tensor([[1.0], [-1.0]]),
    )
    captions = (
        torch.tensor([[0.8, 0.6], [0.0, -1.0]]),
        torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]]),
        torch.tensor([[1.0], [1.0]]),
    )
    model = model_of()
    expected = {
        "visual": torch.tensor([[0.8, 0.0], [0.6, -1.0]]),
        "textual": torch.tensor([[0.6, 0.48], [0.0, 0.8]]),
        "latent": torch.tensor([[1.0, 1.0], [-1.0, -1.0]]),
    }
    scores = model.scores(images, captions)
    assert list(scores) == list(expected)
    for name, matrix in expected.items():
        torch.testing.assert_close(scores[name], matrix)
    average = torch.tensor([[0.7, 0.24], [0.3, -0.1]])
    torch.testing.assert_close(model.similarity(images, captions), average)
    between = torch.tensor([[1.0, -0.6], [-0.6, 1.0]])
    torch.testing.assert_close(model.caption_similarity(captions, captions), between)


@pytest.mark.parametrize(("variant", "embed"), [("cycle", "mapping"), ("latent", "third")])
def test_sentences_are_compared_where_the_module_says(variant, embed):
    model, batch = model_of(variant=variant), batch_of(6)
    _, g, _, ts = oracle_inputs(model, batch)
    captions = model.encode_captions(batch.captions)
    similarities = model.caption_similarity(captions, captions)
    vectors = [getattr(naive, embed)(g, t) for t in ts]
    for b, x in enumerate(vectors):
        for c, y in enumerate(vectors):
            assert similarities[b, c].item() == pytest.approx(naive.s(x, y), abs=1e-10)


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_an_encoding_does_not_depend_on_its_neighbours(variant):
    model, batch = model_of(variant=variant), batch_of(7)
    images, captions = model.encode_images(batch.images), model.encode_captions(batch.captions)
    alone = model.encode_images(batch.images[2:3])
    for together, single in zip(images, alone, strict=True):
        torch.testing.assert_close(single[0], together[2], rtol=0, atol=1e-12)
    alone = model.encode_captions(captions_of(batch.captions.values[4:5]))
    for together, single in zip(captions, alone, strict=True):
        torch.testing.assert_close(single[0], together[4], rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", method.VARIANTS)
def test_training_by_the_recipe_learns_every_term(variant):
    """48 pairs, v and t linear in one hidden vector. A term starts above 0.3 and must leave that
    behind: 0.1 + 2 * 0.1 is what it costs to map everything to one point."""
    config = method.Config(variant=variant, hidden_size=64, embedding_size=32, top_k=5, dropout=0.0)
    (phase,) = method.recipe(config)
    generator = torch.Generator().manual_seed(1)
    hidden, to_v, to_t = (torch.randn(n, 16, generator=generator) for n in (48, 24, 20))
    batch = Batch(
        images=hidden @ to_v.T, captions=captions_of(hidden @ to_t.T), group_ids=torch.arange(48)
    )
    torch.manual_seed(1)
    model = method.Model(config, Sizes(image=24, text=20))
    optimiser = torch.optim.SGD(
        model.parameters(),
        lr=phase.learning_rates[0],
        momentum=phase.momentum,
        weight_decay=phase.weight_decay,
    )
    first = model.loss(batch)
    for _ in range(60):
        optimiser.zero_grad()
        sum(model.loss(batch).values()).backward()
        optimiser.step()
    last = model.loss(batch)
    assert all(term.item() > 0.3 for term in first.values())
    assert all(term.item() < 0.1 for term in last.values()), last


@pytest.mark.parametrize("variant", TRAINED)
def test_running_statistics_are_those_of_real_features(variant):
    """The way back of a cycle leaves none: each batch norm knows what DualMatch's would."""
    model, dual = (model_of(variant=name, dropout=0.0).train() for name in (variant, "dual"))
    dual.load_state_dict(model.state_dict())
    for each in (model, dual):
        each.loss(batch_of(9))
    buffers, expected = dict(model.named_buffers()), dict(dual.named_buffers())
    for name in expected:
        if "running" in name:
            assert torch.equal(buffers[name], expected[name]), name
            assert not torch.equal(buffers[name], model_of().get_buffer(name)), name


def test_full_size_networks_have_the_papers_parameters():
    """Section 6.4.1: fc of 2048, 512 and 512, then 4096 (I2T) or 2048 (T2I). An fc has its weights
    and, where no batch norm follows, biases; a batch norm has a scale and a shift."""
    shared = (2048 * 512 + 2 * 512) + (512 * 512 + 2 * 512)  # second and third layer
    i2t = (2048 * 2048 + 2048) + shared + (512 * 4096 + 2 * 4096)
    t2i = (4096 * 2048 + 2048) + shared + (512 * 2048 + 2 * 2048)
    latent = (2048 * 2048 + 2048) + (4096 * 2048 + 2048) + 2 * shared
    assert (i2t + t2i, latent) == (18_370_560, 15_212_544)
    for variant in method.VARIANTS:
        with torch.device("meta"):
            model = method.Model(method.Config(variant=variant), Sizes(image=2048, text=4096))
        expected = latent if variant == "latent" else i2t + t2i
        assert sum(x.numel() for x in model.parameters() if x.requires_grad) == expected


def test_mappings_are_the_assumed_layers():
    model = model_of(dropout=0.25)
    for mapping in (model.i2t, model.t2i):
        kinds = [type(layer).__name__ for layer in (*mapping.latent, *mapping.last)]
        first = ["Linear", "ReLU", "Dropout"]
        middle = ["Linear", "BatchNorm1d", "ReLU"]
        assert kinds == [*first, *middle, *middle, "Linear", "BatchNorm1d"]
        assert mapping.latent[2].p == 0.25


def test_weights_start_gaussian():
    torch.manual_seed(0)
    model = method.Model(method.Config(), Sizes(image=300, text=200))
    for mapping in (model.i2t, model.t2i):
        for layer in (*mapping.latent, *mapping.last):
            if isinstance(layer, nn.Linear):
                assert layer.weight.std().item() == pytest.approx(0.05, rel=0.02)
        assert not mapping.latent[0].bias.any()


def test_recipe_is_section_6_4_1():
    (phase,) = method.recipe(method.Config())
    assert (phase.optimiser, phase.momentum, phase.weight_decay) == ("sgd", 0.9, 0.0005)
    assert (phase.batch_size, phase.epochs, phase.draws) == (500, 60, "captions")
    expected = [0.1] * 20 + [0.01] * 20 + [0.001] * 20
    assert phase.learning_rates == pytest.approx(expected)


def test_unknown_variant_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"^variant: expected one of latent, dual, .*, found 'circle'$"
    ):
        method.Config(variant="circle")
