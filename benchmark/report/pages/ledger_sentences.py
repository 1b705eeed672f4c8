"""What the first page says in sentences, made from the claims of all seasons. Plain text; knows no
torch."""

from collections.abc import Sequence

from benchmark.analysis.board_orders import BoardOrder
from benchmark.analysis.cautions import SAID_AT_ONCE
from benchmark.analysis.claim_ledger import (
    FAILED,
    Finding,
    Group,
    LedgerRow,
    same_comparisons,
    untested_for,
)
from benchmark.analysis.season_claims import Compared, Leader, Measured, SeasonClaims
from benchmark.analysis.validity import MARKS
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.report.number_texts import NO_BREAK, NONE, between
from benchmark.report.pages.claim_tables import DAGGER

HOLDING = (Group.REPLICATED, Group.SMALLER)
FAILING = (Group.REVERSED, Group.UNLIKE, Group.MIXED, Group.NULL)  # the most surprising first
OWN_FEATURES = next(mark.lack for mark in MARKS if mark.letter == "F")


def opening(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> list[str]:
    """What was learned: how many claims hold, who leads on the most test images, the clearest
    failure, and how far the boards are replays."""
    said = [_tally(rows), _largest(seasons), _failure(rows), _replays(seasons)]
    return [sentence for sentence in said if sentence]


def _tally(rows: Sequence[LedgerRow]) -> str:
    counts = {group: sum(row.group == group for row in rows) for group in Group}
    tested = len(rows) - counts[Group.UNTESTED]
    hold = counts[Group.REPLICATED] + counts[Group.SMALLER]
    weaker = counts[Group.SMALLER]
    smaller = f", {weaker} of them by less than printed" * bool(weaker)
    verbs = {  # of one claim, and of several
        f"holds{smaller}": (hold, f"hold{smaller}"),
        "shows no difference": (counts[Group.NULL], "show no difference"),
        "turns out the other way round": (counts[Group.REVERSED], "turn out the other way round"),
        "says that there is no difference where there is one": (
            counts[Group.UNLIKE],
            "say that there is no difference where there is one",
        ),
        "depends on the test": (counts[Group.MIXED], "depend on the test"),
        "is undecided": (counts[Group.UNDECIDED], "are undecided"),
    }
    named = [
        f"{count} {of_one if count == 1 else of_several}"
        for of_one, (count, of_several) in verbs.items()
        if count
    ]
    if not tested:
        return "No claim was tested."
    text = f"Of {tested} tested claim{'s' * (tested > 1)}, {', '.join(named)}.{_shared(rows)}"
    return f"{text}{_on_drawings(rows)}"


def stricter(rows: Sequence[LedgerRow]) -> str:
    """How many claims that hold, or fail, would not if p were adjusted over the tests of a claim,
    too; empty where no claim has several."""
    if all(len(row.findings) < 2 for row in rows):
        return ""
    said = []
    for groups, what in ((HOLDING, "hold"), (FAILING, "fail")):
        of_groups = [row for row in rows if row.group in groups]
        others = sum(row.stricter_group not in groups for row in of_groups)
        said.append(f"{others} of the {len(of_groups)} claims that {what} would not")
    return f"Were p adjusted over the tests of a claim, too (Bonferroni), {' and '.join(said)}."


def _on_drawings(rows: Sequence[LedgerRow]) -> str:
    """How many of the claims that are decided rest on drawings alone."""
    kinds = {
        "that hold": HOLDING,
        "with no difference": (Group.NULL,),
        "that turn out the other way round": (Group.REVERSED,),
        "that deny a difference": (Group.UNLIKE,),
    }
    drawn = {
        what: sum(row.rests_on_drawings for row in rows if row.group in groups)
        for what, groups in kinds.items()
    }
    named = ", ".join(f"{count} {what}" for what, count in drawn.items() if count)
    return f" On drawings only: {named}." if named else ""


def _shared(rows: Sequence[LedgerRow]) -> str:
    """How many claims are fewer comparisons, as one is the other turned round."""
    letters = same_comparisons(rows)
    if not letters:
        return ""
    count = len(set(letters.values()))
    return f" {len(letters)} of them rest on only {count} comparisons, and are not independent."


def _largest(seasons: Sequence[SeasonClaims]) -> str:
    """Of photographs, where some were played, then of drawings."""
    measured = [data for season in seasons for data in season.datasets if data.leaders]
    kinds = {"test images": False, "drawn test images": True}
    said = []
    for what, is_drawn in kinds.items():
        boards = [data for data in measured if data.is_drawn == is_drawn]
        if boards:
            said.append(_leading(max(boards, key=lambda data: data.images), what))
    return " ".join(said)


def _leading(data: Measured, what: str) -> str:
    leader = data.leaders[0]
    where = f"On {data.title}, with {data.images:,} {what}"
    return f"{where}, the best at {leader.task} is {leader_line(leader)}"


def _failure(rows: Sequence[LedgerRow]) -> str:
    """The claim that fails in most tests, and in the fewest not, if one does."""
    failing = [row for row in rows if row.group in FAILING]
    if not failing:
        return ""
    most = min(failing, key=_clearness)
    statement = most.claim.statement.rstrip(".")
    also = sum(_clearness(row)[:2] == _clearness(most)[:2] for row in failing) - 1
    beside = f" ({also} other{'s fail' if also > 1 else ' fails'} as often)" if also else ""
    return f'The claim that fails most often{beside}: "{statement}"; {surprise(most)}'


def _clearness(row: LedgerRow) -> tuple[int, int, int]:
    """The claim that fails in most tests first; of equal ones that which holds out in the fewest,
    then the most surprising."""
    failed = sum(finding.judged.conclusion in FAILED for finding in row.findings)
    return -failed, len(row.findings) - failed, FAILING.index(row.group)


def _replays(seasons: Sequence[SeasonClaims]) -> str:
    leaders = [leader for season in seasons for data in season.datasets for leader in data.leaders]
    total, unconverged = sum(of.rows for of in leaders), sum(of.unconverged for of in leaders)
    others = sum(OWN_FEATURES in of.lacks for of in leaders)
    if not others and not unconverged:
        return ""
    return (
        f"Levels are not those of the papers: {others} of {len(leaders)} boards are led by a row "
        f"with {OWN_FEATURES}, and {unconverged} of {total} rows had not converged."
    )


def leader_line(leader: Leader) -> str:
    """The best row of a task with its interval, and those who may be as good."""
    ends = "" if leader.low is None else f" {between(f'{leader.low:.1f}', f'{leader.high:.1f}')}"
    text = f"{leader.best.title}, {leader.metric} {leader.best.mean:.1f}{ends}"
    others = leader.rows - 1
    if others and not leader.is_compared:
        return f"{text}; of {leader.rows} rows, none of which was compared with another."
    if leader.rivals:
        return f"{text}; {len(leader.rivals)} of {others} others cannot be told apart from it."
    if others:
        return f"{text}; {others} of {others} others can be told apart from it."
    return f"{text}; it is the only row."


def trust_line(leader: Leader) -> str:
    """What speaks against trusting the best row and its board; empty where nothing does."""
    lacks = {"not converged": leader.unconverged, "fewer than three seeds": leader.few_seeds}
    said = [f"{what} {count} of {leader.rows} rows" for what, count in lacks.items() if count]
    own = [f"{leader.best.title}: {', '.join(leader.lacks)}"] * bool(leader.lacks)
    return ". ".join([*own, *[f"Of the board: {', '.join(said)}"] * bool(said)])


def budget_notes(seasons: Sequence[SeasonClaims]) -> list[str]:
    """A sentence for each dataset that two seasons play or more: whether their budgets differ."""
    boards: dict[str, dict[str, Measured]] = {}
    for season in seasons:
        for data in season.datasets:
            boards.setdefault(data.dataset, {})[season.season] = data
    return [_budgets(of) for of in boards.values() if len(of) > 1]


def _budgets(boards: dict[str, Measured]) -> str:
    first = next(iter(boards.values()))
    where = f"{len(boards)} boards, of the seasons {' and '.join(boards)}"
    text = f"Dataset {first.dataset} ({first.title}) is on {where}"
    shared = set.intersection(*(set(data.budgets) for data in boards.values()))
    if not shared:
        return f"{text}, which share no row; each has its own budget."
    differing, options = [], set()
    for row in sorted(shared):
        items = [set(data.budgets[row].items()) for data in boards.values()]
        others = {name for name, _ in set.union(*items) - set.intersection(*items)}
        options |= others
        differing += [row] * bool(others)
    rows = f"{len(shared)} row{'s' * (len(shared) > 1)} that they share"
    if not differing:
        return f"{text}, with the same budget for the {rows}."
    have = "has" if len(differing) == 1 else "have"
    return (
        f"{text}, whose budgets differ: of {rows}, {len(differing)} "
        f"{have} other values of {', '.join(sorted(options))}. Compare rows of one board only."
    )


def order_line(order: BoardOrder) -> str:
    """Whether two boards order their rows alike, and the pair that is turned round the most."""
    first, second = (season.season for season in order.seasons)
    alike, of_apart = order.pairs - len(order.turned), order.apart - order.turned_apart
    text = (
        f"{order.title}, in the seasons {first} and {second}: of the {order.pairs} pairs of "
        f"{len(order.levels)} rows with the same budget{_tied(order)}, {alike} stand in the same "
        f"order (Kendall's tau {order.tau:.2f}); of the {order.apart} that one of the boards tells "
        f"apart, {of_apart}."
    )
    if not order.turned:
        return text
    better, worse = order.turned[0]
    (ahead, behind), (below, above) = order.levels[better], order.levels[worse]
    return (
        f"{text} The widest turn: {better} is {ahead - below:.1f} {order.metric} above {worse} in "
        f"{first}, {above - behind:.1f} below it in {second}."
    )


def _tied(order: BoardOrder) -> str:
    """Where pairs are left out."""
    rows = len(order.levels)
    return " that differ on both boards" * (order.pairs < rows * (rows - 1) // 2)


def headline(row: LedgerRow) -> str:
    """The answer to a claim in one sentence."""
    if not row.findings:
        reason = ": ".join(filter(None, [untested_for(row.claim), row.claim.unplayed]))
        return f"Untested: {reason.rstrip('.')}."
    said = "; ".join(map(finding_line, row.findings))
    printed = next((f.compared for f in row.findings if f.compared.printed is not None), None)
    beside = f"; printed {printed_difference(printed)}" if printed else ""
    return f"{row.extent[0].upper()}{row.extent[1:]}: {said}{beside}."


def surprise(row: LedgerRow) -> str:
    """A claim that fails, with all that was found."""
    return "; ".join(map(finding_line, row.findings)) + "."


def finding_line(finding: Finding) -> str:
    """The verdict on a dataset, with the difference, its interval and the gravest cautions."""
    beside = [said for said in finding.judged.cautions if said.startswith(SAID_AT_ONCE)]
    text = f"{finding.place} {finding.judged.conclusion}, {difference(finding.compared)}"
    beside = [*_better(finding), *beside]
    return f"{text} ({'; '.join(beside)})" if beside else text


def _better(finding: Finding) -> list[str]:
    """Which of two presets is the better one, where a claim denies that one is."""
    better = {
        Conclusion.BETTER: finding.compared.first,
        Conclusion.WORSE: finding.compared.second,
    }.get(finding.judged.conclusion)
    return [f"better: {better}"] if better and finding.compared.second else []


def difference(compared: Compared) -> str:
    """With its metric and its interval; a dagger marks one that says nothing of other trainings."""
    decimals = compared.decimals
    text = f"{compared.metric} {compared.difference:+.{decimals}f}"
    if compared.low is None:
        return text
    ends = between(f"{compared.low:+.{decimals}f}", f"{compared.high:+.{decimals}f}")
    dagger = f"{NO_BREAK}{DAGGER}" if compared.is_of_these_trainings else ""
    return f"{text} {ends}{dagger}"


def printed_difference(compared: Compared) -> str:
    return NONE if compared.printed is None else f"{compared.printed:+.{compared.decimals}f}"
