"""A method whose training has two stretches with different optimisers."""

from plain import Config
from plain import Model as Plain
from torch import nn

from benchmark.contracts.methods import Inputs, Phase

__all__ = ["Config", "Model", "inputs", "recipe"]


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    return [
        Phase(epochs=2, learning_rates=(0.1, 0.01), batch_size=8),
        Phase(epochs=2, learning_rates=(0.1, 0.1), batch_size=5, optimiser="sgd", momentum=0.9),
    ]


class Model(Plain):
    def __init__(self, config, sizes):
        super().__init__(config, sizes)
        self.dropout = nn.Dropout(0.5)

    def encode_images(self, images):
        return (self.dropout(self.image(images)),)
