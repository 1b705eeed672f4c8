"""What decides the last bits of a result on the CPU, and how it is pinned.

Libraries choose their kernels by the processor, and different kernels add in different orders. So
before numpy and torch are imported, every process of this package tells them to compute as on an
x86-64 processor with AVX2, with a fixed number of threads. The same season then gives the same
bytes on every such processor of Intel. On those of AMD it gives other bytes, since MKL uses its
AVX2 kernels on processors of Intel alone.

A process that must compute otherwise begins anew with `require`: libraries read these settings
once, when they are loaded.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

PORTABLE, NATIVE = "portable", "native"  # as any Intel processor with AVX2; as is fastest
UNPINNED = "unpinned"  # numpy or torch was imported before this package
MODE, THREADS = "REMATCH_NUMERICS", "REMATCH_THREADS"  # from a process to the one it becomes

KERNELS = {  # of MKL, torch, oneDNN, OpenBLAS
    "MKL_CBWR": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
WIDER = "X86_V4 AVX512_ICL AVX512_SPR"  # what numpy calls processor features beyond AVX2
WIDER_BEFORE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
RENAMED = (2, 4)  # version of numpy
THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Numerics:
    """How a process computes."""

    mode: str  # PORTABLE, NATIVE or UNPINNED
    threads: int


def pin() -> None:
    """Set what the libraries read when they are loaded; without effect on those that are."""
    os.environ.update(_settings(_wanted(os.environ)))


def require(mode: str, threads: int) -> None:
    """Begin this process anew, and do not return, if it computes in another way."""
    if current() != Numerics(mode, threads):
        os.environ |= {MODE: mode, THREADS: str(threads)}
        for name in (*KERNELS, "NPY_DISABLE_CPU_FEATURES"):
            os.environ.pop(name, None)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def current() -> Numerics:
    """How the present process computes."""
    return _CURRENT


def _wanted(environment: Mapping[str, str]) -> Numerics:
    return Numerics(environment.get(MODE, PORTABLE), int(environment.get(THREADS, "1")))


def _settings(wanted: Numerics) -> dict[str, str]:
    threads = dict.fromkeys(THREAD_COUNTS, str(wanted.threads))
    waiting = {"OMP_WAIT_POLICY": "PASSIVE"}  # spinning threads take the cores of other cells
    if wanted.mode == NATIVE:
        return threads | waiting
    return threads | waiting | KERNELS | {"NPY_DISABLE_CPU_FEATURES": _wider_features()}


def _wider_features() -> str:
    """What numpy must not use; it warns of names that it does not know."""
    number = tuple(int(part) for part in version("numpy").split(".")[:2])
    return WIDER if number >= RENAMED else WIDER_BEFORE


def _begun() -> Numerics:
    wanted = _wanted(os.environ)
    is_late = {"numpy", "torch"} & sys.modules.keys() and any(
        os.environ.get(name) != value for name, value in _settings(wanted).items()
    )
    return Numerics(UNPINNED, wanted.threads) if is_late else wanted


_CURRENT = _begun()  # before `pin`, which cannot reach what is loaded
