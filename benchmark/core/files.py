"""Files that are either whole or not there, and their fingerprints."""

import hashlib
import json
import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import yaml

from benchmark.core.errors import UserError
from datasets import DataError
from datasets.shared.plain_files import content

PART = ".part"  # end of the names of what is being written
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:6]  # folders may be shared
LARGEST_YAML = 1 << 24  # bytes; a season of every preset has a hundredth of that
MOST_NODES = 1_000_000  # values of a file, those of aliases counted wherever they stand
SHALLOW, DEEPEST = 4000, 100  # characters without which nothing is deep; levels of nesting
TOO_DEEP = f"nesting of more than {DEEPEST} levels"
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
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a file, a folder or a link to one, if it is there."""
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove parts of `path` whose process, on this machine, has ended."""
    for part in path.parent.glob(f".{escape(path.name)}.{HOST}.*{PART}"):
        number = part.name.removesuffix(PART).rpartition(".")[2]
        if number.isdecimal() and not _may_be_in_use(int(number)):
            _remove(part)


def _may_be_in_use(process: int) -> bool:
    """Whether a process runs, and is not this one, which writes a path once at a time: what has its
    number is of an earlier one, as in a container that was started anew."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # of another user, or no number of a process
        return True
    return True


def _flush(part: Path) -> None:
    """Write a file, or all files of a folder, from memory to the disk; of a link, none."""
    if part.is_symlink():
        return
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


def read_json(path: Path) -> object:
    """The value in a JSON file."""
    try:
        return json.loads(content(path).decode())
    except DataError:
        raise
    except FileNotFoundError as error:
        raise UserError(path, "a JSON file", "nothing", "run the stage that writes it") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            path, "JSON", f"something else ({error})", "write the file again"
        ) from error


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file, read with the safe loader.

    Raises UserError for anything else, for a key that occurs twice in a mapping, and for aliases of
    aliases, with which a few lines can stand for more data than there is memory.
    """
    try:
        data = _yaml(content(path, LARGEST_YAML).decode())
    except DataError:
        raise
    except FileNotFoundError as error:
        raise UserError(path, "a YAML file", "nothing", "check the path") from error
    except BAD_YAML as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(path, "YAML", f"something else ({reason})", "correct the file") from error
    if not isinstance(data, dict):
        raise UserError(path, "a mapping", type(data).__name__, "write `key: value` lines")
    return data


def _yaml(text: str) -> object:
    """The value of a YAML text. Raises what BAD_YAML lists."""
    # The loader nests calls as the text does, and a deep text would end the process. A text
    # without long lines and many brackets cannot be deep.
    lines = max(map(len, text.splitlines()), default=0)
    if lines + text.count("[") + text.count("{") > SHALLOW:
        _check_depth(text)
    loader = YAML_LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_nodes(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, YAML_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(TOO_DEEP)


def _check_nodes(root: yaml.Node) -> None:
    """Raise ValueError for a key that occurs twice, for nesting that is too deep, and for aliases
    that stand for too much."""
    ahead, count = [(root, 1)], 0
    while ahead:
        (node, depth), count = ahead.pop(), count + 1
        if depth > DEEPEST:
            raise ValueError(TOO_DEEP)
        if count > MOST_NODES:
            raise ValueError(
                f"more than {MOST_NODES} values, as aliases repeat what they stand for"
            )
        if isinstance(node, yaml.SequenceNode):
            ahead += [(value, depth + 1) for value in node.value]
        elif isinstance(node, yaml.MappingNode):
            _check_keys(node)
            ahead += [(value, depth + 1) for _, value in node.value]


def _check_keys(node: yaml.MappingNode) -> None:
    keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(set(keys)) < len(keys):
        ((_, twice), _), *_ = Counter(keys).most_common(1)
        raise ValueError(f"the key {twice!r:.60} twice in one mapping")


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
