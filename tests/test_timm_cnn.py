"""Networks of timm: weights of a local file, the features of the library, and a naive
network."""

import feature_files
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from refusals import refused
from safetensors.torch import save_file

from benchmark.encode.images import describer
from benchmark.features import timm_cnn, weight_files
from benchmark.season.parameters import ImageEncoder, module_of

timm = pytest.importorskip("timm")
TINY = "timm_test_efficientnet"  # timm's own network for tests
LITE = "timm_tf_efficientnet_lite2"
REAL = feature_files.WEIGHTS / "efficientnet_lite2.pth"


@pytest.fixture
def whole() -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(TINY.removeprefix("timm_"), pretrained=False).eval()
    with torch.no_grad():
        for name, value in model.named_buffers():
            if name.endswith("running_mean"):
                value.uniform_(-0.1, 0.1)
    return model


@pytest.mark.parametrize(
    "file", ["test_efficientnet.pth", "test_efficientnet-x.safetensors"]
)
def test_features_are_those_that_the_classifier_sees(file, whole, tmp_path):
    save = save_file if file.endswith("safetensors") else torch.save
    save(whole.state_dict(), tmp_path / file)
    assert (
        module_of(TINY) == "timm_cnn"
        and timm_cnn.whereabouts(TINY, tmp_path).file == file
    )
    assert weight_files.whereabouts_by_name("timm_cnn", TINY, tmp_path).file == file
    network, facts = timm_cnn.load(TINY, tmp_path)
    assert facts["file"] == file and len(facts["sha256"]) == 64
    image = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8)
    )
    settings = ImageEncoder(network=TINY, input_size=160, grid=2)
    described = describer(network, settings, torch.device("cpu"))([image])
    cfg = whole.pretrained_cfg
    pixels = np.asarray(image.resize((160, 160), Image.Resampling.BICUBIC)) / 255
    normal = torch.from_numpy(((pixels - cfg["mean"]) / cfg["std"]).astype(np.float32))
    with torch.no_grad():
        both = [whole.forward_features(x) for x in pair(normal.permute(2, 0, 1)[None])]
    pooled = (both[0].mean((2, 3)) + both[1].mean((2, 3))) / 2
    np.testing.assert_allclose(described["pooled"], pooled, rtol=2e-3, atol=1e-3)
    cells = (
        F.adaptive_avg_pool2d(both[0], 2) + F.adaptive_avg_pool2d(both[1], 2).flip(3)
    ) / 2
    for n, position in enumerate(described["positions"][0]):
        cell = cells[0, :, position // 2, position % 2]
        np.testing.assert_allclose(
            described["regions"][0, n], cell, rtol=2e-3, atol=1e-3
        )
    structure = timm_cnn.structure(TINY, whole.num_features).eval()
    structure.load_state_dict(
        network.state_dict()
        | {
            "pooled_mean": torch.zeros(whole.num_features),
            "pooled_deviation": torch.ones(whole.num_features),
        }
    )
    with torch.no_grad():
        seen = torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)[None]
        torch.testing.assert_close(structure(seen), network(seen))


def pair(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return pixels, pixels.flip(3)


def test_what_is_wrong_is_told_in_a_line(whole, tmp_path, monkeypatch):
    with refused("weights_dir", "test_efficientnet.pth", "none", "--weights-dir"):
        timm_cnn.load(TINY, tmp_path)
    with refused("weights_dir", "test_efficientnet.pth", "none"):
        timm_cnn.load(TINY, None)
    torch.save(
        fewer := dict(list(whole.state_dict().items())[:9]),
        tmp_path / "test_efficientnet.pth",
    )
    with refused("test_efficientnet.pth", "of this network", "another network"):
        timm_cnn.load(TINY, tmp_path)
    (tmp_path / "test_efficientnet.safetensors").write_bytes(b"x" * 99)
    with refused(
        "weights_dir", found="test_efficientnet.pth, test_efficientnet.safetensors"
    ):
        timm_cnn.load(TINY, tmp_path)
    (tmp_path / "test_efficientnet.pth").unlink()
    with refused("test_efficientnet.safetensors", "plain tensors", "something else"):
        timm_cnn.load(TINY, tmp_path)
    torch.save(fewer, tmp_path / "test_efficientnett.pth")
    with refused("network", "of timm", "test_efficientnet?"):
        timm_cnn.load("timm_test_efficientnett", tmp_path)
    state = timm.create_model("test_vit", pretrained=False).state_dict()
    torch.save(state, tmp_path / "test_vit.pth")
    with refused("network timm_test_vit", "a feature map", "(1, "):
        timm_cnn.load("timm_test_vit", tmp_path)
    monkeypatch.setattr(weight_files, "find_spec", lambda name: None)
    with refused(f"network {TINY}", "the library timm", do="rematch-benchmark[timm]"):
        timm_cnn.whereabouts(TINY, tmp_path)


# EfficientNet-Lite2 -------------------------------------------------------------------

# Kernel, stride and number of blocks of each stage: EfficientNet-B0 (Tan and Le 2019,
# Table 1) with depth 1.2; Lite leaves squeeze-and-excitation out, has ReLU6, and scales
# neither stem nor head, nor the depth of the first and last stage.
STAGES = [(3, 1, 1), (3, 2, 3), (5, 2, 3), (3, 2, 4), (5, 1, 4), (5, 2, 5), (3, 1, 1)]


class Naive:
    """EfficientNet-Lite2 as published, by the names of efficientnet-lite-pytorch."""

    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        self.state = state

    def convolved(self, x, name, norm, stride=1, active=True):
        """Padding "same" as of TensorFlow: what is odd goes to the right and below."""
        weight = self.state[f"{name}.weight"]
        side, length = weight.shape[2], x.shape[3]
        more = max((-(-length // stride) - 1) * stride + side - length, 0)
        x = F.pad(x, (more // 2, more - more // 2) * 2)
        x = F.conv2d(x, weight, stride=stride, groups=x.shape[1] // weight.shape[1])
        mean, variance, scale, shift = (
            self.state[f"{norm}.{key}"][:, None, None]
            for key in ("running_mean", "running_var", "weight", "bias")
        )
        x = (x - mean) / (variance + 1e-3).sqrt() * scale + shift
        return x.clamp(0, 6) if active else x

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x, number = self.convolved(x, "_conv_stem", "_bn0", 2), 0
        for stage, (_, stride, repeats) in enumerate(STAGES):
            for repeat in range(repeats):
                at, before = f"_blocks.{number}", x
                if stage:
                    x = self.convolved(x, f"{at}._expand_conv", f"{at}._bn0")
                step = stride if repeat == 0 else 1
                x = self.convolved(x, f"{at}._depthwise_conv", f"{at}._bn1", step)
                x = self.convolved(x, f"{at}._project_conv", f"{at}._bn2", active=False)
                x = x + before if repeat else x
                number += 1
        return self.convolved(x, "_conv_head", "_bn1")


@pytest.fixture(scope="module")
def lite(tmp_path_factory) -> dict[str, torch.Tensor]:
    if not REAL.is_file():
        pytest.skip(f"{REAL} is not there")
    return torch.load(REAL, weights_only=True)


def test_every_stage_has_the_kernel_that_was_published(lite):
    kernels = [kernel for kernel, _, repeats in STAGES for _ in range(repeats)]
    names = [f"_blocks.{n}._depthwise_conv.weight" for n in range(len(kernels))]
    assert [lite[name].shape[2] for name in names] == kernels
    assert f"_blocks.{len(kernels)}._depthwise_conv.weight" not in lite


def test_efficientnet_lite_of_other_names_is_the_naive_network(lite):
    network, facts = timm_cnn.load(LITE, REAL.parent)
    assert facts["file"] == "efficientnet_lite2.pth"
    torch.manual_seed(0)
    pixels = F.interpolate(torch.rand(2, 3, 20, 20), (260, 260), mode="bicubic").clamp(
        0, 1
    )
    with torch.no_grad():
        pooled, maps = network(pixels)
        expected = Naive(lite)((255 * pixels - 127.5) / 127.5)
    assert maps.shape == (2, 1280, 9, 9)
    torch.testing.assert_close(maps, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(pooled, expected.mean((2, 3)), rtol=1e-4, atol=1e-4)
