"""A score must follow from its image and its text alone.

A sample of every evaluation is encoded and scored again, in other batches, other tiles and another
order. Scores that hang on the rest of a batch, on the order of the items or on chance differ then,
and the cell fails. What runs in the same process can still cheat on purpose: this catches mistakes.
Each check raises RefusedError where other scores come out.
"""

import numpy as np
import torch
from torch import Tensor

from benchmark.contracts.methods import Encoding, Matcher
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.model_scores import ORDER, joined, score_pairs, scores_of
from benchmark.scoring.relevance import Picked, RefusedError

IMAGES, CAPTIONS, PHRASES = 48, 96, 24  # items that are scored again
CHUNK, TILE = 7, (5, 13)  # other batches and tiles than those of model_scores.py
OF_LARGEST = {torch.float32: 1e-5, torch.bfloat16: 2**-6}  # rounding, as a share of the scores
OF_SPREAD = {torch.float32: 1e-3, torch.bfloat16: 2**-4}  # and of their standard deviation


def sample(images: int, captions: int) -> tuple[np.ndarray, np.ndarray]:
    """The images and the captions that are scored again."""
    rng = np.random.default_rng(ORDER + 1)
    return rng.permutation(images)[:IMAGES], rng.permutation(captions)[:CAPTIONS]


@torch.inference_mode()
def check_retrieval(model: Matcher, inputs: SplitInputs, part: str, picked: Picked) -> None:
    """Compare with the scores of a sample."""
    rows = torch.from_numpy(picked.rows).split(CHUNK)
    again = score_pairs(
        lambda images, captions: scores_of(model, [part], images, captions)[0],
        joined([model.encode_images(inputs.images_at(some)) for some in rows]),
        _captions(model, inputs, picked.columns),
        tile=TILE,
    )
    _compare(torch.from_numpy(picked.scores).to(again), again, inputs.device)


@torch.inference_mode()
def check_sentences(model: Matcher, inputs: SplitInputs, picked: Picked) -> None:
    """The same for captions with captions."""
    rows, columns = (_captions(model, inputs, each) for each in (picked.rows, picked.columns))
    again = score_pairs(model.caption_similarity, rows, columns, tile=TILE)
    _compare(torch.from_numpy(picked.scores).to(again), again, inputs.device)


def _captions(model: Matcher, inputs: SplitInputs, rows: np.ndarray) -> Encoding:
    chunks = torch.from_numpy(rows).to(inputs.device).split(CHUNK)
    return joined([model.encode_captions(inputs.captions_at(some)) for some in chunks])


@torch.inference_mode()
def check_localisation(model: Matcher, inputs: PhraseInputs, matrix_NP: Tensor) -> None:
    """The same for phrases, one at a time, and the proposals of their images."""
    rows = np.random.default_rng(ORDER + 1).permutation(len(matrix_NP))[:PHRASES]
    again = []
    for row in rows.tolist():
        proposals = inputs.proposals_of(int(inputs.image_of_phrase[row])).split(CHUNK)
        regions = joined([model.encode_images(some) for some in proposals])
        phrase = model.encode_captions(inputs.phrases_at(inputs.vector_of_phrase[row : row + 1]))
        again.append(model.similarity(regions, phrase).float().T.cpu())
    _compare(matrix_NP[rows], torch.cat(again), inputs.device)


@torch.inference_mode()
def check_nearest_regions(model: Matcher, inputs: PhraseInputs, nearest_IV: Tensor) -> None:
    """The same for the best proposals of whole images."""
    wanted = inputs.vector_of_phrase.unique()
    images, phrases = (torch.from_numpy(x) for x in sample(*nearest_IV.shape))
    images = images[~nearest_IV[images].isnan().any(1)]
    chunks = wanted[phrases].split(CHUNK)
    texts = joined([model.encode_captions(inputs.phrases_at(some)) for some in chunks])
    again = []
    for image in images.tolist():
        proposals = inputs.present_proposals_of(image).split(CHUNK)
        regions = joined([model.encode_images(some) for some in proposals])
        again.append(score_pairs(model.similarity, regions, texts, tile=TILE).amax(0).cpu())
    if again:
        _compare(nearest_IV[images][:, phrases], torch.stack(again), inputs.device)


def _compare(first: Tensor, again: Tensor, device: torch.device) -> None:
    """Scores that `device` computed. Values that are not finite are refused elsewhere."""
    is_cast = torch.is_autocast_enabled(device.type)
    precision = torch.get_autocast_dtype(device.type) if is_cast else torch.float32
    first, again = first.double(), again.double()  # differences of large scores would overflow
    spread = first.std(correction=0)  # 0 of a single score
    rounding = OF_LARGEST[precision] * first.abs().max() + OF_SPREAD[precision] * spread
    difference = (first - again).abs()
    if first.isfinite().all() and not (difference <= rounding).all():
        raise RefusedError(
            f"{int((difference > rounding).sum())} of {first.numel()} scores differ when they are "
            f"computed again in other batches and another order, by up to "
            f"{float(difference.max()):.3g} where scores spread by {float(spread):.3g}; "
            f"a score must follow from its image and its text alone"
        )
