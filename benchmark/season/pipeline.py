"""The DVC pipelines of a season.

    seasons/<name>/dvc.yaml                             its report
    seasons/<name>/pipelines/<dataset>/<preset>/dvc.yaml  trainings and evaluations of a preset
    seasons/shared/dvc.yaml                             code digests, the network for drawn scenes
    seasons/shared/pipelines/<dataset>/dvc.yaml         fetch, prepare and encode of a dataset

The pipelines are small, since DVC reads and writes the whole lock file after every stage that it
runs. The working folder of every stage is the root. A stage lists just the files that it reads; its
code is listed as digests (code_digests.py), which a comment does not change.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import datasets
from benchmark.season.code_digests import DIGESTS, closure
from benchmark.season.networks import DRAWN
from benchmark.season.parameter_files import (
    DATASETS,
    FEATURE_SETS,
    SHARED,
    read_shared,
    write_generated,
)
from benchmark.season.parameters import BROUGHT, Cell, FeatureSet, Fusion, Params
from benchmark.season.presets import PACKAGE_ROOT
from benchmark.season.season_files import SEASONS

WEIGHTS = "data/weights/drawn_cnn.pt"
REPORT_CODE = ["analysis", "core", "data", "papers", "protocol", "report", "season"]
SHARED_CODE = ["benchmark", "methods", "datasets"]


def write_pipelines(params: Params) -> None:
    """Write the pipelines of a season and of what seasons share."""
    write_shared_pipelines()
    folder = SEASONS / params.season
    presets: dict[Path, dict] = {}
    for key, cell in params.cells.items():
        stages = presets.setdefault(_preset_folder(folder, cell), {})
        stages[f"train-{cell.seed}"] = _train(params, key, cell)
        stages[f"evaluate-{cell.seed}"] = _evaluate(params, key, cell)
    for key, fusion in params.fusions.items():
        stages = presets.setdefault(_preset_folder(folder, fusion), {})
        stages[f"evaluate-{fusion.seed}"] = _fuse(params, key, fusion)
    _remove_others(folder / "pipelines", presets)
    for path, stages in presets.items():
        _write(path, stages)
    _write(folder, {"report": _report(params), "metrics": _metrics(params)})


def write_shared_pipelines() -> None:
    """Write the pipelines of all datasets of all seasons, and what comes before them."""
    shared = read_shared()
    pipelines = {SHARED / "pipelines" / name: _dataset(shared, name) for name in shared.datasets}
    _remove_others(SHARED / "pipelines", pipelines)
    for path, stages in pipelines.items():
        _write(path, stages)
    _write(SHARED, {"code": _code(), "pretrain": _pretrain()})


# What seasons share -----------------------------------------------------------------------------


def _code() -> dict:
    return {
        "cmd": "python -m benchmark code",
        "deps": SHARED_CODE,
        "outs": [str(DIGESTS)],
    }


def _pretrain() -> dict:
    return {
        "cmd": "python -m benchmark.encode.drawn_pretraining",
        "deps": [_digest("pretrain")],
        "outs": [WEIGHTS],
    }


def _dataset(shared: Params, name: str) -> dict:
    """fetch, prepare and the feature sets of a dataset."""
    reader = shared.datasets[name].reader
    settings, manifest = str(DATASETS / f"{name}.yaml"), f"data/manifests/{name}.json"
    fetched = [manifest, f"data/raw/{name}"] if _has_files(reader) else [manifest]
    stages = {
        "fetch": {
            "cmd": f"python -m benchmark.fetch {name}",
            "deps": [settings, _digest(f"fetch-{reader}")],
            "outs": [{path: {"cache": False, "persist": True}} for path in fetched],
        },
        "prepare": {
            "cmd": f"python -m benchmark.prepare {name}",
            "deps": [settings, _digest(f"prepare-{reader}"), manifest],
            "outs": [f"data/prepared/{name}"],
        },
    }
    for key, feature_set in shared.feature_sets.items():
        if feature_set.dataset == name:
            stages[f"encode-{Path(feature_set.folder).name}"] = _encode(key, feature_set)
    return stages


def _has_files(reader: str) -> bool:
    """Whether a dataset has raw files. These are an output of fetch so that DVC sees edits: by
    sizes and times, once it has hashed them. It keeps no copy and deletes nothing."""
    module = datasets.load(reader)
    return bool(module.card(module.Options()).obtain)


def _encode(key: str, feature_set: FeatureSet) -> dict:
    prepared = f"data/prepared/{feature_set.dataset}"
    settings = feature_set.image or feature_set.proposals
    deps = [
        str(FEATURE_SETS / f"{key}.yaml"),
        _digest(f"encode-{feature_set.kind}"),
        _digest(f"encoder-{feature_set.encoder}"),
        prepared,
    ]
    if feature_set.source != prepared:
        deps.append(feature_set.source)
    if settings:
        deps.append(_digest(f"dataset-{feature_set.reader}"))
    if settings and settings.network == DRAWN:
        deps.append(WEIGHTS)
    return {
        "cmd": f"python -m benchmark.encode {key}",
        "deps": deps,
        "outs": [feature_set.folder],
    }


# Cells ------------------------------------------------------------------------------------------


def _train(params: Params, key: str, cell: Cell) -> dict:
    return {
        "cmd": f"python -m benchmark.train {key} --season {params.season}",
        "deps": [
            *_inputs(params, key, cell),
            *_code_of("train", cell),
            *([cell.start] if cell.start else []),
        ],
        "outs": [cell.checkpoint, {f"{cell.folder}/training": {"cache": False}}],
    }


def _evaluate(params: Params, key: str, cell: Cell) -> dict:
    return {
        "cmd": f"python -m benchmark.evaluate {key} --season {params.season}",
        "deps": [*_inputs(params, key, cell), *_code_of("evaluate", cell), cell.checkpoint],
        "outs": _results(cell.folder),
    }


def _fuse(params: Params, key: str, fusion: Fusion) -> dict:
    """The members' records stand for their methods and features: what changes a score changes
    them."""
    members = [cell for cell in params.cells.values() if cell.folder in fusion.members]
    return {
        "cmd": f"python -m benchmark.evaluate {key} --season {params.season}",
        "deps": [
            _cell_file(params, key),
            _digest("evaluate"),
            f"data/prepared/{fusion.dataset}",
            *(path for cell in members for path in (cell.checkpoint, f"{cell.folder}/record.json")),
        ],
        "outs": _results(fusion.folder),
    }


def _inputs(params: Params, key: str, cell: Cell) -> list[str]:
    folders = [f"data/prepared/{cell.dataset}", cell.images, cell.texts, cell.words]
    return [_cell_file(params, key), *(folder for folder in folders if folder)]


def _code_of(stage: str, cell: Cell) -> list[str]:
    backbone = [_digest(f"encoder-{cell.backbone}")] if cell.backbone else []
    if cell.method.endswith(".py"):  # and what of this repository it imports
        own = closure(PACKAGE_ROOT, [os.path.abspath(cell.method)]) - {os.path.abspath(cell.method)}
        return [_digest(stage), cell.method, *sorted(own), *backbone]
    return [_digest(f"{stage}-{cell.method}"), *backbone]


def _results(folder: str) -> list[dict]:
    """The parts of a cell's folder that its evaluation writes; git keeps them, not DVC."""
    return [{f"{folder}/{name}": {"cache": False}} for name in ("record.json", "scores")]


def _report(params: Params) -> dict:
    name, pages = params.season, f"reports/{params.season}"
    return {
        "cmd": f"python -m benchmark.report --season {name}",
        "deps": [
            *(f"benchmark/{room}" for room in REPORT_CODE),
            *("methods", "datasets"),
            str(SEASONS / name / "params.yaml"),
            str(SEASONS / name / "cells"),
            *(f"data/prepared/{dataset}" for dataset in params.datasets),
            f"results/{name}",
            *filter(os.path.isfile, (f"{path[:-3]}.yaml" for path in params.methods.values())),
            *_added(SEASONS / name),
        ],
        "outs": [{f"{pages}/{page}": {"cache": False}} for page in PAGES],
        "plots": [{f"{pages}/plots/{plot}.csv": drawn} for plot, drawn in PLOTS.items()],
    }


def _added(season: Path) -> list[str]:
    """What `tune` and `score` have added to a season, if they have: git keeps no empty folder."""
    trials, rows = season / "tuning.csv", season / BROUGHT
    return [str(path) for path in (trials, rows) if path.is_file() or any(path.glob("*.yaml"))]


def _metrics(params: Params) -> dict:
    """A file of few metrics for each preset, which DVC's own commands show on a line each."""
    pages = f"reports/{params.season}"
    return {
        "cmd": f"python -m benchmark export --metrics --season {params.season}",
        "deps": [f"{pages}/metrics.json", "benchmark/commands/export.py"],
        "metrics": [{f"{pages}/metrics": {"cache": False}}],
    }


PAGES = ["README.md", "claims.md", "claims.json", "datasets", "papers", "figures", "metrics.json"]
PLOTS = {
    "leaderboard": {
        "cache": False,
        "template": "bar_horizontal",
        "x": "rsum",
        "y": "preset",
        "title": "rsum on test",
    },
    "training": {"cache": False, "x": "epoch", "y": "val_rsum", "title": "validation rsum"},
}


# Files ------------------------------------------------------------------------------------------


def _preset_folder(season: Path, cell: Cell | Fusion) -> Path:
    return season / "pipelines" / cell.dataset / cell.preset


def _cell_file(params: Params, key: str) -> str:
    return str(SEASONS / params.season / "cells" / f"{key}.yaml")


def _digest(name: str) -> str:
    return str(DIGESTS / f"{name}.txt")


def _write(folder: Path, stages: dict[str, dict]) -> None:
    """dvc.yaml in `folder`, with the root as the working folder of every stage."""
    root = os.path.relpath(".", folder)
    stages = {name: {"wdir": root} | stage for name, stage in stages.items()}
    write_generated(folder / "dvc.yaml", {"stages": stages})


def _remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Remove the pipelines below `folder` that are no longer played, but for their locks: DVC reads
    none without a dvc.yaml beside it, and finds what was played up to date once that is back."""
    for path in list(folder.rglob("dvc.yaml")):
        if path.parent not in kept:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
