"""A score must follow from its image and its text alone.

Every evaluation is repeated in part, by a model that is loaded anew: images and
captions are divided at random into groups, each of which is encoded and scored by
itself, in other batches and tiles. There are two groups or more, however small the
split is, so that no group is the split. Every image meets some captions and every
caption some images, about `PAIRS` pairs in all, or half of those of a small split: this
takes one more encoding of the split. Scores that hang on other items of the split, on
the rest of a batch, on the order of the items, on what was seen before or on chance
differ then, and the cell fails. What runs in the same process can still cheat on
purpose: this catches mistakes. Each check raises RefusedError where other scores come
out.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmark.contracts.methods import Captions, Encoding, Matcher
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.model_scores import ORDER, joined, score_pairs, scores_of
from benchmark.scoring.ranking import RefusedError, Tile

PAIRS = 100_000  # of images and captions that are scored again, about
PARTS = 2  # of a split, at least: each is scored without the others
IMAGES, PHRASES = 48, 24  # of localisation that are scored again
# other batches and tiles than those of model_scores.py
CHUNK, TEXT_CHUNK, TILE = 5, 33, (5, 13)
# A score may differ by this share of the spread of the scores, by precision,
OF_SPREAD = {torch.float32: 1e-3, torch.bfloat16: 2**-4}
# and by so many steps of the precision at the largest score besides.
ROUNDINGS = 2
# On average scores may differ by this share of their spread, however coarse a step is.
COARSE = 0.25


class Groups:
    """The scores of the pairs (image, caption) that are of one group, as they were
    first."""

    def __init__(self, images: int, captions: int) -> None:
        rng = np.random.default_rng(ORDER + 1)
        wanted = round(images * captions / PAIRS)
        # of one image some groups have none
        count = max(PARTS, min(images, captions, wanted))
        self.images = np.array_split(rng.permutation(images), count)
        self.captions = np.array_split(rng.permutation(captions), count)
        self.group_I = np.empty(images, int)
        self.group_C, self.place_C = np.empty((2, captions), int)
        groups = zip(self.images, self.captions, strict=True)
        for number, (rows, columns) in enumerate(groups):
            self.group_I[rows], self.group_C[columns] = number, number
            self.place_C[columns] = np.arange(len(columns))
        # by place in the group
        self.scores = np.full((images, len(self.captions[0])), np.nan)

    def add(self, tile: Tile, scores: np.ndarray) -> None:
        """Scores (r, c) of a tile."""
        group_of_row = self.group_I[tile.rows]
        group_of_column = self.group_C[tile.columns]
        row, column = np.equal.outer(group_of_row, group_of_column).nonzero()
        places = self.place_C[tile.columns[column]]
        self.scores[tile.rows[row], places] = scores[row, column]

    def check(
        self, score: Callable[[Tensor, Tensor], Tensor], device: torch.device
    ) -> None:
        """Compare with what `score` gives for the images and the captions of each
        group."""
        first, again = [], []
        for rows, columns in zip(self.images, self.captions, strict=True):
            if not len(rows) or not len(columns):
                continue
            first.append(self.scores[rows, : len(columns)].ravel())
            scores = score(torch.from_numpy(rows), torch.from_numpy(columns))
            again.append(scores.cpu().flatten())
        _compare(torch.from_numpy(np.concatenate(first)), torch.cat(again), device)


@torch.inference_mode()
def check_retrieval(
    model: Matcher, inputs: SplitInputs, part: str, first: Groups
) -> None:
    """Compare with the first scores, of one part."""

    def similarity(images: Encoding, captions: Encoding) -> Tensor:
        return scores_of(model, [part], images, captions)[0]

    def score(rows: Tensor, columns: Tensor) -> Tensor:
        chunks = [inputs.images_at(some) for some in rows.split(CHUNK)]
        images = joined([model.encode_images(chunk) for chunk in chunks])
        captions = _captions(model, inputs, columns)
        return score_pairs(similarity, images, captions, tile=TILE)

    first.check(score, inputs.device)


@torch.inference_mode()
def check_sentences(model: Matcher, inputs: SplitInputs, first: Groups) -> None:
    """The same for captions with captions."""

    def score(rows: Tensor, columns: Tensor) -> Tensor:
        first_texts = _captions(model, inputs, rows)
        second_texts = _captions(model, inputs, columns)
        return score_pairs(
            model.caption_similarity, first_texts, second_texts, tile=TILE
        )

    first.check(score, inputs.device)


def _captions(model: Matcher, inputs: SplitInputs, rows: Tensor) -> Encoding:
    chunks = rows.to(inputs.device).split(TEXT_CHUNK)
    return joined([model.encode_captions(inputs.captions_at(some)) for some in chunks])


@torch.inference_mode()
def check_localisation(model: Matcher, inputs: PhraseInputs, matrix_NP: Tensor) -> None:
    """The same for phrases, one at a time, and parts of the proposals of their
    images."""
    rows = np.random.default_rng(ORDER + 1).permutation(len(matrix_NP))[:PHRASES]
    again = []
    for row in rows.tolist():
        proposals = inputs.proposals_of(int(inputs.image_of_phrase[row]))
        phrase = inputs.phrases_at(inputs.vector_of_phrase[row : row + 1])
        again.append(torch.cat(_scores_of_parts(model, proposals, phrase))[:, 0])
    _compare(matrix_NP[rows], torch.stack(again), inputs.device)


@torch.inference_mode()
def check_nearest_regions(
    model: Matcher, inputs: PhraseInputs, nearest_IV: Tensor
) -> None:
    """The same for the best proposals of whole images."""
    wanted = inputs.vector_of_phrase.unique()
    rng = np.random.default_rng(ORDER + 1)
    images, phrases = (torch.from_numpy(rng.permutation(n)) for n in nearest_IV.shape)
    images, phrases = images[:IMAGES], phrases[: 2 * IMAGES]
    images = images[~nearest_IV[images].isnan().any(1)]
    again = []
    for image in images.tolist():
        proposals = inputs.present_proposals_of(image)
        best = []
        for some in phrases.chunk(PARTS):
            texts = inputs.phrases_at(wanted[some])
            best.append(torch.cat(_scores_of_parts(model, proposals, texts)).amax(0))
        again.append(torch.cat(best))
    if again:
        _compare(nearest_IV[images][:, phrases], torch.stack(again), inputs.device)


def _scores_of_parts(
    model: Matcher, proposals: Tensor, phrases: Captions
) -> list[Tensor]:
    """Scores (p, C) of each part of the proposals (P, F) of an image, on the host."""
    scores = []
    for part in proposals.chunk(PARTS):
        regions = joined([model.encode_images(some) for some in part.split(CHUNK)])
        texts = model.encode_captions(phrases)
        scores.append(score_pairs(model.similarity, regions, texts, tile=TILE).cpu())
    return scores


def _compare(first: Tensor, again: Tensor, device: torch.device) -> None:
    """Scores that `device` computed. First ones that are not finite are refused
    elsewhere, where they count.

    A constant added to all scores makes no difference larger that may be: where it is
    so large that scores differ by a few roundings, these must agree on average.
    """
    is_cast = torch.is_autocast_enabled(device.type)
    precision = torch.get_autocast_dtype(device.type) if is_cast else torch.float32
    # differences of large scores would overflow
    first, again = first.double(), again.double()
    counts = first.isfinite()
    if not counts.any():
        return
    first, again = first[counts], again[counts]
    spread = first.std(correction=0)  # 0 of a single score
    rounding = ROUNDINGS * torch.finfo(precision).eps * first.abs().max()
    difference = (first - again).abs()
    differs = ~(difference <= OF_SPREAD[precision] * spread + rounding)  # NaN differs
    if differs.any() or difference.square().mean() > (COARSE * spread) ** 2:
        raise RefusedError(
            f"{int(differs.sum())} of {first.numel()} scores differ when a model that "
            f"is loaded anew computes them in other batches and another order, by up "
            f"to {float(difference.max()):.3g} where scores spread by "
            f"{float(spread):.3g}; a score must follow from its image and its text "
            f"alone"
        )
