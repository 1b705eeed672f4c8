"""What evaluation keeps for the figures: the rules by which it chooses, and loops as
oracles."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from benchmark.contracts.methods import Captions, Inputs
from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.evaluate import figure_samples
from benchmark.evaluate.trained_cells import ModelOnSplit
from benchmark.scoring import fusion
from benchmark.scoring.inputs import SplitInputs
from benchmark.scoring.ranking import Matrices
from benchmark.scoring.relevance import Relevance

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
    """A caption is the sum of its words' vectors: what a word is worth is its own
    product."""

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
    """Word p, as it was fed, attends to region p alone, and not to the last region of
    all."""

    def encode_images(self, images):
        return (images[:, : GRID_CELLS - 1],)

    def similarity(self, images, captions):
        return images[0].mean(1) @ captions[0].T

    def attention(self, images, captions):
        return torch.eye(20)[None, :, : GRID_CELLS - 1].repeat(len(images[0]), 1, 1)


def on_split(
    model=Bag,
    vocabulary=None,
    images: torch.Tensor | None = None,
    offers=None,
    **changes,
) -> ModelOnSplit:
    """A model on the split of `TEXTS`; `offers` are fields of `Inputs`."""
    vocabulary = vocabulary or Vocabulary(
        words=("<pad>", "<start>", "<end>", "<unk>", *KNOWN)
    )
    values, lengths = (torch.from_numpy(array) for array in vocabulary.encode(TEXTS))
    inputs = SplitInputs(
        images=features() if images is None else images,
        captions=Captions(values=values, lengths=lengths),
        image_of_caption=torch.from_numpy(OWNERS),
        group_of_image=torch.arange(len(features())),
        device=torch.device("cpu"),
    )
    takes = Inputs(image="pooled", text="tokens", **(offers or {}))
    trained = SimpleNamespace(takes=takes, parts=("",))
    facts = {
        "trained": trained,
        "split": None,
        "inputs": inputs,
        "vocabulary": vocabulary,
        "texts": TEXTS,
    }
    facts |= {"model": model(len(vocabulary)), "grid_positions": None}
    return ModelOnSplit(**facts | changes)


def features(*shape: int) -> torch.Tensor:
    shape = shape or (IMAGES, SIZE)
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2)).half()


# Scores -------------------------------------------------------------------------------


def kept_of_fusion(scores: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Of whole matrices."""
    images, captions = scores[0].shape
    curves = figure_samples.Curves(images, captions, len(scores))
    areas = fusion.Areas(len(scores), Relevance(np.arange(images), np.arange(captions)))
    for number, matrix in enumerate(scores):
        for tile in Matrices((3, 100), i2t=matrix):
            curves.add(number, tile)
            areas.add(number, tile)
    return curves.arrays(areas.weights())


def test_curves_of_a_fusion_are_sorted_scores_of_three_queries():
    scores = [np.random.default_rng(seed).normal(size=(7, 399)) for seed in range(2)]
    samples = kept_of_fusion(scores)
    assert samples["curve_queries_i2t"].tolist() == [0, 3, 6]
    assert samples["curve_queries_t2i"].tolist() == [0, 199, 398]
    curves = samples["curves_i2t"]
    assert curves.shape == (2, 3, 200) and samples["curves_t2i"].shape == (2, 3, 200)
    for score, of_score in zip(scores, curves, strict=True):
        for row, curve in zip((0, 3, 6), of_score, strict=True):
            every_second = sorted(score[row], reverse=True)[::2]
            assert curve.tolist() == np.array(every_second, np.float32).tolist()


# Correlations and maps ----------------------------------------------------------------


def test_correlation_is_pearsons():
    vectors = features(5, 7)
    correlations = figure_samples.correlation(vectors)
    assert correlations.shape == (5, 5) and correlations.dtype == np.float16
    for i in range(5):
        for j in range(5):
            expected = pearsonr(vectors[i].double(), vectors[j].double()).statistic
            assert correlations[i, j] == pytest.approx(expected, abs=1e-3)
    correlations = figure_samples.correlation(
        torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
    )
    assert np.isnan(correlations[0]).all() and correlations[1, 1] == 1


def test_shares_of_adaptive_weights_are_those_of_a_loop_over_all_queries():
    low, high = fusion.MIDDLE
    rng = np.random.default_rng(0)
    firsts = {
        way: rng.uniform(0.2, 0.8, count) for way, count in (("i2t", 7), ("t2i", 30))
    }
    samples = {
        f"weights_{way}": np.stack([of, 1 - of]).astype(np.float32)
        for way, of in firsts.items()
    }
    inside = count = 0
    for way in firsts:
        for of_score in samples[f"weights_{way}"]:
            for weight in of_score:
                inside += low <= weight <= high
                count += 1
    found = figure_samples.sampled(samples | {"curves_i2t": np.zeros((2, 3))})
    assert count == 2 * (7 + 30) and 0 < inside < count
    assert found == {
        "weights_inside": pytest.approx(inside / count),
        "weights_outside": pytest.approx((count - inside) / count),
    }
    assert figure_samples.sampled({"scores": np.zeros((2, 3))}) == {}
    before, after = np.array([[1, 0.2], [0.4, 1]]), np.array([[1, np.nan], [np.nan, 1]])
    found = figure_samples.sampled(
        {"correlation_before": before, "correlation_after": after}
    )
    assert found == {"correlation_before": pytest.approx(0.3)}


# What only the model can tell ---------------------------------------------------------


def test_a_model_of_vectors_leaves_correlations_a_map_and_words():
    samples = figure_samples.of_model(on_split())
    assert set(samples) == {
        *("correlation_before", "correlation_after", "tsne_joint"),
        *("words_captions", "words_drop"),
    }
    assert samples["tsne_joint"].shape == (2 * IMAGES, 2)
    assert (
        samples["correlation_before"].tolist()
        == figure_samples.correlation(features()).tolist()
    )
    samples = figure_samples.of_model(
        on_split(Spaces, offers={"scores": ("near", "far")})
    )
    assert {key for key in samples if key.startswith("tsne")} == {
        "tsne_near",
        "tsne_far",
    }

    class Collapsed(Bag):
        def encode_images(self, images):
            return (torch.ones(len(images), SIZE),)

        def encode_captions(self, captions):
            return (torch.ones(len(captions.values), SIZE),)

    assert not [
        key
        for key in figure_samples.of_model(on_split(Collapsed))
        if key.startswith("tsne")
    ]


# Words --------------------------------------------------------------------------------


def test_a_word_is_worth_its_product_with_the_image():
    model = on_split()
    samples = figure_samples.of_model(model)
    assert samples["words_captions"].tolist() == [0, 1, 2, 3, 4, 5]
    assert (
        samples["words_drop"].shape == (6, 6)
        and samples["words_drop"].dtype == np.float32
    )
    number = {word: i for i, word in enumerate(model.vocabulary.words)}
    for row, drops in enumerate(samples["words_drop"]):
        words, image = tokenise(TEXTS[row]), features()[OWNERS[row]].float()
        assert np.isnan(drops[len(words) :]).all()
        if len(words) == 1:  # without it the caption would be empty
            assert np.isnan(drops[0])
            continue
        for word, drop in zip(words, drops, strict=False):
            # 3: <unk> is a word too
            worth = float(model.model.words[number.get(word, 3)] @ image)
            assert drop == pytest.approx(worth, abs=1e-4)


# Attention ----------------------------------------------------------------------------


def attended(vocabulary=None, attention: bool = True) -> dict[str, np.ndarray]:
    positions = np.stack(
        [np.random.default_rng(i).permutation(GRID_CELLS) for i in range(IMAGES)]
    )
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
            # region 0 is <start>'s
            expected[samples["positions"][OWNERS[row], w + 1]] = 1.0
            assert cells[n, w].tolist() == expected


def test_words_that_are_not_fed_attend_to_nothing():
    samples = attended(vocabulary=Dictionary(words=("<pad>", *KNOWN)))
    dog_and_zebra = samples["attention"][3]
    assert np.isnan(dog_and_zebra[[2, 4]]).all()  # "and", "zebra"
    positions = samples["positions"][3]
    assert [int(dog_and_zebra[w].argmax()) for w in (0, 1, 3)] == positions[:3].tolist()


def test_a_single_image_correlates_with_itself_alone():
    alone = figure_samples.correlation(torch.tensor([[1.0, 2.0, 4.0]]))
    assert alone.tolist() == [[1.0]]
    assert figure_samples.sampled({"correlation_before": alone}) == {}
