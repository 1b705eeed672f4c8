"""Run one cell outside of DVC, from raw data to its metrics.

Its files go to data/cells/run/, its metrics to standard output. The dataset is used as
the active season sets it, if it does; else with its defaults.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from benchmark.core.command_line import JSON, add_format, alone, lock_of
from benchmark.core.errors import UserError, checked, entry
from benchmark.core.files import json_text, read_json
from benchmark.core.names import folds_of, whole_of
from benchmark.core.records import RECORD, Record, read_record
from benchmark.data import prepared_tables, results
from benchmark.data.raw_files import is_changed, raw_dataset
from benchmark.encode import drawn_pretraining
from benchmark.encode.__main__ import encode
from benchmark.evaluate.__main__ import evaluate_cell
from benchmark.features import drawn_cnn
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.prepare.folds import facts_of, prepare_folds
from benchmark.scoring.metrics import METRICS, table_metrics
from benchmark.season import parameter_files as files
from benchmark.season import pipeline
from benchmark.season.parameters import (
    DRAWN,
    Cell,
    DatasetSettings,
    FeatureSet,
    Fusion,
    Option,
    Params,
    Season,
)
from benchmark.season.plugins import Preset, needs, own_presets, presets
from benchmark.season.resolving import resolve
from benchmark.season.stages import Kind, Stage, in_order
from benchmark.train.__main__ import train_cell

# numbers that YAML takes for texts unless they have a point and a sign: 1e-3
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
NAME = "run"  # folder of data/cells/
SHOWN = ("p2r_bound", "alpha", "rsum", "overlap_s")  # metrics, beside those of queries


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    preset = "a preset (see: rematch list presets), or your own .py file"
    add("preset", nargs="?", help=preset)
    method = "a method, or the path of your own .py file, with its defaults"
    add("--method", help=method)
    add("--dataset", default="shapes", help="default: shapes")
    add("--seed", type=int, default=0, help="default: 0")
    add("--source", type=Path, help="folder that already holds the raw files")
    add("--weights-dir", help="folder of pretrained networks and word vectors")
    options = {"action": "append", "default": [], "metavar": "KEY=VALUE"}
    add("--option", **options, help="set an option of the method; may be repeated")
    add_format(parser, "of what is printed; json: the whole record, and its costs")


def main(arguments: argparse.Namespace) -> int:
    if arguments.method is None and str(arguments.preset).endswith(".py"):
        arguments.preset, arguments.method = None, arguments.preset
    if (arguments.preset is None) == (arguments.method is None):
        raise UserError(
            "run",
            expected="a preset or --method",
            found="neither" if arguments.preset is None else "both",
            do="name one of them",
        )
    name = arguments.preset or Path(arguments.method).stem
    params = params_of(arguments, name)
    cell = next(cell for cell in params.everything.values() if cell.preset == name)
    # options have no folder of their own
    with alone(lock_of(f"{cell.folder}.run"), f"run {name}"):
        run(params)
        record = read_record(Path(cell.folder))
    if arguments.format == JSON:
        costs = results.read_cell_costs(Path(cell.costs), Path(cell.folder, RECORD))
        both = record.model_dump(mode="json") | {"cost": costs.model_dump(mode="json")}
        print(json_text(both), end="")
    else:
        show(cell, record)
    return 1 if record.status == "failed" else 0


def params_of(arguments: argparse.Namespace, name: str) -> Params:
    """A season of the preset `name`, or of the defaults of the method of that name,
    and what it needs, on one dataset with one seed."""
    dataset = whole_of(arguments.dataset)
    method = arguments.method
    if arguments.preset:
        known = presets()
    elif method == name:
        known = {name: (name, Preset(title=f"{name}, defaults"))}
    else:  # of a file the presets beside it
        known = own_presets({name: method})
    entry(known, name, "preset", do="see: rematch list presets")
    needed = needs(name, known)
    options = options_of(arguments.option)
    trained = [preset for preset in needed if not known[preset][1].fuse]
    season = {
        "title": f"{name} on {dataset}",
        "datasets": {dataset: settings_of(dataset, arguments.seed)},
        "presets": needed,
        "seeds": [arguments.seed],
        "options": dict.fromkeys(trained, options) if options else {},
    }
    local = files.read_local()
    sources = dict(local.sources)
    if arguments.source:
        sources[dataset] = str(arguments.source)
    weights_dir = arguments.weights_dir or local.weights_dir
    local = local.model_copy(update={"weights_dir": weights_dir, "sources": sources})
    params = resolve(NAME, checked(Season, season, "run"), known)
    kept = {}  # on the dataset, or the fold, that is named
    for group in ("cells", "fusions"):
        kept[group] = {}
        for key, cell in getattr(params, group).items():
            if cell.dataset == arguments.dataset:
                kept[group][key] = cell
    if not any(kept.values()):
        raise UserError(
            f"--dataset {arguments.dataset}",
            expected="a fold of a dataset that has `folds` in a season",
            found="another one",
            do="see docs/season-file.md",
        )
    return files.placed(params.model_copy(update=kept), local)


def settings_of(dataset: str, seed: int) -> DatasetSettings:
    """As the active season has them, or the first that does, or by default; for all
    presets, and with that seed on folds."""
    active = [files.active_season()] if files.PARAMS.is_file() else []
    settings = DatasetSettings()
    for season in active + files.season_names():
        declared = files.read_season(season).datasets
        if dataset in declared:
            settings = declared[dataset]
            break
    of_run = {"presets": ["*"]}
    if settings.folds:
        of_run |= {"fold_presets": ["*"], "fold_seeds": [seed]}
    return settings.model_copy(update=of_run)


def show(cell: Cell | Fusion, record: Record) -> None:
    """Print the metrics of a cell, or why it has none."""
    print(f"{cell.folder}/{RECORD}: {record.status} {record.reason}".rstrip())
    of_queries = []
    for way in ("i2t", "t2i", "p2r"):
        of_queries += [name for name in table_metrics(way) if METRICS[name].of_queries]
    for name in (*of_queries, *SHOWN):
        if name in record.metrics:
            print(f"{name:10} {record.metrics[name]:.2f}")


# Stages -------------------------------------------------------------------------------


def run(params: Params) -> None:
    """Fetch, prepare and encode what is not there yet, then train and evaluate each
    cell; each stage is named on stderr."""
    stages = pipeline.all_stages(params)
    last = [pipeline.evaluation_of(params, key) for key in params.everything]
    for name in in_order(stages, last):
        stage = stages[name]
        if not is_done(params, stage):
            _say(f"{stage.kind} {stage.item}".rstrip())
            do(params, stage)


def do(params: Params, stage: Stage) -> None:
    """Do a stage in this process."""
    match stage.kind:
        case Kind.FETCH:
            for line in fetch(params, stage.item):
                _say(line)
        case Kind.PREPARE:
            for line in prepare(params, stage.item):
                _say(line)
            # what was encoded of the images and captions before
            for feature_set in params.feature_sets.values():
                shutil.rmtree(feature_set.folder, ignore_errors=True)
        case Kind.FOLDS:
            for line in prepare_folds(params, stage.item):
                _say(line)
        case Kind.PRETRAIN:
            drawn_pretraining.main()
        case Kind.ENCODE:
            encode(params, params.feature_sets[stage.item])
        case Kind.TRAIN:
            train_cell(params, params.cells[stage.item])
        case Kind.EVALUATE:
            cell = params.everything[stage.item]
            evaluate_cell(params, cell)
            record = read_record(Path(cell.folder))
            if record.status != "ok":
                status = record.status.replace("_", " ")
                _say(f"{cell.preset}: {status}: {record.reason}")


def is_done(params: Params, stage: Stage) -> bool:
    """Whether what a stage writes is there, of what is there now. Cells are always
    trained and evaluated again."""
    match stage.kind:
        case Kind.FETCH:
            raw = raw_dataset(params, stage.item)
            return is_prepared(params, stage.item) and not is_changed(raw, raw.origin)
        case Kind.PREPARE:
            return is_prepared(params, stage.item)
        case Kind.FOLDS:
            return are_dealt(params, stage.item)
        case Kind.PRETRAIN:
            return drawn_cnn.WEIGHTS.is_file() or not needs_drawn_cnn(params)
        case Kind.ENCODE:
            return is_encoded(params.feature_sets[stage.item])
    return False


def is_prepared(params: Params, dataset: str) -> bool:
    """With these options, from these raw files."""
    raw = raw_dataset(params, dataset)
    card = prepared_tables.CARDS / dataset / "card.json"
    if not card.is_file() or not (prepared_tables.ROOT / dataset).is_dir():
        return False
    wanted = {"options": raw.options, "reader": raw.reader}
    if raw.manifest.is_file():
        wanted["manifest"] = raw.manifest_sha256
    return wanted.items() <= read_json(card).items()


def are_dealt(params: Params, dataset: str) -> bool:
    """Whether the folds of a dataset are those of the tables that are prepared."""
    whole = prepared_tables.read(dataset)
    count = params.folds[dataset]
    for fold in folds_of(dataset, count):
        if not (prepared_tables.ROOT / fold.name).is_dir():
            return False
        try:
            card = prepared_tables.read_card(fold.name)
        except UserError:
            return False
        if card["fold"] != facts_of(fold, count, whole):
            return False
    return True


def is_encoded(feature_set: FeatureSet) -> bool:
    """With these settings, of the tables that are prepared."""
    card = Path(feature_set.folder) / "card.json"
    if not card.is_file():
        return False
    written = read_json(card)
    images = feature_set.image or feature_set.proposals
    settings = images or feature_set.words or feature_set.sentence
    tables = prepared_tables.read(feature_set.dataset).sha256
    if written.get("prepared_sha256") != tables:
        return False
    return _are_same(written["settings"], settings)


def _are_same(written: object, settings: BaseModel) -> bool:
    """Whether a card was written with these settings. An option that the card does not
    have yet counts as left at its default."""
    try:
        return type(settings).model_validate(written) == settings
    except ValidationError:
        return False


def needs_drawn_cnn(params: Params) -> bool:
    """Whether something is left to encode with the network that is pretrained here."""
    for feature_set in params.feature_sets.values():
        images = feature_set.image or feature_set.proposals
        is_drawn = images and images.network == DRAWN and not feature_set.is_taken
        if is_drawn and not is_encoded(feature_set):
            return True
    return False


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def options_of(texts: Iterable[str]) -> dict[str, Option]:
    """Options of the command line, by key. Raises UserError for a key that is there
    twice."""
    options = {}
    for text in texts:
        key, value = option(text)
        if key in options:
            found = f"{options[key]!r} and {value!r}"
            raise UserError(f"--option {key}", "one value", found, "name one")
        options[key] = value
    return options


def option(text: str) -> tuple[str, Option]:
    """KEY=VALUE of the command line. Raises UserError for anything else."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError(
            "--option",
            expected="KEY=VALUE",
            found=repr(text),
            do="name an option and its value",
        )
    if EXPONENT.fullmatch(value.strip()):
        return key, float(value)
    try:
        return key, yaml.safe_load(value)
    except Exception as error:  # PyYAML raises several kinds
        raise UserError(
            f"--option {key}",
            expected="a number, true, false or text",
            found=repr(value),
            do="correct it",
        ) from error
