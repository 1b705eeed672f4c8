"""What decides the weights of a training. It is kept with them, so that no record can tell of
options, inputs or code that the weights were not made with."""

from pathlib import Path

from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.fingerprint import fingerprint
from benchmark.core.json_objects import read_object
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import ENCODE_AGAIN, verified
from benchmark.season import code_digests
from benchmark.season.parameters import Cell

ELSEWHERE = {"folder", "start"}  # of a cell: where files lie, which decides no weight


def identity_of(cell: Cell) -> dict:
    """The resolved cell, digests of everything that its training reads and of its code, and how
    the process computes. Raises UserError for features of other tables or with changed files."""
    prepared = prepared_tables.read(cell.dataset).sha256
    folders = [folder for folder in (cell.images, cell.texts, cell.words) if folder]
    return {
        "cell": cell.model_dump(mode="json", exclude=ELSEWHERE),
        "prepared": prepared,
        "features": {folder: _features(Path(folder), prepared) for folder in folders},
        "start": sha256(Path(cell.start)) if cell.start and Path(cell.start).is_file() else None,
        "code": code_digests.sha256_of(_modules(cell)),
        "numerics": computed(),
    }


def computed() -> dict:
    """How the present process computes, for identities and records."""
    now = numerics.current()
    return {"mode": now.mode, "threads": now.threads, "fingerprint": fingerprint()}


def check(trained: dict, cell: Cell) -> None:
    """Raises UserError where the weights of a cell were not trained as it would be now."""
    now = identity_of(cell)
    before, after = _flat("", trained), _flat("", now)
    for key in sorted(before.keys() | after.keys()):
        if not key.startswith("numerics") and before.get(key) != after.get(key):
            is_option = key.startswith("cell")
            wanted = f"{key} = {after.get(key)}" if is_option else f"the present {key}"
            raise UserError(
                where=cell.checkpoint,
                expected=f"weights of {wanted}",
                found=f"those of {before.get(key) if is_option else 'another'}",
                do=f"train again: python -m benchmark.train {cell.key}",
            )


def _features(folder: Path, prepared: str) -> str:
    """The digest of a feature folder, if it is of these prepared tables and unchanged."""
    path = folder / "card.json"
    if read_object(path).get("prepared_sha256") != prepared:
        raise UserError(
            where=path,
            expected="features of the present data/prepared",
            found="features of other tables",
            do=ENCODE_AGAIN,
        )
    return verified(folder)


def _modules(cell: Cell) -> list[str]:
    """What a training begins with. A method is a name, or the path of a file anywhere."""
    is_file = cell.method.endswith(".py")
    method = str(Path(cell.method).resolve()) if is_file else f"methods/{cell.method}.py"
    backbone = [f"benchmark/encoders/{cell.backbone}.py"] if cell.backbone else []
    return ["benchmark/train/__main__.py", method, *backbone]


def _flat(name: str, value: object) -> dict[str, str]:
    """Nested mappings as one: {"cell options epochs": "4"}."""
    if not isinstance(value, dict):
        return {name: repr(value)}
    flat: dict[str, str] = {}
    for key, part in value.items():
        flat |= _flat(f"{name} {key}".strip(), part)
    return flat
