"""The stages of a season as DVC knows them: what each needs, and whether it is stale."""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import networkx
from dvc.dependency import Dependency
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.stage import PipelineStage
from tqdm import tqdm

from benchmark.analysis.relocks import Change
from benchmark.commands.task_display import counted
from benchmark.commands.task_queue import SHARED_NUMERICS
from benchmark.core.errors import UserError
from benchmark.core.numerics import Numerics
from benchmark.core.records import Record, read_record
from benchmark.season.code_digests import DIGESTS
from benchmark.season.parameters import Cell, Fusion
from benchmark.season.season_files import SEASONS

RECORD = "record.json"  # of a cell's folder


class StageRecords:
    """Stages by name, each after those that it needs."""

    def __init__(self, repo: Repo, targets: list[str]) -> None:
        self.repo = repo
        self.graph = repo.index.graph  # from a stage to those that it needs
        wanted = {stage for target in targets for stage in repo.stage.collect(target)}
        needed = wanted.union(*(networkx.descendants(self.graph, stage) for stage in wanted))
        ordered = networkx.topological_sort(self.graph.subgraph(needed).reverse())
        self.stages: dict[str, PipelineStage] = {_name(stage): stage for stage in ordered}
        self.played = self.kept = 0
        self.lost = 0  # cells that were played, and failed
        self.inputs: dict[str, dict] = {}  # of stages that were found stale, as they were then

    def needs(self, name: str) -> tuple[str, ...]:
        """Names of the stages that write what this one reads."""
        return tuple(_name(stage) for stage in self.graph.successors(self.stages[name]))

    def is_stale(self, name: str) -> bool:
        """Whether an input, an output or the command is other than it was when last played."""
        with self.repo.lock:
            stale = self.stages[name].changed()
            if stale:
                self.inputs[name] = _inputs(self.stages[name])
        self.kept += not stale
        return stale

    def ended(self, name: str) -> str:
        """Note in the lock file that a stage was played, unless an input changed meanwhile: what
        the stage made is of the former one."""
        stage = self.stages[name]
        with self.repo.lock:
            if edited := _edited(self.inputs.get(name, {}), _inputs(stage)):
                return f"{', '.join(edited)} changed while it ran; play again"
            stage.save(run_cache=False)
            stage.commit()
            stage.dump(update_pipeline=False)
        self.played += 1
        for record in _records(stage):
            self.lost += record.status == "failed"
            if record.status != "ok":
                tqdm.write(f"{name}: no result: {why(record)}", file=sys.stderr)
        return ""

    def cell_of(self, name: str) -> str:
        """The key of the cell that a stage trains or evaluates, of `python -m MODULE CELL ...`."""
        return next(iter(self.stages[name].cmd.split()[3:]), "")

    def changed_code(self, numerics: Mapping[str, Numerics]) -> dict[str, set[Change]]:
        """Stage -> digests of code, and files of an own method's, that differ from those it was
        played with. Stages that were never played, or have another command, are left out.
        `numerics` are those of cells."""
        changed = {}
        for name, stage in self.stages.items():
            computed = numerics_text(numerics.get(self.cell_of(name), SHARED_NUMERICS))
            changes = set(_changes(stage, computed))
            if changes and not stage.cmd_changed:
                changed[name] = changes
        return changed

    def other_outputs(self) -> list[str]:
        """Outputs that are there, and are not what their stages left when they were last played."""
        outs = [out for stage in self.stages.values() for out in stage.outs if out.exists]
        made = [out for out in outs if Path(out.fs_path) != DIGESTS.absolute()]
        return [str(out) for out in made if out.hash_info and out.changed_checksum()]

    def relock(self, names: Iterable[str]) -> None:
        """Let the locks of stages name the code that is there, as if it had played them."""
        with self.repo.lock:
            for name in names:
                for dep in _code(self.stages[name]).values():
                    dep.save()
                self.stages[name].dump(update_pipeline=False)


def _code(stage: PipelineStage) -> dict[str, Dependency]:
    """Inputs in data/code/, and modules of an own method, by their paths."""
    paths = {os.path.relpath(dep.fs_path): dep for dep in stage.deps}
    return {
        path: dep
        for path, dep in paths.items()
        if Path(path).parent == DIGESTS or Path(path).suffix == ".py"
    }


def _changes(stage: PipelineStage, numerics: str) -> Iterator[Change]:
    """None of a stage that was never played; of an input that it did not have then, the former hash
    is empty."""
    code = _code(stage)
    for path, dep in code.items() if any(dep.hash_info for dep in code.values()) else ():
        former, present = dep.hash_info.value or "", dep.get_hash().value if dep.exists else ""
        if former != present:
            yield Change(path, former, present, numerics)


def _inputs(stage: PipelineStage) -> dict[str, str | None]:
    """Path of each dependency that there is -> its hash."""
    return {str(dep): dep.get_hash().value for dep in stage.deps if dep.exists}


def _edited(before: dict[str, str | None], now: dict[str, str | None]) -> list[str]:
    return [path for path, value in before.items() if now.get(path) != value]


def numerics_text(numerics: Numerics) -> str:
    """For notes, as in "portable, 1 thread"."""
    return f"{numerics.mode}, {counted(numerics.threads, 'thread')}"


def all_of(season: str) -> str:
    """The address of a season's last stage, which needs all others."""
    return f"{SEASONS}/{season}/dvc.yaml:metrics"


def evaluations_of(season: str, cells: Iterable[Cell | Fusion]) -> list[str]:
    """The addresses of the stages that evaluate cells."""
    pipelines = SEASONS / season / "pipelines"
    return [
        f"{pipelines}/{cell.dataset}/{cell.preset}/dvc.yaml:evaluate-{cell.seed}" for cell in cells
    ]


@contextmanager
def opened(targets: list[str]) -> Iterator[StageRecords]:
    """The stages that `targets`, addresses of stages, need, and themselves."""
    logging.getLogger("dvc").setLevel(logging.WARNING)  # not a line for each lock file
    logging.getLogger("dvc.progress").setLevel(logging.CRITICAL)  # nor a bar for each hash
    logging.getLogger("dvc.output").setLevel(logging.ERROR)  # nor a warning for an empty folder
    try:
        with Repo(_wait_for_lock=True) as repo:  # another `play`, or `dvc status`, may have it
            yield StageRecords(repo, targets)
    except DvcException as error:
        expected = "pipelines and locks that it can read"
        raise UserError("DVC", expected, error, "run: dvc status") from error


def why(record: Record) -> str:
    """Why a cell has no result, on one line."""
    reason = " ".join(record.reason.split())
    return reason if record.status == "failed" else f"not applicable: {reason}"


def _records(stage: PipelineStage) -> list[Record]:
    """That of a cell, if the stage is its evaluation."""
    paths = (Path(out.fs_path) for out in stage.outs)
    return [read_record(path.parent) for path in paths if path.name == RECORD]


def _name(stage: PipelineStage) -> str:
    """What a user calls it: `train shapes/scan_t2i_avg 0`, `prepare shapes`, `report demo`."""
    verb, _, number = stage.name.partition("-")
    folder = Path(stage.path_in_repo).parent
    place = "/".join(folder.parts[3:]) or folder.name
    return " ".join(part for part in (verb, place, number) if part)
