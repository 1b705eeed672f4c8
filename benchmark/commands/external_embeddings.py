"""Embeddings that were made elsewhere, judged by their cosines; and token matrices, the
vectors of the tokens of each item, judged by MaxSim.

A file of token matrices:

    .npz    tokens   (T, F), those of all items, one item after the other
            lengths  (N,), how many tokens each item has

    numpy.savez("images.npz", tokens=numpy.concatenate(matrices),
                lengths=[len(matrix) for matrix in matrices])

Ids may stand beside, as an array (N,) or in <name>_ids.txt, as those of embeddings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark.commands.external_scores import (
    AS_IT_IS,
    SPLIT,
    External,
    Given,
    ReadingOptions,
    names_of,
    note_on_whole_numbers,
    notes_on_equal_captions,
)
from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared, Split
from benchmark.features import embedding_files, number_formats
from benchmark.features.embedding_files import (
    Rows,
    ids_beside,
    places,
    read_embeddings,
    texts_of,
)
from benchmark.readers import archives
from benchmark.scoring.corrections import BANK, Asked, Corrected
from benchmark.scoring.embedding_scores import (
    TokenMatrices,
    cosine_stream,
    max_sim_stream,
    units,
)
from benchmark.scoring.evaluation import of_test_split
from benchmark.scoring.score_stream import ScoreStream

ROLES = ("images", "captions")
PAIR = "--images, --captions"
TOKENS, LENGTHS = "tokens", "lengths"
SAVE = "numpy.savez(file, tokens=numpy.concatenate(x), lengths=[len(m) for m in x])"


@dataclass(frozen=True, kw_only=True)
class CorrectionOptions:
    """How cosines are corrected for hubs."""

    how: str
    parameters: Mapping[str, float]  # k and alpha, or beta
    banks: Sequence[Path] = ()  # embeddings of images and of captions, where it has any
    seed: int = 0  # draws the bank


def of_embeddings(
    images: Path,
    captions: Path,
    data: Prepared,
    reading: ReadingOptions = AS_IT_IS,
    correction: CorrectionOptions | None = None,
    is_row: bool = True,
) -> External:
    """Judge embeddings by their cosines; other scores are given as a matrix. `is_row`
    as in `of_retrieval`. Raises UserError for files that do not fit the test split or
    each other."""
    numbers, split, names = reading.numbers, data.split(SPLIT), names_of(data)
    given = [
        read_embeddings(path, role, numbers)
        for path, role in zip((images, captions), ROLES, strict=True)
    ]
    bank_files = correction.banks if correction else ()
    banks = [
        read_embeddings(path, role, numbers)
        for path, role in zip(bank_files, ROLES, strict=False)
    ]
    number_formats.check_alike([rows.whole for rows in (*given, *banks)], numbers)
    notes = []
    for rows in (*given, *banks):
        if rows.whole:
            notes.append(note_on_whole_numbers(rows, numbers))
    refuse_swapped(given, names)
    vectors = []
    for role in ROLES:
        # as it is read, it is in memory no longer than it takes
        rows = given.pop(0)
        vectors.append(_vectors(rows, role, names[role], split, reading, notes))
    del rows
    image_vectors, caption_vectors = vectors
    _check_sizes(image_vectors, caption_vectors, captions)
    if np.array_equal(image_vectors, caption_vectors):
        raise _same_twice("vectors of images and of captions", captions)
    notes += notes_on_equal_captions(data, caption_vectors, captions)
    stream = cosine_stream(image_vectors, caption_vectors, keeps=bool(correction))
    if correction:
        tiles = _corrected(stream, data.card["ways"], correction, banks)
        result = of_test_split(tiles, data, split, is_row=is_row)
        metrics = result.metrics | {"correction": tiles.facts}
        result = replace(result, metrics=metrics)
    else:
        result = of_test_split(stream, data, split, is_row=is_row)
    return External(
        given=Given.EMBEDDINGS,
        files=[images, *bank_files, captions],
        result=result,
        seconds=stream.members[0].seconds,
        notes=notes,
    )


def refuse_swapped(
    given: Sequence[Rows], names: Mapping[str, Sequence[Sequence[str]]]
) -> None:
    """Raise UserError where the files fit in each other's place, and not as given."""
    images, captions = given
    of_images, of_captions = names["images"], names["captions"]
    if _fits(images, of_images) or _fits(captions, of_captions):
        return
    if _fits(images, of_captions) and _fits(captions, of_images):
        swapped = f"captions in {images.path}, images in {captions.path}"
        advice = f"swap them: --images {captions.path} --captions {images.path}"
        raise UserError(PAIR, "the images first", swapped, advice)


def _fits(rows: Rows, names: Sequence[Sequence[str]]) -> bool:
    """Whether the rows can be those of these items."""
    if not rows.ids:
        return len(rows.values) == len(names[0])
    for ids in rows.ids.values():
        if (embedding_files.rows_of_items(ids, "", names) >= 0).any():
            return True
    return False


def _vectors(
    rows: Rows,
    role: str,
    names: Sequence[Sequence[str]],
    split: Split,
    reading: ReadingOptions,
    notes: list[str],
) -> np.ndarray:
    """(n, F) unit vectors of the items, in the order of the split, of rows (N, F); or
    of an array (I, K, F) without ids of the K captions of every image."""
    count, shape = len(names[0]), rows.values.shape
    is_of_captions = False
    if len(shape) == 3 and role == "captions" and not rows.ids:
        images = len(split.image_rows)
        in_order = np.repeat(np.arange(images), shape[1])
        is_whole = np.array_equal(split.image_of_caption, in_order)
        is_of_captions = is_whole and shape[0] == images
    if is_of_captions:
        each = f"the {shape[1]} captions of each image, in their order"
        notes.append(f"{rows.path}: {shape} are {each}")
        rows = replace(rows, values=rows.values.reshape(count, shape[2]))
    elif len(shape) != 2:
        advice = f"save one vector per item ({count}, {shape[-1]}), with ids or in "
        advice += f"order: {reading.order}; of several vectors per item, save "
        advice += "numpy.savez(FILE, tokens=(T, F), lengths=(N,))"
        raise UserError(rows.path, "rows of numbers (N, F)", shape, advice)
    elif not rows.ids and shape[0] != count and shape[1] == count:
        expected = f"one row for each of {count} items"
        raise UserError(rows.path, expected, "one column for each", "transpose it")
    order = places(rows, names, role, repeats=split.image_of_caption, do=reading.order)
    if not rows.ids and len(order) < len(rows.values):
        repeated = "one row per caption; the equal ones of an image count once"
        notes.append(f"{rows.path}: {repeated}")
    return units(rows.values[order], rows.path, names[0])


def _check_sizes(images: np.ndarray, captions: np.ndarray, path: Path) -> None:
    """Raise UserError for vectors of two sizes. `path` is that of the captions."""
    size = images.shape[1]
    if captions.shape[1] != size:
        expected = f"vectors of {size} numbers, as of the images"
        advice = "take both from the same model"
        raise UserError(path, expected, captions.shape[1], advice)


def _same_twice(expected: str, path: Path) -> UserError:
    advice = f"name the file of the captions, not {path}"
    return UserError(PAIR, expected, "the same numbers twice", advice)


def _corrected(
    stream: ScoreStream,
    ways: Sequence[str],
    correction: CorrectionOptions,
    banks: Sequence[Rows],
) -> Corrected:
    """The cosines, corrected as those of a season's row, with parameters that are
    given. `banks` are rows of images and of captions, where the correction takes
    them."""
    (split,) = stream.members
    size = split.images.shape[1]
    drawn = [_drawn_bank(rows, size, correction.seed) for rows in banks]
    k = correction.parameters.get("k", 1)
    for rows, vectors in zip(banks, drawn, strict=True):
        if k > len(vectors):
            expected = f"at most {len(vectors)}, the queries of {rows.path}"
            raise UserError("--k", expected, k, "take what validation chose for them")
    asked_of = {}
    for way in ways:
        bank = stream
        if drawn and way == "i2t":
            bank = cosine_stream(drawn[0], split.captions)
        elif drawn:
            bank = cosine_stream(split.images, drawn[1])
        asked_of[way] = Asked.of(way, stream), Asked.of(way, bank)
    parameters = dict.fromkeys(ways, correction.parameters)
    return Corrected(correction.how, asked_of, parameters)


def _drawn_bank(rows: Rows, size: int, seed: int) -> np.ndarray:
    """The unit vectors of a bank: BANK rows at most, which the seed draws."""
    shape = rows.values.shape
    if shape[1:] != (size,):
        advice = "embed it with the same model"
        raise UserError(rows.path, f"rows of {size} numbers", shape, advice)
    drawn = np.random.default_rng(seed).permutation(len(rows.values))[:BANK]
    ids = [str(row) for row in drawn]
    return units(rows.values[drawn], rows.path, ids)


# Token matrices -----------------------------------------------------------------------


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
        raise _same_twice(expected, captions)
    names, split = names_of(data), data.split(SPLIT)
    refuse_swapped([each.rows for each in stored], names)
    matrices = []
    for each, role in zip(stored, ROLES, strict=True):
        repeats = split.image_of_caption
        order = places(each.rows, names[role], role, repeats=repeats, do=reading.order)
        matrices.append(each.matrices.chosen(order))
    of_images, of_captions = matrices
    _check_sizes(of_images.tokens, of_captions.tokens, captions)
    notes = ["token matrices: MaxSim, of dot products as they are"]
    notes += notes_on_equal_captions(data, of_captions.means, captions)
    stream = max_sim_stream(of_images, of_captions)
    result = of_test_split(stream, data, split, is_row=is_row)
    return External(
        given=Given.EMBEDDINGS,
        files=[images, captions],
        result=result,
        seconds=stream.members[0].seconds,
        notes=notes,
    )


# Files of token matrices --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StoredTokens:
    """Token matrices, and what they belong to."""

    matrices: TokenMatrices
    rows: Rows  # the mean token of each item, with the ids of the items


def are_tokens(path: Path) -> bool:
    """Whether a file has token matrices."""
    if path.suffix.lower() != ".npz" or not files.is_file(path):
        return False
    with files.readable(path, "an .npz file", "save it again"):
        with archives.unzipped(path) as zipped:
            names = {name.removesuffix(".npy") for name in zipped.namelist()}
    return {TOKENS, LENGTHS} <= names


def read_tokens(path: Path) -> StoredTokens:
    """The token matrices of a file. Raises UserError for other arrays than these."""
    with files.readable(path, "an .npz file", "save it again"):
        arrays = archives.arrays_of(path)
        ids = ids_beside(path)
    tokens, lengths = arrays.pop(TOKENS), arrays.pop(LENGTHS)
    if tokens.ndim != 2 or tokens.dtype.kind != "f" or not tokens.size:
        found = f"{tokens.dtype} {tokens.shape}"
        raise UserError(
            f"{path}: {TOKENS}", "floating-point numbers (T, F)", found, SAVE
        )
    is_count = lengths.ndim == 1 and lengths.dtype.kind in "iu"
    # the sum of numbers that are too large would begin at 0 again
    fits = is_count and ((lengths >= 1) & (lengths <= len(tokens))).all()
    if not fits or lengths.sum() != len(tokens):
        expected = f"whole numbers, 1 or more, {len(tokens)} in all"
        found = f"{lengths.dtype} {lengths.shape}"
        if is_count and lengths.size:
            found = f"{lengths.min()} or more, {lengths.sum()} in all"
        raise UserError(f"{path}: {LENGTHS}", expected, found, SAVE)
    for name, array in arrays.items():
        if array.shape != lengths.shape or array.dtype.kind not in "USiu":
            expected = f"{TOKENS}, {LENGTHS} and ids ({len(lengths)},)"
            found = f"{name!r}, {array.dtype} {array.shape}"
            raise UserError(path, expected, found, "leave it out")
        ids[name] = texts_of(array)
    for name, names in ids.items():
        if len(names) != len(lengths):
            expected = f"an id for each of {len(lengths)} items"
            raise UserError(f"{path}: {name}", expected, len(names), "correct the ids")
    matrices = TokenMatrices(tokens, lengths.astype(np.int64))
    is_bad = ~np.isfinite(matrices.means).all(1)
    if is_bad.any():
        found = f"NaN or infinity in item {is_bad.argmax()} ({is_bad.sum()} such items)"
        raise UserError(path, "finite numbers", found, "compute it again")
    return StoredTokens(matrices, Rows(path, matrices.means, ids))
