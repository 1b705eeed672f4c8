"""Run one cell outside of DVC, from raw data to its metrics.

Its files go to data/cells/run/, its metrics to standard output. The dataset is used as
the active season sets it, if it does; else with its defaults.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import yaml

from benchmark.core.command_line import alone, lock_of
from benchmark.core.errors import UserError, checked, suggested
from benchmark.core.files import DAMAGED, read_json
from benchmark.core.records import RECORD, read_record
from benchmark.data import prepared_tables, results
from benchmark.data.raw_files import is_changed, raw_dataset
from benchmark.encode import drawn_pretraining
from benchmark.encode.__main__ import encode
from benchmark.evaluate.__main__ import evaluate_cell
from benchmark.features import drawn_cnn
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.scoring.metrics import METRICS, table_metrics
from benchmark.season import parameter_files as files
from benchmark.season.parameters import DRAWN, DatasetSettings, Option, Params, Season
from benchmark.season.plugins import Preset, needs, own_presets, presets
from benchmark.season.resolving import resolve
from benchmark.train.__main__ import train_cell

NAME = "run"  # folder of data/cells/
SHOWN = ("p2r_bound", "alpha", "rsum", "overlap_s")  # metrics, beside those of queries


def configure(parser: argparse.ArgumentParser) -> None:
    add, said = (
        parser.add_argument,
        "a hyper-parameter of the method; may be given again",
    )
    add("preset", nargs="?", help="see: rematch list presets")
    add("--method", help="a method, or the path of your own .py file, as it is")
    add("--dataset", default="shapes")
    add("--seed", type=int, default=0)
    add("--source", type=Path, help="folder that holds the raw files already")
    add("--weights-dir", help="folder of pretrained networks and word vectors")
    add("--option", action="append", default=[], metavar="KEY=VALUE", help=said)
    add("--json", action="store_true", help="print the whole record, and what it cost")


def main(arguments: argparse.Namespace) -> int:
    if (arguments.preset is None) == (arguments.method is None):
        raise UserError(
            "run", "either a preset or --method", "both or neither", "name one of them"
        )
    name, dataset = arguments.preset or Path(arguments.method).stem, arguments.dataset
    known = (
        presets()
        if arguments.preset
        else {name: (name, Preset(title=f"{name}, defaults"))}
    )
    if arguments.method not in (None, name):  # its file, with the presets beside it
        known = own_presets({name: arguments.method})
    if name not in known:
        found, do = (
            f"no such preset: {suggested(name, known)}",
            "see: rematch list presets",
        )
        raise UserError(
            f"preset {name!r}", f"one of {', '.join(sorted(known))}", found, do
        )
    needed, options = needs(name, known), dict(map(option, arguments.option))
    trained = [preset for preset in needed if not known[preset][1].fuse]
    # As the active season has them, or the first that does, or by default.
    active = [files.active_season()] if files.PARAMS.is_file() else []
    declared = (
        files.read_season(season).datasets for season in active + files.season_names()
    )
    settings = next(
        (of[dataset] for of in declared if dataset in of), DatasetSettings()
    )
    settings = settings.model_copy(update={"presets": ["*"]})
    season = {
        "title": f"{name} on {dataset}",
        "datasets": {dataset: settings},
        "presets": needed,
        "seeds": [arguments.seed],
        "options": dict.fromkeys(trained, options) if options else {},
    }
    local = files.read_local()
    local = local.model_copy(
        update={"weights_dir": arguments.weights_dir or local.weights_dir}
    )
    params = files.placed(resolve(NAME, checked(Season, season, "run"), known), local)
    cell = next(cell for cell in params.everything.values() if cell.preset == name)
    # options have no folder of their own
    with alone(lock_of(f"{cell.folder}.run"), f"run {name}"):
        run(params, dataset, arguments.source)
        record = read_record(Path(cell.folder))
    if arguments.json:
        costs = results.read_cell_costs(Path(cell.costs), Path(cell.folder, RECORD))
        both = record.model_dump(mode="json") | {"cost": costs.model_dump(mode="json")}
        print(json.dumps(both, indent=2))
    else:
        print(f"{cell.folder}/record.json: {record.status} {record.reason}".rstrip())
        ways = [name for way in ("i2t", "t2i", "p2r") for name in table_metrics(way)]
        for key in [*(name for name in ways if METRICS[name].of_queries), *SHOWN]:
            if key in record.metrics:
                print(f"{key:10} {record.metrics[key]:.2f}")
    return 1 if record.status == "failed" else 0


def run(params: Params, dataset: str, source: Path | None) -> None:
    """Every step of the pipeline that is not done yet, then training and evaluation;
    each says on stderr what it is."""
    raw = raw_dataset(params, dataset)
    card = prepared_tables.CARDS / dataset / "card.json"

    def is_prepared() -> bool:
        """With these options, from these raw files."""
        wanted = {"options": raw.options, "reader": raw.reader}
        wanted |= {"manifest": raw.manifest_sha256} if raw.manifest.is_file() else {}
        is_there = card.is_file() and (prepared_tables.ROOT / dataset).is_dir()
        return is_there and wanted.items() <= read_json(card).items()

    if is_changed(raw, (source or raw.origin).expanduser()) or not is_prepared():
        _say(f"fetch {dataset}")
        for line in fetch(params, dataset, source):
            _say(line)
    if not is_prepared():
        for line in prepare(params, dataset):
            _say(line)
        for encoding in params.feature_sets.values():  # of what was prepared before
            shutil.rmtree(encoding.folder, ignore_errors=True)
    tables = prepared_tables.read(dataset).sha256
    for encoding in params.feature_sets.values():
        path, drawn = (
            Path(encoding.folder) / "card.json",
            encoding.image or encoding.proposals,
        )
        settings = drawn or encoding.words or encoding.sentence
        made = read_json(path) if path.is_file() else {}
        if (
            made.get("prepared_sha256") != tables
            or made["settings"] != settings.model_dump()
        ):
            if drawn and drawn.network == DRAWN and not drawn_cnn.WEIGHTS.is_file():
                _say(f"pretrain {DRAWN}, once")
                drawn_pretraining.main()
            _say(f"encode {path.parent.relative_to('data/features')}")
            encode(params, encoding)
    for cell in params.cells.values():
        _say(f"train {cell.dataset}/{cell.preset} {cell.seed}")
        train_cell(params, cell)
    for cell in params.everything.values():
        _say(f"evaluate {cell.dataset}/{cell.preset} {cell.seed}")
        evaluate_cell(params, cell)
        record = read_record(Path(cell.folder))
        if record.status != "ok":
            _say(f"{cell.preset}: {record.status.replace('_', ' ')}: {record.reason}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def option(text: str) -> tuple[str, Option]:
    """KEY=VALUE of the command line. Raises UserError for anything else."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError(
            "--option", "KEY=VALUE", repr(text), "name an option and its value"
        )
    try:
        return key, yaml.safe_load(value)
    except DAMAGED as error:
        expected, found = "a number, true, false or a text", repr(value)
        raise UserError(f"--option {key}", expected, found, "correct it") from error
