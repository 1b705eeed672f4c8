"""The verdict on a dataset in a few sentences. Knows no torch."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from benchmark.analysis import ranking
from benchmark.analysis.boards import MIN_TEST_QUERIES, Board, Standing
from benchmark.analysis.claims import Verdict
from benchmark.analysis.grounds import Cause
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.papers.printed_tables import papers, printed
from benchmark.report.costs import by_setting, query_seconds, training_seconds
from benchmark.report.markdown import escaped
from benchmark.report.number_texts import NONE, percent, three_digits
from benchmark.report.pages import result_tables
from benchmark.report.pages.claim_tables import adjusted_alone, tally
from benchmark.report.pages.paper_tables import obstacles

NOT_COMPARED = "no rows are told apart, as nothing is known of other trainings"
NAMED = 4  # claims or presets that a sentence names
CHEAPEST = 2  # presets that are named as the fastest
TIE = 1.1  # times closer than this cannot be told apart
CAUSES = {  # of claims that neither seeds nor images would decide
    Cause.FEW_SEEDS: "a second training is missing for",
    Cause.NEAR_CHANCE: "a row is near chance in",
    Cause.BELOW_START: "fine-tuning failed in",
    Cause.COARSE_BINS: "S hangs on its bins in",
    Cause.NO_SPREAD: "nothing varies in",
    Cause.OTHER_MACHINE: "times are of unlike machines in",
}
NEITHER = "neither alone decides"
DENIED = (Conclusion.REVERSED, Conclusion.BETTER, Conclusion.WORSE)


def sentences(board: Board, verdicts: Sequence[Verdict]) -> list[str]:
    """Sentences as Markdown, the most important first."""
    if not board.ranked:
        return ["No preset has a result.", _without_result(board)]
    every = [
        *few_queries(board),
        *_retrieving(board.retrieval),
        _localising(board.localisation),
        _claims(verdicts),
        _named(verdicts, "Not holding", *DENIED),
        _named(verdicts, "No difference beyond the margin", Conclusion.NO_DIFFERENCE),
        _undecided(verdicts),
        _printed(board),
        _without_result(board),
    ]
    return [sentence for sentence in every if sentence]


def few_queries(board: Board) -> list[str]:
    """What nothing can be concluded on, as the test queries are too few; empty: they are enough."""
    retrieval = "Nothing can be concluded from {} test queries: {} are needed in every direction."
    phrases = "On localising phrases, nothing can be concluded from {} test queries: {} are needed."
    said = {"retrieval": retrieval, "localisation": phrases}
    played = {standing.task for standing in board.standings}
    return [
        sentence.format(board.test_queries(task), MIN_TEST_QUERIES)
        for task, sentence in said.items()
        if task in played and board.is_small(task)
    ]


def _retrieving(board: Board) -> list[str]:
    if not board.ranked:
        return []
    winner = [] if board.is_small("retrieval") else [_best(board)]
    return [*winner, _cheapest(board)]


def _best(board: Board) -> str:
    best = board.ranked[0]
    text = f"Best: **{_name(best)}**, rsum {best.mean('rsum'):.1f}"
    return f"{text} ({_interval(board, best, 'rsum')}){_level(board)}."


def _localising(board: Board) -> str:
    if not board.ranked or board.is_small("localisation"):
        return ""
    best = board.ranked[0]
    return (
        f"Best at localising phrases: **{_name(best)}**, R@1 {best.mean('p2r_r1'):.1f} "
        f"({_interval(board, best, 'p2r_r1')}; by chance {best.mean('p2r_chance_r1'):.1f}, at "
        f"most {best.mean('p2r_bound'):.1f}){_level(board)}."
    )


def _interval(board: Board, standing: Standing, metric: str) -> str:
    """The interval and what it is over; that of a training whose spread is not known says nothing
    of the next."""
    ends = result_tables.interval(board, standing, metric)
    if ends != NONE:
        return f"95% interval {ends}"
    ends = result_tables.interval_of_these(board, standing, metric)
    return f"95% {result_tables.THESE_TRAININGS}: {ends}"


def _level(board: Board) -> str:
    """Which other presets may be the best, and how probable it is that this one is."""
    letters = ranking.rank_letters(board)
    first = set(letters[0])
    names = [
        _name(s)
        for s, own in zip(board.ranked[1:], letters[1:], strict=True)
        if not first.isdisjoint(own)
    ]
    chances = ranking.chances_to_be_best(board)
    if len(letters) == 1:
        return ""
    if not ranking.is_compared(board):
        return f"; {NOT_COMPARED}"
    chance = f"; the best with a probability of {percent(chances[0])}%" if chances else ""
    chance += ", unadjusted" * bool(chances and names)
    if not names:
        return f"{chance}; every other preset is distinguishable from it"
    return f"{chance}; not distinguishable from it: {_listed(names, '; ')}"


def _cheapest(board: Board) -> str:
    """Of the most presets that were timed alike; those within TIE of the fastest share the
    place."""
    timed = max(by_setting(board).values(), key=len, default=[])
    if len(timed) < 2:
        return ""
    trained = [standing for standing in timed if standing.played[0].trainings]
    queries = _fastest(timed, query_seconds, lambda s: f"{three_digits(1e3 * s)} ms")
    said = [f"a query is fastest with {_listed(queries, '; ', CHEAPEST)}"]
    if trained:
        trainings = _fastest(trained, partial(training_seconds, board), "{:.0f} s".format)
        said.append(f"{_listed(trainings, '; ', CHEAPEST)}")
    others = len(board.ranked) - len(timed)
    of = f", of the {len(timed)} presets that were timed alike" * bool(others)
    return f"Cheapest{of}: {'; to train: '.join(said)}."


def _fastest(
    standings: Sequence[Standing],
    seconds: Callable[[Standing], float],
    written: Callable[[float], str],
) -> list[str]:
    """The presets that take as long as the fastest, up to TIE, with their times."""
    least = min(map(seconds, standings))
    near = sorted((s for s in standings if seconds(s) <= TIE * least), key=seconds)
    return [f"{_name(s)} ({written(seconds(s))}, rsum {s.mean('rsum'):.1f})" for s in near]


def _claims(verdicts: Sequence[Verdict]) -> str:
    return f"{tally(verdicts)}: [claims](claims.md). {adjusted_alone(verdicts)}".rstrip()


def _named(verdicts: Sequence[Verdict], head: str, *kinds: Conclusion) -> str:
    names = [escaped(v.claim.statement.rstrip(".")) for v in verdicts if v.conclusion in kinds]
    return f"{head}: {_listed(names, '; ')}." if names else ""


def budget(board: Board) -> str:
    """How long was trained, as plain text; empty where no training has a history."""
    epochs = [len(o.history) for s in board.ranked for o in s.played if o.history is not None]
    if not epochs:
        return ""
    seeds = [len(standing.played) for standing in board.ranked]
    images = board.card["counts"].get("train", {}).get("images")
    on = f" on {images:,} images" if images else ""
    return (
        f"Budget: {_span(epochs, 'epoch')}{on}, {_span(seeds, 'seed')} of a preset; "
        f"{_training_time(board)}. Another season on the same dataset has its own: compare rows "
        "of one board only."
    )


def _training_time(board: Board) -> str:
    """What all trainings of a board took, one after the other; each of them once."""
    own = [o for s in board.ranked for o in s.played if o.history is not None]
    minutes = max(1, round(sum(outcome.training_seconds for outcome in own) / 60))
    time = f"{minutes / 60:.1f} hours" if minutes > 90 else _span([minutes], "minute")
    return f"{_span([len(own)], 'training')} took {time}, one after the other"


def _span(counts: Sequence[int], what: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low}{f' to {high}' * (high > low)} {what}{'s' * (high > 1)}"


def _undecided(verdicts: Sequence[Verdict]) -> str:
    """What would decide the undecided claims."""
    undecided = [v for v in verdicts if v.conclusion == Conclusion.UNDECIDED]
    undecided = [v for v in undecided if v.cause != Cause.FEW_QUERIES]
    if not undecided:
        return ""
    limits = [verdict.limits for verdict in undecided]
    is_of_seeds = [bool(own) and all(lim and lim.seeds for lim in own) for own in limits]
    is_of_images = [bool(own) and all(lim and lim.images for lim in own) for own in limits]
    images = sum(more and not seeds for more, seeds in zip(is_of_images, is_of_seeds, strict=True))
    rest = [
        verdict.cause
        for verdict, *known in zip(undecided, is_of_seeds, is_of_images, strict=True)
        if not any(known)
    ]
    said = {"more seeds would decide": sum(is_of_seeds), "only more images": images}
    parts = [f"{what} {count}" for what, count in said.items() if count]
    others = Counter(CAUSES.get(cause, NEITHER) for cause in rest)
    parts += [f"{what} {count}" for what, count in others.items()]
    return f"Undecided claims: {len(undecided)}; {', '.join(parts)}."


def _printed(board: Board) -> str:
    comparable = [standing for standing in board.ranked if _has_counterpart(board, standing)]
    if comparable:
        presets = f"{len(comparable)} preset{'s' if len(comparable) != 1 else ''}"
        return f"Printed numbers can be compared with ours for {presets}."
    return (
        "Printed numbers are for orientation: no paper measured this data with "
        "these features and this budget."
    )


def _has_counterpart(board: Board, standing: Standing) -> bool:
    """Whether a paper prints a number that can be compared with the measured one."""
    return any(
        not obstacles(papers()[row.table.partition("/")[0]], board, standing, row.place)
        for row in printed(standing.preset)
    )


def _without_result(board: Board) -> str:
    number = sum(not outcome.is_ok for outcome in board.outcomes)
    if not number:
        return ""
    reasons = f"[the reasons](datasets/{board.dataset}.md)"
    return f"Cells without a result: {number} of {len(board.outcomes)}, with {reasons}."


def _name(standing: Standing) -> str:
    return escaped(standing.row.title)


def _listed(names: Sequence[str], between: str = ", ", named: int = NAMED) -> str:
    more = len(names) - named
    return between.join(names[:named]) + (f" and {more} more" if more > 0 else "")
