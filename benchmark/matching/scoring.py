"""Scores of a split: images with captions, tile by tile, and phrases with proposals.

A method is given the items in an order drawn at random, images and captions apart, and what it
returns is put back afterwards. So the place of an item tells nothing of what it belongs to.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmark.core.devices import now
from benchmark.matching.localisation_inputs import PhraseInputs
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.protocol.score_tiles import spans
from methods import Encoding, Matcher

Similarity = Callable[[Encoding, Encoding], Tensor]

ENCODE_CHUNK = 256
IMAGE_TILE, CAPTION_TILE = 16, 128  # region-word products of a tile stay in cache
ORDER = 20170711  # seed of the orders in which items are scored


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores (I, C) float32, on the device of the model, and what they cost."""

    matrix: Tensor
    image_seconds: float  # to encode all images
    caption_seconds: float  # to encode all captions
    pair_seconds: float  # to score all pairs


@torch.inference_mode()
def score(model: Matcher, inputs: SplitInputs) -> Scores:
    """Score every image of a split with every caption; the tile size changes no score."""
    image_order, caption_order = orders(len(inputs.images), len(inputs.image_of_caption))
    mixed = inputs.reordered(image_order, caption_order)
    started = now(inputs.device)
    images = encode_images(model, mixed)
    imaged = now(inputs.device)
    captions = encode_captions(model, mixed)
    captioned = now(inputs.device)
    matrix = score_pairs(model.similarity, images, captions)
    rows, columns = image_order.to(matrix.device), caption_order.to(matrix.device)
    restored = torch.empty_like(matrix)
    restored[rows[:, None], columns] = matrix
    return Scores(
        matrix=restored,
        image_seconds=imaged - started,
        caption_seconds=captioned - imaged,
        pair_seconds=now(inputs.device) - captioned,
    )


@torch.inference_mode()
def score_proposals(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Scores (N, P) float32 of every phrase with the proposals of its image, on the host."""
    scores = torch.full(inputs.ious.shape, torch.nan)
    drawn, proposals = orders(*inputs.ious.shape)
    order = drawn[inputs.image_of_phrase[drawn].argsort(stable=True)]
    images, counts = inputs.image_of_phrase[order].unique_consecutive(return_counts=True)
    for image, rows in zip(images.tolist(), order.split(counts.tolist()), strict=True):
        phrases = model.encode_captions(inputs.phrases_at(inputs.vector_of_phrase[rows]))
        regions = model.encode_images(inputs.proposals_of(image)[proposals.to(inputs.device)])
        of_image = model.similarity(regions, phrases).float().T.cpu()
        scores[rows[:, None], proposals] = of_image
    return scores


@torch.inference_mode()
def nearest_regions(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Score (I, V) float32 of every image's best proposal for every distinct phrase, on the host.

    Phrases of other splits, and images without proposals, have NaN.
    """
    wanted = inputs.vector_of_phrase.unique()
    scores = torch.full((len(inputs.proposals), len(inputs.vectors)), torch.nan)
    phrases = model.encode_captions(inputs.phrases_at(wanted))
    is_there = inputs.boxes.any(-1)
    for image in is_there.any(1).nonzero()[:, 0].tolist():
        proposals = inputs.proposals_of(image)[is_there[image].to(inputs.device)]
        scores_PV = model.similarity(model.encode_images(proposals), phrases)
        scores[image, wanted] = scores_PV.amax(0).float().cpu()
    return scores


def encode_images(model: Matcher, inputs: SplitInputs) -> Encoding:
    """Encodings of all images, in order."""
    chunks = spans(len(inputs.images), ENCODE_CHUNK)
    return joined([model.encode_images(inputs.images_at(rows)) for rows in chunks])


def encode_captions(model: Matcher, inputs: SplitInputs) -> Encoding:
    """Encodings of all captions, in order."""
    chunks = spans(len(inputs.image_of_caption), ENCODE_CHUNK)
    return joined([model.encode_captions(inputs.captions_at(rows)) for rows in chunks])


def sentence_scores(model: Matcher, inputs: SplitInputs) -> Iterator[tuple[Tensor, Tensor]]:
    """Scores (Q, C) of captions with all captions, one block of queries at a time: the rows of the
    queries, (Q,) on the host in an order drawn at random, and their scores."""
    image_order, order = orders(len(inputs.images), len(inputs.image_of_caption))
    with torch.inference_mode():
        captions = encode_captions(model, inputs.reordered(image_order, order))
    for rows in spans(len(order), ENCODE_CHUNK):
        with torch.inference_mode():  # not around the yield: the mode would leak to the caller
            block = tuple(x[rows] for x in captions)
            scores = model.caption_similarity(block, captions).float()
            restored = torch.empty_like(scores)
            restored[:, order.to(scores.device)] = scores
        yield order[rows], restored


def similarity_of(model: Matcher, part: str) -> Similarity:
    """The score of a model that `part` names; "": its similarity."""
    if not part:
        return model.similarity
    return lambda images, captions: model.scores(images, captions)[part]


def orders(first: int, second: int) -> tuple[Tensor, Tensor]:
    """Random orders of two kinds of items, the same in every run and for every model."""
    rng = np.random.default_rng(ORDER)
    return torch.from_numpy(rng.permutation(first)), torch.from_numpy(rng.permutation(second))


def score_pairs(
    similarity: Similarity,
    images: Encoding,
    captions: Encoding,
    tile: tuple[int, int] = (IMAGE_TILE, CAPTION_TILE),
) -> Tensor:
    """Scores (I, C) float32 of all pairs, computed in tiles (images, captions).

    Captions are sorted by length first, so that tiles hold little padding.
    """
    num_images, num_captions = len(images[0]), len(captions[0])
    device = images[0].device
    matrix = torch.empty((num_images, num_captions), dtype=torch.float32, device=device)
    order = _by_length(captions)
    for columns in order.split(tile[1]):
        block = tuple(x[columns] for x in captions)
        for rows in spans(num_images, tile[0]):
            matrix[rows, columns] = similarity(tuple(x[rows] for x in images), block).float()
    return matrix


def _by_length(captions: Encoding) -> Tensor:
    """Rows of the captions by length, where the last tensor of the encoding counts words."""
    last = captions[-1]
    if last.dim() == 1 and not last.is_floating_point():
        return last.argsort(stable=True)
    return torch.arange(len(last), device=last.device)


def joined(parts: list[Encoding]) -> Encoding:
    """One encoding of all items; word axes of different widths are padded with zeros."""
    return tuple(_cat(list(tensors)) for tensors in zip(*parts, strict=True))


def _cat(tensors: list[Tensor]) -> Tensor:
    if tensors[0].dim() < 3:
        return torch.cat(tensors)
    width = max(x.shape[1] for x in tensors)
    padded = [torch.nn.functional.pad(x, (0, 0, 0, width - x.shape[1])) for x in tensors]
    return torch.cat(padded)
