"""Stacked Cross Attention (SCAN). Lee, Chen, Hua, Hu, He, ECCV 2018 (paper 004).

Reference code: github.com/kuanghuei/SCAN at 8063557.
Departs from both, with equal values:
- images are not repeated per caption: the cosine of a word and its attended image is
  sum_k(a_k s_k) / sqrt(a^T G a), with G the Gram matrix of the regions (and the words' Gram
  matrix in the other direction), so nothing of width D follows the region-word products;
- the softmax of Eq. 3 is not divided by its sum, which cancels in the cosine of Eq. 4;
- hardest negatives are found without gradients, then only the 3 B pairs that Eq. 12 names are
  scored again with them.
Assumed where paper and code differ or are silent: a second caption of the same image is not a
negative (the code masks the diagonal only: `other_captions_negative`); [x]+ is a hard threshold
(the code leaks 0.1: `leak`); <start> and <end> are words, as in the code.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from methods import Batch, Captions, Encoding, Inputs, Phase, Sizes

INPUTS = Inputs(image="regions", text="tokens")

# Shape legend, beyond methods/__init__.py: P items attended to (contexts) of k parts,
# Q items that attend (queries) of n parts, N matched pairs.


@dataclass(frozen=True, kw_only=True)
class Config:
    direction: str = "t2i"  # Section 3.1: who attends; t2i: words attend to regions
    pooling: str = "avg"  # Eqs. 5 to 8: "lse" or "avg"
    lambda1: float = 9.0  # Eq. 3 inverse temperature; Table 1: 9 for t-i, 4 for i-t
    lambda2: float = 6.0  # Eq. 5; Table 1: 6 for t-i LSE, 5 for i-t LSE
    embedding_size: int = 1024  # appendix A, GRU and joint space
    word_size: int = 300  # appendix A
    margin: float = 0.2  # appendix A, Eq. 12
    leak: float = 0.0  # Section 3.1: [x]+; official code: LeakyReLU(0.1)
    other_captions_negative: bool = False  # assumed; official code: True
    batch_size: int = 128  # appendix A
    clip_norm: float = 2.0  # appendix A
    learning_rate: float = 0.0002  # appendix A, Flickr30K
    epochs: int = 30  # appendix A: 15 + 15
    decay_after: int = 15  # appendix A: learning rate / 10 from here on
    min_count: int = 4  # official vocab.py: rarer words become <unk>

    def __post_init__(self) -> None:
        if self.direction not in ("t2i", "i2t"):
            raise ValueError(f"direction: expected t2i or i2t, found {self.direction!r}")
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling: expected {' or '.join(POOLINGS)}, found {self.pooling!r}")


def recipe(config: Config) -> list[Phase]:
    """Appendix A: Adam, a tenth of the learning rate after half of the epochs."""
    rates = [
        config.learning_rate * (1.0 if epoch < config.decay_after else 0.1)
        for epoch in range(config.epochs)
    ]
    phase = Phase(
        epochs=config.epochs,
        learning_rates=tuple(rates),
        batch_size=config.batch_size,
        clip_norm=config.clip_norm,
    )
    return [phase]


def attention(s_PkQn: Tensor, lambda1: float, leak: float) -> Tensor:
    """Unnormalised attention of every query part over its context parts, Eqs. 2 and 3.

    s is thresholded and normalised over the parts of the query: regions i for Image-Text
    (below Eq. 1), words j for Text-Image. Padding has s = 0 and drops out of the norm.
    """
    kept = F.leaky_relu(s_PkQn, leak) if leak else F.relu(s_PkQn)
    norm = kept.square().sum(-1, keepdim=True).clamp_min(1e-16).sqrt()
    return torch.exp(kept * (lambda1 / norm))


def relevance(s_PkQn: Tensor, gram_Pkk: Tensor, a_PkQn: Tensor) -> Tensor:
    """R, Eq. 4: cosine of each query part and what it attends to, shape (P, Q, n)."""
    P, k, Q, n = s_PkQn.shape
    dot_PQn = (a_PkQn * s_PkQn).sum(1)
    seen_PkQn = torch.bmm(gram_Pkk, a_PkQn.view(P, k, Q * n)).view(P, k, Q, n)
    squared_PQn = (a_PkQn * seen_PkQn).sum(1)
    return dot_PQn * squared_PQn.clamp_min(1e-16).rsqrt()


def log_sum_exp(R_PQn: Tensor, mask_Qn: Tensor, lambda2: float) -> Tensor:
    """Eqs. 5 and 7 over the parts that are not padding."""
    return torch.logsumexp((lambda2 * R_PQn).masked_fill(~mask_Qn, -math.inf), -1) / lambda2


def average(R_PQn: Tensor, mask_Qn: Tensor, lambda2: float) -> Tensor:
    """Eqs. 6 and 8 over the parts that are not padding."""
    return (R_PQn * mask_Qn).sum(-1) / mask_Qn.sum(-1)


POOLINGS = {"lse": log_sum_exp, "avg": average}


class Model(nn.Module):
    """Scores pairs by stacked cross attention; an image is its regions, a caption its words.

    Encodings: images (regions (I, R, D), region lengths (I,)); captions (words (C, W, D) with
    zeros for padding, lengths (C,)).
    """

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        D = config.embedding_size
        self.project = nn.Linear(sizes.image, D)  # Eq. 13
        self.embed = nn.Embedding(sizes.text, config.word_size, padding_idx=0)
        self.gru = nn.GRU(config.word_size, D, batch_first=True, bidirectional=True)
        nn.init.xavier_uniform_(self.project.weight)  # official code
        nn.init.zeros_(self.project.bias)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)  # official code

    def encode_images(self, images: Tensor) -> Encoding:
        regions_IRD = F.normalize(self.project(images), dim=-1)
        lengths_I = torch.full((len(images),), images.shape[1], device=images.device)
        return regions_IRD, lengths_I

    def encode_captions(self, captions: Captions) -> Encoding:
        """Eqs. 14 to 16, each word on the unit sphere so that Eq. 1 is a product."""
        packed = pack_padded_sequence(
            self.embed(captions.values),
            captions.lengths.cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        states_CWDD, _ = pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=captions.values.shape[1]
        )
        forward, backward = states_CWDD.chunk(2, dim=-1)
        return F.normalize((forward + backward) / 2, dim=-1), captions.lengths

    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """S(I, T), shape (I, C)."""
        queries, contexts = self._roles(images, captions)
        parts_Qnd, parts_Pkd = _trimmed(queries), _trimmed(contexts)
        Q, n, D = parts_Qnd.shape
        P, k, _ = parts_Pkd.shape
        s_PkQn = (parts_Pkd.reshape(P * k, D) @ parts_Qnd.reshape(Q * n, D).T).view(P, k, Q, n)
        mask_Pk, mask_Qn = _mask(contexts[1], k), _mask(queries[1], n)
        scores_PQ = self._pooled(s_PkQn, parts_Pkd, mask_Pk, mask_Qn)
        return scores_PQ if self.config.direction == "t2i" else scores_PQ.T

    def pair_similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """S of image i and caption i, shape (N,): `similarity`'s diagonal without the rest."""
        queries, contexts = self._roles(images, captions)
        parts_Nnd, parts_Nkd = _trimmed(queries), _trimmed(contexts)
        s_Nk1n = torch.bmm(parts_Nkd, parts_Nnd.transpose(1, 2)).unsqueeze(2)
        mask_Nk = _mask(contexts[1], parts_Nkd.shape[1])
        mask_N1n = _mask(queries[1], parts_Nnd.shape[1]).unsqueeze(1)
        return self._pooled(s_Nk1n, parts_Nkd, mask_Nk, mask_N1n).squeeze(1)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 12, summed over the batch as in the official code."""
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        hardest_caption_B, hardest_image_B = self._hardest(images, captions, batch.image_ids)
        rows = torch.arange(len(batch.image_ids), device=batch.image_ids.device)
        image_rows = torch.cat([rows, rows, hardest_image_B])
        caption_rows = torch.cat([rows, hardest_caption_B, rows])
        matched_B, wrong_caption_B, wrong_image_B = self.pair_similarity(
            tuple(x.index_select(0, image_rows) for x in images),
            tuple(x.index_select(0, caption_rows) for x in captions),
        ).chunk(3)
        margin = self.config.margin
        return {
            "image_anchor": F.relu(margin - matched_B + wrong_caption_B).sum(),
            "caption_anchor": F.relu(margin - matched_B + wrong_image_B).sum(),
        }

    @torch.no_grad()
    def _hardest(
        self, images: Encoding, captions: Encoding, image_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For each row the best-scored wrong caption, and the best-scored wrong image.

        A row without any negative (all rows show one image) names itself, which costs the margin
        but moves no weight.
        """
        scores_BB = in_tiles(self.similarity, images, captions)
        if self.config.other_captions_negative:
            matched_BB = torch.eye(len(image_ids), dtype=torch.bool, device=image_ids.device)
        else:
            matched_BB = image_ids[:, None] == image_ids[None, :]
        scores_BB = scores_BB.masked_fill(matched_BB, -math.inf)
        scores_BB.fill_diagonal_(torch.finfo(scores_BB.dtype).min)
        return scores_BB.argmax(1), scores_BB.argmax(0)

    def _roles(self, images: Encoding, captions: Encoding) -> tuple[Encoding, Encoding]:
        """(queries, contexts): words attend to regions, or regions to words."""
        return (captions, images) if self.config.direction == "t2i" else (images, captions)

    def _pooled(self, s_PkQn: Tensor, parts_Pkd: Tensor, mask_Pk: Tensor, mask_Qn: Tensor):
        a_PkQn = attention(s_PkQn, self.config.lambda1, self.config.leak)
        a_PkQn = a_PkQn * mask_Pk[:, :, None, None]
        gram_Pkk = torch.bmm(parts_Pkd, parts_Pkd.transpose(1, 2))
        R_PQn = relevance(s_PkQn, gram_Pkk, a_PkQn)
        return POOLINGS[self.config.pooling](R_PQn, mask_Qn, self.config.lambda2)


def in_tiles(similarity, images: Encoding, captions: Encoding, size: int = 16) -> Tensor:
    """`similarity` of all pairs, a few images at a time: the products of a tile stay in cache."""
    parts = zip(*(x.split(size) for x in images), strict=True)
    return torch.cat([similarity(part, captions) for part in parts])


def _trimmed(parts: Encoding) -> Tensor:
    """The parts without the columns that are padding in every row."""
    return parts[0][:, : int(parts[1].max())]


def _mask(lengths: Tensor, width: int) -> Tensor:
    return torch.arange(width, device=lengths.device) < lengths[:, None]
