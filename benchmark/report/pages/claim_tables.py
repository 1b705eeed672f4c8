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
    for verdict in (verdict for verdict in verdicts if verdict.pairs):
        letters = flags.letters(verdict.flags)
        head = {"claim": statement(verdict), "verdict": verdict.conclusion}
        head["flags"] = Code(letters) if letters else None
        alone = len(verdict.pairs) == 1
        lines += [] if alone else [head]
        for pair in verdict.pairs:
            of_part = {"claim": f"{INDENT}{compared(pair)}", "verdict": pair.conclusion}
            line = {
                "metric": heading(pair),
                "difference, 95% interval": difference(pair),
                "printed": printed_difference(pair),
                "would decide it": limited(pair.limit) if pair.limit else "",
            }
            lines.append((head if alone else of_part) | line)
    order = ("claim", "verdict", "metric", "difference, 95% interval", "printed")
    order += ("would decide it", "flags")
    return Table.of(title, [{name: line.get(name) for name in order} for line in lines])


def claims_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """For export: every claim, with a row per part that was run, or the reason why none
    was."""
    lines = []
    for verdict in verdicts:
        claim = verdict.claim
        of_claim = {
            "paper": verdict.paper,
            "claim": statement(verdict),
            "counted": "yes" if verdict.is_counted else "no",
            "on other images": verdict.conclusion,
            "on this test set": verdict.on_test_set,
        }
        ends = {"where": claim.where, "note": claim.note}
        if not verdict.pairs:
            said = (
                f" {KINDS[of.kind].verb} ".join(map(title_of, of.presets))
                for of in claim.parts
            )
            metrics = dict.fromkeys(
                quantity(part.metric).heading for part in claim.parts
            )
            of_claim |= {"compared": "; ".join(said), "metric": ", ".join(metrics)}
            lines.append(of_claim | {"remark": verdict.reason} | ends)
        for pair in verdict.pairs:
            p_values, decimals = (
                {"p": pair.p, "p after Holm": pair.adjusted_p},
                _decimals(pair),
            )
            of_pair = {
                "compared": compared(pair),
                "metric": heading(pair),
                "of this part": pair.conclusion,
                "seeds": ", ".join(
                    str(n) for n in dict.fromkeys(pair.comparison.trainings) if n
                ),
                "first": mean(pair.comparison.firsts, decimals),
                "second": mean(pair.comparison.seconds, decimals),
                "difference": difference(pair),
                "printed": printed_difference(pair),
                "margin": Number(value=pair.margin, form=".2g"),
            }
            of_pair |= {
                k: Number(value=p, form=".2g")
                for k, p in p_values.items()
                if p is not None
            }
            lines.append(of_claim | of_pair | {"remark": remark(verdict, pair)} | ends)
    return Table.of(title, lines)


def against_papers(
    board: Board, verdicts: Sequence[Verdict]
) -> list[tuple[Verdict, str]]:
    """The verdicts that contradict their paper, each with Markdown links to the tests
    that speak for the implementation: a wrong one is likelier than a wrong paper."""
    listed = []
    for verdict in verdicts:
        rows = [row for preset in verdict.claim.presets if (row := board.row(preset))]
        is_against = verdict.conclusion in FAILED and verdict.is_counted
        if rows and is_against and verdict.paper != OWN:
            names = [row.method for row in rows if not row.is_own]
            names += ["fusion"] * any(row.declared.fuse for row in rows)
            links = [
                f"[{name}]({TESTS}/test_{name}.py)" for name in dict.fromkeys(names)
            ]
            listed.append((verdict, ", ".join(links)))
    return listed


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims that count have each conclusion that one has: "holds 1, undecided
    2"."""
    return ", ".join(
        f"{word} {count}" for word, count in counts(verdicts).items() if count
    )


def tally(verdicts: Sequence[Verdict]) -> str:
    """What became of all claims, those of the season file first; without its full
    stop."""
    own, others = (
        [v for v in verdicts if (v.paper == OWN) is of] for of in (True, False)
    )
    counting = f"Of the papers' claims {sum(v.is_counted for v in others)} count here"
    said = {"The season's own claims": own, counting: others}
    return ". ".join(f"{head}: {counted(of)}" for head, of in said.items() if of)


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
    note = DAGGER * pair.comparison.is_of_these_trainings
    return signed(pair.difference, _decimals(pair), pair.interval, note)


def level(place: Place) -> Number:
    """The mean with its interval; a dagger marks one that says nothing of other
    trainings."""
    note = DAGGER * place.is_of_these_trainings
    return Number(value=place.mean, low=place.low, high=place.high, note=note)


def printed_difference(pair: Pair) -> Number | None:
    """What the paper prints for it."""
    return signed(pair.printed, _decimals(pair))


def _decimals(pair: Pair) -> int:
    return quantity(pair.comparison.metric).decimals


def remark(verdict: Verdict, pair: Pair) -> str:
    """Why the verdict is what it is, how large the difference is beside the printed
    one, what would decide an undecided claim, and what speaks against trusting it."""
    said = [pair.reason]
    said += (
        [f"the difference is {pair.size}"]
        if pair.size not in (None, Size.AS_PRINTED)
        else []
    )
    said += [f"{limited(pair.limit)} would decide it"] if pair.limit else []
    return "; ".join(dict.fromkeys([*said, *map(flags.said, verdict.flags)]))


def limited(limit: Limit, unit: str = "images") -> str:
    """What would decide an undecided comparison, if its difference stays; `unit` is
    what would be resampled."""
    beside = f" with {limit.seeds_beside} more seeds" if limit.seeds_beside else ""
    ways = (
        [f"{limit.seeds} more seed{'s' * (limit.seeds > 1)} of each"]
        if limit.seeds
        else []
    )
    ways += (
        [f"about {two_digits(limit.images):,} {unit}{beside}"] if limit.images else []
    )
    return (
        " or ".join(ways)
        or f"neither more seeds alone nor more {unit} with ten more seeds"
    )
