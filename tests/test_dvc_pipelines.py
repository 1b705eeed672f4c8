"""The pipelines for DVC: every stage names what it reads, and DVC plays what is stale alone."""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from dvc_repository import copy_code, play_in_forks, repro, stale, start

from benchmark.core.files import read_yaml
from benchmark.season.code_digests import closure, targets, write_digests
from benchmark.season.parameter_files import Head, active_season, write_brought, write_params
from benchmark.season.parameters import Brought, DatasetSettings, ImageEncoder, WordVectors
from benchmark.season.pipeline import REPORT_CODE, write_pipelines
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season
from seasons import FUSION, SCAN, TWO_BRANCH, committed, season

ROOT = Path(__file__).parent.parent
SEASONS = ROOT / "seasons"
COMMITTED = sorted(path.parent.name for path in SEASONS.glob("*/params.yaml"))
PIPELINES = sorted(str(path.relative_to(ROOT)) for path in SEASONS.rglob("dvc.yaml"))
CODE = "data/code/"
WEIGHTS = "data/weights/drawn_cnn.pt"


@cache
def stages(pipeline: str) -> dict[str, dict]:
    return read_yaml(ROOT / pipeline)["stages"]


@cache
def parameters(path: str) -> dict:
    return read_yaml(ROOT / path)


def outs(stage: dict) -> list[str]:
    """Paths that a stage writes: each is a string, or a mapping from the path to settings."""
    entries = [out for kind in ("outs", "metrics", "plots") for out in stage.get(kind, [])]
    return [out if isinstance(out, str) else next(iter(out)) for out in entries]


def code_of(stage: dict) -> set[str]:
    """Modules with which the code begins whose digests a stage depends on."""
    names = [Path(path).stem for path in stage["deps"] if path.startswith(CODE)]
    return {module for name in names for module in targets(ROOT)[name]}


def read_by(command: str) -> tuple[set[str], set[str]]:
    """What a stage reads, by its command: files and folders, and the modules that its code begins
    with."""
    module, *arguments = command.removeprefix("python -m benchmark.").split()
    if module in ("fetch", "prepare"):
        return read_of_dataset(module, *arguments)
    if module == "encode":
        return read_of_features(*arguments)
    key, option, name = arguments
    assert option == "--season"
    return read_of_cell(module, f"seasons/{name}/cells/{key}.yaml")


def read_of_dataset(module: str, name: str) -> tuple[set[str], set[str]]:
    path = f"seasons/shared/datasets/{name}.yaml"
    modules = {f"benchmark/{module}/__main__.py", f"datasets/{parameters(path)['reader']}.py"}
    manifest = {f"data/manifests/{name}.json"} if module == "prepare" else set()
    return {path} | manifest, modules


def read_of_features(key: str) -> tuple[set[str], set[str]]:
    path = f"seasons/shared/feature_sets/{key}.yaml"
    facts = parameters(path)
    modules = {"benchmark/encode/__main__.py", f"benchmark/encode/{facts['kind']}.py"}
    modules.add(f"benchmark/encoders/{facts['encoder']}.py")
    files = {path, f"data/prepared/{facts['dataset']}", facts["source"]}
    seen = facts.get("image") or facts.get("proposals")
    if seen:  # the reader opens the pictures
        modules.add(f"datasets/{facts['reader']}.py")
        files |= {WEIGHTS} if seen["network"] == "drawn_cnn" else set()
    return files, modules


def read_of_cell(module: str, path: str) -> tuple[set[str], set[str]]:
    cell, stage = parameters(path), f"benchmark/{module}/__main__.py"
    files = {path, f"data/prepared/{cell['dataset']}"}
    if "members" in cell:
        for folder in cell["members"]:
            files |= {checkpoint(folder), f"{folder}/record.json"}
        return files, {stage}
    files |= {cell[name] for name in ("images", "texts", "words") if name in cell}
    files |= {checkpoint(cell["folder"])} if module == "evaluate" else set()
    files |= {cell["start"]} if module == "train" and "start" in cell else set()
    if cell["method"].endswith(".py"):  # of one's own: its files themselves, not their digest
        return files | own_method(cell["method"]), {stage}
    modules = {stage, f"methods/{cell['method']}.py"}
    modules |= {f"benchmark/encoders/{cell['backbone']}.py"} if "backbone" in cell else set()
    return files, modules


def own_method(path: str) -> set[str]:
    rooms = ("examples/", "methods/")
    return {file for file in closure(ROOT, [path]) if file.startswith(rooms)}


def checkpoint(folder: str) -> str:
    return f"data/checkpoints/{folder.removeprefix('results/')}.pt"


# What is committed ------------------------------------------------------------------------------


def test_there_are_pipelines_of_the_seasons_that_are_played():
    assert {"demo", "flickr8k", "localisation"} <= set(COMMITTED)
    assert {f"seasons/{name}/dvc.yaml" for name in (*COMMITTED, "shared")} <= set(PIPELINES)
    assert len(PIPELINES) > 50


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_stages_run_from_the_root_and_name_nothing_twice(pipeline):
    for name, stage in stages(pipeline).items():
        assert (ROOT / pipeline).parent.joinpath(stage["wdir"]).resolve() == ROOT, name
        assert re.match(r"python -m benchmark[. ]\w", stage["cmd"]), name
        assert len(stage["deps"]) == len(set(stage["deps"])), name
        assert not [path for path in (*stage["deps"], *outs(stage)) if Path(path).is_absolute()]


@pytest.mark.parametrize("pipeline", [path for path in PIPELINES if "/pipelines/" in path])
def test_stages_depend_on_what_they_read_and_on_nothing_else(pipeline):
    for name, stage in stages(pipeline).items():
        files, modules = read_by(stage["cmd"])
        assert {path for path in stage["deps"] if not path.startswith(CODE)} == files, name
        assert code_of(stage) == modules, name


@pytest.mark.parametrize("pipeline", [path for path in PIPELINES if "/pipelines/" in path])
def test_trainings_depend_on_no_result(pipeline):
    for name, stage in stages(pipeline).items():
        if name.startswith("train"):
            assert not [path for path in stage["deps"] if path.startswith("results")], name


def test_what_a_stage_reads_is_written_by_one_stage():
    """Files that stages write, and which come with no stage but with the repository."""
    written = [
        path for pipeline in PIPELINES for x in stages(pipeline).values() for path in outs(x)
    ]
    assert len(written) == len(set(written))
    by_stage = set(written)
    for path in written:  # no folder of one stage in a folder of another
        assert not by_stage & {str(parent) for parent in Path(path).parents}, path
    results = {f"results/{name}" for name in COMMITTED}  # of many stages, read by the report
    for pipeline in PIPELINES:
        for stage in stages(pipeline).values():
            for path in set(stage["deps"]) - results:
                parents = {path, *map(str, Path(path).parents)}
                assert by_stage & parents or (ROOT / path).exists(), path


@pytest.mark.parametrize("name", COMMITTED)
def test_a_cell_has_its_stages(name):
    """A training and an evaluation of each trained cell, an evaluation of each fusion."""
    head = Head.model_validate(parameters(f"seasons/{name}/params.yaml"))
    expected = set()
    for key in head.cells:
        fused = "members" in parameters(f"seasons/{name}/cells/{key}.yaml")
        for module in ("evaluate",) if fused else ("train", "evaluate"):
            expected.add(f"python -m benchmark.{module} {key} --season {name}")
    pipelines = [path for path in PIPELINES if path.startswith(f"seasons/{name}/pipelines/")]
    assert {stage["cmd"] for path in pipelines for stage in stages(path).values()} == expected


@pytest.mark.parametrize("name", COMMITTED)
def test_the_report_depends_on_its_code_and_on_all_that_it_reads(name):
    stage = stages(f"seasons/{name}/dvc.yaml")["report"]
    deps, head = stage["deps"], parameters(f"seasons/{name}/params.yaml")
    assert stage["cmd"] == f"python -m benchmark.report --season {name}"
    assert {f"seasons/{name}/params.yaml", f"seasons/{name}/cells", f"results/{name}"} <= set(deps)
    assert {f"data/prepared/{dataset}" for dataset in head["datasets"]} <= set(deps)
    code = closure(ROOT, ["benchmark/report/__main__.py"]) - {"benchmark/__init__.py"}
    assert not [file for file in code if not {*map(str, Path(file).parents)} & set(deps)]


def test_the_report_depends_on_its_data_files():
    """Tables and notes of the papers, templates of the pages, presets."""
    folders = {*(f"benchmark/{room}" for room in REPORT_CODE), "methods", "datasets"}
    kinds = ("benchmark/**/*.yaml", "benchmark/**/*.j2", "methods/*.yaml")
    files = [path.relative_to(ROOT) for kind in kinds for path in ROOT.glob(kind)]
    assert len(files) > 20
    assert not [file for file in files if not {*map(str, file.parents)} & folders]


def test_the_folders_of_the_report_are_those_that_it_needs():
    code = closure(ROOT, ["benchmark/report/__main__.py"])
    rooms = {file.split("/")[1] for file in code if file.startswith("benchmark/")}
    assert rooms - {"__init__.py"} == set(REPORT_CODE)


def test_the_root_plays_the_active_season():
    (stage,) = stages("dvc.yaml").values()
    name = parameters("params.yaml")["season"]
    assert name in COMMITTED
    (path,) = (dep.replace("${season}", name) for dep in stage["deps"])
    metrics = stages(f"seasons/{name}/dvc.yaml")["metrics"]
    assert path in outs(metrics) and stage["cmd"] == "python -m benchmark season"


def test_what_is_committed_is_what_would_be_written_today(tmp_path, monkeypatch):
    """`python -m benchmark season NAME` of every season that is played."""
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")  # methods of a season's own
    for trials in SEASONS.glob("*/tuning.csv"):  # the report of their season shows them
        copied = tmp_path / trials.relative_to(ROOT)
        copied.parent.mkdir(parents=True)
        copied.write_bytes(trials.read_bytes())
    for name in COMMITTED:
        params = committed(name)
        write_params(params)
        write_pipelines(params)
    names = {*COMMITTED, "shared"}
    kept = [path for name in names for path in (SEASONS / name).rglob("*.yaml")]
    paths = {path.relative_to(ROOT) for path in kept if path.name != "season.yaml"}
    assert paths == {path.relative_to(tmp_path) for path in Path.cwd().rglob("seasons/**/*.yaml")}
    assert [p for p in paths if (ROOT / p).read_bytes() != p.read_bytes()] == []


# What is written --------------------------------------------------------------------------------


@pytest.fixture
def working_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, season: Season) -> None:
    params = resolve(name, season)
    write_params(params)
    write_pipelines(params)


def test_pipelines_that_stay_as_they_are_are_not_touched(working_folder):
    write("try", season())
    files = {path: path.read_bytes() for path in working_folder.rglob("dvc.yaml")}
    assert len(files) == 8  # of the season, four presets, what is shared and two datasets
    for path in files:
        os.utime(path, ns=(10**9, 10**9))
    write("try", season())
    assert {path: path.read_bytes() for path in working_folder.rglob("dvc.yaml")} == files
    assert {path.stat().st_mtime_ns for path in files} == {10**9}


def test_pipelines_of_presets_that_a_season_drops_are_removed(working_folder):
    write("other", season())
    write("try", season())
    folder = Path("seasons/try/pipelines")
    (folder / "drawn" / SCAN / "dvc.lock").touch()
    write("try", season(presets=[TWO_BRANCH]))
    assert {path.parent.name for path in folder.rglob("dvc.yaml")} == {TWO_BRANCH}
    left = {path.name for path in (folder / "drawn").iterdir()}
    assert left == {TWO_BRANCH, SCAN}  # a preset without a lock leaves nothing
    assert [path.name for path in (folder / "drawn" / SCAN).iterdir()] == ["dvc.lock"]
    assert len(list(Path("seasons/other/pipelines").rglob("dvc.yaml"))) == 4


def test_the_report_depends_on_the_trials_where_there_are_some(working_folder):
    pipeline, trials = Path("seasons/try/dvc.yaml"), Path("seasons/try/tuning.csv")
    write("try", season())
    assert str(trials) not in read_yaml(pipeline)["stages"]["report"]["deps"]
    trials.touch()
    write("try", season())
    assert str(trials) in read_yaml(pipeline)["stages"]["report"]["deps"]


def test_the_report_depends_on_the_rows_that_were_brought_along(working_folder):
    """Their records lie in results/; which of them are rows of the season, these files say."""
    rows = Path("seasons/try/brought")
    assert not {str(rows)} & deps_of_report()
    row = Brought(dataset="drawn", preset="mine", seed=0, folder="results/try/drawn/mine/0")
    write_brought("try", row)
    assert {str(rows), "results/try"} <= deps_of_report()
    (rows / f"{row.key}.yaml").unlink()
    assert not {str(rows)} & deps_of_report()


def deps_of_report() -> set[str]:
    write("try", season())
    return set(read_yaml(Path("seasons/try/dvc.yaml"))["stages"]["report"]["deps"])


def test_a_season_keeps_the_pipelines_of_datasets_that_others_play(working_folder):
    write("other", season())
    only = season().model_copy(update={"datasets": {"folder": season().datasets["folder"]}})
    write("try", only)
    assert {path.name for path in Path("seasons/shared/pipelines").iterdir()} == {"drawn", "folder"}


# Played -----------------------------------------------------------------------------------------

# In place of a stage: writes what its pipeline says, as a fingerprint of all that the stage reads.
STAND_IN = """
import hashlib, sys
from pathlib import Path
import yaml

module = __spec__.name.removesuffix(".__main__").partition(".commands")[0]
command = " ".join(["python -m", module, *sys.argv[1:]])
LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
texts = [path.read_text() for path in Path("seasons").rglob("dvc.yaml")]
(text,) = [text for text in texts if f"cmd: {command}\\n" in text]
(stage,) = [x for x in yaml.load(text, LOADER)["stages"].values() if x["cmd"] == command]
read = hashlib.sha256()
for path in map(Path, stage["deps"]):
    for file in sorted([path, *path.rglob("*")]):
        read.update(file.read_bytes() if file.is_file() and "__pycache__" not in str(file) else b"")
for kind in ("outs", "metrics", "plots"):
    for out in stage.get(kind, []):
        path = Path(out if isinstance(out, str) else next(iter(out)))
        file = path if path.suffix else path / "content.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(command + read.hexdigest())
raise SystemExit
"""
STAGES = ("fetch", "prepare", "encode", "train", "evaluate", "report")
PLAYED = [SCAN, "scan_i2t_lse", FUSION, "dual_path_instance_1"]


def played_season() -> Season:
    drawn = DatasetSettings(
        reader="shapes",
        options={"train": 40, "val": 10, "test": 12},
        image=ImageEncoder(network="drawn_cnn", input_size=96),
        words=WordVectors(size=8),
    )
    return Season(title="Played", datasets={"drawn": drawn}, presets=PLAYED, seeds=[0])


@pytest.fixture
def repository(working_folder) -> Path:
    """A repository with a copy of the code, in which stages are stand-ins, and a small season."""
    copy_code()
    modules = [f"benchmark/{stage}/__main__.py" for stage in STAGES]
    modules += ["benchmark/encode/drawn_pretraining.py", "benchmark/commands/export.py"]
    for module in map(Path, modules):
        module.write_text(STAND_IN + module.read_text())  # the imports below still count
    write("played", played_season())
    start()
    return working_folder


def append(file: str, text: str) -> None:
    with Path(file).open("a") as module:
        module.write(text)


@pytest.mark.slow
def test_dvc_plays_what_is_stale_and_nothing_else(repository, monkeypatch):
    play_in_forks(monkeypatch)
    assert active_season() == "played"
    dataset = [("drawn", f"encode-{x}") for x in ("words_trained8", "drawn_cnn_96_g6_flip")]
    scan = [(name, f"{x}-0") for name in (SCAN, "scan_i2t_lse") for x in ("train", "evaluate")]
    other = [("dual_path_instance_1", f"{x}-0") for x in ("train", "evaluate")]
    end = [(FUSION, "evaluate-0"), ("played", "report"), ("played", "metrics"), ("", "season")]
    first = repro()
    assert set(first) == {
        *(("shared", "code"), ("shared", "pretrain"), ("drawn", "fetch"), ("drawn", "prepare")),
        *(*dataset, *scan, *other, *end),
    }
    assert len(first) == len(set(first))
    assert repro() == []
    append("benchmark/train/resumable_loop.py", "# A remark.\n")
    assert repro() == [("shared", "code")]
    append("methods/scan.py", "\n\nCHANGED = 1\n")
    write_digests(Path("."))
    assert sorted(stale()) == sorted([("shared", "code"), ("played", "report"), *scan])
