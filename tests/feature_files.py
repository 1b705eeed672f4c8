"""Files of image features in every format that can be imported, small and made up; and
tiny random encoders in the formats of the libraries that their strong sisters come
in."""

import os
import random
from pathlib import Path

import builders
import layouts
import numpy as np
import pandas as pd
import pytest
import scipy.io
import torch
from layouts import three_regions

from benchmark.data.feature_folders import read_array
from benchmark.data.raw_files import RawDataset
from benchmark.features.imported_features import import_features
from benchmark.season.parameters import FeatureSet, ImageEncoder

RAW, FOLDER = Path("data/raw/tiny"), Path("data/features/tiny/imported")
DATASET = RawDataset(name="tiny", reader="tiny", options={}, source=None)
SPLITS = ["train"] * 6 + ["val"] * 3 + ["test"] * 3 + ["unused"] * 2
STEMS = {"train": "train", "val": "dev", "test": "test"}
NUMBERS = [1000 + 37 * n % 14 for n in range(14)]  # in no order that sorting would give
WORDS = "a the red green blue small large left right of is circle square triangle "
WORDS = (WORDS + "above below").split()
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZE = 12  # of its vectors
BESIDE = Path(__file__).parents[2] / "shared/weights"  # beside the checkout
WEIGHTS = Path(os.environ.get("REMATCH_TEST_WEIGHTS", BESIDE))  # of the real ones


def images_of(file: str = "{}.jpg") -> pd.DataFrame:
    ids = [str(number) for number in NUMBERS]
    return pd.DataFrame(
        {
            "image_id": ids,
            "file": [file.format(number) for number in NUMBERS],
            "split": SPLITS,
        }
    )


IMAGES = images_of()
USED = IMAGES["image_id"][IMAGES["split"] != "unused"].tolist()


def shuffled(ids: list[str]) -> list[str]:
    return random.Random(0).sample(ids, len(ids))


def regions_of(ids: list[str]) -> np.ndarray:
    return np.stack([three_regions(image_id) for image_id in ids])


def first_of(ids: list[str]) -> np.ndarray:
    """Pooled features, where a format has no others: the first region stands for the
    image."""
    return regions_of(ids)[:, 0]


# with one that the dataset does not have
MORE = [*shuffled(IMAGES["image_id"].tolist()), "77"]


# Writers: the real layouts ------------------------------------------------------------


def of_split(split: str) -> list[str]:
    return shuffled(IMAGES["image_id"][IMAGES["split"] == split].tolist())


def scan_folder() -> str:
    parts = {stem: of_split(split) for split, stem in STEMS.items()}
    layouts.write_precomp(RAW / "f30k_precomp", parts)
    return "f30k_precomp"


def coco_folder() -> str:
    """test_* is the beginning of testall_*."""
    ids = of_split("test")
    scan_folder()
    layouts.write_precomp(RAW / "f30k_precomp", {"testall": ids, "test": ids[:2]})
    return "f30k_precomp"


def vsepp_folder() -> str:
    scan_folder()
    # one row per caption
    for split, stem in STEMS.items():
        rows = first_of(of_split(split)).repeat(5, axis=0)
        np.save(RAW / "f30k_precomp" / f"{stem}_ims.npy", rows)
    return "f30k_precomp"


def tsv_file() -> str:
    # with the unused images, and one that the dataset does not have
    layouts.write_tsv(RAW / "boxes_36.tsv", MORE)
    return "boxes_36.tsv"


def lxmert_file() -> str:
    layouts.write_tsv(RAW / "obj36.tsv", shuffled(USED))
    # with objects, attributes and confidences; names of COCO's images
    rows = [line.split("\t") for line in (RAW / "obj36.tsv").read_text().splitlines()]
    rows = [
        [f"COCO_val2014_{x:0>12}", *rest[:2], *["AAAA"] * 4, *rest[2:]]
        for x, *rest in rows
    ]
    layouts.write_lines(RAW / "obj36.tsv", ["\t".join(row) for row in rows])
    return "obj36.tsv"


def tsv_folder() -> str:
    ids = shuffled(USED)
    names = [
        "karpathy_train_genome.tsv.0",
        "karpathy_train_genome.tsv.1",
        "karpathy_val.tsv",
    ]
    for name, part in zip(names, (ids[:5], ids[5:9], ids[9:]), strict=True):
        layouts.write_tsv(RAW / "trainval" / name, part)
    (RAW / "trainval" / "readme.txt").write_text("Read me.")
    return "trainval"


def write_json_of(ids: list[str], path: Path) -> None:
    images = [{"filename": f"{x}.jpg", "split": "train", "captions": []} for x in ids]
    layouts.write_karpathy(path, images)


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
    # ids in the index of pandas; one image is not of the dataset
    pd.DataFrame(first_of(MORE), MORE).add_prefix("x").to_parquet(RAW / "mine.parquet")
    return "mine.parquet"


def npy_regions() -> str:
    np.save(RAW / "mine.npy", regions_of(MORE).astype(">f8"))
    layouts.write_lines(RAW / "mine_ids.txt", MORE)
    return "mine.npy"


def npy_pooled() -> str:
    ids = shuffled(USED)
    np.save(RAW / "mine.npy", first_of(ids).astype(np.float16))
    layouts.write_lines(RAW / "mine_ids.txt", ids)
    return "mine.npy"


def load(
    features: str, images: pd.DataFrame = IMAGES, **settings
) -> dict[str, np.ndarray]:
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
    data = builders.prepared_on_disk(images, pd.DataFrame(), pd.DataFrame())
    import_features(feature_set, data, DATASET)
    names = [path.stem for path in FOLDER.glob("*.npy")]
    return {name: np.array(read_array(FOLDER, name, "tiny", ids)) for name in names}


# Tiny encoders ------------------------------------------------------------------------


def bert(folder: Path, **changes: int) -> Path:
    """A BERT of random weights, as `save_pretrained` writes it, with a tokeniser."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    torch.manual_seed(0)
    shape = {"hidden_size": SIZE, "num_hidden_layers": 2, "num_attention_heads": 3}
    shape |= {"intermediate_size": 20, "vocab_size": len(MARKS + WORDS)}
    config = transformers.BertConfig(
        **shape | {"max_position_embeddings": 16} | changes
    )
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = {word: n for n, word in enumerate(MARKS + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    framed = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, framed
    )
    tokenizer.enable_padding(length=9)  # as files of sentence-transformers have it
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
