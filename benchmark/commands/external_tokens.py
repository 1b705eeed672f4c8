"""Token matrices that were made elsewhere, judged by MaxSim."""

from pathlib import Path

import numpy as np

from benchmark.commands.external_embeddings import PAIR, ROLES, refuse_swapped
from benchmark.commands.external_scores import (
    SPLIT,
    External,
    Given,
    ReadingOptions,
    names_of,
    notes_on_equal_captions,
)
from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.features.embedding_files import places
from benchmark.features.token_files import SAVE, are_tokens, read_tokens
from benchmark.scoring.evaluation import of_test_split
from benchmark.scoring.max_sims import max_sim_stream

AS_IT_IS = ReadingOptions()


def of_tokens(
    images: Path,
    captions: Path,
    data: Prepared,
    reading: ReadingOptions = AS_IT_IS,
    is_row: bool = True,
) -> External:
    """Judge token matrices by MaxSim. `is_row` as in `of_retrieval`. Raises UserError
    for files that do not fit the test split or each other."""
    expected = "token matrices of images and of captions"
    for path in (images, captions):
        if not files.is_file(path):
            raise UserError(path, "a file", "nothing", "correct the path")
        if not are_tokens(path):
            raise UserError(PAIR, expected, f"other rows in {path}", SAVE)
    stored = [read_tokens(images), read_tokens(captions)]
    if np.array_equal(stored[0].matrices.tokens, stored[1].matrices.tokens):
        advice = f"name the file of the captions, not {captions}"
        raise UserError(PAIR, expected, "the same numbers twice", advice)
    names, repeats = names_of(data), data.split(SPLIT).image_of_caption
    refuse_swapped([each.rows for each in stored], names)
    matrices = []
    for each, role in zip(stored, ROLES, strict=True):
        order = places(each.rows, names[role], role, repeats=repeats, do=reading.order)
        matrices.append(each.matrices.chosen(order))
    of_images, of_captions = matrices
    size = of_images.tokens.shape[1]
    if of_captions.tokens.shape[1] != size:
        expected = f"vectors of {size} numbers, as of the images"
        found = of_captions.tokens.shape[1]
        raise UserError(captions, expected, found, "take both from the same model")
    notes = ["token matrices: MaxSim, of dot products as they are"]
    notes += notes_on_equal_captions(data, of_captions.means, captions)
    stream = max_sim_stream(of_images, of_captions)
    result = of_test_split(stream, data, is_row=is_row)
    return External(
        given=Given.EMBEDDINGS,
        files=[images, captions],
        result=result,
        seconds=stream.members[0].seconds,
        notes=notes,
    )
