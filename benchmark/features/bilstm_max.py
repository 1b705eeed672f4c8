"""A caption as the maximum over time of a bidirectional LSTM: InferSent's sentence
encoder.

Conneau, Kiela, Schwenk, Barrault, Bordes, EMNLP 2017; paper 003 feeds it to CycleMatch.
Reference code: github.com/facebookresearch/InferSent at 31eede6, version 1 (GloVe
vectors, <s> and </s>). Without a weight file the weights are random: still a fair
encoder of word order (Wieting and Kiela, ICLR 2019), but not what the paper used.

Departs from the code:
- Words are those of benchmark.data.vocabularies, in lower case, not NLTK's.
- A caption without known words is zero, not the encoding of <s> </s>.
- Padding is left out of the maximum, unless `masked` is off. Then a padded position counts as
  zeros, as in the code, and a vector depends on its batch: captions of all splits, longest first,
  BATCH at a time.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.data.feature_folders import FRAME, Words
from benchmark.data.vocabularies import tokenise
from benchmark.features import weight_files
from benchmark.season.parameters import SentenceEncoder

BATCH = 64  # InferSent's default; changes the vectors only if padding counts
SEED = 0  # of random weights: cells of different seeds share their features


class Encoder(nn.Module):
    """Word vectors of B sentences -> (B, 2 * hidden). Parameters are named as in
    InferSent."""

    def __init__(self, word_size: int, hidden: int) -> None:
        super().__init__()
        self.enc_lstm = nn.LSTM(word_size, hidden, bidirectional=True)

    def forward(self, sentences: list[Tensor], masked: bool) -> Tensor:
        """Vectors of sentences (n, E), n >= 1, the longest first. Source: Section
        3.2.2."""
        states, lengths = pad_packed_sequence(
            self.enc_lstm(pack_sequence(sentences))[0]
        )
        if masked:
            padding_WB = torch.arange(len(states))[:, None] >= lengths
            states = states.masked_fill(padding_WB[:, :, None], -torch.inf)
        return states.amax(0)


def encode(
    captions: Sequence[str],
    is_train: np.ndarray,
    words: Words,
    settings: SentenceEncoder,
) -> tuple[np.ndarray, dict]:
    """Vectors (C, 2 * hidden) float32, and facts for the card.

    A caption without known words is zero. Nothing is fitted, so `is_train` is not used.
    Raises UserError if `settings` ask for another size, and for a weight file that does
    not fit.
    """
    size = 2 * settings.hidden
    if settings.size not in (None, size):
        raise UserError(
            "bilstm_max: size",
            expected=f"{size}, two directions of `hidden` units",
            found=settings.size,
            do="leave it out, or set `hidden`",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        encoder = Encoder(words.vectors.shape[1], settings.hidden).eval()
    origin = {"weights": "random weights", "seed": SEED}
    if settings.weights is not None:
        file = weight_files.fill(encoder, Path(settings.weights))
        origin = {"weights": file["file"], "sha256": file["sha256"]}
    tokens = list(map(tokenise, captions))
    begin, end = (words.ids([mark]) for mark in FRAME)
    ids_of = []  # of known words between <s> and </s>; none without a known word
    for ids in map(words.ids, tokens):
        ids_of.append(np.concatenate([begin, ids, end]) if len(ids) else ids)
    lengths = np.array(list(map(len, ids_of)))
    longest_first = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    vectors = np.zeros((len(captions), size), dtype=np.float32)
    starts = range(0, len(longest_first), BATCH)
    with torch.inference_mode():
        for start in ProgressBar(starts, unit="batch", desc="encode bilstm_max"):
            batch = longest_first[start : start + BATCH]
            sentences = [torch.from_numpy(words.vectors[ids_of[c]]) for c in batch]
            vectors[batch] = encoder(sentences, settings.masked).numpy()
    facts = {"frame": [mark for mark in FRAME if mark in words], "batch": BATCH}
    return vectors, words.coverage(tokens) | facts | origin
