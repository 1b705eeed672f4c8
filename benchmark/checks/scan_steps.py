"""SCAN's training step beside the authors' way, and beside its own products; without the optimiser,
which is the same.

    python -m benchmark.checks.scan_steps t2i | i2t

prints both ratios as JSON. `pytest benchmark/` runs it in a process that computes as is fastest on
the machine: the authors' code knows no other way, and with the slow products of portable numerics
nothing but products counts.
"""

import json
import sys
from functools import partial

import torch

from benchmark.checks.interleaved_runs import minima, timed
from benchmark.checks.scan_references import authors_loss, scan_batch, scan_model
from benchmark.checks.step_products import over_products
from benchmark.core import numerics
from benchmark.core.devices import make_deterministic

ROUNDS, OWN = 3, 3  # rounds of one step in the authors' way among some of this project


def measured(direction: str) -> dict[str, float]:
    torch.manual_seed(0)
    make_deterministic()
    model, batch = scan_model(direction), scan_batch()

    def backward(loss) -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()

    own = partial(backward, lambda: sum(model.loss(batch).values()))
    slow = partial(backward, partial(authors_loss, direction, model, batch))
    own()
    rounds = [[min(timed(own) for _ in range(OWN)), timed(slow)] for _ in range(ROUNDS)]
    fastest_own, fastest_slow = minima(rounds)
    return {
        "seconds": round(fastest_own, 3),
        "times_faster": round(fastest_slow / fastest_own, 2),
        "over_products": round(min(over_products(own) for _ in range(OWN)), 2),
        "numerics": numerics.current().mode,
    }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
