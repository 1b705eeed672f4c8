"""Stage: one preset, one dataset, one seed -> a checkpoint. Never sees a test item."""

import argparse
import csv
import hashlib
import io
import json
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

import methods
from benchmark import checkpoints, scoring, selection
from benchmark.checkpoints import Checkpoint
from benchmark.costs import write_provenance
from benchmark.devices import make_deterministic, pick
from benchmark.files import atomic, read_json, sha256, write_text
from benchmark.inputs import SplitInputs, read_data, sizes_of, split_inputs, vocabulary_of
from benchmark.options import configured, method_of
from benchmark.params import Cell, Params, entry, read_params
from benchmark.provenance import provenance
from benchmark.sampling import batches
from benchmark.stage import run_stage
from methods import Phase


class DivergedError(ArithmeticError):
    """The loss is no longer a number."""


@dataclass
class Progress:
    """Everything a training needs to go on after a kill, except the weights themselves."""

    epoch: int = 0  # epochs done
    seconds: float = 0.0
    history: list[dict] = field(default_factory=list)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="a key of `cells` in params.yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_params()
    train_cell(params, entry(params.cells, arguments.cell, "cell"))


def train_cell(params: Params, cell: Cell) -> None:
    """Train a cell and write checkpoint.pt, history.csv and training.json into its folder."""
    make_deterministic()
    device = pick(params.device)
    method = method_of(cell.method)
    config = configured(method, cell.options, f"preset {cell.preset}")
    data = read_data(cell)
    reads_words = method.INPUTS.text == "tokens"
    vocabulary = vocabulary_of(data, config.min_count) if reads_words else None
    train, validation = (
        split_inputs(data, cell, method.INPUTS, name, vocabulary, device)
        for name in ("train", "val")
    )
    torch.manual_seed(cell.seed)
    sizes = sizes_of(train, vocabulary)
    model = method.Model(config, sizes).to(device)
    run = _Run(
        model=model,
        phases=method.recipe(config),
        train=train,
        validation=validation.first_images(params.validation_images),
        seed=cell.seed,
        autocast=params.precision == "bfloat16",
        scratch=Path(".scratch") / cell.folder / _identity(params, cell, sizes),
        name=f"{cell.dataset} {cell.preset} {cell.seed}",
    )
    checkpoint = Checkpoint(
        state={},
        epoch=None,
        words=vocabulary.words if vocabulary else None,
        sizes=sizes,
        parameters=sum(x.numel() for x in model.parameters() if x.requires_grad),
        failure="",
    )
    try:
        run.play()
        checkpoint = replace(checkpoint, state=run.best_state, epoch=run.selected())
    except DivergedError as error:
        checkpoint = replace(checkpoint, failure=str(error))
    folder = Path(cell.folder)
    checkpoints.save(folder / "checkpoint.pt", checkpoint)
    write_text(folder / "history.csv", _table(run.progress.history))
    spent = {"training": run.progress.seconds}
    write_provenance(folder / "training.json", provenance(device, spent))
    shutil.rmtree(run.scratch, ignore_errors=True)


class _Run:
    """The training loop: plays the phases of any method's recipe."""

    def __init__(
        self,
        *,
        model: nn.Module,
        phases: list[Phase],
        train: SplitInputs,
        validation: SplitInputs,
        seed: int,
        autocast: bool,
        scratch: Path,
        name: str,
    ) -> None:
        self.model, self.train, self.validation = model, train, validation
        self.seed, self.autocast, self.scratch, self.name = seed, autocast, scratch, name
        self.schedule = [
            (number, phase, rate)
            for number, phase in enumerate(phases)
            for rate in phase.learning_rates
        ]
        self.optimiser: torch.optim.Optimizer | None = None
        self.best_state: dict[str, Tensor] = {}
        self.progress = Progress()

    def play(self) -> None:
        """All epochs that are not done yet; after each the run can be killed and resumed."""
        self._resume()
        for epoch in range(self.progress.epoch, len(self.schedule)):
            started = perf_counter()
            number, phase, rate = self.schedule[epoch]
            if self.optimiser is None or self.schedule[epoch - 1][0] != number:
                self.optimiser = optimiser_of(self.model, phase)
            losses = self._epoch(epoch, phase, rate)
            metrics = self._validate()
            self.progress.seconds += perf_counter() - started
            self._note(epoch, number, rate, losses, metrics)

    def selected(self) -> int:
        """The epoch whose weights are kept, counted from 1."""
        return selection.selected([row["val_rsum"] for row in self.progress.history])

    def _epoch(self, epoch: int, phase: Phase, rate: float) -> dict[str, float]:
        """Mean loss of every term over the epoch's batches."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        # Reseeded every epoch, so that a resumed run draws what an unbroken one would.
        rng = np.random.default_rng([self.seed, epoch])
        torch.manual_seed(int(rng.integers(2**31)))
        owners = self.train.image_of_caption.cpu().numpy()
        rows = list(batches(owners, phase.batch_size, phase.captions_per_image, rng))
        self.model.train()
        totals: dict[str, Tensor] = {}
        label = f"{self.name} epoch {epoch + 1}/{len(self.schedule)}"
        for batch_rows in tqdm(rows, desc=label, unit="batch", disable=None, leave=False):
            for term, value in self._step(batch_rows, phase).items():
                totals[term] = totals.get(term, 0.0) + value
        means = {term: float(total) / len(rows) for term, total in totals.items()}
        if not np.isfinite(sum(means.values())):
            raise DivergedError(f"the training loss is not finite in epoch {epoch + 1}")
        return means

    def _step(self, rows: np.ndarray, phase: Phase) -> dict[str, Tensor]:
        batch = self.train.batch(rows)
        with torch.autocast(self.train.device.type, torch.bfloat16, enabled=self.autocast):
            terms = self.model.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        sum(terms.values()).backward()
        if phase.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), phase.clip_norm)
        self.optimiser.step()
        return {term: value.detach() for term, value in terms.items()}

    def _validate(self) -> dict[str, float]:
        self.model.eval()
        with torch.autocast(self.train.device.type, torch.bfloat16, enabled=self.autocast):
            scores = scoring.score(self.model, self.validation, quiet=True).matrix
        try:
            return selection.validation_recalls(scores, self.validation.image_of_caption)
        except selection.NotFiniteError as error:
            raise DivergedError(str(error)) from error

    def _note(self, epoch: int, phase: int, rate: float, losses: dict, metrics: dict) -> None:
        row = {"epoch": epoch + 1, "phase": phase + 1, "learning_rate": rate}
        row |= {"loss": sum(losses.values())} | {f"loss_{k}": v for k, v in losses.items()}
        row |= {f"val_{k}": v for k, v in metrics.items()}
        self.progress.history.append(row)
        self.progress.epoch = epoch + 1
        if self.selected() == epoch + 1:
            self.best_state = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self._save()
        tqdm.write(
            f"{self.name} epoch {epoch + 1}/{len(self.schedule)}: loss {row['loss']:.4g}, "
            f"validation rsum {metrics['rsum']:.1f}, {self.progress.seconds:.0f} s",
            file=sys.stderr,  # stdout is for what scripts read
        )

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "best": self.best_state,
            "progress": json.dumps(vars(self.progress)),
        }
        with atomic(self.scratch / "last.pt") as part:
            torch.save(state, part)

    def _resume(self) -> None:
        path = self.scratch / "last.pt"
        if not path.is_file():
            return
        state = torch.load(path, map_location=self.train.device, weights_only=True)
        self.progress = Progress(**json.loads(state["progress"]))
        self.model.load_state_dict(state["model"])
        self.best_state = state["best"]
        self.optimiser = optimiser_of(self.model, self.schedule[self.progress.epoch - 1][1])
        self.optimiser.load_state_dict(state["optimiser"])


def optimiser_of(model: nn.Module, phase: Phase) -> torch.optim.Optimizer:
    """The phase's optimiser over all parameters; the rate is set before every epoch."""
    if phase.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), weight_decay=phase.weight_decay)
    return torch.optim.SGD(
        model.parameters(), lr=0.0, momentum=phase.momentum, weight_decay=phase.weight_decay
    )


def _identity(params: Params, cell: Cell, sizes: methods.Sizes) -> str:
    """Names what a scratch folder is a training of; another option or other features, another
    folder."""
    cards = [read_json(Path(cell.images) / "card.json")]
    if not cell.texts.endswith(".parquet"):
        cards.append(read_json(Path(cell.texts) / "card.json"))
    facts = [
        cell.model_dump(),
        sha256(Path("data/prepared") / cell.dataset / "captions.parquet"),
        vars(sizes),
        cards,
        params.validation_images,
        params.precision,
        params.device,
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _table(history: list[dict]) -> str:
    """CSV, one row an epoch; numbers in full, so that equal trainings give equal bytes."""
    columns = list(dict.fromkeys(key for row in history for key in row)) or ["epoch"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
