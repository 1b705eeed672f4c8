"""Two-branch embedding network for phrases and regions. Wang, Li, Huang, Lazebnik, TPAMI 2019
(paper 002, Sections 3 and 4, Algorithm 1).

Reference code: none for phrases; that for sentences, github.com/lwwang/Two_branch_network, where
the paper is silent. Assumed:
- the margin is that of sentences (0.05), which the paper names for sentences only;
- each loss term is the mean over its rows x K slots, empty ones included (code; Eq. 6 sums), so
  that the paper's learning rate keeps its meaning;
- a drawn region is a proposal (step 2), the true one where none is near enough; IoU is at least
  0.7 (Algorithm 1; Section 4.1 has more than 0.7);
- whether y' is a negative depends on its chain alone (step 3a): the same words about another
  image are one;
- with neighbourhood sampling both phrases of a chain meet one target region, and a drawn phrase
  two regions, different ones where there are two; the sibling and the second region are no targets
  themselves: as the paper counts, twice as many triplets. A chain with a single phrase has it as
  the second one, too;
- neighbours of a region (Eq. 4) are the two regions of its phrase, either of them as x_i; x_k are
  the wrong regions of step 3b, as regions of other images may show the same phrase;
- neighbours of a phrase (Eq. 5) are the others of its chain in the batch, pair by pair;
- Adam starts anew with the neighbourhood terms, and its rate is constant ("initial", no decay);
- the last epoch counts, without a choice on validation: the paper gives numbers of epochs;
- the batch norm of regions sees the true ones and all proposals of the batch's images;
- FC layers start from Glorot's uniform distribution with zero bias (code).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Captions,
    Encoding,
    Fraction,
    Inputs,
    OptionError,
    Phase,
    Rate,
    RegionBatch,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.branches import (
    encode_regions,
    linear_branch,
    nonlinear_branch,
    start_from_glorot,
)
from benchmark.layers.losses import (
    differ,
    distance,
    draw,
    hardest_triplets,
    pairs_within,
    text_neighbourhood,
)
from benchmark.layers.precision import in_float32, unit


@dataclass(frozen=True, kw_only=True)
class Config:
    nonlinear: bool = True  # Section 4.2: two FC layers per branch, or the first one only
    hidden_size: Size = 1024  # Section 4.3, both branches
    embedding_size: Size = 512  # Section 4.3
    margin: Weight = 0.05  # assumed, Section 3.2.2 names it for sentences
    lambda1: Weight = 1.0  # Section 4.2, image anchor (of regions); 0: single-directional
    lambda2: Weight = 4.0  # Section 4.2, phrase anchor; 1 if single-directional
    lambda3: Weight = 0.0  # Section 4.2, region neighbourhood; 0.1 with constraints
    lambda4: Weight = 0.0  # Section 4.2, phrase neighbourhood; 0.1 with constraints
    top_k: Size = 30  # Algorithm 1, triplets kept per pair and direction
    augmented: bool = True  # Algorithm 1, step 2: a proposal near the true region, or itself
    positive_iou: Fraction = 0.7  # Algorithm 1, IoU of a positive region, at least
    negative_iou: Fraction = 0.3  # Algorithm 1, below it a region is negative
    neighbourhood_sampling: bool = False  # Algorithm 1, step 3c: two phrases and two regions
    batch_size: Size = 100  # Algorithm 1, pairs
    learning_rate: Rate = 0.001  # Section 4.3
    epochs: Size = 8  # Section 4.3
    constraint_epochs: Size = 2  # Section 4.3, with the neighbourhood terms after the others

    def __post_init__(self) -> None:
        if not self.lambda2:
            raise OptionError("lambda2", "more than 0, the phrase anchor is the task", self.lambda2)
        if (self.lambda3 or self.lambda4) and not self.neighbourhood_sampling:
            given = (self.lambda3, self.lambda4)
            raise OptionError("lambda3, lambda4", "0 without neighbourhood_sampling: true", given)


def inputs(config: Config) -> Inputs:
    return Inputs(task="localisation", image="proposals", text="phrase")


def recipe(config: Config) -> list[Phase]:
    """Section 4.3: Adam, first without the neighbourhood terms, then with all."""
    ranking = ("phrase_anchor", "image_anchor") if config.lambda1 else ("phrase_anchor",)
    phases = [_phase(config, config.epochs, ranking)]
    if config.lambda3 or config.lambda4:
        phases.append(_phase(config, config.constraint_epochs, ()))
    return phases


def _phase(config: Config, epochs: int, terms: tuple[str, ...]) -> Phase:
    return Phase(
        epochs=epochs,
        learning_rates=(config.learning_rate,) * epochs,
        batch_size=config.batch_size,
        captions_per_image=_rows_per_draw(config),
        terms=terms,
        keeps="last",  # 8 epochs are compared with 8 + 2, not with the best of all
    )


@dataclass(frozen=True, kw_only=True)
class Targets:
    """T target phrases, each with S positive regions and the P proposals of its image."""

    phrases: Tensor  # (T, D)
    regions: Tensor  # (T, S, D), the target region first
    proposals: Tensor  # (T, P, D)
    negative: Tensor  # (T, P) bool


def positive_regions(
    true_TD: Tensor, proposals_TPD: Tensor, positive_TP: Tensor, config: Config
) -> Tensor:
    """(T, S, D): the region that each target phrase is paired with, and a second one with
    neighbourhood sampling (Algorithm 1, steps 2 and 3c)."""
    column_TS, drawn_TS = draw(positive_TP, config.augmented + config.neighbourhood_sampling)
    row_T1 = torch.arange(len(true_TD), device=column_TS.device)[:, None]
    near_TSD = proposals_TPD[row_T1, column_TS]
    drawn_TSD = torch.where(drawn_TS[..., None], near_TSD, true_TD[:, None])
    return drawn_TSD if config.augmented else torch.cat([true_TD[:, None], drawn_TSD], dim=1)


def phrase_anchor(targets: Targets, margin: float, k: int) -> Tensor:
    """Second term of Eq. 3: triplets (y, x, x'), x' from the same image (step 3b)."""
    y_T1D, regions = targets.phrases[:, None], targets.regions.shape[1]
    near_TS = distance(y_T1D, targets.regions)[:, 0]
    far_TP = distance(y_T1D, targets.proposals)[:, 0]
    far_RP, negative_RP = (x.repeat_interleave(regions, 0) for x in (far_TP, targets.negative))
    return hardest_triplets(near_TS.flatten(), far_RP, negative_RP, margin, k)


def image_anchor(x_BD: Tensor, y_BD: Tensor, chain_ids: Tensor, margin: float, k: int) -> Tensor:
    """First term of Eq. 3: triplets (x, y, y') of rows (x, y), y' of another chain (step 3a)."""
    d_BB = distance(x_BD, y_BD)
    return hardest_triplets(d_BB.diagonal(), d_BB, differ(chain_ids), margin, k)


def region_neighbourhood(targets: Targets, margin: float, k: int) -> Tensor:
    """Third term of Eq. 6, from Eq. 4: each of a phrase's two regions, with the other one near
    and the negative proposals far."""
    near_T = distance(targets.regions[:, :1], targets.regions[:, 1:])[:, 0, 0]
    far_RP = distance(targets.regions, targets.proposals).flatten(0, 1)
    negative_RP = targets.negative.repeat_interleave(2, 0)
    return hardest_triplets(near_T.repeat_interleave(2), far_RP, negative_RP, margin, k)


def branch(input_size: int, config: Config) -> nn.Sequential:
    """One side of the network; L2 normalisation follows in `Model`. No dropout (Section 5.3)."""
    if not config.nonlinear:
        return linear_branch(input_size, config.hidden_size)
    sizes = (config.hidden_size, config.embedding_size)
    return nonlinear_branch(input_size, *sizes, dropout=0.0, norm_momentum=0.1)


class Model(nn.Module):
    """Two branches into one space. Encodings: unit vectors (N, D) of regions, (C, D) of phrases."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.image_branch = branch(sizes.image, config)
        self.text_branch = branch(sizes.text, config)
        start_from_glorot(self)

    def encode_images(self, images: Tensor) -> Encoding:
        return (unit(self.image_branch(images)),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (unit(self.text_branch(captions.values)),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (N, C): orders regions as the Euclidean distance does (Section 4.4)."""
        return images[0] @ captions[0].T

    def loss(self, batch: RegionBatch) -> dict[str, Tensor]:
        """Eq. 6 over the triplets of Algorithm 1."""
        c = self.config
        (y_BD,) = self.encode_captions(batch.phrases)
        targets = self._targets(batch, y_BD)
        x_BD = targets.regions[:, 0].repeat_interleave(_rows_per_draw(c), 0)
        terms = {"phrase_anchor": c.lambda2 * phrase_anchor(targets, c.margin, c.top_k)}
        if c.lambda1:
            term = image_anchor(x_BD, y_BD, batch.chain_ids, c.margin, c.top_k)
            terms["image_anchor"] = c.lambda1 * term
        if c.lambda3:
            term = region_neighbourhood(targets, c.margin, c.top_k)
            terms["region_neighbourhood"] = c.lambda3 * term
        if c.lambda4:
            pairs = pairs_within(batch.counted_ids)
            d_BB = distance(y_BD, y_BD)
            term = text_neighbourhood(d_BB, batch.chain_ids, c.margin, c.top_k, pairs)
            terms["phrase_neighbourhood"] = c.lambda4 * term
        return terms

    def _targets(self, batch: RegionBatch, y_BD: Tensor) -> Targets:
        """The drawn phrases: all rows, or every other one where a sibling follows each."""
        drawn = slice(None, None, _rows_per_draw(self.config))
        true_BD, proposals_UPD = encode_regions(self, batch)
        proposals_TPD = proposals_UPD[batch.image_of_row[drawn]]
        ious_TP = batch.ious[drawn]
        positive_TP = ious_TP >= self.config.positive_iou
        return Targets(
            phrases=y_BD[drawn],
            regions=positive_regions(true_BD[drawn], proposals_TPD, positive_TP, self.config),
            proposals=proposals_TPD,
            negative=ious_TP < self.config.negative_iou,
        )


def _rows_per_draw(config: Config) -> int:
    return 2 if config.neighbourhood_sampling else 1
