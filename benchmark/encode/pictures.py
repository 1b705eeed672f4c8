"""Features of whole pictures: one vector per picture, its regions, and pixels to train from."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torchvision.models.detection import FasterRCNN

from benchmark import encoders
from benchmark.core.devices import begin
from benchmark.core.files import replaced
from benchmark.data.feature_folders import card_of, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.encode.feature_import import import_features
from benchmark.encode.picture_networks import fused, squashed, stacked
from benchmark.encode.picture_reading import reading
from benchmark.encode.resumable_arrays import (
    PROGRESS,
    chunks,
    identity,
    scratch_array,
    scratch_folder,
)
from benchmark.encode.standardisation import Standardiser, write_standardised
from benchmark.encoders import faster_rcnn
from benchmark.season.parameters import FeatureSet, ImageEncoder, Params

CHUNK = 64  # images encoded at once, and at most lost when a run is killed

Describe = Callable[[list[Image.Image]], dict[str, np.ndarray]]  # arrays by the name of their file


def encode(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Import features that the raw folder holds, or encode the pictures."""
    if feature_set.image.features:
        import_features(feature_set, data, raw_dataset(params, feature_set.dataset))
    else:
        encode_pictures(params, feature_set, data)


def encode_pictures(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Write features of I images in the order of the image table:

    pooled.npy     (I, F) float16
    regions.npy    (I, R, F) float16
    positions.npy  (I, R) int16, for regions on a grid: their position on it, row by row
    pixels.npy     (I, 3, S, S) uint8, and network.pt, for training from pixels
    """
    settings, images = feature_set.image, data.used_images
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    network, weights = encoders.load(feature_set.encoder).load(settings.network, weights_dir)
    state = network.state_dict()
    device = begin(params.device)
    describe = describer(network, settings, device)
    open_picture = raw_dataset(params, feature_set.dataset).pictures()
    is_train = (images["split"] == "train").to_numpy()
    card = card_of(feature_set, images["image_id"], data) | {"weights": weights}
    with scratch_folder(feature_set) as scratch:
        _fill(
            scratch,
            identity(feature_set, card, device),
            settings,
            images["file"].tolist(),
            open_picture,
            partial(_resized, settings, isinstance(network, FasterRCNN)),
            describe,
        )
        if settings.pixels:
            _save_network(state, scratch, settings, is_train)
        _finish(scratch, Path(feature_set.folder), card, is_train)


def describer(network: nn.Module, settings: ImageEncoder, device: torch.device) -> Describe:
    """A function from pictures to their features: those of a detector's boxes, or of a grid."""
    if isinstance(network, FasterRCNN):
        network.transform.min_size = (settings.input_size,)
        return partial(_detected, network.to(device), settings)
    network = fused(network).to(device, memory_format=torch.channels_last)
    return lambda pictures: _features(network, stacked(pictures, settings.input_size), settings)


def _resized(
    settings: ImageEncoder, is_whole: bool, picture: Image.Image
) -> tuple[Image.Image, Image.Image]:
    """The picture as the network sees it, a detector the whole one, and as pixels to train from."""
    seen = picture if is_whole else squashed(picture, settings.input_size)
    return seen, squashed(picture, settings.pixels) if settings.pixels else seen


def _detected(
    detector: FasterRCNN, settings: ImageEncoder, pictures: list[Image.Image]
) -> dict[str, np.ndarray]:
    """Features of as many boxes as the grid would have regions, by falling score."""
    regions, _ = faster_rcnn.regions_of(detector, pictures, settings.grid**2)
    return {"pooled": regions.mean(1).astype(np.float16), "regions": regions.astype(np.float16)}


def _fill(
    scratch: Path,
    of: dict,
    settings: ImageEncoder,
    files: list[str],
    open_picture: Callable[[str], Image.Image],
    resized: Callable[[Image.Image], tuple[Image.Image, Image.Image]],
    describe: Describe,
) -> None:
    """Encode the pictures of `files` into `scratch`. `resized` gives a picture as the network sees
    it and as it is kept for training from pixels."""
    with reading(lambda file: resized(open_picture(file)), files) as read:
        for rows in chunks(scratch, of, len(files), CHUNK, "encode"):
            pictures, small = zip(*read(rows), strict=True)
            values_of = describe(pictures)
            if settings.pixels:
                values_of["pixels"] = stacked(small, settings.pixels).numpy()
            for name, values in values_of.items():
                shape = (len(files), *values.shape[1:])
                scratch_array(scratch / f"{name}.npy", shape, values.dtype)[rows] = values


def _features(network: nn.Module, pixels: Tensor, settings: ImageEncoder) -> dict[str, np.ndarray]:
    device = next(network.parameters()).device
    pixels = (pixels.to(device).float() / 255).to(memory_format=torch.channels_last)
    with torch.inference_mode():
        pooled, regions = _described(network, pixels, settings.grid, mirrored=False)
        if settings.flip:
            other = _described(network, pixels.flip(3), settings.grid, mirrored=True)
            pooled, regions = (pooled + other[0]) / 2, (regions + other[1]) / 2
        regions, positions = _salient_first(regions)
    return {
        "pooled": pooled.cpu().numpy().astype(np.float16),
        "regions": regions.cpu().numpy().astype(np.float16),
        "positions": positions.cpu().numpy().astype(np.int16),
    }


def _salient_first(regions_BRF: Tensor) -> tuple[Tensor, Tensor]:
    """Regions by falling norm, and the position on the grid of each (B, R), row by row.

    A detector's boxes come by falling score. Here the norm stands in for the score, so that the
    first k regions are a meaningful choice.
    """
    positions_BR = regions_BRF.norm(dim=-1).argsort(dim=1, descending=True, stable=True)
    index_BRF = positions_BR[:, :, None].expand_as(regions_BRF)
    return regions_BRF.gather(1, index_BRF), positions_BR


def _described(
    network: nn.Module, pixels: Tensor, grid: int, mirrored: bool
) -> tuple[Tensor, Tensor]:
    """Pooled (B, F) and grid cells (B, grid * grid, F), row by row from the top left."""
    pooled, map_BFhw = network(pixels)
    grid_BFgg = F.adaptive_avg_pool2d(map_BFhw, grid)
    if mirrored:  # flip back, so that a grid cell shows the same part of the picture in both
        grid_BFgg = grid_BFgg.flip(3)
    return pooled.float(), grid_BFgg.flatten(2).transpose(1, 2).float()


def _save_network(state: dict, scratch: Path, settings: ImageEncoder, is_train: np.ndarray) -> None:
    """Write network.pt: the network whose pooled output is what pooled.npy will hold."""
    raw = np.load(scratch / "pooled.npy", mmap_mode="r", allow_pickle=False)
    mean, deviation = np.zeros(raw.shape[1], np.float32), np.ones(raw.shape[1], np.float32)
    if settings.standardise:
        standardiser = Standardiser.of(raw, is_train)
        mean, deviation = standardiser.mean, standardiser.deviation
    scale = {"pooled_mean": torch.from_numpy(mean), "pooled_deviation": torch.from_numpy(deviation)}
    torch.save(state | scale, scratch / "network.pt")


def _finish(scratch: Path, folder: Path, card: dict, is_train: np.ndarray) -> None:
    """Turn a complete scratch folder into the feature folder, in one move."""
    with replaced(folder) as part:
        for name in ("pooled.npy", "regions.npy"):
            if card["settings"]["standardise"]:
                raw = np.load(scratch / name, mmap_mode="r", allow_pickle=False)
                standardiser = Standardiser.of(raw, is_train)
                write_standardised(scratch / name, part / name, standardiser)
            else:
                shutil.copyfile(scratch / name, part / name)
        (scratch / PROGRESS).unlink()  # from here on, a killed run cannot be resumed
        for path in (scratch / name for name in ("positions.npy", "pixels.npy", "network.pt")):
            if path.is_file():
                shutil.move(path, part / path.name)
        write_card(part, card)
