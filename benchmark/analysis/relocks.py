"""Changes of code that a season's locks followed without its stages being played anew."""

from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.files import write_json
from benchmark.core.json_objects import read_object

FILE = "relocks.json"  # in results/<season>/


class Change(NamedTuple):
    """A digest in data/code/, or a module of an own method, that had changed, with the hashes by
    which DVC knows it, for stages that compute in one way."""

    file: str
    former: str
    present: str
    numerics: str  # as in "portable, 1 thread"


class Shown(BaseModel):
    """Changes with which a replay left the same bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    season: str
    cells: int  # of it, that were played again
    fingerprint: str  # of the machine
    code: list[Change]


class Relock(BaseModel):
    """What showed that stages would leave the same bytes again: results/<season>/relocks.json holds
    a list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stages: int  # of the season, whose locks name the present code
    shown: list[Shown]


def read_relocks(season: str) -> list[Relock]:
    """Those of a season, the first one first; none without a file."""
    path = _path(season)
    with corrected_by(f"git checkout {path}"):
        rows = read_object(path).get("relocks") if path.exists() else []
        if not isinstance(rows, list):
            raise UserError(f"{path}: relocks", "a list", type(rows).__name__)
        return [checked(Relock, row, str(path)) for row in rows]


def note_relock(season: str, relock: Relock) -> None:
    """Add one to those of a season."""
    rows = [row.model_dump() for row in (*read_relocks(season), relock)]
    write_json(_path(season), {"relocks": rows})


def _path(season: str) -> Path:
    return Path("results") / season / FILE
