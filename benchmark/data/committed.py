"""What git keeps: results, cards of datasets, and reports of the ready-made seasons.

They lie in the working folder of a clone, and of a folder in which a season was played.
Elsewhere those that came with the package are read: `rematch judge flickr8k:vse
flickr8k:cca` needs no clone.
"""

from pathlib import Path

from benchmark.contracts import HOME

# what a project has in its folder: the name of its active season, or seasons
PROJECT = (Path("params.yaml"), Path("seasons"))


def committed(path: Path) -> Path:
    """A path of what git keeps, to be read: in the working folder or, where that is no
    project's and does not have it, in the package."""
    is_project = any(part.exists() for part in PROJECT)
    return path if path.exists() or is_project else HOME / path
