"""What a method and a dataset promise: the contracts of plug-ins, and where plug-ins
lie; and where that lies which git keeps: results, cards of datasets, and reports of the
ready-made seasons.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# The folder of methods/, datasets/ and seasons/: inside of the package where a wheel
# was installed, beside it in a checkout. Beside an installed package may lie a library
# named `datasets`.
HOME = _PACKAGE if (_PACKAGE / "methods").is_dir() else _PACKAGE.parent
# what a project has in its folder: the name of its active season, or seasons
PROJECT = (Path("params.yaml"), Path("seasons"))


def committed(path: Path) -> Path:
    """A path of what git keeps, to be read: in the working folder, of a clone or of a
    season that was played there, or, where that is no project's and does not have it,
    in the package. `rematch judge flickr8k:vse flickr8k:cca` needs no clone."""
    is_project = any(part.exists() for part in PROJECT)
    return path if path.exists() or is_project else HOME / path
