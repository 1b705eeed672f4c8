"""Which claims of the papers hold on a dataset.

A claim is about presets, a quantity and a margin. Where the dataset has folds, what a paper says of
1,000 images of MSCOCO is about them. Each pair of consecutive presets is compared (comparisons),
and the interval and p say what is concluded (stats.verdicts), twice: for other images and other
trainings, which is the verdict, and for other trainings on this test set, which is what papers say.
Holm's adjustment is over the claims of a paper that were judged on the dataset. Why a claim is not
run at all, or nothing is concluded from a comparison: see flags. What a season says on them all is
written to reports/<season>/claims.json (claim_ledger), with DIGITS significant digits.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.boards.claim_ledger import Compared, Finding, Leader, Measured, Place, SeasonClaims
from benchmark.papers.printed_tables import (
    MINUS,
    RECALLS,
    Claim,
    Paper,
    effects,
    is_time,
    papers,
    quantity,
    sides,
)
from benchmark.scoring import METRICS
from benchmark.season.parameters import Params
from benchmark.stats import verdicts as rules
from benchmark.stats.verdicts import WORST_FIRST, Conclusion, Flag, Limit, Pair, Rule

READERS = {  # dataset of a place -> modules of datasets/ that read the same images and captions
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
FOLDED = "mscoco_1k"  # the papers print means over folds of 1,000 images
OF_THE_LEVEL = 0.1  # a margin is no larger a share of the better score
POINTS_OF_A_RECALL = 1.0  # a difference of recalls that nobody would call one
DIGITS = 6  # significant ones, in claims.json


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim  # with the metric that it was tested with here
    is_elsewhere: bool  # the sentence names another dataset: this is the same comparison here
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
    asked = []
    for said in paper.claims:
        claim = said.model_copy(update={"metric": metric_at(board, said.place, said.metric)})
        lack = flags.not_run(board, claim)
        # rsum of one direction is not compared with a printed one.
        printed = None if lack or _is_half(board, said) else effects(paper, said)
        pairs = [] if lack else _asked(board, claim, printed)
        compared = [pair.comparison for pair in pairs]
        of_claim = [lack] if lack else flags.claim_flags(board, claim.presets, compared)
        is_elsewhere = claim.only_there and not is_dataset(board, claim.place or "")
        facts = {"paper": name, "claim": claim, "is_elsewhere": is_elsewhere, "pairs": pairs}
        asked.append(Verdict(**facts, flags=of_claim))
    judged = iter(rules.judge([verdict.pairs for verdict in asked if verdict.pairs]))
    verdicts = []
    for verdict in asked:
        pairs = next(judged) if verdict.pairs else []
        blocked = dict.fromkeys(pair.blocked for pair in pairs if pair.blocked)
        verdicts.append(replace(verdict, pairs=pairs, flags=[*blocked, *verdict.flags]))
    return verdicts


def _is_half(board: Board, claim: Claim) -> bool:
    """Whether rsum has a single direction here, and half of the recalls."""
    return claim.metric == "rsum" and len(board.ways) == 1


def _asked(board: Board, claim: Claim, printed: list[float] | None) -> list[Pair]:
    """The comparisons of a claim, with what it says about each, and what is printed for each preset
    or, of a single one, for each metric."""
    rows = [board.row(preset) for preset in claim.presets]
    metric, asked = quantity(claim.metric), []
    seconds = rows[1:] or [None]  # of a single preset, a difference of two metrics against zero
    for number, (first, second) in enumerate(zip(rows, seconds, strict=False)):
        comparison = comparisons.compare(board, first, second, claim.metric)
        values = printed and printed[number : number + 2]
        difference = values and (values[0] - values[1]) * (-1 if metric.less_is_better else 1)
        if values and is_time(claim.metric):
            # Times of other machines are compared as shares: half of the printed share that the
            # first preset saves, of what the second takes here.
            share = abs(1 - values[0] / values[1])
            margin = share / 2 * (sum(comparison.seconds) / len(comparison.seconds))
        else:
            better = None  # the better mean, where both are of recalls
            if second and len(sides(claim.metric)) == 1 and metric.unit == "%":
                better = max(float(np.mean(of)) for of in (comparison.firsts, comparison.seconds))
            margin = margin_of(claim, difference, _is_half(board, claim), better)
        asked.append(
            Pair(
                comparison=comparison,
                rule=Rule(kind=claim.kind, margin=margin),
                printed=difference,
                blocked=flags.obstacle(board, comparison),
                has_scale=metric.unit in ("%", "share"),
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


# For the ledger -----------------------------------------------------------------------------------


def season_claims(
    params: Params, boards: Sequence[Board], verdicts: Mapping[str, Sequence[Verdict]]
) -> SeasonClaims:
    """What the boards of a season say, each with its verdicts by dataset."""
    outcomes = [outcome for board in boards for outcome in board.outcomes]
    runs = [facts for outcome in outcomes for facts in (*outcome.trainings, outcome.scoring)]
    return SeasonClaims(
        season=params.season,
        title=params.title,
        commits=sorted({facts.git_commit for facts in runs}),
        versions=sorted({facts.packages["torch"] for facts in runs}),
        datasets=[_measured(board, verdicts[board.dataset]) for board in boards],
    )


def _measured(board: Board, verdicts: Sequence[Verdict]) -> Measured:
    return Measured(
        dataset=board.dataset,
        title=board.title,
        split=board.card["split"],
        images=board.card["counts"]["test"]["images"],
        leaders=[_leader(of) for of in (board.retrieval, board.localisation) if of.ranked],
        claims=[
            Finding(
                paper=verdict.paper,
                id=verdict.claim.id,
                conclusion=verdict.conclusion,
                reason=verdict.reason,
                is_elsewhere=verdict.is_elsewhere,
                cautions=[flags.said(flag) for flag in verdict.flags if not flag.blocks],
                compared=compared(verdict) if verdict.pairs else None,
            )
            for verdict in verdicts
        ],
    )


def _leader(board: Board) -> Leader:
    """Of a board of one task."""
    ranked, letters = board.ranked, comparisons.rank_letters(board)
    metric = RANKED_BY[ranked[0].task]
    is_alone = metric == "rsum" and len(board.ways) == 1
    low, high = comparisons.interval(board, ranked[0], metric) or (None, None)
    best = flags.letters(flags.row_flags(board, ranked[0]))
    return Leader(
        task=ranked[0].task,
        metric=f"rsum of {board.ways[0]} alone" if is_alone else quantity(metric).heading,
        low=_rounded(low),
        high=_rounded(high),
        is_compared=comparisons.is_compared(board),
        places=[
            Place(title=row.title, mean=_rounded(row.mean(metric)), letters=of_row)
            for row, of_row in zip(ranked, letters, strict=True)
        ],
        lacks=[flags.NAMES[letter] for letter in best],
    )


def compared(verdict: Verdict) -> Compared:
    """The comparison that decides a claim which was run."""
    decisive, metric = verdict.decisive, quantity(verdict.claim.metric)
    comparison = decisive.comparison
    low, high = comparison.interval or (None, None)
    # No p where the verdict does not rest on it, as where an interval within the margin decides.
    is_asserted = verdict.conclusion == decisive.rule.asserted(comparison.difference)
    # What decides every undecided pair; None of what would not decide one of them.
    limits = verdict.limits if verdict.conclusion == Conclusion.UNDECIDED else []
    seeds, images = ([limit and limit[part] for limit in limits] for part in (0, 1))
    return Compared(
        first=comparison.titles[0],
        second=comparison.titles[1],
        pairs=len(verdict.pairs),
        metric=metric.heading,
        decimals=metric.decimals,
        difference=_rounded(comparison.difference),
        low=_rounded(low),
        high=_rounded(high),
        p=_rounded(decisive.adjusted_p if is_asserted else None),
        is_of_these_trainings=comparison.is_of_these_trainings and low is not None,
        printed=_rounded(decisive.printed),
        margin=_rounded(decisive.margin),
        size=decisive.size,
        seeds=max(seeds) if limits and None not in seeds else None,
        images=max(images) if limits and None not in images else None,
        seeds_beside=max((limit.seeds_beside for limit in limits if limit), default=0),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
