"""The pages over all seasons, as Markdown. Knows no torch."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmark.analysis import shared_effects
from benchmark.analysis.board_orders import BoardOrder, board_orders
from benchmark.analysis.claim_ledger import Finding, Group, LedgerRow, untested_reasons
from benchmark.analysis.season_claims import Leader, Measured, SeasonClaims
from benchmark.analysis.shared_effects import Effect
from benchmark.papers.fidelity_notes import Entry, fidelity
from benchmark.papers.printed_tables import papers
from benchmark.report.pages import ledger_sentences
from benchmark.report.pages.claim_tables import key_table, told
from benchmark.report.pages.result_tables import NONE
from benchmark.report.pages.template_filling import filled
from benchmark.report.table_formats import Table

HOLD = dict.fromkeys(
    (Group.REPLICATED, Group.SMALLER), f"{Group.REPLICATED} or {Group.SMALLER}"
)  # group -> its column
DIFFERENCE = "difference, 95% interval"
PAPER_OF = {  # file of fidelity/ -> paper whose method it is
    "cyclematch": "cyclematch",
    "dual_path": "instance_loss",
    "scan": "scan",
    "two_branch_embedding": "two_branch",
    "two_branch_phrase_embedding": "two_branch",
    "two_branch_phrase_similarity": "two_branch",
    "two_branch_similarity": "two_branch",
}


def ledger_page(
    seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow], alts: Mapping[str, str]
) -> str:
    """reports/README.md; `alts` say what its figures show: papers and ledger."""
    by_group = {group: [row for row in rows if row.group == group] for group in Group}
    tested = [row for row in rows if row.findings]
    return filled(
        "ledger.md.j2",
        alts=alts,
        seasons=seasons,
        counts={group: len(of_group) for group, of_group in by_group.items()},
        total=len(rows),
        tested=len(tested),
        stricter=ledger_sentences.stricter(rows),
        opening=ledger_sentences.opening(seasons, rows),
        budgets=ledger_sentences.budget_notes(seasons),
        orders=[(order, order_table(order)) for order in board_orders(seasons)],
        order_line=ledger_sentences.order_line,
        leaders=_leaders(seasons),
        leader_line=ledger_sentences.leader_line,
        trust_line=ledger_sentences.trust_line,
        headlines=headlines(rows),
        statement=statement,
        headline=ledger_sentences.headline,
        by_paper=by_paper(rows),
        key=key_table(),
        surprises=[row for group in ledger_sentences.FAILING for row in by_group[group]],
        surprise=ledger_sentences.surprise,
        open_rows=by_group[Group.UNDECIDED],
        cautions=cautions(tested),
        tables=claim_tables_of(by_group),
        untested=by_group[Group.UNTESTED],
        untested_reasons=untested_reasons(rows),
        has_dagger=any(f.compared.is_of_these_trainings for row in tested for f in row.findings),
    )


def _leaders(seasons: Sequence[SeasonClaims]) -> list[tuple[SeasonClaims, Measured, Leader]]:
    return [
        (season, dataset, leader)
        for season in seasons
        for dataset in season.datasets
        for leader in dataset.leaders
    ]


def fidelity_page() -> str:
    """reports/fidelity.md"""
    return filled(
        "fidelity.md.j2",
        key=_key(),
        methods={name: _entries(name, entries) for name, entries in fidelity().items()},
    )


def statement(row: LedgerRow) -> str:
    """The claim; where its sentence names other data alone, that it does."""
    return told(row.claim.statement, row.is_elsewhere)


def by_paper(rows: Sequence[LedgerRow]) -> Table:
    """How many claims of each paper are in each group; those that hold, smaller or not, in one."""
    counts = Counter((row.paper, HOLD.get(row.group, row.group)) for row in rows)
    answers = {answer for _, answer in counts}
    heads = [answer for answer in dict.fromkeys((*HOLD.values(), *Group)) if answer in answers]
    lines = [
        [paper.paper.title, *(str(counts[name, answer]) for answer in heads)]
        for name, paper in papers().items()
    ]
    return Table(title="Claims by paper", heads=["paper", *heads], rows=lines)


def order_table(order: BoardOrder) -> Table:
    """A row per row of the boards: what it reaches on each, and the place there among them."""
    heads = [season.title for season in order.seasons]
    columns = list(zip(*order.levels.values(), strict=True))
    ranked = [sorted(column, reverse=True) for column in columns]
    lines = [
        [title]
        + [
            f"{level:.1f} ({of_board.index(level) + 1})"
            for level, of_board in zip(levels, ranked, strict=True)
        ]
        for title, levels in order.levels.items()
    ]
    return Table(title=f"{order.metric} (place)", heads=["row", *heads], rows=lines)


def headlines(rows: Sequence[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """Title of a paper -> the claims for which it is known."""
    return {
        paper.paper.title: [row for row in rows if row.paper == name and row.claim.headline]
        for name, paper in papers().items()
    }


def claim_tables_of(by_group: dict[Group, list[LedgerRow]]) -> dict[Group, Table]:
    """`claim_table` of every group of tested claims that is not empty."""
    tested = {g: rows for g, rows in by_group.items() if rows and g != Group.UNTESTED}
    effects = [_effect(row, f) for rows in tested.values() for row in rows for f in row.findings]
    beside = dict(zip(effects, shared_effects.remarks(effects), strict=True))
    return {group: claim_table(rows, beside) for group, rows in tested.items()}


def claim_table(rows: Sequence[LedgerRow], beside: Mapping[Effect, str]) -> Table:
    """A row per finding: the claim, where, the verdict, the difference, the printed one; `beside`
    tells effects apart that look alike."""
    is_open = any(row.needs for row in rows)
    heads = ["claim", "data", "verdict", DIFFERENCE, "printed", *["needed"] * is_open]
    lines = []
    for row in rows:
        for number, finding in enumerate(row.findings):
            remark = beside[_effect(row, finding)]
            shown = ledger_sentences.difference(finding.compared)
            entries = [
                statement(row) if number == 0 else "",
                finding.place,
                finding.judged.conclusion,
                f"{shown} ({remark})" if remark else shown,
                ledger_sentences.printed_difference(finding.compared),
            ]
            lines.append([*entries, *[finding.needs or NONE] * is_open])
    return Table(title="Claims", heads=heads, rows=lines, names=3)


def _effect(row: LedgerRow, finding: Finding) -> Effect:
    compared = finding.compared
    return Effect(
        where=finding.place,
        claim=row.claim.statement,
        metric=compared.metric,
        shown=ledger_sentences.difference(compared),
        first=compared.first,
        second=compared.second,
        is_one_of_several=compared.pairs > 1,
    )


def cautions(rows: Sequence[LedgerRow]) -> Counter:
    """How many tested claims rest on presets with each reason for caution."""
    kinds = Counter()
    for row in rows:
        said = {c.partition(":")[0] for finding in row.findings for c in finding.judged.cautions}
        kinds.update(said)
    return kinds


def _key() -> list[dict]:
    """Method -> its paper and the code of the authors."""
    return [
        {"method": method, "about": papers()[paper].paper} for method, paper in PAPER_OF.items()
    ]


def _entries(name: str, entries: Sequence[Entry]) -> Table:
    heads = ["topic", "paper", "official code", "ours", "why; option"]
    rows = [[e.topic, e.paper, e.code, e.ours, _why(e)] for e in entries]
    return Table(title=f"{name}: paper, official code, ours", heads=heads, rows=rows, names=5)


def _why(entry: Entry) -> str:
    option = f"option {entry.option}" if entry.option else ""
    return "; ".join(filter(None, (entry.why, option)))
