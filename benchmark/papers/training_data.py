"""What published text encoders were trained on, and which captions lie in which corpus:
facts, each with its source.

Corpora that are datasets have the name of their module in datasets/. The flag that
follows is in benchmark/boards/flags.py; a season file names further encoders.
"""

from collections.abc import Iterable
from dataclasses import dataclass

CARDS = "https://huggingface.co/sentence-transformers"
SEASON = "the season file"


@dataclass(frozen=True, kw_only=True)
class Inclusion:
    """All captions of a dataset, or those of its images, are in a larger corpus: test
    is among them."""

    dataset: str
    corpus: str
    source: str


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """A trained text encoder, known by the folder or the file of its weights."""

    weights: str
    trained_on: tuple[str, ...]  # corpora of captions; others do not matter here
    source: str


INCLUSIONS = (
    # All 2,000 names were looked up in Flickr30k's list of images.
    Inclusion(
        dataset="flickr8k",
        corpus="flickr30k",
        source="dual-path's split_Flickr30k.m: Flickr8k's val and test are in Flickr30k",
    ),
    Inclusion(
        dataset="flickr30k_entities",
        corpus="flickr30k",
        source="Plummer et al. (2015), ICCV: phrases of Flickr30k's captions",
    ),
    Inclusion(
        dataset="flickr30k",
        corpus="snli",
        source="Bowman et al. (2015), EMNLP: premises are Flickr30k's captions",
    ),
)
# The cards list MSCOCO, too, with 828,395 pairs: ten for each of the 82,783 images of
# train2014, none of whose captions are in a test split. Of Flickr30k there are 317,695,
# ten for each of its 31,783 images.
ENCODERS = (
    TextEncoder(
        weights="all-MiniLM-L6-v2",
        trained_on=("flickr30k", "snli"),
        source=f"{CARDS}/all-MiniLM-L6-v2",
    ),
    TextEncoder(
        weights="all-mpnet-base-v2",
        trained_on=("flickr30k", "snli"),
        source=f"{CARDS}/all-mpnet-base-v2",
    ),
    TextEncoder(
        weights="infersent1.pkl",
        trained_on=("snli",),
        source="https://github.com/facebookresearch/InferSent",
    ),
)


def corpora() -> set[str]:
    """The names of all that are known here."""
    names: set[str] = set()
    for each in INCLUSIONS:
        names |= {each.dataset, each.corpus}
    for encoder in ENCODERS:
        names.update(encoder.trained_on)
    return names


def holders(datasets: Iterable[str]) -> list[str]:
    """What has the captions of a dataset, which may have several names: itself, and
    every larger corpus."""
    names = list(dict.fromkeys(datasets))
    for name in names:  # grows
        for each in INCLUSIONS:
            if each.dataset == name and each.corpus not in names:
                names.append(each.corpus)
    return names
