"""Test images with a twin in another split, and a row's mean without their queries."""

from functools import lru_cache
from statistics import fmean

import numpy as np

from benchmark.boards.boards import Board, Row
from benchmark.scoring.metrics import query_terms

TEST = "test: "  # how cards begin the name of a test image


def named_twins(card: dict) -> frozenset[str]:
    """Files of the test images that the card names as twins of one in another split: of
    those of the nearest pairs."""
    leakage = card.get("leakage", {})
    names = []
    for alike in leakage.get("pictures", []):
        names += alike
    for alike in leakage.get("near_pictures", []):
        names += alike[:2]
    return frozenset(name.removeprefix(TEST) for name in names if name.startswith(TEST))


def twins_in_all(card: dict) -> int:
    """How many test images have a twin, named or not: equal ones are near ones, too."""
    items = card.get("leakage", {}).get("items", {})
    kinds = ("pictures", "near_pictures")
    return max((items.get(kind, {}).get("test", 0) for kind in kinds), default=0)


def without_twins(board: Board, row: Row, metric: str) -> float | None:
    """A mean over queries, or rsum, over the queries of test images without a named
    twin in another split; mean over the seeds. None where no query is left. What is
    left out may still be found, since a cell keeps ranks and no scores."""
    is_kept, images_of, values = _without_twin(board), board.groups.image_of_query, []
    for outcome in row.played:
        terms = query_terms(metric, outcome.record.metrics)
        if not terms:
            return None
        value = 0.0
        for term in terms:
            kept_Q = is_kept[images_of[term.direction]]
            if not kept_Q.any():
                return None
            ranks = outcome.scores.ranks[term.ranks].at(kept_Q)
            value += float(term.of_queries(ranks).mean())
        values.append(value)
    return fmean(values)


@lru_cache(maxsize=8)
def _without_twin(board: Board) -> np.ndarray:
    """(I,) which test images have no named twin."""
    images = board.data.images
    files = images.loc[images["split"] == "test", "file"].to_numpy()
    return ~np.isin(files, list(named_twins(board.card)))
