"""Raw folders of every format that the field shares, written small in its real layout, and seasons
that play them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import layouts
import pytest
import torch
from torch import nn
from torchvision import models

from benchmark.season.parameter_files import Local, placed
from benchmark.season.parameters import (
    DatasetSettings,
    ImageEncoder,
    Params,
    ProposalEncoder,
    SentenceEncoder,
    WordVectors,
)
from benchmark.season.presets import presets
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season
from datasets import cuhk_pedes, flickr30k, flickr30k_entities, mscoco

# Images, in an order that sorting would not give.
FLICKR_IDS = random.Random(0).sample([str(1000 + 37 * n) for n in range(20)], 20)
FLICKR = {"train": FLICKR_IDS[:12], "val": FLICKR_IDS[12:16], "test": FLICKR_IDS[16:]}
NUMBERS = {part: [str(FLICKR_IDS.index(i)) for i in ids] for part, ids in FLICKR.items()}  # imgid
COCO_IDS = random.Random(1).sample([str(9 + 1313 * n) for n in range(26)], 26)
COCO = {"train": COCO_IDS[:9], "restval": COCO_IDS[9:12], "val": COCO_IDS[12:16]}
COCO |= {"test": COCO_IDS[16:]}
PERSONS = {person: "train" for person in (1, 2, 3, 4)} | {5: "val", 6: "val", 7: "test", 8: "test"}

IMAGES = {"train": 12, "val": 4, "test": 4}
COCO_IMAGES = {"train": 12, "val": 4, "test": 10}
BOXES = [  # the third is the person's; none is near the hat's
    *[(0, 0, 60, 40), (0, 20, 12, 40), layouts.PERSON],
    *[(30, 22, 50, 39), (2, 30, 9, 38), (20, 0, 39, 9)],
]


def of_five(counts: dict[str, int]) -> dict[str, int]:
    return {part: 5 * count for part, count in counts.items()}


def small_cards(patch: pytest.MonkeyPatch) -> None:
    """Let the cards expect the small numbers."""
    patch.setattr(flickr30k, "IMAGES", dict.fromkeys(flickr30k.IMAGES, IMAGES))
    patch.setattr(mscoco, "IMAGES", {True: COCO_IMAGES})
    patch.setattr(mscoco, "CAPTIONS", {True: of_five(COCO_IMAGES) | {"train": 63}})
    patch.setattr(mscoco, "PRECOMP_CAPTIONS", of_five(COCO_IMAGES))
    patch.setattr(cuhk_pedes, "IMAGES", {"train": 12, "val": 6, "test": 6})
    patch.setattr(cuhk_pedes, "CAPTIONS", {None: {"train": 25, "val": 12, "test": 12}})
    small = {"expected_images": IMAGES, "expected_captions": of_five(IMAGES)}
    patch.setattr(flickr30k_entities, "CARD", replace(flickr30k_entities.CARD, **small))


# Raw folders ---------------------------------------------------------------------------------


def flickr_pictures(raw: Path) -> None:
    for image_id in FLICKR_IDS:
        layouts.draw(raw / "flickr30k-images" / f"{image_id}.jpg", int(image_id))


def flickr_json(raw: Path) -> None:
    split_of = {image_id: part for part, ids in FLICKR.items() for image_id in ids}
    images = [
        {"filename": f"{i}.jpg", "split": split_of[i], "captions": layouts.sentences(i)}
        for i in FLICKR_IDS
    ]
    layouts.write_karpathy(raw / "dataset_flickr30k.json", images)


def flickr_karpathy(raw: Path) -> None:
    flickr_json(raw)
    flickr_pictures(raw)


def flickr_official(raw: Path) -> None:
    """With the lists of all three partitions; m-RNN's may have the names of files."""
    layouts.write_tokens(raw / "results_20130124.token", sorted(FLICKR_IDS))
    flickr_pictures(raw)
    for part, ids in FLICKR.items():
        layouts.write_lines(raw / f"{part}.txt", ids)
        layouts.write_lines(raw / f"m_rnn_{part}.txt", [f"{image_id}.jpg" for image_id in ids])
    for part, name in (("val", "dev"), ("test", "test")):
        names = [f"{image_id}_03d33305cf.jpg" for image_id in FLICKR[part]]
        layouts.write_lines(raw / f"Flickr_8k.{name}Images.txt", names)


def flickr_precomp(raw: Path) -> None:
    parts = {"train": NUMBERS["train"], "dev": NUMBERS["val"], "test": NUMBERS["test"]}
    layouts.write_precomp(raw / "f30k_precomp", parts)


def flickr_mat(raw: Path) -> None:
    flickr_json(raw)
    layouts.write_mat(raw / "vgg_feats.mat", FLICKR_IDS)


def flickr_npy(raw: Path) -> None:
    flickr_json(raw)
    layouts.write_npy(raw / "fc7.npy", sorted(FLICKR_IDS))


def coco_name(part: str, image_id: str) -> tuple[str, str]:
    folder = "train2014" if part == "train" else "val2014"
    return folder, f"COCO_{folder}_{int(image_id):012}.jpg"


def coco_json(raw: Path) -> None:
    """Sorted by id, so that the splits are mixed; the images of restval and one of the test images
    have six captions."""
    entries = []
    for image_id, part in sorted((i, part) for part, ids in COCO.items() for i in ids):
        folder, name = coco_name(part, image_id)
        captions = layouts.sentences(image_id)
        if part == "restval" or image_id == COCO["test"][0]:
            captions.append("One more . ")
        entries.append({"filepath": folder, "filename": name, "split": part, "captions": captions})
        entries[-1]["cocoid"] = int(image_id)
    layouts.write_karpathy(raw / "dataset_coco.json", entries)


def coco_karpathy(raw: Path) -> None:
    coco_json(raw)
    for part, ids in COCO.items():
        for image_id in ids:
            layouts.draw(raw.joinpath(*coco_name(part, image_id)), int(image_id))


def coco_precomp(raw: Path) -> None:
    """One line of ids and one row of features per image; test_* is a part of testall_*."""
    parts = {"train": COCO["train"] + COCO["restval"], "dev": COCO["val"]}
    parts |= {"test": COCO["test"][:3], "testall": COCO["test"]}
    layouts.write_precomp(raw / "coco_precomp", parts)


def coco_tsv(raw: Path) -> None:
    """In parts, and with an image that the dataset does not have."""
    coco_json(raw)
    ids = sorted(COCO_IDS, reverse=True)
    layouts.write_tsv(raw / "trainval_36/trainval.tsv.0", ids[:15])
    layouts.write_tsv(raw / "trainval_36/trainval.tsv.1", ["777777", *ids[15:]])


def coco_mat(raw: Path) -> None:
    coco_json(raw)
    layouts.write_mat(raw / "vgg_feats.mat", sorted(COCO_IDS))


def persons(raw: Path) -> None:
    layouts.write_persons(raw, PERSONS)


def entities_mat(raw: Path) -> None:
    layouts.write_entities(raw, FLICKR)
    for image_id in FLICKR_IDS:
        layouts.write_edge_boxes(raw / "boxes" / f"{image_id}.mat", BOXES)


def entities_npz(raw: Path) -> None:
    layouts.write_entities(raw, FLICKR)
    for image_id in FLICKR_IDS:
        layouts.write_npz_boxes(raw / "boxes" / f"{image_id}.npz", BOXES)


# Seasons -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format: how its raw folder is written, how a season plays it, and what its records hold."""

    reader: str
    write: Callable[[Path], None]
    presets: tuple[str, ...]
    split: str = "karpathy"
    images: int = 4
    captions: int = 20
    options: dict = field(default_factory=dict)  # of the reader
    features: dict = field(default_factory=dict)  # network -> file that is imported


FROM_PIXELS = ("dual_path_cuhk_1", "dual_path_cuhk_2")
WHOLE_AND_PHRASES = ("two_branch_constraints", "two_branch_phrase_sampling", "two_branch_weighted")
FORMATS = {
    "flickr30k, Karpathy": Format(
        reader="flickr30k", write=flickr_karpathy, presets=("two_branch_constraints",)
    ),
    **{
        f"flickr30k, {split}": Format(
            reader="flickr30k",
            write=flickr_official,
            presets=("cca",),
            split=split,
            options={"split": split},
        )
        for split in ("entities", "flickr8k_based", "m_rnn")
    },
    "flickr30k, precomp": Format(
        reader="flickr30k",
        write=flickr_precomp,
        presets=("scan_t2i_avg",),
        options={"annotations": "precomp"},
        features={"bottom_up": "f30k_precomp"},
    ),
    "flickr30k, mat": Format(
        reader="flickr30k",
        write=flickr_mat,
        presets=("two_branch_bidirectional",),
        options={"with_pictures": False},
        features={"vgg19": "vgg_feats.mat"},
    ),
    "flickr30k, npy": Format(
        reader="flickr30k",
        write=flickr_npy,
        presets=("two_branch_bidirectional",),
        options={"with_pictures": False},
        features={"vgg19": "fc7.npy"},
    ),
    "mscoco, Karpathy": Format(
        reader="mscoco",
        write=coco_karpathy,
        presets=("two_branch_constraints",),
        images=10,
        captions=50,
    ),
    "mscoco, precomp": Format(
        reader="mscoco",
        write=coco_precomp,
        presets=("scan_i2t_lse_mscoco",),
        images=10,
        captions=50,
        options={"annotations": "precomp"},
        features={"bottom_up": "coco_precomp"},
    ),
    "mscoco, tsv": Format(
        reader="mscoco",
        write=coco_tsv,
        presets=("scan_t2i_avg",),
        images=10,
        captions=50,
        options={"with_pictures": False},
        features={"bottom_up": "trainval_36"},
    ),
    "mscoco, mat": Format(
        reader="mscoco",
        write=coco_mat,
        presets=("two_branch_bidirectional",),
        images=10,
        captions=50,
        options={"with_pictures": False},
        features={"vgg19": "vgg_feats.mat"},
    ),
    "cuhk_pedes": Format(
        reader="cuhk_pedes",
        write=persons,
        presets=FROM_PIXELS,
        split="official",
        images=6,
        captions=12,
    ),
    "entities, mat": Format(
        reader="flickr30k_entities",
        write=entities_mat,
        presets=("two_branch_phrase_augmented", "cca_phrases", *WHOLE_AND_PHRASES),
        split="entities",
    ),
    "entities, npz": Format(
        reader="flickr30k_entities",
        write=entities_npz,
        presets=("cca_phrases",),
        split="entities",
    ),
}
IMPORTED = [name for name, form in FORMATS.items() if form.features]
TINY = {
    "two_branch_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 1},
    "two_branch_phrase_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 1},
    "scan": {"regions": 3, "embedding_size": 8, "word_size": 8, "epochs": 1, "decay_after": 1},
    "dual_path": {
        **{"blocks": "1,1,1,1", "text_width": 1 / 64, "word_size": 4, "hidden_size": 8},
        **{"image_hidden_size": 8, "embedding_size": 8, "epochs": 1},
    },
}


def write_weights(folder: Path) -> None:
    """An image network that knows nothing, but whose features are of the usual size."""
    torch.manual_seed(0)
    network = models.mobilenet_v2(weights=None)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0  # so that one batch is enough
    network(torch.rand(16, 3, 64, 64))
    torch.save(network.state_dict(), folder / "mobilenet_v2-1.pth")


def season_of(name: str, weights_dir: Path) -> Params:
    form = FORMATS[name]
    vectors = {"hglmm": SentenceEncoder(centres=1, size=8)}
    network = next(iter(form.features), "mobilenet_v2")
    settings = DatasetSettings(
        options=form.options,
        features=form.features,
        image=ImageEncoder(
            network=network,
            input_size=32,
            grid=2,
            flip=False,
            pixels=36 * (form.presets == FROM_PIXELS),
        ),
        words=WordVectors(size=4),
        sentence=vectors,
        phrases=vectors,
        proposals=ProposalEncoder(how="file", boxes="boxes", count=8, input_size=64),
    )
    played = {presets()[preset][0] for preset in form.presets}
    season = Season(
        title="Tiny",
        datasets={form.reader: settings},
        presets=list(form.presets),
        seeds=[0],
        device="cpu",
        options={method: TINY[method] for method in played if method in TINY},
    )
    return placed(resolve("tiny", season), Local(weights_dir=str(weights_dir)))
