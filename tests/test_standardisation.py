"""Zero mean and unit deviation per channel, whatever the blocks."""

import numpy as np
import pytest

from benchmark.data.feature_folders import as_float16
from benchmark.features import standardisation
from benchmark.features.standardisation import Standardiser, write_standardised


def rows_of() -> np.ndarray:
    """(50, 4, 3) float32; the second channel never changes."""
    rows = np.random.default_rng(0).normal(3, 2, (50, 4, 3)).astype(np.float32)
    rows[..., 1] = 7
    return rows


def test_a_channel_of_almost_zeros_is_not_scaled_up():
    rows = np.zeros((1000, 2), np.float16)
    rows[0, 0] = 1e-6
    assert Standardiser.of(rows, np.ones(1000, bool)).deviation.tolist() == [1, 1]


def test_deviations_are_exact_far_from_zero():
    # the mean of squares minus the square of the mean would have no digit left
    rows = 1e8 + np.array([[0.0], [1.0]]).repeat(50, axis=0)
    standardiser = Standardiser.of(rows, np.ones(100, bool))
    np.testing.assert_allclose(standardiser.deviation, [0.5], rtol=1e-6)


def test_in_another_order_the_same_rows_are_set_to_zero(tmp_path):
    rows = np.array([[1.0], [3.0], [1.0], [3.0]], np.float32)
    np.save(tmp_path / "raw.npy", rows)
    write_standardised(
        tmp_path / "raw.npy",
        tmp_path / "out.npy",
        Standardiser.of(rows, np.ones(4, bool)),  # mean 2, deviation 1
        kept=np.array([False, True, True, True]),
        order=np.array([3, 2, 0, 1]),
    )
    assert np.load(tmp_path / "out.npy").tolist() == [[1], [-1], [0], [1]]


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_a_file_is_standardised_by_the_rows_that_count(tmp_path, monkeypatch, block):
    monkeypatch.setattr(standardisation, "BLOCK", block)
    rows, rng = rows_of(), np.random.default_rng(1)
    counted, kept = rng.random((2, 50, 4)) < 0.5
    np.save(tmp_path / "raw.npy", rows)
    write_standardised(
        tmp_path / "raw.npy", tmp_path / "out.npy", Standardiser.of(rows, counted), kept
    )
    standardised, measured = (
        np.load(tmp_path / "out.npy"),
        rows[counted].astype(np.float64),
    )
    expected = (rows - measured.mean(0)) / np.where(
        measured.std(0) > 0, measured.std(0), 1
    )
    assert standardised.dtype == np.float16 and standardised.shape == rows.shape
    np.testing.assert_allclose(
        standardised[kept], as_float16(expected)[kept], atol=2e-3
    )
    assert not standardised[~kept].any() and standardised[kept][:, 0].any()
