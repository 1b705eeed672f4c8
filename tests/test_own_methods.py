"""A method file anywhere, its presets beside it, and claims on it, in a season."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from refusals import refused
from report_seasons import enter_played_season
from tiny_cells import OWN_METHODS

from benchmark.boards import claims
from benchmark.boards.season_boards import read_boards
from benchmark.commands import tasks
from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import OWN
from benchmark.season.parameter_files import read_params, read_season
from benchmark.season.parameters import DatasetSettings, OwnClaim, Season
from benchmark.season.pipeline import all_stages, cell_digest
from benchmark.season.plugins import plugin_digest
from benchmark.season.resolving import resolve
from seasons import write_params

PRESETS = "mine_wide:\n  title: Mine, wide\n  options: {embedding_size: 64}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    plain = (OWN_METHODS / "plain.py").read_text()
    Path("own/mine.py").write_text(f"from __future__ import annotations\n\n{plain}")
    return tmp_path


def season(**changes: object) -> Season:
    facts = {
        "title": "Own",
        "datasets": {"pets": DatasetSettings(reader="folder")},
        "methods": {"mine": "own/mine.py"},
        "presets": ["mine", "scan_t2i_avg"],
        "seeds": [0],
    }
    return Season.model_validate(facts | changes)


def test_a_file_is_a_method_with_its_defaults_and_the_presets_beside_it():
    Path("own/mine.yaml").write_text(PRESETS)
    both = {"presets": ["mine", "mine_wide"]}
    declared = season(**both, options={"mine": {"epochs": 3}, "scan": {"epochs": 1}})
    params = resolve("own", declared)
    facts = {cell.preset: (cell.method, cell.options) for cell in params.cells.values()}
    assert facts == {
        "mine": ("own/mine.py", {"epochs": 3}),
        "mine_wide": ("own/mine.py", {"embedding_size": 64, "epochs": 3}),
    }
    with refused("options.mime", found="mine"):
        resolve("own", season(**both, options={"mime": {"epochs": 1}}))


def test_a_cell_depends_on_the_file_and_on_what_it_imports():
    declared = season(claims=[{"better": "mine", "than": "scan_t2i_avg"}])
    params = resolve("own", declared)
    write_params(params, declared)
    assert read_params("own").cells == params.cells
    (cell, *_) = params.cells.values()
    before = cell_digest(cell)
    source = Path("own/mine.py").read_text()
    Path("own/mine.py").write_text(f"{source}\nimport statistics, layers\n")
    edited = cell_digest(cell)
    Path("own/layers.py").write_text("X = 1\n")
    beside = cell_digest(cell)
    Path("own/layers.py").write_text("X = 1  # a comment\n")
    assert cell_digest(cell) == beside
    assert len({before, edited, beside}) == 3
    assert "own/layers.py" in all_stages(params)["cells"].reads


def test_a_digest_ignores_layout_and_not_what_strings_hold():
    path = Path("own/mine.py")
    plain = 'TEXT = """a\n{}b"""\n\n{}def f():\n    return TEXT  # it{}\n'
    texts = (("", "", ""), ("", "\n\n", " is"), ("\n", "", ""), (" ", "", ""))
    digests = [
        path.write_text(plain.format(*text)) and plugin_digest(path) for text in texts
    ]
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_the_process_of_a_cell_imports_no_other_method_file():
    # what an import changes in torch would reach whatever is computed in the same
    # process
    Path("own/loud.py").write_text(
        Path("own/mine.py").read_text() + "\nprint(end='loud')"
    )
    both = {"mine": "own/mine.py", "loud": "own/loud.py"}
    declared = season(
        methods=both, presets=["mine", "loud", "scan_t2i_avg"], seeds=[0, 1]
    )
    write_params(resolve("own", declared), declared)
    with redirect_stdout(StringIO()) as said:
        for only in ("mine", "pets-mine-1"):
            cells = read_params("own", only).cells
            assert list(cells) == ["pets-mine-0", "pets-mine-1"]
        assert said.getvalue() == ""
        # so that a message can say what there is
        everything = read_params("own", "pets-none-0")
    assert len(everything.cells) == 6 and "loud" in said.getvalue()
    stages = all_stages(everything)
    encodings = [name for name in stages if name.startswith("encode")]
    assert encodings
    for name, is_apart in (STAGES | dict.fromkeys(encodings, False)).items():
        assert tasks.of_stage(everything, stages[name], (), {}).is_apart == is_apart


STAGES = {  # name of a stage -> whether its process ends with it
    "train@pets-mine-0": True,
    "evaluate@pets-loud-1": True,
    "train@pets-scan_t2i_avg-0": False,
    "cells": True,  # it imports every method
    "collect@pets": True,
    "report": True,
}


def test_a_task_that_is_apart_has_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))  # which processes inherit
    Path("who.py").write_text(
        "import os\n\n\ndef configure(parser): pass\n\n\n"
        "def main(a):\n    print(os.getpid(), file=open('pids', 'a'))\n"
    )
    named = {str(n): tasks.Task("who", is_apart=n > 1) for n in range(4)}
    assert tasks.run_all(named, 1) == {}
    first, second, *apart = Path("pids").read_text().split()
    assert first == second and len({first, *apart}) == 3


@pytest.mark.parametrize(
    ("text", "where", "expected", "found"),
    [
        ("x = (", "own/mine.py: line 1", "can be imported", "SyntaxError"),
        (
            "import torhc",
            "own/mine.py: line 1",
            "can be imported",
            "No module named 'torhc'",
        ),
        ("\n\n1 / 0", "own/mine.py: line 3", "can be imported", "ZeroDivisionError"),
        (
            "raise SystemExit(3)",
            "own/mine.py: line 1",
            "can be imported",
            "SystemExit: 3",
        ),
        (
            "class Config: pass",
            "own/mine.py",
            "Config, inputs",
            "no inputs, Model, recipe",
        ),
        (
            "Config = inputs = Model = recipe = 1",
            "Config",
            "a frozen dataclass",
            "another class",
        ),
    ],
)
def test_a_file_that_is_no_method_is_refused_in_one_line(text, where, expected, found):
    Path("own/mine.py").write_text(text)
    with refused(where, expected, found, kind=UserError):
        resolve("own", season())


def test_inputs_that_are_none_are_refused():
    source = Path("own/mine.py").read_text()
    none = source.replace('Inputs(image="pooled", text="sentence")', "None")
    Path("own/mine.py").write_text(none)
    with refused("preset mine: inputs", "Inputs(...)"):
        resolve("own", season())


@pytest.mark.parametrize(
    ("methods", "where"),
    [
        ({"mine": "own/none.py"}, "own/none.py"),
        (
            {"scan_t2i_avg": "own/mine.py"},
            "methods.scan_t2i_avg: preset 'scan_t2i_avg'",
        ),
    ],
)
def test_names_and_paths_that_cannot_be_are_refused(methods, where):
    with refused(where):
        resolve("own", season(methods=methods, presets=[*methods]))


@pytest.mark.parametrize(
    "path", ["../mine.py", "own/mine.txt", "~/mine.py", "a/../../mine.py"]
)
def test_a_path_stays_inside_or_is_absolute(path, folder):
    Path("s.yaml").write_text(
        f"title: T\ndatasets: {{pets: {{}}}}\nmethods: {{mine: '{path}'}}\n"
        "presets: [mine]\nseeds: [0]\n"
    )
    with refused("methods.mine", "absolute or inside of the working folder", path):
        read_season("s.yaml")
    assert resolve("own", season(methods={"mine": str(folder / "own/mine.py")})).cells


def test_a_claim_on_what_is_not_played_is_refused():
    for claim in ({"better": "mine", "than": "cca"}, {"better": "x", "than": "mine"}):
        with refused("claims: number 1", expected="mine, scan_t2i_avg"):
            resolve("own", season(claims=[claim]))
    with refused("claims: number 1", found="r_at_1"):
        claim = {"better": "mine", "than": "scan_t2i_avg", "metric": "r_at_1"}
        resolve("own", season(claims=[claim]))


def test_own_claims_are_judged_as_those_of_papers(
    tmp_path_factory, tmp_path, monkeypatch
):
    params = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    own = OwnClaim(better="scan_t2i_avg_i2t_lse", than="scan_t2i_avg")
    params = params.model_copy(update={"claims": [own]})
    (verdict,) = (
        v for v in claims.claim_tests(read_boards(params)[0]) if v.paper == OWN
    )
    assert (
        verdict.claim.statement
        == "scan_t2i_avg_i2t_lse is better than scan_t2i_avg in rsum."
    )
    (tested,) = verdict.verdicts
    assert tested.comparison.difference > 0
    others = claims.claim_tests(
        read_boards(params.model_copy(update={"claims": []}))[0]
    )
    assert OWN not in {verdict.paper for verdict in others}
