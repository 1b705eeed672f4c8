"""Write a page to explore a season: one folder that opens from disk, without a network.

    python -m benchmark site                     .scratch/site/<season>/index.html
    python -m benchmark site flickr8k            of another season than the active one
    python -m benchmark site --public FOLDER     to put on the web

The first has the pictures and captions of all datasets, for this machine alone; the second leaves
out those that may not be published. Needs the extra: pip install -e '.[site]'
"""

import argparse
import shutil
from pathlib import Path

from benchmark.analysis.boards import read_boards
from benchmark.commands import site_contents, site_libraries, site_queries
from benchmark.core.command_line import add_season
from benchmark.core.errors import UserError
from benchmark.core.files import replaced
from benchmark.season.parameter_files import read_params

FILES = Path(__file__).parent / "site_files"
MARK = "rematch-site.txt"  # in a folder that was written here, and may be written again


def configure(parser: argparse.ArgumentParser) -> None:
    add_season(parser)
    parser.add_argument("season", nargs="?", default=argparse.SUPPRESS, help="the same, as in play")
    parser.add_argument(
        "--public", type=Path, metavar="FOLDER", help="without what may not be published"
    )


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    folder = arguments.public or Path(".scratch/site") / params.season
    _check_own(folder)
    libraries = site_libraries.libraries()  # before anything that takes long
    boards = read_boards(params)
    print(f"site {params.season}: {sum(len(b.outcomes) for b in boards)} cells", flush=True)
    with replaced(folder) as part:
        shutil.copytree(FILES, part, dirs_exist_ok=True)
        for name, text in libraries.items():
            (part / name).write_text(text, encoding="utf-8")
        site_contents.write(params, boards, part)
        for board in boards:
            print(site_queries.write(params, board, part, is_public=bool(arguments.public)))
        (part / MARK).write_text("Written by `python -m benchmark site`.\n")
    print(f"{folder}/index.html: open it in a browser")


def _check_own(folder: Path) -> None:
    """A folder is replaced as a whole, so nothing else may be in it."""
    if folder.exists() and not folder.is_dir():
        raise UserError(folder, "a new or empty folder", "a file", "name another one")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UserError(folder, "a new or empty folder", "other files", "name another one")
