"""Vectors of the distinct phrases of the region table: phrase.npy."""

import numpy as np
import pandas as pd

from benchmark.data.prepared_tables import Prepared
from benchmark.encode.text_encoding import Texts, encode_texts
from benchmark.season.parameters import FeatureSet, Params


def encode(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Write phrase.npy (V, F): the distinct phrases by first appearance in the region table.

    The phrases of training images are fitted to, each of them once.
    """
    number, phrases = pd.factorize(data.regions["phrase"])
    is_train = np.zeros(len(phrases), bool)
    is_train[number[data.split("train").region_rows]] = True
    texts = phrases.tolist()
    encode_texts(feature_set, data, Texts("phrase", texts, texts, is_train))
