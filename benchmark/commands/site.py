"""Write a page to explore a season: one folder that opens from disk, without a network.

rematch site                     .scratch/site/<season>/index.html
rematch site flickr8k            of another season than the active one
rematch site --all               of all that have a report; .scratch/sites/index.html has first
                                 answers, a search over all of them, and the ledger
rematch site --public FOLDER     to put on the web

Without --public, the folder has the images and captions of all datasets and is for this
machine alone; with it, those that may not be published are left out. A dataset that is
not prepared here has no queries. Needs the extra: pip install -e '.[site]'
"""

import argparse
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, FileSystemLoader
from PIL import ImageOps

from benchmark.boards import claims, flags, row_warnings
from benchmark.boards.boards import RANKED_BY, Board, Outcome, Row
from benchmark.boards.claim_ledger import LedgerRow
from benchmark.boards.claims import ClaimTest
from benchmark.boards.claims_file import (
    DRAWN,
    ClaimEntry,
    Leader,
    Made,
    RowEntry,
    SeasonClaims,
    read_seasons,
    rounded,
)
from benchmark.boards.comparisons import compare, known_interval
from benchmark.boards.grades import FAILING, HOLDING, Grade
from benchmark.boards.season_boards import read_boards
from benchmark.commands import ledger
from benchmark.core.command_line import ProgressBar, add_season_first
from benchmark.core.errors import UserError
from benchmark.core.files import replaced, write_text
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.printed_tables import OWN, papers, quantity
from benchmark.report.figures import similarity
from benchmark.report.pages import TEMPLATES
from benchmark.report.pages.dataset_page import overlap_and_rsum
from benchmark.report.pages.ledger_pages import (
    BestRow,
    Links,
    anchor,
    best_rows,
    ledger_page,
    needed,
    numbers,
    pooled_difference,
)
from benchmark.report.tables import signed
from benchmark.scoring import METRICS, table_metrics
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Params
from benchmark.stats import PERCENT

FILES = Path(__file__).parent / "site_files"
FRONT = Path(__file__).parent / "site_front.html.j2"  # of several seasons
MARK = "rematch-site.txt"  # in a folder that was written here, and may be written again
SIDE, SHOWN = 160, 5  # pixels of an image; retrieved items of a query
BINS = 100  # of a drawn distribution
# of a title: up to a comma, a bracket or, of SCAN's, the direction
METHOD = re.compile(r".+?(?=, | \(|: | [ti]-[ti]\b|$)")


def configure(parser: argparse.ArgumentParser) -> None:
    add_season_first(parser)
    parser.add_argument(
        "--all", action="store_true", help="every season that has a report"
    )
    parser.add_argument(
        "--public",
        type=Path,
        metavar="FOLDER",
        help="write here, without images and captions that may not be published",
    )


def main(arguments: argparse.Namespace) -> None:
    reported = read_seasons(ledger.ROOT) if arguments.all else []
    names = [season.season for season in reported] or [arguments.season]
    seasons = [read_params(name) for name in names]
    default = f".scratch/site/{seasons[0].season}"
    if arguments.all:
        default = ".scratch/sites"
    folder = arguments.public or Path(default)
    if folder.exists() and not (folder / MARK).is_file():  # it is replaced as a whole
        found = "a folder that rematch site did not write"
        raise UserError(folder, "a new folder", found, "choose another folder")
    scripts = libraries()  # before anything that takes long
    facts = {"is_public": bool(arguments.public), "has_front": arguments.all}
    written = []
    without_front = shutil.ignore_patterns("front.js")
    with replaced(folder) as site:
        for params in seasons:
            season_folder = site / params.season if arguments.all else site
            shutil.copytree(
                FILES, season_folder, ignore=without_front, dirs_exist_ok=True
            )
            for name, text in scripts.items():
                write_text(season_folder / name, text)
            written.append(write_season(params, season_folder, **facts))
        if arguments.all:
            write_front(reported, written, site)
        write_text(site / MARK, "Written by `rematch site`.\n")
    print(f"{folder}/index.html: open it in a browser")


# The first page of several seasons ----------------------------------------------------


def write_front(
    seasons: Sequence[SeasonClaims], written: Sequence[dict], folder: Path
) -> None:
    """Answers to first questions, a search over all seasons, and the ledger as HTML.
    `written` is what each season's page is told."""
    rows = ledger.read_ledger(seasons, ledger.ROOT)
    figures = ledger.write_figures(rows, folder)
    text = ledger_page(seasons, rows, links_into(written), figures)
    of_claims = [*claims_found(rows), *own_claims_found(written)]
    of_claims.sort(key=lambda claim: not claim["verdicts"])  # the tested ones first
    photographs_first = sorted(written, key=is_drawn)
    found = [*rows_found(photographs_first), *of_claims]
    write_script(folder / "data/search.js", "search", found)
    links, hours = {}, {}
    for season in seasons:
        hours[season.season] = sum(data.made.hours for data in season.datasets)
    for row in found:
        links.setdefault((row["season"], row["title"]), row["href"])
    best = [each for each in best_rows(seasons) if each.is_fair]
    best = [each for each in best if not each.data.is_drawn] or best
    templates = Environment(autoescape=True, loader=FileSystemLoader(TEMPLATES))
    front = templates.from_string(FRONT.read_text(encoding="utf-8"))
    facts = {
        "seasons": seasons,
        "ledger": html_of(text),
        "numbers": numbers(rows),
        "papers": papers(),
        "best": best,
        "links": links,
        "plots": plots_of(best[0]) if best else "",
        "hours": hours,
        "lasting": lasting,
        "fails": f"grade:{Grade.FAILS}",
        "correlations": correlations(written, [each.season.season for each in best]),
    }
    write_text(folder / "index.html", front.render(**facts))
    for name in ("site.css", "page.js", "front.js"):
        shutil.copy(FILES / name, folder)


def is_drawn(season: Mapping) -> bool:
    """Whether a season has no photographs."""
    return all(board["split"] == DRAWN for board in season["boards"])


def correlations(written: Sequence[dict], names: Sequence[str]) -> list[dict]:
    """How rsum depends on S over the rows of a board, for each board of these seasons
    that has enough of them."""
    listed = []
    for season in written:
        for board in season["boards"]:
            if season["season"] in names and board["overlap_and_rsum"]:
                listed.append(board["overlap_and_rsum"] | {"season": season["season"]})
    return listed


def plots_of(best: BestRow) -> str:
    """The address of the plots of a row's board."""
    board = {"dataset": best.data.dataset, "task": best.leader.task, "layer": ""}
    return f"{best.season.season}/index.html{address_of(board, 'plots')}"


def lasting(hours: float) -> str:
    """A time in hours; in minutes if it is less than one."""
    if hours >= 1:
        return f"{hours:.1f} hours"
    minutes = round(60 * hours)
    if minutes < 1:
        return "less than a minute"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def links_into(written: Sequence[dict]) -> Links:
    """Where the ledger leads on the first page of several seasons."""
    page, layers = "index.html", {}
    for season in written:
        name = season["season"]
        for board in season["boards"]:
            if board["layer"]:
                rows = f"{name}/{page}{address_of(board, 'leaderboard')}"
                layers.setdefault((name, board["dataset"]), rows)
    return Links(
        front=page,
        claims=f"{page}#claims",
        layers=lambda *of_dataset: layers.get(of_dataset, ""),
    )


def html_of(text: str) -> str:
    """The ledger's Markdown as HTML: headings one level lower, below the page's own
    one, with the names that GitHub gives them."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for heading, inside in pairwise(tokens):
        if heading.type == "heading_open":
            words = re.sub(r"[^\w\- ]", "", inside.content.lower())
            heading.attrSet("id", words.replace(" ", "-"))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1:]) + 1}"
    return markdown.renderer.render(tokens, markdown.options, {})


# What the search finds ----------------------------------------------------------------


def rows_found(written: Sequence[dict]) -> Iterator[dict]:
    """What the search finds of rows: those with a result, by a caption's own image."""
    for season in written:
        for board in season["boards"]:
            if board["layer"]:
                continue
            played = [row for row in board["rows"] if row["place"]]
            for rank, row in enumerate(played, start=1):
                page = address_of(board, "cell", row["preset"])
                yield {
                    "kind": "row",
                    "season": season["season"],
                    "board": f"{season['title']}: {board['title']}, {board['task']}",
                    "title": row["title"],
                    "preset": row["preset"],
                    "rank": rank,
                    "ranks": row["place"]["ranks"] if board["compared"] else None,
                    "metric": season["headings"][board["ranked_by"]],
                    "mean": row["place"]["mean"],
                    "low": row["place"]["low"],
                    "high": row["place"]["high"],
                    "href": f"{season['season']}/index.html{page}",
                }


def claims_found(rows: Sequence[LedgerRow]) -> Iterator[dict]:
    """What the search finds of claims: the grade, with what all set-ups say together,
    and, separately, the verdict of each season on photographs."""
    for row in rows:
        effect = pooled_difference(row)
        verdicts = []
        for each in row.photographs:
            verdict = f"{each.entry.conclusion}, {each.entry.reason}"
            verdicts.append(f"{each.place}: {verdict}")
        yield {
            "kind": "claim",
            "season": "",
            "paper": papers()[row.paper].paper.cited,
            "title": row.claim.statement,
            "grade": row.grade,
            "effect": f"{row.decisive.comparison.heading} {effect}" if effect else "",
            "why": reason_of(row),
            "verdicts": verdicts,
            "note": row.claim.note,
            "href": f"#{anchor(row)}",
        }


def reason_of(row: LedgerRow) -> str:
    """Why a claim holds or fails by all set-ups together, or what would decide it; ""
    where neither is known."""
    if row.grade in (*HOLDING, *FAILING):
        return row.graded.decisive.verdict.reason
    remedy = needed(row)
    return f"would decide it: {remedy}" if remedy else ""


def own_claims_found(written: Sequence[dict]) -> Iterator[dict]:
    """What the search finds of the claims of season files, which the ledger leaves
    out."""
    for season in written:
        boards: dict[str, dict] = {}
        for board in season["boards"]:
            boards.setdefault(board["dataset"], board)  # by a caption's own image
        for claim in season["claims"]:
            if claim["paper"] != OWN or claim["decisive"] is None:
                continue
            part = claim["parts"][claim["decisive"]]
            ends = None if part["low"] is None else (part["low"], part["high"])
            effect = signed(part["difference"], part["decimals"], ends)
            page = address_of(boards[claim["dataset"]], "claims")
            yield {
                "kind": "claim",
                "season": season["season"],
                "paper": f"own claim of {season['season']}",
                "title": claim["statement"],
                "grade": claim["conclusion"],
                "effect": f"{part['metric']} {effect}",
                "why": "",
                "verdicts": [claim["reason"]],
                "note": "",
                "href": f"{season['season']}/index.html{page}",
            }


def address_of(board: Mapping, page: str, *more: str) -> str:
    """The address of a page of a board on the page of its season."""
    parts = (page, board_key(board), *more)
    return "#" + "/".join(quote(part, safe="") for part in parts)


def board_key(board: Mapping) -> str:
    """Dataset, task and layer; site.js makes the same key."""
    return "/".join(filter(None, (board["dataset"], board["task"], board["layer"])))


# A season -----------------------------------------------------------------------------


def write_season(
    params: Params, folder: Path, is_public: bool, has_front: bool
) -> dict:
    """Write the data of a season's page; returns what the page is told first."""
    boards = read_boards(params)
    cells = sum(len(board.outcomes) for board in boards)
    print(f"site {params.season}: cells: {cells}", flush=True)
    season = {
        "season": params.season,
        "title": params.title,
        "front": has_front,
        "level": PERCENT,
        "headings": {name: metric.heading for name, metric in METRICS.items()},
        "letters": {name: letter for letter, name in flags.NAMES.items()},
        "less_is_better": [name for name, of in METRICS.items() if of.less_is_better],
        "grades": FAILING,
        "papers": {name: paper.paper.cited for name, paper in papers().items()},
        "boards": [],
        "claims": claims_data(boards),
    }
    season["papers"][OWN] = "this season"
    for board, layer in [*boards_by_task(boards), *boards_by_layer(boards)]:
        data = board_data(board, layer, is_public)
        season["boards"].append(data)
        key = board_key(data)
        pairs = pairs_data(board, data["metrics"])
        write_script(folder / f"data/pairs/{key}.js", f"pairs {key}", pairs)
    write_script(folder / "data/season.js", "season", season)
    plots = {}
    for board in boards:
        for row in board.ranked:
            plots[f"{board.dataset}/{row.preset}"] = plot_data(row)
    write_script(folder / "data/plots.js", "plots", plots)
    for board in boards:
        if is_prepared(board):
            print(write_queries(params, board, folder, is_public))
        else:
            print(preparation_note(board))
    return season


def is_prepared(board: Board) -> bool:
    """Whether images, captions and queries of the dataset can be shown."""
    return (prepared_tables.ROOT / board.dataset).is_dir()


def preparation_note(board: Board) -> str:
    """For whoever writes a site: what is missing because the dataset is not prepared
    here, and how to prepare it."""
    return (
        f"Images, captions and queries of {board.dataset} are missing, since it is not "
        f"prepared here: {preparation(board)} again."
    )


def public_note(board: Board) -> str:
    """The same for the readers of a site."""
    why = "this site was written without them"
    if not board.card["may_publish"]:
        why = "they may not be published"
    return (
        f"Images, captions and queries of {board.title} are not shown: {why}. To see "
        f"them, in a clone of Rematch, {preparation(board)}."
    )


def preparation(board: Board) -> str:
    """The commands after which a site has what is missing; without a full stop."""
    name = board.dataset
    return f"run rematch fetch {name} and rematch prepare {name}, then rematch site"


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
    module = (folder / "dt_bundle.js").read_text(encoding="utf-8")
    return {
        "datatables.js": as_script(module),
        "datatables.css": (folder / "dt_bundle.css").read_text(encoding="utf-8"),
        # its names would be global
        "vega.js": f"(()=>{{{vl_convert.javascript_bundle()}\n}})();",
    }


def as_script(module: str) -> str:
    """A module as a script, since a page that is opened from disk may load no modules:
    what it exports becomes properties of `window.tables`."""
    body, _, rest = module.rpartition("export{")
    exported, _, notices = rest.partition("}")
    properties = []
    for pair in exported.split(","):
        names = [name.strip() for name in pair.split(" as ")]
        properties.append(f'"{names[-1]}":{names[0]}')
    tables = ",".join(properties)
    return f"(()=>{{{body}\nwindow.tables={{{tables}}};}})(){notices}"


# Leaderboards, claims, plots ----------------------------------------------------------


def boards_by_task(boards: Sequence[Board]) -> Iterator[tuple[Board, str]]:
    """Every dataset by the images and boxes of its captions, with "" as its layer."""
    for board in boards:
        for of_task in (board.retrieval, board.localisation):
            if of_task.rows:
                yield of_task, ""


def boards_by_layer(boards: Sequence[Board]) -> Iterator[tuple[Board, str]]:
    """Every prepared dataset by its further layers of relevance, with their names."""
    for board in boards:
        if not is_prepared(board):
            continue
        for name in board.layers:
            of_layer = board.under(name)
            if of_layer.rows:
                yield of_layer, name


def board_data(board: Board, layer: str, is_public: bool) -> dict:
    """A dataset and task: rsum adds up different recalls in the two tasks. `layer` is
    that of relevance, "" of a caption's own image."""
    made = Made.of(board)
    lacks = ""
    if not is_prepared(board):
        lacks = public_note(board) if is_public else preparation_note(board)
    leader = Leader.of(board) if board.ranked else None
    task = board.rows[0].task
    ways = ["p2r"] if task == "localisation" else list(board.ways)
    metrics = []
    for way in ways:
        metrics += table_metrics(way)
    metrics.append("rsum")
    places = {place.title: place for place in leader.places} if leader else {}
    rows = [row_data(board, row, metrics, places[row.title]) for row in board.ranked]
    rows += [row_data(board, row, metrics) for row in board.rows if not row.played]
    correlation = None
    if task == "retrieval" and not layer:
        correlation = overlap_and_rsum(board)
    return {
        "dataset": board.dataset,
        "task": task,
        "overlap_and_rsum": correlation and asdict(correlation),
        "layer": layer,
        "title": board.title,
        "split": board.card["split"],
        "test": board.card["counts"]["test"],
        "small": board.is_small(task),
        "compared": bool(leader and leader.is_compared),
        "lacks": lacks,
        "ways": ways,
        "metrics": metrics,
        "ranked_by": RANKED_BY[task],
        "made": made.model_dump(mode="json") | {"took": lasting(made.hours)},
        "rows": rows,
    }


def row_data(
    board: Board, row: Row, metrics: Sequence[str], place: RowEntry | None = None
) -> dict:
    """A row with its cells; without a result it has no metrics, and no intervals."""
    intervals = {}  # metric -> low, high, whether it is of these trainings only
    for metric in (*metrics, "overlap_s") if row.played else ():
        ends, is_of_these = known_interval(board, row, metric)
        if ends:
            intervals[metric] = [*map(rounded, ends), is_of_these]
    return {
        "preset": row.preset,
        "title": row.title,
        "name": short_name(row.title),
        "method": row.method,
        "trained_as": trained_as(row),
        "corrected": bool(row.played) and row_warnings.is_corrected(row),
        "features_of_paper": has_features_of_paper(board, row),
        "status": "ok" if row.played else row.record.status,
        "reason": row.record.reason,
        "cells": [cell_data(outcome) for outcome in row.outcomes],
        "metrics": row.means() if row.played else {},
        "intervals": intervals,
        "place": place and place.model_dump(mode="json"),
    }


def trained_as(row: Row) -> list[str]:
    """The presets whose trainings gave its scores; empty: it has its own."""
    declared = row.declared
    if declared.fuse:
        return list(dict.fromkeys(member for member, _ in declared.fuse.members))
    is_trained = declared.options.get("trains", True)
    return [] if is_trained else [declared.start]


def has_features_of_paper(board: Board, row: Row) -> bool:
    """Whether a row was fed what its paper feeds it."""
    if not row.has_paper or row.record.departures:
        return False
    return not flags.has_flag(board, row, flags.other_text_encoder)


def short_name(title: str) -> tuple[str, str]:
    """The method and what sets the preset apart, "" for nothing: what a row shows in
    black and in grey."""
    name = METHOD.match(title).group()
    return name, title[len(name) :].lstrip(",: ")


def pairs_data(board: Board, metrics: Sequence[str]) -> dict:
    """The difference of every two rows by each metric, positive where the first is
    better: for each pair in the order of `combinations` a list over the metrics of
    [difference, low, high, whether it is of these trainings only], or None without an
    interval."""
    metrics = [*metrics, "overlap_s"]
    differences = []
    for first, second in combinations(board.ranked, 2):
        differences.append([difference(board, first, second, name) for name in metrics])
    presets = [row.preset for row in board.ranked]
    return {"presets": presets, "metrics": metrics, "differences": differences}


def difference(board: Board, first: Row, second: Row, metric: str) -> list | None:
    """Positive where the first is better, with its interval; None without one."""
    comparison = compare(board, first, second, metric)
    if comparison is None or comparison.interval is None:
        return None
    told = map(rounded, (comparison.difference, *comparison.interval))
    return [*told, comparison.is_of_these_trainings]


def cell_data(outcome: Outcome) -> dict:
    known = {"seed", "status", "reason", "selected_epoch", "scaled", "options"}
    metrics = outcome.record.metrics
    return {
        **outcome.record.model_dump(mode="json", include=known),
        "folder": f"results/{outcome.kept.place}",
        "seconds": outcome.training_seconds if outcome.trainings else None,
        "metrics": {name: metrics[name] for name in metrics if name in METRICS},
    }


def claims_data(boards: Sequence[Board]) -> list[dict]:
    """What the season says on every claim, its own claims first."""
    listed = []
    for board in boards:
        listed += [claim_data(board, test) for test in claims.claim_tests(board)]
    return sorted(listed, key=lambda claim: claim["paper"] != OWN)


def claim_data(board: Board, test: ClaimTest) -> dict:
    blocked = test.decisive.blocked if test.verdicts else None
    metric = test.decisive.comparison.metric if test.verdicts else None
    return {
        **ClaimEntry.of(test).model_dump(mode="json"),
        "dataset": board.dataset,
        "statement": test.claim.statement,
        "where": test.claim.where,
        "less_is_better": quantity(metric).less_is_better if metric else False,
        "identical": blocked is not None and blocked.letter == flags.identical.letter,
        "counted": test.is_counted,
    }


def plot_data(row: Row) -> dict:
    """Validation rsum by epoch of all trainings; shares of matched and unmatched pairs
    by score, of the first seed."""
    curves = []
    for outcome in row.played:
        if outcome.record.epochs is not None:
            values = outcome.record.epochs["val_rsum"].tolist()
            curves.append({"seed": outcome.record.seed, "val_rsum": values})
    first = row.played[0]
    histograms = first.scores.histograms
    if histograms is None:
        return {"curves": curves}
    edges = np.linspace(*similarity.limits([histograms]), BINS + 1)

    def shares(counts: np.ndarray) -> list[float]:
        densities = similarity.density(histograms.edges, counts, edges)
        return (densities * np.diff(edges)).tolist()

    scores = {
        "seed": first.record.seed,
        "edges": edges.tolist(),
        "overlap_s": first.record.metrics["overlap_s"],
        "matched": shares(histograms.matched),
        "unmatched": shares(histograms.unmatched),
    }
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
    images, captions = data.images, data.captions
    files, texts, without_images = [], [], ""
    if is_shown:
        images_folder = folder / "images" / board.dataset
        files, without_images = _write_images(params, data, images_folder)
        texts = captions["text"].iloc[split.caption_rows].tolist()
    items = {
        "images": images["image_id"].iloc[split.image_rows].tolist(),
        "captions": captions["caption_id"].iloc[split.caption_rows].tolist(),
        "texts": texts,
        "files": files,
        "owners": split.image_of_caption.tolist(),
        "groups": split.group_of_image.tolist(),
    }
    path = folder / f"data/items/{board.dataset}.js"
    write_script(path, f"items {board.dataset}", items)
    missing = 0
    for row in rows:
        outcome = row.played[0]
        retrieved = outcome.retrieved
        if outcome.has_scores and not retrieved:
            missing += 1
        queries = {"seed": outcome.record.seed}
        for way in board.ways:
            shown = retrieved[way][:, :SHOWN].tolist() if way in retrieved else []
            queries[way] = {"ranks": outcome.ranks(way).tolist(), "items": shown}
        name = f"{board.dataset}/{row.preset}"
        write_script(folder / f"data/queries/{name}.js", f"queries {name}", queries)
    line = f"{board.dataset}: presets to browse: {len(rows)}; images: {len(files)}"
    if missing:
        line += (
            f"; what {missing} retrieved is not kept here: run them again, or dvc pull "
            "with a remote"
        )
    return f"{line}; {without_images}" if without_images else line


def _write_images(
    params: Params, data: Prepared, folder: Path
) -> tuple[list[str], str]:
    """The names of small test images in the split's order, and why there are none where
    they are not on this machine."""
    files = data.images["file"].iloc[data.split("test").image_rows]
    if (files == "").any():
        return [], "the dataset has no images"
    folder.mkdir(parents=True)
    names = [f"{number:05d}.jpg" for number in range(len(files))]
    try:
        open_image = raw_dataset(params, data.folder.name).pictures()
        bar = ProgressBar(files, desc=f"images of {data.folder.name}")
        for name, file in zip(names, bar, strict=True):
            small = ImageOps.contain(open_image(file), (SIDE, SIDE))
            small.save(folder / name, quality=80)
    except (UserError, OSError) as error:
        return [], str(error)
    return names, ""
