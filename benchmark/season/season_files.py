"""Season files: what is to be played, written by hand. seasons/<name>/season.yaml."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from benchmark.core.errors import UserError, checked
from benchmark.core.files import read_yaml
from benchmark.core.names import Name, checked_name
from benchmark.core.suggestions import suggested
from benchmark.season.parameters import (
    DatasetSettings,
    MethodFile,
    Mode,
    Option,
    OwnClaim,
    Precision,
    Seed,
    Strict,
)
from benchmark.season.presets import PACKAGE_ROOT, shown

SEASONS = Path("seasons")
SEASON_FILE = "season.yaml"
RESERVED = ("shared", "run")  # what seasons share; cells played by `run`


def _distinct(seeds: list[int]) -> list[int]:
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError("at least one seed, each of them once")
    return seeds


Seeds = Annotated[list[Seed], AfterValidator(_distinct)]


class Season(Strict):
    """Datasets, presets, seeds and a budget."""

    title: str  # of the report
    datasets: dict[Name, DatasetSettings]  # by name
    methods: dict[Name, MethodFile] = {}  # own ones: name -> file, its presets beside it
    presets: list[Name] | Literal["all"]  # what they are made of is added
    claims: list[OwnClaim] = []  # own ones, beside those of the papers
    seeds: Seeds  # three for verdicts
    seeds_of: dict[str, Seeds] = {}  # method, or pattern of presets -> seeds instead of these
    sentence_of: dict[str, Name] = {}  # the same -> sentence encoder instead of the presets' own
    device: str = "auto"  # the first CUDA device, else the CPU; or cpu, cuda:1
    precision: Precision = "float32"  # docs/gpus.md tells what they mean
    numerics: Mode = "portable"  # of cells; features are portable always
    threads: int = Field(1, ge=1, le=1024)  # of a cell: their number changes the last bits
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
    """The name of a season given by name or by the path of its file. Raises UserError for one that
    cannot be the name of folders."""
    path = Path(name)
    if name.endswith(".yaml"):
        name = path.absolute().parent.name if path.name == SEASON_FILE else path.stem
    if name in RESERVED:
        raise UserError(f"season {name}", "another name", "a reserved one", "rename the file")
    return checked_name(name, f"season {str(path)!r}")


def read_season(name: str) -> Season:
    """A season by name, or by the path of its file. Raises UserError where there is none."""
    season_name(name)
    path = season_path(name)
    if not path.is_file() and name.endswith(".yaml"):
        raise UserError(name, "a season file", "file not found", "check the path")
    if not path.is_file():
        raise UserError(
            f"season {name!r}",
            f"one of {', '.join(season_names())}, or the path of a .yaml file",
            f"neither: {suggested(name, season_names())}",
            "see: python -m benchmark list seasons",
        )
    return checked(Season, read_yaml(path), shown(path))
