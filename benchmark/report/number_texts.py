"""Numbers as readers see them in tables and sentences: means, intervals, probabilities, times."""

from collections.abc import Sequence
from math import floor, log10
from statistics import fmean, stdev

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"  # narrow entries break before the sign, never after it
NONE = "-"


def spread(values: Sequence[float], decimals: int) -> str:
    """Mean and sample standard deviation; one value stands alone, no values are a dash."""
    if not values:
        return NONE
    if len(values) == 1:
        return str(values[0]) if isinstance(values[0], int) else f"{values[0]:.{decimals}f}"
    return f"{fmean(values):.{decimals}f} {PLUS_MINUS}{NO_BREAK}{stdev(values):.{decimals}f}"


def between(low: str, high: str) -> str:
    """An interval that stays on one line."""
    return f"[{low},{NO_BREAK}{high}]"


def percent(chance: float) -> str:
    """A probability in percent; never said to be sure, as it is drawn from estimates."""
    return ">99" if chance > 0.995 else f"{100 * chance:.0f}"


def three_digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.{max(0, 2 - floor(log10(value)))}f}" if value > 0 else "0"
