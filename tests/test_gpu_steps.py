"""Every preset on a GPU that the CPU plays: steps, encodings and scores stay on the
device, do not wait for values, compute in float32 at most, and give what the CPU gives.
So do whole cells."""

import copy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import tiny_cells
import torch
from pretended_cuda import Float64Error, HostReadError, WrongDeviceError, pretended
from test_gpu_itself import scores_of, there
from test_methods import TRIALS
from torch import Tensor, nn

from benchmark.commands.check import PAIRS
from benchmark.contracts import methods
from benchmark.contracts.methods import Batch, Captions, RegionBatch
from benchmark.train.resumable_loop import Run, optimiser_of

PHASES = {name: trial.module.recipe(trial.config) for name, trial in TRIALS.items()}
TRAINED = [name for name, phases in PHASES.items() if phases]
READS_OF_A_TILE = {"scan": 2}  # lengths of images and of captions, to trim padding


def on_both(captions: Captions) -> Captions:
    return replace(captions, lengths_on_host=captions.lengths)


def batch_with_host_counts(name: str) -> Batch | RegionBatch:
    batch = TRIALS[name].batch(list(range(PAIRS)), PHASES[name])
    if isinstance(batch, RegionBatch):
        counted = {"ids_on_host": batch.chain_ids, "ious_on_host": batch.ious}
        return replace(batch, present_on_host=batch.present, **counted)
    pool = batch.pool and on_both(batch.pool)
    captions = on_both(batch.captions)
    return replace(batch, captions=captions, pool=pool, ids_on_host=batch.group_ids)


def step(model: nn.Module, batch: Batch | RegionBatch, name: str) -> dict[str, Tensor]:
    """Terms of the loss by phase, and under autocast."""
    terms, device = {}, next(model.parameters()).device
    for phase in PHASES[name]:
        run = SimpleNamespace(model=model.train(), train=SimpleNamespace(device=device))
        run.optimiser, run.autocast = optimiser_of(model, phase), False
        for group in run.optimiser.param_groups:
            group["lr"] = 1e-4 * group["factor"]
        torch.manual_seed(3)
        run._precision = partial(Run._precision, run)
        terms |= Run.step(run, batch, phase)
    with torch.autocast(device.type, torch.bfloat16):
        rounded = model.loss(batch)
    check_float32(terms)
    check_float32(rounded)
    return terms


def check_float32(tensors: dict[str, Tensor]) -> None:
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}


def on_host(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    assert all(tensor.is_cuda for tensor in tensors.values())
    return {name: tensor.as_subclass(Tensor) for name, tensor in tensors.items()}


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_gives_the_losses_and_gradients_of_the_cpu(name):
    model, batch = TRIALS[name].model(), batch_with_host_counts(name)
    other = copy.deepcopy(model)
    expected = step(model, batch, name)
    with pretended():
        terms = step(other.to("cuda"), there(batch), name)
    torch.testing.assert_close(on_host(terms), expected, rtol=1e-4, atol=1e-5)
    gradients, others = gradients_of(model), gradients_of(other)
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    torch.testing.assert_close(others, gradients, rtol=1e-3, atol=1e-4 * largest)


def gradients_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: x.grad for name, x in model.named_parameters() if x.grad is not None}


@pytest.mark.parametrize("name", TRIALS)
def test_encodings_and_scores_are_those_of_the_cpu(name):
    trial, model = TRIALS[name], TRIALS[name].model().eval()
    given = trial.images(PAIRS), on_both(trial.captions(PAIRS))
    expected = all_scores(model, trial.takes, *given)
    reads = READS_OF_A_TILE.get(method_of(name), 0)
    with pretended() as device:
        device.raises = not reads
        scores = all_scores(model.to("cuda"), trial.takes, *map(there, given))
        faults = [str(fault) for fault in device.faults]
        with torch.autocast("cuda", torch.bfloat16):
            rounded = all_scores(model, trial.takes, *map(there, given))
    assert faults == ["tolist"] * reads
    check_float32(scores)
    check_float32(rounded)
    torch.testing.assert_close(on_host(scores), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def all_scores(model, takes, images: Tensor, captions: Captions) -> dict[str, Tensor]:
    scores = scores_of(model, takes, images, captions)
    if takes.attention:
        encodings = model.encode_images(images), model.encode_captions(captions)
        scores["attention"] = model.attention(*encodings)
    return scores


def method_of(name: str) -> str:
    return TRIALS[name].module.__name__.rpartition(".")[2]


def test_every_method_is_tried_and_those_with_a_recipe_step():
    assert set(map(method_of, TRIALS)) == set(methods.names())
    without_recipe = TRIALS.keys() - set(TRAINED)
    assert without_recipe == {"cca", "cca_phrases", "scan_12_regions_at_inference"}


@pytest.mark.parametrize("kind", ["scan", "pixels"])
def test_a_cell_ends_as_on_the_cpu(kind, tmp_path, monkeypatch):
    """Trained and evaluated; phrases are in test_phrase_cells.py."""
    tiny_cells.enter(tmp_path, monkeypatch)
    tiny_cells.check_on_a_pretended_gpu(tiny_cells.cell_of(kind))


# Faults that are caught ---------------------------------------------------------------


def host_mask(real, ids: Tensor) -> Tensor:
    return ~torch.eye(len(ids), dtype=torch.bool)


def host_addend(real, x: Tensor) -> Tensor:
    return real(x) + torch.ones(x.shape[-1])


def item(real, *matrices: Tensor) -> Tensor:
    return real(*matrices) / real(*matrices).max().item()


def item_in_backward(real, x: Tensor) -> Tensor:
    y = real(x)
    y.register_hook(lambda gradient: gradient / gradient.norm().item())
    return y


def branch(real, ids: Tensor) -> Tensor:
    return real(ids) if (ids > 0).any() else ids


def float64(real, x: Tensor) -> Tensor:
    return real(x * torch.ones(1, dtype=torch.float64, device=x.device)).float()


def scored(model: nn.Module, batch: Batch, name: str) -> None:
    all_scores(model, TRIALS[name].takes, batch.images, batch.captions)


FAULTS = [  # a function of a preset's module, what replaces it, what raises, and what
    ("vse", "differ", host_mask, step, WrongDeviceError),
    ("dualmatch", "cosine", item, step, HostReadError),
    ("two_branch_lstm", "unit", item_in_backward, step, HostReadError),
    ("cyclematch", "differ", branch, step, HostReadError),
    ("projection_top_k", "unit", float64, step, Float64Error),
    ("projection_top_k", "unit", float64, scored, Float64Error),
    ("two_branch_single", "unit", host_addend, scored, WrongDeviceError),
]


@pytest.mark.parametrize(("name", "function", "fault", "use", "error"), FAULTS)
def test_a_fault_passes_on_a_cpu_alone(name, function, fault, use, error, monkeypatch):
    module, model, batch = (
        TRIALS[name].module,
        TRIALS[name].model(),
        batch_with_host_counts(name),
    )
    monkeypatch.setattr(module, function, partial(fault, getattr(module, function)))
    use(copy.deepcopy(model), batch, name)
    with pretended(), pytest.raises(error):
        use(model.to("cuda"), there(batch), name)
