"""What `score` prints beside its numbers."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from external_files import embeddings, save_pair, score
from report_seasons import CAPTIONS, IMAGES

from benchmark.commands.score_report import ScoreReport
from benchmark.core.files import read_json, write_json
from benchmark.data.rank_keys import OWN, RankKey
from benchmark.scoring.metrics import METRICS

pytestmark = pytest.mark.usefixtures("external_season")


def test_ties_and_twins_are_told(capsys):
    card = Path("data/cards/open/card.json")
    write_json(card, read_json(card) | {"twins": {"images": 3, "captions": 5}})
    images, captions = embeddings(0.01)
    images[1], captions[2:4] = images[0], captions[0]
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "twins in test: 3 images, 5 captions" in told
    assert "ties: i2t R@1 83.33 as misses, 100.00 as hits, 91.67 on average" in told


def test_programs_get_the_numbers_that_readers_get(capsys):
    files = save_pair(*embeddings(0.1))
    assert score(*files) == 0
    told = capsys.readouterr().out
    assert score(*files, "--format", "json") == 0
    printed = capsys.readouterr()
    facts = json.loads(printed.out)
    assert (facts["images"], facts["captions"]) == (IMAGES, CAPTIONS)
    means = [each for each in facts["means"] if each["layer"] == OWN]
    by_metric = {each["metric"]: each for each in means}
    for name, each in by_metric.items():
        ends = f"[{each['low']:.2f}, {each['high']:.2f}]"
        line = f"{METRICS[name].heading:16} {each['value']:6.2f}  {ends}"
        assert (name == "rsum") != (line in told)
    rsum = by_metric["rsum"]
    assert f"{rsum['value']:.1f} [{rsum['low']:.1f}, {rsum['high']:.1f}]" in told
    assert all(note in told for note in facts["notes"])
    assert "next: " in printed.err and "next: " in told  # not among the facts


def test_the_most_of_a_recall_takes_what_nobody_judged_for_right():
    judged = np.array([[-1, 0, -1], [-1, -1, 1], [1, -1, -1], [-1, -1, -1]])
    pairs = SimpleNamespace(judged=lambda items: judged)
    result = SimpleNamespace(retrieved={"t2i": None})
    made = SimpleNamespace(
        external=SimpleNamespace(result=result), layers={"crowd": {"t2i": pairs}}
    )
    key = RankKey("t2i", "crowd")
    most = [ScoreReport._most(made, key, k) for k in (1, 2, 3)]
    assert most == [25.0, 50.0, 75.0]


def test_a_doubt_fits_what_was_seen(capsys):
    images, captions = embeddings(0.1)
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "chance" not in told and "replacing" not in told
    mixed = np.random.default_rng(3).permutation(CAPTIONS)
    assert score(*save_pair(images, captions[mixed])) == 0
    told = capsys.readouterr().out
    assert "replacing the row" in told
    assert "near chance: rsum " in told and "or give ids" in told
    np.save("m.npy", np.linalg.norm(images[:, None] - captions, axis=2))
    assert score("--matrix", "m.npy") == 0
    told = capsys.readouterr().out
    assert "rsum 0.0, random 266.7; are these distances?" in told
    assert score(*save_pair(images, -captions)) == 0
    assert (
        "far below chance" in (told := capsys.readouterr().out) and "negated?" in told
    )
