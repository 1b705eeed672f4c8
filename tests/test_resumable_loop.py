"""The training loop's parts: optimisers with factors, and the log that finds a broken
loss."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.contracts.methods import OptionError, Phase
from benchmark.scoring.ranking import RefusedError
from benchmark.train import resumable_loop
from benchmark.train.resumable_loop import (
    DivergedError,
    LossLog,
    Progress,
    Run,
    optimiser_of,
)


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
    of = {
        id(parameter): group["factor"]
        for group in groups
        for parameter in group["params"]
    }
    return {name: of.get(id(x), 0.0) for name, x in model.named_parameters()}


def test_the_first_start_that_fits_a_name_counts():
    rates = (
        ("image.1.weight", 2.0),
        ("image.", 0.5),
        ("image", 0.25),
        ("image.0", 9.0),
    )
    assert factors(Small(), phase_of(rates=rates)) == {
        "image.0.weight": 0.5,
        "image.0.bias": 0.5,
        "image.1.weight": 2.0,
        "image.1.bias": 0.5,
        "image_network.weight": 0.25,  # "image." does not fit it, "image" does
        "image_network.bias": 0.25,
        "words.weight": 1.0,
    }


def test_what_the_method_froze_stays_frozen_whatever_a_phase_says():
    model = Small()
    model.words.requires_grad_(False)
    for rate in (1.0, 0.0, 2.0):
        optimiser = optimiser_of(
            model, phase_of(rates=(("words.", rate),), weight_decay=0.1)
        )
        before = model.words.weight.clone()
        model.image_network(model.words(torch.arange(4))).sum().backward()
        for group in optimiser.param_groups:
            group["lr"] = 0.1
        optimiser.step()
        assert not model.words.weight.requires_grad and model.words.weight.equal(before)
    # the method thaws it itself, in the midst of a phase
    model.words.requires_grad_(True)
    model.image_network(model.words(torch.arange(4))).sum().backward()
    optimiser.step()
    assert not model.words.weight.equal(before)


def test_what_a_phase_froze_learns_in_a_later_one():
    model = Small()
    for rate in (0.0, 0.5):
        optimiser_of(model, phase_of(rates=(("words.", rate),)))
        assert model.words.weight.requires_grad == (rate > 0)


def test_a_rate_for_no_parameter_is_refused():
    with pytest.raises(
        OptionError, match="rates: expected the start .* image, .* found 'imagr'"
    ):
        optimiser_of(Small(), phase_of(rates=(("imagr", 0.1),)))
    model = Small()
    model.image_network = None  # a part that the model lacks with these options
    optimiser_of(model, phase_of(rates=(("image_network.", 0.1),)))


def logged(values: list[float], check_every: int, monkeypatch) -> LossLog:
    monkeypatch.setattr(resumable_loop, "CHECK_EVERY", check_every)
    log = LossLog(epoch=4, rate=0.025)
    for value in values:
        log.add({"near": torch.tensor(1.5), "far": torch.tensor(value)})
    return log


@pytest.mark.parametrize("check_every", [1, 2, 3, 50])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_first_step_that_is_not_finite_is_named(check_every, bad, monkeypatch):
    message = f"epoch 5, step 3, learning rate 0.025: near 1.5, far {bad:.4g}$"
    with pytest.raises(DivergedError, match=message):
        logged([1.0, 2.0, bad, float("nan"), 1.0], check_every, monkeypatch).means()


def test_a_broken_loss_is_seen_at_the_next_check(monkeypatch):
    log = logged([float("nan"), 1.0], 3, monkeypatch)
    with pytest.raises(DivergedError, match="step 1,"):
        log.add({"near": torch.tensor(1.5), "far": torch.tensor(1.0)})


class OneBatch:
    device = torch.device("cpu")
    owners = np.arange(2)

    def batches(self, rows: list[np.ndarray], pool_rows: list[None]) -> Iterator[None]:
        """`Counting` looks at none."""
        return iter(pool_rows)


class Counting(nn.Module):
    """The weight grows by one an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def loss(self, batch: None) -> dict[str, torch.Tensor]:
        return {"down": -10 * self.weight}


@pytest.mark.parametrize(
    ("keeps", "epoch"),
    [(("best",), 2), (("last",), 4), (("last", "best"), 2), (("best", "last"), 4)],
)
def test_the_last_phase_says_which_epoch_is_kept(keeps, epoch, tmp_path):
    rates = (0.1,) * (4 // len(keeps))
    phases = [
        phase_of(epochs=len(rates), learning_rates=rates, optimiser="sgd", keeps=kept)
        for kept in keeps
    ]
    run = run_of(phases, [1.0, 3.0, 3.0, 2.0], tmp_path)
    run.play()
    assert (run.selected(), run.best_state["weight"].item()) == (
        epoch,
        pytest.approx(epoch),
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        "last.pt",
        f"best-{epoch}.pt",
    }


def run_of(phases: list[Phase], rsums: list[float], scratch: Path) -> Run:
    ahead = iter(rsums)
    return Run(
        model=Counting(),
        phases=phases,
        train=OneBatch(),
        validate=lambda model: {"rsum": next(ahead)},
        seed=0,
        autocast=False,
        scratch=scratch,
        name="counting",
    )


def test_a_training_whose_best_weights_are_gone_starts_again(tmp_path):
    phases = [phase_of(optimiser="sgd")]
    run_of(phases, [1.0], tmp_path).play()
    (tmp_path / "best-1.pt").unlink()
    again = run_of(phases, [2.0], tmp_path)
    again.play()
    assert [row["val_rsum"] for row in again.progress.history] == [2.0]
    assert again.best_state["weight"].item() == pytest.approx(1.0)


@pytest.mark.parametrize("change", [-0.6, 0.6])
def test_loaded_weights_neither_gain_nor_lose_rsum(change, tmp_path):
    run = run_of([phase_of(optimiser="sgd")], [3.0, 3.4, 3.0 + change], tmp_path)
    run.play()
    run.check_reloaded(Counting())
    with pytest.raises(RefusedError, match="had 3.0"):
        run.check_reloaded(Counting())


def test_a_history_has_gaps_where_a_phase_lacks_a_term():
    rows = [
        {"epoch": 1, "loss_near": 0.1 + 0.2, "val_rsum": 28.000000000000004},
        {"epoch": 2, "loss_far": 1e300, "val_rsum": 600.0},
    ]
    assert Progress(history=rows).columns == {
        "epoch": [1, 2],
        "loss_near": [0.1 + 0.2, None],
        "val_rsum": [28.000000000000004, 600.0],
        "loss_far": [None, 1e300],
    }
    assert Progress().columns == {}
