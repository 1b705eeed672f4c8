"""Where and when the present process runs, and what it cost so far."""

import os
import platform
import subprocess
from importlib.metadata import version

import torch

from benchmark.core import devices
from benchmark.core.provenance import Provenance

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "gensim", "scikit-learn")


def provenance(
    device: torch.device, seconds: dict[str, float], precision: str, workers: int = 1
) -> Provenance:
    """The present process on the present machine. Memory is that since `devices.begin`, of a device
    without that of further workers. Seconds keep four significant digits: some are of a whole
    training, some of one pair."""
    on_cuda = device.type == "cuda"
    return Provenance(
        git_commit=_commit(),
        packages={name: version(name) for name in PACKAGES},
        machine=machine(),
        device=devices.kind(device),
        driver=_driver() if on_cuda else None,
        cudnn=_cudnn() if on_cuda else None,
        precision=precision,
        threads=torch.get_num_threads(),
        workers=workers,
        seconds={name: float(f"{value:.4g}") for name, value in seconds.items()},
        peak_memory_mib=round(devices.peak_memory(), 1),
        peak_device_memory_mib=_mib(torch.cuda.max_memory_allocated(device)) if on_cuda else None,
        peak_device_reserved_mib=_mib(torch.cuda.max_memory_reserved(device)) if on_cuda else None,
    )


def _mib(size: int) -> float:
    return round(size / 2**20, 1)


def _cudnn() -> str:
    number = torch.backends.cudnn.version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _driver() -> str:
    """The version of the GPU's driver; "unknown" where the tool that tells it is missing."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.strip()


def machine() -> str:
    """What kind of machine this is."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def _commit() -> str:
    """HEAD, marked `+` when the code differs from it; "unknown" outside of a repository."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", "benchmark", "methods", "datasets")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
