"""An own method in forty lines: two linear maps, trained with a symmetric contrastive
loss.

    rematch check examples/own_method.py

In a season file: `methods: {own_method: examples/own_method.py}` and `presets:
[own_method]`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from benchmark.contracts.methods import Inputs, Phase, Rate, Size


@dataclass(frozen=True, kw_only=True)
class Config:
    embedding_size: Size = 256
    temperature: Rate = 0.07
    epochs: Size = 20


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    return [
        Phase(
            epochs=config.epochs, learning_rates=(1e-3,) * config.epochs, batch_size=64
        )
    ]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.image = nn.Linear(sizes.image, config.embedding_size)
        self.text = nn.Linear(sizes.text, config.embedding_size)
        self.temperature = config.temperature

    def encode_images(self, images):
        return (F.normalize(self.image(images), dim=-1),)

    def encode_captions(self, captions):
        return (F.normalize(self.text(captions.values), dim=-1),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        images, captions = (
            self.encode_images(batch.images),
            self.encode_captions(batch.captions),
        )
        scores = self.similarity(images, captions) / self.temperature
        rows = torch.arange(len(scores), device=scores.device)
        return {
            "i2t": F.cross_entropy(scores, rows),
            "t2i": F.cross_entropy(scores.T, rows),
        }
