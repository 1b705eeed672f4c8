"""Fixed feature extractors, one module per family, loaded by file name.

A module that encodes pictures has

    load(network, weights_dir) -> (network, facts)      the network in evaluation mode
    whereabouts(network, weights_dir) -> str            where its weights are or come from

drawn_cnn and torchvision_cnn load networks from pixels (B, 3, S, S) in [0, 1] to a pooled vector
(B, F) and a feature map (B, F', h, w). To train from pixels, they have as well

    structure(network, size) -> network                 without weights; `size` is F

faster_rcnn loads detectors, and gives boxes and the features of boxes:

    proposals_of(detector, pictures, count) -> boxes
    features_of(detector, pictures, boxes) -> features
    proposals_and_features_of(detector, pictures, more_boxes, count) -> (boxes, features)
    regions_of(detector, pictures, count) -> (features, boxes)

A module that encodes texts has

    encode(texts, is_train, words, settings) -> (vectors (C, F) float32, facts)

where `is_train` (C,) marks the texts that may be fitted to, `words` are `Words`, and `settings` a
`SentenceEncoder`. A text without known words is zero, from which hglmm subtracts its mean.

word2vec makes these words, with `settings` a `WordVectors`:

    words(corpus, settings, keep) -> (Words, facts)     from tokenised training captions

Facts go into the card of the feature folder.
"""

from importlib import import_module
from types import ModuleType


def load(module: str) -> ModuleType:
    """The module of one encoder family, for example `load("word2vec")`."""
    return import_module(f"benchmark.encoders.{module}")
