"""Proposals of every picture and their features: the folder that phrase localisation reads.

A fixed network looks at a picture once. Of an image network a box gets the cells of the feature
map under it (RoIAlign, He et al. 2017), 2 x 2 of them side by side: where in the box something is
tells how well the box fits. Of a detector it gets what the box head makes of it; a detector sees
the picture with its shorter side, not both, at `input_size`.
"""

import math
import shutil
from collections.abc import Callable, Iterator
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
from tqdm import tqdm

from benchmark import encoders
from benchmark.core.devices import pick
from benchmark.core.errors import UserError
from benchmark.core.files import replaced, write_json
from benchmark.data.boxes import CORNERS
from benchmark.data.feature_folders import as_float16, fingerprint
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.encode.box_sources import from_files, padded, selective_search
from benchmark.encode.scratch_arrays import card_of, fused, resume, scratch_array, stacked
from benchmark.encode.standardisation import Moments
from benchmark.encoders import faster_rcnn
from benchmark.season.parameter_files import PARAMS
from benchmark.season.parameters import FeatureSet, Params, ProposalEncoder

CHUNK = 16  # images encoded at once; a kill loses at most these
BLOCK = 1 << 22  # numbers standardised at once
CELLS = 2  # of a box, each way. Chosen on validation scenes of `shapes`, against their mean

Pictures = list[Image.Image]
Find = Callable[[Pictures, list[str]], list[np.ndarray]]  # ids of images -> boxes (n, 4) of each
Describe = Callable[[Pictures, list[np.ndarray]], list[np.ndarray]]  # boxes -> features (n, F)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What is encoded, and how."""

    images: pd.DataFrame  # I rows: those of the used splits
    regions: pd.DataFrame  # N rows
    count: int  # P
    open_picture: Callable[[str], Image.Image]
    find: Find
    describe: Describe


class _Networks(NamedTuple):
    describer: nn.Module
    detector: FasterRCNN | None
    facts: dict  # of their weights, for the card


def encode_proposals(params: Params, encoding: FeatureSet, data: Prepared) -> None:
    """Write boxes.npy (I, P, 4), proposals.npy (I, P, F) and truths.npy (N, F): of the images of
    the used splits, and of the box of every row of the region table.

    Absent proposals, and phrases of unused images, are rows of zeros.
    """
    settings = encoding.proposals
    used = data.images[data.images["split"] != "unused"]
    networks = _networks(params, encoding)
    card = card_of(encoding, used["image_id"].tolist()) | networks.facts
    card |= {"regions_sha256": fingerprint(data.regions["phrase_id"].tolist())}
    dataset = raw_dataset(params, encoding.dataset)
    task = _Task(
        images=used,
        regions=data.regions.reset_index(drop=True),
        count=settings.count,
        open_picture=dataset.pictures(),
        find=_finder(settings, networks.detector, dataset.folder),
        describe=_describer(settings, networks.describer),
    )
    scratch = Path(".scratch") / encoding.folder
    _run(task, scratch, card)
    _finish(task, scratch, Path(encoding.folder), card)


# Networks ---------------------------------------------------------------------------------------


def _networks(params: Params, encoding: FeatureSet) -> _Networks:
    settings = encoding.proposals
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    network, weights = encoders.load(encoding.encoder).load(settings.network, weights_dir)
    facts = {"weights": weights}
    detector = network if isinstance(network, FasterRCNN) else None
    if settings.how == "rpn" and detector is None:
        detector, facts["detector"] = faster_rcnn.load(faster_rcnn.NETWORKS[0], weights_dir)
    if detector is not None:
        detector.transform.min_size = (settings.input_size,)
        detector = detector.to(pick(params.device))
    if network is not detector:
        network = fused(network).to(pick(params.device), memory_format=torch.channels_last)
    return _Networks(network, detector, facts)


def _finder(settings: ProposalEncoder, detector: FasterRCNN | None, raw: Path) -> Find:
    count = settings.count
    if settings.how == "rpn":
        return lambda pictures, ids: faster_rcnn.proposals_of(detector, pictures, count)
    if settings.how == "selective_search":
        return lambda pictures, ids: [selective_search(picture, count) for picture in pictures]
    if settings.boxes is None:
        raise UserError(
            f"{PARAMS}: proposals: how: file: expected a folder of the raw folder in `boxes`, "
            f"found none; name it in the season"
        )
    return partial(_filed, raw / settings.boxes, count)


def _filed(folder: Path, count: int, pictures: Pictures, ids: list[str]) -> list[np.ndarray]:
    return [
        from_files(folder, image_id, picture.size, count)
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

    Cells row by row from the top left, each the mean of four points of the map; the network sees
    the pictures squashed to `size` x `size` pixels.
    """
    device = next(network.parameters()).device
    pixels = (stacked(pictures, size).to(device).float() / 255).to(
        memory_format=torch.channels_last
    )
    map_BFhw = network(pixels)[1]
    on_map = [
        torch.from_numpy(found).to(device) * torch.tensor(_zoom(picture, map_BFhw), device=device)
        for picture, found in zip(pictures, boxes, strict=True)
    ]
    cells = roi_align(map_BFhw, on_map, CELLS, sampling_ratio=2, aligned=True)
    rows = cells.permute(0, 2, 3, 1).flatten(1).float().cpu()
    return [part.numpy() for part in rows.split([len(found) for found in boxes])]


def _zoom(picture: Image.Image, map_BFhw: torch.Tensor) -> list[float]:
    """Cells of the map to a pixel of the picture, for x0, y0, x1, y1."""
    height, width = map_BFhw.shape[2:]
    return [width / picture.width, height / picture.height] * 2


# The folder -------------------------------------------------------------------------------------


def _run(task: _Task, scratch: Path, card: dict) -> None:
    """Encode the images into scratch/, going on where a killed run of the same card stopped."""
    total, done = len(task.images), resume(scratch, card)
    rows_of = task.regions.groupby("image_id").indices
    bar = tqdm(total=total, initial=done, unit="image", desc="encode proposals", disable=None)
    for start in range(done, total, CHUNK):
        chunk = task.images.iloc[start : start + CHUNK]
        named = [rows_of.get(image_id, np.zeros(0, np.int64)) for image_id in chunk["image_id"]]
        _store(task, scratch, start, named, *_seen(task, chunk, named))
        write_json(scratch / "progress.json", {"done": start + len(chunk), "card": card})
        bar.update(len(chunk))
    bar.close()


def _seen(
    task: _Task, chunk: pd.DataFrame, named: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of every image: its proposals (n, 4); features of these and then of its true boxes."""
    pictures = [task.open_picture(file) for file in chunk["file"]]
    boxes = task.find(pictures, chunk["image_id"].tolist())
    truths = task.regions[CORNERS].to_numpy(np.float32)
    asked = [np.concatenate([x, truths[rows]]) for x, rows in zip(boxes, named, strict=True)]
    return boxes, task.describe(pictures, asked)


def _store(
    task: _Task,
    scratch: Path,
    start: int,
    named: list[np.ndarray],
    boxes: list[np.ndarray],
    features: list[np.ndarray],
) -> None:
    shape, width = (len(task.images), task.count), features[0].shape[1]
    of_box = scratch_array(scratch / "boxes.npy", (*shape, 4), np.float32)
    of_proposal = scratch_array(scratch / "proposals.npy", (*shape, width), np.float16)
    of_truth = scratch_array(scratch / "truths.npy", (len(task.regions), width), np.float16)
    for offset, (rows, found, values) in enumerate(zip(named, boxes, features, strict=True)):
        of_box[start + offset] = padded(found, task.count)
        of_proposal[start + offset] = padded(values[: len(found)], task.count)
        of_truth[rows] = values[len(found) :]


def _finish(task: _Task, scratch: Path, folder: Path, card: dict) -> None:
    """Turn a complete scratch folder into the feature folder, in one move."""
    present = np.load(scratch / "boxes.npy", allow_pickle=False).any(-1)
    named = task.regions["image_id"].isin(task.images["image_id"]).to_numpy()
    with replaced(folder) as part:
        if card["settings"]["standardise"]:
            is_train = (task.images["split"] == "train").to_numpy()
            moments = _moments(scratch / "proposals.npy", present & is_train[:, None])
            _standardise(scratch / "proposals.npy", part / "proposals.npy", present, moments)
            _standardise(scratch / "truths.npy", part / "truths.npy", named, moments)
        else:
            for name in ("proposals.npy", "truths.npy"):
                shutil.copyfile(scratch / name, part / name)
        shutil.copyfile(scratch / "boxes.npy", part / "boxes.npy")
        write_json(part / "card.json", card)
    shutil.rmtree(scratch)


def _moments(source: Path, counted: np.ndarray) -> Moments:
    """Of the rows of the features where `counted` (I, P)."""
    raw = np.load(source, mmap_mode="r", allow_pickle=False)
    moments = Moments()
    for rows in _blocks(raw):
        moments.add(raw[rows][counted[rows]])
    return moments


def _standardise(source: Path, target: Path, kept: np.ndarray, moments: Moments) -> None:
    """Zero mean and unit deviation by `moments` in the rows that are `kept`; zeros in others."""
    raw = np.load(source, mmap_mode="r", allow_pickle=False)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=np.float16, shape=raw.shape)
    for rows in _blocks(raw):
        values = (raw[rows].astype(np.float32) - moments.mean) / moments.deviation
        out[rows] = as_float16(np.where(kept[rows][..., None], values, 0))
    out.flush()


def _blocks(raw: np.ndarray) -> Iterator[slice]:
    size = max(1, BLOCK // max(1, math.prod(raw.shape[1:])))
    return (slice(start, start + size) for start in range(0, len(raw), size))
