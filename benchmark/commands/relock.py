"""Let locks name the present code, where a replay shows that it changes no byte of a result.

    python -m benchmark relock demo                   all cells of this season are played again
    python -m benchmark relock demo --cells '*scan*'  some of them

Cells are played again from raw data on, as `verify` does. If what they leave is the same to the
byte, then stages of every season that are stale for their code alone, and for no other files of
data/code/ than these cells hung on, are up to date without being played: `dvc commit` would take
one's word for it. results/SEASON/relocks.json says so of a season, and its report does.
"""

import argparse
from pathlib import Path

from benchmark.analysis.relocks import Relock, note_relock
from benchmark.commands import stage_records, verify
from benchmark.commands.verify import Replayed
from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.fingerprint import fingerprint
from benchmark.core.records import read_record
from benchmark.season.code_digests import write_digests
from benchmark.season.parameter_files import PARAMS
from benchmark.season.presets import PACKAGE_ROOT
from benchmark.season.season_files import SEASONS

RECORD, COST = "record.json", "cost.json"


def configure(parser: argparse.ArgumentParser) -> None:
    verify.configure_replay(parser)


def main(arguments: argparse.Namespace) -> int:
    write_digests(PACKAGE_ROOT)
    played = verify.replayed(arguments)
    print(verify.table(played))
    _check_same(played)
    known = _code_of(played)
    changed = {season: _changed(season) for season in _played_seasons()}
    for season, stages in changed.items():
        same = {name: files for name, files in stages.items() if files <= known}
        if same:
            _follow(season, same, played)
        print(f"{season}: {len(same)} of {len(stages)} stages with other code are up to date")
    return 0


def _check_same(played: Replayed) -> None:
    """Raises UserError where a cell left other bytes than the committed ones."""
    for key in played.after:
        folder = Path(played.cells[key].folder)
        before, after = _left(folder), _left(played.folder / folder)
        names = sorted(before.keys() | after.keys())
        others = ", ".join(name for name in names if before.get(name) != after.get(name))
        if others or not after:
            found = f"other bytes of {others}" if others else "nothing"
            raise UserError(f"relock: {key}", f"what is in {folder}", found, "play the stages")


def _code_of(played: Replayed) -> set[str]:
    """The files of data/code/ that the cells hung on."""
    season = played.params.season
    cells = [stage_records.evaluation_of(season, played.cells[key]) for key in played.after]
    with stage_records.opened(cells) as records:
        return records.code


def _follow(season: str, stages: dict[str, set[str]], played: Replayed) -> None:
    """Note it, and let the locks of stages name the present code."""
    relock = Relock(
        stages=len(stages),
        code=sorted({Path(file).stem for files in stages.values() for file in files}),
        replayed=played.params.season,
        cells=len(played.after),
        fingerprint=fingerprint(),
    )
    note_relock(season, relock)
    with stage_records.opened([stage_records.all_of(season)]) as records:
        records.relock(stages)


def _changed(season: str) -> dict[str, set[str]]:
    """Stage -> files of data/code/ that are not those it was played with."""
    with stage_records.opened([stage_records.all_of(season)]) as records:
        return records.changed_code()


def _played_seasons() -> list[str]:
    return sorted(path.parent.name for path in SEASONS.glob(f"*/{PARAMS}"))


def _left(folder: Path) -> dict[str, object]:
    """What a cell left by the path of its file: digests, of its record all but those of the code,
    and no costs, which hold times."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != COST]
    found: dict[str, object] = {str(path.relative_to(folder)): sha256(path) for path in files}
    if RECORD in found:
        record = read_record(folder)
        trainings = {name: facts | {"code": ""} for name, facts in record.trainings.items()}
        found[RECORD] = record.model_copy(update={"trainings": trainings})
    return found


def _locked_seasons() -> list[str]:
    return sorted(path.parent.name for path in SEASONS.glob("*/params.yaml"))


def _changed(season: str) -> dict[str, set[str]]:
    with stage_records.opened([stage_records.all_of(season)]) as records:
        return records.changed_code()
