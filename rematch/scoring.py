"""From similarities or embeddings of images and captions to recalls."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from benchmark.core.errors import UserError
from rematch.answers import Recalls

if TYPE_CHECKING:
    from benchmark.scoring.embedding_scores import TokenMatrices
    from benchmark.scoring.ranking import Tile

    Embeddings = ArrayLike | Sequence[ArrayLike]

DOUBLE = np.dtype(np.float64).itemsize  # bytes


def recalls(matrix: ArrayLike, owner: ArrayLike) -> Recalls:
    """Recalls of both directions from similarities. Ties count against the method.

    Parameters
    ----------
    matrix : (images, captions) similarities, the greater the more alike; finite
    owner : (captions,) the row of each caption's image, from 0; each image needs one

    Raises
    ------
    UserError (a ValueError) for shapes that do not fit, for scores that are not finite,
    and for an image without a caption.

    >>> rematch.recalls([[0.9, 0.1], [0.3, 0.2]], owner=[0, 1])["i2t_r1"]
    50.0
    """
    from benchmark.scoring.ranking import Matrices

    expected = "numbers (images, captions)"
    scores = array_of(matrix, "matrix", expected)
    if scores.dtype.kind not in "fiub":
        found = f"{scores.dtype} of shape {scores.shape}"
        raise UserError("matrix", expected, found, "give such an array")
    # of more than 64 bits, ties would be lost where ranks are counted
    if scores.dtype.kind != "f" or scores.dtype.itemsize > DOUBLE:
        scores = scores.astype(np.float64)
    owner_of = _owner(scores.shape, owner)
    return _recalls(Matrices(i2t=scores), owner_of)


def score(images: "Embeddings", captions: "Embeddings", owner: ArrayLike) -> Recalls:
    """Recalls of both directions from embeddings, by their cosines, summed in double
    precision so that equal embeddings tie; or from token matrices, by MaxSim: the sum
    over a caption's tokens of the largest dot product with a token of the image.

    Scores pass in tiles, so that no matrix of them needs to fit into the memory.

    Parameters
    ----------
    images : (images, F) embeddings, of any length; or a list with an array (tokens, F)
        for each image
    captions : (captions, F) embeddings, or such a list
    owner : (captions,) the row of each caption's image, from 0

    Raises
    ------
    UserError (a ValueError) for shapes that do not fit, for an embedding that is zero,
    and for numbers that are not finite.
    """
    from benchmark.scoring.embedding_scores import cosine_stream, max_sim_stream, units

    are_matrices = _are_token_matrices(images) or _are_token_matrices(captions)
    of_items = []
    for name, given in (("images", images), ("captions", captions)):
        if are_matrices:
            of_items.append(_token_matrices(given, name))
        else:
            rows = _finite_rows(given, name)
            of_items.append(units(rows, name, [str(row) for row in range(len(rows))]))
    of_images, of_captions = of_items
    if are_matrices:
        sizes = of_images.tokens.shape[1], of_captions.tokens.shape[1]
    else:
        sizes = of_images.shape[1], of_captions.shape[1]
    if sizes[0] != sizes[1]:
        expected = f"rows of {sizes[0]} numbers, as of the images"
        raise UserError("captions", expected, sizes[1], "take both from one model")
    owner_of = _owner((len(of_images), len(of_captions)), owner)
    stream_of = max_sim_stream if are_matrices else cosine_stream
    return _recalls(stream_of(of_images, of_captions), owner_of)


def _are_token_matrices(given: "Embeddings") -> bool:
    """Whether each item has several vectors."""
    if isinstance(given, list | tuple) and given:
        return array_of(given[0], "item 0", "numbers").ndim == 2
    return getattr(given, "ndim", 0) == 3


def _token_matrices(given: "Embeddings", name: str) -> "TokenMatrices":
    """Raises UserError for what is no matrix (tokens, F) for each item."""
    from benchmark.scoring.embedding_scores import TokenMatrices

    rows = [_finite_rows(item, f"{name}[{row}]") for row, item in enumerate(given)]
    if not rows:
        expected = "numbers (tokens, F) for each item"
        raise UserError(name, expected, "no item", "give such a list")
    sizes = {len(row[0]) for row in rows}
    if len(sizes) > 1:
        expected, found = "vectors of one size", f"{min(sizes)} to {max(sizes)} numbers"
        raise UserError(name, expected, found, "take all from one model")
    lengths = np.array([len(row) for row in rows])
    return TokenMatrices(np.concatenate(rows), lengths)


def _finite_rows(given: ArrayLike, name: str) -> np.ndarray:
    """Rows of single or double precision. Raises UserError for anything else."""
    expected = "numbers (rows, F)"
    rows = array_of(given, name, expected)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.size:
        found = f"{rows.dtype} of shape {rows.shape}"
        raise UserError(name, expected, found, "give such an array")
    if rows.dtype.kind == "u":
        found = f"{rows.dtype}: packed bits, or numbers that were rounded?"
        advice = "unpack them, or make floating-point numbers of them"
        raise UserError(name, "floating-point numbers (rows, F)", found, advice)
    if rows.dtype.kind != "f" or rows.dtype.itemsize < 4:
        rows = rows.astype(np.float32)
    if rows.dtype.itemsize > DOUBLE:
        rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        found = "NaN or infinite ones"
        raise UserError(name, "finite numbers", found, "compute them again")
    return rows


def _recalls(tiles: Iterable["Tile"], owner_of: np.ndarray) -> Recalls:
    """Recalls of scores that pass tile by tile, twice. Raises UserError for scores that
    are not finite."""
    import pandas as pd

    from benchmark.commands.score_report import measured
    from benchmark.data.rank_keys import RankKey
    from benchmark.scoring.metrics import query_terms, retrieval_metrics
    from benchmark.scoring.ranking import RefusedError, direction_ranks
    from benchmark.scoring.relevance import Relevance

    relevance = Relevance.of(np.arange(owner_of.max() + 1), owner_of)
    try:
        ranks = direction_ranks(tiles, relevance)
    except RefusedError as error:
        advice = "compute them again"
        raise UserError("matrix", "finite scores", error, advice) from error
    image_of = {"i2t": relevance.group_of_image, "t2i": owner_of}
    values = retrieval_metrics(ranks)
    intervals, tables = {}, []
    for name in values:
        terms = []
        for term in query_terms(name, values):
            way = term.direction
            terms.append((term, ranks[way], pd.Series(image_of[way])))
        if terms:
            _, low, high = measured(terms)
            intervals[name] = low, high
    for way, of_way in ranks.items():
        images = image_of[way]
        columns = {
            "direction": RankKey(way).column,
            "query": [f"{way[0]}{row}" for row in range(len(images))],
            "cluster": [f"i{image}" for image in images],
            "rank": of_way.best,
        }
        tables.append(pd.DataFrame(columns))
    return Recalls(values, intervals, pd.concat(tables, ignore_index=True))


def _owner(shape: tuple[int, ...], owner: ArrayLike) -> np.ndarray:
    """(C,) whole numbers. Raises UserError for what does not fit the matrix."""
    if len(shape) != 2 or 0 in shape:
        raise UserError("matrix", "(images, captions)", shape, "give such an array")
    images, captions = shape
    expected = f"a whole number for each of {captions} captions"
    owner_of = array_of(owner, "owner", expected)
    if owner_of.shape != (captions,) or owner_of.dtype.kind not in "iu":
        found = f"{owner_of.dtype} of shape {owner_of.shape}"
        raise UserError(
            "owner", expected, found, "give the row of each caption's image"
        )
    if not np.array_equal(np.unique(owner_of), np.arange(images)):
        expected = f"rows from 0 to {images - 1}, each at least once"
        found = (
            f"{len(np.unique(owner_of))} of them, {owner_of.min()} to {owner_of.max()}"
        )
        raise UserError("owner", expected, found, "leave out images without captions")
    return owner_of.astype(np.int64)


# Arrays -------------------------------------------------------------------------------


def array_of(given: ArrayLike, name: str, expected: str) -> np.ndarray:
    """What was given as `name`, as an array. Raises UserError for rows of several
    lengths, for masked numbers, and for a tensor that NumPy cannot read."""
    if np.ma.is_masked(given):
        advice = "leave them out, or fill them"
        raise UserError(name, expected, "masked ones", advice)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise UserError(
            name,
            expected=expected,
            found="rows of several lengths",
            do="give such an array",
        ) from error
    except (RuntimeError, TypeError) as error:  # of torch
        found = f"a {type(given).__name__} that is no array: {error}"
        advice = "give x.detach().float().cpu()"
        raise UserError(name, expected, found, advice) from error
