"""What image networks make of images: grids of regions, and features of boxes on their maps."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torch.fx.experimental.optimization import fuse
from torchvision.models.detection import FasterRCNN
from torchvision.ops import roi_align

from benchmark.features import faster_rcnn
from benchmark.season.parameters import ImageEncoder

BICUBIC = Image.Resampling.BICUBIC
CELLS = 2  # grid cells of a box, per side; chosen on validation scenes of `shapes`, against 1

Describe = Callable[[list[Image.Image]], dict[str, np.ndarray]]  # arrays by the name of their file


def squashed(image: Image.Image, size: int) -> Image.Image:
    """The image as a square; not cropped, since captions may describe its margins."""
    return image if image.size == (size, size) else image.resize((size, size), BICUBIC)


def stacked(images: Sequence[Image.Image], size: int) -> Tensor:
    """RGB values in [0, 255] of B images, squashed, (B, 3, size, size) uint8."""
    arrays = np.stack([np.asarray(squashed(image, size)) for image in images])
    return torch.from_numpy(arrays).permute(0, 3, 1, 2)


def fused(network: nn.Module, device: torch.device) -> nn.Module:
    """The same function with every batch norm folded into its convolution: 2.5 times faster."""
    network = fuse(network.eval()).requires_grad_(False)
    return network.to(device, memory_format=torch.channels_last)


def _pixels(network: nn.Module, images: Sequence[Image.Image], size: int) -> Tensor:
    """Values in [0, 1] on the network's device, (B, 3, size, size)."""
    pixels = stacked(images, size).to(next(network.parameters()).device)
    return (pixels.float() / 255).to(memory_format=torch.channels_last)


def describer(network: nn.Module, settings: ImageEncoder, device: torch.device) -> Describe:
    """A function from B images to `pooled` (B, F) and `regions` (B, R, F), float16.

    Regions are a detector's boxes by falling score, as many as the grid would have, or the cells of
    the grid by falling norm, with their `positions` (B, R), int16.
    """
    if isinstance(network, FasterRCNN):
        network.transform.min_size = (settings.input_size,)
        detector = network.to(device)

        def detected(images: list[Image.Image]) -> dict[str, np.ndarray]:
            views = faster_rcnn.views(detector, images)
            regions = np.stack([view.regions(settings.grid**2)[0] for view in views])
            pooled, regions = regions.mean(1).astype(np.float16), regions.astype(np.float16)
            return {"pooled": pooled, "regions": regions}

        return detected
    network = fused(network, device)

    @torch.inference_mode()
    def gridded(images: list[Image.Image]) -> dict[str, np.ndarray]:
        pixels = _pixels(network, images, settings.input_size)
        pooled, map_BFhw = network(pixels)
        regions = _rows(F.adaptive_avg_pool2d(map_BFhw, settings.grid))
        if settings.flip:
            mirrored, map_BFhw = network(pixels.flip(3))
            # Flipped back, so that a cell shows the same part of the image in both.
            turned = _rows(F.adaptive_avg_pool2d(map_BFhw, settings.grid).flip(3))
            pooled, regions = (pooled + mirrored) / 2, (regions + turned) / 2
        # A detector's boxes come by falling score. Here the norm stands in for the score, so that
        # the first k regions are a meaningful choice.
        positions = regions.norm(dim=-1).argsort(dim=1, descending=True, stable=True)
        regions = regions.gather(1, positions[:, :, None].expand_as(regions))
        return {
            "pooled": pooled.cpu().numpy().astype(np.float16),
            "regions": regions.cpu().numpy().astype(np.float16),
            "positions": positions.cpu().numpy().astype(np.int16),
        }

    return gridded


def _rows(grid_BFgg: Tensor) -> Tensor:
    """The cells of a grid (B, grid * grid, F), row by row from the top left."""
    return grid_BFgg.flatten(2).transpose(1, 2).float()


@torch.inference_mode()
def aligned(
    network: nn.Module, size: int, images: list[Image.Image], boxes: list[np.ndarray]
) -> list[np.ndarray]:
    """Features (n, CELLS * CELLS * F') float32 of the boxes (n, 4) of every image.

    Those of the feature map under a box (RoIAlign, He et al. 2017), averaged in CELLS x CELLS parts
    and concatenated, row by row from the top left; each part is the mean of four points. The parts
    in which something is show how well the box fits. The network sees the images squashed to
    `size` x `size` pixels.
    """
    map_BFhw = network(_pixels(network, images, size))[1]
    height, width = map_BFhw.shape[2:]
    on_map = []
    for image, corners in zip(images, boxes, strict=True):
        zoom = [width / image.width, height / image.height] * 2  # cells of the map per pixel
        on_map.append(torch.from_numpy(corners).to(map_BFhw) * map_BFhw.new_tensor(zoom))
    parts = roi_align(map_BFhw, on_map, CELLS, sampling_ratio=2, aligned=True)
    features = parts.permute(0, 2, 3, 1).flatten(1).float().cpu()
    return [rows.numpy() for rows in features.split([len(corners) for corners in boxes])]
