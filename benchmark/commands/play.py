"""Play what is stale of a season, several stages at once. DVC keeps the record.

    python -m benchmark play                          the active season, on all cores
    python -m benchmark play flickr8k --only '*scan*'  some cells, with what they need
    python -m benchmark play --dry                    what would be played
    python -m benchmark play --gpus 0,1 --jobs 4      two cells on each GPU
    python -m benchmark play --address auto           on a Ray cluster that shares this folder

It plays what `dvc repro` would, and afterwards DVC finds everything up to date. A stage that fails
stops those that need it, and no others; a killed training goes on where it was, and Ctrl-C kills
what runs. What a stage says is in .scratch/log/. The exit status is 1 if a stage failed, or a cell
that was played.
"""

import argparse
import os
from pathlib import Path

from benchmark.commands import stage_records, task_queue
from benchmark.commands.local_workers import Processes, check_jobs, run_command
from benchmark.commands.play_summary import told_cells, told_failures, told_report
from benchmark.commands.project_folder import alone_here, cells_like_any, season_here
from benchmark.commands.ray_workers import Cluster
from benchmark.commands.stage_records import StageRecords
from benchmark.commands.task_display import counted
from benchmark.commands.task_order import longest_first, seconds_of
from benchmark.season.parameter_files import active_season
from benchmark.season.parameters import Params

PLAYING = Path(".scratch/play.lock")  # of the process that plays here


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("season", nargs="?", help="default: the active one")
    parser.add_argument(
        "--only", default="*", metavar="PATTERNS", help="cells, as in 'shapes-scan*,*-vse-0'"
    )
    parser.add_argument(
        "--jobs", type=int, help="stages at once; default: one per core, or per GPU of --gpus"
    )
    parser.add_argument(
        "--gpus", type=_gpus, default=(), metavar="LIST", help="indices, as in 0,1: jobs share them"
    )
    parser.add_argument("--address", help="of a Ray cluster: HOST:PORT, or auto")
    parser.add_argument("--dry", action="store_true", help="say what is stale, and play nothing")


def main(arguments: argparse.Namespace) -> int:
    params = season_here(arguments.season)
    check_jobs(arguments.jobs)
    targets = _targets(params, arguments.only)
    with stage_records.opened(targets) as records:
        if arguments.dry:
            return _show(records)
        with alone_here(PLAYING, "play"), _workers(arguments) as workers:
            tasks = _tasks(params, records)
            failed = task_queue.play(tasks, workers, records)
    causes = task_queue.causes(failed, tasks)
    played = counted(records.played, "stage")
    print(f"{played} played, {records.kept} up to date, {len(causes)} failed")
    for line in told_failures(causes, len(failed) - len(causes)):
        print(line)
    for line in told_cells(params, cells_like_any(params, arguments.only, "--only")):
        print(line)
    for line in told_report(params) if arguments.only == "*" and not failed else ():
        print(line)
    return 1 if failed or records.lost else 0


def _gpus(text: str) -> tuple[str, ...]:
    indices = tuple(text.split(","))
    if not all(index.isdecimal() for index in indices):
        raise argparse.ArgumentTypeError(f"expected indices such as 0,1, found {text!r}")
    return indices


def _workers(arguments: argparse.Namespace) -> Processes | Cluster:
    if arguments.address:
        return Cluster(arguments.address, arguments.jobs)
    jobs = arguments.jobs or len(arguments.gpus) or os.cpu_count()
    return Processes(jobs, arguments.gpus)


def _targets(params: Params, pattern: str) -> list[str]:
    """Addresses of the stages that are asked for: the last, or evaluations of cells."""
    if pattern == "*":
        is_active = params.season == active_season()  # which `dvc status` asks for, too
        return ["dvc.yaml:season" if is_active else stage_records.all_of(params.season)]
    cells = {**params.cells, **params.fusions}
    chosen = [cells[key] for key in cells_like_any(params, pattern, "--only")]
    return stage_records.evaluations_of(params.season, chosen)


def _tasks(params: Params, records: StageRecords) -> dict[str, task_queue.Task]:
    """One task per stage, by the names of the stages, trainings that take longest first; each
    computes as its cell asks for."""
    ways = task_queue.numerics_by_cell(params)
    cell_of = {name: records.cell_of(name) for name in records.stages}
    tasks = {
        name: task_queue.Task(
            run_command,
            (stage.cmd, name),
            records.needs(name),
            ways.get(cell_of[name], task_queue.SHARED_NUMERICS),
        )
        for name, stage in records.stages.items()
    }
    known = seconds_of(params.cells)
    trainings = {name: cell_of[name] for name in tasks if name.startswith("train ")}
    return longest_first(
        tasks, {name: known[key] for name, key in trainings.items() if key in known}
    )


def _show(records: StageRecords) -> int:
    """Stages that are stale now; those that need them are played if they leave other bytes."""
    stale = [name for name in records.stages if records.is_stale(name)]
    print("\n".join(stale) if stale else "everything is up to date")
    return 0
