"""torchvision's Faster R-CNN (Ren et al. 2015), trained on COCO: boxes, and features of boxes.

Stands in for bottom-up attention (Anderson et al. 2018), whose detector was trained on Visual
Genome's objects and attributes, and for the two-branch paper's Fast R-CNN. Its features are
those of the last hidden layer of the box head, 1024 numbers.

Boxes are x0, y0, x1, y1 in pixels of the picture, half-open.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.models import detection, get_model_weights
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.transform import resize_boxes
from torchvision.transforms.functional import to_tensor

from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.encoders import published_weights

NETWORKS = ("fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn")


def load(network: str, weights_dir: Path | None) -> tuple[FasterRCNN, dict[str, str]]:
    """The detector in evaluation mode, and the file name and sha256 of its weights.

    Raises UserError for an unknown network, and for weights that are missing, ambiguous, not a
    plain tensor file, or of another network.
    """
    path = published_weights.locate(_url(network), weights_dir)
    detector = getattr(detection, network)(weights=None, weights_backbone=None)
    published_weights.fill(detector, path)
    return detector.eval(), {"file": path.name, "sha256": sha256(path)}


def whereabouts(network: str, weights_dir: Path | None) -> str:
    """Where the weights are or come from. Raises UserError when `weights_dir` lacks them."""
    return published_weights.whereabouts(_url(network), weights_dir)


def _url(network: str) -> str:
    if network not in NETWORKS:
        raise UserError(f"no detector {network!r}; expected one of {', '.join(NETWORKS)}")
    return get_model_weights(network).DEFAULT.url


class _Seen(NamedTuple):
    """A picture inside the detector; boxes are in pixels of the resized picture."""

    maps: dict[str, Tensor]
    proposals: Tensor  # (n, 4) by falling objectness
    resized: tuple[int, int]  # height and width
    size: tuple[int, int]  # height and width of the picture itself


@torch.inference_mode()
def proposals_of(detector: FasterRCNN, pictures: list[Image.Image], count: int) -> list[np.ndarray]:
    """Boxes (n, 4) float32 of every picture, n <= `count`: what the region proposal network
    takes for things of any kind, by falling objectness."""
    found = []
    for picture in pictures:
        seen = _seen(detector, picture)
        boxes = resize_boxes(seen.proposals[:count], seen.resized, seen.size)
        found.append(boxes.cpu().numpy())
    return found


@torch.inference_mode()
def features_of(
    detector: FasterRCNN, pictures: list[Image.Image], boxes: list[np.ndarray]
) -> list[np.ndarray]:
    """Features (n, F) float32 of the boxes (n, 4) of every picture."""
    found = []
    for picture, asked in zip(pictures, boxes, strict=True):
        seen = _seen(detector, picture)
        inside = torch.from_numpy(asked).to(seen.proposals)
        inside = resize_boxes(inside, seen.size, seen.resized)
        found.append(_described(detector, seen, inside).cpu().numpy())
    return found


@torch.inference_mode()
def regions_of(
    detector: FasterRCNN, pictures: list[Image.Image], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Features (B, count, F) and boxes (B, count, 4), float32: what was detected, by falling score.

    Where fewer things are detected, the first proposals follow; where those do not suffice, the
    whole picture.
    """
    features, places = [], []
    for picture in pictures:
        seen = _seen(detector, picture)
        boxes = _best(detector, seen, count)
        features.append(_described(detector, seen, boxes).cpu().numpy())
        places.append(resize_boxes(boxes, seen.resized, seen.size).cpu().numpy())
    return np.stack(features), np.stack(places)


def _seen(detector: FasterRCNN, picture: Image.Image) -> _Seen:
    # One by one: in a batch, pictures are padded to the largest, and each changes the others.
    pixels = to_tensor(picture).to(next(detector.parameters()).device)
    images, _ = detector.transform([pixels])
    maps = detector.backbone(images.tensors)
    if isinstance(maps, Tensor):  # of a backbone without a pyramid
        maps = {"0": maps}
    proposals, _ = detector.rpn(images, maps)
    return _Seen(maps, proposals[0], images.image_sizes[0], (picture.height, picture.width))


def _best(detector: FasterRCNN, seen: _Seen, count: int) -> Tensor:
    """(count, 4)"""
    detected, _ = detector.roi_heads(seen.maps, [seen.proposals], [seen.resized])
    height, width = seen.resized
    whole = seen.proposals.new_tensor([[0, 0, width, height]]).expand(count, 4)
    return torch.cat([detected[0]["boxes"], seen.proposals, whole])[:count]


def _described(detector: FasterRCNN, seen: _Seen, boxes: Tensor) -> Tensor:
    """(n, F)"""
    heads = detector.roi_heads
    return heads.box_head(heads.box_roi_pool(seen.maps, [boxes], [seen.resized]))
