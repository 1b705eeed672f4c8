"""A method whose loss is no longer a number after some steps."""

from dataclasses import dataclass

from plain import Config as PlainConfig
from plain import Model as Plain
from plain import inputs

from benchmark.contracts.methods import Phase

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config(PlainConfig):
    breaks_at: int = 7  # of all steps, counted from 1
    value: float = float("nan")
    batch_size: int = 4


def recipe(config):
    rates = (0.5, 0.25, 0.125, 0.0625)
    return [Phase(epochs=4, learning_rates=rates, batch_size=config.batch_size)]


class Model(Plain):
    def __init__(self, config, sizes):
        super().__init__(config, sizes)
        self.config, self.steps = config, 0

    def loss(self, batch):
        self.steps += 1
        (images,), (texts,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        odd = self.config.value if self.steps == self.config.breaks_at else 1.0
        return {"far": (images - texts).square().mean(), "odd": odd + 0 * texts.mean()}
