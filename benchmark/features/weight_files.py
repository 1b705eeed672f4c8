"""Files of pretrained weights: where they are, and loading them into a network.

A weight file holds plain tensors; anything else in it is refused and never executed.
Where a file is can be told without torch, which takes seconds to import.
"""

from __future__ import annotations

import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.request import Request, urlopen

from benchmark.core.errors import UserError, suggested
from benchmark.core.files import allowance, opened, readable, sha256, too_large
from benchmark.season.parameters import DETECTORS

if TYPE_CHECKING:
    from torch import Tensor, nn

# beginnings of the names of torchvision's classifiers: the last two layers of these are
# no map's, and those have `features`
RESIDUAL = ("resnet", "resnext", "wide_resnet", "regnet")
WITH_FEATURES = (
    "alexnet",
    "convnext",
    "densenet",
    "efficientnet",
    "mobilenet",
    "squeezenet",
    "vgg",
)
DETECTING = ("fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn")
CLASSIFIED, DETECTED = "IMAGENET1K_V1", "DEFAULT"  # which of torchvision's weights
# encoder -> files of torchvision's models, beginnings of its networks, which weights
OF_TORCHVISION = {
    "torchvision_cnn": ("*.py", RESIDUAL + WITH_FEATURES, CLASSIFIED),
    DETECTORS: ("detection/*.py", DETECTING, DETECTED),
}
OF_TIMM = (".pth", "-*.pth", ".safetensors", "-*.safetensors")  # ends of names
ACROSS_LINES = re.DOTALL | re.MULTILINE
LARGEST = 1 << 36  # bytes of weights
PATIENCE = 4  # seconds for an address to answer
NAMED, LISTED = 3, 30  # entries of an object, and networks, that a message lists
SAVE_STATE = "save it with torch.save(model.state_dict(), path)"
NAME_FOLDER = (
    "name the folder of the weights with: rematch season NAME --weights-dir DIR"
)


@dataclass(frozen=True)
class Weights:
    """The weight file of a network, and the address that it is still to be downloaded
    from; "" if it is here."""

    file: str
    url: str = ""


def url_of(network: str, known: tuple[str, ...], which: str) -> str:
    """The address of torchvision's weights of a network. Raises UserError if it is not
    `known`."""
    if network not in known:
        some = "a known network"
        if len(known) <= LISTED:
            some = f"one of {', '.join(known)}"
        raise UserError(
            "network",
            expected=some,
            found=suggested(network, known),
            do="choose one of docs/datasets.md",
        )
    # imports torch's compiler: over a second
    from torchvision.models import get_model_weights

    return get_model_weights(network)[which].url


def locate(url: str, weights_dir: Path | None) -> Path:
    """The weight file that `url` names: in `weights_dir`, with any hash, or else
    downloaded.

    Raises UserError if the folder has no such file or several, and if the download
    fails.
    """
    name = Path(url).name
    if weights_dir:
        return only_file(weights_dir, [Path(url).stem.rpartition("-")[0] + "-*.pth"])
    expected = f"a download from {url}"
    advice = f"place it in a folder and {NAME_FOLDER}"
    import torch

    with readable(name, expected, advice):
        try:
            torch.hub.load_state_dict_from_url(
                url,
                map_location="cpu",
                check_hash=True,
                weights_only=True,
            )
        except OSError as error:
            raise UserError(
                name,
                expected=expected,
                found=f"no connection ({getattr(error, 'reason', error)})",
                do=advice,
            ) from error
    return _downloaded(url)


def _downloaded(url: str) -> Path:
    """Where torch keeps what it downloaded, as torch.hub.get_dir() has it."""
    cache_home = os.getenv("XDG_CACHE_HOME", "~/.cache")
    home = os.getenv("TORCH_HOME", os.path.join(cache_home, "torch"))
    return Path(os.path.expanduser(home)) / "hub/checkpoints" / Path(url).name


def only_file(weights_dir: Path | None, patterns: list[str]) -> Path:
    """The one file of the folder that fits any pattern. Raises UserError for none, for
    several, and for an empty one."""
    fitting: set[Path] = set()
    if weights_dir:
        for pattern in patterns:
            fitting.update(weights_dir.glob(pattern))
    if len(fitting) != 1:
        names = sorted(path.name for path in fitting)
        raise UserError(
            "weights_dir",
            expected=f"exactly one file {' or '.join(patterns)}",
            found=", ".join(names) or "none",
            do=NAME_FOLDER,
        )
    file = fitting.pop()
    _refuse_empty(file)
    return file


def _refuse_empty(file: Path) -> None:
    if not file.stat().st_size:
        raise UserError(file, "weights", "an empty file", "delete it and get it again")


def whereabouts(url: str, weights_dir: Path | None) -> Weights:
    """Where the weights are or come from. Raises UserError if `weights_dir` lacks
    them, and for an empty file."""
    if weights_dir:
        return Weights(locate(url, weights_dir).name)
    path = _downloaded(url)
    if not path.is_file():
        return Weights(path.name, url)
    _refuse_empty(path)
    return Weights(path.name)


def whereabouts_by_name(
    encoder: str, network: str, weights_dir: Path | None
) -> Weights | None:
    """The same as the encoder's `whereabouts`, without torch; None where only the
    encoder can tell. Raises UserError as that does."""
    if encoder == "timm_cnn":
        return Weights(timm_file(network, weights_dir).name)
    url = url_in_source(encoder, network)
    return whereabouts(url, weights_dir) if url else None


def url_in_source(encoder: str, network: str) -> str:
    """The address of the weights that an encoder takes for a network, as torchvision's
    source names it; "" where that is not found."""
    if encoder not in OF_TORCHVISION:
        return ""
    pattern, known, which = OF_TORCHVISION[encoder]
    if not network.startswith(known):
        return ""
    models = Path(find_spec("torchvision").origin).with_name("models")
    for path in models.glob(pattern):
        text = path.read_text(encoding="utf-8")
        function = re.search(
            rf"^def {network}\(.*?Optional\[(\w+)\]", text, ACROSS_LINES
        )
        if not function:
            continue
        kind = re.search(rf"^class {function[1]}\(.*?(?=^\S)", text, ACROSS_LINES)
        if not kind:
            return ""
        alias = re.search(rf"^    {which} = (\w+)$", kind[0], ACROSS_LINES)
        name = alias[1] if alias else which
        url = re.search(
            rf'^    {name} = Weights\(.*?url="(.+?)"', kind[0], ACROSS_LINES
        )
        return url[1] if url else ""
    return ""


def timm_file(network: str, weights_dir: Path | None) -> Path:
    """The weight file of `timm_NAME`. Raises UserError if library or file is
    missing."""
    if find_spec("timm") is None:
        raise UserError(
            f"network {network}",
            expected="the library timm",
            found="none",
            do='run: pip install "rematch-benchmark[timm]"',
        )
    name = network.removeprefix("timm_")
    patterns = []
    for stem in dict.fromkeys((name, name.removeprefix("tf_"))):
        patterns += [stem + ending for ending in OF_TIMM]
    return only_file(weights_dir, patterns)


@cache
def why_unreachable(url: str) -> str:
    """Why an address does not answer, found by asking for its header; "" if it
    does."""
    try:
        with urlopen(Request(url, method="HEAD"), timeout=PATIENCE):
            return ""
    except OSError as error:
        return str(getattr(error, "reason", error))


def read_tensors(path: Path, advice: str = SAVE_STATE) -> Tensor | dict[str, Tensor]:
    """The tensor that torch saved, or the tensors by name. Raises UserError for
    anything else, which says what there is; `advice` tells how to save tensors."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        expected = "a .safetensors file of plain tensors"
        with readable(path.name, expected, "get it again"), opened(path):
            return load_file(path)
    expected = "plain tensors"
    with (
        readable(path.name, expected, advice),
        opened(path) as file,
        warnings.catch_warnings(),
    ):
        # torch warns of the old format before it refuses it
        warnings.simplefilter("ignore")
        # torch compresses nothing: what unpacks to more was made to fill the memory
        if zipfile.is_zipfile(file):
            unpacked = sum(info.file_size for info in zipfile.ZipFile(file).infolist())
            allowed = allowance(os.fstat(file.fileno()).st_size, LARGEST)
            if unpacked > allowed:
                raise too_large(path, allowed)
        file.seek(0)
        try:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise ValueError(_globals_of(file) or "no file of torch") from error
    are_named = isinstance(loaded, dict) and all(isinstance(n, str) for n in loaded)
    values = loaded.values() if are_named else [loaded]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise UserError(
            path.name,
            expected=expected,
            found=_described(loaded),
            do=advice,
        )
    return loaded


def _globals_of(file: BinaryIO) -> str:
    """The classes and functions that a file of torch would call, which is never done;
    "" for a file of another kind."""
    import torch

    file.seek(0)
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    except Exception:  # for example damaged bytes
        return ""
    return f"objects of {', '.join(sorted(names)[:NAMED])}"


def _described(value: object) -> str:
    """What an object holds: "a dict of embeddings: Tensor (4, 8), ids: list"."""
    if isinstance(value, dict):
        entries = [f"{name}: {_kind_of(part)}" for name, part in value.items()]
    elif isinstance(value, list | tuple):
        entries = [_kind_of(part) for part in value]
    else:
        return _kind_of(value)
    first = ", ".join(entries[:NAMED]) or "nothing"
    more = f" and {len(entries) - NAMED} more" if len(entries) > NAMED else ""
    return f"a {type(value).__name__} of {first}{more}"


def _kind_of(value: object) -> str:
    from torch import Tensor

    if isinstance(value, Tensor):
        return f"Tensor {tuple(value.shape)}"
    return type(value).__name__


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file by name.

    Raises UserError if it holds anything else, for tensors that are sparse, quantised,
    complex or without values, for those that are larger than what the file has of
    them, and for NaN and infinity.
    """
    import torch

    state = read_tensors(path)
    if isinstance(state, torch.Tensor):
        raise UserError(
            path.name,
            expected="tensors by name",
            found="one tensor",
            do=SAVE_STATE,
        )
    for name, value in state.items():
        is_strided = value.layout == torch.strided and not value.is_meta
        if not is_strided or value.is_quantized or value.is_complex():
            raise UserError(
                f"{path.name}: {name}",
                expected="a dense tensor of real numbers",
                found=f"{value.layout}, {value.dtype}, {value.device}",
                do=SAVE_STATE,
            )
        stored = value.untyped_storage().nbytes()
        if value.numel() > stored:  # one number stands for many
            raise UserError(
                f"{path.name}: {name}",
                expected="a tensor with a number of its own at every place",
                found=f"{value.numel()} numbers in {stored} bytes",
                do="save x.contiguous()",
            )
        if not value.isfinite().all():
            raise UserError(
                f"{path.name}: {name}",
                expected="numbers",
                found="NaN or infinity",
                do="get the file again",
            )
    return state


def fill(
    model: nn.Module,
    path: Path,
    optional: tuple[str, ...] = (),
    renamed: Callable = dict,
) -> dict[str, str]:
    """Load the state dict at `path` into `model`, with the names that `renamed` gives
    it; the name and the sha256 of the file.

    Tensors whose names start with one of `optional` may be missing. Raises UserError
    for weights of another network, and as `read_state`.
    """
    state, difference = renamed(read_state(path)), ""
    try:
        keys = model.load_state_dict(state, strict=False)
        wrong = [name for name in keys.missing_keys if not name.startswith(optional)]
        wrong += keys.unexpected_keys
        if wrong:
            difference = f"{len(wrong)} tensors differ, first {wrong[0]!r}"
    except RuntimeError as error:  # same names, other shapes
        difference = str(error).splitlines()[-1].strip()
    if difference:
        raise UserError(
            path.name,
            expected="the weights of this network",
            found=f"those of another network ({difference})",
            do="get the file of this network, or choose another `network`",
        )
    return {"file": path.name, "sha256": sha256(path)}
