"""Published weights of torchvision's networks: where they are, and putting them into a network."""

from pathlib import Path

import torch
from torch import nn

from benchmark.core.errors import UserError
from benchmark.encoders.weight_files import read_state


def locate(url: str, weights_dir: Path | None) -> Path:
    """The file of `weights_dir` that `url` names, with any hash; without a folder, downloaded.

    Raises UserError where the folder has no such file or several, and where the download fails.
    """
    return _found(url, weights_dir) if weights_dir else _downloaded(url)


def whereabouts(url: str, weights_dir: Path | None) -> str:
    """Where the weights are or come from. Raises UserError when `weights_dir` lacks them."""
    if weights_dir:
        return _found(url, weights_dir).name
    return f"to be downloaded from {url} unless --weights-dir names a folder"


def fill(model: nn.Module, path: Path, optional: tuple[str, ...] = ()) -> None:
    """Load the state dict at `path`. Tensors whose names start with one of `optional` may be
    missing. Raises UserError for weights of another network, and for anything but tensors."""
    try:
        problems = model.load_state_dict(read_state(path), strict=False)
    except RuntimeError as error:  # same names, other shapes
        first = str(error).splitlines()[-1].strip()
        raise UserError(f"{path.name}: weights of another network: {first}") from error
    missing = [key for key in problems.missing_keys if not key.startswith(optional)]
    wrong = missing + list(problems.unexpected_keys)
    if wrong:
        raise UserError(
            f"{path.name}: weights of another network: {len(wrong)} tensors differ, first "
            f"{wrong[0]!r}"
        )


def _pattern(url: str) -> str:
    return Path(url).stem.rpartition("-")[0] + "-*.pth"


def _found(url: str, weights_dir: Path) -> Path:
    found = sorted(weights_dir.glob(_pattern(url)))
    if len(found) == 1:
        return found[0]
    shown = ", ".join(path.name for path in found) or "none"
    raise UserError(
        f"weights_dir: expected exactly one file {_pattern(url)}, found {shown}; "
        f"name the folder of the weights with: python -m benchmark season NAME --weights-dir DIR"
    )


def _downloaded(url: str) -> Path:
    try:
        torch.hub.load_state_dict_from_url(
            url, map_location="cpu", check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"{Path(url).name}: cannot download {url} ({error}); place the file in a folder and "
            f"name it with: python -m benchmark season NAME --weights-dir DIR"
        ) from error
    return Path(torch.hub.get_dir()) / "checkpoints" / Path(url).name
