"""Trained weights with what is needed to use them: plain tensors and plain values."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmark.errors import UserError
from benchmark.files import atomic
from methods import Sizes


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a training leaves. A failed one has a reason and no weights."""

    state: dict[str, Tensor]
    epoch: int | None  # the selected epoch, counted from 1
    words: tuple[str, ...] | None  # vocabulary, of methods that read words
    sizes: Sizes
    parameters: int  # trainable numbers
    failure: str


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, atomically. Equal checkpoints give equal bytes."""
    state = {key: value.cpu().contiguous() for key, value in checkpoint.state.items()}
    content = {
        "state": state,
        "epoch": checkpoint.epoch,
        "words": list(checkpoint.words) if checkpoint.words else None,
        "sizes": [checkpoint.sizes.image, checkpoint.sizes.text],
        "parameters": checkpoint.parameters,
        "failure": checkpoint.failure,
    }
    with atomic(path) as part:
        with part.open("wb") as file:  # a path would put its random name into the archive
            torch.save(content, file)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises UserError where the file is missing or holds anything else."""
    if not path.is_file():
        raise UserError(f"{path}: not found; run: dvc repro, or python -m benchmark.train CELL")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        words = tuple(content["words"]) if content["words"] else None
        image, text = content["sizes"]
        return Checkpoint(
            state=content["state"],
            epoch=content["epoch"],
            words=words,
            sizes=Sizes(image=image, text=text),
            parameters=content["parameters"],
            failure=content["failure"],
        )
    except Exception as error:  # torch raises many types here, depending on what the bytes are
        raise UserError(f"{path}: not a checkpoint of this version ({error})") from error
