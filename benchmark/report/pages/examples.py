"""Examples from the test split: hits and misses, what scores rest on, localised
phrases.

They show images and captions. If a dataset may not be published, they go to a page in
local/, which stays on this machine. Relevant items share the group of the query: the
captions of an image, the images of a person. Knows no torch.
"""

import sys
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageOps

from benchmark.boards.boards import Board, Outcome
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, write_text
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.printed_tables import papers
from benchmark.report.figure_listing import FigureFolder, FigureInputs, remove_others
from benchmark.report.markdown import escaped, picture, pipe_table
from benchmark.report.pages import filled
from benchmark.season.parameters import Params

UP = "../"  # from datasets/ to the folder of the report
EACH = 3  # hits, and as many misses, of each direction
SHOWN = 5  # retrieved items of a query
SIDE = 128  # pixels of a thumbnail, at most
FRAME, GREEN = 4, "#009E73"


def example_sections(
    params: Params, board: Board, figures: FigureFolder
) -> dict[str, str]:
    """Markdown of the examples by task, for tasks with results.

    Of a dataset that may not be published, the Markdown links to the local page.
    Without the raw files, an older local page stays.
    """
    tasks = {row.task for row in board.ranked}
    if not tasks or board.card["may_publish"]:
        return (
            _by_task(params, board, figures, f"gallery/{board.dataset}", UP)
            if tasks
            else {}
        )
    page, folder = f"local/{board.dataset}.md", figures.folder.parent / "local"
    local = FigureFolder(folder / board.dataset)
    try:
        text = "\n".join(_by_task(params, board, local, "", "").values())
        remove_others(local.folder, local.written)
        text = f"# {escaped(board.title)}\n\n[Back](../README.md)\n\n{text}"
        write_text(folder / f"{board.dataset}.md", text)
    except (UserError, OSError) as error:
        print(f"rematch: no local gallery of {board.dataset}: {error}", file=sys.stderr)
    link = (
        f"The images of this dataset may not be published here. `rematch report` makes the page "
        f"[{page}]({UP}{page}) on a machine that has them."
    )
    return dict.fromkeys(tasks, link)


def _by_task(
    params: Params, board: Board, figures: FigureFolder, thumbnails: str, up: str
) -> dict[str, str]:
    """`thumbnails` is a subfolder of `figures`; `up` leads from the page to the
    report's folder."""
    data = prepared_tables.read(board.dataset)
    if (data.images["file"].iloc[data.split("test").image_rows] == "").any():
        sentence = "There are no images to look at: the dataset came as features."
        return dict.fromkeys({row.task for row in board.ranked}, sentence)
    open_image = raw_dataset(params, board.dataset).pictures()
    sections: dict[str, str] = {}
    mains = {paper.main for paper in papers().values()}
    for of_task, section in (
        (board.retrieval, "examples"),
        (board.localisation, "phrases"),
    ):
        if of_task.ranked:
            inputs = FigureInputs(board=of_task, data=data, open_image=open_image)
            kept = [row for row in of_task.ranked if row.played[0].retrieved]
            galleries = [
                (row, gallery(inputs, row.played[0], figures, thumbnails, up))
                for row in kept * (section == "examples")
                if row is kept[0] or row.preset in mains
            ]
            sections[of_task.ranked[0].task] = filled(
                f"{section}.md.j2",
                galleries=galleries,
                figures=figures.section(section, inputs, board.dataset, up),
            )
    return sections


def gallery(
    inputs: FigureInputs,
    outcome: Outcome,
    figures: FigureFolder,
    thumbnails: str,
    up: str,
) -> str:
    """Markdown of a cell's hits and misses; its thumbnails are saved below
    `figures`."""
    data, retrieved, preset = inputs.data, outcome.retrieved, outcome.record.preset
    split = data.split("test")
    texts = [escaped(text) for text in data.captions["text"].iloc[split.caption_rows]]

    def shown(name: str, images: Sequence[int], is_own: Sequence[bool]) -> str:
        """Images side by side in one file, those that are right in a green frame, with
        their first captions as alternative text."""
        path = figures.folder / thumbnails / f"{name}.png"
        files = data.images["file"].iloc[split.image_rows[images]]
        firsts = [
            np.flatnonzero(split.image_of_caption == image)[0] for image in images
        ]
        said = data.captions["text"].iloc[split.caption_rows[firsts]]
        if path not in figures.written:
            framed = []
            for file, is_right in zip(files, is_own, strict=True):
                small = inputs.open_image(file).convert("RGB")
                small.thumbnail((SIDE - 2 * FRAME, SIDE - 2 * FRAME))
                framed.append(
                    ImageOps.expand(small, FRAME, GREEN if is_right else "white")
                )
            drawn = Image.new("RGB", (sum(x.width for x in framed), SIDE), "white")
            for number, image in enumerate(framed):
                drawn.paste(image, (sum(x.width for x in framed[:number]), 0))
            with atomic(path) as part:
                drawn.save(part, format="PNG")
        return picture(f"image: {'; '.join(said)}", figures.added(path, up))

    rows = {"i2t": [], "t2i": []}
    for query, result in chosen(outcome.ranks("i2t")) if "i2t" in retrieved else ():
        found = retrieved["i2t"][query][:SHOWN]
        is_own = split.group_of_caption[found] == split.group_of_image[query]
        marks = ["**" if own else "" for own in is_own]
        listed = [
            f"{n + 1}. {marks[n]}{texts[c]}{marks[n]}" for n, c in enumerate(found)
        ]
        image = shown(f"{split.image_rows[query]:06d}", [query], [False])
        rows["i2t"].append([image, result, "<br>".join(listed)])
    for query, result in chosen(outcome.ranks("t2i")):
        found = retrieved["t2i"][query][:SHOWN]
        is_own = split.group_of_image[found] == split.group_of_caption[query]
        name = f"{split.caption_rows[query]:06d}-{preset}-found"
        rows["t2i"].append([f"{texts[query]}<br>{result}", shown(name, found, is_own)])
    heads = ["caption", "first five images"]
    whose = (
        "The caption's own image has" if rows["i2t"] else "Images of its person have"
    )
    parts = [
        f"Caption to images. {whose} a green frame.",
        pipe_table(heads, rows["t2i"], "ll"),
    ]
    if rows["i2t"]:
        table = pipe_table(
            ["image", "result", "first five captions"], rows["i2t"], "lll"
        )
        parts = [
            "Image to captions. Captions of the image are **bold**.",
            table,
            *parts,
        ]
    return "\n\n".join(parts)


def chosen(ranks: np.ndarray, each: int = EACH) -> list[tuple[int, str]]:
    """Up to `each` hits and `each` misses, hits first, each with what is said of it.

    A hit has rank 0. Both kinds are evenly spaced over the queries, and not picked by
    hand.
    """
    hits, misses = (evenly(np.flatnonzero(of), each) for of in (ranks == 0, ranks > 0))
    return [(n, "hit") for n in hits] + [(n, f"miss: {ranks[n] + 1}") for n in misses]


def evenly(rows: Sequence[int], count: int) -> list[int]:
    """`count` of the rows, each from the middle of its share; all of them if there are
    fewer."""
    count = min(count, len(rows))
    return [int(rows[(2 * i + 1) * len(rows) // (2 * count)]) for i in range(count)]
