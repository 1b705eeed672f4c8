"""Season files: what is to be played, written by hand. seasons/<name>/season.yaml."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.season.parameters import DatasetSettings, Mode, Option, Precision, Strict
from benchmark.season.presets import PACKAGE_ROOT, shown

SEASONS = Path("seasons")
SEASON_FILE = "season.yaml"


class Season(Strict):
    """Datasets, presets, seeds and a budget."""

    title: str
    datasets: dict[str, DatasetSettings]
    presets: list[str] | Literal["all"]
    seeds: list[int]
    seeds_of: dict[str, list[int]] = {}  # method, or pattern of presets -> seeds instead of these
    device: str = "auto"
    precision: Precision = "float32"
    numerics: Mode = "portable"  # of cells; features are portable always
    threads: int = Field(1, ge=1)  # of a cell: their number changes the last bits
    validation_images: int | None = Field(None, ge=1)  # checkpoint selection sees the first n
    options: dict[str, dict[str, Option]] = {}  # method, or pattern of presets -> budget's changes


def season_names() -> list[str]:
    """Every ready-made season, in alphabetical order."""
    return sorted(path.parent.name for path in (PACKAGE_ROOT / SEASONS).glob(f"*/{SEASON_FILE}"))


def season_path(name: str) -> Path:
    """The file of a season: a path as it is, a name in seasons/ of the working folder or, for a
    ready-made one, of the package."""
    if name.endswith(".yaml"):
        return Path(name)
    own = SEASONS / name / SEASON_FILE
    return own if own.is_file() else PACKAGE_ROOT / own


def season_name(name: str) -> str:
    """The name of a season given by name or by the path of its file."""
    path = Path(name)
    if not name.endswith(".yaml"):
        return name
    return path.parent.name if path.name == SEASON_FILE else path.stem


def read_season(name: str) -> Season:
    """A season by name, or by the path of its file. Raises UserError where there is none."""
    path = season_path(name)
    if not path.is_file():
        raise UserError(
            f"season {name!r}",
            f"one of {', '.join(season_names())}, or the path of a .yaml file",
            "neither",
            "see: python -m benchmark list seasons",
        )
    return checked(Season, read_yaml(path), shown(path))
