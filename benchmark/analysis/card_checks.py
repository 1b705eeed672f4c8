"""The cards of prepared datasets, as a report reads them: facts of the right kinds. Knows no torch.

Cards may hold more, and those that are older than a fact lack it.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from benchmark.core.errors import checked
from benchmark.core.json_objects import Facts, read_object
from datasets import SPLITS

Count = Annotated[int, Field(ge=0)]
USED = SPLITS[:3]
Shared = Literal["pictures", "near_pictures", "captions", "near_captions"]


class Counts(Facts):
    images: Count
    captions: Count
    phrases: Count = 0


class Leakage(Facts):
    notes: list[str]
    pictures: list[Annotated[list[str], Field(min_length=1)]] = []
    near_pictures: list[Annotated[list[str | int], Field(min_length=3, max_length=3)]] = []
    items: dict[Shared, dict[str, Count]] = {}
    captions: Count = 0
    near_captions: Count = 0
    near_pictures_total: Count = 0

    @model_validator(mode="after")
    def _whole(self) -> "Leakage":
        lists = {"pictures", "near_pictures", "captions", "near_captions"}
        if self.items and set(self.items) != lists:
            raise ValueError(f"items of {', '.join(sorted(lists))}")
        if not all(set(USED) <= set(counts) for counts in self.items.values()):
            raise ValueError(f"items of {', '.join(USED)}")
        if not all(isinstance(name, str) for *names, _ in self.near_pictures for name in names):
            raise ValueError("two names and a number of bits")
        return self


class ReportedCard(Facts):
    title: Annotated[str, Field(min_length=1)]
    reader: str
    source: str
    licence: str
    split: str
    manifest: str
    may_publish: bool
    notes: list[str]
    leakage: Leakage
    counts: dict[str, Counts]
    ways: Annotated[list[Literal["i2t", "t2i"]], Field(min_length=1)] = ["i2t", "t2i"]
    folds: Annotated[int, Field(ge=1)] = 1
    pictures: Count = 0
    captions_per_image: dict[str, dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], Count]] = {}
    files: dict[Literal["images.parquet", "captions.parquet", "regions.parquet"], str] = {}

    @model_validator(mode="after")
    def _tested(self) -> "ReportedCard":
        if "test" not in self.counts:
            raise ValueError("counts of test")
        return self


def read_card(path: Path) -> dict:
    """The content of a card.json. Raises UserError where a report cannot read it."""
    card = read_object(path)
    checked(ReportedCard, card, str(path))
    return card
