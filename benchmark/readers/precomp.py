"""Folders of image features with their captions, as published with SCAN and VSE++.

Lee et al. (2018), Stacked Cross Attention. `f30k_precomp/` and `coco_precomp/` have for
each of train, dev and test the three files

    <split>_caps.txt  one caption per line, five consecutive lines per image
    <split>_ids.txt   image ids: one line per image, or one per caption (each id five times)
    <split>_ims.npy   features, (rows, ...): likewise one row per image, or one per caption

COCO's also has `testall_*`, all 5,000 test images; its `test_*` are the first 1,000 of
them. Ids are Karpathy's imgid for Flickr30k, and COCO's own for COCO.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from benchmark.contracts.datasets import Needed, Tables, UserError
from benchmark.core.files import readable
from benchmark.readers import archives

STEMS = {"train": "train", "val": "dev", "test": "test"}
ENDS = ("caps.txt", "ids.txt", "ims.npy")
EACH = 5  # captions per image
AGAIN = "copy the whole file again"


@dataclass(frozen=True)
class Part:
    """One split of a folder, in the order of its files."""

    split: str  # train, val, test
    ims: Path  # features, .npy
    captions: list[str]  # five consecutive ones per image
    # one per image: `image_id` in `Tables`; ims has one row each, or five
    ids: list[str]


def files(folder: Path) -> list[Path]:
    """The files that make up train, val and test, whether or not they are there."""
    stems = _stems(folder).values()
    return [folder / f"{stem}_{end}" for stem, end in product(stems, ENDS)]


def needed(folder: str, stems: Iterable[str]) -> list[Needed]:
    """The lines of a checklist for a folder with files of these stems, one per stem."""
    checklist = []
    for stem in stems:
        names = tuple(f"{folder}/{stem}_{end}" for end in ENDS)
        checklist.append(Needed(f"features and captions of {stem}", (names,)))
    return checklist


def layout(folder: Path) -> list[Part]:
    """Train, val and test of a folder; only headers of the features are read.

    Raises UserError for a file that is missing or cut, for counts that disagree, and
    for an id that occurs twice.
    """
    parts = []
    seen = {}
    for split, stem in _stems(folder).items():
        captions_file, ids_file, ims = (folder / f"{stem}_{end}" for end in ENDS)
        captions = _captions(captions_file)
        images = len(captions) // EACH
        ids = _ids(ids_file, images)
        for image_id in ids:
            if image_id in seen:
                raise UserError(
                    f"{folder.name}: id {image_id!r}",
                    expected="one split per image",
                    found=f"{seen[image_id]} and {split}",
                    do=AGAIN,
                )
            seen[image_id] = split
        advice = "place a whole copy beside the captions"
        with readable(_short(ims), "a whole NumPy array", advice):
            rows = len(archives.mapped(ims))
        _per_image(rows, images, f"{_short(ims)}: rows")
        parts.append(Part(split, ims, captions, ids))
    return parts


def tables(parts: list[Part], pictures: Mapping[str, str], notes: list[str]) -> Tables:
    """The tables of a folder; `pictures` has the file of each image that has one, by
    image id."""
    rows = []
    captions = []
    for part in parts:
        for row, image_id in enumerate(part.ids):
            rows.append((image_id, pictures.get(image_id, ""), part.split, image_id))
            own = part.captions[EACH * row : EACH * (row + 1)]
            for number, text in enumerate(own):
                captions.append((f"{image_id}#{number}", image_id, text))
    images = pd.DataFrame(rows, columns=["image_id", "file", "split", "group"])
    without = int((images["file"] == "").sum())
    if without:
        note = f"{without} of {len(images)} images have features but no picture."
        notes = [*notes, note]
    return Tables(
        images=images,
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "text"]),
        notes=tuple(notes),
    )


def _stems(folder: Path) -> dict[str, str]:
    """split -> how the names of its files begin."""
    is_whole = any((folder / f"testall_{end}").is_file() for end in ENDS)
    return STEMS | {"test": "testall"} if is_whole else STEMS


def _captions(path: Path) -> list[str]:
    captions = archives.lines(path, path.name)
    for number, line in enumerate(captions, start=1):
        if not line.strip() or "\t" in line:
            raise UserError(
                f"{_short(path)}:{number}",
                expected="a caption without tabs",
                found=f"{line!r:.80}",
                do=AGAIN,
            )
    if not captions or len(captions) % EACH:
        raise UserError(
            _short(path),
            expected=f"{EACH} lines per image",
            found=f"{len(captions)} lines",
            do=AGAIN,
        )
    return captions


def _ids(path: Path, images: int) -> list[str]:
    """One id per image, from a file that may repeat each id five times."""
    ids = [line.strip() for line in archives.lines(path, path.name)]
    each = _per_image(len(ids), images, f"{_short(path)}: lines")
    seen: set[str] = set()
    for row, image_id in enumerate(ids):
        if row % each:
            expected = repr(ids[row - 1])
            fits = image_id == ids[row - 1]
        else:
            expected = "a number that no line before has"
            fits = image_id.isdigit() and image_id not in seen
        if not fits:
            raise UserError(
                f"{_short(path)}:{row + 1}",
                expected=expected,
                found=f"{image_id!r:.80}",
                do=AGAIN,
            )
        seen.add(image_id)
    return ids[::each]


def _per_image(count: int, images: int, where: str) -> int:
    """How many lines or rows an image has: 1 or EACH. Raises UserError for other
    counts."""
    if count not in (images, EACH * images):
        raise UserError(
            where,
            expected=f"{images} (one per image) or {EACH * images} (one per caption)",
            found=count,
            do=AGAIN,
        )
    return count // images


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
