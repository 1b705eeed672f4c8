"""What a verdict on results says: as data, for a terminal, and as Markdown."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from benchmark.boards.claims_file import rounded
from benchmark.commands.against_printed import Place, PrintedComparison
from benchmark.commands.judged_results import Judged, concluded
from benchmark.core.errors import printable
from benchmark.papers.printed_numbers import Rounded
from benchmark.report.markdown import escaped
from benchmark.report.pages.claim_tables import decided_by
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import FAILED, KINDS, Conclusion

LONGEST = 600  # letters of a note
LEAST_P = 1e-300  # smaller ones are printed as such
# exit statuses of --check
HOLDS, FAILS, UNDECIDED = 0, 1, 2
HOLDING = (Conclusion.HOLDS, Place.COMPATIBLE)
FAILING = (*FAILED, Place.BELOW, Place.ABOVE)


def facts_of(judged: Sequence[Judged]) -> list[dict]:
    """The verdicts on pairs as data, with Holm's p over them; numbers have DIGITS
    significant digits, as in claims.json."""
    facts = []
    for each, verdict in zip(judged, concluded(judged), strict=True):
        comparison, limit = verdict.comparison, verdict.limit
        low, high = comparison.interval or (None, None)
        runs = comparison.firsts, comparison.seconds
        facts.append(
            {
                "first": comparison.first,
                "second": comparison.second,
                "kind": verdict.rule.kind.name,
                "metric": comparison.metric,
                "conclusion": str(verdict.conclusion),
                "reason": verdict.reason,
                "levels": [_rounded(fmean(values)) for values in runs],
                "difference": _rounded(comparison.difference),
                "low": _rounded(low),
                "high": _rounded(high),
                "margin": _rounded(verdict.margin),
                "p": _rounded(verdict.p),
                "adjusted_p": _rounded(verdict.adjusted_p),
                "share_of_trainings": _rounded(comparison.doubt.share_of_trainings),
                "queries": each.queries,
                "unit": each.unit,
                "units": comparison.doubt.image_count,
                "seeds": list(comparison.trainings),
                "is_of_these_trainings": comparison.is_of_these_trainings,
                "on_test_set": str(verdict.on_test_set),
                "limit": limit and limit._asdict(),
                "decides": limit
                and decided_by(limit, f"times as many further {each.unit}"),
                "pairs": len(judged),
                "notes": [note[:LONGEST] for note in each.notes],
            }
        )
    return facts


def facts_against(against: PrintedComparison) -> dict:
    """The same of one result and a printed number."""
    comparison, (low, high) = against.comparison, against.interval
    of_trainings = None
    if against.on_test_set:
        ends = [_rounded(end) for end in against.on_test_set.interval]
        conclusion = str(against.on_test_set.conclusion)
        of_trainings = {"conclusion": conclusion, "interval": ends}
    return {
        "result": comparison.first,
        "metric": comparison.metric,
        "printed": against.printed.value,
        "decimals": against.printed.decimals,
        "conclusion": str(against.conclusion),
        "reason": against.reason,
        "level": _rounded(against.level),
        "low": _rounded(low),
        "high": _rounded(high),
        "margin": _rounded(against.margin),
        "on_test_set": of_trainings,
        "queries": against.queries,
        "unit": against.unit,
        "units": comparison.doubt.image_count,
        "seeds": len(comparison.firsts),
        "is_of_these_trainings": comparison.is_of_these_trainings,
        "notes": [note[:LONGEST] for note in against.notes],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def lines(facts: dict) -> list[str]:
    """A verdict, and what there is to say of it, as sentences without their full
    stops."""
    sentences = [facts["statement"]] if facts.get("statement") else []
    if "printed" in facts:
        return [*sentences, *lines_against(facts)]
    unit, share = facts["unit"], facts["share_of_trainings"]
    claimed = f"{facts['first']} {KINDS[facts['kind']].verb} {facts['second']}"
    sentences.append(f"{claimed} by {facts['metric']}: {facts['conclusion']}")
    first, second = facts["levels"]
    numbers = [f"levels {first:.4g} and {second:.4g}"]
    numbers.append(f"difference {facts['difference']:+.4g}")
    if facts["low"] is not None:
        numbers.append(f"{PERCENT} interval [{facts['low']:.4g}, {facts['high']:.4g}]")
    numbers.append(f"margin {facts['margin']:.4g}")
    if facts["p"] is not None:
        numbers.append(f"p {two_digits_of(facts['p'])}")
        if facts["pairs"] > 1:
            numbers.append(f"{two_digits_of(facts['adjusted_p'])} by Holm")
        else:
            numbers.append("not adjusted for other comparisons")
    sentences += [", ".join(numbers), facts["reason"]]
    if facts["on_test_set"] != facts["conclusion"]:
        scope = f"for other trainings on these {unit}"
        sentences.append(f"{scope}: {facts['on_test_set']}")
    if facts["decides"]:
        sentences.append(f"to decide it, if the difference stays: {facts['decides']}")
    seeds = " and ".join(map(str, facts["seeds"]))
    sentences.append(f"{_counts_of(facts)}, seeds: {seeds}")
    if share is not None and not facts["is_of_these_trainings"]:
        of_units = f"uncertainty: {1 - share:.0%} from {unit}"
        sentences.append(f"{of_units}, {share:.0%} from trainings")
    return [*sentences, *facts["notes"]]


def _counts_of(facts: dict) -> str:
    """How many queries, and images or clusters where these are others."""
    if facts["unit"] == "queries":
        return f"{facts['queries']} queries"
    return f"{facts['queries']} queries, {facts['units']} {facts['unit']}"


def lines_against(facts: dict) -> list[str]:
    """The same of one result and a printed number."""
    number = Rounded(facts["printed"], facts["decimals"])
    question = f"{facts['result']} beside the printed {number}"
    question += f" by {facts['metric']}"
    ends = f"[{facts['low']:.4g}, {facts['high']:.4g}]"
    numbers = f"level {facts['level']:.4g}, {PERCENT} interval {ends}"
    numbers += f", margin {facts['margin']:.4g}"
    sentences = [f"{question}: {facts['conclusion']}", numbers, facts["reason"]]
    of_trainings, unit = facts["on_test_set"], facts["unit"]
    if of_trainings and of_trainings["conclusion"] != facts["conclusion"]:
        low, high = of_trainings["interval"]
        which = f"for other trainings on these {unit} [{low:.4g}, {high:.4g}]"
        sentences.append(f"{which}: {of_trainings['conclusion']}")
    sentences.append(f"{_counts_of(facts)}, seeds: {facts['seeds']}")
    return [*sentences, *facts["notes"]]


def two_digits_of(p: float) -> str:
    return f"{p:.2g}" if p >= LEAST_P else f"< {LEAST_P:g}"


def shown(facts: dict) -> str:
    """The same for a terminal."""
    return "\n  ".join(map(printable, lines(facts)))


def page(facts: dict) -> str:
    """The same as Markdown."""
    head, *others = map(escaped, lines(facts))
    return "\n- ".join([f"## {head}\n", *others])


def status_of(found: Sequence[Mapping]) -> int:
    """The exit status of --check."""
    conclusions = [facts["conclusion"] for facts in found]
    if any(conclusion in FAILING for conclusion in conclusions):
        return FAILS
    is_held = all(conclusion in HOLDING for conclusion in conclusions)
    return HOLDS if is_held else UNDECIDED
