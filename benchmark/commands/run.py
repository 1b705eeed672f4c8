"""Play one cell outside of DVC, from raw data to its metrics.

Its record goes to results/run/, its metrics to standard output. The dataset is used as the active
season sets it, if it does; else with its defaults.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import yaml

from benchmark.commands.metric_lines import print_metrics
from benchmark.core.errors import UserError, checked
from benchmark.core.files import BAD_YAML, read_json, sha256
from benchmark.core.locks import alone, lock_of
from benchmark.core.records import read_record
from benchmark.core.suggestions import suggested
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import ROOT
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.data.raw_state import is_changed
from benchmark.encode import drawn_pretraining
from benchmark.encode.__main__ import encode
from benchmark.encoders import drawn_cnn
from benchmark.evaluate.__main__ import evaluate_cell
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.season import networks
from benchmark.season.parameter_files import PARAMS, active_season, placed, read_local
from benchmark.season.parameters import Cell, DatasetSettings, FeatureSet, Fusion, Option, Params
from benchmark.season.presets import Preset, needs, own_presets, presets
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season, read_season, season_names
from benchmark.train.__main__ import train_cell

NAME = "run"  # folder of results/


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", nargs="?", help="see: python -m benchmark list presets")
    parser.add_argument("--method", help="a method, or the path of your own .py file, as it is")
    parser.add_argument("--dataset", default="shapes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", type=Path, help="folder that holds the raw files already")
    parser.add_argument("--weights-dir", help="folder of pretrained networks and word vectors")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a hyper-parameter of the method; may be given again",
    )
    parser.add_argument("--json", action="store_true", help="print the whole record")


def main(arguments: argparse.Namespace) -> int:
    known = chosen(arguments.preset, arguments.method)
    name = Path(arguments.method).stem if arguments.method else arguments.preset
    local = read_local()
    if arguments.weights_dir:
        local = local.model_copy(update={"weights_dir": arguments.weights_dir})
    params = placed(resolve(NAME, _season(arguments, name, known), known), local)
    played = [*params.fusions.values(), *params.cells.values()]
    cell = next(cell for cell in played if cell.preset == name)  # not what it needs
    with alone(lock_of(f"{cell.folder}.run"), f"run {name}"):  # options have no folder of their own
        play(params, arguments.dataset, arguments.source)
        record = read_record(Path(cell.folder))
    if arguments.json:
        print(json.dumps(record.model_dump(mode="json"), indent=2))
    else:
        print(f"{cell.folder}/record.json: {record.status} {record.reason}".rstrip())
        print_metrics(record.metrics)
    return 1 if record.status == "failed" else 0


def chosen(preset: str | None, method: str | None) -> dict[str, tuple[str, Preset]]:
    """The presets a run may use: all of methods/, or a method file with its defaults."""
    if (preset is None) == (method is None):
        raise UserError("run", "either a preset or --method", "both or neither", "name one of them")
    if method is None:
        return presets()
    if method.endswith(".py"):
        return own_presets({Path(method).stem: method})
    return {method: (method, Preset(title=f"{method}, defaults"))}


def play(params: Params, dataset: str, source: Path | None) -> None:
    """Every step of the pipeline that is not done yet, then training and evaluation; each says on
    stderr what it is."""
    raw = raw_dataset(params, dataset)
    if is_changed(raw, (source or raw.origin).expanduser()) or _prepared_otherwise(raw):
        _say(f"fetch {dataset}")
        fetch(params, dataset, source)
    if _prepared_otherwise(raw):
        for line in prepare(params, dataset):
            _say(line)
        for encoding in params.feature_sets.values():  # of what was prepared before
            (Path(encoding.folder) / "card.json").unlink(missing_ok=True)  # half a folder is none
            shutil.rmtree(encoding.folder, ignore_errors=True)
    for encoding in params.feature_sets.values():
        if _encoded_otherwise(encoding):
            _pretrain_if_needed(encoding)
            _say(f"encode {Path(encoding.folder).relative_to('data/features')}")
            encode(params, encoding)
    for cell in params.cells.values():
        _say(f"train {cell.dataset}/{cell.preset} {cell.seed}")
        train_cell(params, cell)
        _evaluate(params, cell)
    for fusion in params.fusions.values():
        _evaluate(params, fusion)


def _evaluate(params: Params, cell: Cell | Fusion) -> None:
    _say(f"evaluate {cell.dataset}/{cell.preset} {cell.seed}")
    evaluate_cell(params, cell)
    record = read_record(Path(cell.folder))
    if record.status != "ok":
        _say(f"{cell.preset}: {record.status.replace('_', ' ')}: {record.reason}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _prepared_otherwise(raw: RawDataset) -> bool:
    """Whether there is nothing prepared, or from other options or other raw files."""
    card = ROOT / raw.name / "card.json"
    wanted = {"options": raw.options, "reader": raw.reader}
    if raw.manifest.is_file():
        wanted["manifest"] = sha256(raw.manifest)
    return not card.is_file() or any(read_json(card)[key] != wanted[key] for key in wanted)


def _pretrain_if_needed(encoding: FeatureSet) -> None:
    settings = encoding.image or encoding.proposals
    if settings and settings.network == networks.DRAWN and not drawn_cnn.WEIGHTS.is_file():
        _say(f"pretrain {networks.DRAWN}, once")
        drawn_pretraining.write_weights()


def _encoded_otherwise(encoding: FeatureSet) -> bool:
    """Whether there are no such features, or features of other settings or other tables in a
    folder so named."""
    card = Path(encoding.folder) / "card.json"
    if not card.is_file():
        return True
    facts, prepared = read_json(card), prepared_tables.read(encoding.dataset)
    settings = encoding.image or encoding.words or encoding.sentence or encoding.proposals
    is_other = facts.get("prepared_sha256") != prepared.sha256
    return is_other or facts["settings"] != settings.model_dump()


def _season(
    arguments: argparse.Namespace, name: str, known: dict[str, tuple[str, Preset]]
) -> Season:
    """A season of one preset, and of those that it needs."""
    if name not in known:
        raise UserError(
            f"preset {name!r}",
            f"one of {', '.join(sorted(known))}",
            f"no such preset: {suggested(name, known)}",
            "see: python -m benchmark list presets",
        )
    played = needs(name, known)
    options = dict(map(option, arguments.option))
    trained = [preset for preset in played if not known[preset][1].fuse]
    season = {
        "title": f"{name} on {arguments.dataset}",
        "datasets": {arguments.dataset: _settings(arguments.dataset)},
        "presets": played,
        "seeds": [arguments.seed],
        "options": dict.fromkeys(trained, options) if options else {},
    }
    return checked(Season, season, "run")


def _settings(dataset: str) -> DatasetSettings:
    """As the active season has the dataset, else as the first ready-made one that does."""
    active = [active_season()] if PARAMS.is_file() else []
    for season in map(read_season, active + season_names()):
        if dataset in season.datasets:
            return season.datasets[dataset].model_copy(update={"presets": ["*"]})
    return DatasetSettings()


def option(text: str) -> tuple[str, Option]:
    """KEY=VALUE of the command line. Raises UserError for anything else."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError("--option", "KEY=VALUE", repr(text), "name an option and its value")
    try:
        return key, yaml.safe_load(value)
    except BAD_YAML as error:
        expected, found = "a number, true, false or a text", repr(value)
        raise UserError(f"--option {key}", expected, found, "correct it") from error
