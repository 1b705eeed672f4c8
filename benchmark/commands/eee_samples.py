"""Samples of Every Eval Ever (instance-level records, schema 0.3.0), as results of
queries.

A .jsonl file has an object for each sample and result of an evaluation. A sample is a
query, `evaluation.score` its value. `evaluation_result_id`, or `evaluation_name` where
that is missing, is the metric: FILE:METRIC names one of several. A query has the mean of
its lines. In what `rematch export --format eee --samples` writes, `metadata` has the
training, the cluster and the direction of a query, too.

Source: https://github.com/evaleval/every_eval_ever.
"""

from pathlib import Path

import pandas as pd
from pydantic import BaseModel, FiniteFloat

from benchmark.boards.eee_export import PREFIX
from benchmark.core import files
from benchmark.core.errors import UserError, checked
from benchmark.features.embedding_files import MOST_TEXT, json_lines

ENDING = ".jsonl"
KEYS = {"evaluation_id", "model_id", "evaluation_name", "sample_id", "evaluation"}
CORRECT = "correct the file"
OF_QUERY = ("seed", "cluster", "direction")  # in metadata, with PREFIX


class Evaluation(BaseModel):
    score: FiniteFloat


class Sample(BaseModel):
    evaluation_id: str
    model_id: str
    evaluation_name: str
    evaluation_result_id: str | None = None
    sample_id: str
    evaluation: Evaluation
    metadata: dict[str, str] | None = None

    @property
    def metric(self) -> str:
        return self.evaluation_result_id or self.evaluation_name


def are_samples(path: Path) -> bool:
    """Whether the first line that is not blank is such a sample. Raises as
    files.opened."""
    if path.suffix.lower() != ENDING:
        return False
    with files.opened(path) as file:
        line = file.readline(MOST_TEXT)
        while line.isspace():
            line = file.readline(MOST_TEXT)
    try:
        row = files.parse_json(line.decode("utf-8-sig"), path, CORRECT)
    except (UserError, UnicodeDecodeError):
        return False  # the reader of other tables says what is wrong
    return isinstance(row, dict) and row.keys() >= KEYS


def as_results(path: Path) -> pd.DataFrame:
    """A row for each query, metric and, where they are known, seed: query, value,
    metric, and what `metadata` has of OF_QUERY. Raises UserError for a line that is no
    sample, for samples of several evaluations, and for such a key that only some
    have."""
    samples = [checked(Sample, row, where) for where, row in json_lines(path)]
    for key in ("evaluation_id", "model_id"):
        named = dict.fromkeys(getattr(sample, key) for sample in samples)
        if len(named) > 1:
            raise UserError(
                f"{path}: {key}",
                expected="samples of one evaluation of one model",
                found=", ".join(named),
                do="write each into a file of its own",
            )
    known = []
    for name in OF_QUERY:
        key = PREFIX + name
        having = [sample for sample in samples if key in (sample.metadata or {})]
        if having:
            known.append(name)
        if having and len(having) < len(samples):
            raise UserError(
                f"{path}: metadata: {key}",
                expected="it in every sample, or in none",
                found=f"it in {len(having)} of {len(samples)}",
                do="add it to the others, or leave it out",
            )
    rows = []
    for sample in samples:
        of_query = {}
        for name in known:
            of_query[name] = sample.metadata[PREFIX + name]
        value = {"query": sample.sample_id, "value": sample.evaluation.score}
        rows.append(value | {"metric": sample.metric} | of_query)
    columns = ["query", "metric", *known]
    table = pd.DataFrame(rows)
    return table.groupby(columns, sort=False, as_index=False)["value"].mean()
