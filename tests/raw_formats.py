"""Raw folders of every format that the field shares, written small in its real
layout."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import layouts

# Images, in an order that sorting would not give.
FLICKR_IDS = random.Random(0).sample([str(1000 + 37 * n) for n in range(20)], 20)
FLICKR = {"train": FLICKR_IDS[:12], "val": FLICKR_IDS[12:16], "test": FLICKR_IDS[16:]}
# imgid
NUMBERS = {
    part: [str(FLICKR_IDS.index(i)) for i in ids] for part, ids in FLICKR.items()
}
COCO_IDS = random.Random(1).sample([str(9 + 1313 * n) for n in range(26)], 26)
COCO = {"train": COCO_IDS[:9], "restval": COCO_IDS[9:12], "val": COCO_IDS[12:16]}
COCO |= {"test": COCO_IDS[16:]}
PERSONS = {person: "train" for person in (1, 2, 3, 4)} | {
    5: "val",
    6: "val",
    7: "test",
    8: "test",
}

BOXES = [  # the third is the person's; none is near the hat's
    *[(0, 0, 60, 40), (0, 20, 12, 40), layouts.PERSON],
    *[(30, 22, 50, 39), (2, 30, 9, 38), (20, 0, 39, 9)],
]


# Raw folders --------------------------------------------------------------------------


def flickr_pictures(raw: Path) -> None:
    for image_id in FLICKR_IDS:
        layouts.draw(raw / "flickr30k-images" / f"{image_id}.jpg", int(image_id))


def flickr_json(raw: Path) -> None:
    split_of = {image_id: part for part, ids in FLICKR.items() for image_id in ids}
    images = [
        {
            "filename": f"{i}.jpg",
            "split": split_of[i],
            "captions": layouts.five_captions(i),
        }
        for i in FLICKR_IDS
    ]
    layouts.write_karpathy(raw / "dataset_flickr30k.json", images)


def flickr_karpathy(raw: Path) -> None:
    flickr_json(raw)
    flickr_pictures(raw)


def flickr_official(raw: Path) -> None:
    layouts.write_tokens(raw / "results_20130124.token", sorted(FLICKR_IDS))
    flickr_pictures(raw)
    for part, ids in FLICKR.items():
        layouts.write_lines(raw / f"{part}.txt", ids)
        layouts.write_lines(
            raw / f"m_rnn_{part}.txt", [f"{image_id}.jpg" for image_id in ids]
        )
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
    layouts.write_npy_with_ids(raw / "fc7.npy", sorted(FLICKR_IDS))


def coco_name(part: str, image_id: str) -> tuple[str, str]:
    folder = "train2014" if part == "train" else "val2014"
    return folder, f"COCO_{folder}_{int(image_id):012}.jpg"


def coco_json(raw: Path) -> None:
    """Sorted by id, so that the splits are mixed; the images of restval and one of the
    test images have six captions."""
    entries = []
    for image_id, part in sorted((i, part) for part, ids in COCO.items() for i in ids):
        folder, name = coco_name(part, image_id)
        captions = layouts.five_captions(image_id)
        if part == "restval" or image_id == COCO["test"][0]:
            captions.append("One more . ")
        entries.append(
            {"filepath": folder, "filename": name, "split": part, "captions": captions}
        )
        entries[-1]["cocoid"] = int(image_id)
    layouts.write_karpathy(raw / "dataset_coco.json", entries)


def coco_karpathy(raw: Path) -> None:
    coco_json(raw)
    for part, ids in COCO.items():
        for image_id in ids:
            layouts.draw(raw.joinpath(*coco_name(part, image_id)), int(image_id))


def coco_precomp(raw: Path) -> None:
    parts = {"train": COCO["train"] + COCO["restval"], "dev": COCO["val"]}
    # test_* is a part of testall_*
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


# Formats ------------------------------------------------------------------------------


class Format(NamedTuple):
    """A format: the reader of a raw folder, how it is written, and the reader's
    options."""

    reader: str
    write: Callable[[Path], None]
    options: dict[str, object] = {}


PRECOMP, BARE = {"annotations": "precomp"}, {"with_pictures": False}
FORMATS = {
    "flickr30k, Karpathy": Format("flickr30k", flickr_karpathy),
    "flickr30k, entities": Format("flickr30k", flickr_official, {"split": "entities"}),
    "flickr30k, flickr8k_based": Format(
        "flickr30k", flickr_official, {"split": "flickr8k_based"}
    ),
    "flickr30k, m_rnn": Format("flickr30k", flickr_official, {"split": "m_rnn"}),
    "flickr30k, precomp": Format("flickr30k", flickr_precomp, PRECOMP),
    "flickr30k, mat": Format("flickr30k", flickr_mat, BARE),
    "flickr30k, npy": Format("flickr30k", flickr_npy, BARE),
    "mscoco, Karpathy": Format("mscoco", coco_karpathy),
    "mscoco, precomp": Format("mscoco", coco_precomp, PRECOMP),
    "mscoco, tsv": Format("mscoco", coco_tsv, BARE),
    "mscoco, mat": Format("mscoco", coco_mat, BARE),
    "cuhk_pedes": Format("cuhk_pedes", persons),
    "entities, mat": Format("flickr30k_entities", entities_mat),
    "entities, npz": Format("flickr30k_entities", entities_npz),
}
