"""A method whose loss is no longer a number after some steps."""

from dataclasses import dataclass

from torch import nn

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    breaks_at: int = 7  # of all steps, counted from 1
    value: float = float("nan")
    batch_size: int = 4


def inputs(config):
    return Inputs(image="pooled", text="sentence")


def recipe(config):
    rates = (0.5, 0.25, 0.125, 0.0625)
    return [Phase(epochs=4, learning_rates=rates, batch_size=config.batch_size)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.config, self.steps = config, 0
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)

    def encode_images(self, images):
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(captions.values),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        self.steps += 1
        (images,), (texts,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        odd = self.config.value if self.steps == self.config.breaks_at else 1.0
        return {"far": (images - texts).square().mean(), "odd": odd + 0 * texts.mean()}
