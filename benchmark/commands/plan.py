"""How many seeds and test images a claim needs, before anything is trained.

rematch plan --season flickr8k --difference 10               from what a season's rows vary by
rematch plan --season flickr8k --difference 3 --like vse vse_official     ... or two of them
rematch plan --difference 10 --sd-seeds 2.1 --se-images 3.5 --of-images 1000
                                                             from what varied elsewhere
rematch plan --season flickr8k --difference 10 --seeds 3 --images 1000    the power of one plan
rematch plan --season flickr8k --seeds 3 --images 1000       the smallest difference that it shows

A claim is that the first row is better than the second (ordered), better by more than
the margin (far), that they differ by less than the margin (alike), or that the first is
not better by more than it (not_better). Its power is the probability that it holds for
other images and trainings, by the rules of verdicts, if the true difference is the
given one; without --difference, the smallest one that is shown with this power is told.
A dash stands where nothing would be known of other trainings.
"""

import argparse
from bisect import bisect, bisect_left
from functools import partial
from itertools import combinations
from math import ceil, inf, isfinite
from statistics import fmean, median
from typing import NamedTuple

from benchmark.boards import comparisons
from benchmark.boards.boards import MIN_TEST_QUERIES, read_boards
from benchmark.boards.claims import margin_of
from benchmark.core.errors import UserError, entry, suggested
from benchmark.papers.printed_tables import Part
from benchmark.report.markdown import pipe_table
from benchmark.scoring.metrics import METRICS
from benchmark.season.parameter_files import read_params
from benchmark.stats.claim_kinds import ALIKE, FAR, KINDS, ORDERED
from benchmark.stats.comparisons import CARRIES
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import MOST_SEEDS, Rule, power, two_digits

SEEDS = (1, 2, 3, 5, 10)
# to a million
IMAGES = [two_digits(ceil(MIN_TEST_QUERIES * 1.05**step)) for step in range(190)]
DIFFERENCES = [*sorted({float(f"{0.01 * 1.02**n:.2g}") for n in range(556)}), inf]


class Known(NamedTuple):
    """Why the difference of two rows is uncertain: variances on `image_count`
    images."""

    images: float  # over images, of the difference of two rows with endless trainings
    image_count: int
    seeds: float  # between the trainings of a row, on the same images
    interaction: float  # the part of that which other images would change
    freedom: float  # degrees of freedom of the trainings that there are already
    source: str  # a sentence

    def doubt(self, seeds: int, images: int) -> Doubt | None:
        """Of two rows with so many trainings each; None: their spread will not be
        known."""
        share, freedom = self.image_count / images, self.freedom + 2 * (seeds - 1)
        interaction = self.interaction * share
        variance = max(0.0, self.seeds - self.interaction) + interaction
        if variance and seeds == 1 and freedom < CARRIES:
            return None
        part = SeedPart((seeds, seeds), variance, interaction, freedom, is_own=False)
        luck = part.weight() * interaction
        return Doubt(
            self.images * share + luck, luck, images, (part,) if variance else ()
        )


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--difference",
        type=float,
        metavar="D",
        help="the true one; of what denies one, 0",
    )
    add(
        "--kind",
        choices=KINDS,
        default=ORDERED.name,
        help="of the claim; default: ordered",
    )
    add("--metric", default="rsum", help="such as t2i_r1; default: rsum")
    add("--margin", type=float, help="default: as in verdicts, if the paper prints D")
    add("--power", type=float, default=0.8, metavar="P", help="to reach; default: 0.8")
    add("--seeds", type=int, nargs="+", metavar="N", help="trainings of each row")
    add("--images", type=int, nargs="+", metavar="N", help="test images")
    add = parser.add_argument_group("from a season").add_argument
    add("--season", metavar="NAME", help="default: the active one")
    add("--dataset", help="default: the only one")
    add(
        "--like",
        nargs=2,
        metavar="ROW",
        help="two rows; default: the median of all pairs",
    )
    add = parser.add_argument_group(
        "or from elsewhere, in points of the metric"
    ).add_argument
    add(
        "--sd-seeds",
        type=float,
        metavar="SD",
        help="standard deviation of a row's trainings",
    )
    se = "standard error over images of the difference of two trainings: its 95%% interval reaches "
    add("--se-images", type=float, metavar="SE", help=f"{se} 1.96 of it to each side")
    add("--of-images", type=int, metavar="N", help="how many images gave SE")


def main(arguments: argparse.Namespace) -> None:
    kind, difference = arguments.kind, arguments.difference
    if difference is None and KINDS[kind].denies:
        difference = 0.0
    rule = rule_of(arguments, difference)
    three = (arguments.sd_seeds, arguments.se_images, arguments.of_images)
    is_given = three != (None,) * 3
    if is_given and (
        None in three or arguments.season or arguments.like or arguments.dataset
    ):
        expected = "--sd-seeds, --se-images and --of-images, or a season"
        raise UserError("plan", expected, "parts of both, or of one", "give all of one")
    known = given(*three) if is_given else of_season(arguments)
    here, goal = known.image_count, f"{arguments.power:.0%}"
    shown = {max(MIN_TEST_QUERIES, here * n // 2) for n in (1, 2, 4, 10)}
    seeds, images = arguments.seeds or SEEDS, arguments.images or sorted(shown)
    for option, numbers, least in (
        ("seeds", seeds, 1),
        ("images", images, MIN_TEST_QUERIES),
    ):
        if min(numbers) < least:
            raise UserError(
                f"--{option}", f"{least} or more", min(numbers), "correct it"
            )

    def suffices(seeds: int, images: int, true: float | None = difference) -> bool:
        doubt = known.doubt(seeds, images)
        return (
            bool(doubt)
            and power(rule_of(arguments, true), true, doubt) >= arguments.power
        )

    def cell(seeds: int, images: int) -> str:
        if (doubt := known.doubt(seeds, images)) is None:
            return "-"
        if difference is not None:
            return f"{power(rule, difference, doubt):.0%}"
        ends = bisect(DIFFERENCES, arguments.margin or 0.0), len(DIFFERENCES) - 1
        found = bisect_left(
            DIFFERENCES, True, *ends, key=partial(suffices, seeds, images)
        )
        return f"{DIFFERENCES[found]:g}"

    heads = ["seeds of each row", *(f"{n:,} images" for n in images)]
    rows = [[str(each), *(cell(each, count) for count in images)] for each in seeds]
    told, what = f"with a power of {goal}", f"({kind}, {arguments.metric}"
    if difference is None:
        told = f"The smallest true differences that are shown {told} {what})."
    else:
        heads.append(f"images for {goal}")
        for each, row in zip(seeds, rows, strict=True):
            # One after the other: with few seeds, more images can leave fewer degrees
            # of freedom.
            row.append(
                next((f"{n:,}" for n in IMAGES if suffices(each, n)), "no number")
            )
        enough = next((n for n in range(1, MOST_SEEDS + 1) if suffices(n, here)), None)
        needed = f"takes {enough}" if enough else f"needs more than {MOST_SEEDS}"
        told = f"On {here:,} images it {needed} seeds of each row {told} {what}: true difference "
        told += f"{difference:g}, margin {rule.margin:.3g})."
    print(f"{pipe_table(heads, rows, 'r' * len(heads))}\n\n{told} {known.source}")


def rule_of(arguments: argparse.Namespace, difference: float | None) -> Rule:
    """The rule of the claim. Raises UserError for one that is not true of the
    difference: no number of seeds and images would let it hold."""
    kind, margin = KINDS[arguments.kind], arguments.margin
    if arguments.metric not in METRICS:
        found = suggested(arguments.metric, METRICS)
        raise UserError(
            "--metric", "a metric of records, such as rsum", found, "correct it"
        )
    if margin is None and kind == FAR:
        raise UserError("--margin", "what the first is better by", "nothing", "give it")
    if margin is None:
        printed = None if kind.denies else (difference or 0.0, 0.0)
        margin = margin_of(Part(kind=kind.name, metric=arguments.metric), printed)
    if not (
        isfinite(difference or 0.0) and 0 <= margin < inf and 0 < arguments.power < 1
    ):
        expected = "finite numbers, a margin of 0 or more and a power between 0 and 1"
        raise UserError(
            "plan", expected, f"{difference}, {margin:g} and {arguments.power:g}"
        )
    size = abs(difference) if kind == ALIKE else difference
    if size is not None and (size >= margin if kind.denies else size <= margin):
        expected = (
            f"{'less' if kind.denies else 'more'} than the margin of {margin:.3g}"
        )
        raise UserError(
            f"--difference, {kind.name}",
            expected,
            f"{difference:g}",
            "change one of them",
        )
    return Rule(kind=kind, margin=margin)


def given(sd: float, error: float, image_count: int) -> Known:
    """From the command line. No part of the spread of trainings is that of images,
    which asks for the most."""
    if not (0 <= sd < inf and 0 <= error < inf and sd + error > 0):
        expected = "deviations that are not all 0"
        raise UserError("plan", expected, f"SD {sd:g}, SE {error:g}", "correct them")
    if image_count < 2:
        raise UserError("--of-images", "2 or more", image_count, "correct it")
    source = "It is assumed that nothing but these trainings will tell the spread of trainings."
    return Known(error**2, image_count, sd**2, 0.0, 0.0, source)


def of_season(arguments: argparse.Namespace) -> Known:
    """From rows of a season: how its trainings vary, and the median of what images add
    to the difference of two rows without a common training; or of the two rows that are
    named."""
    metric, params = arguments.metric, read_params(arguments.season)
    boards = {board.dataset: board for board in read_boards(params)}
    if arguments.dataset is None and len(boards) > 1:
        raise UserError(
            "--dataset", f"one of {', '.join(boards)}", "nothing", "name it"
        )
    board = entry(boards, arguments.dataset or next(iter(boards)), "dataset")
    rows = {row.preset: row for row in board.ranked if comparisons.values(row, metric)}
    liked = [entry(rows, name, f"row with {metric}") for name in arguments.like or ()]
    pairs = [liked] if liked else combinations(rows.values(), 2)
    of_images, parts = [], [comparisons.seed_part(board, row, metric) for row in liked]
    for first, second in pairs:
        trainings = [comparisons.trainings_of(board, row) for row in (first, second)]
        if first.task == second.task and trainings[0].isdisjoint(trainings[1]):
            doubt = comparisons.compare(board, first, second, metric).doubt
            of_images += (
                [max(0.0, doubt.images - doubt.interaction)] if doubt.images else []
            )
            parts = parts or [
                comparisons.spread_of(board, first.task, metric).part("", 2)
            ]
    if not of_images or None in parts:
        where, expected = (
            f"{params.season}: {metric}",
            "rows whose images and trainings both vary",
        )
        do = "choose others, or give --sd-seeds, --se-images and --of-images"
        raise UserError(where, f"{expected} on {board.dataset}", "none", do)
    seeds, luck = (
        fmean(getattr(part, of) for part in parts) for of in ("variance", "interaction")
    )
    images = median(of_images)
    of_pairs = ""
    if len(of_images) > 1:
        of_pairs = " (a median: rows that are alike have less, see --like)"
    told = f"{seeds**0.5:.2g} between trainings, {images**0.5:.2g} from the images{of_pairs}"
    count, freedom = (
        board.card["counts"]["test"]["images"],
        min(part.freedom for part in parts),
    )
    source = f"Standard deviations on {board.dataset}: {told}."
    return Known(images, count, seeds, luck, freedom, source)
