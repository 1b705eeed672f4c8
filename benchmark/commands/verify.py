"""Run cells again, from raw data on, and compare them with the committed records.

    rematch verify                        all cells of the active season
    rematch verify demo --cells '*scan*'  some of them, with what they need

Everything is run in .scratch/verify/<season>; results/ and reports/ stay as they are. Metrics,
ranks and histories must be the same to the last bit. The exit status is 1 if one of them is not, or
a cell could not be run.
"""

import argparse
import contextlib
import os
import shutil
from pathlib import Path

from benchmark.commands import tasks
from benchmark.core import numerics
from benchmark.core.fingerprint import fingerprint
from benchmark.core.locks import alone
from benchmark.core.records import RECORD, Record, read_record
from benchmark.data.results import read_scores
from benchmark.season import pipeline
from benchmark.season.parameter_files import (
    SEASON_FILE,
    SEASONS,
    Local,
    cells_like,
    season_here,
    write_local,
)
from benchmark.season.parameters import Params

SCRATCH = Path(".scratch/verify")
COMPARED = ("status", "metrics", "selected_epoch", "parameters", "history")  # of records


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("season", nargs="?", help="default: the active one")
    parser.add_argument(
        "--cells", default="*", metavar="PATTERNS", help="as in 'shapes-scan*,*-vse-0'"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: all cores")


def main(arguments: argparse.Namespace) -> int:
    params = season_here(arguments.season)
    for cell in params.cells.values():
        numerics.require(cell.numerics, cell.threads)  # for the fingerprint
    chosen = cells_like(params, arguments.cells, "--cells")
    folder = SCRATCH / params.season
    with alone(SCRATCH / f"{params.season}.lock", f"verify {params.season}"):
        _begin_in(folder, params)
        with contextlib.chdir(folder):
            pipeline.write_pipelines(params)
            failed = tasks.run_all(tasks_of(params, chosen), arguments.jobs)
    rows = [("cell", "committed", "new", "")]
    for key in chosen:
        old, failure = Path(params.everything[key].folder), failed.get(f"evaluate-{key}")
        rows.append((key, *compared(old, folder / old, failure)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)))
    identical = sum(row[-1] == "identical" for row in rows)
    print(f"{identical} of {len(chosen)} identical; fingerprint of this machine {fingerprint()}")
    return 0 if identical == len(chosen) else 1


def compared(old: Path, new: Path, failure: str | None) -> tuple[str, str, str]:
    """The rsum of a cell as committed and as run now, and whether all that counts is equal."""
    before, after = (
        read_record(folder) if (folder / RECORD).is_file() else None for folder in (old, new)
    )
    shown = _shown(before), _shown(after)
    if failure or not before or not after:
        return *shown, failure or ("not committed" if after else "not run")
    different = [name for name in COMPARED if getattr(before, name) != getattr(after, name)]
    if before.status == after.status == "ok":
        first, second = read_scores(old).ranks, read_scores(new).ranks
        ways = first.keys() & second.keys()  # of other ranks, converted records know nothing
        same = [(first[way].best == second[way].best).all() for way in ways]
        different += [] if first.keys() == second.keys() and all(same) else ["ranks"]
    if different:
        different.append(f"(committed with fingerprint {before.numerics.get('fingerprint')})")
    return *shown, f"other {', '.join(different)}" if different else "identical"


def _shown(record: Record | None) -> str:
    if record is None:
        return "-"
    return f"{record.metrics['rsum']:.2f}" if "rsum" in record.metrics else record.status


def tasks_of(params: Params, chosen: list[str]) -> dict[str, tasks.Task]:
    """The stages that evaluate cells, after all that they need."""
    stages = pipeline.all_stages(params)
    maker = {path: name for name, stage in stages.items() for path in pipeline.outputs(stage)}
    named: dict[str, tasks.Task] = {}

    def add(name: str) -> None:
        needs = tuple(maker[path] for path in stages[name].get("deps", []) if path in maker)
        for need in needs:
            if need not in named:
                add(need)
        named[name] = tasks.of_stage(params, name, stages[name]["cmd"], needs)

    for key in chosen:
        add(f"evaluate-{key}")
    return named


def _begin_in(folder: Path, params: Params) -> None:
    """An empty project: the season, manifests and links to raw files, and nothing that was made
    from them. The folders of this machine become absolute paths."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data/raw").mkdir(parents=True)
    files = [SEASONS / params.season / SEASON_FILE]
    files += [Path(f"data/manifests/{dataset}.json") for dataset in params.datasets]
    for method in map(Path, params.methods.values()):
        files += [] if method.is_absolute() else [method, method.with_suffix(".yaml")]
    for file in filter(Path.is_file, files):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file)
    for raw in (Path("data/raw") / dataset for dataset in params.datasets):
        if raw.is_dir():
            (folder / raw).symlink_to(raw.resolve(), target_is_directory=True)
    named = {name: settings.source for name, settings in params.datasets.items()}
    sources = {n: str(Path(s).expanduser().absolute()) for n, s in named.items() if s}
    weights = str(Path(params.weights_dir).absolute()) if params.weights_dir else None
    with contextlib.chdir(folder):
        write_local(Local(weights_dir=weights, sources=sources))
