"""Write a page to explore a season: one folder that opens from disk, without a network.

rematch site                     .scratch/site/<season>/index.html
rematch site flickr8k            of another season than the active one
rematch site --public FOLDER     to put on the web

The first has the images and captions of all datasets, for this machine alone; the last leaves out
those that may not be published. Needs the extra: pip install -e '.[site]'
"""

import argparse
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import ImageOps

from benchmark.boards import claims, comparisons
from benchmark.boards.boards import RANKED_BY, Board, Row, read_boards
from benchmark.boards.claims import Verdict
from benchmark.boards.flags import NAMES, row_flags, said
from benchmark.core.command_line import ProgressBar, add_season
from benchmark.core.errors import UserError
from benchmark.core.files import replaced, write_text
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.printed_tables import quantity
from benchmark.report.figures import similarity
from benchmark.scoring import METRICS, table_metrics
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params

FILES = Path(__file__).parent / "site_files"
MARK = "rematch-site.txt"  # in a folder that was written here, and may be written again
SIDE, SHOWN = 160, 5  # pixels of an image; retrieved items of a query
BINS = 100  # of a drawn distribution


def configure(parser: argparse.ArgumentParser) -> None:
    add_season(parser)
    parser.add_argument("season", nargs="?", default=argparse.SUPPRESS, help="the same, as in play")
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="to put on the web")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    folder = arguments.public or Path(".scratch/site") / params.season
    if folder.exists() and not (folder / MARK).is_file():  # it is replaced as a whole
        raise UserError(folder, "a new folder", "another one", "choose another")
    scripts = libraries()  # before anything that takes long
    boards = read_boards(params)
    print(f"site {params.season}: {sum(len(board.outcomes) for board in boards)} cells", flush=True)
    with replaced(folder) as part:
        shutil.copytree(FILES, part, dirs_exist_ok=True)
        for name, text in scripts.items():
            write_text(part / name, text)
        of_tasks = [
            of for board in boards for of in (board.retrieval, board.localisation) if of.rows
        ]
        season = {
            "season": params.season,
            "title": params.title,
            "headings": {name: metric.heading for name, metric in METRICS.items()},
            "boards": [board_data(of_task) for of_task in of_tasks],
            "claims": [claim_data(b.dataset, v) for b in boards for v in claims.verdicts(b)],
        }
        write_script(part / "data/season.js", "season", season)
        plots = {f"{b.dataset}/{row.preset}": plot_data(row) for b in boards for row in b.ranked}
        write_script(part / "data/plots.js", "plots", plots)
        for board in boards:
            print(write_queries(params, board, part, is_public=bool(arguments.public)))
        write_text(part / MARK, "Written by `rematch site`.\n")
    print(f"{folder}/index.html: open it in a browser")


def write_script(path: Path, name: str, data: object) -> None:
    """Data as a script, which a page that is opened from disk may load: window.rematch[name]."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    write_text(path, f"window.rematch[{json.dumps(name)}]={text};\n")


def libraries() -> dict[str, str]:
    """DataTables and Vega-Lite, by file. Raises UserError without the extra."""
    if not (find_spec("itables") and find_spec("vl_convert")):
        expected = "the packages itables and vl-convert-python"
        raise UserError("site", expected, "not installed", "run: pip install -e '.[site]'")
    import itables
    import vl_convert

    folder = Path(itables.__file__).parent / "html"
    return {
        "datatables.js": as_script((folder / "dt_bundle.js").read_text(encoding="utf-8")),
        "datatables.css": (folder / "dt_bundle.css").read_text(encoding="utf-8"),
        "vega.js": f"(()=>{{{vl_convert.javascript_bundle()}\n}})();",  # its names would be global
    }


def as_script(module: str) -> str:
    """A module as a script, since a page that is opened from disk may load no modules: what it
    exports becomes properties of `window.tables`."""
    body, _, rest = module.rpartition("export{")
    exported, _, notices = rest.partition("}")
    pairs = [pair.split(" as ") for pair in exported.split(",")]
    properties = ",".join(f'"{names[-1].strip()}":{names[0].strip()}' for names in pairs)
    return f"(()=>{{{body}\nwindow.tables={{{properties}}};}})(){notices}"


# Leaderboards, claims, plots ----------------------------------------------------------------------


def board_data(board: Board) -> dict:
    """A dataset and task: rsum adds up different recalls in the two tasks."""
    task = board.rows[0].task
    ways = ("p2r",) if task == "localisation" else board.ways
    letters = comparisons.rank_letters(board)
    if not comparisons.is_compared(board):
        letters = "-" * len(letters)
    groups = dict(zip(board.ranked, letters, strict=True))
    return {
        "dataset": board.dataset,
        "task": task,
        "title": board.title,
        "split": board.card["split"],
        "test": board.card["counts"]["test"],
        "small": board.is_small(task),
        "ways": list(ways),
        "metrics": [name for way in ways for name in table_metrics(way)] + ["rsum"],
        "ranked_by": RANKED_BY[task],
        "rows": [row_data(board, row) | {"group": group} for row, group in groups.items()]
        + [row_data(board, row) for row in board.rows if not row.played],
    }


def row_data(board: Board, row: Row) -> dict:
    """A row with its cells; without a result it has no metrics."""
    known = {"seed", "status", "reason", "selected_epoch", "scaled", "options"}
    cells = [
        outcome.record.model_dump(mode="json", include=known)
        | {
            "folder": str(outcome.folder),
            "seconds": outcome.training_seconds if outcome.trainings else None,
            "metrics": {n: v for n, v in outcome.record.metrics.items() if n in METRICS},
        }
        for outcome in row.outcomes
    ]
    facts = {
        "preset": row.preset,
        "title": row.title,
        "method": row.method,
        "status": "ok" if row.played else row.record.status,
        "reason": row.record.reason,
        "flags": {NAMES[flag.letter]: flag.sentence for flag in row_flags(board, row)},
        "cells": cells,
        "metrics": row.means() if row.played else {},
    }
    if row.played:
        metric = RANKED_BY[row.task]
        facts["interval"] = comparisons.interval(board, row, metric)
        facts["of_these"] = comparisons.interval_over_images(board, row, metric)
    return facts


def claim_data(dataset: str, verdict: Verdict) -> dict:
    facts = verdict.claim.model_dump(include={"where", "statement"})
    return facts | {
        "dataset": dataset,
        "paper": verdict.paper,
        "elsewhere": verdict.is_elsewhere,
        "conclusion": str(verdict.conclusion),
        "on_test_set": str(verdict.on_test_set),
        "reason": verdict.reason,
        "difference": verdict.decisive.difference if verdict.decisive else None,
        "interval": verdict.decisive.interval if verdict.decisive else None,
        "counted": verdict.is_counted,
        "decimals": quantity(verdict.decisive.comparison.metric).decimals if verdict.pairs else 0,
        "flags": [said(flag) for flag in verdict.flags if flag.sentence != verdict.reason],
    }


def plot_data(row: Row) -> dict:
    """Validation rsum by epoch of all trainings; shares of matched and unmatched pairs by score, of
    the first seed."""
    curves = [
        {"seed": outcome.record.seed, "val_rsum": outcome.history["val_rsum"].tolist()}
        for outcome in row.played
        if outcome.history is not None
    ]
    found = row.played[0].scores.histograms
    if found is None:
        return {"curves": curves}
    edges = np.linspace(*similarity.limits([found]), BINS + 1)
    scores = {"edges": edges.tolist(), "overlap_s": row.played[0].record.metrics["overlap_s"]}
    for name in ("matched", "unmatched"):
        densities = similarity.density(found.edges, getattr(found, name), edges)
        scores[name] = (densities * np.diff(edges)).tolist()
    return {"curves": curves, "scores": scores}


# Queries ------------------------------------------------------------------------------------------


def write_queries(params: Params, board: Board, folder: Path, is_public: bool) -> str:
    """Write data/items/, data/queries/ and images/ of a dataset; returns what was written, in a
    line. Of a preset the first seed with a result is shown."""
    rows = board.retrieval.ranked
    if not rows:
        return f"{board.dataset}: no queries to browse"
    data = prepared_tables.read(board.dataset)
    split, is_shown = data.split("test"), board.card["may_publish"] or not is_public
    files = _write_images(params, data, folder / "images" / board.dataset) if is_shown else []
    items = {
        "images": data.images["image_id"].iloc[split.image_rows].tolist(),
        "captions": data.captions["caption_id"].iloc[split.caption_rows].tolist(),
        "texts": data.captions["text"].iloc[split.caption_rows].tolist() if is_shown else [],
        "files": files,
        "owners": split.image_of_caption.tolist(),
        "groups": split.group_of_image.tolist(),
    }
    write_script(folder / f"data/items/{board.dataset}.js", f"items {board.dataset}", items)
    missing = []
    for row in rows:
        first = row.played[0]
        found = first.retrieved
        missing += [row.preset] * (first.has_scores and not found)
        queries = {"seed": first.record.seed}
        for way in board.ways:
            shown = found[way][:, :SHOWN].tolist() if way in found else []
            queries[way] = {"ranks": first.ranks(way).tolist(), "items": shown}
        name = f"{board.dataset}/{row.preset}"
        write_script(folder / f"data/queries/{name}.js", f"queries {name}", queries)
    told = f"{board.dataset}: {len(rows)} presets to browse, {len(files)} images"
    if missing:
        told += f"; what {', '.join(missing)} retrieved is not kept here: dvc pull, or run it again"
    return told


def _write_images(params: Params, data: Prepared, folder: Path) -> list[str]:
    """Small test images in the split's order; none where they are not on this machine."""
    files = data.images["file"].iloc[data.split("test").image_rows]
    if (files == "").any():
        return []
    folder.mkdir(parents=True)
    names = [f"{number:05d}.jpg" for number in range(len(files))]
    try:
        open_image = raw_dataset(params, data.folder.name).pictures()
        bar = ProgressBar(files, desc=f"images of {data.folder.name}")
        for name, file in zip(names, bar, strict=True):
            ImageOps.contain(open_image(file), (SIDE, SIDE)).save(folder / name, quality=80)
    except (UserError, OSError):
        return []
    return names
