"""Networks of timm: weights of a local file, the features of the library, and a naive network."""

import numpy as np
import pytest
import tiny_networks
import torch
import torch.nn.functional as F
from PIL import Image
from refusals import refused
from safetensors.torch import save_file

from benchmark.encode.images import describer
from benchmark.features import timm_cnn
from benchmark.season.parameters import ImageEncoder, module_of

timm = pytest.importorskip("timm")
TINY = "timm_test_efficientnet"  # timm's own network for tests
REAL = tiny_networks.WEIGHTS / "efficientnet_lite2.pth"


@pytest.fixture
def whole() -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(TINY.removeprefix("timm_"), pretrained=False).eval()
    with torch.no_grad():
        for name, value in model.named_buffers():
            if name.endswith("running_mean"):
                value.uniform_(-0.1, 0.1)
    return model


@pytest.mark.parametrize("file", ["test_efficientnet.pth", "test_efficientnet-x.safetensors"])
def test_features_are_those_that_the_classifier_sees(file, whole, tmp_path):
    save = save_file if file.endswith("safetensors") else torch.save
    save(whole.state_dict(), tmp_path / file)
    assert module_of(TINY) == "timm_cnn" and timm_cnn.whereabouts(TINY, tmp_path) == file
    network, facts = timm_cnn.load(TINY, tmp_path)
    assert facts["file"] == file and len(facts["sha256"]) == 64
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8))
    settings = ImageEncoder(network=TINY, input_size=160, grid=2)
    described = describer(network, settings, torch.device("cpu"))([image])
    cfg = whole.pretrained_cfg
    pixels = np.asarray(image.resize((160, 160), Image.Resampling.BICUBIC)) / 255
    normal = torch.from_numpy(((pixels - cfg["mean"]) / cfg["std"]).astype(np.float32))
    with torch.no_grad():
        both = [whole.forward_features(x) for x in pair(normal.permute(2, 0, 1)[None])]
    pooled = (both[0].mean((2, 3)) + both[1].mean((2, 3))) / 2
    np.testing.assert_allclose(described["pooled"], pooled, rtol=2e-3, atol=1e-3)
    cells = (F.adaptive_avg_pool2d(both[0], 2) + F.adaptive_avg_pool2d(both[1], 2).flip(3)) / 2
    for n, position in enumerate(described["positions"][0]):
        cell = cells[0, :, position // 2, position % 2]
        np.testing.assert_allclose(described["regions"][0, n], cell, rtol=2e-3, atol=1e-3)
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
        fewer := dict(list(whole.state_dict().items())[:9]), tmp_path / "test_efficientnet.pth"
    )
    with refused("test_efficientnet.pth", "the weights of this network", "another network"):
        timm_cnn.load(TINY, tmp_path)
    (tmp_path / "test_efficientnet.safetensors").write_bytes(b"x" * 99)
    with refused("weights_dir", found="test_efficientnet.pth, test_efficientnet.safetensors"):
        timm_cnn.load(TINY, tmp_path)
    (tmp_path / "test_efficientnet.pth").unlink()
    with refused("test_efficientnet.safetensors", "plain tensors", "something else"):
        timm_cnn.load(TINY, tmp_path)
    torch.save(fewer, tmp_path / "test_efficientnett.pth")
    with refused("network", "a network of timm", "did you mean test_efficientnet?"):
        timm_cnn.load("timm_test_efficientnett", tmp_path)
    state = timm.create_model("test_vit", pretrained=False).state_dict()
    torch.save(state, tmp_path / "test_vit.pth")
    with refused("network timm_test_vit", "a feature map", "(1, "):
        timm_cnn.load("timm_test_vit", tmp_path)
    monkeypatch.setattr(timm_cnn, "find_spec", lambda name: None)
    with refused(f"network {TINY}", "the library timm", do="rematch-benchmark[timm]"):
        timm_cnn.whereabouts(TINY, tmp_path)


# EfficientNet-Lite ------------------------------------------------------------------------------


def ends(state: dict[str, torch.Tensor]) -> list[tuple[str, torch.Size]]:
    return [(name.rpartition(".")[2], value.shape) for name, value in state.items()]


def test_weights_of_efficientnet_lite_pytorch_are_taken_in_the_order_of_their_layers(tmp_path):
    """That they have timm's order, the real file shows, where it is there."""
    torch.manual_seed(0)
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    state = model.state_dict()
    names = ["_conv_stem.weight", *(f"_{number}.{name}" for number, name in enumerate(state))]
    path = tmp_path / "efficientnet_lite0.pth"
    torch.save(dict(zip(names, state.values(), strict=False)), path)
    network, facts = timm_cnn.load("timm_tf_efficientnet_lite0", tmp_path)
    assert facts["file"] == path.name
    kept = network.state_dict()
    assert all(kept[f"trunk.{name}"].equal(state[name]) for name in state if "classif" not in name)
    if REAL.is_file():
        real = torch.load(REAL, weights_only=True)
        assert ends(real) == ends(timm.create_model("tf_efficientnet_lite2").state_dict())
