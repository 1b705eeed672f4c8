"""Run what is stale of a season, several stages at once. DVC keeps the record.

    rematch play                          the active season, on all cores
    rematch play flickr8k --only '*scan*'  some cells, with what they need
    rematch play --dry                    what would be run
    rematch play --gpus 0,1 --jobs 4      two cells on each GPU

It runs what `dvc repro` would, and afterwards DVC finds everything up to date. A stage that fails
stops those that need it, and no others; a killed training goes on where it was, and Ctrl-C kills
what runs. What a stage says is in .scratch/log/. The exit status is 1 if a stage or one of the
cells failed.
"""

import argparse
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage import PipelineStage

from benchmark.commands import tasks
from benchmark.core.errors import UserError
from benchmark.core.locks import alone
from benchmark.core.records import RECORD, read_record
from benchmark.season.parameter_files import SEASONS, active_season, cells_like, season_here
from benchmark.season.pipeline import write_pipelines

LOCK = Path(".scratch/play.lock")
FLUSH_AFTER = 60  # seconds between two writings of lock files, each of which takes seconds


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("season", nargs="?", help="default: the active one")
    parser.add_argument(
        "--only", default="*", metavar="PATTERNS", help="cells, as in 'shapes-scan*,*-vse-0'"
    )
    parser.add_argument(
        "--jobs", type=int, help="stages at once; default: one per core, or per GPU of --gpus"
    )
    parser.add_argument("--gpus", default="", metavar="LIST", help="as in 0,1: jobs share them")
    parser.add_argument("--dry", action="store_true", help="say what is stale, and run nothing")


def main(arguments: argparse.Namespace) -> int:
    params = season_here(arguments.season)
    chosen = cells_like(params, arguments.only, "--only")
    gpus = tuple(filter(None, arguments.gpus.split(",")))
    jobs = arguments.jobs or len(gpus) or os.cpu_count()
    file = f"{SEASONS}/{params.season}/dvc.yaml"
    targets = [f"{file}:evaluate-{key}" for key in chosen]
    if arguments.only == "*":  # and, of the active season, one that `dvc status` looks at, too
        targets = ["dvc.yaml" if params.season == active_season() else f"{file}:metrics"]
    with alone(LOCK, "play"):
        write_pipelines(params)  # of the season file as it is now
        with opened(targets) as records:
            if arguments.dry:
                stale = [name for name in records.stages if records.is_stale(name)]
                print("\n".join(stale) if stale else "everything is up to date")
                return 0
            stages = {
                name: tasks.of_stage(params, name, stage.cmd, records.needs(name))
                for name, stage in records.stages.items()
            }
            failed = tasks.run_all(stages, jobs, gpus, records.is_stale, records.ended)
    print(f"{records.run} stages run, {records.kept} up to date, {len(failed)} failed or not begun")
    lost = []
    for folder in (Path(params.everything[key].folder) for key in chosen):
        if (folder / RECORD).is_file() and (record := read_record(folder)).status != "ok":
            lost.append(record.status)
            print(f"{folder}: {record.status}: {' '.join(record.reason.split())}")
    return 1 if failed or "failed" in lost else 0


class Records:
    """The stages that targets need, and themselves, as DVC knows them, each after its needs."""

    def __init__(self, repo: Repo, targets: list[str]) -> None:
        self.repo = repo
        self.graph = repo.index.graph  # from a stage to those that it needs
        wanted = {stage for target in targets for stage in repo.stage.collect(target)}
        needed = wanted.union(*(networkx.descendants(self.graph, stage) for stage in wanted))
        ordered = networkx.topological_sort(self.graph.subgraph(needed).reverse())
        self.stages: dict[str, PipelineStage] = {stage.name: stage for stage in ordered}
        self.inputs: dict[str, dict] = {}  # of stages that were found stale, as they were then
        self.unwritten: list[PipelineStage] = []  # that ended
        self.kept = self.run = 0
        self.written = time.monotonic()

    def needs(self, name: str) -> tuple[str, ...]:
        """Names of the stages that write what this one reads."""
        return tuple(stage.name for stage in self.graph.successors(self.stages[name]))

    def is_stale(self, name: str) -> bool:
        """Whether an input, an output or the command is other than it was when last run."""
        with self.repo.lock:
            if stale := self.stages[name].changed():
                self.inputs[name] = _inputs(self.stages[name])
        self.kept += not stale
        return stale

    def ended(self, name: str) -> str:
        """Note that a stage was run, unless an input changed meanwhile: what the stage made is of
        the former one. The reason why it does not count, or nothing."""
        stage, before = self.stages[name], self.inputs[name]
        with self.repo.lock:
            now = _inputs(stage)
            if edited := [path for path, value in before.items() if now.get(path) != value]:
                return f"{', '.join(edited)} changed while it ran; run it again"
            stage.save(run_cache=False)
            stage.commit()
        self.run += 1
        self.unwritten.append(stage)
        if time.monotonic() - self.written > FLUSH_AFTER:
            self.write()
        return ""

    def write(self) -> None:
        """Write the lock files of the stages that ended."""
        files = {stage.dvcfile.path: stage.dvcfile for stage in self.unwritten}
        with self.repo.lock:
            for path, file in files.items():
                stages = [stage for stage in self.unwritten if stage.dvcfile.path == path]
                file.dump_stages(stages, update_pipeline=False)
        self.unwritten.clear()
        self.written = time.monotonic()


def _inputs(stage: PipelineStage) -> dict[str, object]:
    """Each dependency that there is -> its hash, or the values of its parameters."""
    return {str(dep): dep.get_hash().value for dep in stage.deps if dep.exists}


@contextmanager
def opened(targets: list[str]) -> Iterator[Records]:
    """The records of stages; what ended inside is in the lock files afterwards."""
    for name in ("dvc", "dvc.progress", "dvc.output"):  # a line or a bar for each file
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with Repo(_wait_for_lock=True) as repo:  # another `play`, or `dvc status`, may have it
            records = Records(repo, targets)
            try:
                yield records
            finally:
                records.write()
    except DvcException as error:
        expected = "pipelines and locks that it can read"
        raise UserError("DVC", expected, error, "run: dvc status") from error
