"""Run the stale stages of a season, several at once. DVC keeps the record.

    rematch play                          the active season, on all cores
    rematch play flickr8k --only '*scan*'  some cells, with what they need
    rematch play --dry                    list the stages that would run; write nothing
    rematch play --gpus 0,1 --jobs 4      two cells on each GPU

It runs the stages that `dvc repro` would run, and afterwards DVC finds the season up to
date. A stage that fails stops those that need it, and no others. A training that was
killed resumes where it was; Ctrl-C ends all that runs. What a stage prints is in
.scratch/log/. The exit status is 1 if a stage failed, or if the record of a cell that
was evaluated in this run says that it failed.
"""

import argparse
import logging
import re
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import networkx
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.repo.index import Index
from dvc.stage import PipelineStage

from benchmark.collect.__main__ import collect
from benchmark.commands import tasks
from benchmark.commands.tasks import Task
from benchmark.core.command_line import add_season_first, alone
from benchmark.core.errors import UserError
from benchmark.core.names import folder_of
from benchmark.core.records import Record, read_all
from benchmark.data.results import RECORDS, RESULTS
from benchmark.season import parameter_files as files
from benchmark.season import pipeline, stages
from benchmark.season.parameters import Params
from benchmark.season.stages import Kind

LOCK = Path(".scratch/play.lock")
EVERYTHING = "*"  # cells
ROOT_PIPELINE = "dvc.yaml"
# seconds between two writings of lock files, each of which takes seconds
WRITE_AFTER = 60


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_season_first(parser)
    cells = "run only these cells, and what they need: 'shapes-scan*,*-vse-0'"
    add("--only", default=EVERYTHING, metavar="PATTERNS", help=cells)
    jobs = "stages at once; default: one per core, or one per GPU of --gpus"
    add("--jobs", type=int, help=jobs)
    add("--gpus", default="", metavar="LIST", help="GPUs that jobs share, as in 0,1")
    add("--dry", action="store_true", help="list what is stale, and run nothing")


def main(arguments: argparse.Namespace) -> int:
    gpus = gpus_of(arguments.gpus)
    jobs = tasks.jobs_of(arguments.jobs, gpus)
    files.check_project()
    params = files.resolved(arguments.season)
    files.check_kept(params.season)
    chosen = files.cells_like(params, arguments.only)
    last = [pipeline.evaluation_of(params, key) for key in chosen]
    is_whole = arguments.only == EVERYTHING
    if is_whole:
        last += [Kind.CELLS, Kind.REPORT]
    if arguments.dry:
        stale = stale_stages(params, last)
        print("\n".join(stale) or "everything is up to date")
        if stale:
            print(hours_of(params, stale), file=sys.stderr)
        return 0
    if is_whole and params.season == files.active_season():
        last = [pipeline.ACTIVE.name]  # one that `dvc status` looks at, too
    with alone(LOCK, "play"):
        pipeline.write_pipelines(params)  # of the season file as it is now
        with opened(params.season, last) as records:
            for name in records.left_out:
                print(f"dvc.yaml: {name}: not of a season, left to: dvc repro {name}")
            named = tasks_of(params, records)
            failures = tasks.run_all(named, jobs, gpus, records.begin, records.ended)
        if not is_whole:  # else a stage did
            datasets = dict.fromkeys(params.everything[key].dataset for key in chosen)
            for folder in dict.fromkeys(map(folder_of, datasets)):
                collect(params, folder, chosen)
    run = f"{len(records.run)} stages run, {records.kept} up to date"
    print(f"{run}, {tasks.counted(failures)}")
    has_failed = tell_cells(params, chosen, records.run)
    return 1 if failures or has_failed else 0


def gpus_of(text: str) -> tuple[str, ...]:
    """The numbers of GPUs in a list such as "0,1". Raises UserError for other text and
    for a GPU that this machine lacks."""
    gpus = tuple(text.split(",")) if text else ()
    are_numbers = all(re.fullmatch("0|[1-9][0-9]{0,2}", gpu) for gpu in gpus)
    if not are_numbers or len(set(gpus)) < len(gpus):
        raise UserError(
            "--gpus",
            expected="numbers of GPUs, each once, as in 0,1",
            found=repr(text),
            do="correct it",
        )
    for gpu in gpus:  # the jobs of one that is not there would run on the CPU
        # torch takes a second that --help should not
        from benchmark.core.devices import pick

        pick(f"cuda:{gpu}")
    return gpus


def stale_stages(params: Params, last: list[str]) -> list[str]:
    """Names of the stages that `last` and their needs would run, in their order: of the
    season file as it is now, against the pipelines as they are."""
    stale = pipeline.edited(params)
    ordered = stages.in_order(pipeline.all_stages(params), last)
    on_disk = [name for name in last if name not in stale]
    with opened(params.season, on_disk) as records:
        for name in records.stages:
            if name in ordered and records.is_changed(name):
                stale.add(name)
    return [name for name in ordered if name in stale]


def hours_of(params: Params, stale: Collection[str]) -> str:
    """How many stages would run, and how long their trainings took by kept costs."""
    seconds = tasks.training_seconds(params)
    trainings = 0
    known = []
    groups = (pipeline.TRAIN, pipeline.TRAIN_ON)
    for key in params.cells:
        if any(f"{group}@{key}" in stale for group in groups):
            trainings += 1
            if key in seconds:
                known.append(seconds[key])
    number = "1 stage" if len(stale) == 1 else f"{len(stale)} stages"
    line = f"{number}, {trainings} of them trainings"
    if not trainings:
        return line
    command = f"rematch doctor {params.season} --estimate"
    estimate = f"{command} says how many hours on this machine"
    if not known:
        return f"{line}, none of which was timed yet; {estimate}"
    took = f"took {sum(known) / 3600:.1f} hours, one after the other"
    if len(known) < trainings:
        took = f"{len(known)} of these {took}; no time is known of the others"
    return f"{line}: {took}, on the machine that ran them; {estimate}"


def tasks_of(params: Params, records: "Records") -> dict[str, Task]:
    """The stages of the records. Raises UserError for one that somebody else wrote."""
    known = pipeline.all_stages(params) | {pipeline.ACTIVE.name: pipeline.ACTIVE}
    seconds = tasks.training_seconds(params)
    named = {}
    for name, stage in records.stages.items():
        if name not in known:
            raise UserError(
                f"{stage.path_in_repo}: {name}",
                expected="the stages that `rematch season` writes",
                found="another one",
                do="run: dvc repro",
            )
        needs = tuple(other.name for other in records.graph.successors(stage))
        named[name] = tasks.of_stage(params, known[name], needs, seconds)
    return named


def tell_cells(params: Params, chosen: list[str], run: set[str]) -> bool:
    """Print the cells that have no scores; whether one of them failed in `run`."""
    has_failed = False
    kept = {}
    for key in chosen:
        cell = params.everything[key]
        folder = RESULTS / params.season / folder_of(cell.dataset)
        if folder not in kept:
            kept[folder] = read_all(Record, folder / RECORDS)
        record = kept[folder].get(cell.kept_as)
        if record is None or record.status == "ok":
            continue
        is_new = pipeline.evaluation_of(params, key) in run
        has_failed |= is_new and record.status == "failed"
        when = "" if is_new else " (of an earlier run)"
        print(f"{key}: {record.status}: {' '.join(record.reason.split())}{when}")
    return has_failed


class Records:
    """The stages of the names `last` and all that they need, as DVC knows them, each
    after its needs."""

    def __init__(self, repo: Repo, season: str, last: list[str]) -> None:
        self.repo = repo
        indexes = []
        # to read those of all seasons takes longer than all else that is done here
        for file in (Path(ROOT_PIPELINE), *pipeline.files_of(season)):
            if file.is_file():
                indexes.append(Index.from_file(repo, str(file.absolute())))
        index = Index.from_indexes(repo, indexes)
        self.graph = index.graph  # from a stage to those that it needs
        needed = {stage for stage in index.stages if stage.name in last}
        self.left_out = []
        if pipeline.ACTIVE.name in last:
            # a user's own stages, which `dvc repro` runs with the active season
            for stage in index.stages:
                if stage.path_in_repo == ROOT_PIPELINE and stage not in needed:
                    self.left_out.append(stage.name)
        for stage in list(needed):
            needed |= networkx.descendants(self.graph, stage)
        ordered = networkx.topological_sort(self.graph.subgraph(needed).reverse())
        self.stages: dict[str, PipelineStage] = {stage.name: stage for stage in ordered}
        self.inputs: dict[str, dict] = {}  # of each stage that began, as they were then
        self.run: set[str] = set()  # names of stages that ended
        self.unwritten: list[PipelineStage] = []  # of those, not yet in lock files
        self.kept = 0  # number of stages that were up to date
        self.last_write = time.monotonic()

    def is_changed(self, name: str) -> bool:
        """Whether an input, an output or the command is other than it was when last
        run."""
        with self.repo.lock:
            return self.stages[name].changed()

    def begin(self, name: str) -> bool:
        """Whether a stage is stale and has to run. Note its inputs if so; else count it
        as up to date."""
        if not self.is_changed(name):
            self.kept += 1
            return False
        with self.repo.lock:
            self.inputs[name] = _inputs(self.stages[name])
        return True

    def ended(self, name: str) -> str:
        """Save what a stage made, unless an input changed while it ran: what it made
        belongs to the old input. The reason why it was not saved, or ""."""
        stage = self.stages[name]
        before = self.inputs[name]
        with self.repo.lock:
            now = _inputs(stage)
            edited = [path for path in before if now.get(path) != before[path]]
            if edited:
                return f"{', '.join(edited)} changed while it ran; run it again"
            stage.save(run_cache=False)
            stage.commit()
        self.run.add(name)
        self.unwritten.append(stage)
        if time.monotonic() - self.last_write > WRITE_AFTER:
            self.write()
        return ""

    def write(self) -> None:
        """Write the lock files of the stages that ended."""
        ended: dict[str, list[PipelineStage]] = {}
        for stage in self.unwritten:
            ended.setdefault(stage.dvcfile.path, []).append(stage)
        with self.repo.lock, held_back(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for of_file in ended.values():
                of_file[0].dvcfile.dump_stages(of_file, update_pipeline=False)
        self.unwritten.clear()
        self.last_write = time.monotonic()


@contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """Signals that arrive inside take effect afterwards: half of a lock file is a valid
    one that forgot its last stages."""
    arrived = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    handlers = {number: signal.signal(number, note) for number in signals}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)


def _inputs(stage: PipelineStage) -> dict[str, object]:
    """Each dependency that there is -> its hash, or the values of its parameters."""
    return {str(dep): dep.get_hash().value for dep in stage.deps if dep.exists}


@contextmanager
def opened(season: str, last: list[str]) -> Iterator[Records]:
    """The records of stages; what ended inside is in the lock files afterwards."""
    for name in ("dvc", "dvc.progress", "dvc.output"):  # a line or a bar for each file
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        # another `play`, or `dvc status`, may have it
        with Repo(_wait_for_lock=True) as repo:
            records = Records(repo, season, last)
            try:
                yield records
            finally:
                records.write()
    except DvcException as error:
        raise UserError(
            "DVC",
            expected="pipelines and locks that it can read",
            found=error,
            do="run: dvc status",
        ) from error
