"""Which text encoders and word vectors a row read, beside those of its paper."""

from benchmark.boards.boards import Row
from benchmark.core.departures import Aspect, Departure
from benchmark.core.records import Record


def is_of_features(departure: Departure) -> bool:
    """Whether it is one of features. Vectors of texts count where they come from word
    vectors; encoders have a flag of their own."""
    if departure.aspect != Aspect.TEXT_VECTORS:
        return True
    return departure.reads_words and departure.texts != "contextual"


def reads_other_words(record: Record) -> bool:
    """Whether a method, or its text encoder, reads word vectors that the paper does not
    have."""
    of_words = (Aspect.WORD_VECTORS, Aspect.TEXT_VECTORS)
    for departure in record.departures:
        if departure.aspect in of_words and is_of_features(departure):
            return True
    return False


def other_encoder(row: Row) -> str:
    """Name of the sentence vectors that it read; "" where they are of the paper's
    encoder."""
    folder = row.record.text_features.get("encoder", "")
    of_paper = row.declared.sentence
    if not of_paper or not folder:
        return ""
    is_of_paper = folder.removeprefix("phrases_").startswith(of_paper)
    return "" if is_of_paper else folder
