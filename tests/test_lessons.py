"""Lessons: notebooks whose code runs from top to bottom, and that store nothing of a
run."""

import json
import re
import tempfile
from pathlib import Path

import pytest

LESSONS = sorted((Path(__file__).parent.parent / "examples/lessons").glob("*.ipynb"))
TRAIN = ("1_write_a_loss", "3_luck_of_seeds")  # many seconds
LARGEST = 16_000  # bytes
each = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
each_that_runs = pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in TRAIN)
        )
        for path in LESSONS
    ],
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def texts(path: Path, kind: str) -> list[str]:
    return [
        "".join(cell["source"])
        for cell in read(path)["cells"]
        if cell["cell_type"] == kind
    ]


@each_that_runs
def test_the_code_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    """Where Jupyter begins, and with the project's folder left as it is."""
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, names = sorted(path.parent.iterdir()), {"__name__": "__main__"}
    for number, source in enumerate(texts(path, "code"), 1):
        exec(compile(source, f"{path.name}, code cell {number}", "exec"), names)
    assert sorted(path.parent.iterdir()) == before


@each
def test_a_notebook_is_plain_and_stores_no_outputs(path):
    book, code = read(path), texts(path, "code")
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert path.stat().st_size < LARGEST
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    ran = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert {(cell["execution_count"], *cell["outputs"]) for cell in ran} == {(None,)}
    assert not re.search(r"^\s*[%!]", "\n".join(code), re.MULTILINE), (
        "a magic, or a shell's command"
    )


@each
def test_a_lesson_gives_the_answer_first_and_then_an_exercise(path):
    first, *others = texts(path, "markdown")
    assert first.startswith(f"# {path.stem[0]}. ") and "**The answer first.**" in first
    (exercise,) = (text for text in others if "## Now you" in text)
    sources = ["".join(cell["source"]) for cell in read(path)["cells"]]
    assert "assert " in "\n".join(sources[sources.index(exercise) :])
    for link in LINK.findall("\n".join([first, *others])):
        assert (path.parent / link).exists(), link


def test_the_readme_names_every_lesson():
    readme = (LESSONS[0].parent.parent / "README.md").read_text(encoding="utf-8")
    assert len(LESSONS) == 5
    assert [
        path.name for path in LESSONS if f"(lessons/{path.name})" not in readme
    ] == []
