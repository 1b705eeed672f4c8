"""Stage encode: one feature set of the active season, written to its feature folder.

rematch encode FEATURE_SET

Features of a fold that are fitted to nothing are computed once for the whole dataset,
and brought into the order of the fold's tables; no network runs. What is standardised
is standardised once more, by the training rows of the fold. Both steps are linear in
each channel, so this is what the raw features standardised by these rows would be, but
for the rounding to float16: nothing is left of other rows.
"""

import argparse
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark import features
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError, entry
from benchmark.core.files import read_json, read_object, replaced
from benchmark.core.names import fold_of, preparing
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import (
    ENCODE_AGAIN,
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
from benchmark.features.standardisation import (
    Standardiser,
    measured,
    write_standardised,
)
from benchmark.season.parameter_files import read_shared
from benchmark.season.parameters import TRANSFORMER, FeatureSet, Params

Mask = np.ndarray | None  # of rows that are measured; None: nothing is standardised


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
        take(feature_set, data)
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


IMAGES = {
    "pictures": images.write_image_features,
    "proposals": images.write_proposal_features,
}
TEXTS = {"words": words, "contexts": contexts, "sentences": vectors, "phrases": vectors}


# Texts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Texts:
    """C texts to be encoded, and the name of their array."""

    name: str
    texts: list[str]
    ids: list[str]
    is_train: np.ndarray  # (C,) bool: may be fitted to


def captions_of(data: Prepared) -> Texts:
    """All captions, in the order of their table."""
    captions = data.captions
    is_train = (captions["split"] == "train").to_numpy()
    ids = captions["caption_id"].tolist()
    return Texts("sentence", captions["text"].tolist(), ids, is_train)


def phrases_of(data: Prepared) -> Texts:
    """The distinct phrases, by first appearance in the region table; to be fitted to
    are those of training images."""
    number, distinct = pd.factorize(data.regions["phrase"])
    is_train = np.zeros(len(distinct), bool)
    is_train[number[data.split("train").region_rows]] = True
    return Texts("phrase", distinct.tolist(), distinct.tolist(), is_train)


# Features of a fold -------------------------------------------------------------------


def take(feature_set: FeatureSet, data: Prepared) -> None:
    """Write the folder of a fold's features from that of its dataset. Raises UserError
    where that has features of other tables, or changed files."""
    whole = prepared_tables.read(fold_of(feature_set.dataset).dataset)
    _check_is_fold_of(whole, data, feature_set.dataset)
    source = Path(feature_set.source)
    card = _card_of_whole(source, whole)
    before, _ = _ids_and_training(feature_set.kind, whole)
    ids, is_train = _ids_and_training(feature_set.kind, data)
    order = pd.Index(before).get_indexer(ids)
    settings = feature_set.image or feature_set.proposals or feature_set.sentence
    counted = None
    if settings.standardise and is_train.any():
        counted = np.zeros(len(before), bool)
        counted[order[is_train]] = True
    write = WRITERS[feature_set.kind]
    with replaced(Path(feature_set.folder)) as folder:
        write(source, folder, order, counted, data)
        write_card(folder, card | card_of(feature_set, ids, data))


def _check_is_fold_of(whole: Prepared, data: Prepared, name: str) -> None:
    """Raise UserError for a fold of other tables, whose images may lack features."""
    if data.card["fold"]["prepared_sha256"] != whole.sha256:
        raise UserError(
            data.folder,
            expected=f"a fold of the present {whole.folder}",
            found="a fold of other tables",
            do=preparing(name),
        )


def _card_of_whole(source: Path, whole: Prepared) -> dict:
    """That of the features of the whole dataset."""
    verified(source)
    card = read_object(source / "card.json")
    if card.get("prepared_sha256") != whole.sha256:
        raise UserError(
            source / "card.json",
            expected=f"features of the present {whole.folder}",
            found="features of other tables",
            do=ENCODE_AGAIN,
        )
    return card


def _ids_and_training(kind: str, data: Prepared) -> tuple[list[str], np.ndarray]:
    """The ids of what a folder has features of, in their order, and which of them are
    for training."""
    if kind in ("pictures", "proposals"):
        images = data.used_images
        return images["image_id"].tolist(), (images["split"] == "train").to_numpy()
    texts = phrases_of(data) if kind == "phrases" else captions_of(data)
    return texts.ids, texts.is_train


def _pictures(
    source: Path, folder: Path, order: np.ndarray, counted: Mask, data: Prepared
) -> None:
    for path in sorted(source.glob("*.npy")):
        has_channels = path.stem in ("pooled", "regions")
        standardiser = measured(path, counted) if has_channels else None
        write_standardised(path, folder / path.name, standardiser, order=order)
    if (source / "network.pt").is_file():
        _network(source, folder, counted)


def _network(source: Path, folder: Path, counted: Mask) -> None:
    """The network whose pooled output is what pooled.npy of the fold holds."""
    state = torch.load(source / "network.pt", weights_only=True)
    standardiser = measured(source / "pooled.npy", counted)
    scale = {}
    if standardiser:
        mean = state["pooled_mean"]
        deviation = state["pooled_deviation"]
        scale["pooled_mean"] = mean + deviation * torch.from_numpy(standardiser.mean)
        further = torch.from_numpy(standardiser.deviation)
        scale["pooled_deviation"] = deviation * further
    torch.save(state | scale, folder / "network.pt")


def _proposals(
    source: Path, folder: Path, order: np.ndarray, counted: Mask, data: Prepared
) -> None:
    """Regions are in the same order in all folds."""
    boxes = source / "boxes.npy"
    proposals = source / "proposals.npy"
    truths = source / "truths.npy"
    present = np.load(boxes, mmap_mode="r").any(-1)
    of_training = None if counted is None else present & counted[:, None]
    standardiser = measured(proposals, of_training)
    is_used = data.regions["image_id"].isin(data.used_images["image_id"])
    used = is_used.to_numpy()
    write_standardised(boxes, folder / boxes.name, None, order=order)
    to = folder / proposals.name
    write_standardised(proposals, to, standardiser, present, order)
    write_standardised(truths, folder / truths.name, standardiser, used)


def _vectors(
    source: Path, folder: Path, order: np.ndarray, counted: Mask, data: Prepared
) -> None:
    (path,) = source.glob("*.npy")
    standardiser = measured(path, counted)
    write_standardised(path, folder / path.name, standardiser, order=order)


def _contexts(
    source: Path, folder: Path, order: np.ndarray, counted: Mask, data: Prepared
) -> None:
    """Rows of a caption stay together; they are never standardised."""
    ends = np.load(source / "ends.npy", allow_pickle=False)
    lengths = np.diff(ends, prepend=0)[order]
    new_ends = lengths.cumsum()
    shifts = np.repeat(ends[order] - new_ends, lengths)
    rows = np.arange(len(shifts)) + shifts
    path = source / "contextual.npy"
    write_standardised(path, folder / path.name, None, order=rows)
    np.save(folder / "ends.npy", new_ends)


WRITERS = {
    "pictures": _pictures,
    "proposals": _proposals,
    "sentences": _vectors,
    "phrases": _vectors,
    "contexts": _contexts,
}


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
