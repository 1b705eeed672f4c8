"""Flickr30k: 31,783 photographs with five captions each, in any of four partitions.

Young, Lai, Hodosh and Hockenmaier (2014), TACL 2. The papers divide it in four ways;
three of these partitions have the same sizes but different images:

    karpathy        29,000/1,014/1,000, and 769 images in none (Karpathy, Fei-Fei 2015)
    entities        29,783/1,000/1,000 (Plummer et al. 2017, Flickr30k Entities)
    flickr8k_based  29,783/1,000/1,000: val and test are those of Flickr8k (Zheng et
                    al. 2020)
    m_rnn           29,783/1,000/1,000 (Mao et al. 2015); the lists are not public

The raw folder holds the images, as `flickr30k-images/` or `flickr30k-images.zip`, and
for

    karpathy        dataset_flickr30k.json, the same in a .zip, or caption_datasets.zip;
                    or, with the option annotations: precomp, f30k_precomp/ of SCAN
    all others      results_20130124.token, flickr30k.tar.gz with it, or Kaggle's
                    results.csv; and
    entities        train.txt, val.txt, test.txt: one image id per line
    flickr8k_based  Flickr_8k.devImages.txt and Flickr_8k.testImages.txt, or
                    Flickr8k_text.zip
    m_rnn           m_rnn_train.txt, m_rnn_val.txt, m_rnn_test.txt: one image id or name
                    per line

Archives are read in place; nothing is ever extracted from them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.contracts.datasets import (
    Card,
    Needed,
    OpenPicture,
    RemoteFile,
    Tables,
    UserError,
)
from benchmark.readers import (
    flickr_captions,
    image_files,
    karpathy,
    option_checks,
    precomp,
    reader_notes,
)
from benchmark.readers.flickr_captions import TEXT_ZIP

IMAGE_FOLDER = "flickr30k-images"
IMAGE_ZIP = f"{IMAGE_FOLDER}.zip"
TOKENS = "results_20130124.token"
TOKENS_TAR = "flickr30k.tar.gz"
TABLE = "results.csv"  # the same captions, as Kaggle passes them on
KARPATHY = "dataset_flickr30k.json"
PRECOMP = "f30k_precomp"
# its lists
FLICKR8K = "https://github.com/jbrownlee/Datasets/releases/download/Flickr8k"
ENTITIES = "https://raw.githubusercontent.com/BryanPlummer/flickr30k_entities/master"
FORM = "https://forms.illinois.edu/sec/229675"
PHOTOGRAPHS = ((f"{IMAGE_FOLDER}/",), (IMAGE_ZIP,))  # any one of these
PLACE_PHOTOGRAPHS = f"place {IMAGE_FOLDER}/ or {IMAGE_ZIP} in the raw folder"
STORE = {"archive": IMAGE_ZIP, "inside": IMAGE_FOLDER}
STORE |= {"folders": (IMAGE_FOLDER, "flickr30k_images")}

EACH = 5  # captions per image
IMAGES = dict.fromkeys(
    ("karpathy", "entities", "flickr8k_based", "m_rnn"),
    {"train": 29783, "val": 1000, "test": 1000},
)
IMAGES["karpathy"] = {"train": 29000, "val": 1014, "test": 1000}
LISTS = {  # split -> list of its images; without one, train has all the others
    "entities": {"train": "train.txt", "val": "val.txt", "test": "test.txt"},
    "flickr8k_based": {
        "val": flickr_captions.LISTS["val"],
        "test": flickr_captions.LISTS["test"],
    },
    "m_rnn": {
        "train": "m_rnn_train.txt",
        "val": "m_rnn_val.txt",
        "test": "m_rnn_test.txt",
    },
}
REMOTE = {
    "karpathy": (karpathy.REMOTE,),
    "entities": tuple(
        RemoteFile(name=n, urls=(f"{ENTITIES}/{n}",))
        for n in LISTS["entities"].values()
    ),
    "flickr8k_based": (RemoteFile(name=TEXT_ZIP, urls=(f"{FLICKR8K}/{TEXT_ZIP}",)),),
    "m_rnn": (),
}
TOKENS_URL = f"https://shannon.cs.illinois.edu/DenotationGraph/data/{TOKENS_TAR}"
REMOTE_TOKENS = RemoteFile(name=TOKENS_TAR, urls=(TOKENS_URL,))
# an id; in Flickr8k's names more follows it
LISTED = re.compile(r"(\d+)(?:_\w+)?(?:\.jpg)?")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which partition is read, and from which files.

    split          "karpathy", "entities", "flickr8k_based" or "m_rnn"
    annotations    source of the captions: "karpathy" or "precomp" for the partition
                   karpathy, "official" for the others; None: karpathy and official
    with_pictures  False: images are not looked for, for example if features are
                   imported. `precomp` needs no images in any case, but uses them if
                   dataset_flickr30k.json is there to name them.
    """

    split: str = "karpathy"
    annotations: str | None = None
    with_pictures: bool = True

    def __post_init__(self) -> None:
        option_checks.check_choice("flickr30k", "split", self.split, IMAGES)
        if self.annotations not in (None, *self._possible):
            expected = f"{' or '.join(self._possible)} with the split {self.split}"
            raise option_checks.refusal(
                "flickr30k", "annotations", expected, self.annotations
            )

    @property
    def kind(self) -> str:
        """Where the captions are from: "karpathy", "precomp" or "official"."""
        return self.annotations or self._possible[0]

    @property
    def needs_pictures(self) -> bool:
        """Whether the dataset cannot be read without images."""
        return self.with_pictures and self.kind != "precomp"

    @property
    def _possible(self) -> tuple[str, ...]:
        return ("karpathy", "precomp") if self.split == "karpathy" else ("official",)


def card(options: Options = Options()) -> Card:
    """What the chosen partition needs, and how many images and captions it has."""
    split, checklist = options.split, _checklist(options)
    obtained = ", ".join(needed.names for needed in checklist)
    size, remote = 0.1, REMOTE[split]
    if options.kind == "official":
        remote = (REMOTE_TOKENS, *remote)
    elif options.kind == "precomp":
        obtained, size, remote = f"{PRECOMP}/", 9.0, ()
    if options.needs_pictures:
        size += 4.5
    return Card(
        title="Flickr30k",
        source="Young, Lai, Hodosh and Hockenmaier (2014), From image descriptions to "
        "visual denotations, TACL 2, 67-78",
        licence="non-commercial research and education only; the photographs keep "
        "their owners' terms (Flickr Terms of Use)",
        split=split,
        may_publish=False,
        remote=remote,
        obtain=f"place {obtained} in one folder",
        form=FORM if options.needs_pictures else "",
        checklist=checklist,
        raw_gib=size,
        expected_images=IMAGES[split],
        expected_captions={part: EACH * count for part, count in IMAGES[split].items()},
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: annotations, features of `precomp`, and every image or their
    archive."""
    if options.kind == "precomp":
        files = precomp.files(raw / PRECOMP)
        if not _are_named(raw, options):
            return files
        return [*files, _karpathy_file(raw), *_store(raw).files()]
    pictures = _store(raw).files() if options.with_pictures else []
    if options.kind == "karpathy":
        return [*pictures, _karpathy_file(raw)]
    lists = [path for path, _ in _lists(raw, options.split).values()]
    return [*pictures, _tokens_file(raw), *dict.fromkeys(lists)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables of the chosen partition."""
    if options.kind == "precomp":
        return _read_precomp(raw, options)
    present = _store(raw).names() if options.with_pictures else []
    if options.kind == "official":
        return _read_official(raw, options)
    annotations = _annotations(raw)
    split_of = {entry.file: entry.split for entry in annotations.entries}
    captions = flickr_captions.karpathy_captions(annotations.entries)
    notes = [f"The captions are the raw sentences of {KARPATHY}."]
    notes += reader_notes.unread(KARPATHY, annotations.unread)
    if others := len(set(present) - set(split_of)):
        notes.append(f"{others} pictures are in no split; they are left out.")
    return flickr_captions.tables(split_of, captions, notes, options.with_pictures)


def _read_official(raw: Path, options: Options) -> Tables:
    """The tables of a partition that is made of lists of images."""
    tokens, lists = _tokens_file(raw), _lists(raw, options.split)
    captions, notes = _official_captions(tokens)
    images = dict.fromkeys(captions["file"])

    def image_of(line: str) -> str:
        match = LISTED.fullmatch(line)
        file = f"{match[1]}.jpg" if match else ""
        return file if file in images else ""

    expected = f"the id of another image of {tokens.name}"
    split_of = flickr_captions.listed(lists, image_of, expected)
    rest = [file for file in images if file not in split_of]
    if "train" not in lists:
        split_of |= dict.fromkeys(rest, "train")
    elif rest:
        notes.append(f"{len(rest)} captioned images are in no list and stay unused.")
        split_of |= dict.fromkeys(rest, "unused")
    return flickr_captions.tables(split_of, captions, notes, options.with_pictures)


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens an image by name; safe to share between threads and
    processes."""
    if options.kind == "precomp" and not _are_named(raw, options):
        advice = f"{PLACE_PHOTOGRAPHS}, and {KARPATHY} for their names"
        return image_files.absent(advice)
    if not options.with_pictures:
        advice = f"{PLACE_PHOTOGRAPHS}, and drop the option with_pictures: false"
        return image_files.absent(advice)
    return _store(raw)


def _checklist(options: Options) -> tuple[Needed, ...]:
    """What belongs in the raw folder."""
    texts = {
        "karpathy": [Needed("captions and partition", ((KARPATHY,), (karpathy.ALL,)))],
        "official": [
            Needed("captions", ((TOKENS,), (TOKENS_TAR,), (TABLE,))),
            *_needed_lists(options.split),
        ],
        "precomp": precomp.needed(PRECOMP, precomp.STEMS.values()),
    }[options.kind]
    if not options.with_pictures:
        return tuple(texts)
    what = "the 31,783 photographs, after the form"
    if options.kind == "precomp":
        what = f"{what}, and {KARPATHY}; not needed for matching"
        return (*texts, Needed(what, PHOTOGRAPHS))
    return (Needed(what, PHOTOGRAPHS), *texts)


def _needed_lists(split: str) -> list[Needed]:
    """The lists of images of a partition."""
    lists = LISTS.get(split, {})
    if split == "flickr8k_based":
        return [Needed("val and test", ((TEXT_ZIP,), tuple(lists.values())))]
    return [Needed(f"images of {part}", ((name,),)) for part, name in lists.items()]


# Files --------------------------------------------------------------------------------


def _store(raw: Path) -> image_files.Store:
    advice = (
        "place it there (for features alone, set the option annotations: precomp, or "
        "with_pictures: false)"
    )
    return image_files.needed(raw, **STORE, do=advice)


def _official_captions(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """The captions, and notes on them."""
    if path.name != TABLE:
        captions = flickr_captions.captions(path, TOKENS)
        return captions, [f"The captions are those of {TOKENS}, verbatim."]
    captions, torn = flickr_captions.table_captions(path)
    notes = [f"The captions are those of {TABLE}."]
    if torn:
        notes.append(
            f"{torn} lines of {TABLE} lack their second separator and are read as "
            "whole."
        )
    return captions, notes


def _annotations(raw: Path) -> karpathy.Annotations:
    return karpathy.read(_karpathy_file(raw), KARPATHY, tuple(IMAGES["karpathy"]))


def _karpathy_file(raw: Path) -> Path:
    advice = (
        f"place one of them there (for {PRECOMP}/, set the option annotations: precomp)"
    )
    return karpathy.needed(raw, KARPATHY, advice)


def _tokens_file(raw: Path) -> Path:
    for path in (raw / TOKENS, raw / TOKENS_TAR, raw / TABLE):
        if path.is_file():
            return path
    expected = f"{TOKENS}, {TOKENS_TAR} or {TABLE}"
    raise UserError(raw, expected, "no captions", "place one of them there")


def _lists(raw: Path, split: str) -> dict[str, tuple[Path, str]]:
    """split -> the list of its images, or the archive that has it, and its name."""
    archive, lists = raw / TEXT_ZIP, {}
    is_zipped = split == "flickr8k_based" and archive.is_file()
    for part, name in LISTS[split].items():
        path = raw / name
        if is_zipped and not path.is_file():
            path = archive
        lists[part] = (path, name)
    return lists


# Features that came with captions -----------------------------------------------------


def _are_named(raw: Path, options: Options) -> bool:
    """Whether `precomp`, whose ids are numbers, comes with images and the JSON of
    their names."""
    named = options.with_pictures and karpathy.find(raw, KARPATHY)
    return bool(named and image_files.find(raw, **STORE))


def _read_precomp(raw: Path, options: Options) -> Tables:
    """The tables. Raises UserError where the JSON of names is there and has other
    splits."""
    parts, files = precomp.layout(raw / PRECOMP), {}
    if _are_named(raw, options):
        entries = {str(entry.number): entry for entry in _annotations(raw).entries}
        _check_partition(parts, entries)
        present = set(_store(raw).names())
        for image_id, entry in entries.items():
            if entry.file in present:
                files[image_id] = entry.file
    notes = [
        f"The captions are those of {PRECOMP}/; image ids are the imgid of {KARPATHY}."
    ]
    return precomp.tables(parts, files, notes)


def _check_partition(
    parts: list[precomp.Part], entries: dict[str, karpathy.Entry]
) -> None:
    """Raise UserError for an image that has another split in the JSON."""
    for part in parts:
        for image_id in part.ids:
            split = entries[image_id].split if image_id in entries else "no split"
            if split != part.split:
                where, expected = (
                    f"{PRECOMP}: id {image_id!r}",
                    f"the partition of {KARPATHY}",
                )
                actual = f"{part.split}, but {split} in {KARPATHY}"
                advice = "place files of the same partition"
                raise UserError(where, expected, actual, advice)
