"""The pages of a report, each a template filled from boards. Knows no torch."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board
from benchmark.analysis.claims import SEEDS, Verdict
from benchmark.analysis.significance import ALPHA
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.core.provenance import Provenance
from benchmark.core.records import Record
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.fidelity_notes import Entry, fidelity
from benchmark.papers.printed_tables import Paper, papers
from benchmark.protocol import overlap
from benchmark.report.markdown import code, escaped
from benchmark.report.pages import (
    illustrations,
    leakage_section,
    paper_tables,
    result_tables,
    summary,
)
from benchmark.report.pages.claim_tables import claims_grid, not_run_grid, told
from benchmark.report.pages.explanations import explanations
from benchmark.report.pages.figure_files import Album
from benchmark.report.pages.gallery import Place, gallery
from benchmark.report.pages.illustrations import Picture
from benchmark.report.pages.located_phrases import phrases
from benchmark.report.table_formats import Grid, as_markdown
from benchmark.season.parameters import Params
from datasets import SPLITS, DataError, OpenPicture

TEMPLATES = Path(__file__).parents[1] / "templates"
AGAIN = "python -m benchmark report"
RETRIEVED: dict[str, Callable[[Board], Grid | None]] = {
    "leaderboard": result_tables.leaderboard,
    "folds": result_tables.folds,
    "failures": result_tables.failures,
    "seeds": result_tables.over_seeds,
    "sentences": result_tables.sentences,
    "overlap": result_tables.overlaps,
    "cost": result_tables.cost,
}
LOCALISED: dict[str, Callable[[Board], Grid | None]] = {
    "localisation": result_tables.localised,
    "localisation-failures": result_tables.failures,
    "localisation-seeds": result_tables.over_seeds,
    "localisation-cost": result_tables.localisation_cost,
}
UP = "../"  # from papers/ and datasets/ to the folder of the report
Judged = dict[str, list[Verdict]]  # by dataset
Grids = dict[str, Grid | None]  # of a dataset, by name
Looks = dict[str, str]  # by task: Markdown


def pages(params: Params, boards: Sequence[Board], judged: Judged, album: Album) -> dict[str, str]:
    """Every page of the report by its path: Markdown. Figures go into the album."""
    grids = {board.dataset: dataset_grids(board) for board in boards}
    found = {
        "README.md": _readme(params, boards, judged, grids),
        "claims.md": _claims(boards, judged, album),
        "fidelity.md": _fidelity(boards),
    }
    for name, paper in papers().items():
        found[f"papers/{name}.md"] = _paper(name, paper, boards, judged, album)
    for board in boards:
        found[f"datasets/{board.dataset}.md"] = _dataset(params, board, grids[board.dataset], album)
    return found


def dataset_grids(board: Board) -> Grids:
    """The tables of a dataset's page; None for those that would be empty."""
    found: Grids = {}
    for of_task, makers in ((board.retrieval, RETRIEVED), (board.localisation, LOCALISED)):
        found |= {
            name: make(of_task) if of_task.standings else None for name, make in makers.items()
        }
    return found | {
        "remarks": result_tables.remarks(board),
        "leakage": leakage_section.shared(board.card),
        "twins": leakage_section.twins(board.card),
        "captions-per-image": leakage_section.captions_per_image(board.card),
    }


def _readme(
    params: Params, boards: Sequence[Board], judged: Judged, grids: dict[str, Grids]
) -> str:
    return _filled(
        "readme.md.j2",
        params=params,
        boards=[
            {
                "dataset": board.dataset,
                "title": board.card["title"],
                "verdict": summary.lines(board, judged[board.dataset]),
                "grids": grids[board.dataset],
                "is_coarse": _is_coarse(board),
            }
            for board in boards
        ],
        papers=papers(),
        has_one_way=any(len(board.ways) == 1 for board in boards),
        has_phrases=any(board.localisation.standings for board in boards),
        bins=overlap.BINS,
        plus_minus=result_tables.PLUS_MINUS,
        slack=comparisons.SLACK,
    )


def _claims(boards: Sequence[Board], judged: Judged, album: Album) -> str:
    return _filled(
        "claims.md.j2",
        boards=[
            {
                "title": board.card["title"],
                "counts": told(judged[board.dataset]),
                "figures": _shown(
                    illustrations.of_claims(board, judged[board.dataset]), board.dataset, album, ""
                ),
                "tested": claims_grid("Tested", judged[board.dataset]),
                "not_run": not_run_grid("Not run", judged[board.dataset]),
            }
            for board in boards
        ],
        seeds=SEEDS,
        alpha=ALPHA,
    )


def _fidelity(boards: Sequence[Board]) -> str:
    return _filled(
        "fidelity.md.j2",
        methods={name: _entries(name, entries) for name, entries in fidelity().items()},
        boards=[
            {"title": board.card["title"], "remarks": result_tables.remarks(board)}
            for board in boards
        ],
    )


def _entries(name: str, entries: Sequence[Entry]) -> Grid:
    heads = ["topic", "paper", "official code", "ours", "why", "option"]
    rows = [[e.topic, e.paper, e.code, e.ours, e.why, e.option or ""] for e in entries]
    return Grid(title=f"{name}: paper, official code, ours", heads=heads, rows=rows, names=6)


def _paper(name: str, paper: Paper, boards: Sequence[Board], judged: Judged, album: Album) -> str:
    return _filled(
        "paper.md.j2",
        paper=paper,
        name=name,
        grids=paper_tables.paper_grids(paper, boards),
        boards=[_on_board(name, paper, board, judged[board.dataset], album) for board in boards],
    )


def _on_board(
    name: str, paper: Paper, board: Board, verdicts: Sequence[Verdict], album: Album
) -> dict:
    """What a paper's page shows of a dataset."""
    own = [verdict for verdict in verdicts if verdict.paper == name]
    stem = f"{board.dataset}-{name}"
    return {
        "title": board.card["title"],
        "dataset": board.dataset,
        "counts": told(own),
        "tested": claims_grid(f"Claims on {board.card['title']}", own),
        "not_run": not_run_grid(f"Claims not run on {board.card['title']}", own),
        "forest": _shown(illustrations.of_claims(board, own), stem, album, UP),
        "figures": _shown(illustrations.of_paper(name, paper, board), stem, album, UP),
    }


def _dataset(params: Params, board: Board, grids: Grids, album: Album) -> str:
    retrieval, localisation = board.retrieval, board.localisation
    pictures = [
        *(illustrations.of_dataset(retrieval) if retrieval.ranked else ()),
        *(illustrations.of_localisation(localisation) if localisation.ranked else ()),
    ]
    return _filled(
        "dataset.md.j2",
        name=board.dataset,
        title=board.card["title"],
        card=board.card,
        split=f"{board.card['split']}/test",
        seeds=list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes)),
        grids=grids,
        has_retrieved=bool(retrieval.ranked),
        has_localised=bool(localisation.ranked),
        is_coarse=_is_coarse(board),
        tie_gap=_tie_gap(board),
        query=("picture", "caption") if "i2t" in board.ways else ("caption", "picture"),
        places=_places(retrieval),
        localisation_places=_places(localisation),
        counts=_counts(board),
        sentences=_sentences(board),
        integrity=leakage_section.sentences(board.card),
        figures={p.name: album.shown(p, board.dataset, UP) for p in pictures},
        looks=_looks(params, board, album),
    )


def _shown(pictures: Iterable[Picture], stem: str, album: Album, up: str) -> list[str]:
    return [album.shown(picture, stem, up) for picture in pictures]


def _is_coarse(board: Board) -> bool:
    return any(comparisons.is_coarse(standing) for standing in board.retrieval.ranked)


def _tie_gap(board: Board) -> str:
    gaps = [
        outcome.record.metrics[f"{way}_r1_tie_gap"]
        for standing in board.retrieval.ranked
        for outcome in standing.played
        for way in board.ways
    ]
    highest = max(gaps, default=0.0)
    if highest == 0:
        return "Ties: none decides an R@1; counting them for the method changes nothing."
    return (
        f"Ties: counting them for the method instead of against it would raise an R@1 by up to "
        f"{highest:.2f} points."
    )


def _counts(board: Board) -> Grid:
    counted = board.card["counts"]
    has_phrases = any(numbers.get("phrases", 0) for numbers in counted.values())
    kinds = ["images", "captions", *["phrases"] * has_phrases]
    rows = [
        [name, *(str(counted[name][kind]) for kind in kinds)] for name in SPLITS if name in counted
    ]
    return Grid(title="Splits", heads=["split", *kinds], rows=rows)


def _sentences(board: Board) -> list[str]:
    """Facts of the data and its features, as Markdown."""
    found = [escaped(note) for note in board.card["notes"]]
    for outcome in board.outcomes:
        found += [_image_features(outcome.record)]
        found += [_text_features(outcome.record)]
    return list(dict.fromkeys(found))


def _image_features(record: Record) -> str:
    facts, weights = record.image_features, record.image_features.get("weights", {})
    origin = f"{weights.get('file', 'unknown')}, sha256 {weights.get('sha256', 'unknown')[:12]}"
    what = "Proposals" if record.task == "localisation" else "Image features"
    return f"{what}: {code(facts.get('encoder', 'unknown'))}, weights: {escaped(origin)}."


def _text_features(record: Record) -> str:
    facts = record.text_features
    if not facts:
        return "Text: never read."
    if "vocabulary" in facts:
        return f"Text as words: a vocabulary of {facts['vocabulary']} from the training captions."
    origin = f", {escaped(facts['vectors'])}" if "vectors" in facts else ""
    kind = "phrase" if record.task == "localisation" else "sentence"
    return f"Text as {kind} vectors: {code(facts['encoder'])}{origin}."


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


def _looks(params: Params, board: Board, album: Album) -> Looks:
    """What there is to look at of each task that was played; where it may not be published, the
    way to it."""
    if not board.ranked:
        return {}
    if board.card["may_publish"]:
        return _looked(params, board, album, f"gallery/{board.dataset}/", UP)
    page = f"local/{board.dataset}.md"
    _write_local(params, board, album.folder.parent / "local")
    told = (
        f"The pictures of this dataset may not be published here. {code(AGAIN)} makes the page "
        f"[{page}]({UP}{page}) on a machine that has them."
    )
    return {standing.task: told for standing in board.ranked}


def _looked(params: Params, board: Board, album: Album, thumbnails: str, up: str) -> Looks:
    """Thumbnails go into a folder of the album."""
    data = prepared_tables.read(board.dataset)
    if (data.images["file"].iloc[data.split("test").image_rows] == "").any():
        told = "There are no pictures to look at: the dataset came as features."
        return {standing.task: told for standing in board.ranked}
    open_picture = raw_dataset(params, board.dataset).pictures()
    found: Looks = {}
    if board.retrieval.ranked:
        place = Place(folder=album.folder / thumbnails, link=f"{up}{album.link}{thumbnails}")
        found["retrieval"] = _gallery(board.retrieval, data, open_picture, album, place, up)
    if board.localisation.ranked:
        found["localisation"] = _phrases(board.localisation, data, open_picture, album, up)
    return found


def _gallery(
    board: Board, data: Prepared, open_picture: OpenPicture, album: Album, place: Place, up: str
) -> str:
    """The hits and misses of the best preset, and what scores rest on."""
    best = board.ranked[0]
    text, written = gallery(data, data.split("test"), best.played[0], open_picture, place)
    album.written += written
    pictures = explanations(board, data, open_picture)
    return _filled(
        "looks.md.j2",
        best=best.row.title,
        seed=best.played[0].record.seed,
        gallery=text,
        figures=[album.shown(picture, board.dataset, up) for picture in pictures],
    )


def _phrases(board: Board, data: Prepared, open_picture: OpenPicture, album: Album, up: str) -> str:
    """What the best preset and a baseline take for the thing that a phrase names."""
    pictures = phrases(board, data, open_picture)
    return _filled(
        "phrases.md.j2", figures=[album.shown(picture, board.dataset, up) for picture in pictures]
    )


def _write_local(params: Params, board: Board, folder: Path) -> None:
    """Make the page that stays on this machine; without the raw files, leave what is there."""
    album = Album(folder / board.dataset, f"{board.dataset}/")
    try:
        looks = _looked(params, board, album, "", "")
    except (UserError, DataError, OSError) as error:
        print(f"rematch: no local gallery of {board.dataset}: {error}", file=sys.stderr)
        return
    album.remove_others()
    text = "\n".join(looks.values())
    write_text(
        folder / f"{board.dataset}.md",
        f"# {escaped(board.card['title'])}\n\n[Back](../README.md)\n\n{text}",
    )


def _filled(template: str, **facts: object) -> str:
    return _environment().get_template(template).render(**facts)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: text from elsewhere passes `escaped`
    )
    environment.filters |= {"escaped": escaped, "code": code, "grid": as_markdown}
    return environment
