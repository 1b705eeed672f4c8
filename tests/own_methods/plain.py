"""The least that a method is: two linear maps, compared by their product."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    embedding_size: int = 16
    epochs: int = 2


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    return [Phase(epochs=config.epochs, learning_rates=(0.01,) * config.epochs, batch_size=8)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.image = nn.Linear(sizes.image, config.embedding_size)
        self.text = nn.Linear(sizes.text, config.embedding_size)

    def encode_images(self, images):
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        images, texts = self.encode_images(batch.images), self.encode_captions(batch.captions)
        scores, rows = self.similarity(images, texts), torch.arange(len(batch.images))
        return {"i2t": cross_entropy(scores, rows), "t2i": cross_entropy(scores.T, rows)}
