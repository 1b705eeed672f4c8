"""Pinned numerics: the same bytes on a narrower processor, other bytes without the
pins.

That Intel's and AMD's processors give the same bytes was seen on one of AMD beside
qemu's imitation of Intel's Haswell, whose approximations of square roots are others.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.core import devices, numerics

ROOT = Path(__file__).parent.parent
NARROW = {"MKL_ENABLE_INSTRUCTIONS": "AVX2"}  # MKL imitates a processor without AVX-512
PINS = {
    "MKL_CBWR",
    *numerics.KERNELS,
    *numerics.THREAD_COUNTS,
    "NPY_DISABLE_CPU_FEATURES",
    "OMP_WAIT_POLICY",
}


def run(*arguments: str, **changes: str) -> str:
    return output([sys.executable, *arguments], **changes)


def output(command: list[str], **changes: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in PINS}
    environment = kept | {"PYTHONPATH": str(ROOT)} | changes
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


PARTS = (
    "import benchmark.core.devices as f, json; print(json.dumps(f.fingerprint_parts()))"
)
GOLDEN = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-n",
    "0",
    "tests/test_golden.py",
)


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    return json.loads(run("-c", PARTS))


def has_wide_processor() -> bool:
    flags = Path("/proc/cpuinfo")
    return flags.is_file() and "avx512f" in flags.read_text()


@pytest.mark.slow
def test_a_narrower_processor_and_settings_of_the_user_change_no_byte(pinned):
    odd = {
        "OMP_NUM_THREADS": "2",
        "MKL_CBWR": "AVX512",
        "OPENBLAS_CORETYPE": "Prescott",
    }
    assert json.loads(run("-c", PARTS, **NARROW, **odd)) == pinned
    run(*GOLDEN, "-k", "text or image or training or cells", **NARROW, **odd)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="needs qemu-user")
@pytest.mark.parametrize("processor", ["Haswell", "EPYC-Rome"])
def test_imitated_processors_of_both_makers_give_the_same_bytes(pinned, processor):
    imitated = ["qemu-x86_64", "-cpu", processor, sys.executable, "-c", PARTS]
    assert json.loads(output(imitated)) == pinned


@pytest.mark.slow
@pytest.mark.skipif(not has_wide_processor(), reason="no AVX-512")
def test_without_the_pins_the_bytes_are_others(pinned):
    native = json.loads(run("-c", PARTS, **{numerics.MODE: numerics.NATIVE}))
    same = {name for name in pinned if native[name] == pinned[name]}
    assert {"torch products", "torch functions", "numpy"}.isdisjoint(same)


@pytest.mark.slow
def test_intel_numerics_are_others_and_those_of_every_intel_processor(pinned):
    intel = {numerics.MODE: numerics.INTEL}
    parts = run("-c", PARTS, **intel)
    assert parts == run("-c", PARTS, **intel, **NARROW)
    assert json.loads(parts)["torch products"] != pinned["torch products"]


def test_the_fingerprint_is_of_every_part():
    parts = devices.fingerprint_parts()
    assert len(set(parts.values())) == len(parts) >= 8
    assert devices.fingerprint() == devices.fingerprint()


@pytest.mark.slow
def test_a_process_begins_anew_to_compute_otherwise():
    code = (
        "from benchmark.core import numerics; numerics.require('native', 2); import os, torch; "
        "print(numerics.current(), torch.get_num_threads(), os.environ.get('MKL_CBWR'))"
    )
    assert run("-c", code).split() == [
        "Numerics(mode='native',",
        "threads=2)",
        "2",
        "None",
    ]


# What MKL computes for torch from an approximation by the processor
# (benchmark/core/numerics.py).
APPROXIMATED = {"sqrt", "acos", "asin", "atan", "tan", "log2", "cdist", "pdist"}
ROOMS = ("layers", "features", "scoring", "encode", "train", "evaluate")
COMPUTING = ["methods", *(f"benchmark/{room}" for room in ROOMS)]


def not_portable(source: str) -> list[str]:
    """Calls of APPROXIMATED that are not numpy's or Python's, and optimisers that are
    not fused."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    texts = {ast.unparse(call): ast.unparse(call.func) for call in calls}
    return [
        text
        for text, name in texts.items()
        if (
            name.rpartition(".")[2] in APPROXIMATED
            and not name.startswith(("np.", "math."))
        )
        or (name.startswith("torch.optim.Adam") and "fused=True" not in text)
    ]


@pytest.mark.parametrize("folder", COMPUTING)
def test_no_result_hangs_on_a_square_root_that_processors_approximate(folder):
    sources = {path: path.read_text() for path in (ROOT / folder).rglob("*.py")}
    faults = {
        path: calls for path, text in sources.items() if (calls := not_portable(text))
    }
    assert sources and faults == {}


def test_square_roots_and_optimisers_are_seen():
    source = (
        "x.sqrt(); np.sqrt(2); torch.optim.Adam(p, fused=True); torch.optim.Adam(p)"
    )
    assert not_portable(source) == ["x.sqrt()", "torch.optim.Adam(p)"]


def test_numpy_before_the_package_is_noticed():
    code = "import numpy; from benchmark.core import numerics; print(numerics.current().mode)"
    assert run("-c", code).strip() == numerics.UNPINNED
