"""A repository with a copy of the code, as DVC plays it in tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
    dvc("init", "-q")


def dvc(*arguments: str) -> str:
    """What DVC prints. Its stages run the code of the working folder."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path.cwd()),
        "DVC_NO_ANALYTICS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "dvc", *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def repro(*targets: str) -> list[tuple[str, str]]:
    """The stages that `dvc repro` runs: pipelines' folders by their last name, and the stage."""
    return re.findall(r"Running stage '(?:.*?(\w+)/dvc\.yaml:)?([\w-]+)'", dvc("repro", *targets))
