"""Which claims of the papers hold on a dataset.

A part of a claim is about presets, a quantity and a margin. Where the dataset has
folds, what a paper says of 1,000 images of MSCOCO is about them. The presets are
compared (comparisons), and the interval and p say what is concluded (stats.verdicts),
twice: for other images and other trainings, which is the verdict, and for other
trainings on this test set, which is what papers say. Holm's adjustment is over the
claims of a paper that count on the dataset: a sentence about another dataset is shown,
and neither counted nor adjusted with. A verdict against a paper stands if the controls
of its part, the same comparison in another set-up, are against it, too; without one it
is undecided. Why a claim is not run at all, or nothing is concluded from a comparison:
see flags. What a season says on them all is written to reports/<season>/claims.json
(claim_ledger), with DIGITS significant digits.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board, Row
from benchmark.boards.claim_ledger import (
    FAILED,
    Compared,
    Finding,
    Leader,
    Made,
    Measured,
    Place,
    SeasonClaims,
)
from benchmark.boards.timing import settings_of
from benchmark.boards.unrun_claims import not_run
from benchmark.papers.printed_tables import (
    MINUS,
    OWN,
    RECALLS,
    Claim,
    Paper,
    Part,
    effects,
    is_time,
    papers,
    quantity,
    sides,
)
from benchmark.scoring import METRICS
from benchmark.season.parameters import Params
from benchmark.stats import verdicts as rules
from benchmark.stats.claim_kinds import FAR, KINDS, Conclusion, Effect
from benchmark.stats.verdicts import WORST_FIRST, Flag, Limit, Pair, Rule

# dataset of a place -> modules of datasets/ that read the same images and captions
READERS = {
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
# of the papers, of those that cuhk_pedes reads; no other has the option
RELEASE = "CUHK-PEDES"
FOLDED = "mscoco_1k"  # the papers print means over folds of 1,000 images
OF_THE_LEVEL = 0.1  # a margin is no larger a share of the better score
POINTS_OF_A_RECALL = 1.0  # a difference of recalls that nobody would call one
DIGITS = 6  # significant ones, in claims.json


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim
    # the sentence names another dataset: this is the same comparison here
    is_elsewhere: bool
    # of each part that was run; none: not run
    pairs: list[Pair] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)  # those that block come first

    @property
    def is_counted(self) -> bool:
        """Whether it is a test of the claim, among those that are counted and adjusted
        for."""
        return not self.is_elsewhere and not self.claim.uncounted

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
        return (
            min(conclusions, key=WORST_FIRST.index)
            if conclusions
            else Conclusion.NOT_RUN
        )

    @property
    def reason(self) -> str:
        """Why, as a short sentence without its full stop."""
        if not self.pairs:
            return self.flags[0].sentence
        if len(self.pairs) == 1:
            return self.decisive.reason
        is_all = self.conclusion == Conclusion.HOLDS
        names = "each pair" if is_all else self.decisive.comparison.names
        return f"{names}: {self.decisive.reason}"


def verdicts(board: Board) -> list[Verdict]:
    """One verdict for every claim of every paper, in their order; then of the season's
    own."""
    sources = papers() | board.own_claims
    return [
        verdict
        for name, paper in sources.items()
        for verdict in _of_paper(board, name, paper)
    ]


# the same, once for all pages of a report
verdicts_on = lru_cache(maxsize=64)(verdicts)


def counts(verdicts: Iterable[Verdict]) -> dict[Conclusion, int]:
    """How many verdicts that count reach each conclusion; all are keys."""
    conclusions = [verdict.conclusion for verdict in verdicts if verdict.is_counted]
    return {conclusion: conclusions.count(conclusion) for conclusion in Conclusion}


def _of_paper(board: Board, name: str, paper: Paper) -> list[Verdict]:
    """With the adjustment over the claims of the paper that were run and count."""
    asked, parts_of = [], {}
    for claim in paper.claims:
        lacks = [not_run(board, claim, _here(board, part)) for part in claim.parts]
        run = [part for part, lack in zip(claim.parts, lacks, strict=True) if not lack]
        pairs = [_asked(board, paper, part, claim.unfair) for part in run]
        missing = list(dict.fromkeys(lack for lack in lacks if lack))
        in_part = [
            Flag(flags.NOT_RUN.letter, f"in part: {lack.sentence}") for lack in missing
        ]
        presets = dict.fromkeys(preset for part in run for preset in part.presets)
        of_claim = flags.claim_flags(board, presets, pairs)
        is_elsewhere = claim.only_there and not is_dataset(board, claim.place or "")
        facts = {
            "paper": name,
            "claim": claim,
            "is_elsewhere": is_elsewhere,
            "pairs": pairs,
        }
        asked.append(
            Verdict(**facts, flags=[*(in_part if pairs else missing[:1]), *of_claim])
        )
        parts_of[claim.id] = run
    judged = iter(rules.judge([v.pairs for v in asked if v.pairs and v.is_counted]))
    verdicts = []
    for verdict in asked:
        pairs, run = [], parts_of[verdict.claim.id]
        if verdict.pairs:
            pairs = (
                next(judged) if verdict.is_counted else rules.judge([verdict.pairs])[0]
            )
        if name != OWN:
            facts = zip(run, pairs, strict=True)
            pairs = [_controlled(board, paper, verdict.claim, *of) for of in facts]
        blocked = dict.fromkeys(pair.blocked for pair in pairs if pair.blocked)
        verdicts.append(replace(verdict, pairs=pairs, flags=[*blocked, *verdict.flags]))
    return verdicts


def _here(board: Board, part: Part) -> Part:
    """With the metric of the board's records."""
    return part.model_copy(update={"metric": metric_at(board, part.place, part.metric)})


def _asked(board: Board, paper: Paper, part: Part, unfair: str) -> Pair:
    """The comparison of a part, with what it says about it and what is printed."""
    first, second = [*map(board.row, part.presets), None][:2]
    metric, is_half = (
        quantity(part.metric),
        part.metric == "rsum" and len(board.ways) == 1,
    )
    comparison = comparisons.compare(board, first, second, _here(board, part).metric)
    # rsum of one direction is not compared with a printed one; only a share of it is.
    of_paper = effects(paper, part)
    values = None if is_half else of_paper
    difference = values and (values[0] - values[1]) * (
        -1 if metric.less_is_better else 1
    )
    if values and is_time(part.metric):
        # Times of other machines are compared as shares: half of the printed share that
        # the first preset saves, of what the second takes here.
        share = abs(1 - values[0] / values[1])
        margin = share / 2 * (sum(comparison.seconds) / len(comparison.seconds))
    else:
        level = None  # the better mean, where both are of recalls
        if second and len(sides(part.metric)) == 1 and metric.unit == "%":
            level = max(
                float(np.mean(of)) for of in (comparison.firsts, comparison.seconds)
            )
        shown = of_paper if part.kind == FAR.name else values
        margin = margin_of(part, shown, is_half, level)
    return Pair(
        comparison=comparison,
        rule=Rule(kind=KINDS[part.kind], margin=margin),
        printed=difference,
        blocked=flags.obstacle(board, comparison, unfair),
        has_scale=metric.unit in ("%", "share"),
    )


def _controlled(
    board: Board, paper: Paper, claim: Claim, part: Part, pair: Pair
) -> Pair:
    """A comparison that is against its paper, with its controls, which have the
    printed numbers of the part; undecided where none was run, or one is not against
    the paper."""
    if pair.conclusion not in FAILED and pair.on_test_set not in FAILED:
        return pair
    facts = {"printed": effects(paper, part) or []}
    others = [
        part.model_copy(update=facts | {"presets": presets})
        for presets in part.controls
    ]
    asked = [
        [_asked(board, paper, other, claim.unfair)]
        for other in others
        if not not_run(board, claim, _here(board, other))
    ]
    controls = tuple(pair for of_control in rules.judge(asked) for pair in of_control)
    if controls and all(control.conclusion in FAILED for control in controls):
        return replace(pair, controls=controls)
    if pair.conclusion not in FAILED:  # it is on this test set alone
        return replace(pair, on_test_set=Conclusion.UNDECIDED)
    why = f"against the paper ({pair.conclusion}), and no control of our set-up was run"
    if controls:
        other = next(of for of in controls if of.conclusion not in FAILED)
        why = f"against the paper ({pair.conclusion}), but not in a control: "
        why += f"{other.comparison.names}, {other.conclusion}"
    return rules.withheld(
        replace(pair, controls=controls),
        Flag(flags.UNCONFIRMED.letter, why, blocks=True),
    )


def margin_of(
    part: Part,
    printed: Sequence[float] | None,
    is_half: bool = False,
    level: float | None = None,
) -> float:
    """How much a claim counts as no difference: points of its metric.

    What half, or twice, of the printed difference is depends on the kind of the claim
    (stats.claim_kinds). A margin is no more than a tenth of the better score: a point
    is little to a recall of 60 and nearly all of a recall of 1. Means of scores have
    the scale of their model, so that no difference of them is too small.

    `printed` are both values. `is_half`: rsum has a single direction, and half of the
    recalls. `level` is the better score where it is a recall or a sum of them.
    """
    metric = quantity(part.metric)
    if metric.unit in ("score", "correlation"):
        return 0.0
    difference = printed[0] - printed[1] if printed else 0.0
    share = abs(difference) / max(printed) if difference else 0.0
    recalls = len(RECALLS) if part.metric in ("rsum", "fold_rsum") else 1
    points = POINTS_OF_A_RECALL * recalls if metric.unit == "%" else 0.0
    effect = Effect(
        difference=-difference if metric.less_is_better else difference,
        points=points / 2 if is_half else points,
        share=share,
        level=level,
        most=math.inf if level is None else OF_THE_LEVEL * level,
    )
    return KINDS[part.kind].margin(effect)


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board has the images of a place's dataset, in whatever partition."""
    dataset = place.partition("/")[0]
    is_release = board.card.get("options", {}).get("release", RELEASE) == RELEASE
    return is_release and board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the test images of the board are those that the paper measured at the
    place."""
    dataset, split = place.split("/")
    is_partition = board.card["split"] == paper.paper.splits.get(dataset)
    return is_dataset(board, place) and is_partition and split == "test"


def metric_at(board: Board, place: str | None, metric: str) -> str:
    """The metric of the board's records that corresponds to a paper's metric at a
    place: the mean over folds where the place has folds, the board has folds, and the
    metric is declared on them; else the metric itself."""
    is_folded = place is not None and place.startswith(f"{FOLDED}/") and board.folds > 1
    if not is_folded:
        return metric
    folded = [f"fold_{s}" if f"fold_{s}" in METRICS else s for s in sides(metric)]
    return MINUS.join(folded)


# For the ledger -----------------------------------------------------------------------


def season_claims(
    params: Params, boards: Sequence[Board], layers: Callable[[Board], Sequence]
) -> SeasonClaims:
    """What the boards of a season say; `layers` gives the BoardLayers of a board."""
    datasets = [_measured(board, layers(board)) for board in boards]
    return SeasonClaims(season=params.season, title=params.title, datasets=datasets)


def _measured(board: Board, layers: Sequence) -> Measured:
    return Measured(
        dataset=board.dataset,
        title=board.title,
        split=board.card["split"],
        images=board.card["counts"]["test"]["images"],
        made=made(board),
        leaders=[
            leader(of) for of in (board.retrieval, board.localisation) if of.ranked
        ],
        claims=[
            Finding(
                paper=verdict.paper,
                id=verdict.claim.id,
                conclusion=verdict.conclusion,
                on_test_set=verdict.on_test_set,
                reason=verdict.reason,
                is_elsewhere=verdict.is_elsewhere,
                cautions=[
                    flags.said(flag) for flag in verdict.flags if not flag.blocks
                ],
                parts=[compared(pair) for pair in verdict.pairs],
                decisive=verdict.pairs.index(verdict.decisive)
                if verdict.pairs
                else None,
                layers={
                    layer.name: (of.own.conclusion, of.here.conclusion, of.is_changed)
                    for layer in layers
                    if (
                        of := layer.judged_claims.get((verdict.paper, verdict.claim.id))
                    )
                },
            )
            for verdict in verdicts_on(board)
        ],
    )


def made(board: Board) -> Made:
    trained = [o for row in board.rows for o in row.played if o.history is not None]
    epochs = sorted({len(outcome.history) for outcome in trained})
    runs = [facts for o in board.outcomes for facts in (*o.trainings, o.scoring)]
    return Made(
        seeds=sorted({outcome.record.seed for outcome in board.outcomes}),
        trainings=len(trained),
        epochs=[*epochs[:1], *epochs[-1:]],
        images=board.card["counts"].get("train", {}).get("images", 0),
        hours=_rounded(sum(outcome.training_seconds for outcome in trained) / 3600),
        settings=[str(setting) for setting in settings_of(board)],
        commits=sorted({facts.git_commit for facts in runs}),
    )


def leader(board: Board) -> Leader:
    """Of a board of one task."""
    ranked, rivals = board.ranked, comparisons.rivals(board)
    metric = RANKED_BY[ranked[0].task]
    is_alone = metric == "rsum" and len(board.ways) == 1
    places = [
        _place(board, row, metric, of) for row, of in zip(ranked, rivals, strict=True)
    ]
    return Leader(
        task=ranked[0].task,
        metric=f"rsum of {board.ways[0]} alone"
        if is_alone
        else quantity(metric).heading,
        is_compared=comparisons.is_compared(board),
        places=places,
    )


def _place(board: Board, row: Row, metric: str, rivals: list[int]) -> Place:
    ends = comparisons.interval(board, row, metric)
    low, high = (
        ends or comparisons.interval_over_images(board, row, metric) or (None, None)
    )
    told = {
        flags.NAMES[flag.letter]: flag.sentence for flag in flags.row_flags(board, row)
    }
    facts = {"title": row.title, "mean": _rounded(row.mean(metric)), "rivals": rivals}
    facts |= {"low": _rounded(low), "high": _rounded(high), "flags": told}
    return Place(**facts, is_of_these_trainings=ends is None and low is not None)


def compared(pair: Pair) -> Compared:
    """A part of a claim that was run, with its controls."""
    comparison, metric = pair.comparison, quantity(pair.comparison.metric)
    low, high = comparison.interval or (None, None)
    # No p where the verdict does not rest on it, as where an interval within the margin
    # decides.
    is_asserted = pair.conclusion == pair.rule.asserted(comparison.difference)
    limit = pair.limit or Limit(None, None)
    return Compared(
        first=comparison.titles[0],
        second=comparison.titles[1],
        conclusion=pair.conclusion,
        metric=metric.heading,
        decimals=metric.decimals,
        difference=_rounded(comparison.difference),
        low=_rounded(low),
        high=_rounded(high),
        p=_rounded(pair.adjusted_p if is_asserted else None),
        is_of_these_trainings=comparison.is_of_these_trainings and low is not None,
        printed=_rounded(pair.printed),
        margin=_rounded(pair.margin),
        size=pair.size,
        seeds=limit.seeds,
        images=limit.images,
        seeds_beside=limit.seeds_beside,
        remedy=flags.BLOCKING[pair.blocked.letter] if pair.blocked else "",
        controls=[compared(control) for control in pair.controls],
        withheld=pair.withheld,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
