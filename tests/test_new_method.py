"""A method is one .py with its presets beside it: dropped into a copy of the tree, it is played."""

import shutil
from pathlib import Path

import forks
import pytest

ROOT = Path(__file__).parent.parent
PRESETS = """\
plain_256:
  title: Plain, 256 numbers
  sentence: mean_words
  options: {embedding_size: 256}
"""
PLAY = """\
import sys
from pathlib import Path

import pytest

sys.path.insert(0, "tests")
import tiny_cells
from benchmark.season.parameters import DatasetSettings
from benchmark.season.parameters import Season
from benchmark.season.resolving import resolve

season = Season(title="T", datasets={"tiny": DatasetSettings()}, presets=["plain_256"], seeds=[0])
(resolved,) = resolve("mine", season).cells.values()
facts = {name: getattr(resolved, name) for name in ("preset", "method", "options")}
Path("here").mkdir()
with pytest.MonkeyPatch.context() as patch:
    tiny_cells.enter(Path("here"), patch)
    cell = tiny_cells.cell_of("two_branch").model_copy(update=facts)
    tiny_cells.train_cell(cell)
    record = tiny_cells.evaluated(cell)
assert (record.status, record.method, record.options["embedding_size"]) == ("ok", "plain", 256)
tests = "tests/test_methods.py tests/test_method_options.py"
raise SystemExit(pytest.main(f"-q -p no:cacheprovider -k plain {tests}".split()))
"""


@pytest.mark.slow
def test_a_method_needs_no_edit_elsewhere(tmp_path):
    for folder in ("benchmark", "methods", "datasets", "seasons", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "tests/own_methods/plain.py", tmp_path / "methods")
    (tmp_path / "methods/plain.yaml").write_text(PRESETS)
    played = forks.python(PLAY, tmp_path)
    assert played.status == 0, played.said
    assert "passed" in played.said and "failed" not in played.said
