"""Half a method, half the yardstick: the networks of dual-path's stage I under VSE's loss. What
separates it from `dual_path_rank_1` and `dual_path_instance_1` is the loss alone.
"""

from dataclasses import dataclass

from torch import Tensor

from benchmark.contracts.methods import Batch, Rate, Size, Weight, dual_path
from benchmark.contracts.methods.dual_path import inputs, recipe
from benchmark.contracts.methods.vse import hinges
from benchmark.layers.losses import differ

__all__ = ["Config", "Model", "inputs", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Config(dual_path.Config):
    blocks: str = "1,1,1,1"  # as shallow and narrow as these seasons play dual-path
    text_width: Rate = 0.125
    hidden_size: Size = 256
    image_hidden_size: Size = 256
    embedding_size: Size = 256
    margin: Weight = 0.2  # of VSE
    lambda1: Weight = 1.0
    lambda2: Weight = 0.0  # no classifier
    lambda3: Weight = 0.0


class Model(dual_path.Model):
    """Encodings: unit vectors (I, D) and (C, D)."""

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The hinges of the hardest negatives: their mean, as the losses of dual-path are means."""
        images, captions = self.encode_images(batch.images), self.encode_captions(batch.captions)
        scores_BB = self.similarity(images, captions)
        captions_BB, images_BB = hinges(scores_BB, differ(batch.group_ids), self.config.margin)
        return {
            "image_anchor": captions_BB.amax(1).mean(),
            "caption_anchor": images_BB.amax(0).mean(),
        }
