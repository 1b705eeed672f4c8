"""A method whose training has two stretches with different optimisers."""

from dataclasses import dataclass

import torch
from torch import nn

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    size: int = 4


def inputs(config):
    return Inputs(image="pooled", text="sentence", scores=("product", "nearness"))


def recipe(config):
    return [
        Phase(epochs=2, learning_rates=(0.1, 0.01), batch_size=8),
        Phase(epochs=2, learning_rates=(0.1, 0.1), batch_size=5, optimiser="sgd", momentum=0.9),
    ]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)
        self.dropout = nn.Dropout(0.5)

    def encode_images(self, images):
        return (self.dropout(self.image(images)),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def scores(self, images, captions):
        product = self.similarity(images, captions)
        distance = torch.cdist(images[0], captions[0])
        return {"product": product, "nearness": 1 - distance}

    def loss(self, batch):
        scores = self.similarity(
            self.encode_images(batch.images), self.encode_captions(batch.captions)
        )
        return {"term": nn.functional.cross_entropy(scores, torch.arange(len(scores)))}
