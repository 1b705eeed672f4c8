"""The detector's boxes and features, against what torchvision's own forward pass
gives."""

import numpy as np
import torch
from PIL import Image
from refusals import refused
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign
from torchvision.transforms.functional import to_tensor

from benchmark.features import faster_rcnn, weight_files

V2, MOBILE = faster_rcnn.NETWORKS


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
    pixels = np.random.default_rng(seed).integers(
        0, 256, (height // 8, width // 8, 3), np.uint8
    )
    return Image.fromarray(pixels).resize((width, height))


PICTURES = [picture_of(40, 32), picture_of(96, 64, seed=1)]


def official(detector: FasterRCNN, picture: Image.Image) -> dict[str, torch.Tensor]:
    """What torchvision's forward pass detects, and what it makes of a picture on the
    way."""
    seen = {}
    hooks = [
        detector.rpn.register_forward_hook(
            lambda m, _, out: seen.update(proposals=out[0][0])
        ),
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
    for view, picture in zip(
        faster_rcnn.views(detector, PICTURES), PICTURES, strict=True
    ):
        boxes, expected = view.proposed(20), official(detector, picture)["proposals"]
        assert len(expected) > 20 and boxes.dtype == np.float32
        np.testing.assert_allclose(boxes, expected[:20], rtol=1e-5, atol=1e-4)
        assert (boxes >= 0).all() and (
            boxes <= np.array([*picture.size] * 2) + 1e-3
        ).all()
    assert boxes[:, 2:].max() > 64  # not in the pixels of the resized picture
    few = faster_rcnn.views(tiny(rpn_post_nms_top_n_test=5), PICTURES)
    assert [len(view.proposed(20)) for view in few] == [5, 5]


def test_features_are_those_of_the_box_head():
    detector = tiny()
    for view, picture in zip(
        faster_rcnn.views(detector, PICTURES), PICTURES, strict=True
    ):
        seen = official(detector, picture)
        features = view.described(seen["proposals"][:7].numpy())
        assert features.shape == (7, 1024) and features.dtype == np.float32
        np.testing.assert_allclose(features, seen["features"][:7], atol=1e-4)
        assert np.ptp(features, axis=0).max() > 0.01  # boxes differ
        assert view.described(np.zeros((0, 4), np.float32)).shape == (0, 1024)


def test_regions_are_the_detections_of_highest_score():
    detector = tiny(box_score_thresh=0.0)
    for view, picture in zip(
        faster_rcnn.views(detector, PICTURES), PICTURES, strict=True
    ):
        features, boxes = view.regions(6)
        seen = official(detector, picture)
        assert (seen["scores"].diff() <= 0).all() and len(seen["boxes"]) > 6
        np.testing.assert_allclose(boxes, seen["boxes"][:6], rtol=1e-4, atol=1e-3)
        expected = view.described(seen["boxes"][:6].numpy())
        np.testing.assert_allclose(features, expected, atol=1e-3)


def test_on_a_gpu_pictures_of_one_padded_size_pass_together(monkeypatch):
    """19 pictures of two padded sizes, mixed: ten of one, more than a batch, and nine
    of the other. What a GPU would do, on the CPU; there, a picture alone has the same
    bits as beside others."""
    detector = tiny(box_score_thresh=0.0)
    sizes = [(40, 32), (160, 64)] * 9 + [(40, 32)]
    pictures = [picture_of(*size, seed=seed) for seed, size in enumerate(sizes)]
    alone = [view.regions(5) for view in faster_rcnn.views(detector, pictures)]
    for picture, regions in zip(pictures[:3], alone, strict=False):
        (view,) = faster_rcnn.views(detector, [picture])
        np.testing.assert_array_equal(view.regions(5)[0], regions[0])
    monkeypatch.setitem(faster_rcnn.TOGETHER, "cpu", faster_rcnn.TOGETHER["cuda"])
    looks = []
    hook = detector.backbone.register_forward_hook(
        lambda _, given, __: looks.append(len(given[0]))
    )
    together = faster_rcnn.views(detector, pictures)
    hook.remove()
    assert sorted(looks) == [1, 2, 8, 8]
    for view, (features, boxes) in zip(together, alone, strict=True):
        again = view.regions(5)
        np.testing.assert_allclose(again[1], boxes, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(again[0], features, rtol=1e-4, atol=1e-4)


# Weights ------------------------------------------------------------------------------


def test_a_download_that_fails_is_one_line(tmp_path, monkeypatch):
    def fails(*given, **settings):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fails)
    with refused("", f"one of {V2}, {MOBILE}", "'yolo'"):
        faster_rcnn.load("yolo", None)
    with refused("", "https://", "no network", "--weights-dir"):
        faster_rcnn.load(MOBILE, None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for name in (V2, MOBILE):
        found = faster_rcnn.whereabouts(name, None)
        assert found.url.startswith("https://")
        assert weight_files.whereabouts_by_name("faster_rcnn", name, None) == found
