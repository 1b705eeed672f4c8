"""Two-branch embedding network. Wang, Li, Huang, Lazebnik, TPAMI 2019 (paper 002).

Reference code: github.com/lwwang/Two_branch_network at 03f106f.
Assumed where the paper is silent or differs from that code:
- each loss term is the mean over its rows x K slots, empty ones included (code; Eq. 6 sums), so
  that the paper's learning rate keeps its meaning;
- an image that fills several rows of a batch is one candidate x' (Section 5.1: "an image in the
  mini-batch"), and a sentence of the same image is never a negative (the code's repeats are);
- neighbours are taken pair by pair, as Eq. 5 is written; the code takes the farthest of a drawn
  sentence and its sibling, which is the sibling: the same where a batch draws each image once;
- the neighbourhood term is on from the first step (code);
- FC layers start from Glorot's uniform distribution with zero bias (code);
- 20 epochs at a constant learning rate (code; the paper names an initial rate and no end).
No code of the LSTM variant was released. Assumed: a sentence is the last hidden state, after its
<end>; <start> and <end> are words; word vectors start from U(-0.1, 0.1) and have no bias, the LSTM
from PyTorch's weights; every training word has its vector, and a word first met at test time keeps
the initial one of <unk>; no dropout in the LSTM.
Options of the family "official" do as the code does: batch norm after the first FC (there without
the bias that it would cancel) and with its momentum, an image drawn twice is a negative of itself,
and 0.0001 under the root of the distance. Not followed: the code drops the last, smaller batch of
an epoch, and its squared L2 norm is at least 1e-10.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Encoding,
    Fraction,
    Inputs,
    OptionError,
    Phase,
    Rate,
    Share,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.branches import linear_branch, nonlinear_branch, start_from_glorot
from benchmark.layers.losses import (
    differ,
    distance,
    first_of_its_group,
    hardest_triplets,
    pairs_within,
    text_neighbourhood,
)
from benchmark.layers.precision import in_float32, unit
from benchmark.layers.recurrence import last_states

TEXTS = {"sentence": "sentence", "lstm": "tokens"}  # option -> Inputs.text


@dataclass(frozen=True, kw_only=True)
class Config:
    nonlinear: bool = True  # Section 4.2: two FC layers per branch, or the first one only
    text: str = "sentence"  # Section 5.3: ready-made vectors, or "lstm", trained jointly
    word_size: Size = 256  # Section 5.3, LSTM
    lstm_size: Size = 512  # Section 5.3, hidden state
    lstm_hidden_size: Size = 1024  # Section 5.3: hidden_size of the text branch after an LSTM
    min_count: Size = 1  # Section 5.3: the vocabulary is all words of the training set
    hidden_size: Size = 2048  # Section 5.3, both branches
    embedding_size: Size = 512  # Section 5.3
    dropout: Share = 0.5  # Section 5.3, after the ReLU
    margin: Weight = 0.05  # Section 3.2.2
    lambda1: Weight = 1.0  # Section 5.2, image anchor
    lambda2: Weight = 1.5  # Section 5.2, sentence anchor; 0: single-directional
    lambda4: Weight = 0.0  # Section 5.2, sentence neighbourhood; 0.05 with constraints
    top_k: Size = 10  # Section 5.1, triplets kept per pair and direction
    neighbourhood_sampling: bool = False  # Section 3.2.3: two sentences for every image
    batch_size: Size = 500  # Section 5.1
    learning_rate: Rate = 0.0001  # Section 5.3; LSTM: 0.0002
    epochs: Size = 20  # official train_embedding_nn.py
    norm_first: bool = False  # Section 3.2.1; official retrieval_model.py: after the first FC
    norm_momentum: Fraction = 0.1  # PyTorch's; official: 0.9, the share of the newest batch
    repeats_negative: bool = False  # assumed; official dataset_utils.py: True
    distance_epsilon: Weight = 0.0  # Eq. 1; official: 0.0001 under the root

    def __post_init__(self) -> None:
        if self.text not in TEXTS:
            raise OptionError("text", " or ".join(TEXTS), self.text)
        if not self.nonlinear and (self.text == "lstm" or self.norm_first):
            raise OptionError("nonlinear", "true for an lstm or a batch norm (Section 4.2)", False)
        if self.lambda4 and not self.neighbourhood_sampling:
            raise OptionError("lambda4", "0 without neighbourhood_sampling: true", self.lambda4)


def inputs(config: Config) -> Inputs:
    return Inputs(
        image="pooled",
        text=TEXTS[config.text],
        min_count=config.min_count,
        caption_similarity=True,
    )


def recipe(config: Config) -> list[Phase]:
    """Section 5.3: Adam at one rate."""
    phase = Phase(
        epochs=config.epochs,
        learning_rates=(config.learning_rate,) * config.epochs,
        batch_size=config.batch_size,
        captions_per_image=_rows_per_draw(config),
    )
    return [phase]


def draws(group_ids: Tensor, rows_per_draw: int) -> Tensor:
    """(B,) the number of the draw that each row belongs to: a caption and, after it, its siblings.

    The official code's labels know no image, so that two draws of one image are negatives.
    """
    row_B = torch.arange(len(group_ids), device=group_ids.device)
    starts_B = (row_B % rows_per_draw == 0) | (group_ids != group_ids.roll(1))
    return starts_B.cumsum(0)


def image_anchor(d_BB: Tensor, group_ids: Tensor, margin: float, k: int) -> Tensor:
    """First term of Eq. 3: triplets (x, y, y'). d_BB[b, c] is d(image b, text c)."""
    return hardest_triplets(d_BB.diagonal(), d_BB, differ(group_ids), margin, k)


def sentence_anchor(d_BB: Tensor, group_ids: Tensor, margin: float, k: int) -> Tensor:
    """Second term of Eq. 3: triplets (y, x, x'), every image of the batch once."""
    negative_BB = differ(group_ids) & first_of_its_group(group_ids)
    return hardest_triplets(d_BB.diagonal(), d_BB.T, negative_BB, margin, k)


def norm_first_branch(
    input_size: int, hidden_size: int, embedding_size: int, dropout: float, norm_momentum: float
) -> nn.Sequential:
    """The official code's order: FC, batch norm, ReLU, dropout, FC."""
    return nn.Sequential(
        nn.Linear(input_size, hidden_size, bias=False),
        nn.BatchNorm1d(hidden_size, momentum=norm_momentum),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_size, embedding_size),
    )


def branch(input_size: int, hidden_size: int, config: Config) -> nn.Sequential:
    """One side of the network; L2 normalisation follows in `Model`."""
    if not config.nonlinear:
        return linear_branch(input_size, hidden_size)
    build = norm_first_branch if config.norm_first else nonlinear_branch
    rest = (config.embedding_size, config.dropout, config.norm_momentum)
    return build(input_size, hidden_size, *rest)


class LstmSentences(nn.Module):
    """Section 5.3: words to vectors, an LSTM over them, its last hidden state (C, lstm_size)."""

    def __init__(self, words: int, config: Config) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, config.word_size, padding_idx=0)
        self.lstm = nn.LSTM(config.word_size, config.lstm_size, batch_first=True)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)

    def forward(self, captions: Captions) -> Tensor:
        return last_states(self.lstm, self.embed(captions.values), captions)[0]


class Model(nn.Module):
    """Two branches into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.image_branch = branch(sizes.image, config.hidden_size, config)
        if config.text == "lstm":
            self.sentences = LstmSentences(sizes.text, config)
            self.text_branch = branch(config.lstm_size, config.lstm_hidden_size, config)
        else:
            self.sentences = _ready_made
            self.text_branch = branch(sizes.text, config.hidden_size, config)
        start_from_glorot(self)

    def encode_images(self, images: Tensor) -> Encoding:
        return (unit(self.image_branch(images)),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (unit(self.text_branch(self.sentences(captions))),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C): orders pairs as the Euclidean distance does (Section 3.1)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """Cosine of sentences, shape (C, C), for Section 5.5."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 6 with lambda3 = 0, as Section 5.2 sets it for sentences."""
        (x_BD,), (y_BD,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        c, ids = self.config, self._ids(batch.group_ids)
        d_BB = distance(x_BD, y_BD, c.distance_epsilon)
        terms = {"image_anchor": c.lambda1 * image_anchor(d_BB, ids, c.margin, c.top_k)}
        if c.lambda2:
            terms["sentence_anchor"] = c.lambda2 * sentence_anchor(d_BB, ids, c.margin, c.top_k)
        if c.lambda4:
            d_BB = distance(y_BD, y_BD, c.distance_epsilon)
            pairs = pairs_within(self._ids(batch.counted_ids))
            term = text_neighbourhood(d_BB, ids, c.margin, c.top_k, pairs)
            terms["sentence_neighbourhood"] = c.lambda4 * term
        return terms

    def _ids(self, group_ids: Tensor) -> Tensor:
        """(B,): rows with the same number are no negatives of each other."""
        if not self.config.repeats_negative:
            return group_ids
        return draws(group_ids, _rows_per_draw(self.config))


def _rows_per_draw(config: Config) -> int:
    return 2 if config.neighbourhood_sampling else 1


def _ready_made(captions: Captions) -> Tensor:
    return captions.values
