"""Which claims of the papers hold on a dataset.

A part of a claim is about presets, a quantity and a margin. Where the dataset has
folds, what a paper says of 1,000 images of MSCOCO is about them. The presets are
compared (comparisons), and the interval and p say what is concluded (stats.verdicts),
twice: for other images and other trainings, which is the verdict, and for other
trainings on this test set, which is what papers say. Holm's adjustment is over the
claims of a paper that count on the dataset: a sentence about another dataset is shown,
and neither counted nor adjusted with. Of a comparison with a bias only what goes against
it is concluded. Why a claim is not run at all: see not_run; why nothing is concluded
from a comparison, and what favours a side: see flags. What a season says on them all is
written to reports/<season>/claims.json (claims_file).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
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
    """One test of every claim of every paper, in their order; then of the season's
    own."""
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
        of_verdicts = [verdict.blocked for verdict in verdicts if verdict.blocked]
        for verdict in verdicts:
            for bias in verdict.biases:
                # one that blocks a verdict is listed already
                if bias._replace(blocks=True) not in of_verdicts:
                    of_verdicts.append(bias)
        if board.fold_boards:
            verdicts = [_of_folds(verdict) for verdict in verdicts]
        all_flags = [*dict.fromkeys(of_verdicts), *test.flags]
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
        if lack is None:
            verdict = _unjudged_verdict(board, paper, claim, index, metric)
            verdicts.append(verdict)
            presets += part.presets
        else:
            lacks.append(lack)
    missing = lacks[:1]
    if verdicts:
        sentences = dict.fromkeys(lack.sentence for lack in lacks)
        missing = [flags.not_run.flag(f"in part: {each}") for each in sentences]
    return ClaimTest(
        paper=name,
        claim=claim,
        is_elsewhere=claim.only_there and not is_dataset(board, claim.place or ""),
        verdicts=verdicts,
        flags=[*missing, *flags.claim_flags(board, dict.fromkeys(presets), verdicts)],
    )


def _unjudged_verdict(
    board: Board, paper: Paper, claim: Claim, index: int, metric_here: str
) -> Verdict:
    """The comparison of a part, its rule and the printed difference, before anything is
    concluded."""
    part = claim.parts[index]
    first = board.row(part.presets[0])
    second = board.row(part.presets[1]) if len(part.presets) == 2 else None
    comparison = comparisons.compare(board, first, second, metric_here)
    kind, metric = KINDS[part.kind], quantity(part.metric)
    level = _level(comparison, part.metric)
    # rsum of one direction is not compared with a printed one; only a share of it is.
    is_half = part.metric == "rsum" and len(board.ways) == 1
    of_paper = effects(paper, part)
    printed = None if is_half else of_paper
    difference = slopes = None
    if printed:
        difference = printed[0] - printed[1]
        difference = -difference if metric.less_is_better else difference
        slopes = _slopes(comparison, part.metric, printed, level)
    if printed and is_time(part.metric):
        # Times of other machines are compared as shares: half of the printed share that
        # the first preset saves, of what the second takes here.
        share = abs(1 - printed[0] / printed[1])
        margin = share / 2 * fmean(comparison.seconds)
    else:
        known = of_paper if kind.needs_printed else printed
        margin = margin_of(part, known, is_half, level)
    compared = flags.Compared.of(board, comparison, claim)
    return Verdict(
        comparison=comparison,
        rule=Rule(kind=kind, margin=margin),
        part=index,
        printed=difference,
        blocked=flags.obstacle(compared),
        biases=flags.biases(compared),
        slopes=slopes,
    )


def _slopes(
    comparison: Comparison, metric: str, printed: Sequence[float], level: float | None
) -> tuple[float, float] | None:
    """Log odds per point between the two levels here, and between the printed ones. Of
    shares that are no recalls or sums of these both are 1: a point is a point
    everywhere. None for what has another scale here, such as times."""
    if quantity(metric).unit not in ("%", "share"):
        return None
    if level is None:
        return 1.0, 1.0
    most = 100.0 * _recalls(metric)
    levels = fmean(comparison.firsts), fmean(comparison.seconds)
    here = rules.log_odds_per_point(*levels, most)
    return here, rules.log_odds_per_point(*printed, most)


def _level(comparison: Comparison, metric: str) -> float | None:
    """The better mean, where both are of recalls; else None."""
    is_difference = len(sides(metric)) > 1
    if not comparison.second or is_difference or quantity(metric).unit != "%":
        return None
    return max(fmean(comparison.firsts), fmean(comparison.seconds))


def margin_of(
    part: Part,
    printed: Sequence[float] | None,
    is_half: bool = False,
    level: float | None = None,
) -> float:
    """The largest difference that a claim counts as none, in points of its metric.

    The kind of the claim tells how it follows from the printed difference
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
    points = POINTS_OF_A_RECALL * _recalls(part.metric) if metric.unit == "%" else 0.0
    effect = Effect(
        difference=-difference if metric.less_is_better else difference,
        points=points / 2 if is_half else points,
        share=share,
        level=level,
    )
    return KINDS[part.kind].margin(effect)


def _recalls(metric: str) -> int:
    """How many recalls a metric is the sum of."""
    return len(RECALLS) if metric in ("rsum", "fold_rsum") else 1


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board has the images of a place's dataset, in whatever partition."""
    dataset = place.partition("/")[0]
    is_release = board.card.get("options", {}).get("release", RELEASE) == RELEASE
    return is_release and board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the test images of the board are those that the paper measured at the
    place."""
    if board.fold_boards:
        return False
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


# Why a part was not run ---------------------------------------------------------------


def not_run(board: Board, claim: Claim, part: Part) -> Flag | None:
    """Why a part of a claim was not run on a board; None where it was."""
    reason = claim.unplayed.removesuffix(".")
    if not reason:
        reason = _missing_row(board, claim, part)
    if not reason:
        rows = [board.row(preset) for preset in part.presets]
        reason = _other_weights(board, claim, rows) or _too_alike(rows)
    return flags.not_run.flag(reason, blocks=True) if reason else None


def _missing_row(board: Board, claim: Claim, part: Part) -> str:
    """A row that is not there, has no result, or was run with other settings than the
    claim is about."""
    for preset in part.presets:
        row = board.row(preset)
        if row is None:
            return f"{title_of(preset)} was not run"
        if not row.played:
            status = row.record.status.replace("_", " ")
            return f"{row.title}: {status}: {row.record.reason}"
        if not comparisons.usable(row, part.metric):
            return f"{quantity(part.metric).heading} of {row.title} was not measured"
        for name, wanted in claim.settings.items():
            others = _other_values(board, row, name, wanted)
            if others:
                return f"{row.title} was run with {' and '.join(others)} {name}"
    return ""


def _other_values(board: Board, row: Row, name: str, wanted: str | float) -> list[str]:
    """The values of an option, in the trainings of a row, that a claim is not about."""
    values = set()
    for preset in comparisons.trainings_of(board, row):
        trained = comparisons.row_of_any_task(board, preset)
        options = trained.record.options if trained else {}
        if options.get(name) != wanted:
            values.add(str(options.get(name, "another")))
    return sorted(values)


def _other_weights(board: Board, claim: Claim, rows: Sequence[Row]) -> str:
    """A claim about trained weights is not tested with random ones nor, where one side
    alone reads word vectors, with vectors that were trained on the captions at hand."""
    if not claim.weights:
        return ""
    kind = flags.random_text_encoder
    random = [row for row in rows if flags.has_flag(board, row, kind)]
    if random:
        return f"{flags.titles_of(random)} was run with a random text encoder"
    others = [row for row in rows if not row.is_own and reads_other_words(row.record)]
    if 0 < len(others) < len(rows):
        return f"{flags.titles_of(others)} was run with other word vectors"
    return ""


def _too_alike(rows: Sequence[Row]) -> str:
    """Why rows of one method differ less here than in the paper: one has another text
    encoder than its own, or all have one network; "" if they differ as there."""
    if len({row.method for row in rows}) > 1:
        return ""
    if len({row.declared.sentence for row in rows}) > 1:
        for row in rows:
            if other := other_encoder(row):
                return f"{row.title} was run with {other}"
    networks = {row.network for row in rows}
    in_paper = {row.declared.network for row in rows}
    if len(in_paper) > 1 and len(networks) == 1 and None not in networks:
        return f"all were run with {networks.pop()}"
    return ""
