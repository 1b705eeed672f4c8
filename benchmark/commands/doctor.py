"""Say what this machine has for the active season, what is missing and where to get it,
how much disk the season needs, and how long its trainings took."""

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
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    print(f"device         {kind(pick(params.device))}")
    print(f"numerics       {numerics.current().mode}, fingerprint {fingerprint()}")
    print(f"packages       {', '.join(packages)}")
    print(f"season         {params.season}: {costs(params)}")
    missing = []
    for name in params.datasets:
        dataset = raw_files.raw_dataset(params, name)
        lines = dataset_lacks(dataset)
        if lines:
            missing.append(name)
        print(f"{name:14} {lines or state_of(dataset)}")
    for key, feature_set in params.feature_sets.items():
        if (Path(feature_set.folder) / "card.json").is_file():
            continue
        line = features_lack(params, feature_set)
        if line:
            missing.append(key)
        print(f"{key:14} {line or 'ok'}")
    if missing:
        found = f"missing: {', '.join(missing)}"
        advice = "get what the lines marked MISSING name"
        raise UserError(f"season {params.season}", "all that it needs", found, advice)


def costs(params: Params) -> str:
    """Trainings, their hours by committed costs, and disk."""
    timed = training_seconds(params)
    count = f"{len(params.cells)} trainings"
    if timed:
        hours = sum(timed.values()) / 3600
        machine = "on the machine that ran them"
        known = f"{count}; {len(timed)} of them took {hours:.1f} hours {machine}"
    else:
        known = f"{count}, none timed yet"
    raw = 0.0
    for name in params.datasets:
        raw += raw_files.raw_dataset(params, name).card.raw_gib
    needed = 2 * raw + CELL_GIB * len(params.everything)
    free = shutil.disk_usage(".").free / GIB
    return f"{known}; needs about {needed:.1f} GiB of disk, {free:.1f} GiB free"


def state_of(dataset: raw_files.RawDataset) -> str:
    """Of raw files that are all there: whether fetch knows them as they are."""
    if not raw_files.is_changed(dataset, dataset.origin):
        return f"ok, {dataset.release}" if dataset.release else "ok"
    is_there = dataset.folder.is_dir()
    state = "changed since it was fetched" if is_there else "not fetched yet"
    return f"{state}; {raw_files.fetch_advice(dataset)}"


def dataset_lacks(dataset: raw_files.RawDataset) -> str:
    """Which raw files are missing, and where they come from, in lines; "" if all are
    there."""
    raw, card = dataset.origin, dataset.card
    try:
        files = dataset.module.inventory(raw, dataset.reader_options)
    except UserError as error:
        reason = str(error)
    else:
        lost = [path for path in files if not path.is_file()]
        if not lost:
            return ""
        count = f"{len(lost)} of {len(files)}"
        if len(lost) == len(files):
            count = f"all {len(files)}"
        reason = f"{lost[0]}: not found ({count} files missing)"
    lines = [f"MISSING: {reason}"]
    if card.form:
        lines.append(f"ask for it at {card.form}")
    is_own = dataset.source or dataset.folder.is_symlink()  # where fetch writes nothing
    if not is_own:
        names = [remote.name for remote in raw_files.downloads(card, raw)]
        if names:
            lines.append(f"fetch downloads {', '.join(names)}")
    lines += raw_files.checklist(card, raw)
    return "\n  ".join(lines)


def features_lack(params: Params, features: FeatureSet) -> str:
    """Which file an encoding needs and lacks, and where it is to be put; "" if none."""
    paths = files_of(params, features)
    for path in paths:
        if not path.exists():
            option = f"rematch season {params.season} --weights-dir DIR"
            advice = f"put it there, or name its folder: {option}"
            return f"MISSING: {path}: not found; {advice}"
    weights = Path(params.weights_dir) if params.weights_dir else None
    try:
        if features.encoder == TRANSFORMER:
            transformer.whereabouts(features.sentence)
        for encoder, network in networks_of(features):
            load_encoder(encoder).whereabouts(network, weights)
    except UserError as error:
        return f"MISSING: {error}"
    return ""


def files_of(params: Params, features: FeatureSet) -> list[Path]:
    """The files of others that an encoding reads, if it reads any."""
    raw = raw_files.raw_dataset(params, features.dataset).origin
    if features.image and features.image.features:
        return [raw / features.image.features]
    if features.proposals and features.proposals.how == "file":
        return [raw / features.proposals.boxes]
    if features.words and features.words.vectors:
        return [Path(features.words.vectors)]
    if features.sentence and features.sentence.weights:
        return [Path(features.sentence.weights)]
    return []


def networks_of(features: FeatureSet) -> list[tuple[str, str]]:
    """The encoder and the name of each network that an encoding runs."""
    networks = []
    settings = features.proposals or features.image
    if settings and not (features.image and features.image.features):
        networks.append((features.encoder, settings.network))
    proposes = features.proposals and features.proposals.how == "rpn"
    if proposes and features.encoder != DETECTORS:
        networks.append((DETECTORS, faster_rcnn.NETWORKS[0]))
    return networks
