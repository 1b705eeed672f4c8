"""Fixed feature extractors, one module per family, loaded by file name. A new encoder of
texts is one new file; `module_of` in season/parameters.py knows those of images.

A module that encodes images has

    load(network, weights_dir) -> (network, facts)      the network in evaluation mode
    whereabouts(network, weights_dir) -> Weights        where its weights are or come from

drawn_cnn, torchvision_cnn and timm_cnn load networks from pixels (B, 3, S, S) in [0, 1]
to a pooled vector (B, F) and a feature map (B, F', h, w). To train from pixels, they
have as well

    structure(network, size) -> network                 without weights; `size` is F

faster_rcnn loads detectors, which look at images and give boxes and the features of
boxes.

A module that encodes texts has

    encode(texts, is_train, words, settings) -> (vectors (C, F) float32, facts)

where `is_train` (C,) marks the texts that may be fitted to, `words` are `Words`, and
`settings` a `SentenceEncoder`. A text without known words is zero, from which hglmm
subtracts its mean. transformer needs no words, and has as well

    contexts(texts, settings) -> (ends (C,), F, blocks of vectors of tokens, facts)

word2vec makes these words, with `settings` a `WordVectors`:

    words(corpus, settings, keep) -> (Words, facts)     from tokenised training captions

Facts go into the card of the feature folder. The other modules are what encoders share:
files of weights, imported features and boxes, selective search, standardisation,
resumable arrays.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType


def load(encoder: str) -> ModuleType:
    """The module of one encoder family, for example `load("word2vec")`."""
    return import_module(f"benchmark.features.{encoder}")


def text_encoders() -> list[str]:
    """The modules that encode texts: those with a function `encode`."""
    encoders = []
    for folder in __path__:
        for file in Path(folder).glob("[!_]*.py"):
            if "\ndef encode(" in file.read_text(encoding="utf-8"):
                encoders.append(file.stem)
    return sorted(encoders)
