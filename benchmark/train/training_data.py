"""What a training works on: its rows, its validation, and the sizes that follow from the data."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import Dictionary, Vocabulary
from benchmark.matching import retrieval_inputs, scoring
from benchmark.matching.checkpoints import Checkpoint
from benchmark.matching.localisation_inputs import PhraseInputs, phrase_inputs
from benchmark.matching.retrieval_inputs import SplitInputs, split_inputs
from benchmark.season.parameters import Cell
from benchmark.train import selection
from benchmark.train.pseudo_classes import cluster
from methods import Inputs, Sizes


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The training split, and how a model is validated."""

    train: SplitInputs | PhraseInputs
    validate: Callable[[nn.Module], dict[str, float]]  # recalls in percent and their sum, rsum
    sizes: Sizes
    vocabulary: Vocabulary | Dictionary | None = None  # None: the method takes vectors


def training_data(
    cell: Cell,
    takes: Inputs,
    start: Checkpoint | None,
    validation_images: int | None,
    device: torch.device,
) -> TrainingData:
    """The data of a cell, in the form its method takes.

    A training that goes on from the checkpoint `start` keeps its vocabulary; `validation_images`
    limits validation to the first ones. Raises NotApplicableError where the dataset lacks what the
    method takes.
    """
    data = prepared_tables.read(cell.dataset)
    if takes.task == "localisation":
        return _of_localisation(data, cell, validation_images, device)
    return _of_retrieval(data, cell, takes, start, validation_images, device)


def _of_retrieval(
    data: Prepared,
    cell: Cell,
    takes: Inputs,
    start: Checkpoint | None,
    validation_images: int | None,
    device: torch.device,
) -> TrainingData:
    """Images and captions."""
    if start:
        vocabulary = retrieval_inputs.vocabulary_from(takes, start.words)
    else:
        vocabulary = retrieval_inputs.vocabulary_for(data, cell, takes)
    train, validation = (
        split_inputs(data, cell, takes, name, vocabulary, device) for name in ("train", "val")
    )
    classes = _classes(data, cell, takes)
    validation = validation.first_images(validation_images)
    ways = data.card["ways"]

    def validate(model: nn.Module) -> dict[str, float]:
        scores = scoring.score(model, validation)
        return selection.retrieval_recalls(scores, validation.relevant, ways)

    return TrainingData(
        train=train.with_classes(classes),
        validate=validate,
        sizes=Sizes(
            image=_image_size(data, cell, takes, train),
            text=len(vocabulary) if vocabulary else train.captions.values.shape[1],
            classes=int(classes.max()) + 1,
        ),
        vocabulary=vocabulary,
    )


def _of_localisation(
    data: Prepared, cell: Cell, validation_images: int | None, device: torch.device
) -> TrainingData:
    """Phrases and the proposals of their images."""
    train, validation = (phrase_inputs(data, cell, name, device) for name in ("train", "val"))
    validation = validation.first_images(validation_images)

    def validate(model: nn.Module) -> dict[str, float]:
        scores = scoring.score_proposals(model, validation)
        return selection.localisation_recalls(scores, validation.ious)

    sizes = Sizes(image=train.proposals.shape[-1], text=train.vectors.shape[-1])
    return TrainingData(train=train, validate=validate, sizes=sizes)


def _image_size(data: Prepared, cell: Cell, takes: Inputs, train: SplitInputs) -> int:
    """Size of an image feature; with pixels, of what the image network makes of them."""
    if takes.image == "pixels":
        return retrieval_inputs.pooled_features(data, cell, "train").shape[1]
    return train.images.shape[-1]


def _classes(data: Prepared, cell: Cell, takes: Inputs) -> np.ndarray:
    """(I,) int64, the class of each training image: its group, or its cluster."""
    groups = data.split("train").group_of_image
    if not takes.clusters:
        return groups
    count = round(takes.clusters * (int(groups.max()) + 1))
    return cluster(retrieval_inputs.pooled_features(data, cell, "train"), count, cell.seed)
