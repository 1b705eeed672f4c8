"""Stage: pictures, captions, phrases or boxes of one dataset -> float16 features with a card."""

import argparse
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torchvision.models.detection import FasterRCNN
from tqdm import tqdm

from benchmark import encoders
from benchmark.core.command_line import run_stage
from benchmark.core.devices import pick
from benchmark.core.files import read_json, replaced, write_json
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import as_float16
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.data.word_vectors import Words
from benchmark.encode.feature_import import import_features
from benchmark.encode.proposals import encode_proposals
from benchmark.encode.scratch_arrays import card_of, fused, resume, scratch_array, stacked
from benchmark.encode.standardisation import Moments
from benchmark.encoders import faster_rcnn
from benchmark.season.parameters import FeatureSet, ImageEncoder, Params
from benchmark.season.parameter_files import entry, read_shared

CHUNK = 64  # images encoded at once; a kill loses at most these

Describe = Callable[[list[Image.Image]], dict[str, np.ndarray]]  # arrays by the name of their file


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("encoding", help="a key of `feature_sets` in params.yaml")


def main(arguments: argparse.Namespace) -> None:
    params = read_shared()
    encode(params, entry(params.feature_sets, arguments.encoding, "encoding"))


def encode(params: Params, encoding: FeatureSet) -> None:
    """Write the feature folder of one encoding."""
    data = prepared_tables.read(encoding.dataset)
    if encoding.kind == "words":
        encode_words(encoding, data)
    elif encoding.kind == "sentences":
        encode_sentences(encoding, data)
    elif encoding.kind == "phrases":
        encode_phrases(encoding, data)
    elif encoding.kind == "proposals":
        encode_proposals(params, encoding, data)
    elif encoding.image.features:
        dataset = raw_dataset(params, encoding.dataset)
        import_features(encoding, data, dataset, card_of(encoding, _used(data)["image_id"]))
    else:
        encode_images(params, encoding, data)


def encode_words(encoding: FeatureSet, data: Prepared) -> None:
    """Write words.json and words.npy: the vectors of the words of the captions."""
    tokens = [tokenise(text) for text in data.captions["text"]]
    is_train = (data.captions["split"] == "train").to_numpy()
    corpus = [row for row, train in zip(tokens, is_train, strict=True) if train]
    keep = {word for row in tokens for word in row}
    found, facts = encoders.load(encoding.encoder).words(corpus, encoding.words, keep)
    with replaced(Path(encoding.folder)) as folder:
        found.save(folder)
        write_json(folder / "card.json", card_of(encoding, list(found.words)) | facts)


def encode_sentences(encoding: FeatureSet, data: Prepared) -> None:
    """Write sentence.npy (C, F) in the order of the caption table."""
    is_train = (data.captions["split"] == "train").to_numpy()
    ids = data.captions["caption_id"].tolist()
    _encode_texts(encoding, "sentence", data.captions["text"].tolist(), is_train, ids)


def encode_phrases(encoding: FeatureSet, data: Prepared) -> None:
    """Write phrase.npy (V, F): the distinct phrases, as they come in the region table. What is
    fitted sees each phrase of the training images once."""
    number, phrases = pd.factorize(data.regions["phrase"])
    is_train = np.zeros(len(phrases), bool)
    is_train[number[data.split("train").region_rows]] = True
    _encode_texts(encoding, "phrase", phrases.tolist(), is_train, phrases.tolist())


def _encode_texts(
    encoding: FeatureSet, name: str, texts: list[str], is_train: np.ndarray, ids: list[str]
) -> None:
    source = Path(encoding.source)
    if not is_train.any():  # nothing to fit to; training says what it lacks
        _write_texts(encoding, name, np.zeros((len(texts), 1)), ids, {})
        return
    encoder = encoders.load(encoding.encoder)
    vectors, facts = encoder.encode(texts, is_train, Words.read(source), encoding.sentence)
    if encoding.sentence.standardise:
        moments = _moments(vectors, is_train)
        vectors = (vectors - moments.mean) / moments.deviation
    _write_texts(encoding, name, vectors, ids, facts)


def _write_texts(
    encoding: FeatureSet, name: str, vectors: np.ndarray, ids: list[str], facts: dict
) -> None:
    origin = read_json(Path(encoding.source) / "card.json")["vectors"]
    with replaced(Path(encoding.folder)) as folder:
        np.save(folder / f"{name}.npy", as_float16(vectors))
        write_json(folder / "card.json", card_of(encoding, ids) | {"vectors": origin} | facts)


def encode_images(params: Params, encoding: FeatureSet, data: Prepared) -> None:
    """Write pooled.npy (I, F) and regions.npy (I, R, F) in the order of the image table; places.npy
    (I, R) of regions on a grid; and, for training from pixels, pixels.npy (I, 3, S, S) and
    network.pt."""
    settings = encoding.image
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    network, weights = encoders.load(encoding.encoder).load(settings.network, weights_dir)
    used = _used(data)
    is_train = (used["split"] == "train").to_numpy()
    card = card_of(encoding, used["image_id"]) | {"weights": weights}
    scratch = Path(".scratch") / encoding.folder
    state = network.state_dict()
    pictures = raw_dataset(params, encoding.dataset).pictures()
    describe = _describer(network, settings, pick(params.device))
    _run(describe, pictures, used["file"].tolist(), settings, scratch, card)
    if settings.pixels:
        _keep_network(state, scratch, settings, is_train)
    _finish(scratch, Path(encoding.folder), card, is_train)


def _used(data: Prepared) -> pd.DataFrame:
    """The images that have features."""
    return data.images[data.images["split"] != "unused"]


def _describer(network: nn.Module, settings: ImageEncoder, device: torch.device) -> Describe:
    """Pictures to their features: those of a detector's boxes, or of a grid."""
    if isinstance(network, FasterRCNN):
        network.transform.min_size = (settings.input_size,)
        return partial(_detected, network.to(device), settings)
    network = fused(network).to(device, memory_format=torch.channels_last)
    return lambda pictures: _features(network, stacked(pictures, settings.input_size), settings)


def _detected(
    detector: FasterRCNN, settings: ImageEncoder, pictures: list[Image.Image]
) -> dict[str, np.ndarray]:
    """As many boxes as the grid has cells, the surest first."""
    regions, _ = faster_rcnn.regions_of(detector, pictures, settings.grid**2)
    found = {"pooled": regions.mean(1), "regions": regions}
    return {name: values.astype(np.float16) for name, values in found.items()}


def _run(
    describe: Describe,
    open_picture: Callable[[str], Image.Image],
    files: list[str],
    settings: ImageEncoder,
    scratch: Path,
    card: dict,
) -> None:
    """Encode `files` into scratch/, going on where a killed run of the same card stopped."""
    done = resume(scratch, card)
    bar = tqdm(total=len(files), initial=done, unit="image", desc="encode", disable=None)
    for start in range(done, len(files), CHUNK):
        chunk = files[start : start + CHUNK]
        pictures = [open_picture(file) for file in chunk]
        values_of = describe(pictures)
        if settings.pixels:
            values_of["pixels"] = stacked(pictures, settings.pixels).numpy()
        for name, values in values_of.items():
            shape = (len(files), *values.shape[1:])
            array = scratch_array(scratch / f"{name}.npy", shape, values.dtype)
            array[start : start + len(chunk)] = values
        write_json(scratch / "progress.json", {"done": start + len(chunk), "card": card})
        bar.update(len(chunk))
    bar.close()


def _features(network: nn.Module, pixels: Tensor, settings: ImageEncoder) -> dict[str, np.ndarray]:
    device = next(network.parameters()).device
    pixels = (pixels.to(device).float() / 255).to(memory_format=torch.channels_last)
    with torch.inference_mode():
        pooled, regions = _described(network, pixels, settings.grid, mirrored=False)
        if settings.flip:
            other = _described(network, pixels.flip(3), settings.grid, mirrored=True)
            pooled, regions = (pooled + other[0]) / 2, (regions + other[1]) / 2
        regions, places = _salient_first(regions)
    return {
        "pooled": pooled.cpu().numpy().astype(np.float16),
        "regions": regions.cpu().numpy().astype(np.float16),
        "places": places.cpu().numpy().astype(np.int16),
    }


def _salient_first(regions_BRF: Tensor) -> tuple[Tensor, Tensor]:
    """Cells by falling norm, and the place on the grid each had (B, R), row by row.

    A detector's boxes come by falling confidence; how strongly a cell fires stands in for it, so
    that the first k regions mean something.
    """
    places_BR = regions_BRF.norm(dim=-1).argsort(dim=1, descending=True, stable=True)
    index_BRF = places_BR[:, :, None].expand_as(regions_BRF)
    return regions_BRF.gather(1, index_BRF), places_BR


def _described(
    network: nn.Module, pixels: Tensor, grid: int, mirrored: bool
) -> tuple[Tensor, Tensor]:
    """Pooled (B, F) and grid cells (B, grid * grid, F), row by row from the top left."""
    pooled, map_BFhw = network(pixels)
    cells = F.adaptive_avg_pool2d(map_BFhw, grid)
    if mirrored:  # turn the cells back, so that a cell and its twin show the same place
        cells = cells.flip(3)
    return pooled.float(), cells.flatten(2).transpose(1, 2).float()


def _keep_network(state: dict, scratch: Path, settings: ImageEncoder, is_train: np.ndarray) -> None:
    """Write network.pt: the network whose pooled output is what pooled.npy will hold."""
    raw = np.load(scratch / "pooled.npy", mmap_mode="r", allow_pickle=False)
    mean, deviation = np.zeros(raw.shape[1], np.float32), np.ones(raw.shape[1], np.float32)
    if settings.standardise:
        moments = _moments(raw, is_train)
        mean, deviation = moments.mean, moments.deviation
    found = {"pooled_mean": torch.from_numpy(mean), "pooled_deviation": torch.from_numpy(deviation)}
    torch.save(state | found, scratch / "network.pt")


def _finish(scratch: Path, folder: Path, card: dict, is_train: np.ndarray) -> None:
    """Turn a complete scratch folder into the feature folder, in one move."""
    with replaced(folder) as part:
        for name in ("pooled", "regions"):
            raw = scratch / f"{name}.npy"
            if card["settings"]["standardise"]:
                _standardise(raw, part / f"{name}.npy", is_train)
            else:
                shutil.copyfile(raw, part / f"{name}.npy")
        (scratch / "progress.json").unlink()  # a kill from here on leaves less than a whole run
        for path in (scratch / name for name in ("places.npy", "pixels.npy", "network.pt")):
            if path.is_file():
                shutil.move(path, part / path.name)
        write_json(part / "card.json", card)
    shutil.rmtree(scratch)


def _standardise(source: Path, target: Path, is_train: np.ndarray) -> None:
    """Zero mean and unit deviation per channel, both measured on the training split."""
    raw = np.load(source, mmap_mode="r", allow_pickle=False)
    moments = _moments(raw, is_train)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=np.float16, shape=raw.shape)
    for rows in _blocks(len(raw)):
        out[rows] = as_float16((raw[rows].astype(np.float32) - moments.mean) / moments.deviation)
    out.flush()


def _moments(raw: np.ndarray, is_counted: np.ndarray) -> Moments:
    """Of the rows that count, a block at a time."""
    moments, rows = Moments(), np.flatnonzero(is_counted)
    for block in _blocks(len(rows)):
        moments.add(raw[rows[block]])
    return moments


def _blocks(rows: int, size: int = 256) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, rows, size))


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
