"""Presets: rows of the papers' tables as options of methods. Knows no torch.

The numbers that the papers print for them are in benchmark/papers/.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.core.names import Name, checked_name
from benchmark.season.parameters import Option, Strict

PACKAGE_ROOT = Path(__file__).parents[2]  # where methods/ and seasons/ lie


class Fuse(Strict):
    """Late fusion: scores of presets, or named parts of them ("preset:score"), as one score."""

    how: Literal["average", "adaptive", "weighted"]
    of: list[str] = Field(min_length=1, max_length=3)


class Preset(Strict):
    """A row of a paper's table: a method with options, or a fusion of other presets."""

    title: str
    family: Literal["paper", "official"] = "paper"
    network: str | None = None  # image network the paper feeds it
    grid: int | None = (
        None  # side of the image grid, where a row needs more regions than the season's
    )
    sentence: Name | None = None  # encoder of benchmark/encoders, for sentence vectors
    start: str | None = None  # preset whose checkpoint training starts from
    options: dict[str, Option] = {}
    fuse: Fuse | None = None
    note: str = ""


def presets() -> dict[str, tuple[str, Preset]]:
    """Every preset: name -> (method, preset), read from the YAML file beside each method."""
    by_name: dict[str, tuple[str, Preset]] = {}
    for path in sorted((PACKAGE_ROOT / "methods").glob("*.yaml")):
        for name, preset in _read_presets(path).items():
            if name in by_name:
                raise UserError(
                    f"{shown(path)}: preset {name!r}",
                    "every preset once",
                    f"another in methods/{by_name[name][0]}.yaml",
                    "rename one of them",
                )
            by_name[name] = (path.stem, preset)
    return by_name


def own_presets(own_methods: Mapping[str, str]) -> dict[str, tuple[str, Preset]]:
    """Presets of method files anywhere, by the names of the methods: those of the YAML file beside
    each, and the method as it is, under its own name. Raises UserError for names that are taken."""
    by_name, others = {}, presets() if own_methods else {}
    for name, file in own_methods.items():
        beside = Path(file).with_suffix(".yaml")
        rows = {} if _is_season(beside) else _read_presets(beside)
        rows.setdefault(name, Preset(title=f"{name}, defaults"))
        for row in rows:
            if row in others or row in by_name:
                where = f"methods.{name}: preset {row!r}"
                raise UserError(where, "a name that no preset has", "one", "give it another name")
        by_name |= {row: (file, preset) for row, preset in rows.items()}
    return by_name


def _is_season(path: Path) -> bool:
    """Whether a YAML file is a season's, which one may well call as one's method."""
    return path.is_file() and {"title", "datasets", "presets"} <= set(read_yaml(path))


def _read_presets(path: Path) -> dict[str, Preset]:
    """Those of a YAML file; none where there is no such file."""
    rows = read_yaml(path) if path.is_file() else {}
    for name in rows:
        checked_name(name, f"{shown(path)}: preset")
    return {name: checked(Preset, data, f"{shown(path)}: {name}") for name, data in rows.items()}


def needs(name: str, known: dict[str, tuple[str, Preset]]) -> list[str]:
    """The preset and what it is made of: members of a fusion, the one it starts from, and so on.

    Each comes after what it needs.
    """
    row = known[name][1]
    others = [member.partition(":")[0] for member in row.fuse.of] if row.fuse else []
    others += [row.start] if row.start else []
    needed = [preset for other in others for preset in needs(other, known)]
    return list(dict.fromkeys([*needed, name]))


def shown(path: Path) -> str:
    """`path` as messages name it: from the repository root where it lies in there."""
    return str(path.relative_to(PACKAGE_ROOT)) if path.is_relative_to(PACKAGE_ROOT) else str(path)
