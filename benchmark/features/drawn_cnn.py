"""A small network for drawn scenes, in the role that ImageNet's classifiers have for
photographs.

benchmark/encode/drawn_pretraining.py makes its weights: the same code on the same
machine gives the same ones.
"""

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmark.core.errors import UserError
from benchmark.features.weight_files import Weights, read_state
from benchmark.season.parameters import DRAWN

WEIGHTS = Path("data/weights/drawn_cnn.pt")
CLOSE_UPS, EPOCHS = 10_000, 6  # pictures and passes of the pretraining


class Network(nn.Module):
    """Pixels (B, 3, 96, 96) in [0, 1] -> pooled (B, 2F), mean and maximum, and map (B,
    F, 6, 6).

    The receptive field of a grid cell is 63 pixels wide, more than the largest drawn
    thing.
    """

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            _block(3, 32, 2),
            _block(32, 64, 2),
            _block(64, 128, 2),
            _block(128, width, 2),
            _block(width, width, 1),
        )
        # Those of the training pictures, if the features are standardised.
        self.register_buffer("pooled_mean", torch.zeros(2 * width))
        self.register_buffer("pooled_deviation", torch.ones(2 * width))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        map_BFhw = self.trunk(pixels - 0.5)
        pooled = torch.cat([map_BFhw.mean((2, 3)), map_BFhw.amax((2, 3))], 1)
        return (pooled - self.pooled_mean) / self.pooled_deviation, map_BFhw


def load(network: str, weights_dir: Path | None) -> tuple[Network, dict[str, str]]:
    """The pretrained network in evaluation mode, and the sha256 of its weights.

    `weights_dir` is not used. Raises UserError for another network, and if WEIGHTS is
    missing.
    """
    if network != DRAWN:
        raise UserError(
            "network",
            expected=DRAWN,
            found=repr(network),
            do=f"use {DRAWN}",
        )
    if not WEIGHTS.is_file():
        raise UserError(
            WEIGHTS,
            expected="the pretrained weights",
            found="nothing",
            do="run: python -m benchmark.encode.drawn_pretraining",
        )
    model = Network()
    model.load_state_dict(read_state(WEIGHTS))
    model = model.to(memory_format=torch.channels_last).eval()
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    origin = f"pretrained here on {CLOSE_UPS} close-ups, {EPOCHS} epochs"
    return model, {"file": origin, "sha256": digest.hexdigest()}


def structure(network: str, size: int) -> Network:
    """The network without its weights, for a checkpoint to fill; `size` is its pooled
    size."""
    return Network(width=size // 2)


def whereabouts(network: str, weights_dir: Path | None) -> Weights:
    """The weights that are pretrained here before encoding."""
    return Weights(WEIGHTS.name)


def _block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())
