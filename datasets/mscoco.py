"""MSCOCO: 123,287 photographs with five or more captions each, in Karpathy's partition.

Lin et al. (2014), ECCV; Chen et al. (2015), arXiv 1504.00325 (captions); Karpathy and Fei-Fei
(2015). Val and test are 5,000 images each of COCO's validation set 2014; what is left of it is
"restval", 30,504 images that most papers train on besides the 82,783 of the training set. Results
are given for all 5,000 test images and as means over five consecutive folds of 1,000.

The raw folder holds the pictures, as train2014/ and val2014/ or train2014.zip and val2014.zip, and

    karpathy  dataset_coco.json, the same in a .zip, or caption_datasets.zip
    precomp   coco_precomp/ of SCAN, whose testall_* are the 5,000 test images; needs no pictures

An image is called after its number in COCO, whichever of the two. Archives are read in place.
"""

from pathlib import Path

import pandas as pd

from datasets import Card, DataError, OpenPicture, RemoteFile, Tables
from datasets.shared import karpathy, picture_stores, precomp

STORES = ("train2014", "val2014")
KARPATHY = "dataset_coco.json"
PRECOMP = "coco_precomp"
SPLITS = ("train", "restval", "val", "test")  # of Karpathy
EACH = 5  # captions that are kept of an image of val and test
NEEDED = "place train2014/ and val2014/, or train2014.zip and val2014.zip, in the raw folder"

# The name images.cocodataset.org has no certificate of its own; this is where it leads.
BUCKET = "https://s3.amazonaws.com/images.cocodataset.org/zips"
REMOTE_PICTURES = tuple(
    RemoteFile(name=f"{name}.zip", urls=(f"{BUCKET}/{name}.zip",)) for name in STORES
)

JUDGED = {"val": 5000, "test": 5000}
IMAGES = {
    True: JUDGED | {"train": 113287},  # with restval
    False: JUDGED | {"train": 82783, "unused": 30504},
}
JUDGED_CAPTIONS = {"val": 25000, "test": 25000}
CAPTIONS = {
    True: JUDGED_CAPTIONS | {"train": 566747},
    False: JUDGED_CAPTIONS | {"train": 414113, "unused": 152634},
}
PRECOMP_CAPTIONS = JUDGED_CAPTIONS | {"train": 566435}  # five an image


def card(
    *, annotations: str = "karpathy", restval: bool = True, with_pictures: bool = True
) -> Card:
    """What the chosen files need, and how many images and captions they have."""
    _check(annotations, restval)
    is_precomp = annotations == "precomp"
    photographs = with_pictures and not is_precomp  # without which nothing goes
    needed = [line.partition(":")[0] for line in _checklist(is_precomp, photographs)]
    pictures = REMOTE_PICTURES if photographs else ()
    return Card(
        title="MSCOCO",
        source="Lin et al. (2014), Microsoft COCO: Common Objects in Context, ECCV; Chen et al. "
        "(2015), Microsoft COCO Captions, arXiv 1504.00325",
        licence="captions CC BY 4.0; the photographs keep their owners' terms (Flickr Terms of "
        "Use)",
        split="karpathy" if restval else "karpathy_without_restval",
        may_publish=False,
        remote=() if is_precomp else (karpathy.REMOTE, *pictures),
        obtain=f"place {', '.join(needed)} in one folder",
        checklist=_checklist(is_precomp, with_pictures),
        raw_gib=(34.0 if is_precomp else 0.2) + (19.0 if photographs else 0.0),
        expected_images=IMAGES[restval],
        expected_captions=PRECOMP_CAPTIONS if is_precomp else CAPTIONS[restval],
        folds=5,
    )


def inventory(
    raw: Path,
    *,
    annotations: str = "karpathy",
    restval: bool = True,
    with_pictures: bool = True,
) -> list[Path]:
    """The files in use: annotations, features of `precomp`, and every picture or their archives."""
    _check(annotations, restval)
    if annotations == "precomp":
        store = _find_store(raw) if with_pictures else None
        return precomp.files(_precomp_folder(raw)) + (store.files() if store else [])
    return [*(_store(raw).files() if with_pictures else []), _karpathy_file(raw)]


def read(
    raw: Path,
    *,
    annotations: str = "karpathy",
    restval: bool = True,
    with_pictures: bool = True,
) -> Tables:
    """The tables.

    annotations    "karpathy", or "precomp" for the captions that come with SCAN's features
    restval        whether restval is used for training; `precomp` always has it
    with_pictures  False: none are looked for, as where features are imported. `precomp` does
                   without them in any case, but uses those that are there.
    """
    _check(annotations, restval)
    if annotations == "precomp":
        return _read_precomp(raw, with_pictures)
    if with_pictures:
        _store(raw)
    entries = karpathy.read(_karpathy_file(raw), KARPATHY, SPLITS)
    return _tables(entries, restval, with_pictures)


def pictures(
    raw: Path,
    *,
    annotations: str = "karpathy",
    restval: bool = True,
    with_pictures: bool = True,
) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and processes."""
    _check(annotations, restval)
    if not with_pictures:
        return picture_stores.absent(f"{NEEDED}, and drop the option with_pictures: false")
    if annotations == "precomp":
        return _find_store(raw) or picture_stores.absent(NEEDED)
    return _store(raw)


def _check(annotations: str, restval: bool) -> None:
    if annotations not in ("karpathy", "precomp"):
        raise DataError(f"option annotations: expected karpathy or precomp, found {annotations!r}")
    if not isinstance(restval, bool):
        raise DataError(f"option restval: expected true or false, found {restval!r}")
    if annotations == "precomp" and not restval:
        raise DataError(
            "option restval: false needs the option annotations: karpathy; "
            f"{PRECOMP}/ does not tell restval from train"
        )


def _checklist(is_precomp: bool, with_pictures: bool) -> tuple[str, ...]:
    """A line a file or folder of the raw folder."""
    ends = f"{{{','.join(precomp.ENDS)}}}"
    lines = [f"{KARPATHY} or {karpathy.ALL}: captions and partition"]
    if is_precomp:
        lines = [f"{PRECOMP}/{{train,dev,testall}}_{ends}: features and captions"]
    if with_pictures:
        needed = "; not needed for matching" if is_precomp else ""
        lines += [f"{name}/ or {name}.zip: photographs{needed}" for name in STORES]
    return tuple(lines)


# Files ---------------------------------------------------------------------------------------


def _find_store(raw: Path) -> picture_stores.Several | None:
    """The pictures that are there; None where neither half is."""
    halves = {
        name: picture_stores.find(raw, archive=f"{name}.zip", inside=name, folders=(name,))
        for name in STORES
    }
    found = {name: store for name, store in halves.items() if store is not None}
    return picture_stores.Several(found) if found else None


def _store(raw: Path) -> picture_stores.Several:
    store = _find_store(raw)
    lost = [name for name in STORES if store is None or name not in store.stores]
    if lost:
        raise DataError(
            f"{raw}: no pictures; expected {lost[0]}/ or {lost[0]}.zip with .jpg files in it "
            "(features alone need the option annotations: precomp, or with_pictures: false)"
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


def _precomp_folder(raw: Path) -> Path:
    folder = raw / PRECOMP
    if not (folder / "testall_caps.txt").is_file():
        raise DataError(
            f"{folder}/testall_caps.txt: not found; expected the 5,000 test images of testall_*, "
            "of which test_* are only the first 1,000"
        )
    return folder


# Readers -------------------------------------------------------------------------------------


def _tables(entries: list[karpathy.Entry], restval: bool, with_pictures: bool) -> Tables:
    used = {"restval": "train" if restval else "unused"}
    images = pd.DataFrame(
        {
            "image_id": [_image_id(entry) for entry in entries],
            "file": [entry.file if with_pictures else "" for entry in entries],
            "split": [used.get(entry.split, entry.split) for entry in entries],
        }
    )
    captions = [
        (f"{_image_id(entry)}#{number}", _image_id(entry), text)
        for entry in entries
        for number, text in enumerate(_kept(entry))
    ]
    return Tables(
        images=images.assign(group=images["image_id"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=tuple(_notes(entries, restval)),
    )


def _image_id(entry: karpathy.Entry) -> str:
    if entry.cocoid is None:
        raise DataError(f"{entry.place}: cocoid: expected int, found None")
    return str(entry.cocoid)


def _kept(entry: karpathy.Entry) -> list[str]:
    return entry.captions[:EACH] if entry.split in JUDGED else entry.captions


def _notes(entries: list[karpathy.Entry], restval: bool) -> list[str]:
    dropped = sum(len(entry.captions) - len(_kept(entry)) for entry in entries)
    others = sum(entry.split == "restval" for entry in entries)
    use = "are used for training" if restval else "stay unused"
    return [
        f"The captions are the raw sentences of {KARPATHY}.",
        f"{others} images of restval {use}.",
        f"The first {EACH} captions of every image of val and test are kept, {dropped} dropped.",
    ]


def _read_precomp(raw: Path, with_pictures: bool) -> Tables:
    parts = precomp.layout(_precomp_folder(raw))
    store = _find_store(raw) if with_pictures else None
    files = {_number(name): name for name in store.names()} if store else {}
    notes = [f"The captions are those of {PRECOMP}/; restval is used for training."]
    return precomp.tables(parts, files, notes)


def _number(file: str) -> str:
    """391895 of val2014/COCO_val2014_000000391895.jpg."""
    return Path(file).stem.rpartition("_")[2].lstrip("0")
