"""The verdicts on claims as tables and sentences. Knows no torch."""

from collections.abc import Sequence

from benchmark.boards import flags
from benchmark.boards.boards import Board
from benchmark.boards.claim_ledger import FAILED, Place
from benchmark.boards.claims import Verdict, counts
from benchmark.papers.printed_tables import OWN, quantity, sides, title_of
from benchmark.report.tables import DAGGER, Code, Number, Table, mean, signed
from benchmark.stats.claim_kinds import KINDS
from benchmark.stats.verdicts import Limit, Pair, Size, two_digits

TESTS = "../../tests"  # from a season's page
INDENT = "– "  # before a part of a claim


def verdict_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """For pages, a row per claim that was run, and of one with several parts a row
    for each: the verdict, what would decide an undecided one, and the letters of all
    flags."""
    lines = []
    for verdict in verdicts:
        letters = flags.letters(verdict.flags)
        head = {
            "claim": statement(verdict),
            "verdict": verdict.conclusion,
            "metric": None,
            "difference, 95% interval": None,
            "printed": None,
            "would decide it": None,
            "flags": Code(letters) if letters else None,
        }
        if len(verdict.pairs) == 1:
            lines.append(head | _measured(verdict.pairs[0]))
        elif verdict.pairs:
            lines.append(head)
            for pair in verdict.pairs:
                part = {"claim": f"{INDENT}{compared(pair)}"}
                part["verdict"] = pair.conclusion
                lines.append(part | _measured(pair))
    return Table.of(title, lines)


def _measured(pair: Pair) -> dict:
    """A comparison for pages."""
    return {
        "metric": heading(pair),
        "difference, 95% interval": difference(pair),
        "printed": printed_difference(pair),
        "would decide it": limited(pair.limit) if pair.limit else "",
    }


def claims_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """For export: every claim, with a row per part that was run, or the reason why none
    was."""
    lines = []
    for verdict in verdicts:
        head = {
            "paper": verdict.paper,
            "claim": statement(verdict),
            "counted": "yes" if verdict.is_counted else "no",
            "on other images": verdict.conclusion,
            "on this test set": verdict.on_test_set,
        }
        parts = [_numbers(pair) for pair in verdict.pairs]
        for part, pair in zip(parts, verdict.pairs, strict=True):
            part["remark"] = remark(verdict, pair)
        tail = {"where": verdict.claim.where, "note": verdict.claim.note}
        for part in parts or [_not_run(verdict)]:
            lines.append(head | part | tail)
    return Table.of(title, lines)


def _not_run(verdict: Verdict) -> dict:
    """What a claim that was not run compares, and why it was not."""
    sentences, metrics = [], {}
    for part in verdict.claim.parts:
        verb = KINDS[part.kind].verb
        sentences.append(f" {verb} ".join(map(title_of, part.presets)))
        metrics[quantity(part.metric).heading] = None
    return {
        "compared": "; ".join(sentences),
        "metric": ", ".join(metrics),
        "remark": verdict.reason,
    }


def _numbers(pair: Pair) -> dict:
    """A comparison for export."""
    comparison, decimals = pair.comparison, _decimals(pair)
    trainings = dict.fromkeys(count for count in comparison.trainings if count)
    line = {
        "compared": compared(pair),
        "metric": heading(pair),
        "of this part": pair.conclusion,
        "seeds": ", ".join(map(str, trainings)),
        "first": mean(comparison.firsts, decimals),
        "second": mean(comparison.seconds, decimals),
        "difference": difference(pair),
        "printed": printed_difference(pair),
        "margin": Number(value=pair.margin, form=".2g"),
    }
    if pair.p is not None:
        line["p"] = Number(value=pair.p, form=".2g")
    if pair.adjusted_p is not None:
        line["p after Holm"] = Number(value=pair.adjusted_p, form=".2g")
    return line


def against_papers(
    board: Board, verdicts: Sequence[Verdict]
) -> list[tuple[Verdict, str]]:
    """The verdicts that contradict their paper, each with Markdown links to the tests
    that speak for the implementation: a wrong one is likelier than a wrong paper."""
    listed = []
    for verdict in verdicts:
        rows = list(filter(None, map(board.row, verdict.claim.presets)))
        is_against = verdict.conclusion in FAILED and verdict.is_counted
        if rows and is_against and verdict.paper != OWN:
            names = [row.method for row in rows if not row.is_own]
            if any(row.declared.fuse for row in rows):
                names.append("fusion")
            names = dict.fromkeys(names)
            links = [f"[{name}]({TESTS}/test_{name}.py)" for name in names]
            listed.append((verdict, ", ".join(links)))
    return listed


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims that count have each conclusion that one has: "holds 1, undecided
    2"."""
    numbers = counts(verdicts).items()
    return ", ".join(f"{word} {count}" for word, count in numbers if count)


def tally(verdicts: Sequence[Verdict]) -> str:
    """What became of all claims, those of the season file first; without its full
    stop."""
    own = [verdict for verdict in verdicts if verdict.paper == OWN]
    others = [verdict for verdict in verdicts if verdict.paper != OWN]
    sentences = []
    if own:
        sentences.append(f"The season's own claims: {counted(own)}")
    if others:
        number = sum(verdict.is_counted for verdict in others)
        head = f"Of the papers' claims {number} count here"
        sentences.append(f"{head}: {counted(others)}")
    return ". ".join(sentences)


def statement(verdict: Verdict) -> str:
    """The claim; where it does not count, that it does not."""
    text = verdict.claim.statement
    if verdict.is_elsewhere:
        return f"Said of other data, not counted: {text}"
    return text if verdict.is_counted else f"Not counted: {text}"


def compared(pair: Pair) -> str:
    """What is compared, in short: "a beats b", or the two metrics of one preset."""
    comparison = pair.comparison
    if comparison.second:
        return f" {pair.rule.kind.verb} ".join(comparison.titles)
    first, second = (quantity(side).heading for side in sides(comparison.metric))
    return f"{comparison.titles[0]}: {first} above {second}"


def heading(pair: Pair) -> str:
    """Of the metric that was compared."""
    return quantity(pair.comparison.metric).heading


def difference(pair: Pair) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing
    of other trainings."""
    note = DAGGER if pair.comparison.is_of_these_trainings else ""
    return signed(pair.difference, _decimals(pair), pair.interval, note)


def level(place: Place) -> Number:
    """The mean with its interval; a dagger marks one that says nothing of other
    trainings."""
    note = DAGGER if place.is_of_these_trainings else ""
    return Number(value=place.mean, low=place.low, high=place.high, note=note)


def printed_difference(pair: Pair) -> Number | None:
    """What the paper prints for it."""
    return signed(pair.printed, _decimals(pair))


def _decimals(pair: Pair) -> int:
    return quantity(pair.comparison.metric).decimals


def remark(verdict: Verdict, pair: Pair) -> str:
    """Why the verdict is what it is, how large the difference is beside the printed
    one, what would decide an undecided claim, and what speaks against trusting it."""
    remarks = [pair.reason]
    if pair.size not in (None, Size.AS_PRINTED):
        remarks.append(f"the difference is {pair.size}")
    if pair.limit:
        remarks.append(f"{limited(pair.limit)} would decide it")
    remarks += map(flags.said, verdict.flags)
    return "; ".join(dict.fromkeys(remarks))


def limited(limit: Limit, unit: str = "images") -> str:
    """What would decide an undecided comparison, if its difference stays; `unit` is
    what would be resampled."""
    ways = []
    if limit.seeds:
        plural = "s" if limit.seeds > 1 else ""
        ways.append(f"{limit.seeds} more seed{plural} of each")
    if limit.images:
        images = f"about {two_digits(limit.images):,} {unit}"
        if limit.seeds_beside:
            images += f" with {limit.seeds_beside} more seeds"
        ways.append(images)
    if not ways:
        return f"neither more seeds alone nor more {unit} with ten more seeds"
    return " or ".join(ways)
