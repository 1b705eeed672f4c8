"""What counts: ranks, metrics, the overlap S and fusion of scores. Knows no torch.

Every entry point is imported from here: `from benchmark.protocol import positive_ranks, overlap`.
"""

from benchmark.protocol.distribution_overlap import one_minus_ks, overlap
from benchmark.protocol.metrics import (
    METRICS,
    VERSION,
    Metric,
    table_metrics,
    with_formula_versions,
)
from benchmark.protocol.ranks import (
    CORRECT_IOU,
    RefusedError,
    by_query,
    fold_of,
    has_sibling,
    localisation_ranks,
    positive_ranks,
    ranks_within,
    relevance,
    retrieval_ranks,
    sentence_ranks,
)
from benchmark.protocol.record_metrics import (
    BIN_COUNTS,
    fold_metrics,
    localisation_metrics,
    overlap_interval,
    rank_metrics,
    retrieval_metrics,
    score_metrics,
    summary_metrics,
    tie_metrics,
)

__all__ = [
    "BIN_COUNTS",
    "CORRECT_IOU",
    "METRICS",
    "VERSION",
    "Metric",
    "RefusedError",
    "by_query",
    "fold_metrics",
    "fold_of",
    "has_sibling",
    "localisation_metrics",
    "localisation_ranks",
    "one_minus_ks",
    "overlap",
    "overlap_interval",
    "positive_ranks",
    "rank_metrics",
    "ranks_within",
    "relevance",
    "retrieval_metrics",
    "retrieval_ranks",
    "score_metrics",
    "sentence_ranks",
    "summary_metrics",
    "table_metrics",
    "tie_metrics",
    "with_formula_versions",
]
