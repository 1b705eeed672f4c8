"""Scores, cosines and losses in float32 or better, whatever computes the networks
before them.

A bfloat16 has 8 bits: cosines near 1 move in steps of 0.004, so that a million scores
become hundreds of different ones, and ties count against a method.
"""

from collections.abc import Callable
from functools import wraps

import torch
import torch.nn.functional as F
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """The same numbers as float32 or better."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def unit(x: Tensor) -> Tensor:
    """Vectors (..., D) of length 1, in float32 or better."""
    return F.normalize(wide(x), dim=-1)


def in_float32(function: Callable) -> Callable:
    """Decorates what computes scores: its tensors arrive in float32 or better, and
    autocast is off."""

    @wraps(function)
    def computed(*arguments):
        widened = _widened(arguments)
        tensors = (x[0] if isinstance(x, tuple) else x for x in widened)
        device = next(x.device.type for x in tensors if isinstance(x, Tensor))
        if not torch.amp.is_autocast_available(device):  # as on "meta"
            return function(*widened)
        with torch.autocast(device, enabled=False):
            return function(*widened)

    return computed


def _widened(argument):
    """Tensors, and tuples of them; anything else stays as it is."""
    if isinstance(argument, tuple):
        return tuple(_widened(x) for x in argument)
    is_number = isinstance(argument, Tensor) and argument.is_floating_point()
    return wide(argument) if is_number else argument
