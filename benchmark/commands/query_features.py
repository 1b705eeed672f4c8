"""A text or a picture of anyone's as a trained method is fed it.

Encoders of sentences are fitted again to the training captions, as when the features were made.
A feature folder keeps no statistics of its standardisation: they follow from a few training
pictures that are encoded again.
"""

from collections.abc import Container
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmark import encoders
from benchmark.core.devices import pick
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
from benchmark.data.word_vectors import Words
from benchmark.encode.picture_networks import stacked
from benchmark.encode.pictures import describer
from benchmark.encode.standardisation import CONSTANT, Standardiser
from benchmark.season.parameters import FeatureSet, Params
from methods import Captions

SAMPLE = 32  # training pictures that are encoded again


def sentence_vector(feature_set: FeatureSet, data: Prepared, text: str) -> Tensor:
    """(1, F) float32, as the feature folder would have it for a caption of another split."""
    captions = data.captions[data.captions["split"] == "train"]["text"]
    texts = [*captions, text]
    is_train = np.arange(len(texts)) < len(captions)
    encoder, settings = encoders.load(feature_set.encoder), feature_set.sentence
    vectors, _ = encoder.encode(texts, is_train, Words.read(Path(feature_set.source)), settings)
    if settings.standardise:
        vectors = Standardiser.of(vectors, is_train)(vectors)
    return torch.from_numpy(vectors[-1:].astype(np.float16)).float()


def known_words(feature_set: FeatureSet, data: Prepared) -> Container[str]:
    """The words that a text encoder makes something of."""
    if feature_set.encoder == "tfidf":
        captions = data.captions[data.captions["split"] == "train"]["text"]
        return {word for text in captions for word in tokenise(text)}
    return Words.read(Path(feature_set.source))


def word_ids(vocabulary: Vocabulary | Dictionary, text: str) -> Captions:
    """The text as word ids (1, W)."""
    values, lengths = (torch.from_numpy(array) for array in vocabulary.encode([text]))
    return Captions(values=values, lengths=lengths)


def picture_features(
    params: Params, feature_set: FeatureSet, data: Prepared, picture: Image.Image, kind: str
) -> Tensor:
    """(1, ...) pooled, regions or pixels of a picture, as the feature folder would have them.

    Raises UserError for features that were imported: what made them is not here.
    """
    settings = feature_set.image
    if settings.features:
        expected = "features that were encoded here"
        raise UserError("--image", expected, f"{settings.features}, imported", "ask with a text")
    if kind == "pixels":
        return stacked([picture], settings.pixels)
    weights_dir = Path(params.weights_dir) if params.weights_dir else None
    network, _ = encoders.load(feature_set.encoder).load(settings.network, weights_dir)
    describe = describer(network, settings, pick(params.device))
    features = describe([picture])[kind].astype(np.float32)
    if settings.standardise:
        open_picture = raw_dataset(params, feature_set.dataset).pictures()
        files = data.images["file"][data.images["split"] == "train"].tolist()[:SAMPLE]
        raw = describe([open_picture(file) for file in files])[kind]
        stored = np.load(Path(feature_set.folder) / f"{kind}.npy", mmap_mode="r")[: len(files)]
        features = _standardised(features, _rows(raw), _rows(stored))
    return torch.from_numpy(features.astype(np.float16))


def _rows(features: np.ndarray) -> np.ndarray:
    return features.reshape(-1, features.shape[-1]).astype(np.float64)


def _standardised(features: np.ndarray, raw: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """stored = (raw - mean) / deviation in every channel, so that mean and deviation follow from
    the means and deviations of both. A channel that does not vary here has what is stored for it:
    nothing tells its deviation."""
    spread = stored.std(0)
    is_constant = (spread < CONSTANT) | (raw.std(0) < CONSTANT)
    deviation = raw.std(0) / np.where(is_constant, 1.0, spread)
    mean = raw.mean(0) - deviation * stored.mean(0)
    scaled = (features - mean) / np.where(is_constant, 1.0, deviation)
    return np.where(is_constant, stored.mean(0), scaled)
