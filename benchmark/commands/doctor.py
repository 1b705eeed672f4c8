"""Tell what this machine has for the active season, what is missing and where to get it, and what
the season will cost."""

import argparse
import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import torch

from benchmark import encoders
from benchmark.commands.estimates import estimate
from benchmark.core.errors import UserError
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.encoders import faster_rcnn
from benchmark.fetch.checklist import checklist, downloads, marked
from benchmark.season.parameters import PARAMS, FeatureSet, Params, read_params
from datasets import DataError

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "gensim", "dvc")
BOXES = (".npz", ".mat")  # suffixes of files of boxes
GROUPS = ("datasets", "networks", "files")  # what can be missing


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def main(arguments: argparse.Namespace) -> None:
    """Print the findings; something missing is a `UserError`, so that scripts can tell."""
    params = read_params()
    found = {"environment": _environment(), "season": _season(params)}
    found["datasets"] = {name: _dataset(params, name) for name in params.datasets}
    found["networks"] = _networks(params)
    found["files"] = {path: _file(path) for path in _files(params)} | _boxes(params)
    missing = {group: _missing(found[group]) for group in GROUPS}
    found["estimates"] = estimate(params, missing["datasets"])
    print(json.dumps(found, indent=2) if arguments.json else _text(found))
    names = [name for group in GROUPS for name in missing[group]]
    if names:
        raise UserError(f"missing: {', '.join(names)}; see above what to do")


def _missing(facts: dict[str, dict]) -> list[str]:
    return [name for name, fact in facts.items() if not fact["present"]]


def _environment() -> dict:
    cuda = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "threads": torch.get_num_threads(),
        "free_disk_gib": round(shutil.disk_usage(".").free / 2**30, 1),
        "packages": {name: version(name) for name in PACKAGES},
    }


def _season(params: Params) -> dict:
    return {
        "name": params.season,
        "file": str(PARAMS),
        "trainings": len(params.cells),
        "fusions": len(params.fusions),
    }


def _dataset(params: Params, name: str) -> dict:
    dataset = raw_dataset(params, name)
    raw = _raw(dataset)
    try:
        files = dataset.module.inventory(raw, dataset.reader_options)
    except DataError as error:
        return _absent(dataset, str(error))
    lost = [path for path in files if not path.is_file()]
    if lost:
        return _absent(dataset, f"{lost[0]}: not found; {len(lost)} of {len(files)} are missing")
    return {"present": True, "note": f"{len(files)} files in {raw}" if files else "drawn by code"}


def _raw(dataset: RawDataset) -> Path:
    """Where the raw files are: the folder that fetch links, if the season names one."""
    return Path(dataset.source).expanduser() if dataset.source else dataset.folder


def _absent(dataset: RawDataset, reason: str) -> dict:
    """What is there, what is not, and where it comes from."""
    raw, card = _raw(dataset), dataset.card
    is_own = dataset.source or dataset.folder.is_symlink()  # where fetch writes nothing
    return {
        "present": False,
        "note": reason,
        "form": card.form,
        "downloads": [] if is_own else [remote.name for remote in downloads(card, raw)],
        "checklist": marked(checklist(card, raw)),
        "raw_gib": card.raw_gib,
    }


def _networks(params: Params) -> dict[str, dict]:
    """By dataset and network: every network that sees pictures, or its features that are imported.
    What one of several feature_sets lacks is missing."""
    found = {}
    for encoding in params.feature_sets.values():
        for network, seer in _seers(encoding):
            key = f"{encoding.dataset} {network}"
            if key not in found or found[key]["present"]:
                found[key] = _network(params, seer, network)
    return found


def _seers(encoding: FeatureSet) -> list[tuple[str, FeatureSet]]:
    """The networks of an encoding, each with the encoding as its module would have it."""
    settings = encoding.image or encoding.proposals
    if settings is None:
        return []
    found = [(settings.network, encoding)]
    if encoding.proposals and settings.how == "rpn":
        detector = encoding.model_copy(update={"encoder": encoders.DETECTORS})
        found.append((faster_rcnn.NETWORKS[0], detector))
    return found


def _network(params: Params, encoding: FeatureSet, network: str) -> dict:
    if _is_encoded(encoding):
        return {"present": True, "note": f"features in {encoding.folder}"}
    if encoding.image and encoding.image.features:
        return _imported(_raw(raw_dataset(params, encoding.dataset)) / encoding.image.features)
    module = encoders.load(encoding.encoder)
    folder = Path(params.weights_dir) if params.weights_dir else None
    try:
        return {"present": True, "note": module.whereabouts(network, folder)}
    except UserError as error:
        return {"present": False, "note": str(error)}


def _is_encoded(encoding: FeatureSet) -> bool:
    return (Path(encoding.folder) / "card.json").is_file()


def _imported(path: Path) -> dict:
    if path.exists():
        return {"present": True, "note": f"features from {path}"}
    note = f"{path}: not found; expected features to import; place them there, or mend `features`"
    return {"present": False, "note": f"{note} in the season"}


def _boxes(params: Params) -> dict[str, dict]:
    """The folders of proposals that the season names, as far as they are needed still."""
    found = {}
    for encoding in params.feature_sets.values():
        settings = encoding.proposals
        if settings and settings.how == "file" and not _is_encoded(encoding):
            raw = _raw(raw_dataset(params, encoding.dataset))
            folder = raw / (settings.boxes or "(no `boxes` named)")
            found[str(folder)] = _box_folder(folder)
    return found


def _box_folder(folder: Path) -> dict:
    if any(path.suffix in BOXES for path in folder.glob("*")):
        return {"present": True, "note": "boxes of proposals"}
    note = "expected a folder of boxes, an .npz or .mat an image; place it there, or mend `boxes`"
    return {"present": False, "note": f"not found; {note} in the season"}


def _files(params: Params) -> list[str]:
    """Files of word vectors and weights of text encoders that the season names, as far as they
    are needed still."""
    needed = [
        encoding.words.vectors if encoding.words else encoding.sentence.weights
        for encoding in params.feature_sets.values()
        if (encoding.words or encoding.sentence) and not _is_encoded(encoding)
    ]
    return sorted({path for path in needed if path})


def _file(path: str) -> dict:
    if Path(path).is_file():
        return {"present": True, "note": "for text"}
    note = "not found; place it there, or in a folder and name that with: season NAME --weights-dir"
    return {"present": False, "note": note}


def _text(found: dict) -> str:
    environment = dict(found["environment"])
    packages = environment.pop("packages")
    lines = [f"{name:14} {value}" for name, value in environment.items()]
    lines += [f"{name:14} {value}" for name, value in packages.items()]
    lines += [f"season         {found['season']['name']}: {found['season']['trainings']} trainings"]
    for group in GROUPS:
        for name, facts in found[group].items():
            lines += _lines(name, facts)
    return "\n".join(lines + _costs(found["estimates"]))


def _lines(name: str, facts: dict) -> list[str]:
    mark = "ok" if facts["present"] else "MISSING"
    lines = [f"{name:14} {mark}: {facts['note']}"]
    if facts.get("form"):
        lines.append(f"  to be asked for at {facts['form']}")
    if facts.get("downloads"):
        lines.append(f"  fetch downloads {', '.join(facts['downloads'])}")
    return lines + [f"  {line}" for line in facts.get("checklist", [])]


def _costs(estimates: dict) -> list[str]:
    hours, disk = estimates["device_hours"], dict(estimates["disk_gib"])
    free, needed = disk.pop("free"), disk.pop("needed")
    parts = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in disk.items())
    too_little = ": TOO LITTLE" if needed > free else ""
    lines = [
        f"{'device hours':14} {hours['training']:g} of training, {hours['encoding']:g} of encoding "
        f"({estimates['kind']}: {estimates['assumed']})",
        f"{'disk':14} {needed:g} GiB more ({parts}), {free:g} GiB free{too_little} (estimated)",
    ]
    by_reason: dict[str, list[str]] = {}
    for key, reason in estimates["not_counted"].items():
        by_reason.setdefault(reason, []).append(key)
    return lines + [
        f"{'not counted':14} {', '.join(keys)}: {reason}" for reason, keys in by_reason.items()
    ]
