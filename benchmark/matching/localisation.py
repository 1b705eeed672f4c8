"""Phrase localisation: what its methods are fed, and how well a proposal fits a phrase.

Two-branch paper, Section 4: of the proposals of its image, which one does a phrase name?
N = phrases (rows of the region table), V = distinct phrases, P = proposals of an image.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from benchmark.core.errors import UserError
from benchmark.core.files import read_json
from benchmark.data.boxes import CORNERS, area, iou
from benchmark.data.feature_folders import fingerprint, read_array
from benchmark.data.prepared_tables import Prepared
from benchmark.season.parameters import Cell
from methods import Captions, Matcher, NotApplicableError, RegionBatch

CORRECT = 0.5  # overlap of a right proposal with the true box (Section 4)
CHUNK = 4096  # rows at a time where all of them would take too much memory


@dataclass(frozen=True, kw_only=True)
class PhraseInputs:
    """The phrases of one split. Features of proposals stay on the host, float16, until asked for:
    those of 30,000 photographs fill no device."""

    proposals: Tensor  # (I, P, F)
    truths: Tensor  # (N, F) features of the true boxes
    boxes: Tensor  # (I, P, 4) of the proposals; zeros where an image has fewer than P
    overlaps: Tensor  # (N, P) float32, of proposals and true box; NaN where there is no proposal
    image_of_phrase: Tensor  # (N,) int64, in [0, I)
    chain_of_phrase: Tensor  # (N,) int64
    vectors: Tensor  # (V, F') of distinct phrases
    vector_of_phrase: Tensor  # (N,) int64, in [0, V)
    device: torch.device

    @property
    def owners(self) -> np.ndarray:
        """(N,) the chain of each phrase: phrases of one chain are siblings."""
        return self.chain_of_phrase.numpy()

    def batch(self, rows: np.ndarray, pool_rows: np.ndarray | None = None) -> RegionBatch:
        """The phrases at `rows` with their regions; there is no pool of phrases."""
        index = torch.from_numpy(rows)
        images, image_of_row = self.image_of_phrase[index].unique(return_inverse=True)
        return RegionBatch(
            regions=self._on_device(self.truths[index]),
            phrases=self.phrases_at(self.vector_of_phrase[index]),
            proposals=self._on_device(self.proposals[images]),
            image_of_row=image_of_row.to(self.device),
            overlaps=self._on_device(self.overlaps[index]),
            chain_ids=self.chain_of_phrase[index].to(self.device),
        )

    def pairs(self) -> Iterator[tuple[Tensor, Captions]]:
        """All matched rows in chunks: features of true regions, and their phrases."""
        for rows in torch.arange(len(self.truths)).split(CHUNK):
            yield self._on_device(self.truths[rows]), self.phrases_at(self.vector_of_phrase[rows])

    def phrases_at(self, vectors: Tensor | slice) -> Captions:
        """Distinct phrases as a method takes them."""
        values = self._on_device(self.vectors[vectors])
        return Captions(values=values, lengths=_ones(values))

    def proposals_of(self, image: int) -> Tensor:
        """(P, F) float32"""
        return self._on_device(self.proposals[image])

    def first_images(self, count: int | None) -> "PhraseInputs":
        """The phrases of the first `count` images; None: all."""
        if count is None or count >= len(self.proposals):
            return self
        kept = self.image_of_phrase < count
        names = ("truths", "overlaps", "image_of_phrase", "chain_of_phrase", "vector_of_phrase")
        fewer = {name: getattr(self, name)[kept] for name in names}
        of_images = {name: getattr(self, name)[:count] for name in ("proposals", "boxes")}
        return replace(self, **of_images, **fewer)

    def _on_device(self, values: Tensor) -> Tensor:
        return values.to(self.device).float()


def phrase_inputs(data: Prepared, cell: Cell, name: str, device: torch.device) -> PhraseInputs:
    """The phrases of split `name`. Raises NotApplicableError where it has none."""
    split = data.split(name)
    regions = data.regions.iloc[split.region_rows]
    if not len(regions):
        raise NotApplicableError(f"{cell.dataset}: the {name} split has no phrases with boxes")
    used = data.images["image_id"][data.images["split"] != "unused"].tolist()
    features = Path(cell.images)
    rows = slice(int(split.image_rows[0]), int(split.image_rows[-1]) + 1)
    image_ids = pd.Index(data.images["image_id"].iloc[split.image_rows])
    image_of_phrase = image_ids.get_indexer(regions["image_id"]).astype(np.int64)
    boxes_IP4 = read_array(features, "boxes", cell.dataset, used)[rows]
    vector_of_phrase, distinct = pd.factorize(data.regions["phrase"])
    vectors = read_array(Path(cell.texts), "phrase", cell.dataset, distinct.tolist())
    proposals = read_array(features, "proposals", cell.dataset, used)[rows]
    truths = _truths(features, data)
    return PhraseInputs(
        proposals=torch.from_numpy(proposals),
        truths=torch.from_numpy(truths[split.region_rows]),
        boxes=torch.from_numpy(boxes_IP4),
        overlaps=torch.from_numpy(
            overlaps(boxes_IP4, image_of_phrase, regions[CORNERS].to_numpy(np.float32))
        ),
        image_of_phrase=torch.from_numpy(image_of_phrase),
        chain_of_phrase=torch.from_numpy(pd.factorize(regions["chain"])[0].astype(np.int64)),
        vectors=torch.from_numpy(vectors),
        vector_of_phrase=torch.from_numpy(vector_of_phrase[split.region_rows].astype(np.int64)),
        device=device,
    )


def _truths(folder: Path, data: Prepared) -> np.ndarray:
    """(rows of the region table, F)"""
    if read_json(folder / "card.json").get("regions_sha256") != fingerprint(
        data.regions["phrase_id"].tolist()
    ):
        raise UserError(
            f"{folder}/card.json: features of other phrases than {data.folder} has; delete the "
            f"folder and run `dvc repro` again"
        )
    return np.load(folder / "truths.npy", mmap_mode="c", allow_pickle=False)


def overlaps(boxes_IP4: np.ndarray, image_N: np.ndarray, truth_N4: np.ndarray) -> np.ndarray:
    """Intersection over union of every phrase's true box with the proposals of its image, (N, P)
    float32; NaN for a proposal without area, which is none."""
    found = np.empty((len(truth_N4), boxes_IP4.shape[1]), np.float32)
    for start in range(0, len(found), CHUNK):
        rows = slice(start, start + CHUNK)
        proposals = boxes_IP4[image_N[rows]]
        overlap = iou(proposals, truth_N4[rows, None])
        found[rows] = np.where(area(proposals) > 0, overlap, np.nan)
    return found


def _ones(values: Tensor) -> Tensor:
    return torch.ones(len(values), dtype=torch.int64, device=values.device)


@torch.inference_mode()
def score_proposals(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Scores (N, P) float32 of every phrase with the proposals of its image, on the host."""
    scores = torch.full(inputs.overlaps.shape, torch.nan)
    order = inputs.image_of_phrase.argsort(stable=True)
    images, counts = inputs.image_of_phrase[order].unique_consecutive(return_counts=True)
    for image, rows in zip(images.tolist(), order.split(counts.tolist()), strict=True):
        phrases = model.encode_captions(inputs.phrases_at(inputs.vector_of_phrase[rows]))
        regions = model.encode_images(inputs.proposals_of(image))
        scores[rows] = model.similarity(regions, phrases).float().T.cpu()
    return scores


@torch.inference_mode()
def nearest_regions(model: Matcher, inputs: PhraseInputs) -> Tensor:
    """Score (I, V) float32 of every image's best proposal for every distinct phrase, on the host.

    Phrases of other splits, and images without proposals, have NaN.
    """
    wanted = inputs.vector_of_phrase.unique()
    scores = torch.full((len(inputs.proposals), len(inputs.vectors)), torch.nan)
    phrases = model.encode_captions(inputs.phrases_at(wanted))
    is_there = inputs.boxes.any(-1)
    for image in is_there.any(1).nonzero()[:, 0].tolist():
        proposals = inputs.proposals_of(image)[is_there[image].to(inputs.device)]
        found_PV = model.similarity(model.encode_images(proposals), phrases)
        scores[image, wanted] = found_PV.amax(0).float().cpu()
    return scores
