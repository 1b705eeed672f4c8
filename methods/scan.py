"""Stacked Cross Attention (SCAN). Lee, Chen, Hua, Hu, He, ECCV 2018 (paper 004).

Reference code: github.com/kuanghuei/SCAN at 8063557 (it has no Sum-Max).
Differs from both in how it computes, with equal results:
- images are not repeated per caption: the cosine of a word and its attended image is
  sum_k(a_k s_k) / sqrt(a^T G a), with G the Gram matrix of the regions (and the words' Gram
  matrix in the other direction), so nothing of width D follows the region-word products;
- the softmax of Eq. 3 is not divided by its sum, which cancels in the cosine of Eq. 4;
- hardest negatives are found without gradients, then only the 3 B pairs of Eq. 12 scored with them.
Assumed where paper and code differ or are silent:
- a second caption of the same image is no negative (`other_captions_negative`; the code masks the
  diagonal only); for Eq. 11 negatives are rows: an image that fills several rows counts in each;
- [x]+ is a hard threshold (`leak`; the code leaks 0.1); <start> and <end> are words (code);
- where images are not normalised, s of Eq. 1 is v . e with unit e, as in the code, and R of Eq. 4
  still a cosine; a one-directional GRU reads forwards, as in the code;
- Sum-Max takes unit vectors: aggregation is the "only difference" (Section 4.4).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Count,
    Encoding,
    Fraction,
    Inputs,
    NotApplicableError,
    OptionError,
    Phase,
    Rate,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.losses import differ
from benchmark.layers.precision import in_float32, unit
from benchmark.layers.recurrence import states

# Shape legend, beyond benchmark/contracts/methods.py: P items attended to (contexts) of k parts,
# Q items that attend (queries) of n parts, N matched pairs. Q comes last, so that sums over the
# parts of either kind add whole rows.


@dataclass(frozen=True, kw_only=True)
class Config:
    direction: str = "t2i"  # Section 3.1: who attends; t2i: words attend to regions
    attention: bool = True  # Section 3.1; False, with pooling "sum": Sum-Max, Eqs. 9 and 10
    pooling: str = "avg"  # Eqs. 5 to 8: "lse" or "avg"; Table 4: "sum" or "max"
    lambda1: Weight = 9.0  # Eq. 3 inverse temperature; Table 1: 9 for t-i, 4 for i-t
    lambda2: Rate = 6.0  # Eq. 5; Table 1: 6 for t-i LSE, 5 for i-t LSE
    regions: Size = 36  # appendix B, the most salient ones
    normalise_images: bool = True  # Eq. 1; Table 4: False
    bidirectional: bool = True  # Section 3.4; Table 4: False
    embedding_size: Size = 1024  # appendix A, GRU and joint space
    word_size: Size = 300  # appendix A
    margin: Weight = 0.2  # appendix A, Eq. 12
    hard_negatives: bool = True  # Eq. 12; Table 4: False, Eq. 11
    leak: Fraction = 0.0  # Section 3.1: [x]+; official code: LeakyReLU(0.1)
    other_captions_negative: bool = False  # assumed; official code: True
    batch_size: Size = 128  # appendix A
    clip_norm: Rate = 2.0  # appendix A
    learning_rate: Rate = 0.0002  # appendix A, Flickr30K
    trains: bool = True  # Table 5, last two rows: False keeps the weights it starts from
    epochs: Size = 30  # appendix A: 15 + 15
    decay_after: Count = 15  # appendix A: learning rate / 10 from here on
    min_count: Size = 4  # official vocab.py: rarer words become <unk>

    def __post_init__(self) -> None:
        if self.direction not in ("t2i", "i2t"):
            raise OptionError("direction", "t2i or i2t", self.direction)
        if self.pooling not in POOLINGS:
            raise OptionError("pooling", " or ".join(POOLINGS), self.pooling)
        if self.regions < 1:
            raise OptionError("regions", "1 or more", self.regions)


def inputs(config: Config) -> Inputs:
    return Inputs(
        image="regions",
        text="tokens",
        min_count=config.min_count,
        attention=config.attention and config.direction == "t2i",
    )


def recipe(config: Config) -> list[Phase]:
    """Appendix A: Adam, a tenth of the learning rate after half of the epochs."""
    c = config
    rates = tuple(c.learning_rate * (1.0 if e < c.decay_after else 0.1) for e in range(c.epochs))
    phase = Phase(
        epochs=c.epochs, learning_rates=rates, batch_size=c.batch_size, clip_norm=c.clip_norm
    )
    return [phase] if config.trains else []


def times(x: Tensor, y: Tensor) -> Tensor:
    """x * y, in the memory of x where no gradient needs it."""
    return x * y if torch.is_grad_enabled() else x.mul_(y)


def attention(s_PknQ: Tensor, lambda1: float, leak: float) -> Tensor:
    """Unnormalised attention of every query part over its context parts, Eqs. 2 and 3.

    s is thresholded and normalised over the parts of the query: regions i for Image-Text
    (below Eq. 1), words j for Text-Image. Padding has s = 0 and drops out of the norm.
    """
    kept = F.leaky_relu(s_PknQ, leak) if leak else F.relu(s_PknQ)
    squared = kept.square().sum(2, keepdim=True).clamp_min(1e-16)
    return times(kept, lambda1 * squared.rsqrt()).exp_()


def relevance(s_PknQ: Tensor, gram_Pkk: Tensor, a_PknQ: Tensor) -> Tensor:
    """R, Eq. 4, of unit query parts: cosine with what each attends to, shape (P, n, Q).

    Context parts that are padding are zeros: in s and in G, so that they take no part.
    """
    dot_PnQ = times(s_PknQ, a_PknQ).sum(1)
    seen_PknQ = torch.bmm(gram_Pkk, a_PknQ.flatten(2)).view_as(a_PknQ)
    squared_PnQ = times(seen_PknQ, a_PknQ).sum(1)
    return dot_PnQ * squared_PnQ.clamp_min(1e-16).rsqrt()


def log_sum_exp(R_PnQ: Tensor, mask_nQ: Tensor, lambda2: float) -> Tensor:
    """Eqs. 5 and 7 over the parts that are not padding."""
    return torch.logsumexp((lambda2 * R_PnQ).masked_fill(~mask_nQ, -math.inf), 1) / lambda2


def average(R_PnQ: Tensor, mask_nQ: Tensor, lambda2: float) -> Tensor:
    """Eqs. 6 and 8 over the parts that are not padding."""
    return (R_PnQ * mask_nQ).sum(1) / mask_nQ.sum(-2)


def summation(R_PnQ: Tensor, mask_nQ: Tensor, lambda2: float) -> Tensor:
    """SUM of Table 4, and the sum of Eqs. 9 and 10."""
    return (R_PnQ * mask_nQ).sum(1)


def maximum(R_PnQ: Tensor, mask_nQ: Tensor, lambda2: float) -> Tensor:
    """MAX of Table 4."""
    return R_PnQ.masked_fill(~mask_nQ, -math.inf).amax(1)


# Contexts and queries of a tile. On a CPU what follows its product stays in cache; on a GPU one
# call does much.
TILE, GPU_TILE = (16, 32), (128, 256)
POOLINGS = {"lse": log_sum_exp, "avg": average, "sum": summation, "max": maximum}


def all_negatives(scores_BB: Tensor, negative_BB: Tensor, margin: float) -> dict[str, Tensor]:
    """Eq. 11, summed over the batch; scores_BB[i, c] is S of image i and caption c."""
    matched_B = scores_BB.diagonal()
    return {
        "image_anchor": (F.relu(margin - matched_B[:, None] + scores_BB) * negative_BB).sum(),
        "caption_anchor": (F.relu(margin - matched_B[None, :] + scores_BB) * negative_BB).sum(),
    }


def hardest_negatives(scores_3B: Tensor, margin: float) -> dict[str, Tensor]:
    """Eq. 12, summed over the batch as in the official code, from the scores of `triplets`."""
    matched_B, wrong_caption_B, wrong_image_B = scores_3B.chunk(3)
    return {
        "image_anchor": F.relu(margin - matched_B + wrong_caption_B).sum(),
        "caption_anchor": F.relu(margin - matched_B + wrong_image_B).sum(),
    }


def triplets(scores_BB: Tensor, negative_BB: Tensor) -> tuple[Tensor, Tensor]:
    """Image and caption (3B,) of the pairs that Eq. 12 names: every row's own, then its image with
    the hardest caption, then the hardest image with its caption.

    A row without any negative (all rows show one image) names itself, which costs the margin but
    moves no weight.
    """
    wrong_BB = scores_BB.masked_fill(~negative_BB, -math.inf)
    wrong_BB.fill_diagonal_(torch.finfo(wrong_BB.dtype).min)
    rows = torch.arange(len(wrong_BB), device=wrong_BB.device)
    return torch.cat([rows, rows, wrong_BB.argmax(0)]), torch.cat([rows, wrong_BB.argmax(1), rows])


class Model(nn.Module):
    """Encodings: regions (I, R, D) and how many (I,); words (C, W, D), zeros for padding, and
    lengths (C,)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        D = config.embedding_size
        self.project = nn.Linear(sizes.image, D)  # Eq. 13
        self.embed = nn.Embedding(sizes.text, config.word_size, padding_idx=0)
        self.gru = nn.GRU(config.word_size, D, batch_first=True, bidirectional=config.bidirectional)
        nn.init.xavier_uniform_(self.project.weight)  # official code
        nn.init.zeros_(self.project.bias)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)  # official code

    def encode_images(self, images: Tensor) -> Encoding:
        """Eq. 13, each region on the unit sphere unless `normalise_images` is off."""
        k = self.config.regions
        if images.shape[1] < k:
            raise NotApplicableError(f"regions: expected {k} or more, found {images.shape[1]}")
        regions_IRD = self.project(images[:, :k])
        if self.config.normalise_images:
            regions_IRD = unit(regions_IRD)
        return regions_IRD, torch.full((len(images),), k, device=images.device)

    def encode_captions(self, captions: Captions) -> Encoding:
        """Eqs. 14 to 16, each word on the unit sphere so that Eq. 1 is a product."""
        states_CWX = states(self.gru, self.embed(captions.values), captions)
        directions_CWXD = states_CWX.unflatten(-1, (-1, self.config.embedding_size))
        return unit(directions_CWXD.mean(-2)), captions.lengths

    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """S(I, T), shape (I, C)."""
        return self._all_pairs(images, captions, True)

    @in_float32
    def pair_similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """S of image i and caption i, shape (N,): `similarity`'s diagonal without the rest."""
        (parts_Nnd, mask_Nn), (parts_Nkd, mask_Nk) = self._roles(images, captions)
        s_Nkn1 = torch.bmm(parts_Nkd, parts_Nnd.transpose(1, 2)).unsqueeze(3)
        queries = parts_Nnd.unsqueeze(2), mask_Nn.unsqueeze(2)
        return self._pooled(s_Nkn1, queries, (gram(parts_Nkd), mask_Nk)).squeeze(1)

    @in_float32
    def attention(self, images: Encoding, captions: Encoding) -> Tensor:
        """alpha' of Section 3.1, the softmax over the regions, of each word of caption b for the
        regions of image b: (B, W, R). Text-Image alone has it."""
        if not inputs(self.config).attention:
            raise NotApplicableError("attention: expected the direction t2i with attention")
        regions_Bkd, words_Bnd = images[0], captions[0]
        s_Bkn1 = torch.bmm(regions_Bkd, words_Bnd.transpose(1, 2)).unsqueeze(3)
        a_Bkn = attention(s_Bkn1, self.config.lambda1, self.config.leak).squeeze(3)
        return (a_Bkn / a_Bkn.sum(1, keepdim=True)).transpose(1, 2)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 12, or Eq. 11."""
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        ids, margin = batch.group_ids, self.config.margin
        if self.config.other_captions_negative:
            ids = torch.arange(len(ids), device=ids.device)
        if self.config.hard_negatives:
            return hardest_negatives(self._triplets(images, captions, differ(ids)), margin)
        scores_BB = self._all_pairs(images, captions, _is_on_cpu(images))
        return all_negatives(scores_BB, differ(ids), margin)

    def _triplets(self, images: Encoding, captions: Encoding, negative_BB: Tensor) -> Tensor:
        """S (3B,) of the pairs that Eq. 12 names; gradients flow through these only."""
        with torch.no_grad():
            scores_BB = self._all_pairs(images, captions, _is_on_cpu(images))
        image_rows, caption_rows = triplets(scores_BB, negative_BB)
        return self.pair_similarity(
            tuple(rows_of(x, image_rows) for x in images),
            tuple(rows_of(x, caption_rows) for x in captions),
        )

    @in_float32
    def _all_pairs(self, images: Encoding, captions: Encoding, trims: bool) -> Tensor:
        """S(I, T), shape (I, C), in tiles that stay in cache. To trim the padding of tiles a GPU
        waits once for the lengths of images, and once for those of captions."""
        P_size, Q_size = TILE if _is_on_cpu(images) else GPU_TILE
        (queries, columns), (contexts, rows) = (
            tiles(items, size, trims)
            for items, size in zip(self._roles(images, captions), (Q_size, P_size), strict=True)
        )
        queries = [(parts_Qnd.transpose(0, 1).contiguous(), mask.T) for parts_Qnd, mask in queries]
        scores_PQ = torch.cat([self._of_contexts(context, queries) for context in contexts])
        scores_PQ = scores_PQ.index_select(0, rows).index_select(1, columns)
        return scores_PQ if self.config.direction == "t2i" else scores_PQ.T

    def _of_contexts(self, contexts: Encoding, queries: list[Encoding]) -> Tensor:
        """S (P, all Q) of a tile of contexts; queries are tiles of parts (n, Q, d) and mask."""
        (P, k, _), gram_Pkk, scores = contexts[0].shape, gram(contexts[0]), []
        for parts_nQd, mask_nQ in queries:
            (n, Q, _), parts_kd = parts_nQd.shape, contexts[0].flatten(0, 1)
            s_PknQ = (parts_kd @ parts_nQd.flatten(0, 1).T).view(P, k, n, Q)
            scores.append(self._pooled(s_PknQ, (parts_nQd, mask_nQ), (gram_Pkk, contexts[1])))
        return torch.cat(scores, 1)

    def _roles(self, images: Encoding, captions: Encoding) -> tuple[Encoding, Encoding]:
        """(queries, contexts), parts and mask each: words attend to regions, or the reverse."""
        regions, words = (
            (parts, torch.arange(parts.shape[1], device=parts.device) < lengths[:, None])
            for parts, lengths in (images, captions)
        )
        return (words, regions) if self.config.direction == "t2i" else (regions, words)

    def _pooled(self, s_PknQ: Tensor, queries: Encoding, contexts: Encoding) -> Tensor:
        """S from s of Eq. 1, shape (P, Q); queries are parts (n, Q, d) and their mask (n, Q),
        contexts their Gram matrices and mask."""
        (parts_nQd, mask_nQ), (gram_Pkk, mask_Pk), c = queries, contexts, self.config
        if not c.attention:  # Eqs. 9 and 10: the best part alone
            R_PnQ = s_PknQ.masked_fill(~mask_Pk[:, :, None, None], -math.inf).amax(1)
            return POOLINGS[c.pooling](R_PnQ, mask_nQ, c.lambda2)
        R_PnQ = relevance(s_PknQ, gram_Pkk, attention(s_PknQ, c.lambda1, c.leak))
        if not c.normalise_images:
            R_PnQ = R_PnQ / parts_nQd.norm(dim=-1).clamp_min(1e-8)
        return POOLINGS[c.pooling](R_PnQ, mask_nQ, c.lambda2)


def rows_of(items: Tensor, rows: Tensor) -> Tensor:
    """Rows of a tensor. A product's gradient may come transposed, and to add up rows of such a one
    takes several times as long as to copy it first."""
    selected = items.index_select(0, rows)
    if selected.requires_grad:
        selected.register_hook(Tensor.contiguous)
    return selected


def gram(parts_Pkd: Tensor) -> Tensor:
    return torch.bmm(parts_Pkd, parts_Pkd.transpose(1, 2))


def tiles(items: Encoding, size: int, trims: bool) -> tuple[list[Encoding], Tensor]:
    """Items (parts and their mask) by how many parts they have, `size` at a time; and the row of
    each item in that order."""
    parts, mask = items
    counts, order = mask.sum(1).sort(stable=True)
    largest = [block[-1] for block in counts.split(size)]
    widths = torch.stack(largest).tolist() if trims else [mask.shape[1]] * len(largest)
    blocks = [
        (parts[:, :width].index_select(0, rows), mask[:, :width].index_select(0, rows))
        for rows, width in zip(order.split(size), widths, strict=True)
    ]
    return blocks, order.argsort()


def _is_on_cpu(items: Encoding) -> bool:
    return items[0].device.type == "cpu"
