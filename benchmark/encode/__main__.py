"""Stage encode: one feature set of the active season, written to its feature folder.

rematch encode FEATURE_SET
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

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
from benchmark.encode import images
from benchmark.features.standardisation import Standardiser
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import TRANSFORMER, FeatureSet, Params


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "feature_set", help="a file of seasons/shared/feature_sets/, without .yaml"
    )


def main(arguments: argparse.Namespace) -> None:
    params = read_shared()
    encode(params, entry(params.feature_sets, arguments.feature_set, "feature set"))


def encode(params: Params, feature_set: FeatureSet) -> None:
    """Write the folder of one feature set."""
    data = prepared_tables.read(feature_set.dataset)
    if feature_set.kind in ("pictures", "proposals"):
        # the images that were prepared
        check_manifest(raw_dataset(params, feature_set.dataset))
        getattr(images, feature_set.kind)(params, feature_set, data)
    else:
        TEXTS[feature_set.kind](feature_set, data)


# Vectors of words, of captions and of phrases -----------------------------------------


def words(feature_set: FeatureSet, data: Prepared) -> None:
    """Write words.json and words.npy: vectors of the words of all captions; only
    training captions are fitted to."""
    tokens = [tokenise(text) for text in data.captions["text"]]
    is_train = data.captions["split"] == "train"
    corpus = [row for row, train in zip(tokens, is_train, strict=True) if train]
    keep = {word for row in tokens for word in row}
    found, facts = features.load(feature_set.encoder).words(
        corpus, feature_set.words, keep
    )
    with replaced(Path(feature_set.folder)) as folder:
        found.save(folder)
        write_card(folder, card_of(feature_set, list(found.words), data) | facts)


def contexts(feature_set: FeatureSet, data: Prepared) -> None:
    """Write contextual.npy (N, F), the vectors of the tokens of all captions in the
    order of their table, and ends.npy (C,) int64: how many rows there are up to the
    last one of each caption."""
    texts, ids = data.captions["text"].tolist(), data.captions["caption_id"].tolist()
    encoder = features.load(feature_set.encoder)
    ends, size, blocks, facts = encoder.contexts(texts, feature_set.sentence)
    with replaced(Path(feature_set.folder)) as folder:
        array = array_at(folder / "contextual.npy", (int(ends[-1]), size), np.float16)
        for rows, vectors_nLF in blocks:
            length = vectors_nLF.shape[1]
            array[ends[rows, None] + np.arange(-length, 0)] = as_float16(
                vectors_nLF.numpy()
            )
        array.flush()
        np.save(folder / "ends.npy", ends)
        write_card(folder, card_of(feature_set, ids, data) | facts)


def vectors(of: FeatureSet, data: Prepared) -> None:
    """Write sentence.npy (C, F), in the order of the caption table, or phrase.npy (V,
    F): the distinct phrases by first appearance in the region table.

    Encoder and standardisation are fitted to the captions or phrases of training
    images, each phrase once; without any, each vector is a single zero, and training
    reports what it lacks.
    """
    if of.kind == "sentences":
        name, texts = "sentence", data.captions["text"].tolist()
        ids, is_train = (
            data.captions["caption_id"].tolist(),
            data.captions["split"] == "train",
        )
        is_train = is_train.to_numpy()
    else:
        number, distinct = pd.factorize(data.regions["phrase"])
        name, texts, ids = "phrase", distinct.tolist(), distinct.tolist()
        is_train = np.zeros(len(distinct), bool)
        is_train[number[data.split("train").region_rows]] = True
    source, facts, words = Path(of.source), {}, None
    if of.encoder != TRANSFORMER:
        made_of = read_json(source / "card.json")["vectors"]
        facts = {"words_sha256": verified(source), "vectors": made_of}
        words = Words.read(source)
    values = np.zeros((len(texts), 1))
    if is_train.any():
        encoder, settings = features.load(of.encoder), of.sentence
        values, more = encoder.encode(texts, is_train, words, settings)
        facts |= more
        if settings.standardise:
            values = Standardiser.of(values, is_train)(values)
    with replaced(Path(of.folder)) as folder:
        np.save(folder / f"{name}.npy", as_float16(values))
        write_card(folder, card_of(of, ids, data) | facts)


TEXTS = {"words": words, "contexts": contexts, "sentences": vectors, "phrases": vectors}


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
