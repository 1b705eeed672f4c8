"""Cells played again: how far they agree with the committed records, and what a report tells."""

import json
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmark.analysis import replays
from benchmark.analysis.replays import Agreement, Played, Replay
from benchmark.core.errors import UserError


def played(rsum: float, seed: int = 0, preset: str = "p", rank: int = 0, **facts) -> Played:
    metrics = {"rsum": rsum} if "status" not in facts else {}
    record = builders.record(preset, seed, dataset="d", metrics=metrics, **facts)
    return Played(record=record, ranks=pd.DataFrame({"query": ["i0"], "rank": [rank]}))


class TestAgreement:
    def test_equal_numbers_and_ranks_are_identical(self):
        assert replays.agreement(played(100), played(100), None) == Agreement.IDENTICAL

    def test_equal_sums_of_other_ranks_are_not(self):
        assert replays.agreement(played(100), played(100, rank=1), 5.0) == Agreement.WITHIN

    @pytest.mark.parametrize(("rsum", "expected"), [(105, "WITHIN"), (106, "OUTSIDE")])
    def test_the_spread_of_seeds_decides(self, rsum, expected):
        assert replays.agreement(played(100), played(rsum), 5.5) == Agreement[expected]
        assert replays.agreement(played(rsum), played(100), 5.5) == Agreement[expected]

    def test_without_a_spread_nothing_is_said(self):
        assert replays.agreement(played(100), played(101), None) == Agreement.UNKNOWN

    def test_what_is_missing_is_named(self):
        failed = played(0, status="failed", reason="r")
        assert replays.agreement(played(100), None, 5.0) == Agreement.FAILED
        assert replays.agreement(played(100), failed, 5.0) == Agreement.FAILED
        assert replays.agreement(failed, failed, 5.0) == Agreement.IDENTICAL
        assert replays.agreement(None, played(100), 5.0) == Agreement.NEW


def test_the_spread_covers_the_difference_of_two_seeds():
    """Simulated: presets of different means and one spread; 95 of 100 differences are within."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        records = [
            played(100 * preset + rng.normal(0, 7), seed, f"p{preset}").record
            for preset in range(3)
            for seed in range(3)
        ]
        first, second = rng.normal(0, 7, 2)
        hits += abs(first - second) <= replays.spreads(records)["d", "retrieval"]
    low, high = stats.binom.interval(0.999, 400, 0.95)
    assert low <= hits <= high


def test_the_tasks_of_a_dataset_have_spreads_of_their_own():
    near = [played(100.0 + seed, seed).record for seed in range(2)]
    far = [played(100.0 + 9 * seed, seed, task="localisation").record for seed in range(2)]
    spreads = replays.spreads([*near, *far])
    assert spreads["d", "localisation"] == pytest.approx(9 * spreads["d", "retrieval"])


def test_one_seed_has_no_spread():
    assert replays.spreads([played(1.0, preset=name).record for name in "abc"]) == {}


def test_a_noted_replay_takes_the_place_of_one_on_such_a_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert replays.read_replays("try") == []
    facts = {"machine": "m", "cells": 2}
    for fingerprint, count in (("a", 1), ("b", 1), ("a", 2)):
        counts = {str(Agreement.IDENTICAL): count}
        replays.note_replay("try", Replay(fingerprint=fingerprint, agreements=counts, **facts))
    kept = [(r.fingerprint, r.agreements["identical"]) for r in replays.read_replays("try")]
    assert kept == [("b", 1), ("a", 2)]
    file = Path("results/try/replays.json")
    file.write_text(json.dumps({"replays": [{"machine": "m"}]}))
    with pytest.raises(UserError, match=r"replays.json: fingerprint: expected a value"):
        replays.read_replays("try")


# Tasks that need each other --------------------------------------------------------------------
