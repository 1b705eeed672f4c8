"""Hits and misses to look at: a few queries of each direction with what was retrieved.

What is relevant is of the query's group: the captions of an image, the pictures of a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from benchmark.analysis.boards import Outcome
from benchmark.core.files import atomic
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.report.markdown import bold, escaped, picture, table
from datasets import OpenPicture

EACH = 3  # hits, and as many misses, of either direction
SHOWN = 5  # retrieved items of a query
SIDE = 128  # pixels of a thumbnail, at most
FRAME, GREEN = 4, "#009E73"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the thumbnails of a page go, and how the page names that folder."""

    folder: Path
    link: str


class _Thumbnails:
    """Writes the thumbnails a page asks for, and keeps account of them."""

    def __init__(self, data: Prepared, split: Split, open_picture: OpenPicture, place: Place):
        self.data, self.split, self.open_picture, self.place = data, split, open_picture, place
        self.written: list[Path] = []

    def shown(self, image: int, framed: bool = False) -> str:
        """Markdown of test image `image`; its first caption stands in for it in words."""
        row = int(self.split.image_rows[image])
        name = f"{row:06d}{'-relevant' if framed else ''}.png"
        path = self.place.folder / name
        if path not in self.written:
            opened = self.open_picture(self.data.images["file"].iloc[row])
            with atomic(path) as part:
                _thumbnail(opened, framed).save(part, format="PNG")
            self.written.append(path)
        first = int(np.flatnonzero(self.split.image_of_caption == image)[0])
        text = self.data.captions["text"].iloc[int(self.split.caption_rows[first])]
        return picture(f"picture: {text}", self.place.link + name)


def gallery(
    data: Prepared, split: Split, outcome: Outcome, open_picture: OpenPicture, place: Place
) -> tuple[str, list[Path]]:
    """Markdown of a cell's hits and misses, and the thumbnails written for it."""
    thumbnails = _Thumbnails(data, split, open_picture, place)
    found = outcome.arrays("scores/retrieved.npz")
    parts = [
        "A hit has a relevant item in the first place; the number of a miss is the place of its "
        "first relevant item, ties counted against the method."
    ]
    if "i2t" in found:
        of_images = [
            _image_query(data, split, thumbnails, query, rank, found["i2t"][query])
            for query, rank in chosen(outcome.ranks("i2t"))
        ]
        parts += [
            "Picture to captions. Captions of the picture are **bold**.",
            table(["picture", "result", "first five captions"], of_images, "lll"),
        ]
    of_captions = [
        _caption_query(data, split, thumbnails, query, rank, found["t2i"][query])
        for query, rank in chosen(outcome.ranks("t2i"))
    ]
    places = [f"{place}." for place in range(1, SHOWN + 1)]
    whose = "The caption's own picture has" if "i2t" in found else "Pictures of its person have"
    parts += [
        f"Caption to pictures. {whose} a green frame.",
        table(["caption", *places], of_captions, "l" * (1 + SHOWN)),
    ]
    return "\n\n".join(parts), thumbnails.written


def chosen(ranks: np.ndarray, each: int = EACH) -> list[tuple[int, int]]:
    """Query and rank of up to `each` hits and `each` misses, hits first.

    A hit has a relevant item in the first place. Both kinds are evenly spaced over the queries:
    nobody picked them.
    """
    hits, misses = np.flatnonzero(ranks == 0), np.flatnonzero(ranks > 0)
    picked = [*evenly(hits, each), *evenly(misses, each)]
    return [(query, int(ranks[query])) for query in picked]


def evenly(rows: np.ndarray, count: int) -> list[int]:
    """`count` of the rows, each from the middle of its share; all of them where there are fewer."""
    count = min(count, len(rows))
    return [int(rows[(2 * i + 1) * len(rows) // (2 * count)]) for i in range(count)]


def _image_query(
    data: Prepared,
    split: Split,
    thumbnails: _Thumbnails,
    query: int,
    rank: int,
    captions: Sequence[int],
) -> list[str]:
    lines = []
    for place, caption in enumerate(captions[:SHOWN], 1):
        text = _text(data, split, caption)
        is_relevant = split.group_of_caption[caption] == split.group_of_image[query]
        lines.append(f"{place}. {bold(text) if is_relevant else text}")
    return [thumbnails.shown(query), _verdict(rank), "<br>".join(lines)]


def _caption_query(
    data: Prepared,
    split: Split,
    thumbnails: _Thumbnails,
    query: int,
    rank: int,
    images: Sequence[int],
) -> list[str]:
    own = split.group_of_caption[query]
    cells = [
        thumbnails.shown(int(image), framed=bool(split.group_of_image[image] == own))
        for image in images[:SHOWN]
    ]
    cells += [""] * (SHOWN - len(cells))
    return [f"{_text(data, split, query)}<br>{_verdict(rank)}", *cells]


def _verdict(rank: int) -> str:
    return "hit" if rank == 0 else f"miss: {rank + 1}"


def _text(data: Prepared, split: Split, caption: int) -> str:
    return escaped(data.captions["text"].iloc[int(split.caption_rows[caption])])


def _thumbnail(opened: Image.Image, framed: bool) -> Image.Image:
    side = SIDE - 2 * FRAME if framed else SIDE
    small = opened.convert("RGB")
    small.thumbnail((side, side))
    return ImageOps.expand(small, border=FRAME, fill=GREEN) if framed else small
