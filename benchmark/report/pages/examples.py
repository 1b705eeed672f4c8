"""Examples from the test split: hits and misses, what scores rest on, localised
phrases.

They show images and captions. If a dataset may not be published, they go to a page in
local/, which stays on this machine. Relevant items share the group of the query: the
captions of an image, the images of a person. Imports no torch.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from benchmark.boards.boards import Board, Outcome
from benchmark.core.errors import UserError
from benchmark.core.files import atomic, write_text
from benchmark.data.raw_files import raw_dataset
from benchmark.papers.printed_tables import papers
from benchmark.report.figure_listing import FigureFolder, FigureInputs, remove_others
from benchmark.report.markdown import escaped, picture, pipe_table
from benchmark.report.pages import filled
from benchmark.season.parameters import Declaration

EACH = 3  # hits, and as many misses, of each direction
SHOWN = 5  # retrieved items of a query
SIDE = 128  # pixels of a thumbnail, at most
FRAME, GREEN = 4, "#009E73"
MARGIN = 18  # pixels left of thumbnails, for the number of their query


def example_sections(
    params: Declaration, board: Board, figures: FigureFolder
) -> dict[str, str]:
    """Markdown of the examples by task, for tasks with results.

    Of a dataset that may not be published, the Markdown links to the local page.
    Without the raw files, an older local page stays.
    """
    tasks = {row.task for row in board.ranked}
    if not tasks:
        return {}
    name = f"{board.dataset}.md"
    if board.card["may_publish"]:
        place = ExamplePlace(figures, f"gallery/{board.dataset}", f"datasets/{name}")
        return _by_task(params, board, place)
    folder = figures.folder.parent / "local"
    local = FigureFolder(folder / board.dataset)
    try:
        sections = _by_task(params, board, ExamplePlace(local, "", name))
        remove_others(local.folder, local.written)
        head = f"# {escaped(board.title)}\n\n[Back](../README.md)\n\n"
        write_text(folder / name, head + "\n".join(sections.values()))
    except (UserError, OSError) as error:
        print(f"rematch: no local gallery of {board.dataset}: {error}", file=sys.stderr)
    # no link: it would lead nowhere from the committed page
    where = (
        "The images of this dataset may not be published here. On a machine that has "
        f"them, `rematch report` shows them in `{(folder / name).as_posix()}`."
    )
    return dict.fromkeys(tasks, where)


@dataclass(frozen=True)
class ExamplePlace:
    """Where examples stand."""

    figures: FigureFolder
    thumbnails: str  # subfolder of that folder
    page: str

    def save_section(self, name: str, inputs: FigureInputs) -> str:
        """Markdown of the figures of a section, which are drawn."""
        dataset = inputs.board.dataset
        return self.figures.save_section(name, inputs, dataset, self.page)


def _by_task(params: Declaration, board: Board, place: ExamplePlace) -> dict[str, str]:
    data = board.data
    rows = data.split("test").image_rows
    files = data.images["file"].iloc[rows]
    if (files == "").any():
        sentence = "There are no images to look at: the dataset came as features."
        return dict.fromkeys({row.task for row in board.ranked}, sentence)
    open_image = raw_dataset(params, board.dataset).pictures()
    mains = {paper.main for paper in papers().values()}
    sections: dict[str, str] = {}
    if board.retrieval.ranked:
        of_task = board.retrieval
        inputs = FigureInputs(board=of_task, data=data, open_image=open_image)
        kept = [row for row in of_task.ranked if row.played[0].retrieved]
        galleries = []
        for row in kept:
            if row is kept[0] or row.preset in mains:
                galleries.append((row, gallery(inputs, row.played[0], place)))
        sections["retrieval"] = filled(
            "examples.md.j2",
            galleries=galleries,
            figures=place.save_section("examples", inputs),
        )
    if board.localisation.ranked:
        of_task = board.localisation
        inputs = FigureInputs(board=of_task, data=data, open_image=open_image)
        sections["localisation"] = filled(
            "phrases.md.j2",
            figures=place.save_section("phrases", inputs),
        )
    return sections


def gallery(inputs: FigureInputs, outcome: Outcome, place: ExamplePlace) -> str:
    """Markdown of a cell's hits and misses, numbered as in its contact sheets, which
    are saved."""
    split = inputs.split
    texts_C = inputs.data.captions["text"].iloc[split.caption_rows].to_numpy()
    retrieved = outcome.retrieved
    preset = outcome.record.preset
    image_queries = chosen(outcome.ranks("i2t")) if "i2t" in retrieved else []
    strips = []  # the query of each row of the first table
    by_image = []
    for number, (query, result) in enumerate(image_queries, 1):
        captions = retrieved["i2t"][query][:SHOWN]
        is_own = split.group_of_caption[captions] == split.group_of_image[query]
        listed = []
        for position, caption in enumerate(captions, 1):
            mark = "**" if is_own[position - 1] else ""
            listed.append(f"{position}. {mark}{escaped(texts_C[caption])}{mark}")
        strips.append(Strip(number, [query], [False]))
        by_image.append([str(number), result, "<br>".join(listed)])
    parts = []
    if by_image:
        parts.append("Image to captions. Captions of the image are **bold**.")
        parts.append(_sheet(inputs, place, Sheet(preset, "queries", strips)))
        heads = ["image", "result", "first five captions"]
        parts.append(pipe_table(heads, by_image, "rll"))
    strips = []  # what was found for each row of the second table
    by_caption = []
    for number, (query, result) in enumerate(chosen(outcome.ranks("t2i")), 1):
        images = retrieved["t2i"][query][:SHOWN]
        is_own = split.group_of_image[images] == split.group_of_caption[query]
        strips.append(Strip(number, images, is_own))
        by_caption.append([str(number), escaped(texts_C[query]), result])
    whose = "The caption's own image has" if by_image else "Images of its person have"
    parts.append(
        f"Caption to images: the first five of each, row by row. {whose} a green frame."
    )
    parts.append(pipe_table(["row", "caption", "result"], by_caption, "rll"))
    parts.append(_sheet(inputs, place, Sheet(preset, "found", strips)))
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Strip:
    """Images of the test split, side by side behind their number."""

    number: int
    images: Sequence[int]
    is_right: Sequence[bool]  # those in a green frame


@dataclass(frozen=True)
class Sheet:
    """A contact sheet: the images of a gallery's table, in one file."""

    preset: str
    shows: str  # queries, strip beside strip; or found, strip below strip
    strips: Sequence[Strip]


def _sheet(inputs: FigureInputs, place: ExamplePlace, sheet: Sheet) -> str:
    """Markdown of a sheet, with the first caption of each image as alternative text;
    saves the file."""
    drawn = [_drawn_strip(inputs, strip) for strip in sheet.strips]
    if sheet.shows == "queries":
        size = (sum(strip.width for strip in drawn), SIDE)
    else:
        size = (max(strip.width for strip in drawn), SIDE * len(drawn))
    whole = Image.new("RGB", size, "white")
    x = y = 0
    for strip in drawn:
        whole.paste(strip, (x, y))
        if sheet.shows == "queries":
            x += strip.width
        else:
            y += SIDE
    path = place.figures.folder / place.thumbnails / f"{sheet.preset}-{sheet.shows}.png"
    with atomic(path) as part:
        whole.save(part, format="PNG")
    name = f"{sheet.preset}-found"  # of the gallery
    link = place.figures.added(path, name, place.page)
    texts = " ".join(_alternative(inputs, strip) for strip in sheet.strips)
    return picture(f"images: {texts}", link)


def _drawn_strip(inputs: FigureInputs, strip: Strip) -> Image.Image:
    """The thumbnails of a strip behind its number, in the letters of a bitmap font,
    which are the same on every machine."""
    framed = []
    rows = inputs.split.image_rows[strip.images]
    files = inputs.data.images["file"].iloc[rows]
    for file, is_right in zip(files, strip.is_right, strict=True):
        small = inputs.open_image(file).convert("RGB")
        small.thumbnail((SIDE - 2 * FRAME, SIDE - 2 * FRAME))
        colour = GREEN if is_right else "white"
        framed.append(ImageOps.expand(small, FRAME, colour))
    width = MARGIN + sum(image.width for image in framed)
    drawn = Image.new("RGB", (width, SIDE), "white")
    font = ImageFont.load_default_imagefont()
    ImageDraw.Draw(drawn).text((FRAME, FRAME), str(strip.number), "black", font)
    x = MARGIN
    for image in framed:
        drawn.paste(image, (x, 0))
        x += image.width
    return drawn


def _alternative(inputs: FigureInputs, strip: Strip) -> str:
    """The number of a strip and the first caption of each of its images."""
    split = inputs.split
    captions = []
    for image in strip.images:
        first = np.flatnonzero(split.image_of_caption == image)[0]
        captions.append(inputs.data.captions["text"].iloc[split.caption_rows[first]])
    return f"({strip.number}) {'; '.join(captions)}"


def chosen(ranks: np.ndarray, each: int = EACH) -> list[tuple[int, str]]:
    """Up to `each` hits and `each` misses, hits first, each with what is said of it.

    A hit has rank 0. Both kinds are evenly spaced over the queries, and not picked by
    hand.
    """
    results = []
    for query in evenly(np.flatnonzero(ranks == 0), each):
        results.append((query, "hit"))
    for query in evenly(np.flatnonzero(ranks > 0), each):
        results.append((query, f"miss: {ranks[query] + 1}"))
    return results


def evenly(rows: Sequence[int], count: int) -> list[int]:
    """`count` of the rows, each from the middle of its share; all of them if there are
    fewer."""
    count = min(count, len(rows))
    kept = []
    for number in range(count):
        middle = (2 * number + 1) * len(rows) // (2 * count)
        kept.append(int(rows[middle]))
    return kept
