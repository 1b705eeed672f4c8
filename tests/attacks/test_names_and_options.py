"""Names become folders, shell words and links; options have ranges. Both are
checked."""

from pathlib import Path

import pytest
import yaml

from benchmark.__main__ import main
from benchmark.core.errors import UserError
from benchmark.core.names import LONGEST, checked_name

NAMES = [
    *(
        "a; touch x #",
        "a b",
        "$(touch x)",
        "`touch x`",
        "a|b",
        "a&b",
        "a>b",
        "a'b",
        'a"b',
        "a\nb",
    ),
    *(
        "/tmp/x",
        "../x",
        "..",
        ".",
        "",
        "~",
        "-rf",
        "--help",
        "_drawing",
        "a/b",
        "a\\b",
        "a:b",
    ),
    *(
        "a.b",
        "${x}",
        "%s",
        "ä",
        "a\0b",
        "\ud800",
        "x" * (LONGEST + 1),
        "x" * 5000,
        "a](http://b)",
    ),
]
SEASON = {"title": "T", "datasets": {"shapes": {}}, "presets": ["cca"], "seeds": [0]}


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def refused(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """The line of the error; nothing but the season file is written."""
    before = everything()
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1 and said.err.startswith("rematch: "), (
        said.err
    )
    assert "expected" in said.err and len(said.err) < 2000
    assert everything() == before
    return said.err


def everything() -> list[str]:
    return sorted(str(path) for path in Path.cwd().parent.rglob("*"))


def write(name: str = "mine.yaml", **changes: object) -> str:
    Path(name).write_text(yaml.safe_dump(SEASON | changes))
    return name


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_is_no_path_and_no_command(name, capsys):
    line = refused(
        capsys, "season", write(datasets={name: {"reader": "shapes"}}, presets=[name])
    )
    assert "mine.yaml" in line
    with pytest.raises(UserError):
        checked_name(name, "x")
    settings = {"image": {"network": name}, "sentence": {name: {}}}
    refused(capsys, "season", write(datasets={"shapes": settings}))


@pytest.mark.parametrize(
    "name", ["...yaml", "..yaml", "a b.yaml", "shared.yaml", "run.yaml"]
)
def test_a_season_file_gives_no_other_folder(name, capsys):
    refused(capsys, "season", write(name))


@pytest.mark.parametrize("verb", ["report", "verify"])
@pytest.mark.parametrize("name", ["../x", "/tmp", "a;b", ".."])
def test_a_season_on_the_command_line_is_a_name(verb, name, capsys):
    refused(capsys, *([verb, "--season", name] if verb == "report" else [verb, name]))
