"""Proposals of where things are: selective search (Uijlings et al. 2013), or the user's
files.

Boxes are x0, y0, x1, y1 in pixels of the image, half-open: the width is x1 - x0.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import find_objects
from skimage.segmentation import felzenszwalb

from benchmark.core import names
from benchmark.core.errors import UserError
from benchmark.core.files import is_file, readable
from benchmark.features import mat_files
from benchmark.readers import archives

COUNT = 200  # proposals per image; two-branch paper, Section 4

# The initial segments (Felzenszwalb and Huttenlocher 2004). Chosen on training scenes
# of `shapes`; Uijlings et al. smooth more (0.8), which loses the smallest things.
SMOOTHING, SCALE = 0.5, 100
LEAST_SHARE = 0.001  # of the image: the size of the smallest segment
# pixels; larger images are shrunk, since captions name nothing that small
LONG_SIDE = 256
BINS = 25  # of a colour histogram, per channel; Uijlings et al. 2013, Section 3.2

# pixels by which a box may reach out of its image; it is cut at the border
OUTSIDE = 1.0
LARGEST = 1 << 26  # bytes of an array of an image's boxes
SAVE_AGAIN = "save the file again"


def selective_search(image: Image.Image, count: int = COUNT) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, all different. Deterministic.

    Uijlings et al. 2013 with a single grouping: the two most similar neighbouring
    segments are merged until one is left, and every segment on the way gives a box.
    Similarity is that of colour, size and fill; texture is left out, which changes next
    to nothing here. Boxes come in the reverse order of merging, the whole image first.
    The paper shuffles this order to mix its many groupings; here there is only one.
    """
    ratio = LONG_SIDE / max(image.size)
    small = image
    if ratio < 1:
        width, height = (max(1, round(side * ratio)) for side in image.size)
        small = image.resize((width, height), Image.Resampling.BILINEAR)
    least = max(1, round(LEAST_SHARE * small.width * small.height))
    pixels = np.asarray(small)
    labels = felzenszwalb(pixels, scale=SCALE, sigma=SMOOTHING, min_size=least)
    boxes = _grouped(labels, pixels)[::-1]
    _, first = np.unique(boxes, axis=0, return_index=True)
    distinct = boxes[np.sort(first)]
    across = image.width / small.width
    down = image.height / small.height
    zoom = np.array([across, down, across, down])
    return (distinct[:count] * zoom).astype(np.float32)


def _grouped(labels: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Boxes (2n - 1, 4): those of the n segments, then that of each merged segment.

    Merging two segments overwrites one with their union; the other has no neighbours
    from then on.
    """
    sizes = np.bincount(labels.ravel()).astype(np.float64)  # in pixels
    count = len(sizes)
    corners = []
    for rows, columns in find_objects(labels + 1):
        corners.append((columns.start, rows.start, columns.stop, rows.stop))
    boxes = np.array(corners, dtype=np.float64)
    colours = _histograms(labels, pixels, count) / sizes[:, None]
    # Neighbours share an edge between two pixels, (n, n) bool.
    near = np.zeros((count, count), bool)
    near[labels[:, :-1], labels[:, 1:]] = True
    near[labels[:-1], labels[1:]] = True
    near |= near.T
    np.fill_diagonal(near, False)

    def similarities(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Of pairs of segments, in [0, 5]: s_colour + s_size + s_fill of the paper.

        s_colour is in [0, 3], since each of the three channels counts as much as size
        or fill.
        """
        size = sizes[first] + sizes[second]
        low = np.minimum(boxes[first, :2], boxes[second, :2])
        high = np.maximum(boxes[first, 2:], boxes[second, 2:])
        unfilled = (high - low).prod(1) - size
        s_colour = np.minimum(colours[first], colours[second]).sum(1)
        s_size = 1 - size / labels.size
        s_fill = 1 - unfilled / labels.size
        return s_colour + s_size + s_fill

    history = [*boxes.copy()]
    similarity = np.full(near.shape, -np.inf)
    rows, columns = near.nonzero()
    similarity[rows, columns] = similarities(rows, columns)
    for _ in range(count - 1):
        nearest = np.unravel_index(similarity.argmax(), similarity.shape)
        kept, other = map(int, nearest)
        pair = [kept, other]
        boxes[kept] = _union(boxes[pair])
        colours[kept] = np.average(colours[pair], axis=0, weights=sizes[pair])
        sizes[kept] = sizes[pair].sum()
        near[kept] |= near[other]
        near[:, kept] = near[kept]
        near[other] = near[:, other] = False
        near[kept, kept] = False
        history.append(boxes[kept].copy())
        similarity[pair] = similarity[:, pair] = -np.inf
        (others,) = near[kept].nonzero()
        to_others = similarities(np.full_like(others, kept), others)
        similarity[kept, others] = to_others
        similarity[others, kept] = to_others
    return np.array(history)


def _union(boxes: np.ndarray) -> np.ndarray:
    """The smallest box (4,) around all of `boxes` (n, 4), n >= 1."""
    return np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)])


def _histograms(labels: np.ndarray, pixels: np.ndarray, count: int) -> np.ndarray:
    """How many pixels of each of `count` segments are in each bin, (n, 3 * BINS): a
    histogram per channel."""
    colour_bins = pixels.reshape(-1, 3).astype(np.int64) * BINS // 256
    bins = colour_bins + np.arange(3) * BINS
    cells = (labels.reshape(-1, 1) * 3 * BINS + bins).ravel()
    counts = np.bincount(cells, minlength=count * 3 * BINS)
    return counts.reshape(count, -1)


def read_boxes(
    folder: Path,
    image_id: str,
    size: tuple[int, int],
    count: int,
) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, by falling score; in the file's order without
    scores.

    <image_id>.npz holds `boxes` (n, 4), half-open, and may hold `scores` (n,).
    <image_id>.mat holds `bbs` (n, 4 or 5) of EdgeBoxes: x, y, w, h, from pixel 1, and
    perhaps the score. The two-branch authors' evaluation reads it as the inclusive
    corners x, y, x + w, y + h, so it becomes x - 1, y - 1, x + w, y + h here. `size` is
    the image's (width, height); a box may reach OUTSIDE pixels out of it. Raises
    UserError if there is no such file, and for a malformed one.
    """
    where = f"{folder}: {image_id!r:.200}"
    name = names.inside(image_id, where, "give the image a plain id")
    path = folder / f"{name}.npz"
    other = folder / f"{name}.mat"
    if is_file(path):
        boxes, scores = _read_npz(path)
    elif is_file(other):
        path = other
        boxes, scores = _read_mat(path)
    else:
        raise UserError(
            path,
            expected=f"the boxes of every image, in this file or in {other.name}",
            found="neither",
            do="place them there, or correct `boxes` of the season's proposals",
        )
    if len(scores) != len(boxes):
        raise UserError(
            f"{path}: scores",
            expected=f"{len(boxes)}, one per box",
            found=len(scores),
            do=SAVE_AGAIN,
        )
    inside = boxes.clip(0, [*size, *size])
    empty = (inside[:, 2:] <= inside[:, :2]).any(1)
    bad = np.flatnonzero(empty | (np.abs(boxes - inside) > OUTSIDE).any(1))
    if len(bad):
        width, height = size
        corners = ", ".join(f"{corner:g}" for corner in boxes[bad[0]])
        raise UserError(
            f"{path}: row {bad[0] + 1}",
            expected=f"x0 < x1 and y0 < y1 in an image of {width} x {height} pixels",
            found=f"{corners} ({len(bad)} such rows in all)",
            do="check that the boxes are of this image and in its pixels",
        )
    order = np.argsort(-scores, kind="stable")[:count]
    return inside[order].astype(np.float32)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Boxes and scores."""
    with readable(path, "an .npz file of plain arrays", SAVE_AGAIN):
        arrays = archives.arrays_of(path, ("boxes", "scores"), LARGEST)
    boxes = _numbers(f"{path}: boxes", arrays.get("boxes"), (4,))
    scores = arrays.get("scores", np.zeros(len(boxes)))
    return boxes, _numbers(f"{path}: scores", scores, ())


def _read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The same of EdgeBoxes' format."""
    kinds = mat_files.REAL + mat_files.WHOLE
    values = mat_files.matrix(path, "bbs", "(n, 4) or (n, 5)", kinds)
    bbs = _numbers(f"{path}: bbs", values, (4, 5))
    starts = bbs[:, :2]
    sizes = bbs[:, 2:4]
    boxes = np.concatenate([starts - 1, starts + sizes], axis=1)
    has_scores = bbs.shape[1] == 5
    return boxes, bbs[:, 4] if has_scores else np.zeros(len(bbs))


def _numbers(
    where: str,
    values: np.ndarray | None,
    columns: tuple[int, ...],
) -> np.ndarray:
    """`values` as float64: (n,) if `columns` is empty, else (n, c) with c one of
    `columns`."""
    shapes = " or ".join(f"(n, {width})" for width in columns) or "(n,)"
    expected = f"numbers {shapes}"
    if values is None:
        raise UserError(
            where,
            expected=expected,
            found="nothing",
            do=SAVE_AGAIN,
        )
    fits = values.dtype.kind in "fiu" and values.ndim == 1 + bool(columns)
    if not fits or (columns and values.shape[1] not in columns):
        raise UserError(
            where,
            expected=expected,
            found=f"{values.dtype} {values.shape}",
            do=SAVE_AGAIN,
        )
    is_finite = np.isfinite(values)
    if not is_finite.all():
        row = np.argwhere(~is_finite)[0][0]
        raise UserError(
            f"{where}: row {row + 1}",
            expected="finite numbers",
            found="NaN or infinity",
            do=SAVE_AGAIN,
        )
    return values.astype(np.float64)
