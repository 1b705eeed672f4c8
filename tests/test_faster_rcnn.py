"""The detector's boxes and features, against what torchvision's own forward pass gives."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models import detection
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign
from torchvision.transforms.functional import to_tensor

from benchmark.core.errors import UserError
from benchmark.encoders import faster_rcnn

V2, MOBILE = faster_rcnn.NETWORKS
FILE = "fasterrcnn_resnet50_fpn_v2_coco-1.pth"


def tiny(**settings) -> FasterRCNN:
    """Random weights; pictures are enlarged to 64 pixels on the shorter side."""
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Conv2d(3, 8, 9, stride=8, padding=4), nn.ReLU())
    backbone.out_channels = 8
    built = FasterRCNN(
        backbone,
        num_classes=4,
        min_size=64,
        max_size=160,
        rpn_anchor_generator=AnchorGenerator(((12, 24),), ((0.5, 1.0, 2.0),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2),
        box_head=nn.Sequential(nn.Flatten(), nn.Linear(72, 1024), nn.ReLU()),
        **settings,
    )
    for module in built.modules():
        if isinstance(module, nn.Conv2d):  # so that boxes of one picture differ
            nn.init.normal_(module.weight, std=0.1)
    return built.eval()


def picture_of(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    return Image.fromarray(pixels).resize((width, height))


PICTURES = [picture_of(40, 32), picture_of(96, 64, seed=1)]


def official(detector: FasterRCNN, picture: Image.Image) -> dict[str, torch.Tensor]:
    """What torchvision's forward pass detects, and what it makes of a picture on the way."""
    seen = {}
    hooks = [
        detector.rpn.register_forward_hook(lambda m, _, out: seen.update(proposals=out[0][0])),
        detector.roi_heads.box_head.register_forward_hook(
            lambda m, _, out: seen.update(features=out)
        ),
        detector.transform.register_forward_hook(
            lambda m, _, out: seen.update(resized=out[0].image_sizes[0])
        ),
    ]
    with torch.no_grad():
        seen |= detector([to_tensor(picture)])[0]
    for hook in hooks:
        hook.remove()
    height, width = seen["resized"]
    zoom = torch.tensor([picture.width / width, picture.height / height] * 2)
    return seen | {"proposals": seen["proposals"] * zoom}


def test_proposals_come_by_objectness_in_pixels_of_the_picture():
    detector = tiny()
    proposals = faster_rcnn.proposals_of(detector, PICTURES, 20)
    for boxes, picture in zip(proposals, PICTURES, strict=True):
        expected = official(detector, picture)["proposals"]
        assert len(expected) > 20 and boxes.dtype == np.float32
        np.testing.assert_allclose(boxes, expected[:20], rtol=1e-5, atol=1e-4)
        assert (boxes >= 0).all() and (boxes <= np.array([*picture.size] * 2) + 1e-3).all()
    assert proposals[1][:, 2:].max() > 64  # not in the pixels of the resized picture


def test_if_there_are_fewer_proposals_all_are_given():
    detector = tiny(rpn_post_nms_top_n_test=5)
    assert [len(x) for x in faster_rcnn.proposals_of(detector, PICTURES, 20)] == [5, 5]


def test_features_are_those_of_the_box_head():
    detector = tiny()
    expected = [official(detector, picture) for picture in PICTURES]
    boxes = [seen["proposals"][:7].numpy() for seen in expected]
    described = faster_rcnn.features_of(detector, PICTURES, boxes)
    for features, seen in zip(described, expected, strict=True):
        assert features.shape == (7, 1024) and features.dtype == np.float32
        np.testing.assert_allclose(features, seen["features"][:7], atol=1e-4)
        assert np.ptp(features, axis=0).max() > 0.01  # boxes differ
    none = faster_rcnn.features_of(detector, PICTURES[:1], [np.zeros((0, 4), np.float32)])
    assert none[0].shape == (0, 1024)


def test_regions_are_the_detections_of_highest_score():
    detector = tiny(box_score_thresh=0.0)
    features, boxes = faster_rcnn.regions_of(detector, PICTURES, 6)
    assert features.shape == (2, 6, 1024) and boxes.shape == (2, 6, 4)
    for row, picture in enumerate(PICTURES):
        seen = official(detector, picture)
        assert (seen["scores"].diff() <= 0).all() and len(seen["boxes"]) > 6
        np.testing.assert_allclose(boxes[row], seen["boxes"][:6], rtol=1e-4, atol=1e-3)
        expected = faster_rcnn.features_of(detector, [picture], [seen["boxes"][:6].numpy()])
        np.testing.assert_allclose(features[row], expected[0], atol=1e-3)


def test_if_too_little_is_detected_proposals_follow_and_then_the_whole_picture():
    detector = tiny(box_score_thresh=0.0, box_detections_per_img=2, rpn_post_nms_top_n_test=3)
    _, boxes = faster_rcnn.regions_of(detector, PICTURES, 8)
    for row, picture in enumerate(PICTURES):
        seen = official(detector, picture)
        whole = torch.tensor([[0.0, 0, picture.width, picture.height]])
        expected = torch.cat([seen["boxes"], seen["proposals"], whole, whole, whole])
        np.testing.assert_allclose(boxes[row], expected, rtol=1e-4, atol=1e-3)
    nothing = tiny(box_score_thresh=1.0)
    _, boxes = faster_rcnn.regions_of(nothing, PICTURES, 4)
    expected = faster_rcnn.proposals_of(nothing, PICTURES, 4)
    np.testing.assert_allclose(boxes, expected)


def test_proposals_and_features_come_from_one_look_at_a_picture():
    detector = tiny()
    more = [np.array([[1, 2, 20, 30]], np.float32), np.zeros((0, 4), np.float32)]
    looks = []
    hook = detector.backbone.register_forward_hook(lambda *_: looks.append(1))
    proposals, features = faster_rcnn.proposals_and_features_of(detector, PICTURES[:2], more, 5)
    hook.remove()
    assert len(looks) == 2
    for proposed, expected in zip(
        proposals, faster_rcnn.proposals_of(detector, PICTURES[:2], 5), strict=True
    ):
        np.testing.assert_array_equal(proposed, expected)
    boxes = [np.concatenate(both) for both in zip(proposals, more, strict=True)]
    apart = faster_rcnn.features_of(detector, PICTURES[:2], boxes)
    for described, expected in zip(features, apart, strict=True):
        np.testing.assert_array_equal(described, expected)


def test_features_of_a_picture_do_not_depend_on_the_others():
    detector = tiny(box_score_thresh=0.0)
    together = faster_rcnn.regions_of(detector, PICTURES, 5)[0]
    alone = [faster_rcnn.regions_of(detector, [picture], 5)[0][0] for picture in PICTURES]
    np.testing.assert_array_equal(together, alone)


def test_on_a_gpu_pictures_of_one_padded_size_pass_together(monkeypatch):
    """19 pictures of two padded sizes, mixed: ten of one, more than a batch, and nine of the other.
    What a GPU would do, on the CPU."""
    monkeypatch.setitem(faster_rcnn.TOGETHER, "cpu", faster_rcnn.TOGETHER["cuda"])
    detector = tiny(box_score_thresh=0.0)
    sizes = [(40, 32), (160, 64)] * 9 + [(40, 32)]
    pictures = [picture_of(*size, seed=seed) for seed, size in enumerate(sizes)]
    looks = []
    hook = detector.backbone.register_forward_hook(lambda _, given, __: looks.append(len(given[0])))
    features, boxes = faster_rcnn.regions_of(detector, pictures, 5)
    hook.remove()
    assert sorted(looks) == [1, 2, 8, 8]
    for picture, of_picture, corners in zip(pictures, features, boxes, strict=True):
        expected = faster_rcnn.regions_of(detector, [picture], 5)
        np.testing.assert_allclose(corners, expected[1][0], rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(of_picture, expected[0][0], rtol=1e-4, atol=1e-4)


# Weights --------------------------------------------------------------------------------------


@pytest.fixture
def built_tiny(monkeypatch):
    def get_model(name, weights, weights_backbone):
        assert (name, weights, weights_backbone) == (V2, None, None)
        return tiny()

    monkeypatch.setattr(faster_rcnn, "get_model", get_model)


def refused(network: str, weights_dir: Path | None) -> UserError:
    with pytest.raises(UserError) as caught:
        faster_rcnn.load(network, weights_dir)
    assert "\n" not in str(caught.value) and caught.value.do
    return caught.value


def test_weights_come_from_the_folder(built_tiny, tmp_path):
    state = {name: value + 1 for name, value in tiny().state_dict().items()}
    torch.save(state, tmp_path / FILE)
    detector, facts = faster_rcnn.load(V2, tmp_path)
    assert facts["file"] == FILE == faster_rcnn.whereabouts(V2, tmp_path)
    assert len(facts["sha256"]) == 64 and not detector.training
    for name, value in detector.state_dict().items():
        torch.testing.assert_close(value, state[name])


CHANGES = {
    "names": lambda state: {f"model.{name}": value for name, value in state.items()},
    "fewer": lambda state: dict(list(state.items())[:4]),
    "shapes": lambda state: state | {"backbone.0.bias": torch.zeros(3)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_weights_of_another_network_are_refused(built_tiny, tmp_path, change):
    torch.save(change(tiny().state_dict()), tmp_path / FILE)
    error = refused(V2, tmp_path)
    assert error.where == FILE and error.found.startswith("those of another network (")


def test_weights_that_are_no_tensors_are_refused(built_tiny, tmp_path):
    torch.save({"weight": Path("a")}, tmp_path / FILE)
    error = refused(V2, tmp_path)
    assert (error.where, error.expected) == (FILE, "a state dict of plain tensors")


def test_missing_and_ambiguous_weights_are_refused(tmp_path):
    error = refused(V2, tmp_path)
    assert error.expected == "exactly one file fasterrcnn_resnet50_fpn_v2_coco-*.pth"
    assert error.found == "none" and "--weights-dir" in error.do
    for name in (FILE, FILE.replace("1", "2")):
        (tmp_path / name).touch()
    with pytest.raises(UserError) as caught:
        faster_rcnn.whereabouts(V2, tmp_path)
    assert caught.value.found.startswith(f"{FILE}, ")
    error = refused("yolo", tmp_path)
    assert (error.expected, error.found) == (f"a detector, one of {V2}, {MOBILE}", "'yolo'")


def test_a_download_that_fails_is_one_line(monkeypatch):
    def fails(*given, **settings):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fails)
    error = refused(MOBILE, None)
    assert error.expected.startswith("to download it from https://")
    assert error.found == "no network" and "--weights-dir" in error.do
    assert "to be downloaded from https://" in faster_rcnn.whereabouts(MOBILE, None)


def test_torchvisions_own_detectors_give_1024_numbers_per_box():
    torch.manual_seed(0)
    detector = detection.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None)
    detector.transform.min_size = (64,)
    features, boxes = faster_rcnn.regions_of(detector.eval(), PICTURES[:1], 36)
    assert features.shape == (1, 36, 1024) and np.isfinite(features).all()
    assert (boxes[0, :, 2:] > boxes[0, :, :2]).all()
    assert all(callable(getattr(detection, name)) for name in faster_rcnn.NETWORKS)
