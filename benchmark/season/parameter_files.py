"""A resolved season on disk, and which season is the active one.

    params.yaml                          `season: NAME`, the active season
    local.yaml                           folders of this machine; never committed
    seasons/<name>/params.yaml           title, device, datasets and feature sets by name
    seasons/<name>/cells/<cell>.yaml     one cell or fusion each
    seasons/<name>/brought/<row>.yaml    one row each that `score` added; `season` leaves them
    seasons/shared/datasets/<name>.yaml  reader, its options, and the season's source if it has one
    seasons/shared/feature_sets/*.yaml   one feature set each

A dataset and its feature sets belong to all seasons that play them, so seasons must agree on them.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel

from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.files import read_yaml, write_text
from benchmark.core.names import FileName, Name, checked_name
from benchmark.core.suggestions import suggested
from benchmark.season.folder_checks import check_folders
from benchmark.season.parameters import (
    BROUGHT,
    Brought,
    Cell,
    DatasetSettings,
    FeatureSet,
    Fusion,
    MethodFile,
    OwnClaim,
    Params,
    SentenceEncoder,
    Strict,
    WordVectors,
)
from benchmark.season.season_files import SEASONS

PARAMS = Path("params.yaml")
LOCAL = Path("local.yaml")
SHARED = SEASONS / "shared"
DATASETS, FEATURE_SETS = SHARED / "datasets", SHARED / "feature_sets"
WRITTEN = "# Written by `python -m benchmark season`; season.yaml is the file to edit.\n"

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Local(Strict):
    """What is this machine's alone."""

    weights_dir: str | None = None  # folder of pretrained networks; None: torchvision's download
    sources: dict[str, str] = {}  # dataset or reader -> folder that holds its raw files


class Head(Strict):
    """seasons/<name>/params.yaml"""

    title: str
    device: str
    datasets: list[Name]
    feature_sets: list[FileName]
    methods: dict[Name, MethodFile] = {}
    claims: list[OwnClaim] = []
    cells: list[FileName]  # trained ones and fusions, in the order in which the season names them


def active_season() -> str:
    """The name of the season that is played."""
    if not PARAMS.is_file():
        raise UserError(
            PARAMS, "the active season", "nothing", "choose one: python -m benchmark season demo"
        )
    with corrected_by("python -m benchmark season NAME"):
        return checked_name(read_yaml(PARAMS).get("season"), f"{PARAMS}: season")


def read_params(season: str | None = None) -> Params:
    """A season by name, by default the active one, with the folders of this machine."""
    name = checked_name(season, "--season") if season else active_season()
    path = SEASONS / name / "params.yaml"
    if not path.is_file():
        raise UserError(
            path, "a resolved season", "nothing", f"run: python -m benchmark season {name}"
        )
    with corrected_by(f"python -m benchmark season {name}"):
        params = _read_resolved(name, path)
    return placed(params, read_local())


def _read_resolved(name: str, path: Path) -> Params:
    head = checked(Head, read_yaml(path), str(path))
    _check_listed(path, head)
    cells, fusions = _read_cells(SEASONS / name / "cells", head.cells)
    params = Params(
        season=name,
        title=head.title,
        device=head.device,
        weights_dir=None,
        datasets=_read_all(DatasetSettings, DATASETS, head.datasets),
        feature_sets=_read_all(FeatureSet, FEATURE_SETS, head.feature_sets),
        cells=cells,
        fusions=fusions,
        methods=head.methods,
        claims=head.claims,
        brought=_read_all(Brought, path.parent / BROUGHT, _stems(path.parent / BROUGHT)),
    )
    for key, cell in {**cells, **fusions}.items():
        if cell.dataset not in params.datasets:
            raise UserError(f"{path}: datasets", f"{cell.dataset}, as of {key}", "nothing")
    check_folders(params)
    return params


def _check_listed(path: Path, head: Head) -> None:
    """A list that lost its end is still a list: every file of a cell must be on it, once."""
    for key in set(_stems(path.parent / "cells")) - set(head.cells):
        raise UserError(f"{path}: cells", f"{key}, as of its file in cells/", "nothing")
    for name, keys in (("cells", head.cells), ("datasets", head.datasets)):
        if len(set(keys)) < len(keys):
            raise UserError(f"{path}: {name}", "every name once", "one twice")


def read_shared() -> Params:
    """All datasets and feature sets of all seasons, without a cell."""
    params = Params(
        season=SHARED.name,
        title="What seasons share",
        device="auto",
        weights_dir=None,
        datasets=_read_all(DatasetSettings, DATASETS, _stems(DATASETS)),
        feature_sets=_read_all(FeatureSet, FEATURE_SETS, _stems(FEATURE_SETS)),
        cells={},
        fusions={},
    )
    check_folders(params)
    return placed(params, read_local())


def read_local() -> Local:
    """The folders of this machine; without local.yaml there are none."""
    return checked(Local, read_yaml(LOCAL), str(LOCAL)) if LOCAL.is_file() else Local()


def write_local(local: Local) -> None:
    write_text(LOCAL, yaml.safe_dump(local.model_dump(), sort_keys=False))


def activate(season: str) -> None:
    """Make a season the one that `dvc repro` plays."""
    write_text(PARAMS, f"season: {season}\n")


def write_params(params: Params) -> None:
    """Write a resolved season and make it the active one. Files of cells that it no longer has
    are removed. Raises UserError where another season has other settings of the same dataset."""
    datasets = {
        name: settings.model_dump(include={"reader", "source", "options"}, exclude_none=True)
        for name, settings in params.datasets.items()
    }
    feature_sets = {key: _dumped(value) for key, value in params.feature_sets.items()}
    cells = {key: _dumped(cell) for key, cell in {**params.cells, **params.fusions}.items()}
    _check_agreement(params.season, datasets, DATASETS)
    _check_agreement(params.season, feature_sets, FEATURE_SETS)
    for folder, contents in ((DATASETS, datasets), (FEATURE_SETS, feature_sets)):
        for key, content in contents.items():
            write_generated(folder / f"{key}.yaml", content)
    folder = SEASONS / params.season
    for key in set(_stems(folder / "cells")) - set(cells):
        (folder / "cells" / f"{key}.yaml").unlink()
    for key, content in cells.items():
        write_generated(folder / "cells" / f"{key}.yaml", content)
    head = {"title": params.title, "device": params.device}
    own = {"methods": params.methods, "claims": [claim.model_dump() for claim in params.claims]}
    head |= {what: content for what, content in own.items() if content}
    names = {"datasets": datasets, "feature_sets": feature_sets, "cells": cells}
    write_generated(
        folder / "params.yaml", head | {what: list(keys) for what, keys in names.items()}
    )
    activate(params.season)


def write_brought(season: str, row: Brought) -> None:
    """Add a row to a season, or write it again."""
    path = SEASONS / season / BROUGHT / f"{row.key}.yaml"
    write_text(path, "# Written by `python -m benchmark score`.\n" + yaml.safe_dump(_dumped(row)))


def write_generated(path: Path, content: dict) -> None:
    """Write a YAML file that is made from others, unless it holds just this: DVC hashes a file
    again when its time changes."""
    text = WRITTEN + yaml.safe_dump(content, sort_keys=False, width=100)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def entry(group: Mapping[str, T], key: str, what: str) -> T:
    """`group[key]`, or a `UserError` that lists what the season has."""
    if key not in group:
        raise UserError(
            f"{what} {key!r}",
            f"one of {', '.join(group) or '(none)'}",
            f"no such key: {suggested(key, group)}",
            "see the files of the season, or choose another: python -m benchmark season NAME",
        )
    return group[key]


def cells_like(params: Params, pattern: str, option: str) -> list[str]:
    """Keys of the cells and fusions that fit a pattern. Raises UserError where none does."""
    cells = {**params.cells, **params.fusions}
    fitting = [key for key in cells if fnmatchcase(key, pattern)]
    if not fitting:
        raise UserError(
            option,
            f"a pattern of cells such as {next(iter(cells), '(there is none)')}",
            suggested(pattern, cells),
            f"see the names in {SEASONS / params.season}/cells",
        )
    return fitting


def placed(params: Params, local: Local) -> Params:
    """The season with the folders of this machine filled in."""
    datasets = {name: _sourced(name, known, local) for name, known in params.datasets.items()}
    sets = params.feature_sets
    if local.weights_dir is not None:
        sets = {key: _weighed(known, Path(local.weights_dir)) for key, known in sets.items()}
    update = {"datasets": datasets, "feature_sets": sets, "weights_dir": local.weights_dir}
    return params.model_copy(update=update)


def _sourced(name: str, settings: DatasetSettings, local: Local) -> DatasetSettings:
    source = local.sources.get(name, local.sources.get(settings.reader, settings.source))
    return settings.model_copy(update={"source": source})


def _weighed(feature_set: FeatureSet, folder: Path) -> FeatureSet:
    """With the files of word vectors and text encoders in the folder of weights."""
    words, sentence = feature_set.words, feature_set.sentence
    update = {"words": words and _vectors(words, folder)}
    update["sentence"] = sentence and _text_weights(sentence, folder)
    return feature_set.model_copy(update=update)


def _text_weights(settings: SentenceEncoder, folder: Path) -> SentenceEncoder:
    words = settings.words and _vectors(settings.words, folder)
    weights = settings.weights and str(folder / settings.weights)
    return settings.model_copy(update={"words": words, "weights": weights})


def _vectors(settings: WordVectors, folder: Path) -> WordVectors:
    vectors = settings.vectors and str(folder / settings.vectors)
    return settings.model_copy(update={"vectors": vectors})


# Files ------------------------------------------------------------------------------------------


def _dumped(model: BaseModel) -> dict:
    """What is set: fields that are None are left out."""
    return model.model_dump(mode="json", exclude_none=True)


def _check_agreement(season: str, contents: dict[str, dict], folder: Path) -> None:
    """Refuse other settings of what another season plays, too."""
    for other, head in _heads().items():
        for key in {*head.datasets, *head.feature_sets} if other != season else ():
            path = folder / f"{key}.yaml"
            if key in contents and path.is_file() and read_yaml(path) != contents[key]:
                raise UserError(
                    f"season {season}: {path}",
                    f"the settings that season {other} has",
                    "others",
                    "give the dataset another name in the season file, and its reader",
                )


def _heads() -> dict[str, Head]:
    """The head of every resolved season."""
    paths = sorted(SEASONS.glob("*/params.yaml"))
    return {path.parent.name: checked(Head, read_yaml(path), str(path)) for path in paths}


def _read_cells(folder: Path, keys: list[str]) -> tuple[dict[str, Cell], dict[str, Fusion]]:
    """Trained cells and fusions."""
    contents = {key: read_yaml(folder / f"{key}.yaml") for key in keys}
    cells, fusions = {}, {}
    for key, data in contents.items():
        if "members" in data:
            fusions[key] = checked(Fusion, data, f"{folder}/{key}.yaml")
        else:
            cells[key] = checked(Cell, data, f"{folder}/{key}.yaml")
    return cells, fusions


def _read_all(model: type[M], folder: Path, keys: Iterable[str]) -> dict[str, M]:
    paths = {key: folder / f"{key}.yaml" for key in keys}
    return {key: checked(model, read_yaml(path), str(path)) for key, path in paths.items()}


def _stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))
