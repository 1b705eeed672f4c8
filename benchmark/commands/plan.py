"""How many seeds and test images a claim needs, before anything is trained.

rematch plan flickr8k --difference 10            from what a season's rows vary by
rematch plan flickr8k --difference 3 --like vse vse_official     ... or two of them
rematch plan --difference 10 --sd-seeds 2.1 --se-images 3.5 --of-images 1000
                                                 from what varied elsewhere
rematch plan flickr8k --difference 10 --seeds 3 --images 1000    the power of one plan
rematch plan flickr8k --seeds 3 --images 1000    the smallest difference that it shows

A claim is that the first row is better than the second (ordered), better by more than
the margin (far), that they differ by less than the margin (alike), or that the first is
not better by more than it (not_better). Its power is the probability that it holds for
other images and trainings, by the rules of verdicts, if the true difference is the
given one. Without --difference, the table has the smallest one that is shown with this
power. A dash stands where nothing would be known of other trainings,
or where no difference is large enough.
"""

import argparse
from bisect import bisect, bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import ceil, inf, isfinite
from statistics import fmean, median

from benchmark.boards import comparisons
from benchmark.boards.boards import MIN_TEST_QUERIES
from benchmark.boards.claims import margin_of
from benchmark.boards.season_boards import read_boards
from benchmark.core.command_line import JSON, add_format, add_season_first
from benchmark.core.errors import UserError, entry, listed, suggested
from benchmark.core.files import json_text
from benchmark.papers.printed_tables import Part
from benchmark.report.markdown import pipe_table
from benchmark.scoring.metrics import METRICS
from benchmark.season.parameter_files import read_declaration
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import KINDS, ORDERED, ClaimKind
from benchmark.stats.comparisons import FREEDOM_FOR_SINGLES
from benchmark.stats.significance import Doubt, SeedPart, Z
from benchmark.stats.verdicts import Rule, power

SEEDS = (1, 2, 3, 5, 10)
MOST_SEEDS = 100  # more are called no number of seeds
MOST = 10**9  # of anything that is given


def two_digits(number: int) -> int:
    """A number of images, rounded up to two significant digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def differences_up_to(most: float) -> list[float]:
    """From 0.01, each with two significant digits and two per cent above the last
    one."""
    differences = []
    difference = 0.01
    while difference < most:
        rounded = float(f"{difference:.2g}")
        if rounded not in differences:
            differences.append(rounded)
        difference *= 1.02
    return differences


# to a million
IMAGES = [two_digits(ceil(MIN_TEST_QUERIES * 1.05**step)) for step in range(190)]
DIFFERENCES = differences_up_to(600)


@dataclass(frozen=True, kw_only=True)
class Known:
    """Why the difference of two rows is uncertain: variances on `image_count`
    images."""

    images: float  # over images, of the difference of two rows with infinitely many trainings
    image_count: int
    seeds: float  # between the trainings of a row, on the same images
    interaction: float  # the part of that which other images would change
    freedom: float  # degrees of freedom of the trainings that there are already
    source: str  # a sentence

    def doubt(self, seeds: int, images: int) -> Doubt | None:
        """Of two rows with so many trainings each; None: their spread will not be
        known."""
        share = self.image_count / images
        freedom = self.freedom + 2 * (seeds - 1)
        interaction = self.interaction * share
        variance = max(0.0, self.seeds - self.interaction) + interaction
        if variance and seeds == 1 and freedom < FREEDOM_FOR_SINGLES:
            return None
        part = SeedPart((seeds, seeds), variance, interaction, freedom, is_own=False)
        of_means = part.weight() * interaction  # in the difference of two means
        parts = (part,) if variance else ()
        return Doubt(self.images * share + of_means, of_means, images, parts)


def configure(parser: argparse.ArgumentParser) -> None:
    add_season_first(parser)
    add = parser.add_argument
    number = {"type": float, "metavar": "D"}
    difference = "the true difference; default: 0 for alike and not_better"
    add("--difference", **number, help=difference)
    kinds = {"choices": KINDS, "default": ORDERED.name}
    add("--kind", **kinds, help=f"default: {ORDERED.name}")
    add("--metric", default="rsum", help="such as t2i_r1; default: rsum")
    margin = "default: that of verdicts, as if the paper printed D"
    add("--margin", type=float, help=margin)
    goal = "the power to reach; default: 0.8"
    add("--power", type=float, default=0.8, metavar="P", help=goal)
    add("--seeds", type=int, nargs="+", metavar="N", help="trainings of each row")
    add("--images", type=int, nargs="+", metavar="N", help="test images")
    add_format(parser)
    add = parser.add_argument_group("from a season").add_argument
    add("--dataset", help="default: the only one")
    rows = "two rows; default: the median of all pairs"
    add("--like", nargs=2, metavar="ROW", help=rows)
    elsewhere = "or from elsewhere, in points of the metric"
    add = parser.add_argument_group(elsewhere).add_argument
    deviation = "standard deviation of a row's trainings"
    add("--sd-seeds", type=float, metavar="SD", help=deviation)
    error = (
        "standard error over images of the difference of two trainings; its "
        f"{PERCENT}% interval is {Z:.2f} SE to each side"
    )
    add("--se-images", type=float, metavar="SE", help=error)
    add("--of-images", type=int, metavar="N", help="how many images gave SE")


def main(arguments: argparse.Namespace) -> None:
    plan = plan_of(
        arguments.difference,
        kind=arguments.kind,
        metric=arguments.metric,
        margin=arguments.margin,
        goal=arguments.power,
        sd_seeds=arguments.sd_seeds,
        se_images=arguments.se_images,
        of_images=arguments.of_images,
        season=arguments.season,
        dataset=arguments.dataset,
        like=arguments.like,
    )
    facts = facts_of(plan, arguments.seeds, arguments.images)
    if arguments.format == JSON:
        print(json_text(facts), end="")
    else:
        print(shown(facts))


def facts_of(
    plan: "Plan", seeds: Sequence[int] | None, images: Sequence[int] | None
) -> dict:
    """A plan as data: for so many seeds, in rows, and images, in columns, the power of
    the claim, from 0 to 1, or the smallest true difference that is shown; None where
    nothing would be known of other trainings, or where no difference is large enough.
    Raises UserError for too few of them."""
    image_count = plan.known.image_count
    # half the season's images, all, twice and five times as many
    halves = (1, 2, 4, 10)
    usual = {max(MIN_TEST_QUERIES, image_count * half // 2) for half in halves}
    seeds = list(seeds or SEEDS)
    images = list(images or sorted(usual))
    _check_least("--seeds", seeds, 1)
    _check_least("--images", images, MIN_TEST_QUERIES)
    cells = []
    for seed_count in seeds:
        cells.append([plan.cell(seed_count, count) for count in images])
    facts = {
        "kind": plan.kind.name,
        "metric": plan.metric,
        "difference": plan.difference,
        "margin": plan.margin,
        "goal": plan.goal,
        "seeds": seeds,
        "images": images,
        "cells": cells,
        "image_count": image_count,
        "source": plan.known.source,
    }
    if plan.difference is not None:
        facts["margin"] = plan.rule(plan.difference).margin
        facts["enough_images"] = [plan.images_for(each) for each in seeds]
        facts["enough_seeds"] = plan.seeds_for(image_count)
    return facts


def shown(facts: Mapping) -> str:
    """The same as a table and a sentence."""
    goal = f"{facts['goal']:.0%}"
    difference = facts["difference"]
    heads = ["seeds of each row", *(f"{count:,} images" for count in facts["images"])]
    rows = []
    for seeds, cells in zip(facts["seeds"], facts["cells"], strict=True):
        texts = [_cell(cell, difference) for cell in cells]
        rows.append([str(seeds), *texts])
    claim = f"({facts['kind']}, {facts['metric']}"
    if difference is None:
        sentence = (
            f"The smallest true differences shown with a power of {goal} {claim})."
        )
    else:
        heads.append(f"images for {goal}")
        for enough, row in zip(facts["enough_images"], rows, strict=True):
            row.append(f"{enough:,}" if enough else "no number")
        enough = facts["enough_seeds"]
        if enough == 1:
            needed = "takes 1 seed"
        elif enough:
            needed = f"takes {enough} seeds"
        else:
            needed = f"needs more than {MOST_SEEDS} seeds"
        sentence = (
            f"On {facts['image_count']:,} images it {needed} of each row for a "
            f"power of {goal} {claim}: true difference {difference:g}, margin "
            f"{facts['margin']:.3g})."
        )
    table = pipe_table(heads, rows, "r" * len(heads))
    return f"{table}\n\n{sentence} {facts['source']}"


def _cell(value: float | None, difference: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if difference is None else f"{value:.0%}"


def plan_of(
    difference: float | None,
    *,
    kind: str,
    metric: str,
    margin: float | None,
    goal: float,
    sd_seeds: float | None,
    se_images: float | None,
    of_images: int | None,
    season: str | None,
    dataset: str | None,
    like: Sequence[str] | None,
) -> "Plan":
    """A plan whose spread is known from the three deviations, or from a season. Raises
    UserError for deviations that are given in part, or beside a season."""
    of_kind = KINDS[kind]
    if difference is None and of_kind.denies:
        difference = 0.0
    plan = Plan(
        kind=of_kind,
        metric=metric,
        difference=difference,
        margin=margin,
        goal=goal,
    )
    plan.rule(difference)  # refuses what cannot hold, before boards are read
    deviations = (sd_seeds, se_images, of_images)
    if deviations == (None, None, None):
        return replace(plan, known=known_from_season(season, dataset, like, metric))
    if None in deviations or season or dataset or like:
        raise UserError(
            "plan",
            expected="--sd-seeds, --se-images and --of-images, or a season",
            found="parts of both, or of one",
            do="give all of one",
        )
    return replace(plan, known=known_from_options(*deviations))


def _check_least(option: str, numbers: Iterable[int], least: int) -> None:
    """Raise UserError for a number that is not whole, and for one below the least."""
    for number in numbers:
        if number % 1:
            raise UserError(option, "whole numbers", number, "correct it")
    if min(numbers) < least:
        raise UserError(
            option,
            expected=f"{least} or more",
            found=min(numbers),
            do="correct it",
        )
    if max(numbers) > MOST:
        raise UserError(
            option,
            expected=f"{MOST} at most",
            found="more",
            do="correct it",
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A claim, and what its power follows from."""

    kind: ClaimKind
    metric: str
    difference: float | None  # the true one; None: the smallest that is shown
    margin: float | None  # None: that of verdicts
    goal: float  # the power to reach, between 0 and 1
    known: Known | None = None

    def rule(self, difference: float | None) -> Rule:
        """The rule of the claim. Raises UserError for one that is not true of the
        difference: no number of seeds and images would let it hold."""
        kind, metric, margin = self.kind, self.metric, self.margin
        if metric not in METRICS:
            raise UserError(
                "--metric",
                expected="a metric of records",
                found=f"unknown metric {suggested(metric, METRICS)}",
                do="correct it",
            )
        if margin is None and kind.needs_printed:
            raise UserError(
                "--margin",
                expected="what the first is better by",
                found="nothing",
                do="give it",
            )
        if margin is None:
            is_gain = difference is not None and difference > 0
            printed = (difference, 0.0) if is_gain and not kind.denies else None
            margin = margin_of(Part(kind=kind.name, metric=metric), printed)
        if not isfinite(difference or 0.0):
            found = f"{difference:g}"
            raise UserError("--difference", "a finite number", found, "correct it")
        if not 0 <= margin < inf:
            expected = "a finite number, 0 or more"
            raise UserError("--margin", expected, f"{margin:g}", "correct it")
        if not 0 < self.goal < 1:
            expected = "a number above 0 and below 1"
            raise UserError("--power", expected, f"{self.goal:g}", "correct it")
        least, most = METRICS[metric].range
        if difference is not None and abs(difference) > most - least:
            raise UserError(
                "--difference",
                expected=f"a difference of {metric}, up to {most - least:g}",
                found=f"{difference:g}",
                do="correct it",
            )
        if difference is not None and not kind.is_true_of(difference, margin):
            than = "less" if kind.denies else "more"
            raise UserError(
                f"--difference, {kind.name}",
                expected=f"{than} than the margin of {margin:.3g}",
                found=f"{difference:g}",
                do="change one of them",
            )
        return Rule(kind=kind, margin=margin)

    def suffices(self, seeds: int, images: int, difference: float) -> bool:
        """Whether the claim has the power to reach."""
        doubt = self.known.doubt(seeds, images)
        if doubt is None:
            return False
        return power(self.rule(difference), difference, doubt) >= self.goal

    def cell(self, seeds: int, images: int) -> float | None:
        """Its power, or the smallest difference that is shown; None where nothing would
        be known of other trainings, or no difference is large enough."""
        doubt = self.known.doubt(seeds, images)
        if doubt is None:
            return None
        if self.difference is not None:
            return power(self.rule(self.difference), self.difference, doubt)
        least, most = METRICS[self.metric].range
        start = bisect(DIFFERENCES, self.margin or 0.0)
        end = bisect(DIFFERENCES, most - least)
        is_shown = partial(self.suffices, seeds, images)
        place = bisect_left(DIFFERENCES, True, start, end, key=is_shown)
        return DIFFERENCES[place] if place < end else None

    def images_for(self, seeds: int) -> int | None:
        """How many images suffice. They are tried one after the other: with few seeds,
        more images can leave fewer degrees of freedom."""
        for images in IMAGES:
            if self.suffices(seeds, images, self.difference):
                return images
        return None

    def seeds_for(self, images: int) -> int | None:
        """How many seeds suffice, up to MOST_SEEDS."""
        for seeds in range(1, MOST_SEEDS + 1):
            if self.suffices(seeds, images, self.difference):
                return seeds
        return None


def known_from_options(sd: float, error: float, image_count: int) -> Known:
    """What the options say. The part of the spread of trainings that other images would
    change is taken to be 0, which is the cautious choice."""
    if not (0 <= sd <= MOST and 0 <= error <= MOST and sd + error > 0):
        raise UserError(
            "plan",
            expected=f"deviations that are not all 0, and {MOST} at most",
            found=f"SD {sd:g}, SE {error:g}",
            do="correct them",
        )
    _check_least("--of-images", [image_count], 2)
    return Known(
        images=error**2,
        image_count=image_count,
        seeds=sd**2,
        interaction=0.0,
        freedom=0.0,
        source="This assumes that only these trainings tell how trainings vary.",
    )


def known_from_season(
    season: str | None, dataset: str | None, like: Sequence[str] | None, metric: str
) -> Known:
    """From rows of a season: how its trainings vary, and the median of what images add
    to the difference of two rows without a common training; or of the two rows that are
    named."""
    if like and len(like) != 2:
        raise UserError("--like", "two rows", listed(like), "name two")
    params = read_declaration(season)
    boards = {board.dataset: board for board in read_boards(params)}
    if dataset is None and len(boards) > 1:
        raise UserError(
            "--dataset",
            expected=f"one of {', '.join(boards)}",
            found="nothing",
            do="name it, or another season: rematch plan flickr8k, or give what "
            "varied elsewhere: rematch plan --help",
        )
    board = entry(boards, dataset or next(iter(boards)), "dataset")
    rows = {row.preset: row for row in board.ranked if comparisons.values(row, metric)}
    named = [entry(rows, name, f"row with {metric}") for name in like or ()]
    pairs = [named] if named else combinations(rows.values(), 2)
    of_images: list[float] = []
    parts = [comparisons.seed_part(board, row, metric) for row in named]
    for first, second in pairs:
        of_first = comparisons.trainings_of(board, first)
        of_second = comparisons.trainings_of(board, second)
        if first.task != second.task or not of_first.isdisjoint(of_second):
            continue
        doubt = comparisons.compare(board, first, second, metric).doubt
        if doubt.images:
            of_images.append(max(0.0, doubt.images - doubt.interaction))
        if not parts:
            spread = comparisons.spread_of(board, first.task, metric)
            parts = [spread.part("", 2)]
    if not of_images or None in parts:
        raise UserError(
            f"{params.season}: {metric}",
            expected=f"rows on {board.dataset} whose images and trainings both vary",
            found="none",
            do="choose others, or give --sd-seeds, --se-images and --of-images",
        )
    seeds = fmean(part.variance for part in parts)
    images = median(of_images)
    between_seeds = f"{seeds**0.5:.2g} between trainings"
    from_images = f"{images**0.5:.2g} from the images"
    source = f"Standard deviations on {board.dataset}: {between_seeds}, {from_images}"
    if len(of_images) > 1:
        source += " (a median: similar rows have less, see --like)"
    return Known(
        images=images,
        image_count=board.card["counts"]["test"]["images"],
        seeds=seeds,
        interaction=fmean(part.interaction for part in parts),
        freedom=min(part.freedom for part in parts),
        source=f"{source}.",
    )
