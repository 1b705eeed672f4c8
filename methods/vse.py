"""A plain yardstick: one linear layer over an image's features, a GRU over the words, and the
hardest negative of the batch. Faghri, Fleet, Kiros, Fidler, VSE++, BMVC 2018.

VSE++ is a row of the tables of papers 001, 003 and 004, and the loss of 004 (Eq. 12) is its loss.
Here it shows what the simplest strong method reaches on the features that all others are fed. Most
printed rows come from fine-tuned image networks, one from a fixed network with a single crop (004,
Table 3).
Reference code: github.com/fartashf/vsepp at abe382f.
Departs from it:
- the GRU reads in both directions, and a sentence is the mean of both last states; official: only
  forwards (`bidirectional`);
- a second caption of the same image is no negative (`other_captions_negative`; the code masks the
  diagonal only);
- features are made once for each image; the code crops and mirrors images at random.
Assumed: <start> and <end> are words, as in the code; <unk> has a vector of its own.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Count,
    Encoding,
    Inputs,
    Phase,
    Rate,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.losses import differ
from benchmark.layers.precision import in_float32, unit
from benchmark.layers.recurrence import last_states


@dataclass(frozen=True, kw_only=True)
class Config:
    embedding_size: Size = 1024  # official train.py: GRU and joint space
    word_size: Size = 300  # official train.py
    bidirectional: bool = True  # assumed, as in paper 004; official: False
    margin: Weight = 0.2  # official train.py
    hard_negatives: bool = True  # VSE++, max of hinges; False: its baseline VSE0, sum of hinges
    other_captions_negative: bool = False  # assumed; official model.py: True
    batch_size: Size = 128  # official train.py
    clip_norm: Rate = 2.0  # official train.py
    learning_rate: Rate = 0.0002  # official train.py
    epochs: Size = 30  # official train.py: 15 + 15
    decay_after: Count = 15  # official train.py: learning rate / 10 from here on
    min_count: Size = 4  # official vocab.py: rarer words become <unk>


def inputs(config: Config) -> Inputs:
    return Inputs(
        image="pooled", text="tokens", min_count=config.min_count, caption_similarity=True
    )


def recipe(config: Config) -> list[Phase]:
    """As the official train.py: Adam, a tenth of the learning rate after half of the epochs."""
    c = config
    rates = tuple(c.learning_rate * (1.0 if e < c.decay_after else 0.1) for e in range(c.epochs))
    phase = Phase(
        epochs=c.epochs, learning_rates=rates, batch_size=c.batch_size, clip_norm=c.clip_norm
    )
    return [phase]


@in_float32
def hinges(scores_BB: Tensor, negative_BB: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """[margin + s(wrong pair) - s(right pair)]+ of VSE++, 0 for what is no negative.

    scores_BB[i, c] is the score of image i and caption c. Wrong captions (B, B) for the image of
    each row, and wrong images (B, B) for the caption of each column.
    """
    matched_B = scores_BB.diagonal()
    wrong_captions_BB = F.relu(margin + scores_BB - matched_B[:, None]) * negative_BB
    wrong_images_BB = F.relu(margin + scores_BB - matched_B[None, :]) * negative_BB
    return wrong_captions_BB, wrong_images_BB


class Model(nn.Module):
    """One linear layer and one GRU into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        D = config.embedding_size
        self.project = nn.Linear(sizes.image, D)
        self.embed = nn.Embedding(sizes.text, config.word_size, padding_idx=0)
        self.gru = nn.GRU(config.word_size, D, batch_first=True, bidirectional=config.bidirectional)
        nn.init.xavier_uniform_(self.project.weight)  # official model.py
        nn.init.zeros_(self.project.bias)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)  # official model.py

    def encode_images(self, images: Tensor) -> Encoding:
        """Features of unit length before the layer and after it, as in the official code."""
        return (unit(self.project(F.normalize(images, dim=-1))),)

    def encode_captions(self, captions: Captions) -> Encoding:
        """The last state of the GRU, or the mean of the last states of both directions."""
        states_SCD = last_states(self.gru, self.embed(captions.values), captions)
        return (unit(states_SCD.mean(0)),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """Cosine of sentences, shape (C, C)."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """VSE++'s max of hinges, or VSE0's sum of hinges, of all rows of the batch."""
        ids = batch.group_ids
        if self.config.other_captions_negative:
            ids = torch.arange(len(ids), device=ids.device)
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        scores_BB = self.similarity(images, captions)
        captions_BB, images_BB = hinges(scores_BB, differ(ids), self.config.margin)
        if self.config.hard_negatives:
            captions_BB, images_BB = captions_BB.amax(1), images_BB.amax(0)
        return {"image_anchor": captions_BB.sum(), "caption_anchor": images_BB.sum()}
