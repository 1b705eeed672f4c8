"""How rows get to the device that computes, without making it wait.

Indices of a whole epoch cross once. Arrays lie on the device where they fit; rows of the others
are gathered on the host, one batch ahead.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

SHARE = 0.5  # of a device's free memory that one array may take; networks need the rest


def resident(values: Tensor, device: torch.device) -> Tensor:
    """The values on the device, if they fit there; else as they are, on the host."""
    return values.to(device) if fits(values.nbytes, device) else values


def fits(size: int, device: torch.device) -> bool:
    """Whether so many bytes can lie on the device beside what it computes."""
    return device.type != "cuda" or size <= SHARE * torch.cuda.mem_get_info(device)[0]


def sent(parts: list[np.ndarray], device: torch.device) -> tuple[Tensor, ...]:
    """Arrays of one dimension, on the device, in one copy that nobody waits for."""
    whole = moved(torch.from_numpy(np.concatenate(parts)), device)
    return whole.split([len(part) for part in parts])


def moved(values: Tensor, device: torch.device) -> Tensor:
    """Values of the host on the device: nobody waits for the copy, nor for work before it."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def ahead(gather: Callable, items: Iterable) -> Iterator:
    """What `gather` gives for each item; a thread gathers the next one while this one is used."""
    with ThreadPoolExecutor(max_workers=1) as worker:
        coming = None
        for item in items:
            following = worker.submit(gather, item)
            if coming is not None:
                yield coming.result()
            coming = following
        if coming is not None:
            yield coming.result()
