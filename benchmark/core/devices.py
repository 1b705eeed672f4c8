"""Where a stage computes, how exactly, and what it takes for two runs to agree."""

import os
import re
import resource
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import torch

from benchmark.core.errors import UserError

TF32 = "tf32"  # of the precisions of a season, the one that rounds float32 inside of GPU kernels


def begin(device: str, precision: str = "float32") -> torch.device:
    """The device of a stage, ready for one cell: deterministic, of the precision given, and with
    nothing counted in its peak memory. Raises UserError for a device that cannot be had."""
    picked = pick(device)
    with suppress(OSError):  # the peak of this process begins at what it holds now, on Linux
        Path("/proc/self/clear_refs").write_text("5")
    make_deterministic()
    set_precision(precision)
    if picked.type == "cuda":
        torch.cuda.reset_peak_memory_stats(picked)
    return picked


def peak_memory() -> float:
    """The most MiB that the process held since `begin`; where a system cannot tell, since its
    start."""
    told = ""
    with suppress(OSError):
        told = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    held = re.search(r"^VmHWM:\s*(\d+) kB$", told, re.MULTILINE)
    kibibytes = int(held[1]) if held else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes / 1024


def pick(device: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU. Raises UserError for anything else than
    these two, and for a GPU that is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        do = "correct it in the season file"
        raise UserError("device", "auto, cpu or cuda[:N]", repr(device), do)
    picked, count = torch.device(device), torch.cuda.device_count()
    if picked.type == "cuda" and (picked.index or 0) >= count:
        found, do = f"{count} of them, counted from 0" if count else "none", "use auto or cpu"
        raise UserError(f"device {device!r}", "a CUDA device", found, f"{do}, or another number")
    return picked


def kind(device: torch.device) -> str:
    """What computes: the name of a GPU, or "cpu". Two of a kind compute alike."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def make_deterministic() -> None:
    """Same seed, same machine, same bits: on the CPU always, on CUDA where kernels allow it."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a tenth of the time of a step
    torch.backends.cudnn.benchmark = False


def set_precision(precision: str) -> None:
    """How GPUs multiply float32: whole (IEEE), unless the season asks for TF32. Products,
    convolutions and recurrences alike: torch's default is TF32 for the last two."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    for backend in (cuda.matmul, cudnn.conv, cudnn.rnn):
        backend.fp32_precision = "tf32" if precision == TF32 else "ieee"


def now(device: torch.device) -> float:
    """Seconds of a clock, when everything is done that `device` was asked for."""
    synchronise(device)
    return perf_counter()


def synchronise(device: torch.device) -> None:
    """Wait until the device is idle: a GPU is asked for work and does it later."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
