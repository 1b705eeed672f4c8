"""The training loop's parts: optimisers with factors, and the log that finds a broken loss."""

import pytest
import torch
from torch import nn

from benchmark.train import loop
from benchmark.train.loop import DivergedError, _Log, optimiser_of
from methods import Phase


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.image_network = nn.Linear(3, 3)
        self.words = nn.Embedding(4, 3)


def phase_of(**changes) -> Phase:
    return Phase(**{"epochs": 1, "learning_rates": (0.1,), "batch_size": 2} | changes)


def factors(model: nn.Module, phase: Phase) -> dict[str, float]:
    """Parameter -> the factor on its learning rate."""
    groups = optimiser_of(model, phase).param_groups
    of = {id(parameter): group["factor"] for group in groups for parameter in group["params"]}
    return {name: of.get(id(x), 0.0) for name, x in model.named_parameters()}


def test_without_rates_every_parameter_learns_at_the_rate_itself():
    assert set(factors(Small(), phase_of()).values()) == {1.0}


def test_the_first_start_that_fits_a_name_counts():
    rates = (("image.1.weight", 2.0), ("image.", 0.5), ("image", 0.25), ("image.0", 9.0))
    assert factors(Small(), phase_of(rates=rates)) == {
        "image.0.weight": 0.5,
        "image.0.bias": 0.5,
        "image.1.weight": 2.0,
        "image.1.bias": 0.5,
        "image_network.weight": 0.25,  # "image." does not fit it, "image" does
        "image_network.bias": 0.25,
        "words.weight": 1.0,
    }


def test_a_factor_of_zero_freezes_until_a_phase_thaws():
    model = Small()
    frozen = phase_of(rates=(("image_network.", 0.0),))
    assert factors(model, frozen)["image_network.weight"] == 0.0
    assert [x.requires_grad for x in model.image_network.parameters()] == [False, False]
    assert model.words.weight.requires_grad
    assert factors(model, phase_of())["image_network.weight"] == 1.0
    assert all(x.requires_grad for x in model.parameters())


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_optimisers_are_the_phases(optimiser):
    phase = phase_of(optimiser=optimiser, weight_decay=0.01, momentum=0.9, nesterov=True)
    found = optimiser_of(Small(), phase)
    assert type(found) is {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimiser]
    for group in found.param_groups:
        assert group["weight_decay"] == 0.01
        if optimiser == "sgd":
            assert (group["momentum"], group["nesterov"]) == (0.9, True)


def logged(values: list[float], looked_at: int, monkeypatch) -> _Log:
    monkeypatch.setattr(loop, "LOOKED_AT", looked_at)
    log = _Log(epoch=4, rate=0.025)
    for value in values:
        log.add({"near": torch.tensor(1.5), "far": torch.tensor(value)})
    return log


@pytest.mark.parametrize("looked_at", [1, 2, 3, 4, 50])
def test_the_means_of_an_epoch_do_not_depend_on_when_it_is_looked_at(looked_at, monkeypatch):
    log = logged([1.0, 2.0, 6.0, 7.0], looked_at, monkeypatch)
    assert log.means() == {"near": 1.5, "far": 4.0}


@pytest.mark.parametrize("looked_at", [1, 2, 3, 50])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_first_step_that_is_not_finite_is_named(looked_at, bad, monkeypatch):
    message = (
        f"the loss is not finite in epoch 5, step 3, learning rate 0.025: near 1.5, far {bad:.4g}$"
    )
    with pytest.raises(DivergedError, match=message):
        logged([1.0, 2.0, bad, float("nan"), 1.0], looked_at, monkeypatch).means()


def test_a_loss_is_seen_after_so_many_steps_at_most(monkeypatch):
    log = logged([float("nan"), 1.0], 3, monkeypatch)
    with pytest.raises(DivergedError, match="step 1,"):
        log.add({"near": torch.tensor(1.5), "far": torch.tensor(1.0)})
