"""The score of a cell without the queries of test pictures that have a twin in another split.

The gallery stays whole, since a cell keeps the ranks of its queries and no scores: what is left out
is asked about no more, but may still be found. Cards name the nearest pairs of pictures only, so
there may be more twins than are named here. Knows no torch.
"""

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
    twins = list(named_twins(board.card))
    pictures = _pictures(board.dataset)
    is_kept = {way: ~np.isin(files_Q, twins) for way, files_Q in pictures.items()}
    values = [_value(outcome, metric, is_kept) for outcome in standing.played]
    return None if None in values else fmean(values)


def _value(outcome: Outcome, metric: str, is_kept: dict[str, np.ndarray]) -> float | None:
    terms = query_terms(metric, outcome.record.metrics)
    if not terms or not all(is_kept[term.direction].any() for term in terms):
        return None
    return sum(_mean(outcome.ranks(term.ranks)[is_kept[term.direction]], term) for term in terms)


def _mean(ranks_Q: np.ndarray, term: Metric) -> float:
    return float(term.of_queries(ranks_Q).mean())


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
