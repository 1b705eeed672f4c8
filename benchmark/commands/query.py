"""Ask a trained preset which test images fit a text, or which test captions fit an
image.

    rematch query scan_t2i_avg "a black dog runs on the beach"
    rematch query scan_t2i_avg --image x.jpg
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmark import features
from benchmark.contracts.methods import Captions
from benchmark.core.devices import make_deterministic, pick
from benchmark.core.errors import UserError, entry, listed, printable
from benchmark.core.names import whole_of
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import Words, as_float16
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.encode.images import describer, stacked
from benchmark.evaluate.trained_cells import (
    ModelOnSplit,
    TrainedCell,
    model_on_split,
    trained_cell,
)
from benchmark.features.standardisation import CONSTANT, Standardiser
from benchmark.readers.image_files import Folder
from benchmark.scoring import model_scores
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import TRANSFORMER, Cell, FeatureSet, Params
from benchmark.season.plugins import presets

SPLIT = "test"
# training images that are encoded again, for the statistics of a standardisation
SAMPLE = 32


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("preset", help="a preset that the season has trained")
    add("text", nargs="?", help="what the images should show")
    add("--image", type=Path, metavar="FILE", help="an image to find captions for")
    add("--dataset", help="default: the first that the preset is trained on")
    add("--seed", type=int, help="default: the first")
    add("--top", type=int, default=5, help="number of results; default: 5")
    add("--season", metavar="NAME", help="default: the active one")


def main(arguments: argparse.Namespace) -> None:
    check_query(arguments)
    make_deterministic()
    params = read_params(arguments.season)
    cell = chosen(params, arguments)
    if not Path(cell.checkpoint).is_file():
        raise UserError(
            f"{cell.key} of {params.season}",
            expected="its trained model, which git does not keep",
            found="none here",
            do=f"train it: rematch play {params.season} --only '{cell.key}'",
        )
    data = prepared_tables.read(cell.dataset)
    trained = trained_cell(cell, data.sha256)
    if trained.takes.task != "retrieval" or trained.checkpoint.status != "ok":
        raise UserError(
            cell.key,
            expected="a trained preset of retrieval",
            found=f"{trained.takes.task}, {trained.checkpoint.status}",
            do="choose another",
        )
    split = data.split(SPLIT)
    on_split = model_on_split(trained, data, split, pick(params.device))
    images = data.images[["image_id", "file"]]
    texts = data.captions[["image_id", "text"]]
    if arguments.image:
        image = Folder(arguments.image.parent)(arguments.image.name)
        scores = score_image(params, trained, on_split, data, image)
        items = texts.iloc[split.caption_rows].merge(images, "left", "image_id")
    else:
        scores = score_text(params, trained, on_split, data, arguments.text)
        firsts = texts.drop_duplicates("image_id")
        items = images.iloc[split.image_rows].merge(firsts, "left", "image_id")
    items = items.assign(score=scores.numpy())
    items = items.sort_values("score", ascending=False, kind="stable")
    title = f"{cell.preset} on {SPLIT} of {cell.dataset}, seed {cell.seed}"
    print(f"{title}: rank, score, image, caption")
    for rank, hit in enumerate(items[: arguments.top].itertuples(), 1):
        image = printable(hit.file or hit.image_id)
        text = printable(hit.text)
        print(f"{rank:4}. {hit.score:8.4f}  {image}  {text}")


def check_query(arguments: argparse.Namespace) -> None:
    """Raise UserError unless one thing is asked, and some answers are wanted."""
    if (arguments.text is None) == (arguments.image is None):
        raise UserError(
            "query",
            expected="a text or --image",
            found="neither" if arguments.text is None else "both",
            do='run: rematch query PRESET "TEXT"',
        )
    if arguments.top < 1:
        raise UserError(
            "--top",
            expected="1 or more",
            found=arguments.top,
            do="correct it",
        )
    if arguments.image and not arguments.image.is_file():
        raise UserError(
            arguments.image,
            expected="an image",
            found="no such file",
            do="correct --image",
        )


def chosen(params: Params, arguments: argparse.Namespace) -> Cell:
    """The first trained cell of the preset, with the dataset and the seed that are
    named."""
    of_preset: dict[str, list[Cell]] = {}
    for cell in params.cells.values():
        of_preset.setdefault(cell.preset, []).append(cell)
    name = arguments.preset
    if name in presets() and name not in of_preset:
        raise UserError(
            f"preset {name!r}",
            expected=f"one that {params.season} trains: {listed(list(of_preset))}",
            found="another one",
            do="choose one, or a season that has it (--season NAME); or add it to "
            f"seasons/{params.season}/season.yaml, then run: rematch season "
            f"{params.season}; rematch play --only '*-{name}-*'",
        )
    cells = entry(of_preset, name, "trained preset")
    of_dataset: dict[str, list[Cell]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, []).append(cell)
    dataset = arguments.dataset or cells[0].dataset
    cells = entry(of_dataset, dataset, "dataset")
    of_seed = {str(cell.seed): cell for cell in cells}
    seed = cells[0].seed if arguments.seed is None else arguments.seed
    return entry(of_seed, str(seed), "seed")


@torch.inference_mode()
def score_text(
    params: Params,
    trained: TrainedCell,
    on_split: ModelOnSplit,
    data: Prepared,
    text: str,
) -> Tensor:
    """Scores (I,) of the split's images for a text. Raises UserError for one without a
    known word."""
    words = tokenise(text)
    if on_split.vocabulary is None:
        feature_set = _feature_set(params, trained.cell.texts)
        values = sentence_vector(feature_set, data, text)
        lengths = torch.tensor([values.shape[1] if values.dim() == 3 else 1])
        known = words
        if feature_set.encoder != TRANSFORMER:  # which knows parts of any word
            known = Words.read(Path(feature_set.source))
    else:
        known = on_split.vocabulary.words
        numbers, counts = on_split.vocabulary.encode([text])
        values = torch.from_numpy(numbers)
        lengths = torch.from_numpy(counts)
    unknown = [word for word in words if word not in known]
    if len(unknown) == len(words):
        raise UserError(
            "query",
            expected="a text with a known word",
            found=repr(text),
            do="use words of captions",
        )
    if unknown:
        print(f"not in the vocabulary: {printable(', '.join(unknown))}")
    model = on_split.model
    device = on_split.inputs.device
    captions = Captions(values=values.to(device), lengths=lengths.to(device))
    encoded = model.encode_captions(captions)
    images = model_scores.encode_images(model, on_split.inputs)
    scores = model_scores.score_pairs(model.similarity, images, encoded)
    return scores[:, 0].cpu()


@torch.inference_mode()
def score_image(
    params: Params,
    trained: TrainedCell,
    on_split: ModelOnSplit,
    data: Prepared,
    image: Image.Image,
) -> Tensor:
    """Scores (C,) of the split's captions for an image."""
    feature_set = _feature_set(params, trained.cell.images)
    values = image_features(params, feature_set, data, image, trained.takes.image)
    values = values.to(on_split.inputs.device)
    if values.is_floating_point():
        values = values.float()
    model = on_split.model
    encoded = model.encode_images(values)
    captions = model_scores.encode_captions(model, on_split.inputs)
    scores = model_scores.score_pairs(model.similarity, encoded, captions)
    return scores[0].cpu()


def _feature_set(params: Params, folder: str) -> FeatureSet:
    known = params.feature_sets.values()
    return next(each for each in known if each.folder == folder)


def sentence_vector(feature_set: FeatureSet, data: Prepared, text: str) -> Tensor:
    """(1, F) float32, or (1, W, F) of tokens, as the feature folder would have it for a
    caption of another split: the encoder is fitted again to the training captions."""
    captions = data.captions[data.captions["split"] == "train"]["text"]
    encoder = features.load(feature_set.encoder)
    settings = feature_set.sentence
    if feature_set.kind == "contexts":
        ((_, vectors),) = encoder.contexts([text], settings)[2]
        return torch.from_numpy(as_float16(vectors.numpy())).float()
    words = None
    is_fitted = feature_set.encoder != TRANSFORMER
    if is_fitted:
        words = Words.read(Path(feature_set.source))
    elif not settings.standardise:
        captions = []
    texts = [*captions, text]
    is_train = np.arange(len(texts)) < len(captions)
    vectors, _ = encoder.encode(texts, is_train, words, settings)
    if settings.standardise:
        vectors = Standardiser.of(vectors, is_train)(vectors)
    return torch.from_numpy(vectors[-1:].astype(np.float16)).float()


def image_features(
    params: Params,
    feature_set: FeatureSet,
    data: Prepared,
    image: Image.Image,
    kind: str,
) -> Tensor:
    """(1, ...) pooled, regions or pixels of an image, as the feature folder would have
    them.

    The folder keeps no statistics of its standardisation: they follow from a few
    training images that are encoded again. Raises UserError for imported features: what
    made them is not here.
    """
    settings = feature_set.image
    if settings.features:
        raise UserError(
            "--image",
            expected="features that were encoded here",
            found=f"{settings.features}, imported",
            do="ask with a text",
        )
    if kind == "pixels":
        return stacked([image], settings.pixels)
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    encoder = features.load(feature_set.encoder)
    network, _ = encoder.load(settings.network, weights_dir)
    describe = describer(network, settings, pick(params.device))
    described = describe([image])[kind].astype(np.float32)
    if settings.standardise:
        open_image = raw_dataset(params, whole_of(feature_set.dataset)).pictures()
        is_train = data.images["split"] == "train"
        files = data.images["file"][is_train].tolist()[:SAMPLE]
        raw = describe([open_image(file) for file in files])[kind]
        features_file = Path(feature_set.folder) / f"{kind}.npy"
        stored = np.load(features_file, mmap_mode="r")[: len(files)]
        described = standardised(described, raw, stored)
    return torch.from_numpy(described.astype(np.float16))


def standardised(values: np.ndarray, raw: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """As stored = (raw - mean) / deviation in every channel, the last axis: mean and
    deviation follow from those of both. A channel that does not vary here has what is
    stored for it."""
    channels = raw.shape[-1]
    raw = raw.reshape(-1, channels).astype(np.float64)
    stored = stored.reshape(-1, channels).astype(np.float64)
    raw_spread = raw.std(0)
    stored_spread = stored.std(0)
    is_constant = (stored_spread < CONSTANT) | (raw_spread < CONSTANT)
    ratio = raw_spread / np.maximum(stored_spread, CONSTANT)
    deviation = np.where(is_constant, 1.0, ratio)
    stored_mean = stored.mean(0)
    scaled = (values - raw.mean(0)) / deviation + stored_mean
    return np.where(is_constant, stored_mean, scaled)
