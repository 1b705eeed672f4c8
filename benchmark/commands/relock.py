"""Let locks name the present code, where a replay shows that it changes no byte of a result.

    python -m benchmark relock demo                   all cells of this season are played again
    python -m benchmark relock demo --cells '*scan*'  some of them

Cells, and those that they need, are played again from raw data on, as `verify` does. If prepared
tables, results and, by their digests, features are the same to the byte, the locks of every season
name the present code, where the same files of code (digests in data/code/, modules of own methods)
had changed from the same former ones and stages compute with the same numerics. That shows as much
as the cells reach: options that none of them has, larger data, downloads and other devices are for
tests to show. `dvc commit` would take one's word for all of it, and for changed data and options.
results/SEASON/relocks.json says so of a season, and its report does.

Weights keep the digest of the code that trained them: `query`, and an evaluation that becomes stale
later, ask for a new training.
"""

import argparse
from pathlib import Path

from benchmark.analysis.relocks import Change, Relock, Shown, note_relock, read_relocks
from benchmark.commands import play, replay_tasks, stage_records, task_queue, verify
from benchmark.commands.project_folder import alone_here, cells_like_any, season_here
from benchmark.commands.stage_records import RECORD
from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.fingerprint import fingerprint
from benchmark.core.records import read_record
from benchmark.data import prepared_tables
from benchmark.season import code_digests
from benchmark.season.parameter_files import PARAMS, read_params
from benchmark.season.parameters import Cell, Fusion, Params
from benchmark.season.presets import PACKAGE_ROOT
from benchmark.season.season_files import SEASONS

COST = "cost.json"

Evidence = dict[Change, list[Shown]]  # replays by the changes that they reached
Left = dict[str, object]  # what lies in a folder, by the path of a file in it


def configure(parser: argparse.ArgumentParser) -> None:
    verify.configure_replay(parser)


def main(arguments: argparse.Namespace) -> int:
    params = season_here(arguments.season)
    verify.require_numerics(params)
    with alone_here(play.PLAYING, "relock, or play,"):
        chosen = cells_like_any(params, arguments.cells, "--cells")
        cells = replay_tasks.with_needs(params, chosen)
        code_digests.write_digests(PACKAGE_ROOT)
        code, before = _left(code_digests.DIGESTS), _committed(cells)
        reached = _reached(params, cells)
        played = verify.replayed(arguments)
        print(verify.table(played))
        _check_same(before, played.folder)
        code_digests.write_digests(PACKAGE_ROOT)
        if _left(code_digests.DIGESTS) != code:
            expected = "code that stays while cells are played"
            raise UserError("relock", expected, "edits", "try again")
        season, count, machine = params.season, len(cells), fingerprint()
        shown = Shown(season=season, cells=count, fingerprint=machine, code=sorted(reached))
        _follow(_evidence(shown))
    return 0


def _committed(cells: dict[str, Cell | Fusion]) -> dict[Path, Left]:
    """What is in the folders of cells and of their prepared tables. Raises UserError for a cell
    without a result: nothing would be seen of code that it did not come to."""
    for key, cell in cells.items():
        folder = Path(cell.folder)
        status = read_record(folder).status if (folder / RECORD).is_file() else "nothing"
        if status != "ok":
            raise UserError(f"relock: {key}", "a result", status, "choose others: --cells")
    folders = {prepared_tables.ROOT / cell.dataset for cell in cells.values()}
    for folder in folders:
        if not folder.is_dir():
            name = f"seasons/shared/pipelines/{folder.name}/dvc.yaml:prepare"
            raise UserError(folder, "prepared tables", "nothing", f"run: dvc repro {name}")
    folders |= {Path(cell.folder) for cell in cells.values()}
    return {folder: _left(folder) for folder in sorted(folders)}


def _left(folder: Path) -> Left:
    """Digests of files; of a record all but the digests of code, and no costs, which hold times."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != COST]
    left: Left = {str(path.relative_to(folder)): sha256(path) for path in files}
    if RECORD in left:
        record = read_record(folder)
        trainings = {name: facts | {"code": ""} for name, facts in record.trainings.items()}
        left[RECORD] = record.model_copy(update={"trainings": trainings})
    return left


def _reached(params: Params, cells: dict[str, Cell | Fusion]) -> set[Change]:
    """The changes of code that cells hang on, where the former code is known. Raises UserError
    where outputs are not those of the locks: the replay would be compared with something else."""
    addresses = stage_records.evaluations_of(params.season, cells.values())
    with stage_records.opened(addresses) as records:
        if others := records.other_outputs():
            raise UserError("relock", "outputs as in the locks", ", ".join(others), "play them")
        changed = records.changed_code(task_queue.numerics_by_cell(params))
    return {change for changes in changed.values() for change in changes if change.former}


def _check_same(before: dict[Path, Left], replayed: Path) -> None:
    """Raises UserError where the replay left other bytes than the committed ones."""
    for folder, left in before.items():
        after = _left(replayed / folder)
        names = sorted(left.keys() | after.keys())
        others = ", ".join(name for name in names if left.get(name) != after.get(name))
        if others:
            found = f"other bytes of {others}" if after else "nothing"
            raise UserError("relock", f"what is in {folder}", found, "play the stages")


def _evidence(shown: Shown) -> Evidence:
    """This replay, and earlier ones that are noted."""
    noted = [relock for season in _seasons() for relock in read_relocks(season)]
    evidence: Evidence = {}
    for replay in [replay for relock in noted for replay in relock.shown] + [shown]:
        facts = replay.model_copy(update={"code": []})
        for change in replay.code:
            known = evidence.setdefault(change, [])
            known += [facts] if facts not in known else []
    return evidence


def _follow(evidence: Evidence) -> None:
    """Let the locks of all seasons name the present code where all that changed is shown, and note
    by what."""
    for season in _seasons():
        numerics = task_queue.numerics_by_cell(read_params(season))
        with stage_records.opened([stage_records.all_of(season)]) as records:
            changed = records.changed_code(numerics)
            same = {name: code for name, code in changed.items() if code <= evidence.keys()}
            records.relock(same)
        if same:
            shown = _shown(set().union(*same.values()), evidence)
            note_relock(season, Relock(stages=len(same), shown=shown))
        print(f"{season}: {len(same)} of {len(changed)} stages with former code follow")
    print("Weights keep the digest of their code: to use them again, train them again")


def _shown(changes: set[Change], evidence: Evidence) -> list[Shown]:
    """The replays that showed changes, each with its own."""
    replays = [replay for change in sorted(changes) for replay in evidence[change]]
    return [
        replay.model_copy(update={"code": [c for c in sorted(changes) if replay in evidence[c]]})
        for nth, replay in enumerate(replays)
        if replay not in replays[:nth]
    ]


def _seasons() -> list[str]:
    return sorted(path.parent.name for path in SEASONS.glob(f"*/{PARAMS}"))
