"""Tiny random encoders in the formats of the libraries that their strong sisters come
in."""

import os
from pathlib import Path

import pytest
import torch

WORDS = "a the red green blue small large left right of is circle square triangle "
WORDS = (WORDS + "above below").split()
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZE = 12  # of its vectors
BESIDE = Path(__file__).parents[2] / "shared/weights"  # beside the checkout
WEIGHTS = Path(os.environ.get("REMATCH_TEST_WEIGHTS", BESIDE))  # of the real ones


def bert(folder: Path, **changes: int) -> Path:
    """A BERT of random weights, as `save_pretrained` writes it, with a tokeniser."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    torch.manual_seed(0)
    shape = {"hidden_size": SIZE, "num_hidden_layers": 2, "num_attention_heads": 3}
    shape |= {"intermediate_size": 20, "vocab_size": len(MARKS + WORDS)}
    config = transformers.BertConfig(
        **shape | {"max_position_embeddings": 16} | changes
    )
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = {word: n for n, word in enumerate(MARKS + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    framed = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, framed
    )
    tokenizer.enable_padding(length=9)  # as files of sentence-transformers have it
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
