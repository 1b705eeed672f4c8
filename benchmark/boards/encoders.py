"""Which text encoders and word vectors a row read, beside those of its paper, and which
encoders have read the captions of test before."""

from dataclasses import dataclass

from benchmark.boards.boards import Board, Row
from benchmark.core.records import Aspect, Departure, Record
from benchmark.papers.training_data import ENCODERS, SEASON, TextEncoder, holders


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


@dataclass(frozen=True)
class CaptionsSeen:
    """A text encoder that was trained on the captions of a dataset."""

    encoder: TextEncoder
    corpus: str  # of those that it was trained on, the smallest that has the captions


def captions_seen(board: Board, row: Row) -> CaptionsSeen | None:
    """The training of a row's text encoder, or of an external row, where it has the
    captions of the dataset; None where nothing is known of such a one. What the season
    file says comes first."""
    name = row.preset if row.is_external else row.record.text_features.get("weights")
    if not name:
        return None
    own = tuple(board.trained_on.get(name, ()))
    known = [TextEncoder(weights=name, trained_on=own, source=SEASON)]
    known += [encoder for encoder in ENCODERS if encoder.weights == name]
    for encoder in known:
        for corpus in holders([board.dataset, board.card.get("reader", "")]):
            if corpus in encoder.trained_on:
                return CaptionsSeen(encoder, corpus)
    return None
