"""Write a page to explore a season: one folder that opens from disk, without a network.

rematch site                     .scratch/site/<season>/index.html
rematch site flickr8k            of another season than the active one
rematch site --all               of all that have a report; the ledger is .scratch/sites/index.html
rematch site --public FOLDER     to put on the web

The first has the images and captions of all datasets, for this machine alone; the last
leaves out those that may not be published. Of a dataset that is not prepared here there
are no queries. Needs the extra: pip install -e '.[site]'
"""

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jinja2 import Template
from PIL import ImageOps

from benchmark.boards import claim_entries
from benchmark.boards.boards import RANKED_BY, Board, Row, read_boards
from benchmark.boards.claim_ledger import (
    ClaimEntry,
    Leader,
    RowEntry,
    SeasonClaims,
    read_seasons,
)
from benchmark.boards.flags import NAMES
from benchmark.commands import ledger
from benchmark.core.command_line import ProgressBar, add_season
from benchmark.core.errors import UserError
from benchmark.core.files import replaced, write_text
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.printed_tables import OWN, papers
from benchmark.report.figures import similarity
from benchmark.report.tables import in_runs
from benchmark.scoring import METRICS, table_metrics
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params

FILES = Path(__file__).parent / "site_files"
FRONT = Path(__file__).parent / "site_front.html.j2"  # of several seasons
MARK = "rematch-site.txt"  # in a folder that was written here, and may be written again
SIDE, SHOWN = 160, 5  # pixels of an image; retrieved items of a query
BINS = 100  # of a drawn distribution


def configure(parser: argparse.ArgumentParser) -> None:
    add_season(parser)
    parser.add_argument(
        "season", nargs="?", default=argparse.SUPPRESS, help="the same, as in play"
    )
    parser.add_argument(
        "--all", action="store_true", help="every season that has a report"
    )
    parser.add_argument(
        "--public", type=Path, metavar="FOLDER", help="to put on the web"
    )


def main(arguments: argparse.Namespace) -> None:
    told = read_seasons(ledger.ROOT) if arguments.all else []
    names = [of.season for of in told] if arguments.all else [arguments.season]
    seasons = [read_params(name) for name in names]
    own = Path(
        ".scratch/sites" if arguments.all else f".scratch/site/{seasons[0].season}"
    )
    folder = arguments.public or own
    if folder.exists() and not (folder / MARK).is_file():  # it is replaced as a whole
        raise UserError(folder, "a new folder", "another one", "choose another")
    scripts = libraries()  # before anything that takes long
    with replaced(folder) as part:
        for params in seasons:
            place = part / params.season if arguments.all else part
            shutil.copytree(FILES, place, dirs_exist_ok=True)
            for name, text in scripts.items():
                write_text(place / name, text)
            write_season(
                params, place, is_public=bool(arguments.public), has_front=arguments.all
            )
        if arguments.all:
            write_front(told, part)
        write_text(part / MARK, "Written by `rematch site`.\n")
    print(f"{folder}/index.html: open it in a browser")


def write_front(seasons: Sequence[SeasonClaims], folder: Path) -> None:
    """The ledger as HTML: links into reports lead to the sites of the seasons, or
    nowhere."""
    from markdown_it import MarkdownIt

    text = ledger.page(seasons, folder)
    text = re.sub(r"\]\((\w+)/(?:README|claims)\.md\)", r"](\1/index.html)", text)
    text = re.sub(r"\[([^][]*)\]\([^()#]*\.md[^()]*\)", r"\1", text)
    page = MarkdownIt("commonmark").enable("table").render(text)
    front = Template(FRONT.read_text(encoding="utf-8"))
    write_text(folder / "index.html", front.render(seasons=seasons, ledger=page))
    shutil.copy(FILES / "site.css", folder)


def write_season(
    params: Params, folder: Path, is_public: bool, has_front: bool
) -> None:
    boards = read_boards(params)
    print(
        f"site {params.season}: {sum(len(board.outcomes) for board in boards)} cells",
        flush=True,
    )
    now = claim_entries.season_claims(params, boards, layers=lambda board: ())
    told = {of.dataset: of for of in now.datasets}
    of_tasks = [
        of
        for board in boards
        for of in (board.retrieval, board.localisation)
        if of.rows
    ]
    leaders = {
        (of.dataset, best.task): best for of in now.datasets for best in of.leaders
    }
    shown = [
        board_data(of, leaders.get((of.dataset, of.rows[0].task))) for of in of_tasks
    ]
    for board, name in ((b, name) for b in boards if not lacks(b) for name in b.layers):
        of = board.under(name)  # a board by a layer of relevance is a board
        shown += [board_data(of, claim_entries.leader(of), name)] if of.rows else []
    season = {
        "season": params.season,
        "title": params.title,
        "front": has_front,
        "headings": {name: metric.heading for name, metric in METRICS.items()},
        "boards": shown,
        "claims": [
            claim_data(b, finding) for b in boards for finding in told[b.dataset].claims
        ],
    }
    season["claims"].sort(key=lambda claim: claim["paper"] != OWN)
    write_script(folder / "data/season.js", "season", season)
    plots = {
        f"{b.dataset}/{row.preset}": plot_data(row) for b in boards for row in b.ranked
    }
    write_script(folder / "data/plots.js", "plots", plots)
    for board in boards:
        print(lacks(board) or write_queries(params, board, folder, is_public))


def lacks(board: Board) -> str:
    """What there is not of a dataset that is not prepared here, and how to get it; ""
    of others."""
    name = board.dataset
    if (prepared_tables.ROOT / name).is_dir():
        return ""
    do = f"run rematch fetch {name} and rematch prepare {name}, then rematch site again"
    return (
        f"No images, captions or queries of {name}, which is not prepared here: {do}."
    )


def write_script(path: Path, name: str, data: object) -> None:
    """Data as a script, which a page that is opened from disk may load:
    window.rematch[name]."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    write_text(path, f"window.rematch[{json.dumps(name)}]={text};\n")


def libraries() -> dict[str, str]:
    """DataTables and Vega-Lite, by file. Raises UserError without the extra."""
    if not all(map(find_spec, ("itables", "vl_convert", "markdown_it"))):
        expected = "the packages itables, vl-convert-python and markdown-it-py"
        raise UserError(
            "site", expected, "not installed", "run: pip install -e '.[site]'"
        )
    import itables
    import vl_convert

    folder = Path(itables.__file__).parent / "html"
    return {
        "datatables.js": as_script(
            (folder / "dt_bundle.js").read_text(encoding="utf-8")
        ),
        "datatables.css": (folder / "dt_bundle.css").read_text(encoding="utf-8"),
        # its names would be global
        "vega.js": f"(()=>{{{vl_convert.javascript_bundle()}\n}})();",
    }


def as_script(module: str) -> str:
    """A module as a script, since a page that is opened from disk may load no modules:
    what it exports becomes properties of `window.tables`."""
    body, _, rest = module.rpartition("export{")
    exported, _, notices = rest.partition("}")
    pairs = [pair.split(" as ") for pair in exported.split(",")]
    properties = ",".join(
        f'"{names[-1].strip()}":{names[0].strip()}' for names in pairs
    )
    return f"(()=>{{{body}\nwindow.tables={{{properties}}};}})(){notices}"


# Leaderboards, claims, plots ----------------------------------------------------------


def board_data(board: Board, leader: Leader | None, layer: str = "") -> dict:
    """A dataset and task: rsum adds up different recalls in the two tasks. `layer` is
    that of relevance, "" of a caption's own image."""
    task = board.rows[0].task
    ways = ("p2r",) if task == "localisation" else board.ways
    places = {place.title: place for place in leader.places} if leader else {}
    return {
        "dataset": board.dataset,
        "task": task,
        "layer": layer,
        "title": board.title,
        "split": board.card["split"],
        "test": board.card["counts"]["test"],
        "small": board.is_small(task),
        "compared": bool(leader and leader.is_compared),
        "lacks": lacks(board),
        "ways": list(ways),
        "metrics": [name for way in ways for name in table_metrics(way)] + ["rsum"],
        "ranked_by": RANKED_BY[task],
        "rows": [row_data(row, places.get(row.title)) for row in board.ranked]
        + [row_data(row, None) for row in board.rows if not row.played],
    }


def row_data(row: Row, place: RowEntry | None) -> dict:
    """A row with its cells; without a result it has no metrics."""
    known = {"seed", "status", "reason", "selected_epoch", "scaled", "options"}
    cells = [
        outcome.record.model_dump(mode="json", include=known)
        | {
            "folder": f"results/{outcome.kept.place}",
            "seconds": outcome.training_seconds if outcome.trainings else None,
            "metrics": {
                n: v for n, v in outcome.record.metrics.items() if n in METRICS
            },
        }
        for outcome in row.outcomes
    ]
    return {
        "preset": row.preset,
        "title": row.title,
        "method": row.method,
        "status": "ok" if row.played else row.record.status,
        "reason": row.record.reason,
        "cells": cells,
        "metrics": row.means() if row.played else {},
        "place": place and place.model_dump(mode="json"),
        "rivals": place and in_runs(place.rivals),
    }


def claim_data(board: Board, finding: ClaimEntry) -> dict:
    papers_here = papers() | board.own_claims
    claim = next(of for of in papers_here[finding.paper].claims if of.id == finding.id)
    return finding.model_dump(mode="json") | {
        "dataset": board.dataset,
        "statement": claim.statement,
        "where": claim.where,
        "identical": finding.reason.endswith(NAMES["M"]),
        "counted": not finding.is_elsewhere and not claim.uncounted,
    }


def plot_data(row: Row) -> dict:
    """Validation rsum by epoch of all trainings; shares of matched and unmatched pairs
    by score, of the first seed."""
    curves = [
        {"seed": outcome.record.seed, "val_rsum": outcome.history["val_rsum"].tolist()}
        for outcome in row.played
        if outcome.history is not None
    ]
    found = row.played[0].scores.histograms
    if found is None:
        return {"curves": curves}
    edges = np.linspace(*similarity.limits([found]), BINS + 1)
    scores = {
        "edges": edges.tolist(),
        "overlap_s": row.played[0].record.metrics["overlap_s"],
    }
    for name in ("matched", "unmatched"):
        densities = similarity.density(found.edges, getattr(found, name), edges)
        scores[name] = (densities * np.diff(edges)).tolist()
    return {"curves": curves, "scores": scores}


# Queries ------------------------------------------------------------------------------


def write_queries(params: Params, board: Board, folder: Path, is_public: bool) -> str:
    """Write data/items/, data/queries/ and images/ of a dataset; returns what was
    written, in a line. Of a preset the first seed with a result is shown."""
    rows = board.retrieval.ranked
    if not rows:
        return f"{board.dataset}: no queries to browse"
    data = prepared_tables.read(board.dataset)
    split, is_shown = data.split("test"), board.card["may_publish"] or not is_public
    files = (
        _write_images(params, data, folder / "images" / board.dataset)
        if is_shown
        else []
    )
    items = {
        "images": data.images["image_id"].iloc[split.image_rows].tolist(),
        "captions": data.captions["caption_id"].iloc[split.caption_rows].tolist(),
        "texts": data.captions["text"].iloc[split.caption_rows].tolist()
        if is_shown
        else [],
        "files": files,
        "owners": split.image_of_caption.tolist(),
        "groups": split.group_of_image.tolist(),
    }
    write_script(
        folder / f"data/items/{board.dataset}.js", f"items {board.dataset}", items
    )
    missing = 0
    for row in rows:
        first = row.played[0]
        found = first.retrieved
        missing += first.has_scores and not found
        queries = {"seed": first.record.seed}
        for way in board.ways:
            shown = found[way][:, :SHOWN].tolist() if way in found else []
            queries[way] = {"ranks": first.ranks(way).tolist(), "items": shown}
        name = f"{board.dataset}/{row.preset}"
        write_script(folder / f"data/queries/{name}.js", f"queries {name}", queries)
    told = f"{board.dataset}: {len(rows)} presets to browse, {len(files)} images"
    if missing:
        told += (
            f"; what {missing} retrieved is not kept here: dvc pull, or run them again"
        )
    return told


def _write_images(params: Params, data: Prepared, folder: Path) -> list[str]:
    """Small test images in the split's order; none where they are not on this
    machine."""
    files = data.images["file"].iloc[data.split("test").image_rows]
    if (files == "").any():
        return []
    folder.mkdir(parents=True)
    names = [f"{number:05d}.jpg" for number in range(len(files))]
    try:
        open_image = raw_dataset(params, data.folder.name).pictures()
        bar = ProgressBar(files, desc=f"images of {data.folder.name}")
        for name, file in zip(names, bar, strict=True):
            ImageOps.contain(open_image(file), (SIDE, SIDE)).save(
                folder / name, quality=80
            )
    except (UserError, OSError):
        return []
    return names
