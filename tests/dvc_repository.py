"""A repository with a copy of the code, as DVC plays it in tests."""

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from warnings import catch_warnings, simplefilter

import dvc.stage.run
import forks
import pytest
from dvc.repo import Repo
from dvc.stage.exceptions import StageCmdFailedError

ROOT = Path(__file__).parent.parent


def copy_code() -> None:
    """Put the code and what DVC needs beside it into the working folder."""
    for package in ("benchmark", "methods", "datasets"):
        shutil.copytree(ROOT / package, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("dvc.yaml", ".gitignore", ".dvcignore"):
        shutil.copy(ROOT / file, file)


def start() -> None:
    """Make the working folder a repository of git and DVC."""
    subprocess.run(["git", "init", "-q"], check=True)
    Repo.init().close()


@contextmanager
def repository() -> Iterator[Repo]:
    """The working folder, for DVC in this process; its stages run the code of the folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"PATH": path, "PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"}
    with pytest.MonkeyPatch.context() as patch, catch_warnings(), Repo() as opened:
        simplefilter("ignore")  # of what DVC imports
        for name, value in settings.items():
            patch.setenv(name, value)
        yield opened


def play_in_forks(patch: pytest.MonkeyPatch) -> None:
    """Stages are forks of this process instead of `python -m` in a shell, and begin sooner."""

    def run(executable: str, command: str, cwd: str, env: dict[str, str], **_: object) -> None:
        module, *arguments = command.removeprefix("python -m ").split()

        def play() -> None:
            runpy.run_module(module, run_name="__main__", alter_sys=True)

        ended = forks.run(play, Path(cwd), tuple(arguments), env)
        if ended.status:
            raise StageCmdFailedError(command, ended.status) from RuntimeError(ended.said)

    patch.setattr(dvc.stage.run, "_run", run)


def repro(*targets: str, **options: bool) -> list[tuple[str, str]]:
    """The stages that `dvc repro` runs: pipelines' folders by their last name, and the stage."""
    with repository() as opened:
        played = opened.reproduce(targets or None, **options)
    return [(Path(stage.path_in_repo).parent.name, stage.name) for stage in played]


def stale() -> list[tuple[str, str]]:
    """The stages with a changed dependency, named as by `repro`."""
    with repository() as opened:
        changed = [address.rpartition(":") for address in opened.status()]
    return [(Path(file).parent.name, name) for file, _, name in changed]
