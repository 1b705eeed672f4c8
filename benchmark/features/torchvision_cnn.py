"""torchvision's ImageNet classifiers as fixed feature extractors.

A network gives a pooled vector and a feature map. The pooled vector is the mean of the
map, but for the VGGs fc7 before its ReLU, as in the two-branch paper and in Klein et
al. A network that is trained on has no dropout inside: torchvision's VGGs have it
between fc6 and fc7, EfficientNet and ConvNeXt drop whole layers, the instance-loss
paper's image CNN has none (Section III-A).
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torchvision import models
from torchvision.ops import StochasticDepth

from benchmark.features import weight_files
from benchmark.features.weight_files import RESIDUAL, WITH_FEATURES

# the one that is left out lacks these weights
LISTED = models.list_models(models, exclude="regnet_y_128gf")
NETWORKS = tuple(name for name in LISTED if name.startswith(RESIDUAL + WITH_FEATURES))
MEAN = (0.485, 0.456, 0.406)  # of ImageNet, RGB values in [0, 1]
STD = (0.229, 0.224, 0.225)


class Network(nn.Module):
    """Pixels (B, 3, S, S) in [0, 1] -> pooled (B, F) and map (B, F', h, w).

    If the features are standardised, `pooled_mean` and `pooled_deviation` are those of
    the training pictures, else 0 and 1.
    """

    def __init__(self, trunk: nn.Module, head: nn.Module | None, size: int = 1) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.register_buffer("pooled_mean", torch.zeros(size))
        self.register_buffer("pooled_deviation", torch.ones(size))
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        map_BFhw = self.trunk((pixels - self.mean) / self.std)
        pooled = map_BFhw.mean((2, 3))
        if self.head is not None:
            pooled = self.head(averaged(map_BFhw, 7).flatten(1))
        return (pooled - self.pooled_mean) / self.pooled_deviation, map_BFhw


def averaged(map_BFhw: Tensor, side: int) -> Tensor:
    """The map as (B, F', side, side), each cell the mean of what lies in it, as of
    VGG's adaptive pooling, whose way back adds in any order on a GPU."""
    height, width = map_BFhw.shape[2:]
    if height == width == side:
        return map_BFhw

    def shares(length: int) -> Tensor:
        """(side, length): by how much each place counts in each cell; cells may share a
        place."""
        cells = torch.arange(side, device=map_BFhw.device)
        starts = cells * length // side
        ends = -(-(cells + 1) * length // side)
        sizes = (ends - starts)[:, None]
        places = torch.arange(length, device=map_BFhw.device)
        inside = (places >= starts[:, None]) & (places < ends[:, None])
        return inside / sizes.to(map_BFhw.dtype)

    return shares(height) @ map_BFhw @ shares(width).T


def load(network: str, weights_dir: Path | None) -> tuple[Network, dict[str, str]]:
    """The network in evaluation mode, and the file name and sha256 of its weights.

    Raises UserError for an unknown network, and for weights that are missing,
    ambiguous, not a plain tensor file, or of another network.
    """
    url = weight_files.url_of(network, NETWORKS, weight_files.CLASSIFIED)
    path = weight_files.locate(url, weights_dir)
    model = models.get_model(network, weights=None)
    # what is not needed
    origin = weight_files.fill(model, path, optional=("classifier.", "fc."))
    return Network(*_parts(network, model)).eval(), origin


def structure(network: str, size: int) -> Network:
    """The network without its weights, for a checkpoint to fill; `size` is its pooled
    size."""
    return Network(*_parts(network, models.get_model(network, weights=None)), size)


def whereabouts(network: str, weights_dir: Path | None) -> weight_files.Weights:
    """Where the weights are or come from. Raises UserError if `weights_dir` lacks
    them."""
    url = weight_files.url_of(network, NETWORKS, weight_files.CLASSIFIED)
    return weight_files.whereabouts(url, weights_dir)


def _parts(name: str, model: nn.Module) -> tuple[nn.Module, nn.Module | None]:
    """The layers up to the feature map, and those from there to the pooled vector, if
    any."""
    for layer in model.modules():
        if isinstance(layer, StochasticDepth):
            layer.p = 0.0
    if name.startswith(RESIDUAL):
        return nn.Sequential(*list(model.children())[:-2]), None
    if name.startswith("densenet"):  # whose forward has this ReLU behind `features`
        return nn.Sequential(model.features, nn.ReLU()), None
    if name.startswith("vgg"):
        to_fc7 = model.classifier[:4]
        # in the place of dropout, so that weights keep their names
        to_fc7[2] = nn.Identity()
        return model.features, to_fc7
    return model.features, None
