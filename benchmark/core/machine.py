"""Where and when the present process runs, and what it cost so far."""

import os
import platform
import resource
import subprocess
from importlib.metadata import version

import torch

from benchmark.core.provenance import Provenance

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "gensim", "scikit-learn")


def provenance(device: torch.device, seconds: dict[str, float]) -> Provenance:
    """The present process on the present machine. Seconds keep four significant digits: some are
    of a whole training, some of one pair."""
    on_cuda = device.type == "cuda"
    return Provenance(
        git_commit=_commit(),
        packages={name: version(name) for name in PACKAGES},
        machine=machine(),
        device=torch.cuda.get_device_name(device) if on_cuda else "cpu",
        threads=torch.get_num_threads(),
        seconds={name: float(f"{value:.4g}") for name, value in seconds.items()},
        peak_memory_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        peak_device_memory_mib=(
            round(torch.cuda.max_memory_allocated(device) / 2**20, 1) if on_cuda else None
        ),
    )


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
