"""Which claims of the papers hold on a dataset.

A part of a claim is about presets, a quantity and a margin. The presets are compared
(comparisons), and the interval and p say what is concluded (stats.verdicts), with
Holm's adjustment over the claims of a paper that count on the dataset: a sentence about
another dataset is shown, and neither counted nor adjusted with. Why a claim is not run
at all: see not_run; why nothing is concluded from a comparison, and what favours a
side: see flags. docs/statistics.md has the rules (Verdicts on claims).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from statistics import fmean

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import Board, Row
from benchmark.boards.row_settings import other_encoder, reads_other_words
from benchmark.papers.printed_tables import (
    MINUS,
    RECALLS,
    Claim,
    Paper,
    Part,
    effects,
    is_time,
    papers,
    quantity,
    sides,
    title_of,
)
from benchmark.scoring import METRICS
from benchmark.stats import verdicts as rules
from benchmark.stats.claim_kinds import KINDS, Conclusion, Effect
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import Flag, Limit, Rule, Verdict

# dataset of a place -> modules of datasets/ that read the same images and captions
READERS = {
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
# the release that the papers used, of those that cuhk_pedes reads; other readers have
# no such option
RELEASE = "CUHK-PEDES"
FOLDED = "mscoco_1k"  # the papers print means over folds of 1,000 images
POINTS_OF_A_RECALL = 1.0  # a difference of two recalls that counts as none


@dataclass(frozen=True, kw_only=True)
class ClaimTest:
    """What a board says about a claim."""

    paper: str  # name of its file
    claim: Claim
    # the sentence names another dataset: this is the same comparison here
    is_elsewhere: bool
    # on each part that was run; none: the claim was not
    verdicts: list[Verdict] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)  # those that block come first

    @property
    def is_counted(self) -> bool:
        """Whether it is among the tests that are counted and adjusted for."""
        return not self.is_elsewhere and not self.claim.uncounted

    @property
    def decisive(self) -> Verdict | None:
        """The verdict that is that of the claim; None where it was not run."""
        return rules.decisive(self.verdicts) if self.verdicts else None

    @property
    def conclusion(self) -> Conclusion:
        """For other images and other trainings."""
        return self.decisive.conclusion if self.verdicts else Conclusion.NOT_RUN

    @property
    def on_test_set(self) -> Conclusion:
        """For other trainings on this test set."""
        if not self.verdicts:
            return Conclusion.NOT_RUN
        conclusions = [verdict.on_test_set for verdict in self.verdicts]
        return min(conclusions, key=rules.WORST_FIRST.index)

    @property
    def cautions(self) -> list[Flag]:
        """The flags, but for the one that is the reason."""
        if not self.verdicts:
            return []
        return [flag for flag in self.flags if flag != self.decisive.blocked]

    @property
    def reason(self) -> str:
        """Why, as a short sentence without its full stop."""
        if not self.verdicts:
            return self.flags[0].sentence
        if len(self.verdicts) == 1:
            return self.decisive.reason
        names = self.decisive.comparison.names
        if self.conclusion == Conclusion.HOLDS:
            names += f", the least sure of {len(self.verdicts)} pairs"
        return f"{names}: {self.decisive.reason}"


@lru_cache(maxsize=64)  # all pages of a report ask for them
def claim_tests(board: Board) -> list[ClaimTest]:
    """One test of every claim of every paper, then of the season's own."""
    tests = []
    for name, paper in (papers() | board.own_claims).items():
        tests += _of_paper(board, name, paper)
    return tests


def counts(tests: Iterable[ClaimTest]) -> dict[Conclusion, int]:
    """How many tests that count reach each conclusion; all are keys."""
    conclusions = [test.conclusion for test in tests if test.is_counted]
    return {conclusion: conclusions.count(conclusion) for conclusion in Conclusion}


def _of_paper(board: Board, name: str, paper: Paper) -> list[ClaimTest]:
    """With the adjustment over the claims of the paper that were run and count."""
    unjudged = [_unjudged_test(board, name, paper, claim) for claim in paper.claims]
    counted = [test.verdicts for test in unjudged if test.is_counted]
    judged = iter(rules.judge(counted))
    tests = []
    for test in unjudged:
        if test.is_counted:
            verdicts = next(judged)
        else:
            (verdicts,) = rules.judge([test.verdicts])
        blocking = [verdict.blocked for verdict in verdicts if verdict.blocked]
        biases = chain.from_iterable(verdict.biases for verdict in verdicts)
        all_flags = list(dict.fromkeys([*blocking, *biases, *test.flags]))
        if board.fold_boards:
            verdicts = [_of_folds(verdict) for verdict in verdicts]
        tests.append(replace(test, verdicts=verdicts, flags=all_flags))
    return tests


def _of_folds(verdict: Verdict) -> Verdict:
    """A further training of a row over folds is a further fold."""
    if verdict.limit is None:
        return verdict
    return replace(verdict, limit=Limit(seeds=None, folds=verdict.limit.seeds))


def _unjudged_test(board: Board, name: str, paper: Paper, claim: Claim) -> ClaimTest:
    """The test of a claim before it is judged: its verdicts have no conclusions yet."""
    verdicts, lacks, presets = [], [], []
    for index, part in enumerate(claim.parts):
        metric = metric_at(board, part.place, part.metric)
        lack = not_run(board, claim, part.model_copy(update={"metric": metric}))
        if lack:
            lacks.append(lack)
        else:
            verdicts.append(_unjudged_verdict(board, paper, claim, index, metric))
            presets += part.presets
    missing = [f"in part: {lack}" for lack in lacks] if verdicts else lacks[:1]
    of_parts = [flags.not_run.flag(sentence) for sentence in dict.fromkeys(missing)]
    return ClaimTest(
        paper=name,
        claim=claim,
        is_elsewhere=claim.only_there and not is_dataset(board, claim.place or ""),
        verdicts=verdicts,
        flags=[*of_parts, *flags.claim_flags(board, dict.fromkeys(presets), verdicts)],
    )


def _unjudged_verdict(
    board: Board, paper: Paper, claim: Claim, index: int, metric_here: str
) -> Verdict:
    """What a part puts to `judge`, before anything is concluded."""
    part = claim.parts[index]
    first, *others = [board.row(preset) for preset in part.presets]
    second = others[0] if others else None  # then of a difference of two metrics
    comparison = comparisons.compare(board, first, second, metric_here)
    metric = quantity(part.metric)
    # rsum of one direction is not compared with a printed one; only a share of it is.
    is_half = part.metric == "rsum" and len(board.ways) == 1
    of_paper = effects(paper, part)
    printed = None if is_half else of_paper
    difference = slopes = None
    if printed:
        difference = printed[0] - printed[1]
        difference = -difference if metric.less_is_better else difference
        slopes = _slopes(comparison, part.metric, printed)
    if printed and is_time(part.metric):
        # Times of other machines are compared as shares: half of the printed share that
        # the first preset saves, of what the second takes here.
        share = abs(1 - printed[0] / printed[1])
        margin = share / 2 * fmean(comparison.seconds)
    else:
        known = of_paper if KINDS[part.kind].needs_printed else printed
        margin = margin_of(part, known, is_half, comparison.level)
    compared = flags.Compared(board=board, comparison=comparison, claim=claim)
    return Verdict(
        comparison=comparison,
        rule=Rule(kind=KINDS[part.kind], margin=margin),
        part=index,
        printed=difference,
        blocked=flags.obstacle(compared),
        biases=flags.biases(compared),
        slopes=slopes,
    )


def _slopes(
    comparison: Comparison, metric: str, printed: Sequence[float]
) -> tuple[float, float] | None:
    """Log odds per point between the levels here and between the printed ones; both 1
    of shares that are no recalls. None for other scales, such as times."""
    if not comparison.second or not _is_recall(metric):
        is_share = quantity(metric).unit in ("%", "share")
        return (1.0, 1.0) if is_share else None
    most = 100.0 * _recalls(metric)
    levels = fmean(comparison.firsts), fmean(comparison.seconds)
    here = rules.log_odds_per_point(*levels, most)
    return here, rules.log_odds_per_point(*printed, most)


def margin_of(
    part: Part,
    printed: Sequence[float] | None,
    is_half: bool = False,
    level: float | None = None,
) -> float:
    """The largest difference that a claim counts as none, in points of its metric; none
    is too small of means of scores, whose scale is that of their model. `printed` are
    both values. `is_half`: rsum has a single direction. `level` is the better score, of
    which counts a recall or a sum of them."""
    metric = quantity(part.metric)
    if metric.unit in ("score", "correlation"):
        return 0.0
    difference = printed[0] - printed[1] if printed else 0.0
    share = abs(difference) / max(printed) if difference else 0.0
    points = POINTS_OF_A_RECALL * _recalls(part.metric) if metric.unit == "%" else 0.0
    effect = Effect(
        difference=-difference if metric.less_is_better else difference,
        points=points / 2 if is_half else points,
        share=share,
        level=level if _is_recall(part.metric) else None,
    )
    return KINDS[part.kind].margin(effect)


def _is_recall(metric: str) -> bool:
    """Or a sum of some, and no difference."""
    return quantity(metric).unit == "%" and len(sides(metric)) == 1


def _recalls(metric: str) -> int:
    """How many recalls a metric is the sum of."""
    return len(RECALLS) if metric in ("rsum", "fold_rsum") else 1


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board has the images of a place's dataset, in whatever partition."""
    dataset = place.partition("/")[0]
    is_release = board.card.get("options", {}).get("release", RELEASE) == RELEASE
    return is_release and board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the paper measured these test images at the place."""
    dataset, split = place.split("/")
    is_partition = board.card["split"] == paper.paper.splits.get(dataset)
    is_test = split == "test" and not board.fold_boards
    return is_dataset(board, place) and is_partition and is_test


def metric_at(board: Board, place: str | None, metric: str) -> str:
    """A paper's metric at a place as the board has it: the mean over folds where both
    have folds and it is declared on them."""
    is_folded = place is not None and place.startswith(f"{FOLDED}/") and board.folds > 1
    if not is_folded:
        return metric
    folded = [f"fold_{s}" if f"fold_{s}" in METRICS else s for s in sides(metric)]
    return MINUS.join(folded)


# Why a part was not run ---------------------------------------------------------------


def not_run(board: Board, claim: Claim, part: Part) -> str:
    """Why a part of a claim was not run on a board; "" where it was."""
    return next(_why_not_run(board, claim, part), "")


def _why_not_run(board: Board, claim: Claim, part: Part) -> Iterator[str]:
    """The reasons; each counts only where those before it do not."""
    if claim.unplayed:
        yield claim.unplayed.removesuffix(".")
    rows = []
    for preset in part.presets:
        row = board.row(preset)
        rows.append(row)
        if row is None:
            yield f"{title_of(preset)} was not run"
        if not row.played:
            status = row.record.status.replace("_", " ")
            yield f"{row.title}: {status}: {row.record.reason}"
        if not comparisons.usable(row, part.metric):
            yield f"{quantity(part.metric).heading} of {row.title} was not measured"
        for name, wanted in claim.settings.items():
            if others := _other_values(board, row, name, wanted):
                yield f"{row.title} was run with {' and '.join(others)} {name}"
    if claim.weights:
        # a claim about trained weights is not tested with random ones
        kind = flags.random_text_encoder
        random = [row for row in rows if flags.has_flag(board, row, kind)]
        if random:
            yield f"{flags.titles_of(random)} was run with a random text encoder"
        # nor, on one side alone, with vectors that were trained on the captions at hand
        others = [
            row for row in rows if not row.is_own and reads_other_words(row.record)
        ]
        if 0 < len(others) < len(rows):
            yield f"{flags.titles_of(others)} was run with other word vectors"
    if len({row.method for row in rows}) > 1:
        return
    # rows of one method that differ less here than in the paper
    if len({row.declared.sentence for row in rows}) > 1:
        for row in rows:
            if other := other_encoder(row):
                yield f"{row.title} was run with {other}"
    networks = {row.network for row in rows}
    in_paper = {row.declared.network for row in rows}
    if len(in_paper) > 1 and len(networks) == 1 and None not in networks:
        yield f"all were run with {networks.pop()}"


def _other_values(board: Board, row: Row, name: str, wanted: str | float) -> list[str]:
    """The values of an option, in the trainings of a row, that a claim is not about."""
    values = set()
    for preset in comparisons.trainings_of(board, row):
        trained = comparisons.row_of_any_task(board, preset)
        options = trained.record.options if trained else {}
        if options.get(name) != wanted:
            values.add(str(options.get(name, "another")))
    return sorted(values)
