"""Classifiers of the library timm as fixed feature extractors: `timm_NAME` is its
network NAME.

Pixels are normalised with the mean and deviation that timm states for its default
weights of the network: for EfficientNet-Lite (x - 127.5) / 127.5, where its authors
have (x - 127) / 128. Images are squashed to the season's input size, timm's being 260
for EfficientNet-Lite2, with bicubic interpolation, as timm states too, and not cropped.
The pooled vector is the mean of the map.

Weights are NAME.pth or NAME-*.pth, or .safetensors, of `weights_dir`; `tf_` may be left
out.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from benchmark.core.errors import UserError, suggested
from benchmark.features import weight_files
from benchmark.features.torchvision_cnn import Network

# beginnings of the names of what is not needed
CLASSIFIERS = ("classifier.", "fc.", "head.")


def load(network: str, weights_dir: Path | None) -> tuple[Network, dict[str, str]]:
    """The network in evaluation mode, and the file name and sha256 of its weights.

    Raises UserError for a missing library, an unknown network or one without a feature
    map, and for weights that are missing, ambiguous, no plain tensors, or of another
    network.
    """
    path = weight_files.timm_file(network, weights_dir)
    model = _model(network)
    names = list(model.state_dict())

    def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
        """efficientnet-lite-pytorch has the same layers in the same order under other
        names."""
        is_lite = "_conv_stem.weight" in state and len(state) == len(names)
        return dict(zip(names, state.values(), strict=True)) if is_lite else state

    origin = weight_files.fill(model, path, CLASSIFIERS, renamed)
    return _wrapped(network, model).eval(), origin


def structure(network: str, size: int) -> Network:
    """The network without its weights, for a checkpoint to fill; `size` is its pooled
    size."""
    return _wrapped(network, _model(network), size)


def whereabouts(network: str, weights_dir: Path | None) -> weight_files.Weights:
    """Where the weights are. Raises UserError if library or file is missing."""
    return weight_files.Weights(weight_files.timm_file(network, weights_dir).name)


def _model(network: str) -> nn.Module:
    import timm  # here: seconds that other networks need not wait for

    name = network.removeprefix("timm_")
    if not timm.is_model(name):
        raise UserError(
            "network",
            expected="a network of timm",
            found=suggested(name, timm.list_models()),
            do="choose one of timm.list_models()",
        )
    return timm.create_model(name, pretrained=False)


def _wrapped(network: str, model: nn.Module, size: int = 1) -> Network:
    model.reset_classifier(0)
    model.forward = model.forward_features
    facts = model.pretrained_cfg
    with torch.no_grad():
        shape = tuple(model.eval()(torch.zeros(1, *facts["input_size"])).shape)
    if len(shape) != 4 or shape[1] != model.num_features:
        raise UserError(
            f"network {network}",
            expected="a feature map (B, F, h, w)",
            found=shape,
            do="choose a convolutional network",
        )
    wrapped = Network(model, None, size)
    for name in ("mean", "std"):
        setattr(wrapped, name, torch.tensor(facts[name]).view(1, 3, 1, 1))
    return wrapped
