"""Files of pretrained weights: found, loaded, and refused if they are anything but
tensors."""

import pytest
import torch
from refusals import refused
from torch import nn
from torchvision import models

from benchmark.features import torchvision_cnn, weight_files


@pytest.fixture(scope="module")
def mobilenet() -> nn.Module:
    torch.manual_seed(0)
    return models.mobilenet_v2(weights=None).eval()


def other_names(state: dict) -> dict:
    return {f"layer.{name}": value for name, value in state.items()}


def fewer(state: dict) -> dict:
    return dict(list(state.items())[:20])


def other_shapes(state: dict) -> dict:
    """As VGG-16 with the weights of VGG-19, and ResNets of different widths."""
    return state | {"features.0.0.weight": torch.zeros(16, 3, 3, 3)}


@pytest.mark.parametrize("change", [other_names, fewer, other_shapes])
def test_weights_of_another_network_are_refused(tmp_path, mobilenet, change):
    path = tmp_path / "mobilenet_v2-1.pth"
    torch.save(change(mobilenet.state_dict()), path)
    with refused("mobilenet_v2-1.pth", found="another network ("):
        torchvision_cnn.load("mobilenet_v2", tmp_path)


def test_missing_or_ambiguous_weights_are_refused(tmp_path):
    with refused("weights_dir", "one file mobilenet_v2-*.pth", "none", "--weights-dir"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)
    for name in ("mobilenet_v2-1.pth", "mobilenet_v2-2.pth"):
        (tmp_path / name).touch()
    with refused(found="mobilenet_v2-1.pth, mobilenet_v2-2.pth"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)
    (tmp_path / "mobilenet_v2-2.pth").unlink()
    with refused(tmp_path / "mobilenet_v2-1.pth", "weights", "an empty file"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)
    with refused(found="'resnet51' (did you mean resnet50?)"):
        torchvision_cnn.load("resnet51", tmp_path)


def test_a_tensor_that_repeats_one_number_is_refused(tmp_path):
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, tmp_path / "x.pth")
    with refused("x.pth: a", found="1099511627776 numbers in 4 bytes"):
        weight_files.read_state(tmp_path / "x.pth")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.eye(3).to_sparse(),
        torch.empty(3, 3, device="meta"),
        torch.ones(3, 3, dtype=torch.complex64),
    ],
    ids=["sparse", "meta", "complex"],
)
def test_tensors_without_a_number_at_every_place_are_refused(tmp_path, tensor):
    path = tmp_path / "w.pth"
    torch.save({"w": tensor}, path)
    with refused("w.pth: w", "a dense tensor of real numbers", "torch."):
        weight_files.read_state(path)
