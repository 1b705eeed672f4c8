"""The verdicts on claims as tables. Knows no torch."""

from collections.abc import Mapping, Sequence

from benchmark.analysis import shared_effects
from benchmark.analysis.cautions import SAID_AT_ONCE
from benchmark.analysis.claim_ledger import KEY
from benchmark.analysis.claims import Tested, Verdict, counts
from benchmark.analysis.comparisons import Comparison
from benchmark.analysis.grounds import Cause
from benchmark.analysis.preset_titles import title_of
from benchmark.analysis.shared_effects import Effect
from benchmark.analysis.verdict_rules import Conclusion, Limit, Size, two_digits
from benchmark.papers.claimed_quantities import quantity, sides
from benchmark.papers.own_claims import OWN
from benchmark.report.number_texts import NO_BREAK, NONE, between, spread
from benchmark.report.table_formats import Entry, Table

WORDS = ["claim", "on other images", "on this test set", "compared", "metric"]
INTERVAL = "95% interval"
UNDER = "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}"  # a further comparison of the claim above
DAGGER = "\N{DAGGER}"  # marks an interval over the test images only
OF_THESE_TRAININGS = "95% over test images, these trainings only"
VERBS = {  # of one claim, and of several
    Conclusion.HOLDS: ("holds", "hold"),
    Conclusion.REVERSED: ("is reversed", "are reversed"),
    Conclusion.NO_DIFFERENCE: ("shows no difference", "show no difference"),
    Conclusion.BETTER: ("claims no gain where there is one", "claim no gain where there is one"),
    Conclusion.WORSE: ("claims no loss where there is one", "claim no loss where there is one"),
    Conclusion.UNDECIDED: ("is undecided", "are undecided"),
    Conclusion.NOT_RUN: ("was not run", "were not run"),
}
UNLIKE = (Size.SMALLER, Size.LARGER, Size.OPPOSITE)
SIGNS = {"ordered": "beats", "alike": "is like", "not_better": "does not beat"}


def claims_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The verdicts on claims that were run: one row per comparison, the verdict in the first."""
    run = [verdict for verdict in verdicts if verdict.conclusion != Conclusion.NOT_RUN]
    compared = [tested.comparison for verdict in run for tested in verdict.tested]
    intervals = [INTERVAL, *[OF_THESE_TRAININGS] * any(map(has_dagger, compared))]
    numbers = ["seeds", "here", "difference", *intervals, "p", "p after Holm", "printed"]
    return Table(
        title=title,
        heads=[*WORDS, *numbers, "remark"],
        rows=[row for verdict in run for row in _rows(verdict, intervals)],
        names=len(WORDS),
        has_remarks=True,
    )


def verdict_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The same in four columns, for pages: a row per claim; of a claim on several pairs, a row per
    pair below it."""
    heads = ["claim", "verdict", "difference here, 95% interval", "printed"]
    run = [verdict for verdict in verdicts if verdict.conclusion != Conclusion.NOT_RUN]
    effects = [_effect(verdict, tested) for verdict in run for tested in verdict.tested]
    beside = dict(zip(effects, shared_effects.remarks(effects), strict=True))
    rows = [row for verdict in run for row in _shown_rows(verdict, beside)]
    return Table(title=title, heads=heads, rows=rows, names=2)


def headlines(
    paper: str, of_boards: Mapping[str, Sequence[Verdict]]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The claims for which a paper is known, each with the title of a dataset and the answer
    there; `of_boards` has the verdicts by title. A claim that was not run anywhere says so once."""
    said: dict[str, list[tuple[str, str]]] = {}
    for title, verdicts in of_boards.items():
        for verdict in verdicts:
            if verdict.paper == paper and verdict.claim.headline:
                of_claim = said.setdefault(statement(verdict), [])
                of_claim += [(title, answer(verdict))] * (verdict.conclusion != Conclusion.NOT_RUN)
    return list(said.items())


def answer(verdict: Verdict) -> str:
    """The verdict with its numbers, in one line of plain text."""
    parts = []
    for tested in verdict.tested:
        pair = f"{compared(verdict, tested.comparison)}: " * (len(verdict.tested) > 1)
        size = f", {tested.size}" * (tested.size in UNLIKE)
        beside = f"; printed {_printed_difference(verdict, tested)}" * (tested.printed is not None)
        shown = difference(verdict, tested.comparison)
        parts.append(f"{pair}{tested.conclusion}, {shown}{size}{beside}")
    return ". ".join(parts)


def _shown_rows(verdict: Verdict, beside: Mapping[Effect, str]) -> list[list[str | Entry]]:
    conclusion = Entry(_with_cautions(verdict), is_bold=True)
    numbers = [
        [difference(verdict, tested.comparison), _printed_difference(verdict, tested)]
        for tested in verdict.tested
    ]
    if len(numbers) == 1:
        remark = beside[_effect(verdict, verdict.tested[0])]
        return [[f"{statement(verdict)}{f' ({remark})' * bool(remark)}", conclusion, *numbers[0]]]
    pairs = [
        [f"{UNDER} {compared(verdict, tested.comparison)}", tested.conclusion, *of_pair]
        for tested, of_pair in zip(verdict.tested, numbers, strict=True)
    ]
    return [[statement(verdict), conclusion, "", ""], *pairs]


def _with_cautions(verdict: Verdict) -> str:
    """The conclusion, with the gravest cautions in short; of an undecided claim what stands in its
    way instead, if that is neither the interval nor p."""
    if verdict.conclusion == Conclusion.UNDECIDED:
        is_plain = verdict.cause in (Cause.INTERVAL, Cause.CHANCE)
        return verdict.conclusion if is_plain else f"{verdict.conclusion} ({verdict.cause})"
    said = [kind for kind in SAID_AT_ONCE if any(c.startswith(kind) for c in verdict.cautions)]
    return f"{verdict.conclusion} ({', '.join(said)})" if said else verdict.conclusion


def _effect(verdict: Verdict, tested: Tested) -> Effect:
    comparison = tested.comparison
    return Effect(
        where="",
        claim=verdict.claim.statement,
        metric=_metric(verdict),
        shown=difference(verdict, comparison),
        first=comparison.titles[0],
        second=comparison.titles[1],
    )


def key_table() -> Table:
    """The words of the ledger beside those of the seasons' claim pages."""
    rows = [
        [group, meaning.text, ", ".join(filter(None, ("; ".join(meaning.verdicts), meaning.also)))]
        for group, meaning in KEY.items()
    ]
    heads = ["in the ledger", "what it says", "verdicts of the seasons"]
    return Table(title="Words", heads=heads, rows=rows, names=3)


def difference(verdict: Verdict, comparison: Comparison) -> str:
    """The measured difference with its metric and its interval; a dagger marks an interval that
    says nothing of other trainings."""
    decimals = _decimals(verdict)
    text = f"{_metric(verdict)} {comparison.difference:+.{decimals}f}"
    if comparison.interval is None:
        return text
    dagger = f"{NO_BREAK}{DAGGER}" if has_dagger(comparison) else ""
    return f"{text} {_interval(comparison, decimals)}{dagger}"


def facts(verdict: Verdict) -> list[str]:
    """What a verdict rests on: a line per comparison, then the remark."""
    lines = []
    for tested in verdict.tested:
        finding, decimals = tested.on_other_images, _decimals(verdict)
        sides_of = (tested.comparison.firsts, tested.comparison.seconds)
        levels = [spread(values, decimals) for values in sides_of]
        p_values = [("p", finding.p), ("after Holm", finding.adjusted_p)]
        parts = [
            compared(verdict, tested.comparison),
            " against ".join(level for level in levels if level != NONE),
            f"seeds: {seeds(tested.comparison)}",
            *(f"{name} {value:.2g}" for name, value in p_values if value is not None),
        ]
        lines.append("; ".join(parts))
    if verdict.on_test_set != verdict.conclusion:
        lines.append(f"on this test set: {verdict.on_test_set}")
    return [*lines, remark(verdict)]


def not_run_reasons(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """The claims that were not run, by the reason."""
    by_reason: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.conclusion == Conclusion.NOT_RUN:
            by_reason.setdefault(verdict.reason, []).append(verdict)
    return by_reason


def not_run_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The claims that were not run, with the reason and with what the paper prints."""
    heads = ["claim", "why it was not run", "compared", "metric", "printed", "remark"]
    rows = [
        [
            statement(verdict),
            verdict.reason,
            f" {_sign(verdict)} ".join(map(title_of, verdict.claim.presets)) or NONE,
            _metric(verdict),
            _printed(verdict),
            _source(verdict),
        ]
        for verdict in verdicts
        if verdict.conclusion == Conclusion.NOT_RUN
    ]
    return Table(title=title, heads=heads, rows=rows, names=4, has_remarks=True)


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims have each conclusion that one has: "1 holds, 2 are reversed"."""
    numbers = counts(verdicts)
    return ", ".join(
        f"{numbers[key]} {verbs[numbers[key] != 1]}" for key, verbs in VERBS.items() if numbers[key]
    )


def tally(verdicts: Sequence[Verdict]) -> str:
    """What became of all claims, those of the season file first; without its full stop."""
    own, of_papers = own_first(verdicts)
    said = []
    if own:
        said.append(f"of the season's own claims, {counted(own)}")
    if all(verdict.conclusion == Conclusion.NOT_RUN for verdict in of_papers):
        said.append("none of the papers' claims was tested")
    else:
        said.append(f"of the papers' {len(of_papers)} claims, {counted(of_papers)}")
    text = "; ".join(said)
    return text[0].upper() + text[1:]


def own_first(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """The verdicts on claims of the season file, and those on claims of the papers."""
    own = [verdict for verdict in verdicts if verdict.paper == OWN]
    return own, [verdict for verdict in verdicts if verdict.paper != OWN]


def adjusted_alone(verdicts: Sequence[Verdict]) -> str:
    """Why two presets of an own claim may share a rank group; empty where none was tested."""
    is_tested = any(verdict.tested for verdict in own_first(verdicts)[0])
    if not is_tested:
        return ""
    return "Own claims are adjusted for each other only: their presets may share a letter."


def has_dagger(comparison: Comparison) -> bool:
    """Whether the interval says nothing of other trainings."""
    return comparison.is_of_these_trainings and comparison.interval is not None


def statement(verdict: Verdict) -> str:
    """The claim; where its sentence names another dataset, that it does."""
    return told(verdict.claim.statement, verdict.is_elsewhere)


def told(text: str, is_elsewhere: bool) -> str:
    """A claim's sentence; where it names another dataset, that it does."""
    return f"Said of other data: {text}" if is_elsewhere else text


def compared(verdict: Verdict, comparison: Comparison) -> str:
    """What is compared, in short: "a beats b", or the two metrics of one preset."""
    if comparison.second:
        return f" {_sign(verdict)} ".join(comparison.titles)
    first, second = (quantity(side).heading for side in sides(comparison.metric))
    return f"{comparison.titles[0]}: {first} above {second}"


def remark(verdict: Verdict) -> str:
    """Why the verdict is what it is, how large the difference is beside the printed one, what would
    decide an undecided claim, and where the paper says so."""
    limits = [limited(t.limit, t.comparison.doubt.image_count) for t in verdict.tested if t.limit]
    is_carried = any(_is_carried(tested.comparison) for tested in verdict.tested)
    sentences = [
        verdict.reason,
        *_sizes(verdict),
        *dict.fromkeys(limits),
        *["the spread of a single training is that of the other presets"] * is_carried,
        *verdict.cautions,
    ]
    return f"{'; '.join(sentences)}. {_source(verdict)}"


def _sizes(verdict: Verdict) -> list[str]:
    """How each difference lies to the printed one; of several pairs, with their names."""
    unlike = [tested for tested in verdict.tested if tested.size in UNLIKE]
    if len(verdict.tested) == 1:
        return [f"the difference is {tested.size}" for tested in unlike]
    return [f"{compared(verdict, tested.comparison)}: {tested.size}" for tested in unlike]


def limited(limit: Limit, images: int) -> str:
    """What would decide an undecided comparison, if its difference stays."""
    beside = f" with {limit.seeds_beside} more seeds" if limit.seeds_beside else ""
    about = f"about {two_digits(limit.images):,} images{beside}" if limit.images else ""
    if limit.seeds:
        seeds = f"{limit.seeds} more seed{'s' * (limit.seeds > 1)} of each would decide it"
        return f"{seeds}, or {about}" if about else seeds
    if about:
        return f"no number of seeds decides this on {images:,} images; {about} would"
    if not images:
        return "no number of seeds would decide it, and nothing is known of other images"
    return "neither more seeds nor more images would decide it"


def _is_carried(comparison: Comparison) -> bool:
    return 1 in comparison.trainings and not comparison.is_of_these_trainings


def _rows(verdict: Verdict, intervals: Sequence[str]) -> list[list[str | Entry]]:
    conclusion = Entry(verdict.conclusion, is_bold=True)
    first, *others = [_pair(verdict, tested, intervals) for tested in verdict.tested]
    rows = [[statement(verdict), conclusion, verdict.on_test_set, *first, remark(verdict)]]
    return rows + [["", "", "", *other, ""] for other in others]


def _source(verdict: Verdict) -> str:
    """Where the paper says so, with the note on the claim."""
    return f"{verdict.paper}: {verdict.claim.where}. {verdict.claim.note}".rstrip()


def _sign(verdict: Verdict) -> str:
    return SIGNS[verdict.claim.kind]


def _metric(verdict: Verdict) -> str:
    return quantity(verdict.claim.metric).heading


def _printed(verdict: Verdict) -> str:
    """The numbers that the paper prints for what it compares."""
    printed = verdict.printed or verdict.claim.printed
    numbers = [f"{value:.{_decimals(verdict)}f}" for value in printed if value is not None]
    return " against ".join(numbers) or NONE


def _pair(verdict: Verdict, tested: Tested, intervals: Sequence[str]) -> list[str]:
    comparison, decimals = tested.comparison, _decimals(verdict)
    own = OF_THESE_TRAININGS if has_dagger(comparison) else INTERVAL
    ends, finding = _interval(comparison, decimals), tested.on_other_images
    levels = [spread(values, decimals) for values in (comparison.firsts, comparison.seconds)]
    return [
        compared(verdict, comparison),
        _metric(verdict),
        seeds(comparison),
        " against ".join(level for level in levels if level != NONE),
        f"{comparison.difference:+.{decimals}f}",
        *(ends if head == own else NONE for head in intervals),
        NONE if finding.p is None else f"{finding.p:.2g}",
        NONE if finding.adjusted_p is None else f"{finding.adjusted_p:.2g}",
        _printed_difference(verdict, tested),
    ]


def _printed_difference(verdict: Verdict, tested: Tested) -> str:
    printed = tested.printed
    return NONE if printed is None else f"{printed:+.{_decimals(verdict)}f}"


def seeds(comparison: Comparison) -> str:
    """How many trainings: one number if both presets have as many."""
    return ", ".join(str(count) for count in dict.fromkeys(comparison.trainings) if count)


def _decimals(verdict: Verdict) -> int:
    return quantity(verdict.claim.metric).decimals


def _interval(comparison: Comparison, decimals: int) -> str:
    if comparison.interval is None:
        return NONE
    low, high = comparison.interval
    return between(f"{low:+.{decimals}f}", f"{high:+.{decimals}f}")
