"""What curves of validation tell: rising at the end, best early."""

import pytest

from benchmark.boards import training_curves


def history(values: list[float], rates: list[float] | None = None) -> dict:
    columns = {"epoch": list(range(1, len(values) + 1)), "val_rsum": values}
    return columns if rates is None else columns | {"learning_rate": rates}


def test_the_gain_is_that_of_a_line_through_the_last_third():
    """Nine epochs: the last three rise by 2 each, of 100 at most; at least three
    count."""
    assert training_curves.gain(
        history([10, 60, 90, 94, 95, 95, 96, 98, 100])
    ) == pytest.approx(4 / 100)
    assert training_curves.gain(history([70, 80, 90, 100])) == pytest.approx(20 / 100)
    assert training_curves.gain(history([50, 100])) == pytest.approx(50 / 100)
    for made in (history([50]), history([0, 0, 0]), {}, {"loss": [1.0, 0.5]}):
        assert training_curves.is_rising(made) is None


def test_a_jump_at_the_last_change_of_the_rate_says_nothing():
    values = [60, 70, 80, 80, 80, 80, 99, 100, 100]
    assert training_curves.gain(history(values)) == pytest.approx(1 / 100)
    steps = [1.0] * 5 + [0.1] * 4
    assert training_curves.gain(
        history([*values[:5], 95, 100, 100, 100], steps)
    ) == pytest.approx(0.0)
    steps = [1.0] * 7 + [0.1] * 2  # two epochs are too few to tell
    rising = history([60, 70, 80, 80, 80, 80, 90, 95, 100], steps)
    assert training_curves.gain(rising) == pytest.approx(10 / 100)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([90, 100, 98, 97, 96, 95, 94, 93], True),
        ([90, 98, 100, 97, 96, 95, 94, 93], False),  # the third of eight
        ([90, 100, 98, 97, 97, 98, 99, 99.5], False),  # came back
        ([90, 100, 98], None),
        ([0, 0, 0, 0], None),
    ],
)
def test_best_early_is_the_first_quarter_and_a_fall(values, expected):
    assert training_curves.is_early(history(values)) is expected
