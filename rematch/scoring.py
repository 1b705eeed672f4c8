"""From similarities or embeddings of images and captions to recalls."""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.core.errors import UserError
from rematch.answers import Recalls


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
    import pandas as pd

    from benchmark.commands.score_report import measured
    from benchmark.data.rank_keys import RankKey
    from benchmark.scoring.metrics import query_terms, retrieval_metrics
    from benchmark.scoring.ranking import Matrices, RefusedError, direction_ranks
    from benchmark.scoring.relevance import Relevance

    scores = np.asarray(matrix)
    if scores.dtype.kind != "f":
        scores = scores.astype(np.float64)
    owner_of = _owner(scores.shape, owner)
    relevance = Relevance.of(np.arange(len(scores)), owner_of)
    try:
        ranks = direction_ranks(Matrices(i2t=scores), relevance)
    except RefusedError as error:
        advice = "compute them again"
        raise UserError("matrix", "finite scores", error, advice) from error
    image_of = {"i2t": np.arange(len(scores)), "t2i": owner_of}
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


def score(images: ArrayLike, captions: ArrayLike, owner: ArrayLike) -> Recalls:
    """Recalls of both directions from embeddings, by their cosines, summed in double
    precision so that equal embeddings tie.

    Parameters
    ----------
    images : (images, F) embeddings, of any length
    captions : (captions, F) embeddings
    owner : (captions,) the row of each caption's image, from 0

    Raises
    ------
    UserError (a ValueError) for shapes that do not fit, and for an embedding that is
    zero or not finite.
    """
    from benchmark.commands.external_embeddings import cosines, units

    vectors = []
    for name, given in (("images", images), ("captions", captions)):
        rows = np.asarray(given)
        if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.size:
            found = f"{rows.dtype} of shape {rows.shape}"
            raise UserError(name, "numbers (rows, F)", found, "give such an array")
        if rows.dtype.kind != "f" or rows.dtype.itemsize < 4:
            rows = rows.astype(np.float32)
        if not np.isfinite(rows).all():
            found = "NaN or infinite ones"
            raise UserError(name, "finite numbers", found, "compute them again")
        vectors.append(units(rows, name, [str(row) for row in range(len(rows))]))
    of_images, of_captions = vectors
    if of_images.shape[1] != of_captions.shape[1]:
        expected = f"rows of {of_images.shape[1]} numbers, as of the images"
        found = of_captions.shape[1]
        raise UserError("captions", expected, found, "take both from one model")
    return recalls(cosines(of_images, of_captions), owner)


def _owner(shape: tuple[int, ...], owner: ArrayLike) -> np.ndarray:
    """(C,) whole numbers. Raises UserError for what does not fit the matrix."""
    if len(shape) != 2 or 0 in shape:
        raise UserError("matrix", "(images, captions)", shape, "give such an array")
    owner_of = np.asarray(owner)
    images, captions = shape
    if owner_of.shape != (captions,) or owner_of.dtype.kind not in "iu":
        expected = f"a whole number for each of {captions} captions"
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
