"""Who may import whom, and that every DVC stage lists what it runs: read from the source."""

import ast
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGES = ("benchmark", "methods", "datasets")
FILES = sorted(
    str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
)
STAGES = ("fetch", "prepare", "encode", "train", "evaluate", "report")
SHARED_METHOD_FILES = ("methods/__init__.py", "methods/losses.py", "methods/encoders.py")
NO_TORCH = ("protocol", "ranking", "overlap", "significance")


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def found(pattern: str, without: tuple[str, ...] = ()) -> set[str]:
    return {file for file in FILES if fnmatch(file, pattern)} - set(without)


def defines(file: str, function: str) -> bool:
    return any(isinstance(x, ast.FunctionDef) and x.name == function for x in tree(file).body)


# Modules that a stage loads by name; dvc.yaml spells them with the item's own names.
READERS = {"datasets/${item.reader}.py": found("datasets/[!_]*.py")}
METHODS = {"methods/${item.method}.py": found("methods/[!_]*.py", SHARED_METHOD_FILES)}
ENCODERS = {"benchmark/encoders/${item.encoder}.py": found("benchmark/encoders/[!_]*.py")}
BACKBONES = {  # for training from pixels: the modules that can build a network for its weights
    "benchmark/encoders/${item.backbone}.py": {
        file for file in found("benchmark/encoders/[!_]*.py") if defines(file, "structure")
    }
}
BY_NAME = {
    "fetch": READERS,
    "prepare": READERS,
    "encode": READERS | ENCODERS,
    "train": METHODS | BACKBONES,
    "evaluate": METHODS | BACKBONES,
    "fuse": {},  # the members' records stand for their methods and image networks
    "report": {},
}


@cache
def imported(file: str) -> frozenset[str]:
    """Dotted names that a file imports, anywhere in it; `from a import b` gives a and a.b."""
    names = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def packages(file: str) -> set[str]:
    return {name.split(".")[0] for name in imported(file)}


def files_of(name: str) -> set[str]:
    """Files that importing a dotted name runs: the module, and its packages' __init__.py."""
    parts, found = name.split("."), set()
    for end in range(1, len(parts) + 1):
        stem = "/".join(parts[:end])
        found |= {file for file in (f"{stem}.py", f"{stem}/__init__.py") if file in FILES}
    return found


def closure(*files: str) -> set[str]:
    """The files and everything of this repository that they import, directly or not."""
    found, ahead = set(), [*files]
    while ahead:
        file = ahead.pop()
        if file not in found:
            found.add(file)
            own = file.removesuffix(".py").replace("/", ".")
            for name in (own, *imported(file)):
                ahead += files_of(name)
    return found


def pipeline() -> dict[str, dict]:
    path = ROOT / "dvc.yaml"
    if not path.is_file():
        pytest.skip("there is no dvc.yaml yet")
    stages = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage) for name, stage in stages.items()}


def code(deps: list[str]) -> set[str]:
    return {dep for dep in deps if dep.endswith(".py")}


def test_the_packages_were_found():
    assert {"benchmark/train.py", "methods/scan.py", "datasets/karpathy.py"} <= set(FILES)
    assert "benchmark/ranking.py" in closure("benchmark/evaluate.py")
    assert "methods/__init__.py" in closure("benchmark/train.py")


@pytest.mark.parametrize("file", FILES)
def test_packages_do_not_look_upwards(file):
    forbidden = {
        "datasets": {"benchmark", "methods", "torch"},
        "methods": {"benchmark", "datasets"},
    }
    own = file.split("/")[0]
    assert not packages(file) & forbidden.get(own, set())


def test_no_method_imports_another():
    for file in FILES:
        if file.startswith("methods/"):
            reached = {other for name in imported(file) for other in files_of(name)} - {file}
            reached = {other for other in reached if other.startswith("methods/")}
            assert reached <= set(SHARED_METHOD_FILES), file


def test_no_dataset_imports_another():
    for file in FILES:
        if file.startswith("datasets/"):
            reached = {other for name in imported(file) for other in files_of(name)} - {file}
            assert all(re.fullmatch(r"datasets/_\w+\.py", other) for other in reached), file


def test_stages_do_not_import_each_other():
    stages = {f"benchmark/{stage}.py" for stage in STAGES}
    for stage in stages & set(FILES):
        assert not closure(stage) & (stages - {stage}), stage


def test_what_promises_to_know_no_torch_does_not():
    promised = {f"benchmark/{name}.py" for name in NO_TORCH} & set(FILES)
    promised |= {
        file for file in FILES if "Knows no torch" in (ast.get_docstring(tree(file)) or "")
    }
    assert len(promised) >= 4
    for file in promised:
        guilty = [other for other in closure(file) if packages(other) & {"torch", "torchvision"}]
        assert not guilty, f"{file} reaches torch by {guilty}"


@pytest.mark.parametrize("file", FILES)
def test_imports_are_at_the_top(file):
    for function in ast.walk(tree(file)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                assert not isinstance(node, ast.Import | ast.ImportFrom), f"line {node.lineno}"


def test_files_are_named_after_what_they_hold():
    vague = {"utils", "util", "misc", "helpers", "common", "common_functions"}
    assert not [file for file in FILES if Path(file).stem in vague]


def test_the_pipeline_has_all_stages():
    assert set(pipeline()) == set(BY_NAME)
    assert set(STAGES) | {"fuse"} == set(BY_NAME)


@pytest.mark.parametrize("stage", BY_NAME)
def test_stage_lists_its_whole_import_closure_and_no_other_code(stage):
    listed = code(pipeline()[stage]["deps"])
    root = f"benchmark/{'evaluate' if stage == 'fuse' else stage}.py"
    if root not in FILES:
        pytest.skip(f"there is no {root} yet")
    by_name = set().union(*BY_NAME[stage].values())
    expected = closure(root) | set(BY_NAME[stage])
    for file in by_name:  # its name is listed, but not those of its like that it imports
        expected |= closure(file) - {file}
    assert listed - expected == set(), "listed without need: cells would grow stale for nothing"
    assert expected - listed == set(), "not listed: DVC would keep stale results"


@pytest.mark.parametrize("stage", BY_NAME)
def test_stage_runs_its_module(stage):
    found = re.match(r"python -m benchmark\.(\w+)", pipeline()[stage]["cmd"])
    assert found and found[1] == ("evaluate" if stage == "fuse" else stage)


def test_only_evaluation_comes_after_the_checkpoint():
    """Training depends on no result, and the report on nothing but what stages wrote."""
    stages = pipeline()
    trained_on = stages["train"]["deps"]
    assert not [dep for dep in trained_on if "results" in dep or "item.folder" in dep]
    outputs = [str(out) for out in stages["train"]["outs"]]
    assert any("checkpoint.pt" in out for out in outputs)


def test_trainings_and_evaluations_list_the_files_that_they_read():
    stages = pipeline()
    for stage in ("train", "evaluate"):
        read = {f"${{item.{name}}}" for name in ("images", "texts", "words")}
        assert read | {"data/prepared/${item.dataset}"} <= set(stages[stage]["deps"]), stage
    assert "${item.start}" in stages["train"]["deps"]
    assert "${item.folder}/checkpoint.pt" in stages["evaluate"]["deps"]
    for member in ("first", "second", "third"):
        left = {f"${{item.{member}}}/{name}" for name in ("checkpoint.pt", "record.json")}
        assert left <= set(stages["fuse"]["deps"])


def test_stages_that_read_presets_list_their_files():
    for stage, facts in pipeline().items():
        root = f"benchmark/{'evaluate' if stage == 'fuse' else stage}.py"
        if root in FILES and "benchmark/presets.py" in closure(root):
            files = {f"methods/{path.name}" for path in (ROOT / "methods").glob("*.yaml")}
            assert files <= set(facts["deps"]), f"{stage}: a corrected option would go unnoticed"


def test_the_report_lists_the_data_and_templates_that_it_reads():
    listed = set(pipeline()["report"]["deps"])
    for folder in ("papers", "fidelity"):
        files = {
            f"benchmark/{folder}/{p.name}" for p in (ROOT / "benchmark" / folder).glob("*.yaml")
        }
        assert files and files <= listed, "a corrected number would go unnoticed"
    assert "benchmark/pages/templates" in listed
