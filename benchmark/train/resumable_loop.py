"""The training loop, which plays the phases of any method's recipe. A training that was
killed resumes after its last complete epoch."""

import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, OptionError, Phase, RegionBatch
from benchmark.core import files
from benchmark.core.command_line import ProgressBar
from benchmark.core.devices import Stopwatch
from benchmark.core.errors import UserError
from benchmark.scoring.checkpoints import DivergedError
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.ranking import RefusedError
from benchmark.scoring.validation import NotFiniteError
from benchmark.train import sampling

LAST = "last.pt"  # state after the last epoch, in the scratch folder
BEST = "best-{}.pt"  # weights of the best epoch so far, beside it
HELD = "held_by_phase"  # attribute of a parameter: whether a phase has frozen it
RSUM_TOLERANCE = 0.5  # by which an rsum may change when a GPU computes it again
# steps between checks that the loss is finite: each check makes a GPU wait
CHECK_EVERY = 50


@dataclass
class Progress:
    """What a training needs to resume after a kill, apart from weights and
    optimiser."""

    epoch: int = 0  # epochs done
    seconds: float = 0.0  # of training and validation
    history: list[dict] = field(default_factory=list)  # one row per epoch

    @property
    def columns(self) -> dict[str, list]:
        """The history by columns, one value an epoch; None where a phase lacks a
        term."""
        names: dict[str, None] = {}
        for row in self.history:
            names |= dict.fromkeys(row)
        columns = {}
        for name in names:
            columns[name] = [row.get(name) for row in self.history]
        return columns


@dataclass(frozen=True)
class _Epoch:
    """One of the schedule."""

    number: int  # of its phase, from 0
    phase: Phase
    rate: float  # learning rate


@dataclass(kw_only=True, eq=False)
class Run:
    """The training of one model by one recipe. `play` trains, and resumes from
    `scratch` what was killed; then `best_state` holds the weights of the best epoch by
    validation rsum, or of the last one if the recipe keeps that, and `progress` the
    history."""

    model: nn.Module  # on its device, with the weights that training starts from
    phases: list[Phase]
    train: SplitInputs | PhraseInputs  # rows to draw batches from
    # recalls in percent and their sum, rsum
    validate: Callable[[nn.Module], dict[str, float]]
    seed: int  # of batches, dropout and everything else that is drawn at random
    # whether losses and scores are computed in bfloat16 where that is safe
    autocast: bool
    scratch: Path  # folder of the state after the last epoch, of this training alone
    name: str  # for progress messages
    optimiser: torch.optim.Optimizer | None = None
    best_state: dict[str, Tensor] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)

    @cached_property
    def schedule(self) -> list["_Epoch"]:
        epochs = []
        for number, phase in enumerate(self.phases):
            for rate in phase.learning_rates:
                epochs.append(_Epoch(number, phase, rate))
        return epochs

    def play(self) -> None:
        """Play all epochs that are not done yet; each ends with a saved state to resume
        from. A recipe without epochs keeps the weights that it starts from. Raises
        DivergedError."""
        self._resume()
        if not self.schedule:
            self.best_state = self._weights()
        bar = ProgressBar(  # of all epochs, so that the time left is the training's
            desc=self.name,
            total=len(self.schedule),
            initial=self.progress.epoch,
            bar_format="{desc}: epoch {n:.1f} of {total} |{bar}| {elapsed}<{remaining}",
            leave=False,
        )
        with bar:
            for epoch in range(self.progress.epoch, len(self.schedule)):
                watch = Stopwatch(self.train.device)
                planned = self.schedule[epoch]
                is_first = epoch == 0
                if is_first or self.schedule[epoch - 1].number != planned.number:
                    self.optimiser = optimiser_of(self.model, planned.phase)
                losses = self._epoch(epoch, planned.phase, planned.rate, bar)
                metrics = self._validate(self.model, epoch)
                self.progress.seconds += watch.lap()
                self._end_epoch(epoch, planned, losses, metrics)

    def check_reloaded(self, model: nn.Module) -> None:
        """Raise RefusedError if a model that is loaded from `best_state` has another
        validation rsum than the trained one: then part of what it learned is in neither
        a parameter nor a buffer."""
        loaded = self._validate(model, 0)["rsum"]
        if abs(loaded - self.val_rsum) > RSUM_TOLERANCE:
            raise RefusedError(
                f"a model that is loaded from the checkpoint has validation rsum "
                f"{loaded:.1f}, the trained one had {self.val_rsum:.1f}; scores must "
                f"follow from parameters and buffers"
            )

    @cached_property
    def val_rsum(self) -> float:
        """Validation rsum, in percent, of the weights that `play` kept."""
        selected = self.selected()
        if selected is None:  # no epochs, as for a fit in closed form
            return self._validate(self.model, 0)["rsum"]
        return self.progress.history[selected - 1]["val_rsum"]

    def selected(self) -> int | None:
        """The epoch whose weights are kept, counted from 1; None before the first one
        ends."""
        rsums = [row["val_rsum"] for row in self.progress.history]
        if not rsums:
            return None
        if self.phases[-1].keeps == "last":
            return len(rsums)
        return best_epoch(rsums)

    def _epoch(
        self, epoch: int, phase: Phase, rate: float, bar: ProgressBar
    ) -> dict[str, float]:
        """Mean loss of every term over the epoch's batches."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        # Seeded anew in every epoch, so that a resumed run draws what an uninterrupted
        # one would.
        rng = np.random.default_rng([self.seed, epoch])
        seed_all(int(rng.integers(2**31)))
        owners = self.train.owners
        if phase.draws == "images":
            drawn = sampling.image_batches(owners, phase.batch_size, rng)
        else:
            captions = phase.captions_per_image
            drawn = sampling.batches(owners, phase.batch_size, captions, rng)
        rows = list(drawn)
        pools = [None] * len(rows)
        if phase.pool:
            pools = list(rng.integers(0, len(owners), (len(rows), phase.pool)))
        self.model.train()
        log = LossLog(epoch, rate)
        for batch in self.train.batches(rows, pools):
            log.add(self.step(batch, phase))
            bar.update(1 / len(rows))
        # without dropout it is another training than its recipe's
        if not self.model.training:
            message = "the loss leaves the model in evaluation mode: set the mode back"
            raise RefusedError(message)
        return log.means()

    def step(self, batch: Batch | RegionBatch, phase: Phase) -> dict[str, Tensor]:
        """One step of the optimiser; the loss of every term that the phase counts."""
        with self._precision():
            terms = self.model.loss(batch)
            terms = {name: terms[name] for name in phase.terms or terms}
        self.optimiser.zero_grad(set_to_none=True)
        sum(terms.values()).backward()
        if phase.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), phase.clip_norm)
        self.optimiser.step()
        return {term: value.detach() for term, value in terms.items()}

    def _validate(self, model: nn.Module, epoch: int) -> dict[str, float]:
        model.eval()
        with self._precision():
            try:
                return self.validate(model)
            except NotFiniteError as error:
                raise DivergedError(f"epoch {epoch + 1}: {error}") from error

    def _precision(self) -> torch.autocast:
        device = self.train.device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.autocast)

    def _end_epoch(
        self,
        epoch: int,
        planned: "_Epoch",
        losses: dict[str, float],
        metrics: dict[str, float],
    ) -> None:
        """Add the epoch to the history, keep its weights if they are the best, save the
        state."""
        row = {"epoch": epoch + 1, "phase": planned.number + 1}
        row["learning_rate"] = planned.rate
        row["loss"] = sum(losses.values())
        row |= {f"loss_{term}": value for term, value in losses.items()}
        row |= {f"val_{name}": value for name, value in metrics.items()}
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
        return {name: x.detach().to("cpu", copy=True) for name, x in state.items()}

    def _save(self) -> None:
        """The best weights first, and only when they are others: a kill in between
        leaves those that the state of the epoch before needs."""
        best = self.scratch / BEST.format(self.selected())
        if self.selected() == self.progress.epoch:
            files.save_tensors(best, self.best_state)
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "progress": json.dumps(vars(self.progress)),
        }
        files.save_tensors(self.scratch / LAST, state)
        for path in self.scratch.glob(BEST.format("*")):
            if path != best:
                path.unlink()

    def _resume(self) -> None:
        """Go on from the state after the last epoch; without one, or from a damaged
        one, begin."""
        path = self.scratch / LAST
        if not path.is_file():
            return
        try:
            # on the host: what is loaded takes no memory of a GPU
            state = files.load_tensors(path)
            self.progress = Progress(**json.loads(state["progress"]))
            best = self.scratch / BEST.format(self.selected())
            self.best_state = files.load_tensors(best)
        except (UserError, FileNotFoundError) as error:
            self._tell(f"{error}; the training starts again")
            self.progress = Progress()
            path.unlink()
            return
        self.model.load_state_dict(state["model"])
        phase = self.schedule[self.progress.epoch - 1].phase
        self.optimiser = optimiser_of(self.model, phase)
        self.optimiser.load_state_dict(state["optimiser"])

    def _tell(self, line: str) -> None:
        ProgressBar.write(f"{self.name}: {line}", file=sys.stderr)


class LossLog:
    """The loss terms of an epoch, checked only every `CHECK_EVERY` steps. All of its
    methods raise DivergedError for a step that is not finite."""

    def __init__(self, epoch: int, rate: float) -> None:
        self.epoch = epoch
        self.rate = rate
        self.checked = 0  # steps known to be finite
        self.terms: list[str] = []
        self.steps: list[Tensor] = []

    def add(self, terms: dict[str, Tensor]) -> None:
        """The terms of a step."""
        self.terms = list(terms)
        self.steps.append(torch.stack([value.float() for value in terms.values()]))
        if len(self.steps) - self.checked == CHECK_EVERY:
            self._check()

    def means(self) -> dict[str, float]:
        """Mean of every term."""
        self._check()
        means = torch.stack(self.steps).double().mean(0).tolist()
        return dict(zip(self.terms, means, strict=True))

    def _check(self) -> None:
        fresh = self.steps[self.checked :]
        if not fresh:
            return
        for step in torch.stack(fresh).tolist():
            self.checked += 1
            if not np.isfinite(step).all():
                pairs = zip(self.terms, step, strict=True)
                values = ", ".join(f"{term} {value:.4g}" for term, value in pairs)
                raise DivergedError(
                    f"the loss is not finite in epoch {self.epoch + 1}, "
                    f"step {self.checked}, learning rate {self.rate:g}: {values}"
                )


def seed_all(seed: int) -> None:
    """Seed every generator that a method may draw from."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def seeded_model(build: Callable[[], nn.Module], seed: int) -> tuple[nn.Module, bool]:
    """The model that `build` makes with a seed, and whether it is the same with every
    seed: torch's generator ends in the same state with another seed, or all parameters
    are equal though they are not all constants."""
    models = []
    states = []
    for each in ((seed + 1) % 2**31, seed):
        seed_all(each)
        model = build()
        models.append(list(model.parameters()))
        states.append(torch.get_rng_state())
    is_drawn = any(len(first.unique()) > 1 for first in models[0])
    is_one = is_drawn and all(map(torch.equal, *models))
    return model, is_one or states[0].equal(states[1])


def best_epoch(rsums: Sequence[float]) -> int:
    """The epoch whose weights are kept, counted from 1: highest validation rsum,
    earliest on ties."""
    best = max(rsums)
    return 1 + list(rsums).index(best)


def optimiser_of(model: nn.Module, phase: Phase) -> torch.optim.Optimizer:
    """The optimiser of a phase. It is fused: a step reads and writes every number once.

    Each group of parameters has a `factor`, by which the learning rate of each epoch is
    multiplied. A parameter whose factor is 0 is frozen until a later phase has another
    factor for it; one that the method itself froze stays frozen. Raises OptionError for
    a start in `rates` that fits neither a parameter nor a part that is None.
    """
    named = dict(model.named_parameters())
    for start, _ in phase.rates:
        # a part that some options lack
        is_none = getattr(model, start.split(".")[0], 0) is None
        if not is_none and not any(name.startswith(start) for name in named):
            parts = ", ".join(dict.fromkeys(name.split(".")[0] for name in named))
            expected = f"the start of a parameter's name, of {parts}"
            raise OptionError("rates", expected, start)
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in named.items():
        factor = 1.0
        for start, rate in phase.rates:
            if name.startswith(start):
                factor = rate
                break
        # by an earlier phase, not by the method
        was_held = getattr(parameter, HELD, False)
        setattr(parameter, HELD, not factor and (parameter.requires_grad or was_held))
        if factor:
            groups.setdefault(factor, []).append(parameter)
        if was_held or not factor:
            parameter.requires_grad_(factor != 0)
    parts = [{"params": params, "factor": factor} for factor, params in groups.items()]
    decay = phase.weight_decay
    if phase.optimiser == "adam":
        return torch.optim.Adam(parts, weight_decay=decay, fused=True)
    sgd = {
        "momentum": phase.momentum,
        "nesterov": phase.nesterov,
        "weight_decay": decay,
    }
    return torch.optim.SGD(parts, lr=0.0, fused=True, **sgd)
