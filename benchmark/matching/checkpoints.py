"""Trained weights with what is needed to use them: plain tensors and plain values."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from benchmark.core import sealed_files
from benchmark.core.errors import UserError
from methods import Sizes


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a training leaves behind. A failed one has the last good weights and the reason; one
    that was not applicable has only the reason."""

    identity: dict = field(default_factory=dict)  # of the training: training_identity.py
    words: tuple[str, ...] | None = None  # the vocabulary; None: the method takes vectors
    sizes: Sizes = Sizes(image=0, text=0)
    parameters: int = 0
    state: dict[str, Tensor] = field(default_factory=dict)
    epoch: int | None = None  # the selected epoch, counted from 1
    status: str = "ok"  # ok, failed or not_applicable
    reason: str = ""

    @classmethod
    def not_applicable(cls, identity: dict, reason: str) -> "Checkpoint":
        return cls(identity=identity, status="not_applicable", reason=reason)

    def ended(self, state: dict[str, Tensor], epoch: int | None, failure: str) -> "Checkpoint":
        """The same with the weights of the selected epoch; `failure` is the reason why training
        stopped early, or empty."""
        status = "failed" if failure else "ok"
        return replace(self, state=state, epoch=epoch, status=status, reason=failure)


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, atomically. Equal checkpoints give equal bytes."""
    content = vars(checkpoint) | {
        "identity": json.dumps(checkpoint.identity),  # pickled, it would hang on what is interned
        "state": {key: value.cpu().contiguous() for key, value in checkpoint.state.items()},
        "words": list(checkpoint.words) if checkpoint.words else None,
        "sizes": vars(checkpoint.sizes),
    }
    sealed_files.save(path, content)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises UserError where the file is missing or holds anything else."""
    if not path.is_file():
        raise UserError(
            where=path,
            expected="a checkpoint",
            found="nothing",
            do="run `dvc repro`, or `python -m benchmark.train CELL`",
        )
    try:
        content = sealed_files.load(path)
        words = tuple(content["words"]) if content["words"] else None
        identity, sizes = json.loads(content["identity"]), Sizes(**content["sizes"])
        return Checkpoint(**content | {"identity": identity, "words": words, "sizes": sizes})
    except Exception as error:  # torch raises many types here, depending on what the bytes are
        raise UserError(
            where=path,
            expected="a checkpoint of this version",
            found=f"something else ({type(error).__name__})",
            do="delete it and run `dvc repro` again",
        ) from error
