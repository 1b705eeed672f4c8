"""Stage: one preset, one dataset, one seed -> a checkpoint. Never sees a test item."""

import argparse
import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import nn

import methods
from benchmark.core.command_line import add_season, run_stage
from benchmark.core.devices import make_deterministic, pick
from benchmark.core.files import read_json, sha256, write_text
from benchmark.core.machine import provenance
from benchmark.core.provenance import write_provenance
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.matching import checkpoints, localisation, retrieval_inputs, scoring
from benchmark.matching.checkpoints import Checkpoint
from benchmark.matching.localisation import PhraseInputs, phrase_inputs
from benchmark.matching.retrieval_inputs import SplitInputs, split_inputs
from benchmark.season.method_options import configured, method_of
from benchmark.season.parameters import Cell, Params
from benchmark.season.parameter_files import entry, read_params
from benchmark.train import selection
from benchmark.train.loop import DivergedError, Run
from benchmark.train.pseudo_classes import cluster
from methods import Inputs, NotApplicableError, Sizes

TABLES = ("images.parquet", "captions.parquet", "regions.parquet")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="for example shapes-scan_t2i_avg-0")
    add_season(parser)


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    train_cell(params, entry(params.cells, arguments.cell, "cell"))


def train_cell(params: Params, cell: Cell) -> None:
    """Train a cell and write checkpoint.pt, training/history.csv and training/cost.json into its folder.

    A cell that its dataset cannot give its inputs, and one whose loss diverges, leave a checkpoint
    that says so.
    """
    make_deterministic()
    device = pick(params.device)
    seconds, history = 0.0, []
    try:
        start = _start(cell)
        run, checkpoint = _set_up(params, cell, start, device)
        try:
            run.play()
            failure = ""
        except DivergedError as error:
            failure = str(error)
        seconds, history = run.progress.seconds, run.progress.history
        checkpoint = checkpoint.ended(run.best_state, run.selected(), failure)
        shutil.rmtree(run.scratch, ignore_errors=True)
    except NotApplicableError as error:
        checkpoint = Checkpoint.not_applicable(str(error))
    folder = Path(cell.folder)
    checkpoints.save(Path(cell.checkpoint), checkpoint)
    write_text(folder / "training/history.csv", _table(history))
    write_provenance(folder / "training/cost.json", provenance(device, {"training": seconds}))


def _start(cell: Cell) -> Checkpoint | None:
    """The checkpoint training goes on from."""
    if cell.start is None:
        return None
    start = checkpoints.load(Path(cell.start))
    if start.status != "ok":
        raise NotApplicableError(f"{cell.start}: {start.status}: {start.reason}")
    return start


def _set_up(
    params: Params, cell: Cell, start: Checkpoint | None, device: torch.device
) -> tuple[Run, Checkpoint]:
    """A training about to begin, and the checkpoint it will leave, still without weights."""
    method = method_of(cell.method)
    config = configured(method, cell.options, f"preset {cell.preset}")
    takes = method.inputs(config)
    if takes.image == "proposals":
        fed = _localisation(params, cell, device)
    else:
        fed = _retrieval(params, cell, takes, start, getattr(config, "min_count", 1), device)
    phases = method.recipe(config)
    _check_siblings(cell, phases, fed.train)
    torch.manual_seed(cell.seed)
    model = _model(method, config, takes, fed.sizes, cell, fed.vocabulary).to(device)
    if start:
        _load(model, start, cell)
    if hasattr(model, "fit"):
        model.fit(fed.train.pairs())
    run = Run(
        model=model,
        phases=phases,
        train=fed.train,
        validate=fed.validate,
        seed=cell.seed,
        autocast=cell.precision == "bfloat16",
        scratch=Path(".scratch") / cell.folder / _identity(params, cell, fed.sizes),
        name=f"{cell.dataset} {cell.preset} {cell.seed}",
    )
    return run, Checkpoint(
        words=fed.vocabulary.words if fed.vocabulary else None,
        sizes=fed.sizes,
        parameters=sum(x.numel() for x in model.parameters()),
    )


@dataclass(frozen=True, kw_only=True)
class _Fed:
    """What a training is given."""

    train: SplitInputs | PhraseInputs
    validate: Callable[[nn.Module], dict[str, float]]
    sizes: Sizes
    vocabulary: Vocabulary | Dictionary | None = None


def _retrieval(
    params: Params,
    cell: Cell,
    takes: Inputs,
    start: Checkpoint | None,
    min_count: int,
    device: torch.device,
) -> _Fed:
    """Images and captions."""
    data = retrieval_inputs.read_data(cell)
    if start:
        vocabulary = retrieval_inputs.vocabulary_from(takes, start.words)
    else:
        vocabulary = retrieval_inputs.vocabulary_for(data, cell, takes, min_count)
    train, validation = (
        split_inputs(data, cell, takes, name, vocabulary, device) for name in ("train", "val")
    )
    classes = _classes(data, cell, takes)
    train = train.with_classes(classes)
    validation = validation.first_images(cell.validation_images)
    ways = data.card["ways"]

    def validate(model: nn.Module) -> dict[str, float]:
        scores = scoring.score(model, validation, quiet=True).matrix
        return selection.retrieval_recalls(scores, validation.relevant, ways)

    return _Fed(
        train=train,
        validate=validate,
        sizes=Sizes(
            image=_image_size(data, cell, takes, train),
            text=len(vocabulary) if vocabulary else train.captions.values.shape[1],
            classes=int(classes.max()) + 1,
        ),
        vocabulary=vocabulary,
    )


def _localisation(params: Params, cell: Cell, device: torch.device) -> _Fed:
    """Phrases and the proposals of their images."""
    data = retrieval_inputs.read_data(cell)
    train, validation = (phrase_inputs(data, cell, name, device) for name in ("train", "val"))
    validation = validation.first_images(cell.validation_images)

    def validate(model: nn.Module) -> dict[str, float]:
        scores = localisation.score_proposals(model, validation)
        return selection.localisation_recalls(scores, validation.overlaps, localisation.CORRECT)

    sizes = Sizes(image=train.proposals.shape[-1], text=train.vectors.shape[-1])
    return _Fed(train=train, validate=validate, sizes=sizes)


def _model(
    method: ModuleType,
    config: object,
    takes: Inputs,
    sizes: Sizes,
    cell: Cell,
    vocabulary: Vocabulary | Dictionary | None,
) -> nn.Module:
    """The method's model with the pretrained parts it asks for."""
    parts = {}
    if takes.word_vectors:
        parts["word_vectors"] = retrieval_inputs.word_vectors(cell, vocabulary)
    if takes.image == "pixels":
        parts["image_network"] = retrieval_inputs.image_network(cell)
    return method.Model(config, sizes, **parts)


def _load(model: nn.Module, start: Checkpoint, cell: Cell) -> None:
    """Fill in what the checkpoint has. Whole parts may be new, as the image network of stage II,
    or gone, as a classifier that its loss has no use for."""
    own, given = _parts(model.state_dict()), _parts(start.state)
    shared = [part for part in own if part in given]
    wrong = [part for part in shared if own[part] != given[part]]
    if wrong or not shared:
        part = wrong[0] if wrong else "any part"
        raise NotApplicableError(
            f"{cell.start}: expected weights like those of {cell.preset}, found others in {part}; "
            f"give both presets the same sizes in the season's options"
        )
    model.load_state_dict(start.state, strict=False)


def _parts(state: dict) -> dict[str, dict]:
    """Shapes of the tensors of each part of a model."""
    found: dict[str, dict] = {}
    for name, value in state.items():
        found.setdefault(name.split(".")[0], {})[name] = value.shape
    return found


def _image_size(data: Prepared, cell: Cell, takes: Inputs, train: SplitInputs) -> int:
    if takes.image == "pixels":
        return retrieval_inputs.pooled_features(data, cell, "train").shape[1]
    return train.images.shape[-1]


def _classes(data: Prepared, cell: Cell, takes: Inputs) -> np.ndarray:
    """Class of each training image: its group, or its cluster."""
    groups = data.split("train").group_of_image
    if not takes.clusters:
        return groups
    count = round(takes.clusters * (int(groups.max()) + 1))
    return cluster(retrieval_inputs.pooled_features(data, cell, "train"), count, cell.seed)


def _check_siblings(
    cell: Cell, phases: list[methods.Phase], train: SplitInputs | PhraseInputs
) -> None:
    """Neighbourhood sampling needs several captions of an image, or phrases of a chain."""
    most = int(np.bincount(train.owners).max())
    for phase in phases:
        if phase.captions_per_image > max(most, 1):
            raise NotApplicableError(
                f"{cell.dataset}: neighbourhood sampling expects {phase.captions_per_image} "
                f"captions of an image, found {most} at most"
            )


def _identity(params: Params, cell: Cell, sizes: Sizes) -> str:
    """Names what a scratch folder is a training of; another option or other features, another
    folder."""
    folders = [folder for folder in (cell.images, cell.texts, cell.words) if folder]
    facts = [
        cell.model_dump(),
        [sha256(Path("data/prepared") / cell.dataset / name) for name in TABLES],
        vars(sizes),
        [read_json(Path(folder) / "card.json") for folder in folders],
        sha256(Path(cell.start)) if cell.start else None,
        cell.validation_images,
        cell.precision,
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
