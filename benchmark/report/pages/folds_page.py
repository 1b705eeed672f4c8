"""The page on the folds of a dataset: what other test images, with trainings of their
own, change. Imports no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from benchmark.boards import comparisons
from benchmark.boards.boards import RANKED_BY, TASKS, Board
from benchmark.boards.claims import ClaimTest, claim_tests
from benchmark.boards.season_boards import FoldLevel, levels, resampled_t
from benchmark.core.names import folder_of_folds
from benchmark.papers.printed_tables import quantity
from benchmark.report.pages import Page, SeasonInputs, filled
from benchmark.report.pages.claim_tables import INDENT, difference, statement
from benchmark.report.pages.claim_tables import compared as compared_in_short
from benchmark.report.tables import Number, Table
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import Verdict


def pages(inputs: SeasonInputs) -> Iterator[Page]:
    """A page for each dataset with folds."""
    for board in inputs.boards:
        for folds in inputs.folds:
            if folder_of_folds(board.dataset) == folds.dataset:
                yield Page(
                    path=f"datasets/{folds.dataset}.md",
                    text=folds_page(board, folds),
                    title=board.title,
                    about="other images as test, with trainings of their own",
                )


def folds_page(official: Board, folds: Board) -> str:
    """The page as Markdown: `official` is the board of the official test split, fold
    0, and `folds` that of the others."""
    sections = []
    for task in TASKS:
        of_task = levels(folds, official, RANKED_BY[task])
        of_task = [level for level in of_task if level.row.task == task]
        if of_task:
            section = {
                "task": task,
                "heading": quantity(RANKED_BY[task]).heading,
                "levels": of_task,
                "table": levels_table(of_task),
                "place": place_of_official(of_task),
            }
            sections.append(section)
    every = board_of_all(official, folds)
    differences = differences_over_folds(official, folds, every)
    return filled(
        "folds.md.j2",
        board=official,
        count=len(folds.fold_boards),
        images=folds.test_image_count,
        sections=sections,
        differences=differences_table(differences, every),
        shrinkage=shrinkage(differences),
    )


def board_of_all(official: Board, folds: Board) -> Board:
    """Of the rows that have a result on all folds, the official one as one more."""
    played = {row.preset for row in official.ranked}
    rows = [row for row in folds.rows if row.preset in played]
    return replace(folds, rows=rows, fold_boards=(official, *folds.fold_boards))


# Levels -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the official test split lies among the folds, by the mean over rows."""

    official: float
    lowest: float  # of the other folds
    highest: float
    harder: int  # how many other folds are harder


def place_of_official(levels: Sequence[FoldLevel]) -> Place | None:
    """Over the rows that are known on all folds; None without one."""
    known = [level for level in levels if level.official is not None]
    if not known:
        return None
    official = fmean(level.official for level in known)
    others = np.mean([level.by_fold for level in known], axis=0)
    return Place(
        official=official,
        lowest=float(others.min()),
        highest=float(others.max()),
        harder=int((others < official).sum()),
    )


def levels_table(levels: Sequence[FoldLevel]) -> Table:
    """The metric of each row on each fold, and its mean over all but the official
    one."""
    lines = []
    for level in levels:
        line = {"preset": level.row.title, "official": Number(value=level.official)}
        for number, value in enumerate(level.by_fold, start=1):
            line[f"fold {number}"] = Number(value=value)
        line[f"mean of 1 to {len(level.by_fold)}"] = Number(
            value=level.mean, sd=level.deviation, low=level.low, high=level.high
        )
        lines.append(line)
    return Table.of("Levels", lines)


# Differences --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DifferenceOverFolds:
    """A part of a claim on the official test split, on the others, and on all."""

    claim: ClaimTest
    verdict: Verdict  # on the other folds
    official: Comparison | None
    every: Comparison

    @property
    def by_fold(self) -> np.ndarray:
        """(K,) differences on all folds, the official one first."""
        firsts = np.array(self.every.firsts)
        gaps = firsts - self.every.seconds if self.every.second else firsts
        return -gaps if quantity(self.every.metric).less_is_better else gaps

    @property
    def narrowing(self) -> float | None:
        """The width of the interval over all folds, as a share of that on the official
        one; None where that is not known."""
        if self.official is None or self.official.is_of_these_trainings:
            return None
        ends = self.official.interval, self.every.interval
        if None in ends:
            return None
        (low, high), (lowest, highest) = ends
        return (highest - lowest) / (high - low)


def differences_over_folds(
    official: Board, folds: Board, every: Board
) -> list[DifferenceOverFolds]:
    """Of every part of a claim that was run on the folds, and counts there; `every` is
    the board of all folds."""
    listed = []
    for test in claim_tests(folds):
        for verdict in test.verdicts if test.is_counted else ():
            over_all = _compared_on(every, verdict)
            if over_all is None:
                continue
            difference = DifferenceOverFolds(
                claim=test,
                verdict=verdict,
                official=_compared_on(official, verdict),
                every=over_all,
            )
            listed.append(difference)
    return listed


def _compared_on(board: Board, verdict: Verdict) -> Comparison | None:
    """The rows of a verdict, compared on another board; None where they are not there,
    or lack the metric."""
    compared = verdict.comparison
    first = board.row(compared.first)
    second = board.row(compared.second) if compared.second else None
    if first is None or (compared.second and second is None):
        return None
    return comparisons.compare(board, first, second, compared.metric)


def differences_table(
    differences: Sequence[DifferenceOverFolds], every: Board
) -> Table:
    """A row for each part of a claim; `every` is the board of all folds."""
    count, lines, last = len(every.fold_boards), [], None
    for each in differences:
        name = statement(each.claim)
        if len(each.claim.verdicts) > 1:
            if each.claim is not last:
                lines.append({"claim": name})
            name = f"{INDENT}{compared_in_short(each.verdict)}"
        last = each.claim
        low, high = resampled_t(every, each.by_fold).interval
        line = {
            "claim": name,
            "metric": each.every.heading,
            "official": each.official and difference(each.official),
            f"folds 1 to {count - 1}": difference(each.verdict.comparison),
            "verdict on these": each.verdict.conclusion,
            f"all {count}": difference(each.every),
            "resampled t": Number(low=low, high=high, form=f"+.{each.every.decimals}f"),
        }
        lines.append(line)
    return Table.of("Differences", lines)


def shrinkage(differences: Sequence[DifferenceOverFolds]) -> float | None:
    """The median of `narrowing`; None where no interval is known."""
    shares = [difference.narrowing for difference in differences]
    known = [share for share in shares if share is not None]
    return median(known) if known else None
