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
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from benchmark.core import numerics
from benchmark.core.errors import UserError
from benchmark.core.records import Provenance

UNKNOWN = "unknown"  # what a tool that is missing, or fails, would have said
CODE = ("benchmark", "methods", "datasets")  # what a commit may differ in
MIB = 2**20  # bytes
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
    status = ""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    peak = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    if peak:
        return int(peak[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pick(device: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU. Raises UserError for anything
    else than these two, and for a GPU that is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:(0|[1-9][0-9]{0,2}))?", device):
        raise UserError(
            "device",
            expected="auto, cpu or cuda[:N]",
            found=repr(device),
            do="correct it in the season file",
        )
    picked = torch.device(device)
    count = torch.cuda.device_count()
    if picked.type == "cuda" and (picked.index or 0) >= count:
        raise UserError(
            f"device {device!r}",
            expected="a CUDA device",
            found=f"{count}, numbered from 0" if count else "none",
            do="use auto or cpu, or another number",
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
    cuda = torch.backends.cuda
    cudnn = torch.backends.cudnn
    for backend in (cuda.matmul, cudnn.conv, cudnn.rnn):
        backend.fp32_precision = "tf32" if precision == TF32 else "ieee"


def now(device: torch.device) -> float:
    """Seconds of a clock, when everything is done that `device` was asked for."""
    if device.type == "cuda":  # which is asked for work and does it later
        torch.cuda.synchronize(device)
    return perf_counter()


class Stopwatch:
    """Seconds of what a device was asked for, lap by lap."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.started = now(device)

    def lap(self) -> float:
        """Seconds since the last lap, or the start."""
        before, self.started = self.started, now(self.device)
        return self.started - before


def provenance(
    device: torch.device,
    seconds: dict[str, float],
    precision: str,
) -> Provenance:
    """The present process on the present machine. Memory is that since `begin`. Seconds
    keep four significant digits: some are of a whole training, some of one pair."""
    return Provenance(
        git_commit=_commit(),
        packages={name: version(name) for name in PACKAGES},
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        device=kind(device),
        precision=precision,
        threads=torch.get_num_threads(),
        jobs=int(os.environ.get(numerics.JOBS, 1)),
        seconds={name: float(f"{value:.4g}") for name, value in seconds.items()},
        peak_memory_mib=round(peak_memory(), 1),
        **(_gpu_facts(device) if device.type == "cuda" else {}),
    )


def _commit() -> str:
    """The commit that is checked out; with a + where its code was changed."""
    commit = _output_of("git", "rev-parse", "--short=12", "HEAD")
    changes = _output_of("git", "status", "--porcelain", "--", *CODE)
    return f"{commit}+" if changes and commit != UNKNOWN else commit


def _gpu_facts(device: torch.device) -> dict[str, str | float]:
    query = ("--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
    cudnn = torch.backends.cudnn.version()
    allocated = torch.cuda.max_memory_allocated(device)
    reserved = torch.cuda.max_memory_reserved(device)
    return {
        "driver": _output_of("nvidia-smi", *query),
        "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}",
        "peak_device_memory_mib": round(allocated / MIB, 1),
        "peak_device_reserved_mib": round(reserved / MIB, 1),
    }


def _output_of(*command: str) -> str:
    """What a tool prints; UNKNOWN where it is missing, or fails."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return ran.stdout.strip()


# The fingerprint ----------------------------------------------------------------------


def fingerprint() -> str:
    """One digest of all computations."""
    parts = fingerprint_parts().items()
    return _digest(f"{name} {digest}".encode() for name, digest in parts)


@cache
def fingerprint_parts() -> dict[str, str]:
    """What was computed -> digest of its bytes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the weights that layers start with
        tensors = _torch()
    digests = {}
    for name, computed in tensors.items():
        digests[name] = _digest(x.detach().numpy().tobytes() for x in computed)
    for name, arrays in _arrays().items():
        digests[name] = _digest(array.tobytes() for array in arrays)
    return digests


def _digest(chunks: Iterable[bytes]) -> str:
    return sha256(b"".join(chunks)).hexdigest()[:DIGITS]


def _uniform(*shape: int) -> np.ndarray:
    """Float32 numbers in [-1, 1): the same for the same shape, exact on every
    machine."""
    halves = np.random.default_rng(shape).random(shape, dtype=np.float32)
    return (2 * halves - 1).astype(np.float32)


def _tensor(*shape: int) -> Tensor:
    return torch.from_numpy(_uniform(*shape))


def _torch() -> dict[str, list[Tensor]]:
    """Layers draw their weights in this order, which is part of the fingerprint."""
    return {
        "torch products": _products(),
        "torch convolutions": _convolutions(),
        "torch recurrence": _recurrence(),
        "torch functions": _functions(),
        "torch decompositions": _decompositions(),
        "torch optimisers": _optimisers(),
        "torch pictures": _resized(),
    }


def _products() -> list[Tensor]:
    products = []
    for rows, columns in product(SIZES, SIZES):
        products.append(_tensor(rows, 300) @ _tensor(300, columns))
    batched = torch.einsum("brd,bwd->brw", _tensor(8, 36, 64), _tensor(8, 11, 64))
    double = _tensor(64, 300).double() @ _tensor(300, 64).double()
    return [*products, batched, double, functional.normalize(_tensor(64, 300))]


def _convolutions() -> list[Tensor]:
    """Forward and backward, as in an image network and a text CNN."""
    results = []
    for shape, layer in (
        ((4, 3, 32, 32), nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)),
        ((4, 16, 16, 16), nn.Conv2d(16, 16, 3, padding=1, groups=16)),
        ((4, 64, 1, 16), nn.Conv2d(64, 32, (1, 2))),
    ):
        pixels = _tensor(*shape).requires_grad_()
        normed = functional.batch_norm(layer(pixels), None, None, training=True)
        maps = functional.relu(normed)
        maps.square().sum().backward()
        results += [maps, pixels.grad, layer.weight.grad]
    return results


def _recurrence() -> list[Tensor]:
    """Forward and backward, of sentences of several lengths."""
    results = []
    lengths = torch.tensor([9, 7, 7, 5, 3, 1])
    sentences = _tensor(6, 9, 20)
    words = pack_padded_sequence(sentences, lengths, batch_first=True)
    for layer in (nn.GRU(20, 32, bidirectional=True), nn.LSTM(20, 32)):
        states = layer(words)[0].data
        states.square().sum().backward()
        results += [states, layer.weight_ih_l0.grad, layer.weight_hh_l0.grad]
    return results


def _functions() -> list[Tensor]:
    x = _tensor(37, 101)
    positive = x.abs() + 0.1
    sums = [x.softmax(1), x.logsumexp(0), x.norm(dim=1), x.sum(0)]
    moments = [x.mean(), x.std(), x.cumsum(1)]
    each = [x.exp(), x.tanh(), x.sigmoid(), positive.log(), positive.rsqrt()]
    return sums + moments + each


def _decompositions() -> list[Tensor]:
    tall = _tensor(64, 40).double()
    gram = tall.T @ tall
    values, vectors = torch.linalg.eigh(gram)
    return [values, vectors, torch.linalg.svdvals(tall), torch.linalg.cholesky(gram)]


def _optimisers() -> list[Tensor]:
    """Weights after two steps of Adam and two of SGD, fused: sqrt, which other
    optimisers take, is MKL's. By torch's functions: its classes load its compiler,
    which takes longer than all of the rest."""
    x = _tensor(37, 101)
    gradients = [x**2, x**3]
    by_adam, by_momentum = _tensor(37, 101), _tensor(37, 101)
    mean, square, step = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(())
    for gradient in gradients:
        adam(
            [by_adam],
            [gradient],
            exp_avgs=[mean],
            exp_avg_sqs=[square],
            max_exp_avg_sqs=[],
            state_steps=[step],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=0.001,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
    momentum: list[Tensor | None] = [None]
    for gradient in gradients:
        sgd(
            [by_momentum],
            [gradient],
            momentum,
            fused=True,
            weight_decay=0.0,
            momentum=0.9,
            lr=0.1,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
    return [by_adam, by_momentum]


def _resized() -> list[Tensor]:
    pixels = (128 * (_tensor(1, 3, 61, 83) + 1)).to(torch.uint8)
    style = {"size": (32, 32), "mode": "bilinear", "antialias": True}
    return [functional.interpolate(x, **style) for x in (pixels, pixels.float())]


def _arrays() -> dict[str, list[np.ndarray]]:
    import scipy.linalg  # here, as others than `fingerprint` need not wait for it
    import scipy.special

    x = _uniform(64, 300)
    square = x.astype(np.float64) @ x.T.astype(np.float64)
    positive = np.abs(square) + 1
    single = [np.exp(x), np.log(np.abs(x) + 1), np.sin(x), np.sqrt(np.abs(x))]
    half = x.astype(np.float16)
    double = [np.exp(square), np.log(positive), np.power(positive, 0.3)]
    double += np.linalg.eigh(square)
    sums = [x.sum(0), x.mean(1), x.std()]
    y = _uniform(40, 60).astype(np.float64)
    solved = scipy.linalg.eigh(y @ y.T, y[:, :40] @ y[:, :40].T + np.eye(40))
    functions = [scipy.special.logsumexp(y, axis=1)]
    functions.append(scipy.special.gammaln(np.abs(y) + 1))
    return {
        "numpy": [x @ x.T, square, *single, half, *double, *sums],
        "scipy": [*solved, scipy.linalg.svdvals(y), *functions],
    }
