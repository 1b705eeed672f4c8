"""SCAN's training step beside the authors' way, and beside its own products; without the optimiser,
which is the same.

    python -m benchmark.checks.scan_steps t2i | i2t

prints the ratios as JSON: of whole steps, and of what each takes beyond the encoders (GRU,
projection and their gradients), which both ways share and whose weight differs from processor to
processor. `pytest benchmark/` runs it in a process that computes as is fastest on the machine: the
authors' code knows no other way, and with the slow products of portable numerics nothing but
products counts.
"""

import json
import sys
from functools import partial

import torch
from torch import Tensor

from benchmark.checks.interleaved_runs import minima, timed
from benchmark.checks.scan_references import authors_loss, scan_batch, scan_model
from benchmark.checks.step_products import over_products
from benchmark.core import numerics
from benchmark.core.devices import make_deterministic
from methods import Batch, scan

ROUNDS, OWN = 3, 6  # rounds of one long step in the authors' way among short ones of this project


def measured(direction: str) -> dict[str, float]:
    torch.manual_seed(0)
    make_deterministic()
    model, batch = scan_model(direction), scan_batch()

    def backward(loss) -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()

    own = partial(backward, lambda: sum(model.loss(batch).values()))
    slow = partial(backward, partial(authors_loss, direction, model, batch))
    encode = partial(backward, partial(encoded, model, batch))
    own()
    rounds = [
        [min(timed(own) for _ in range(OWN)), min(timed(encode) for _ in range(OWN)), timed(slow)]
        for _ in range(ROUNDS)
    ]
    fastest_own, encoders, fastest_slow = minima(rounds)
    return {
        "seconds": round(fastest_own, 3),
        "encoders": round(encoders, 3),
        "times_faster": round(fastest_slow / fastest_own, 2),
        "times_faster_beyond": round((fastest_slow - encoders) / (fastest_own - encoders), 2),
        "over_products": round(min(over_products(own) for _ in range(OWN)), 2),
        "numerics": numerics.current().mode,
    }


def encoded(model: scan.Model, batch: Batch) -> Tensor:
    """A number whose gradient passes through both encoders."""
    return (
        model.encode_images(batch.images)[0].sum() + model.encode_captions(batch.captions)[0].sum()
    )


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
