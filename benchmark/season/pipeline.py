"""The DVC pipelines of a season, and the digests that make its stages stale.

    seasons/<name>/dvc.yaml     trainings, evaluations, what git keeps of them, and the report
    seasons/<name>/cells.yaml   a digest for each cell: its options, and the code of its method
    seasons/shared/dvc.yaml     fetch, prepare and encode of all datasets: seasons share them
    seasons/shared/params.yaml  settings of the datasets and feature sets

The root is the working folder of every stage. A stage depends on its digest or settings
and on the version of its code (benchmark/versions.yaml) as parameters, and on the files
that it reads. DVC takes its time for each path, so nothing is listed that follows from
what is: features hold the digest of the prepared tables, and checkpoints those of all
that their trainings read.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from benchmark.contracts import datasets, methods
from benchmark.core.errors import UserError
from benchmark.core.files import read_yaml, write_text
from benchmark.data.results import KEPT_FILES
from benchmark.season.parameter_files import EXTERNAL, SEASON_FILE, SEASONS, SHARED
from benchmark.season.parameters import CELLS as CELL_FILES
from benchmark.season.parameters import DRAWN, Cell, Fusion, Params
from benchmark.season.plugins import code_files, method_digest, plugin_digest

WRITTEN = "# Written by `rematch season`; season.yaml is the file to edit.\n"
CELLS, READERS = "cells.yaml", SHARED.parent / "readers.yaml"
VERSIONS = "benchmark/versions.yaml"
# stages; TRAIN@KEY of a cell
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
NO_DIGEST = {"folder", "keeps", "start"}  # of a cell: where files lie


def write_pipelines(params: Params) -> None:
    """Write the pipelines of a season and of what seasons share. Raises UserError where
    another season has other settings of the same dataset."""
    for path, content in _contents(params).items():
        _write(path, content)
    if not READERS.is_file():  # a stage of its own writes it again
        write_readers()


def write_digests(params: Params) -> None:
    """Write a season's cells.yaml. Raises UserError where the season file was edited so
    that it has other stages than its pipelines, or other settings of its datasets than
    what seasons share."""
    path = SEASONS / params.season / "dvc.yaml"
    contents, own, shared = _contents(params), _settings(params), _on_disk(SHARED)
    is_same = all(own[group].items() <= shared.get(group, {}).items() for group in own)
    if _on_disk(path) != contents[path] or not is_same:
        do = f"run: rematch season {params.season}"
        raise UserError(path, "the stages of the season file", "others", do)
    _write(path.with_name(CELLS), contents[path.with_name(CELLS)])


def write_readers() -> None:
    """Write the digests of the code that reads datasets."""
    _write(READERS, _reader_digests())


def all_stages(params: Params) -> dict[str, dict]:
    """Every stage of a season, and of what seasons share, by name."""
    return _shared_stages(shared_settings(params)) | expanded(_stages(params))


def evaluation_of(params: Params, key: str) -> str:
    """The name of the stage that evaluates a cell or a fusion."""
    cell = params.everything[key]
    members = set(cell.members) if isinstance(cell, Fusion) else {cell.folder}
    return f"{_evaluation(len(members))}@{key}"


def expanded(stages: dict[str, dict]) -> dict[str, dict]:
    """Every stage by its name, with those of each `foreach` as DVC spells them out."""
    every = {}
    for name, stage in stages.items():
        if "foreach" not in stage:
            every[name] = stage
            continue
        cells = stage["foreach"]
        for key in cells:
            text = (
                json.dumps(stage["do"]).replace("${key}", key).replace("${item}", key)
            )
            if isinstance(cells, dict):
                for field, value in cells[key].items():
                    text = text.replace(f"${{item.{field}}}", value)
            every[f"{name}@{key}"] = json.loads(text)
    return every


def outputs(stage: dict) -> list[str]:
    """The paths that a stage writes."""
    outs = [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]
    return [path for out in outs for path in (out if isinstance(out, dict) else [out])]


def in_order(
    stages: dict[str, dict], last: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Some stages and those that write the files that they need, each after its needs
    -> the names of these."""
    maker = {path: name for name, stage in stages.items() for path in outputs(stage)}
    ordered: dict[str, tuple[str, ...]] = {}

    def makers(path: str) -> list[str]:
        """Of a file or folder, or of what is in a folder."""
        if path in maker:
            return [maker[path]]
        return [name for other, name in maker.items() if other.startswith(f"{path}/")]

    def add(name: str) -> None:
        paths = stages[name].get("deps", [])
        needs = tuple(dict.fromkeys(other for path in paths for other in makers(path)))
        for other in needs:
            if other not in ordered:
                add(other)
        ordered[name] = needs

    for name in last:
        add(name)
    return ordered


def edited(params: Params) -> set[str]:
    """The stages of a season that its pipelines on disk do not have, or have otherwise,
    or with other digests and settings: what `write_pipelines` would make stale."""
    contents = _contents(params) | {READERS: _reader_digests()}
    before = {path: _on_disk(path) for path in contents}
    names = set()
    for path in (path for path in contents if path.name == "dvc.yaml"):
        old = expanded(before[path].get("stages", {}))
        for name, stage in expanded(contents[path]["stages"]).items():
            read = {
                Path(f): keys
                for each in stage.get("params", [])
                for f, keys in each.items()
            }
            is_same = old.get(name) == stage and all(
                _at(contents[file], key) == _at(before[file], key)
                for file in read.keys() & contents.keys()
                for key in read[file]
            )
            names |= set() if is_same else {name}
    return names


def cell_digest(cell: Cell | Fusion) -> str:
    """Of what decides a cell but for the bytes of its inputs and the versions of
    stages."""
    facts = cell.model_dump(mode="json", exclude=NO_DIGEST)
    if isinstance(cell, Cell):
        facts["code"] = method_digest(cell.method)
    return _short(
        hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    )


def _digest_of_names(params: Params, dataset: str) -> str:
    """Of which cells a dataset has."""
    names = "\n".join(sorted(cell.name for cell in params.on(dataset)))
    return _short(hashlib.sha256(names.encode()).hexdigest())


def _short(sha256: str) -> str:
    """Never a number for YAML, as hexadecimal digits may be."""
    return f"sha256-{sha256[:16]}"


# Files --------------------------------------------------------------------------------


def _contents(params: Params) -> dict[Path, dict]:
    """Each file that is written for a season -> what it holds."""
    folder, shared = SEASONS / params.season, shared_settings(params)
    pipelines = {folder / "dvc.yaml": _stages(params)}
    pipelines[SHARED.with_name("dvc.yaml")] = _shared_stages(shared)
    digests = {key: cell_digest(cell) for key, cell in params.everything.items()}
    own = {
        "datasets": sorted(params.datasets),
        "feature_sets": sorted(params.feature_sets),
    }
    own["collected"] = {
        dataset: _digest_of_names(params, dataset) for dataset in params.datasets
    }
    contents = {SHARED: shared, folder / CELLS: own | {"cells": digests}}
    for path, stages in pipelines.items():
        contents[path] = {
            "stages": {name: _from_root(stage) for name, stage in stages.items()}
        }
    return contents


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


def _at(content: dict, dotted: str) -> object:
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
    style = {"default_flow_style": None if "stages" in content else False}
    text = WRITTEN + yaml.dump(
        plain, Dumper=yaml.CSafeDumper, sort_keys=False, width=100, **style
    )
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


# What seasons share -------------------------------------------------------------------


def shared_settings(params: Params) -> dict[str, dict]:
    """The datasets and feature sets of a season beside those of the others, without
    those that no season has any more. Raises UserError where another season has other
    settings of them."""
    before = _on_disk(SHARED)
    others = {path.parent.name: read_yaml(path) for path in SEASONS.glob(f"*/{CELLS}")}
    others.pop(params.season, None)
    content = {}
    for group, known in _settings(params).items():
        used = {key: season for season, cells in others.items() for key in cells[group]}
        kept = {
            key: value for key, value in before.get(group, {}).items() if key in used
        }
        for key in kept.keys() & known.keys():
            if kept[key] != known[key]:
                where, expected = (
                    f"{SHARED}: {key}",
                    f"the settings that season {used[key]} has",
                )
                do = "give the dataset another name in the season file, and its reader"
                raise UserError(
                    where, expected, f"others in season {params.season}", do
                )
        content[group] = dict(sorted((kept | known).items()))
    return content


def _settings(params: Params) -> dict[str, dict]:
    """What other seasons must agree about with a season."""
    return {
        "datasets": {
            key: settings.model_dump(
                include={"reader", "source", "options"}, exclude_none=True
            )
            for key, settings in params.datasets.items()
        },
        "feature_sets": {
            key: each.model_dump(mode="json", exclude_none=True)
            for key, each in params.feature_sets.items()
        },
    }


def _shared_stages(shared: dict[str, dict]) -> dict[str, dict]:
    stages = {
        "readers": {
            "cmd": "python -m benchmark season --digests",
            "deps": ["datasets"],
            "outs": [_in_git(READERS)],
        },
        "pretrain": {
            "cmd": "python -m benchmark.encode.drawn_pretraining",
            "params": [{VERSIONS: ["encode"]}, {str(READERS): ["shapes"]}],
            "outs": [WEIGHTS],
        },
    }
    for name, settings in shared["datasets"].items():
        manifest = f"data/manifests/{name}.json"
        own = [
            {str(SHARED): [f"datasets.{name}"]},
            {str(READERS): [settings["reader"]]},
        ]
        module = datasets.load(settings["reader"])
        # Raw files are an output so that DVC sees edits: it keeps no copy and deletes
        # nothing.
        raw = [f"data/raw/{name}"] * bool(module.card(module.Options()).obtain)
        stages[f"fetch-{name}"] = {
            "cmd": f"python -m benchmark.fetch {name}",
            "params": own,
            "outs": [
                {path: {"cache": False, "persist": True}} for path in [manifest, *raw]
            ],
        }
        stages[f"prepare-{name}"] = {
            "cmd": f"python -m benchmark.prepare {name}",
            "params": [{VERSIONS: ["prepare"]}, *own],
            "deps": [manifest],
            "outs": [f"data/prepared/{name}", _in_git(f"data/cards/{name}")],
        }
    for key, feature_set in shared["feature_sets"].items():
        images = feature_set.get("image") or feature_set.get("proposals")
        own = [{VERSIONS: ["encode"]}, {str(SHARED): [f"feature_sets.{key}"]}]
        read = dict.fromkeys(
            [f"data/prepared/{feature_set['dataset']}", feature_set["source"]]
        )
        drawn = [WEIGHTS] * bool(images and images["network"] == DRAWN)
        stages[f"encode-{key}"] = {
            "cmd": f"python -m benchmark.encode {key}",
            "params": own
            + ([{str(READERS): [feature_set["reader"]]}] if images else []),
            "deps": [*read, *drawn],
            "outs": [feature_set["folder"]],
        }
    return stages


# A season -----------------------------------------------------------------------------


def _stages(params: Params) -> dict[str, dict]:
    name, folder = params.season, SEASONS / params.season
    own_files = [path for path in params.methods.values() if Path(path).is_file()]
    root, reached = (
        Path.cwd().resolve(),
        {f for path in own_files for f in code_files(Path(path))},
    )
    # and import each other
    beside = reached - {Path(path).resolve() for path in own_files}
    # as DVC names files: from the working folder where they lie in there
    own_files += sorted(
        str(file.relative_to(root) if file.is_relative_to(root) else file)
        for file in beside
        if file.parent != methods.FOLDER.resolve()
    )
    stages = {
        "cells": {
            "cmd": f"python -m benchmark season {name} --digests",
            "deps": [f"{folder}/{SEASON_FILE}", "methods", *own_files],
            "outs": [_in_git(folder / CELLS)],
        }
    }
    stages |= _trainings(params) | _evaluations(params)
    kept = "results/" + name + "/${item}"
    stages["collect"] = {
        "foreach": list(
            dict.fromkeys(cell.dataset for cell in params.everything.values())
        ),
        "do": {
            "cmd": f"python -m benchmark.collect ${{item}} --season {name}",
            "params": [
                {VERSIONS: ["collect"]},
                {str(folder / CELLS): ["collected.${item}"]},
            ],
            "deps": [f"{CELL_FILES}/{name}/${{item}}"],
            # It reads what it wrote before, and DVC would delete that.
            "outs": [
                {f"{kept}/{f}": {"cache": False, "persist": True}} for f in KEPT_FILES
            ],
        },
    }
    pages = f"reports/{name}"
    # by `tune` and `score`
    added = [folder / file for file in ("tuning.csv", EXTERNAL)]
    used = {cell.method.removesuffix(".py") for cell in params.cells.values()}
    presets = [
        Path(x if "/" in x else f"methods/{x}").with_suffix(".yaml") for x in used
    ]
    return stages | {
        "report": {
            "cmd": f"python -m benchmark.report --season {name}",
            "params": [{VERSIONS: ["report"]}],
            "deps": [
                *SHOWN_CODE,
                f"{folder}/{SEASON_FILE}",
                *sorted(str(path) for path in [*presets, *added] if path.is_file()),
                *(
                    f"data/{kind}/{x}"
                    for x in params.datasets
                    for kind in ("prepared", "cards")
                ),
                f"results/{name}",
            ],
            "outs": [_in_git(f"{pages}/{page}") for page in PAGES],
            "metrics": [_in_git(f"{pages}/metrics.json")],
            "plots": [
                _in_git(f"{pages}/plots/leaderboard.csv", **BARS),
                _in_git(f"{pages}/plots/training.csv", **LINES),
            ],
        },
    }


# DVC can repeat a stage for each cell, but not with more inputs: those are stages of
# other names.


def _trainings(params: Params) -> dict[str, dict]:
    """TRAIN, and TRAIN_ON of cells that go on from the weights of others."""
    name = params.season
    do = {
        "cmd": f"python -m benchmark.train ${{key}} --season {name}",
        "params": [
            {VERSIONS: ["train"]},
            {str(SEASONS / name / CELLS): ["cells.${key}"]},
        ],
        "deps": ["data/${item.images}", "data/${item.texts}"],
        "outs": [
            "data/checkpoints/${item.cell}.pt",
            "data/checkpoints/${item.cell}.json",
        ],
    }
    do_on = do | {"deps": [*do["deps"], "data/${item.start}"]}
    stages = {TRAIN: {"foreach": {}, "do": do}, TRAIN_ON: {"foreach": {}, "do": do_on}}
    for key, cell in params.cells.items():
        texts = cell.texts or cell.words or f"data/prepared/{cell.dataset}"
        item = {
            "cell": cell.inside,
            "images": _in_data(cell.images),
            "texts": _in_data(texts),
        }
        if cell.start:
            item["start"] = _in_data(cell.start)
        stages[TRAIN_ON if cell.start else TRAIN]["foreach"][key] = item
    return {name: stage for name, stage in stages.items() if stage["foreach"]}


def _evaluations(params: Params) -> dict[str, dict]:
    """EVALUATE of cells that are scored by one checkpoint, and the same with the number
    of several that a fusion has."""
    name = params.season
    checkpoints_of = {cell.folder: cell.inside for cell in params.cells.values()}
    stages: dict[str, dict] = {}
    for key, cell in params.everything.items():
        members = cell.members if isinstance(cell, Fusion) else [cell.folder]
        read = [of for folder, of in checkpoints_of.items() if folder in members]
        fields = [f"weights_{number}" for number in range(1, len(read) + 1)]
        do = {
            "cmd": f"python -m benchmark.evaluate ${{key}} --season {name}",
            "params": [
                {VERSIONS: ["evaluate"]},
                {str(SEASONS / name / CELLS): ["cells.${key}"]},
            ],
            "deps": [f"data/checkpoints/${{item.{field}}}.pt" for field in fields],
            "outs": [f"{CELL_FILES}/${{item.cell}}", "data/samples/${item.cell}"],
        }
        stage = stages.setdefault(_evaluation(len(read)), {"foreach": {}, "do": do})
        stage["foreach"][key] = {"cell": cell.inside} | dict(
            zip(fields, read, strict=True)
        )
    return stages


def _evaluation(checkpoints: int) -> str:
    return EVALUATE if checkpoints == 1 else f"{EVALUATE}_{checkpoints}"


def _in_data(path: str) -> str:
    return path.removeprefix("data/")


def _in_git(path: Path | str, **more: str) -> dict:
    """An output that git keeps, and not DVC."""
    return {str(path): {"cache": False} | more}
