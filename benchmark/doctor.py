"""Tell what this machine has for the active season, and what is missing and where to get it."""

import argparse
import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import torch

from benchmark import encoders
from benchmark.errors import UserError
from benchmark.params import PARAMS, Encoding, Params, read_params
from benchmark.raw import raw_dataset
from datasets import DataError

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "gensim", "dvc")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def main(arguments: argparse.Namespace) -> None:
    """Print the findings; something missing is a `UserError`, so that scripts can tell."""
    params = read_params()
    found = {"environment": _environment(), "season": _season(params)}
    found["datasets"] = {name: _dataset(params, name) for name in params.datasets}
    found["networks"] = {
        encoding.image.network: _network(params, encoding)
        for encoding in params.encodings.values()
        if encoding.image
    }
    print(json.dumps(found, indent=2) if arguments.json else _text(found))
    missing = [
        name
        for group in ("datasets", "networks")
        for name, facts in found[group].items()
        if not facts["present"]
    ]
    if missing:
        raise UserError(f"missing: {', '.join(missing)}; see above what to do")


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
    try:
        dataset = raw_dataset(params, name)
        files = dataset.inventory()
    except (DataError, UserError) as error:
        source = params.datasets[name].source
        if source and Path(source).is_dir():
            return {"present": True, "note": f"in {source}; fetch will link it"}
        return {"present": False, "note": str(error)}
    note = f"{len(files)} files" if files else "drawn by code, nothing to fetch"
    return {"present": True, "note": note}


def _network(params: Params, encoding: Encoding) -> dict:
    if (Path(encoding.folder) / "card.json").is_file():
        return {"present": True, "note": f"features in {encoding.folder}"}
    module = encoders.load(encoding.encoder)
    folder = Path(params.weights_dir) if params.weights_dir else None
    try:
        return {"present": True, "note": module.whereabouts(encoding.image.network, folder)}
    except UserError as error:
        return {"present": False, "note": str(error)}


def _text(found: dict) -> str:
    environment = dict(found["environment"])
    packages = environment.pop("packages")
    lines = [f"{name:14} {value}" for name, value in environment.items()]
    lines += [f"{name:14} {value}" for name, value in packages.items()]
    lines += [f"season         {found['season']['name']}: {found['season']['trainings']} trainings"]
    for group in ("datasets", "networks"):
        for name, facts in found[group].items():
            mark = "ok" if facts["present"] else "MISSING"
            lines.append(f"{name:14} {mark}: {facts['note']}")
    return "\n".join(lines)
