"""Stage: the records of the declared grid -> reports/<season>/, Markdown with figures.

A pure function of its inputs: the same records give the same bytes. Galleries of datasets whose
pictures may not be published go to reports/<season>/local/, which is not committed.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmark import figures, overlap, prepared, tables
from benchmark.costs import Provenance
from benchmark.errors import UserError
from benchmark.files import write_json, write_text
from benchmark.gallery import Place, gallery
from benchmark.markdown import code, escaped, picture, table
from benchmark.outcomes import Board, Standing, read_boards
from benchmark.params import Params, read_params
from benchmark.raw import raw_dataset
from benchmark.stage import run_stage
from datasets import SPLITS, DataError

ROOT = Path("reports")
TEMPLATES = Path(__file__).parent / "templates"
AGAIN = "python -m benchmark report"
SHORTEST = 1e-6  # microseconds; a measured zero has no place on a logarithmic axis


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print metrics.json as well")


def main(arguments: argparse.Namespace) -> None:
    params = read_params()
    folder = write_report(params)
    if arguments.json:
        sys.stdout.write((folder / "metrics.json").read_text(encoding="utf-8"))
    else:
        print(folder / "README.md")


def write_report(params: Params) -> Path:
    """Write README.md, figures/ and metrics.json of the season; returns their folder."""
    boards = read_boards(params)
    folder = ROOT / params.season
    written: list[Path] = []
    views = [_view(params, board, folder, written) for board in boards]
    _remove_others(folder / "figures", written)
    write_text(folder / "README.md", _page(params, boards, views))
    write_json(folder / "metrics.json", metrics(boards))
    return folder


def metrics(boards: Sequence[Board]) -> dict[str, dict[str, dict[str, float]]]:
    """dataset -> preset -> metric -> mean over the seeds; presets without a result are left out."""
    return {
        board.dataset: {standing.preset: _means(standing) for standing in board.ranked}
        for board in boards
    }


def _means(standing: Standing) -> dict[str, float]:
    first = standing.played[0].record.metrics
    names = [name for name, value in first.items() if isinstance(value, int | float)]
    return {name: standing.mean(name) for name in names}


def _page(params: Params, boards: Sequence[Board], views: Sequence[dict]) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: text from elsewhere passes `escaped`
    )
    environment.filters |= {"escaped": escaped, "code": code}
    outcomes = [outcome for board in boards for outcome in board.outcomes]
    return environment.get_template("season.md.j2").render(
        title=params.title,
        season=params.season,
        boards=views,
        presets=len({outcome.record.preset for outcome in outcomes}),
        seeds=list(dict.fromkeys(outcome.record.seed for outcome in outcomes)),
        bins=overlap.BINS,
        plus_minus=tables.PLUS_MINUS,
        slack=tables.SLACK,
    )


def _view(params: Params, board: Board, folder: Path, written: list[Path]) -> dict:
    """What the template shows of a dataset. Adds the files it wrote to `written`."""
    return {
        "name": board.dataset,
        "title": board.card["title"],
        "card": board.card,
        "split": f"{board.card['split']}/test",
        "is_played": bool(board.ranked),
        "leaderboard": tables.leaderboard(board),
        "tie_gap": _tie_gap(board),
        "failures": tables.failures(board),
        "sentences_found": tables.sentences(board),
        "over_seeds": tables.over_seeds(board),
        "cost": tables.cost(board),
        "places": _places(board),
        "overlaps": tables.overlaps(board),
        "is_coarse": any(tables.is_coarse(standing) for standing in board.ranked),
        "reported": tables.reported(board),
        "remarks": tables.remarks(board),
        "counts": _counts(board),
        "sentences": _sentences(board),
        "figures": _figures(board, folder, written) if board.ranked else {},
        "gallery": _gallery(params, board, folder, written) if board.ranked else "",
    }


def _tie_gap(board: Board) -> str:
    gaps = [
        outcome.record.metrics[f"{way}_r1_tie_gap"]
        for standing in board.ranked
        for outcome in standing.played
        for way in ("i2t", "t2i")
    ]
    highest = max(gaps, default=0.0)
    if highest == 0:
        return "Ties: none decides an R@1; counting them for the method changes nothing."
    return (
        f"Ties: counting them for the method instead of against it would raise an R@1 by up to "
        f"{highest:.2f} points."
    )


def _counts(board: Board) -> str:
    counts = board.card["counts"]
    rows = [
        [name, str(counts[name]["images"]), str(counts[name]["captions"])]
        for name in SPLITS
        if name in counts
    ]
    return table(["split", "images", "captions"], rows)


def _sentences(board: Board) -> list[str]:
    """Facts of the data and its features, as Markdown."""
    found = [escaped(note) for note in (*board.card["notes"], *board.card["leakage"]["notes"])]
    for outcome in board.outcomes:
        found += [_image_features(outcome.record.image_features)]
        found += [_text_features(outcome.record.text_features)]
    return list(dict.fromkeys(found))


def _image_features(facts: dict) -> str:
    weights = facts.get("weights", {})
    origin = f"{weights.get('file', 'unknown')}, sha256 {weights.get('sha256', 'unknown')[:12]}"
    return f"Image features: {code(facts['encoder'])}, weights: {escaped(origin)}."


def _text_features(facts: dict) -> str:
    if not facts:
        return "Text: never read."
    if "vocabulary" in facts:
        return f"Text as words: a vocabulary of {facts['vocabulary']} from the training captions."
    origin = f", {escaped(facts['vectors'])}" if "vectors" in facts else ""
    return f"Text as sentence vectors: {code(facts['encoder'])}{origin}."


def _places(board: Board) -> list[str]:
    """Where the cells were trained and scored, and with which code; each place once."""
    found = [
        f"{what} on {_place(facts)}"
        for outcome in board.outcomes
        for what, several in (("trained", outcome.trainings), ("scored", (outcome.scoring,)))
        for facts in several
    ]
    return sorted(dict.fromkeys(found), reverse=True)


def _place(facts: Provenance) -> str:
    device = f"threads: {facts.threads}" if facts.device == "cpu" else facts.device
    return f"{facts.machine}, {device}; commit {facts.git_commit}; torch {facts.packages['torch']}"


def _figures(board: Board, folder: Path, written: list[Path]) -> dict[str, str]:
    """Markdown of every figure that has something to show, by its name."""
    looks = figures.styles([standing.method for standing in board.standings])
    style_of = {s.preset: look for s, look in zip(board.standings, looks, strict=True)}
    title = board.card["title"]
    panels, points = _panels(board), _points(board, style_of)
    listed = ", ".join(f"{panel.title} {panel.overlap:.3f}" for panel in panels)
    drawn = {
        "similarities": (
            figures.similarities(panels),
            f"{title}: score densities of matched and unmatched pairs; S: {listed}",
        ),
        "cost": (figures.cost(points), f"{title}: rsum against microseconds to score a pair"),
    }
    curves = _curves(board, style_of)
    if curves:
        alt = f"{title}: training loss and validation rsum by epoch"
        drawn["training"] = (figures.training(curves), alt)
    shown = {}
    for name, (figure, alt) in drawn.items():
        path = folder / "figures" / f"{board.dataset}-{name}.png"
        figures.save(figure, path)
        written.append(path)
        shown[name] = picture(alt, f"figures/{path.name}")
    return shown


def _panels(board: Board) -> list[figures.Panel]:
    """Of the first seed of every preset."""
    found = []
    for standing in board.ranked:
        first = standing.played[0]
        scores = first.arrays("similarities.npz")
        found.append(
            figures.Panel(
                title=standing.row.title,
                overlap=first.record.metrics["overlap_s"],
                bound=first.record.metrics["one_minus_ks"],
                matched=scores["matched_sample"],
                unmatched=scores["unmatched_sample"],
            )
        )
    return found


def _points(board: Board, style_of: dict[str, figures.Style]) -> list[figures.Point]:
    return [
        figures.Point(
            title=standing.row.title,
            style=style_of[standing.preset],
            microseconds=max(
                SHORTEST, 1e6 * fmean(o.scoring.seconds["per_pair"] for o in standing.played)
            ),
            rsum=standing.mean("rsum"),
            deviation=float(np.std(rsums, ddof=1)) if len(rsums) > 1 else 0.0,
        )
        for standing in board.ranked
        for rsums in [standing.values("rsum")]
    ]


def _curves(board: Board, style_of: dict[str, figures.Style]) -> list[figures.Curve]:
    return [
        figures.Curve(
            title=standing.row.title,
            method=standing.method,
            style=style_of[standing.preset],
            is_first_seed=outcome is standing.played[0],
            epochs=outcome.history["epoch"].to_numpy(),
            loss=outcome.history["loss"].to_numpy(),
            rsum=outcome.history["val_rsum"].to_numpy(),
            selected=outcome.record.selected_epoch,
        )
        for standing in board.standings
        for outcome in standing.played
        if outcome.history is not None
    ]


def _gallery(params: Params, board: Board, folder: Path, written: list[Path]) -> str:
    """The gallery of the best preset; where it may not be published, the way to it."""
    best = board.ranked[0]
    head = f"Of {tables.title(best)}, seed {best.played[0].record.seed}; evenly spaced queries."
    if board.card["may_publish"]:
        link = f"figures/gallery/{board.dataset}/"
        text, thumbnails = _drawn(params, board, Place(folder=folder / link, link=link))
        written += thumbnails
        return f"{head}\n\n{text}"
    _write_local(params, board, folder / "local", head)
    page = f"local/{board.dataset}.md"
    return (
        f"The pictures of this dataset may not be published here. {code(AGAIN)} makes the page "
        f"[{page}]({page}) on a machine that has them."
    )


def _write_local(params: Params, board: Board, folder: Path, head: str) -> None:
    """Make the page that stays on this machine; without the raw files, leave what is there."""
    place = Place(folder=folder / board.dataset, link=f"{board.dataset}/")
    try:
        text, thumbnails = _drawn(params, board, place)
    except (UserError, DataError, OSError) as error:
        print(f"rematch: no local gallery of {board.dataset}: {error}", file=sys.stderr)
        return
    _remove_others(place.folder, thumbnails)
    page = f"# {escaped(board.card['title'])}: hits and misses\n\n{head}\n\n{text}\n"
    write_text(folder / f"{board.dataset}.md", page)


def _drawn(params: Params, board: Board, place: Place) -> tuple[str, list[Path]]:
    data = prepared.read(board.dataset)
    open_picture = raw_dataset(params, board.dataset).pictures()
    return gallery(data, data.split("test"), board.ranked[0].played[0], open_picture, place)


def _remove_others(folder: Path, kept: Sequence[Path]) -> None:
    """Delete what an earlier report left in `folder`, half-written files of a killed one too."""
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
        elif path.is_file() and path not in kept:
            path.unlink()


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
