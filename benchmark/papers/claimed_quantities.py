"""What a claim can be about: a metric, or one metric minus another ("t2i_r1 - i2t_r1").

A claim such as "above all at finding images" compares presets by such a difference; a claim about
a single model, such as "matched pairs are more similar than unmatched ones", asks whether its own
difference is above zero. Two quantities are of no record: they are computed from the samples for
figures.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from benchmark.scoring import METRICS
from benchmark.scoring.metrics import TIMES, Metric

MINUS = " - "
POINTS_OF_A_RECALL = 1.0  # a difference of recalls that nobody would call one


SAMPLED = {  # instance-loss paper, figure 4; a record has them in `sampled`
    name: Metric(
        name=name,
        heading=f"correlation of image {what}",
        unit="correlation",
        range=(-1.0, 1.0),
        formula=f"mean Pearson correlation of the {what} of two sampled images",
        compute=float,
        decimals=3,
        less_is_better=True,
        in_tables=False,
    )
    for name, what in (("correlation_before", "features"), ("correlation_after", "embeddings"))
}
PER_EPOCH = Metric(  # SCAN, table 5 has the time of a batch, which no training measures
    name="per_epoch",
    heading="train an epoch (s)",
    unit="s",
    range=(0.0, np.inf),
    formula="duration of a training with its validations, over its epochs",
    compute=lambda seconds, epochs: seconds / epochs,
    decimals=1,
    less_is_better=True,
    in_tables=False,
)
_OF_NO_RECORD = SAMPLED | {"per_epoch": PER_EPOCH}


@cache
def quantity(name: str) -> Metric:
    """What a claim names, with heading and decimals. Raises KeyError for a name that is none."""
    first, minus, second = name.partition(MINUS)
    if not minus:
        return _OF_NO_RECORD[name] if name in _OF_NO_RECORD else METRICS[name]
    return replace(
        quantity(first),
        name=name,
        heading=f"{quantity(first).heading}{MINUS}{quantity(second).heading}",
        range=(-np.inf, np.inf),
        less_is_better=False,
        of_queries=None,
    )


def sides(name: str) -> list[str]:
    """The metric, or the two of a difference."""
    return name.split(MINUS)


def is_time(name: str) -> bool:
    """Whether it hangs on the machine, and on what else it had to do."""
    return any(quantity(side) in (*TIMES, PER_EPOCH) for side in sides(name))


def is_known(name: str) -> bool:
    """Whether the name, or each side of a difference, is a quantity."""
    return len(sides(name)) <= 2 and all(s in METRICS or s in _OF_NO_RECORD for s in sides(name))
