"""Reading files, with errors that say what is wrong with them, and writing files so
that each is either whole or not there.

Files may come from anyone. A pipe or a device in place of a file would block the reader
or never end, and a small compressed file may unpack to more than fits in memory. So
`opened` opens ordinary files only, and `content` and `bounded` read no more than is
allowed. What the project wrote itself is read without these checks.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from functools import cache
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np
import yaml

from benchmark.core.errors import LONGEST, UserError

# pandas and torch take a second that a --help should not: imported where used
if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
MOST = 1 << 30  # bytes of one file or member that is read as a whole
STEP = 1 << 20  # bytes read at once
# bytes that anything may unpack to, and more per compressed byte
ALWAYS, RATIO = 1 << 24, 100
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}

LARGEST_YAML = 1 << 24  # bytes; a season of every preset has a hundredth of that
# values of a YAML file, those of aliases counted wherever they stand
MOST_NODES = 1_000_000
SHALLOW = 4000  # characters; no shorter text is too deep for the loader
DEEPEST = 100  # levels of nesting
TOO_DEEP = f"nesting of more than {DEEPEST} levels"
# the same, faster
YAML_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

PART = ".part"  # end of the names of what is being written
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:6]  # folders may be shared
DIGEST_BYTES = hashlib.sha256().digest_size
GB = 1e9

# also of a name that no file can have, at which Path.is_file raises
is_file = os.path.isfile


# Bytes --------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file, opened to read its bytes. Raises UserError for a folder, pipe
    or device, without waiting for it, and for a name that no file can have;
    FileNotFoundError and other OSErrors as `open` does."""
    advice = "replace it, or correct its name"
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # for example a name that is too long
        raise UserError(
            path,
            expected="an ordinary file",
            found=f"one that cannot be opened ({getattr(error, 'strerror', error)})",
            do=advice,
        ) from error
    kind = stat.S_IFMT(os.fstat(number).st_mode)
    if kind != stat.S_IFREG:
        os.close(number)
        raise UserError(
            path,
            expected="an ordinary file",
            found=KINDS.get(kind, "a device"),
            do=advice,
        )
    with open(number, "rb") as file:
        yield file


def content(path: Path, most: int = MOST) -> bytes:
    """The bytes of an ordinary file. Raises as `opened`, and UserError for more than
    `most`."""
    with opened(path) as file:
        return bounded(file, most, path)


def bounded(file: BinaryIO, most: int, where: object) -> bytes:
    """What is left of an open file. Raises UserError if that is more than `most`
    bytes."""
    pieces = []
    size = 0
    # `read` may reserve what it is asked for
    while piece := file.read(min(most + 1 - size, STEP)):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise too_large(where, most)
    return b"".join(pieces)


def allowance(compressed: int, most: int | None = None) -> int:
    """How many bytes so many compressed ones may unpack to."""
    return min(MOST if most is None else most, ALWAYS + RATIO * compressed)


def too_large(where: object, most: int) -> UserError:
    """The error for content of more than `most` bytes, to be raised."""
    return UserError(
        where,
        expected=f"at most {most} bytes",
        found="more",
        do="get the file again, or a part of it",
    )


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_once(path: Path) -> str:
    """The same, of which a process reads one state of a file once: that takes seconds
    for large features."""
    state = path.stat()
    return _sha256_of_state(path, state.st_size, state.st_mtime_ns)


@cache
def _sha256_of_state(path: Path, _size: int, _mtime_ns: int) -> str:
    return sha256(path)


@contextmanager
def readable(where: object, expected: str, do: str) -> Iterator[None]:
    """What the readers inside raise for a missing or damaged file becomes a
    UserError."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(
            where,
            expected=expected,
            found=_nothing_at(where),
            do=do,
        ) from error
    except Exception as error:  # libraries raise all kinds for damaged bytes
        reason = " ".join(str(error).split())[:LONGEST] or type(error).__name__
        raise UserError(
            where,
            expected=expected,
            found=f"something else ({reason})",
            do=do,
        ) from error


def _nothing_at(where: object) -> str:
    """What is found where no file is, with the one beside it whose name is most like
    it."""
    path = Path(str(where))
    try:
        beside = sorted(os.listdir(path.parent))
    except (OSError, ValueError):
        beside = []
    near = get_close_matches(path.name, beside, n=1, cutoff=0.8)
    if not near or not os.path.isfile(path.with_name(near[0])):
        return "nothing"
    return f"nothing (did you mean {path.with_name(near[0])}?)"


# Formats ------------------------------------------------------------------------------


def parse_json(text: str, where: object, do: str, *, with_nan: bool = False) -> Any:
    """The value of a JSON text. Raises UserError for anything else, for nesting that is
    too deep, for NaN and infinity unless `with_nan`, and for a key that occurs twice in
    an object, where other readers would take other values."""
    decoder = JSON_WITH_NAN if with_nan else JSON
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise UserError(
            where,
            expected="JSON",
            found="nesting that is too deep",
            do=do,
        ) from error
    except ValueError as error:
        raise UserError(
            where,
            expected="JSON",
            found=f"something else ({error})",
            do=do,
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = _repeated([key for key, _ in pairs])
        raise ValueError(f"the key {twice!r:.60} twice in one object")
    return values


def _repeated(keys: list[T]) -> T:
    """The key that occurs most often."""
    return Counter(keys).most_common(1)[0][0]


def _no_number(name: str) -> float:
    raise ValueError(f"{name}, which is no number")


JSON = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
JSON_WITH_NAN = json.JSONDecoder(object_pairs_hook=_object)


def read_json(path: Path) -> Any:
    """The value in a JSON file. Raises UserError as `parse_json`, and for a missing
    file."""
    with readable(path, "a JSON file", "run the stage that writes it"):
        return parse_json(content(path).decode(), path, "write the file again")


def read_object(path: Path) -> dict:
    """The object in a JSON file. Raises UserError for anything else."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise UserError(
            path,
            expected="a JSON object",
            found=type(data).__name__,
            do="run the stage that writes it",
        )
    return data


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file, read with the safe loader. Raises UserError for
    anything else, for a key that occurs twice in a mapping, and for aliases of aliases,
    with which a few lines can stand for more data than there is memory."""
    with readable(path, "a YAML file", "correct the file, or its path"):
        data = parse_yaml(content(path, LARGEST_YAML).decode())
    if not isinstance(data, dict):
        raise UserError(
            path,
            expected="a mapping",
            found=type(data).__name__,
            do="write `key: value` lines",
        )
    return data


def parse_yaml(text: str) -> Any:
    """The value of a YAML text. Raises ValueError for one that is too deep or too
    large or has a key twice, and errors of the YAML library; see `readable`."""
    # A text without long lines and many brackets cannot be deep.
    longest = max(map(len, text.splitlines()), default=0)
    if longest + text.count("[") + text.count("{") >= SHALLOW:
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
    """Raise ValueError for nesting that is too deep: the loader nests calls as the text
    does, and a deep text would end the process."""
    depth = 0
    for event in yaml.parse(text, YAML_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError(TOO_DEEP)


def _check_nodes(root: yaml.Node) -> None:
    """Raise ValueError for a key that occurs twice, for nesting that is too deep, and
    for aliases that stand for too much."""
    ahead = [(root, 1)]
    count = 0
    while ahead:
        node, depth = ahead.pop()
        count += 1
        if depth > DEEPEST:
            raise ValueError(TOO_DEEP)
        if count > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} values, as aliases repeat them")
        if isinstance(node, yaml.SequenceNode):
            ahead += [(value, depth + 1) for value in node.value]
        elif isinstance(node, yaml.MappingNode):
            keys = []
            for key, value in node.value:
                ahead.append((value, depth + 1))
                if isinstance(key, yaml.ScalarNode):
                    keys.append((key.tag, key.value))
            if len(set(keys)) < len(keys):
                _, twice = _repeated(keys)
                raise ValueError(f"the key {twice!r:.60} twice in one mapping")


def read_parquet(path: Path) -> "pd.DataFrame":
    """The table of a parquet file. Raises UserError for a missing or damaged one."""
    import pandas as pd

    with readable(path, "a parquet file", "run: dvc repro --force"):
        return pd.read_parquet(path)


def read_tables(folder: Path, names: Sequence[str]) -> "dict[str, pd.DataFrame]":
    """The tables of a folder by name, as `read_parquet`."""
    return {name: read_parquet(folder / f"{name}.parquet") for name in names}


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. Raises UserError for a missing or damaged one."""
    with readable(path, "arrays", "run: dvc repro --force"):
        return parse_arrays(path.read_bytes(), path)


def parse_arrays(npz: bytes, where: object) -> dict[str, np.ndarray]:
    """The arrays of the bytes of an .npz file. Raises UserError for damaged ones."""
    return dict(StoredArrays(npz, where))


class StoredArrays(Mapping[str, np.ndarray]):
    """The arrays of the bytes of an .npz file, each read when it is asked for."""

    def __init__(self, npz: bytes, where: object) -> None:
        self.where = where
        with self._readable():
            stored = np.load(io.BytesIO(npz), allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
        self.stored = stored
        self.names = frozenset(stored.files)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        with self._readable():
            return self.stored[name]

    def __contains__(self, name: object) -> bool:  # else it would be read
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored.files)

    def __len__(self) -> int:
        return len(self.names)

    def _readable(self) -> AbstractContextManager[None]:
        return readable(self.where, "arrays", "run: dvc repro --force")


def read_archive(path: Path) -> dict[str, bytes]:
    """The files in an archive that `write_archive` wrote, by name. Raises UserError for
    a missing or damaged one."""
    with readable(path, "an archive", "run: git checkout, or dvc repro --force"):
        members = {}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED:
                    raise ValueError("compressed members")
                members[info.filename] = archive.read(info.filename)
        return members


def save_tensors(path: Path, values: dict) -> None:
    """Write tensors and plain values, atomically, and at the end the sha256 of the
    bytes: torch does not check the checksums of its archives. Equal values give equal
    bytes."""
    import torch

    archive = io.BytesIO()
    torch.save(values, archive)
    with atomic(path) as part:
        part.write_bytes(archive.getbuffer())
        with part.open("ab") as file:
            file.write(hashlib.sha256(archive.getbuffer()).digest())


def load_tensors(path: Path) -> dict:
    """Read what `save_tensors` wrote, onto the host. Raises UserError for other bytes,
    and FileNotFoundError."""
    import torch

    stored = path.read_bytes()
    archive = memoryview(stored)[:-DIGEST_BYTES]
    if hashlib.sha256(archive).digest() != stored[-DIGEST_BYTES:]:
        raise UserError(
            path,
            expected="a file that fits its checksum",
            found="another one",
            do="delete it and run again",
        )
    return torch.load(io.BytesIO(archive), map_location="cpu", weights_only=True)


# Writing ------------------------------------------------------------------------------


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` if the block ends without an error, else it
    is deleted. What was written is on the disk before it replaces anything. Unfinished
    files of processes that were killed are removed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{escape(path.name)}.{HOST}.*{PART}"):
        number = old.name.removesuffix(PART).rpartition(".")[2]
        if number.isdecimal() and not _is_running(int(number)):
            remove(old)
    part = path.with_name(f".{path.name}.{HOST}.{os.getpid()}{PART}")
    try:
        yield part
        if not part.is_symlink():
            _sync(part)
        os.replace(part, path)
    except OSError as error:
        # the file that was asked for, and not its part
        if error.filename in (None, str(part), part):
            error.filename = str(path)
        raise
    finally:
        remove(part)


def _sync(path: Path) -> None:
    """Let the disk have a file, or all files of a folder."""
    for written in (path, *path.rglob("*")):
        if written.is_file():
            with written.open("rb") as file:
                os.fsync(file.fileno())


def remove(path: Path) -> None:
    """Delete a file, a link or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Whether another process of this number runs, or may run."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # of another user, or no number of a process
    except (PermissionError, OverflowError):
        pass
    # else of an earlier one, as in a container started anew
    return process != os.getpid()


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder to fill; it takes the place of `folder` when the block ends well.
    Folders cannot be swapped in one step, so the old one is set aside first. If the
    process is killed in between, the next call puts it back."""
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
    """Rename `old` to `folder` if that is missing, else delete `old`."""
    if old.exists() and not folder.exists():
        os.replace(old, folder)
    shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, data: object) -> None:
    """Write `data` atomically, as `json_text`."""
    write_text(path, json_text(data))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as a compressed .npz, atomically: equal arrays give equal bytes."""
    with atomic(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, atomically."""
    with atomic(path) as part:
        part.write_bytes(content)


def npz_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes that `write_arrays` writes."""
    npz = io.BytesIO()
    np.savez_compressed(npz, **arrays)
    return npz.getvalue()


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into one, atomically, as they are: equal files give equal bytes."""
    with atomic(path) as part, zipfile.ZipFile(part, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])


def json_text(data: object) -> str:
    """`data` as JSON with sorted keys and no NaN: equal data gives equal bytes."""
    style = {"indent": 2, "sort_keys": True, "ensure_ascii": False}
    return json.dumps(data, allow_nan=False, **style) + "\n"


# Space --------------------------------------------------------------------------------


def free_below(path: Path) -> int:
    """Free bytes where `path` is, or would be."""
    while not os.path.exists(path):  # also of a name that no file can have
        path = path.absolute().parent
    return shutil.disk_usage(path).free


def require_space(path: Path, size: int) -> None:
    """Raises UserError where the disk of `path` has less than `size` bytes left."""
    free = free_below(path)
    if free < size:
        raise UserError(
            path,
            expected=f"{size / GB:.2f} GB of free space",
            found=f"{free / GB:.2f} GB",
            do="free some space, or use a larger disk",
        )
