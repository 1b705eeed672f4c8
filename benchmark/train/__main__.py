"""Stage: one preset, one dataset, one seed -> a checkpoint. Never sees a test item."""

import argparse
import hashlib
import json
import shutil
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Inputs,
    NotApplicableError,
    OptionError,
    Phase,
    Sizes,
)
from benchmark.core import numerics
from benchmark.core.command_line import add_season, alone, lock_of, run_stage
from benchmark.core.devices import begin, kind, provenance
from benchmark.core.errors import entry
from benchmark.core.files import write_json
from benchmark.data import prepared_tables, results
from benchmark.data.feature_folders import Words
from benchmark.data.prepared_tables import Prepared, Split, Splits
from benchmark.data.vocabularies import SPECIAL, Dictionary, Vocabulary
from benchmark.scoring import checkpoints, inputs
from benchmark.scoring.checkpoints import OF_A_METHOD, Checkpoint
from benchmark.scoring.validation import recalls
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Cell, Params
from benchmark.season.plugins import ConfiguredMethod
from benchmark.train.resumable_loop import Progress, Run, seeded_model
from benchmark.train.sampling import cluster


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="for example shapes-scan_t2i_avg-0")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season, arguments.cell)
    cell = entry(params.cells, arguments.cell, "cell")
    numerics.require(cell.numerics, cell.threads)
    train_cell(params, cell)


def train_cell(params: Params, cell: Cell) -> "Training":
    """Train a cell; write its checkpoint and, beside it, its history, and elsewhere
    what it cost. Returns how it ended.

    A cell whose dataset lacks what its method takes, one whose loss diverges and one
    whose method raises leave a checkpoint that says so. A training of the same identity
    that was killed is resumed.
    """
    data = prepared_tables.read(cell.dataset)
    with alone(lock_of(cell.folder), f"train {cell.key}"):
        device = begin(params.device, cell.precision)
        # now: a change during the training is noticed
        identity = checkpoints.identity_of(cell, data.sha256)
        splits = data.splits()
        words = Words.read(Path(cell.words)) if cell.words else None
        scratch = _scratch(cell, identity, device)
        try:
            with chdir("."):  # back, wherever the method went
                training = _trained(
                    cell, data, splits, words, identity, scratch, device
                )
        except OF_A_METHOD as error:
            reason = checkpoints.failure_of(error, cell.folder)
            training = Training(Checkpoint(identity=identity, **reason))
        checkpoint = training.checkpoint
        checkpoints.save(Path(cell.checkpoint), checkpoint)
        history = {"history": training.progress.columns}
        if training.starts_alike:
            history["starts_alike"] = True
        write_json(Path(cell.history), history)
        seconds = {"training": training.progress.seconds}
        cost = provenance(device, seconds, cell.precision)
        results.write_training_cost(Path(cell.costs), Path(cell.checkpoint), cost)
        # not before all of it is there
        shutil.rmtree(scratch.parent, ignore_errors=True)
        checkpoints.log_failure(cell.key, checkpoint.status, checkpoint.reason)
        return training


@dataclass(frozen=True)
class Training:
    """How a training ended."""

    checkpoint: Checkpoint
    progress: Progress = field(default_factory=Progress)
    starts_alike: bool = False  # with every seed, from the same weights
    val_rsum: float | None = None  # of the weights that are kept; None of a failure


def _scratch(cell: Cell, identity: dict, device: torch.device) -> Path:
    """Folder of the state that a killed training of the same identity resumes from, on
    a device of the same kind; those of others are removed."""
    facts = json.dumps(identity | {"device": kind(device)}, sort_keys=True)
    name = hashlib.sha256(facts.encode()).hexdigest()[:16]
    # also for a method that leaves the working folder
    scratch = Path(".scratch").absolute() / cell.folder / name
    for other in scratch.parent.glob("*"):
        if other != scratch:
            shutil.rmtree(other)
    return scratch


def _trained(
    cell: Cell,
    data: Prepared,
    splits: Splits,
    words: Words | None,
    identity: dict,
    scratch: Path,
    device: torch.device,
) -> Training:
    """Raises NotApplicableError where the dataset or the start cannot give what is
    needed."""
    start = checkpoints.load(Path(cell.start)) if cell.start else None
    if start and start.status != "ok":
        raise NotApplicableError(f"{cell.start}: {start.status}: {start.reason}")
    method = ConfiguredMethod.of(cell)
    takes = method.takes
    fed = training_data(data, splits.train, cell, takes, words, start, device)
    validation = inputs.validation_inputs(
        data, splits.val, cell, takes, fed.vocabulary, device
    )

    def validate(model: nn.Module) -> dict[str, float]:
        return recalls(model, validation, data.card["ways"])

    def build() -> nn.Module:
        parts = {}
        if takes.word_vectors:
            # each model has its own
            parts["word_vectors"] = fed.word_vectors.clone()
        if takes.image == "pixels":
            parts["image_network"] = inputs.image_network(cell)
        return method.module.Model(method.config, fed.sizes, **parts)

    phases = method.module.recipe(method.config)
    check_batches(cell, phases, fed.train.owners)
    model, starts_alike = seeded_model(build, cell.seed)
    model = model.to(device)
    if start:
        _load(model, start, cell)
    if takes.fit:
        model.fit(fed.train.pairs())
    run = Run(
        model=model,
        phases=phases,
        train=fed.train,
        validate=validate,
        seed=cell.seed,
        autocast=cell.precision == "bfloat16",
        scratch=scratch,
        name=f"{cell.dataset} {cell.preset} {cell.seed}",
    )
    failure = _failure_of(run, cell, method, fed.sizes, device)
    checkpoint = Checkpoint(
        identity=identity,
        words=fed.vocabulary.words if fed.vocabulary else None,
        sizes=fed.sizes,
        parameters=sum(x.numel() for x in run.model.parameters()),
        state=run.best_state,
        epoch=run.selected(),
        **failure,
    )
    val_rsum = None if failure else run.val_rsum
    return Training(checkpoint, run.progress, starts_alike, val_rsum)


def _failure_of(
    run: Run, cell: Cell, method: ConfiguredMethod, sizes: Sizes, device: torch.device
) -> dict[str, str]:
    """Play a run, and check that its weights do the same when they are loaded; returns
    what a checkpoint says of a failure, nothing of a success. Raises
    NotApplicableError."""
    try:
        with chdir("."):
            run.play()
        reached = Checkpoint(sizes=sizes, state=run.best_state)
        model = checkpoints.model_of(reached, cell, method, device)
        with chdir("."):
            run.check_reloaded(model)
    except NotApplicableError:
        raise
    except OF_A_METHOD as error:
        return checkpoints.failure_of(error, cell.folder)
    return {}


# Data ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    train: inputs.SplitInputs | inputs.PhraseInputs
    sizes: Sizes
    vocabulary: Vocabulary | Dictionary | None = None  # of methods that take words
    word_vectors: Tensor | None = None  # (V, E)


def training_data(
    data: Prepared,
    split: Split,
    cell: Cell,
    takes: Inputs,
    words: Words | None,
    start: Checkpoint | None,
    device: torch.device,
) -> TrainingData:
    """What the cell's method takes of the training split; `words` are those that it
    knows vectors of. A training that goes on from another one keeps its vocabulary.
    Raises NotApplicableError where something is lacking."""
    if start:
        _check_words(cell, takes, start.words)
        vocabulary = inputs.vocabulary_from(takes, start.words)
    else:
        texts = data.captions["text"].iloc[split.caption_rows]
        vocabulary = inputs.vocabulary_for(takes, texts, words)
    train = inputs.task_inputs(data, split, cell, takes, vocabulary, device)
    if takes.task == "localisation":
        sizes = Sizes(image=train.proposals.shape[-1], text=train.vectors.shape[-1])
        return TrainingData(train=train, sizes=sizes)
    word_vectors = None
    if takes.word_vectors:
        word_vectors = torch.from_numpy(words.rows_by_id(vocabulary))
    image_size = train.images.shape[-1]
    if takes.clusters or takes.image == "pixels":
        pooled = inputs.image_features(data, cell, "pooled")[split.images]
    if takes.image == "pixels":  # of what the image network makes of them
        image_size = pooled.shape[1]
    classes = train.group_of_image
    if takes.clusters:  # k-means clusters of the images take the place of the groups
        count = round(takes.clusters * (int(classes.max()) + 1))
        clusters = cluster(pooled, count, cell.seed)
        classes = torch.from_numpy(clusters).to(device)
    if vocabulary:
        text_size = len(vocabulary)
    elif train.contexts is None:
        text_size = train.captions.values.shape[1]
    else:
        text_size = train.contexts.shape[1]
    class_count = int(classes.max()) + 1
    return TrainingData(
        train=replace(train, class_of_image=classes),
        sizes=Sizes(image=image_size, text=text_size, classes=class_count),
        vocabulary=vocabulary,
        word_vectors=word_vectors,
    )


def check_batches(cell: Cell, phases: list[Phase], owners: np.ndarray) -> None:
    """A batch needs two rows, since one has no negative: one row is dropped.
    Neighbourhood sampling needs several captions of an image, or phrases of a chain:
    `owners` (rows,). Raises NotApplicableError, and OptionError for batches of one
    row."""
    counts = np.bincount(owners)
    drawn = {"captions": int(counts.sum()), "images": np.count_nonzero(counts)}
    most = int(counts.max())
    for phase in phases:
        if phase.batch_size < 2:
            expected = "2 or more, since a single row has no negative"
            raise OptionError("batch_size", expected, phase.batch_size)
        if drawn[phase.draws] < 2:
            raise NotApplicableError(
                f"{cell.dataset}: a batch expects 2 training {phase.draws} or more, "
                f"found {drawn[phase.draws]}"
            )
        wanted = phase.captions_per_image
        if wanted > max(most, 1):
            raise NotApplicableError(
                f"{cell.dataset}: neighbourhood sampling expects {wanted} "
                f"captions of an image, found {most} at most"
            )


def _check_words(cell: Cell, takes: Inputs, words: tuple[str, ...] | None) -> None:
    """The `words` of a start must be of the kind that the method takes. Raises
    NotApplicableError."""
    found = "vectors"
    if words:
        found = "tokens" if words[: len(SPECIAL)] == SPECIAL else "words"
    expected = takes.text if takes.text in ("tokens", "words") else "vectors"
    if found != expected:
        raise NotApplicableError(
            f"{cell.start}: expected a training with captions as {expected}, like "
            f"{cell.preset}, found one with {found}"
        )


def _load(model: nn.Module, start: Checkpoint, cell: Cell) -> None:
    """Load the weights of `start`. Whole parts may be new, as the image network of
    stage II, or gone, as a classifier that the loss does not use. Raises
    NotApplicableError where a part has other shapes or no part is shared."""
    own = {name: x.shape for name, x in model.state_dict().items()}
    loaded = {name: x.shape for name, x in start.state.items()}
    own_parts = dict.fromkeys(map(_part, own))
    loaded_parts = set(map(_part, loaded))
    shared = [part for part in own_parts if part in loaded_parts]
    changed = {_part(name) for name, _ in own.items() ^ loaded.items()}
    wrong = [part for part in shared if part in changed]
    if wrong or not shared:
        part = wrong[0] if wrong else "any part"
        raise NotApplicableError(
            f"{cell.start}: expected weights like those of {cell.preset}, found others "
            f"in {part}; give both presets the same sizes in the season's options"
        )
    model.load_state_dict(start.state, strict=False)


def _part(name: str) -> str:
    """The part of a model that a parameter is in."""
    return name.split(".")[0]


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
