"""The single queries of a row as samples of Every Eval Ever (instance-level records,
schema 0.3.0): a line of JSON for each seed, direction and query.

The score is the hit at the first place, 100 or 0, so that its mean is R@1 of the
aggregate file. `output.raw` is the rank, from 0, of the best right item. Images and
captions may be closed to others: `input.raw` is the id of the query, and `reference` the
image, person or other group whose items are right.

Source: https://github.com/evaleval/every_eval_ever.
"""

import json
from collections.abc import Iterator, Mapping

import pandas as pd

from benchmark.boards.boards import Outcome, Row
from benchmark.data.rank_keys import OWN, RankKey
from benchmark.scoring.metrics import METRICS

SCHEMA = "0.3.0"
PREFIX = "rematch."  # of keys in metadata
HIT, MISS = 100.0, 0.0
R1 = "r1"


def lines_of(
    row: Row,
    dataset: str,
    of_evaluation: Mapping[str, str],
    queries: Mapping[RankKey, pd.DataFrame],
) -> Iterator[str]:
    """`of_evaluation` has what all lines share: evaluation_id, model_id and
    evaluation_name. `queries` has the columns query and cluster, (Q,) in the order of
    the ranks."""
    for outcome in row.played:
        for key, ranks in outcome.scores.ranks.items():
            metric = f"{key.direction}_{R1}"
            if key.layer != OWN or key.is_of_folds or metric not in METRICS:
                continue
            shared = {
                "schema_version": SCHEMA,
                "evaluation_result_id": f"{dataset}.{metric}",
                "interaction_type": "single_turn",
                **of_evaluation,
            }
            table = queries[key]
            facts = zip(table["query"], table["cluster"], ranks.best, strict=True)
            for query, cluster, rank in facts:
                metadata = _metadata(outcome, key, str(cluster))
                sample = _sample(str(query), str(cluster), int(rank))
                line = shared | sample | {"metadata": metadata}
                yield json.dumps(line, sort_keys=True, ensure_ascii=False)


def _metadata(outcome: Outcome, key: RankKey, cluster: str) -> dict[str, str]:
    return {
        f"{PREFIX}seed": str(outcome.record.seed),
        f"{PREFIX}direction": key.direction,
        f"{PREFIX}cluster": cluster,
    }


def _sample(query: str, cluster: str, rank: int) -> dict:
    answer = {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": str(rank),
        "extraction_method": "rank_of_best_right_item",
        "is_terminal": True,
    }
    score = HIT if rank == 0 else MISS
    return {
        "sample_id": query,
        "input": {"raw": query, "reference": [cluster]},
        "output": {"raw": [str(rank)]},
        "answer_attribution": [answer],
        "evaluation": {"score": score, "is_correct": rank == 0},
    }
