"""How much of a training step is products: the time of a step over that of its matrix products and
convolutions, in the same run, the optimiser's part included.

    python -m benchmark.checks.step_products [SEASON] [--only PATTERN]

prints the ratio of every preset of a season (default: papers, where each has the size of its paper)
on made-up data, or of some, and writes them to step_products.json beside those of others.
"""

import argparse
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmark.commands.data_shapes import SeasonShapes
from benchmark.commands.step_times import Rehearsal, batch_of, reason_of, run_of
from benchmark.core import numerics
from benchmark.core.devices import begin
from benchmark.core.files import read_json, write_json
from benchmark.season.parameters import Cell
from benchmark.season.resolving import resolve
from benchmark.season.season_files import read_season
from methods import Phase

TABLE = Path(__file__).with_suffix(".json")
CPU = torch.device("cpu")
RUNS = 2  # profiled, after one that warms up
PRODUCTS = {
    *("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::baddbmm"),
    *("aten::mkldnn_convolution", "aten::convolution_backward", "aten::mkldnn_rnn_layer"),
    *("aten::mkldnn_rnn_layer_backward", "aten::slow_conv2d_forward"),
}


def over_products(step: Callable[[], object]) -> float:
    """Time of a step over that of its matrix products and convolutions, in the same run."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        step()
    times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    return sum(times.values()) / sum(times[name] for name in PRODUCTS & times.keys())


def step_of(rehearsal: Rehearsal, phase: Phase) -> Callable[[], object]:
    """A step of a phase, as the training loop plays it, always with the same batch."""
    data = rehearsal.data(phase, CPU)
    run = run_of(rehearsal.model(), phase, data, rehearsal.cell)
    batch = batch_of(data, phase)
    return lambda: run.step(batch, phase)


def largest(shapes: SeasonShapes, cell: Cell) -> dict:
    """The row of a preset: its method and the largest ratio of its phases, or why there is none."""
    row = {"preset": cell.preset, "method": cell.method}
    try:
        rehearsal, ratios = Rehearsal(shapes, cell), []
        for phase in rehearsal.phases:
            step = step_of(rehearsal, phase)
            step()
            ratios.append(min(over_products(step) for _ in range(RUNS)))
    except Exception as error:  # as `doctor`: data or memory that is not there
        return row | {"reason": reason_of(error)}
    if not ratios:
        return row | {"reason": "no training steps"}
    return row | {"over_products": round(max(ratios), 2)}


def main(arguments: argparse.Namespace) -> None:
    params = resolve(arguments.season, read_season(arguments.season))
    begin("cpu")
    shapes, mode = SeasonShapes(params), numerics.current().mode
    firsts = {cell.preset: cell for cell in reversed(params.cells.values())}
    for preset, cell in reversed(firsts.items()):
        if fnmatchcase(preset, arguments.only):
            row = largest(shapes, cell)
            print(*row.values(), flush=True)
            presets = read_json(TABLE)["presets"] if TABLE.is_file() else {}
            table = {"season": params.season, "numerics": mode, "presets": presets | {preset: row}}
            write_json(TABLE, table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("season", nargs="?", default="papers")
    parser.add_argument("--only", default="*", help="pattern of presets")
    sys.exit(main(parser.parse_args()))
