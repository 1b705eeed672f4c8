"""How much a claim counts as no difference. Knows no torch.

A difference that is claimed is one of at least half of what the paper prints; but of no more than a
point per recall, so that effects which the paper found large are not "none" when they are half as
large. Means of scores have the scale of their model, so that no difference of them is too small. A
difference that is denied is one of more than a point per recall, or, where the paper
prints more and calls it none, of more than twice that. Either way, no more than a tenth of the
better score: a point is little to a recall of 60 and nearly all of a recall of 1.
"""

import math

from benchmark.papers.claimed_quantities import POINTS_OF_A_RECALL, quantity
from benchmark.papers.printed_tables import RECALLS, Claim

RSUMS = ("rsum", "fold_rsum")
OF_THE_LEVEL = 0.1


def margin(
    claim: Claim, printed: float | None, is_half: bool = False, level: float | None = None
) -> float:
    """Points of the claim's metric, zero where neither paper nor unit gives any.

    `printed` is the paper's difference, positive where the first preset is better. `is_half`: rsum
    has a single direction, and half of the recalls. `level` is the better score where it is a
    recall or a sum of them.
    """
    points = _points(claim.metric) / (2 if is_half else 1)
    if quantity(claim.metric).unit in ("score", "correlation"):
        return 0.0
    most = math.inf if level is None else OF_THE_LEVEL * level
    if claim.kind == "ordered":
        half = abs(printed) / 2 if printed else points
        return min(half, points or half, most)
    denied = abs(printed or 0.0) if claim.kind == "alike" else max(0.0, printed or 0.0)
    return min(max(points, 2 * denied), most)


def margin_of_time(first: float, second: float, measured: float) -> float:
    """Times of other machines are compared as shares: half of the printed share that the first
    preset saves, of what the second takes here."""
    return abs(1 - first / second) / 2 * measured


def _points(metric: str) -> float:
    """One per recall; zero for what is no recall."""
    if quantity(metric).unit != "%":
        return 0.0
    return POINTS_OF_A_RECALL * (len(RECALLS) if metric in RSUMS else 1)
