"""Which claims of the papers hold on a dataset.

A claim is about presets, a quantity and a margin. Where the dataset has folds, what a paper says of
1,000 images of MSCOCO is about them. Each pair of consecutive presets is compared (comparisons),
and the interval and p say what is concluded (stats.verdicts), twice: for other images and other
trainings, which is the verdict, and for other trainings on this test set, which is what papers say.
Holm's adjustment is over the claims of a paper that were judged on the dataset. Why a claim is not
run at all, or nothing is concluded from a comparison: see flags.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import Board
from benchmark.papers.claimed_quantities import (
    MINUS,
    POINTS_OF_A_RECALL,
    is_time,
    quantity,
    sides,
)
from benchmark.papers.printed_tables import RECALLS, Claim, Paper, effects, papers
from benchmark.scoring import METRICS
from benchmark.stats import verdicts as rules
from benchmark.stats.verdicts import WORST_FIRST, Conclusion, Flag, Limit, Pair, Rule

READERS = {  # dataset of a place -> modules of datasets/ that read the same images and captions
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
FOLDED = "mscoco_1k"  # the papers print means over folds of 1,000 images
OF_THE_LEVEL = 0.1  # a margin is no larger a share of the better score


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim  # with the metric that it was tested with here
    is_elsewhere: bool  # the sentence names another dataset: this is the same comparison here
    printed: list[float | None]  # the paper's value of each preset, or of each metric of one
    pairs: list[Pair] = field(default_factory=list)  # consecutive presets; none: not run
    flags: list[Flag] = field(default_factory=list)  # those that block come first

    @property
    def decisive(self) -> Pair | None:
        """The pair whose conclusion is that of the claim; None where it was not run."""
        return rules.decisive(self.pairs) if self.pairs else None

    @property
    def conclusion(self) -> Conclusion:
        """For other images and other trainings."""
        return self.decisive.conclusion if self.pairs else Conclusion.NOT_RUN

    @property
    def on_test_set(self) -> Conclusion:
        """For other trainings on this test set."""
        conclusions = [pair.on_test_set for pair in self.pairs]
        return min(conclusions, key=WORST_FIRST.index) if conclusions else Conclusion.NOT_RUN

    @property
    def reason(self) -> str:
        """Why, as a short sentence without its full stop."""
        if not self.pairs:
            return self.flags[0].sentence
        if len(self.pairs) == 1:
            return self.decisive.reason
        is_all = self.conclusion == Conclusion.HOLDS
        names = "each pair" if is_all else " over ".join(self.decisive.comparison.titles)
        return f"{names}: {self.decisive.reason}"

    @property
    def limits(self) -> list[Limit | None]:
        """What would decide each undecided pair; None: that is not known, or nothing would. If a
        pair with the opposite difference is among them, it decides alone."""
        undecided = [pair for pair in self.pairs if pair.conclusion == Conclusion.UNDECIDED]
        return [pair.limit for pair in rules.behind(undecided)[:1] or undecided]


def verdicts(board: Board) -> list[Verdict]:
    """One verdict for every claim of every paper, in their order; then of the season's own."""
    sources = papers() | board.own_claims
    return [verdict for name, paper in sources.items() for verdict in _of_paper(board, name, paper)]


def counts(verdicts: Iterable[Verdict]) -> dict[Conclusion, int]:
    """How many verdicts reach each conclusion; all are keys."""
    conclusions = [verdict.conclusion for verdict in verdicts]
    return {conclusion: conclusions.count(conclusion) for conclusion in Conclusion}


def _of_paper(board: Board, name: str, paper: Paper) -> list[Verdict]:
    """With the adjustment over the claims of the paper that were run."""
    claims, asked = [], []
    for said in paper.claims:
        # rsum of one direction is not compared with a printed one.
        is_printed = said.presets and not _is_half(board, said)
        nothing = [None] * (max(2, len(said.presets)) if said.presets else 0)
        printed = list((effects(paper, said) if is_printed else None) or nothing)
        metric = metric_at(board, said.place, said.metric)
        claim = said.model_copy(update={"metric": metric})
        lack = flags.not_run(board, claim)
        claims.append((claim, printed, lack))
        if lack is None:
            asked.append(_asked(board, claim, printed))
    judged = iter(rules.judge(asked))
    verdicts = []
    for claim, printed, lack in claims:
        pairs = [] if lack else next(judged)
        blocked = [pair.blocked for pair in pairs if pair.blocked]
        compared = [pair.comparison for pair in pairs]
        of_claim = [lack] if lack else flags.claim_flags(board, claim.presets, compared)
        verdicts.append(
            Verdict(
                paper=name,
                claim=claim,
                is_elsewhere=claim.only_there and not is_dataset(board, claim.place or ""),
                printed=printed,
                pairs=pairs,
                flags=[*dict.fromkeys(blocked), *of_claim],
            )
        )
    return verdicts


def _is_half(board: Board, claim: Claim) -> bool:
    """Whether rsum has a single direction here, and half of the recalls."""
    return claim.metric == "rsum" and len(board.ways) == 1


def _asked(board: Board, claim: Claim, printed: list[float | None]) -> list[Pair]:
    """The comparisons of a claim, with what it says about each."""
    rows = [board.row(preset) for preset in claim.presets]
    sign = -1 if quantity(claim.metric).less_is_better else 1
    asked = []
    seconds = rows[1:] or [None]  # of a single preset, a difference of two metrics against zero
    for first, second, values in zip(rows, seconds, pairwise(printed), strict=False):
        comparison = comparisons.compare(board, first, second, claim.metric)
        difference = None if None in values else sign * (values[0] - values[1])
        if is_time(claim.metric) and None not in values:
            # Times of other machines are compared as shares: half of the printed share that the
            # first preset saves, of what the second takes here.
            share = abs(1 - values[0] / values[1])
            margin = share / 2 * (sum(comparison.seconds) / len(comparison.seconds))
        else:
            better = None  # the better mean, where both are of recalls
            if second and len(sides(claim.metric)) == 1 and quantity(claim.metric).unit == "%":
                better = max(float(np.mean(of)) for of in (comparison.firsts, comparison.seconds))
            margin = margin_of(claim, difference, _is_half(board, claim), better)
        asked.append(
            Pair(
                comparison=comparison,
                rule=Rule(kind=claim.kind, margin=margin),
                printed=difference,
                blocked=flags.obstacle(board, comparison),
                has_scale=quantity(claim.metric).unit in ("%", "share"),
            )
        )
    return asked


def margin_of(
    claim: Claim, printed: float | None, is_half: bool = False, level: float | None = None
) -> float:
    """How much a claim counts as no difference: points of its metric.

    A difference that is claimed is one of at least half of what the paper prints; but of no more
    than a point per recall, so that effects which the paper found large are not "none" when they
    are half as large. A difference that is denied is one of more than a point per recall, or, where
    the paper prints more and calls it none, of more than twice that. Either way, no more than a
    tenth of the better score: a point is little to a recall of 60 and nearly all of a recall of 1.
    Means of scores have the scale of their model, so that no difference of them is too small.

    `printed` is the paper's difference, positive where the first preset is better. `is_half`: rsum
    has a single direction, and half of the recalls. `level` is the better score where it is a
    recall or a sum of them.
    """
    unit = quantity(claim.metric).unit
    if unit in ("score", "correlation"):
        return 0.0
    recalls = len(RECALLS) if claim.metric in ("rsum", "fold_rsum") else 1
    points = POINTS_OF_A_RECALL * recalls / (2 if is_half else 1) if unit == "%" else 0.0
    most = math.inf if level is None else OF_THE_LEVEL * level
    if claim.kind == "ordered":
        half = abs(printed) / 2 if printed else points
        return min(half, points or half, most)
    denied = abs(printed or 0.0) if claim.kind == "alike" else max(0.0, printed or 0.0)
    return min(max(points, 2 * denied), most)


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board has the images of a place's dataset, in whatever partition."""
    dataset = place.partition("/")[0]
    return board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the test images of the board are those that the paper measured at the place."""
    dataset, split = place.split("/")
    is_partition = board.card["split"] == paper.paper.splits.get(dataset)
    return is_dataset(board, place) and is_partition and split == "test"


def metric_at(board: Board, place: str | None, metric: str) -> str:
    """The metric of the board's records that corresponds to a paper's metric at a place: the mean
    over folds where the place has folds, the board has folds, and the metric is declared on them;
    else the metric itself."""
    is_folded = place is not None and place.startswith(f"{FOLDED}/") and board.folds > 1
    if not is_folded:
        return metric
    folded = [f"fold_{s}" if f"fold_{s}" in METRICS else s for s in sides(metric)]
    return MINUS.join(folded)
