"""Where a stage computes: names that are refused, precision, clocks, memory, and what goes on where
after a kill. Nothing here needs a GPU."""

import resource
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pretended_cuda import on_cuda, pretended
from tiny_cells import cell_of, enter
from torch import nn

from benchmark.core import devices, machine
from benchmark.core.devices import begin, now, pick, set_precision
from benchmark.core.errors import UserError
from benchmark.core.provenance import read_provenance
from benchmark.encode import __main__ as encode
from benchmark.encode import pictures, proposals
from benchmark.encoders import torchvision_cnn
from benchmark.evaluate import __main__ as evaluate
from benchmark.matching import score_stream, scoring
from benchmark.train import __main__ as train
from benchmark.train import resumable_loop
from benchmark.train.resumable_loop import Run
from methods import Phase
from seasons import params_of

PHASE = Phase(epochs=2, learning_rates=(0.1, 0.1), batch_size=2)


def gpus(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were so many, all of one kind."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "Made-up 9000")


@pytest.mark.parametrize(
    ("device", "found"),
    [
        *[("meta", "meta"), ("mps", "mps"), ("xpu:3", "xpu"), ("vulkan", "vulkan")],
        *[("cuda:2", "2"), ("cuda:7", "2"), ("cpu:1", "'cpu:1'"), ("gpu", "'gpu'")],
    ],
)
def test_devices_that_no_stage_computes_on_are_refused(device, found, monkeypatch):
    gpus(2, monkeypatch)
    with pytest.raises(UserError, match=found):
        pick(device)


def test_a_gpu_is_refused_where_there_is_none(monkeypatch):
    gpus(0, monkeypatch)
    with pytest.raises(UserError, match="cuda"):
        pick("cuda")
    assert pick("auto") == torch.device("cpu")


def test_gpus_are_taken_by_their_number(monkeypatch):
    gpus(2, monkeypatch)
    assert [str(pick(name)) for name in ("auto", "cuda", "cuda:1", "cpu")] == [
        *("cuda", "cuda", "cuda:1", "cpu")
    ]


def of_backends() -> set[str]:
    kinds = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    return {kind.fp32_precision for kind in kinds}


@pytest.mark.parametrize(
    ("precision", "kept"), [("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")]
)
def test_products_convolutions_and_recurrences_have_the_precision_of_the_season(precision, kept):
    try:
        begin("cpu", precision)
        assert of_backends() == {kept}
    finally:
        set_precision("float32")


@pytest.mark.parametrize("module", [pictures, proposals])
def test_features_are_made_as_trainings_are(module):
    """Deterministic, in whole float32: `begin` asks for both."""
    assert module.begin is begin
    torch.use_deterministic_algorithms(False)
    begin("cpu")
    assert torch.are_deterministic_algorithms_enabled() and of_backends() == {"ieee"}


@pytest.mark.parametrize("side", [7, 8, 10, 14, 5])
def test_pooling_that_training_goes_back_through_has_a_sum_of_fixed_order(side):
    """VGG's pooling of a map to 7 x 7: torch's own way back adds in any order on a GPU."""
    maps = torch.randn(2, 3, side, side + 1, dtype=torch.float64, requires_grad=True)
    expected = nn.functional.adaptive_avg_pool2d(maps, 7)
    pooled = torchvision_cnn.averaged(maps, 7)
    torch.testing.assert_close(pooled, expected)
    names, weights = set(), torch.randn_like(pooled)
    back = torch.autograd.grad((expected * weights).sum(), maps)[0]
    torch.testing.assert_close(torch.autograd.grad((pooled * weights).sum(), maps)[0], back)
    todo = [torchvision_cnn.averaged(maps, 7).grad_fn]
    while todo:
        node = todo.pop()
        names.add(node.name())
        todo += [following for following, _ in node.next_functions if following]
    assert not any("Adaptive" in name for name in names)


def test_a_map_of_the_wanted_size_stays_as_it_is():
    maps = torch.randn(1, 2, 7, 7)
    assert torchvision_cnn.averaged(maps, 7) is maps


def watched(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    waits = []
    monkeypatch.setattr(devices, "synchronise", waits.append)
    return waits


def test_a_clock_is_read_when_the_device_has_done_its_work(monkeypatch):
    waits = watched(monkeypatch)
    assert now(torch.device("cpu")) <= now(torch.device("cpu"))
    assert waits == [torch.device("cpu")] * 2


def test_costs_are_read_from_that_clock_alone(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    waits = watched(monkeypatch)
    train.train_cell(*season("two_branch"))
    assert len(waits) >= 2 * 3, "at the beginning and at the end of three epochs"
    waits.clear()
    evaluate.evaluate_cell(*season("two_branch"))
    assert len(waits) >= 4, "images, captions, pairs"
    for module in (scoring, score_stream, resumable_loop, evaluate):
        assert "perf_counter" not in vars(module)


def season(kind: str):
    cell = cell_of(kind)
    return params_of(), cell


def test_peak_memory_of_a_cell_does_not_count_the_cell_before_it(monkeypatch):
    gpus(1, monkeypatch)
    calls = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", calls.append)
    begin("cuda:0")
    assert calls == [torch.device("cuda:0")]


def test_peak_memory_of_the_process_does_not_count_the_cell_before_it():
    held = np.ones(40_000_000)  # 305 MiB
    before = devices.peak_memory()
    del held
    begin("cpu")
    assert devices.peak_memory() < before - 200


def test_where_a_system_tells_no_peak_it_is_that_since_the_start(monkeypatch):
    of_process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    monkeypatch.setattr(Path, "read_text", lambda path, **how: "Name:\tpython\nVmRSS:\t 1 kB\n")
    assert devices.peak_memory() == pytest.approx(of_process, rel=0.05)


def test_a_cost_names_memory_precision_and_versions_of_a_gpu(monkeypatch):
    gpus(1, monkeypatch)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 << 20)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 5 << 20)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 92200)
    monkeypatch.setattr(machine, "_driver", lambda: "580.65.06")
    facts = machine.provenance(torch.device("cuda:0"), {}, "tf32")
    assert (facts.device, facts.precision) == ("Made-up 9000", "tf32")
    assert (facts.peak_device_memory_mib, facts.peak_device_reserved_mib) == (3.0, 5.0)
    assert (facts.driver, facts.cudnn) == ("580.65.06", "9.22.0")


def test_a_machine_without_a_driver_has_none(monkeypatch):
    def none(*arguments, **rest):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", none)
    assert machine._driver() == "unknown"
    facts = machine.provenance(torch.device("cpu"), {}, "float32")
    assert (facts.driver, facts.cudnn, facts.peak_device_reserved_mib) == (None, None, None)


def run_on(device: str, scratch: Path, phase: Phase = PHASE) -> Run:
    torch.manual_seed(0)
    run = Run(
        model=nn.Linear(3, 2).to(device),
        phases=[phase],
        train=Rows(device),
        validate=lambda model: {"rsum": 1.0},
        seed=0,
        autocast=False,
        scratch=scratch,
        name="test",
    )
    return run


class Rows:
    def __init__(self, device: str) -> None:
        self.device = torch.device(device)


def test_a_resumed_adam_counts_its_steps_on_the_device(tmp_path):
    """Its kernel is fused and reads them there; one that is not would wait for each of them."""
    before = run_on("cpu", tmp_path)
    before.optimiser = resumable_loop.optimiser_of(before.model, PHASE)
    before.model(torch.ones(1, 3)).sum().backward()
    before.optimiser.step()
    before._end_epoch(0, 0, 0.1, {"a": 1.0}, {"rsum": 1.0})
    after = run_on("cpu", tmp_path)
    on_cuda(after.model)
    after.train = Rows("cuda")
    with pretended():
        after._resume()
        assert all(group["fused"] for group in after.optimiser.param_groups)
        for state in after.optimiser.state.values():
            assert state["step"].device.type == "cuda"
            assert state["exp_avg"].device.type == "cuda"
    assert {x.device.type for x in after.best_state.values()} == {"cpu"}


@pytest.mark.parametrize(("keeps", "kept"), [("best", 1), ("last", 2)])
def test_a_resumed_training_has_the_weights_of_the_epoch_that_its_recipe_keeps(
    keeps, kept, tmp_path
):
    phase = replace(PHASE, keeps=keeps)
    before = run_on("cpu", tmp_path, phase)
    before.optimiser = resumable_loop.optimiser_of(before.model, phase)
    weights = []
    for epoch, rsum in enumerate((9.0, 8.0)):
        with torch.no_grad():
            before.model.weight += 1
        weights.append(before.model.weight.tolist())
        before._end_epoch(epoch, 0, 0.1, {"a": 1.0}, {"rsum": rsum})
    after = run_on("cpu", tmp_path, phase)
    after._resume()
    assert (after.progress.epoch, after.selected()) == (2, kept)
    assert after.best_state["weight"].tolist() == weights[kept - 1]
    assert [path.name for path in tmp_path.glob("best-*")] == [f"best-{kept}.pt"]


@pytest.mark.parametrize(
    ("first", "then", "goes_on"),
    [
        ("cpu", "cpu", True),
        ("cpu", "cuda:0", False),
        ("cuda:0", "cpu", False),
        ("cuda:0", "cuda:1", True),
    ],
)
def test_a_training_goes_on_where_it_began(first, then, goes_on, tmp_path, monkeypatch):
    """On another device of the same kind, and on no other kind."""
    monkeypatch.chdir(tmp_path)
    gpus(2, monkeypatch)
    folders = [train._scratch(cell_of("scan"), {}, torch.device(name)) for name in (first, then)]
    assert (folders[0] == folders[1]) == goes_on


def test_other_kinds_of_gpus_are_other_devices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gpus(1, monkeypatch)
    scratch = train._scratch(cell_of("scan"), {}, torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "Made-up 9001")
    assert train._scratch(cell_of("scan"), {}, torch.device("cuda")) != scratch


def test_costs_of_a_cell_on_the_cpu_name_its_precision(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    train.train_cell(*season("two_branch"))
    facts = read_provenance(Path("results/a/training/cost.json"))
    assert (facts.device, facts.precision, facts.driver) == ("cpu", "float32", None)


def test_encode_is_a_stage_that_begins_so():
    assert encode.encode  # its kinds call `begin`
