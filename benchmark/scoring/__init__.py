"""What counts: relevance, ranks, metrics, the overlap S, fusion of scores; and what models are fed.

Counting knows no torch. What other rooms need most is imported from here.
"""

from benchmark.scoring.metrics import METRICS, VERSION, Metric, table_metrics
from benchmark.scoring.ranking import CORRECT_IOU, RefusedError

__all__ = [
    "CORRECT_IOU",
    "METRICS",
    "VERSION",
    "Metric",
    "RefusedError",
    "table_metrics",
]
