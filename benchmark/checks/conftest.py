"""What every check of speed begins with."""

import pytest
import torch

from benchmark.core.devices import make_deterministic


@pytest.fixture
def one_thread():
    """torch on one thread, with the same random numbers in every run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    make_deterministic()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)
