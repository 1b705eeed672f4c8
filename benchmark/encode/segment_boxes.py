"""Selective search (Uijlings et al. 2013): boxes of segments that are merged step by step.

Boxes are x0, y0, x1, y1 in pixels of the picture, half-open: the width is x1 - x0.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy.ndimage import find_objects
from skimage.segmentation import felzenszwalb

from benchmark.data.boxes import union

COUNT = 200  # proposals per picture; two-branch paper, Section 4

# The initial segments (Felzenszwalb and Huttenlocher 2004). Chosen on training scenes of `shapes`;
# Uijlings et al. smooth more (0.8), which loses the smallest things.
SMOOTHING, SCALE = 0.5, 100
LEAST_SHARE = 0.001  # of the picture: the size of the smallest segment
LONG_SIDE = 256  # pixels; larger pictures are shrunk, since captions name nothing that small
BINS = 25  # of a colour histogram, per channel; Uijlings et al. 2013, Section 3.2


def selective_search(picture: Image.Image, count: int = COUNT) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, all different. Deterministic.

    Uijlings et al. 2013 with a single grouping: the two most similar neighbouring segments are
    merged until one is left, and every segment on the way gives a box. Similarity is that of
    colour, size and fill; texture is left out, which changes next to nothing here.
    Boxes come in the reverse order of merging, the whole picture first. The paper shuffles this
    order to mix its many groupings; here there is only one.
    """
    small = _shrunk(picture)
    least = max(1, round(LEAST_SHARE * small.width * small.height))
    pixels = np.asarray(small)
    labels = felzenszwalb(pixels, scale=SCALE, sigma=SMOOTHING, min_size=least)
    boxes = _grouped(_Segments.of(labels, pixels))[::-1]
    _, first = np.unique(boxes, axis=0, return_index=True)
    zoom = np.array([picture.width / small.width, picture.height / small.height] * 2)
    return (boxes[np.sort(first)][:count] * zoom).astype(np.float32)


def _shrunk(picture: Image.Image) -> Image.Image:
    ratio = LONG_SIDE / max(picture.size)
    if ratio >= 1:
        return picture
    width, height = (max(1, round(side * ratio)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR)


@dataclass(frozen=True)
class _Segments:
    """The n initial segments of a picture.

    Merging two of them overwrites one with their union; the other has no neighbours from then on.
    """

    pixels: int  # of the picture
    boxes: np.ndarray  # (n, 4)
    sizes: np.ndarray  # (n,) in pixels
    colours: np.ndarray  # (n, 3 * BINS), a histogram per channel that sums to 1
    near: np.ndarray  # (n, n) bool: whether two segments are neighbours

    @classmethod
    def of(cls, labels: np.ndarray, pixels: np.ndarray) -> "_Segments":
        sizes = np.bincount(labels.ravel())
        corners = [(x.start, y.start, x.stop, y.stop) for y, x in find_objects(labels + 1)]
        return cls(
            pixels=labels.size,
            boxes=np.array(corners, dtype=np.float64),
            sizes=sizes.astype(np.float64),
            colours=_histograms(labels, pixels, len(sizes)) / sizes[:, None],
            near=_neighbours(labels, len(sizes)),
        )

    def similarity(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Similarities, in [0, 5], of pairs of segments: s_colour + s_size + s_fill of the paper.

        s_colour is in [0, 3], since each of the three channels counts as much as size or fill.
        """
        size = self.sizes[first] + self.sizes[second]
        low = np.minimum(self.boxes[first, :2], self.boxes[second, :2])
        high = np.maximum(self.boxes[first, 2:], self.boxes[second, 2:])
        unfilled = (high - low).prod(1) - size
        colour = np.minimum(self.colours[first], self.colours[second]).sum(1)
        return colour + (1 - size / self.pixels) + (1 - unfilled / self.pixels)

    def merge(self, kept: int, other: int) -> None:
        """Overwrite segment `kept` with its union with `other`."""
        pair = [kept, other]
        self.boxes[kept] = union(self.boxes[pair])
        self.colours[kept] = np.average(self.colours[pair], axis=0, weights=self.sizes[pair])
        self.sizes[kept] = self.sizes[pair].sum()
        self.near[kept] |= self.near[other]
        self.near[:, kept] = self.near[kept]
        self.near[other] = self.near[:, other] = False
        self.near[kept, kept] = False


def _histograms(labels: np.ndarray, pixels: np.ndarray, count: int) -> np.ndarray:
    """How many pixels of each segment are in each bin of each channel, (count, 3 * BINS)."""
    bins = pixels.reshape(-1, 3).astype(np.int64) * BINS // 256 + np.arange(3) * BINS
    rows = labels.reshape(-1, 1) * 3 * BINS
    return np.bincount((rows + bins).ravel(), minlength=count * 3 * BINS).reshape(count, -1)


def _neighbours(labels: np.ndarray, count: int) -> np.ndarray:
    """Whether two segments share an edge between two pixels, (count, count) bool."""
    near = np.zeros((count, count), bool)
    near[labels[:, :-1], labels[:, 1:]] = True
    near[labels[:-1], labels[1:]] = True
    near |= near.T
    np.fill_diagonal(near, False)
    return near


def _grouped(segments: _Segments) -> np.ndarray:
    """Boxes (2n - 1, 4): those of the n segments, then that of each merged segment."""
    boxes = list(segments.boxes.copy())
    similarity = np.full(segments.near.shape, -np.inf)
    rows, columns = segments.near.nonzero()
    similarity[rows, columns] = segments.similarity(rows, columns)
    for _ in range(len(boxes) - 1):
        kept, other = (int(i) for i in np.unravel_index(similarity.argmax(), similarity.shape))
        segments.merge(kept, other)
        boxes.append(segments.boxes[kept].copy())
        similarity[[kept, other]] = similarity[:, [kept, other]] = -np.inf
        others = segments.near[kept].nonzero()[0]
        similarity[kept, others] = segments.similarity(np.full_like(others, kept), others)
        similarity[others, kept] = similarity[kept, others]
    return np.array(boxes)
