"""The papers as data: every results table, every printed number, every comparative claim.

One YAML file a paper, transcribed from the paper and checked here against this schema. A number is
as printed, in the order of its table's metrics; null stands for a dash, or for what the scan of the
paper lost (the row's note says so). Knows no torch.
"""

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.protocol import METRICS
from benchmark.protocol.metrics import rsum_terms
from benchmark.season.parameters import Strict
from benchmark.season.presets import presets, shown

FOLDER = Path(__file__).parent
RECALLS = rsum_terms(("i2t", "t2i"))  # the recalls that the papers' tables have for rsum
PLACES = (  # where the papers measured: dataset/split
    "flickr30k/test",
    "flickr30k/val",
    "mscoco_1k/test",
    "mscoco_5k/test",
    "cuhk_pedes/test",
    "flickr30k_entities/test",
)


class Row(Strict):
    """A row of a table: of the literature, or the paper's own."""

    label: str
    setting: str = ""  # what further columns of words print: encoders, ticks, references
    preset: str | None = None  # own row: the preset that plays it
    unplayed: str = ""  # own row without a preset: why
    numbers: dict[str, list[float | None]]  # place -> a number for each metric of the table
    note: str = ""

    @property
    def is_own(self) -> bool:
        return bool(self.preset or self.unplayed)


class Table(Strict):
    """A results table."""

    title: str
    metrics: list[str] = Field(min_length=1)
    rows: list[Row] = Field(min_length=1)
    note: str = ""

    @property
    def places(self) -> list[str]:
        """Where its numbers were measured, in the order of first appearance."""
        return list(dict.fromkeys(place for row in self.rows for place in row.numbers))

    @property
    def columns(self) -> list[str]:
        """Its metrics, and rsum where all the terms of rsum are there."""
        return [*self.metrics, *["rsum"] * (set(RECALLS) <= set(self.metrics))]

    def numbers(self, row: Row, place: str) -> dict[str, float | None]:
        """What a row prints at a place, by column; rsum is added up."""
        found = dict(zip(self.metrics, row.numbers[place], strict=True))
        terms = [found.get(metric) for metric in RECALLS]
        found["rsum"] = None if None in terms else sum(terms)
        return {column: found[column] for column in self.columns}

    def decimals(self, metric: str) -> int:
        """How many the table prints for a metric: 39.60 stands beside 43.15."""
        if metric not in self.metrics:
            return METRICS[metric].decimals
        column = self.metrics.index(metric)
        numbers = [values[column] for row in self.rows for values in row.numbers.values()]
        most = max((_decimals(value) for value in numbers if value is not None), default=0)
        return max(most, METRICS[metric].decimals)

    @model_validator(mode="after")
    def _check(self) -> "Table":
        _check_known("metric", self.metrics, METRICS)
        _check_known("place", self.places, PLACES)
        for row in self.rows:
            for place, numbers in row.numbers.items():
                if len(numbers) != len(self.metrics):
                    raise ValueError(
                        f"row {row.label!r}, {place}: expected {len(self.metrics)} numbers, one a "
                        f"metric, found {len(numbers)}"
                    )
        return self


class Claim(Strict):
    """A comparative statement about results, as something that can be tested.

    ordered: each preset beats the next one.
    alike: the first and the second preset differ by no more than the margin.
    not_better: the first preset does not beat the second by more than the margin.
    """

    id: str = Field(pattern=r"^[a-z0-9_]+$")
    statement: str
    where: str  # section, table or figure of the paper
    kind: Literal["ordered", "alike", "not_better"] = "ordered"
    presets: list[str] = []
    unplayed: str = ""  # without presets: why it cannot be tested
    metric: str
    table: str | None = None  # number of the table with the printed effect
    place: str | None = None  # its dataset/split
    printed: list[float] = []  # the values of what is compared, where no table row has them
    note: str = ""

    @property
    def margin(self) -> float:
        """Points within which a difference is none, the same for every claim: one a recall."""
        if self.kind == "ordered":
            return 0.0
        return 6.0 if self.metric == "rsum" else 1.0

    @model_validator(mode="after")
    def _check(self) -> "Claim":
        _check_known("metric", [self.metric], METRICS)
        _check_known("place", [self.place] if self.place else [], PLACES)
        if bool(self.presets) == bool(self.unplayed):
            raise ValueError("expected either presets or the reason why it is unplayed")
        if len(self.presets) == 1 or (self.kind != "ordered" and len(self.presets) > 2):
            raise ValueError(f"{len(self.presets)} presets cannot be {self.kind}")
        if self.presets and self.printed and len(self.printed) != len(self.presets):
            raise ValueError("printed: expected one value a preset")
        return self


class About(Strict):
    title: str
    authors: str
    year: int
    venue: str
    source: str  # which version was transcribed, and what it lost
    splits: dict[str, str] = {}  # dataset -> partition, as cards name it (Flickr30K has four)


class Paper(Strict):
    """A paper: what it is, its tables by number, its claims."""

    paper: About
    tables: dict[str, Table]
    claims: list[Claim]

    @model_validator(mode="after")
    def _check(self) -> "Paper":
        ids = [claim.id for claim in self.claims]
        twice = {name for name in ids if ids.count(name) > 1}
        if twice:
            raise ValueError(f"claims: the id {sorted(twice)[0]!r} is there twice")
        for claim in self.claims:
            _check_known(
                f"claim {claim.id}: table", [claim.table] if claim.table else [], self.tables
            )
        return self


class Printed(NamedTuple):
    """What a paper prints for a preset in one table at one place."""

    table: str  # <paper>/<number>
    place: str  # <dataset>/<split>
    numbers: dict[str, float | None]  # metric -> as printed


@cache
def papers() -> dict[str, Paper]:
    """Every paper by the name of its file. Raises UserError that names the place of a mistake."""
    known = presets()
    return {path.stem: read_paper(path, known) for path in sorted(FOLDER.glob("*.yaml"))}


def read_paper(path: Path, known: dict) -> Paper:
    """The paper in a file; every preset it names must be one of `known`."""
    paper = checked(Paper, read_yaml(path), shown(path))
    for number, table in paper.tables.items():
        for row in table.rows:
            where = f"{shown(path)}: table {number}, row {row.label!r}"
            _check_presets(where, [row.preset] if row.preset else [], known)
    for claim in paper.claims:
        _check_presets(f"{shown(path)}: claim {claim.id}", claim.presets, known)
    return paper


def printed(preset: str) -> list[Printed]:
    """Every printed row of a preset, paper by paper and table by table."""
    return [
        Printed(f"{name}/{number}", place, dict(zip(table.metrics, numbers, strict=True)))
        for name, paper in papers().items()
        for number, table in paper.tables.items()
        for row in table.rows
        if row.preset == preset
        for place, numbers in row.numbers.items()
    ]


def as_printed(value: float | None, metric: str, decimals: int | None = None) -> str:
    """The number with the decimals of its table, else of its metric or its own; or a dash.

    Median ranks are whole but for a few, and stay as they are.
    """
    if value is None:
        return "-"
    if METRICS[metric].decimals == 0:
        return f"{value:g}"
    return f"{value:.{max(decimals or 0, METRICS[metric].decimals, _decimals(value))}f}"


def _decimals(value: float) -> int:
    return len(f"{value:.4f}".rstrip("0").partition(".")[2])


def effects(paper: Paper, claim: Claim) -> list[float] | None:
    """The printed value of each preset of a claim: from its table, or what the text prints."""
    if claim.printed:
        return claim.printed
    if claim.table is None:
        return None
    found = [_value(paper.tables[claim.table], preset, claim) for preset in claim.presets]
    return None if None in found else found


def _value(table: Table, preset: str, claim: Claim) -> float | None:
    for row in table.rows:
        if row.preset == preset and claim.place in row.numbers:
            return table.numbers(row, claim.place).get(claim.metric)
    return None


def _check_known(what: str, names: list[str], known) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{what}: unknown {name!r}; expected one of {', '.join(known)}")


def _check_presets(where: str, names: list[str], known: dict) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where}: no preset {name!r}; see: python -m benchmark list presets")
