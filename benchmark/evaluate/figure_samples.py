"""What an evaluation keeps for figures and galleries: a small part of a split, by fixed
rules.

Captions are kept as rows of the split, never as text.
"""

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmark.contracts.methods import Captions
from benchmark.data.rank_keys import I2T, RankKey
from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.evaluate.trained_cells import ModelOnSplit
from benchmark.scoring.fusion import MIDDLE
from benchmark.scoring.ranking import Picked, Tile

ITEMS = 100  # images, each with its first caption, of matrices and maps
# queries whose sorted scores are kept, and how many scores
CURVES, CURVE_POINTS = 3, 200
WORD_CAPTIONS, ATTENTION_CAPTIONS = 12, 6
COMPONENTS = 50  # principal components that t-SNE starts from


def similarity(images: int, image_of_caption_C: np.ndarray) -> Picked:
    """The scores of the first images with their first captions."""
    rows = np.arange(min(images, ITEMS))
    columns = first_captions(image_of_caption_C)[:ITEMS]
    return Picked(rows, columns)


class Curves:
    """The sorted scores that each of S models gives to some queries of each direction
    (CycleMatch paper, Fig. 6.5)."""

    def __init__(self, images: int, captions: int, models: int) -> None:
        of_i2t = evenly(images, CURVES)
        of_t2i = evenly(captions, CURVES)
        every_image = np.arange(images)
        every_caption = np.arange(captions)
        self.queries = {"i2t": of_i2t, "t2i": of_t2i}
        self.picked = {
            "i2t": [Picked(of_i2t, every_caption) for _ in range(models)],
            "t2i": [Picked(every_image, of_t2i) for _ in range(models)],
        }

    def add(self, model: int, tile: Tile) -> None:
        """A tile of the scores of one model."""
        for picked in self.picked.values():
            picked[model].add(tile, tile.of(I2T))

    def arrays(self, weights: dict[RankKey, np.ndarray]) -> dict[str, np.ndarray]:
        """With the weights (S, Q) of adaptive fusion: scores from best to worst, at
        evenly spaced ranks, (S, CURVES, CURVE_POINTS)."""
        arrays = {}
        for way, picked in self.picked.items():
            scores = [of_model.scores for of_model in picked]
            if way == "t2i":
                scores = [scores_IC.T for scores_IC in scores]
            scores_SQG = np.stack(scores)
            ordered_SQG = -np.sort(-scores_SQG)
            last = ordered_SQG.shape[2] - 1
            ranks = np.linspace(0, last, CURVE_POINTS).astype(int)
            curves = ordered_SQG[:, :, ranks]
            arrays[f"weights_{way}"] = weights[RankKey(way)].astype(np.float32)
            arrays[f"curve_queries_{way}"] = self.queries[way].astype(np.int32)
            arrays[f"curves_{way}"] = curves.astype(np.float32)
        return arrays


@torch.inference_mode()
def of_model(on_split: ModelOnSplit) -> dict[str, np.ndarray]:
    """Correlations, maps, the worth of words and attention, each where the model has
    it."""
    model = on_split.model
    inputs = on_split.inputs
    takes = on_split.trained.takes
    firsts = first_captions(inputs.owners)
    rows = firsts[:ITEMS]
    features = inputs.images_at(slice(0, len(rows)))
    images = model.encode_images(features)
    captions = model.encode_captions(inputs.captions_at(torch.from_numpy(rows)))
    arrays = {}
    for stage, vectors in (("before", features), ("after", images[0])):
        if _is_vector(_pooled(vectors)):
            arrays[f"correlation_{stage}"] = correlation(vectors)
    names = ("joint",)
    # A model with one named score per tensor of its encodings matches in spaces of
    # these names.
    if len(takes.scores) == len(images) == len(captions):
        names = takes.scores
    for name, x, y in zip(names, images, captions, strict=False):
        if x.shape == y.shape and _is_vector(x) and _is_vector(y):
            points = torch.cat([x, y]).double().cpu().numpy()
            spread = np.ptp(points, axis=0).max()
            if spread > 0:  # points that all coincide have no map
                arrays[f"tsne_{name}"] = tsne(points)
    if on_split.vocabulary:
        shown = evenly(len(on_split.texts), WORD_CAPTIONS)
        drops = [_drops(on_split, row) for row in shown.tolist()]
        arrays["words_captions"] = shown.astype(np.int32)
        arrays["words_drop"] = _padded(drops)
    if on_split.vocabulary and takes.attention and on_split.grid_positions is not None:
        shown = firsts[evenly(len(firsts), ATTENTION_CAPTIONS)]
        weights = [_grid_attention(on_split, row) for row in shown.tolist()]
        arrays["attention_captions"] = shown.astype(np.int32)
        arrays["attention"] = _padded(weights)
    return arrays


def first_captions(image_of_caption_C: np.ndarray) -> np.ndarray:
    """The row of each image's first caption, (I,)."""
    return np.unique(image_of_caption_C, return_index=True)[1]


def evenly(count: int, wanted: int) -> np.ndarray:
    """`wanted` of `count` rows, evenly from the first to the last; all rows if there
    are fewer."""
    return np.unique(np.linspace(0, count - 1, wanted).astype(int))


def correlation(vectors: Tensor) -> np.ndarray:
    """Pearson's correlation of (N, F) vectors, or of the mean regions of (N, R, F): (N,
    N) float16.

    A vector whose numbers are all equal has NaN.
    """
    rows = _pooled(vectors).double().cpu().numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.atleast_2d(np.corrcoef(rows)).astype(np.float16)


def sampled(samples: dict[str, np.ndarray]) -> dict[str, float]:
    """Mean correlation of two different images before and after training (instance-loss
    paper, figure 4), left out where a vector of equal numbers has none; of adaptive
    fusion the shares of all weights inside and outside the middle (CycleMatch paper,
    figure 6.7)."""
    means = {}
    for name in ("correlation_before", "correlation_after"):
        if name in samples and len(samples[name]) > 1:
            is_other = ~np.eye(len(samples[name]), dtype=bool)
            means[name] = float(samples[name][is_other].mean())
    names = sorted(name for name in samples if name.startswith("weights_"))
    weights = [samples[name].ravel() for name in names]
    if weights:
        low, high = MIDDLE
        all_N = np.concatenate(weights).astype(np.float64)
        is_inside = (all_N >= low) & (all_N <= high)
        inside = float(is_inside.mean())
        means |= {"weights_inside": inside, "weights_outside": 1 - inside}
    return {name: value for name, value in means.items() if np.isfinite(value)}


def tsne(points: np.ndarray) -> np.ndarray:
    """A map (P, 2) float32 of points (P, D); equal points give equal bytes.

    With the exact gradient: the faster one sums in the order in which threads finish.
    """
    reduction = PCA(min(COMPONENTS, *points.shape), svd_solver="full")
    components = reduction.fit_transform(points)
    mapping = TSNE(
        perplexity=min(30.0, (len(points) - 1) / 3),
        init="pca",
        method="exact",
        max_iter=500,
        random_state=0,
    )
    return mapping.fit_transform(components).astype(np.float32)


def word_positions(vocabulary: Vocabulary | Dictionary, words: list[str]) -> np.ndarray:
    """(W,) the position of each word in the input of a method; -1 for a word that is
    left out."""
    if isinstance(vocabulary, Vocabulary):
        return np.arange(len(words)) + 1  # behind <start>
    known = np.array([word in vocabulary.words for word in words], dtype=bool)
    return np.where(known, np.cumsum(known) - 1, -1)


def _pooled(x: Tensor) -> Tensor:
    return x.mean(1) if x.dim() == 3 and x.is_floating_point() else x


def _is_vector(x: Tensor) -> bool:
    return x.is_floating_point() and x.dim() == 2 and x.shape[1] > 1


def _drops(on_split: ModelOnSplit, row: int) -> np.ndarray:
    """(W,) the score of caption `row` with its image, minus the score without word w
    (instance-loss paper, Fig. 11). NaN for a word that is left out of the input, and
    for the only word in it."""
    words = tokenise(on_split.texts[row])
    fed = np.flatnonzero(word_positions(on_split.vocabulary, words) >= 0)
    drops = np.full(len(words), np.nan, np.float32)
    if len(fed) > 1:
        texts = [" ".join(words)]
        for w in fed:
            texts.append(" ".join(words[:w] + words[w + 1 :]))
        values, lengths = on_split.vocabulary.encode(texts)
        device = on_split.inputs.device
        captions = Captions(
            values=torch.from_numpy(values).to(device),
            lengths=torch.from_numpy(lengths).to(device),
        )
        encoded = on_split.model.encode_captions(captions)
        scores_1C = on_split.model.similarity(on_split.image(row), encoded)
        scores = scores_1C[0].float().cpu().numpy()
        drops[fed] = scores[0] - scores[1:]
    return drops


def _grid_attention(on_split: ModelOnSplit, row: int) -> np.ndarray:
    """(W, G) attention of the words of caption `row` over the G grid cells of its image
    (SCAN paper, Fig. 4); NaN for a word that is left out of the input."""
    model = on_split.model
    inputs = on_split.inputs
    captions = model.encode_captions(inputs.captions_at(slice(row, row + 1)))
    attention = model.attention(on_split.image(row), captions)
    weights_WR = attention[0].float().cpu().numpy()
    words = tokenise(on_split.texts[row])
    position_W = word_positions(on_split.vocabulary, words)
    image = int(inputs.image_of_caption[row])
    position_G = on_split.grid_positions[image]
    fed = np.flatnonzero(position_W >= 0)
    weights_WG = np.full((len(position_W), len(position_G)), np.nan, np.float32)
    weights_WG[fed] = 0.0  # for the grid cells that the method does not use
    cells = position_G[: weights_WR.shape[1]]
    weights_WG[fed[:, None], cells] = weights_WR[position_W[fed]]
    return weights_WG


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    """Arrays of different lengths as one, padded with NaN."""
    tensors = [torch.from_numpy(row) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=np.nan).numpy()
