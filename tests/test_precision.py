"""Scores are computed in float32 or better, whatever comes before."""

import pytest
import torch

from benchmark.layers.precision import in_float32, unit, wide


@pytest.mark.parametrize(
    ("kind", "wider"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_numbers_get_no_narrower(kind, wider):
    assert wide(torch.ones(2, dtype=kind)).dtype == wider
    assert unit(torch.ones(2, 3, dtype=kind)).dtype == wider


def test_autocast_is_off_inside_and_other_arguments_stay():
    @in_float32
    def product(pair: tuple, ids: torch.Tensor, k: int) -> torch.Tensor:
        assert ids.dtype == torch.int64 and k == 3
        return pair[0] @ pair[1]

    x = torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        assert product((x, x), torch.arange(2), 3).dtype == torch.float32
