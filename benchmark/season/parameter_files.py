"""Parameter files: season files, what seasons share, and what this machine and folder
choose.

params.yaml                   `season: NAME`, the active season
local.yaml                    folders of this machine; never committed
seasons/<name>/season.yaml    a season as people write it; its cells are resolved in memory
seasons/<name>/external.yaml  rows that `score` added
seasons/shared/params.yaml    settings of all datasets and feature sets of all seasons
"""

import os
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import yaml

from benchmark.contracts import HOME
from benchmark.core.errors import Strict, UserError, checked, corrected_by, suggested
from benchmark.core.files import (
    is_file,
    read_json,
    read_yaml,
    sha256,
    write_bytes,
    write_json,
    write_text,
)
from benchmark.core.names import checked_name
from benchmark.data import results
from benchmark.season.declaring import declare
from benchmark.season.parameters import Brought, Declaration, Params, Season
from benchmark.season.plugins import shown
from benchmark.season.resolving import resolve

SEASONS, SEASON_FILE = Path("seasons"), "season.yaml"
SHARED, EXTERNAL = SEASONS / "shared/params.yaml", "external.yaml"
RESERVED = ("shared", "run")  # what seasons share; cells of `run`
PARAMS, LOCAL = Path("params.yaml"), Path("local.yaml")
REMEMBERED = Path(".scratch/inputs.json")
AnySeason = TypeVar("AnySeason", bound=Declaration)


class Kept(Strict):
    """A season file that `rematch season` copied."""

    file: str
    sha256: str  # of the copy


class Local(Strict):
    """What is this machine's alone."""

    # folder of pretrained networks; None: torchvision's download
    weights_dir: str | None = None
    sources: dict[str, str] = {}  # dataset or reader -> folder that holds its raw files
    # season -> the file elsewhere that its season.yaml is a copy of
    kept: dict[str, Kept] = {}


def season_names() -> list[str]:
    """Every ready-made season, in alphabetical order."""
    files = (HOME / SEASONS).glob(f"*/{SEASON_FILE}")
    return sorted(file.parent.name for file in files)


def season_path(name: str) -> Path:
    """The file of a season: a path as it is, a name in seasons/ of the working folder
    or, for a ready-made one, of the package."""
    if name.endswith(".yaml"):
        return Path(name)
    own = SEASONS / name / SEASON_FILE
    return own if own.is_file() else HOME / own


def season_name(name: str) -> str:
    """The name of a season given by name or by the path of its file. Raises UserError
    for one that cannot be the name of folders."""
    path = Path(name)
    if name.endswith(".yaml"):
        name = path.absolute().parent.name if path.name == SEASON_FILE else path.stem
    if name in RESERVED:
        raise UserError(
            f"season {name}",
            expected="another name",
            found="a reserved one",
            do="rename the file",
        )
    return checked_name(name, f"season {str(path)!r}")


def read_season(name: str) -> Season:
    """A season by name, or by the path of its file. Raises UserError where there is
    none."""
    season_name(name)
    path = season_path(name)
    if not path.is_file():
        names = season_names()
        raise UserError(
            f"season {name!r}",
            expected=f"one of {', '.join(names)}, or the path of a .yaml file",
            found="no such file" if name.endswith(".yaml") else suggested(name, names),
            do="see: rematch list seasons",
        )
    return checked(Season, read_yaml(path), shown(path))


def active_season() -> str:
    """The name of the season that `dvc repro` runs."""
    if not PARAMS.is_file():
        folder = enclosing_project()
        advice = "choose one: rematch season demo"
        if folder:
            advice = f"run it in {folder}, or name the season: --season NAME"
        raise UserError(
            PARAMS,
            expected="the active season",
            found="nothing",
            do=advice,
        )
    with corrected_by("rematch season NAME"):
        return checked_name(read_yaml(PARAMS).get("season"), f"{PARAMS}: season")


def activate(season: str) -> None:
    """Make a season the one that `dvc repro` runs."""
    write_text(PARAMS, f"season: {season}\n")


def read_params(season: str | None = None, only: str | None = None) -> Params:
    """A season by name, by default the active one, resolved and with the folders of
    this machine. With `only`, a cell or a preset, it has no more than this needs."""
    return placed(resolved(season, only), read_local())


def resolved(season: str | None = None, only: str | None = None) -> Params:
    """The same as `read_params`, but without the folders of this machine, as in
    pipelines."""
    name = _name_of_season(season) if season else active_season()
    return resolve(
        name,
        read_season(name),
        brought=read_brought(name),
        remembered=read_remembered(),
        only=only,
    )


def read_and_note(season: str | None = None) -> Params:
    """The same as `read_params`; what its methods take is noted."""
    name = _name_of_season(season) if season else active_season()
    return placed(resolve_and_note(name, read_season(name)), read_local())


def resolve_and_note(name: str, season: Season) -> Params:
    """The season with every cell spelt out, as `resolve` has it. What its methods take
    is noted, so that torch need not be imported next time."""
    remembered = read_remembered()
    before = len(remembered)
    brought = read_brought(name)
    params = resolve(name, season, brought=brought, remembered=remembered)
    if len(remembered) > before:
        with suppress(OSError):  # a folder that cannot be written to
            write_json(REMEMBERED, remembered)
    return params


def read_declaration(season: str | None = None) -> Declaration:
    """A season by name, by default the active one, with its cells by name: for what
    reads results, and needs no method file."""
    name = _name_of_season(season) if season else active_season()
    declared = declare(name, read_season(name), brought=read_brought(name))
    return _with_sources(declared, read_local())


def _name_of_season(season: str) -> str:
    """The name itself. Raises UserError for what is none, such as a season file."""
    if season.endswith(".yaml"):
        raise UserError(
            f"season {season}",
            expected="its name",
            found="a file",
            do=f"run: rematch season {season}; then name it: {season_name(season)}",
        )
    return checked_name(season, "--season")


def read_remembered() -> dict[str, dict]:
    """What methods take, by their code and options, as far as it was noted."""
    try:
        return read_json(REMEMBERED)
    except UserError:  # missing or damaged, it is made again
        return {}


def check_project() -> None:
    """Raise UserError if this folder is not a clone of the project."""
    if not _is_clone(Path()):
        raise _no_project(enclosing_project())


def check_not_inside() -> None:
    """Raise UserError in a folder inside of a clone: it would become a second
    project."""
    folder = enclosing_project()
    if folder and not _is_clone(Path()):
        raise _no_project(folder)


def enclosing_project() -> Path | None:
    """The clone that this folder lies in, if there is one."""
    for folder in Path.cwd().parents:
        if _is_clone(folder):
            return folder
    return None


def _no_project(folder: Path | None) -> UserError:
    expected = f"the project's folder, with {SEASONS}/ and {PARAMS}"
    return UserError(
        Path.cwd(),
        expected=expected,
        found="another folder",
        do=f"run it in {folder or expected}",
    )


def _is_clone(folder: Path) -> bool:
    return (folder / PARAMS).is_file() and (folder / SEASONS).is_dir()


def read_shared() -> Params:
    """All datasets and feature sets of all seasons, without a cell."""
    content = {
        "season": SHARED.parent.name,
        "title": "What seasons share",
        "device": "auto",
        "datasets": {},
        "feature_sets": {},
    }
    if SHARED.is_file():
        content |= read_yaml(SHARED)
    with corrected_by("rematch season NAME"):
        return placed(checked(Params, content, str(SHARED)), read_local())


def read_brought(season: str) -> dict[str, Brought]:
    """The rows that `score` added to a season, by key."""
    path = SEASONS / season / EXTERNAL
    rows = read_yaml(path) if path.is_file() else {}
    return {key: checked(Brought, row, f"{path}: {key}") for key, row in rows.items()}


def add_brought(season: str, row: Brought) -> None:
    """Add a row to a season, or write it again."""
    _write_brought(season, read_brought(season) | {row.key: row})


def remove_brought(season: str, name: str) -> list[Brought]:
    """Remove the rows with this name, or the one with this key, and their results.

    Returns the rows that were removed. Raises UserError if there is none, or if the
    season file still names one of them.
    """
    rows = read_brought(season)
    gone = [row for row in rows.values() if name in (row.key, row.preset)]
    if not gone:
        known = {row.preset for row in rows.values()}
        names = ", ".join(sorted(known)) or "(none)"
        raise UserError(
            "--remove",
            expected=f"a row that `score` added, one of {names}",
            found=suggested(name, known),
            do="correct the name",
        )
    kept_rows = {key: row for key, row in rows.items() if row not in gone}
    # raises UserError if the season file names a row that would be gone
    resolve(season, read_season(season), brought=kept_rows)
    _write_brought(season, kept_rows)
    for row in gone:
        folder = results.RESULTS / season / row.dataset / results.EXTERNAL
        kept = results.read_folder(folder)
        kept.pop(row.name, None)
        results.write_external(folder, kept)
    return gone


def _write_brought(season: str, rows: dict[str, Brought]) -> None:
    path = SEASONS / season / EXTERNAL
    if not rows:
        path.unlink(missing_ok=True)
        return
    content = {key: row.model_dump() for key, row in sorted(rows.items())}
    text = yaml.safe_dump(content)
    write_text(path, f"# Written by `rematch score`.\n{text}")


def keep_file(source: Path, season: str) -> None:
    """Copy a season file from elsewhere into seasons/, over an earlier copy of it.
    Raises UserError if it would replace another file, or a copy that was edited."""
    target = SEASONS / season / SEASON_FILE
    local = read_local()
    if target.is_file() and source.resolve() == target.resolve():
        return
    before = local.kept.get(season)
    file = str(source.absolute())
    if target.is_file() and target.read_bytes() != source.read_bytes():
        if before != Kept(file=file, sha256=sha256(target)):
            raise UserError(
                target,
                expected=f"the text of {source}",
                found="another",
                do="remove one of the files",
            )
    write_bytes(target, source.read_bytes())
    kept = Kept(file=file, sha256=sha256(target))
    if source != HOME / target and kept != before:
        kept_files = local.kept | {season: kept}
        write_local(local.model_copy(update={"kept": kept_files}))


def check_kept(season: str) -> None:
    """Raise UserError if the file from which a season was copied has been edited since
    then."""
    kept = read_local().kept.get(season)
    target = SEASONS / season / SEASON_FILE
    if kept is None or not is_file(kept.file):
        return
    if sha256(Path(kept.file)) not in (kept.sha256, sha256(target)):
        raise UserError(
            kept.file,
            expected=f"the text that is in {target}",
            found="a newer one",
            do=f"run: rematch season {kept.file}, "
            f"or edit {target} instead and remove the other",
        )


def read_local() -> Local:
    """The folders of this machine; without local.yaml there are none."""
    if not LOCAL.is_file():
        return Local()
    return checked(Local, read_yaml(LOCAL), str(LOCAL))


def write_local(local: Local) -> None:
    write_text(LOCAL, yaml.safe_dump(local.model_dump(), sort_keys=False))


def placed(params: Params, local: Local) -> Params:
    """The season with the folders of this machine filled in."""
    weights_dir = local.weights_dir and os.path.expanduser(local.weights_dir)
    folder = Path(weights_dir or "")
    feature_sets = params.model_dump(include={"feature_sets"})["feature_sets"]
    for each in feature_sets.values():
        words = each["words"] or {}
        sentence = each["sentence"] or {}
        words_of_sentence = sentence.get("words") or {}
        for settings in (words, sentence, words_of_sentence):
            for key in ("vectors", "weights"):
                if settings.get(key):
                    settings[key] = str(folder / settings[key])
    fields = dict(_with_sources(params, local))
    fields["weights_dir"] = weights_dir
    fields["feature_sets"] = feature_sets
    return Params(**fields)


def _with_sources(season: AnySeason, local: Local) -> AnySeason:
    """A season with the folder of raw files of each dataset."""
    datasets = {}
    for name, known in season.datasets.items():
        by_reader = local.sources.get(known.reader, known.source)
        source = local.sources.get(name, by_reader)
        datasets[name] = known.model_copy(update={"source": source})
    return season.model_copy(update={"datasets": datasets})


def cells_like(params: Params, patterns: str) -> list[str]:
    """Keys of the cells and fusions that fit one of several patterns of --only, with
    commas between them. Raises UserError for a pattern that none fits."""
    keys = list(params.everything)
    chosen: set[str] = set()
    for pattern in patterns.split(","):
        fitting = [key for key in keys if fnmatchcase(key, pattern)]
        if not fitting:
            example = keys[0] if keys else "(none)"
            raise UserError(
                "--only",
                expected=f"a pattern of cells such as {example}",
                found=suggested(pattern, keys),
                do=f"see the presets of {SEASONS / params.season / SEASON_FILE}",
            )
        chosen.update(fitting)
    return [key for key in keys if key in chosen]
