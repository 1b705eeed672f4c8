"""Whether the working folder is a clone of the project, and which season is played in it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmark.core.errors import UserError
from benchmark.core.locks import alone
from benchmark.core.suggestions import suggested
from benchmark.season.parameter_files import PARAMS, active_season, cells_like, read_params
from benchmark.season.parameters import Params
from benchmark.season.season_files import SEASON_FILE, SEASONS, season_names


def season_here(name: str | None) -> Params:
    """The season of this name, else the active one. Raises UserError in a folder that is no
    project's, and for a name that no season has."""
    check_project()
    if name is not None and name not in (known := _known()):
        raise UserError(
            f"season {name!r}",
            f"one of {', '.join(known)}",
            suggested(name, known),
            "correct the name, or see: python -m benchmark list seasons",
        )
    return read_params(name or active_season())


def check_project() -> None:
    """Raises UserError in a folder that is no clone."""
    if not _is_project(Path()):
        expected = f"the project's folder, with {SEASONS}/ and {PARAMS}"
        outer = next(filter(_is_project, Path.cwd().parents), "the project's folder")
        raise UserError(Path.cwd(), expected, "another folder", f"run it in {outer}")


def cells_like_any(params: Params, patterns: str, option: str) -> list[str]:
    """Keys of the cells and fusions that fit one of several patterns, with commas between them.
    Raises UserError for a pattern that none fits."""
    fitting = {key for part in patterns.split(",") for key in cells_like(params, part, option)}
    return [key for key in (*params.cells, *params.fusions) if key in fitting]


@contextmanager
def alone_here(lock_file: Path, verb: str) -> Iterator[None]:
    """As `alone`, and who is refused is told which process has the lock."""
    with ExitStack() as held:
        try:
            held.enter_context(alone(lock_file, verb))
        except UserError as error:
            process = f"process {lock_file.read_text().strip()}"
            raise UserError(error.where, error.expected, process, error.do) from error
        lock_file.write_text(f"{os.getpid()}\n")
        yield


def _is_project(folder: Path) -> bool:
    return (folder / PARAMS).is_file() and (folder / SEASONS).is_dir()


def _known() -> list[str]:
    """Seasons of this folder, and ready-made ones."""
    files = (path for name in (SEASON_FILE, PARAMS) for path in SEASONS.glob(f"*/{name}"))
    return sorted({path.parent.name for path in files}.union(season_names()))
