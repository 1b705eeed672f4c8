"""Fixed feature extractors. One module per family, loaded by file name.

An image encoder module offers `load(network, weights_dir) -> ImageNetwork`; a sentence encoder
module offers `encode(captions, settings) -> (vectors, card)`.
"""

from importlib import import_module
from types import ModuleType

DRAWN = "drawn_cnn"  # the one network that is not torchvision's


def module_of(network: str) -> str:
    """The module that provides an image network."""
    return DRAWN if network == DRAWN else "torchvision_cnn"


def load(module: str) -> ModuleType:
    """The module of one encoder family, for example `load("word2vec")`."""
    return import_module(f"benchmark.encoders.{module}")
