"""Say what this machine has for the active season, what is missing and where to get it,
how much disk the season needs, and how long its trainings took where they were run."""

import argparse
import shutil
from importlib.metadata import version
from pathlib import Path

from benchmark.commands.tasks import training_seconds
from benchmark.core import numerics
from benchmark.core.devices import fingerprint, kind, pick
from benchmark.core.errors import UserError
from benchmark.data import raw_files
from benchmark.features import faster_rcnn, transformer
from benchmark.features import load as load_encoder
from benchmark.season.parameter_files import check_project, read_params
from benchmark.season.parameters import DETECTORS, TRANSFORMER, FeatureSet, Params

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "gensim", "dvc")
GIB = 2**30
CELL_GIB = 0.05  # weights and results of a cell, about


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(arguments: argparse.Namespace) -> None:
    """Print the findings; something missing is a `UserError`, so that scripts see
    it."""
    check_project()
    params = read_params()
    print(f"device         {kind(pick(params.device))}")
    print(f"numerics       {numerics.current().mode}, fingerprint {fingerprint()}")
    print(f"packages       {', '.join(f'{name} {version(name)}' for name in PACKAGES)}")
    print(
        f"season         {params.season}: {len(params.cells)} trainings; {costs(params)}"
    )
    missing = []
    for name in params.datasets:
        dataset = raw_files.raw_dataset(params, name)
        state = dataset_lacks(dataset)
        if state:
            missing.append(name)
        elif raw_files.is_changed(dataset, dataset.origin):
            is_there = dataset.folder.is_dir()
            state = "changed since it was fetched" if is_there else "not fetched yet"
            state += f"; {raw_files.fetch_advice(dataset)}"
        else:
            state = f"ok, {dataset.release}" if dataset.release else "ok"
        print(f"{name:14} {state}")
    for key, features in params.feature_sets.items():
        if not (Path(features.folder) / "card.json").is_file():
            reason = features_lack(params, features)
            missing += [key] if reason else []
            print(f"{key:14} {reason or 'ok'}")
    if missing:
        found, do = (
            f"missing: {', '.join(missing)}",
            "get what the lines marked MISSING name",
        )
        raise UserError(f"season {params.season}", "all that it needs", found, do)


def costs(params: Params) -> str:
    """Disk and hours of the season. Trainings are timed by their committed costs."""
    timed = training_seconds(params).values()
    raw = sum(
        raw_files.raw_dataset(params, name).card.raw_gib for name in params.datasets
    )
    needed = 2 * raw + CELL_GIB * len(params.everything)
    free = shutil.disk_usage(".").free / GIB
    known = (
        f"{len(timed)} of them took {sum(timed) / 3600:.1f} hours where they were run"
    )
    return f"{known}; about {needed:.1f} GiB of disk, {free:.1f} free"


def dataset_lacks(dataset: raw_files.RawDataset) -> str:
    """Which raw files are missing, and where they come from, in lines; "" if all are
    there."""
    raw, card = dataset.origin, dataset.card
    try:
        files = dataset.module.inventory(raw, dataset.reader_options)
        lost = [path for path in files if not path.is_file()]
        reason = (
            f"{lost[0]}: not found; {len(lost)} of {len(files)} are" if lost else ""
        )
    except UserError as error:
        reason = str(error)
    if not reason:
        return ""
    is_own = dataset.source or dataset.folder.is_symlink()  # where fetch writes nothing
    names = [] if is_own else [remote.name for remote in raw_files.downloads(card, raw)]
    lines = [f"MISSING: {reason}"]
    lines += [f"ask for it at {card.form}"] if card.form else []
    lines += [f"fetch downloads {', '.join(names)}"] if names else []
    return "\n  ".join(lines + raw_files.checklist(card, raw))


def features_lack(params: Params, features: FeatureSet) -> str:
    """Which file an encoding needs and lacks, and where it is to be put; "" if none."""
    raw = raw_files.raw_dataset(params, features.dataset).origin
    paths = (
        [raw / features.image.features]
        if features.image and features.image.features
        else []
    )
    if features.proposals and features.proposals.how == "file":
        paths = [raw / features.proposals.boxes]
    paths += (
        [Path(features.words.vectors)]
        if features.words and features.words.vectors
        else []
    )
    if features.sentence and features.sentence.weights:
        paths = [Path(features.sentence.weights)]
    if lost := [path for path in paths if not path.exists()]:
        folder = (
            "place it there, or name its folder: rematch season NAME --weights-dir DIR"
        )
        return f"MISSING: {lost[0]}: not found; {folder}"
    networks = []
    if settings := features.proposals or (None if paths else features.image):
        networks = [(features.encoder, settings.network)]
    if (
        features.proposals
        and features.proposals.how == "rpn"
        and features.encoder != DETECTORS
    ):
        networks.append((DETECTORS, faster_rcnn.NETWORKS[0]))
    weights = Path(params.weights_dir) if params.weights_dir else None
    try:
        if features.encoder == TRANSFORMER:
            transformer.whereabouts(features.sentence)
        for encoder, network in networks:
            load_encoder(encoder).whereabouts(network, weights)
    except UserError as error:
        return f"MISSING: {error}"
    return ""
