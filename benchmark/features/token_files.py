"""Token matrices that were made elsewhere, for late interaction: the vectors of the
tokens of each item.

    .npz    tokens   (T, F), those of all items, one item after the other
            lengths  (N,), how many tokens each item has

    numpy.savez("images.npz", tokens=numpy.concatenate(matrices),
                lengths=[len(matrix) for matrix in matrices])

Ids may stand beside, as an array (N,) or in <name>_ids.txt, as those of embeddings.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.features.embedding_files import Rows, ids_beside
from benchmark.readers import archives, npy_files
from benchmark.scoring.max_sims import TokenMatrices

TOKENS, LENGTHS = "tokens", "lengths"
SAVE = "numpy.savez(file, tokens=numpy.concatenate(x), lengths=[len(m) for m in x])"


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
        arrays = npy_files.arrays_of(path)
        ids = ids_beside(path)
    tokens, lengths = arrays.pop(TOKENS), arrays.pop(LENGTHS)
    if tokens.ndim != 2 or tokens.dtype.kind != "f" or not tokens.size:
        found = f"{tokens.dtype} {tokens.shape}"
        raise UserError(
            f"{path}: {TOKENS}", "floating-point numbers (T, F)", found, SAVE
        )
    is_count = lengths.ndim == 1 and lengths.dtype.kind in "iu"
    if not is_count or not (lengths >= 1).all() or lengths.sum() != len(tokens):
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
        texts = np.strings.decode(array) if array.dtype.kind == "S" else array
        ids[name] = texts.astype(str).tolist()
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
