"""Stage: one preset, one dataset, one seed -> a checkpoint. Never sees a test item."""

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from benchmark.core import numerics
from benchmark.core.command_line import add_season, run_stage
from benchmark.core.devices import begin, kind
from benchmark.core.files import write_text
from benchmark.core.locks import alone, lock_of
from benchmark.core.machine import provenance
from benchmark.core.provenance import write_provenance
from benchmark.matching import checkpoints, method_errors, retrieval_inputs
from benchmark.matching.checkpoints import Checkpoint
from benchmark.matching.method_errors import OF_A_METHOD, OF_THE_MACHINE
from benchmark.matching.training_identity import identity_of
from benchmark.season.method_options import ConfiguredMethod
from benchmark.season.parameter_files import entry, read_params
from benchmark.season.parameters import Cell, Params
from benchmark.train.resumable_loop import DivergedError, Progress, Run
from benchmark.train.training_data import TrainingData, training_data
from methods import NotApplicableError, Phase


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="for example shapes-scan_t2i_avg-0")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    cell = entry(params.cells, arguments.cell, "cell")
    numerics.require(cell.numerics, cell.threads)
    train_cell(params, cell)


def train_cell(params: Params, cell: Cell) -> None:
    """Train a cell and write its checkpoint, training/history.csv and training/cost.json into its
    folder.

    A cell whose dataset lacks what its method takes, one whose loss diverges and one whose method
    raises leave a checkpoint that says so.
    """
    with alone(lock_of(cell.folder), f"train {cell.key}"):
        _train_cell(params, cell)


def _train_cell(params: Params, cell: Cell) -> None:
    device = begin(params.device, cell.precision)
    identity = identity_of(cell)  # now, so that a change during the training is noticed
    scratch = _scratch(cell, identity, device)
    try:
        checkpoint, progress = _trained(cell, identity, scratch, device)
    except NotApplicableError as error:
        checkpoint, progress = Checkpoint.not_applicable(identity, str(error)), Progress()
    except OF_THE_MACHINE:
        raise
    except OF_A_METHOD as error:
        why = method_errors.reason(error, cell.folder)
        checkpoint, progress = Checkpoint(identity=identity).ended({}, None, why), Progress()
    folder = Path(cell.folder)
    checkpoints.save(Path(cell.checkpoint), checkpoint)
    write_text(folder / "training/history.csv", history_csv(progress.history))
    cost = provenance(device, {"training": progress.seconds}, cell.precision)
    write_provenance(folder / "training/cost.json", cost)
    shutil.rmtree(scratch.parent, ignore_errors=True)  # not before all of it is there
    method_errors.tell(cell.key, checkpoint.status, checkpoint.reason)


def _trained(
    cell: Cell, identity: dict, scratch: Path, device: torch.device
) -> tuple[Checkpoint, Progress]:
    """Raises NotApplicableError where the dataset or the start cannot give what is needed."""
    start = _start(cell)
    method = ConfiguredMethod.of(cell)
    data = training_data(cell, method.takes, start, cell.validation_images, device)
    phases = method.module.recipe(method.config)
    _check_batches(cell, phases, data)
    model = _model(method, cell, data, start, device)
    run = Run(
        model=model,
        phases=phases,
        train=data.train,
        validate=data.validate,
        seed=cell.seed,
        autocast=cell.precision == "bfloat16",
        scratch=scratch,
        name=f"{cell.dataset} {cell.preset} {cell.seed}",
    )
    failure = _played(run, cell)
    checkpoint = Checkpoint(
        identity=identity,
        words=data.vocabulary.words if data.vocabulary else None,
        sizes=data.sizes,
        parameters=sum(x.numel() for x in model.parameters()),
    )
    return checkpoint.ended(run.best_state, run.selected(), failure), run.progress


def _start(cell: Cell) -> Checkpoint | None:
    """The checkpoint that training goes on from. Raises NotApplicableError for one without a
    result."""
    if cell.start is None:
        return None
    start = checkpoints.load(Path(cell.start))
    if start.status != "ok":
        raise NotApplicableError(f"{cell.start}: {start.status}: {start.reason}")
    return start


def _played(run: Run, cell: Cell) -> str:
    """Play a training to its end; the reason why it stopped early, or nothing."""
    try:
        run.play()
    except DivergedError as error:
        return str(error)
    except (NotApplicableError, *OF_THE_MACHINE):
        raise
    except OF_A_METHOD as error:
        return method_errors.reason(error, cell.folder)
    return ""


def _model(
    method: ConfiguredMethod,
    cell: Cell,
    data: TrainingData,
    start: Checkpoint | None,
    device: torch.device,
) -> nn.Module:
    """The method's model before its first epoch, with the pretrained parts that it takes."""
    torch.manual_seed(cell.seed)
    parts = {}
    if method.takes.word_vectors:
        parts["word_vectors"] = retrieval_inputs.word_vectors(cell, data.vocabulary)
    if method.takes.image == "pixels":
        parts["image_network"] = retrieval_inputs.image_network(cell)
    model = method.module.Model(method.config, data.sizes, **parts).to(device)
    if start:
        _load(model, start, cell)
    if method.takes.fit:
        model.fit(data.train.pairs())
    return model


def _load(model: nn.Module, start: Checkpoint, cell: Cell) -> None:
    """Load the weights of `start`. Whole parts may be new, as the image network of stage II, or
    gone, as a classifier that the loss does not use.

    Raises NotApplicableError where a part has other shapes or no part is shared.
    """
    own, given = _shapes(model.state_dict()), _shapes(start.state)
    shared = [part for part in own if part in given]
    wrong = [part for part in shared if own[part] != given[part]]
    if wrong or not shared:
        part = wrong[0] if wrong else "any part"
        raise NotApplicableError(
            f"{cell.start}: expected weights like those of {cell.preset}, found others in {part}; "
            f"give both presets the same sizes in the season's options"
        )
    model.load_state_dict(start.state, strict=False)


def _shapes(state: dict) -> dict[str, dict]:
    """Part of a model -> name of a tensor -> its shape."""
    parts: dict[str, dict] = {}
    for name, value in state.items():
        parts.setdefault(name.split(".")[0], {})[name] = value.shape
    return parts


def _check_batches(cell: Cell, phases: list[Phase], data: TrainingData) -> None:
    """A batch needs two rows, since one has no negative. Neighbourhood sampling needs several
    captions of an image, or phrases of a chain."""
    counts = np.bincount(data.train.owners)
    drawn = {"captions": int(counts.sum()), "images": np.count_nonzero(counts)}
    most = int(counts.max())
    for phase in phases:
        if drawn[phase.draws] < 2:
            raise NotApplicableError(
                f"{cell.dataset}: a batch expects 2 training {phase.draws} or more, "
                f"found {drawn[phase.draws]}"
            )
        if phase.captions_per_image > max(most, 1):
            raise NotApplicableError(
                f"{cell.dataset}: neighbourhood sampling expects {phase.captions_per_image} "
                f"captions of an image, found {most} at most"
            )


def _scratch(cell: Cell, identity: dict, device: torch.device) -> Path:
    """Folder of the state that a killed training of the same identity goes on from, on a device of
    the same kind; those of others are removed."""
    of = json.dumps(identity | {"device": kind(device)}, sort_keys=True)
    name = hashlib.sha256(of.encode()).hexdigest()[:16]
    scratch = Path(".scratch") / cell.folder / name
    for other in scratch.parent.glob("*"):
        if other != scratch:
            shutil.rmtree(other)
    return scratch


def history_csv(history: list[dict]) -> str:
    """CSV, one row per epoch; numbers in full, so that equal trainings give equal bytes."""
    table = pd.DataFrame(history, columns=None if history else ["epoch"])
    return table.to_csv(index=False, lineterminator="\n")


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
