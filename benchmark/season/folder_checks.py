"""Where a season writes: each cell and each feature set into the folder of its own name alone."""

from benchmark.core.errors import UserError
from benchmark.season.parameters import Brought, Cell, FeatureSet, Fusion, Params
from benchmark.season.season_files import SEASONS


def check_folders(params: Params) -> None:
    """Raises UserError for parameters that name another folder than the season gives them.

    Stages delete what lies in these folders before, so an edited file must not name a user's.
    """
    for key, feature_set in params.feature_sets.items():
        _check_feature_set(key, feature_set)
    cells = [("cells", *pair) for pair in {**params.cells, **params.fusions}.items()]
    for kind, key, cell in [*cells, *(("brought", *pair) for pair in params.brought.items())]:
        where = f"{SEASONS}/{params.season}/{kind}/{key}.yaml"
        _equal(where, "the name of the file", key, _key(cell))
        names = f"{params.season}/{cell.dataset}/{cell.preset}/{cell.seed}"
        _equal(where, "folder", cell.folder, f"results/{names}")
    _check_inputs(params)


def _check_feature_set(key: str, feature_set: FeatureSet) -> None:
    where = f"{SEASONS}/shared/feature_sets/{key}.yaml"
    slug = key.removeprefix(f"{feature_set.dataset}-")
    _equal(where, "folder", feature_set.folder, f"data/features/{feature_set.dataset}/{slug}")
    beside, prepared = feature_set.folder.rpartition("/")[0], f"data/prepared/{feature_set.dataset}"
    source = feature_set.source
    is_beside = source.rpartition("/")[0] == beside and ".." not in source
    if source != prepared and not is_beside:
        raise _other(where, "source", source, prepared)


def _check_inputs(params: Params) -> None:
    """What cells read is of the same season."""
    folders = {feature_set.folder for feature_set in params.feature_sets.values()}
    checkpoints = {cell.checkpoint for cell in params.cells.values()}
    trained = {cell.folder for cell in params.cells.values()}
    for key, cell in params.cells.items():
        where = f"{SEASONS}/{params.season}/cells/{key}.yaml"
        for folder in (cell.images, cell.texts, cell.words):
            if folder and folder not in folders:
                raise _other(where, "folder of features", folder, "one of the season's")
        if cell.start and cell.start not in checkpoints:
            raise _other(where, "start", cell.start, "a checkpoint of the season")
    for key, fusion in params.fusions.items():
        for member in set(fusion.members) - trained:
            where = f"{SEASONS}/{params.season}/cells/{key}.yaml"
            raise _other(where, "member", member, "a trained cell of the season")


def _key(cell: Cell | Fusion | Brought) -> str:
    return f"{cell.dataset}-{cell.preset}-{cell.seed}"


def _equal(where: str, what: str, found: str, expected: str) -> None:
    if found != expected:
        raise _other(where, what, found, expected)


def _other(where: str, what: str, found: str, expected: str) -> UserError:
    return UserError(
        where=f"{where}: {what}",
        expected=expected,
        found=repr(found),
        do="write the season's files again: python -m benchmark season NAME",
    )
