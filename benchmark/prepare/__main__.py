"""Stage prepare: raw files -> validated tables.

    rematch prepare DATASET

Writes data/prepared/<dataset>/: images.parquet, captions.parquet, regions.parquet; and
what git keeps, data/cards/<dataset>/: card.json, queries.npz. Prints what was read, and
what of it is out of the ordinary.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.contracts.datasets import SPLITS, Layer, Tables
from benchmark.core.command_line import alone, lock_of, run_stage
from benchmark.core.errors import printable, redone_by
from benchmark.core.files import replaced
from benchmark.data.prepared_tables import (
    CORNERS,
    RELEVANCE,
    ROOT,
    judged_table,
    write_card,
)
from benchmark.data.raw_files import RawDataset, check_manifest, raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.prepare.leakage import Picture, leakage, measure, twins
from benchmark.prepare.table_checks import USED, check_boxes, check_tables
from benchmark.readers.segmenters import SPACELESS
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params

LEAST, MOST = 16, 8192  # pixels of an ordinary side
LONGEST = 8  # most times that an ordinary longer side is the shorter one
NAMED = 5  # items that a note names
# characters of the longest word of a script without spaces: more are several words
WORD = 5
# of 255: the most that 12-bit values in a 16-bit picture have, which is nearly black
BLACK = 16
FACTS = ("split", "title", "source", "licence", "may_publish", "folds")  # of its card
MARKUP = {  # in captions -> what it is
    r"&(?:[a-z]{2,8}|#x?[0-9a-f]+);": "HTML entities such as &amp;",
    r"\w/(?:NNS?|DT|JJ|IN|VB[DGNPZ]?)\b.*\w/(?:NNS?|DT|JJ|IN|VB[DGNPZ]?)\b": "part-of-speech tags",
    r"[\r\n]": "line breaks",
    r"\|\|": "a separator, as of several captions in one",
    r"</?[A-Za-z]\w*\s*/?>|\[(?:SEP|CLS|PAD)\]": "tags such as <b>, <end> or [SEP]",
    r"^\W*(?:nan|NaN|None|NULL|null|n/a|N/A|NA|<NA>)\W*$": "the name of a missing value alone",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a dataset of any season")


def main(arguments: argparse.Namespace) -> None:
    print("\n".join(prepare(read_shared(), arguments.dataset)))


def prepare(params: Params, name: str) -> list[str]:
    """Check a dataset and write its tables and card; lines that tell what was read."""
    dataset = raw_dataset(params, name)
    with alone(lock_of(str(ROOT / name)), f"prepare {name}"):
        return prepare_raw(dataset)


def prepare_raw(dataset: RawDataset) -> list[str]:
    """The same, of raw files that nobody else prepares now."""
    name = dataset.name
    check_manifest(dataset)
    tables = dataset.read()
    with redone_by("fetch", within=name):
        check_tables(tables, dataset.card)
        images, captions = arranged(tables)
        files = [file for file in images["file"] if file]
        pictures = measure(files, dataset.pictures(), name) if files else []
        images = with_sizes(images, pictures)
        check_boxes(tables.regions, images)
    black = black_ones(files, pictures)
    odd = oddities(images, captions, black)
    layers = dataset.layers(tables)
    card = card_of(dataset, tables, images, captions, layers)
    card["notes"] += odd
    card["pictures"] = len(pictures)
    card["leakage"] = leakage(images[images["file"] != ""], captions, pictures)
    card["twins"] = twins(images, captions, pictures)
    check_manifest(dataset)  # all that was read is of one state
    with replaced(ROOT / name) as folder:
        write_tables(folder, images, captions, with_phrase_ids(tables.regions))
        if layers:
            judged_table(layers).to_parquet(folder / RELEVANCE, index=False)
    write_card(name, card)
    return [*summary(card, layers), *odd, *twins_note(card["twins"])]


def with_sizes(images: pd.DataFrame, pictures: Sequence[Picture]) -> pd.DataFrame:
    """The images with width and height, 0 for one without a picture."""
    sizes = np.zeros((len(images), 2), dtype=np.int64)
    if pictures:
        measured = [(picture.width, picture.height) for picture in pictures]
        sizes[images["file"] != ""] = measured
    return images.assign(width=sizes[:, 0], height=sizes[:, 1])


def black_ones(files: Sequence[str], pictures: Sequence[Picture]) -> list[str]:
    """The files of the pictures that are nearly black."""
    pairs = zip(files, pictures, strict=True)
    return [file for file, picture in pairs if picture.brightest <= BLACK]


def with_phrase_ids(regions: pd.DataFrame) -> pd.DataFrame:
    """Types that do not depend on the rows, and an id for each phrase."""
    kinds = dict.fromkeys(("image_id", "caption_id", "phrase", "chain"), "str")
    regions = regions.astype(kinds | dict.fromkeys(CORNERS, "float64"))
    nth = regions.groupby("caption_id").cumcount().astype(str)
    return regions.assign(phrase_id=regions["caption_id"] + "/" + nth)


def write_tables(
    folder: Path,
    images: pd.DataFrame,
    captions: pd.DataFrame,
    regions: pd.DataFrame,
) -> None:
    images.to_parquet(folder / "images.parquet", index=False)
    captions.to_parquet(folder / "captions.parquet", index=False)
    regions.to_parquet(folder / "regions.parquet", index=False)


def card_of(
    dataset: RawDataset,
    tables: Tables,
    images: pd.DataFrame,
    captions: pd.DataFrame,
    layers: Sequence[Layer],
) -> dict:
    """What git keeps of the tables: what they are, how many rows they have, and what
    their reader says of them."""
    facts = dataset.card
    release = dataset.release
    card: dict = {
        "dataset": dataset.name,
        "reader": dataset.reader,
        "options": dataset.options,
        "manifest": dataset.manifest_sha256,
    }
    for key in FACTS:
        card[key] = getattr(facts, key)
    card["ways"] = list(facts.ways)
    card["counts"] = counts_of(tables.regions, images, captions)
    card["captions_per_image"] = captions_per_image(images, captions)
    card["notes"] = list(tables.notes)
    if release and release.departs:
        card["release"] = release.model_dump(include={"name", "departs"})
        card["notes"].insert(0, release.departs)
    if layers:
        card["layers"] = {}
    for layer in layers:
        cuts = list(layer.cuts)
        rule = {"rule": layer.rule, "partial": layer.partial, "cuts": cuts}
        card["layers"][layer.name] = rule
    return card


def captions_per_image(
    images: pd.DataFrame, captions: pd.DataFrame
) -> dict[str, dict[str, int]]:
    """split -> number of captions -> images with so many captions."""
    number = captions["image_id"].value_counts()
    per_image = images["image_id"].map(number).fillna(0)
    per_image = per_image.astype(int).astype(str)
    counts = {}
    for split, numbers in per_image.groupby(images["split"]):
        counts[split] = dict(Counter(numbers))
    return counts


def counts_of(
    regions: pd.DataFrame,
    images: pd.DataFrame,
    captions: pd.DataFrame,
) -> dict[str, dict[str, int]]:
    """split -> images, captions and phrases in it."""
    split_of = images.set_index("image_id")["split"]
    of_images = Counter(images["split"])
    of_captions = Counter(captions["split"])
    of_phrases = Counter(regions["image_id"].map(split_of))
    counts = {}
    for split in SPLITS:
        counts[split] = {
            "images": of_images[split],
            "captions": of_captions[split],
            "phrases": of_phrases[split],
        }
    return counts


def summary(card: dict, layers: Iterable[Layer]) -> list[str]:
    """What was prepared, in lines."""
    counts = card["counts"]
    splits = []
    for split in SPLITS:
        if counts[split]["images"]:
            splits.append(f"{split} {counts[split]['images']}")
    images = sum(each["images"] for each in counts.values())
    captions = sum(each["captions"] for each in counts.values())
    number = f"{images} images"
    if card["pictures"] < images:
        number += f" ({images - card['pictures']} without a file)"
    dataset = card["dataset"]
    lines = [f"prepare {dataset}: {number}, {captions} captions: {', '.join(splits)}"]
    for layer in layers:
        right = layer.pairs["right"].sum()
        lines.append(f"layer {layer.name}: {len(layer.pairs)} pairs, {right} right")
    return lines


def twins_note(counts: dict[str, int]) -> list[str]:
    """A line on the twins within test, if there are some."""
    if not any(counts.values()):
        return []
    numbers = f"{counts['images']} images and {counts['captions']} captions"
    line = f"Twins within test: {numbers} are equal or nearly equal to those of another"
    return [f"{line} image, so no method can tell which one is meant."]


def oddities(
    images: pd.DataFrame,
    captions: pd.DataFrame,
    black: Sequence[str],
) -> list[str]:
    """Notes on what is out of the ordinary, if any, on pictures, images and captions.
    `black` are the files of the pictures that are nearly black."""
    uncaptioned = images[~images["image_id"].isin(captions["image_id"])]
    files = uncaptioned["file"]
    repeats = captions[captions.duplicated(["image_id", "text"])]
    is_used = captions["split"].isin(USED)
    notes = odd_pictures(images, black) | {
        "images have no caption": files.where(files != "", uncaptioned["image_id"]),
        "images have the same caption more than once": repeats["image_id"].unique(),
    }
    notes |= odd_words(captions[is_used])
    for pattern, what in MARKUP.items():
        has_it = captions["text"].str.contains(re.compile(pattern))
        notes[f"captions have {what}"] = captions["caption_id"][has_it]
    lines = []
    for what, items in notes.items():
        if len(items):
            lines.append(note(what, list(items)))
    return lines


def odd_pictures(
    images: pd.DataFrame, black: Sequence[str]
) -> dict[str, Sequence[str]]:
    """What is odd about pictures: extreme sides, and those in `black` -> the files."""
    with_file = images[images["file"] != ""]
    short = with_file[["width", "height"]].min(axis=1)
    long = with_file[["width", "height"]].max(axis=1)
    is_extreme = (short < LEAST) | (long > MOST) | (long > LONGEST * short)
    extreme = []
    for row in with_file[is_extreme].itertuples():
        extreme.append(f"{row.file} ({row.width} x {row.height})")
    odd_sides = f"pictures have a side of less than {LEAST} or more than {MOST} pixels,"
    odd_sides += f" or one more than {LONGEST} times the other"
    dark = f"pictures are nearly black, with no value above {BLACK} of 255 (as 12-bit "
    dark += "values in a 16-bit file are: scale them)"
    return {odd_sides: extreme, dark: black}


def odd_words(captions: pd.DataFrame) -> dict[str, pd.Series]:
    """What is odd about the words of used captions -> the ids of such captions."""
    texts = captions["text"]
    ids = captions["caption_id"]
    words = texts.map(tokenise)
    is_trained = captions["split"] == "train"
    known = set(chain.from_iterable(words[is_trained]))
    is_unknown = ~is_trained & words.map(known.isdisjoint)
    has_words = words.map(bool)
    characters = texts.map(spaceless_characters)
    is_joined = (characters > WORD) & (words.map(len) * WORD <= characters)
    evaluated = int((~is_trained).sum())
    of_others = f"captions of val and test (of {evaluated}) have no word of the "
    of_others += "training captions"
    of_signs = "captions have no word (signs or emoji alone)"
    unspaced = "captions are in a script without spaces, and nearly one word each "
    unspaced += "(the reader folder's option tokeniser separates them)"
    return {
        of_others: ids[is_unknown],
        of_signs: ids[~has_words],
        unspaced: ids[is_joined],
    }


def spaceless_characters(text: str) -> int:
    """The number of characters of scripts without spaces."""
    return 0 if text.isascii() else len(SPACELESS.findall(text))


def note(what: str, items: list[str]) -> str:
    """How many items there are, and the names of the first ones."""
    text = f"{len(items)} {what}: {printable(', '.join(items[:NAMED]))}"
    if len(items) > NAMED:
        text += f" and {len(items) - NAMED} more"
    return f"{text}."


def arranged(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Images sorted by split, then in file order; captions in the order of their
    images."""
    place = tables.images["split"].map(SPLITS.index)
    order = place.sort_values(kind="stable").index
    images = tables.images.loc[order].reset_index(drop=True)
    images = images[["image_id", "file", "split", "group"]]
    ids = pd.Index(images["image_id"])
    captions = tables.captions
    captions = captions.assign(owner=ids.get_indexer(captions["image_id"]))
    captions = captions.sort_values("owner", kind="stable")
    captions["split"] = images["split"].to_numpy()[captions["owner"]]
    captions = captions[["caption_id", "image_id", "text", "split"]]
    return images, captions.reset_index(drop=True)


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
