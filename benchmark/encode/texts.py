"""The texts of a dataset that become vectors: captions, or phrases."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.data.prepared_tables import Prepared


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
