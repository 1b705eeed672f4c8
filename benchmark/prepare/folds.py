"""Stage folds: a prepared dataset -> its folds, each a prepared dataset of its own.

    python -m benchmark.prepare.folds DATASET

Fold 0 is the dataset as it is. Its training images are dealt to the further folds. Of
fold 3, the test split is what was dealt to it, and the training split all other images
of training and test; validation is that of the dataset, and so no image of it is in a
fold. Writes data/prepared/<dataset>_fold<n>/ and, for git, data/cards/<dataset>_folds/.

What people judged beside `own` is of the official test split: folds have no such layer.
"""

import argparse
import hashlib
from math import ceil, floor

import numpy as np
import pandas as pd

from benchmark.contracts.datasets import Tables
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError, entry
from benchmark.core.files import replaced
from benchmark.core.names import Fold, folds_of
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import ROOT, Prepared, write_cards_of_folds
from benchmark.data.raw_files import check_manifest, raw_dataset
from benchmark.prepare.__main__ import (
    arranged,
    black_ones,
    captions_per_image,
    counts_of,
    oddities,
    with_sizes,
    write_tables,
)
from benchmark.prepare.leakage import Picture, leakage, measure, twins
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params

DEALT = ("train", "test")  # the splits whose images folds share
# of the size of the test split: a larger gallery lowers every recall
TOLERANCE = 0.1
# facts of a card that hold for the folds, too
SHARED_FACTS = (
    "reader",
    "options",
    "manifest",
    "title",
    "source",
    "licence",
    "may_publish",
    "ways",
    "pictures",
    "release",
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="one that has folds in a season")


def main(arguments: argparse.Namespace) -> None:
    print("\n".join(prepare_folds(read_shared(), arguments.dataset)))


def prepare_folds(params: Params, name: str) -> list[str]:
    """Write the tables and cards of the folds of a dataset; lines that tell their
    sizes. Raises UserError as `dealt`."""
    count = entry(params.folds, name, "dataset with folds")
    raw = raw_dataset(params, name)
    check_manifest(raw)
    whole = prepared_tables.read(name)
    fold_of_image = dealt(whole.images, count, name)
    files = [file for file in whole.images["file"] if file]
    pictures = measure(files, raw.pictures(), name) if files else []
    picture_of = dict(zip(files, pictures, strict=True))
    cards = {}
    lines = []
    for fold in folds_of(name, count):
        splits = splits_of(fold, whole.images["split"], fold_of_image)
        images, captions, in_order = _tables_of(whole, splits, picture_of)
        with replaced(ROOT / fold.name) as folder:
            write_tables(folder, images, captions, whole.regions)
        cards[fold] = _card_of(fold, count, whole, images, captions, in_order)
        counts = cards[fold]["counts"]
        sizes = [f"{split} {counts[split]['images']}" for split in ("train", "test")]
        lines.append(f"{fold.name}: fold {fold.number} of {count}: {', '.join(sizes)}")
    write_cards_of_folds(name, cards)
    return lines


def facts_of(fold: Fold, count: int, whole: Prepared) -> dict:
    """What the card of a fold says of it: its number, of how many, and of which
    tables."""
    return {"number": fold.number, "count": count, "prepared_sha256": whole.sha256}


# Dealing ------------------------------------------------------------------------------


def dealt(images: pd.DataFrame, count: int, name: str) -> pd.Series:
    """The fold of each image: 0 of the test split, 1 to `count` - 1 of training images,
    -1 of all others.

    Groups stay together. The largest are dealt first, each to the fold that has least;
    those of one size in the order of the sha256 of their ids, so that the order of
    files is of no account. Raises UserError where a fold would be larger or smaller
    than the test split by more than TOLERANCE.
    """
    training = images[images["split"] == "train"]
    hashed = training["image_id"].map(_sha256)
    groups = hashed.groupby(training["group"]).agg(["size", "min"])
    groups = groups.sort_values(["size", "min"], ascending=[False, True])
    fold_of_group, sizes = _of_groups(groups["size"], count)
    tested = int((images["split"] == "test").sum())
    if not _fit(sizes, tested):
        best = _fitting_count(groups["size"], tested)
        raise UserError(
            f"datasets.{name}: folds: {count}",
            expected=f"folds of about {tested} images, as many as test has",
            found=f"{count - 1} of {min(sizes)} to {max(sizes)} training images",
            do=f"try `folds: {best}`" if best else "leave `folds` out",
        )
    folds = images["group"].map(fold_of_group)
    folds = folds.where(images["split"] == "train", -1)
    folds = folds.where(images["split"] != "test", 0)
    return folds.astype(int)


def _of_groups(sizes: pd.Series, count: int) -> tuple[dict[str, int], list[int]]:
    """The fold of each group, given their sizes in the order of dealing, and how many
    images each of `count` - 1 folds gets."""
    dealt_to = [0] * (count - 1)
    fold_of_group = {}
    for group, size in sizes.items():
        place = dealt_to.index(min(dealt_to))
        dealt_to[place] += size
        fold_of_group[group] = place + 1
    return fold_of_group, dealt_to


def _fit(sizes: list[int], tested: int) -> bool:
    """Whether folds of these sizes are as large as the test split."""
    return max(abs(size - tested) for size in sizes) <= TOLERANCE * tested


def _fitting_count(sizes: pd.Series, tested: int) -> int:
    """A number of folds that fits; 0 for none."""
    exact = int(sizes.sum()) / tested
    for further in sorted({max(1, floor(exact)), ceil(exact)}):
        if _fit(_of_groups(sizes, 1 + further)[1], tested):
            return 1 + further
    return 0


def _sha256(image_id: str) -> str:
    return hashlib.sha256(image_id.encode()).hexdigest()


def splits_of(fold: Fold, splits: pd.Series, fold_of_image: pd.Series) -> pd.Series:
    """The split of each image in a fold, from that in the dataset."""
    moved = np.where(fold_of_image == fold.number, "test", "train")
    return splits.where(~splits.isin(DEALT), moved)


# Tables and cards ---------------------------------------------------------------------


def _tables_of(
    whole: Prepared, splits: pd.Series, picture_of: dict[str, Picture]
) -> tuple[pd.DataFrame, pd.DataFrame, list[Picture]]:
    """Images and captions with these splits, and the pictures of the images that have a
    file, in their order."""
    images = whole.images.assign(split=splits)
    images, captions = arranged(Tables(images=images, captions=whole.captions))
    pictures = [picture_of[file] for file in images["file"] if file]
    return with_sizes(images, pictures), captions, pictures


def _card_of(
    fold: Fold,
    count: int,
    whole: Prepared,
    images: pd.DataFrame,
    captions: pd.DataFrame,
    pictures: list[Picture],
) -> dict:
    card = {key: whole.card[key] for key in SHARED_FACTS if key in whole.card}
    with_file = images[images["file"] != ""]
    black = black_ones(with_file["file"], pictures)
    place = f"{fold.number} of {count}"
    note = f"Fold {place} of {fold.dataset}, whose notes hold here, too."
    return card | {
        "dataset": fold.name,
        "fold": facts_of(fold, count, whole),
        "split": f"{whole.card['split']}, fold {place}",
        "folds": 1,  # parts of the test split that are ranked by themselves
        "counts": counts_of(whole.regions, images, captions),
        "captions_per_image": captions_per_image(images, captions),
        "notes": [note, *oddities(images, captions, black)],
        "leakage": leakage(with_file, captions, pictures),
        "twins": twins(images, captions, pictures),
    }


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
