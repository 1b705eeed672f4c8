"""What train, val and test share, and twins within test: equal or nearly equal
pictures, captions.

Pictures are equal if size and pixels are, captions if their text is. Captions are
nearly equal if their words are, ignoring case, punctuation and spaces. Pictures are
nearly equal if their difference hashes differ in at most NEAR_BITS of 64 bits, and
their colour thumbnails correlate by ALIKE or more.

Tested on 800 photographs of Flickr8k: 99 to 100 % of the copies that were compressed
again, halved, brightened, or trimmed by 1 % on each side are detected, 96 % of those
trimmed by 2 %, 43 % of those trimmed by 4 %, and 68 % of those turned grey. 60 of the
32 million pairs of its 8,000 photographs are within NEAR_BITS; one is a true copy, and
the thumbnails of no other correlate by more than 0.70. Drawn scenes with the same
background and similar things are near by design.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import compress
from unicodedata import normalize

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.contracts.datasets import OpenPicture
from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.core.files import readable
from benchmark.data.vocabularies import tokenise
from benchmark.prepare.table_checks import USED, in_all
from benchmark.readers.image_files import REPLACE, WHOLE

NEAR_BITS = 8
HASH_BITS = 64
ALIKE = 0.9
# of 255: thumbnails that vary less are plain, and all plain pictures look alike
PLAIN = 4.0
LISTED = 10_000  # pairs of near pictures that are listed, the nearest ones
SIDE = 16  # width and height of a thumbnail, in pixels


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The facts of a decoded picture."""

    width: int
    height: int
    sha256: str  # of size and pixels
    # difference hash, 8 x 8: whether each pixel of a 9 x 8 copy is brighter than its
    # left neighbour
    bits: np.uint64
    thumbnail: np.ndarray  # (SIDE, SIDE, 3) uint8
    brightest: int  # value of its pixels, 0 to 255


def measure(files: list[str], open_picture: OpenPicture, title: str) -> list[Picture]:
    """The facts of all images, in order. Raises UserError if one cannot be decoded."""
    # decoding and hashing release the GIL
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        decoded = pool.map(partial(_decoded, open_picture), files)
        progress = ProgressBar(decoded, total=len(files), desc=f"checking {title}")
        results = list(progress)
    faults = [each for each in results if isinstance(each, UserError)]
    if faults:
        first = faults[0]
        raise first.but(
            where=files[results.index(first)],
            found=f"{first.found}{in_all(len(faults))}",
            do=first.do or REPLACE,
        )
    return results


def _decoded(open_picture: OpenPicture, file: str) -> Picture | UserError:
    """The facts of one picture, or why it cannot be used."""
    try:
        # of a reader that opens them itself
        with readable(file, WHOLE, REPLACE):
            picture = open_picture(file)
            content = picture.tobytes()
    except UserError as error:
        return error
    if picture.mode != "RGB":
        return UserError(
            file,
            expected="an RGB image",
            found=f"mode {picture.mode}",
            do=REPLACE,
        )
    grey = np.asarray(picture.convert("L").resize((9, 8), Image.Resampling.BOX))
    return Picture(
        width=picture.width,
        height=picture.height,
        sha256=hashlib.sha256(f"{picture.size}".encode() + content).hexdigest(),
        bits=np.packbits(grey[:, 1:] > grey[:, :-1]).view(np.uint64)[0],
        thumbnail=np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX)),
        brightest=max(high for _, high in picture.getextrema()),
    )


def leakage(
    images: pd.DataFrame,
    captions: pd.DataFrame,
    pictures: Sequence[Picture],
) -> dict:
    """The findings for card.json; captions are counted, never quoted.

    images    the images that have a picture, train before val before test
    captions  all captions, with split
    pictures  the decoded pictures of `images`
    """
    images = images.assign(content=[picture.sha256 for picture in pictures])
    is_used = images["split"].isin(USED)
    images = images[is_used]
    used_pictures = list(compress(pictures, is_used))
    texts = captions[captions["split"].isin(USED)]
    names = (images["split"] + ": " + images["file"]).to_numpy()
    same = _shared(images.assign(name=names))
    copies = same.groupby("content", sort=False)["name"]
    near = near_pairs(images["split"].tolist(), used_pictures)
    nearest = []
    for row in near.head(LISTED).itertuples():
        nearest.append([names[row.first], names[row.second], row.distance])
    has_near = np.unique(near[["first", "second"]])
    verbatim = texts["text"].map(partial(normalize, "NFC"))
    verbatim = _shared(texts.assign(content=verbatim))
    words = texts["text"].map(_words)
    worded = _shared(texts.assign(content=words)[words != ""])
    exact = verbatim["content"].nunique()
    near_captions = worded["content"].nunique()
    return {
        "near_pictures_total": len(near),
        "captions": exact,
        "near_captions": near_captions,
        "pictures": [group.tolist() for _, group in copies],
        "near_pictures": nearest,
        "items": {
            "pictures": _per_split(same),
            "near_pictures": _per_split(images.iloc[has_near]),
            "captions": _per_split(verbatim),
            "near_captions": _per_split(worded),
        },
        "notes": [
            f"{same['content'].nunique()} pictures occur, pixel for pixel, in more than one split.",
            f"{len(near)} pairs of pictures in different splits are nearly the same: difference "
            f"hashes at most {NEAR_BITS} of {HASH_BITS} bits apart and thumbnails that "
            f"correlate by {ALIKE} or more.",
            f"{exact} captions occur, word for word, in more than one split; {near_captions} where "
            "case, punctuation and spaces are ignored.",
        ],
    }


def twins(
    images: pd.DataFrame,
    captions: pd.DataFrame,
    pictures: Sequence[Picture],
) -> dict:
    """How many images and captions of test equal, or nearly equal, one of another group
    in test: no method can tell which of them is meant.

    images    all images; `pictures` are those of the images with a file
    captions  all captions, with split
    """
    with_file = images[images["file"] != ""]
    is_test = with_file["split"] == "test"
    tested = list(compress(pictures, is_test))
    groups = with_file["group"][is_test].to_numpy()
    # each picture counts as a split of its own, so that all pairs are compared
    pairs = near_pairs(range(len(tested)), tested)
    first, second = pairs[["first", "second"]].to_numpy().T
    is_of_others = groups[first] != groups[second]
    contents = [picture.sha256 for picture in tested]
    groups_of_content = pd.Series(groups).groupby(contents).transform("nunique")
    is_twin = (groups_of_content > 1).to_numpy(bool, copy=True)
    is_twin[first[is_of_others]] = True
    is_twin[second[is_of_others]] = True
    texts = captions[captions["split"] == "test"]
    verbatim = texts["text"].map(partial(normalize, "NFC"))
    words = texts["text"].map(_words)
    words = words.where(words != "", verbatim)
    group_of_image = images.set_index("image_id")["group"]
    group_of_caption = texts["image_id"].map(group_of_image)
    is_repeated = group_of_caption.groupby(words).transform("nunique") > 1
    return {"images": int(is_twin.sum()), "captions": int(is_repeated.sum())}


def near_pairs(split: Sequence[object], pictures: Sequence[Picture]) -> pd.DataFrame:
    """Pairs of near pictures of different splits: first, second (positions), distance
    in bits.

    `split` is sorted: train, val, test; with a label of its own for each picture, all
    pairs are compared. The nearest come first; pictures that are equal pixel for pixel
    are not a near pair.
    """
    bits = np.array([picture.bits for picture in pictures], dtype=np.uint64)
    flat = _centred_thumbnails(pictures)
    norms = np.linalg.norm(flat, axis=1)
    rows = []
    for second in ProgressBar(range(len(bits)), desc="comparing", unit="image"):
        start = split.index(split[second])  # of its split
        distances = np.bitwise_count(bits[:start] ^ bits[second])
        close = np.flatnonzero(distances <= NEAR_BITS)
        largest = norms[close] * norms[second]
        is_alike = flat[close] @ flat[second] >= ALIKE * largest
        for first in close[is_alike]:
            if pictures[first].sha256 != pictures[second].sha256:
                rows.append((int(first), second, int(distances[first])))
    pairs = pd.DataFrame(rows, columns=["first", "second", "distance"], dtype=np.int64)
    return pairs.sort_values("distance", kind="stable", ignore_index=True)


def _centred_thumbnails(pictures: Sequence[Picture]) -> np.ndarray:
    """Float32 (N, 3 * SIDE * SIDE), centred; plain ones become NaN, which correlates
    with nothing."""
    thumbnails = np.array([p.thumbnail for p in pictures], np.float32)
    thumbnails = thumbnails.reshape(-1, SIDE**2, 3)
    thumbnails[thumbnails.std(axis=1).max(axis=1) < PLAIN] = np.nan
    flat = thumbnails.reshape(len(pictures), 3 * SIDE**2)
    flat -= flat.mean(1, keepdims=True)
    return flat


def _words(text: str) -> str:
    return " ".join(tokenise(text))


def _per_split(rows: pd.DataFrame) -> dict[str, int]:
    return {split: int((rows["split"] == split).sum()) for split in USED}


def _shared(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows whose content occurs in more than one split."""
    return rows[rows.groupby("content")["split"].transform("nunique") > 1]
