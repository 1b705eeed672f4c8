"""Run what is stale of a season, several stages at once. DVC keeps the record.

    rematch play                          the active season, on all cores
    rematch play flickr8k --only '*scan*'  some cells, with what they need
    rematch play --dry                    what would be run; nothing is written
    rematch play --gpus 0,1 --jobs 4      two cells on each GPU

It runs what `dvc repro` would, and afterwards DVC finds everything up to date. A stage
that fails stops those that need it, and no others; a killed training goes on where it
was, and Ctrl-C kills what runs. What a stage says is in .scratch/log/. The exit status
is 1 if a stage failed, or a cell that was evaluated now.
"""

import argparse
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage import PipelineStage

from benchmark.collect.__main__ import collect
from benchmark.commands import tasks
from benchmark.core.command_line import alone
from benchmark.core.errors import UserError
from benchmark.data.results import RESULTS, read_records
from benchmark.season import parameter_files as files
from benchmark.season import pipeline

LOCK = Path(".scratch/play.lock")
# seconds between two writings of lock files, each of which takes seconds
FLUSH_AFTER = 60


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("season", nargs="?", help="default: the active one")
    add(
        "--only",
        default="*",
        metavar="PATTERNS",
        help="cells, as in 'shapes-scan*,*-vse-0'",
    )
    add(
        "--jobs",
        type=int,
        help="stages at once; default: one per core, or per GPU of --gpus",
    )
    add("--gpus", default="", metavar="LIST", help="as in 0,1: jobs share them")
    add("--dry", action="store_true", help="say what is stale, and run nothing")


def main(arguments: argparse.Namespace) -> int:
    gpus = tuple(arguments.gpus.split(",")) if arguments.gpus else ()
    if not all(re.fullmatch("[0-9]{1,3}", gpu) for gpu in gpus) or len(set(gpus)) < len(
        gpus
    ):
        expected = "numbers of GPUs, each once, as in 0,1"
        raise UserError("--gpus", expected, repr(arguments.gpus), "correct it")
    for gpu in gpus:  # the jobs of one that is not there would run on the CPU
        # torch takes a second that --help should not
        from benchmark.core.devices import pick

        pick(f"cuda:{gpu}")
    jobs = tasks.jobs_of(arguments.jobs, gpus)
    files.check_project()
    params = files.resolved(arguments.season)
    files.check_kept(params.season)
    chosen = files.cells_like(params, arguments.only, "--only")
    last = [pipeline.evaluation_of(params, key) for key in chosen]
    if arguments.only == "*":
        last += ["cells", "report"]
    file = f"{files.SEASONS}/{params.season}/dvc.yaml"
    # of the season file as it is now, against the pipelines as they are
    if arguments.dry:
        edited = pipeline.edited(params)
        ordered = pipeline.in_order(pipeline.all_stages(params), last)
        with opened(
            [f"{file}:{name}" for name in last if name not in edited]
        ) as records:
            edited |= {
                x for x in records.stages if x in ordered and records.is_stale(x)
            }
        stale = [name for name in ordered if name in edited]
        print("\n".join(stale) or "everything is up to date")
        return 0
    targets = [f"{file}:{name}" for name in last]
    if arguments.only == "*" and params.season == files.active_season():
        targets = ["dvc.yaml"]  # one that `dvc status` looks at, too
    with alone(LOCK, "play"):
        pipeline.write_pipelines(params)  # of the season file as it is now
        with opened(targets) as records:
            stages, seconds = {}, tasks.training_seconds(params)
            for name, stage in records.stages.items():
                needs = tuple(other.name for other in records.graph.successors(stage))
                stages[name] = tasks.of_stage(params, name, stage.cmd, needs, seconds)
            failed = tasks.run_all(stages, jobs, gpus, records.is_stale, records.ended)
        cells = [params.everything[key] for key in chosen]
        kept = {}
        for dataset in dict.fromkeys(cell.dataset for cell in cells):
            if arguments.only != "*":  # else a stage did
                collect(params, dataset, chosen)
            kept[dataset] = read_records(RESULTS / params.season / dataset)
    run = len(records.run)
    print(
        f"{run} stages run, {records.kept} up to date, {len(failed)} failed or not begun"
    )
    has_failed = bool(failed)
    for cell in cells:
        record = kept[cell.dataset].get(cell.name)
        if record and record.status != "ok":
            is_new = pipeline.evaluation_of(params, cell.key) in records.run
            has_failed |= is_new and record.status == "failed"
            when = "" if is_new else " (of an earlier run)"
            print(
                f"{cell.key}: {record.status}: {' '.join(record.reason.split())}{when}"
            )
    return 1 if has_failed else 0


class Records:
    """The stages that targets need, and themselves, as DVC knows them, each after its
    needs."""

    def __init__(self, repo: Repo, targets: list[str]) -> None:
        self.repo = repo
        self.graph = repo.index.graph  # from a stage to those that it needs
        wanted = {stage for target in targets for stage in repo.stage.collect(target)}
        needed = wanted.union(
            *(networkx.descendants(self.graph, stage) for stage in wanted)
        )
        ordered = networkx.topological_sort(self.graph.subgraph(needed).reverse())
        self.stages: dict[str, PipelineStage] = {stage.name: stage for stage in ordered}
        # of stages that were found stale, as they were then
        self.inputs: dict[str, dict] = {}
        self.unwritten: list[PipelineStage] = []  # that ended
        self.kept, self.run = 0, set[str]()
        self.written = time.monotonic()

    def is_stale(self, name: str) -> bool:
        """Whether an input, an output or the command is other than it was when last
        run."""
        with self.repo.lock:
            if stale := self.stages[name].changed():
                self.inputs[name] = _inputs(self.stages[name])
        self.kept += not stale
        return stale

    def ended(self, name: str) -> str:
        """Note that a stage was run, unless an input changed meanwhile: what the stage
        made is of the former one. The reason why it does not count, or nothing."""
        stage, before = self.stages[name], self.inputs[name]
        with self.repo.lock:
            now = _inputs(stage)
            if edited := [
                path for path, value in before.items() if now.get(path) != value
            ]:
                return f"{', '.join(edited)} changed while it ran; run it again"
            stage.save(run_cache=False)
            stage.commit()
        self.run.add(name)
        self.unwritten.append(stage)
        if time.monotonic() - self.written > FLUSH_AFTER:
            self.write()
        return ""

    def write(self) -> None:
        """Write the lock files of the stages that ended."""
        locks = {stage.dvcfile.path: stage.dvcfile for stage in self.unwritten}
        with self.repo.lock:
            for path, file in locks.items():
                stages = [
                    stage for stage in self.unwritten if stage.dvcfile.path == path
                ]
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
        # another `play`, or `dvc status`, may have it
        with Repo(_wait_for_lock=True) as repo:
            records = Records(repo, targets)
            try:
                yield records
            finally:
                records.write()
    except DvcException as error:
        expected = "pipelines and locks that it can read"
        raise UserError("DVC", expected, error, "run: dvc status") from error
