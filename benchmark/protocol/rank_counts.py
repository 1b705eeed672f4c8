"""Ranks and the best items of every query, from tiles of scores (score_tiles.py).

The best relevant score of every query is known; items that score at least as much are counted, and
counts add up over tiles. r = images of a tile, c = captions, Q = queries, K = items kept.
"""

import numpy as np

from benchmark.protocol.score_tiles import Overview, Pairing, Tile

AT_ONCE = 255  # rows that bytes can count
NO_ITEM = 2**62


class RankCounts:
    """Ranks (Q,) of one direction, `i2t` or `t2i`, or of its queries within their folds."""

    def __init__(self, name: str, overview: Overview, pairing: Pairing) -> None:
        self.name, self.pairing = name, pairing
        self.is_of_images = name.startswith("i2t")
        # Every item that scores at least as much is counted, and the best relevant ones are not.
        self.best_Q, own_Q = overview.best(name, pairing)
        self.ranks = -own_Q  # ties count against the query
        self.ties = -own_Q

    @property
    def optimistic(self) -> np.ndarray:
        """Ranks (Q,) if ties counted for the query."""
        return self.ranks - self.ties

    def add(self, tile: Tile, scores: np.ndarray) -> None:
        """Scores (r, c) of a tile."""
        queries = tile.rows if self.is_of_images else tile.columns
        best = self.best_Q[queries]
        best_rc = np.broadcast_to(best[:, None] if self.is_of_images else best, scores.shape)
        above = scores >= best_rc
        if self.name.endswith("_fold"):
            above &= self.pairing.in_fold(tile)
        self.ranks[queries] += self._counted(above)
        row, column = np.divmod(np.flatnonzero(above), scores.shape[1])
        is_tie = scores[row, column] == best_rc[row, column]
        of_query = (row if self.is_of_images else column)[is_tie]
        self.ties[queries] += np.bincount(of_query, minlength=len(queries))

    def _counted(self, mask: np.ndarray) -> np.ndarray:
        """How many are true for each query."""
        if self.is_of_images:
            return np.bitwise_count(np.packbits(mask, axis=1)).sum(1, dtype=np.int64)
        starts = range(0, len(mask), AT_ONCE)
        parts = (mask[start : start + AT_ONCE].view(np.uint8) for start in starts)
        return sum(part.sum(0, dtype=np.uint8).astype(np.int64) for part in parts)


class BestItems:
    """The best K items of every query of a direction, best first. Among equal scores the items that
    are not relevant come first, so that the order agrees with the ranks."""

    def __init__(self, way: str, pairing: Pairing, count: int) -> None:
        self.is_of_images, self.pairing = way == "i2t", pairing
        sizes = len(pairing.group_of_image), len(pairing.group_of_caption)
        queries, self.gallery = sizes if self.is_of_images else sizes[::-1]
        self.scores = np.full((queries, count), -np.inf)
        self.kept = np.full((queries, count), NO_ITEM)

    @property
    def items(self) -> np.ndarray:
        """(Q, K) int32; K is at most the size of the gallery."""
        return self.kept[:, : self.gallery].astype(np.int32)

    def add(self, tile: Tile, scores: np.ndarray) -> None:
        """Scores (r, c) of a tile."""
        queries, items = tile.rows, tile.columns
        if not self.is_of_images:
            queries, items = items, queries
        least = self.scores[queries, -1].astype(scores.dtype)
        if np.isneginf(least).any() and len(items) > self.scores.shape[1]:
            by_query = scores if self.is_of_images else np.ascontiguousarray(scores.T)
            of_tile = np.partition(by_query, -self.scores.shape[1], axis=1)
            least = np.maximum(least, of_tile[:, -self.scores.shape[1]])
        least = least[:, None] if self.is_of_images else least[None, :]
        row, column = np.divmod(np.flatnonzero(scores >= least), scores.shape[1])
        if len(row):
            best = scores[row, column]
            if not self.is_of_images:
                order = column.argsort(kind="stable")
                row, column, best = column[order], row[order], best[order]
            self._merge(queries, row, items[column], best)

    def _merge(
        self, queries: np.ndarray, row: np.ndarray, items: np.ndarray, scores: np.ndarray
    ) -> None:
        """Row by row, what is kept of a query and what is new: sorted, and the rest is dropped."""
        more = np.bincount(row, minlength=len(queries))
        touched = np.flatnonzero(more)
        queries, place = queries[touched], np.cumsum(more > 0)[row] - 1
        nth = np.arange(len(row)) - (more.cumsum() - more)[row]
        count = self.scores.shape[1]
        width = count + more.max()
        both_scores = np.full((len(touched), width), -np.inf)
        both_items = np.full((len(touched), width), NO_ITEM)
        both_scores[:, :count], both_items[:, :count] = self.scores[queries], self.kept[queries]
        both_scores[place, count + nth], both_items[place, count + nth] = scores, items
        later = both_items + NO_ITEM // 2 * self._is_relevant(queries, both_items)
        best = np.lexsort((later, -both_scores), axis=1)[:, :count]
        self.kept[queries] = np.take_along_axis(both_items, best, 1)
        self.scores[queries] = np.take_along_axis(both_scores, best, 1)

    def _is_relevant(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        groups = self.pairing.group_of_image, self.pairing.group_of_caption
        of_query, of_item = groups if self.is_of_images else groups[::-1]
        is_there = items != NO_ITEM
        return is_there & (of_query[queries][:, None] == of_item[np.where(is_there, items, 0)])


class Picked:
    """The scores of some images with some captions, (r, c)."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray) -> None:
        self.rows, self.columns = rows, columns
        self.scores = np.full((len(rows), len(columns)), np.nan)

    def add(self, tile: Tile, scores: np.ndarray) -> None:
        """Scores (r, c) of a tile."""
        here = [
            np.nonzero(np.equal.outer(wanted, given))
            for wanted, given in ((self.rows, tile.rows), (self.columns, tile.columns))
        ]
        (to_row, row), (to_column, column) = here
        if len(row) and len(column):
            self.scores[np.ix_(to_row, to_column)] = scores[np.ix_(row, column)]
