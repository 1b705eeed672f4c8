"""Where and when the present process runs, and what it cost so far."""

import os
import platform
import subprocess
from importlib.metadata import version

import torch

from benchmark.core import devices
from benchmark.core.records import Provenance

UNKNOWN = "unknown"  # what a tool that is missing, or fails, would have told
PACKAGES = ("torch", "torchvision", "numpy", "pandas", "gensim", "scikit-learn")


def provenance(device: torch.device, seconds: dict[str, float], precision: str) -> Provenance:
    """The present process on the present machine. Memory is that since `devices.begin`. Seconds
    keep four significant digits: some are of a whole training, some of one pair."""
    facts = {}
    if device.type == "cuda":
        cudnn, mib = torch.backends.cudnn.version(), 2**20
        query = ("--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
        facts = {
            "driver": _told("nvidia-smi", *query),
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}",
            "peak_device_memory_mib": round(torch.cuda.max_memory_allocated(device) / mib, 1),
            "peak_device_reserved_mib": round(torch.cuda.max_memory_reserved(device) / mib, 1),
        }
    changed = _told("git", "status", "--porcelain", "--", "benchmark", "methods", "datasets")
    commit = _told("git", "rev-parse", "--short=12", "HEAD")
    return Provenance(
        git_commit=commit + ("+" if changed and commit != UNKNOWN else ""),
        packages={name: version(name) for name in PACKAGES},
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        device=devices.kind(device),
        precision=precision,
        threads=torch.get_num_threads(),
        seconds={name: float(f"{value:.4g}") for name, value in seconds.items()},
        peak_memory_mib=round(devices.peak_memory(), 1),
        **facts,
    )


def _told(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
