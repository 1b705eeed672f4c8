"""A method file anywhere, its presets beside it, and claims on it, in a season; and
methods that are wrong, each in one way: how their cells end."""

import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
from refusals import refused
from report_seasons import enter_played_season
from tiny_cells import (
    METHODS,
    OWN_METHODS,
    cell_of,
    checkpoint_of,
    enter,
    evaluated,
    scores_of,
    train_cell,
)

from benchmark.__main__ import main
from benchmark.boards import claims
from benchmark.boards.season_boards import read_boards
from benchmark.commands import check, tasks
from benchmark.core.devices import make_deterministic
from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import OWN
from benchmark.season.parameter_files import read_params, read_season
from benchmark.season.parameters import DatasetSettings, OwnClaim, Season
from benchmark.season.pipeline import all_stages, cell_digest
from benchmark.season.plugins import method_of, plugin_digest
from benchmark.season.resolving import resolve
from seasons import write_params

PRESETS = "mine_wide:\n  title: Mine, wide\n  options: {embedding_size: 64}\n"
AGAIN = "is loaded"  # from the checkpoint, to be validated or to score again
OTHER = "is loaded anew"
TARGET = "target of the loss"
SEEDS = "same weights"
WRONG = {  # how -> what `check` says, what the record says; "": nothing
    "pair": ("", ""),
    "frozen": ("", ""),
    "position": (OTHER, OTHER),
    "rows": (OTHER, AGAIN),
    "chance": (OTHER, AGAIN),
    "batch": ("encode_images leaves norm in training mode", AGAIN),
    "tile": (OTHER, OTHER),
    "softmax": (OTHER, OTHER),
    "gallery": (OTHER, OTHER),
    "first mean": (OTHER, OTHER),
    "module": (OTHER, OTHER),
    # of a record by chance: where a batch lies where another one lay
    "identity": (OTHER, ""),
    "known order": (OTHER, OTHER),
    "dropout": (OTHER, AGAIN),
    "sentences": (OTHER, OTHER),
    "plain attribute": (OTHER, AGAIN),
    "plain list": ("['layers'] is never trained or saved", AGAIN),
    "seeds itself": (SEEDS, SEEDS),
    "own generator": (SEEDS, SEEDS),
    "a list": ("list beside tensors", "AttributeError: 'list' object"),
    "half": ("scores are torch.float16", ""),
    "in place": ("encode_images changes", ""),
    "detached": ("require grad", "require grad"),
    "zero rate": ("phase 1: all its learning rates are 0", ""),
    "NaN": ("are NaN or infinite", "contain NaN or infinity"),
    "split mean": (OTHER, OTHER),
    "image bank": (OTHER, OTHER),
    "drifts": ("scoring changes drift", ""),  # what drifts has no part in its scores
    "in place scores": ("similarity changes", ""),
    "evaluates": ("loss leaves the Model in evaluation mode", "in evaluation mode"),
    "trains": ("encode_images leaves the Model in training mode", ""),
    "unfreezes": ("train(True) changes whether image.bias, image.weight is frozen", ""),
    "seeds encoding": ("scoring sets torch's seed", ""),
    "seeds numpy": ("loss sets numpy's seed", ""),
    "cut images": (
        "encode_images alone uses (image.bias, image.weight)",
        "",
    ),
    "cut captions": (
        "encode_captions alone uses (text.bias, text.weight)",
        "",
    ),
    "only captions": ("with other images", ""),
    "no images": ("with other images", ""),
    "rolled": (TARGET, ""),  # as a board has it: near chance
    "half rolled": (TARGET, ""),
    "wrong sign": (TARGET, ""),
    "distance": (TARGET, ""),
    # the process keeps it for the second scoring
    "global": ("torch.nn.first_mean", ""),
    "file": ("the file mean.pt", ""),
    "threads": ("torch's threads", ""),
    "leaves": ("the working folder", ""),  # and its files are where they belong
    "numpy": ("", ""),  # all generators are seeded
}
RIGHT = ("pair", "frozen", "leaves", "numpy")  # for a record; of others none knows
OF_WORDS = {  # how -> what `check` says of captions as words
    "right": "",
    "sorted": OTHER,
    "sorted in training": TARGET,
    "padding": "wider captions",
    "no words": "are NaN or infinite",  # of a caption of padding
    "deviation": "are NaN or infinite",  # of one word
}
# what the rows of another order give, behind a constant as large as rounding allows
HIDDEN = [
    ("position", 1e7),
    ("softmax", 1e6),
    ("known order", 1e6),
    ("first mean", 1e5),
]


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


# Methods that are wrong ---------------------------------------------------------------


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    folder, threads = Path.cwd(), torch.get_num_threads()
    make_deterministic()  # as `check` does: it imports what wraps functions of torch
    yield
    vars(torch.nn).pop("first_mean", None)
    torch.set_num_threads(threads)
    os.chdir(folder)
    torch.use_deterministic_algorithms(False)


def of_check(how: str, method: str = "wrong", **options: object) -> list[str]:
    """What `check` finds broken."""
    trial = check.Trial(method_of(METHODS[method][0]), {"how": how, **options})
    ended = check.check(trial)
    return [promise.note for promise in ended if promise.is_kept is False]


@pytest.mark.parametrize("how", WRONG)
def test_check_says_what_is_wrong(how):
    said = of_check(how)
    assert any(WRONG[how][0] in note for note in said) if WRONG[how][0] else not said
    assert all("\n" not in note for note in said)


@pytest.mark.parametrize("how", OF_WORDS)
def test_check_says_what_is_wrong_with_words(how):
    notes = of_check(how, method="word_means")
    assert any(OF_WORDS[how] in note for note in notes) if OF_WORDS[how] else not notes


@pytest.mark.parametrize("how", [how for how in WRONG if WRONG[how][1] or how in RIGHT])
def test_a_record_says_what_is_wrong(how):
    cell = cell_of("wrong", how=how)
    train_cell(cell)
    record = evaluated(cell)
    if WRONG[how][1] in ("", SEEDS):
        assert record.status == "ok", record.reason
        assert record.starts_alike == (WRONG[how][1] == SEEDS)
    else:
        assert (record.status, record.metrics, scores_of().ranks) == ("failed", {}, {})
        assert WRONG[how][1] in record.reason


@pytest.mark.parametrize(("how", "constant"), HIDDEN)
def test_a_large_constant_hides_nothing(how, constant):
    assert any(OTHER in note for note in of_check(how, constant=constant))
    cell = cell_of("wrong", how=how, constant=constant)
    train_cell(cell)
    record = evaluated(cell)
    assert record.status == "failed" and AGAIN in record.reason


def test_a_frozen_layer_is_as_it_began():
    cell = cell_of("wrong", how="frozen")
    train_cell(cell)
    torch.manual_seed(cell.seed)
    begun = torch.nn.Linear(8, 4).state_dict()
    state = checkpoint_of().state
    assert all(state[f"image.{name}"].equal(value) for name, value in begun.items())


def test_draws_of_other_libraries_follow_the_seed():
    cell = cell_of("wrong", how="numpy")
    assert train_cell(cell)[1] == train_cell(cell)[1] != train_cell(cell_of("wrong"))[1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("torch.set_default_dtype(torch.float64)", "torch's default dtype"),
        ("torch.manual_seed(3)", "torch's seed"),
        ("__import__('numpy').random.seed(3)", "numpy's seed"),
        ("nn.functional.normalize = lambda x, **_: x", "torch.nn.functional.normalize"),
        ("torch.use_deterministic_algorithms(False)", "torch's deterministic mode"),
    ],
)
def test_check_names_what_an_import_changes(line, what, monkeypatch, capsys):
    monkeypatch.setattr(torch.nn.functional, "normalize", torch.nn.functional.normalize)
    source = Path(METHODS["plain"][0]).read_text()
    Path("mine.py").write_text(f"{source}\n\n{line}\n")
    try:
        assert main(["check", "mine.py"]) == 1
    finally:
        torch.set_default_dtype(torch.float32)
    assert f"FAIL  its import changes {what}," in capsys.readouterr().out


def test_a_module_beside_keeps_no_state_for_the_second_scoring(capsys):
    Path("own/aid.py").write_text(
        "SEEN = {}\n\n\ndef centred(x):\n    return x - SEEN.setdefault('mean', x.mean(0))\n"
    )
    source = Path(METHODS["plain"][0]).read_text()
    given = "def encode_images(self, images):\n"
    assert given in source
    mine = source.replace(given, f"{given}        images = centred(images)\n")
    Path("own/mine.py").write_text(f"from aid import centred\n{mine}")
    assert main(["check", "own/mine.py"]) == 1
    assert OTHER in capsys.readouterr().out


def test_an_import_of_the_old_contract_is_told(capsys):
    Path("mine.py").write_text("from methods import Inputs\n")
    assert main(["check", "mine.py"]) == 2
    assert "import it from benchmark.contracts.methods" in capsys.readouterr().err
