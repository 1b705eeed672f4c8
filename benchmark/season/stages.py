"""What a stage is: its name, the program that does it, what it reads and writes.

`pipeline` lists those of a season and writes them for DVC; `rematch run`, `play` and
`verify` run them without it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Options = dict[str, object]  # of an output in DVC's words, such as `cache: false`


class Kind(StrEnum):
    """What a stage does."""

    READERS = "readers"
    CELLS = "cells"
    SEASON = "season"
    FETCH = "fetch"
    PREPARE = "prepare"
    FOLDS = "folds"
    PRETRAIN = "pretrain"
    ENCODE = "encode"
    TRAIN = "train"
    EVALUATE = "evaluate"
    COLLECT = "collect"
    REPORT = "report"


@dataclass(frozen=True)
class Program:
    """A module that has `configure` and `main`, and how a shell calls it."""

    module: str
    shell: str


_SEASON = Program("benchmark.commands.season", "python -m benchmark season")
_FOLDS = "benchmark.prepare.folds"
_PRETRAINING = "benchmark.encode.drawn_pretraining"
_OTHERS = {
    Kind.READERS: _SEASON,
    Kind.CELLS: _SEASON,
    Kind.SEASON: _SEASON,
    Kind.FOLDS: Program(_FOLDS, f"python -m {_FOLDS}"),
    Kind.PRETRAIN: Program(_PRETRAINING, f"python -m {_PRETRAINING}"),
}


def program_of(kind: Kind) -> Program:
    room = f"benchmark.{kind}"
    return _OTHERS.get(kind, Program(f"{room}.__main__", f"python -m {room}"))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step, as the working folder of the project sees it."""

    name: str  # as DVC spells it out: "train@shapes-vse-0"
    kind: Kind
    item: str = ""  # its dataset, feature set or cell, by key; "": it has none
    arguments: tuple[str, ...] = ()  # of its program
    settings: Mapping[str, list[str]] = field(default_factory=dict)  # file -> keys
    reads: tuple[str, ...] = ()  # files and folders
    writes: Mapping[str, Options] = field(default_factory=dict)
    metrics: Mapping[str, Options] = field(default_factory=dict)
    plots: Mapping[str, Options] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """As DVC and a shell run it."""
        return " ".join([program_of(self.kind).shell, *self.arguments])

    @property
    def outputs(self) -> list[str]:
        """Every path that it writes."""
        return [*self.writes, *self.metrics, *self.plots]

    @property
    def in_dvc(self) -> dict:
        """As it stands in dvc.yaml."""
        content = {
            "cmd": self.command,
            "params": [{file: keys} for file, keys in self.settings.items()],
            "deps": list(self.reads),
            "outs": _listed(self.writes),
            "metrics": _listed(self.metrics),
            "plots": _listed(self.plots),
        }
        return {key: value for key, value in content.items() if value}


def _listed(outputs: Mapping[str, Options]) -> list[str | dict[str, Options]]:
    listed: list[str | dict[str, Options]] = []
    for path, options in outputs.items():
        listed.append({path: options} if options else path)
    return listed


@dataclass(frozen=True, kw_only=True)
class Group:
    """The same stage for several items: `foreach` in DVC's words.

    items  key of an item -> the fields that `stage` reads; {} where the key is enough
    stage  the stage of a key and its fields. DVC's template is that of "${key}"
    """

    name: str
    items: Mapping[str, dict[str, str]]
    stage: Callable[[str, dict[str, str]], Stage]

    @property
    def stages(self) -> list[Stage]:
        return [self.stage(key, fields) for key, fields in self.items.items()]

    @property
    def in_dvc(self) -> dict:
        """As it stands in dvc.yaml."""
        fields = next(iter(self.items.values()), {})
        if not fields:
            return {
                "foreach": list(self.items),
                "do": self.stage("${item}", {}).in_dvc,
            }
        placeholders = {name: f"${{item.{name}}}" for name in fields}
        template = self.stage("${key}", placeholders)
        return {"foreach": dict(self.items), "do": template.in_dvc}


def in_order(
    stages: Mapping[str, Stage], last: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Some stages and those that write the files that they need, each after its needs
    -> the names of these."""
    maker: dict[str, str] = {}  # of a path, by name
    for name, stage in stages.items():
        maker |= dict.fromkeys(stage.outputs, name)
    ordered: dict[str, tuple[str, ...]] = {}

    def makers(path: str) -> list[str]:
        """Of a file or folder, or of what is in a folder."""
        if path in maker:
            return [maker[path]]
        return [name for other, name in maker.items() if other.startswith(f"{path}/")]

    def add(name: str) -> None:
        needs: dict[str, None] = {}
        for path in stages[name].reads:
            needs |= dict.fromkeys(makers(path))
        for other in needs:
            if other not in ordered:
                add(other)
        ordered[name] = tuple(needs)

    for name in last:
        add(name)
    return ordered
