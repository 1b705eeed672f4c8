"""What a score rests on: the words it would miss, and where the words look. Knows no torch.

These figures show captions and pictures, so they follow the gallery: where a dataset may not be
published, they stay on the machine that has it.
"""

from collections.abc import Iterator

import numpy as np

from benchmark.analysis.boards import Board, Standing
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import tokenise
from benchmark.report.figures.attention import Attended, attention
from benchmark.report.figures.word_importance import CaptionWords, importance
from benchmark.report.pages.illustrations import Picture
from datasets import OpenPicture

ATTENDED = 3  # pictures


def explanations(board: Board, data: Prepared, open_picture: OpenPicture) -> Iterator[Picture]:
    """Of the best preset of each kind: importance of words, then attention of words. The board is
    of retrieval."""
    worded, attending = _best(board, "words_drop"), _best(board, "attention")
    if worded:
        yield _importance(worded, data)
    if attending:
        for number in range(min(ATTENDED, len(attending.samples["attention"]))):
            yield _attention(attending, number, data, open_picture)


def _best(board: Board, sample: str) -> Standing | None:
    return next((s for s in board.ranked if sample in s.samples), None)


def _importance(standing: Standing, data: Prepared) -> Picture:
    samples, captions = standing.samples, data.split("test").caption_rows
    shapes = []
    for caption, drops in zip(samples["words_captions"], samples["words_drop"], strict=True):
        text = data.captions["text"].iloc[int(captions[caption])]
        words = tokenise(text)
        shapes.append(CaptionWords(title=text, words=words, drops=drops[: len(words)]))
    shapes.sort(key=lambda shape: len(shape.words))  # panels of one height share a row
    return Picture(
        name="words",
        figure=importance(shapes),
        alt=f"{standing.row.title}: how much the score of a caption and its picture drops without "
        f"each of its words, {len(shapes)} captions",
    )


def _attention(
    standing: Standing, number: int, data: Prepared, open_picture: OpenPicture
) -> Picture:
    samples, split = standing.samples, data.split("test")
    caption = int(samples["attention_captions"][number])
    text = data.captions["text"].iloc[int(split.caption_rows[caption])]
    words = tokenise(text)
    weights = samples["attention"][number][: len(words)]
    side = int(np.sqrt(weights.shape[1]))
    image_row = int(split.image_rows[split.image_of_caption[caption]])
    with open_picture(data.images["file"].iloc[image_row]) as opened:
        picture = opened.convert("RGB")
    shape = Attended(
        title=text, picture=picture, words=words, weights=weights.reshape(len(words), side, side)
    )
    return Picture(
        name=f"attention-{number + 1}",
        figure=attention(shape),
        alt=f"{standing.row.title}: where each word of the caption looks: {text}",
        is_scalable=False,
    )
