"""Files of pretrained weights: where they are, and loading them into a network.

A weight file holds plain tensors; anything else in it is refused and never executed.
"""

import os
import warnings
import zipfile
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor, nn

from benchmark.core.errors import UserError
from datasets import DataError
from datasets.shared.plain_files import allowance, opened, too_large

LARGEST = 1 << 36  # bytes of weights
NAME_FOLDER = (
    "name the folder of the weights with: python -m benchmark season NAME --weights-dir DIR"
)


def locate(url: str, weights_dir: Path | None) -> Path:
    """The weight file that `url` names: in `weights_dir`, with any hash, or else downloaded.

    Raises UserError if the folder has no such file or several, and if the download fails.
    """
    return _file_in(weights_dir, url) if weights_dir else _downloaded(url)


def whereabouts(url: str, weights_dir: Path | None) -> str:
    """Where the weights are or come from. Raises UserError if `weights_dir` lacks them."""
    if weights_dir:
        return _file_in(weights_dir, url).name
    return f"to be downloaded from {url} unless --weights-dir names a folder"


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file by name. Raises UserError if it holds anything else."""
    expected = "a state dict of plain tensors"
    do = "save it with torch.save(model.state_dict(), path)"
    try:
        with opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the old format before it refuses it
            _check_unpacked(file, path)
            state = torch.load(file, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except Exception as error:  # torch raises many types here, depending on what the bytes are
        found = f"something else ({type(error).__name__})"
        raise UserError(where=path.name, expected=expected, found=found, do=do) from error
    if not isinstance(state, dict) or not all(map(_is_named_tensor, state.items())):
        raise UserError(where=path.name, expected=expected, found="other objects", do=do)
    return state


def _check_unpacked(file: BinaryIO, path: Path) -> None:
    """Refuse an archive whose members unpack to more than honest ones would: torch compresses
    nothing."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        infos = zipfile.ZipFile(file).infolist()
        allowed = allowance(os.fstat(file.fileno()).st_size, LARGEST)
        if sum(info.file_size for info in infos) > allowed:
            raise too_large(path, allowed)
    file.seek(0)


def _is_named_tensor(item: tuple[object, object]) -> bool:
    name, value = item
    return isinstance(name, str) and isinstance(value, Tensor)


def fill(model: nn.Module, path: Path, optional: tuple[str, ...] = ()) -> None:
    """Load the state dict at `path` into `model`.

    Tensors whose names start with one of `optional` may be missing. Raises UserError for weights
    of another network, and for anything but tensors.
    """
    try:
        problems = model.load_state_dict(read_state(path), strict=False)
    except RuntimeError as error:  # same names, other shapes
        first = str(error).splitlines()[-1].strip()
        raise _of_another_network(path, first) from error
    missing = [key for key in problems.missing_keys if not key.startswith(optional)]
    wrong = missing + list(problems.unexpected_keys)
    if wrong:
        raise _of_another_network(path, f"{len(wrong)} tensors differ, first {wrong[0]!r}")


def _of_another_network(path: Path, difference: str) -> UserError:
    return UserError(
        where=path.name,
        expected="the weights of this network",
        found=f"those of another network ({difference})",
        do="get the file of this network, or choose another `network`",
    )


def _file_in(weights_dir: Path, url: str) -> Path:
    pattern = Path(url).stem.rpartition("-")[0] + "-*.pth"
    paths = sorted(weights_dir.glob(pattern))
    if len(paths) == 1:
        return paths[0]
    raise UserError(
        where="weights_dir",
        expected=f"exactly one file {pattern}",
        found=", ".join(path.name for path in paths) or "none",
        do=NAME_FOLDER,
    )


def _downloaded(url: str) -> Path:
    try:
        torch.hub.load_state_dict_from_url(
            url, map_location="cpu", check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError) as error:
        raise UserError(
            where=Path(url).name,
            expected=f"to download it from {url}",
            found=error,
            do=f"place the file in a folder and {NAME_FOLDER}",
        ) from error
    return Path(torch.hub.get_dir()) / "checkpoints" / Path(url).name
