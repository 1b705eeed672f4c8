"""What a training's curve of validation rsum tells: did it still rise, did it fall.

A history has one list per column, with a value for each epoch: `val_rsum`, and
`learning_rate` where the training has one.
"""

import numpy as np

LAST_SHARE = 3  # the end of a training is its last third of epochs,
FEWEST = 3  # or these, if a third is fewer
FIRST_SHARE = 4  # its beginning is the first quarter
TOLERANCE = 0.01  # a gain of less than this share of the best value is none


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
    third = -(-count // LAST_SHARE)
    start = max(0, count - max(FEWEST, third))
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
