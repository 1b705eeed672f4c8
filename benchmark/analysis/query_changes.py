"""Where two presets differ: the queries that one answers better than the other, their lengths and
their words. Knows no torch.

A query's rank is the mean over the common seeds. Q = queries.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.analysis.boards import Standing
from benchmark.core.array_files import read_parquet
from benchmark.core.errors import UserError
from benchmark.data.prepared_tables import Prepared
from benchmark.data.vocabularies import tokenise

LENGTHS = 4  # groups of captions by their number of words, of about the same size
LEAST = 10  # captions with a word that is told


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Two presets on the queries of one direction.

    queries  query (its id), text (of a caption, or the captions of an image), words, first and
             second (mean ranks, 0-based), hit_first and hit_second (share of seeds that find it in
             first place); in the order of the split
    """

    direction: str
    seeds: int
    queries: pd.DataFrame

    @property
    def won(self) -> int:
        """Queries that the first preset ranks better."""
        return int((self.queries["first"] < self.queries["second"]).sum())

    @property
    def lost(self) -> int:
        return int((self.queries["first"] > self.queries["second"]).sum())

    def moved_most(self, count: int) -> pd.DataFrame:
        """The queries with the largest steps, in places as shares: from 1 to 3 is as far as from
        10 to 30. Those of the first preset come first."""
        steps = np.log1p(self.queries["second"]) - np.log1p(self.queries["first"])
        ordered = self.queries.assign(step=steps).sort_values("step", kind="stable")
        return pd.concat([ordered[::-1][:count], ordered[:count]])

    def by_length(self) -> pd.DataFrame:
        """R@1 of both for captions of few and of many words: words, queries, first, second."""
        words = self.queries["words"]
        edges = np.unique(np.quantile(words, np.linspace(0, 1, LENGTHS + 1)).astype(int))
        low = np.searchsorted(edges[1:-1], words, side="right")
        rows = [
            {
                "words": f"{group['words'].min()} to {group['words'].max()}",
                "queries": len(group),
                "first": 100 * group["hit_first"].mean(),
                "second": 100 * group["hit_second"].mean(),
            }
            for _, group in self.queries.groupby(low)
        ]
        return pd.DataFrame(rows)

    def by_word(self) -> pd.DataFrame:
        """R@1 of both for the captions with a word, and their difference: word, queries, first,
        second, difference; the largest differences for the first preset come first."""
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(self.queries["text"]):
            for word in set(tokenise(text)):
                rows.setdefault(word, []).append(row)
        hits = 100 * self.queries[["hit_first", "hit_second"]].to_numpy()
        table = [
            {"word": word, "queries": len(at), "first": f, "second": s, "difference": f - s}
            for word, at in sorted(rows.items())
            if LEAST <= len(at) < len(self.queries)
            for f, s in [hits[at].mean(0)]
        ]
        columns = ["word", "queries", "first", "second", "difference"]
        frame = pd.DataFrame(table, columns=columns)
        return frame.sort_values("difference", ascending=False, kind="stable", ignore_index=True)


def changes(data: Prepared, first: Standing, second: Standing, direction: str) -> Changes:
    """Compare two presets query by query. Raises UserError where they share no seed, or one has no
    ranks of the direction."""
    pairs = [
        (outcome, other)
        for outcome in first.played
        for other in second.played
        if outcome.record.seed == other.record.seed
    ]
    if not pairs:
        expected = "a seed that both were played with, with a result"
        raise UserError(f"{first.preset}, {second.preset}", expected, "none", "choose others")
    ranks = [[_ranks(o.folder, direction) for o in of_one] for of_one in zip(*pairs, strict=True)]
    texts = _texts(data, direction)
    stacked = [np.stack([r.to_numpy() for r in of_one]) for of_one in ranks]
    queries = pd.DataFrame({"query": ranks[0][0].index, "text": texts.loc[ranks[0][0].index]})
    for name, ranks_SQ in zip(("first", "second"), stacked, strict=True):
        queries[name] = ranks_SQ.mean(0)
        queries[f"hit_{name}"] = (ranks_SQ == 0).mean(0)
    queries["words"] = [len(tokenise(text)) for text in queries["text"]]
    return Changes(direction=direction, seeds=len(pairs), queries=queries.reset_index(drop=True))


def _ranks(folder, direction: str) -> pd.Series:
    path = folder / "scores/ranks.parquet"
    table = read_parquet(path)
    of_way = table[table["direction"] == direction]
    if not len(of_way):
        known = ", ".join(table["direction"].unique())
        raise UserError(path, f"ranks of {direction}", known or "none", "choose another direction")
    return of_way.set_index("query")["rank"]


def _texts(data: Prepared, direction: str) -> pd.Series:
    """By query: its caption, or the captions of the image."""
    captions = data.captions[data.captions["split"] == "test"]
    if direction in ("t2i", "s2s"):
        return captions.set_index("caption_id")["text"]
    return captions.groupby("image_id", sort=False)["text"].agg(" | ".join)
