"""The DVC pipelines of a season, and the digests that make its stages stale.

    seasons/<name>/dvc.yaml     trainings, evaluations, what git keeps of them, and the report
    seasons/<name>/cells.yaml   a digest for each cell: its options, and the code of its method
    seasons/shared/dvc.yaml     fetch, prepare and encode of all datasets and of their folds:
                                seasons share them
    seasons/shared/params.yaml  settings of the datasets and feature sets

The root is the working folder of every stage. A stage depends on its digest or settings
and on the version of its code (benchmark/versions.yaml) as parameters, and on the files
that it reads. DVC takes its time for each path, so nothing is listed that follows from
what is: features hold the digest of the prepared tables, and checkpoints those of all
that their trainings read.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import yaml

from benchmark.contracts import datasets, methods
from benchmark.core.errors import UserError
from benchmark.core.files import read_yaml, write_text
from benchmark.core.names import folder_of, folder_of_folds, folds_of
from benchmark.data import raw_files
from benchmark.data.results import KEPT_FILES
from benchmark.season.parameter_files import EXTERNAL, SEASON_FILE, SEASONS, SHARED
from benchmark.season.parameters import CELLS as CELL_FILES
from benchmark.season.parameters import DRAWN, Cell, FeatureSet, Fusion, Params
from benchmark.season.plugins import code_files, method_digest, plugin_digest
from benchmark.season.stages import Group, Kind, Options, Stage

WRITTEN = "# Written by `rematch season`; season.yaml is the file to edit.\n"
CELLS, READERS = "cells.yaml", SHARED.parent / "readers.yaml"
VERSIONS = "benchmark/versions.yaml"
# groups of stages; TRAIN@KEY of a cell
TRAIN, TRAIN_ON, EVALUATE = "train", "train_on", "evaluate"
WEIGHTS = "data/weights/drawn_cnn.pt"
SHOWN_CODE = [f"benchmark/{room}" for room in ("boards", "papers", "report", "stats")]
PAGES = ["README.md", "claims.md", "claims.json", "datasets", "papers", "figures"]
BARS = {
    "template": "bar_horizontal",
    "x": "rsum",
    "y": "preset",
    "title": "rsum on test",
}
LINES = {"x": "epoch", "y": "val_rsum", "title": "validation rsum"}
# an output that git keeps and DVC never deletes
KEPT = {"cache": False, "persist": True}
# what `dvc repro` runs last, of the dvc.yaml in the root
ACTIVE = Stage(name=Kind.SEASON, kind=Kind.SEASON)
NO_DIGEST = {"folder", "keeps", "start"}  # of a cell: where files lie


def write_pipelines(params: Params) -> None:
    """Write the pipelines of a season and of what seasons share. Raises UserError where
    another season has other settings of the same dataset."""
    contents = _contents(params)
    for path, content in contents.items():
        _write(path, content)
    shared = contents[SHARED]["datasets"].values()
    raw_files.note_readers(settings["reader"] for settings in shared)
    if not READERS.is_file():  # a stage of its own writes it again
        write_readers()


def write_digests(params: Params) -> None:
    """Write a season's cells.yaml. Raises UserError where the season file was edited so
    that it has other stages than its pipelines, or other settings of its datasets than
    what seasons share."""
    path = SEASONS / params.season / "dvc.yaml"
    contents = _contents(params)
    own = _settings(params)
    shared = _on_disk(SHARED)
    are_shared = True
    for group, settings in own.items():
        are_shared &= settings.items() <= shared.get(group, {}).items()
    if _on_disk(path) != contents[path] or not are_shared:
        raise UserError(
            path,
            expected="the stages of the season file",
            found="others",
            do=f"run: rematch season {params.season}",
        )
    _write(path.with_name(CELLS), contents[path.with_name(CELLS)])


def write_readers() -> None:
    """Write the digests of the code that reads datasets."""
    _write(READERS, _reader_digests())


def files_of(season: str) -> tuple[Path, Path]:
    """The dvc.yaml of a season, and that of what seasons share."""
    return SEASONS / season / "dvc.yaml", SHARED.with_name("dvc.yaml")


def all_stages(params: Params) -> dict[str, Stage]:
    """Every stage of a season, and of its datasets and feature sets, by name."""
    stages = _shared_stages(_settings(params)) + _stages(params)
    return {stage.name: stage for stage in _spelt_out(stages)}


def evaluation_of(params: Params, key: str) -> str:
    """The name of the stage that evaluates a cell or a fusion."""
    cell = params.everything[key]
    members = set(cell.members) if isinstance(cell, Fusion) else {cell.folder}
    return f"{_evaluation(len(members))}@{key}"


def _spelt_out(stages: Iterable[Stage | Group]) -> Iterator[Stage]:
    """Every stage, with those of each group."""
    for each in stages:
        if isinstance(each, Group):
            yield from each.stages
        else:
            yield each


def edited(params: Params) -> set[str]:
    """The stages of a season that its pipelines on disk do not have, or have otherwise,
    or with other digests and settings: what `write_pipelines` would make stale."""
    pipelines = _pipelines(params)
    settings = _setting_files(params) | {READERS: _reader_digests()}
    on_disk = {file: _on_disk(file) for file in settings}
    names = set()
    for path, stages in pipelines.items():
        written = _spelt_out_on_disk(_on_disk(path).get("stages", {}))
        for stage in _spelt_out(stages):
            is_same = written.get(stage.name) == _from_root(stage.in_dvc)
            if not is_same or _settings_differ(stage, settings, on_disk):
                names.add(stage.name)
    return names


def _settings_differ(
    stage: Stage, settings: dict[Path, dict], on_disk: dict[Path, dict]
) -> bool:
    """Whether a stage reads another value in one of the files that are written."""
    for name, keys in stage.settings.items():
        file = Path(name)
        if file not in settings:
            continue
        for key in keys:
            if _value_at(settings[file], key) != _value_at(on_disk[file], key):
                return True
    return False


def _spelt_out_on_disk(stages: dict[str, dict]) -> dict[str, dict]:
    """The stages of a dvc.yaml by name, with those of each `foreach` as DVC spells
    them out."""
    every = {}
    for name, stage in stages.items():
        if "foreach" not in stage:
            every[name] = stage
            continue
        items = stage["foreach"]
        template = json.dumps(stage["do"])
        for key in items:
            text = template.replace("${key}", key).replace("${item}", key)
            fields = items[key] if isinstance(items, dict) else {}
            for field, value in fields.items():
                text = text.replace(f"${{item.{field}}}", value)
            every[f"{name}@{key}"] = json.loads(text)
    return every


def cell_digest(cell: Cell | Fusion) -> str:
    """Of what decides a cell but for the bytes of its inputs and the versions of
    stages."""
    facts = cell.model_dump(mode="json", exclude=NO_DIGEST)
    if isinstance(cell, Cell):
        facts["code"] = method_digest(cell.method)
    text = json.dumps(facts, sort_keys=True)
    return _short(hashlib.sha256(text.encode()).hexdigest())


def _short(sha256: str) -> str:
    """A digest in short. YAML may read hexadecimal digits as a number; with the prefix
    it does not."""
    return f"sha256-{sha256[:16]}"


# Files --------------------------------------------------------------------------------


def _contents(params: Params) -> dict[Path, dict]:
    """Each file that is written for a season -> what it holds."""
    contents = {}
    for path, stages in _pipelines(params).items():
        written = {stage.name: _from_root(stage.in_dvc) for stage in stages}
        contents[path] = {"stages": written}
    return _setting_files(params) | contents


def _pipelines(params: Params) -> dict[Path, list[Stage | Group]]:
    own, shared = files_of(params.season)
    return {
        own: _stages(params),
        shared: _shared_stages(shared_settings(params)),
    }


def _setting_files(params: Params) -> dict[Path, dict]:
    """The files of parameters of these stages."""
    collected = {}  # digests of which cells a folder of results has
    for folder in params.folders:
        names = "\n".join(sorted(cell.kept_as for cell in params.kept_in(folder)))
        collected[folder] = _short(hashlib.sha256(names.encode()).hexdigest())
    cells = {group: sorted(known) for group, known in _settings(params).items()}
    cells["collected"] = collected
    cells["cells"] = {key: cell_digest(cell) for key, cell in params.everything.items()}
    shared = shared_settings(params)
    return {SHARED: shared, SEASONS / params.season / CELLS: cells}


def _from_root(stage: dict) -> dict:
    """With the root as its working folder."""
    if "foreach" in stage:
        return stage | {"do": {"wdir": "../.."} | stage["do"]}
    return {"wdir": "../.."} | stage


def _reader_digests() -> dict[str, str]:
    files = {name: Path(datasets.FOLDER, f"{name}.py") for name in datasets.names()}
    return {name: _short(plugin_digest(path)) for name, path in files.items()}


def _on_disk(path: Path) -> dict:
    return read_yaml(path) if path.is_file() else {}


def _value_at(content: dict, dotted: str) -> object:
    """The value of a parameter as DVC names it; None where there is none."""
    for key in dotted.split("."):
        content = content.get(key) or {}
    return content or None


def _write(path: Path, content: dict) -> None:
    """A YAML file that is made from others, unless it holds just this: DVC hashes a
    file again when its time changes."""
    # without anchors where the same list stands twice
    plain = json.loads(json.dumps(content))
    # short lists on a line
    flow = None if "stages" in content else False
    style = {"default_flow_style": flow, "sort_keys": False, "width": 100}
    text = WRITTEN + yaml.dump(plain, Dumper=yaml.CSafeDumper, **style)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


# What seasons share -------------------------------------------------------------------


def shared_settings(params: Params) -> dict[str, dict]:
    """The datasets and feature sets of a season beside those of the others, without
    those that no season has any more. Raises UserError where another season has other
    settings of them."""
    before = _on_disk(SHARED)
    ours = _settings(params)
    others = {path.parent.name: read_yaml(path) for path in SEASONS.glob(f"*/{CELLS}")}
    others.pop(params.season, None)
    content = {}
    for group in dict.fromkeys([*ours, *before]):
        known = ours.get(group, {})
        user_of: dict[str, str] = {}  # key -> a season that has it
        for season, cells in others.items():
            user_of |= dict.fromkeys(cells.get(group, ()), season)
        settings = dict(known)
        for key, value in before.get(group, {}).items():
            if key not in user_of:
                continue
            if known.get(key, value) != value:
                raise UserError(
                    f"{SHARED}: {key}",
                    expected=f"the settings that season {user_of[key]} has",
                    found=f"others in season {params.season}",
                    do="rename the dataset in the season file, and name its reader",
                )
            settings[key] = value
        if settings or group in ours:
            content[group] = dict(sorted(settings.items()))
    return content


def _settings(params: Params) -> dict[str, dict]:
    """What other seasons must agree about with a season, by group; that of folds is
    there where it has some."""
    shared = {"reader", "source", "options"}
    datasets = {}
    feature_sets = {}
    for key, settings in params.datasets.items():
        datasets[key] = settings.model_dump(include=shared, exclude_none=True)
    for key, settings in params.feature_sets.items():
        feature_sets[key] = settings.model_dump(mode="json", exclude_none=True)
    groups = {"datasets": datasets, "feature_sets": feature_sets}
    return groups | {"folds": params.folds} if params.folds else groups


def _shared_stages(shared: dict[str, dict]) -> list[Stage | Group]:
    readers = Stage(
        name=Kind.READERS,
        kind=Kind.READERS,
        arguments=("--digests",),
        reads=("datasets",),
        writes=_in_git(READERS),
    )
    pretrain = Stage(
        name=Kind.PRETRAIN,
        kind=Kind.PRETRAIN,
        settings={VERSIONS: ["encode"], str(READERS): ["shapes"]},
        writes={WEIGHTS: {}},
    )
    stages = [readers, pretrain]
    for name, settings in shared["datasets"].items():
        stages += _dataset_stages(name, settings)
    for name, count in shared.get("folds", {}).items():
        stages.append(_dealing(name, count, shared["datasets"][name]["reader"]))
    for key, settings in shared["feature_sets"].items():
        stages.append(_encoding(key, settings))
    return stages


def _dataset_stages(name: str, settings: dict) -> list[Stage]:
    """Fetch and prepare it."""
    own = {str(SHARED): [f"datasets.{name}"], str(READERS): [settings["reader"]]}
    manifest = f"data/manifests/{name}.json"
    fetched = {manifest: KEPT}
    if raw_files.has_files(settings["reader"]):
        # Raw files are an output so that DVC sees edits: it keeps no copy and deletes
        # nothing.
        fetched[f"data/raw/{name}"] = KEPT
    fetch = Stage(
        name=f"fetch-{name}",
        kind=Kind.FETCH,
        item=name,
        arguments=(name,),
        settings=own,
        writes=fetched,
    )
    prepare = Stage(
        name=f"prepare-{name}",
        kind=Kind.PREPARE,
        item=name,
        arguments=(name,),
        settings={VERSIONS: ["prepare"]} | own,
        reads=(manifest,),
        writes={f"data/prepared/{name}": {}} | _in_git(f"data/cards/{name}"),
    )
    return [fetch, prepare]


def _dealing(name: str, count: int, reader: str) -> Stage:
    """Make the folds of a dataset."""
    own = {str(SHARED): [f"folds.{name}"], str(READERS): [reader]}
    tables = [f"data/prepared/{fold.name}" for fold in folds_of(name, count)]
    cards = _in_git(f"data/cards/{folder_of_folds(name)}")
    return Stage(
        name=f"{Kind.FOLDS}-{name}",
        kind=Kind.FOLDS,
        item=name,
        arguments=(name,),
        settings={VERSIONS: ["prepare"]} | own,
        reads=(f"data/prepared/{name}", f"data/manifests/{name}.json"),
        writes={path: {} for path in tables} | cards,
    )


def _encoding(key: str, feature_set: dict) -> Stage:
    settings = {VERSIONS: ["encode"], str(SHARED): [f"feature_sets.{key}"]}
    prepared = f"data/prepared/{feature_set['dataset']}"
    reads = dict.fromkeys([prepared, feature_set["source"]])
    images = feature_set.get("image") or feature_set.get("proposals")
    is_taken = FeatureSet(**feature_set).is_taken
    if images and not is_taken:
        settings[str(READERS)] = [feature_set["reader"]]
        if images["network"] == DRAWN:
            reads[WEIGHTS] = None
    return Stage(
        name=f"encode-{key}",
        kind=Kind.ENCODE,
        item=key,
        arguments=(key,),
        settings=settings,
        reads=tuple(reads),
        # making the features of a fold again takes less time than fetching them
        writes={feature_set["folder"]: {"cache": False} if is_taken else {}},
    )


# A season -----------------------------------------------------------------------------


def _stages(params: Params) -> list[Stage | Group]:
    return [
        _digests(params),
        *_trainings(params),
        *_evaluations(params),
        _collection(params),
        _report(params),
    ]


def _digests(params: Params) -> Stage:
    folder = SEASONS / params.season
    return Stage(
        name=Kind.CELLS,
        kind=Kind.CELLS,
        arguments=(params.season, "--digests"),
        reads=(f"{folder}/{SEASON_FILE}", "methods", *_own_code(params)),
        writes=_in_git(folder / CELLS),
    )


def _own_code(params: Params) -> list[str]:
    """The method files that a season names, and those that they import, as DVC names
    files: from the working folder where they lie in there."""
    named = [path for path in params.methods.values() if Path(path).is_file()]
    imported: set[Path] = set()
    for path in named:
        imported.update(code_files(Path(path)))
    imported -= {Path(path).resolve() for path in named}
    root = Path.cwd().resolve()
    others = []
    for file in imported:
        if file.parent != methods.FOLDER.resolve():
            is_inside = file.is_relative_to(root)
            others.append(str(file.relative_to(root) if is_inside else file))
    return named + sorted(others)


# DVC can repeat a stage for each cell, but not with more inputs: those are stages of
# other names.


def _trainings(params: Params) -> list[Group]:
    """TRAIN, and TRAIN_ON of cells that go on from the weights of others."""
    items: dict[str, dict[str, dict[str, str]]] = {TRAIN: {}, TRAIN_ON: {}}
    for key, cell in params.cells.items():
        texts = cell.texts or cell.words or f"data/prepared/{cell.dataset}"
        item = {
            "cell": cell.inside,
            "images": _in_data(cell.images),
            "texts": _in_data(texts),
        }
        if cell.start:
            item["start"] = _in_data(cell.start)
        items[TRAIN_ON if cell.start else TRAIN][key] = item

    return _groups(items, partial(_training, params.season))


def _training(season: str, group: str, key: str, item: dict[str, str]) -> Stage:
    inputs = [item["images"], item["texts"]]
    if "start" in item:
        inputs.append(item["start"])
    checkpoint = f"data/checkpoints/{item['cell']}"
    return Stage(
        name=f"{group}@{key}",
        kind=Kind.TRAIN,
        item=key,
        arguments=(key, "--season", season),
        settings={VERSIONS: ["train"]} | _digest_at(season, f"cells.{key}"),
        reads=tuple(f"data/{path}" for path in inputs),
        writes={f"{checkpoint}.pt": {}, f"{checkpoint}.json": {}},
    )


def _evaluations(params: Params) -> list[Group]:
    """EVALUATE of cells that are scored by one checkpoint, and the same with the number
    of several that a fusion has."""
    items: dict[str, dict[str, dict[str, str]]] = {}
    for key, cell in params.everything.items():
        members = cell.members if isinstance(cell, Fusion) else [cell.folder]
        weights = []
        for trained in params.cells.values():
            if trained.folder in members:
                weights.append(trained.inside)
        item = {"cell": cell.inside}
        for number, path in enumerate(weights, 1):
            item[f"weights_{number}"] = path
        items.setdefault(_evaluation(len(weights)), {})[key] = item

    return _groups(items, partial(_scoring, params.season))


def _scoring(season: str, group: str, key: str, item: dict[str, str]) -> Stage:
    weights = [item[field] for field in item if field != "cell"]
    return Stage(
        name=f"{group}@{key}",
        kind=Kind.EVALUATE,
        item=key,
        arguments=(key, "--season", season),
        settings={VERSIONS: ["evaluate"]} | _digest_at(season, f"cells.{key}"),
        reads=tuple(f"data/checkpoints/{path}.pt" for path in weights),
        writes={
            f"{CELL_FILES}/{item['cell']}": {},
            f"data/samples/{item['cell']}": {},
        },
    )


def _groups(
    items: dict[str, dict[str, dict[str, str]]], stage_in: Callable[..., Stage]
) -> list[Group]:
    """Those that have an item; `stage_in` takes the name of a group first."""
    groups = []
    for name, members in items.items():
        if members:
            stage = partial(stage_in, name)
            groups.append(Group(name=name, items=members, stage=stage))
    return groups


def _digest_at(season: str, key: str) -> dict[str, list[str]]:
    return {str(SEASONS / season / CELLS): [key]}


def _collection(params: Params) -> Group:
    """What git keeps of the cells of each dataset, and of all its folds."""
    with_cells: dict[str, dict[str, str]] = {}
    for cell in params.everything.values():
        with_cells[folder_of(cell.dataset)] = {}
    stage = partial(_collecting, params.season)
    return Group(name=Kind.COLLECT, items=with_cells, stage=stage)


def _collecting(season: str, folder: str, item: dict[str, str]) -> Stage:
    kept = f"results/{season}/{folder}"
    return Stage(
        name=f"{Kind.COLLECT}@{folder}",
        kind=Kind.COLLECT,
        item=folder,
        arguments=(folder, "--season", season),
        settings={VERSIONS: ["collect"]} | _digest_at(season, f"collected.{folder}"),
        reads=(f"{CELL_FILES}/{season}/{folder}",),
        # It reads what it wrote before, and DVC would delete that.
        writes={f"{kept}/{file}": KEPT for file in KEPT_FILES},
    )


def _report(params: Params) -> Stage:
    name = params.season
    folder = SEASONS / params.season
    own_files = [folder / "tuning.csv", folder / EXTERNAL]  # of `tune` and `score`
    for method in {cell.method for cell in params.cells.values()}:
        file = method if method.endswith(".py") else f"methods/{method}.py"
        own_files.append(Path(file).with_suffix(".yaml"))
    data = []
    for dataset in params.datasets:
        data += [f"data/prepared/{dataset}", f"data/cards/{dataset}"]
    writes = {}
    pages = f"reports/{name}"
    for page in PAGES:
        writes |= _in_git(f"{pages}/{page}")
    return Stage(
        name=Kind.REPORT,
        kind=Kind.REPORT,
        arguments=("--season", name),
        settings={VERSIONS: ["report"]},
        reads=(
            *SHOWN_CODE,
            f"{folder}/{SEASON_FILE}",
            *sorted(str(path) for path in own_files if path.is_file()),
            *data,
            f"results/{name}",
        ),
        writes=writes,
        metrics=_in_git(f"{pages}/metrics.json"),
        plots=_in_git(f"{pages}/plots/leaderboard.csv", **BARS)
        | _in_git(f"{pages}/plots/training.csv", **LINES),
    )


def _evaluation(checkpoints: int) -> str:
    return EVALUATE if checkpoints == 1 else f"{EVALUATE}_{checkpoints}"


def _in_data(path: str) -> str:
    return path.removeprefix("data/")


def _in_git(path: Path | str, **more: str) -> dict[str, Options]:
    """An output that git keeps, and not DVC."""
    return {str(path): {"cache": False} | more}
