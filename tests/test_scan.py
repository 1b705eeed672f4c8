"""SCAN against loops written from the paper's equations (tests/oracles/scan.py)."""

import math

import numpy as np
import pytest
import torch
from oracles import scan as naive
from torch.nn.functional import normalize

from benchmark.core.files import read_yaml
from benchmark.papers.printed_tables import printed
from benchmark.season.presets import PACKAGE_ROOT, Preset
from methods import Batch, Captions, NotApplicableError, Sizes, scan

IMAGES, CAPTIONS, REGIONS, WORDS, FEATURES, VOCABULARY = 5, 6, 4, 7, 9, 20
LAMBDA1, LAMBDA2 = 4.0, 5.0
POOLINGS = {
    "lse": lambda r: naive.lse(r, LAMBDA2),
    "avg": naive.average,
    "sum": naive.summation,
    "max": naive.maximum,
}
RECALLS = tuple(f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))
ROWS = {name: Preset(**row) for name, row in read_yaml(PACKAGE_ROOT / "methods/scan.yaml").items()}

# Two regions, three words, one caption of all and one of the last alone.
# Cosines [[0.6, 0.8, -0.6], [0.8, 0, -0.8]].
HAND_REGIONS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
HAND_WORDS = [[0.6, 0.8, 0.0], [0.8, 0.0, 0.6], [-0.6, -0.8, 0.0]]
HAND_LAMBDA1 = 5 * math.log(2)  # attention weights are powers of two: exp(lambda1 s) = 2 ** (5 s)

# Rows 0 and 1 show the same image.
HAND_SCORES = [[0.6, 0.9, 0.5], [0.3, 0.7, 0.65], [0.55, 0.1, 0.4]]
HAND_IDS = [1, 1, 2]


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


def scores_by_hand(words: list, regions: list = HAND_REGIONS, **options) -> torch.Tensor:
    """Scores (1, 2) of one image with a caption of all words, and with one of the last alone."""
    model = model_of(lambda1=HAND_LAMBDA1, embedding_size=3, **options)
    words_CWD = torch.zeros(2, len(words) + 1, 3, dtype=torch.float64)  # one column is padding
    words_CWD[0, : len(words)] = torch.tensor(words)
    words_CWD[1, 0] = torch.tensor(words[-1])
    lengths = torch.tensor([len(words), 1])
    regions_IRD = torch.tensor([regions], dtype=torch.float64)
    return model.similarity((regions_IRD, torch.tensor([2])), (words_CWD, lengths))


@pytest.mark.parametrize(
    ("direction", "whole", "last"),
    [("t2i", 0.8 + 0.8 - 0.6, -0.6), ("i2t", 0.8 + 0.8, -0.6 - 0.8)],
)
def test_sum_max_of_the_hand_example(direction, whole, last):
    scores = scores_by_hand(HAND_WORDS, direction=direction, attention=False, pooling="sum")
    assert scores.tolist() == [[pytest.approx(whole), pytest.approx(last)]]


def test_sum_and_max_of_the_hand_example():
    # i-t with the first two words: weights 8 : 32 for region 0, 16 : 1 for region 1
    first, second = 0.76 / math.sqrt(0.8336), 12.8 / math.sqrt(272.36)
    total = scores_by_hand(HAND_WORDS[:2], direction="i2t", pooling="sum")[0, 0].item()
    assert total == pytest.approx(first + second)
    best = scores_by_hand(HAND_WORDS[:2], direction="i2t", pooling="max")[0, 0].item()
    assert best == pytest.approx(first) and first > second
    # t-i with the last word: no attention to either region, so both alike; padding is no maximum
    alone = scores_by_hand(HAND_WORDS, direction="t2i", pooling="max")[0, 1].item()
    assert alone == pytest.approx(-1.4 / math.sqrt(2))


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        # s [[9.6, 12.8], [7.2, 0]] over each word's norms 12 and 12.8: [[0.8, 1], [0.6, 0]];
        # region 0 sees 16 e_0 + 32 e_1, region 1 sees 8 e_0 + 1 e_1
        ("i2t", 2.2 / math.sqrt(6.92) + 6.4 / math.sqrt(72.68)),
        # s over each region's norms 16 and 7.2: [[0.6, 0.8], [1, 0]];
        # word 0 sees 8 v_0 + 32 v_1 = (128, 288), word 1 sees 16 v_0 + 1 v_1 = (256, 9)
        ("t2i", 9.6 / math.sqrt(97) + 204.8 / math.sqrt(65617)),
    ],
)
def test_unnormalised_regions_of_the_hand_example(direction, expected):
    regions = [[16.0, 0.0, 0.0], [0.0, 9.0, 0.0]]
    options = {"direction": direction, "pooling": "sum", "normalise_images": False}
    score = scores_by_hand(HAND_WORDS[:2], regions, **options)[0, 0].item()
    assert score == pytest.approx(expected)


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


def test_losses_of_the_hand_example():
    scores, ids = torch.tensor(HAND_SCORES), torch.tensor(HAND_IDS)
    negative = ids[:, None] != ids[None, :]
    terms = scan.all_negatives(scores, negative, 0.2)
    assert terms["image_anchor"].item() == pytest.approx(0.1 + 0.15 + 0.35)
    assert terms["caption_anchor"].item() == pytest.approx(0.15 + (0.3 + 0.45))
    images, captions = scan.triplets(scores, negative)
    assert images.tolist() == [0, 1, 2, 0, 1, 2, 2, 2, 1]
    assert captions.tolist() == [0, 1, 2, 2, 2, 0, 0, 1, 2]
    terms = scan.hardest_negatives(scores[images, captions], 0.2)
    assert terms["image_anchor"].item() == pytest.approx(0.1 + 0.15 + 0.35)
    assert terms["caption_anchor"].item() == pytest.approx(0.15 + 0.45)


@pytest.mark.parametrize("hard_negatives", [True, False])
def test_loss_reads_no_value_back(hard_negatives, monkeypatch):
    """A tensor without content cannot be read: on a GPU, a read makes the host wait."""
    model = model_of(hard_negatives=hard_negatives, direction="i2t").to("meta")
    words = torch.empty(CAPTIONS, WORDS, 8, device="meta", dtype=torch.float64)
    lengths = torch.empty(CAPTIONS, device="meta", dtype=torch.int64)
    monkeypatch.setattr(model, "encode_captions", lambda _: (words, lengths))  # packing does read
    images = torch.empty(CAPTIONS, REGIONS, FEATURES, device="meta", dtype=torch.float64)
    ids = torch.empty(CAPTIONS, device="meta", dtype=torch.int64)
    assert len(model.loss(Batch(images=images, captions=None, group_ids=ids))) == 2
    with pytest.raises(RuntimeError, match="meta"):
        lengths.max().item()


@pytest.mark.parametrize("hard_negatives", [True, False])
def test_one_image_in_all_rows_moves_no_weight(hard_negatives):
    model = model_of(hard_negatives=hard_negatives)
    ids = torch.zeros(3, dtype=torch.int64)
    batch = Batch(images=images_of(1)[ids], captions=captions_of(3), group_ids=ids)
    sum(model.loss(batch).values()).backward()
    assert all(x.grad.abs().max() < 1e-12 for x in model.parameters())


def test_official_threshold_leaks():
    captions, images = captions_of(), images_of()
    hard, soft = model_of(), model_of(leak=0.1)
    first, second = (
        m.similarity(m.encode_images(images), m.encode_captions(captions)) for m in (hard, soft)
    )
    assert not torch.allclose(first, second)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="expected t2i or i2t, found 'up'"):
        scan.Config(direction="up")
    with pytest.raises(ValueError, match="expected lse or avg or sum or max, found 'best'"):
        scan.Config(pooling="best")
    with pytest.raises(ValueError, match="regions: expected 1 or more, found 0"):
        scan.Config(regions=0)


def test_recipe_is_appendix_a():
    (phase,) = scan.recipe(scan.Config())
    assert phase.learning_rates == pytest.approx((0.0002,) * 15 + (0.00002,) * 15)
    assert (phase.batch_size, phase.clip_norm, phase.optimiser) == (128, 2.0, "adam")


def test_recipe_without_training_is_empty():
    assert scan.recipe(scan.Config(trains=False)) == []


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


def test_presets_are_the_rows_of_tables_1_to_5():
    tables = [(row.table, row.place) for preset in ROWS for row in printed(preset)]
    assert {pair: tables.count(pair) for pair in tables} == {
        ("scan/1", "flickr30k/test"): 5,
        ("scan/2", "mscoco_1k/test"): 5,
        ("scan/2", "mscoco_5k/test"): 2,
        ("scan/3", "flickr30k/test"): 4,
        ("scan/4", "flickr30k/test"): 6,
        ("scan/5", "flickr30k/test"): 7,
    }
    for name, preset in ROWS.items():
        # A row that several tables print has the same numbers in all of them.
        on_flickr = [row.numbers for row in printed(name) if row.place == "flickr30k/test"]
        assert len({tuple(numbers[metric] for metric in RECALLS) for numbers in on_flickr}) <= 1
        members = (preset.fuse.of if preset.fuse else []) + ([preset.start] if preset.start else [])
        assert set(members) <= set(ROWS), name
        config = scan.Config(**preset.options)
        assert config.regions <= (preset.grid or 6) ** 2, name
        assert (preset.start is None) == config.trains, name


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


@pytest.mark.parametrize(
    "options", [{"direction": "i2t"}, {"attention": False}, {"direction": "i2t", "pooling": "lse"}]
)
def test_only_words_that_attend_have_attention(options):
    model = model_of(**options)
    images, words = model.encode_images(images_of()), model.encode_captions(captions_of(IMAGES))
    with pytest.raises(NotApplicableError, match="expected the direction t2i with attention"):
        model.attention(images, words)
