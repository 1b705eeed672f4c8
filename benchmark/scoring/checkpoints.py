"""What a training leaves behind: weights with what is needed to use them and what
decided them, or the reason why there are none.

The identity of a training is kept with its weights, so that no record can claim options,
inputs or code other than those that made the weights.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb, format_exception

import pandas as pd
import torch
from torch import Tensor, nn

from benchmark.contracts.methods import NotApplicableError, Sizes
from benchmark.core import files, numerics
from benchmark.core.command_line import ProgressBar
from benchmark.core.devices import fingerprint
from benchmark.core.errors import UserError
from benchmark.data.feature_folders import verified
from benchmark.scoring.inputs import network_structure
from benchmark.scoring.ranking import RefusedError
from benchmark.season.parameters import Cell
from benchmark.season.plugins import ConfiguredMethod, method_digest, versions

OF_THE_MACHINE = (UserError, OSError, MemoryError)
# what a method may raise; failure_of raises those of the machine again
OF_A_METHOD = (Exception, SystemExit)
CPU_ALLOCATOR = "DefaultCPUAllocator"  # in the message of a RuntimeError
LONGEST = 300  # characters of a message
# fields of a cell that say where files are; they decide no weight
PATH_FIELDS = {"folder", "start", "keeps"}


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a training leaves behind. A failed one has the last good weights and the
    reason; one that was not applicable has only the reason."""

    identity: dict = field(default_factory=dict)  # of the training
    # the vocabulary; None: the method takes vectors
    words: tuple[str, ...] | None = None
    sizes: Sizes = Sizes(image=0, text=0)
    parameters: int = 0
    state: dict[str, Tensor] = field(default_factory=dict)
    epoch: int | None = None  # the selected epoch, counted from 1
    status: str = "ok"  # ok, failed or not_applicable
    reason: str = ""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, atomically. Equal checkpoints give equal bytes."""
    content = vars(checkpoint) | {
        # a pickle would depend on which strings are interned
        "identity": json.dumps(checkpoint.identity),
        "state": {
            key: value.cpu().contiguous() for key, value in checkpoint.state.items()
        },
        "words": list(checkpoint.words) if checkpoint.words else None,
        "sizes": vars(checkpoint.sizes),
    }
    files.save_tensors(path, content)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises UserError where the file is missing or holds anything
    else."""
    if not path.is_file():
        raise UserError(
            path, "a checkpoint", "nothing", "run `dvc repro`, or `rematch play`"
        )
    try:
        content = files.load_tensors(path)
        words = tuple(content["words"]) if content["words"] else None
        identity, sizes = json.loads(content["identity"]), Sizes(**content["sizes"])
        parsed = {"identity": identity, "words": words, "sizes": sizes}
        return Checkpoint(**content | parsed)
    # torch raises many types here, depending on what the bytes are
    except Exception as error:
        actual = f"something else ({type(error).__name__})"
        expected = "a checkpoint of this version"
        advice = "delete it, then run `dvc repro`, or `rematch play`"
        raise UserError(path, expected, actual, advice) from error


def model_of(
    checkpoint: Checkpoint, cell: Cell, method: ConfiguredMethod, device: torch.device
) -> nn.Module:
    """A new model with the weights of a checkpoint, in evaluation mode."""
    parts = {}
    if method.takes.image == "pixels":
        parts["image_network"] = network_structure(cell, checkpoint.sizes.image)
    model = method.module.Model(method.config, checkpoint.sizes, **parts)
    model.load_state_dict(checkpoint.state)
    return model.to(device).eval()


def identity_of(cell: Cell, tables: str) -> dict:
    """What decides the weights of a training: the resolved cell, digests of everything
    that it reads, as of its dataset's `tables`, and of its method's code, versions of
    the framework, and how the process computes. Raises UserError for features of other
    tables or with changed files."""
    method = method_digest(cell.method)
    start = Path(cell.start or "")
    return {
        "cell": cell.model_dump(mode="json", exclude=PATH_FIELDS),
        "prepared": tables,
        "features": {each: verified(Path(each), tables) for each in cell.features},
        "start": files.sha256(start) if start.is_file() else None,
        "method": method,
        "versions": {name: versions()[name] for name in ("prepare", "encode", "train")},
        "numerics": process_numerics(),
    }


def process_numerics() -> dict:
    """How the present process computes, for identities and records."""
    return vars(numerics.current()) | {"fingerprint": fingerprint()}


def check_identity(trained: dict, cell: Cell, tables: str) -> None:
    """Raises UserError where the weights of a cell were not trained as they would be
    now, apart from the machine."""
    before = _flat(trained)
    after = _flat(identity_of(cell, tables))
    for key in sorted(before.keys() | after.keys()):
        # as text, since NaN is not equal to itself
        old = repr(before.get(key))
        new = repr(after.get(key))
        if not key.startswith("numerics") and old != new:
            expected = f"weights of the present {key}"
            trained_with = "those of another"
            if key.startswith("cell"):
                expected = f"weights of {key} = {new}"
                trained_with = f"those of {old}"
            season = cell.inside.partition("/")[0]
            command = f"python -m benchmark.train {cell.key} --season {season}"
            advice = f"train again: {command}"
            raise UserError(cell.checkpoint, expected, trained_with, advice)


def _flat(identity: dict) -> dict:
    """By the keys of all levels, joined with blanks."""
    return pd.json_normalize(identity, sep=" ").to_dict("records")[0]


# Failures -----------------------------------------------------------------------------


class DivergedError(ArithmeticError):
    """The loss, or a validation score, is no longer finite."""


def failure_of(error: BaseException, folder: str) -> dict[str, str]:
    """The status and reason of a cell that ended with this error, in one line with the
    place in the code. Errors of the machine or of the user's files are raised again and
    end the stage, as is MemoryError where torch has no type for it (on the CPU). The
    traceback is kept for the author of the method; `folder` is that of the cell's
    results."""
    if isinstance(error, OF_THE_MACHINE):
        raise error
    if isinstance(error, NotApplicableError):
        return {"status": "not_applicable", "reason": str(error)}
    if isinstance(error, RefusedError | DivergedError):
        return {"status": "failed", "reason": str(error)}
    line = " ".join(str(error).split())[:LONGEST]
    if isinstance(error, torch.OutOfMemoryError) or CPU_ALLOCATOR in line:
        raise MemoryError(f"{folder}: {line}") from error
    traceback = "".join(format_exception(error))
    files.write_text(Path(".scratch/failed", f"{folder}.txt"), traceback)
    frames = extract_tb(error.__traceback__)
    place = ""
    if frames:
        place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return {"status": "failed", "reason": f"{type(error).__name__}: {line}{place}"}


def log_failure(name: str, status: str, why: str) -> None:
    """A line in the log when a cell ends without a result."""
    if status != "ok":
        ProgressBar.write(f"{name}: {status}: {why}", file=sys.stderr)
