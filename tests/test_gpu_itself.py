"""What only a GPU can show. Run these first where there is one: pytest tests/test_gpu_itself.py"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_methods import TRAINED, Case, captions_of, cases, images_of, model_of
from tiny_cells import KINDS, RESULTS, cell_of, enter
from torch import nn

from benchmark.core.devices import begin, make_deterministic
from benchmark.core.provenance import read_provenance
from benchmark.evaluate import __main__ as evaluate
from benchmark.matching import score_stream, tile_workers
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.train import __main__ as train
from benchmark.train import resumable_loop
from benchmark.train.resumable_loop import Run, optimiser_of
from seasons import params_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU in this machine")

ROWS = np.arange(8)
PLAYED = [
    name
    for name in TRAINED
    if cases()[name].takes.task == "retrieval" and cases()[name].takes.image != "pixels"
]


@pytest.fixture(autouse=True)
def tiny_season(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def inputs_of(case: Case) -> SplitInputs:
    device, captions = torch.device("cuda"), captions_of(case, 8)
    return SplitInputs(
        images=images_of(case, 8).half().to(device),
        captions=replace(
            captions,
            values=captions.values.to(device),
            lengths=captions.lengths.to(device),
            lengths_on_host=captions.lengths,
        ),
        image_of_caption=torch.arange(8, device=device),
        group_of_image=torch.arange(8, device=device),
        class_of_image=torch.arange(8, device=device),
        device=device,
    )


def run_of(case: Case, autocast: bool, scratch: Path) -> Run:
    run = Run(
        model=model_of(case).cuda().train(),
        phases=case.phases,
        train=inputs_of(case),
        validate=lambda model: {},
        seed=0,
        autocast=autocast,
        scratch=scratch,
        name="gpu",
    )
    run.optimiser = optimiser_of(run.model, case.phases[0])
    return run


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", PLAYED)
def test_a_step_waits_for_nothing(name, autocast, tmp_path):
    case = cases()[name]
    phase = case.phases[0]
    begin("cuda")
    torch.use_deterministic_algorithms(True)  # not a warning alone
    run, pool = run_of(case, autocast, tmp_path), ROWS[:5] if phase.pool else None
    batches = run.train.batches([ROWS] * 3, [pool] * 3)
    run.step(next(batches), phase)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches:
            run.step(batch, phase)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        make_deterministic()


def played(kind: str, folder: Path = RESULTS, device: str = "cuda") -> dict[str, bytes]:
    cell = cell_of(kind, folder=str(folder))
    train.train_cell(params_of(device=device), cell)
    evaluate.evaluate_cell(params_of(device=device), cell)
    names = ("training/history.csv", "scores/ranks.parquet")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes(kind):
    assert played(kind) == played(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(kind, monkeypatch):
    whole = played(kind)
    save = resumable_loop.Run._save

    def saved(run: Run) -> None:
        save(run)
        if run.progress.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(resumable_loop.Run, "_save", saved)
    with pytest.raises(KeyboardInterrupt):
        played(kind)
    monkeypatch.undo()
    assert played(kind) == whole


@pytest.mark.parametrize("kind", ["scan", "two_branch"])
def test_weights_of_the_cpu_rank_alike_on_a_gpu(kind):
    cell = cell_of(kind)
    train.train_cell(params_of(device="cpu"), cell)
    ranks = []
    for device in ("cpu", "cuda"):
        evaluate.evaluate_cell(params_of(device=device), cell)
        ranks.append((RESULTS / "scores/ranks.parquet").read_bytes())
    assert ranks[0] == ranks[1]


def test_no_byte_hangs_on_how_many_score_a_cell(monkeypatch):
    monkeypatch.setattr(score_stream, "IMAGE_TILE", 2)
    monkeypatch.setattr(score_stream, "CAPTION_TILE", 3)
    written = []
    for workers in (1, 2 * torch.cuda.device_count()):
        monkeypatch.setenv(tile_workers.WORKERS, str(workers))
        written.append(played("scan"))
    assert written[0] == written[1]


def test_two_cells_on_one_device_do_not_count_each_others_memory():
    first, second = Path("results/a"), Path("results/b")
    ballast = torch.empty(1 << 28, device="cuda")
    del ballast
    for folder in (first, second):
        played("two_branch", folder)
    facts = [read_provenance(folder / "training/cost.json") for folder in (first, second)]
    assert facts[0].peak_device_memory_mib == facts[1].peak_device_memory_mib < 256
    assert all(x.peak_device_reserved_mib >= x.peak_device_memory_mib for x in facts)
    assert all(x.driver and x.cudnn for x in facts)


def test_peak_memory_is_as_predicted():
    """Of a step: weights, their gradients, two numbers of Adam each, and what is in between."""
    device = begin("cuda")
    before = torch.cuda.memory_allocated(device)
    model = nn.Linear(4096, 4096, bias=False, device=device)
    optimiser, weights = torch.optim.Adam(model.parameters()), 4 * 4096**2
    model(torch.ones(1, 4096, device=device)).sum().backward()
    optimiser.step()
    peak = torch.cuda.max_memory_allocated(device) - before
    assert 4 * weights <= peak <= 7 * weights
