"""Captions by any BERT-like encoder in Hugging Face's format, from a folder of this
machine.

A sentence vector is the mean of the last layer over the real tokens, those that frame a
text among them: Reimers and Gurevych, Sentence-BERT, EMNLP 2019, and what
sentence-transformers does, before its normalisation. Vectors of the tokens themselves
are what VSE-infinity's BERT branch pools (Chen et al., CVPR 2021); it trains BERT,
which is frozen here. Nothing is downloaded, unpickled or run.

Texts of one length in tokens are computed together, always BATCH of them, on one CPU
thread with the plain attention. So no text is padded, and its vector does not depend on
the texts beside it.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.core.files import readable, sha256
from benchmark.data.feature_folders import Words
from benchmark.season.parameters import SentenceEncoder

if TYPE_CHECKING:
    from torch import Tensor

FILES = ("config.json", "model.safetensors", "tokenizer.json")
ENCODER = "an encoder like BERT, and its tokeniser"
GET_AGAIN = "get the folder again"
BATCH = 32  # texts; on one core about as fast as any number from 16 to 128
# tokens; a longer text is cut, as by sentence-transformers with all-MiniLM-L6-v2
LONGEST = 256
SAFELY = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}


def encode(
    texts: Sequence[str],
    is_train: np.ndarray,
    words: Words | None,
    settings: SentenceEncoder,
) -> tuple[np.ndarray, dict]:
    """Mean vectors (C, F) float32, and facts for the card.

    Nothing is fitted and no words are needed: `is_train` and `words` are not used. A
    text without tokens is zero. Raises UserError as `contexts`, and if `settings` ask
    for another size.
    """
    ends, size, blocks, facts = contexts(texts, settings)
    if settings.size not in (None, size):
        raise UserError(
            "transformer: size",
            expected=f"{size}, that of its layers",
            found=settings.size,
            do="leave it out, or choose other weights",
        )
    vectors = np.zeros((len(ends), size), np.float32)
    for rows, states in blocks:
        vectors[rows] = states.mean(1).numpy()
    return vectors, facts


def contexts(texts: Sequence[str], settings: SentenceEncoder) -> tuple:
    """Vectors of tokens: ends (C,), F, an iterator of blocks, and facts for the card.

    Those of text c are L = ends[c] - ends[c - 1] rows of all. Each block is (rows (n,)
    of texts, their vectors (n, L, F) float32); a text without tokens has one row, and
    is in no block. Raises UserError for a missing library, and for a folder that holds
    no such encoder.
    """
    import torch  # here: `whereabouts` need not wait for it

    folder = whereabouts(settings)
    model, tokenizer = _loaded(folder)
    with readable(folder, ENCODER, GET_AGAIN):
        ids = [tokenizer.encode(text).ids for text in texts]
    lengths = np.array(list(map(len, ids)), np.int64)
    batches = []  # texts of one length, the longest first; none without tokens
    for length in np.unique(lengths[lengths > 0])[::-1]:
        alike = np.flatnonzero(lengths == length)
        for start in range(0, len(alike), BATCH):
            batches.append(alike[start : start + BATCH])

    def blocks() -> Iterator[tuple[np.ndarray, "Tensor"]]:
        for rows in ProgressBar(batches, unit="batch", desc="encode transformer"):
            # the texts of a small batch are repeated until there are BATCH
            whole = np.array([ids[c] for c in np.resize(rows, BATCH)])
            # a token that the network does not know is an error
            with readable(folder, ENCODER, GET_AGAIN), torch.inference_mode():
                states = model(input_ids=torch.from_numpy(whole)).last_hidden_state
            yield rows, states[: len(rows)]

    facts = {"weights": folder.name, "longest": LONGEST, "batch": BATCH}
    facts["weights_sha256"] = {name: sha256(folder / name) for name in FILES}
    ends = np.maximum(lengths, 1).cumsum()
    return ends, model.config.hidden_size, blocks(), facts


def whereabouts(settings: SentenceEncoder) -> Path:
    """The folder of the weights. Raises UserError for a missing library or file, or no
    folder."""
    folder = Path(settings.weights or "")
    for name in FILES:
        if not (folder / name).is_file():
            expected = f"an encoder: {', '.join(FILES)}"
            advice = "place it there, or name the folder above it: "
            advice += "rematch season NAME --weights-dir DIR"
            raise UserError(
                folder / name,
                expected=expected,
                found="nothing",
                do=advice,
            )
    if find_spec("transformers") is None:
        raise UserError(
            "transformer",
            expected="the library transformers",
            found="none",
            do='run: pip install "rematch-benchmark[transformers]"',
        )
    return folder


def _loaded(folder: Path) -> tuple:
    """The network in evaluation mode, and the tokeniser, which cuts and does not
    pad."""
    # here: seconds that other encoders need not wait for
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model, loading = AutoModel.from_pretrained(
            folder,
            attn_implementation="eager",
            dtype=torch.float32,
            output_loading_info=True,
            **SAFELY,
        )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(min(LONGEST, model.config.max_position_embeddings))
        missing = loading["missing_keys"]
        needed = {name for name in missing if not name.startswith("pooler.")}
        if needed:
            first = min(needed)
            raise ValueError(f"{len(needed)} tensors are missing, first {first!r}")
        if not all(value.isfinite().all() for value in model.state_dict().values()):
            raise ValueError("NaN or infinity")
    # of any type: what the bytes of three files make a library raise
    except Exception as error:
        raise UserError(
            folder,
            expected=ENCODER,
            found=f"something else ({' '.join(str(error).split()):.300})",
            do=GET_AGAIN,
        ) from error
    return model.eval(), tokenizer
