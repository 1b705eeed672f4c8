"""torchvision's classifiers: the features are what their classifiers see."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torchvision import models
from torchvision.ops import StochasticDepth

from benchmark.encode.images import fused
from benchmark.features import torchvision_cnn, weight_files
from benchmark.features.weight_files import CLASSIFIED


@pytest.fixture(scope="module")
def mobilenet() -> nn.Module:
    torch.manual_seed(0)
    return models.mobilenet_v2(weights=None).eval()


def test_features_are_what_torchvisions_classifier_sees(tmp_path, mobilenet):
    state = {
        k: v
        for k, v in mobilenet.state_dict().items()
        if not k.startswith("classifier")
    }
    torch.save(state, tmp_path / "mobilenet_v2-1.pth")  # it stops before the classifier
    network, facts = torchvision_cnn.load("mobilenet_v2", tmp_path)
    pixels = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    normalised = models.MobileNet_V2_Weights.IMAGENET1K_V1.transforms(
        resize_size=64, crop_size=64
    )
    with torch.no_grad():
        pooled, maps = network(pixels)
        expected = mobilenet(
            (pixels - _column(normalised.mean)) / _column(normalised.std)
        )
        torch.testing.assert_close(mobilenet.classifier(pooled), expected)
        folded = fused(network, torch.device("cpu"))(pixels)
    network.pooled_mean, network.pooled_deviation = (
        torch.ones(1280),
        torch.full((1280,), 2.0),
    )
    structure = torchvision_cnn.structure("mobilenet_v2", 1280).eval()
    structure.load_state_dict(network.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(structure(pixels)[0], (pooled - 1) / 2)
    assert (pooled.shape, maps.shape) == ((2, 1280), (2, 1280, 2, 2))
    torch.testing.assert_close(folded[1], maps, rtol=1e-3, atol=1e-4)
    assert facts["file"] == "mobilenet_v2-1.pth" and len(facts["sha256"]) == 64


def _column(values: list[float]) -> torch.Tensor:
    return torch.tensor(values).view(1, 3, 1, 1)


SMALL = (  # one of each family
    pytest.param("convnext_tiny", marks=pytest.mark.slow),  # 28 million weights
    *("densenet121", "efficientnet_b0", "mobilenet_v3_small", "regnet_y_400mf"),
    *("resnet18", "squeezenet1_1"),
)


@pytest.mark.parametrize("name", SMALL)
def test_the_map_is_what_torchvisions_classifier_takes(name, tmp_path):
    torch.manual_seed(0)
    whole = models.get_model(name, weights=None).eval()
    torch.save(
        whole.state_dict(),
        tmp_path / Path(models.get_model_weights(name)[CLASSIFIED].url).name,
    )
    network, _ = torchvision_cnn.load(name, tmp_path)
    pixels, seen = torch.rand(2, 3, 64, 64), []
    behind = whole.avgpool if hasattr(whole, "avgpool") else whole.classifier
    behind.register_forward_pre_hook(lambda layer, given: seen.append(given[0]))
    with torch.no_grad():
        pooled, maps = network(pixels)
        whole((pixels - _column(torchvision_cnn.MEAN)) / _column(torchvision_cnn.STD))
        folded = fused(network, torch.device("cpu"))(pixels)
    expected = maps if seen[0].dim() == 4 else pooled
    torch.testing.assert_close(expected, seen[0])
    torch.testing.assert_close(pooled, maps.mean((2, 3)))
    torch.testing.assert_close(folded[1], maps, rtol=1e-3, atol=1e-4)


def test_every_network_has_weights_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert {"alexnet", "resnet152", "vgg16", "wide_resnet50_2"} < set(
        torchvision_cnn.NETWORKS
    )
    assert not {"vit_b_16", "swin_t", "googlenet"} & set(torchvision_cnn.NETWORKS)
    for name in torchvision_cnn.NETWORKS:
        found = torchvision_cnn.whereabouts(name, None)
        assert found.url.startswith("https://")
        # told by the source alone, as `doctor` asks
        alike = weight_files.whereabouts_by_name("torchvision_cnn", name, None)
        assert alike == found
    for name in ("vit_b_16", "googlenet", "regnet_y_128gf", "resnet", "no_network"):
        assert not weight_files.whereabouts_by_name("torchvision_cnn", name, None)


@pytest.mark.parametrize(
    "environment",
    [{"TORCH_HOME": "~/a"}, {"XDG_CACHE_HOME": "b"}, {"TORCH_HOME": "c/d"}, {}],
)
def test_downloads_are_looked_for_where_torch_puts_them(environment, monkeypatch):
    for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    assert weight_files._downloaded("https://x.invalid/y.pth") == folder / "y.pth"


@pytest.mark.parametrize(
    "name", ("mobilenet_v2", "resnet50", "vgg16", "vgg19", "efficientnet_b0")
)
def test_a_network_to_be_trained_has_no_dropout_and_torchvisions_names(name):
    with torch.device("meta"):
        network = torchvision_cnn.structure(name, 4)
        whole = models.get_model(name, weights=None)
    parts = list(network.modules())
    assert not any(isinstance(part, nn.Dropout) for part in parts)
    assert not any(part.p for part in parts if isinstance(part, StochasticDepth))
    if name.startswith("vgg"):
        assert any(isinstance(part, nn.Dropout) for part in whole.modules())
        names = {
            key.removeprefix("classifier.")
            for key in whole.state_dict()
            if "fier" in key
        }
        assert network.head.state_dict().keys() == names - {"6.weight", "6.bias"}
