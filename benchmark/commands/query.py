"""Ask a trained preset: which test pictures fit a text, or which captions fit a picture.

    python -m benchmark query scan_t2i_avg "a black dog runs on the beach"
    python -m benchmark query scan_t2i_avg --image x.jpg

Pictures that are found, or whose captions are, are put on one sheet in reports/<season>/local/,
which git ignores.
"""

import argparse
import textwrap
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw, ImageOps
from torch import Tensor

from benchmark.commands.query_features import (
    known_words,
    picture_features,
    sentence_vector,
    word_ids,
)
from benchmark.core.devices import make_deterministic, pick
from benchmark.core.errors import UserError
from benchmark.core.files import atomic
from benchmark.core.suggestions import suggested
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.evaluate.trained_cells import ModelOnSplit, TrainedCell, model_on_split, trained_cell
from benchmark.matching import scoring
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Cell, FeatureSet, Params
from datasets import DataError, printable
from datasets.shared.picture_stores import Folder
from methods import Captions

SPLIT = "test"
SIDE, COLUMNS, HEAD = 224, 5, 40  # pixels of a picture, pictures in a row, pixels above them
FOOT, LETTERS = 34, 34  # pixels below a picture, letters in a line there
LONGEST = 2000  # characters of a text
COLUMNS_TOLD = "rank, score, picture, caption"


@dataclass(frozen=True)
class Hit:
    """A result: its rank from 1, its score, its picture and a caption of that."""

    rank: int
    score: float
    name: str  # of the picture: its file, or its id where it has none
    file: str
    caption: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", help="of the season, trained")
    parser.add_argument("text", nargs="?", help="what the pictures should show")
    parser.add_argument("--image", type=Path, metavar="FILE", help="a picture to find captions for")
    parser.add_argument("--dataset", help="default: the first that the preset is trained on")
    parser.add_argument("--seed", type=int, help="default: the first")
    parser.add_argument("--top", type=int, default=5, help="how many results")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    _check_asked(arguments)
    picture = opened(arguments.image) if arguments.image else None
    make_deterministic()
    params = read_params(arguments.season)
    trained = trained_cell(chosen(params, arguments))
    if trained.takes.task != "retrieval" or trained.checkpoint.status != "ok":
        found = f"{trained.takes.task}, {trained.checkpoint.status}"
        raise UserError(trained.cell.key, "a trained preset of retrieval", found, "choose another")
    data = prepared_tables.read(trained.cell.dataset)
    on_split = model_on_split(trained, data, SPLIT, pick(params.device))
    if picture:
        scores = score_picture(params, trained, on_split, data, picture)
        hits = best_captions(scores, data, arguments.top)
        tiles, title = [(picture, "the query")], f"captions for {arguments.image}"
    else:
        scores = score_text(params, trained, on_split, data, arguments.text)
        hits = best_pictures(scores, data, arguments.top)
        tiles, title = [], arguments.text
    cell = trained.cell
    print(f"{cell.preset} on {SPLIT} of {cell.dataset}, seed {cell.seed}: {COLUMNS_TOLD}")
    print("\n".join(_lines(hits)))
    if all(hit.file for hit in hits):
        open_picture = raw_dataset(params, cell.dataset).pictures()
        tiles += [(open_picture(hit.file), _label(hit)) for hit in hits]
        path = Path("reports") / params.season / "local" / f"query_{cell.preset}.png"
        _write_sheet(path, tiles, title)
        print(path)


def _check_asked(arguments: argparse.Namespace) -> None:
    if arguments.text is not None and arguments.image is not None:
        raise UserError("query", "a text or --image", "both", "name one of them")
    if arguments.text is None and arguments.image is None:
        do = 'python -m benchmark query PRESET "TEXT"; list presets names those there are'
        found = f"{arguments.preset!r} alone"
        raise UserError("query", "a preset, and a text or --image", found, do)
    if arguments.top < 1:
        raise UserError("--top", "1 or more", arguments.top, "correct it")


def chosen(params: Params, arguments: argparse.Namespace) -> Cell:
    """The first trained cell of the preset, of the dataset and seed that are named."""
    names = {cell.preset for cell in params.cells.values()}
    if arguments.preset not in names:
        expected = f"one of {', '.join(sorted(names))}, which are trained"
        raise UserError("query", expected, suggested(arguments.preset, names), "choose one")
    fitting = [
        cell
        for cell in params.cells.values()
        if cell.preset == arguments.preset
        and arguments.dataset in (None, cell.dataset)
        and arguments.seed in (None, cell.seed)
    ]
    if not fitting:
        keys = [c.key for c in params.cells.values() if c.preset == arguments.preset]
        found = f"{arguments.dataset or 'any dataset'}, seed {arguments.seed}"
        raise UserError("query", f"one of {', '.join(keys)}", found, "correct it")
    return fitting[0]


def _lines(hits: list[Hit]) -> list[str]:
    width = max(len(hit.name) for hit in hits)
    return [
        f"{hit.rank:4}. {hit.score:8.4f}  {printable(hit.name):{width}}  {printable(hit.caption)}"
        for hit in hits
    ]


def best_pictures(scores: Tensor, data: Prepared, count: int) -> list[Hit]:
    """The test pictures of highest score (I,), each with the first of its captions."""
    images = data.images.iloc[data.split(SPLIT).image_rows]
    first = data.captions.drop_duplicates("image_id").set_index("image_id")["text"]
    texts = images["image_id"].map(first).fillna("")
    return [
        _hit(rank, scores, number, images.iloc[number], texts.iloc[number])
        for rank, number in enumerate(_order(scores, count), 1)
    ]


def best_captions(scores: Tensor, data: Prepared, count: int) -> list[Hit]:
    """The test captions of highest score (C,), each with the picture that it describes."""
    captions = data.captions.iloc[data.split(SPLIT).caption_rows]
    images = data.images.set_index("image_id", drop=False)
    return [
        _hit(rank, scores, number, images.loc[row["image_id"]], row["text"])
        for rank, number in enumerate(_order(scores, count), 1)
        for row in [captions.iloc[number]]
    ]


def _order(scores: Tensor, count: int) -> list[int]:
    return torch.argsort(scores, descending=True, stable=True)[:count].tolist()


def _hit(rank: int, scores: Tensor, number: int, image: pd.Series, caption: str) -> Hit:
    name = image["file"] or image["image_id"]
    return Hit(rank, float(scores[number]), name, image["file"], caption)


@torch.inference_mode()
def score_text(
    params: Params, trained: TrainedCell, on_split: ModelOnSplit, data: Prepared, text: str
) -> Tensor:
    """Scores (I,) of the split's images for a text."""
    captions = captions_of(params, trained, on_split, data, text)
    model = on_split.model
    images = scoring.encode_images(model, on_split.inputs)
    encoded = model.encode_captions(captions)
    return scoring.score_pairs(model.similarity, images, encoded)[:, 0].cpu()


@torch.inference_mode()
def score_picture(
    params: Params,
    trained: TrainedCell,
    on_split: ModelOnSplit,
    data: Prepared,
    picture: Image.Image,
) -> Tensor:
    """Scores (C,) of the split's captions for a picture."""
    features = _feature_set(params, trained.cell.images)
    images = picture_features(params, features, data, picture, trained.takes.image)
    images = images.to(on_split.inputs.device)
    images = images.float() if images.is_floating_point() else images
    model = on_split.model
    captions = scoring.encode_captions(model, on_split.inputs)
    encoded = model.encode_images(images)
    return scoring.score_pairs(model.similarity, encoded, captions)[0].cpu()


def captions_of(
    params: Params, trained: TrainedCell, on_split: ModelOnSplit, data: Prepared, text: str
) -> Captions:
    """The text as the method is fed it. Raises UserError for a text without a known word."""
    if not text.strip() or len(text) > LONGEST:
        raise UserError("query", f"a text of up to {LONGEST} characters", len(text), "write one")
    device, features = on_split.inputs.device, None
    if on_split.vocabulary is None:
        features = _feature_set(params, trained.cell.texts)
    _check_words(text, known_words(features, data) if features else on_split.vocabulary.words)
    if features:
        vector = sentence_vector(features, data, text)
        return Captions(
            values=vector.to(device), lengths=torch.ones(1, dtype=torch.int64, device=device)
        )
    captions = word_ids(on_split.vocabulary, text)
    return Captions(values=captions.values.to(device), lengths=captions.lengths.to(device))


def _check_words(text: str, known: Container[str]) -> None:
    """Tell which words of a text are not known, and refuse one that has no other."""
    words = list(dict.fromkeys(tokenise(text)))
    unknown = [word for word in words if word not in known]
    if len(unknown) == len(words):
        expected, do = "a text with a known word", "use words of the training captions"
        found = f"{text!r}: no word of the query is in the vocabulary"
        raise UserError("query", expected, found, do)
    if unknown:
        count = f"{len(unknown)} of {len(words)} words"
        print(f"{count} are unknown: {printable(', '.join(unknown))}")


def opened(path: Path) -> Image.Image:
    """The picture in a file, as pictures of a dataset are opened."""
    if not path.exists():
        raise UserError(path, "a picture", "nothing", "check the path")
    try:
        return Folder(path.parent)(path.name)
    except DataError as error:
        raise UserError(path, error.expected, error.found, "choose a picture") from error


def _feature_set(params: Params, folder: str) -> FeatureSet:
    return next(each for each in params.feature_sets.values() if each.folder == folder)


def _label(hit: Hit) -> str:
    return f"{hit.rank}.  {hit.score:.4f}\n{hit.name}"


def _write_sheet(path: Path, tiles: list[tuple[Image.Image, str]], title: str) -> None:
    """Pictures side by side under a title, each above its label."""
    columns = min(COLUMNS, len(tiles))
    rows = int(np.ceil(len(tiles) / columns))
    sheet = Image.new("RGB", (columns * SIDE, HEAD + rows * (SIDE + FOOT)), "white")
    pen = ImageDraw.Draw(sheet)
    lines = textwrap.wrap(printable(title), columns * SIDE // 7)[:2]
    pen.text((6, 6), "\n".join(lines), fill="black")
    for number, (picture, label) in enumerate(tiles):
        row, column = divmod(number, columns)
        left, top = column * SIDE + 2, HEAD + row * (SIDE + FOOT) + 2
        framed = ImageOps.pad(picture.convert("RGB"), (SIDE - 4, SIDE - 4), color="white")
        sheet.paste(framed, (left, top))
        short = "\n".join(printable(line)[-LETTERS:] for line in label.split("\n"))
        pen.text((left + 4, top + SIDE), short, fill="black")
    with atomic(path) as part:
        sheet.save(part, format="PNG")
