"""Proposals of every picture and their features: the folder that phrase localisation reads.

A fixed network sees each picture once. With an image network, the features of a box are those of
the feature map under it (RoIAlign, He et al. 2017), averaged in 2 x 2 parts and concatenated: the
parts in which something is show how well the box fits. With a detector, they are the output of its
box head, and `input_size` is the shorter side of the picture instead of both.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.ops import roi_align

from benchmark import encoders
from benchmark.core.devices import begin
from benchmark.core.files import replaced
from benchmark.data.boxes import CORNERS
from benchmark.data.feature_folders import card_of, sha256_of_items, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.encode.box_files import read_boxes
from benchmark.encode.picture_networks import fused, stacked
from benchmark.encode.picture_reading import reading
from benchmark.encode.resumable_arrays import chunks, identity, scratch_array, scratch_folder
from benchmark.encode.segment_boxes import selective_search
from benchmark.encode.standardisation import Standardiser, write_standardised
from benchmark.encoders import faster_rcnn
from benchmark.season.parameters import FeatureSet, Params, ProposalEncoder

CHUNK = 16  # images encoded at once, and at most lost when a run is killed
CELLS = 2  # grid cells of a box, per side; chosen on validation scenes of `shapes`, against 1

Pictures = list[Image.Image]
Propose = Callable[[Pictures, list[str]], list[np.ndarray]]  # image ids -> boxes (n, 4) of each
Describe = Callable[[Pictures, list[np.ndarray]], list[np.ndarray]]  # boxes -> features (n, F)
Encode = Callable[  # image ids, true boxes -> proposals, and features of these and the true boxes
    [Pictures, list[str], list[np.ndarray]], tuple[list[np.ndarray], list[np.ndarray]]
]


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is encoded, and how."""

    images: pd.DataFrame  # I rows: those of the used splits
    regions: pd.DataFrame  # N rows
    count: int  # P
    open_picture: Callable[[str], Image.Image]
    encode: Encode


class _Networks(NamedTuple):
    describer: nn.Module
    detector: FasterRCNN | None
    weights: dict  # where the weights come from, for the card


def encode(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Write P proposals of each of I images, and the features of N boxes that phrases name:

    boxes.npy      (I, P, 4) float32, in pixels of the picture
    proposals.npy  (I, P, F) float16, the features of these boxes
    truths.npy     (N, F) float16, the features of the box of every row of the region table

    Images are those of the used splits. Rows of absent proposals and of phrases of other images
    are zeros.
    """
    settings, images = feature_set.proposals, data.used_images
    device = begin(params.device)
    networks = _networks(params, feature_set, device)
    card = card_of(feature_set, images["image_id"].tolist(), data) | networks.weights
    card |= {"regions_sha256": sha256_of_items(data.regions["phrase_id"].tolist())}
    dataset = raw_dataset(params, feature_set.dataset)
    job = _Job(
        images=images,
        regions=data.regions.reset_index(drop=True),
        count=settings.count,
        open_picture=dataset.pictures(),
        encode=_encoder(settings, networks, dataset.folder),
    )
    with scratch_folder(feature_set) as scratch:
        _fill(job, scratch, identity(feature_set, card, device))
        _finish(job, scratch, Path(feature_set.folder), card)


# Networks ---------------------------------------------------------------------------------------


def _networks(params: Params, feature_set: FeatureSet, device: torch.device) -> _Networks:
    settings = feature_set.proposals
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    network, origin = encoders.load(feature_set.encoder).load(settings.network, weights_dir)
    weights = {"weights": origin}
    detector = network if isinstance(network, FasterRCNN) else None
    if settings.how == "rpn" and detector is None:
        detector, weights["detector"] = faster_rcnn.load(faster_rcnn.NETWORKS[0], weights_dir)
    if detector is not None:
        detector.transform.min_size = (settings.input_size,)
        detector = detector.to(device)
    if network is not detector:
        network = fused(network).to(device, memory_format=torch.channels_last)
    return _Networks(network, detector, weights)


def _encoder(settings: ProposalEncoder, networks: _Networks, raw: Path) -> Encode:
    """A detector that proposes and describes looks at each picture once."""
    detector = networks.detector
    if settings.how == "rpn" and networks.describer is detector:
        return lambda pictures, ids, truths: faster_rcnn.proposals_and_features_of(
            detector, pictures, truths, settings.count
        )
    propose = _proposer(settings, detector, raw)
    return partial(_in_turn, propose, _describer(settings, networks.describer))


def _in_turn(
    propose: Propose,
    describe: Describe,
    pictures: Pictures,
    ids: list[str],
    truths: list[np.ndarray],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    proposals = propose(pictures, ids)
    boxes = [np.concatenate(both) for both in zip(proposals, truths, strict=True)]
    return proposals, describe(pictures, boxes)


def _proposer(settings: ProposalEncoder, detector: FasterRCNN | None, raw: Path) -> Propose:
    count = settings.count
    if settings.how == "rpn":
        return lambda pictures, ids: faster_rcnn.proposals_of(detector, pictures, count)
    if settings.how == "selective_search":
        return lambda pictures, ids: [selective_search(picture, count) for picture in pictures]
    return partial(_boxes_of_files, raw / settings.boxes, count)


def _boxes_of_files(
    folder: Path, count: int, pictures: Pictures, ids: list[str]
) -> list[np.ndarray]:
    return [
        read_boxes(folder, image_id, picture.size, count)
        for picture, image_id in zip(pictures, ids, strict=True)
    ]


def _describer(settings: ProposalEncoder, network: nn.Module) -> Describe:
    if isinstance(network, FasterRCNN):
        return partial(faster_rcnn.features_of, network)
    return partial(aligned, network, settings.input_size)


@torch.inference_mode()
def aligned(
    network: nn.Module, size: int, pictures: Pictures, boxes: list[np.ndarray]
) -> list[np.ndarray]:
    """Features (n, CELLS * CELLS * F') float32 of the boxes (n, 4) of every picture.

    The parts of a box come row by row from the top left; each is the mean of four points of the
    feature map. The network sees the pictures squashed to `size` x `size` pixels.
    """
    device = next(network.parameters()).device
    pixels = (stacked(pictures, size).to(device).float() / 255).to(
        memory_format=torch.channels_last
    )
    map_BFhw = network(pixels)[1]
    on_map = [
        torch.from_numpy(corners).to(device) * torch.tensor(_zoom(picture, map_BFhw), device=device)
        for picture, corners in zip(pictures, boxes, strict=True)
    ]
    parts = roi_align(map_BFhw, on_map, CELLS, sampling_ratio=2, aligned=True)
    features = parts.permute(0, 2, 3, 1).flatten(1).float().cpu()
    return [rows.numpy() for rows in features.split([len(corners) for corners in boxes])]


def _zoom(picture: Image.Image, map_BFhw: torch.Tensor) -> list[float]:
    """Columns and rows of the feature map per pixel of the picture, for x0, y0, x1, y1."""
    height, width = map_BFhw.shape[2:]
    return [width / picture.width, height / picture.height] * 2


# The folder -------------------------------------------------------------------------------------


def _fill(job: _Job, scratch: Path, of: dict) -> None:
    """Encode the images into `scratch`."""
    rows_of = job.regions.groupby("image_id").indices
    with reading(job.open_picture, job.images["file"].tolist()) as read:
        for rows in chunks(scratch, of, len(job.images), CHUNK, "encode proposals"):
            ids = job.images["image_id"].iloc[rows].tolist()
            named = [rows_of.get(image_id, np.zeros(0, np.int64)) for image_id in ids]
            _store(job, scratch, rows.start, named, *_encoded(job, read(rows), ids, named))


def _encoded(
    job: _Job, pictures: Pictures, ids: list[str], named: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For every image, its proposals (n, 4), and the features of these and then its true boxes.

    `named` are the rows of each image in the region table.
    """
    truths = job.regions[CORNERS].to_numpy(np.float32)
    return job.encode(pictures, ids, [truths[rows] for rows in named])


def _store(
    job: _Job,
    scratch: Path,
    start: int,
    named: list[np.ndarray],
    boxes: list[np.ndarray],
    features: list[np.ndarray],
) -> None:
    """Write what `_encoded` gives for the images from row `start` on."""
    shape, width = (len(job.images), job.count), features[0].shape[1]
    of_box = scratch_array(scratch / "boxes.npy", (*shape, 4), np.float32)
    of_proposal = scratch_array(scratch / "proposals.npy", (*shape, width), np.float16)
    of_truth = scratch_array(scratch / "truths.npy", (len(job.regions), width), np.float16)
    for row, (regions, corners, values) in enumerate(
        zip(named, boxes, features, strict=True), start
    ):
        of_box[row] = padded(corners, job.count)
        of_proposal[row] = padded(values[: len(corners)], job.count)
        of_truth[regions] = values[len(corners) :]


def padded(rows: np.ndarray, count: int) -> np.ndarray:
    """The first `count` of the n `rows`, as float32, followed by zeros if n is less."""
    out = np.zeros((count, rows.shape[1]), np.float32)
    out[: len(rows)] = rows[:count]
    return out


def _finish(job: _Job, scratch: Path, folder: Path, card: dict) -> None:
    """Turn a complete scratch folder into the feature folder, in one move."""
    present = np.load(scratch / "boxes.npy", allow_pickle=False).any(-1)
    named = job.regions["image_id"].isin(job.images["image_id"]).to_numpy()
    with replaced(folder) as part:
        if card["settings"]["standardise"]:
            is_train = (job.images["split"] == "train").to_numpy()
            raw = np.load(scratch / "proposals.npy", mmap_mode="r", allow_pickle=False)
            standardiser = Standardiser.of(raw, present & is_train[:, None])
            for name, kept in (("proposals.npy", present), ("truths.npy", named)):
                write_standardised(scratch / name, part / name, standardiser, kept)
        else:
            for name in ("proposals.npy", "truths.npy"):
                shutil.copyfile(scratch / name, part / name)
        shutil.copyfile(scratch / "boxes.npy", part / "boxes.npy")
        write_card(part, card)
