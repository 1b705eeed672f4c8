"""What the functions give: small frozen objects over the facts that the command line
prints with `--format json`."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Interval = tuple[float, float]


def _html(facts: Mapping[str, Any]) -> str:
    """A table of names and values; those that are missing or long are left out."""
    rows = []
    for name, value in facts.items():
        if value is not None and not isinstance(value, Mapping):
            cells = f"<th>{escape(name)}</th><td>{escape(str(value))}</td>"
            rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True)
class _Judged:
    """What both verdicts have in common: the facts, and how they are shown."""

    facts: Mapping[str, Any] = field(repr=False)  # as `rematch judge --format json`
    conclusion: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conclusion", self.facts["conclusion"])

    @property
    def status(self) -> int:
        """The exit status of `rematch judge --check`: 0 holds or compatible, 1 not, 2
        undecided."""
        from benchmark.commands.verdict_facts import status_of

        return status_of([self.facts])

    @property
    def statement(self) -> str:
        """What a file of claims states; "" without one."""
        return self.facts.get("statement", "")

    @property
    def margin(self) -> float:
        """Differences up to this count as none."""
        return self.facts["margin"]

    @property
    def notes(self) -> list[str]:
        """What a reader must know."""
        return list(self.facts["notes"])

    def summary(self) -> str:
        """The lines that `rematch judge` prints."""
        from benchmark.commands.verdict_facts import shown

        return shown(dict(self.facts))

    def to_dict(self) -> dict[str, Any]:
        return deepcopy(dict(self.facts))

    def _repr_html_(self) -> str:
        return _html(self.facts)


@dataclass(frozen=True)
class Verdict(_Judged):
    """What `judge` says of a claim on two results: "holds", "reversed", "undecided" and
    so on."""

    # of the means, in the unit of the metric; positive: the claim's first is better
    difference: float = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "difference", self.facts["difference"])

    @property
    def holds(self) -> bool:
        return self.conclusion == "holds"

    @property
    def interval(self) -> Interval | None:
        """Confidence interval of the difference, for other queries and other trainings."""
        low, high = self.facts["low"], self.facts["high"]
        return None if low is None else (low, high)

    @property
    def levels(self) -> tuple[float, float]:
        """Mean of each side, the claim's first one first."""
        first, second = self.facts["levels"]
        return first, second

    @property
    def p(self) -> float | None:
        return self.facts["p"]

    @property
    def reason(self) -> str:
        return self.facts["reason"]


@dataclass(frozen=True)
class PrintedVerdict(_Judged):
    """What `judge_printed` says of one result beside a printed number: "compatible",
    "below", "above" or "undecided"."""

    level: float = field(init=False)  # mean of the result

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", self.facts["level"])

    @property
    def interval(self) -> Interval:
        """Confidence interval of the level, for other queries and other trainings."""
        return self.facts["low"], self.facts["high"]

    @property
    def on_test_set(self) -> str | None:
        """The same for other trainings on these queries; None: nothing is known of
        other trainings."""
        of_trainings = self.facts["on_test_set"]
        return of_trainings and of_trainings["conclusion"]


@dataclass(frozen=True)
class Recalls(Mapping[str, float]):
    """Metrics of both directions, by name: i2t_r1 (in percent), t2i_medr, rsum.

    `ranks` has a row per query: direction, query, cluster (its image) and rank of the
    best right item, from 0. It is what `judge` takes.
    """

    values_of: Mapping[str, float]
    intervals: Mapping[str, Interval]  # of confidence, over other test images
    ranks: "pd.DataFrame" = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("values_of", "intervals"):
            frozen = MappingProxyType(dict(getattr(self, name)))
            object.__setattr__(self, name, frozen)

    def __getitem__(self, metric: str) -> float:
        return self.values_of[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)

    def summary(self) -> str:
        lines = []
        for name, value in self.items():
            line = f"{name:10} {value:7.2f}"
            if name in self.intervals:
                low, high = self.intervals[name]
                line += f"  [{low:.2f}, {high:.2f}]"
            lines.append(line)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The metrics, and the ends of their intervals."""
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        return {"metrics": dict(self), "intervals": intervals}

    def _repr_html_(self) -> str:
        return _html({name: f"{value:.2f}" for name, value in self.items()})


@dataclass(frozen=True)
class Board(Sequence[Mapping[str, Any]]):
    """What `board` says: a row for each result, the best first, with its level, the
    interval of that, its rank from 1, and the ranks that it could have."""

    facts: Mapping[str, Any] = field(repr=False)  # as `rematch board --format json`
    rows: tuple[Mapping[str, Any], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.facts["rows"]))

    def __getitem__(self, place: Any) -> Any:  # an index or a slice
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def notes(self) -> list[str]:
        """What a reader must know."""
        return list(self.facts["notes"])

    def summary(self) -> str:
        """The lines that `rematch board` prints."""
        from benchmark.commands.board import shown_facts

        return shown_facts(self.facts)

    def to_dict(self) -> dict[str, Any]:
        return deepcopy(dict(self.facts))

    def to_frame(self) -> "pd.DataFrame":
        """A row for each result, by its name; the level on each dataset in a column of
        its own."""
        import pandas as pd

        lines = []
        for row in self.rows:
            line = {name: value for name, value in row.items() if name != "levels"}
            line["first_rank"], line["last_rank"] = line.pop("ranks")
            for dataset, level in row["levels"].items():
                # a dataset may be called as another column is
                column = f"level on {dataset}" if dataset in line else dataset
                line[column] = level
            lines.append(line)
        return pd.DataFrame(lines).set_index("name")

    def _repr_html_(self) -> str:
        return self.to_frame().to_html()


@dataclass(frozen=True)
class PrintedRows(Sequence[Mapping[str, Any]]):
    """Rows of the papers' tables: table, place, label, setting, preset and numbers, by
    metric."""

    rows: tuple[Mapping[str, Any], ...]

    def __getitem__(self, place: Any) -> Any:  # an index or a slice
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def summary(self) -> str:
        lines = []
        for row in self.rows:
            names = filter(None, (row["table"], row["place"], row["label"]))
            numbers = [
                f"{metric} {value:g}" for metric, value in row["numbers"].items()
            ]
            lines.append(f"{', '.join(names)}: {', '.join(numbers)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": deepcopy([dict(row) for row in self.rows])}

    def to_frame(self) -> "pd.DataFrame":
        """A row for each number."""
        import pandas as pd

        lines = []
        for row in self.rows:
            names = {name: value for name, value in row.items() if name != "numbers"}
            for metric, value in row["numbers"].items():
                lines.append(names | {"metric": metric, "value": value})
        return pd.DataFrame(lines)

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False)


@dataclass(frozen=True)
class Audit:
    """What `audit` finds in a table of recalls."""

    findings: tuple[Mapping[str, Any], ...]  # as `rematch audit --format json`
    text: str = field(repr=False)

    @property
    def impossible(self) -> tuple[Mapping[str, Any], ...]:
        """Those that no ranks can give; the others are improbable."""
        return tuple(each for each in self.findings if each["is_impossible"])

    def summary(self) -> str:
        """The lines that `rematch audit` prints."""
        return self.text

    def to_dict(self) -> dict[str, Any]:
        return {"findings": deepcopy([dict(each) for each in self.findings])}

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


@dataclass(frozen=True)
class Plan:
    """The power of a claim, or the smallest difference that it shows, for numbers of
    seeds and of test images."""

    facts: Mapping[str, Any] = field(repr=False)  # as `rematch plan --format json`

    @property
    def table(self) -> "pd.DataFrame":
        """Seeds in rows, images in columns: the power, from 0 to 1, or the smallest
        true difference that is shown; NaN where nothing would be known of other
        trainings, or where no difference is large enough."""
        import pandas as pd

        seeds = pd.Index(self.facts["seeds"], name="seeds")
        images = pd.Index(self.facts["images"], name="images")
        return pd.DataFrame(self.facts["cells"], seeds, images, dtype=float)

    @property
    def margin(self) -> float | None:
        return self.facts["margin"]

    def summary(self) -> str:
        """The table that `rematch plan` prints."""
        from benchmark.commands.plan import shown

        return shown(self.facts)

    def to_dict(self) -> dict[str, Any]:
        return deepcopy(dict(self.facts))

    def _repr_html_(self) -> str:
        return self.table.to_html()
