"""The training loop: plays the phases of any method's recipe. Killed, it resumes where it was."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.core import disk_space, sealed_files
from benchmark.core.devices import now
from benchmark.core.progress_bars import ProgressBar
from benchmark.core.sealed_files import DamagedError
from benchmark.train import sampling, selection
from methods import Batch, Phase, RegionBatch

LAST = "last.pt"  # state after the last epoch, in the scratch folder
BEST = "best-{}.pt"  # weights of the epoch that is the best so far, beside it
STATES = 4  # weights, the best ones, and two numbers of Adam for each
CHECK_EVERY = 50  # steps between checks that the loss is finite: each check makes a GPU wait


class TrainingRows(Protocol):
    """The matched rows of a training split: captions with images, or phrases with regions."""

    device: torch.device

    @property
    def owners(self) -> np.ndarray:
        """(rows,) the image, or chain, of each row: rows of one owner are siblings."""

    def batches(
        self, rows: list[np.ndarray], pool_rows: list[np.ndarray | None]
    ) -> Iterator[Batch | RegionBatch]:
        """The rows at the given indices, batch by batch; `pool_rows` for phases with a pool."""


class DivergedError(ArithmeticError):
    """The loss, or a validation score, is no longer finite."""


@dataclass
class Progress:
    """What a training needs to resume after a kill, apart from weights and optimiser."""

    epoch: int = 0  # epochs done
    seconds: float = 0.0  # of training and validation
    history: list[dict] = field(default_factory=list)  # one row per epoch


class Run:
    """The training of one model by one recipe.

    `play` trains, and resumes from `scratch` what was killed; then `best_state` holds the weights
    of the best epoch by validation rsum, or of the last one if the recipe keeps that, and
    `progress` the history.

    model       on its device, with the weights that training starts from
    phases      the recipe
    train       rows to draw batches from
    validate    model -> recalls in percent and their sum, rsum
    seed        of batches, dropout and everything else that is drawn at random
    autocast    whether losses and scores are computed in bfloat16 where that is safe
    scratch     folder of the state after the last epoch, of this training alone
    name        for progress messages
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        phases: list[Phase],
        train: TrainingRows,
        validate: Callable[[nn.Module], dict[str, float]],
        seed: int,
        autocast: bool,
        scratch: Path,
        name: str,
    ) -> None:
        self.model, self.train, self.validate = model, train, validate
        self.seed, self.autocast, self.scratch, self.name = seed, autocast, scratch, name
        self.schedule = [  # one entry per epoch
            (number, phase, rate)
            for number, phase in enumerate(phases)
            for rate in phase.learning_rates
        ]
        self.keeps_last = bool(phases) and phases[-1].keeps == "last"
        self.optimiser: torch.optim.Optimizer | None = None
        self.best_state: dict[str, Tensor] = {}
        self.progress = Progress()

    def play(self) -> None:
        """Play all epochs that are not done yet; each ends with a saved state to resume from.

        A recipe without epochs keeps the weights that it starts from. Raises DivergedError.
        """
        self._resume()
        if not self.schedule:
            self.best_state = self._weights()
        with self._bar() as bar:
            for epoch in range(self.progress.epoch, len(self.schedule)):
                started = now(self.train.device)
                number, phase, rate = self.schedule[epoch]
                if self.optimiser is None or self.schedule[epoch - 1][0] != number:
                    self.optimiser = optimiser_of(self.model, phase)
                losses = self._epoch(epoch, phase, rate, bar)
                metrics = self._validate(epoch)
                self.progress.seconds += now(self.train.device) - started
                self._end_epoch(epoch, number, rate, losses, metrics)

    def selected(self) -> int | None:
        """The epoch whose weights are kept, counted from 1; None before the first one ends."""
        return self._kept(self.progress)

    def _kept(self, progress: Progress) -> int | None:
        rsums = [row["val_rsum"] for row in progress.history]
        if not rsums:
            return None
        return len(rsums) if self.keeps_last else selection.selected(rsums)

    def _bar(self) -> ProgressBar:
        """Of all epochs, so that the time left is the training's."""
        return ProgressBar(
            desc=self.name,
            total=len(self.schedule),
            initial=self.progress.epoch,
            bar_format="{desc}: epoch {n:.1f} of {total} |{bar}| {elapsed}<{remaining}",
            leave=False,
        )

    def _epoch(self, epoch: int, phase: Phase, rate: float, bar: ProgressBar) -> dict[str, float]:
        """Mean loss of every term over the epoch's batches."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        # Seeded anew in every epoch, so that a resumed run draws what an uninterrupted one would.
        rng = np.random.default_rng([self.seed, epoch])
        torch.manual_seed(int(rng.integers(2**31)))
        rows = list(self._rows(phase, rng))
        pools = self._pools(phase, rng, len(rows))
        self.model.train()
        log = _LossLog(epoch, rate)
        for batch in self.train.batches(rows, pools):
            log.add(self.step(batch, phase))
            bar.update(1 / len(rows))
        return log.means()

    def _rows(self, phase: Phase, rng: np.random.Generator) -> Iterator[np.ndarray]:
        owners = self.train.owners
        if phase.draws == "images":
            return sampling.image_batches(owners, phase.batch_size, rng)
        return sampling.batches(owners, phase.batch_size, phase.captions_per_image, rng)

    def _pools(self, phase: Phase, rng: np.random.Generator, steps: int) -> list:
        if not phase.pool:
            return [None] * steps
        return list(rng.integers(0, len(self.train.owners), (steps, phase.pool)))

    def step(self, batch: Batch | RegionBatch, phase: Phase) -> dict[str, Tensor]:
        """One step of the optimiser; the loss of every term."""
        with torch.autocast(self.train.device.type, torch.bfloat16, enabled=self.autocast):
            terms = _counted(self.model.loss(batch), phase)
        self.optimiser.zero_grad(set_to_none=True)
        sum(terms.values()).backward()
        if phase.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), phase.clip_norm)
        self.optimiser.step()
        return {term: value.detach() for term, value in terms.items()}

    def _validate(self, epoch: int) -> dict[str, float]:
        self.model.eval()
        with torch.autocast(self.train.device.type, torch.bfloat16, enabled=self.autocast):
            try:
                return self.validate(self.model)
            except selection.NotFiniteError as error:
                raise DivergedError(f"epoch {epoch + 1}: {error}") from error

    def _end_epoch(self, epoch: int, phase: int, rate: float, losses: dict, metrics: dict) -> None:
        """Add the epoch to the history, keep its weights if they are the best, save the state."""
        row = {"epoch": epoch + 1, "phase": phase + 1, "learning_rate": rate}
        row |= {"loss": sum(losses.values())} | {f"loss_{k}": v for k, v in losses.items()}
        row |= {f"val_{k}": v for k, v in metrics.items()}
        self.progress.history.append(row)
        self.progress.epoch = epoch + 1
        if self.selected() == epoch + 1:
            self.best_state = self._weights()
        self._save()
        self._tell(
            f"epoch {epoch + 1}/{len(self.schedule)}: loss {row['loss']:.4g}, "
            f"validation rsum {metrics['rsum']:.1f}, {self.progress.seconds:.0f} s"
        )

    def _weights(self) -> dict[str, Tensor]:
        """A copy on the host, beside a device that holds them once."""
        state = self.model.state_dict()
        return {k: v.detach().to("cpu", copy=True) for k, v in state.items()}

    def _save(self) -> None:
        """The best weights first, and only when they are others: a kill in between leaves those
        that the state of the epoch before needs."""
        best = self.scratch / BEST.format(self.selected())
        if self.selected() == self.progress.epoch:
            sealed_files.save(best, self.best_state)
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "progress": json.dumps(vars(self.progress)),
        }
        sealed_files.save(self.scratch / LAST, state)
        for path in self.scratch.glob(BEST.format("*")):
            if path != best:
                path.unlink()

    def _resume(self) -> None:
        """Go on from the state after the last epoch; without one, or from a damaged one, begin."""
        path = self.scratch / LAST
        if not path.is_file():
            self._require_space(path)
            return
        try:
            state = sealed_files.load(path)  # on the host: what is loaded takes no memory of a GPU
            progress = Progress(**json.loads(state["progress"]))
            self.best_state = sealed_files.load(self.scratch / BEST.format(self._kept(progress)))
        except (DamagedError, FileNotFoundError) as error:
            self._tell(f"{error}; the training begins again")
            path.unlink()
            return
        self.progress = progress
        self.model.load_state_dict(state["model"])
        self.optimiser = optimiser_of(self.model, self.schedule[self.progress.epoch - 1][1])
        self.optimiser.load_state_dict(state["optimiser"])

    def _require_space(self, path: Path) -> None:
        """For a state beside the one before it."""
        weights = sum(value.nbytes for value in self.model.state_dict().values())
        disk_space.require(path, 2 * STATES * weights)

    def _tell(self, line: str) -> None:
        ProgressBar.write(
            f"{self.name}: {line}", file=sys.stderr
        )  # stdout is for what scripts read


class _LossLog:
    """The loss terms of an epoch, checked only every `CHECK_EVERY` steps."""

    def __init__(self, epoch: int, rate: float) -> None:
        self.epoch, self.rate = epoch, rate
        self.terms: list[str] = []
        self.steps: list[Tensor] = []
        self.checked = 0  # steps known to be finite

    def add(self, terms: dict[str, Tensor]) -> None:
        self.terms = list(terms)
        self.steps.append(torch.stack([value.float() for value in terms.values()]))
        if len(self.steps) - self.checked == CHECK_EVERY:
            self._check()

    def means(self) -> dict[str, float]:
        """Mean of every term; raises DivergedError for a step that is not finite."""
        self._check()
        means = torch.stack(self.steps).double().mean(0).tolist()
        return dict(zip(self.terms, means, strict=True))

    def _check(self) -> None:
        if self.checked == len(self.steps):
            return
        fresh = torch.stack(self.steps[self.checked :])
        bad = ~torch.isfinite(fresh).all(1)
        if bad.any():
            first = int(bad.int().argmax())
            pairs = zip(self.terms, fresh[first].tolist(), strict=True)
            values = ", ".join(f"{term} {value:.4g}" for term, value in pairs)
            raise DivergedError(
                f"the loss is not finite in epoch {self.epoch + 1}, "
                f"step {self.checked + first + 1}, "
                f"learning rate {self.rate:g}: {values}"
            )
        self.checked = len(self.steps)


def _counted(terms: dict[str, Tensor], phase: Phase) -> dict[str, Tensor]:
    """The loss terms that the phase counts."""
    return {name: terms[name] for name in phase.terms or terms}


def optimiser_of(model: nn.Module, phase: Phase) -> torch.optim.Optimizer:
    """The optimiser of a phase. Its groups have the `factor` of their parameters, which multiplies
    the learning rate of each epoch.

    A parameter whose factor is 0 is frozen. Fused, a step reads and writes every number once.
    """
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        factor = next((rate for start, rate in phase.rates if name.startswith(start)), 1.0)
        parameter.requires_grad_(factor != 0)
        if factor:
            groups.setdefault(factor, []).append(parameter)
    parts = [{"params": params, "factor": factor} for factor, params in groups.items()]
    if phase.optimiser == "adam":
        return torch.optim.Adam(parts, weight_decay=phase.weight_decay, fused=True)
    return torch.optim.SGD(
        parts,
        lr=0.0,
        momentum=phase.momentum,
        weight_decay=phase.weight_decay,
        nesterov=phase.nesterov,
        fused=True,
    )
