"""Scores of a split by a model: images with captions, and phrases with proposals.

A method is given the items in an order drawn at random, images and captions apart, and
what it returns is put back afterwards. So the place of an item tells nothing of what it
belongs to.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmark.contracts.methods import Encoding, Matcher
from benchmark.core.devices import Stopwatch
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.ranking import check_finite, spans
from benchmark.scoring.score_stream import first_equal

Similarity = Callable[[Encoding, Encoding], Tensor]

ENCODE_CHUNK = 256
IMAGE_TILE, CAPTION_TILE = 16, 128  # region-word products of a tile stay in cache
ORDER = 20170711  # seed of the orders in which items are scored


@dataclass
class Encoded:
    """A model with the encodings of a split, and what they and its scores cost."""

    model: Matcher
    images: Encoding
    captions: Encoding
    image_order: np.ndarray  # (I,) the image that each row of the encodings shows
    caption_order: np.ndarray  # (C,)
    # (I,) for each row the first one that is given the same image
    first_image: np.ndarray
    first_caption: np.ndarray  # (C,)
    # the scores that count, by name; "": the model's similarity
    parts: tuple[str, ...] = ("",)
    seconds: dict[str, float] = field(default_factory=dict)  # per item of each kind
    precision, range = np.dtype(np.float32), None

    @torch.inference_mode()
    def scores(self, rows: slice, columns: slice) -> list[np.ndarray]:
        """(r, c) float32 of each part."""
        images = tuple(x[rows] for x in self.images)
        captions = tuple(x[columns] for x in self.captions)
        scores = scores_of(self.model, self.parts, images, captions)
        return [matrix.float().cpu().numpy() for matrix in scores]


@torch.inference_mode()
def encoded(
    model: Matcher, inputs: SplitInputs, parts: tuple[str, ...] = ("",)
) -> Encoded:
    """A split as the model encodes it, its items in an order drawn at random."""
    image_order, caption_order, mixed = shuffled(inputs)
    watch = Stopwatch(inputs.device)
    images = encode_images(model, mixed)
    seconds = {"per_image": watch.lap() / len(image_order)}
    captions = encode_captions(model, mixed)
    seconds["per_caption"] = watch.lap() / len(caption_order)
    return Encoded(
        model=model,
        images=images,
        captions=captions,
        image_order=image_order.numpy(),
        caption_order=caption_order.numpy(),
        first_image=first_equal(mixed.image_rows()),
        first_caption=first_equal(mixed.caption_rows()),
        parts=parts,
        seconds=seconds,
    )


@torch.inference_mode()
def score(model: Matcher, inputs: SplitInputs) -> Tensor:
    """Scores (I, C) float32 of every image of a split with every caption, on the
    model's device."""
    image_order, caption_order, mixed = shuffled(inputs)
    images, captions = encode_images(model, mixed), encode_captions(model, mixed)
    matrix = score_pairs(model.similarity, images, captions)
    restored = torch.empty_like(matrix)
    restored[image_order[:, None], caption_order] = matrix
    return restored


@torch.inference_mode()
def score_proposals(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Scores (N, P) float32 of every phrase with the proposals of its image, on the
    host."""
    scores = torch.full(inputs.ious.shape, torch.nan)
    drawn, proposals = orders(*inputs.ious.shape)
    order = drawn[inputs.image_of_phrase[drawn].argsort(stable=True)]
    image_of_row = inputs.image_of_phrase[order]
    images, counts = image_of_row.unique_consecutive(return_counts=True)
    on_device = proposals.to(inputs.device)
    for image, rows in zip(images.tolist(), order.split(counts.tolist()), strict=True):
        of_image = inputs.phrases_at(inputs.vector_of_phrase[rows])
        phrases = model.encode_captions(of_image)
        regions = model.encode_images(inputs.proposals_of(image)[on_device])
        scores_PN = model.similarity(regions, phrases).float()
        scores[rows[:, None], proposals] = scores_PN.T.cpu()
    return scores


@torch.inference_mode()
def nearest_regions(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Score (I, V) float32 of every image's best proposal for every distinct phrase of
    the split, in the order of their rows, on the host. NaN for an image without
    proposals. Raises RefusedError for scores that are not finite."""
    wanted = inputs.vector_of_phrase.unique()
    scores = torch.full((len(inputs.proposals), len(wanted)), torch.nan)
    phrases = model.encode_captions(inputs.phrases_at(wanted))
    has_proposals = inputs.boxes.any(-1).any(-1)
    for image in has_proposals.nonzero()[:, 0].tolist():
        regions = model.encode_images(inputs.present_proposals_of(image))
        scores[image] = model.similarity(regions, phrases).amax(0).float().cpu()
    check_finite(scores[has_proposals].numpy())
    return scores


def encode_images(model: Matcher, inputs: SplitInputs) -> Encoding:
    """Encodings of all images, in order."""
    chunks = spans(len(inputs.images), ENCODE_CHUNK)
    return joined([model.encode_images(inputs.images_at(rows)) for rows in chunks])


def encode_captions(model: Matcher, inputs: SplitInputs) -> Encoding:
    """Encodings of all captions, in order."""
    chunks = spans(len(inputs.image_of_caption), ENCODE_CHUNK)
    return joined([model.encode_captions(inputs.captions_at(rows)) for rows in chunks])


def sentence_scores(
    model: Matcher, inputs: SplitInputs
) -> Iterator[tuple[Tensor, Tensor]]:
    """Scores (Q, C) of captions with all captions, one block of queries at a time:
    the rows of the queries, (Q,) on the host in an order drawn at random, and their
    scores."""
    _, order, mixed = shuffled(inputs)
    first = torch.from_numpy(first_equal(mixed.caption_rows()))
    with torch.inference_mode():
        captions = encode_captions(model, mixed)
    for rows in spans(len(order), ENCODE_CHUNK):
        # not around the yield: the mode would leak to the caller
        with torch.inference_mode():
            block = tuple(x[rows] for x in captions)
            scores = model.caption_similarity(block, captions).float()
            scores = scores[:, first.to(scores.device)]
            restored = torch.empty_like(scores)
            restored[:, order.to(scores.device)] = scores
        yield order[rows], restored


def scores_of(
    model: Matcher, parts: Sequence[str], images: Encoding, captions: Encoding
) -> list[Tensor]:
    """The scores (I, C) of a model that `parts` name; "": its similarity."""
    named = model.scores(images, captions) if any(parts) else {}
    scores = []
    for part in parts:
        scores.append(named[part] if part else model.similarity(images, captions))
    return scores


def shuffled(inputs: SplitInputs) -> tuple[Tensor, Tensor, SplitInputs]:
    """Random orders of the images and of the captions, and the inputs in them."""
    image_order, order = orders(len(inputs.images), len(inputs.image_of_caption))
    return image_order, order, inputs.chosen(image_order, order)


def orders(first: int, second: int) -> tuple[Tensor, Tensor]:
    """Random orders of two kinds of items, the same in every run and for every
    model."""
    rng = np.random.default_rng(ORDER)
    of_first, of_second = rng.permutation(first), rng.permutation(second)
    return torch.from_numpy(of_first), torch.from_numpy(of_second)


@torch.inference_mode()
def score_pairs(
    similarity: Similarity,
    images: Encoding,
    captions: Encoding,
    tile: tuple[int, int] = (IMAGE_TILE, CAPTION_TILE),
) -> Tensor:
    """Scores (I, C) float32 of all pairs, computed in tiles (images, captions).
    Captions are sorted by length first, so that tiles hold little padding."""
    num_images, num_captions = len(images[0]), len(captions[0])
    device = images[0].device
    matrix = torch.empty((num_images, num_captions), dtype=torch.float32, device=device)
    order, last = torch.arange(num_captions, device=device), captions[-1]
    # it counts the words of each caption
    if last.dim() == 1 and not last.is_floating_point():
        order = last.argsort(stable=True)
    for columns in order.split(tile[1]):
        of_columns = tuple(x[columns] for x in captions)
        for rows in spans(num_images, tile[0]):
            of_rows = tuple(x[rows] for x in images)
            matrix[rows, columns] = similarity(of_rows, of_columns).float()
    return matrix


def joined(parts: list[Encoding]) -> Encoding:
    """One encoding of all items. Axis 1 may have another width in each part, as of
    words: it is padded with zeros."""
    whole = []
    for tensors in zip(*parts, strict=True):
        width = max(x.shape[1] if x.dim() > 1 else 0 for x in tensors)
        inner = (0, 0) * (tensors[0].dim() - 2)  # `pad` begins at the last axis
        if not all(x.dim() < 2 or x.shape[1] == width for x in tensors):
            tensors = [pad(x, (*inner, 0, width - x.shape[1])) for x in tensors]
        whole.append(torch.cat(tensors))
    return tuple(whole)
