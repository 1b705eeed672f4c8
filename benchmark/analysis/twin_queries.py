"""The score of a cell without the queries of test pictures that have a twin in another split.

The gallery stays whole, since a cell keeps the ranks of its queries and no scores: what is left out
is asked about no more, but may still be found. Cards name the nearest pairs of pictures only, so
there may be more twins than are named here. Knows no torch.
"""

from collections.abc import Collection
from functools import lru_cache
from statistics import fmean

import numpy as np

from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.data import prepared_tables
from benchmark.protocol.metrics import Metric, query_terms

TEST = "test: "  # how cards begin the name of a test picture


def named_twins(card: dict) -> frozenset[str]:
    """Files of the test pictures that the card names as twins of one in another split."""
    leakage = card.get("leakage", {})
    groups = [
        *leakage.get("pictures", []),
        *(near[:2] for near in leakage.get("near_pictures", [])),
    ]
    names = [name for group in groups for name in group]
    return frozenset(name.removeprefix(TEST) for name in names if name.startswith(TEST))


def twins_in_all(card: dict) -> int:
    """How many test pictures have a twin, named or not: equal ones are near ones, too."""
    items = card.get("leakage", {}).get("items", {})
    kinds = ("pictures", "near_pictures")
    return max((items.get(kind, {}).get("test", 0) for kind in kinds), default=0)


def without_twins(board: Board, standing: Standing, metric: str) -> float | None:
    """A mean over queries, or rsum, over the queries of other pictures; mean over the seeds. None
    where no query is left."""
    twins = named_twins(board.card)
    values = [_value(outcome, board.dataset, metric, twins) for outcome in standing.played]
    return None if None in values else fmean(values)


def _value(outcome: Outcome, dataset: str, metric: str, twins: Collection[str]) -> float | None:
    means = [
        _mean(outcome, dataset, term, twins) for term in query_terms(metric, outcome.record.metrics)
    ]
    return None if not means or None in means else sum(means)


def _mean(outcome: Outcome, dataset: str, term: Metric, twins: Collection[str]) -> float | None:
    owners_Q = _pictures(dataset)[term.direction]
    is_kept_Q = ~np.isin(owners_Q, list(twins))
    ranks_Q = outcome.ranks(term.ranks)
    return float(term.of_queries(ranks_Q[is_kept_Q]).mean()) if is_kept_Q.any() else None


@lru_cache(maxsize=8)
def _pictures(dataset: str) -> dict[str, np.ndarray]:
    """Direction -> the file of the picture of each test query, in the split's order."""
    data = prepared_tables.read(dataset)
    tested = data.images[data.images["split"] == "test"].set_index("image_id")["file"]
    captions = data.captions.loc[data.captions["split"] == "test", "image_id"]
    phrases = data.regions.loc[data.regions["image_id"].isin(tested.index), "image_id"]
    return {
        "i2t": tested.to_numpy(),
        "t2i": tested.loc[captions].to_numpy(),
        "p2r": tested.loc[phrases].to_numpy(),
    }
