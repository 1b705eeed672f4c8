"""Say what this machine has for a season, what is missing and where to get it,
how much disk the season still needs, and how long its trainings took.

    rematch doctor flickr8k             what is missing
    rematch doctor papers --estimate    what it would cost, from a minute or two of timing

Weights that have to be downloaded count as missing if their address does not answer.
The exit status is 2 if anything is missing, disk space included. Torch takes seconds to
load: its libraries are only looked at, and the GPU is told by CUDA's driver, unless
--estimate loads it.
"""

import argparse
import ctypes
import re
import shutil
from dataclasses import dataclass
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path

from benchmark.commands.tasks import training_seconds
from benchmark.core import numerics
from benchmark.core.command_line import add_season_first
from benchmark.core.errors import UserError, listed
from benchmark.core.names import whole_of
from benchmark.data import prepared_tables, raw_files
from benchmark.data.results import has_record
from benchmark.features import load as load_encoder
from benchmark.features import transformer, weight_files
from benchmark.season.parameter_files import check_project, read_and_note
from benchmark.season.parameters import (
    DETECTORS,
    DRAWN,
    TRANSFORMER,
    FeatureSet,
    Params,
)

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "scikit-learn", "gensim", "dvc")
OF_TORCH = ("torch", "torchvision")
LIBRARY = re.compile(r"^[^,]+\.(?:so|dylib)\b[^,]*", re.MULTILINE)  # of RECORD
GIB = 2**30
MOST_LACKS = 4  # that the last line names; each has its own line above
CELL_GIB = 0.05  # weights and results of a cell, about


@dataclass(frozen=True)
class Finding:
    """What is said of one thing that a season needs."""

    text: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"MISSING: {self.text}" if self.is_missing else self.text


@dataclass(frozen=True)
class Disk:
    """What a season still writes here, and the room for it, in GiB."""

    needed: float
    free: float

    def __str__(self) -> str:
        return f"about {self.needed:.1f} GiB still needed, {self.free:.1f} GiB free"

    @property
    def is_short(self) -> bool:
        return self.needed > self.free


def configure(parser: argparse.ArgumentParser) -> None:
    add_season_first(parser)
    timing = "time a step and an encoding of each kind here, and tell hours by preset"
    parser.add_argument("--estimate", action="store_true", help=timing)


def main(arguments: argparse.Namespace) -> None:
    """Print the findings; something missing is a `UserError`, so that scripts see
    it."""
    check_project()
    params = read_and_note(arguments.season)
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    if arguments.estimate:
        device, fingerprint = loaded_facts(params.device)
    else:
        device = device_told(params.device)
        fingerprint = "shown by --estimate, which loads torch"
    print(f"device         {device}")
    print(f"numerics       {numerics.current().mode}, fingerprint {fingerprint}")
    print(f"packages       {', '.join(packages)}")
    print(f"season         {params.season}: {costs(params)}")
    disk = disk_of(params)
    print(f"disk           {Finding(str(disk), disk.is_short)}")
    findings = told_once(findings_of(params))
    for name, finding in findings.items():
        print(f"{name:14} {finding}")
    if arguments.estimate:
        # libraries of all encoders, for seconds that others need not wait
        from benchmark.commands import estimates

        print("\n".join(estimates.lines(estimates.estimate(params), device)))
    lacks = [name for name, finding in findings.items() if finding.is_missing]
    advice = "get what the lines marked MISSING name"
    if disk.is_short:
        lacks.append(f"disk ({disk})")
        advice = "make room, or choose another disk" if len(lacks) == 1 else advice
    if lacks:
        found = f"missing: {listed(lacks, MOST_LACKS)}"
        raise UserError(f"season {params.season}", "all that it needs", found, advice)


def costs(params: Params) -> str:
    """Trainings, and their hours by committed costs."""
    timed = training_seconds(params)
    count = f"{len(params.cells)} trainings"
    if timed:
        hours = sum(timed.values()) / 3600
        machine = "on the machine that ran them"
        return f"{count}; {len(timed)} of them took {hours:.1f} hours {machine}"
    return f"{count}, none timed yet; --estimate says how many hours on this machine"


def disk_of(params: Params) -> Disk:
    """The disk for raw files and cells that are not here yet, and as much as the raw
    files again for the tables and features of a dataset that is not prepared."""
    needed = 0.0
    for name in params.datasets:
        dataset = raw_files.raw_dataset(params, name)
        if not dataset.source and not dataset.folder.is_dir():
            needed += dataset.card.raw_gib
        if not prepared_tables.is_here(name):
            needed += dataset.card.raw_gib
    for cell in params.everything.values():
        if not has_record(Path(cell.folder)):
            needed += CELL_GIB
    return Disk(needed, shutil.disk_usage(".").free / GIB)


def findings_of(params: Params) -> dict[str, Finding]:
    """What is found of torch where it lacks a library, of the folder of weights, of each
    dataset, and of each encoding that was not made yet and is not that of a whole
    dataset."""
    findings = {}
    lost = lost_libraries()
    if lost:
        advice = "run: pip install --force-reinstall torch torchvision"
        text = f"{listed(lost, MOST_LACKS)}: not found; {advice}"
        findings["torch"] = Finding(text, is_missing=True)
    if params.weights_dir and not Path(params.weights_dir).is_dir():
        advice = f"name another: rematch season {params.season} --weights-dir DIR"
        text = f"{params.weights_dir}: no such folder; {advice}"
        findings["--weights-dir"] = Finding(text, is_missing=True)
    for name in params.datasets:
        findings[name] = dataset_finding(raw_files.raw_dataset(params, name), params)
    names = {each.folder: name for name, each in params.feature_sets.items()}
    for key, feature_set in params.feature_sets.items():
        is_made = (Path(feature_set.folder) / "card.json").is_file()
        if is_made or feature_set.is_taken:
            continue
        source = names.get(feature_set.source, "")  # of vectors of words, for example
        finding = features_finding(params, feature_set)
        # what its source lacks is lacking here, too
        if source in findings and findings[source].is_missing:
            lines = [findings[source].text]
            if finding.is_missing:
                lines.append(finding.text)
            finding = Finding("\n  ".join(lines), is_missing=True)
        findings[key] = finding
    return findings


def state_of(dataset: raw_files.RawDataset) -> str:
    """Of raw files that are all there: whether fetch knows them as they are."""
    if not raw_files.is_changed(dataset, dataset.origin):
        return f"ok, {dataset.release}" if dataset.release else "ok"
    is_there = dataset.folder.is_dir()
    state = "changed since it was fetched" if is_there else "not fetched yet"
    return f"{state}; {raw_files.fetch_advice(dataset)}"


def told_once(findings: dict[str, Finding]) -> dict[str, Finding]:
    """The same with one entry for what many lack: a file of words may be missing for
    many encodings."""
    lacking: dict[Finding, list[str]] = {}
    for name, finding in findings.items():
        if finding.is_missing:
            lacking.setdefault(finding, []).append(name)
    told = {}
    for name, finding in findings.items():
        names = lacking.get(finding, [name])
        if name == names[0]:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            told[name + more] = finding
    return told


def dataset_finding(dataset: raw_files.RawDataset, params: Params) -> Finding:
    """Which raw files are missing, and where they come from, in lines."""
    raw, card = dataset.origin, dataset.card
    if dataset.source and not raw.is_dir():
        command = f"rematch season {params.season} --source {dataset.name}=DIR"
        text = f"{raw}: no such folder; name another: {command}"
        return Finding(text, is_missing=True)
    try:
        files = dataset.module.inventory(raw, dataset.reader_options)
    except UserError as error:
        reason = str(error)
    else:
        lost = [path for path in files if not path.is_file()]
        if not lost:
            return Finding(state_of(dataset))
        count = f"{len(lost)} of {len(files)}"
        if len(lost) == len(files):
            count = f"all {len(files)}"
        reason = f"{lost[0]}: not found ({count} files missing)"
    lines = [reason]
    if card.form:
        lines.append(f"ask for it at {card.form}")
    is_own = dataset.source or dataset.folder.is_symlink()  # where fetch writes nothing
    if not is_own:
        names = [remote.name for remote in raw_files.downloads(card, raw)]
        if names:
            command = f"rematch fetch {dataset.name}"
            lines.append(f"or run: {command}, which downloads {', '.join(names)}")
    lines += raw_files.checklist(card, raw)
    return Finding("\n  ".join(lines), is_missing=True)


def features_finding(params: Params, features: FeatureSet) -> Finding:
    """Which file an encoding needs and lacks, and where it is to be put, or which
    weights will be downloaded."""
    raw = raw_files.raw_dataset(params, whole_of(features.dataset)).origin
    for path in files_of(params, features):
        if not path.exists():
            option = "--weights-dir DIR"
            if path.is_relative_to(raw):
                option = f"--source {features.dataset}=DIR"
            command = f"rematch season {params.season} {option}"
            advice = f"put it there, or name its folder: {command}"
            return Finding(f"{path}: not found; {advice}", is_missing=True)
        if path.is_file() and not path.stat().st_size:
            return Finding(f"{path}: an empty file; get it again", is_missing=True)
    weights = Path(params.weights_dir) if params.weights_dir else None
    try:
        if features.encoder == TRANSFORMER:
            transformer.whereabouts(features.sentence)
        for encoder, network in networks_of(features):
            found = weight_files.whereabouts_by_name(encoder, network, weights)
            if found is None:  # torch, which takes seconds
                found = load_encoder(encoder).whereabouts(network, weights)
            if found.url:
                return download_finding(params, found)
    except UserError as error:
        return Finding(str(error), is_missing=True)
    return Finding("ok")


def download_finding(params: Params, weights: weight_files.Weights) -> Finding:
    """Whether weights that are not here can be downloaded."""
    reason = weight_files.why_unreachable(weights.url)
    if not reason:
        return Finding(f"{weights.file}: will be downloaded from {weights.url}")
    option = f"rematch season {params.season} --weights-dir DIR"
    advice = f"place {weights.file} in a folder and name it: {option}"
    text = f"{weights.url}: no connection ({reason}); {advice}"
    return Finding(text, is_missing=True)


def files_of(params: Params, features: FeatureSet) -> list[Path]:
    """The files of others that an encoding reads, if it reads any."""
    raw = raw_files.raw_dataset(params, whole_of(features.dataset)).origin
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
    """The encoder and the name of each network with weights from elsewhere that an
    encoding runs."""
    networks = []
    settings = features.proposals or features.image
    is_run = settings and not (features.image and features.image.features)
    if is_run and features.encoder != DRAWN:  # which is pretrained here
        networks.append((features.encoder, settings.network))
    proposes = features.proposals and features.proposals.how == "rpn"
    if proposes and features.encoder != DETECTORS:
        networks.append((DETECTORS, weight_files.DETECTING[0]))
    return networks


# Torch --------------------------------------------------------------------------------


def loaded_facts(device: str) -> tuple[str, str]:
    """What torch computes on, and the fingerprint."""
    from benchmark.core import devices  # torch, which takes seconds

    return devices.kind(devices.pick(device)), devices.fingerprint()


def device_told(device: str) -> str:
    """What torch would compute on, by CUDA's driver; a device that is named, and may be
    refused, is left to torch."""
    if device == "cpu":
        return device
    if device == "auto":
        return next(iter(gpu_names()), "cpu")
    return loaded_facts(device)[0]


def gpu_names() -> list[str]:
    """The GPUs that CUDA's driver has for torch: none where torch is built without
    CUDA, or for a later one than the driver's."""
    built_for = cuda_of_torch()
    if not built_for:
        return []
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    known = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(known))
    if known.value // 1000 < built_for or driver.cuInit(0):
        return []
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for number in range(count.value):
        device = ctypes.c_int()
        driver.cuDeviceGet(ctypes.byref(device), number)
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return names


def cuda_of_torch() -> int:
    """The first number of the version of CUDA that torch is built for; 0: none."""
    path = Path(find_spec("torch").origin).with_name("version.py")
    text = path.read_text() if path.is_file() else ""
    built_for = re.search(r"^cuda\b.*'(\d+)\.", text, re.MULTILINE)
    return int(built_for[1]) if built_for else 0


def lost_libraries() -> list[str]:
    """The shared libraries of torch that were installed and are not there."""
    lost = []
    for package in OF_TORCH:
        installed = distribution(package)
        for name in LIBRARY.findall(installed.read_text("RECORD") or ""):
            if not Path(installed.locate_file(name)).is_file():
                lost.append(name)
    return lost
