"""What it takes to play cells of a season in an empty folder, as tasks that need each other."""

from benchmark.commands.task_queue import Task, numerics_of
from benchmark.encode import drawn_pretraining
from benchmark.encode.__main__ import encode
from benchmark.evaluate.__main__ import evaluate_cell
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.season import networks
from benchmark.season.parameters import Cell, FeatureSet, Fusion, Params
from benchmark.train.__main__ import train_cell

PRETRAIN = "pretrain"  # of the network for drawn pictures


def tasks_of(params: Params, chosen: list[str]) -> dict[str, Task]:
    """Tasks by name: cells are called by their keys, and so are feature sets."""
    cells = with_needs(params, chosen)
    folders = {folder for cell in cells.values() for folder in _folders(cell)}
    sets = {key: s for key, s in params.feature_sets.items() if s.folder in folders}
    sources = {s.source for s in sets.values()}
    sets = {k: s for k, s in params.feature_sets.items() if s.folder in folders | sources}
    key_of = {feature_set.folder: key for key, feature_set in sets.items()}
    datasets = {cell.dataset for cell in cells.values()}
    tasks = {f"prepare {name}": Task(_prepare, (params, name)) for name in sorted(datasets)}
    if any(_is_drawn(feature_set) for feature_set in sets.values()):
        tasks[PRETRAIN] = Task(drawn_pretraining.write_weights, ())
    for key, feature_set in sets.items():
        needs = [f"prepare {feature_set.dataset}", *([PRETRAIN] * _is_drawn(feature_set))]
        needs += [key_of[feature_set.source]] if feature_set.source in key_of else []
        tasks[key] = Task(encode, (params, feature_set), tuple(needs))
    starts = {cell.checkpoint: key for key, cell in params.cells.items()}
    by_folder = {cell.folder: key for key, cell in params.cells.items()}
    for key, cell in cells.items():
        if isinstance(cell, Fusion):
            needs = [by_folder[member] for member in cell.members]
            tasks[key] = Task(evaluate_cell, (params, cell), tuple(needs), numerics_of(cell))
        else:
            needs = [key_of[folder] for folder in _folders(cell)]
            needs += [starts[cell.start]] if cell.start else []
            tasks[key] = Task(_train_and_evaluate, (params, cell), tuple(needs), numerics_of(cell))
    return tasks


def with_needs(params: Params, chosen: list[str]) -> dict[str, Cell | Fusion]:
    """The chosen cells, members of chosen fusions, and what trainings start from."""
    starts = {cell.checkpoint: key for key, cell in params.cells.items()}
    by_folder = {cell.folder: key for key, cell in params.cells.items()}
    everything = {**params.cells, **params.fusions}
    ahead, wanted = list(chosen), set()
    while ahead:
        key = ahead.pop()
        if key not in wanted:
            wanted.add(key)
            cell = everything[key]
            if isinstance(cell, Fusion):
                ahead += [by_folder[member] for member in cell.members]
            elif cell.start:
                ahead.append(starts[cell.start])
    return {key: cell for key, cell in everything.items() if key in wanted}


def _folders(cell: Cell | Fusion) -> list[str]:
    if isinstance(cell, Fusion):
        return []
    return [folder for folder in (cell.images, cell.texts, cell.words) if folder]


def _is_drawn(feature_set: FeatureSet) -> bool:
    settings = feature_set.image or feature_set.proposals
    return bool(settings) and settings.network == networks.DRAWN


def _prepare(params: Params, dataset: str) -> None:
    fetch(params, dataset)
    prepare(params, dataset)


def _train_and_evaluate(params: Params, cell: Cell) -> None:
    train_cell(params, cell)
    evaluate_cell(params, cell)
