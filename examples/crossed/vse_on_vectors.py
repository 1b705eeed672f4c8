"""Half a method, half the yardstick: sentence vectors of papers 002 and 003, VSE's image layer and
loss. What separates it from `vse` are the sentences alone.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import nn

from benchmark.contracts.methods import Captions, Encoding, Inputs, Sizes, vse
from benchmark.contracts.methods.vse import recipe
from benchmark.layers.precision import unit

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config(vse.Config):
    """Options of VSE; those of its words have no effect."""


def inputs(config: Config) -> Inputs:
    return Inputs(image="pooled", text="sentence", caption_similarity=True)


class Model(vse.Model):
    """Two linear layers into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__(config, Sizes(image=sizes.image, text=2))
        del self.embed, self.gru
        self.describe = nn.Linear(sizes.text, config.embedding_size)
        nn.init.xavier_uniform_(self.describe.weight)
        nn.init.zeros_(self.describe.bias)

    def encode_captions(self, captions: Captions) -> Encoding:
        """As VSE's images: of unit length before the layer and after it."""
        return (unit(self.describe(F.normalize(captions.values, dim=-1))),)
