"""Two named scores, and options that are equal only to those of the same load of this file."""

from dataclasses import dataclass
from enum import Enum

from torch import nn

from benchmark.contracts.methods import Inputs, Phase


class Mode(Enum):
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Config:
    mode: Mode = Mode.PLAIN


def inputs(config):
    return Inputs(image="pooled", text="sentence", scores=("first", "second"))


def recipe(config):
    return [Phase(epochs=1, learning_rates=(0.01,), batch_size=4)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        assert config.mode is Mode.PLAIN
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)

    def encode_images(self, images):
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def scores(self, images, captions):
        product = images[0] @ captions[0].T
        return {"first": product, "second": product.sin()}

    def similarity(self, images, captions):
        return self.scores(images, captions)["first"]

    def loss(self, batch):
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        return {"far": (images[0] - captions[0]).square().mean()}
