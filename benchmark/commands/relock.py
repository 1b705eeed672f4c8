"""Let locks name the present code, where a replay shows that it changes no byte of a result.

    python -m benchmark relock demo                   all cells of this season are played again
    python -m benchmark relock demo --cells '*scan*'  some of them

Cells are played again from raw data on, as `verify` does. If what they leave is the same to the
byte, the locks of every season name the present code, where the same files of data/code/ had
changed from the same former ones. That shows as much as the cells reach: what runs on larger data
alone, or downloads, is for tests to show. `dvc commit` would take one's word for all of it.
results/SEASON/relocks.json says so of a season, and its report does.

Weights keep the digest of the code that trained them: `query`, and an evaluation that becomes stale
later, ask for a new training.
"""

import argparse
from pathlib import Path

from benchmark.analysis.relocks import Change, Relock, Shown, note_relock, read_relocks
from benchmark.commands import play, stage_records, verify
from benchmark.commands.project_folder import alone_here, season_here
from benchmark.commands.verify import Replayed
from benchmark.core.errors import UserError
from benchmark.core.files import sha256
from benchmark.core.fingerprint import fingerprint
from benchmark.core.records import read_record
from benchmark.season import code_digests
from benchmark.season.parameter_files import PARAMS, cells_like
from benchmark.season.parameters import Params
from benchmark.season.presets import PACKAGE_ROOT
from benchmark.season.season_files import SEASONS

RECORD, COST = "record.json", "cost.json"

Changes = dict[str, set[Change]]  # by stage


def configure(parser: argparse.ArgumentParser) -> None:
    verify.configure_replay(parser)


def main(arguments: argparse.Namespace) -> int:
    params = season_here(arguments.season)
    with alone_here(play.PLAYING, "relock, or play,"):
        code = _code()
        reached = _reached(params, arguments.cells)
        stale = {season: _changes(season) for season in _seasons()}
        played = verify.replayed(arguments)
        print(verify.table(played))
        _check_same(played)
        if _code() != code:
            raise UserError(
                "relock", "code that stays while cells are played", "edits", "try again"
            )
        replay = Shown(params.season, len(played.after), fingerprint())
        shown = _shown_before() | dict.fromkeys(reached, [replay])
        for season, of_season in stale.items():
            same = {stage: of for stage, of in of_season.items() if of <= shown.keys()}
            if same:
                _follow(season, same, shown)
            print(f"{season}: {len(same)} of {len(of_season)} stages with former code follow")
    return 0


def _code() -> dict[str, str]:
    """What the files of data/code/ say; they are written."""
    code_digests.write_digests(PACKAGE_ROOT)
    return {path.name: path.read_text() for path in code_digests.DIGESTS.iterdir()}


def _reached(params: Params, pattern: str) -> set[Change]:
    """The changes of code that the chosen cells hang on."""
    cells = {**params.cells, **params.fusions}
    chosen = [cells[key] for key in cells_like(params, pattern, "--cells")]
    addresses = [stage_records.evaluation_of(params.season, cell) for cell in chosen]
    with stage_records.opened(addresses) as records:
        return set().union(*records.changed_code().values())


def _shown_before() -> dict[Change, list[Shown]]:
    """Changes that earlier replays have shown to change no byte, with these."""
    relocks = [relock for season in _seasons() for relock in read_relocks(season)]
    return {change: relock.replays for relock in relocks for change in relock.code}


def _changes(season: str) -> Changes:
    with stage_records.opened([stage_records.all_of(season)]) as records:
        return records.changed_code()


def _seasons() -> list[str]:
    return sorted(path.parent.name for path in SEASONS.glob(f"*/{PARAMS}"))


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


def _follow(season: str, stages: Changes, shown: dict[Change, list[Shown]]) -> None:
    """Note it, and let the locks of stages name the present code."""
    code = sorted(set().union(*stages.values()))
    replays = sorted({replay for change in code for replay in shown[change]})
    note_relock(season, Relock(stages=len(stages), code=code, replays=replays))
    with stage_records.opened([stage_records.all_of(season)]) as records:
        records.relock(stages)
