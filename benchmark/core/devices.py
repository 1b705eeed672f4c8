"""Where a stage computes, and what it takes for two runs to agree."""

import os

import torch

from benchmark.core.errors import UserError


def pick(device: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
    except RuntimeError as error:
        raise UserError(
            "device", "auto, cpu or cuda[:N]", repr(device), "correct it in the season file"
        ) from error
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device {device!r}", "a CUDA device", "none", "use auto or cpu")
    return picked


def make_deterministic() -> None:
    """Same seed, same machine, same bits: on the CPU always, on CUDA where kernels allow it."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a tenth of the time of a step
    torch.backends.cudnn.benchmark = False
