"""`check` tells which promises a method file keeps; each broken one is named."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_cells import OWN_METHODS

from benchmark.__main__ import main
from benchmark.commands import check
from benchmark.contracts import methods
from benchmark.features import text_encoders

pytestmark = pytest.mark.usefixtures("empty_folder")

PLAIN = OWN_METHODS / "plain.py"


def checked_with(capsys, *changes: tuple[str, str]) -> tuple[int, list[str]]:
    """Exit status and lines for the plain method with these changes of its text."""
    text = PLAIN.read_text().replace("batch_size=8", "batch_size=64")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("mine.py").write_text(text)
    status = main(["check", "mine.py"])
    return status, capsys.readouterr().out.splitlines()


def test_a_method_that_keeps_the_contract(capsys):
    shutil.copy(PLAIN, "mine.py")
    Path("mine.yaml").write_text(
        "mine_wide:\n  title: W\n  options: {embedding_size: 64}\n"
    )
    status, lines = checked_with(capsys)
    assert status == 0
    assert [line for line in lines if not line.startswith(" ")][:2] == [
        "mine_wide:",
        "mine:",
    ]
    assert sum(line.startswith("  ok ") for line in lines) == 2 * 16
    assert "mine.py: keeps the contract" in lines


BROKEN = {  # what is changed in the method -> what is said
    (
        "return (self.image(images),)",
        "return self.image(images)",
    ): "not a tuple",
    (
        "images[0] @ captions[0].T",
        "(images[0] @ captions[0].T).T",
    ): "(110, 40) scores for 40 x 110",
    (
        "images[0] @ captions[0].T",
        "images[0] @ captions[0].T / 0",
    ): "are NaN or infinite",
    (
        "images[0] @ captions[0].T",
        "(images[0] - images[0].mean(0)) @ captions[0].T",
    ): "loaded anew",
    (  # by the identity of its input, which it keeps so that no other takes its place
        "return (self.image(images),)",
        "memo = self.__dict__.setdefault('memo', {}); "
        "return memo.setdefault(id(images), (self.image(images), images))[:1]",
    ): "same tensor differ",
    ("(0.01,) * config.epochs", "(0.01,)"): "phase 1: 2 epochs, 1 learning rates",
    (
        "batch_size=64",
        "batch_size=64, rates=(('txet', 0.1),)",
    ): "rates: expected the start of a parameter's name, of image, text, found 'txet'",
    (
        'return {"i2t": cross_entropy(scores, rows), ',
        "return cross_entropy(scores, rows)  # {",
    ): ("found Tensor, not a dict of terms"),
    (
        "cross_entropy(scores, rows)",
        "cross_entropy(scores, rows) / 0",
    ): "i2t is tensor(inf",
    (
        "self.image = nn",
        "self.picture = nn",
    ): "AttributeError: 'Model' object has no attribute",
    ("frozen=True, ", ""): "frozen=True",
    (
        'text="sentence")',
        'text="sentence", attention=True)',
    ): "no attribute 'attention'",
    ('text="sentence")', 'text="sentense")'): (
        "inputs: text: expected 'tokens', 'words', 'sentence', 'contextual' or 'phrase', "
        "found 'sentense'"
    ),
    (
        "size: int = 16",
        "size: __import__('benchmark.contracts.methods', fromlist=['Size']).Size = 0",
    ): ("Config: embedding_size: expected greater than or equal to 1, found 0"),
    (
        "        scores, rows =",
        "        assert len(texts[0]) < 50, 'too many'\n        scores, rows =",
    ): ("AssertionError: too many"),
}


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("Path('cache').write_text('')", "the file cache"),
        ("Path('kept/x.pt').parent.mkdir(exist_ok=True)", "the folder kept"),
    ],
)
def test_a_file_that_is_left_behind_is_named(written, what, capsys):
    line = "return (self.image(images),)"
    change = (line, f"from pathlib import Path; {written}; {line}")
    status, lines = checked_with(capsys, change)
    (failed,) = [line for line in lines if line.startswith("  FAIL")]
    assert status == 1 and what in failed


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_promise_is_named(change, capsys):
    status, lines = checked_with(capsys, change)
    (failed,) = [line for line in lines if line.startswith("  FAIL")][:1]
    assert status == 1 and BROKEN[change] in failed
    number = sum(line.startswith("  FAIL") for line in lines)
    said = "1 promise broken" if number == 1 else f"{number} promises broken"
    assert lines[-2] == f"mine.py: {said}"


def test_a_method_that_does_not_learn_or_repeat_is_told(capsys):
    _, lines = checked_with(
        capsys,
        ("cross_entropy(scores, rows)", "0 * cross_entropy(scores, rows)"),
        ("cross_entropy(scores.T, rows)", "0 * scores.sum() + 1"),
    )
    assert any(
        "FAIL  it learns: its loss on eight pairs falls: from 1 to 1" in x
        for x in lines
    )
    _, lines = checked_with(
        capsys, ("rows)}", "rows) * (__import__('time').perf_counter() % 1)}")
    )
    assert any("FAIL  the same seed gives the same training" in line for line in lines)


def test_a_mistake_in_the_file_names_its_line(capsys):
    source = PLAIN.read_text().splitlines()
    number = next(n for n, x in enumerate(source, 1) if "self.text = nn.Linear" in x)
    _, lines = checked_with(
        capsys, ("self.text = nn.Linear(sizes.text", "self.text = nn.Linear(text")
    )
    assert any(
        f"NameError: name 'text' is not defined (line {number})" in x for x in lines
    )
    assert any("not tried" in line for line in lines)


def test_a_preset_names_an_encoder_of_sentences(capsys):
    assert text_encoders() == [
        "bilstm_max",
        "hglmm",
        "mean_words",
        "tfidf",
        "transformer",
    ]
    Path("mine.yaml").write_text("mine_wide:\n  title: W\n  sentence: mean_wrds\n")
    status, lines = checked_with(capsys)
    assert status == 1
    assert any(
        "the preset's sentence: expected one of" in x and "mean_words?" in x
        for x in lines
    )
    assert "mine.py: 1 promise broken" in lines
    Path("mine.yaml").write_text("title: T\ndatasets: {}\npresets: []\nseeds: [0]\n")
    status, lines = checked_with(capsys)
    assert status == 0 and lines[0] == "mine:"


def test_the_file_of_a_method_of_this_project_is_that_method(capsys):
    assert main(["check", str(methods.FOLDER / "cca.py")]) == 0
    by_path = capsys.readouterr().out.splitlines()
    assert "cca:" in by_path and by_path[-2].endswith("cca.py: keeps the contract")


def test_scores_that_are_alike_to_rounding_are_no_broken_promise():
    steps = np.random.default_rng(0).normal(size=(40, 110))
    steps[3] = np.nan
    assert check._are_alike(1 + 2.6e-6 * steps)  # texts of dual-path
    assert not check._are_alike(1 + 1e-2 * steps)


def test_a_mistake_without_a_line_names_none(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"\0")
    assert main(["check", str(path)]) == 2
    assert ": line" not in capsys.readouterr().err.partition("expected")[0]
