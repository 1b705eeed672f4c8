"""A caption as the maximum over time of a bidirectional LSTM: InferSent's sentence encoder.

Conneau, Kiela, Schwenk, Barrault, Bordes, EMNLP 2017; paper 003 feeds it to CycleMatch. Reference
code: github.com/facebookresearch/InferSent at 31eede6, version 1 (GloVe vectors, <s> and </s>).
Without a weight file the weights are random: still a fair encoder of word order (Wieting and
Kiela, ICLR 2019), but not what the paper used.

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

from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.progress_bars import ProgressBar
from benchmark.data.vocabularies import tokenise
from benchmark.data.word_vectors import FRAME, Words
from benchmark.encoders.weight_files import read_state
from benchmark.season.parameters import SentenceEncoder

BATCH = 64  # InferSent's default; changes the vectors only if padding counts
SEED = 0  # of random weights: cells of different seeds share their features


class Encoder(nn.Module):
    """Word vectors of B sentences -> (B, 2 * hidden). Parameters are named as in InferSent."""

    def __init__(self, word_size: int, hidden: int) -> None:
        super().__init__()
        self.enc_lstm = nn.LSTM(word_size, hidden, bidirectional=True)

    def forward(self, sentences: list[Tensor], masked: bool) -> Tensor:
        """Vectors of sentences (n, E), n >= 1, the longest first. Source: Section 3.2.2."""
        states, lengths = pad_packed_sequence(self.enc_lstm(pack_sequence(sentences))[0])
        if masked:
            padding_WB = torch.arange(len(states))[:, None] >= lengths
            states = states.masked_fill(padding_WB[:, :, None], -torch.inf)
        return states.amax(0)


def encode(
    captions: Sequence[str], is_train: np.ndarray, words: Words, settings: SentenceEncoder
) -> tuple[np.ndarray, dict]:
    """Vectors (C, 2 * hidden) float32, and facts for the card.

    A caption without known words is zero. Nothing is fitted, so `is_train` is not used. Raises
    UserError if `settings` ask for another size, and for a weight file that does not fit.
    """
    size = 2 * settings.hidden
    if settings.size not in (None, size):
        raise UserError(
            where="bilstm_max: size",
            expected=f"{size}, two directions of `hidden` units",
            found=settings.size,
            do="leave it out, or set `hidden`",
        )
    encoder, origin = _encoder(words.vectors.shape[1], settings)
    tokens = [tokenise(text) for text in captions]
    vectors = _run(encoder, _framed(tokens, words), words, settings.masked)
    facts = {"frame": [mark for mark in FRAME if mark in words], "batch": BATCH}
    return vectors, words.coverage(tokens) | facts | origin


def _encoder(word_size: int, settings: SentenceEncoder) -> tuple[Encoder, dict]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        encoder = Encoder(word_size, settings.hidden).eval()
    if settings.weights is None:
        return encoder, {"weights": "random weights", "seed": SEED}
    path = Path(settings.weights)
    _fill(encoder, read_state(path), path)
    return encoder, {"weights": path.name, "sha256": sha256(path)}


def _fill(encoder: Encoder, state: dict[str, Tensor], path: Path) -> None:
    """Load `state`, whose names and shapes have to be those of the encoder."""
    expected = {name: tuple(value.shape) for name, value in encoder.state_dict().items()}
    loaded = {name: tuple(value.shape) for name, value in state.items()}
    for name in sorted(expected.keys() | loaded.keys()):
        if expected.get(name) != loaded.get(name):
            raise UserError(
                where=path.name,
                expected=f"InferSent's layout with {name!r} {expected.get(name, 'absent')}",
                found=loaded.get(name, "absent"),
                do="check `hidden` and the size of the word vectors, or name another file",
            )
    broken = [name for name, value in state.items() if not value.isfinite().all()]
    if broken:
        raise UserError(
            where=f"{path.name}: {broken[0]}",
            expected="numbers",
            found="NaN or infinity",
            do="get the file again",
        )
    encoder.load_state_dict(state)


def _framed(captions: list[list[str]], words: Words) -> list[np.ndarray]:
    """Ids of the known words of each caption, between <s> and </s> if these have vectors.

    A caption without known words stays empty.
    """
    start, end = (words.ids([mark]) for mark in FRAME)
    ids_of = [words.ids(tokens) for tokens in captions]
    return [np.concatenate([start, ids, end]) if len(ids) else ids for ids in ids_of]


def _run(encoder: Encoder, sentences: list[np.ndarray], words: Words, masked: bool) -> np.ndarray:
    """Vectors of the ids of `sentences`, encoded longest first; empty ones are zero."""
    lengths = np.array([len(ids) for ids in sentences])
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    vectors = np.zeros((len(sentences), 2 * encoder.enc_lstm.hidden_size), dtype=np.float32)
    bar = ProgressBar(total=len(order), unit="caption", desc="encode bilstm_max")
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors_of = [torch.from_numpy(words.vectors[sentences[c]]) for c in batch]
            vectors[batch] = encoder(vectors_of, masked).numpy()
            bar.update(len(batch))
    bar.close()
    return vectors
