"""Two named scores, and options that are equal only to those of the same load of this file."""

from dataclasses import dataclass
from enum import Enum

from plain import Config as PlainConfig
from plain import Model as Plain
from plain import recipe

from benchmark.contracts.methods import Inputs

__all__ = ["Config", "Model", "inputs", "recipe"]


class Mode(Enum):
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Config(PlainConfig):
    mode: Mode = Mode.PLAIN


def inputs(config):
    return Inputs(image="pooled", text="sentence", scores=("first", "second"))


class Model(Plain):
    def __init__(self, config, sizes):
        super().__init__(config, sizes)
        assert config.mode is Mode.PLAIN

    def scores(self, images, captions):
        product = self.similarity(images, captions)
        return {"first": product, "second": product.sin()}
