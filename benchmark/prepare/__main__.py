"""Stage prepare: raw files -> validated tables.

    rematch prepare DATASET

Writes data/prepared/<dataset>/: images.parquet, captions.parquet, regions.parquet; and
what git keeps, data/cards/<dataset>/: card.json, queries.npz. Prints what was read, and
what of it is out of the ordinary.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmark.contracts.datasets import SPLITS, Tables
from benchmark.core.command_line import run_stage
from benchmark.core.errors import printable
from benchmark.core.files import replaced
from benchmark.data.prepared_tables import (
    CORNERS,
    RELEVANCE,
    ROOT,
    judged_table,
    write_card,
)
from benchmark.data.raw_files import check_manifest, raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.prepare.leakage import leakage, measure, twins
from benchmark.prepare.table_checks import USED, check_boxes, check_tables
from benchmark.readers.segmenters import SPACELESS
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import Params

LEAST, MOST = 16, 8192  # pixels of a side that is ordinary
LONGEST = 8  # times the shorter side that the longer one ordinarily is, at most
NAMED = 5  # of what a note lists
# of 255: what 12 bits in a picture of 16 have at most, which is nearly black
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
    check_manifest(dataset)
    tables = dataset.read()
    check_tables(tables, dataset.card)
    images, captions = arranged(tables)
    files = [file for file in images["file"] if file]
    pictures = measure(files, dataset.pictures(), name) if files else []
    # 0 for an image without a picture
    sizes = np.zeros((len(images), 2), dtype=np.int64)
    sizes[images["file"] != ""] = np.array(
        [(p.width, p.height) for p in pictures]
    ).reshape(-1, 2)
    images = images.assign(width=sizes[:, 0], height=sizes[:, 1])
    check_boxes(tables.regions, images)
    black = [f for f, p in zip(files, pictures, strict=True) if p.brightest <= BLACK]
    odd = oddities(images, captions, black)
    twin = twins(images, captions, pictures)
    split_of = images.set_index("image_id")["split"]
    counts = {
        "images": Counter(images["split"]),
        "captions": Counter(captions["split"]),
        "phrases": Counter(tables.regions["image_id"].map(split_of)),
    }
    number = captions["image_id"].value_counts()
    per_image = images["image_id"].map(number).fillna(0).astype(int).astype(str)
    facts = dataset.card
    card = {
        "dataset": name,
        "reader": dataset.reader,
        "options": dataset.options,
        **{key: getattr(facts, key) for key in FACTS},
        "ways": list(facts.ways),
        "counts": {s: {what: of[s] for what, of in counts.items()} for s in SPLITS},
        # split -> number of captions -> images with so many captions
        "captions_per_image": {
            split: dict(Counter(of)) for split, of in per_image.groupby(images["split"])
        },
        "manifest": dataset.manifest_sha256,
        "notes": [*tables.notes, *odd],
        "pictures": len(pictures),
        "leakage": leakage(images[images["file"] != ""], captions, pictures),
        "twins": twin,
    }
    if dataset.release and dataset.release.departs:
        card["release"] = dataset.release.model_dump(include={"name", "departs"})
        card["notes"].insert(0, dataset.release.departs)
    if layers := dataset.layers(tables):
        card["layers"] = {
            of.name: {"rule": of.rule, "partial": of.partial, "cuts": list(of.cuts)}
            for of in layers
        }
    check_manifest(dataset)  # all that was read is of one state
    # Types that do not depend on the rows, and an id for each phrase.
    kinds = dict.fromkeys(("image_id", "caption_id", "phrase", "chain"), "str")
    regions = tables.regions.astype(kinds | dict.fromkeys(CORNERS, "float64"))
    nth = regions.groupby("caption_id").cumcount().astype(str)
    regions = regions.assign(phrase_id=regions["caption_id"] + "/" + nth)
    with replaced(ROOT / name) as folder:
        images.to_parquet(folder / "images.parquet", index=False)
        captions.to_parquet(folder / "captions.parquet", index=False)
        regions.to_parquet(folder / "regions.parquet", index=False)
        if layers:
            judged_table(layers).to_parquet(folder / RELEVANCE, index=False)
    write_card(name, card)
    splits = ", ".join(
        f"{s} {counts['images'][s]}" for s in SPLITS if counts["images"][s]
    )
    what = "pictures" if (images["file"] != "").all() else "images"
    if any(twin.values()):
        odd += [
            f"Twins within test: {twin['images']} images and {twin['captions']} captions equal "
            "or nearly equal one of another image, so that no method can tell which is meant."
        ]
    told = [f"prepare {name}: {len(images)} {what}, {len(captions)} captions: {splits}"]
    told += [
        f"layer {of.name}: {len(of.pairs)} pairs, {of.pairs['right'].sum()} right"
        for of in layers
    ]
    return [*told, *odd]


def oddities(
    images: pd.DataFrame, captions: pd.DataFrame, black: Iterable[str]
) -> list[str]:
    """Notes on what is out of the ordinary, if any: pictures of extreme size or shape
    and those named in `black`; images without captions; captions with markup, that
    repeat one of their image, without a word (of the training captions), or in a script
    without spaces."""
    short, long = (
        images[["width", "height"]].min(axis=1),
        images[["width", "height"]].max(axis=1),
    )
    is_extreme = (short < LEAST) | (long > MOST) | (long > LONGEST * short)
    extreme = images[is_extreme & (images["file"] != "")]
    silent = images[~images["image_id"].isin(captions["image_id"])]
    used = captions[captions["split"].isin(USED)]
    words = used["text"].map(tokenise)
    is_trained = used["split"] == "train"
    known = {word for text in words[is_trained] for word in text}
    is_strange = ~is_trained & words.map(known.isdisjoint)
    signs = used["text"].map(
        lambda text: 0 if text.isascii() else len(SPACELESS.findall(text))
    )
    is_joined = (signs > 5) & (words.map(len) * 5 <= signs)
    repeats = captions[captions.duplicated(["image_id", "text"])]
    notes = {
        f"pictures have a side of less than {LEAST} or more than {MOST} pixels, or one more than "
        f"{LONGEST} times the other": [
            f"{row.file} ({row.width} x {row.height})" for row in extreme.itertuples()
        ],
        f"pictures are nearly black, with no value above {BLACK} of 255 (as 12-bit values "
        "in a 16-bit file are: scale them)": list(black),
        "images have no caption": [
            row.file or row.image_id for row in silent.itertuples()
        ],
        "images have the same caption more than once": list(
            dict.fromkeys(repeats["image_id"])
        ),
        f"captions of val and test (of {int((~is_trained).sum())}) have no word of the training "
        "captions": list(used["caption_id"][is_strange]),
        "captions have no word (signs or emoji alone)": list(
            used["caption_id"][~words.map(bool)]
        ),
        "captions are in a script without spaces, and nearly one word each (the reader folder's "
        "option tokeniser separates them)": list(used["caption_id"][is_joined]),
    }
    for pattern, what in MARKUP.items():
        has_it = captions["text"].str.contains(re.compile(pattern))
        notes[f"captions have {what}"] = list(captions["caption_id"][has_it])
    return [
        f"{len(items)} {what}: {printable(', '.join(items[:NAMED]))}"
        + (f" and {len(items) - NAMED} more." if len(items) > NAMED else ".")
        for what, items in notes.items()
        if items
    ]


def arranged(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Images sorted by split, then in file order; captions in the order of their
    images."""
    order = tables.images["split"].map(SPLITS.index)
    images = tables.images.loc[order.sort_values(kind="stable").index].reset_index(
        drop=True
    )
    images = images[["image_id", "file", "split", "group"]]
    owner = pd.Index(images["image_id"]).get_indexer(tables.captions["image_id"])
    captions = tables.captions.assign(owner=owner).sort_values("owner", kind="stable")
    captions["split"] = images["split"].to_numpy()[captions["owner"]]
    return images, captions[["caption_id", "image_id", "text", "split"]].reset_index(
        drop=True
    )


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
