"""Ask a trained preset: which test pictures fit a text, or which captions fit a picture.

    python -m benchmark query scan_t2i_avg "a black dog runs on the beach"
    python -m benchmark query scan_t2i_avg --image x.jpg

Pictures that are found are put on one sheet in reports/<season>/local/, which git ignores.
"""

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageOps
from torch import Tensor

from benchmark.commands.query_features import picture_features, sentence_vector, words_of
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
LONGEST = 2000  # characters of a text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", help="of the season, trained")
    parser.add_argument("text", nargs="?", help="what the pictures should show")
    parser.add_argument("--image", type=Path, metavar="FILE", help="a picture to find captions for")
    parser.add_argument("--dataset", help="default: the first that the preset is trained on")
    parser.add_argument("--seed", type=int, help="default: the first")
    parser.add_argument("--top", type=int, default=5, help="how many results")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    if (arguments.text is None) == (arguments.image is None):
        raise UserError("query", "a text or --image", "both or neither", "name one of them")
    if arguments.top < 1:
        raise UserError("--top", "1 or more", arguments.top, "correct it")
    make_deterministic()
    params = read_params(arguments.season)
    trained = trained_cell(chosen(params, arguments))
    if trained.takes.task != "retrieval" or trained.checkpoint.status != "ok":
        found = f"{trained.takes.task}, {trained.checkpoint.status}"
        raise UserError(trained.cell.key, "a trained preset of retrieval", found, "choose another")
    data = prepared_tables.read(trained.cell.dataset)
    on_split = model_on_split(trained, data, SPLIT, pick(params.device))
    print(f"{trained.cell.preset} on {SPLIT} of {trained.cell.dataset}, seed {trained.cell.seed}")
    if arguments.image:
        _tell_captions(params, trained, on_split, data, arguments)
    else:
        _tell_pictures(params, trained, on_split, data, arguments)


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


def _tell_pictures(
    params: Params,
    trained: TrainedCell,
    on_split: ModelOnSplit,
    data: Prepared,
    arguments: argparse.Namespace,
) -> None:
    scores = score_text(params, trained, on_split, data, arguments.text)
    rows = data.split(SPLIT).image_rows
    best = _tell_best(scores, data.images["image_id"].iloc[rows].tolist(), arguments.top)
    files = [data.images["file"].iloc[rows[number]] for number in best]
    if all(files):
        open_picture = raw_dataset(params, trained.cell.dataset).pictures()
        path = Path("reports") / params.season / "local" / f"query_{trained.cell.preset}.png"
        _write_sheet(path, [open_picture(file) for file in files], arguments.text)
        print(path)


def _tell_captions(
    params: Params,
    trained: TrainedCell,
    on_split: ModelOnSplit,
    data: Prepared,
    arguments: argparse.Namespace,
) -> None:
    scores = score_picture(params, trained, on_split, data, opened(arguments.image))
    _tell_best(scores, on_split.texts, arguments.top)


def _tell_best(scores: Tensor, names: Sequence[str], count: int) -> list[int]:
    """Print the items of highest score; their numbers."""
    best = torch.argsort(scores, descending=True, stable=True)[:count].tolist()
    for place, number in enumerate(best, 1):
        print(f"{place:4}. {float(scores[number]):8.4f}  {printable(names[number])}")
    return best


@torch.inference_mode()
def score_text(
    params: Params, trained: TrainedCell, on_split: ModelOnSplit, data: Prepared, text: str
) -> Tensor:
    """Scores (I,) of the split's images for a text."""
    captions = captions_of(params, trained, on_split, data, text)
    model = on_split.model
    images = scoring.encode_images(model, on_split.inputs)
    encoded = model.encode_captions(captions)
    return scoring.score_pairs(model.similarity, images, encoded, quiet=True)[:, 0].cpu()


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
    return scoring.score_pairs(model.similarity, encoded, captions, quiet=True)[0].cpu()


def captions_of(
    params: Params, trained: TrainedCell, on_split: ModelOnSplit, data: Prepared, text: str
) -> Captions:
    """The text as the method is fed it. Raises UserError for a text without a known word."""
    if not text.strip() or len(text) > LONGEST:
        raise UserError("query", f"a text of up to {LONGEST} characters", len(text), "write one")
    device = on_split.inputs.device
    if on_split.vocabulary is None:
        vector = sentence_vector(_feature_set(params, trained.cell.texts), data, text)
        if not vector.any():
            raise UserError("query", "a text with known words", repr(text), "use other words")
        return Captions(
            values=vector.to(device), lengths=torch.ones(1, dtype=torch.int64, device=device)
        )
    captions, unknown = words_of(on_split.vocabulary, text)
    if set(tokenise(text)) <= set(unknown):
        raise UserError("query", "a text with known words", repr(text), "use other words")
    if unknown:
        print(f"not known from the training captions: {printable(', '.join(unknown))}")
    return Captions(values=captions.values.to(device), lengths=captions.lengths.to(device))


def opened(path: Path) -> Image.Image:
    """The picture in a file, as pictures of a dataset are opened."""
    try:
        return Folder(path.parent)(path.name)
    except DataError as error:
        raise UserError(path, error.expected, error.found, "choose a picture") from error


def _feature_set(params: Params, folder: str) -> FeatureSet:
    return next(each for each in params.feature_sets.values() if each.folder == folder)


def _write_sheet(path: Path, pictures: list[Image.Image], text: str) -> None:
    """The pictures side by side, the best first, under the text."""
    columns = min(COLUMNS, len(pictures))
    rows = int(np.ceil(len(pictures) / columns))
    sheet = Image.new("RGB", (columns * SIDE, HEAD + rows * SIDE), "white")
    lines = textwrap.wrap(printable(text), columns * SIDE // 7)[:2]
    ImageDraw.Draw(sheet).text((6, 6), "\n".join(lines), fill="black")
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        framed = ImageOps.pad(picture.convert("RGB"), (SIDE - 4, SIDE - 4), color="white")
        sheet.paste(framed, (column * SIDE + 2, HEAD + row * SIDE + 2))
    with atomic(path) as part:
        sheet.save(part, format="PNG")
