"""Flickr8k: 8,000 photographs with five captions each, and the official partition.

Hodosh, Young and Hockenmaier (2013), JAIR 47. The raw folder holds the pictures, as
`Flickr8k_Dataset.zip` or extracted, and the annotations, as one of

    official  Flickr8k_text.zip, or the files in it: Flickr8k.token.txt and three lists of names
    karpathy  dataset_flickr8k.json, or the same in a .zip: the same partition; its raw sentences
              were, in the copy examined, the official captions character for character

Archives are read in place; nothing is ever extracted from them.

Layers of relevance: people judged pairs of test images with the third caption of others. Each pair
of `ExpertAnnotations.txt` has the scores of three experts, from 1 (unrelated) to 4 (describes the
image without a mistake); each of `CrowdFlowerAnnotations.txt` how many of a crowd said yes and no.
Both are in the public Flickr8k_text.zip; in the raw folder or its judgements/ they are found, too.
The queries are the captions that anyone judged, with `own` alone where one of the two did not.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.contracts.datasets import Card, Layer, OpenPicture, RemoteFile, Tables, UserError
from benchmark.readers import archives, flickr_captions, image_files, karpathy, option_checks
from benchmark.readers.flickr_captions import LISTS, TEXT_ZIP

RELEASE = "https://github.com/jbrownlee/Datasets/releases/download/Flickr8k"  # a public copy
IMAGE_ZIP = "Flickr8k_Dataset.zip"
IMAGE_FOLDER = "Flicker8k_Dataset"  # spelt like this in the archive
TOKENS = "Flickr8k.token.txt"
KARPATHY = "dataset_flickr8k.json"

EXPERTS, CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
JUDGEMENTS = "judgements"  # folder
LEAST = 3.0  # of 4: the mean of a right pair's three scores
RULES = {
    "experts": f"own, and what three experts gave {LEAST:g} of 4 or more on average",
    "crowd": "own, and what more of a crowd said yes to than no",
    "both": "own, and what the experts or the crowd accept",
}
CUTS = {"experts": (2.0, 2.5, 3.5, 4.0), "crowd": (0.01, 0.5, 0.99)}  # of mean scores; share of yes
NO_PICTURE = "2258277193_586949ec62.jpg.1"  # has captions in the official release, no picture

CARD = Card(
    title="Flickr8k",
    source="Hodosh, Young and Hockenmaier (2013), Framing Image Description as a Ranking Task, "
    "JAIR 47, 853-899",
    licence="research use only; the photographs keep their owners' terms",
    split="official",
    may_publish=False,
    remote=tuple(
        RemoteFile(name=name, urls=(f"{RELEASE}/{name}",)) for name in (IMAGE_ZIP, TEXT_ZIP)
    ),
    obtain=f"place {IMAGE_ZIP} and {TEXT_ZIP} (or {KARPATHY}) in one folder",
    expected_images={"train": 6000, "val": 1000, "test": 1000, "unused": 91},
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which annotations are read."""

    annotations: str | None = None  # "official" or "karpathy"; None: official if it is there
    with_pictures: bool = True  # False: pictures are not looked for, as for scores from elsewhere

    def __post_init__(self) -> None:
        if self.annotations is not None:
            option_checks.check_choice(
                "flickr8k", "annotations", self.annotations, ("official", "karpathy")
            )


def card(options: Options = Options()) -> Card:
    """The same for all options."""
    return CARD


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: archives where there are any, else the extracted files."""
    pictures = _store(raw).files() if options.with_pictures else []
    if _annotations(raw, options) == "karpathy":
        return [*pictures, karpathy.find(raw, KARPATHY)]
    archive = raw / TEXT_ZIP
    texts = [archive] if archive.is_file() else [raw / name for name in (TOKENS, *LISTS.values())]
    return pictures + texts


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables; pictures in no split are "unused"."""
    present = _store(raw).names() if options.with_pictures else []
    read = _read_karpathy if _annotations(raw, options) == "karpathy" else _read_official
    tables = read(raw, present)
    if options.with_pictures:
        return tables
    return replace(tables, images=tables.images.assign(file=""))


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and processes."""
    return _store(raw)


def layers(raw: Path, tables: Tables, options: Options = Options()) -> list[Layer]:
    """What experts and a crowd accept beside `own`, as far as their files are there."""
    images = tables.images[tables.images["split"] == "test"]
    id_of = {f"{image}.jpg": image for image in images["image_id"]}
    captions = tables.captions[tables.captions["image_id"].isin(images["image_id"])]
    captions = captions.set_index("caption_id")["image_id"]
    found = {}
    for name, file in (("experts", EXPERTS), ("crowd", CROWD)):
        rows = []
        for number, line in enumerate(_judgement_lines(raw, file), 1):
            cells = line.split("\t")
            try:
                scores = [float(text) for text in cells[2:]]
            except ValueError:
                scores = []
            is_read = len(scores) == 3 and (
                {*scores} <= {1, 2, 3, 4}
                if file == EXPERTS
                else 0 <= scores[0] <= 1 and min(scores) >= 0 < sum(scores[1:]) < np.inf
            )
            if not is_read or cells[0] not in id_of or cells[1] not in captions.index:
                expected = "a test image, a test caption and three numbers, separated by tabs"
                do = "place an unchanged copy"
                raise UserError(f"{file}:{number}", expected, f"{line!r:.80}", do)
            rows.append((id_of[cells[0]], cells[1], *scores))
        if rows:
            found[name] = pd.DataFrame(rows, columns=["image_id", "caption_id", "a", "b", "c"])
    layers = {}
    if "experts" in found:
        score = found["experts"][["a", "b", "c"]].mean(axis=1)
        layers["experts"] = found["experts"].assign(score=score, right=score >= LEAST)
    if "crowd" in found:
        yes, no = found["crowd"]["b"], found["crowd"]["c"]
        layers["crowd"] = found["crowd"].assign(score=yes / (yes + no), right=yes > no)
    if len(layers) == 2:
        layers["both"] = pd.concat(layers.values()).assign(score=np.nan)
    asked = captions[captions.index.isin({c for of in layers.values() for c in of["caption_id"]})]
    for name, pairs in layers.items():
        own = pd.DataFrame({"image_id": asked.to_numpy(), "caption_id": asked.index})
        pairs = pd.concat([own.assign(score=np.inf, right=True), pairs])
        pairs = pairs.sort_values(
            "right", ascending=False, kind="stable"
        )  # one that is right counts
        pairs = pairs.drop_duplicates(["image_id", "caption_id"])
        pairs = pairs.assign(way="t2i")[["way", "image_id", "caption_id", "score", "right"]]
        facts = {"rule": RULES[name], "partial": True, "cuts": CUTS.get(name, ())}
        layers[name] = Layer(name=name, pairs=pairs, **facts)
    return list(layers.values())


def _judgement_lines(raw: Path, name: str) -> list[str]:
    """Of a file of judgements, in the raw folder, its folder of judgements or the archive of texts;
    none where it is nowhere."""
    loose = [path for path in (raw / name, raw / JUDGEMENTS / name) if path.is_file()]
    archive = raw / TEXT_ZIP
    if not loose and archive.is_file():
        with archives.unzipped(archive) as zipped:
            loose = [archive] * (name in zipped.NameToInfo)
    return archives.lines(loose[0], name) if loose else []


def _store(raw: Path) -> image_files.Store:
    """Where the pictures are: the archive or a folder."""
    folders = (IMAGE_FOLDER, "Images")
    store = image_files.find(raw, archive=IMAGE_ZIP, inside=IMAGE_FOLDER, folders=folders)
    if store is None:
        raise UserError(
            raw,
            f"{IMAGE_ZIP}, or a folder {IMAGE_FOLDER}/ with .jpg files in it",
            "no pictures",
            f"place {IMAGE_ZIP} there",
        )
    return store


def _annotations(raw: Path, options: Options) -> str:
    """Which annotations are read: those of the option, else those that are there."""
    official = (raw / TEXT_ZIP).is_file() or (raw / TOKENS).is_file()
    preferred = "official" if official or not karpathy.find(raw, KARPATHY) else "karpathy"
    chosen = options.annotations or preferred
    if chosen == "official" and not official:
        expected = f"{TEXT_ZIP}, or {TOKENS} and its lists"
        raise UserError(raw, expected, "no annotations", f"place {TEXT_ZIP} there")
    if chosen == "karpathy" and not karpathy.find(raw, KARPATHY):
        expected = f"{KARPATHY} or {KARPATHY}.zip"
        raise UserError(raw, expected, "no annotations", f"place {KARPATHY} there")
    return chosen


def _official_file(raw: Path, name: str) -> Path:
    return raw / TEXT_ZIP if (raw / TEXT_ZIP).is_file() else raw / name


def _read_official(raw: Path, present: list[str]) -> Tables:
    split_of = _official_splits(raw)
    unused = [name for name in present if name not in split_of]
    captions = flickr_captions.captions(_official_file(raw, TOKENS), TOKENS)
    kept = captions[captions["file"] != NO_PICTURE]
    notes = [f"The captions are those of {TOKENS}, verbatim.", *_unused_notes(unused)]
    if len(kept) < len(captions):
        notes.append(
            f"{len(captions) - len(kept)} captions of {NO_PICTURE} are left out: "
            "the release has no such picture."
        )
    return flickr_captions.tables(split_of | dict.fromkeys(unused, "unused"), kept, notes)


def _official_splits(raw: Path) -> dict[str, str]:
    """file -> split, in the order of the lists."""
    split_of: dict[str, str] = {}
    for split, name in LISTS.items():
        lines = archives.lines(_official_file(raw, name), name)
        for number, line in enumerate(lines, start=1):
            file = line.strip()
            if not file.endswith(".jpg") or file in split_of:
                fault = f", already in {split_of[file]}" if file in split_of else ""
                raise UserError(
                    f"{name}:{number}",
                    "the .jpg name of another image",
                    f"{line!r:.80}{fault}",
                    "place an unchanged copy",
                )
            split_of[file] = split
    return split_of


def _read_karpathy(raw: Path, present: list[str]) -> Tables:
    entries = karpathy.read(karpathy.find(raw, KARPATHY), KARPATHY, tuple(LISTS))
    split_of = {entry.file: entry.split for entry in entries}
    unused = [name for name in present if name not in split_of]
    notes = [f"The captions are the raw sentences of {KARPATHY}.", *_unused_notes(unused)]
    captions = flickr_captions.karpathy_captions(entries)
    return flickr_captions.tables(split_of | dict.fromkeys(unused, "unused"), captions, notes)


def _unused_notes(unused: list[str]) -> list[str]:
    return [f"{len(unused)} pictures are in no split and stay unused."] if unused else []
