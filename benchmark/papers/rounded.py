"""A number as a paper prints it: to so many decimals."""

import re
from dataclasses import dataclass
from typing import Self

NUMBER = re.compile(r"(\d{0,6})(?:[.,](\d{1,6}))?(\s*%)?")
SLACK = 1e-6  # of sums of printed numbers


@dataclass(frozen=True)
class Rounded:
    """A number as it is written."""

    value: float
    decimals: int
    is_percent: bool = False  # a sign says so

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None for a text that is no number."""
        match = NUMBER.fullmatch(text)
        if not match or not (match[1] or match[2]):
            return None
        decimals = match[2] or ""
        value = float(f"{match[1]}.{decimals}0")
        return cls(value, len(decimals), is_percent=bool(match[3]))

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"

    @property
    def half(self) -> float:
        """Of the last digit: what is closer than that is rounded to the number."""
        return 0.5 * 10.0**-self.decimals

    @property
    def in_percent(self) -> Self | None:
        """The same as a percentage, if it may be a fraction; of a single decimal, too
        many numbers would be it."""
        if self.is_percent or self.value >= 1 or self.decimals < 2:
            return None
        return Rounded(100 * self.value, self.decimals - 2)

    def is_that_of(self, number: float) -> bool:
        """Whether a printed number is this one, or is rounded to it."""
        return abs(number - self.value) <= self.half + SLACK
