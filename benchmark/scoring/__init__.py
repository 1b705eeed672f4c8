"""What counts: relevance, ranks, metrics, the overlap S, fusion of scores; and what
models are fed.

Counting imports no torch. What other rooms need most is imported from here.
"""

from benchmark.scoring.metrics import METRICS as METRICS
from benchmark.scoring.metrics import table_metrics as table_metrics
from benchmark.scoring.ranking import CORRECT_IOU as CORRECT_IOU
from benchmark.scoring.ranking import RefusedError as RefusedError
