"""torchvision's Faster R-CNN (Ren et al. 2015), trained on COCO: boxes, and features of boxes.

It stands in for bottom-up attention (Anderson et al. 2018), whose detector was trained on objects
and attributes of Visual Genome, and for the two-branch paper's Fast R-CNN. The features of a box
are those of the last hidden layer of the box head, 1024 numbers.

Boxes are x0, y0, x1, y1 in pixels of the picture, half-open.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.models import get_model, get_model_weights
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.transform import resize_boxes
from torchvision.transforms.functional import to_tensor

from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.encoders import weight_files

# Pictures of one padded size in a batch. A CPU gains nothing from it, and one by one the features
# of a picture are the same bits whatever is encoded beside it.
TOGETHER = {"cpu": 1, "cuda": 8}
NETWORKS = ("fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn")


def load(network: str, weights_dir: Path | None) -> tuple[FasterRCNN, dict[str, str]]:
    """The detector in evaluation mode, and the file name and sha256 of its weights.

    Raises UserError for an unknown network, and for weights that are missing, ambiguous, not a
    plain tensor file, or of another network.
    """
    path = weight_files.locate(_url(network), weights_dir)
    detector = get_model(network, weights=None, weights_backbone=None)
    weight_files.fill(detector, path)
    return detector.eval(), {"file": path.name, "sha256": sha256(path)}


def whereabouts(network: str, weights_dir: Path | None) -> str:
    """Where the weights are or come from. Raises UserError if `weights_dir` lacks them."""
    return weight_files.whereabouts(_url(network), weights_dir)


def _url(network: str) -> str:
    if network not in NETWORKS:
        raise UserError(
            where="network",
            expected=f"a detector, one of {', '.join(NETWORKS)}",
            found=repr(network),
            do="choose one of these",
        )
    return get_model_weights(network).DEFAULT.url


class _View(NamedTuple):
    """A picture inside the detector; boxes are in pixels of the resized picture."""

    maps: dict[str, Tensor]
    proposals: Tensor  # (n, 4) by falling objectness
    resized: tuple[int, int]  # height and width inside the detector
    size: tuple[int, int]  # height and width of the picture itself


@torch.inference_mode()
def proposals_of(detector: FasterRCNN, pictures: list[Image.Image], count: int) -> list[np.ndarray]:
    """Boxes (n, 4) float32 of every picture, n <= `count`, by falling objectness.

    They are those of the region proposal network, which proposes things of any class.
    """
    return [_proposed(view, count) for view in _views(detector, pictures)]


@torch.inference_mode()
def features_of(
    detector: FasterRCNN, pictures: list[Image.Image], boxes: list[np.ndarray]
) -> list[np.ndarray]:
    """Features (n, F) float32 of the boxes (n, 4) of every picture."""
    return [
        _described_at(detector, view, corners)
        for view, corners in zip(_views(detector, pictures), boxes, strict=True)
    ]


@torch.inference_mode()
def proposals_and_features_of(
    detector: FasterRCNN, pictures: list[Image.Image], more: list[np.ndarray], count: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What `proposals_of` gives, and the features of these boxes and then of `more` (n, 4) of every
    picture, which is looked at once."""
    proposals, features = [], []
    for view, corners in zip(_views(detector, pictures), more, strict=True):
        proposals.append(_proposed(view, count))
        boxes = np.concatenate([proposals[-1], corners])
        features.append(_described_at(detector, view, boxes))
    return proposals, features


@torch.inference_mode()
def regions_of(
    detector: FasterRCNN, pictures: list[Image.Image], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Features (B, count, F) and boxes (B, count, 4), float32, of detections by falling score.

    If fewer things are detected, the first proposals follow, and then the whole picture.
    """
    features, boxes = [], []
    for view in _views(detector, pictures):
        detected = _best(detector, view, count)
        features.append(_described(detector, view, detected).cpu().numpy())
        boxes.append(resize_boxes(detected, view.resized, view.size).cpu().numpy())
    return np.stack(features), np.stack(boxes)


def _views(detector: FasterRCNN, pictures: list[Image.Image]) -> list[_View]:
    """The pictures inside the detector, in their order. Those of one padded size pass together:
    others would be padded to the largest, which changes features."""
    device = next(detector.parameters()).device
    resized = [detector.transform([to_tensor(picture).to(device)])[0] for picture in pictures]
    by_shape = defaultdict(list)
    for number, images in enumerate(resized):
        by_shape[images.tensors.shape].append(number)
    views, step = {}, TOGETHER[device.type]
    for numbers in by_shape.values():
        for start in range(0, len(numbers), step):
            together = numbers[start : start + step]
            views |= _views_of_one_size(detector, pictures, resized, together)
    return [views[number] for number in range(len(pictures))]


def _views_of_one_size(
    detector: FasterRCNN,
    pictures: list[Image.Image],
    resized: list[ImageList],
    numbers: Sequence[int],
) -> dict[int, _View]:
    """Number of a picture -> its view."""
    sizes = [resized[number].image_sizes[0] for number in numbers]
    images = ImageList(torch.cat([resized[number].tensors for number in numbers]), sizes)
    maps = detector.backbone(images.tensors)
    if isinstance(maps, Tensor):  # from a backbone without a feature pyramid
        maps = {"0": maps}
    proposals, _ = detector.rpn(images, maps)
    return {
        number: _View(
            maps={level: values[[row]] for level, values in maps.items()},
            proposals=proposals[row],
            resized=sizes[row],
            size=(pictures[number].height, pictures[number].width),
        )
        for row, number in enumerate(numbers)
    }


def _proposed(view: _View, count: int) -> np.ndarray:
    """Boxes (n, 4) of the first proposals, in pixels of the picture."""
    return resize_boxes(view.proposals[:count], view.resized, view.size).cpu().numpy()


def _described_at(detector: FasterRCNN, view: _View, corners: np.ndarray) -> np.ndarray:
    """Features (n, F) of boxes (n, 4) in pixels of the picture."""
    in_view = resize_boxes(torch.from_numpy(corners).to(view.proposals), view.size, view.resized)
    return _described(detector, view, in_view).cpu().numpy()


def _best(detector: FasterRCNN, view: _View, count: int) -> Tensor:
    """The boxes (count, 4) of `regions_of`."""
    detected, _ = detector.roi_heads(view.maps, [view.proposals], [view.resized])
    height, width = view.resized
    whole = view.proposals.new_tensor([[0, 0, width, height]]).expand(count, 4)
    return torch.cat([detected[0]["boxes"], view.proposals, whole])[:count]


def _described(detector: FasterRCNN, view: _View, boxes: Tensor) -> Tensor:
    """Features (n, F) of boxes (n, 4)."""
    heads = detector.roi_heads
    return heads.box_head(heads.box_roi_pool(view.maps, [boxes], [view.resized]))
