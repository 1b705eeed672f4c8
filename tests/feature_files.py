"""Files of image features in every format that can be imported, small and made up."""

import base64
import csv
import json
import random
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import scipy.io

from benchmark.data.feature_folders import read_array
from benchmark.data.raw_files import RawDataset
from benchmark.features.imported_features import import_features
from benchmark.season.parameters import FeatureSet, ImageEncoder

RAW, FOLDER = Path("data/raw/tiny"), Path("data/features/tiny/imported")
DATASET = RawDataset(name="tiny", reader="tiny", options={}, source=None, module=None)
SPLITS = ["train"] * 6 + ["val"] * 3 + ["test"] * 3 + ["unused"] * 2
STEMS = {"train": "train", "val": "dev", "test": "test"}
NUMBERS = [1000 + 37 * n % 14 for n in range(14)]  # in no order that sorting would give
R, F = 4, 3


def images_of(file: str = "{}.jpg") -> pd.DataFrame:
    """Images called by their number; `file` is the pattern of their pictures."""
    ids = [str(number) for number in NUMBERS]
    return pd.DataFrame(
        {"image_id": ids, "file": [file.format(number) for number in NUMBERS], "split": SPLITS}
    )


IMAGES = images_of()
USED = IMAGES["image_id"][IMAGES["split"] != "unused"].tolist()


def truth(image_id: str) -> np.ndarray:
    """The regions of an image, (R, F) float32, that its number decides; the last channel is 5."""
    regions = np.random.default_rng(int(image_id)).normal(2, 3, (R, F)).astype(np.float32)
    regions[:, -1] = 5
    return regions


def shuffled(ids: list[str]) -> list[str]:
    return random.Random(0).sample(ids, len(ids))


def regions_of(ids: list[str]) -> np.ndarray:
    return np.stack([truth(image_id) for image_id in ids])


def first_of(ids: list[str]) -> np.ndarray:
    """Pooled features, where a format has no others: the first region stands for the image."""
    return regions_of(ids)[:, 0]


# Writers: the real layouts ---------------------------------------------------------------------


def write_part(folder: Path, stem: str, ids: list[str], features: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    captions = [f"image {image_id} says {k} ." for image_id in ids for k in range(5)]
    (folder / f"{stem}_caps.txt").write_text("".join(f"{line}\n" for line in captions))
    (folder / f"{stem}_ids.txt").write_text("".join(f"{image_id}\n" for image_id in ids))
    np.save(folder / f"{stem}_ims.npy", features)


def of_split(split: str) -> list[str]:
    return shuffled(IMAGES["image_id"][IMAGES["split"] == split].tolist())


def scan_folder() -> str:
    for split, stem in STEMS.items():
        write_part(RAW / "f30k_precomp", stem, of_split(split), regions_of(of_split(split)))
    return "f30k_precomp"


def coco_folder() -> str:
    """test_* is the beginning of testall_*."""
    scan_folder()
    ids = of_split("test")
    write_part(RAW / "f30k_precomp", "testall", ids, regions_of(ids))
    write_part(RAW / "f30k_precomp", "test", ids[:2], regions_of(ids[:2]))
    return "f30k_precomp"


def vsepp_folder() -> str:
    """One row per caption."""
    for split, stem in STEMS.items():
        ids = of_split(split)
        write_part(RAW / "coco_precomp", stem, ids, first_of(ids).repeat(5, axis=0))
    return "coco_precomp"


def tsv_row(image_id: str, regions: np.ndarray) -> list[str]:
    boxes = np.zeros((len(regions), 4), np.float32)
    coded = [base64.b64encode(array.tobytes()).decode() for array in (boxes, regions)]
    return [str(int(image_id)), "640", "480", str(len(regions)), *coded]


def write_tsv(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)  # lines end with \r\n, as the real ones


def tsv_file() -> str:
    """With the unused images, and one that the dataset does not have."""
    ids = shuffled([*IMAGES["image_id"], "77"])
    write_tsv(RAW / "boxes_36.tsv", [tsv_row(image_id, truth(image_id)) for image_id in ids])
    return "boxes_36.tsv"


def lxmert_file() -> str:
    """With objects and attributes and how sure the detector is of them; names of COCO's images."""
    ids = shuffled(USED)
    rows = [tsv_row(image_id, truth(image_id)) for image_id in ids]
    rows = [
        [f"COCO_val2014_{x:0>12}", *row[1:3], *["AAAA"] * 4, *row[3:]]
        for x, row in zip(ids, rows, strict=True)
    ]
    write_tsv(RAW / "obj36.tsv", rows)
    return "obj36.tsv"


def tsv_folder() -> str:
    (RAW / "trainval").mkdir()
    ids = shuffled(USED)
    names = ["karpathy_train_genome.tsv.0", "karpathy_train_genome.tsv.1", "karpathy_val.tsv"]
    for name, part in zip(names, (ids[:5], ids[5:9], ids[9:]), strict=True):
        write_tsv(RAW / "trainval" / name, [tsv_row(x, truth(x)) for x in part])
    (RAW / "trainval" / "readme.txt").write_text("Read me.")
    return "trainval"


def write_json_of(ids: list[str], path: Path) -> None:
    entries = [
        {"filename": f"{x}.jpg", "imgid": n, "split": "train", "sentids": [], "sentences": []}
        for n, x in enumerate(ids)
    ]
    path.write_text(json.dumps({"images": entries, "dataset": "flickr30k"}))


def mat_with_json() -> str:
    ids = shuffled(IMAGES["image_id"].tolist())
    write_json_of(ids, RAW / "dataset_flickr30k.json")
    scipy.io.savemat(RAW / "vgg_feats.mat", {"feats": first_of(ids).T, "note": "other"})
    return "vgg_feats.mat"


def mat_with_ids() -> str:
    ids = shuffled(USED)
    scipy.io.savemat(RAW / "vgg_feats.mat", {"feats": first_of(ids).T})
    (RAW / "vgg_feats_ids.txt").write_text("\r\n".join(ids))
    return "vgg_feats.mat"


def npz_regions() -> str:
    ids = shuffled(USED)
    np.savez(RAW / "mine.npz", image_ids=ids, features=regions_of(ids))
    return "mine.npz"


def parquet_pooled() -> str:
    """Ids in the index of pandas; one image that the dataset does not have."""
    ids = shuffled([*IMAGES["image_id"], "77"])
    frame = pd.DataFrame(first_of(ids), ids).add_prefix("x")
    frame.to_parquet(RAW / "mine.parquet")
    return "mine.parquet"


def npy_regions() -> str:
    ids = shuffled([*IMAGES["image_id"], "77"])
    np.save(RAW / "mine.npy", regions_of(ids).astype(">f8"))
    (RAW / "mine_ids.txt").write_text("\n".join(ids) + "\n")
    return "mine.npy"


def npy_pooled() -> str:
    ids = shuffled(USED)
    np.save(RAW / "mine.npy", first_of(ids).astype(np.float16))
    (RAW / "mine_ids.txt").write_text("\n".join(ids) + "\n")
    return "mine.npy"


def load(features: str, images: pd.DataFrame = IMAGES, **settings) -> dict[str, np.ndarray]:
    """Import features, and read the arrays back as `train` does."""
    ids = images["image_id"][images["split"] != "unused"].tolist()
    feature_set = FeatureSet(
        dataset="tiny",
        reader="tiny",
        kind="pictures",
        encoder="torchvision_cnn",
        folder=str(FOLDER),
        source="data/prepared/tiny",
        image=ImageEncoder(features=features, **settings),
    )
    data = builders.on_disk(images, pd.DataFrame(), pd.DataFrame())
    import_features(feature_set, data, DATASET)
    names = [path.stem for path in FOLDER.glob("*.npy")]
    return {name: np.array(read_array(FOLDER, name, "tiny", ids)) for name in names}
