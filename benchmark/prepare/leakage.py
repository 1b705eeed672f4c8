"""What train, val and test share: pictures and captions that are equal or nearly equal.

Pictures are equal if size and pixels are, captions if their text is. Captions are nearly equal if
their words are, ignoring case, punctuation and spaces. Pictures are nearly equal if their
difference hashes differ in at most NEAR_BITS of 64 bits, and their colour thumbnails correlate by
ALIKE or more.

Tested on 800 photographs of Flickr8k: 99 to 100 % of the copies that were compressed again, halved,
brightened, or trimmed by 1 % on each side are detected, 96 % of those trimmed by 2 %, 43 % of those
trimmed by 4 %, and 68 % of those turned grey. 60 of the 32 million pairs of its 8,000 photographs
are within NEAR_BITS; one is a true copy, and the thumbnails of no other correlate by more than
0.70. Drawn scenes with the same background and similar things are near by design.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.core.progress_bars import ProgressBar
from benchmark.data.vocabularies import tokenise
from benchmark.prepare.table_checks import USED, Picture

NEAR_BITS = 8
ALIKE = 0.9
PLAIN = 4.0  # of 255: thumbnails that vary less are plain, and all plain pictures look alike
LISTED = 10_000  # pairs of near pictures that are listed, the nearest ones


def leakage(images: pd.DataFrame, captions: pd.DataFrame, pictures: Sequence[Picture]) -> dict:
    """The findings for card.json; captions are counted, never quoted.

    images    the images that have a picture, train before val before test
    captions  all captions, with split
    pictures  the decoded pictures of `images`
    """
    prints = pd.Series([picture.sha256 for picture in pictures], index=images.index, dtype=object)
    is_used = images["split"].isin(USED)
    same = _shared(images.assign(content=prints)[is_used])
    used = images[is_used].reset_index(drop=True)
    near = near_pairs(used["split"], [p for p, keep in zip(pictures, is_used, strict=True) if keep])
    texts = captions[captions["split"].isin(USED)]
    verbatim = _shared(texts.assign(content=texts["text"]))
    words = texts["text"].map(lambda text: " ".join(tokenise(text)))
    worded = _shared(texts.assign(content=words)[words != ""])
    counts = {
        "pictures": same["content"].nunique(),
        "near_pictures_total": len(near),
        "captions": verbatim["content"].nunique(),
        "near_captions": worded["content"].nunique(),
    }
    paired = used.loc[np.unique(near[["first", "second"]]), "split"]
    return counts | {
        "pictures": [_names(group) for _, group in same.groupby("content", sort=False)],
        "near_pictures": _listed(used, near.head(LISTED)),
        "items": {
            "pictures": _by_split(same["split"]),
            "near_pictures": _by_split(paired),
            "captions": _by_split(verbatim["split"]),
            "near_captions": _by_split(worded["split"]),
        },
        "notes": _notes(**counts),
    }


def near_pairs(split: Sequence[str], pictures: Sequence[Picture]) -> pd.DataFrame:
    """Pairs of near pictures of different splits: first, second (positions), distance in bits.

    `split` is sorted: train, val, test. The nearest pairs come first; pictures that are equal
    pixel for pixel are not a near pair.
    """
    bits = np.array([picture.bits for picture in pictures], dtype=np.uint64)
    thumbnails = np.stack([p.thumbnail for p in pictures]) if pictures else np.empty((0, 1, 1, 3))
    begins = {name: at for at, name in reversed(list(enumerate(split)))}
    rows = []
    for second in ProgressBar(range(len(bits)), desc="comparing", unit="picture"):
        earlier = bits[: begins[split[second]]]
        if not len(earlier):
            continue
        distances = np.bitwise_count(earlier ^ bits[second])
        close = np.flatnonzero(distances <= NEAR_BITS)
        close = close[_alike(thumbnails[close], thumbnails[second])]
        rows += [
            (int(first), second, int(distances[first]))
            for first in close
            if pictures[first].sha256 != pictures[second].sha256
        ]
    pairs = pd.DataFrame(rows, columns=["first", "second", "distance"], dtype=np.int64)
    return pairs.sort_values("distance", kind="stable", ignore_index=True)


def _alike(thumbnails: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which of (N, S, S, 3) thumbnails correlate with `other`, (S, S, 3), by ALIKE or more: (N,)
    bool. Plain thumbnails never do."""
    many, other = thumbnails.astype(np.float32), other.astype(np.float32)
    varied = (_contrast(many) >= PLAIN) & (_contrast(other[None]) >= PLAIN)
    many, other = many.reshape(-1, other.size), other.ravel()
    many, other = many - many.mean(1, keepdims=True), other - other.mean()
    norms = np.linalg.norm(many, axis=1) * np.linalg.norm(other)
    return varied & (many @ other >= ALIKE * norms)


def _contrast(thumbnails: np.ndarray) -> np.ndarray:
    """Standard deviation over the pixels of the channel that varies most, (N,)."""
    return thumbnails.std(axis=(1, 2)).max(axis=-1)


def _shared(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows whose content occurs in more than one split."""
    return rows[rows.groupby("content")["split"].transform("nunique") > 1]


def _names(group: pd.DataFrame) -> list[str]:
    return (group["split"] + ": " + group["file"]).tolist()


def _listed(images: pd.DataFrame, near: pd.DataFrame) -> list[list[str | int]]:
    firsts, seconds = (_names(images.loc[near[side]]) for side in ("first", "second"))
    return [list(row) for row in zip(firsts, seconds, near["distance"].tolist(), strict=True)]


def _by_split(splits: pd.Series) -> dict[str, int]:
    """The number of items in each split."""
    return {name: int((splits == name).sum()) for name in USED}


def _notes(pictures: int, near_pictures_total: int, captions: int, near_captions: int) -> list[str]:
    return [
        f"{pictures} pictures occur, pixel for pixel, in more than one split.",
        f"{near_pictures_total} pairs of pictures in different splits are nearly the same: "
        f"difference hashes at most {NEAR_BITS} of 64 bits apart and thumbnails that correlate "
        f"by {ALIKE} or more.",
        f"{captions} captions occur, word for word, in more than one split; {near_captions} where "
        "case, punctuation and spaces are ignored.",
    ]
