"""Flickr8k: 8,000 photographs with five captions each, and the official partition.

Hodosh, Young and Hockenmaier (2013), JAIR 47. The raw folder holds the pictures, as
`Flickr8k_Dataset.zip` or extracted, and the annotations, as one of

    official  Flickr8k_text.zip, or the files in it: Flickr8k.token.txt and three lists of names
    karpathy  dataset_flickr8k.json, or the same in a .zip: the same partition; its raw sentences
              were, in the copy examined, the official captions character for character

Archives are read in place; nothing is ever extracted from them.

Layers of relevance: people judged pairs of test images with the third caption of
others. Each pair of `ExpertAnnotations.txt` has the scores of three experts, from 1
(unrelated) to 4 (describes the image without a mistake); each of
`CrowdFlowerAnnotations.txt` how many of a crowd said yes and no. Both are in the public
Flickr8k_text.zip; in the raw folder or its judgements/ they are found, too. The queries
are the captions that anyone judged, with `own` alone where one of the two did not.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.contracts.datasets import (
    Card,
    Layer,
    OpenPicture,
    RemoteFile,
    Tables,
    UserError,
)
from benchmark.readers import (
    archives,
    flickr_captions,
    image_files,
    karpathy,
    option_checks,
    reader_notes,
)
from benchmark.readers.flickr_captions import LISTS, TEXT_ZIP

# a public copy
RELEASE = "https://github.com/jbrownlee/Datasets/releases/download/Flickr8k"
IMAGE_ZIP = "Flickr8k_Dataset.zip"
IMAGE_FOLDER = "Flicker8k_Dataset"  # spelt like this in the archive
TOKENS = "Flickr8k.token.txt"
KARPATHY = "dataset_flickr8k.json"
PLACE = f"place {KARPATHY} there"

FILES = {"experts": "ExpertAnnotations.txt", "crowd": "CrowdFlowerAnnotations.txt"}
JUDGEMENTS = "judgements"  # folder
LEAST = 3.0  # of 4: the mean of a right pair's three scores
RULES = {
    "experts": f"own, and what three experts gave {LEAST:g} of 4 or more on average",
    "crowd": "own, and what more of a crowd said yes to than no",
    "both": "own, and what the experts or the crowd accept",
}
# of mean scores; share of yes
CUTS = {"experts": (2.0, 2.5, 3.5, 4.0), "crowd": (0.01, 0.5, 0.99)}
# has captions in the official release, no picture
NO_PICTURE = "2258277193_586949ec62.jpg.1"

CARD = Card(
    title="Flickr8k",
    source="Hodosh, Young and Hockenmaier (2013), Framing Image Description as a Ranking Task, "
    "JAIR 47, 853-899",
    licence="research use only; the photographs keep their owners' terms",
    split="official",
    may_publish=False,
    remote=tuple(
        RemoteFile(name=name, urls=(f"{RELEASE}/{name}",))
        for name in (IMAGE_ZIP, TEXT_ZIP)
    ),
    obtain=f"place {IMAGE_ZIP} and {TEXT_ZIP} (or {KARPATHY}) in one folder",
    expected_images={"train": 6000, "val": 1000, "test": 1000, "unused": 91},
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which annotations are read."""

    # "official" or "karpathy"; None: official if it is there
    annotations: str | None = None
    # False: pictures are not looked for, as for scores from elsewhere
    with_pictures: bool = True

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
        return [*pictures, karpathy.needed(raw, KARPATHY, PLACE)]
    texts = [_official_file(raw, name) for name in (TOKENS, *LISTS.values())]
    return [*pictures, *dict.fromkeys(texts)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables; pictures in no split are "unused"."""
    present = _store(raw).names() if options.with_pictures else []
    if _annotations(raw, options) == "karpathy":
        path = karpathy.needed(raw, KARPATHY, PLACE)
        annotations = karpathy.read(path, KARPATHY, tuple(LISTS))
        split_of = {entry.file: entry.split for entry in annotations.entries}
        captions = flickr_captions.karpathy_captions(annotations.entries)
        notes = [f"The captions are the raw sentences of {KARPATHY}."]
        notes += reader_notes.unread(KARPATHY, annotations.unread)
    else:
        lists = {
            split: (_official_file(raw, name), name) for split, name in LISTS.items()
        }
        split_of = flickr_captions.listed(
            lists,
            lambda line: line if line.endswith(".jpg") else "",
            "the .jpg name of another image",
        )
        captions = flickr_captions.captions(_official_file(raw, TOKENS), TOKENS)
        notes = [f"The captions are those of {TOKENS}, verbatim."]
    unused = [name for name in present if name not in split_of]
    if unused:
        notes.append(f"{len(unused)} pictures are in no split and stay unused.")
    is_kept = captions["file"] != NO_PICTURE
    if left_out := (~is_kept).sum():
        notes.append(
            f"{left_out} captions of {NO_PICTURE} are left out: the release has no such picture."
        )
    split_of |= dict.fromkeys(unused, "unused")
    return flickr_captions.tables(
        split_of, captions[is_kept], notes, options.with_pictures
    )


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and
    processes."""
    return _store(raw)


def layers(raw: Path, tables: Tables, options: Options = Options()) -> list[Layer]:
    """What experts and a crowd accept beside `own`, as far as their files are there."""
    images = set(tables.images["image_id"][tables.images["split"] == "test"])
    captions = tables.captions[tables.captions["image_id"].isin(images)]
    captions = captions.set_index("caption_id")["image_id"]
    judged = {}
    for name, file in FILES.items():
        rows = []
        for number, line in enumerate(_judgement_lines(raw, file), 1):
            image, _, rest = line.partition(".jpg\t")
            caption, *scores = rest.split("\t")
            judgement = _judgement(scores, name)
            if (
                judgement is None
                or image not in images
                or caption not in captions.index
            ):
                expected = (
                    "a test image, a test caption and three numbers, separated by tabs"
                )
                do = "place an unchanged copy"
                raise UserError(f"{file}:{number}", expected, f"{line!r:.80}", do)
            rows.append((image, caption, *judgement))
        if rows:
            judged[name] = pd.DataFrame(
                rows, columns=["image_id", "caption_id", "score", "right"]
            )
    if len(judged) == 2:
        judged["both"] = pd.concat(judged.values()).assign(score=np.nan)
    asked = captions[
        captions.index.isin({c for of in judged.values() for c in of["caption_id"]})
    ]
    own = asked.rename_axis("caption_id").reset_index().assign(score=np.inf, right=True)
    layers = []
    for name, pairs in judged.items():
        pairs = pd.concat([own[pairs.columns], pairs])
        # a right one counts
        pairs = pairs.sort_values("right", ascending=False, kind="stable")
        pairs = pairs.drop_duplicates(["image_id", "caption_id"]).assign(way="t2i")
        pairs = pairs[["way", "image_id", "caption_id", "score", "right"]]
        facts = {"rule": RULES[name], "partial": True, "cuts": CUTS.get(name, ())}
        layers.append(Layer(name=name, pairs=pairs, **facts))
    return layers


def _judgement(cells: list[str], name: str) -> tuple[float, bool] | None:
    """The score of a pair and whether it is right: of three experts' scores, or of
    the share of a crowd that said yes and the numbers of yes and no; None for other
    cells."""
    try:
        a, b, c = map(float, cells)
    except ValueError:
        return None
    if name == "experts":
        mean = (a + b + c) / 3
        return (mean, mean >= LEAST) if {a, b, c} <= {1, 2, 3, 4} else None
    is_read = 0 <= a <= 1 and min(b, c) >= 0 < b + c < np.inf
    return (b / (b + c), b > c) if is_read else None


def _judgement_lines(raw: Path, name: str) -> list[str]:
    """Of a file of judgements, in the raw folder, its folder of judgements or the
    archive of texts; none where it is nowhere."""
    loose = [path for path in (raw / name, raw / JUDGEMENTS / name) if path.is_file()]
    archive = raw / TEXT_ZIP
    if not loose and archive.is_file():
        with archives.unzipped(archive) as zipped:
            loose = [archive] * (name in zipped.NameToInfo)
    return archives.lines(loose[0], name) if loose else []


def _store(raw: Path) -> image_files.Store:
    """Where the pictures are: the archive or a folder."""
    folders, do = (IMAGE_FOLDER, "Images"), f"place {IMAGE_ZIP} there"
    return image_files.needed(
        raw, archive=IMAGE_ZIP, inside=IMAGE_FOLDER, folders=folders, do=do
    )


def _annotations(raw: Path, options: Options) -> str:
    """Which annotations are read: those of the option, else those that are there."""
    is_official = _official_file(raw, TOKENS).is_file()
    preferred = (
        "official" if is_official or not karpathy.find(raw, KARPATHY) else "karpathy"
    )
    chosen = options.annotations or preferred
    if chosen == "official" and not is_official:
        expected = f"{TEXT_ZIP}, or {TOKENS} and its lists"
        raise UserError(raw, expected, "no annotations", f"place {TEXT_ZIP} there")
    return chosen


def _official_file(raw: Path, name: str) -> Path:
    return raw / TEXT_ZIP if (raw / TEXT_ZIP).is_file() else raw / name
