"""Features of a fold that are fitted to nothing: computed once for the whole dataset,
and brought into the order of the fold's tables. No network runs.

What is standardised is standardised once more, by the training rows of the fold. Both
steps are linear in each channel, so this is what the raw features standardised by these
rows would be, but for the rounding to float16: nothing is left of other rows.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmark.core.errors import UserError
from benchmark.core.files import read_object, replaced
from benchmark.core.folds import fold_of
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import ENCODE_AGAIN, card_of, verified, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.encode.texts import captions_of, phrases_of
from benchmark.features.standardisation import measured, write_standardised
from benchmark.season.parameters import FeatureSet

Mask = np.ndarray | None  # of rows that are measured; None: nothing is standardised


def take(feature_set: FeatureSet, data: Prepared) -> None:
    """Write the folder of a fold's features from that of its dataset. Raises UserError
    where that has features of other tables, or changed files."""
    whole = prepared_tables.read(fold_of(feature_set.dataset).dataset)
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
