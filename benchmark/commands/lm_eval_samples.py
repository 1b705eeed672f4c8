"""Samples that EleutherAI's lm-evaluation-harness logs, as results of queries.

`lm_eval --log_samples` writes samples_TASK_DATE.jsonl: an object for each document, with
doc_id, the names of its metrics in `metrics`, and the value of each under its name. A
document is a query. Of several metrics, or filters of answers, FILE:METRIC or
FILE:METRIC-FILTER names one.
"""

import pandas as pd

from benchmark.core.errors import UserError, short

KEYS = {"doc_id", "metrics", "filtered_resps"}
NO_FILTER = "none"


def are_samples(table: pd.DataFrame) -> bool:
    return set(table) >= KEYS


def as_results(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """A row for each document and metric: query, value and metric. What is no number
    stays as a text, since another metric may be asked for. Raises UserError where no
    metric has numbers, and without a metric."""
    parts = []
    filters = pd.Series(NO_FILTER, table.index)
    if "filter" in table:
        filters = table["filter"].fillna(NO_FILTER)
    names = _metrics(table)
    if not names:
        raise UserError(
            where,
            expected="a metric that every document has",
            found="none",
            do="log the samples of a task that has metrics of each document",
        )
    values_of = {}
    for name in names:
        values_of[name] = pd.to_numeric(table[name], errors="coerce").astype(float)
    if not any(values.notna().all() for values in values_of.values()):
        raise UserError(
            f"{where}: {', '.join(names)}",
            expected="a number for each document",
            found="values that are missing or not numbers",
            do="log the samples of a task that has a number for each document",
        )
    for name, values in values_of.items():
        if values.isna().any():
            values = values.astype(object).where(values.notna(), table[name].map(short))
        for kind in filters.unique():
            is_of_kind = filters == kind
            metric = name if filters.nunique() == 1 else f"{name}-{kind}"
            rows = {"query": table["doc_id"], "value": values}
            parts.append(pd.DataFrame(rows)[is_of_kind].assign(metric=metric))
    return pd.concat(parts, ignore_index=True)


def _metrics(table: pd.DataFrame) -> list[str]:
    """The names that every document has a value of."""
    named: dict[str, None] = {}
    for names in table["metrics"]:
        named |= dict.fromkeys(names)
    return [name for name in named if name in table]
