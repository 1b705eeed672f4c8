"""Files that are either whole or not there, and their fingerprints."""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import yaml

from benchmark.core.errors import UserError

PART = ".part"  # end of the names of what is being written
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:6]  # folders may be shared
# What the loader raises: its constructors of numbers and dates raise as Python does.
BAD_YAML = (yaml.YAMLError, OSError, ValueError, TypeError, LookupError, ArithmeticError)
BAD_YAML += (AttributeError, RecursionError)
YAML_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # the same, faster


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the block ends well, else it vanishes.

    What was written is on the disk before it takes the place of anything. What killed processes
    left unfinished is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    part = path.with_name(f".{path.name}.{HOST}.{os.getpid()}{PART}")
    try:
        yield part
        _flush(part)
        os.replace(part, path)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove parts of `path` whose process, on this machine, has ended."""
    for part in path.parent.glob(f".{escape(path.name)}.{HOST}.*{PART}"):
        number = part.name.removesuffix(PART).rpartition(".")[2]
        if number.isdecimal() and not _is_running(int(number)):
            shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # of another user, or no number of a process
        return True
    return True


def _flush(part: Path) -> None:
    """Write a file, or all files of a folder, from memory to the disk."""
    for path in [part, *part.rglob("*")] if part.is_dir() else [part]:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder to fill; it takes the place of `folder` when the block ends well.

    Folders cannot be swapped in one step, so the old one is set aside first. If the process is
    killed in between, the next call puts it back.
    """
    old = folder.with_name(f".{folder.name}.old")
    _put_back(old, folder)
    try:
        with atomic(folder) as part:
            part.mkdir()
            yield part
            if folder.exists():
                os.replace(folder, old)
    finally:
        _put_back(old, folder)


def _put_back(old: Path, folder: Path) -> None:
    """Restore `folder` if it is missing; what was set aside is gone afterwards."""
    if old.exists() and not folder.exists():
        os.replace(old, folder)
    shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, data: object) -> None:
    """Write `data` with sorted keys and no NaN, atomically: equal data gives equal bytes."""
    text = json.dumps(data, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def read_json(path: Path) -> dict:
    """The object in a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(path, "a JSON file", "nothing", "run the stage that writes it") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            path, "JSON", f"something else ({error})", "write the file again"
        ) from error


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file, read with the safe loader."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), YAML_LOADER)
    except FileNotFoundError as error:
        raise UserError(path, "a YAML file", "nothing", "check the path") from error
    except BAD_YAML as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(path, "YAML", f"something else ({reason})", "correct the file") from error
    if not isinstance(data, dict):
        raise UserError(path, "a mapping", type(data).__name__, "write `key: value` lines")
    return data


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
