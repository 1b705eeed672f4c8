"""What warns of a row, before flags name it: test images with a twin in another
split, and its mean without their queries; a training's curve of validation rsum, which
still rose, or fell; and an rsum that random scores nearly reach.

A history of a training has one list per column, with a value for each epoch:
`val_rsum`, and `learning_rate` where the training has one.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import ceil
from statistics import fmean

import numpy as np

from benchmark.boards.boards import Board, Row
from benchmark.scoring.metrics import SUMMED_K, query_terms

TEST = "test: "  # how cards begin the name of a test image
LAST_SHARE = 3  # the end of a training is its last third of epochs,
FEWEST = 3  # or these, if a third is fewer
FIRST_SHARE = 4  # its beginning is the first quarter
TOLERANCE = 0.01  # a gain of less than this share of the best value is none
TIMES = 3  # times the rsum of random scores: less is near chance


def named_twins(card: dict) -> frozenset[str]:
    """Files of the test images that the card names as twins of one in another split: of
    those of the nearest pairs."""
    leakage = card.get("leakage", {})
    nearly = [alike[:2] for alike in leakage.get("near_pictures", [])]
    names = chain.from_iterable([*leakage.get("pictures", []), *nearly])
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
            ranks = outcome.scores.ranks[term.rank_key].at(kept_Q)
            value += float(term.of_queries(ranks).mean())
        values.append(value)
    return fmean(values)


@lru_cache(maxsize=8)
def _without_twin(board: Board) -> np.ndarray:
    """(I,) which test images have no named twin."""
    images = board.data.images
    files = images.loc[images["split"] == "test", "file"].to_numpy()
    return ~np.isin(files, list(named_twins(board.card)))


# Curves of trainings ------------------------------------------------------------------


def gain(history: dict[str, list]) -> float | None:
    """How much the validation rsum rose over the last third of the epochs, by a
    straight line, as a share of its best value; None for fewer than two epochs.

    Epochs before the last change of the learning rate are left out where three or more
    follow it: the rise at the change itself says nothing of what comes.
    """
    values_E = np.array(history.get("val_rsum", []), dtype=float)
    count = len(values_E)
    if count < 2 or values_E.max() <= 0:
        return None
    start = max(0, count - max(FEWEST, ceil(count / LAST_SHARE)))
    rates_E = history.get("learning_rate", np.ones(count))
    changed = np.flatnonzero(np.diff(rates_E)) + 1
    if len(changed) and count - changed[-1] >= FEWEST:
        start = max(start, changed[-1])
    last_E = values_E[start:]
    slope = np.polyfit(np.arange(len(last_E)), last_E, 1)[0]
    return float(slope * (len(last_E) - 1) / values_E.max())


def is_rising(history: dict[str, list]) -> bool | None:
    """Whether the training would have gone on improving; None: it has too few epochs to
    tell."""
    rise = gain(history)
    return None if rise is None else rise > TOLERANCE


def is_early(history: dict[str, list]) -> bool | None:
    """Whether the best epoch lies in the first quarter and validation fell afterwards,
    as where the rate is too high or the model over-fits; None: it has too few epochs to
    tell."""
    values_E = np.array(history.get("val_rsum", []), dtype=float)
    if len(values_E) < FIRST_SHARE or values_E.max() <= 0:
        return None
    is_in_quarter = FIRST_SHARE * (values_E.argmax() + 1) <= len(values_E)
    return bool(is_in_quarter and values_E[-1] < (1 - TOLERANCE) * values_E.max())


# Chance -------------------------------------------------------------------------------


def choices_of(group_of_image: np.ndarray) -> float:
    """How many images there are for each relevant one, over captions that search them:
    all, or fewer where several images of a group are relevant."""
    sizes = np.bincount(group_of_image)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def rsum_by_chance(ways: int, images: float) -> float:
    """The rsum of random scores, with these directions and so many images for each
    relevant one."""
    return ways * 100 * sum(min(k, images) for k in SUMMED_K) / images


def is_near_chance(rsum: float, ways: int, images: float) -> bool:
    """Whether an rsum is less than TIMES that of random scores. Of few images many are
    right by chance: there, the rsum must only be nearer to perfect scores than to
    random ones."""
    by_chance = rsum_by_chance(ways, images)
    perfect = ways * 100 * len(SUMMED_K)
    return rsum < min(TIMES * by_chance, (by_chance + perfect) / 2)


def near_chance(rsum: float, ways: int, images: float) -> str:
    """A sentence on an rsum that is near that of random scores; "" of a better one."""
    if not is_near_chance(rsum, ways, images):
        return ""
    by_chance = rsum_by_chance(ways, images)
    return f"rsum {rsum:.1f} is less than {TIMES} times the {by_chance:.1f} of random scores"


# The best of many rows ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The rows of a task that the best one was chosen from."""

    rows: int
    corrected: int  # rows of corrected scores
    bases: int  # rows that have such a row beside them
    tried: int  # rows whose own settings were tried on validation
    is_tried: bool  # whether the best row, or what it is made of, is one of these
    best: Row
    uncorrected: Row | None  # the best without a correction
    validated: int  # rows with epochs that were validated
    on_validation: Row | None  # the best of these there, by its mean over the seeds


def choice_of(board: Board) -> Choice | None:
    """Of a board of one task, by the metric that ranks; None without a result."""
    ranked = board.ranked
    if not ranked:
        return None
    corrected = [row for row in ranked if is_corrected(row)]
    plain = [row for row in ranked if row not in corrected]
    bases = {preset for row in corrected for preset in _members(row)}
    validated = [row for row in ranked if row.validation]
    return Choice(
        rows=len(ranked),
        corrected=len(corrected),
        bases=len(bases),
        tried=sum(row.preset in board.tried for row in ranked),
        is_tried=any(name in board.tried for name in _members(ranked[0])),
        best=ranked[0],
        uncorrected=plain[0] if plain else None,
        validated=len(validated),
        on_validation=max(validated, key=validation_of, default=None),
    )


def _members(row: Row) -> list[str]:
    """The presets whose scores it is made of, itself where it has its own."""
    fuse = row.declared.fuse
    return [member for member, _ in fuse.members] if fuse else [row.preset]


def is_corrected(row: Row) -> bool:
    """Whether its scores are corrected for hubs."""
    return "correction" in row.played[0].record.metrics


def validation_of(row: Row) -> float:
    """The best validation rsum, mean over the seeds that have one."""
    return fmean(row.validation.values())
