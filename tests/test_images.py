"""Features of boxes, and the folder of proposals: kills survived, statistics of train
only."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import builders
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from test_faster_rcnn import tiny as detector
from torch import nn

from benchmark import features
from benchmark.data.feature_folders import read_array
from benchmark.data.prepared_tables import Prepared
from benchmark.encode import images
from benchmark.encode.images import features_of_boxes
from benchmark.features import faster_rcnn, standardisation
from benchmark.features.proposals import selective_search
from benchmark.season.parameters import FeatureSet, ProposalEncoder
from seasons import params_of

pytestmark = pytest.mark.usefixtures("empty_folder")

FOLDER = Path("data/features/tiny/stub")
SPLITS = ["train"] * 5 + ["val"] * 2 + ["test"] * 3 + ["unused"]
IDS = [f"p{n}" for n in range(len(SPLITS))]
PARAMS = params_of()


class Stub(nn.Module):
    """Mean colours, 4 x 4 pixels each, after a scaling batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(3, 3, 1, bias=False)
        self.norm = nn.BatchNorm2d(3, eps=0)
        with torch.no_grad():
            self.mix.weight.copy_(torch.eye(3)[:, :, None, None])
            self.norm.running_var.copy_(torch.tensor([1.0, 0.25, 4.0]))

    def forward(self, pixels):
        maps = torch.nn.functional.avg_pool2d(self.norm(self.mix(pixels)), 4)
        return maps.mean((2, 3)), maps


def pictures_of() -> dict[str, Image.Image]:
    """Pictures of 48 x 32 pixels with large blots."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (len(SPLITS), 4, 6, 3), dtype=np.uint8)
    pixels = pixels.repeat(8, axis=1).repeat(8, axis=2)
    return {
        f"{name}.png": Image.fromarray(x) for name, x in zip(IDS, pixels, strict=True)
    }


# Two phrases per image, and not in the order of the images.
NAMED = [*IDS, *reversed(IDS)]
CORNERS = np.array(
    [[n % 7, n % 5, n % 7 + 20 + n, n % 5 + 12] for n in range(len(NAMED))], float
)


def data_of() -> Prepared:
    images = pd.DataFrame(
        {"image_id": IDS, "file": [f"{x}.png" for x in IDS], "split": SPLITS}
    )
    regions = pd.DataFrame(CORNERS, columns=["x0", "y0", "x1", "y1"]).assign(
        image_id=NAMED
    )
    regions["phrase_id"] = [f"phrase {n}" for n in range(len(NAMED))]
    return builders.prepared_on_disk(images, pd.DataFrame(), regions)


@pytest.fixture
def stage(monkeypatch):
    monkeypatch.setattr(images, "CHUNK_OF_BOXES", 3)
    monkeypatch.setattr(standardisation, "BLOCK", 50)
    opened: list[str] = []

    def run(data=None, network=Stub, **settings):
        pictures = pictures_of()
        shutil.rmtree(FOLDER, ignore_errors=True)  # as DVC does before it runs a stage

        def open_picture(file):
            opened.append(file)
            return pictures[file]

        loaded = SimpleNamespace(load=lambda name, folder: (network(), {"file": name}))
        dataset = SimpleNamespace(pictures=lambda: open_picture, folder=Path("raw"))
        monkeypatch.setattr(images, "raw_dataset", lambda params, name: dataset)
        known = {"torchvision_cnn": loaded, "faster_rcnn": faster_rcnn}
        monkeypatch.setattr(features, "load", known.get)
        chosen = {"count": 8, "network": "stub", "input_size": 32} | settings
        feature_set = FeatureSet(
            dataset="tiny",
            reader="tiny",
            kind="proposals",
            encoder="torchvision_cnn",
            folder=str(FOLDER),
            source="data/prepared/tiny",
            proposals=ProposalEncoder(**chosen),
        )
        images.write_proposal_features(PARAMS, feature_set, data or data_of())
        return {path.stem: np.load(path) for path in FOLDER.glob("*.npy")}

    run.opened = opened
    return run


# Features -----------------------------------------------------------------------------


def quarters(picture: Image.Image, box: tuple) -> np.ndarray:
    """Mean colours, row by row, counted in pixels."""
    pixels = np.asarray(picture, dtype=float) / 255
    x0, y0, x1, y1 = box
    middle_x, middle_y = (x0 + x1) // 2, (y0 + y1) // 2
    parts = [
        pixels[top:bottom, left:right].mean((0, 1))
        for top, bottom in ((y0, middle_y), (middle_y, y1))
        for left, right in ((x0, middle_x), (middle_x, x1))
    ]
    return np.concatenate(parts)


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(
        0, 256, (height, width, 3), dtype=np.uint8
    )
    return Image.fromarray(pixels)


def plain_map() -> Stub:
    network = Stub().eval()
    network.norm.running_var.fill_(1)
    return network


def test_boxes_are_squashed_with_their_picture():
    """A picture twice as wide as the network wants it: its boxes become half as
    wide."""
    squashed = noise(64, 64)
    wide = squashed.resize((128, 64), Image.Resampling.NEAREST)
    boxes = np.array([[32, 32, 64, 48], [0, 0, 96, 48]], np.float32)
    narrow = boxes * np.array([0.5, 1, 0.5, 1], np.float32)
    features = features_of_boxes(plain_map(), 64, [wide, squashed], [boxes, narrow[:1]])
    assert [len(x) for x in features] == [2, 1]
    seen = wide.resize((64, 64), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(
        features[0][0], quarters(seen, (16, 32, 32, 48)), atol=1e-5
    )
    np.testing.assert_allclose(
        features[1][0], quarters(squashed, (16, 32, 32, 48)), atol=1e-5
    )


# The folder ---------------------------------------------------------------------------


def test_the_folder_holds_boxes_and_features_in_the_order_of_the_tables(stage):
    arrays = stage()
    pictures = pictures_of()
    assert arrays["boxes"].shape == (10, 8, 4) and arrays["boxes"].dtype == np.float32
    assert (
        arrays["proposals"].shape == (10, 8, 12)
        and arrays["proposals"].dtype == np.float16
    )
    assert (
        arrays["truths"].shape == (len(NAMED), 12)
        and arrays["truths"].dtype == np.float16
    )
    for row, image_id in enumerate(IDS[:10]):
        picture = pictures[f"{image_id}.png"]
        boxes = selective_search(picture, 8)
        np.testing.assert_array_equal(arrays["boxes"][row], boxes)
        expected = features_of_boxes(Stub().eval(), 32, [picture], [boxes])[0]
        np.testing.assert_allclose(arrays["proposals"][row], expected, atol=2e-3)
    for row, (image_id, box) in enumerate(zip(NAMED, CORNERS, strict=True)):
        picture = pictures[f"{image_id}.png"]
        expected = features_of_boxes(
            Stub().eval(), 32, [picture], [box[None].astype(np.float32)]
        )[0][0]
        expected *= image_id != "p10"  # of an unused image
        np.testing.assert_allclose(arrays["truths"][row], expected, atol=2e-3)
    assert "p10.png" not in stage.opened
    assert read_array(FOLDER, "proposals", "tiny", IDS[:10]).shape == (10, 8, 12)
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["weights"] == {"file": "stub"} and "detector" not in card
    assert card["settings"]["how"] == "selective_search" and card["items"] == 10


def write_boxes(folder: str = "raw/boxes") -> dict[str, np.ndarray]:
    Path(folder).mkdir(parents=True)
    # one to six boxes an image, none for the third
    boxes = {}
    for n, image_id in enumerate(IDS):
        few = 0 if n == 2 else n % 6 + 1
        boxes[image_id] = np.zeros((few, 4))
        boxes[image_id][:] = [[k, k, 20 + 3 * k, 18 + k] for k in range(few)] or 0
        np.savez(f"{folder}/{image_id}.npz", boxes=boxes[image_id])
    return boxes


def test_standardised_by_the_proposals_of_the_training_split(stage):
    filed = write_boxes()
    settings = {"how": "file", "boxes": "boxes", "count": 4}
    raw = stage(**settings, standardise=False)
    arrays = stage(**settings, standardise=True)
    of_train = [
        raw["proposals"][n, k]
        for n in range(5)
        for k in range(min(len(filed[IDS[n]]), 4))
    ]
    of_train = np.array(of_train, np.float64)
    assert len(of_train) == 11  # 1 + 2 + 0 + 4 + 4: absent ones are left out
    mean, deviation = of_train.mean(0), of_train.std(0)
    there = arrays["boxes"].any(-1)
    assert there.sum() == 25 and not arrays["proposals"][~there].any()
    expected = (raw["proposals"].astype(float) - mean) / deviation
    np.testing.assert_allclose(arrays["proposals"][there], expected[there], atol=5e-3)
    expected = (raw["truths"].astype(float) - mean) / deviation
    named = np.array(NAMED) != "p10"
    np.testing.assert_allclose(arrays["truths"][named], expected[named], atol=5e-3)


# Detectors ----------------------------------------------------------------------------


def test_a_detector_proposes_and_describes(stage):
    arrays = stage(how="rpn", network=detector, count=6)
    own = detector()
    own.transform.min_size = (32,)
    pictures = list(pictures_of().values())[:10]
    for row, view in enumerate(faster_rcnn.views(own, pictures)):
        boxes = view.proposed(6)
        np.testing.assert_allclose(arrays["boxes"][row], boxes, atol=1e-4)
        np.testing.assert_allclose(
            arrays["proposals"][row], view.described(boxes), atol=5e-3
        )
    assert arrays["truths"].shape == (len(NAMED), 1024)


def test_a_detector_may_propose_for_another_network(stage, monkeypatch):
    loaded = []

    def load(network, weights_dir):
        loaded.append(network)
        return detector(), {"file": "its own"}

    monkeypatch.setattr(faster_rcnn, "load", load)
    arrays = stage(how="rpn", count=6)
    assert loaded == ["fasterrcnn_resnet50_fpn_v2"]
    assert arrays["proposals"].shape == (10, 6, 12) and arrays["boxes"].any(-1).all()
    card = json.loads((FOLDER / "card.json").read_text())
    assert (card["weights"], card["detector"]) == (
        {"file": "stub"},
        {"file": "its own"},
    )
