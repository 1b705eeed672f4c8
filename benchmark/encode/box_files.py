"""Boxes that the user has as files, one file per picture. Knows no torch.

Boxes are x0, y0, x1, y1 in pixels of the picture, half-open: the width is x1 - x0.
"""

from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError
from benchmark.encode import mat_files
from benchmark.encode.mat_files import BAD_MAT
from datasets import DataError
from datasets.shared import archives, name_checks, npy_files
from datasets.shared.plain_files import is_file

OUTSIDE = 1.0  # pixels by which a box may reach out of its picture; it is cut at the border
LARGEST = 1 << 26  # bytes of an array of a picture's boxes
SAVE_AGAIN = "save the file again"


def read_boxes(folder: Path, image_id: str, size: tuple[int, int], count: int) -> np.ndarray:
    """Boxes (n, 4) float32, n <= `count`, by falling score; in the file's order without scores.

    <image_id>.npz holds `boxes` (n, 4), half-open, and may hold `scores` (n,).
    <image_id>.mat holds `bbs` (n, 4 or 5) of EdgeBoxes: x, y, w, h, from pixel 1, and perhaps the
    score. The two-branch authors' evaluation reads it as the inclusive corners x, y, x + w, y + h,
    so it becomes x - 1, y - 1, x + w, y + h here.
    `size` is the picture's (width, height); a box may reach OUTSIDE pixels out of it.
    Raises UserError if there is no such file, and for a malformed one.
    """
    path = _path(folder, image_id)
    boxes, scores = (_from_npz if path.suffix == ".npz" else _from_mat)(path)
    _check_boxes(path, boxes, size)
    order = np.argsort(-scores, kind="stable")[:count]
    return boxes[order].clip(0, [*size, *size]).astype(np.float32)


def _path(folder: Path, image_id: str) -> Path:
    name = name_checks.inside(image_id, f"{folder}: {image_id!r:.200}", "give the image a plain id")
    paths = [folder / f"{name}{suffix}" for suffix in (".npz", ".mat")]
    for path in paths:
        if is_file(path):
            return path
    raise UserError(
        where=paths[0],
        expected=f"the boxes of every image, in this file or in {paths[1].name}",
        found="neither",
        do="place them there, or correct `boxes` of the season's proposals",
    )


def _from_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = _arrays(path, ("boxes", "scores"))
    boxes = _numbers(path, "boxes", arrays.get("boxes"), columns=(4,))
    scores = _numbers(path, "scores", arrays.get("scores", np.zeros(len(boxes))), columns=())
    if len(scores) != len(boxes):
        raise UserError(
            where=f"{path}: scores",
            expected=f"{len(boxes)}, one per box",
            found=len(scores),
            do=SAVE_AGAIN,
        )
    return boxes, scores


def _arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the arrays that an .npz file has; never unpickled."""
    try:
        with archives.unzipped(path) as zipped:
            infos = {info.filename.removesuffix(".npy"): info for info in zipped.infolist()}
            return {
                name: npy_files.array_of(
                    archives.read_member(zipped, infos[name], f"{path}: {name}", LARGEST)
                )
                for name in names
                if name in infos
            }
    except DataError as error:
        raise _unreadable(path, "an .npz file of plain arrays", error.found) from error
    except archives.DAMAGED as error:
        raise _unreadable(path, "an .npz file of plain arrays", error) from error


def _from_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        found = mat_files.variables(path)
        values = mat_files.variable(path, "bbs") if "bbs" in found else None
    except DataError:
        raise
    except BAD_MAT as error:
        raise _unreadable(path, "a .mat file, version 7 or older", error) from error
    bbs = _numbers(path, "bbs", values, columns=(4, 5))
    low = bbs[:, :2] - 1
    high = bbs[:, :2] + bbs[:, 2:4]
    scores = bbs[:, 4] if bbs.shape[1] == 5 else np.zeros(len(bbs))
    return np.concatenate([low, high], axis=1), scores


def _unreadable(path: Path, expected: str, error: object) -> UserError:
    reason = str(error).strip().partition("\n")[0]
    found = f"something else ({reason})"
    return UserError(where=path, expected=expected, found=found, do=SAVE_AGAIN)


def _numbers(path: Path, name: str, values: object, columns: tuple[int, ...]) -> np.ndarray:
    """`values` as float64: (n,) if `columns` is empty, else (n, c) with c one of `columns`."""
    where = f"{path}: {name}"
    shapes = " or ".join(f"(n, {width})" for width in columns) or "(n,)"
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        found = "nothing" if values is None else "something else"
        raise UserError(where=where, expected=f"numbers {shapes}", found=found, do=SAVE_AGAIN)
    if values.ndim != 1 + bool(columns) or (columns and values.shape[1] not in columns):
        raise UserError(where=where, expected=f"shape {shapes}", found=values.shape, do=SAVE_AGAIN)
    if not np.isfinite(values).all():
        row = np.argwhere(~np.isfinite(values))[0][0] + 1
        raise UserError(
            where=f"{where}: row {row}",
            expected="finite numbers",
            found="NaN or infinity",
            do=SAVE_AGAIN,
        )
    return values.astype(np.float64)


def _check_boxes(path: Path, boxes: np.ndarray, size: tuple[int, int]) -> None:
    """Refuse boxes without area inside the picture, and boxes that reach out of it."""
    inside = boxes.clip(0, [*size, *size])
    empty = (inside[:, 2:] <= inside[:, :2]).any(1)
    bad = np.flatnonzero(empty | (np.abs(boxes - inside) > OUTSIDE).any(1))
    if len(bad):
        corners = ", ".join(f"{corner:g}" for corner in boxes[bad[0]])
        raise UserError(
            where=f"{path}: row {bad[0] + 1}",
            expected=f"x0 < x1 and y0 < y1 inside a picture of {size[0]} x {size[1]} pixels",
            found=f"{corners}, and {len(bad)} such rows in all",
            do="check that the boxes are of this picture and in its pixels",
        )
