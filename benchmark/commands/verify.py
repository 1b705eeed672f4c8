"""Run cells again, from raw data on, and compare them with the committed records.

    rematch verify                        all cells of the active season
    rematch verify demo --only '*scan*'   some of them, with what they need

Everything is run in .scratch/verify/<season>; results/ and reports/ stay as they are.
Metrics, histories and the ranks of all relevant items must be the same to the last bit;
of converted results only the ranks of the best items are known. The exit status is 1 if
something differs, or a cell could not be run.

Bits can be equal only on a processor with the fingerprint of the records. A season with
`numerics: portable` has one fingerprint on every x86-64 with AVX2
(docs/reproducibility.md). On others this command says so first, and shows rsum of both
runs.
"""

import argparse
import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.commands import tasks
from benchmark.commands.tasks import Failure
from benchmark.core import numerics
from benchmark.core.command_line import add_season_first, alone
from benchmark.core.devices import fingerprint
from benchmark.core.errors import UserError
from benchmark.core.names import whole_of
from benchmark.core.records import Record
from benchmark.data import results
from benchmark.data.raw_files import raw_dataset
from benchmark.data.results import CellResult
from benchmark.fetch.__main__ import fetch
from benchmark.season import parameter_files as files
from benchmark.season import pipeline
from benchmark.season.parameters import Params
from benchmark.season.plugins import code_files
from benchmark.season.stages import in_order

SCRATCH = Path(".scratch/verify")
# of records
COMPARED = ("status", "metrics", "selected_epoch", "parameters", "history")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_season_first(parser)
    cells = "run only these cells, and what they need: 'shapes-scan*,*-vse-0'"
    add("--only", "--cells", default="*", metavar="PATTERNS", help=cells)
    add("--jobs", type=int, help="stages at once; default: one per core")


def main(arguments: argparse.Namespace) -> int:
    jobs = tasks.jobs_of(arguments.jobs)
    files.check_project()
    params = files.read_params(arguments.season)
    for cell in params.cells.values():
        numerics.require(cell.numerics, cell.threads)  # for the fingerprint
    chosen = files.cells_like(params, arguments.only)
    cells = [params.everything[key] for key in chosen]
    kept = {}  # what git keeps of each dataset
    committed = {}
    for cell in cells:
        if cell.dataset not in kept:
            kept[cell.dataset] = results.read_kept(params.season, cell.dataset)
        committed[cell.key] = kept[cell.dataset].get(cell.name)
    records = [result.record for result in committed.values() if result]
    warn_of_other_fingerprints(records)
    folder = SCRATCH / params.season
    with alone(SCRATCH / f"{params.season}.lock", f"verify {params.season}"):
        _make_project(folder, params)
        with contextlib.chdir(folder):
            pipeline.write_pipelines(files.resolved(params.season))
            check_raw_files(records)
            failures = tasks.run_all(tasks_of(params, chosen), jobs)
    if failures:
        print(tasks.counted(failures))
    rows = [("cell", "committed", "new", "")]
    identical = 0
    for cell in cells:
        of_cell = folder / cell.folder
        was_run = results.has_record(of_cell)
        new = results.read_cell(of_cell, cell.inside) if was_run else None
        failure = failures.get(pipeline.evaluation_of(params, cell.key))
        compared = comparison(committed[cell.key], new, failure)
        identical += compared.is_identical
        rows.append((cell.key, compared.old, compared.new, compared.verdict))
    print_table(rows)
    print(f"{identical} of {len(chosen)} identical, on fingerprint {fingerprint()}")
    return 0 if identical == len(chosen) else 1


def warn_of_other_fingerprints(committed: list[Record]) -> None:
    """Say before hours of work that bits cannot be equal here."""
    here = fingerprint()
    prints = [str(record.numerics.get("fingerprint")) for record in committed]
    others = sorted(set(prints) - {here})
    if others:
        count = len(prints) - prints.count(here)
        print(
            f"Bits cannot be equal in {count} of {len(prints)} cells: they were committed "
            f"with fingerprint {', '.join(others)}, this machine has {here}; see "
            f"docs/reproducibility.md.",
            flush=True,
        )


def print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        print("  ".join(f"{text:{width}}" for text, width in cells))


def check_raw_files(committed: list[Record]) -> None:
    """Raise UserError where the raw files at hand are not those that records were made
    from."""
    shared = files.read_shared()
    by_dataset: dict[str, list[Record]] = {}
    for record in committed:
        by_dataset.setdefault(whole_of(record.dataset), []).append(record)
    for name, records in by_dataset.items():
        notes = fetch(shared, name)
        dataset = raw_dataset(shared, name)
        digests = {record.manifest_sha256 for record in records}
        if digests == {dataset.manifest_sha256}:
            continue
        actual = "other files"
        if notes:
            actual += f" ({' '.join(notes)})"
        raise UserError(
            dataset.folder,
            expected="the files of the committed results",
            found=actual,
            do="other images give other numbers: make yours with `rematch play`",
        )


@dataclass(frozen=True)
class Compared:
    """A cell as committed and as run now."""

    old: str  # rsum, or why there is none
    new: str
    different: tuple[str, ...] = ()  # names of COMPARED, and "ranks"
    problem: str = ""  # why there is nothing to compare
    fingerprint: str = ""  # of the committed result

    @property
    def is_identical(self) -> bool:
        return not self.problem and not self.different

    @property
    def verdict(self) -> str:
        if self.problem:
            return self.problem
        if self.different:
            names = ", ".join(self.different)
            return f"{names} differ (committed with fingerprint {self.fingerprint})"
        return "identical"


def comparison(
    old: CellResult | None, new: CellResult | None, failure: Failure | None
) -> Compared:
    """Whether all that counts of a cell is equal."""
    scores = _rsum_or_status(old), _rsum_or_status(new)
    if failure:
        return Compared(*scores, problem=failure.reason)
    if not new:
        return Compared(*scores, problem="not run")
    if not old:
        return Compared(*scores, problem="not committed")
    before = old.record
    after = new.record
    different = []
    for name in COMPARED:
        if getattr(before, name) != getattr(after, name):
            different.append(name)
    are_ok = before.status == after.status == "ok"
    if are_ok and not same_ranks(old, new):
        different.append("ranks")
    committed_on = str(before.numerics.get("fingerprint"))
    return Compared(*scores, different=tuple(different), fingerprint=committed_on)


def _rsum_or_status(result: CellResult | None) -> str:
    """Its rsum, or why it has none."""
    if not result:
        return "-"
    record = result.record
    if "rsum" not in record.metrics:
        return record.status
    return f"{record.metrics['rsum']:.2f}"


def same_ranks(old: CellResult, new: CellResult) -> bool:
    """In every direction of all relevant items; of the best ones where one side knows
    no others."""
    if old.scores.ranks.keys() != new.scores.ranks.keys():
        return False
    for way, first in old.scores.ranks.items():
        second = new.scores.ranks[way]
        if not np.array_equal(first.best, second.best):
            return False
        if first.knows_all and second.knows_all:
            have_same_counts = np.array_equal(first.counts, second.counts)
            if not have_same_counts or not np.array_equal(first.values, second.values):
                return False
    return True


def tasks_of(params: Params, chosen: list[str]) -> dict[str, tasks.Task]:
    """The stages that evaluate cells, after all that they need."""
    known = pipeline.all_stages(params)
    last = [pipeline.evaluation_of(params, key) for key in chosen]
    seconds = tasks.training_seconds(params)
    named = {}
    for name, needs in in_order(known, last).items():
        named[name] = tasks.of_stage(params, known[name], needs, seconds)
    return named


def _make_project(folder: Path, params: Params) -> None:
    """Make a project anew with the season, its methods, manifests and links to raw
    files, and nothing made from them. The paths of local.yaml become absolute."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data/raw").mkdir(parents=True)
    paths = [files.SEASONS / params.season / files.SEASON_FILE]
    paths += [Path(f"data/manifests/{dataset}.json") for dataset in params.datasets]
    for method in map(Path, params.methods.values()):
        if method.is_absolute():
            continue
        paths += [method, method.with_suffix(".yaml")]
        for file in code_files(method):  # those beside it that it imports, too
            if file.parent == method.resolve().parent:
                paths.append(method.parent / file.name)
    for file in filter(Path.is_file, paths):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file)
    sources = {}
    for name, settings in params.datasets.items():
        raw = Path("data/raw") / name
        if raw.is_dir():
            (folder / raw).symlink_to(raw.resolve(), target_is_directory=True)
        if settings.source:
            source = Path(os.path.expanduser(settings.source))
            sources[name] = str(source.absolute())
    weights = str(Path(params.weights_dir).absolute()) if params.weights_dir else None
    with contextlib.chdir(folder):
        files.write_local(files.Local(weights_dir=weights, sources=sources))
