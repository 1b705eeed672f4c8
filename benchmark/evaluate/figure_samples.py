"""What an evaluation keeps for figures and galleries: little of a split, chosen by fixed rules.

Captions are kept as rows of the split, never as text.
"""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.protocol import distribution_overlap, fusion
from methods import Captions, Encoding, Matcher, NotApplicableError

TOP = 10  # items kept of every ranking
SCORES = 2000  # scores kept of each distribution
ITEMS = 100  # images, each with its first caption, of matrices and maps
CURVES, CURVE_POINTS = 3, 200  # queries whose sorted scores are kept, and how many scores
WORD_CAPTIONS, ATTENTION_CAPTIONS = 12, 6
COMPONENTS = 50  # principal ones that t-SNE is given


@dataclass(frozen=True, kw_only=True)
class Played:
    """A trained model and the split that it is judged on."""

    model: Matcher
    inputs: SplitInputs
    vocabulary: Vocabulary | Dictionary | None  # None: it takes sentence vectors
    texts: list[str]  # (C,)
    places: np.ndarray | None  # (I, R) cell of each region on its image's grid, row by row

    def image(self, row: int) -> Encoding:
        """The encoding of the image that caption `row` describes."""
        owner = int(self.inputs.image_of_caption[row])
        return self.model.encode_images(self.inputs.images_at(slice(owner, owner + 1)))


def distributions(
    scores_IC: np.ndarray, relevant_IC: np.ndarray, range: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Histograms of matched and unmatched scores over S's bins, and evenly spaced samples."""
    low, high = range
    found = {"edges": np.linspace(low, high, distribution_overlap.BINS + 1)}
    for name, mask in (("matched", relevant_IC), ("unmatched", ~relevant_IC)):
        values = scores_IC[mask]
        found[name] = distribution_overlap.shares(values, distribution_overlap.BINS, low, high)
        ordered = np.sort(values)
        found[f"{name}_sample"] = ordered[np.linspace(0, len(ordered) - 1, SCORES).astype(int)]
    return found


def retrieved(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> np.ndarray:
    """The best `TOP` items of every query, best first, (Q, TOP) int32. Among equal scores those
    that are not relevant lead, so that the order has the ranks and recalls of the record."""
    rows = zip(scores_QG, relevant_QG, strict=True)
    best = [np.lexsort((relevant_G, -scores_G))[:TOP] for scores_G, relevant_G in rows]
    return np.stack(best).astype(np.int32)


def of_scores(scores_IC: np.ndarray, image_of_caption_C: np.ndarray) -> dict[str, np.ndarray]:
    """The scores of the first images with their first captions."""
    columns = first_captions(image_of_caption_C)[:ITEMS]
    return {"similarity": scores_IC[:ITEMS, columns].astype(np.float32)}


def of_fusion(scores: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What adaptive fusion makes of its S scores (I, C): weights, and how some queries' fall."""
    found = {}
    ways = {"i2t": scores, "t2i": [score_IC.T for score_IC in scores]}
    for way, of_way in ways.items():
        queries = evenly(len(of_way[0]), CURVES)
        found[f"weights_{way}"] = fusion.weights(of_way).astype(np.float32)
        found[f"curve_queries_{way}"] = queries.astype(np.int32)
        found[f"curves_{way}"] = np.stack([_falling(score_QG[queries]) for score_QG in of_way])
    return found


@torch.inference_mode()
def of_model(played: Played) -> dict[str, np.ndarray]:
    """What only the model itself can tell; what it has no notion of is absent."""
    model, inputs = played.model, played.inputs
    rows = first_captions(inputs.image_of_caption.cpu().numpy())[:ITEMS]
    features = inputs.images_at(slice(0, len(rows)))
    images = model.encode_images(features)
    captions = model.encode_captions(inputs.captions_at(torch.from_numpy(rows)))
    found = {"correlation_before": features, "correlation_after": images[0]}
    found = {key: correlation(x) for key, x in found.items() if _has_vectors(_pooled(x))}
    found |= _maps(_spaces(model, images, captions))
    if played.vocabulary:
        found |= words_drop(played)
    if played.vocabulary and played.places is not None and hasattr(model, "attention"):
        found |= attention(played)
    return found


def first_captions(image_of_caption_C: np.ndarray) -> np.ndarray:
    """The row of each image's first caption, (I,)."""
    return np.unique(image_of_caption_C, return_index=True)[1]


def evenly(count: int, wanted: int) -> np.ndarray:
    """`wanted` rows from the first to the last of `count`, all of them where there are fewer."""
    return np.unique(np.linspace(0, count - 1, wanted).astype(int))


def correlation(vectors: Tensor) -> np.ndarray:
    """Pearson's of (N, F) vectors, or of the mean regions of (N, R, F): (N, N) float16.

    A vector whose numbers are all equal correlates with nothing: NaN.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.corrcoef(_pooled(vectors).double().cpu().numpy()).astype(np.float16)


def tsne(points: np.ndarray) -> np.ndarray:
    """A map (P, 2) float32 of points (P, D), the same for the same points.

    The exact gradient, since the faster one adds up in the order in which threads finish.
    """
    components = PCA(min(COMPONENTS, *points.shape), svd_solver="full").fit_transform(points)
    perplexity = min(30.0, (len(points) - 1) / 3)
    mapping = TSNE(perplexity=perplexity, init="pca", method="exact", max_iter=500, random_state=0)
    return mapping.fit_transform(components).astype(np.float32)


def words_drop(played: Played) -> dict[str, np.ndarray]:
    """What each word is worth to its caption's score (instance-loss paper, Fig. 11)."""
    rows = evenly(len(played.texts), WORD_CAPTIONS)
    drops = _padded([_drops(played, int(row)) for row in rows])
    return {"words_captions": rows.astype(np.int32), "words_drop": drops}


def attention(played: Played) -> dict[str, np.ndarray]:
    """Which cells of its image each word attends to (SCAN paper, Fig. 4)."""
    firsts = first_captions(played.inputs.image_of_caption.cpu().numpy())
    rows = firsts[evenly(len(firsts), ATTENTION_CAPTIONS)]
    try:
        cells = _padded([_attended_cells(played, int(row)) for row in rows])
    except NotApplicableError:
        return {}
    return {"attention_captions": rows.astype(np.int32), "attention": cells}


def positions(vocabulary: Vocabulary | Dictionary, words: list[str]) -> np.ndarray:
    """Where each word stands in what a method is fed, (W,); -1 for a word that it is not fed."""
    if isinstance(vocabulary, Vocabulary):
        return np.arange(len(words)) + 1  # behind <start>
    known = np.array([word in vocabulary.words for word in words], dtype=bool)
    return np.where(known, np.cumsum(known) - 1, -1)


def _falling(scores_QG: np.ndarray) -> np.ndarray:
    """The scores of each query from best to worst, at `CURVE_POINTS` evenly spaced places."""
    ordered = -np.sort(-scores_QG, axis=1)
    places = np.linspace(0, ordered.shape[1] - 1, CURVE_POINTS).astype(int)
    return ordered[:, places].astype(np.float32)


def _pooled(x: Tensor) -> Tensor:
    return x.mean(1) if x.dim() == 3 and x.is_floating_point() else x


def _has_vectors(x: Tensor) -> bool:
    return x.is_floating_point() and x.dim() == 2 and x.shape[1] > 1


def _spaces(model: Matcher, images: Encoding, captions: Encoding) -> dict[str, np.ndarray]:
    """The points of every space that images and captions share, images first: (2N, D). A model
    with one named score per tensor of its encodings matches in spaces of these names."""
    names = ["joint"]
    if hasattr(model, "scores"):
        named = list(model.scores(*(tuple(x[:1] for x in side) for side in (images, captions))))
        names = named if len(named) == len(images) == len(captions) else names
    return {
        name: torch.cat([x, y]).double().cpu().numpy()
        for name, x, y in zip(names, images, captions, strict=False)
        if _has_vectors(x) and _has_vectors(y) and x.shape == y.shape
    }


def _maps(spaces: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """t-SNE of every space; one whose points all coincide has no map."""
    spread = {name: points for name, points in spaces.items() if np.ptp(points, axis=0).max() > 0}
    return {f"tsne_{name}": tsne(points) for name, points in spread.items()}


def _drops(played: Played, row: int) -> np.ndarray:
    """Score of caption `row` with its image minus that without word w, (W,). NaN for a word that
    the method is not fed, and for the only one that it is."""
    words = tokenise(played.texts[row])
    fed = np.flatnonzero(positions(played.vocabulary, words) >= 0)
    drops = np.full(len(words), np.nan, np.float32)
    if len(fed) > 1:
        shortened = [words[:w] + words[w + 1 :] for w in fed]
        scores = _own_scores(played, row, [words, *shortened])
        drops[fed] = scores[0] - scores[1:]
    return drops


def _own_scores(played: Played, row: int, sentences: list[list[str]]) -> np.ndarray:
    """Scores (T,) of T sentences with the image of caption `row`."""
    arrays = played.vocabulary.encode([" ".join(words) for words in sentences])
    values, lengths = (torch.from_numpy(array).to(played.inputs.device) for array in arrays)
    captions = played.model.encode_captions(Captions(values=values, lengths=lengths))
    return played.model.similarity(played.image(row), captions)[0].float().cpu().numpy()


def _attended_cells(played: Played, row: int) -> np.ndarray:
    """Attention of the words of caption `row` over the cells of its image's grid, (W, G)."""
    captions = played.model.encode_captions(played.inputs.captions_at(slice(row, row + 1)))
    weights_WR = played.model.attention(played.image(row), captions)[0].float().cpu().numpy()
    position_W = positions(played.vocabulary, tokenise(played.texts[row]))
    cell_G = played.places[int(played.inputs.image_of_caption[row])]
    fed = np.flatnonzero(position_W >= 0)
    cells_WG = np.full((len(position_W), len(cell_G)), np.nan, np.float32)
    cells_WG[fed] = 0.0  # of the cells that the method does not look at
    cells_WG[fed[:, None], cell_G[: weights_WR.shape[1]]] = weights_WR[position_W[fed]]
    return cells_WG


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    """Arrays of different lengths as one, NaN beyond their ends."""
    longest = max(len(row) for row in rows)
    found = np.full((len(rows), longest, *rows[0].shape[1:]), np.nan, np.float32)
    for place, row in zip(found, rows, strict=True):
        place[: len(row)] = row
    return found
