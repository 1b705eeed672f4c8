"""The papers as data: every results table, every printed number, every comparative
claim, and how the methods differ from their papers.

<paper>.yaml     a paper, transcribed and checked here against this schema. Numbers are as printed,
                 in the order of their table's metrics; null stands for a dash, or for what the scan
                 of the paper lost (the row's note says so)
fidelity/*.yaml  for each method of a paper, and protocol.yaml for data and evaluation, what is
                 printed, what the authors' code does, and what is done here. A method of your own
                 needs none

A claim is about a metric, or one metric minus another ("t2i_r1 - i2t_r1"): one such as
"above all at finding images" compares presets by such a difference; one about a single
model, such as "matched pairs are more similar than unmatched ones", asks whether its
own difference is above zero. Rows of one method that a paper compares share everything
but what they are about; CycleMatch says so in Section 6.4.2 ("the same network settings
and training hyperparameters"). A season may scale a method down, but then all of these
rows alike.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from benchmark.core.errors import Strict, UserError, checked
from benchmark.core.files import read_yaml
from benchmark.core.records import Record
from benchmark.scoring import METRICS
from benchmark.scoring.fusion import MIDDLE
from benchmark.scoring.metrics import TIMES, Metric, rsum_terms
from benchmark.season.parameters import Cell, Declaration, Params
from benchmark.season.plugins import Preset, presets, shown
from benchmark.stats.claim_kinds import KINDS, ORDERED, Side

FOLDER = Path(__file__).parent
# the name of a season's own claims, where papers have those of their files
OWN = "season"
# the recalls that the papers' tables have for rsum
RECALLS = rsum_terms(("i2t", "t2i"))
PLACES = (  # where the papers measured: dataset/split
    "flickr30k/test",
    "flickr30k/val",
    "mscoco_1k/test",
    "mscoco_5k/test",
    "cuhk_pedes/test",
    "flickr30k_entities/test",
)
MINUS = " - "
SEASON_FILE = "season.yaml"
LONGEST = 160  # characters: a note on fidelity has to fit a column of a table

# What a claim can be about ------------------------------------------------------------

_OF_SAMPLES = {"compute": float, "decimals": 3, "in_tables": False}
SAMPLED = {  # instance-loss paper, figure 4; a record has them in `sampled`
    f"correlation_{when}": Metric(
        name=f"correlation_{when}",
        heading=f"correlation of image {what}",
        unit="correlation",
        range=(-1.0, 1.0),
        formula=f"mean Pearson correlation of the {what} of two sampled images",
        less_is_better=True,
        **_OF_SAMPLES,
    )
    for when, what in (("before", "features"), ("after", "embeddings"))
} | {  # CycleMatch, figure 6.7; likewise
    f"weights_{where}": Metric(
        name=f"weights_{where}",
        heading=f"weights {where} the middle",
        unit="share",
        range=(0.0, 1.0),
        formula=f"share of the adaptive weights of all queries {where} {MIDDLE[0]} to {MIDDLE[1]}",
        **_OF_SAMPLES,
    )
    for where in ("inside", "outside")
}
PER_EPOCH = Metric(  # SCAN, table 5 has the time of a batch, which no training measures
    name="per_epoch",
    heading="train an epoch (s)",
    unit="s",
    range=(0.0, np.inf),
    formula="duration of a training with its validations, over its epochs",
    compute=lambda seconds, epochs: seconds / epochs,
    decimals=1,
    less_is_better=True,
    in_tables=False,
)
_OF_NO_RECORD = SAMPLED | {"per_epoch": PER_EPOCH}  # computed from other things


@cache
def quantity(name: str) -> Metric:
    """What a claim names, with heading and decimals. Raises KeyError for a name that is
    none."""
    first, minus, second = name.partition(MINUS)
    if not minus:
        return _OF_NO_RECORD[name] if name in _OF_NO_RECORD else METRICS[name]
    return replace(
        quantity(first),
        name=name,
        heading=f"{quantity(first).heading}{MINUS}{quantity(second).heading}",
        range=(-np.inf, np.inf),
        less_is_better=False,
        of_queries=None,
    )


def sides(name: str) -> list[str]:
    """The metric, or the two of a difference."""
    return name.split(MINUS)


def is_time(name: str) -> bool:
    """Whether a metric depends on the machine, and on its other load."""
    return any(quantity(side) in (*TIMES, PER_EPOCH) for side in sides(name))


# Tables and claims --------------------------------------------------------------------


class Row(Strict):
    """A row of a table: of the literature, or the paper's own."""

    label: str
    setting: str = ""  # what columns without numbers print: encoders, ticks, references
    preset: str | None = None  # of an own row: the preset that plays it
    unplayed: str = ""  # of an own row without a preset: why no preset plays it
    # place -> one number per metric of the table
    numbers: dict[str, list[float | None]]
    note: str = ""


class Table(Strict):
    """A results table."""

    title: str
    metrics: list[str] = Field(min_length=1)
    rows: list[Row] = Field(min_length=1)
    note: str = ""

    @property
    def places(self) -> list[str]:
        """Where its numbers were measured, in the order of first appearance."""
        places = {}
        for row in self.rows:
            places |= dict.fromkeys(row.numbers)
        return list(places)

    def numbers(self, row: Row, place: str) -> dict[str, float | None]:
        """What a row prints at a place, by metric; and rsum, if the table has none,
        where all its terms are there."""
        numbers = dict(zip(self.metrics, row.numbers[place], strict=True))
        if "rsum" not in numbers and numbers.keys() >= set(RECALLS):
            terms = [numbers[metric] for metric in RECALLS]
            numbers["rsum"] = None if None in terms else sum(terms)
        return numbers

    def decimals(self, metric: str) -> int:
        """How many decimals the table prints for a metric: 39.60 stands beside
        43.15."""
        if metric not in self.metrics:
            return METRICS[metric].decimals
        column = self.metrics.index(metric)
        most = METRICS[metric].decimals
        for row in self.rows:
            for values in row.numbers.values():
                if values[column] is not None:
                    most = max(most, _decimals(values[column]))
        return most

    @model_validator(mode="after")
    def _check(self) -> "Table":
        _check_names("metric", self.metrics, METRICS)
        _check_names("place", self.places, PLACES)
        for row in self.rows:
            for place, numbers in row.numbers.items():
                if len(numbers) != len(self.metrics):
                    fault = f"expected {len(self.metrics)} numbers, one per metric"
                    fault += f", found {len(numbers)}"
                    raise ValueError(f"row {row.label!r}, {place}: {fault}")
        return self


class Shown(Strict):
    """A figure of a paper, or a table without results: what the report draws for it, or
    why not."""

    title: str
    # a pattern that the names of its figures end with, such as scan\w*-found
    where: str = ""
    lacks: str = ""

    @model_validator(mode="after")
    def _check(self) -> "Shown":
        if bool(self.where) == bool(self.lacks):
            raise ValueError("either where it is drawn or what it lacks")
        return self


class Part(Strict):
    """One comparison of a claim.

    The kinds stand in stats.claim_kinds; an ordered part with a single preset has a
    difference of two metrics above zero.
    """

    presets: list[str] = Field([], max_length=2)
    kind: Literal[*KINDS] = ORDERED.name
    metric: str  # or a difference of two
    table: str | None = None  # number of the table with the printed effect
    place: str | None = None  # its dataset/split
    # both values, where no table row has them
    printed: list[float] = Field([], max_length=2)

    @model_validator(mode="after")
    def _check(self) -> "Part":
        known = METRICS | _OF_NO_RECORD
        names = sides(self.metric)
        if len(names) > 2 or not known.keys() >= set(names):
            _check_names("metric", [self.metric], METRICS)
        if self.place:
            _check_names("place", [self.place], PLACES)
        is_single = self.kind == ORDERED.name and MINUS in self.metric
        if len(self.presets) == 1 and not is_single:
            raise ValueError(f"a single preset cannot be {self.kind}")
        is_recall = MINUS not in self.metric and quantity(self.metric).unit == "%"
        if KINDS[self.kind].needs_printed and not is_recall:
            raise ValueError(f"{self.kind}: expected a recall or rsum")
        if len(self.printed) == 1:
            raise ValueError("printed: expected two values, of both sides")
        return self


class Bias(Strict):
    """What makes the sides of a comparison unequal here, which they are not in the
    paper."""

    because: str  # a sentence
    favours: Side


class Claim(Strict):
    """A comparative sentence of a paper, in a form that can be tested: one that says
    several things has a part for each, and holds if all do. What a claim gives for its
    parts, such as `metric`, is of each of them that gives nothing else."""

    id: str = Field(pattern=r"^[a-z0-9_]+$")
    statement: str
    where: str  # section, table or figure of the paper
    parts: list[Part] = Field(min_length=1)
    unplayed: str = ""  # without presets: why it cannot be tested
    headline: str = ""  # its short name, of a claim for which the paper is known
    # the sentence names the dataset: elsewhere it is another claim
    only_there: bool = False
    uncounted: str = ""  # why it is shown and not counted
    bias: Bias | None = None  # of our set-up: only what goes against it stands
    out_of_reach: str = ""  # why no test here can decide it
    settings: dict[str, str | float] = {}  # options without which it is another claim
    weights: str = ""  # trained ones that others cannot stand in for
    # half a sentence beside the grade of one that holds, on first screens
    but: str = ""
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: object) -> object:
        if not isinstance(given, dict) or not isinstance(given.get("parts", []), list):
            return given
        own = {}
        shared = {}
        for name, value in given.items():
            if name in Part.model_fields:
                shared[name] = value
            else:
                own[name] = value
        parts = []
        for part in given.get("parts", [{}]):
            fields = part if isinstance(part, dict) else {"presets": part}
            parts.append(shared | fields)
        return own | {"parts": parts}

    @model_validator(mode="after")
    def _check(self) -> "Claim":
        if any(bool(part.presets) == bool(self.unplayed) for part in self.parts):
            raise ValueError("either presets or the reason why it is unplayed")
        if self.only_there and self.place is None:
            raise ValueError("only_there: expected a place")
        return self

    @property
    def presets(self) -> list[str]:
        names = {}
        for part in self.parts:
            names |= dict.fromkeys(part.presets)
        return list(names)

    @property
    def place(self) -> str | None:
        """Of its first part."""
        return self.parts[0].place


class About(Strict):
    """The paper itself, and which version of it was transcribed."""

    title: str
    authors: str
    year: int
    venue: str
    source: str  # the version that was transcribed, and what it lost
    link: str = Field("", pattern=r"^(https://[\w./-]+)?$")  # to the paper
    # of the authors, if it is published
    code: str = Field("", pattern=r"^(https://[\w./-]+)?$")
    # dataset -> partition, as cards name it (Flickr30K has four)
    splits: dict[str, str] = {}
    method: str = ""  # what it calls its method

    @property
    def cited(self) -> str:
        """Method, authors and year: "SCAN (Lee et al. 2018)"."""
        surnames = [name.split()[-1] for name in self.authors.split(", ")]
        authors = surnames[0] if len(surnames) == 1 else f"{surnames[0]} et al."
        return f"{self.method} ({authors} {self.year})"


class Paper(Strict):
    """A paper: what it is, its main row, its tables and figures by number, its
    claims."""

    paper: About
    main: str = ""  # the preset that stands for the paper
    tables: dict[str, Table]
    figures: dict[str, Shown] = {}  # by number, "9, 10" where several show the same
    claims: list[Claim]

    @model_validator(mode="after")
    def _check(self) -> "Paper":
        ids = [claim.id for claim in self.claims]
        if twice := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"claims: the id {sorted(twice)[0]!r} is there twice")
        for claim in self.claims:
            named = [part.table for part in claim.parts if part.table]
            _check_names(f"claim {claim.id}: table", named, self.tables)
            for part in claim.parts:
                is_needed = KINDS[part.kind].needs_printed and part.presets
                if is_needed and not effects(self, part):
                    where = f"claim {claim.id}: {part.kind}"
                    raise ValueError(f"{where}: expected printed values")
        return self


class Printed(NamedTuple):
    """A row of a paper's table at one place."""

    table: str  # <paper>/<number>
    place: str  # <dataset>/<split>
    row: Row
    numbers: dict[str, float]  # metric -> as printed; what is not printed is left out


@cache
def papers() -> dict[str, Paper]:
    """Every paper, by the name of its file. Raises UserError that names file and field
    of a mistake."""
    names = presets()
    paths = sorted(FOLDER.glob("*.yaml"))
    return {path.stem: read_paper(path, names) for path in paths}


def title_of(preset: str) -> str:
    """The title of a preset that a season may lack; its id if it is of no file of
    methods/."""
    known = presets()
    return known[preset][1].title if preset in known else preset


def read_paper(path: Path, preset_names: Container[str]) -> Paper:
    """The paper in a file. Raises UserError, also for a preset that is not in
    `preset_names`."""
    paper = checked(Paper, read_yaml(path), shown(path))
    for where, name in _presets_named(paper):
        if name not in preset_names:
            raise UserError(
                f"{shown(path)}: {where}",
                expected="a preset of methods/*.yaml",
                found=repr(name),
                do="choose one of: rematch list presets",
            )
    return paper


def _presets_named(paper: Paper) -> Iterator[tuple[str, str]]:
    """Where a paper names presets, and their names."""
    for number, table in paper.tables.items():
        for row in table.rows:
            if row.preset is not None:
                yield f"table {number}, row {row.label!r}", row.preset
    for claim in paper.claims:
        for part in claim.parts:
            for name in part.presets:
                yield f"claim {claim.id}", name


def own_claims(params: Declaration) -> dict[str, Paper]:
    """The claims of a season file, as a paper without tables; empty where it makes
    none."""
    if not params.claims:
        return {}
    claims = []
    for number, own in enumerate(params.claims, 1):
        heading = METRICS[own.metric].heading
        usual = f"{own.better} is better than {own.than} in {heading}."
        claim = Claim(
            id=f"own_{number}",
            statement=own.statement or usual,
            where=SEASON_FILE,
            presets=[own.better, own.than],
            metric=own.metric,
        )
        claims.append(claim)
    about = About(title=params.title, authors="", year=0, venue="", source=SEASON_FILE)
    return {OWN: Paper(paper=about, tables={}, claims=claims)}


def printed(preset: str = "") -> list[Printed]:
    """What the papers print, or for one preset, in their order; every row at every
    place. The rsum of what a row prints is among its numbers."""
    rows = []
    for name, paper in papers().items():
        for number, table in paper.tables.items():
            for row in table.rows:
                if preset and row.preset != preset:
                    continue
                for place in row.numbers:
                    known = {}
                    for metric, value in table.numbers(row, place).items():
                        if value is not None:
                            known[metric] = value
                    rows.append(Printed(f"{name}/{number}", place, row, known))
    return rows


def as_printed(value: float | None, metric: str) -> str:
    """The number as text, or a dash: with the most decimals of its metric and itself.
    Most median ranks are whole numbers: they are written with no more decimals than
    they have."""
    if value is None:
        return "-"
    usual = METRICS[metric].decimals
    if usual == 0:
        return f"{value:g}"
    decimals = max(usual, _decimals(value))
    return f"{value:.{decimals}f}"


def _decimals(value: float) -> int:
    """How many decimals a number is printed with, at most four."""
    _, _, digits = f"{value:.4f}".rstrip("0").partition(".")
    return len(digits)


def effects(paper: Paper, part: Part) -> list[float] | None:
    """The printed values of both sides of a part; None where one is not printed.

    The part gives them itself, or its table has them, for two presets only. The value
    of a preset in a difference of two metrics is that difference.
    """
    if part.printed:
        return part.printed
    if part.table is None or len(part.presets) == 1:
        return None
    table = paper.tables[part.table]
    printed_values = []
    for preset in part.presets:
        numbers = {}
        for row in table.rows:
            if row.preset == preset and part.place in row.numbers:
                numbers = table.numbers(row, part.place)
                break
        values = [numbers.get(side) for side in sides(part.metric)]
        if None in values:
            return None
        effect = values[0]
        if len(values) == 2:
            effect = round(values[0] - values[1], 4)
        printed_values.append(effect)
    return printed_values


def _check_names(what: str, names: Iterable[str], valid: Iterable[str]) -> None:
    for name in names:
        if name not in valid:
            raise ValueError(
                f"{what}: unknown {name!r}; expected one of {', '.join(valid)}"
            )


# Settings -----------------------------------------------------------------------------


def unequal_settings(params: Params) -> list[str]:
    """One line per pair of presets that a claim compares and the season scales
    differently."""
    lines = {}
    for first, second, names in unequal_pairs(params):
        line = (
            f"{first.dataset}: {first.preset} and {second.preset} are compared by a "
            f"paper, and the season scales them differently: {', '.join(names)}"
        )
        lines[line] = None
    return list(lines)


def unequal_pairs(params: Params) -> list[tuple[Cell, Cell, list[str]]]:
    """The same pairs, as a cell of each preset and the names of the options. Only pairs
    of one method are looked at, where both presets start from other weights or neither
    does."""
    cells = {(cell.dataset, cell.preset): cell for cell in params.cells.values()}
    parts = []
    for paper in papers().values():
        for claim in paper.claims:
            parts += claim.parts
    pairs = []
    known = presets()
    for part, dataset in product(parts, params.datasets):
        run = [cells.get((dataset, preset)) for preset in part.presets]
        for first, second in combinations(filter(None, run), 2):
            if first.method != second.method:
                continue
            if bool(first.start) != bool(second.start):
                continue
            _, first_declared = known[first.preset]
            _, second_declared = known[second.preset]
            names = unequal(first, second, first_declared, second_declared)
            if names:
                pairs.append((first, second, names))
    return pairs


def unequal(
    first: Cell | Record, second: Cell | Record, row: Preset, other_row: Preset
) -> list[str]:
    """Options that a season scaled and that differ here, though the rows of the paper
    have equal ones."""
    names = []
    for name in sorted({*first.scaled, *second.scaled}):
        is_same_here = str(first.options.get(name)) == str(second.options.get(name))
        is_same_in_paper = row.options.get(name) == other_row.options.get(name)
        if is_same_in_paper and not is_same_here:
            names.append(name)
    return names


# Fidelity -----------------------------------------------------------------------------


class Entry(Strict):
    """One topic: what paper, official code and this implementation do."""

    topic: str = Field(min_length=1, max_length=40)
    paper: str = Field(min_length=1, max_length=LONGEST)  # what is printed, and where
    # what the authors' code does, if published
    code: str = Field(min_length=1, max_length=LONGEST)
    ours: str = Field(min_length=1, max_length=LONGEST)  # what is done here
    # why ours departs from the paper, or it is silent
    why: str = Field("", max_length=LONGEST)
    option: str | None = None  # field of the method's Config that switches it


class Notes(Strict):
    """A file of fidelity/."""

    entries: list[Entry] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> "Notes":
        topics = [entry.topic for entry in self.entries]
        if twice := {topic for topic in topics if topics.count(topic) > 1}:
            raise ValueError(
                f"the topic {sorted(twice)[0]!r} is there twice; join the two entries"
            )
        return self


@cache
def fidelity() -> dict[str, list[Entry]]:
    """The entries of every file, by its name: a method or `protocol`.

    Raises UserError that names file, entry and field of a mistake.
    """
    entries = {}
    for path in sorted(FOLDER.glob("fidelity/*.yaml")):
        notes = checked(Notes, read_yaml(path), shown(path))
        entries[path.stem] = notes.entries
    return entries
