"""Vectors of captions: sentence.npy."""

from benchmark.data.prepared_tables import Prepared
from benchmark.encode.text_encoding import Texts, encode_texts
from benchmark.season.parameters import FeatureSet, Params


def encode(params: Params, feature_set: FeatureSet, data: Prepared) -> None:
    """Write sentence.npy (C, F) in the order of the caption table."""
    texts, ids = data.captions["text"].tolist(), data.captions["caption_id"].tolist()
    is_train = (data.captions["split"] == "train").to_numpy()
    encode_texts(feature_set, data, Texts("sentence", texts, ids, is_train))
