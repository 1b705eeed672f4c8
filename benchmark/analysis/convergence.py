"""Whether a training still improved when its budget ended, or was best long before. Knows no
torch."""

import numpy as np
import pandas as pd

from benchmark.analysis.boards import Outcome

SHARE = 3  # the last third of the epochs is looked at
FEWEST = 3  # or so many, and as many since the rate last changed
QUARTER = 4  # a training is best early in the first quarter of its epochs
TOLERANCE = 0.01  # a gain of less than this share of the best value is none


def gain(history: pd.DataFrame) -> float | None:
    """How much the validation rsum rose over the last third of the epochs, by a straight line, as a
    share of its best value; None for fewer than two epochs.

    Epochs before the last change of the learning rate are left out where three or more follow it:
    the rise at the change itself says nothing of what comes.
    """
    values_E = history["val_rsum"].to_numpy(dtype=float)
    count = len(values_E)
    if count < 2 or values_E.max() <= 0:
        return None
    start = max(0, count - max(FEWEST, -(-count // SHARE)))
    rates_E = history["learning_rate"].to_numpy() if "learning_rate" in history else np.ones(count)
    changed = np.flatnonzero(np.diff(rates_E)) + 1
    if len(changed) and count - changed[-1] >= FEWEST:
        start = max(start, changed[-1])
    last_E = values_E[start:]
    slope = np.polyfit(np.arange(len(last_E)), last_E, 1)[0]
    return float(slope * (len(last_E) - 1) / values_E.max())


def is_rising(outcome: Outcome) -> bool | None:
    """Whether the training would have gone on improving; None: it has too few epochs to tell."""
    if outcome.history is None or "val_rsum" not in outcome.history:
        return None
    rise = gain(outcome.history)
    return None if rise is None else rise > TOLERANCE


def is_best_early(outcome: Outcome) -> bool | None:
    """Whether the best epoch lies in the first quarter and validation fell afterwards, as where the
    rate is too high or the model over-fits; None: it has too few epochs to tell."""
    if outcome.history is None or "val_rsum" not in outcome.history:
        return None
    values_E = outcome.history["val_rsum"].to_numpy(dtype=float)
    if len(values_E) < QUARTER or values_E.max() <= 0:
        return None
    is_in_quarter = QUARTER * (values_E.argmax() + 1) <= len(values_E)
    return bool(is_in_quarter and values_E[-1] < (1 - TOLERANCE) * values_E.max())
