"""Which claims of the papers hold on a dataset.

A claim is about presets, a quantity and a margin (papers.printed_tables, papers.margins). Where the
dataset has folds, what a paper says of 1,000 images of MSCOCO is about them. Each pair of
consecutive presets is compared (comparisons), and the interval and p say what is concluded
(verdict_rules), twice: for other images and other trainings, which is the verdict, and for other
trainings on this test set, which is what papers say.

All pairs of a claim have to hold, so the largest p counts; one that is reversed denies it, so then
the smallest counts, times the number of pairs. Holm's adjustment is over the claims of a paper that
were judged on the dataset, for either scope alone; a comparison that is claimed twice counts once.
Each pair of a claim on several is adjusted as if it were that claim alone.

Why a claim is not run at all, or nothing is concluded from a comparison: see grounds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from benchmark.analysis import comparability, comparisons, grounds, significance, verdict_rules
from benchmark.analysis.boards import Board
from benchmark.analysis.cautions import cautions
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.grounds import Cause, Ground
from benchmark.analysis.significance import Estimate
from benchmark.analysis.verdict_rules import WORST_FIRST, Conclusion, Limit, Rule, Size
from benchmark.papers import margins
from benchmark.papers.claimed_quantities import is_time, quantity
from benchmark.papers.printed_tables import Claim, Paper, effects, papers

Pair = tuple[str, str, str]  # first preset, second preset or "", metric
_Judged = tuple[tuple[Rule, Estimate], ...]  # the pairs of a claim that can be judged


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is concluded from one estimate."""

    conclusion: Conclusion
    ground: Ground
    estimate: Estimate | None = None
    p: float | None = None  # of the difference that the claim asserts, or denies
    adjusted_p: float | None = None  # by Holm
    adjustment: float = 1.0  # what p was multiplied with for that, without the bound of 1


@dataclass(frozen=True, kw_only=True)
class Tested:
    """One pair of consecutive presets of a claim."""

    comparison: Comparison
    rule: Rule
    printed: float | None  # the paper's difference; positive: the first is better
    on_other_images: Finding  # and with other trainings
    on_test_set: Finding  # with other trainings
    size: Size | None  # how the interval lies to the printed difference
    limit: Limit | None  # what would decide it; None: it is decided, or that is not known

    @property
    def conclusion(self) -> Conclusion:
        return self.on_other_images.conclusion


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim  # with the metric that it was tested with here
    conclusion: Conclusion  # for other images and other trainings
    on_test_set: Conclusion  # for other trainings
    cause: Cause
    reason: str  # as Ground has it
    is_elsewhere: bool  # the sentence names another dataset: this is the same comparison here
    printed: list[float | None]  # the paper's value of each preset, or of each metric of one
    tested: list[Tested]  # consecutive presets; empty where it was not run
    cautions: list[str]  # what of its presets speaks against trusting the verdict

    @property
    def decisive(self) -> Tested | None:
        """The pair whose conclusion is that of the claim; None where it was not run."""
        return _decisive(self.tested) if self.tested else None

    @property
    def limits(self) -> list[Limit | None]:
        """What would decide each undecided pair; None: that is not known, or nothing would. If a
        pair with the opposite difference is among them, it decides alone."""
        undecided = [pair for pair in self.tested if pair.conclusion == Conclusion.UNDECIDED]
        return [pair.limit for pair in _behind(undecided)[:1] or undecided]


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A claim as it is put to a board."""

    paper: str
    claim: Claim
    printed: list[float | None]
    is_half: bool  # rsum has a single direction here
    is_elsewhere: bool

    @property
    def pairs(self) -> list[Pair]:
        presets, metric = self.claim.presets, self.claim.metric
        if len(presets) == 1:
            return [(presets[0], "", metric)]
        return [(first, second, metric) for first, second in pairwise(presets)]

    @property
    def differences(self) -> list[float | None]:
        """The paper's, of each pair; positive where the first preset is better."""
        sign = -1 if quantity(self.claim.metric).less_is_better else 1
        return [
            None if None in (first, second) else sign * (first - second)
            for first, second in pairwise(self.printed)
        ]


def verdicts(board: Board) -> list[Verdict]:
    """One verdict for every claim of every paper, in their order; then of the season's own."""
    sources = papers() | board.own_claims
    return [verdict for name, paper in sources.items() for verdict in _of_paper(board, name, paper)]


def counts(verdicts: Iterable[Verdict]) -> dict[Conclusion, int]:
    """How many verdicts reach each conclusion; all are keys."""
    conclusions = [verdict.conclusion for verdict in verdicts]
    return {conclusion: conclusions.count(conclusion) for conclusion in Conclusion}


def _of_paper(board: Board, name: str, paper: Paper) -> list[Verdict]:
    questions = [_question(board, name, paper, claim) for claim in paper.claims]
    lacks = [grounds.lack(question.claim, board) for question in questions]
    judged = iter(
        _judged(board, [q for q, lack in zip(questions, lacks, strict=True) if lack is None])
    )
    return [
        _verdict(board, question, next(judged)) if lack is None else _not_run(question, lack)
        for question, lack in zip(questions, lacks, strict=True)
    ]


def _question(board: Board, name: str, paper: Paper, claim: Claim) -> _Question:
    """The claim, with the metric of the folds where it is about them.

    rsum of one direction has half the range of both directions' rsum, and is not compared with a
    printed one.
    """
    is_half = claim.metric == "rsum" and len(board.ways) == 1
    printed = effects(paper, claim) if claim.presets and not is_half else None
    place = claim.place or ""
    return _Question(
        paper=name,
        claim=claim.model_copy(
            update={"metric": comparability.metric_at(board, claim.place, claim.metric)}
        ),
        printed=[*printed]
        if printed
        else [None] * (max(2, len(claim.presets)) if claim.presets else 0),
        is_half=is_half,
        is_elsewhere=claim.only_there and not comparability.is_dataset(board, place),
    )


def _judged(board: Board, questions: Sequence[_Question]) -> list[list[Tested]]:
    """The comparisons of every claim, with the adjustment over all these claims."""
    compared = [[_compare(board, pair) for pair in question.pairs] for question in questions]
    rules = [_rules(q, pairs) for q, pairs in zip(questions, compared, strict=True)]
    obstacles = [
        [grounds.obstacle(board, comparison) for comparison in comparisons]
        for comparisons in compared
    ]
    elsewhere = findings(rules, [[c.estimate for c in of] for of in compared], obstacles)
    here = findings(rules, [[c.on_test_set for c in of] for of in compared], obstacles)
    here = [[*map(_surer, *of_claim)] for of_claim in zip(here, elsewhere, strict=True)]
    return [
        [_tested(*facts) for facts in zip(*of_claim, strict=True)]
        for of_claim in zip(
            compared, rules, [q.differences for q in questions], elsewhere, here, strict=True
        )
    ]


def _compare(board: Board, pair: Pair) -> Comparison:
    first, second, metric = pair
    return comparisons.compare(
        board, board.standing(first), board.standing(second) if second else None, metric
    )


def _rules(question: _Question, compared: Sequence[Comparison]) -> list[Rule]:
    claim, rules = question.claim, []
    pairs = zip(compared, question.differences, pairwise(question.printed), strict=True)
    for comparison, printed, values in pairs:
        if is_time(claim.metric) and None not in values:
            mean = sum(comparison.seconds) / len(comparison.seconds)
            margin = margins.margin_of_time(*values, mean)
        else:
            level = comparisons.level(comparison)
            margin = margins.margin(claim, printed, question.is_half, level)
        rules.append(Rule(kind=claim.kind, margin=margin))
    return rules


def findings(
    rules: Sequence[Sequence[Rule]],
    estimates: Sequence[Sequence[Estimate | None]],
    obstacles: Sequence[Sequence[Ground | None]],
) -> list[list[Finding]]:
    """Of one scope: what each pair of each claim says, adjusted over the claims that have a pair
    which can be judged."""
    facts = [
        [*zip(*of_claim, strict=True)] for of_claim in zip(rules, estimates, obstacles, strict=True)
    ]
    judged = [
        tuple((rule, estimate) for rule, estimate, obstacle in pairs if estimate and not obstacle)
        for pairs in facts
    ]
    p_of = {key: claim_p(*zip(*key, strict=True)) for key in judged if key}
    return [
        [_finding(*pair, p_of, key) for pair in pairs]
        for pairs, key in zip(facts, judged, strict=True)
    ]


def claim_p(rules: Sequence[Rule], estimates: Sequence[Estimate]) -> float:
    """p of a claim on several pairs: that all hold, or, if one is behind, that one is reversed."""
    p_values = [rule.p(estimate) for rule, estimate in zip(rules, estimates, strict=True)]
    behind = [p for p, estimate in zip(p_values, estimates, strict=True) if estimate.value < 0]
    if len(rules) == 1 or not behind:
        return max(p_values)
    return min(1.0, len(rules) * min(behind))


def _finding(
    rule: Rule,
    estimate: Estimate | None,
    obstacle: Ground | None,
    p_of: dict[_Judged, float],
    claim: _Judged,
) -> Finding:
    """What one pair of a claim says; `p_of` are all claims of the adjustment."""
    if obstacle or estimate is None:
        return Finding(conclusion=Conclusion.UNDECIDED, ground=obstacle or grounds.NOTHING_VARIES)
    p = rule.p(estimate)
    is_one_of_several = len(claim) > 1 and estimate.value < 0
    product = _product(p_of, claim, p * (len(claim) if is_one_of_several else 1))
    adjusted_p = min(1.0, product)
    conclusion, reason = rule.conclusion(estimate, adjusted_p)
    is_chance = conclusion == Conclusion.UNDECIDED and p <= significance.ALPHA
    return Finding(
        conclusion=conclusion,
        ground=Ground(Cause.CHANCE if is_chance else Cause.INTERVAL, reason),
        estimate=estimate,
        p=p,
        adjusted_p=adjusted_p,
        adjustment=product / p if p else float(len(p_of)),
    )


def _product(p_of: dict[_Judged, float], claim: _Judged, p: float) -> float:
    """Holm's product of one pair, whose p stands in the place of its claim's: a pair that is surer
    than its claim has more claims behind it."""
    places, p_values = list(p_of), list((p_of | {claim: p}).values())
    return float(significance.holm_products(p_values)[places.index(claim)])


def _surer(on_test_set: Finding, on_other_images: Finding) -> Finding:
    """What holds for other images holds on this test set, too. Its own interval is never the wider
    one, but with few degrees of freedom its p after Holm's adjustment can be the larger."""
    is_open = on_test_set.conclusion == Conclusion.UNDECIDED
    return on_other_images if is_open else on_test_set


def _tested(
    comparison: Comparison,
    rule: Rule,
    printed: float | None,
    on_other_images: Finding,
    on_test_set: Finding,
) -> Tested:
    finding = on_other_images
    is_open = finding.conclusion == Conclusion.UNDECIDED and finding.p is not None
    is_comparable = quantity(comparison.metric).unit in ("%", "share")
    ends = finding.estimate.interval if finding.estimate else None
    return Tested(
        comparison=comparison,
        rule=rule,
        printed=printed,
        on_other_images=on_other_images,
        on_test_set=on_test_set,
        size=verdict_rules.size(ends, printed) if is_comparable else None,
        limit=rule.limit(comparison.difference, comparison.doubt, finding.adjustment)
        if is_open
        else None,
    )


def _decisive(tested: Sequence[Tested]) -> Tested:
    """Of the pairs with the worst conclusion: where all hold the least sure one, where one is
    denied the surest. Of undecided ones that with the opposite difference, which decides alone,
    then one of which nothing can be concluded."""
    worst = min((pair.conclusion for pair in tested), key=WORST_FIRST.index)
    pairs = [pair for pair in tested if pair.conclusion == worst]
    if worst == Conclusion.UNDECIDED:
        blocked = [pair for pair in pairs if pair.on_other_images.p is None]
        return next(iter(_behind(pairs) or blocked or pairs))
    if worst == Conclusion.NO_DIFFERENCE:
        return pairs[0]
    return (max if worst == Conclusion.HOLDS else min)(pairs, key=lambda t: t.on_other_images.p)


def _behind(tested: Sequence[Tested]) -> list[Tested]:
    """The undecided pairs that may turn out to be reversed, the one that needs least first."""
    behind = [pair for pair in tested if pair.limit and pair.comparison.difference < 0]
    return sorted(behind, key=lambda t: (t.limit.seeds or inf, t.limit.images or inf))


def _verdict(board: Board, question: _Question, tested: list[Tested]) -> Verdict:
    decisive = _decisive(tested)
    ground, reason = decisive.on_other_images.ground, decisive.on_other_images.ground.reason
    if len(tested) > 1:
        names = " over ".join(decisive.comparison.titles)
        reason = f"{'each pair' if decisive.conclusion == Conclusion.HOLDS else names}: {reason}"
    return Verdict(
        paper=question.paper,
        claim=question.claim,
        conclusion=decisive.conclusion,
        on_test_set=min((t.on_test_set.conclusion for t in tested), key=WORST_FIRST.index),
        cause=ground.cause,
        reason=reason,
        is_elsewhere=question.is_elsewhere,
        printed=question.printed,
        tested=tested,
        cautions=cautions(board, [t.comparison for t in tested], question.claim.presets),
    )


def _not_run(question: _Question, lack: Ground) -> Verdict:
    return Verdict(
        paper=question.paper,
        claim=question.claim,
        conclusion=Conclusion.NOT_RUN,
        on_test_set=Conclusion.NOT_RUN,
        cause=lack.cause,
        reason=lack.reason,
        is_elsewhere=question.is_elsewhere,
        printed=question.printed,
        tested=[],
        cautions=[],
    )
