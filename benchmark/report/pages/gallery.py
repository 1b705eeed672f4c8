"""Hits and misses: a few queries of each direction with what was retrieved.

Relevant items share the group of the query: the captions of an image, the pictures of a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from benchmark.analysis.boards import Outcome
from benchmark.core.files import atomic
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.report.markdown import bold, escaped, picture, pipe_table
from datasets import OpenPicture

EACH = 3  # hits, and as many misses, of each direction
SHOWN = 5  # retrieved items of a query
SIDE = 128  # pixels of a thumbnail, at most
FRAME, GREEN = 4, "#009E73"


@dataclass(frozen=True, kw_only=True)
class ThumbnailFolder:
    """Where the thumbnails of a page are saved."""

    folder: Path
    link: str  # from the page to the folder


class _Thumbnails:
    """Writes the thumbnails that a page shows; `written` lists their files."""

    def __init__(
        self, data: Prepared, split: Split, open_picture: OpenPicture, saved_in: ThumbnailFolder
    ):
        self.data, self.split, self.open_picture, self.saved_in = (
            data,
            split,
            open_picture,
            saved_in,
        )
        self.written: list[Path] = []

    def shown(self, image: int, framed: bool = False) -> str:
        """Markdown of test image number `image`, with its first caption as alternative text."""
        row = int(self.split.image_rows[image])
        name = f"{row:06d}{'-relevant' if framed else ''}.png"
        path = self.saved_in.folder / name
        if path not in self.written:
            opened = self.open_picture(self.data.images["file"].iloc[row])
            with atomic(path) as part:
                _thumbnail(opened, framed).save(part, format="PNG")
            self.written.append(path)
        first = int(np.flatnonzero(self.split.image_of_caption == image)[0])
        text = self.data.captions["text"].iloc[int(self.split.caption_rows[first])]
        return picture(f"picture: {text}", self.saved_in.link + name)


def gallery(
    data: Prepared,
    split: Split,
    outcome: Outcome,
    open_picture: OpenPicture,
    saved_in: ThumbnailFolder,
) -> tuple[str, list[Path]]:
    """Markdown of a cell's hits and misses, and the thumbnails written for it."""
    thumbnails = _Thumbnails(data, split, open_picture, saved_in)
    retrieved = outcome.arrays("scores/retrieved.npz")
    parts = [
        "A hit has a relevant item in the first position; the number of a miss is the position of "
        "its first relevant item, ties counted against the method."
    ]
    if "i2t" in retrieved:
        of_images = [
            _image_query(data, split, thumbnails, query, rank, retrieved["i2t"][query])
            for query, rank in chosen(outcome.ranks("i2t"))
        ]
        parts += [
            "Picture to captions. Captions of the picture are **bold**.",
            pipe_table(["picture", "result", "first five captions"], of_images, "lll"),
        ]
    of_captions = [
        _caption_query(data, split, thumbnails, query, rank, retrieved["t2i"][query])
        for query, rank in chosen(outcome.ranks("t2i"))
    ]
    positions = [f"{position}." for position in range(1, SHOWN + 1)]
    whose = "The caption's own picture has" if "i2t" in retrieved else "Pictures of its person have"
    parts += [
        f"Caption to pictures. {whose} a green frame.",
        pipe_table(["caption", *positions], of_captions, "l" * (1 + SHOWN)),
    ]
    return "\n\n".join(parts), thumbnails.written


def chosen(ranks: np.ndarray, each: int = EACH) -> list[tuple[int, int]]:
    """Query and rank of up to `each` hits and `each` misses, hits first.

    A hit has rank 0. Both kinds are evenly spaced over the queries, and not picked by hand.
    """
    hits, misses = np.flatnonzero(ranks == 0), np.flatnonzero(ranks > 0)
    picked = [*evenly(hits, each), *evenly(misses, each)]
    return [(query, int(ranks[query])) for query in picked]


def evenly(rows: np.ndarray, count: int) -> list[int]:
    """`count` of the rows, each from the middle of its share; all of them if there are fewer."""
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
    for position, caption in enumerate(captions[:SHOWN], 1):
        text = _text(data, split, caption)
        is_relevant = split.group_of_caption[caption] == split.group_of_image[query]
        lines.append(f"{position}. {bold(text) if is_relevant else text}")
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
    pictures = [
        thumbnails.shown(int(image), framed=bool(split.group_of_image[image] == own))
        for image in images[:SHOWN]
    ]
    pictures += [""] * (SHOWN - len(pictures))
    return [f"{_text(data, split, query)}<br>{_verdict(rank)}", *pictures]


def _verdict(rank: int) -> str:
    return "hit" if rank == 0 else f"miss: {rank + 1}"


def _text(data: Prepared, split: Split, caption: int) -> str:
    return escaped(data.captions["text"].iloc[int(split.caption_rows[caption])])


def _thumbnail(opened: Image.Image, framed: bool) -> Image.Image:
    side = SIDE - 2 * FRAME if framed else SIDE
    small = opened.convert("RGB")
    small.thumbnail((side, side))
    return ImageOps.expand(small, border=FRAME, fill=GREEN) if framed else small
