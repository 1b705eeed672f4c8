"""Play cells again, from raw data on, and compare them with the committed records.

    python -m benchmark verify                        all cells of the active season
    python -m benchmark verify demo --cells '*scan*'  some of them, with what they need

Everything is played in .scratch/verify/<season>; results/ and reports/ stay as they are. The exit
status is 1 if a cell could not be played, is not committed or has no spread of seeds to lie in, if
its numbers lie outside of it, or if they differ although the machine has the fingerprint of the
committed ones.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmark.analysis.replays import (
    Agreement,
    Played,
    Replay,
    agreement,
    counted,
    note_replay,
    spreads,
)
from benchmark.commands import task_queue
from benchmark.commands.local_workers import Processes, check_jobs
from benchmark.commands.project_folder import alone_here, cells_like_any, season_here
from benchmark.commands.replay_tasks import tasks_of
from benchmark.commands.task_order import longest_first, seconds_of
from benchmark.core import numerics
from benchmark.core.array_files import read_parquet
from benchmark.core.fingerprint import fingerprint
from benchmark.core.machine import machine
from benchmark.core.records import read_record
from benchmark.report.__main__ import write_report
from benchmark.season.parameter_files import (
    LOCAL,
    PARAMS,
    Local,
    placed,
    read_local,
    write_local,
)
from benchmark.season.parameters import Cell, Fusion, Params
from benchmark.season.season_files import SEASONS

SCRATCH = Path(".scratch/verify")
RAW, MANIFESTS = Path("data/raw"), Path("data/manifests")
GOOD = (Agreement.IDENTICAL, Agreement.WITHIN)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """Cells by key as they are committed, and the chosen ones as they were played again."""

    params: Params
    before: dict[str, Played | None]
    after: dict[str, Played | None]
    failed: dict[str, str]  # tasks that could not be played: why

    @property
    def cells(self) -> dict[str, Cell | Fusion]:
        return _cells(self.params)

    @property
    def folder(self) -> Path:
        """Where they were played."""
        return SCRATCH / self.params.season

    @property
    def agreements(self) -> dict[str, Agreement]:
        """Of each cell that was played again."""
        known = {key: played.record for key, played in self.before.items() if played}
        spread = spreads(known.values())
        boards = {key: (record.dataset, record.task) for key, record in known.items()}
        return {
            key: agreement(self.before[key], played, spread.get(boards.get(key)))
            for key, played in self.after.items()
        }

    @property
    def other_fingerprints(self) -> list[str]:
        """Those of the committed records, where they are not the one of this machine."""
        records = [self.before[key].record for key in self.after if self.before[key]]
        fingerprints = {record.numerics.get("fingerprint", "unknown") for record in records}
        return sorted(fingerprints - {fingerprint()})


def configure(parser: argparse.ArgumentParser) -> None:
    configure_replay(parser)
    parser.add_argument(
        "--note", action="store_true", help="for the report: results/SEASON/replays.json"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def configure_replay(parser: argparse.ArgumentParser) -> None:
    """What is played again."""
    parser.add_argument("season", nargs="?", help="default: the active one")
    parser.add_argument(
        "--cells", default="*", metavar="PATTERNS", help="as in 'shapes-scan*,*-vse-0'"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: all cores")


def main(arguments: argparse.Namespace) -> int:
    played = replayed(arguments)
    agreements, others = played.agreements, played.other_fingerprints
    replay = Replay(
        machine=machine(),
        fingerprint=fingerprint(),
        cells=len(played.after),
        agreements=counted(agreements),
    )
    if arguments.note:
        note_replay(played.params.season, replay)
    if arguments.json:
        facts = replay.model_dump() | {"table": agreements, "failed": played.failed}
        print(json.dumps(facts, indent=2))
    else:
        print(table(played))
        print(_summary(replay, others, played.folder))
    strict = not others  # the same numerics must give the same bytes
    good = GOOD[:1] if strict else GOOD
    return 0 if all(how in good for how in agreements.values()) else 1


def replayed(arguments: argparse.Namespace) -> Replayed:
    """Play cells again, as `configure_replay` lets them be chosen."""
    check_jobs(arguments.jobs)
    params = _anchored(season_here(arguments.season))
    require_numerics(params)
    chosen = cells_like_any(params, arguments.cells, "--cells")
    before = {key: _played(params, key) for key in _cells(params)}
    tasks = longest_first(tasks_of(params, chosen), seconds_of(params.cells))
    folder = SCRATCH / params.season
    lock = SCRATCH / f"{params.season}.lock"
    with alone_here(lock, f"verify {params.season}"), _scratch(folder, params):
        with Processes(arguments.jobs) as workers:
            failed = task_queue.play(tasks, workers)
        after = {key: _played(params, key) for key in chosen}
        if len(chosen) == len(before) and not failed:
            write_report(params.model_copy(update={"brought": {}}))  # nothing plays these
    return Replayed(params=params, before=before, after=after, failed=failed)


def require_numerics(params: Params) -> None:
    """Those of the season's cells."""
    for cell in params.cells.values():
        numerics.require(cell.numerics, cell.threads)


def _cells(params: Params) -> dict[str, Cell | Fusion]:
    return {**params.cells, **params.fusions}


def _played(params: Params, key: str) -> Played | None:
    """What is in the folder of a cell, if it was evaluated."""
    folder = Path(_cells(params)[key].folder)
    if not (folder / "record.json").is_file():
        return None
    ranks = read_parquet(folder / "scores/ranks.parquet")
    return Played(record=read_record(folder), ranks=ranks)


def _anchored(params: Params) -> Params:
    """The season with the user's folders and files as absolute paths: the working folder is going
    to change."""
    sources = {name: _absolute(settings.source) for name, settings in params.datasets.items()}
    datasets = {
        name: settings.model_copy(update={"source": sources[name]})
        for name, settings in params.datasets.items()
    }
    anchored = placed(params, Local(weights_dir=os.getcwd()))  # files of word vectors
    update = {"datasets": datasets, "weights_dir": _absolute(params.weights_dir)}
    return anchored.model_copy(update=update)


def _anchored_local() -> Local:
    """The folders of this machine as absolute paths."""
    local = read_local()
    sources = {name: _absolute(folder) for name, folder in local.sources.items()}
    return Local(weights_dir=_absolute(local.weights_dir), sources=sources)


def _absolute(path: str | None) -> str | None:
    return str(Path(path).expanduser().absolute()) if path else path


@contextmanager
def _scratch(folder: Path, params: Params) -> Iterator[None]:
    """Inside, `folder` is the working folder: the season and links to raw files, and nothing that
    was made from them."""
    root, local = Path.cwd(), _anchored_local() if LOCAL.is_file() else None
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SEASONS, folder / SEASONS)
    if PARAMS.is_file():
        shutil.copyfile(PARAMS, folder / PARAMS)
    (folder / RAW).mkdir(parents=True)
    (folder / MANIFESTS).mkdir()
    for dataset in params.datasets:
        manifest, raw = MANIFESTS / f"{dataset}.json", RAW / dataset
        if manifest.is_file():
            shutil.copyfile(manifest, folder / manifest)
        if raw.is_dir():
            (folder / raw).symlink_to(raw.resolve(), target_is_directory=True)
    for method in params.methods.values():
        _copy_method(Path(method), folder)
    os.chdir(folder)
    try:
        if local:
            write_local(local)
        yield
    finally:
        os.chdir(root)


def _copy_method(path: Path, folder: Path) -> None:
    """A method's file and its presets beside it, unless they are found from anywhere."""
    for file in (path, path.with_suffix(".yaml")):
        if not file.is_absolute() and file.is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file)


def table(played: Replayed) -> str:
    """One row per cell."""
    rows = [("cell", "committed", "replayed", "")]
    for key, how in played.agreements.items():
        said = played.failed.get(key, str(how))
        rows.append((key, _rsum(played.before[key]), _rsum(played.after[key]), said))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{cell:{widths[0]}}  {old:>{widths[1]}}  {new:>{widths[2]}}  {how}".rstrip()
        for cell, old, new, how in rows
    )


def _rsum(played: Played | None) -> str:
    if played is None:
        return "-"
    return f"{played.record.metrics['rsum']:.2f}" if played.record.metrics else played.record.status


def _summary(replay: Replay, others: list[str], folder: Path) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in replay.agreements.items())
    numbers = f"of {replay.cells} cells: {counts}"
    known = f"fingerprint {replay.fingerprint}"
    if set(replay.agreements) == {str(Agreement.NEW)}:
        known += "; nothing committed"
    else:
        known += f"; committed: {', '.join(others)}" if others else ", as committed"
    report = folder / "reports"
    where = f"\nthe replay's report: {report}" if report.is_dir() else ""
    return f"{numbers}\n{known}{where}"
