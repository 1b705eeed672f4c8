"""Whether a record and its costs can be reported: kinds and ranges of what they hold, and whether
the metrics follow from the ranks. Knows no torch.
"""

from collections.abc import Mapping
from math import isclose
from typing import Annotated

import pandas as pd
from pydantic import Field

from benchmark.core.errors import UserError, checked
from benchmark.core.json_objects import Facts
from benchmark.core.provenance import Provenance
from benchmark.core.records import Record
from benchmark.protocol import METRICS, rank_metrics
from benchmark.protocol.metrics import rsum_terms
from benchmark.protocol.record_metrics import INTERVAL_ENDS
from benchmark.season.parameters import BROUGHT

CLOSE = 1e-6  # of metrics computed again: sums may be added in another order
Number = int | float


class Weights(Facts):
    file: str = ""
    sha256: str = ""


class ImageFacts(Facts):
    encoder: str = ""
    weights: Weights = Weights()


class Words(Facts):
    vocabulary: Annotated[int, Field(ge=0)]


class Vectors(Facts):
    encoder: str
    vectors: str = ""


class Computed(Facts):
    mode: str
    threads: Annotated[int, Field(ge=1)]
    fingerprint: str


class Reported(Facts):
    """What a report reads of the free parts of a record."""

    parameters: Annotated[int, Field(ge=0)]
    image_features: ImageFacts
    files: dict[Annotated[str, Field(pattern=r"^[a-z]+/[a-z]+\.[a-z]+$")], str]


class Measured(Facts):
    """The metrics that are no number."""

    overlap_range: Annotated[list[Number], Field(min_length=2, max_length=2)] = [0, 0]
    alpha: Number = 0
    formula_versions: dict[str, int] = {}
    fold_values: dict[str, Annotated[list[Number], Field(min_length=1)]] = {}


def check_kinds(record: Record, where: str) -> None:
    """Raises UserError where a free part of a record is not what a report reads."""
    checked(Reported, record.model_dump(), where)
    text = record.text_features
    if text:
        kind = Words if "vocabulary" in text else Vectors
        checked(kind, text, f"{where}: text_features")
    if record.numerics:
        checked(Computed, record.numerics, f"{where}: numerics")
    checked(Measured, record.metrics, f"{where}: metrics")
    for name, value in record.metrics.items():
        if name in METRICS or name in INTERVAL_ENDS:
            _check_number(f"{where}: metrics.{name}", value, *_range(name))


def check_complete(record: Record, card: dict, where: str) -> None:
    """Raises UserError where a record with a result lacks a metric that every report shows."""
    folds = card.get("folds", 1)
    is_of_ranks = record.family == BROUGHT and record.options.get("given") == "ranks"
    ways = card.get("ways", ("i2t", "t2i"))
    needed = ["rsum", *rsum_terms(ways)] if is_of_ranks else _needed(record.task, ways, folds)
    for name in needed:
        if name not in record.metrics:
            raise UserError(f"{where}: metrics.{name}", "a metric of every record", "nothing")
    for name, values in record.metrics.get("fold_values", {}).items():
        if len(values) != folds:
            where_fold = f"{where}: metrics.fold_values.{name}"
            raise UserError(where_fold, f"{folds} folds as on the card", len(values))


def check_agreement(record: Record, ranks: pd.DataFrame, where: str) -> None:
    """Raises UserError where a metric does not follow from the ranks, whose digest the record
    lists: its own numbers were changed."""
    expected: dict[str, float] = {}
    for direction, of_direction in ranks.groupby("direction", sort=False):
        if not direction.endswith("_fold"):
            expected |= rank_metrics(direction, of_direction["rank"].to_numpy())
    terms = [term for term in rsum_terms(("i2t", "t2i", "p2r")) if term in expected]
    expected["rsum"] = sum(expected[term] for term in terms)
    for name, value in expected.items():
        recorded = record.metrics.get(name)
        if recorded is not None and not isclose(recorded, value, rel_tol=CLOSE, abs_tol=CLOSE):
            expectation = f"{value:.6g}, which follows from scores/ranks.parquet"
            raise UserError(f"{where}: metrics.{name}", expectation, recorded)


def check_cost(facts: Provenance, where: str, needed: tuple[str, ...]) -> None:
    """Raises UserError for costs without these durations or below zero."""
    for name in needed:
        if name not in facts.seconds:
            raise UserError(f"{where}: seconds.{name}", "a duration", "nothing")
    if "torch" not in facts.packages:
        raise UserError(f"{where}: packages.torch", "its version", "nothing")
    costs: Mapping[str, Number] = {
        **{f"seconds.{name}": value for name, value in facts.seconds.items()},
        "peak_memory_mib": facts.peak_memory_mib,
        "peak_device_memory_mib": facts.peak_device_memory_mib or 0,
    }
    for name, value in costs.items():
        _check_number(f"{where}: {name}", value, 0, float("inf"))


def durations(record: Record) -> tuple[str, ...]:
    """What a report needs to know the time of."""
    if record.status != "ok" or record.family == BROUGHT:
        return ()
    if record.task == "localisation":
        return ("per_pair",)
    return ("per_pair", "per_image" if "i2t_r1" in record.metrics else "per_caption")


def _needed(task: str, ways: list[str], folds: int) -> list[str]:
    if task == "localisation":
        return ["rsum", *rsum_terms(["p2r"]), "p2r_bound", "p2r_chance_r1"]
    gaps = [f"{way}_r1_tie_gap" for way in ways]
    names = ["rsum", *rsum_terms(ways), *gaps, "overlap_s", "one_minus_ks", "overlap_range"]
    return [*names, *(["fold_rsum", "fold_values"] if folds > 1 else [])]


def _range(name: str) -> tuple[float, float]:
    return METRICS["overlap_s"].range if name in INTERVAL_ENDS else METRICS[name].range


def _check_number(where: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    if not is_number or not low - CLOSE <= value <= high + CLOSE:
        raise UserError(where, f"a number from {low:g} to {high:g}", repr(value)[:60])
