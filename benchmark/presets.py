"""Presets: rows of the papers' tables, and the numbers printed there. Knows no torch."""

from pathlib import Path
from typing import Literal

from benchmark.errors import UserError, checked
from benchmark.files import read_yaml
from benchmark.params import Option, Strict

PACKAGE_ROOT = Path(__file__).parent.parent  # where methods/ and seasons/ lie


class Reported(Strict):
    """Numbers a paper prints for a preset, in percent."""

    table: str
    i2t_r1: float | None = None
    i2t_r5: float | None = None
    i2t_r10: float | None = None
    t2i_r1: float | None = None
    t2i_r5: float | None = None
    t2i_r10: float | None = None


class Preset(Strict):
    """A row of a paper's table. Either a method with options, or the fusion of two presets."""

    title: str
    family: Literal["paper", "official"] = "paper"
    options: dict[str, Option] = {}
    average: tuple[str, str] | None = None  # presets whose scores are averaged
    reported: dict[str, Reported] = {}  # dataset -> numbers
    note: str = ""


def presets() -> dict[str, tuple[str, Preset]]:
    """Every preset: name -> (method, preset), read from the YAML file beside each method."""
    found: dict[str, tuple[str, Preset]] = {}
    for path in sorted((PACKAGE_ROOT / "methods").glob("*.yaml")):
        for name, data in read_yaml(path).items():
            if name in found:
                raise UserError(f"{shown(path)}: preset {name!r} is already in {found[name][0]}")
            found[name] = (path.stem, checked(Preset, data, f"{shown(path)}: {name}"))
    return found


def shown(path: Path) -> str:
    """`path` as messages name it: from the repository root where it lies in there."""
    return str(path.relative_to(PACKAGE_ROOT)) if path.is_relative_to(PACKAGE_ROOT) else str(path)
