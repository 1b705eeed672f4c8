"""docs/speed.md agrees with the files of measurements; its hours are those of sums done by hand."""

import pytest

from benchmark.checks import extrapolation
from benchmark.checks.extrapolation import PAGE, hours, marked, page


def test_the_page_shows_what_was_measured():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_hours_are_operations_and_pairs_over_rates(monkeypatch):
    """A peak of 1e12, half of it reached; 2e6 pairs of a second of 1e-3, half of it products."""
    monkeypatch.setattr(extrapolation, "PEAK", 1e12)
    monkeypatch.setattr(extrapolation, "SHARE", 0.5)
    sizes = [{"images": 1000, "captions": 2000, "product_seconds": 1.0, "seconds": 2.0}]
    single, many = hours(sizes, 1), hours(sizes, 64)
    pairs = 1e6 * 5e6
    assert single["product of 256 numbers"] == pytest.approx(2 * pairs * 512 / 0.5e12 / 3600)
    operations = 2 * pairs * 36 * 12.5 * 2 * 1024
    assert single["SCAN's region-word product"] == pytest.approx(operations / 0.5e12 / 3600)
    assert single["what follows, on the host"] == pytest.approx(pairs * 1.0 / 2e6 / 16 / 3600)
    assert single["scores to the host"] == pytest.approx(2 * pairs * 4 / 64e9 / 3600)
    assert many == pytest.approx({name: value / 64 for name, value in single.items()})


def test_a_page_without_a_mark_is_refused():
    with pytest.raises(ValueError, match="speed.md"):
        marked("sizes", "no mark", "table")
