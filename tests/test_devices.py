"""Where a stage computes: names that are refused, precision, clocks, memory, and what
goes on where after a kill. Nothing here needs a GPU."""

import subprocess
import sys

import pytest
import torch
from refusals import refused
from tiny_cells import cell_of
from torch import nn

from benchmark.core import devices
from benchmark.core.devices import begin, pick, set_precision
from benchmark.features import torchvision_cnn
from benchmark.scoring import inputs
from benchmark.train import __main__ as train


def pretend_gpus(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(
        torch.cuda, "get_device_name", lambda device=None: "Made-up 9000"
    )


@pytest.mark.parametrize("device", ["meta", "mps", "xpu:3", "vulkan", "cpu:1", "gpu"])
def test_devices_that_no_stage_computes_on_are_refused(device, monkeypatch):
    pretend_gpus(2, monkeypatch)
    with refused("device", "cpu", repr(device)):
        pick(device)


@pytest.mark.parametrize("device", ["cuda:2", "cuda:7"])
def test_a_gpu_beyond_the_last_is_refused(device, monkeypatch):
    pretend_gpus(2, monkeypatch)
    with refused(f"device '{device}'", "CUDA", "2, "):
        pick(device)


def test_a_gpu_is_refused_where_there_is_none(monkeypatch):
    pretend_gpus(0, monkeypatch)
    with refused("device 'cuda'", found="none"):
        pick("cuda")
    assert pick("auto") == torch.device("cpu")


def test_gpus_are_taken_by_their_number(monkeypatch):
    pretend_gpus(2, monkeypatch)
    assert [str(pick(name)) for name in ("auto", "cuda", "cuda:1", "cpu")] == [
        *("cuda", "cuda", "cuda:1", "cpu")
    ]


def of_backends() -> set[str]:
    kinds = (
        torch.backends.cuda.matmul,
        torch.backends.cudnn.conv,
        torch.backends.cudnn.rnn,
    )
    return {kind.fp32_precision for kind in kinds}


@pytest.mark.parametrize(
    ("precision", "kept"), [("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")]
)
def test_products_convolutions_and_recurrences_have_the_precision_of_the_season(
    precision, kept
):
    try:
        begin("cpu", precision)
        assert of_backends() == {kept}
    finally:
        set_precision("float32")


@pytest.mark.parametrize("side", [7, 8, 10, 14, 5])
def test_pooling_that_training_goes_back_through_has_a_sum_of_fixed_order(side):
    """VGG's pooling of a map to 7 x 7: torch's own way back adds in any order on a
    GPU."""
    maps = torch.randn(2, 3, side, side + 1, dtype=torch.float64, requires_grad=True)
    expected = nn.functional.adaptive_avg_pool2d(maps, 7)
    pooled = torchvision_cnn.averaged(maps, 7)
    torch.testing.assert_close(pooled, expected)
    names, weights = set(), torch.randn_like(pooled)
    back = torch.autograd.grad((expected * weights).sum(), maps)[0]
    torch.testing.assert_close(
        torch.autograd.grad((pooled * weights).sum(), maps)[0], back
    )
    todo = [torchvision_cnn.averaged(maps, 7).grad_fn]
    while todo:
        node = todo.pop()
        names.add(node.name())
        todo += [following for following, _ in node.next_functions if following]
    assert not any("Adaptive" in name for name in names)


def test_peak_memory_of_the_process_does_not_count_the_cell_before_it():
    # in a process of its own: one that has encoded images keeps what it frees
    program = (
        "from benchmark.core import devices; import numpy as np\n"
        "devices.begin('cpu')  # loads what it needs\n"
        "held = np.ones(40_000_000)  # 305 MiB\n"
        "before = devices.peak_memory()\n"
        "del held\n"
        "devices.begin('cpu')\n"
        "assert devices.peak_memory() < before - 200\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_cost_names_memory_precision_and_versions_of_a_gpu(monkeypatch):
    pretend_gpus(1, monkeypatch)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 << 20)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 5 << 20)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 92200)
    monkeypatch.setattr(devices, "_output_of", lambda *command: "580.65.06")
    facts = devices.provenance(torch.device("cuda:0"), {}, "tf32")
    assert (facts.device, facts.precision) == ("Made-up 9000", "tf32")
    assert (facts.peak_device_memory_mib, facts.peak_device_reserved_mib) == (3.0, 5.0)
    assert (facts.driver, facts.cudnn) == ("580.65.06", "9.22.0")


@pytest.mark.parametrize(
    ("first", "then", "goes_on"),
    [
        ("cpu", "cpu", True),
        ("cpu", "cuda:0", False),
        ("cuda:0", "cpu", False),
        ("cuda:0", "cuda:1", True),
    ],
)
def test_a_training_goes_on_on_the_same_kind_of_device_alone(
    first, then, goes_on, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pretend_gpus(2, monkeypatch)
    folders = [
        train._scratch(cell_of("scan"), {}, torch.device(name))
        for name in (first, then)
    ]
    assert (folders[0] == folders[1]) == goes_on


def test_an_error_while_gathering_ahead_is_raised_at_its_batch():
    coming = inputs.ahead(lambda item: 1 // item, [1, 0, 1])
    assert next(coming) == 1
    with pytest.raises(ZeroDivisionError):
        next(coming)


@pytest.mark.parametrize(("size", "is_there"), [(50, True), (51, False)])
def test_an_array_may_take_half_of_what_is_free(size, is_there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    assert inputs.fits(size, torch.device("cuda:0")) == is_there
    assert inputs.fits(10**15, torch.device("cpu"))


@pytest.mark.parametrize("device", ["cuda:01", f"cuda:{10**14}", "cuda:\u0663"])
def test_a_number_that_torch_does_not_read_is_refused(device):
    with refused("device", found=repr(device)):
        pick(device)


@pytest.mark.parametrize(
    ("commit", "changes", "named"),
    [
        ("0123", "", "0123"),
        ("0123", " M methods/vse.py", "0123+"),
        (devices.UNKNOWN, devices.UNKNOWN, devices.UNKNOWN),  # where git is missing
    ],
)
def test_a_commit_with_changes_is_marked(commit, changes, named, monkeypatch):
    said = {"rev-parse": commit, "status": changes}
    monkeypatch.setattr(devices, "_output_of", lambda git, verb, *more: said[verb])
    assert devices._commit() == named
