"""Arrays that a program gives."""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.core.errors import UserError


def array_of(given: ArrayLike, name: str, expected: str) -> np.ndarray:
    """What was given as `name`, as an array. Raises UserError for rows of several
    lengths."""
    try:
        return np.asarray(given)
    except ValueError as error:
        raise UserError(
            name,
            expected=expected,
            found="rows of several lengths",
            do="give such an array",
        ) from error
