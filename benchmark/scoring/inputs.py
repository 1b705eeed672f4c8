"""The inputs of methods: the images and captions of a split, or its phrases and
proposals.

The device that computes never waits for its inputs. The indices of a whole epoch are
copied to it at once, and arrays that fit are kept there; rows of the others are
gathered on the host, one batch ahead.

I = images, C = captions, N = phrases (rows of the region table), V = distinct phrases,
P = proposals of an image.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from benchmark import features
from benchmark.contracts.methods import (
    Batch,
    Captions,
    Inputs,
    NotApplicableError,
    RegionBatch,
)
from benchmark.core.errors import UserError
from benchmark.core.files import read_object
from benchmark.data.feature_folders import Words, read_array, sha256_of_items
from benchmark.data.prepared_tables import CORNERS, Prepared, Split
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.scoring.ranking import area, iou
from benchmark.season.parameters import Cell

SHARE = 0.5  # of a device's free memory that one array may take; networks need the rest
CHUNK = 4096  # rows gathered or computed at a time, to bound the memory


def resident(values: Tensor, device: torch.device) -> Tensor:
    """The values on the device, if they fit there; else as they are, on the host."""
    return values.to(device) if fits(values.nbytes, device) else values


def fits(size: int, device: torch.device) -> bool:
    """Whether so many bytes can lie on the device beside what it computes."""
    return device.type != "cuda" or size <= SHARE * torch.cuda.mem_get_info(device)[0]


def sent(parts: list[np.ndarray], device: torch.device) -> tuple[Tensor, ...]:
    """Arrays of one dimension, on the device, in one copy that nobody waits for."""
    whole = moved(torch.from_numpy(np.concatenate(parts)), device)
    return whole.split([len(part) for part in parts])


def moved(values: Tensor, device: torch.device) -> Tensor:
    """Values of the host on the device: nobody waits for the copy, nor for work before
    it."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def ahead(gather: Callable, items: Iterable) -> Iterator:
    """What `gather` returns for each item; a thread gathers the next one while the
    caller uses this one."""
    with ThreadPoolExecutor(max_workers=1) as worker:
        this = None
        for item in items:
            following = worker.submit(gather, item)
            if this is not None:
                yield this.result()
            this = following
        if this is not None:
            yield this.result()


# Images and captions ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SplitInputs:
    """One split on one device. Images stay float16, or uint8, until a batch needs
    them, and so do vectors of captions. Images that do not fit the device stay on
    the host."""

    images: Tensor  # (I, F), (I, R, F) or (I, 3, S, S)
    captions: Captions  # with `contexts`, the numbers of their rows instead of vectors
    image_of_caption: Tensor  # (C,) int64, in [0, I)
    group_of_image: Tensor  # (I,) int64
    device: torch.device
    class_of_image: Tensor | None = None  # (I,) int64, of the training split
    contexts: Tensor | None = None  # (N, F) vectors of the tokens of all captions

    def batches(
        self, rows: list[np.ndarray], pool_rows: list[np.ndarray | None]
    ) -> Iterator[Batch]:
        """For each entry of the two lists, the captions at `rows` with their images,
        and those at `pool_rows`. Nothing of a batch waits for the device."""
        if not rows:
            return
        drawn = sent(rows, self.device)
        has_pool = pool_rows[0] is not None
        pools = sent(pool_rows, self.device) if has_pool else ()
        if self.images.device.type == self.device.type:
            images = (self.images_at(self.image_of_caption[index]) for index in drawn)
        else:
            images = ahead(
                self.images_at, (torch.from_numpy(self.owners[part]) for part in rows)
            )
        groups, classes = self.group_of_image, self.class_of_image
        for n, values in enumerate(images):
            owners, of_pool = self.image_of_caption[drawn[n]], {}
            if has_pool:
                of_pool["pool"] = self.captions_at(
                    pools[n], torch.from_numpy(pool_rows[n])
                )
                of_pool["pool_ids"] = groups[self.image_of_caption[pools[n]]]
            yield Batch(
                images=values,
                captions=self.captions_at(drawn[n], torch.from_numpy(rows[n])),
                group_ids=groups[owners],
                class_ids=classes[owners] if classes is not None else None,
                ids_on_host=self._groups[self.owners[rows[n]]],
                **of_pool,
            )

    @cached_property
    def owners(self) -> np.ndarray:
        """(C,) the image of each caption, on the host: rows of one owner are
        siblings."""
        return self.image_of_caption.cpu().numpy()

    @cached_property
    def _groups(self) -> Tensor:
        return self.group_of_image.cpu()

    @property
    def relevant(self) -> Tensor:
        """(I, C) bool: whether a caption describes an image of the same group."""
        return (
            self.group_of_image[:, None] == self.group_of_image[self.image_of_caption]
        )

    def pairs(self) -> Iterator[tuple[Tensor, Captions]]:
        """All matched rows in chunks: images, and their captions."""
        for rows in torch.arange(len(self.image_of_caption)).split(CHUNK):
            (batch,) = self.batches([rows.numpy()], [None])
            yield batch.images, batch.captions

    def images_at(self, index: Tensor | slice) -> Tensor:
        """Features as float32; pixels as they are, for the method to crop first."""
        if isinstance(index, Tensor):
            index = index.to(self.images.device)  # pixels stay on the host
        images = moved(self.images[index], self.device)
        return images.float() if images.is_floating_point() else images

    def captions_at(
        self, index: Tensor | slice, on_host: Tensor | None = None
    ) -> Captions:
        """Vectors as float32; words and tokens cut to the longest of these captions.
        `on_host` is the same index on the host, if it is known."""
        captions = self._captions(index, on_host)
        values = captions.values
        if values.is_floating_point():
            return replace(captions, values=values.float())
        values = values[:, : int(captions.counts.max())]
        if self.contexts is not None:
            places = torch.arange(values.shape[1], device=self.device)
            is_padding = places >= captions.lengths[:, None]
            vectors = moved(self.contexts[values.to(self.contexts.device)], self.device)
            values = vectors.float().masked_fill(is_padding[:, :, None], 0)
        return replace(captions, values=values)

    def image_rows(self) -> Iterator[np.ndarray]:
        """Each image as a method is given it, on the host."""
        for image in self.images:
            yield image.cpu().numpy()

    def caption_rows(self) -> Iterator[np.ndarray]:
        """Each caption as a method is given it, on the host: its vector, or those of
        its words."""
        for rows in torch.arange(len(self.captions.values)).split(CHUNK):
            captions = self.captions_at(rows.to(self.device), rows)
            values, counts = captions.values.cpu().numpy(), captions.counts.tolist()
            is_sentence = values.ndim == 2 and captions.values.is_floating_point()
            for row, count in zip(values, counts, strict=True):
                yield row if is_sentence else row[:count]

    def _captions(
        self, index: Tensor | slice, on_host: Tensor | None = None
    ) -> Captions:
        if on_host is None:
            on_host = index.cpu() if isinstance(index, Tensor) else index
        return Captions(
            values=self.captions.values[index],
            lengths=self.captions.lengths[index],
            lengths_on_host=self.captions.counts[on_host],
        )

    def chosen(self, images: Tensor, captions: Tensor) -> "SplitInputs":
        """The inputs of some images and captions, given by their rows, on the host, and
        in this order. A caption whose image is not chosen has image -1."""
        place = torch.full((len(self.images),), -1, device=self.device)
        place[images.to(self.device)] = torch.arange(len(images), device=self.device)
        return replace(
            self,
            images=self.images[images.to(self.images.device)],
            captions=self._captions(captions.to(self.device), captions),
            image_of_caption=place[self.image_of_caption[captions.to(self.device)]],
            group_of_image=self.group_of_image[images.to(self.device)],
        )

    def first_images(self, count: int | None) -> "SplitInputs":
        """The first `count` images with their captions; None: all."""
        if count is None or count >= len(self.images):
            return self
        captions = (self.image_of_caption < count).nonzero()[:, 0].cpu()
        return self.chosen(torch.arange(count), captions)


def vocabulary_for(
    takes: Inputs, texts: Iterable[str], known: Words | None
) -> Vocabulary | Dictionary | None:
    """Words of the training captions, those that are `known` or, without such, all that
    are no rare ones; None for methods that take vectors."""
    if takes.text == "tokens":
        return Vocabulary.of(texts, takes.min_count)
    if takes.text == "words":
        return Dictionary.of(texts, known)
    return None


def vocabulary_from(
    takes: Inputs, words: tuple[str, ...] | None
) -> Vocabulary | Dictionary | None:
    """The vocabulary of the words that a checkpoint holds; None where it holds none."""
    if words is None:
        return None
    return (
        Vocabulary(words=words) if takes.text == "tokens" else Dictionary(words=words)
    )


def split_inputs(
    data: Prepared,
    split: Split,
    cell: Cell,
    takes: Inputs,
    vocabulary: Vocabulary | Dictionary | None,
    device: torch.device,
) -> SplitInputs:
    """A split of a cell's dataset, in the form its method takes.

    Raises NotApplicableError where the split has no captions or its features lack what
    the method takes, and UserError where the feature folders hold features of something
    else.
    """
    features = image_features(data, cell, takes.image)
    if not len(split.caption_rows):
        raise NotApplicableError(
            f"{cell.dataset}: the {split.name} split has no captions"
        )
    images = torch.from_numpy(features[split.images])
    contexts = None
    ids = data.captions["caption_id"].tolist()
    if vocabulary:
        texts = data.captions["text"].iloc[split.caption_rows].tolist()
        values, lengths = map(torch.from_numpy, vocabulary.encode(texts))
    elif takes.text == "contextual":
        # the tokens of all captions in one array, and where each caption ends
        folder = Path(cell.texts)
        ends = torch.from_numpy(read_array(folder, "ends", cell.dataset, ids))
        vectors = np.load(folder / "contextual.npy", mmap_mode="c", allow_pickle=False)
        lengths = ends.diff(prepend=ends.new_zeros(1))[split.captions]
        ends = ends[split.captions]
        starts = ends - lengths
        first = int(starts[0])
        contexts = resident(torch.from_numpy(vectors[first : ends[-1]]), device)
        # a shorter caption is padded with its last token
        places = torch.arange(int(lengths.max())).minimum(lengths[:, None] - 1)
        values = (starts - first)[:, None] + places
    else:
        vectors = read_array(Path(cell.texts), "sentence", cell.dataset, ids)
        values = torch.from_numpy(vectors[split.captions])
        lengths = torch.ones(len(values), dtype=torch.int64)
    return SplitInputs(
        images=images if takes.image == "pixels" else resident(images, device),
        captions=Captions(
            values=values.to(device),
            lengths=lengths.to(device),
            lengths_on_host=lengths,
        ),
        image_of_caption=torch.from_numpy(split.image_of_caption).to(device),
        group_of_image=torch.from_numpy(split.group_of_image).to(device),
        device=device,
        contexts=contexts,
    )


def image_features(data: Prepared, cell: Cell, kind: str) -> np.ndarray:
    """Features of the images of all used splits, memory-mapped: "pooled" (I, F),
    "regions" or "pixels"."""
    if not Path(cell.images, f"{kind}.npy").is_file():
        hint = "; set image.pixels in the season" if kind == "pixels" else ""
        raise NotApplicableError(
            f"{cell.images}: expected {kind}.npy, found none{hint}"
        )
    ids = data.used_images["image_id"].tolist()
    return read_array(Path(cell.images), kind, cell.dataset, ids)


def image_network(cell: Cell) -> nn.Module:
    """The network that made the cell's image features, with the weights it had."""
    state = torch.load(Path(cell.images) / "network.pt", weights_only=True)
    network = network_structure(cell, len(state["pooled_mean"]))
    network.load_state_dict(state)
    return network


def network_structure(cell: Cell, size: int) -> nn.Module:
    """The same network without its weights, of pooled size `size`, for a checkpoint to
    fill."""
    name = read_object(Path(cell.images) / "card.json")["settings"]["network"]
    return features.load(cell.backbone).structure(name, size)


# Phrases and proposals ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PhraseInputs:
    """The phrases of one split, on the host. What batches need lies on the device as
    well, where it fits: features of proposals, float16, of 30,000 photographs are 24
    GB."""

    proposals: Tensor  # (I, P, F)
    truths: Tensor  # (N, F) features of the true boxes
    boxes: Tensor  # (I, P, 4) of the proposals; zeros where an image has fewer than P
    # (N, P) float32, of proposals and true box; NaN where there is no proposal
    ious: Tensor
    image_of_phrase: Tensor  # (N,) int64, in [0, I)
    chain_of_phrase: Tensor  # (N,) int64
    vectors: Tensor  # (V, F') of distinct phrases
    vector_of_phrase: Tensor  # (N,) int64, in [0, V)
    device: torch.device

    @property
    def owners(self) -> np.ndarray:
        """(N,) the chain of each phrase: phrases of one chain are siblings."""
        return self.chain_of_phrase.numpy()

    def batches(
        self, rows: list[np.ndarray], pool_rows: list[np.ndarray | None]
    ) -> Iterator[RegionBatch]:
        """The phrases at each entry of `rows` with their regions; there is no pool of
        phrases."""
        if not rows:
            return
        owners, near = self.image_of_phrase.numpy(), self._near
        distinct = [np.unique(owners[part], return_inverse=True) for part in rows]
        images, of_row = zip(*distinct, strict=True)
        sent_rows, sent_images, sent_places = (
            sent(list(parts), self.device) for parts in (rows, images, of_row)
        )
        proposals = near["proposals"]
        if proposals.device.type == self.device.type:
            seen = (proposals[part].float() for part in sent_images)
        else:
            seen = ahead(
                lambda part: self._on_device(proposals[torch.from_numpy(part)]), images
            )
        for n, of_images in enumerate(seen):
            index, on_host = sent_rows[n], torch.from_numpy(rows[n])
            vectors = near["vectors"][near["vector_of_phrase"][index]].float()
            phrases = Captions(
                values=vectors,
                lengths=torch.ones_like(index),
                lengths_on_host=torch.ones_like(on_host),
            )
            yield RegionBatch(
                regions=near["truths"][index].float(),
                phrases=phrases,
                proposals=of_images,
                image_of_row=sent_places[n],
                ious=near["ious"][index],
                chain_ids=near["chain_of_phrase"][index],
                ids_on_host=self.chain_of_phrase[on_host],
                ious_on_host=self.ious[on_host],
                present_on_host=int((area(self.boxes.numpy()[images[n]]) > 0).sum()),
            )

    @cached_property
    def _near(self) -> dict[str, Tensor]:
        """What batches need, by name: small arrays on the device, proposals where they
        fit."""
        small = ("truths", "ious", "chain_of_phrase", "vectors", "vector_of_phrase")
        near = {name: vars(self)[name].to(self.device) for name in small}
        return near | {"proposals": resident(self.proposals, self.device)}

    def pairs(self) -> Iterator[tuple[Tensor, Captions]]:
        """All matched rows in chunks: features of true regions, and their phrases."""
        for rows in torch.arange(len(self.truths)).split(CHUNK):
            yield (
                self._on_device(self.truths[rows]),
                self.phrases_at(self.vector_of_phrase[rows]),
            )

    def phrases_at(self, vectors: Tensor | slice) -> Captions:
        """Distinct phrases as a method takes them."""
        values = self._on_device(self.vectors[vectors])
        lengths = torch.ones(len(values), dtype=torch.int64, device=values.device)
        return Captions(values=values, lengths=lengths)

    def proposals_of(self, image: int) -> Tensor:
        """(P, F) float32"""
        return self._on_device(self.proposals[image])

    def present_proposals_of(self, image: int) -> Tensor:
        """(P', F) float32, without those that are missing, whose boxes are zeros."""
        is_present = self.boxes[image].any(-1)
        return self.proposals_of(image)[is_present.to(self.device)]

    def first_images(self, count: int | None) -> "PhraseInputs":
        """The phrases of the first `count` images; None: all."""
        if count is None or count >= len(self.proposals):
            return self
        kept = self.image_of_phrase < count
        of_phrases = (
            "truths",
            "ious",
            "image_of_phrase",
            "chain_of_phrase",
            "vector_of_phrase",
        )
        changes = {name: vars(self)[name][kept] for name in of_phrases}
        return replace(
            self, proposals=self.proposals[:count], boxes=self.boxes[:count], **changes
        )

    def _on_device(self, values: Tensor) -> Tensor:
        return moved(values, self.device).float()


def phrase_inputs(
    data: Prepared, split: Split, cell: Cell, device: torch.device
) -> PhraseInputs:
    """The phrases of a split.

    Raises NotApplicableError where it has none, and UserError where the feature folders
    hold features of something else.
    """
    features = Path(cell.images)
    regions = data.regions.iloc[split.region_rows]
    if not len(regions):
        raise NotApplicableError(
            f"{cell.dataset}: the {split.name} split has no phrases with boxes"
        )
    card = features / "card.json"
    digest = sha256_of_items(data.regions["phrase_id"].tolist())
    if read_object(card).get("regions_sha256") != digest:
        expected = f"features of the phrases of {data.folder}"
        advice = f"delete {features} and run `dvc repro` again"
        raise UserError(card, expected, "features of other phrases", advice)
    used = data.used_images["image_id"].tolist()
    boxes_IP4 = read_array(features, "boxes", cell.dataset, used)[split.images]
    proposals = read_array(features, "proposals", cell.dataset, used)[split.images]
    truths = np.load(features / "truths.npy", mmap_mode="c", allow_pickle=False)
    vector_of_phrase, distinct = pd.factorize(data.regions["phrase"])
    vectors = read_array(Path(cell.texts), "phrase", cell.dataset, distinct.tolist())
    corners_N4 = regions[CORNERS].to_numpy(np.float32)
    ious = proposal_ious(boxes_IP4, split.image_of_region, corners_N4)
    arrays = {
        "proposals": proposals,
        "truths": truths[split.region_rows],
        "boxes": boxes_IP4,
        "ious": ious,
        "image_of_phrase": split.image_of_region,
        "chain_of_phrase": pd.factorize(regions["chain"])[0].astype(np.int64),
        "vectors": vectors,
        "vector_of_phrase": vector_of_phrase[split.region_rows].astype(np.int64),
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return PhraseInputs(**tensors, device=device)


def proposal_ious(
    boxes_IP4: np.ndarray, image_N: np.ndarray, truth_N4: np.ndarray
) -> np.ndarray:
    """Intersection over union of every phrase's true box with the proposals of its
    image, (N, P) float32 in [0, 1]; NaN for a box without area, which stands for a
    missing proposal."""
    ious_NP = np.empty((len(truth_N4), boxes_IP4.shape[1]), np.float32)
    for start in range(0, len(ious_NP), CHUNK):
        rows = slice(start, start + CHUNK)
        proposals = boxes_IP4[image_N[rows]]
        ious = iou(proposals, truth_N4[rows, None])
        ious_NP[rows] = np.where(area(proposals) > 0, ious, np.nan)
    return ious_NP


# Either of them -----------------------------------------------------------------------


def task_inputs(
    data: Prepared,
    split: Split,
    cell: Cell,
    takes: Inputs,
    vocabulary: Vocabulary | Dictionary | None,
    device: torch.device,
) -> SplitInputs | PhraseInputs:
    """A split of a cell's dataset: phrases for a method that localises them, else
    images and captions. Raises as `phrase_inputs` and `split_inputs`."""
    if takes.task == "localisation":
        return phrase_inputs(data, split, cell, device)
    return split_inputs(data, split, cell, takes, vocabulary, device)


def validation_inputs(
    data: Prepared,
    split: Split,
    cell: Cell,
    takes: Inputs,
    vocabulary: Vocabulary | Dictionary | None,
    device: torch.device,
) -> SplitInputs | PhraseInputs:
    """The first images of a cell's validation split, with their captions or phrases.
    Raises as `task_inputs`, and NotApplicableError for images without any."""
    count = cell.validation_images
    whole = task_inputs(data, split, cell, takes, vocabulary, device)
    first = whole.first_images(count)
    if not len(first.owners):
        raise NotApplicableError(
            f"{cell.dataset}: expected captions or phrases of the first {count} "
            "validation images, found none; take more validation_images"
        )
    return first
