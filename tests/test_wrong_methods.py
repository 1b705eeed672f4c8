"""Methods that are wrong without knowing it: what `check` says of them, and how their
cells end."""

import os
from pathlib import Path

import pytest
import torch
from tiny_cells import (
    METHODS,
    cell_of,
    checkpoint_of,
    enter,
    evaluated,
    scores_of,
    train_cell,
)

from benchmark.__main__ import main
from benchmark.commands import check
from benchmark.core.devices import make_deterministic
from benchmark.season.plugins import method_of

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
    Path("own").mkdir()
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
