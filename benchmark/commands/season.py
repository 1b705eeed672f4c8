"""Choose the season that `dvc repro` runs; without a name, say which one it is.

Writes the pipelines of the season into seasons/NAME/, and those of its datasets into
seasons/shared/. Folders of this machine are kept in local.yaml. What was run stays: a
preset that leaves the season file and comes back is not trained again.

    rematch season flickr8k                          make it the active one
    rematch season mine.yaml --source pets=DIR       one of your own, and the folder of its images
    rematch season flickr8k --remove my_model        remove a row that `rematch score` added
"""

import argparse
import json
import os
from collections.abc import Iterable

from benchmark.core.errors import UserError
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.papers.printed_tables import unequal_settings
from benchmark.report import ROOT as REPORTS
from benchmark.season import parameter_files as files
from benchmark.season import pipeline
from benchmark.season.parameters import Params, Season


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", help="a season of seasons/, or the path of a file")
    add("--remove", metavar="ROW", help="remove a row that `rematch score` added")
    add("--schema", action="store_true", help="print the JSON schema, for editors")
    about = "folder of pretrained networks and word vectors; '' forgets it"
    add("--weights-dir", metavar="DIR", help=about)
    sources = {"action": "append", "default": [], "metavar": "DATASET=DIR"}
    folder = "folder with the raw files of a dataset, or of a reader; may be repeated"
    add("--source", **sources, help=folder)
    digests = "write the digests of its cells, as DVC does; without NAME, of readers"
    add("--digests", action="store_true", help=digests)


def main(arguments: argparse.Namespace) -> None:
    if arguments.schema:
        print(schema(), end="")
    elif arguments.digests and arguments.name:
        pipeline.write_digests(files.resolved(arguments.name))
    elif arguments.digests:
        pipeline.write_readers()
    elif arguments.remove:
        name = files.season_name(arguments.name or files.active_season())
        for row in files.remove_brought(name, arguments.remove):
            print(f"removed: {row.key}")
        pipeline.write_pipelines(files.resolved(name))
        print(f"next: rematch report --season {name}, or dvc repro")
    elif not (arguments.name or arguments.source) and arguments.weights_dir is None:
        files.check_project()
        show(files.resolved())
    else:
        name = arguments.name or files.active_season()
        activate(name, arguments.weights_dir, arguments.source)
        print("next: rematch play, or dvc repro")


def activate(season: str, weights_dir: str | None, sources: Iterable[str] = ()) -> None:
    """Make a season, by name or by the path of its file, the one that `dvc repro`
    runs."""
    files.check_not_inside()
    name = files.season_name(season)
    declared = files.read_season(season)
    if weights_dir:
        check_folder("--weights-dir", weights_dir)
    params = files.resolve_and_note(name, declared)
    for dataset in params.datasets:
        # refuses what its reader cannot use, before it is written
        raw_dataset(params, dataset)
    folders = folders_of(params, sources)
    files.keep_file(files.season_path(season), name)
    before = files.read_local()  # after keep_file, which may write to it
    changes = {"sources": before.sources | folders}
    if weights_dir is not None:
        changes["weights_dir"] = weights_dir or None
    local = before.model_copy(update=changes)
    pipeline.write_pipelines(params)
    files.activate(name)
    if local != before:
        files.write_local(local)
    for dataset in params.datasets:
        unlink_other_source(raw_dataset(files.placed(params, local), dataset))
    show(params)
    for line in unequal_settings(params):
        print(f"warning: {line}")


def folders_of(params: Params, sources: Iterable[str]) -> dict[str, str]:
    """Dataset or reader -> its folder, of the words DATASET=DIR. Raises UserError for
    other words and names."""
    known = set(params.datasets)
    for settings in params.datasets.values():
        known.add(settings.reader)
    folders = {}
    for source in sources:
        dataset, _, folder = source.partition("=")
        if dataset not in known or not folder:
            raise UserError(
                "--source",
                expected=f"DATASET=DIR with a dataset of {', '.join(sorted(known))}",
                found=repr(source),
                do="name the dataset and its folder",
            )
        check_folder(f"--source {dataset}", folder)
        folders[dataset] = folder
    return folders


def check_folder(option: str, folder: str) -> None:
    """Raise UserError where an option names no folder."""
    if not os.path.isdir(os.path.expanduser(folder)):
        raise UserError(
            option,
            expected="a folder",
            found=f"none at {folder}",
            do="check the path",
        )


def unlink_other_source(raw: RawDataset) -> None:
    """Remove a link to a folder that is no longer the source, so that DVC fetches the
    files again."""
    if not raw.source or not raw.folder.is_symlink():
        return
    if raw.folder.resolve() != raw.origin.resolve():
        raw.folder.unlink()


def schema() -> str:
    """The JSON schema of season files."""
    facts = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    facts |= Season.model_json_schema() | {"title": "A season of Rematch"}
    return json.dumps(facts, indent=2) + "\n"


def show(params: Params) -> None:
    """The season on one line, and its report."""
    trainings = len(params.cells)
    fusions = (
        "1 fusion" if len(params.fusions) == 1 else f"{len(params.fusions)} fusions"
    )
    print(f"season {params.season}: {trainings} trainings, {fusions}")
    report = REPORTS / params.season / "README.md"
    if report.is_file():
        print(f"report: {report}")
