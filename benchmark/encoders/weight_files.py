"""Files of pretrained weights: plain tensors or nothing."""

import warnings
from pathlib import Path

import torch
from torch import Tensor

from benchmark.core.errors import UserError


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file; anything but plain tensors is refused, never executed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the old format before it refuses it
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types here, depending on what the bytes are
        raise UserError(
            f"{path.name}: expected a state dict of plain tensors, found something that is not "
            f"({type(error).__name__}); save it with torch.save(model.state_dict(), path)"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(x, Tensor) for x in state.values()):
        raise UserError(f"{path.name}: expected a state dict of plain tensors, found other objects")
    return state
