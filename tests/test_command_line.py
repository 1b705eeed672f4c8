"""The command line as its users meet it: help, lists, and mistakes told in one line."""

import argparse
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmark.__main__ import COMMANDS, VERBS, main
from benchmark.core.command_line import guarded

pytestmark = pytest.mark.usefixtures("empty_folder")

HERE = Path(__file__).parent


def one_line(capsys) -> str:
    text = capsys.readouterr().err.strip()
    assert text.startswith("rematch: ") and "\n" not in text
    return text


def test_every_command_is_a_verb():
    files = (HERE.parent / "benchmark/commands").glob("*.py")
    commands = {
        path.stem for path in files if "\ndef configure(" in path.read_text("utf-8")
    }
    assert commands == set(COMMANDS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: rematch {verb}" in capsys.readouterr().out


def test_a_stage_without_a_season(capsys):
    assert main(["train", "shapes-scan_t2i_avg-0"]) == 2
    line = one_line(capsys)
    assert "params.yaml: expected" in line and "rematch season demo" in line


def ran(words: list[str], path: str) -> subprocess.CompletedProcess:
    settings = os.environ | {"PYTHONPATH": path}
    return subprocess.run(words, env=settings, capture_output=True, text=True)


@pytest.mark.parametrize(
    "missing, advice",
    [
        ("yaml", "activate the environment"),
        ("networkx", "pip install 'rematch-benchmark[run]'"),
    ],
)
def test_an_environment_that_lacks_a_package(missing, advice, tmp_path):
    """A package that is not there is told in one line; here its import fails as it
    would."""
    text = f"raise ModuleNotFoundError('none', name={missing!r})\n"
    (tmp_path / f"{missing}.py").write_text(text, encoding="utf-8")
    path = f"{tmp_path}{os.pathsep}{HERE.parent}"
    done = ran([sys.executable, "-m", "benchmark", "play"], path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"no package {missing}: " in done.stderr
    assert advice in done.stderr


def test_an_interrupt_of_an_import_is_one_line(capsys, monkeypatch):
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmark.__main__.import_module", interrupted)
    assert main(["judge", "a.csv", "b.csv"]) == 130
    assert capsys.readouterr().err == "rematch: interrupted\n"


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rematch {version('rematch-benchmark')}\n"


@pytest.mark.parametrize("verb", ["doctor", "play", "report", "site", "verify"])
@pytest.mark.parametrize(
    "words, season",
    [([], None), (["demo"], "demo"), (["--season", "demo"], "demo")],
)
def test_a_season_is_a_word_or_an_option(verb, words, season):
    stage = (
        "benchmark.report.__main__"
        if verb == "report"
        else f"benchmark.commands.{verb}"
    )
    parser = argparse.ArgumentParser()
    import_module(stage).configure(parser)
    assert parser.parse_args(words).season == season
    for both in (["demo", "--season", "papers"], ["--season", "papers", "demo"]):
        with pytest.raises(SystemExit):
            parser.parse_args(both)


@pytest.mark.slow
def test_head_closes_the_pipe():
    command = f"'{sys.executable}' -m benchmark list presets | head -n 1"
    done = ran(["sh", "-c", command], str(HERE.parent))
    assert done.stderr == "" and done.stdout.count("\n") == 1


def test_a_crash_is_no_answer_of_a_check(capsys):
    """Python's status for a traceback is 1, which would say that a claim fails."""

    def crash(arguments):
        raise ZeroDivisionError

    assert guarded(crash, argparse.Namespace(check=True)) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        guarded(crash, argparse.Namespace(check=False))


@pytest.mark.parametrize("name", ["a" * 300, "a\nb\x1b[2J" + "c" * 300])
def test_a_name_that_no_file_can_have_is_told_in_one_line(name, capsys):
    def write(arguments):
        Path(name).write_text("")

    assert guarded(write, argparse.Namespace()) == 2
    line = one_line(capsys)
    assert "too long" in line and line.isprintable()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--margins", "3"], "did you mean --margin?"),
        (["--margin", "three"], "'three'"),
        (["--format", "tex"], "'tex'"),
    ],
)
def test_mistakes_of_options_are_one_line(words, part, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["judge", "a.csv", "b.csv", *words])
    assert stop.value.code == 2
    line = capsys.readouterr().err.strip()
    assert line.startswith("rematch judge: ") and "\n" not in line and part in line
