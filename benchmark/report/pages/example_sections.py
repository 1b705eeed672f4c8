"""Examples from the test split: hits and misses, what scores rest on, localised phrases.

They show pictures and captions. If a dataset may not be published, they go to a page in local/,
which stays on this machine. Knows no torch.
"""

import sys
from dataclasses import replace
from pathlib import Path

from benchmark.analysis.boards import Board
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.markdown import code, escaped
from benchmark.report.pages.figure_files import FigureFolder
from benchmark.report.pages.gallery import ThumbnailFolder, gallery
from benchmark.report.pages.template_filling import filled
from benchmark.season.parameters import Params
from datasets import DataError

COMMAND = "python -m benchmark report"
UP = "../"  # from datasets/ to the folder of the report


def example_sections(params: Params, board: Board, figures: FigureFolder) -> dict[str, str]:
    """Markdown of the examples by task, for tasks with results.

    Of a dataset that may not be published, the Markdown links to the local page.
    """
    if not board.ranked:
        return {}
    if board.card["may_publish"]:
        return _by_task(params, board, figures, f"gallery/{board.dataset}/", UP)
    page = f"local/{board.dataset}.md"
    _write_local_page(params, board, figures.folder.parent / "local")
    link = (
        f"The pictures of this dataset may not be published here. {code(COMMAND)} makes the page "
        f"[{page}]({UP}{page}) on a machine that has them."
    )
    return {standing.task: link for standing in board.ranked}


def _by_task(
    params: Params, board: Board, figures: FigureFolder, thumbnails: str, up: str
) -> dict[str, str]:
    """`thumbnails` is a subfolder of `figures`; `up` leads from the page to the report's folder."""
    data = prepared_tables.read(board.dataset)
    if (data.images["file"].iloc[data.split("test").image_rows] == "").any():
        sentence = "There are no pictures to look at: the dataset came as features."
        return {standing.task: sentence for standing in board.ranked}
    open_picture = raw_dataset(params, board.dataset).pictures()
    inputs = FigureInputs(board=board, data=data, open_picture=open_picture)
    sections: dict[str, str] = {}
    if board.retrieval.ranked:
        saved_in = ThumbnailFolder(
            folder=figures.folder / thumbnails, link=f"{up}{figures.link}{thumbnails}"
        )
        of_retrieval = replace(inputs, board=board.retrieval)
        sections["retrieval"] = _hits_and_misses(of_retrieval, figures, saved_in, up)
    if board.localisation.ranked:
        of_localisation = replace(inputs, board=board.localisation)
        phrases = figures.section("phrases", of_localisation, board.dataset, up)
        sections["localisation"] = filled("phrases.md.j2", figures=phrases)
    return sections


def _hits_and_misses(
    inputs: FigureInputs, figures: FigureFolder, saved_in: ThumbnailFolder, up: str
) -> str:
    """Of the best preset; then the figures of what scores rest on."""
    scored = [standing for standing in inputs.board.ranked if standing.has_scores]
    if not scored:
        return "There is nothing to look at: only ranks were brought along."
    best, data = scored[0], inputs.data
    outcome = best.played[0]
    text, written = gallery(data, data.split("test"), outcome, inputs.open_picture, saved_in)
    figures.written += written
    return filled(
        "examples.md.j2",
        best=best.row.title,
        seed=outcome.record.seed,
        gallery=text,
        figures=figures.section("examples", inputs, inputs.board.dataset, up),
    )


def _write_local_page(params: Params, board: Board, folder: Path) -> None:
    """Write the page that stays on this machine; without the raw files, leave the old one."""
    figures = FigureFolder(folder / board.dataset, f"{board.dataset}/")
    try:
        sections = _by_task(params, board, figures, "", "")
    except (UserError, DataError, OSError) as error:
        print(f"rematch: no local gallery of {board.dataset}: {error}", file=sys.stderr)
        return
    figures.remove_others()
    text = "\n".join(sections.values())
    write_text(
        folder / f"{board.dataset}.md",
        f"# {escaped(board.card['title'])}\n\n[Back](../README.md)\n\n{text}",
    )
