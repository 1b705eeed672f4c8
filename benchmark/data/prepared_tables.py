"""Prepared datasets: the tables that `prepare` writes and later stages read, and what
git keeps of them, so that a clone without data can judge: counts, and the image of each
test query; of all folds of a dataset in one card.json and one queries.npz, by their
numbers. Imports no torch.

Boxes are arrays (..., 4) of x0, y0, x1, y1 in pixels of a picture, half-open: the width
is x1 - x0. A box without area stands for no box: feature folders are padded with them
where a picture has fewer proposals than others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmark.contracts import committed
from benchmark.contracts.datasets import SPLITS, Layer
from benchmark.core import files
from benchmark.core.errors import UserError, entry
from benchmark.core.names import (
    Fold,
    fold_of,
    folder_of,
    folder_of_folds,
    prefix_of,
    preparing,
)

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path("data/prepared")
CARDS = Path("data/cards")  # in git: CARD and QUERIES of each dataset
CARD, QUERIES = "card.json", "queries.npz"
CORNERS = ["x0", "y0", "x1", "y1"]  # columns of the region table
TABLES = ("images", "captions", "regions")
RELEVANCE = "relevance.parquet"  # of the layers beside `own`, where there are any
JUDGED = ("layer", "way", "image_id", "caption_id", "score", "right")  # its columns


@dataclass(frozen=True)
class Split:
    """Rows of one split: I images, C captions, N regions. Captions are in the order of
    their images, so `image_of_caption` never decreases."""

    name: str
    image_rows: np.ndarray  # (I,) int64, rows of Prepared.images
    caption_rows: np.ndarray  # (C,) int64, rows of Prepared.captions
    image_of_caption: np.ndarray  # (C,) int64, in [0, I): index into image_rows
    group_of_image: np.ndarray  # (I,) int64, numbered from 0 by first appearance
    region_rows: np.ndarray  # (N,) int64, rows of Prepared.regions, in their order
    image_of_region: np.ndarray  # (N,) int64, in [0, I)

    @property
    def images(self) -> slice:
        """The rows of its images, which are consecutive: a part of a file is enough."""
        return slice(int(self.image_rows[0]), int(self.image_rows[-1]) + 1)

    @property
    def captions(self) -> slice:
        """The rows of its captions, which are consecutive, too."""
        return slice(int(self.caption_rows[0]), int(self.caption_rows[-1]) + 1)

    @property
    def group_of_caption(self) -> np.ndarray:
        """The group of each caption's image, (C,) int64."""
        return self.group_of_image[self.image_of_caption]


class Splits(NamedTuple):
    """The rows of the used splits."""

    train: Split
    val: Split
    test: Split


def _no_judgements() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=JUDGED)


@dataclass(frozen=True)
class Prepared:
    """The content of data/prepared/<dataset>.

    images    image_id, file, split, group, width, height; sorted by split: train, val, test, unused
    captions  caption_id, image_id, text (verbatim), split; in the order of their images
    regions   phrase_id, image_id, caption_id, phrase, x0, y0, x1, y1, chain; may be empty
    card      what `prepare` counted and found
    judged    layer, way, image_id, caption_id, score, right: contracts.datasets.Layer; may be empty
    """

    images: pd.DataFrame
    captions: pd.DataFrame
    regions: pd.DataFrame
    card: dict
    folder: Path
    judged: pd.DataFrame = field(default_factory=_no_judgements)

    @property
    def sha256(self) -> str:
        """Of the tables and of the raw files that they were read from: what features
        are of."""
        parts = [files.sha256(self.folder / f"{table}.parquet") for table in TABLES]
        parts.append(self.card["manifest"])
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def used_images(self) -> pd.DataFrame:
        """The images of the used splits: those that have features."""
        return self.images[self.images["split"] != "unused"]

    def split(self, name: str) -> Split:
        """The rows of the split `name`, one of SPLITS; empty arrays if it has no
        images. Raises ValueError for any other name."""
        import pandas as pd

        if name not in SPLITS:
            raise ValueError(f"no split {name!r}; expected one of {', '.join(SPLITS)}")
        image_rows = np.flatnonzero(self.images["split"] == name)
        caption_rows = np.flatnonzero(self.captions["split"] == name)
        owners = self.captions["image_id"].iloc[caption_rows]
        split_ids = pd.Index(self.images["image_id"].iloc[image_rows])
        image_of_region = split_ids.get_indexer(self.regions["image_id"])
        region_rows = np.flatnonzero(image_of_region >= 0)
        image_of_caption = split_ids.get_indexer(owners).astype(np.int64)
        assert (image_of_caption >= 0).all(), self.folder
        groups = self.images["group"].iloc[image_rows]
        return Split(
            name=name,
            image_rows=image_rows,
            caption_rows=caption_rows,
            image_of_caption=image_of_caption,
            group_of_image=pd.factorize(groups)[0].astype(np.int64),
            region_rows=region_rows,
            image_of_region=image_of_region[region_rows].astype(np.int64),
        )

    def splits(self) -> Splits:
        return Splits(self.split("train"), self.split("val"), self.split("test"))


def read_card(dataset: str) -> dict:
    """What `prepare` counted and found. Raises UserError where it never ran."""
    path = committed(CARDS / folder_of(dataset) / CARD)
    if not path.is_file():
        raise UserError(
            path,
            expected=f"the card of the prepared dataset {dataset}",
            found="nothing",
            do=preparing(dataset),
        )
    card = files.read_object(path)
    fold = fold_of(dataset)
    return entry(card, str(fold.number), f"{path}: fold") if fold else card


def is_here(dataset: str) -> bool:
    """Whether this machine has the tables of a dataset, and not its card alone."""
    return (ROOT / dataset / "captions.parquet").is_file()


def write_card(dataset: str, card: dict) -> None:
    """What git keeps of the tables that lie in data/prepared, with their digests."""
    card, arrays = _kept_of(dataset, card)
    with files.replaced(CARDS / dataset) as folder:
        files.write_arrays(folder / QUERIES, arrays)
        files.write_json(folder / CARD, card)


def write_cards_of_folds(dataset: str, cards: dict[Fold, dict]) -> None:
    """The same of all folds of a dataset."""
    content = {}
    arrays = {}
    for fold, card in cards.items():
        content[str(fold.number)], of_fold = _kept_of(fold.name, card)
        for name, values in of_fold.items():
            arrays[f"{prefix_of(fold.name)}{name}"] = values
    with files.replaced(CARDS / folder_of_folds(dataset)) as folder:
        files.write_arrays(folder / QUERIES, arrays)
        files.write_json(folder / CARD, content)


def _kept_of(dataset: str, card: dict) -> tuple[dict, dict[str, np.ndarray]]:
    """The card with the digests of the tables, and the arrays of QUERIES."""
    source = ROOT / dataset
    digests = {path.name: files.sha256(path) for path in sorted(source.iterdir())}
    data = Prepared(**files.read_tables(source, TABLES), card=card, folder=source)
    arrays = images_of_queries(data)
    arrays["group"] = data.split("test").group_of_image
    return card | {"files": digests}, arrays


def read_queries(dataset: str) -> dict[str, np.ndarray]:
    """The image of each test query by direction, (Q,) in [0, I), and the group of each
    image, (I,), numbered from 0."""
    arrays = files.read_arrays(committed(CARDS / folder_of(dataset) / QUERIES))
    prefix = prefix_of(dataset)
    of_dataset = {}
    for name, values in arrays.items():
        if name.startswith(prefix):
            of_dataset[name.removeprefix(prefix)] = values
    return of_dataset


def images_of_queries(data: Prepared) -> dict[str, np.ndarray]:
    """The image of each test query by direction, (Q,) in [0, I)."""
    split = data.split("test")
    images = np.arange(len(split.image_rows))
    owner = split.image_of_caption
    siblings = owner[has_sibling(owner)]
    return {"i2t": images, "t2i": owner, "s2s": siblings, "p2r": split.image_of_region}


def has_sibling(owner_C: np.ndarray) -> np.ndarray:
    """Whether each caption shares its image with another caption, (C,) bool."""
    return np.bincount(owner_C)[owner_C] > 1


def read(dataset: str) -> Prepared:
    """The prepared dataset. Raises UserError if one of its files is missing or was
    changed."""
    folder = ROOT / dataset
    card = read_card(dataset)
    for name, digest in card.get("files", {}).items():
        path = folder / name
        if not files.is_file(path):
            raise UserError(
                path,
                expected="a file of the prepared dataset",
                found="nothing",
                do=preparing(dataset),
            )
        actual = files.sha256(path)
        if actual != digest:
            raise UserError(
                path,
                expected=f"sha256 {digest}, as in the card",
                found=actual,
                do="run: dvc repro --force",
            )
    tables = files.read_tables(folder, TABLES)
    if RELEVANCE in card.get("files", {}):
        tables["judged"] = files.read_parquet(folder / RELEVANCE)
    return Prepared(**tables, card=card, folder=folder)


def judged_table(layers: Sequence[Layer]) -> pd.DataFrame:
    """The pairs of all layers, as RELEVANCE has them. Raises UserError for a pair that
    is there twice, and for a layer without a name of its own."""
    import pandas as pd

    advice = "correct `layers` of the dataset"
    taken = {"own"}
    for layer in layers:
        if not layer.name.isidentifier() or layer.name in taken:
            raise UserError(
                "layer",
                expected="a name of letters, digits and _ that is not own, each once",
                found=repr(layer.name),
                do=advice,
            )
        taken.add(layer.name)
        is_repeated = layer.pairs.duplicated(["way", "image_id", "caption_id"])
        if is_repeated.any():
            caption = layer.pairs[is_repeated].iloc[0]["caption_id"]
            raise UserError(
                f"layer {layer.name}",
                expected="every pair once",
                found=f"{caption!r} twice with one image",
                do=advice,
            )
    tables = [layer.pairs.assign(layer=layer.name) for layer in layers]
    table = pd.concat(tables, ignore_index=True)
    return table[list(JUDGED)]
