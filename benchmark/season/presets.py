"""Presets: rows of the papers' tables as options of methods. Knows no torch.

The numbers that the papers print for them are in benchmark/papers/.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from benchmark.contracts import HOME
from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.core.names import Name, checked_name
from benchmark.season.parameters import Option, Strict

PACKAGE_ROOT = HOME  # where methods/ and seasons/ lie


class Fuse(Strict):
    """Late fusion: scores of presets, or named parts of them ("preset:score"), as one score."""

    how: Literal["average", "adaptive", "weighted"]
    of: list[str] = Field(min_length=1, max_length=3)

    @property
    def members(self) -> list[tuple[str, str]]:
        """Preset and named score ("": the similarity) of each member."""
        return [(name, part) for name, _, part in (member.partition(":") for member in self.of)]


class Preset(Strict):
    """A row of a paper's table: a method with options, or a fusion of other presets."""

    title: str
    family: Literal["paper", "official"] = "paper"
    network: str | None = None  # image network the paper feeds it
    grid: int | None = None  # side of the image grid, where it needs more regions than the season's
    sentence: Name | None = None  # encoder of benchmark/features, for sentence vectors
    start: str | None = None  # preset whose checkpoint training starts from
    options: dict[str, Option] = {}
    fuse: Fuse | None = None
    note: str = ""


Known = dict[str, tuple[str, Preset]]  # preset -> its method, a name or a file, and its content


def presets() -> Known:
    """Every preset, read from the YAML file beside each method."""
    by_name: Known = {}
    for path in sorted((PACKAGE_ROOT / "methods").glob("*.yaml")):
        rows = _read_presets(path)
        if taken := rows.keys() & by_name:
            where = f"{shown(path)}: preset {min(taken)!r}"
            other = f"another in methods/{by_name[min(taken)][0]}.yaml"
            raise UserError(where, "every preset once", other, "rename one of them")
        by_name |= {name: (path.stem, preset) for name, preset in rows.items()}
    return by_name


def own_presets(own_methods: Mapping[str, str]) -> Known:
    """Presets of method files anywhere, by the names of the methods: those of the YAML file beside
    each, and the method as it is, under its own name. Raises UserError for names that are taken."""
    by_name: Known = {}
    others = presets() if own_methods else {}
    for name, file in own_methods.items():
        rows = _read_presets(Path(file).with_suffix(".yaml"))
        rows.setdefault(name, Preset(title=f"{name}, defaults"))
        if taken := rows.keys() & (others | by_name):
            where = f"methods.{name}: preset {min(taken)!r}"
            raise UserError(where, "a name that no preset has", "one", "give it another name")
        by_name |= {row: (file, preset) for row, preset in rows.items()}
    return by_name


def _read_presets(path: Path) -> dict[str, Preset]:
    """Those of a YAML file; none where there is no such file."""
    rows = read_yaml(path) if path.is_file() else {}
    if {"title", "datasets", "presets"} <= rows.keys():
        rows = {}  # a season's file, which one may well call as one's method
    names = [checked_name(name, f"{shown(path)}: preset") for name in rows]
    return {name: checked(Preset, rows[name], f"{shown(path)}: {name}") for name in names}


def needs(name: str, known: Known) -> list[str]:
    """The preset and, before it, what it is made of: members of a fusion, the one that it starts
    from, and so on."""
    row = known[name][1]
    others = [member for member, _ in row.fuse.members] if row.fuse else []
    others += [row.start] if row.start else []
    needed = [preset for other in others for preset in needs(other, known)]
    return list(dict.fromkeys([*needed, name]))


def shown(path: Path) -> str:
    """`path` as messages name it: from the repository root where it lies in there."""
    return str(path.relative_to(PACKAGE_ROOT)) if path.is_relative_to(PACKAGE_ROOT) else str(path)
