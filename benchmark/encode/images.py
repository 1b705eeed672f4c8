"""Features of images: of whole ones, of their regions, and of proposals of where things
may be.

A fixed network sees each image once. Arrays are filled chunk by chunk in a scratch
folder; a killed run can be resumed.
"""

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torch.fx.experimental.optimization import fuse
from torchvision.models.detection import FasterRCNN
from torchvision.ops import roi_align

from benchmark import features
from benchmark.core.command_line import ProgressBar, alone, lock_of
from benchmark.core.devices import begin, fingerprint, kind
from benchmark.core.files import read_json, replaced, write_json
from benchmark.data.feature_folders import (
    array_at,
    card_of,
    sha256_of_items,
    write_card,
)
from benchmark.data.prepared_tables import CORNERS, Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.features import faster_rcnn
from benchmark.features.imported_features import import_features
from benchmark.features.proposals import read_boxes, selective_search
from benchmark.features.standardisation import measured, write_standardised
from benchmark.season.parameters import (
    FeatureSet,
    ImageEncoder,
    Params,
    ProposalEncoder,
)
from benchmark.season.plugins import versions

# images encoded at once, and at most lost when a run is killed
CHUNK, CHUNK_OF_BOXES = 64, 16
PROGRESS = "progress.json"  # with it a scratch folder is resumed
BICUBIC = Image.Resampling.BICUBIC
# of a box, per side; chosen on validation scenes of `shapes`, against 1
PARTS = 2


def write_image_features(
    params: Params, feature_set: FeatureSet, data: Prepared
) -> None:
    """Write features of I images in the order of the image table:

    pooled.npy     (I, F) float16
    regions.npy    (I, R, F) float16
    positions.npy  (I, R) int16, for regions on a grid: their position on it, row by row
    pixels.npy     (I, 3, S, S) uint8, and network.pt, for training from pixels

    Features that the raw folder holds are imported instead.
    """
    settings = feature_set.image
    images = data.used_images
    dataset = raw_dataset(params, feature_set.dataset)
    if settings.features:
        import_features(feature_set, data, dataset)
        return
    network, weights = _network(params, feature_set.encoder, settings.network)
    state = network.state_dict()  # before `describer`, which may move the network
    sees_whole = isinstance(network, FasterRCNN)
    device = begin(params.device)
    describe = describer(network, settings, device)
    open_image = dataset.pictures()

    def opened(file: str) -> tuple[Image.Image, Image.Image]:
        """An image as the network sees it, a detector the whole one, and as it is
        trained from."""
        image = open_image(file)
        seen = image if sees_whole else squashed(image, settings.input_size)
        small = squashed(image, settings.pixels) if settings.pixels else seen
        return seen, small

    files = images["file"].tolist()
    card = card_of(feature_set, images["image_id"], data) | {"weights": weights}
    with scratch_folder(feature_set, card, device) as scratch:
        for rows, pairs in chunks(scratch, files, opened, CHUNK):
            seen, small = zip(*pairs, strict=True)
            arrays = describe(list(seen))
            if settings.pixels:
                arrays["pixels"] = stacked(small, settings.pixels).numpy()
            for name, values in arrays.items():
                shape = (len(files), *values.shape[1:])
                stored = array_at(scratch / f"{name}.npy", shape, values.dtype)
                stored[rows] = values
        is_train = (images["split"] == "train").to_numpy()
        counted = is_train if settings.standardise else None
        if settings.pixels:
            _save_network(scratch, state, counted)
        with replaced(Path(feature_set.folder)) as folder:
            for name in ("pooled.npy", "regions.npy"):
                standardiser = measured(scratch / name, counted)
                write_standardised(scratch / name, folder / name, standardiser)
            # from here on, a killed run cannot be resumed
            (scratch / PROGRESS).unlink()
            for name in ("positions.npy", "pixels.npy", "network.pt"):
                if (scratch / name).is_file():
                    shutil.move(scratch / name, folder / name)
            write_card(folder, card)


def _save_network(scratch: Path, state: dict, counted: np.ndarray | None) -> None:
    """Write network.pt: the network whose pooled output is what pooled.npy will
    hold."""
    path = scratch / "pooled.npy"
    size = np.load(path, mmap_mode="r").shape[1]
    mean = torch.zeros(size)
    deviation = torch.ones(size)
    standardiser = measured(path, counted)
    if standardiser:
        mean = torch.from_numpy(standardiser.mean)
        deviation = torch.from_numpy(standardiser.deviation)
    scale = {"pooled_mean": mean, "pooled_deviation": deviation}
    # `|=` would keep torch's metadata
    torch.save(state | scale, scratch / "network.pt")


def write_proposal_features(
    params: Params, feature_set: FeatureSet, data: Prepared
) -> None:
    """Write P proposals of each of I images, and the features of N boxes that phrases
    name:

    boxes.npy      (I, P, 4) float32, in pixels of the image
    proposals.npy  (I, P, F) float16, the features of these boxes
    truths.npy     (N, F) float16, the features of the box of every row of the region table

    Images are those of the used splits. Rows of absent proposals and of phrases of
    other images are zeros. With an image network, the features of a box are those of
    the feature map under it. With a detector, they are the output of its box head, and
    `input_size` is the shorter side of the image instead of both.
    """
    settings = feature_set.proposals
    images = data.used_images
    regions = data.regions
    dataset = raw_dataset(params, feature_set.dataset)
    device = begin(params.device)
    encoder, weights = _box_encoder(params, feature_set, device)
    ids = images["image_id"].tolist()
    files = images["file"].tolist()
    card = card_of(feature_set, ids, data) | weights
    card |= {"regions_sha256": sha256_of_items(regions["phrase_id"].tolist())}
    truths = regions[CORNERS].to_numpy(np.float32)
    no_rows = np.zeros(0, np.int64)
    rows_of = regions.groupby("image_id").indices
    shape = (len(ids), settings.count)
    open_image = dataset.pictures()
    with scratch_folder(feature_set, card, device) as scratch:
        stored_boxes = array_at(scratch / "boxes.npy", (*shape, 4), np.float32)
        for rows, opened in chunks(scratch, files, open_image, CHUNK_OF_BOXES):
            encoder.take(opened)
            boxes = encoder.proposed(ids[rows], dataset.folder)
            region_rows = [rows_of.get(image_id, no_rows) for image_id in ids[rows]]
            all_boxes = []
            for proposed, named in zip(boxes, region_rows, strict=True):
                all_boxes.append(np.concatenate([proposed, truths[named]]))
            described = encoder.described(all_boxes)
            width = described[0].shape[1]
            path = scratch / "proposals.npy"
            of_proposals = array_at(path, (*shape, width), np.float16)
            path = scratch / "truths.npy"
            of_truths = array_at(path, (len(regions), width), np.float16)
            images_of_chunk = range(rows.start, rows.stop)
            for row, proposed, named, values in zip(
                images_of_chunk, boxes, region_rows, described, strict=True
            ):
                count = len(proposed)
                stored_boxes[row, :count] = proposed
                of_proposals[row, :count] = values[:count]
                of_truths[named] = values[count:]
        present = stored_boxes.any(-1)
        is_train = (images["split"] == "train").to_numpy()
        counted = present & is_train[:, None] if settings.standardise else None
        standardiser = measured(scratch / "proposals.npy", counted)
        used = regions["image_id"].isin(ids).to_numpy()
        with replaced(Path(feature_set.folder)) as folder:
            shutil.copyfile(scratch / "boxes.npy", folder / "boxes.npy")
            for name, kept in (("proposals.npy", present), ("truths.npy", used)):
                write_standardised(scratch / name, folder / name, standardiser, kept)
            write_card(folder, card)


@dataclass
class BoxEncoder:
    """Proposes boxes in the images that it took last, and describes what is in
    boxes."""

    settings: ProposalEncoder
    network: nn.Module  # describes; the detector itself, or an image network
    detector: FasterRCNN | None  # also where it only proposes
    images: list[Image.Image] = field(default_factory=list)
    views: list[faster_rcnn.View] = field(default_factory=list)

    def take(self, images: list[Image.Image]) -> None:
        self.images = images
        if self.detector is not None:
            self.views = faster_rcnn.views(self.detector, images)

    def proposed(self, ids: list[str], raw: Path) -> list[np.ndarray]:
        """Boxes (n, 4) in each image, at most `count`."""
        count = self.settings.count
        if self.settings.how == "rpn":
            return [view.proposed(count) for view in self.views]
        if self.settings.how == "selective_search":
            return [selective_search(image, count) for image in self.images]
        boxes = []
        for image_id, image in zip(ids, self.images, strict=True):
            folder = raw / self.settings.boxes
            boxes.append(read_boxes(folder, image_id, image.size, count))
        return boxes

    def described(self, boxes: list[np.ndarray]) -> list[np.ndarray]:
        """Features (n, F) of the boxes (n, 4) of each image."""
        if self.network is not self.detector:
            size = self.settings.input_size
            return features_of_boxes(self.network, size, self.images, boxes)
        pairs = zip(self.views, boxes, strict=True)
        return [view.described(corners) for view, corners in pairs]


def _box_encoder(
    params: Params,
    feature_set: FeatureSet,
    device: torch.device,
) -> tuple[BoxEncoder, dict]:
    """That of a feature set, and where its weights come from."""
    settings = feature_set.proposals
    network, origin = _network(params, feature_set.encoder, settings.network)
    weights = {"weights": origin}
    detector = network if isinstance(network, FasterRCNN) else None
    if settings.how == "rpn" and detector is None:
        name = faster_rcnn.NETWORKS[0]
        detector, weights["detector"] = _network(params, "faster_rcnn", name)
    return box_encoder(settings, network, detector, device), weights


def box_encoder(
    settings: ProposalEncoder,
    network: nn.Module,
    detector: FasterRCNN | None,
    device: torch.device,
) -> BoxEncoder:
    """A box encoder with its networks on the device."""
    if detector is not None:
        detector.to(device).transform.min_size = (settings.input_size,)
    if network is not detector:
        network = fused(network, device)
    return BoxEncoder(settings, network, detector)


def _network(params: Params, encoder: str, network: str) -> tuple[nn.Module, dict]:
    """A network in evaluation mode, and where its weights come from."""
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    return features.load(encoder).load(network, weights_dir)


@contextmanager
def scratch_folder(
    feature_set: FeatureSet,
    card: dict,
    device: torch.device,
) -> Iterator[Path]:
    """The scratch folder of a feature set, removed when the block ends well.

    A killed run is resumed if all that decides the bytes is the same, else the folder
    is emptied. Raises UserError while another process has it.
    """
    scratch = Path(".scratch") / feature_set.folder
    identity = {
        "card": card,
        "version": versions()["encode"],
        "device": kind(device),
        "numerics": fingerprint(),
    }
    with alone(lock_of(feature_set.folder), f"encode {feature_set.folder}"):
        path = scratch / PROGRESS
        if not path.is_file() or read_json(path).get("identity") != identity:
            path.unlink(missing_ok=True)  # first, since half a folder is not resumed
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            write_json(path, {"done": 0, "identity": identity})
        yield scratch
        path.unlink(missing_ok=True)
        shutil.rmtree(scratch)


def keep_freed_memory() -> None:
    """Make glibc reuse the memory of freed feature maps. Otherwise each large block
    goes back to the system and is zeroed when it is allocated again, which takes up to
    two fifths of a network's time."""
    with suppress(AttributeError, TypeError):  # another C library, another system
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def chunks(
    scratch: Path,
    files: list[str],
    open_one: Callable[[str], Any],
    size: int,
) -> Iterator[tuple[slice, list[Any]]]:
    """The slices of `files` that are not done yet, at most `size` long, and what
    `open_one` makes of each file.

    While the network computes, threads open the next `size` files. A slice counts as
    done when the next one is asked for.
    """
    keep_freed_memory()
    progress = read_json(scratch / PROGRESS)
    total = len(files)
    done = progress["done"]
    with (
        ProgressBar(total=total, initial=done, unit="image", desc="encode") as bar,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers,
    ):
        try:
            coming = _submitted(workers, open_one, files[done : done + size])
            for start in range(done, total, size):
                opening = coming
                stop = start + len(coming)
                coming = _submitted(workers, open_one, files[stop : stop + size])
                yield slice(start, stop), [future.result() for future in opening]
                write_json(scratch / PROGRESS, progress | {"done": stop})
                bar.update(stop - start)
        finally:
            workers.shutdown(wait=True, cancel_futures=True)


def _submitted(
    workers: ThreadPoolExecutor,
    open_one: Callable[[str], Any],
    files: list[str],
) -> list[Future]:
    return [workers.submit(open_one, file) for file in files]


# What networks make of images ---------------------------------------------------------


def squashed(image: Image.Image, size: int) -> Image.Image:
    """The image as a square; not cropped, since captions may describe its margins."""
    return image if image.size == (size, size) else image.resize((size, size), BICUBIC)


def stacked(images: Sequence[Image.Image], size: int) -> Tensor:
    """RGB values in [0, 255] of B images, squashed, (B, 3, size, size) uint8."""
    arrays = np.stack([np.asarray(squashed(image, size)) for image in images])
    return torch.from_numpy(arrays).permute(0, 3, 1, 2)


def fused(network: nn.Module, device: torch.device) -> nn.Module:
    """The same function with every batch norm folded into its convolution: 2.5 times
    faster."""
    with suppress(torch.fx.proxy.TraceError):  # much of timm: it stays as it is
        network = fuse(network.eval())
    network = network.eval().requires_grad_(False)
    return network.to(device, memory_format=torch.channels_last)


def _pixels(network: nn.Module, images: Sequence[Image.Image], size: int) -> Tensor:
    """Values in [0, 1] on the network's device, (B, 3, size, size)."""
    pixels = stacked(images, size).to(next(network.parameters()).device)
    return (pixels.float() / 255).to(memory_format=torch.channels_last)


def describer(
    network: nn.Module,
    settings: ImageEncoder,
    device: torch.device,
) -> Callable[[list[Image.Image]], dict[str, np.ndarray]]:
    """A function from B images to `pooled` (B, F) and `regions` (B, R, F), float16.

    Regions are a detector's boxes by falling score, as many as the grid would have, or
    the cells of the grid by falling norm, with their `positions` (B, R), int16.
    """
    if isinstance(network, FasterRCNN):
        network.to(device).transform.min_size = (settings.input_size,)

        def detected(images: list[Image.Image]) -> dict[str, np.ndarray]:
            views = faster_rcnn.views(network, images)
            count = settings.grid**2
            regions = np.stack([view.regions(count)[0] for view in views])
            pooled = regions.mean(1)
            return {
                "pooled": pooled.astype(np.float16),
                "regions": regions.astype(np.float16),
            }

        return detected
    network = fused(network, device)

    @torch.inference_mode()
    def gridded(images: list[Image.Image]) -> dict[str, np.ndarray]:
        pixels = _pixels(network, images, settings.input_size)
        pooled, map_BFhw = network(pixels)
        regions = _rows(F.adaptive_avg_pool2d(map_BFhw, settings.grid))
        if settings.flip:
            mirrored, map_BFhw = network(pixels.flip(3))
            grid_BFgg = F.adaptive_avg_pool2d(map_BFhw, settings.grid)
            # Flipped back, so that a cell shows the same part of the image in both.
            turned = _rows(grid_BFgg.flip(3))
            pooled = (pooled + mirrored) / 2
            regions = (regions + turned) / 2
        # A detector's boxes come by falling score. Here the norm stands in for the
        # score, so that the first k regions are a meaningful choice.
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
def features_of_boxes(
    network: nn.Module,
    size: int,
    images: list[Image.Image],
    boxes: list[np.ndarray],
) -> list[np.ndarray]:
    """Features (n, PARTS * PARTS * F') float32 of the boxes (n, 4) of every image.

    Those of the feature map under a box (RoIAlign, He et al. 2017), averaged in PARTS x
    PARTS parts and concatenated, row by row from the top left; each part is the mean of
    four points. Which parts of the box an object fills shows how well the box fits
    it. The network sees the images squashed to `size` x `size` pixels.
    """
    map_BFhw = network(_pixels(network, images, size))[1]
    height, width = map_BFhw.shape[2:]
    on_map = []
    for image, corners in zip(images, boxes, strict=True):
        # cells of the map per pixel
        across = width / image.width
        down = height / image.height
        zoom = map_BFhw.new_tensor([across, down, across, down])
        on_map.append(torch.from_numpy(corners).to(map_BFhw) * zoom)
    parts = roi_align(map_BFhw, on_map, PARTS, sampling_ratio=2, aligned=True)
    features = parts.permute(0, 2, 3, 1).flatten(1).float().cpu()
    counts = [len(corners) for corners in boxes]
    return [rows.numpy() for rows in features.split(counts)]
