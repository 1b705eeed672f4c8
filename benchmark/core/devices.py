"""Where a stage computes, how exactly, what it cost, and whether two machines can
agree.

Two machines with the same fingerprint, a digest of a fixed set of computations, give
the same bytes for the kernels that are tried here and, as far as was seen, for whole
seasons; with different ones no repetition can be expected to agree.
"""

import os
import platform
import re
import resource
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.records import Provenance

UNKNOWN = "unknown"  # what a tool that is missing, or fails, would have told
PACKAGES = ("torch", "torchvision", "numpy", "pandas", "gensim", "scikit-learn")
DIGITS = 12  # of a digest, hexadecimal
SIZES = (7, 64, 300)  # of products: odd, a power of two, a sentence vector
# of the precisions of a season, the one that rounds float32 inside of GPU kernels
TF32 = "tf32"


def begin(device: str, precision: str = "float32") -> torch.device:
    """The device of a stage, ready for one cell: deterministic, of the precision given,
    and with nothing counted in its peak memory. Raises UserError for a device that
    cannot be had."""
    picked = pick(device)
    # the peak of this process begins at what it holds now, on Linux
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    make_deterministic()
    # the file of an own method may have set another one
    torch.set_default_dtype(torch.float32)
    set_precision(precision)
    if picked.type == "cuda":
        torch.cuda.reset_peak_memory_stats(picked)
    return picked


def peak_memory() -> float:
    """The most MiB that the process held since `begin`; where a system cannot tell,
    since its start."""
    told = ""
    with suppress(OSError):
        told = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    held = re.search(r"^VmHWM:\s*(\d+) kB$", told, re.MULTILINE)
    kibibytes = (
        int(held[1]) if held else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )
    return kibibytes / 1024


def pick(device: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU. Raises UserError for anything
    else than these two, and for a GPU that is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        do = "correct it in the season file"
        raise UserError("device", "auto, cpu or cuda[:N]", repr(device), do)
    picked, count = torch.device(device), torch.cuda.device_count()
    if picked.type == "cuda" and (picked.index or 0) >= count:
        found, do = (
            f"{count} of them, counted from 0" if count else "none",
            "use auto or cpu",
        )
        raise UserError(
            f"device {device!r}", "a CUDA device", found, f"{do}, or another number"
        )
    return picked


def kind(device: torch.device) -> str:
    """What computes: the name of a GPU, or "cpu". Two of a kind compute alike."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def make_deterministic() -> None:
    """Same seed, same machine, same bits: on the CPU always, on CUDA where kernels
    allow it."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # a tenth of the time of a step
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False


def set_precision(precision: str) -> None:
    """How GPUs multiply float32: whole (IEEE), unless the season asks for TF32.
    Products, convolutions and recurrences alike: torch's default is TF32 for the last
    two."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    for backend in (cuda.matmul, cudnn.conv, cudnn.rnn):
        backend.fp32_precision = "tf32" if precision == TF32 else "ieee"


def now(device: torch.device) -> float:
    """Seconds of a clock, when everything is done that `device` was asked for."""
    if device.type == "cuda":  # which is asked for work and does it later
        torch.cuda.synchronize(device)
    return perf_counter()


def provenance(
    device: torch.device, seconds: dict[str, float], precision: str
) -> Provenance:
    """The present process on the present machine. Memory is that since `begin`. Seconds
    keep four significant digits: some are of a whole training, some of one pair."""
    facts = {}
    if device.type == "cuda":
        cudnn, mib = torch.backends.cudnn.version(), 2**20
        query = ("--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
        facts = {
            "driver": _told("nvidia-smi", *query),
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}",
            "peak_device_memory_mib": round(
                torch.cuda.max_memory_allocated(device) / mib, 1
            ),
            "peak_device_reserved_mib": round(
                torch.cuda.max_memory_reserved(device) / mib, 1
            ),
        }
    changed = _told(
        "git", "status", "--porcelain", "--", "benchmark", "methods", "datasets"
    )
    commit = _told("git", "rev-parse", "--short=12", "HEAD")
    return Provenance(
        git_commit=commit + ("+" if changed and commit != UNKNOWN else ""),
        packages={name: version(name) for name in PACKAGES},
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        device=kind(device),
        precision=precision,
        threads=torch.get_num_threads(),
        jobs=int(os.environ.get(numerics.JOBS, 1)),
        seconds={name: float(f"{value:.4g}") for name, value in seconds.items()},
        peak_memory_mib=round(peak_memory(), 1),
        **facts,
    )


def _told(*command: str) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


# The fingerprint ----------------------------------------------------------------------


def fingerprint() -> str:
    """One digest of all computations."""
    return _digest(
        f"{name} {digest}".encode() for name, digest in fingerprint_parts().items()
    )


@cache
def fingerprint_parts() -> dict[str, str]:
    """What was computed -> digest of its bytes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the weights that layers start with
        tensors = _torch()
    arrays = {name: [x.detach().numpy() for x in of] for name, of in tensors.items()}
    arrays |= _arrays()
    return {
        name: _digest(array.tobytes() for array in of) for name, of in arrays.items()
    }


def _digest(chunks: Iterable[bytes]) -> str:
    return sha256(b"".join(chunks)).hexdigest()[:DIGITS]


def _uniform(*shape: int) -> np.ndarray:
    """Float32 numbers in [-1, 1): the same for the same shape, exact on every
    machine."""
    return (
        2 * np.random.default_rng(shape).random(shape, dtype=np.float32) - 1
    ).astype(np.float32)


def _tensor(*shape: int) -> Tensor:
    return torch.from_numpy(_uniform(*shape))


def _torch() -> dict[str, list[Tensor]]:
    plain = [
        _tensor(rows, 300) @ _tensor(300, columns)
        for rows in SIZES
        for columns in SIZES
    ]
    batched = torch.einsum("brd,bwd->brw", _tensor(8, 36, 64), _tensor(8, 11, 64))
    double = _tensor(64, 300).double() @ _tensor(300, 64).double()
    products = [*plain, batched, double, functional.normalize(_tensor(64, 300))]
    # Layers forward and backward: as in an image network and a text CNN, and recurrent
    # ones.
    convolutions, recurrence = [], []
    for shape, layer in (
        ((4, 3, 32, 32), nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)),
        ((4, 16, 16, 16), nn.Conv2d(16, 16, 3, padding=1, groups=16)),
        ((4, 64, 1, 16), nn.Conv2d(64, 32, (1, 2))),
    ):
        pixels = _tensor(*shape).requires_grad_()
        maps = functional.relu(
            functional.batch_norm(layer(pixels), None, None, training=True)
        )
        maps.square().sum().backward()
        convolutions += [maps, pixels.grad, layer.weight.grad]
    lengths = torch.tensor([9, 7, 7, 5, 3, 1])
    words = nn.utils.rnn.pack_padded_sequence(
        _tensor(6, 9, 20), lengths, batch_first=True
    )
    for layer in (nn.GRU(20, 32, bidirectional=True), nn.LSTM(20, 32)):
        states = layer(words)[0].data
        states.square().sum().backward()
        recurrence += [states, layer.weight_ih_l0.grad, layer.weight_hh_l0.grad]
    x = _tensor(37, 101)
    positive = x.abs() + 0.1
    sums = [
        x.softmax(1),
        x.logsumexp(0),
        x.norm(dim=1),
        x.sum(0),
        x.mean(),
        x.std(),
        x.cumsum(1),
    ]
    functions = [
        *sums,
        x.exp(),
        x.tanh(),
        x.sigmoid(),
        positive.log(),
        positive.rsqrt(),
    ]
    tall = _tensor(64, 40).double()
    gram = tall.T @ tall
    decompositions = [*torch.linalg.eigh(gram), torch.linalg.svdvals(tall)]
    decompositions.append(torch.linalg.cholesky(gram))
    weights = []  # two steps each, fused: sqrt, which other optimisers take, is MKL's
    for optimiser in (torch.optim.Adam, partial(torch.optim.SGD, lr=0.1, momentum=0.9)):
        weights.append(nn.Parameter(_tensor(37, 101)))
        step = optimiser(weights[-1:], fused=True)
        for power in (2, 3):
            weights[-1].grad = x**power
            step.step()
    pixels = (128 * (_tensor(1, 3, 61, 83) + 1)).to(torch.uint8)
    resize = partial(
        functional.interpolate, size=(32, 32), mode="bilinear", antialias=True
    )
    return {
        "torch products": products,
        "torch convolutions": convolutions,
        "torch recurrence": recurrence,
        "torch functions": functions,
        "torch decompositions": decompositions,
        "torch optimisers": weights,
        "torch pictures": [resize(pixels), resize(pixels.float())],
    }


def _arrays() -> dict[str, list[np.ndarray]]:
    import scipy.linalg  # here, as others than `fingerprint` need not wait for it
    import scipy.special

    x = _uniform(64, 300)
    square = x.astype(np.float64) @ x.T.astype(np.float64)
    positive = np.abs(square) + 1
    single = [
        np.exp(x),
        np.log(np.abs(x) + 1),
        np.sin(x),
        np.sqrt(np.abs(x)),
        x.astype(np.float16),
    ]
    double = [
        np.exp(square),
        np.log(positive),
        np.power(positive, 0.3),
        *np.linalg.eigh(square),
    ]
    of_numpy = [x @ x.T, square, *single, *double, x.sum(0), x.mean(1), x.std()]
    x = _uniform(40, 60).astype(np.float64)
    left, right = x @ x.T, x[:, :40] @ x[:, :40].T + np.eye(40)
    functions = [
        scipy.special.logsumexp(x, axis=1),
        scipy.special.gammaln(np.abs(x) + 1),
    ]
    of_scipy = [*scipy.linalg.eigh(left, right), scipy.linalg.svdvals(x), *functions]
    return {"numpy": of_numpy, "scipy": of_scipy}
