"""One thread for all tests: their tensors are too small to share, and runs must agree."""

import torch

torch.set_num_threads(1)
