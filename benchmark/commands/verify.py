"""Run cells again, from raw data on, and compare them with the committed records.

    rematch verify                        all cells of the active season
    rematch verify demo --cells '*scan*'  some of them, with what they need

Everything is run in .scratch/verify/<season>; results/ and reports/ stay as they are.
Metrics, ranks and histories must be the same to the last bit: of all relevant items, of
converted results of the best one. The exit status is 1 if one of them is not, or a cell
could not be run.

Bits can be equal only on a processor with the fingerprint of the records; that of a
season with `numerics: portable` is the same on any x86-64 with AVX2
(docs/reproducibility.md). Elsewhere this command says so first, and shows by how much
rsum differs.
"""

import argparse
import contextlib
import shutil
from pathlib import Path

import numpy as np

from benchmark.commands import tasks
from benchmark.core import numerics
from benchmark.core.command_line import alone
from benchmark.core.devices import fingerprint
from benchmark.core.errors import UserError
from benchmark.core.records import Record
from benchmark.data import results
from benchmark.data.raw_files import raw_dataset
from benchmark.data.results import CellResult, Ranks
from benchmark.fetch.__main__ import fetch
from benchmark.season import parameter_files as files
from benchmark.season import pipeline
from benchmark.season.parameters import Params

SCRATCH = Path(".scratch/verify")
# of records
COMPARED = ("status", "metrics", "selected_epoch", "parameters", "history")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("season", nargs="?", help="default: the active one")
    add("--cells", default="*", metavar="PATTERNS", help="as in 'shapes-scan*,*-vse-0'")
    add("--jobs", type=int, help="default: all cores")


def main(arguments: argparse.Namespace) -> int:
    jobs = tasks.jobs_of(arguments.jobs)
    files.check_project()
    params = files.read_params(arguments.season)
    for cell in params.cells.values():
        numerics.require(cell.numerics, cell.threads)  # for the fingerprint
    chosen = files.cells_like(params, arguments.cells, "--cells")
    cells = [params.everything[key] for key in chosen]
    datasets = dict.fromkeys(cell.dataset for cell in cells)
    kept = {name: results.read_kept(params.season, name) for name in datasets}
    committed = {cell.key: kept[cell.dataset].get(cell.name) for cell in cells}
    records = [result.record for result in committed.values() if result]
    prints = {record.numerics.get("fingerprint") for record in records}
    if others := sorted(map(str, prints - {fingerprint()})):
        told = f"{', '.join(others)}; this machine has {fingerprint()}. Bits cannot be equal"
        print(
            f"Committed with fingerprint {told}: see docs/reproducibility.md.",
            flush=True,
        )
    folder = SCRATCH / params.season
    with alone(SCRATCH / f"{params.season}.lock", f"verify {params.season}"):
        _begin_in(folder, params)
        with contextlib.chdir(folder):
            pipeline.write_pipelines(params)
            check_raw_files(records)
            failed = tasks.run_all(tasks_of(params, chosen), jobs)
    rows = [("cell", "committed", "new", "")]
    for cell in cells:
        made = folder / cell.folder
        result = (
            results.read_cell(made, cell.inside) if results.has_record(made) else None
        )
        failure = failed.get(pipeline.evaluation_of(params, cell.key))
        rows.append((cell.key, *compared(committed[cell.key], result, failure)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(
                f"{text:{width}}" for text, width in zip(row, widths, strict=True)
            )
        )
    identical = sum(row[-1] == "identical" for row in rows)
    print(
        f"{identical} of {len(chosen)} identical; fingerprint of this machine {fingerprint()}"
    )
    return 0 if identical == len(chosen) else 1


def check_raw_files(committed: list[Record]) -> None:
    """Raise UserError where the raw files at hand are not those that records were made
    from."""
    shared = files.read_shared()
    for name in dict.fromkeys(record.dataset for record in committed):
        told, dataset = fetch(shared, name), raw_dataset(shared, name)
        made_from = {r.manifest_sha256 for r in committed if r.dataset == name}
        if made_from != {dataset.manifest_sha256}:
            found = f"other files ({' '.join(told)})" if told else "other files"
            do = "other images give other numbers: make yours with `rematch play`"
            raise UserError(
                dataset.folder, "the files of the committed results", found, do
            )


def compared(
    old: CellResult | None, new: CellResult | None, failure: str | None
) -> tuple[str, str, str]:
    """The rsum of a cell as committed and as run now, and whether all that counts is
    equal."""
    shown = _shown(old), _shown(new)
    if failure or not old or not new:
        return *shown, failure or ("not committed" if new else "not run")
    before, after = old.record, new.record
    different = [
        name for name in COMPARED if getattr(before, name) != getattr(after, name)
    ]
    if before.status == after.status == "ok":
        first, second = old.scores.ranks, new.scores.ranks
        are_equal = (same_ranks(first[key], second[key]) for key in first)
        different += (
            [] if first.keys() == second.keys() and all(are_equal) else ["ranks"]
        )
    if different:
        different.append(
            f"(committed with fingerprint {before.numerics.get('fingerprint')})"
        )
    return *shown, f"other {', '.join(different)}" if different else "identical"


def _shown(result: CellResult | None) -> str:
    """Its rsum, or why it has none."""
    if not result:
        return "-"
    metrics = result.record.metrics
    return f"{metrics['rsum']:.2f}" if "rsum" in metrics else result.record.status


def same_ranks(first: Ranks, second: Ranks) -> bool:
    """Of all relevant items; of the best ones where one side knows no others."""
    if not (first.knows_all and second.knows_all):
        return np.array_equal(first.best, second.best)
    pairs = ((first.values, second.values), (first.counts, second.counts))
    return all(np.array_equal(*pair) for pair in pairs)


def tasks_of(params: Params, chosen: list[str]) -> dict[str, tasks.Task]:
    """The stages that evaluate cells, after all that they need."""
    stages = pipeline.all_stages(params)
    ordered = pipeline.in_order(
        stages, [pipeline.evaluation_of(params, key) for key in chosen]
    )
    seconds = tasks.training_seconds(params)
    return {
        name: tasks.of_stage(params, name, stages[name]["cmd"], needs, seconds)
        for name, needs in ordered.items()
    }


def _begin_in(folder: Path, params: Params) -> None:
    """An empty project: the season, manifests and links to raw files, and nothing that
    was made from them. The folders of this machine become absolute paths."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data/raw").mkdir(parents=True)
    paths = [files.SEASONS / params.season / files.SEASON_FILE]
    paths += [Path(f"data/manifests/{dataset}.json") for dataset in params.datasets]
    for method in map(Path, params.methods.values()):
        paths += [] if method.is_absolute() else [method, method.with_suffix(".yaml")]
    for file in filter(Path.is_file, paths):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file)
    for raw in (Path("data/raw") / dataset for dataset in params.datasets):
        if raw.is_dir():
            (folder / raw).symlink_to(raw.resolve(), target_is_directory=True)
    named = {name: settings.source for name, settings in params.datasets.items()}
    sources = {n: str(Path(s).expanduser().absolute()) for n, s in named.items() if s}
    weights = str(Path(params.weights_dir).absolute()) if params.weights_dir else None
    with contextlib.chdir(folder):
        files.write_local(files.Local(weights_dir=weights, sources=sources))
