"""The mean of word vectors and the pooled image in one space; `how` says what is wrong of it."""

from dataclasses import dataclass

import torch
from plain import Model as Plain
from torch import nn

from benchmark.contracts.methods import Inputs, Phase, Sizes

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config:
    embedding_size: int = 16
    how: str = "right"


def inputs(config):
    return Inputs(image="pooled", text="words")


def recipe(config):
    return [Phase(epochs=1, learning_rates=(0.01,), batch_size=8)]


class Model(Plain):
    def __init__(self, config, sizes):
        super().__init__(config, Sizes(image=sizes.image, text=8))
        self.how = config.how
        self.words = nn.Embedding(sizes.text, 8)

    def encode_captions(self, captions):
        values, lengths = captions.values, captions.lengths
        if self.how == "sorted" or (self.how == "sorted in training" and self.training):
            order = lengths.argsort(stable=True)  # and never back
            values, lengths = values[order], lengths[order]
        is_word = torch.arange(values.shape[1]) < lengths[:, None]
        if self.how == "padding":
            is_word = torch.ones_like(is_word)
        if self.how == "no words":
            is_word = values > 0
        vectors = self.words(values) * is_word[:, :, None]
        count = is_word.sum(1, keepdim=True)
        mean = vectors.sum(1) / count
        if self.how == "deviation":
            squares = (vectors - mean[:, None]).square() * is_word[:, :, None]
            mean = mean + (squares.sum(1) / (count - 1)).sqrt()
        return (self.text(mean),)
