"""torchvision's Faster R-CNN (Ren et al. 2015), trained on COCO: boxes, and features of
boxes.

It stands in for bottom-up attention (Anderson et al. 2018), whose detector was trained
on objects and attributes of Visual Genome, and for the two-branch paper's Fast R-CNN.
The features of a box are those of the last hidden layer of the box head, 1024 numbers.

Boxes are x0, y0, x1, y1 in pixels of the image, half-open.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.models import get_model
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.transform import resize_boxes
from torchvision.transforms.functional import to_tensor

from benchmark.features import weight_files

# Images of one padded size in a batch. A CPU gains nothing from it, and one by one the
# features of an image are the same bits whatever is encoded beside it.
TOGETHER = {"cpu": 1, "cuda": 8}
NETWORKS = weight_files.DETECTING


def load(network: str, weights_dir: Path | None) -> tuple[FasterRCNN, dict[str, str]]:
    """The detector in evaluation mode, and the file name and sha256 of its weights.

    Raises UserError for an unknown network, and for weights that are missing,
    ambiguous, not a plain tensor file, or of another network.
    """
    url = weight_files.url_of(network, NETWORKS, weight_files.DETECTED)
    path = weight_files.locate(url, weights_dir)
    detector = get_model(network, weights=None, weights_backbone=None)
    origin = weight_files.fill(detector, path)
    return detector.eval(), origin


def whereabouts(network: str, weights_dir: Path | None) -> weight_files.Weights:
    """Where the weights are or come from. Raises UserError if `weights_dir` lacks
    them."""
    url = weight_files.url_of(network, NETWORKS, weight_files.DETECTED)
    return weight_files.whereabouts(url, weights_dir)


@dataclass(frozen=True)
class View:
    """An image inside the detector, whose boxes are in pixels of the resized image."""

    detector: FasterRCNN
    maps: dict[str, Tensor]
    proposals: Tensor  # (n, 4) by falling objectness
    resized: tuple[int, int]  # height and width inside the detector
    size: tuple[int, int]  # height and width of the image itself

    @torch.inference_mode()
    def proposed(self, count: int) -> np.ndarray:
        """Boxes (n, 4) float32, n <= `count`, by falling objectness.

        They are those of the region proposal network, which proposes things of any
        class.
        """
        return self._outside(self.proposals[:count])

    @torch.inference_mode()
    def described(self, boxes: np.ndarray) -> np.ndarray:
        """Features (n, F) float32 of boxes (n, 4)."""
        inside = torch.from_numpy(boxes).to(self.proposals)
        return self._features(resize_boxes(inside, self.size, self.resized))

    @torch.inference_mode()
    def regions(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Features (count, F) and boxes (count, 4), float32, of detections by falling
        score.

        If fewer things are detected, the first proposals follow, and then the whole
        image.
        """
        heads = self.detector.roi_heads
        ((detected,), _) = heads(self.maps, [self.proposals], [self.resized])
        height, width = self.resized
        whole = self.proposals.new_tensor([[0, 0, width, height]])
        filling = whole.expand(count, 4)
        boxes = torch.cat([detected["boxes"], self.proposals, filling])[:count]
        return self._features(boxes), self._outside(boxes)

    def _features(self, boxes: Tensor) -> np.ndarray:
        heads = self.detector.roi_heads
        pooled = heads.box_roi_pool(self.maps, [boxes], [self.resized])
        return heads.box_head(pooled).cpu().numpy()

    def _outside(self, boxes: Tensor) -> np.ndarray:
        return resize_boxes(boxes, self.resized, self.size).cpu().numpy()


@torch.inference_mode()
def views(detector: FasterRCNN, images: list[Image.Image]) -> list[View]:
    """The images inside the detector, in their order. Those of one padded size pass
    together: others would be padded to the largest, which changes features."""
    device = next(detector.parameters()).device
    resized = []
    by_shape = defaultdict(list)
    for number, image in enumerate(images):
        inside, _ = detector.transform([to_tensor(image).to(device)])
        resized.append(inside)
        by_shape[inside.tensors.shape].append(number)
    step = TOGETHER[device.type]
    batches = []
    for numbers in by_shape.values():
        starts = range(0, len(numbers), step)
        batches += [numbers[start : start + step] for start in starts]
    view_of: dict[int, View] = {}
    for numbers in batches:
        sizes = [resized[number].image_sizes[0] for number in numbers]
        tensors = torch.cat([resized[number].tensors for number in numbers])
        batch = ImageList(tensors, sizes)
        maps = detector.backbone(tensors)
        if isinstance(maps, Tensor):  # from a backbone without a feature pyramid
            maps = {"0": maps}
        proposals, _ = detector.rpn(batch, maps)
        for row, number in enumerate(numbers):
            image = images[number]
            view_of[number] = View(
                detector=detector,
                maps={level: values[[row]] for level, values in maps.items()},
                proposals=proposals[row],
                resized=sizes[row],
                size=(image.height, image.width),
            )
    return [view_of[number] for number in range(len(images))]
