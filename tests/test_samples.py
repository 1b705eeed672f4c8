"""What evaluation keeps for the figures: the rules by which it chooses, and loops as oracles."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.evaluate import figure_samples
from benchmark.evaluate.trained_cells import ModelOnSplit
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.protocol import fusion, positive_ranks
from benchmark.protocol.metrics import recall_at
from benchmark.protocol.rank_counts import BestItems
from benchmark.protocol.score_tiles import Matrices, Pairing
from methods import Captions, Inputs

TEXTS = [
    "A red dog.",
    "Red!",
    "the dog sleeps, the red one",
    "A cat in a hat",
    "zebra",
    "A dog and a zebra",
]
OWNERS = np.array([0, 0, 1, 2, 2, 3])
KNOWN = ("a", "cat", "dog", "red", "the")
IMAGES, SIZE, GRID_CELLS = 4, 5, 6


class Bag(torch.nn.Module):
    """A caption is the sum of its words' vectors: what a word is worth is its own product."""

    def __init__(self, words: int) -> None:
        super().__init__()
        vectors = torch.randn(words, SIZE, generator=torch.Generator().manual_seed(1))
        vectors[0] = 0.0
        self.words = vectors

    def encode_images(self, images):
        return (images.mean(1) if images.dim() == 3 else images,)

    def encode_captions(self, captions):
        return (self.words[captions.values].sum(1),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T


class Spaces(Bag):
    """Two spaces, the second of which is three times as wide."""

    def encode_images(self, images):
        (x,) = super().encode_images(images)
        return x, torch.cat([x, x, x], 1)

    def encode_captions(self, captions):
        (x,) = super().encode_captions(captions)
        return x, torch.cat([x, x, x], 1)

    def scores(self, images, captions):
        return {"near": images[0] @ captions[0].T, "far": images[1] @ captions[1].T}


class Regions(Bag):
    """Word p, as it was fed, attends to region p alone, and not to the last region of all."""

    def encode_images(self, images):
        return (images[:, : GRID_CELLS - 1],)

    def similarity(self, images, captions):
        return images[0].mean(1) @ captions[0].T

    def attention(self, images, captions):
        return torch.eye(20)[None, :, : GRID_CELLS - 1].repeat(len(images[0]), 1, 1)


def on_split(
    model=Bag, vocabulary=None, images: torch.Tensor | None = None, offers=None, **changes
) -> ModelOnSplit:
    """A model on the split of `TEXTS`; `offers` are fields of `Inputs`."""
    vocabulary = vocabulary or Vocabulary(words=("<pad>", "<start>", "<end>", "<unk>", *KNOWN))
    values, lengths = (torch.from_numpy(array) for array in vocabulary.encode(TEXTS))
    inputs = SplitInputs(
        images=features() if images is None else images,
        captions=Captions(values=values, lengths=lengths),
        image_of_caption=torch.from_numpy(OWNERS),
        group_of_image=torch.arange(len(features())),
        device=torch.device("cpu"),
    )
    takes = Inputs(image="pooled", text="tokens", **(offers or {}))
    facts = {"takes": takes, "inputs": inputs, "vocabulary": vocabulary, "texts": TEXTS}
    facts |= {"model": model(len(vocabulary)), "parts": ("",), "grid_positions": None}
    return ModelOnSplit(**facts | changes)


def features(*shape: int) -> torch.Tensor:
    shape = shape or (IMAGES, SIZE)
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2)).half()


def test_first_captions_follow_their_owners():
    assert figure_samples.first_captions(OWNERS).tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize(
    ("count", "wanted", "rows"),
    [(10, 3, [0, 4, 9]), (3, 3, [0, 1, 2]), (2, 3, [0, 1]), (1, 3, [0]), (2500, 2, [0, 2499])],
)
def test_rows_are_chosen_evenly(count, wanted, rows):
    assert figure_samples.evenly(count, wanted).tolist() == rows


# Scores ---------------------------------------------------------------------------------------


def retrieved(scores: np.ndarray, group_of_image: list[int], group_of_caption: list[int]):
    """The items of image queries, and which of all items are relevant."""
    pairing = Pairing(np.array(group_of_image), np.array(group_of_caption))
    best = BestItems("i2t", pairing, figure_samples.TOP)
    for tile in Matrices((3, 7), i2t=scores):
        best.add(tile, tile.of("i2t"))
    return best.items, np.equal.outer(pairing.group_of_image, pairing.group_of_caption)


def test_items_that_tie_with_a_relevant_one_are_retrieved_before_it():
    scores = np.array([[0.5, 0.9, 0.5, 0.9, 0.1], [1.0, 1.0, 1.0, 1.0, 1.0]])
    items, _ = retrieved(scores, [0, 0], [0, 1, 2, 0, 3])
    assert items.tolist() == [[1, 3, 2, 0, 4], [1, 2, 4, 0, 3]]


@pytest.mark.parametrize("seed", range(5))
def test_recalls_of_the_retrieved_items_are_those_of_the_ranks(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, (40, 30)).astype(np.float32)  # many ties
    best, relevant = retrieved(scores, np.arange(40) % 12, rng.permutation(np.arange(30) % 12))
    assert best.shape == (40, 10) and best.dtype == np.int32
    ranks = positive_ranks(scores, relevant)
    assert len(set(ranks.tolist())) > 5
    for k in (1, 5, 10):
        hits = [any(relevant[q, item] for item in best[q, :k]) for q in range(40)]
        assert 100 * sum(hits) / 40 == pytest.approx(recall_at(k, ranks))
    for row, items in zip(scores, best, strict=True):
        assert row[items].tolist() == sorted(row, reverse=True)[:10]


def similarity_of(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    similarity = figure_samples.similarity(len(scores), owners)
    for tile in Matrices((50, 70), i2t=scores):
        similarity.add(tile, tile.of("i2t"))
    return similarity.scores


def test_similarity_is_of_images_and_their_first_captions():
    scores = np.arange(24, dtype=np.float64).reshape(IMAGES, 6)
    similarity = similarity_of(scores, OWNERS)
    assert similarity.tolist() == [[6 * i + c for c in (0, 2, 3, 5)] for i in range(IMAGES)]


def test_similarity_stops_after_a_hundred_images():
    owners = np.repeat(np.arange(130), 2)
    scores = np.random.default_rng(0).random((130, 260))
    similarity = similarity_of(scores, owners)
    assert similarity.shape == (100, 100)
    assert similarity[99, 98] == scores[99, 196]


def of_fusion(scores: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What is kept of a fusion of whole matrices."""
    images, captions = scores[0].shape
    curves = figure_samples.Curves(images, captions, len(scores))
    areas = fusion.Areas(len(scores), Pairing(np.arange(images), np.arange(captions)))
    for number, matrix in enumerate(scores):
        for tile in Matrices((3, 100), i2t=matrix):
            curves.add(number, tile)
            areas.add(number, tile)
    return curves.arrays(areas.weights())


def test_weights_of_a_fusion_are_inverse_areas_of_every_query():
    """CycleMatch paper, Eqs. 6.9 and 6.10, one query at a time."""
    scores = [np.random.default_rng(seed).random((4, 9)) for seed in range(3)]
    samples = of_fusion(scores)
    for way, turned in (("i2t", scores), ("t2i", [x.T for x in scores])):
        weights = samples[f"weights_{way}"]
        assert weights.shape == (3, len(turned[0])) and weights.dtype == np.float32
        for q in range(len(turned[0])):
            inverse = [1 / math.fsum(x[q]) for x in turned]
            expected = [value / math.fsum(inverse) for value in inverse]
            assert weights[:, q].tolist() == pytest.approx(expected)


def test_curves_of_a_fusion_are_sorted_scores_of_three_queries():
    scores = [np.random.default_rng(seed).normal(size=(7, 399)) for seed in range(2)]
    samples = of_fusion(scores)
    assert samples["curve_queries_i2t"].tolist() == [0, 3, 6]
    assert samples["curve_queries_t2i"].tolist() == [0, 199, 398]
    curves = samples["curves_i2t"]
    assert curves.shape == (2, 3, 200) and samples["curves_t2i"].shape == (2, 3, 200)
    for score, of_score in zip(scores, curves, strict=True):
        for row, curve in zip((0, 3, 6), of_score, strict=True):
            every_second = sorted(score[row], reverse=True)[::2]
            assert curve.tolist() == np.array(every_second, np.float32).tolist()


# Correlations and maps ------------------------------------------------------------------------


def test_correlation_is_pearsons():
    vectors = features(5, 7)
    correlations = figure_samples.correlation(vectors)
    assert correlations.shape == (5, 5) and correlations.dtype == np.float16
    for i in range(5):
        for j in range(5):
            expected = pearsonr(vectors[i].double(), vectors[j].double()).statistic
            assert correlations[i, j] == pytest.approx(expected, abs=1e-3)


def test_correlation_of_regions_is_that_of_their_means():
    regions = features(5, 3, 7)
    means = torch.stack([sum(image.float()) / 3 for image in regions])
    expected = figure_samples.correlation(means)
    assert np.abs(figure_samples.correlation(regions.float()) - expected).max() < 2e-3


def test_a_vector_of_equal_numbers_correlates_with_nothing():
    correlations = figure_samples.correlation(torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]]))
    assert np.isnan(correlations[0]).all() and correlations[1, 1] == 1


def test_a_map_is_the_same_twice_and_keeps_apart_what_is_apart():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 80))
    points[::2] += 4.0
    embedding = figure_samples.tsne(points)
    assert embedding.shape == (60, 2) and embedding.dtype == np.float32
    assert figure_samples.tsne(points.copy()).tobytes() == embedding.tobytes()
    distance = np.linalg.norm(embedding[:, None] - embedding[None], axis=-1) + 1e9 * np.eye(60)
    nearest = distance.argmin(1)
    assert (nearest % 2 == np.arange(60) % 2).all()


@pytest.mark.parametrize(("points", "size"), [(4, 2), (6, 40), (40, 3)])
def test_few_points_have_a_map(points, size):
    embedding = figure_samples.tsne(np.random.default_rng(0).normal(size=(points, size)))
    assert embedding.shape == (points, 2) and np.isfinite(embedding).all()


# What only the model can tell -----------------------------------------------------------------


def test_a_model_of_vectors_leaves_correlations_a_map_and_words():
    samples = figure_samples.of_model(on_split())
    assert set(samples) == {
        *("correlation_before", "correlation_after", "tsne_joint"),
        *("words_captions", "words_drop"),
    }
    assert samples["tsne_joint"].shape == (2 * IMAGES, 2)
    assert samples["correlation_before"].tolist() == figure_samples.correlation(features()).tolist()


def test_the_map_holds_the_images_and_then_their_first_captions():
    model = on_split()
    captions = model.model.words[model.inputs.captions.values[[0, 2, 3, 5]]].sum(1)
    points = torch.cat([features().float(), captions]).double().numpy()
    assert (
        figure_samples.of_model(model)["tsne_joint"].tolist()
        == figure_samples.tsne(points).tolist()
    )


def test_named_scores_name_the_spaces():
    samples = figure_samples.of_model(on_split(Spaces, offers={"scores": ("near", "far")}))
    assert {key for key in samples if key.startswith("tsne")} == {"tsne_near", "tsne_far"}


def test_pixels_have_no_correlation_before_training():
    class Pixels(Bag):
        def encode_images(self, images):
            return (images.float().mean((2, 3)).repeat(1, 2)[:, :SIZE],)

    pixels = torch.arange(IMAGES * 3 * 16).reshape(IMAGES, 3, 4, 4).to(torch.uint8)
    samples = figure_samples.of_model(on_split(Pixels, images=pixels))
    assert "correlation_before" not in samples and "correlation_after" in samples


def test_points_that_coincide_have_no_map():
    class Collapsed(Bag):
        def encode_images(self, images):
            return (torch.ones(len(images), SIZE),)

        def encode_captions(self, captions):
            return (torch.ones(len(captions.values), SIZE),)

    assert not [
        key for key in figure_samples.of_model(on_split(Collapsed)) if key.startswith("tsne")
    ]


def test_regions_leave_correlations_but_no_map():
    left = figure_samples.of_model(on_split(Regions, images=features(IMAGES, GRID_CELLS, SIZE)))
    assert set(left) == {"correlation_before", "correlation_after", "words_captions", "words_drop"}


def test_sentence_vectors_have_no_words():
    samples = figure_samples.of_model(of_sentences())
    assert set(samples) == {"correlation_before", "correlation_after", "tsne_joint"}


def of_sentences() -> ModelOnSplit:
    class Sentences(Bag):
        def encode_captions(self, captions):
            return (captions.values,)

    vectors = torch.randn(len(TEXTS), SIZE, generator=torch.Generator().manual_seed(3))
    inputs = SplitInputs(
        images=features(),
        captions=Captions(values=vectors, lengths=torch.ones(len(TEXTS), dtype=torch.int64)),
        image_of_caption=torch.from_numpy(OWNERS),
        group_of_image=torch.arange(len(features())),
        device=torch.device("cpu"),
    )
    return ModelOnSplit(
        model=Sentences(1),
        parts=("",),
        takes=Inputs(image="pooled", text="sentence"),
        inputs=inputs,
        vocabulary=None,
        texts=TEXTS,
        grid_positions=None,
    )


# Words ----------------------------------------------------------------------------------------


def test_a_word_is_worth_its_product_with_the_image():
    model = on_split()
    samples = figure_samples.of_model(model)
    assert samples["words_captions"].tolist() == [0, 1, 2, 3, 4, 5]
    assert samples["words_drop"].shape == (6, 6) and samples["words_drop"].dtype == np.float32
    number = {word: i for i, word in enumerate(model.vocabulary.words)}
    for row, drops in enumerate(samples["words_drop"]):
        words, image = tokenise(TEXTS[row]), features()[OWNERS[row]].float()
        assert np.isnan(drops[len(words) :]).all()
        if len(words) == 1:  # without it the caption would be empty
            assert np.isnan(drops[0])
            continue
        for word, drop in zip(words, drops, strict=False):
            worth = float(model.model.words[number.get(word, 3)] @ image)  # 3: <unk> is a word too
            assert drop == pytest.approx(worth, abs=1e-4)


def test_a_word_that_is_not_fed_has_no_worth():
    model = on_split(vocabulary=Dictionary(words=("<pad>", *KNOWN)))
    drops = figure_samples.of_model(model)["words_drop"]
    fed = [[word in KNOWN for word in tokenise(text)] for text in TEXTS]
    fed[1] = [False]  # the only word
    for row, kept in enumerate(fed):
        assert np.isfinite(drops[row])[: len(kept)].tolist() == kept
    expected = float(model.model.words[4] @ features()[1].float())
    assert drops[2, 4] == pytest.approx(expected, abs=1e-4)  # the red one: "red" follows "sleeps"


def test_the_words_of_twelve_captions_are_tried():
    model = on_split()
    texts = [f"red dog {i}" for i in range(100)]
    values, lengths = (torch.from_numpy(array) for array in model.vocabulary.encode(texts))
    inputs = SplitInputs(
        images=features(),
        captions=Captions(values=values, lengths=lengths),
        image_of_caption=torch.arange(100) // 25,
        group_of_image=torch.arange(len(features())),
        device=torch.device("cpu"),
    )
    samples = figure_samples.of_model(on_split(inputs=inputs, texts=texts))
    assert samples["words_captions"].tolist() == [0, 9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99]


def test_positions_are_those_of_what_is_fed():
    words = tokenise("the zebra, a red zebra")
    frame = Vocabulary(words=("<pad>", "<start>", "<end>", "<unk>", *KNOWN))
    known = Dictionary(words=("<pad>", *KNOWN))
    assert figure_samples.word_positions(frame, words).tolist() == [1, 2, 3, 4, 5]
    assert figure_samples.word_positions(known, words).tolist() == [0, -1, 1, 2, -1]
    assert figure_samples.word_positions(known, []).tolist() == []


# Attention ------------------------------------------------------------------------------------


def attended(vocabulary=None, attention: bool = True) -> dict[str, np.ndarray]:
    positions = np.stack([np.random.default_rng(i).permutation(GRID_CELLS) for i in range(IMAGES)])
    images, offers = features(IMAGES, GRID_CELLS, SIZE), {"attention": attention}
    model = on_split(Regions, vocabulary, images, offers, grid_positions=positions)
    return figure_samples.of_model(model) | {"positions": positions}


def test_attention_lies_on_the_cells_that_the_regions_come_from():
    samples = attended()
    assert samples["attention_captions"].tolist() == [0, 2, 3, 5]
    cells = samples["attention"]
    assert cells.shape == (4, 6, GRID_CELLS) and cells.dtype == np.float32
    for n, row in enumerate(samples["attention_captions"]):
        words = tokenise(TEXTS[row])
        assert np.isnan(cells[n, len(words) :]).all()
        for w in range(min(len(words), GRID_CELLS - 2)):
            expected = [0.0] * GRID_CELLS
            expected[samples["positions"][OWNERS[row], w + 1]] = 1.0  # region 0 is <start>'s
            assert cells[n, w].tolist() == expected


def test_words_that_are_not_fed_attend_to_nothing():
    samples = attended(vocabulary=Dictionary(words=("<pad>", *KNOWN)))
    dog_and_zebra = samples["attention"][3]
    assert np.isnan(dog_and_zebra[[2, 4]]).all()  # "and", "zebra"
    positions = samples["positions"][3]
    assert [int(dog_and_zebra[w].argmax()) for w in (0, 1, 3)] == positions[:3].tolist()


def test_a_method_that_declares_no_attention_has_none():
    assert "attention" not in attended(attention=False)


def test_regions_of_no_grid_have_no_attention():
    images = features(IMAGES, GRID_CELLS, SIZE)
    model = on_split(Regions, images=images, offers={"attention": True})
    assert "attention" not in figure_samples.of_model(model)
