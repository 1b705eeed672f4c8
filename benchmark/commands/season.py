"""Make a season the one that `dvc repro` plays; without a name, say which one that is.

Spells out every cell and its pipeline in seasons/NAME/, and what seasons share in seasons/shared/.
Folders of this machine are kept in local.yaml. What was played stays: a preset that leaves the
season file and comes back is not trained again.
"""

import argparse
import json
from pathlib import Path

from benchmark.commands import season_reference
from benchmark.commands.project_folder import season_here
from benchmark.commands.task_display import counted
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.equal_settings import unequal_settings
from benchmark.season.parameter_files import (
    Local,
    placed,
    read_local,
    write_local,
    write_params,
)
from benchmark.season.parameters import Params
from benchmark.season.pipeline import write_pipelines
from benchmark.season.resolving import resolve
from benchmark.season.season_files import (
    SEASON_FILE,
    SEASONS,
    Season,
    read_season,
    season_name,
    season_path,
)
from benchmark.season.season_keys import unused_keys


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="a season of seasons/, or the path of a file")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of season files, for editors"
    )
    parser.add_argument(
        "--reference", action="store_true", help="print the keys of season files as Markdown"
    )
    parser.add_argument("--weights-dir", help="folder of pretrained networks and word vectors")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DATASET=DIR",
        help="folder with the raw files of a dataset, or of all of a reader; may be given again",
    )


def main(arguments: argparse.Namespace) -> None:
    if arguments.schema:
        print(schema(), end="")
        return
    if arguments.reference:
        print(season_reference.reference(), end="")
        return
    if arguments.name is None:
        show(season_here(None))
        return
    name = season_name(arguments.name)
    declared = read_season(arguments.name)
    params = resolve(name, declared)
    for dataset in params.datasets:
        raw_dataset(params, dataset)  # refuses what its reader cannot use, before it is written
    local = completed(read_local(), params, arguments.weights_dir, arguments.source)
    _keep_file(season_path(arguments.name), SEASONS / name / SEASON_FILE)
    write_params(params)
    write_pipelines(params)
    if local != Local():
        write_local(local)
    _unlink_others(placed(params, local))
    show(placed(params, local))
    for line in unequal_settings(params):
        print(f"warning: {line}")
    for key in unused_keys(declared, params):
        print(f"warning: {key} changes nothing: this season plays no such method or preset")
    _tell_added(declared, params)
    print("next: python -m benchmark play, or dvc repro")


def schema() -> str:
    """The JSON schema of season files."""
    facts = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    facts |= Season.model_json_schema() | {"title": "A season of Rematch"}
    return json.dumps(facts, indent=2) + "\n"


def show(params: Params) -> None:
    """The season on one line, and its report."""
    trainings, fusions = len(params.cells), len(params.fusions)
    print(f"season {params.season}: {counted(trainings, 'training')}, {counted(fusions, 'fusion')}")
    report = Path("reports") / params.season / "README.md"
    if report.is_file():
        print(f"report: {report}")


def _tell_added(declared: Season, params: Params) -> None:
    """Presets that others need, and that the season file does not name."""
    played = {cell.preset for cell in [*params.cells.values(), *params.fusions.values()]}
    added = sorted(played - set(declared.presets)) if declared.presets != "all" else []
    if added:
        print(f"added, as other presets are made of them: {', '.join(added)}")


def completed(local: Local, params: Params, weights_dir: str | None, sources: list[str]) -> Local:
    """The folders of this machine with those that the command line names."""
    readers = {settings.reader for settings in params.datasets.values()}
    known = {*params.datasets, *readers}
    folders = dict(local.sources)
    for source in sources:
        name, _, folder = source.partition("=")
        if name not in known or not folder:
            expected = f"DATASET=DIR with a dataset of {', '.join(sorted(known))}"
            raise UserError("--source", expected, repr(source), "name the dataset and its folder")
        folders[name] = folder
    return Local(weights_dir=weights_dir or local.weights_dir, sources=folders)


def _unlink_others(params: Params) -> None:
    """Remove links to other raw folders than the season names, so that DVC fetches anew."""
    for raw in (raw_dataset(params, name) for name in params.datasets):
        if raw.source and raw.folder.is_symlink() and raw.folder.resolve() != raw.origin.resolve():
            raw.folder.unlink()


def _keep_file(source: Path, target: Path) -> None:
    """A season file from elsewhere is kept with what is made from it; so is another one that it
    takes the place of."""
    if source.resolve() == target.resolve():
        return
    text = source.read_text(encoding="utf-8")
    if target.is_file() and (former := target.read_text(encoding="utf-8")) != text:
        before = target.with_name(f"{target.name}.before")
        write_text(before, former)
        print(f"warning: {target} is now as {source}; what it was is in {before}")
    write_text(target, text)
