"""Whether a season gives the presets that a paper compares the same settings.

A paper's claims compare rows of one method that share everything but what the rows are about; 003
says so in Section 6.4.2 ("the same network settings and training hyperparameters"). A season may
scale a method down, but then all of these rows alike; what the rows are about, such as the depth of
a text CNN, has a value of its own in each.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from benchmark.papers.printed_tables import papers
from benchmark.season.parameters import Cell, Params
from benchmark.season.presets import presets


def unequal_settings(params: Params) -> list[str]:
    """One line per pair of presets that a claim compares and the season scales differently.

    Only presets of one method that both start anew, or both go on from another one.
    """
    lines = [
        f"{first.dataset}: {first.preset} and {second.preset} are compared by a paper, "
        f"and the season scales them differently: {', '.join(names)}"
        for first, second, names in unequal_pairs(params)
    ]
    return list(dict.fromkeys(lines))


def unequal_pairs(params: Params) -> list[tuple[Cell, Cell, list[str]]]:
    """The same as a cell of each preset, and the names of the options."""
    return [
        (first, second, names)
        for first, second in _compared(params)
        if first.method == second.method and bool(first.start) == bool(second.start)
        if (names := _scaled_differently(first, second))
    ]


def _compared(params: Params) -> Iterator[tuple[Cell, Cell]]:
    """Pairs of cells of one dataset whose presets a claim names; one seed of each."""
    cells = {(cell.dataset, cell.preset): cell for cell in params.cells.values()}
    for paper in papers().values():
        for claim in paper.claims:
            for dataset in params.datasets:
                played = [cells[dataset, p] for p in claim.presets if (dataset, p) in cells]
                yield from combinations(played, 2)


def _scaled_differently(first: Cell, second: Cell) -> list[str]:
    rows = [presets()[cell.preset][1].options for cell in (first, second)]
    names = scaled_differently(_changed(first), _changed(second), *rows)
    return [name for name in names if first.options.get(name) != second.options.get(name)]


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


def _changed(cell: Cell) -> dict[str, object]:
    return {name: cell.options[name] for name in cell.scaled}
