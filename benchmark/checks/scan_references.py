"""SCAN at the sizes of its paper (004), and the plain way to compute it, to measure against.

Frozen: what is measured against must not change with what is measured.
"""

import torch
from torch import Tensor

from methods import Batch, Captions, Encoding, Sizes, scan

REGIONS, FEATURES, SIZE, BATCH = 36, 2048, 1024, 128  # appendices A and B
SHORTEST, LONGEST, WORDS = 8, 17, 8481  # of Flickr30K's captions, and its vocabulary
MARGIN = 0.2  # appendix A


def words(rows: int) -> Captions:
    lengths = torch.randint(SHORTEST, LONGEST + 1, (rows,))
    values = torch.randint(4, WORDS, (rows, LONGEST)) * (torch.arange(LONGEST) < lengths[:, None])
    return Captions(values=values, lengths=lengths)


def scan_model(direction: str) -> scan.Model:
    return scan.Model(scan.Config(direction=direction), Sizes(image=FEATURES, text=WORDS))


def scan_batch() -> Batch:
    images = torch.randn(BATCH, REGIONS, FEATURES)
    return Batch(images=images, captions=words(BATCH), group_ids=torch.arange(BATCH))


def bare_product(regions: Tensor, kept_words: Tensor) -> None:
    """Every region with every word that is not padding, a tile at a time."""
    for tile in regions.split(16):
        tile.flatten(0, 1) @ kept_words.T


def kept_words(captions: Encoding) -> Tensor:
    """(all words, D) without padding."""
    vectors, lengths = captions
    return vectors[torch.arange(vectors.shape[1]) < lengths[:, None]]


def by_caption(direction: str, regions: Tensor, captions: Encoding) -> Tensor:
    """S (I, C) in the authors' way: a loop over captions that builds every attended vector."""
    columns = []
    for vectors, length in zip(*captions, strict=True):
        e_nD = vectors[:length]
        s_Ikn = (regions @ e_nD.T).relu()  # Eq. 1, of unit vectors
        if direction == "t2i":
            weights = (9 * s_Ikn / s_Ikn.norm(dim=2, keepdim=True).clamp_min(1e-8)).softmax(1)
            attended = weights.transpose(1, 2) @ regions  # Eqs. 2 and 3
            relevance = torch.cosine_similarity(attended, e_nD.expand_as(attended), dim=-1)  # Eq. 4
        else:
            weights = (9 * s_Ikn / s_Ikn.norm(dim=1, keepdim=True).clamp_min(1e-8)).softmax(2)
            relevance = torch.cosine_similarity(weights @ e_nD, regions, dim=-1)
        columns.append(relevance.mean(1))  # Eqs. 6 and 8
    return torch.stack(columns, 1)


def authors_loss(direction: str, model: scan.Model, batch: Batch) -> Tensor:
    """Eq. 12 from the scores of all pairs."""
    images, captions = model.encode_images(batch.images), model.encode_captions(batch.captions)
    scores = by_caption(direction, images[0], captions)
    wrong = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    hinge = MARGIN - scores.diagonal()
    return ((hinge + wrong.amax(1)).relu() + (hinge + wrong.amax(0)).relu()).sum()
