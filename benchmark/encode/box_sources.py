"""Where things may be in a picture: boxes of selective search or of files, and how they overlap.

Boxes are x0, y0, x1, y1 in pixels of the picture, half-open: the width is x1 - x0.
"""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import loadmat
from scipy.io.matlab import MatReadError
from scipy.ndimage import find_objects
from skimage.segmentation import felzenszwalb

from benchmark.core.errors import UserError

COUNT = 200  # proposals of a picture, as in the two-branch paper, Section 4

# Of the segments that selective search starts from (Felzenszwalb and Huttenlocher 2004), chosen on
# training scenes of `shapes`; Uijlings et al. smooth more (0.8), which loses the smallest things.
SMOOTHING, SCALE = 0.5, 100
LEAST_SHARE = 0.001  # of the picture that a segment covers at least
LONG_SIDE = 256  # pixels; a larger picture is shrunk first: what is named is never that small
BINS = 25  # of a colour histogram, for each channel (Uijlings et al. 2013, Section 3.2)

OUTSIDE = 1.0  # pixels that a box of a file may reach out of its picture; it is cut there
BAD_FILE = (OSError, ValueError, TypeError, IndexError, EOFError, MatReadError)
BAD_FILE += (zipfile.BadZipFile, zlib.error, NotImplementedError)  # the last for .mat v7.3


def selective_search(picture: Image.Image, count: int = COUNT) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, all different; the same picture gives the same boxes.

    Uijlings et al. 2013 with one grouping: the two neighbouring segments that are most alike become
    one, until one is left, and every segment on the way gives a box. Alike in colour, small, and
    filling their common box; texture is left out, which changes next to nothing here.
    Order: the last made first, so the whole picture leads. The paper shuffles this order, so that
    its many groupings mix; there is one here.
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
    """Parts of a picture, n at first. Merging writes the whole into one part, and the other one
    is no neighbour of any from then on."""

    pixels: int  # of the picture
    boxes: np.ndarray  # (n, 4)
    sizes: np.ndarray  # (n,) pixels
    colours: np.ndarray  # (n, 3 * BINS), a histogram for each channel, 3 in all
    near: np.ndarray  # (n, n) bool: neighbours

    @classmethod
    def of(cls, labels: np.ndarray, pixels: np.ndarray) -> "_Segments":
        sizes = np.bincount(labels.ravel())
        places = [(x.start, y.start, x.stop, y.stop) for y, x in find_objects(labels + 1)]
        return cls(
            pixels=labels.size,
            boxes=np.array(places, dtype=np.float64),
            sizes=sizes.astype(np.float64),
            colours=_histograms(labels, pixels, len(sizes)) / sizes[:, None],
            near=_neighbours(labels, len(sizes)),
        )

    def likeness(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Of pairs of segments: s_colour + s_size + s_fill of Uijlings et al., in [0, 5]: each of
        the three channels counts as much as size or fill."""
        both = self.sizes[first] + self.sizes[second]
        near = np.minimum(self.boxes[first, :2], self.boxes[second, :2])
        far = np.maximum(self.boxes[first, 2:], self.boxes[second, 2:])
        unfilled = (far - near).prod(1) - both
        colour = np.minimum(self.colours[first], self.colours[second]).sum(1)
        return colour + (1 - both / self.pixels) + (1 - unfilled / self.pixels)

    def merge(self, kept: int, other: int) -> None:
        pair = [kept, other]
        self.boxes[kept] = union(self.boxes[pair])
        self.colours[kept] = np.average(self.colours[pair], axis=0, weights=self.sizes[pair])
        self.sizes[kept] = self.sizes[pair].sum()
        self.near[kept] |= self.near[other]
        self.near[:, kept] = self.near[kept]
        self.near[other] = self.near[:, other] = False
        self.near[kept, kept] = False


def _histograms(labels: np.ndarray, pixels: np.ndarray, count: int) -> np.ndarray:
    """Pixels of each segment in each bin of each channel: (count, 3 * BINS)."""
    bins = pixels.reshape(-1, 3).astype(np.int64) * BINS // 256 + np.arange(3) * BINS
    rows = labels.reshape(-1, 1) * 3 * BINS
    return np.bincount((rows + bins).ravel(), minlength=count * 3 * BINS).reshape(count, -1)


def _neighbours(labels: np.ndarray, count: int) -> np.ndarray:
    """(count, count) bool: segments that share an edge between two pixels."""
    near = np.zeros((count, count), bool)
    near[labels[:, :-1], labels[:, 1:]] = True
    near[labels[:-1], labels[1:]] = True
    near |= near.T
    np.fill_diagonal(near, False)
    return near


def _grouped(segments: _Segments) -> np.ndarray:
    """Boxes (2n - 1, 4): of the n segments, then of each one that merging makes."""
    found = list(segments.boxes.copy())
    alike = np.full(segments.near.shape, -np.inf)
    rows, columns = segments.near.nonzero()
    alike[rows, columns] = segments.likeness(rows, columns)
    for _ in range(len(found) - 1):
        kept, other = (int(i) for i in np.unravel_index(alike.argmax(), alike.shape))
        segments.merge(kept, other)
        found.append(segments.boxes[kept].copy())
        alike[[kept, other]] = alike[:, [kept, other]] = -np.inf
        others = segments.near[kept].nonzero()[0]
        alike[kept, others] = segments.likeness(np.full_like(others, kept), others)
        alike[others, kept] = alike[kept, others]
    return np.array(found)


def from_files(
    folder: Path, image_id: str, size: tuple[int, int], count: int = COUNT
) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, by falling score, or as filed where there are no scores.

    <image_id>.npz has `boxes` (n, 4) as everywhere here, and may have `scores` (n,).
    <image_id>.mat has `bbs` (n, 4 or 5) as EdgeBoxes gives it: x, y, w, h and perhaps the score,
    from pixel 1. The two-branch authors' own evaluation reads it as the corners x, y, x + w, y + h,
    both inclusive, so it becomes x - 1, y - 1, x + w, y + h here.
    A box may reach OUTSIDE pixels out of the picture of `size` (width, height).
    Raises UserError where there is no such file, and for boxes that cannot be.
    """
    path = _box_file(folder, image_id)
    boxes, scores = (_of_npz if path.suffix == ".npz" else _of_mat)(path)
    _check_boxes(path, boxes, size)
    order = np.argsort(-scores, kind="stable")[:count]
    return boxes[order].clip(0, [*size, *size]).astype(np.float32)


def _box_file(folder: Path, image_id: str) -> Path:
    paths = [folder / f"{image_id}{suffix}" for suffix in (".npz", ".mat")]
    found = [path for path in paths if path.is_file()]
    if not found:
        raise UserError(
            f"{paths[0]}: not found, nor {paths[1].name}; expected the boxes of every image; "
            f"place them there, or mend `boxes` of the season's proposals"
        )
    return found[0]


def _of_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("boxes", "scores") if name in file}
    except BAD_FILE as error:
        raise _unreadable(path, "an .npz file of plain arrays", error) from error
    boxes = _numbers(path, "boxes", arrays.get("boxes"), columns=(4,))
    scores = _numbers(path, "scores", arrays.get("scores", np.zeros(len(boxes))), columns=())
    if len(scores) != len(boxes):
        raise UserError(
            f"{path}: scores: expected {len(boxes)}, one for each box, found {len(scores)}; "
            f"write the file again"
        )
    return boxes, scores


def _of_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        filed = loadmat(path).get("bbs")
    except BAD_FILE as error:
        raise _unreadable(path, "a .mat file, version 7 or older", error) from error
    bbs = _numbers(path, "bbs", filed, columns=(4, 5))
    near = bbs[:, :2] - 1
    far = bbs[:, :2] + bbs[:, 2:4]
    scores = bbs[:, 4] if bbs.shape[1] == 5 else np.zeros(len(bbs))
    return np.concatenate([near, far], axis=1), scores


def _unreadable(path: Path, expected: str, error: Exception) -> UserError:
    reason = str(error).strip().partition("\n")[0]
    return UserError(f"{path}: expected {expected}, found something else ({reason}); save it again")


def _numbers(path: Path, name: str, values: object, columns: tuple[int, ...]) -> np.ndarray:
    """`values` as float64, (n,) where there are no `columns`, else (n, one of them)."""
    shapes = " or ".join(f"(n, {width})" for width in columns) or "(n,)"
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        found = "nothing" if values is None else "something else"
        raise UserError(f"{path}: {name}: expected numbers {shapes}, found {found}; save it again")
    if values.ndim != 1 + bool(columns) or (columns and values.shape[1] not in columns):
        raise UserError(
            f"{path}: {name}: expected shape {shapes}, found {values.shape}; save it again"
        )
    if not np.isfinite(values).all():
        row = np.argwhere(~np.isfinite(values))[0][0] + 1
        raise UserError(
            f"{path}: {name}: row {row}: expected finite numbers, found NaN or infinity; "
            f"save it again"
        )
    return values.astype(np.float64)


def _check_boxes(path: Path, boxes: np.ndarray, size: tuple[int, int]) -> None:
    """Refuse boxes without area inside the picture, and those that reach out of it."""
    inside = boxes.clip(0, [*size, *size])
    empty = (inside[:, 2:] <= inside[:, :2]).any(1)
    bad = np.flatnonzero(empty | (np.abs(boxes - inside) > OUTSIDE).any(1))
    if len(bad):
        found = ", ".join(f"{corner:g}" for corner in boxes[bad[0]])
        raise UserError(
            f"{path}: row {bad[0] + 1}: expected x0 < x1 and y0 < y1 inside a picture of "
            f"{size[0]} x {size[1]} pixels, found {found}; {len(bad)} such in all; are they boxes "
            f"of this picture, in its pixels?"
        )


def padded(boxes: np.ndarray, count: int) -> np.ndarray:
    """The first `count` rows of `boxes` (n, F), float32, with rows of zeros where n is less."""
    rows = np.zeros((count, boxes.shape[1]), np.float32)
    rows[: len(boxes)] = boxes[:count]
    return rows


def union(boxes: np.ndarray) -> np.ndarray:
    """The smallest box (4,) around all of `boxes` (n, 4), n >= 1."""
    return np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)])
