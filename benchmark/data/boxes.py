"""Boxes x0, y0, x1, y1 in pixels of a picture, half-open: (..., 4). Knows no torch.

A box without area is none: feature folders fill up with them where a picture has fewer proposals
than others.
"""

import numpy as np

CORNERS = ["x0", "y0", "x1", "y1"]  # columns of the region table


def area(boxes: np.ndarray) -> np.ndarray:
    """In square pixels, (...)."""
    return np.clip(boxes[..., 2:] - boxes[..., :2], 0, None).prod(-1)


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union (...) of boxes that broadcast against each other; 0 where neither
    has an area. Pixels that are counted inclusively, as the two-branch paper's evaluation does,
    give the same number: half-open boxes end one pixel later."""
    low = np.maximum(boxes[..., :2], others[..., :2])
    high = np.minimum(boxes[..., 2:], others[..., 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    either = area(boxes) + area(others) - shared
    return np.divide(shared, either, out=np.zeros_like(either), where=either > 0)
