"""Whether a season gives the presets that a paper compares the same settings.

A paper's claims compare rows of one method that share everything but what the rows are about; 003
says so in Section 6.4.2 ("the same network settings and training hyperparameters"). A season may
scale a method down, but then all of these rows alike; what the rows are about, such as the depth of
a text CNN, has a value of its own in each.
"""

from collections.abc import Mapping
from itertools import combinations

from benchmark.papers.printed_tables import papers
from benchmark.season.parameters import Cell, Params
from benchmark.season.presets import presets


def unequal_settings(params: Params) -> list[str]:
    """One line per pair of presets that a claim compares and the season scales differently."""
    lines = [
        f"{first.dataset}: {first.preset} and {second.preset} are compared by a paper, "
        f"and the season scales them differently: {', '.join(names)}"
        for first, second, names in unequal_pairs(params)
    ]
    return list(dict.fromkeys(lines))


def unequal_pairs(params: Params) -> list[tuple[Cell, Cell, list[str]]]:
    """The same as a cell of each preset, and the names of the options. Only presets of one method
    that both start anew, or both go on from another one."""
    cells = {(cell.dataset, cell.preset): cell for cell in params.cells.values()}
    claims = [claim for paper in papers().values() for claim in paper.claims]
    found, known = [], presets()
    for claim, dataset in ((claim, dataset) for claim in claims for dataset in params.datasets):
        run = [cells[dataset, preset] for preset in claim.presets if (dataset, preset) in cells]
        for first, second in combinations(run, 2):
            if first.method != second.method or bool(first.start) != bool(second.start):
                continue
            changed = [{name: of.options[name] for name in of.scaled} for of in (first, second)]
            rows = [known[of.preset][1].options for of in (first, second)]
            names = scaled_differently(*changed, *rows)
            names = [n for n in names if first.options.get(n) != second.options.get(n)]
            found += [(first, second, names)] if names else []
    return found


def scaled_differently(
    first: Mapping[str, object],
    second: Mapping[str, object],
    row: Mapping[str, object],
    other_row: Mapping[str, object],
) -> list[str]:
    """Options that differ here, and not in the paper, of two presets: what the season scaled of
    each, and what their rows have of their own."""
    changed = dict(first.items() ^ second.items())
    return sorted(name for name in changed if row.get(name) == other_row.get(name))
