"""Half a method, half the yardstick: VSE's networks under the triplets of the two-branch embedding
network (paper 002, Eq. 3). What separates it from `vse` is the loss alone.
"""

from dataclasses import dataclass

from torch import Tensor

from benchmark.contracts.methods import Batch, Size, Weight, two_branch_embedding, vse
from benchmark.contracts.methods.vse import inputs, recipe
from benchmark.layers.losses import distance

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config(vse.Config):
    margin: Weight = 0.05  # paper 002, Section 3.2.2
    lambda1: Weight = 1.0  # Section 5.2
    lambda2: Weight = 1.5  # Section 5.2
    top_k: Size = 10  # Section 5.1


class Model(vse.Model):
    """Encodings: unit vectors (I, D) and (C, D)."""

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 3: the K most violating triplets of each anchor, both ways."""
        (x_BD,), (y_BD,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        d_BB, c, ids = distance(x_BD, y_BD), self.config, batch.group_ids
        image_anchor = two_branch_embedding.image_anchor(d_BB, ids, c.margin, c.top_k)
        sentence_anchor = two_branch_embedding.sentence_anchor(d_BB, ids, c.margin, c.top_k)
        return {
            "image_anchor": c.lambda1 * image_anchor,
            "sentence_anchor": c.lambda2 * sentence_anchor,
        }
