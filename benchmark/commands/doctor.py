"""Say what this machine has for the active season, what is missing and where to get it, how much
disk the season needs, and how long its trainings take here: two steps of each preset are timed."""

import argparse
import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import torch

from benchmark import encoders
from benchmark.commands.data_shapes import SeasonShapes, is_encoded
from benchmark.commands.disk_needs import disk_needs
from benchmark.commands.project_folder import season_here
from benchmark.commands.step_times import preset_times
from benchmark.core import numerics
from benchmark.core.devices import pick
from benchmark.core.errors import UserError
from benchmark.core.fingerprint import fingerprint, fingerprint_parts
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.data.raw_state import fetch_advice, is_changed, is_fetched
from benchmark.encoders import faster_rcnn
from benchmark.fetch.checklist import checklist, downloads, marked
from benchmark.season import networks
from benchmark.season.parameters import FeatureSet, Params
from benchmark.season.season_files import SEASON_FILE, SEASONS
from datasets import DataError

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "gensim", "dvc")
BOXES = (".npz", ".mat")  # suffixes of files of boxes
GROUPS = ("datasets", "networks", "files")  # what can be missing


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument(
        "--quick", action="store_true", help="do not time training steps, which can take minutes"
    )


def main(arguments: argparse.Namespace) -> None:
    """Print the findings; something missing is a `UserError`, so that scripts see it."""
    params = season_here(None)
    shapes = SeasonShapes(params)
    findings = {
        "environment": _environment(params),
        "season": _season(params),
        "datasets": {name: _dataset(params, name) for name in params.datasets},
        "networks": _networks(params),
        "files": {path: _file(path) for path in _files(params)} | _boxes(params),
    }
    missing = {group: _missing(findings[group]) for group in GROUPS}
    findings["disk"] = disk_needs(params, shapes, missing["datasets"])
    if not arguments.json:  # before the measuring, which may take minutes
        print(_text(findings), flush=True)
    if not arguments.quick:
        findings["training"] = training_times(params, shapes)
    if arguments.json:
        print(json.dumps(findings, indent=2))
    elif not arguments.quick:
        print("\n".join(training_lines(findings["training"])))
    names = [name for group in GROUPS for name in missing[group]]
    if names:
        raise UserError(
            f"season {params.season}",
            expected="all that it needs",
            found=f"missing: {', '.join(names)}",
            do="get what the lines marked MISSING name",
        )


def _missing(facts: dict[str, dict]) -> list[str]:
    return [name for name, fact in facts.items() if not fact["present"]]


def _environment(params: Params) -> dict:
    device = pick(params.device)
    return {
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "free_disk_gib": round(shutil.disk_usage(".").free / 2**30, 1),
        "numerics": f"{numerics.current().mode}, fingerprint {fingerprint()}",
        "kernels": fingerprint_parts(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def training_times(params: Params, shapes: SeasonShapes) -> dict:
    """Hours of the trainings that are not done yet, the fewest and the most, by preset."""
    started = perf_counter()
    presets = preset_times(params, shapes)
    hours = [row["hours"] for row in presets if "hours" in row]
    return {
        "measured": "two steps of each preset on this machine",
        "measuring_seconds": round(perf_counter() - started, 1),
        "hours": [sum(ends) for ends in zip(*hours, strict=True)] or [0.0, 0.0],
        "presets": presets,
    }


def _season(params: Params) -> dict:
    return {
        "name": params.season,
        "file": str(SEASONS / params.season / SEASON_FILE),
        "trainings": len(params.cells),
        "fusions": len(params.fusions),
    }


def _dataset(params: Params, name: str) -> dict:
    dataset = raw_dataset(params, name)
    raw = dataset.origin
    try:
        files = dataset.module.inventory(raw, dataset.reader_options)
    except DataError as error:
        return _absent(dataset, str(error))
    lost = [path for path in files if not path.is_file()]
    if lost:
        return _absent(dataset, f"{lost[0]}: not found; {len(lost)} of {len(files)} are missing")
    if not files:
        return {"present": True, "note": "drawn by code"}
    note = f"{len(files)} files in {raw}"
    if is_fetched(dataset) and is_changed(dataset, raw):
        note += f", changed since they were fetched; {fetch_advice(dataset)}"
    return {"present": True, "note": note}


def _absent(dataset: RawDataset, reason: str) -> dict:
    """What is there, what is not, and where it comes from."""
    raw, card = dataset.origin, dataset.card
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
    """By dataset and network: every network that encodes pictures, or its imported features.

    A network is missing if any of its feature sets lacks it.
    """
    facts: dict[str, dict] = {}
    for features in params.feature_sets.values():
        for network, user in _networks_of(features):
            key = f"{features.dataset} {network}"
            if key not in facts or facts[key]["present"]:
                facts[key] = _network(params, user, network)
    return facts


def _networks_of(features: FeatureSet) -> list[tuple[str, FeatureSet]]:
    """The networks of a feature set, each with the set as that network's module would have it."""
    settings = features.image or features.proposals
    if settings is None:
        return []
    users = [(settings.network, features)]
    if features.proposals and settings.how == "rpn":
        detector = features.model_copy(update={"encoder": networks.DETECTORS})
        users.append((faster_rcnn.NETWORKS[0], detector))
    return users


def _network(params: Params, features: FeatureSet, network: str) -> dict:
    if is_encoded(features):
        return {"present": True, "note": f"features in {features.folder}"}
    if features.image and features.image.features:
        return _imported(raw_dataset(params, features.dataset).origin / features.image.features)
    module = encoders.load(features.encoder)
    folder = Path(params.weights_dir) if params.weights_dir else None
    try:
        return {"present": True, "note": module.whereabouts(network, folder)}
    except UserError as error:
        return {"present": False, "note": str(error)}


def _imported(path: Path) -> dict:
    if path.exists():
        return {"present": True, "note": f"features from {path}"}
    note = "expected features to import, found nothing; place them there, or correct `features`"
    return {"present": False, "note": f"{path}: {note} in the season"}


def _boxes(params: Params) -> dict[str, dict]:
    """The folders of proposals that the season names, as far as they are still needed."""
    facts = {}
    for features in params.feature_sets.values():
        settings = features.proposals
        if settings and settings.how == "file" and not is_encoded(features):
            raw = raw_dataset(params, features.dataset).origin
            folder = raw / (settings.boxes or "(no `boxes` named)")
            facts[str(folder)] = _box_folder(folder)
    return facts


def _box_folder(folder: Path) -> dict:
    if any(path.suffix in BOXES for path in folder.glob("*")):
        return {"present": True, "note": "boxes of proposals"}
    note = "expected one .npz or .mat of boxes per image, found nothing; place them there, or"
    return {"present": False, "note": f"{note} correct `boxes` in the season"}


def _files(params: Params) -> list[str]:
    """Files of word vectors and of text encoders' weights that the season names, as far as they
    are still needed."""
    needed = [
        features.words.vectors if features.words else features.sentence.weights
        for features in params.feature_sets.values()
        if (features.words or features.sentence) and not is_encoded(features)
    ]
    return sorted({path for path in needed if path})


def _file(path: str) -> dict:
    if Path(path).is_file():
        return {"present": True, "note": "for text"}
    note = "not found; place it there, or in a folder and name that with: season NAME --weights-dir"
    return {"present": False, "note": note}


def _text(findings: dict) -> str:
    environment, season = dict(findings["environment"]), findings["season"]
    packages, kernels = environment.pop("packages"), environment.pop("kernels")
    lines = [f"{name:14} {value}" for name, value in environment.items()]
    lines += [f"  {name:22} {digest}" for name, digest in kernels.items()]
    lines += [f"{name:14} {value}" for name, value in packages.items()]
    lines += [f"season         {season['name']}: {season['trainings']} trainings"]
    for group in GROUPS:
        for name, facts in findings[group].items():
            lines += _lines(name, facts)
    return "\n".join(lines + _disk_lines(findings["disk"]))


def _lines(name: str, facts: dict) -> list[str]:
    mark = "ok" if facts["present"] else "MISSING"
    lines = [f"{name:14} {mark}: {facts['note']}"]
    if facts.get("form"):
        lines.append(f"  ask for it at {facts['form']}")
    if facts.get("downloads"):
        lines.append(f"  fetch downloads {', '.join(facts['downloads'])}")
    return lines + [f"  {line}" for line in facts.get("checklist", [])]


def _disk_lines(disk: dict) -> list[str]:
    kinds = dict(disk["gib"])
    free, needed = kinds.pop("free"), kinds.pop("needed")
    parts = ", ".join(f"{name.replace('_', ' ')} {gib:g}" for name, gib in kinds.items())
    too_little = ": TOO LITTLE" if needed > free else ""
    line = f"{needed:g} GiB more ({parts}), {free:g} GiB free{too_little} (estimated)"
    return [f"{'disk':14} {line}", *_unknown_lines("not counted", disk["unknown"])]


def training_lines(training: dict) -> list[str]:
    """The table of the presets, and in its first line their sum."""
    rows = [row for row in training["presets"] if "hours" in row]
    reasons = {_name(row): row["reason"] for row in training["presets"] if "reason" in row}
    lines = [
        f"{'training':14} {_span(training['hours'])}, encoding and evaluation not counted; "
        f"measured: {training['measured']}, in {training['measuring_seconds']:g} s"
    ]
    width = max((len(_name(row)) for row in rows), default=0)
    lines += [
        f"  {_name(row):{width}}  {row['trainings']} x {row['steps']} steps  {_span(row['hours'])}"
        for row in rows
    ]
    return lines + _unknown_lines("not measured", reasons)


def _name(row: dict) -> str:
    return f"{row['dataset']} {row['preset']}"


def _span(hours: list[float]) -> str:
    """The fewest and the most hours in a unit that fits them: "57 to 61 s"."""
    seconds = 3600 * hours[1]
    unit, factor = ("s", 3600) if seconds < 120 else ("min", 60) if seconds < 7200 else ("hours", 1)
    low, high = (f"{float(f'{factor * value:.2g}'):g}" for value in hours)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _unknown_lines(title: str, reasons: dict[str, str]) -> list[str]:
    """One line per reason, with the names that it holds for."""
    names_of: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names_of.setdefault(reason, []).append(name)
    return [f"{title:14} {', '.join(names)}: {reason}" for reason, names in names_of.items()]
