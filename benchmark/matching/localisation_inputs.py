"""What a method of phrase localisation is fed: phrases, their regions and the proposals.

Two-branch paper, Section 4: which of the proposals of its image does a phrase name?
N = phrases (rows of the region table), V = distinct phrases, P = proposals of an image.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from benchmark.core.errors import UserError
from benchmark.core.json_objects import read_object
from benchmark.data.boxes import CORNERS, area, iou
from benchmark.data.feature_folders import read_array, sha256_of_items
from benchmark.data.prepared_tables import Prepared
from benchmark.matching.feeding import ahead, moved, resident, sent
from benchmark.season.parameters import Cell
from methods import Captions, NotApplicableError, RegionBatch

CHUNK = 4096  # rows computed at a time, to bound the memory


@dataclass(frozen=True, kw_only=True)
class PhraseInputs:
    """The phrases of one split, on the host. What batches need lies on the device as well, where
    it fits: features of proposals, float16, of 30,000 photographs are 24 GB."""

    proposals: Tensor  # (I, P, F)
    truths: Tensor  # (N, F) features of the true boxes
    boxes: Tensor  # (I, P, 4) of the proposals; zeros where an image has fewer than P
    ious: Tensor  # (N, P) float32, of proposals and true box; NaN where there is no proposal
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
        return next(self.batches([rows], [pool_rows]))

    def batches(
        self, rows: list[np.ndarray], pool_rows: list[np.ndarray | None]
    ) -> Iterator[RegionBatch]:
        """A batch for each entry of `rows`. Indices are sent to the device at once, proposals that
        lie on the host one batch ahead."""
        if not rows:
            return
        owners = self.image_of_phrase.numpy()
        distinct = [np.unique(owners[part], return_inverse=True) for part in rows]
        images, of_row = zip(*distinct, strict=True)
        index = sent([*rows, *images, *of_row], self.device)
        drawn, of_row = index[: len(rows)], index[-len(rows) :]
        seen = self._proposals_of(images, index[len(rows) : 2 * len(rows)])
        for n, proposals in enumerate(seen):
            present = int(self._present[images[n]].sum())
            yield self._batch(proposals, torch.from_numpy(rows[n]), drawn[n], of_row[n], present)

    def _proposals_of(self, images: list[np.ndarray], index: tuple[Tensor, ...]) -> Iterator:
        """(U, P, F) of each batch, on the device."""
        proposals = self._near["proposals"]
        if proposals.device.type == self.device.type:
            return (proposals[part].float() for part in index)
        return ahead(lambda part: self._on_device(proposals[torch.from_numpy(part)]), images)

    def _batch(
        self, proposals: Tensor, rows: Tensor, index: Tensor, of_row: Tensor, present: int
    ) -> RegionBatch:
        """`index` is the rows on the device."""
        near = self._near
        vectors = near["vectors"][near["vector_of_phrase"][index]].float()
        ones = torch.ones(len(rows), dtype=torch.int64)
        return RegionBatch(
            regions=near["truths"][index].float(),
            phrases=Captions(values=vectors, lengths=torch.ones_like(index), lengths_on_host=ones),
            proposals=proposals,
            image_of_row=of_row,
            ious=near["ious"][index],
            chain_ids=near["chain_of_phrase"][index],
            ids_on_host=self.chain_of_phrase[rows],
            ious_on_host=self.ious[rows],
            present_on_host=present,
        )

    @cached_property
    def _present(self) -> np.ndarray:
        """(I,) how many proposals each image has; 0 for an image without phrases."""
        of_image = np.zeros(len(self.proposals), np.int64)
        of_image[self.image_of_phrase.numpy()] = (~self.ious.isnan()).sum(1).numpy()
        return of_image

    @cached_property
    def _near(self) -> dict[str, Tensor]:
        """What batches need, by name: small arrays on the device, proposals where they fit."""
        small = ("truths", "ious", "chain_of_phrase", "vectors", "vector_of_phrase")
        near = {name: vars(self)[name].to(self.device) for name in small}
        return near | {"proposals": resident(self.proposals, self.device)}

    def pairs(self) -> Iterator[tuple[Tensor, Captions]]:
        """All matched rows in chunks: features of true regions, and their phrases."""
        for rows in torch.arange(len(self.truths)).split(CHUNK):
            yield self._on_device(self.truths[rows]), self.phrases_at(self.vector_of_phrase[rows])

    def phrases_at(self, vectors: Tensor | slice) -> Captions:
        """Distinct phrases as a method takes them."""
        values = self._on_device(self.vectors[vectors])
        lengths = torch.ones(len(values), dtype=torch.int64, device=values.device)
        return Captions(values=values, lengths=lengths)

    def proposals_of(self, image: int) -> Tensor:
        """(P, F) float32"""
        return self._on_device(self.proposals[image])

    def present_proposals_of(self, image: int) -> Tensor:
        """(P', F) float32, without those that are missing."""
        is_there = self.boxes[image].any(-1)
        return self.proposals_of(image)[is_there.to(self.device)]

    def first_images(self, count: int | None) -> "PhraseInputs":
        """The phrases of the first `count` images; None: all."""
        if count is None or count >= len(self.proposals):
            return self
        kept = self.image_of_phrase < count
        return replace(
            self,
            proposals=self.proposals[:count],
            boxes=self.boxes[:count],
            truths=self.truths[kept],
            ious=self.ious[kept],
            image_of_phrase=self.image_of_phrase[kept],
            chain_of_phrase=self.chain_of_phrase[kept],
            vector_of_phrase=self.vector_of_phrase[kept],
        )

    def _on_device(self, values: Tensor) -> Tensor:
        return moved(values, self.device).float()


def phrase_inputs(data: Prepared, cell: Cell, name: str, device: torch.device) -> PhraseInputs:
    """The phrases of split `name`.

    Raises NotApplicableError where it has none, and UserError where the feature folders hold
    features of something else.
    """
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
    ious = proposal_ious(boxes_IP4, image_of_phrase, regions[CORNERS].to_numpy(np.float32))
    vector_of_phrase, distinct = pd.factorize(data.regions["phrase"])
    vectors = read_array(Path(cell.texts), "phrase", cell.dataset, distinct.tolist())
    proposals = read_array(features, "proposals", cell.dataset, used)[rows]
    truths = _truths(features, data)
    return PhraseInputs(
        proposals=torch.from_numpy(proposals),
        truths=torch.from_numpy(truths[split.region_rows]),
        boxes=torch.from_numpy(boxes_IP4),
        ious=torch.from_numpy(ious),
        image_of_phrase=torch.from_numpy(image_of_phrase),
        chain_of_phrase=torch.from_numpy(pd.factorize(regions["chain"])[0].astype(np.int64)),
        vectors=torch.from_numpy(vectors),
        vector_of_phrase=torch.from_numpy(vector_of_phrase[split.region_rows].astype(np.int64)),
        device=device,
    )


def proposal_ious(boxes_IP4: np.ndarray, image_N: np.ndarray, truth_N4: np.ndarray) -> np.ndarray:
    """Intersection over union of every phrase's true box with the proposals of its image, (N, P)
    float32 in [0, 1]; NaN for a box without area, which stands for a missing proposal."""
    ious_NP = np.empty((len(truth_N4), boxes_IP4.shape[1]), np.float32)
    for start in range(0, len(ious_NP), CHUNK):
        rows = slice(start, start + CHUNK)
        proposals = boxes_IP4[image_N[rows]]
        of_boxes = iou(proposals, truth_N4[rows, None])
        ious_NP[rows] = np.where(area(proposals) > 0, of_boxes, np.nan)
    return ious_NP


def _truths(folder: Path, data: Prepared) -> np.ndarray:
    """(rows of the region table, F) features of the true boxes, memory-mapped."""
    card = read_object(folder / "card.json")
    if card.get("regions_sha256") != sha256_of_items(data.regions["phrase_id"].tolist()):
        raise UserError(
            where=f"{folder}/card.json",
            expected=f"features of the phrases of {data.folder}",
            found="features of other phrases",
            do=f"delete {folder} and run `dvc repro` again",
        )
    return np.load(folder / "truths.npy", mmap_mode="c", allow_pickle=False)
