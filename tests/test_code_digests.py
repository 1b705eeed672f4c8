"""Which code a stage depends on: just what it imports, and no comment."""

import json
from pathlib import Path

import forks
import pytest

from benchmark.season.code_digests import closure, code_of, digest, targets, write_digests

ROOT = Path(__file__).parent.parent
PACKAGES = ("benchmark", "methods", "datasets")
RUN = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([file for file in files if file]))
"""
LOADED = ("prepare-shapes", "encode-pictures", "train-scan")
TREE = {
    "benchmark/__init__.py": "",
    "benchmark/train/__init__.py": "",
    "benchmark/train/__main__.py": "from benchmark.core import files\nimport methods\n",
    "benchmark/core/__init__.py": "",
    "benchmark/core/files.py": '"""Files."""\nSIZE = 1  # bytes\n',
    "benchmark/core/other.py": "OTHER = 1\n",
    "methods/__init__.py": "",
    "methods/mine.py": "from methods.shared import losses\n",
    "methods/shared/__init__.py": "",
    "methods/shared/losses.py": "MARGIN = 0.2\n",
    "methods/yours.py": "",
}


@pytest.fixture
def root(tmp_path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def modules_of(paths: list[str]) -> list[str]:
    return [path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in paths]


@pytest.mark.slow
def test_a_digest_lists_every_module_that_the_stage_loads():
    """Held against what the interpreter really loads."""
    for target in LOADED:
        played = forks.python(RUN, ROOT, *modules_of(targets(ROOT)[target]))
        assert played.status == 0, played.said
        files = [Path(file) for file in json.loads(played.said)]
        own = [file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT)]
        loaded = {str(file) for file in own if file.parts[0] in PACKAGES}
        assert loaded == closure(ROOT, targets(ROOT)[target]), target


def test_every_method_dataset_and_encoder_has_its_digest():
    names = set(targets(ROOT))
    assert {"train-scan", "evaluate-scan", "evaluate", "fetch-flickr8k", "prepare-people"} <= names
    assert {"encode-words", "encode-proposals", "encoder-drawn_cnn", "dataset-shapes"} <= names
    for files in targets(ROOT).values():
        assert all((ROOT / file).is_file() for file in files)


def test_comments_and_docstrings_are_no_code():
    plain = "import os\n\n\ndef f(x):\n    return x + 1\n"
    told = (
        '"""A module."""\n# Why.\nimport os  # needed\n\ndef f(x):\n    """Adds\n    one."""\n'
        "    # Here.\n    return x + 1  \n"
    )
    assert code_of(told) == code_of(plain)
    assert code_of(told.replace("x + 1", "x + 2")) != code_of(plain)


def test_strings_that_are_no_docstrings_are_code():
    assert code_of('x = "# one"\n') != code_of('x = "# two"\n')
    assert code_of('def f():\n    """Doc."""\n    return """a"""\n') == code_of(
        'def f():\n    return """a"""\n'
    )


@pytest.mark.parametrize(
    "file, changed",
    [
        ("benchmark/core/files.py", True),
        ("methods/shared/losses.py", True),
        ("methods/mine.py", True),
        ("benchmark/core/other.py", False),
        ("methods/yours.py", False),
    ],
)
def test_a_digest_changes_with_the_modules_of_its_stage_alone(root, file, changed):
    first = ["benchmark/train/__main__.py", "methods/mine.py"]
    before = digest(root, first)
    with (root / file).open("a") as text:
        text.write("MORE = 2\n")
    assert (digest(root, first) != before) == changed


def test_a_file_elsewhere_has_the_digest_of_its_code_wherever_it_lies(root, tmp_path):
    paths = [tmp_path / name / "own.py" for name in ("here", "there", "other")]
    for path, text in zip(paths, ("X = 1\n", "X = 1\n", "X = 2\n"), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    first, second, other = (digest(root, [str(path)]) for path in paths)
    assert first == second != other and str(tmp_path) not in first


def test_digests_are_files_of_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        write_digests(ROOT, tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(f"{name}.txt" for name in targets(ROOT))
    assert all(
        (tmp_path / "a" / x).read_bytes() == (tmp_path / "b" / x).read_bytes() for x in names
    )
