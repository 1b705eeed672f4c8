"""Stage prepare: raw files -> validated tables.

    python -m benchmark.prepare DATASET

Writes data/prepared/<dataset>/: images.parquet, captions.parquet, regions.parquet, card.json.
Prints what was read, and what of it is out of the ordinary.
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.core.command_line import run_stage
from benchmark.core.files import replaced, sha256, write_json
from benchmark.data.boxes import CORNERS
from benchmark.data.prepared_tables import ROOT
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.data.raw_state import check_manifest, check_unchanged
from benchmark.prepare.leakage import leakage
from benchmark.prepare.oddities import oddities, summary
from benchmark.prepare.table_checks import Picture, check_boxes, check_tables, measure
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params
from datasets import SPLITS, Tables


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")


def main(arguments: argparse.Namespace) -> None:
    print("\n".join(prepare(read_shared(), arguments.dataset)))


def prepare(params: Params, name: str) -> list[str]:
    """Check a dataset and write its tables and card; lines that tell what was read."""
    dataset = raw_dataset(params, name)
    check_manifest(dataset)
    tables = dataset.read()
    check_tables(tables, dataset.card)
    images, captions = _arranged(tables)
    pictures = _pictures(dataset, images)
    images = _sized(images, pictures)
    check_boxes(tables.regions, images)
    odd = oddities(images, captions, pictures)
    card = _card(dataset, tables, images, captions) | {
        "notes": [*tables.notes, *odd],
        "pictures": len(pictures),
        "leakage": leakage(images[images["file"] != ""], captions, pictures),
    }
    check_unchanged(dataset)  # all that was read is of one state
    with replaced(ROOT / dataset.name) as folder:
        images.to_parquet(folder / "images.parquet", index=False)
        captions.to_parquet(folder / "captions.parquet", index=False)
        _numbered(tables.regions).to_parquet(folder / "regions.parquet", index=False)
        files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
        write_json(folder / "card.json", card | {"files": files})
    return [summary(dataset.name, images, captions), *odd]


def _pictures(dataset: RawDataset, images: pd.DataFrame) -> list[Picture]:
    """The decoded pictures of the images that have one, in order; maybe none."""
    files = [file for file in images["file"] if file]
    return measure(files, dataset.pictures(), dataset.name) if files else []


def _sized(images: pd.DataFrame, pictures: Sequence[Picture]) -> pd.DataFrame:
    """The images with width and height in pixels, 0 for an image without a picture."""
    sizes = np.zeros((len(images), 2), dtype=np.int64)
    seen = (images["file"] != "").to_numpy()
    sizes[seen] = np.array([(picture.width, picture.height) for picture in pictures]).reshape(-1, 2)
    return images.assign(width=sizes[:, 0], height=sizes[:, 1])


def _arranged(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Images sorted by split, then in file order; captions in the order of their images."""
    order = tables.images["split"].map(SPLITS.index)
    images = tables.images.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    images = images[["image_id", "file", "split", "group"]]
    owner = pd.Index(images["image_id"]).get_indexer(tables.captions["image_id"])
    captions = tables.captions.assign(owner=owner).sort_values("owner", kind="stable")
    captions["split"] = images["split"].to_numpy()[captions["owner"]]
    return images, captions[["caption_id", "image_id", "text", "split"]].reset_index(drop=True)


def _numbered(regions: pd.DataFrame) -> pd.DataFrame:
    """The regions with column types that do not depend on the rows, and an id for each phrase."""
    kinds = {"image_id": "str", "caption_id": "str", "phrase": "str", "chain": "str"}
    regions = regions.astype(kinds | dict.fromkeys(CORNERS, "float64"))
    number = regions.groupby("caption_id").cumcount().astype(str)
    return regions.assign(phrase_id=regions["caption_id"] + "/" + number)


def _card(
    dataset: RawDataset, tables: Tables, images: pd.DataFrame, captions: pd.DataFrame
) -> dict:
    card = dataset.card
    return {
        "dataset": dataset.name,
        "reader": dataset.reader,
        "options": dataset.options,
        "split": card.split,
        "title": card.title,
        "source": card.source,
        "licence": card.licence,
        "may_publish": card.may_publish,
        "ways": list(card.ways),
        "folds": card.folds,
        "counts": _counts(images, captions, tables.regions),
        "captions_per_image": _captions_per_image(images, captions),
        "manifest": sha256(dataset.manifest),
    }


def _counts(
    images: pd.DataFrame, captions: pd.DataFrame, regions: pd.DataFrame
) -> dict[str, dict[str, int]]:
    split_of = images.set_index("image_id")["split"]
    counts = {
        "images": Counter(images["split"]),
        "captions": Counter(captions["split"]),
        "phrases": Counter(regions["image_id"].map(split_of)),
    }
    return {name: {what: count[name] for what, count in counts.items()} for name in SPLITS}


def _captions_per_image(images: pd.DataFrame, captions: pd.DataFrame) -> dict:
    """split -> number of captions -> number of images with so many captions."""
    per_image = images["image_id"].map(captions["image_id"].value_counts()).fillna(0).astype(int)
    histograms: dict[str, dict[str, int]] = {}
    for (split, number), count in Counter(zip(images["split"], per_image, strict=True)).items():
        histograms.setdefault(split, {})[str(number)] = count
    return histograms


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
