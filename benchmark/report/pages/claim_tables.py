"""The verdicts on claims as tables and sentences. Imports no torch."""

from collections.abc import Sequence

from benchmark.boards import flags
from benchmark.boards.boards import Board
from benchmark.boards.claims import ClaimTest, counts
from benchmark.boards.claims_file import RowEntry
from benchmark.papers.printed_tables import OWN, quantity, sides, title_of
from benchmark.report.tables import DAGGER, Code, Number, Table, mean, signed
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import FAILED, KINDS, Conclusion
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import MOST_FOLDS, MOST_SEEDS, Limit, Size, Verdict

TESTS = "../../tests"  # from a season's page
INDENT = "– "  # before a part of a claim
# columns of a verdict
DIFFERENCE, OPEN = f"difference, {PERCENT} interval", "would decide it"
FOLD = "more {folds} of the same size"  # other images from the same pool


def verdict_table(title: str, claim_tests: Sequence[ClaimTest]) -> Table:
    """For pages, a row per claim that was run, and of one with several parts a row for
    each, with the letters of all flags."""
    lines = []
    for claim_test in claim_tests:
        verdicts, letters = claim_test.verdicts, flags.letters(claim_test.flags)
        head = {
            "claim": statement(claim_test),
            "verdict": claim_test.conclusion,
            **verdict_columns(verdicts[0] if len(verdicts) == 1 else None),
            "flags": Code(letters) if letters else None,
        }
        lines += [head] if verdicts else []
        for verdict in verdicts if len(verdicts) > 1 else ():
            name = f"{INDENT}{compared(verdict)}"
            line = {"claim": name, "verdict": verdict.conclusion}
            lines.append(line | verdict_columns(verdict))
    return Table.of(title, lines)


def verdict_columns(verdict: Verdict | None) -> dict:
    """A comparison for pages; None: empty columns, of a claim with several parts."""
    if verdict is None:
        return dict.fromkeys(("metric", DIFFERENCE, "printed", OPEN))
    return {
        "metric": verdict.comparison.heading,
        DIFFERENCE: difference(verdict.comparison),
        "printed": printed_difference(verdict),
        OPEN: decided_by(verdict.limit) if verdict.limit else "",
    }


def claims_table(title: str, claim_tests: Sequence[ClaimTest]) -> Table:
    """For export: every claim, with a row per part that was run, or why none was."""
    lines = []
    for claim_test in claim_tests:
        head = {
            "paper": claim_test.paper,
            "claim": statement(claim_test),
            "counted": "yes" if claim_test.is_counted else "no",
            "on other images": claim_test.conclusion,
            "on this test set": claim_test.on_test_set,
        }
        tail = {"where": claim_test.claim.where, "note": claim_test.claim.note}
        parts = [_numbers(claim_test, verdict) for verdict in claim_test.verdicts]
        for part in parts or [_not_run(claim_test)]:
            lines.append(head | part | tail)
    return Table.of(title, lines)


def _not_run(claim_test: ClaimTest) -> dict:
    """What a claim that was not run compares, and why it was not."""
    sentences, metrics = [], {}
    for part in claim_test.claim.parts:
        verb = KINDS[part.kind].verb
        sentences.append(f" {verb} ".join(map(title_of, part.presets)))
        metrics[quantity(part.metric).heading] = None
    return {
        "compared": "; ".join(sentences),
        "metric": ", ".join(metrics),
        "remark": claim_test.reason,
    }


def _numbers(claim_test: ClaimTest, verdict: Verdict) -> dict:
    comparison, decimals = verdict.comparison, verdict.comparison.decimals
    trainings = dict.fromkeys(count for count in comparison.trainings if count)
    line = {
        "compared": compared(verdict),
        "metric": comparison.heading,
        "of this part": verdict.conclusion,
        "seeds": ", ".join(map(str, trainings)),
        "first": mean(comparison.firsts, decimals),
        "second": mean(comparison.seconds, decimals),
        "difference": difference(comparison),
        "printed": printed_difference(verdict),
    }
    small = {"margin": verdict.margin, "p": verdict.p}
    for name, value in (small | {"p after Holm": verdict.adjusted_p}).items():
        if value is not None:
            line[name] = Number(value=value, form=".2g")
    return line | {"remark": remark(claim_test, verdict)}


def against_papers(
    board: Board, claim_tests: Sequence[ClaimTest]
) -> list[tuple[ClaimTest, str]]:
    """The verdicts that contradict their paper, each with Markdown links to the tests
    that speak for the implementation."""
    listed = []
    for test in claim_tests:
        rows = list(filter(None, map(board.row, test.claim.presets)))
        is_against = test.conclusion in FAILED and test.is_counted
        if rows and is_against and test.paper != OWN:
            names = dict.fromkeys(row.method for row in rows if not row.is_own)
            if any(row.declared.fuse for row in rows):
                names["fusion"] = None
            links = [f"[{name}]({TESTS}/test_{name}.py)" for name in names]
            listed.append((test, ", ".join(links)))
    return listed


def conclusion_counts(claim_tests: Sequence[ClaimTest]) -> str:
    """How many claims that count hold, fail, are open: "1 held, 2 undecided"."""
    numbers = counts(claim_tests)
    without_effect = numbers[Conclusion.NO_DIFFERENCE]
    denied = sum(numbers[conclusion] for conclusion in FAILED)
    named = {
        "held": numbers[Conclusion.HOLDS],
        "without effect": without_effect,
        "failed": denied - without_effect,
        "undecided": numbers[Conclusion.UNDECIDED],
        "not run": numbers[Conclusion.NOT_RUN],
    }
    return ", ".join(f"{count} {word}" for word, count in named.items() if count)


def tally(claim_tests: Sequence[ClaimTest]) -> str:
    """What became of all claims, those of the season file first."""
    own = [test for test in claim_tests if test.paper == OWN]
    others = [test for test in claim_tests if test.paper != OWN]
    sentences = [f"The season's own claims: {conclusion_counts(own)}"] if own else []
    count = sum(test.is_counted for test in others)
    if counts(others)[Conclusion.NOT_RUN] < count:
        concluded = conclusion_counts(others)
        sentences.append(f"Of the papers' claims {count} count here: {concluded}")
    elif others:
        sentences.append(f"None of the {count} claims of papers that count was run")
    return ". ".join(sentences)


def statement(claim_test: ClaimTest) -> str:
    """The claim; where it does not count, that it does not."""
    text = claim_test.claim.statement
    if claim_test.is_elsewhere:
        return f"Said of other data, not counted: {text}"
    return text if claim_test.is_counted else f"Not counted: {text}"


def compared(verdict: Verdict) -> str:
    """In short: "a beats b", or the two metrics of one preset."""
    comparison = verdict.comparison
    if comparison.second:
        return f" {verdict.rule.kind.verb} ".join(comparison.titles)
    first, second = (quantity(side).heading for side in sides(comparison.metric))
    return f"{comparison.titles[0]}: {first} above {second}"


def difference(comparison: Comparison) -> Number:
    """With its interval; a dagger marks one that says nothing of other trainings."""
    note = DAGGER if comparison.is_of_these_trainings else ""
    interval = comparison.interval
    return signed(comparison.difference, comparison.decimals, interval, note)


def level(place: RowEntry) -> Number:
    """A row's mean with its interval, marked likewise."""
    note = DAGGER if place.is_of_these_trainings else ""
    return Number(value=place.mean, low=place.low, high=place.high, note=note)


def printed_difference(verdict: Verdict) -> Number | None:
    return signed(verdict.printed, verdict.comparison.decimals)


def remark(claim_test: ClaimTest, verdict: Verdict) -> str:
    """Why the verdict is what it is, how large beside the printed difference, what
    would decide it, and what speaks against trusting it."""
    remarks = [verdict.reason]
    if verdict.size not in (None, Size.AS_PRINTED):
        remarks.append(f"the difference is {verdict.size}")
    if verdict.limit:
        remarks.append(f"to decide it: {decided_by(verdict.limit)}")
    remarks += map(flags.said, claim_test.flags)
    return "; ".join(dict.fromkeys(remarks))


def decided_by(limit: Limit, fold: str = FOLD) -> str:
    """What would decide a comparison; `fold` says what further folds are."""
    ways = []
    if limit.seeds:
        plural = "s" if limit.seeds > 1 else ""
        ways.append(f"{limit.seeds} more seed{plural} per row")
    if limit.folds:
        folds = "folds" if limit.folds > 1 else "fold"
        ways.append(f"{limit.folds} {fold.format(folds=folds)}")
    most = f"{MOST_SEEDS} more seeds or {MOST_FOLDS} more folds"
    never = f"not even {most}: the difference is too close to a bound"
    return " or ".join(ways) or never
