"""Half a method, half the yardstick: VSE's networks under the instance loss of dual-path (paper
001, Eqs. 5 to 8). What separates it from `vse` is the loss alone.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Rate, Sizes, vse
from benchmark.contracts.methods.vse import inputs, recipe
from benchmark.layers.precision import wide

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config(vse.Config):
    scale: Rate = 16.0  # assumed: encodings have unit length, where dual-path's f has none


class Model(vse.Model):
    """Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__(config, sizes)
        self.share = nn.Linear(config.embedding_size, sizes.classes, bias=False)  # W_share

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Every image is a class, and so are its captions."""
        (x_BD,), (y_BD,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        return {
            "visual": self._instance(x_BD, batch.class_ids),
            "textual": self._instance(y_BD, batch.class_ids),
        }

    def _instance(self, f_BD: Tensor, class_B: Tensor) -> Tensor:
        return F.cross_entropy(wide(self.share(self.config.scale * f_BD)), class_B)
