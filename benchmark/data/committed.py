"""What git keeps: results, cards of datasets, and reports of the ready-made seasons.

They lie in the working folder of a clone, and of a folder in which a season was played.
Elsewhere those that came with the package are read: `rematch judge flickr8k:vse
flickr8k:cca` needs no clone.
"""

from pathlib import Path

from benchmark.contracts import HOME

PROJECT = Path("params.yaml")  # which names the active season, in the working folder


def committed(path: Path) -> Path:
    """A path of what git keeps, to be read: in the working folder or, where that is no
    project's and does not have it, in the package."""
    is_here = path.exists() or PROJECT.is_file()
    return path if is_here else HOME / path
