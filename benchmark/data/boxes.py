"""Boxes x0, y0, x1, y1 in pixels of a picture, half-open: the width is x1 - x0. Knows no torch.

Arrays of boxes are (..., 4). A box without area stands for no box: feature folders are padded with
them where a picture has fewer proposals than others.
"""

import numpy as np

CORNERS = ["x0", "y0", "x1", "y1"]  # columns of the region table


def area(boxes: np.ndarray) -> np.ndarray:
    """Areas (...) in square pixels; 0 where a box ends before it starts."""
    return np.clip(boxes[..., 2:] - boxes[..., :2], 0, None).prod(-1)


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union (...), in [0, 1], of boxes that broadcast against each other.

    It is 0 where neither box has an area. Inclusive pixel coordinates, as in the two-branch
    paper's evaluation, give the same number: half-open boxes end one pixel later.
    """
    low = np.maximum(boxes[..., :2], others[..., :2])
    high = np.minimum(boxes[..., 2:], others[..., 2:])
    intersection = np.clip(high - low, 0, None).prod(-1)
    total = area(boxes) + area(others) - intersection
    return np.divide(intersection, total, out=np.zeros_like(total), where=total > 0)


def union(boxes: np.ndarray) -> np.ndarray:
    """The smallest box (4,) around all of `boxes` (n, 4), n >= 1."""
    return np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)])
