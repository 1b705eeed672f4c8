"""Stage encode: one feature set of the active season, written to its feature folder.

rematch encode FEATURE_SET
"""

import argparse
from itertools import chain
from pathlib import Path

import numpy as np

from benchmark import features
from benchmark.core.command_line import run_stage
from benchmark.core.errors import entry
from benchmark.core.files import read_json, replaced
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import (
    Words,
    array_at,
    as_float16,
    card_of,
    verified,
    write_card,
)
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import check_manifest, raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.encode import folds, images
from benchmark.encode.texts import captions_of, phrases_of
from benchmark.features.standardisation import Standardiser
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import TRANSFORMER, FeatureSet, Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "feature_set", help="DATASET-ENCODER: a folder of data/features"
    )


def main(arguments: argparse.Namespace) -> None:
    params = read_shared()
    encode(params, entry(params.feature_sets, arguments.feature_set, "feature set"))


def encode(params: Params, feature_set: FeatureSet) -> None:
    """Write the folder of one feature set."""
    data = prepared_tables.read(feature_set.dataset)
    if feature_set.is_taken:
        folds.take(feature_set, data)
    elif feature_set.kind in IMAGES:
        # the images that were prepared
        check_manifest(raw_dataset(params, feature_set.dataset))
        IMAGES[feature_set.kind](params, feature_set, data)
    else:
        TEXTS[feature_set.kind](feature_set, data)


# Vectors of words, of captions and of phrases -----------------------------------------


def words(feature_set: FeatureSet, data: Prepared) -> None:
    """Write words.json and words.npy: vectors of the words of all captions; only
    training captions are fitted to."""
    tokens = data.captions["text"].map(tokenise)
    corpus = tokens[data.captions["split"] == "train"].tolist()
    used = set(chain.from_iterable(tokens))
    encoder = features.load(feature_set.encoder)
    table, facts = encoder.words(corpus, feature_set.words, used)
    card = card_of(feature_set, table.words, data)
    with replaced(Path(feature_set.folder)) as folder:
        table.save(folder)
        write_card(folder, card | facts)


def contexts(feature_set: FeatureSet, data: Prepared) -> None:
    """Write contextual.npy (N, F), the vectors of the tokens of all captions in the
    order of their table, and ends.npy (C,) int64: how many rows there are up to the
    last one of each caption."""
    texts = data.captions["text"].tolist()
    card = card_of(feature_set, data.captions["caption_id"].tolist(), data)
    encoder = features.load(feature_set.encoder)
    ends, size, blocks, facts = encoder.contexts(texts, feature_set.sentence)
    shape = (int(ends[-1]), size)
    with replaced(Path(feature_set.folder)) as folder:
        array = array_at(folder / "contextual.npy", shape, np.float16)
        for rows, vectors_nLF in blocks:
            length = vectors_nLF.shape[1]
            places = ends[rows, None] + np.arange(-length, 0)
            array[places] = as_float16(vectors_nLF.numpy())
        array.flush()
        np.save(folder / "ends.npy", ends)
        write_card(folder, card | facts)


def vectors(feature_set: FeatureSet, data: Prepared) -> None:
    """Write sentence.npy (C, F), in the order of the caption table, or phrase.npy (V,
    F): the distinct phrases by first appearance in the region table.

    Encoder and standardisation are fitted to the captions or phrases of training
    images, each phrase once; without any, each vector is a single zero, and training
    reports what it lacks.
    """
    given = captions_of(data) if feature_set.kind == "sentences" else phrases_of(data)
    card = card_of(feature_set, given.ids, data)
    words = None
    if feature_set.encoder != TRANSFORMER:
        source = Path(feature_set.source)
        card["words_sha256"] = verified(source)
        card["vectors"] = read_json(source / "card.json")["vectors"]
        words = Words.read(source)
    values = np.zeros((len(given.texts), 1))
    if given.is_train.any():
        encoder = features.load(feature_set.encoder)
        settings = feature_set.sentence
        values, facts = encoder.encode(given.texts, given.is_train, words, settings)
        card |= facts
        if settings.standardise:
            values = Standardiser.of(values, given.is_train)(values)
    with replaced(Path(feature_set.folder)) as folder:
        np.save(folder / f"{given.name}.npy", as_float16(values))
        write_card(folder, card)


IMAGES = {"pictures": images.pictures, "proposals": images.proposals}
TEXTS = {"words": words, "contexts": contexts, "sentences": vectors, "phrases": vectors}


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
