"""What `play` says at its end: what failed, which cells have no result, and where to look."""

from collections.abc import Iterator
from pathlib import Path

from benchmark.analysis.boards import RANKED_BY
from benchmark.commands.stage_records import RECORD, why
from benchmark.commands.task_display import counted, waiting
from benchmark.core.files import read_json
from benchmark.core.records import read_record
from benchmark.protocol import METRICS
from benchmark.season.parameter_files import active_season
from benchmark.season.parameters import Params

REPORTS = Path("reports")
SHOWN = 3  # presets of a dataset


def told_failures(causes: dict[str, str], lost: int) -> Iterator[str]:
    """A line for each stage that failed, and one for all that were not begun."""
    yield from (f"{name}: {reason}" for name, reason in causes.items())
    if lost:
        yield waiting(lost, len(causes))


def told_cells(params: Params, chosen: list[str]) -> Iterator[str]:
    """Cells that were evaluated and have no result, a line for those of a preset that share a
    reason."""
    seeds: dict[tuple[str, str], list[int]] = {}
    cells = {**params.cells, **params.fusions}
    for cell in (cells[key] for key in chosen):
        if Path(cell.folder, RECORD).is_file():
            record = read_record(Path(cell.folder))
            if record.status != "ok":
                place = f"{cell.dataset}/{cell.preset}"
                seeds.setdefault((place, why(record)), []).append(cell.seed)
    for (place, reason), those in seeds.items():
        which = f"{place} {', '.join(map(str, those))}"
        yield f"{counted(len(those), 'cell')} without a result: {which}: {reason}"


def told_report(params: Params) -> Iterator[str]:
    """The best presets of every dataset, the report, and how to explore it."""
    folder = REPORTS / params.season
    for dataset in params.datasets:
        metrics = {path.stem: read_json(path) for path in (folder / "metrics" / dataset).glob("*")}
        for task, metric in RANKED_BY.items():
            yield from _told_task(dataset, task, metric, metrics)
    option = "" if params.season == active_season() else f" --season {params.season}"
    yield f"report: {folder}/README.md; to explore: python -m benchmark site{option}"


def _told_task(dataset: str, task: str, metric: str, metrics: dict[str, dict]) -> Iterator[str]:
    """A line, if there are such presets, ranked as the report ranks them."""
    values = {
        preset: row[metric]
        for preset, row in metrics.items()
        if metric in row and ("p2r_r1" in row) == (task == "localisation")
    }
    best = sorted(values, key=lambda preset: (-values[preset], preset))[:SHOWN]
    if best:
        rows = ", ".join(f"{preset} {values[preset]:.1f}" for preset in best)
        yield f"{dataset}, {task}, highest {METRICS[metric].heading} of {len(values)}: {rows}"
