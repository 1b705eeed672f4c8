"""Flickr30k: 31,783 photographs with five captions each, in any of four partitions.

Young, Lai, Hodosh and Hockenmaier (2014), TACL 2. The papers divide it in four ways; three of them
have the same sizes and yet other images:

    karpathy        29,000/1,014/1,000, and 769 images in none (Karpathy and Fei-Fei 2015)
    entities        29,783/1,000/1,000 (Plummer et al. 2017, Flickr30k Entities)
    flickr8k_based  29,783/1,000/1,000: val and test are those of Flickr8k (Zheng et al. 2020)
    m_rnn           29,783/1,000/1,000 (Mao et al. 2015); the lists are not public

The raw folder holds the pictures, as `flickr30k-images/` or `flickr30k-images.zip`, and for

    karpathy        dataset_flickr30k.json, the same in a .zip, or caption_datasets.zip; or, with
                    the option annotations: precomp, f30k_precomp/ of SCAN
    all others      results_20130124.token, or flickr30k.tar.gz with it, and
    entities        train.txt, val.txt, test.txt: an image id a line
    flickr8k_based  Flickr_8k.devImages.txt and Flickr_8k.testImages.txt, or Flickr8k_text.zip
    m_rnn           m_rnn_train.txt, m_rnn_val.txt, m_rnn_test.txt: an image id or name a line

Archives are read in place; nothing is ever extracted from them.
"""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from datasets import Card, DataError, OpenPicture, RemoteFile, Tables
from datasets.shared import archives, flickr, karpathy, picture_stores, precomp

IMAGE_FOLDER = "flickr30k-images"
IMAGE_ZIP = f"{IMAGE_FOLDER}.zip"
TOKENS = "results_20130124.token"
TOKENS_TAR = "flickr30k.tar.gz"
KARPATHY = "dataset_flickr30k.json"
PRECOMP = "f30k_precomp"
ENTITIES = "https://raw.githubusercontent.com/BryanPlummer/flickr30k_entities/master"
FORM = "https://forms.illinois.edu/sec/229675"
NEEDED = f"place {IMAGE_FOLDER}/ or {IMAGE_ZIP} in the raw folder"

EACH = 5  # captions of an image
IMAGES = {
    "karpathy": {"train": 29000, "val": 1014, "test": 1000},
    "entities": {"train": 29783, "val": 1000, "test": 1000},
    "flickr8k_based": {"train": 29783, "val": 1000, "test": 1000},
    "m_rnn": {"train": 29783, "val": 1000, "test": 1000},
}
LISTS = {  # split -> list of its images; without one, train has all the others
    "entities": {split: f"{split}.txt" for split in ("train", "val", "test")},
    "flickr8k_based": {split: flickr.LISTS[split] for split in ("val", "test")},
    "m_rnn": {split: f"m_rnn_{split}.txt" for split in ("train", "val", "test")},
}
REMOTE = {
    "karpathy": (karpathy.REMOTE,),
    "entities": tuple(
        RemoteFile(name=name, urls=(f"{ENTITIES}/{name}",)) for name in LISTS["entities"].values()
    ),
    "flickr8k_based": (flickr.remote(flickr.TEXT_ZIP),),
    "m_rnn": (),
}
REMOTE_TOKENS = RemoteFile(
    name=TOKENS_TAR, urls=(f"https://shannon.cs.illinois.edu/DenotationGraph/data/{TOKENS_TAR}",)
)
LISTED = re.compile(r"(\d+)(?:_\w+)?(?:\.jpg)?")  # an id; Flickr8k's names have a secret after it


def card(
    *, split: str = "karpathy", annotations: str | None = None, with_pictures: bool = True
) -> Card:
    """What the chosen partition needs, and how many images and captions it has."""
    kind = _kind(split, annotations)
    photographs = with_pictures and kind != "precomp"  # without which nothing goes
    needed = [line.partition(":")[0] for line in _checklist(split, kind, photographs)]
    return Card(
        title="Flickr30k",
        source="Young, Lai, Hodosh and Hockenmaier (2014), From image descriptions to visual "
        "denotations, TACL 2, 67-78",
        licence="non-commercial research and education only; the photographs keep their owners' "
        "terms (Flickr Terms of Use)",
        split=split,
        may_publish=False,
        remote={
            "karpathy": REMOTE[split],
            "official": (REMOTE_TOKENS, *REMOTE[split]),
            "precomp": (),
        }[kind],
        obtain=f"place {', '.join(needed)} in one folder",
        form=FORM if photographs else "",
        checklist=_checklist(split, kind, with_pictures),
        raw_gib=(9.0 if kind == "precomp" else 0.1) + (4.5 if photographs else 0.0),
        expected_images=IMAGES[split],
        expected_captions={part: EACH * images for part, images in IMAGES[split].items()},
    )


def inventory(
    raw: Path,
    *,
    split: str = "karpathy",
    annotations: str | None = None,
    with_pictures: bool = True,
) -> list[Path]:
    """The files in use: annotations, features of `precomp`, and every picture or their archive."""
    kind = _kind(split, annotations)
    if kind == "precomp":
        files = precomp.files(raw / PRECOMP)
        if not _are_named(raw, with_pictures):
            return files
        return [*files, _karpathy_file(raw), *_store(raw).files()]
    pictures = _store(raw).files() if with_pictures else []
    if kind == "karpathy":
        return [*pictures, _karpathy_file(raw)]
    lists = [_list_file(raw, name) for name in LISTS[split].values()]
    return [*pictures, _tokens_file(raw), *dict.fromkeys(lists)]


def read(
    raw: Path,
    *,
    split: str = "karpathy",
    annotations: str | None = None,
    with_pictures: bool = True,
) -> Tables:
    """The tables.

    split          "karpathy", "entities", "flickr8k_based" or "m_rnn"
    annotations    where the captions are from: "karpathy" (the default) or "precomp" for that
                   partition, "official" for the others
    with_pictures  False: none are looked for, as where features are imported. `precomp` does
                   without them in any case, but uses them where dataset_flickr30k.json names them.
    """
    kind = _kind(split, annotations)
    if kind == "precomp":
        return _read_precomp(raw, with_pictures)
    present = _store(raw).names() if with_pictures else []
    tables = _read_karpathy(raw, present) if kind == "karpathy" else _read_official(raw, split)
    if with_pictures:
        return tables
    return replace(tables, images=tables.images.assign(file=""))


def pictures(
    raw: Path,
    *,
    split: str = "karpathy",
    annotations: str | None = None,
    with_pictures: bool = True,
) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and processes."""
    if _kind(split, annotations) == "precomp" and not _are_named(raw, with_pictures):
        return picture_stores.absent(f"{NEEDED}, and {KARPATHY} for their names")
    if not with_pictures:
        return picture_stores.absent(f"{NEEDED}, and drop the option with_pictures: false")
    return _store(raw)


def _kind(split: str, asked: str | None) -> str:
    if split not in IMAGES:
        raise DataError(f"option split: expected one of {', '.join(IMAGES)}, found {split!r}")
    possible = ("karpathy", "precomp") if split == "karpathy" else ("official",)
    if asked is not None and asked not in possible:
        raise DataError(
            f"option annotations: expected {' or '.join(possible)} with the split {split}, "
            f"found {asked!r}"
        )
    return asked or possible[0]


def _checklist(split: str, kind: str, with_pictures: bool) -> tuple[str, ...]:
    """A line a file or folder of the raw folder."""
    lists = [f"{name}: images of {part}" for part, name in LISTS.get(split, {}).items()]
    if split == "flickr8k_based":
        lists = [f"{flickr.TEXT_ZIP}, or of it {' and '.join(LISTS[split].values())}: val and test"]
    photographs = f"{IMAGE_FOLDER}/ or {IMAGE_ZIP}: the 31,783 photographs, after the form"
    texts = {
        "karpathy": [f"{KARPATHY} or {karpathy.ALL}: captions and partition"],
        "official": [f"{TOKENS} or {TOKENS_TAR}: captions", *lists],
        "precomp": [
            f"{PRECOMP}/{{train,dev,test}}_{{{','.join(precomp.ENDS)}}}: features and captions"
        ],
    }[kind]
    if not with_pictures:
        return tuple(texts)
    if kind == "precomp":
        return (*texts, f"{photographs}, and {KARPATHY}; not needed for matching")
    return (photographs, *texts)


# Files ---------------------------------------------------------------------------------------


def _find_store(raw: Path) -> picture_stores.Store | None:
    folders = (IMAGE_FOLDER, "flickr30k_images")
    return picture_stores.find(raw, archive=IMAGE_ZIP, inside=IMAGE_FOLDER, folders=folders)


def _store(raw: Path) -> picture_stores.Store:
    store = _find_store(raw)
    if store is None:
        raise DataError(
            f"{raw}: no pictures; expected {IMAGE_FOLDER}/ or {IMAGE_ZIP} with .jpg files in it "
            f"(features alone need the option annotations: precomp, or with_pictures: false)"
        )
    return store


def _karpathy_file(raw: Path) -> Path:
    path = karpathy.find(raw, KARPATHY)
    if path is None:
        raise DataError(
            f"{raw}: no annotations; expected {KARPATHY}, {KARPATHY}.zip or {karpathy.ALL} "
            f"({PRECOMP}/ needs the option annotations: precomp)"
        )
    return path


def _tokens_file(raw: Path) -> Path:
    found = [raw / name for name in (TOKENS, TOKENS_TAR) if (raw / name).is_file()]
    if not found:
        raise DataError(f"{raw}: no captions; expected {TOKENS} or {TOKENS_TAR}")
    return found[0]


def _list_file(raw: Path, name: str) -> Path:
    """A list of images, or the archive that has it."""
    archive = raw / flickr.TEXT_ZIP
    zipped = name in flickr.LISTS.values() and archive.is_file()
    return archive if zipped and not (raw / name).is_file() else raw / name


def _are_named(raw: Path, with_pictures: bool) -> bool:
    """Whether `precomp`, whose ids are numbers, comes with pictures and the JSON of their names."""
    return with_pictures and bool(_find_store(raw) and karpathy.find(raw, KARPATHY))


# Readers -------------------------------------------------------------------------------------


def _entries(raw: Path) -> list[karpathy.Entry]:
    return karpathy.read(_karpathy_file(raw), KARPATHY, tuple(IMAGES["karpathy"]))


def _read_karpathy(raw: Path, present: list[str]) -> Tables:
    entries = _entries(raw)
    split_of = {entry.file: entry.split for entry in entries}
    notes = [f"The captions are the raw sentences of {KARPATHY}."]
    others = len(set(present) - set(split_of))
    if others:
        notes.append(f"{others} pictures are in no split; they are left out.")
    return flickr.tables(split_of, flickr.karpathy_captions(entries), notes)


def _read_official(raw: Path, split: str) -> Tables:
    captions = flickr.captions(_tokens_file(raw), TOKENS)
    split_of = _listed(raw, LISTS[split], captions["file"])
    rest = [file for file in captions["file"].unique() if file not in split_of]
    notes = [f"The captions are those of {TOKENS}, verbatim."]
    if "train" not in LISTS[split]:
        return flickr.tables(split_of | dict.fromkeys(rest, "train"), captions, notes)
    if rest:
        notes.append(f"{len(rest)} captioned images are in no list and stay unused.")
    return flickr.tables(split_of | dict.fromkeys(rest, "unused"), captions, notes)


def _listed(raw: Path, lists: dict[str, str], captioned: pd.Series) -> dict[str, str]:
    """file -> split, in the order of the lists."""
    known = set(captioned)
    split_of: dict[str, str] = {}
    for split, name in lists.items():
        lines = archives.lines(_list_file(raw, name), name)
        for number, line in enumerate(lines, start=1):
            match = LISTED.fullmatch(line.strip())
            file = f"{match[1]}.jpg" if match else ""
            if file not in known or file in split_of:
                fault = f"already in {split_of[file]}" if file in split_of else "unknown image"
                raise DataError(
                    f"{name}:{number}: {line!r:.80}: {fault}; expected the id of another image "
                    f"of {TOKENS}"
                )
            split_of[file] = split
    return split_of


def _read_precomp(raw: Path, with_pictures: bool) -> Tables:
    parts = precomp.layout(raw / PRECOMP)
    files = _precomp_files(raw, parts) if _are_named(raw, with_pictures) else {}
    notes = [f"The captions are those of {PRECOMP}/; image ids are the imgid of {KARPATHY}."]
    return precomp.tables(parts, files, notes)


def _precomp_files(raw: Path, parts: list[precomp.Part]) -> dict[str, str]:
    """image id -> file of those pictures that are there; both partitions have to agree."""
    entries = {str(entry.number): entry for entry in _entries(raw)}
    for part in parts:
        for image_id in part.ids:
            said = entries[image_id].split if image_id in entries else "no split"
            if said != part.split:
                raise DataError(
                    f"{PRECOMP}: id {image_id!r}: in {part.split}, but in {said} of {KARPATHY}; "
                    "expected files of the same partition"
                )
    present = set(_store(raw).names())
    return {key: entry.file for key, entry in entries.items() if entry.file in present}
