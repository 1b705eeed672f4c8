"""The verdicts on claims as tables and sentences. Knows no torch."""

from collections.abc import Sequence

from benchmark.boards import flags
from benchmark.boards.boards import Board
from benchmark.boards.claim_ledger import FAILED, RowEntry
from benchmark.boards.claims import ClaimTest, counts
from benchmark.papers.printed_tables import OWN, quantity, sides, title_of
from benchmark.report.tables import DAGGER, Code, Number, Table, mean, signed
from benchmark.stats.claim_kinds import KINDS
from benchmark.stats.verdicts import Limit, Size, Verdict, two_digits

TESTS = "../../tests"  # from a season's page
INDENT = "– "  # before a part of a claim


def verdict_table(title: str, claim_tests: Sequence[ClaimTest]) -> Table:
    """For pages, a row per claim that was run, and of one with several parts a row
    for each: the verdict, what would decide an undecided one, and the letters of all
    flags."""
    lines = []
    for claim_test in (claim_test for claim_test in claim_tests if claim_test.verdicts):
        letters = flags.letters(claim_test.flags)
        head = {"claim": statement(claim_test), "verdict": claim_test.conclusion}
        head["flags"] = Code(letters) if letters else None
        alone = len(claim_test.verdicts) == 1
        lines += [] if alone else [head]
        for verdict in claim_test.verdicts:
            of_part = {
                "claim": f"{INDENT}{compared(verdict)}",
                "verdict": verdict.conclusion,
            }
            line = {
                "metric": heading(verdict),
                "difference, 95% interval": difference(verdict),
                "printed": printed_difference(verdict),
                "would decide it": limited(verdict.limit) if verdict.limit else "",
            }
            lines.append((head if alone else of_part) | line)
    order = ("claim", "verdict", "metric", "difference, 95% interval", "printed")
    order += ("would decide it", "flags")
    return Table.of(title, [{name: line.get(name) for name in order} for line in lines])


def claims_table(title: str, claim_tests: Sequence[ClaimTest]) -> Table:
    """For export: every claim, with a row per part that was run, or the reason why none
    was."""
    lines = []
    for claim_test in claim_tests:
        claim = claim_test.claim
        of_claim = {
            "paper": claim_test.paper,
            "claim": statement(claim_test),
            "counted": "yes" if claim_test.is_counted else "no",
            "on other images": claim_test.conclusion,
            "on this test set": claim_test.on_test_set,
        }
        ends = {"where": claim.where, "note": claim.note}
        if not claim_test.verdicts:
            said = (
                f" {KINDS[of.kind].verb} ".join(map(title_of, of.presets))
                for of in claim.parts
            )
            metrics = dict.fromkeys(
                quantity(part.metric).heading for part in claim.parts
            )
            of_claim |= {"compared": "; ".join(said), "metric": ", ".join(metrics)}
            lines.append(of_claim | {"remark": claim_test.reason} | ends)
        for verdict in claim_test.verdicts:
            p_values, decimals = (
                {"p": verdict.p, "p after Holm": verdict.adjusted_p},
                _decimals(verdict),
            )
            of_verdict = {
                "compared": compared(verdict),
                "metric": heading(verdict),
                "of this part": verdict.conclusion,
                "seeds": ", ".join(
                    str(n) for n in dict.fromkeys(verdict.comparison.trainings) if n
                ),
                "first": mean(verdict.comparison.firsts, decimals),
                "second": mean(verdict.comparison.seconds, decimals),
                "difference": difference(verdict),
                "printed": printed_difference(verdict),
                "margin": Number(value=verdict.margin, form=".2g"),
            }
            of_verdict |= {
                k: Number(value=p, form=".2g")
                for k, p in p_values.items()
                if p is not None
            }
            lines.append(
                of_claim | of_verdict | {"remark": remark(claim_test, verdict)} | ends
            )
    return Table.of(title, lines)


def against_papers(
    board: Board, claim_tests: Sequence[ClaimTest]
) -> list[tuple[ClaimTest, str]]:
    """The verdicts that contradict their paper, each with Markdown links to the tests
    that speak for the implementation: a wrong one is likelier than a wrong paper."""
    listed = []
    for claim_test in claim_tests:
        rows = [
            row for preset in claim_test.claim.presets if (row := board.row(preset))
        ]
        is_against = claim_test.conclusion in FAILED and claim_test.is_counted
        if rows and is_against and claim_test.paper != OWN:
            names = [row.method for row in rows if not row.is_own]
            names += ["fusion"] * any(row.declared.fuse for row in rows)
            links = [
                f"[{name}]({TESTS}/test_{name}.py)" for name in dict.fromkeys(names)
            ]
            listed.append((claim_test, ", ".join(links)))
    return listed


def counted(claim_tests: Sequence[ClaimTest]) -> str:
    """How many claims that count have each conclusion that one has: "holds 1, undecided
    2"."""
    return ", ".join(
        f"{word} {count}" for word, count in counts(claim_tests).items() if count
    )


def tally(claim_tests: Sequence[ClaimTest]) -> str:
    """What became of all claims, those of the season file first; without its full
    stop."""
    own, others = (
        [v for v in claim_tests if (v.paper == OWN) is of] for of in (True, False)
    )
    counting = f"Of the papers' claims {sum(v.is_counted for v in others)} count here"
    said = {"The season's own claims": own, counting: others}
    return ". ".join(f"{head}: {counted(of)}" for head, of in said.items() if of)


def statement(claim_test: ClaimTest) -> str:
    """The claim; where it does not count, that it does not."""
    text = claim_test.claim.statement
    if claim_test.is_elsewhere:
        return f"Said of other data, not counted: {text}"
    return text if claim_test.is_counted else f"Not counted: {text}"


def compared(verdict: Verdict) -> str:
    """What is compared, in short: "a beats b", or the two metrics of one preset."""
    comparison = verdict.comparison
    if comparison.second:
        return f" {verdict.rule.kind.verb} ".join(comparison.titles)
    first, second = (quantity(side).heading for side in sides(comparison.metric))
    return f"{comparison.titles[0]}: {first} above {second}"


def heading(verdict: Verdict) -> str:
    """Of the metric that was compared."""
    return quantity(verdict.comparison.metric).heading


def difference(verdict: Verdict) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing
    of other trainings."""
    note = DAGGER * verdict.comparison.is_of_these_trainings
    return signed(verdict.difference, _decimals(verdict), verdict.interval, note)


def level(place: RowEntry) -> Number:
    """The mean with its interval; a dagger marks one that says nothing of other
    trainings."""
    note = DAGGER * place.is_of_these_trainings
    return Number(value=place.mean, low=place.low, high=place.high, note=note)


def printed_difference(verdict: Verdict) -> Number | None:
    """What the paper prints for it."""
    return signed(verdict.printed, _decimals(verdict))


def _decimals(verdict: Verdict) -> int:
    return quantity(verdict.comparison.metric).decimals


def remark(claim_test: ClaimTest, verdict: Verdict) -> str:
    """Why the verdict is what it is, how large the difference is beside the printed
    one, what would decide an undecided claim, and what speaks against trusting it."""
    said = [verdict.reason]
    said += (
        [f"the difference is {verdict.size}"]
        if verdict.size not in (None, Size.AS_PRINTED)
        else []
    )
    said += [f"{limited(verdict.limit)} would decide it"] if verdict.limit else []
    return "; ".join(dict.fromkeys([*said, *map(flags.said, claim_test.flags)]))


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
