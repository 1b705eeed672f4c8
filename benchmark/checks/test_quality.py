"""What was played must be far better than chance: `pytest benchmark/`.

A method that broke without raising falls to chance; an unlucky seed does not.
"""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted(ROOT.glob("results/*/*/*/*/record.json"))
BETTER_THAN_CHANCE = 10


def chance(images: int, captions: int) -> float:
    """rsum that random scores expect, with as many captions for every image; a little more."""
    per_image = captions / images
    return sum(100 * k / images + 100 * k * per_image / captions for k in (1, 5, 10))


def test_something_was_played():
    if not RECORDS:
        pytest.skip("no season was played here: make repro")
    assert all(path.stat().st_size for path in RECORDS)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: "-".join(path.parts[-5:-1]))
def test_every_cell_is_far_better_than_chance(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["status"] == "ok", record["reason"]
    expected = chance(record["images"], record["captions"])
    assert record["metrics"]["rsum"] > BETTER_THAN_CHANCE * expected
