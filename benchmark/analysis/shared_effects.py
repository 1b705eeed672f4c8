"""Effects that look alike on a page: one comparison under two claims, or two that are equal by
chance. Knows no torch."""

from collections.abc import Sequence
from typing import NamedTuple


class Effect(NamedTuple):
    """A difference as a page shows it."""

    where: str  # season and dataset
    claim: str  # its statement
    metric: str
    shown: str  # difference and interval, as text
    first: str  # title of a preset
    second: str  # "": of one preset, two metrics
    is_one_of_several: bool = False  # the claim compares further pairs

    @property
    def comparison(self) -> tuple[str, ...]:
        """What is compared, whichever way round the claim has it."""
        return (self.where, self.metric, *sorted((self.first, self.second)))

    @property
    def pair(self) -> str:
        return f"{self.first} against {self.second}" if self.second else self.first


def remarks(effects: Sequence[Effect]) -> list[str]:
    """What tells each effect from the others, as plain text; empty where nothing has to.

    The claim that rests on the same comparison, or else the pair, where the claim has several or
    where another claim on the same data shows the same numbers.
    """
    return [_remark(effect, effects) for effect in effects]


def _remark(effect: Effect, effects: Sequence[Effect]) -> str:
    rivals = [o for o in effects if o.claim != effect.claim and o.where == effect.where]
    same = [o.claim for o in rivals if o.comparison == effect.comparison]
    if same:
        return f"same comparison as: {same[0].rstrip('.')}"
    is_alike = any((o.metric, o.shown) == (effect.metric, effect.shown) for o in rivals)
    return effect.pair if effect.is_one_of_several or is_alike else ""
