"""Scores that were made elsewhere, as matrices of images and captions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmark.commands.external_ranks import BestOfLists, of_lists
from benchmark.commands.external_scores import (
    AS_IT_IS,
    QUERIES,
    SPLIT,
    External,
    Given,
    ReadingOptions,
    names_of,
    note_on_whole_numbers,
    notes_on_equal_captions,
)
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.features import number_formats
from benchmark.features.embedding_files import SEVERAL, Rows, places, read_scores
from benchmark.scoring.evaluation import of_test_split
from benchmark.scoring.ranking import Matrices, ranks_of
from benchmark.scoring.relevance import Relevance

MATRIX = "scores (images, captions)"
# share of equal scores that may fill a matrix; scores looked at
FILLED, SAMPLED = 0.5, 1 << 20


def of_matrix(
    path: Path,
    data: Prepared,
    reading: ReadingOptions = AS_IT_IS,
    is_row: bool = True,
) -> External:
    """Judge scores of both directions, or for each one of its own: t2i then has
    captions as rows. Where some are -infinity, the others are lists of what was
    retrieved. `is_row` as in `of_retrieval`. Raises UserError for what does not fit the
    test split."""
    names, matrices, notes = names_of(data), {}, []
    stored = _stored(path, reading.numbers)
    for rows, way in stored:
        axis = _image_axis(rows, way, names)
        if not rows.ids and rows.values.shape[0] == rows.values.shape[1]:
            kinds = ("captions", "images") if axis else ("images", "captions")
            axes = f"rows are taken for {kinds[0]}, columns for {kinds[1]}"
            notes.append(f"{path}: {way}: {axes}")
        order = reading.order
        images = places(rows, names["images"], "images", axis, do=order)
        captions = places(rows, names["captions"], "captions", 1 - axis, do=order)
        by_image = np.moveaxis(rows.values, axis, 0)
        matrices[way] = by_image[np.ix_(images, captions)]
        notes += notes_on_equal_captions(data, matrices[way].T, path)
    if reading.numbers:
        notes.append(note_on_whole_numbers(stored[0][0], reading.numbers))
    if any(np.isneginf(matrix).any() for matrix in matrices.values()):
        return _of_retrieved(path, data, matrices, reading.depth, notes)
    for way, matrix in matrices.items():
        notes += _notes_on_fill(f"{path}: {way}", matrix)
    if reading.depth:
        expected, advice = "lists: scores with -inf", "remove --depth"
        raise UserError("--depth", expected, "finite scores", advice)
    tiles = Matrices(**matrices)
    result = of_test_split(tiles, data, data.split(SPLIT), is_row=is_row)
    return External(given=Given.SCORES, files=[path], result=result, notes=notes)


def _stored(path: Path, numbers: str | None) -> list[tuple[Rows, str]]:
    """The matrix of i2t, and that of t2i where the file has another one."""
    both = []
    for way in QUERIES:
        rows = read_scores(path, way, numbers)
        number_formats.check_alike([rows.whole], numbers)
        if both and np.array_equal(rows.values, both[0][0].values):
            break  # one for both
        both.append((rows, way))
        if path.suffix.lower() not in SEVERAL:
            break
    return both


def _image_axis(
    rows: Rows, way: str, names: Mapping[str, Sequence[Sequence[str]]]
) -> int:
    """The axis of the images: 0, or 1 of a matrix of t2i that has captions as rows.
    Raises UserError for what is no matrix of these items."""
    path, shape = rows.path, rows.values.shape
    expected_shape = len(names["images"][0]), len(names["captions"][0])
    turned = expected_shape[::-1]
    if shape[1:] == (1,) and expected_shape[1] != 1:
        advice = "pivot it: frame.pivot(index=..., columns=..., values=...)"
        raise UserError(path, MATRIX, "one column: a list of pairs", advice)
    if way == "t2i" and shape == turned:
        return 1
    if shape == turned and shape != expected_shape:
        images, captions = expected_shape
        expected = f"{images} images (rows) by {captions} captions (columns)"
        raise UserError(path, expected, "captions by images", "transpose it")
    if len(shape) != 2:
        raise UserError(path, MATRIX, shape, "save them so")
    return 0


def _notes_on_fill(where: str, matrix: np.ndarray) -> list[str]:
    """A note if most scores are equal and the lowest: what was not retrieved may be
    filled so. Raises UserError if others lie below, which then rank behind all that was
    not retrieved."""
    sample = matrix.ravel()[:: max(matrix.size // SAMPLED, 1)]
    # the mean of two middle ones would overflow where a type's least number fills it
    middle = np.quantile(sample, 0.5, method="lower")
    share = (sample == middle).mean()
    if share < FILLED:
        return []
    fill = f"{middle:g} in {share:.0%} of the scores"
    if matrix.min() < middle:
        advice = "save -inf for what was not retrieved"
        raise UserError(where, "scores of all pairs", f"{fill}, above others", advice)
    advice = "save -inf if that stands for what was not retrieved"
    return [f"{where}: {fill}, the lowest; {advice}"]


def _of_retrieved(
    path: Path,
    data: Prepared,
    matrices: Mapping[str, np.ndarray],
    depth: int,
    notes: list[str],
) -> External:
    """Judge scores that are -infinity for what was not retrieved. Raises UserError
    where the first items of a query may be missing among those that have scores."""
    split, names = data.split(SPLIT), names_of(data)
    relevant_IC = Relevance.of(split.group_of_image, split.image_of_caption).matrix
    lists = {}
    for way in data.card["ways"]:
        scores_QG, relevant_QG = matrices.get(way, matrices["i2t"]), relevant_IC
        if way == "t2i":
            scores_QG, relevant_QG = scores_QG.T, relevant_QG.T
        queries, is_listed_QG = names[QUERIES[way]][0], np.isfinite(scores_QG)
        known = _known_depth(f"{path}: {way}", queries, is_listed_QG.sum(1), depth)
        lowest = np.nextafter(scores_QG[is_listed_QG].min(), -np.inf)
        filled_QG = np.where(is_listed_QG, scores_QG, lowest)
        ranks_Q = ranks_of(filled_QG, relevant_QG).best
        is_lost_Q = ~(is_listed_QG & relevant_QG).any(1) | (ranks_Q >= known)
        items = scores_QG.shape[1]
        lists[way] = BestOfLists(queries, items, ranks_Q, is_lost_Q, known)
    notes.append(f"{path}: -inf is taken for what was not retrieved")
    depths = {way: of_way.depth for way, of_way in lists.items()}
    return of_lists(Given.SCORES, path, lists, notes, depths)


def _known_depth(
    where: str, queries: Sequence[str], lengths_Q: np.ndarray, depth: int
) -> int:
    """How many items each query has in its list: so many as it has scores, if all
    have as many; else `depth`, if all have no fewer. Raises UserError where neither
    holds."""
    shortest, longest = int(lengths_Q.min()), int(lengths_Q.max())
    if 0 < depth <= shortest:
        return depth
    if not depth and shortest == longest and shortest:
        return shortest
    expected = "as many retrieved items, which are not -inf, for each query"
    actual = f"{shortest} for {queries[lengths_Q.argmin()]!r}, up to {longest}"
    advice = "save the lists of each direction in one .npz, i2t and t2i"
    if shortest:
        advice += f", add --depth K if each has its first K (at most {shortest})"
    advice += ", or a finite number if -inf is the score"
    raise UserError(where, expected, actual, advice)
