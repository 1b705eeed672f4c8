"""What decides the last bits of a result on the CPU, and how it is pinned.

Libraries choose their kernels by the processor, and different kernels add in different
orders. So before numpy and torch are imported, every process of this package tells them
how to compute:

portable
    As on any x86-64 processor with AVX2, Intel's and AMD's. MKL then computes with SSE2 alone, so
    large products take up to several times as long.
intel
    As on any Intel processor with AVX2, or on any of AMD: one maker's bytes are not the other's,
    since MKL has its AVX2 kernels for Intel's processors alone. Nearly as fast as `native`.
native
    As is fastest on the processor at hand.

torch's sqrt, log2, acos, asin, atan, cdist and, of float64, log and tan on a CPU are
MKL's, which starts from an approximation by the processor, and Intel's and AMD's differ
in its last bits. Stages and methods use none of them: x.rsqrt().reciprocal() and fused
optimisers are exact everywhere.

The number of threads is fixed in all of them. A process that must compute otherwise
begins anew with `require`: libraries read these settings once, when they are loaded.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

PORTABLE, INTEL, NATIVE = "portable", "intel", "native"
# numpy or torch was imported before this package, or the library imports it
UNPINNED = "unpinned"
LIBRARY = "rematch"  # its processes are those of other programs
# from a process to the one it becomes
MODE, THREADS = "REMATCH_NUMERICS", "REMATCH_THREADS"
JOBS = "REMATCH_JOBS"  # from `play` to its processes: how many of them there are

MKL = {PORTABLE: "COMPATIBLE", INTEL: "AVX2"}  # values of MKL_CBWR
KERNELS = {  # of torch, oneDNN, OpenBLAS
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
# what numpy calls processor features beyond AVX2
WIDER = "X86_V4 AVX512_ICL AVX512_SPR"
WIDER_BEFORE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
RENAMED = (2, 4)  # version of numpy
THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Numerics:
    """How a process computes."""

    mode: str  # PORTABLE, INTEL, NATIVE or UNPINNED
    threads: int


def pin() -> None:
    """Set what the libraries read when they are loaded; without effect on those that
    are. Not where a program imports `rematch`: its environment is its own."""
    if LIBRARY in sys.modules:
        return
    os.environ.update(_settings(_wanted()))


def require(mode: str, threads: int) -> None:
    """Begin this process anew, and do not return, if it computes in another way."""
    wanted = Numerics(mode, threads)
    if current() != wanted:
        _ask_for(wanted)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


@contextmanager
def of_children(wanted: Numerics) -> Iterator[None]:
    """Processes that begin inside compute in this way."""
    before = dict(os.environ)
    _ask_for(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ask_for(wanted: Numerics) -> None:
    """Let the environment say how processes compute that begin from now on."""
    os.environ.update({MODE: wanted.mode, THREADS: str(wanted.threads)})
    for name in ("MKL_CBWR", *KERNELS, "NPY_DISABLE_CPU_FEATURES"):
        os.environ.pop(name, None)


def _wanted() -> Numerics:
    return Numerics(os.environ.get(MODE, PORTABLE), int(os.environ.get(THREADS, "1")))


def _settings(wanted: Numerics) -> dict[str, str]:
    threads = dict.fromkeys(THREAD_COUNTS, str(wanted.threads))
    # spinning threads take the cores of other cells
    threads |= {"OMP_WAIT_POLICY": "PASSIVE"}
    if wanted.mode == NATIVE:
        return threads
    kernels = KERNELS | {"MKL_CBWR": MKL[wanted.mode]}
    number = tuple(int(part) for part in version("numpy").split(".")[:2])
    # numpy warns of names it does not know
    wider = WIDER if number >= RENAMED else WIDER_BEFORE
    return threads | kernels | {"NPY_DISABLE_CPU_FEATURES": wider}


_CURRENT = _wanted()  # before `pin`, which cannot reach what is loaded
_IS_SET = _settings(_CURRENT).items() <= os.environ.items()
if {"numpy", "torch", LIBRARY} & sys.modules.keys() and not _IS_SET:
    _CURRENT = Numerics(UNPINNED, _CURRENT.threads)


def current() -> Numerics:
    """How the present process computes."""
    return _CURRENT
