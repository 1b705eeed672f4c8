"""Where the data of a cell departs from what its paper feeds the method: facts, and
their words.

Records hold the facts. A page or an export puts them into words with `sentence`, and
nothing reads these words.
"""

from enum import StrEnum
from typing import Literal

from benchmark.core.errors import Strict

# of vectors; contextual: of tokens
TextKind = Literal["sentence", "contextual", "phrase"]


class Aspect(StrEnum):
    """What departs."""

    IMAGE_NETWORK = "image_network"
    # with the training split's mean and deviation
    IMAGES_STANDARDISED = "images_standardised"
    GRID_REGIONS = "grid_regions"  # instead of a detector's boxes
    PROPOSALS = "proposals"  # other than EdgeBoxes
    WORD_VECTORS = "word_vectors"  # that a method reads
    # what a text encoder computes with: word vectors, or weights
    TEXT_VECTORS = "text_vectors"
    # of an encoder that the paper has trained
    RANDOM_TEXT_WEIGHTS = "random_text_weights"
    TEXTS_STANDARDISED = "texts_standardised"


class Departure(Strict):
    """One fact: what the cell was fed, and what the paper has where that is known."""

    aspect: Aspect
    here: str = ""
    in_paper: str = ""
    texts: TextKind | None = None  # of aspects of texts
    reads_words: bool = False  # of TEXT_VECTORS: `here` names word vectors


def sentence(departure: Departure) -> str:
    """A departure in words."""
    aspect = departure.aspect
    setting = departure.here
    texts = f"{departure.texts} vectors"
    match aspect:
        case Aspect.IMAGE_NETWORK if departure.in_paper:
            return f"image features: {setting}, in the paper {departure.in_paper}"
        case Aspect.IMAGE_NETWORK:
            return f"image features: {setting}"
        case Aspect.IMAGES_STANDARDISED:
            return "image features standardised with training statistics"
        case Aspect.GRID_REGIONS:
            grid = f"{setting} x {setting}"
            return f"regions: a {grid} grid instead of a detector's boxes"
        case Aspect.PROPOSALS:
            return f"proposals: {setting.replace('_', ' ')} instead of EdgeBoxes"
        case Aspect.WORD_VECTORS:
            return f"word vectors: {setting}"
        case Aspect.TEXT_VECTORS if departure.reads_words:
            return f"{texts}: word vectors {setting}"
        case Aspect.TEXT_VECTORS:
            return f"{texts}: {setting}"
        case Aspect.RANDOM_TEXT_WEIGHTS:
            return f"{texts}: random LSTM weights instead of published ones"
        case Aspect.TEXTS_STANDARDISED:
            return f"{texts} standardised with training statistics"
