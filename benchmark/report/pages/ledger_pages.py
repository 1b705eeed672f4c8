"""The pages over all seasons: the ledger of claims, and where methods differ from their papers.

Knows no torch.
"""

from collections.abc import Mapping, Sequence

from benchmark.boards.claim_ledger import (
    FAILED,
    Compared,
    Group,
    LedgerRow,
    SeasonClaims,
    same_comparisons,
    untested_for,
    untested_reasons,
)
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.report.pages.claim_tables import told
from benchmark.report.pages.templates import filled
from benchmark.report.tables import DAGGER, Number, Table, signed

FAILING = (Group.REVERSED, Group.UNLIKE, Group.NULL, Group.MIXED)  # the most surprising first


def ledger_page(
    seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow], figures: Mapping[str, str]
) -> str:
    """reports/README.md; `figures` are the Markdown of papers and ledger."""
    by_group = {group: [row for row in rows if row.group == group] for group in Group}
    failing = [row for group in FAILING for row in by_group[group]]
    failing.sort(key=lambda row: -sum(f.conclusion in FAILED for f in row.findings))
    return filled(
        "ledger.md.j2",
        figures=figures,
        seasons=seasons,
        key=Table.of(
            "Groups",
            [
                {"group": group, "a claim that": group.text, "claims": len(of_group)}
                for group, of_group in by_group.items()
            ],
        ),
        total=len(rows),
        tested=sum(bool(row.findings) for row in rows),
        by_group=by_group,
        group=Group,
        same=same_comparisons(rows),
        leaders=leaders(seasons),
        surprises=failing,
        rows=rows,
        papers=papers(),
        tables={
            group: claim_table(by_group[group])
            for group in Group
            if by_group[group] and group != Group.UNTESTED
        },
        untested=untested_reasons(rows),
        untested_for=untested_for,
        statement=statement,
        difference=difference,
    )


def leaders(seasons: Sequence[SeasonClaims]) -> Table:
    """The best row of every board, with its interval, those that cannot be told apart from it, and
    what speaks against trusting it."""
    lines = [
        {
            "board": f"{data.title} ({season.season}), {leader.task}",
            "test images": data.images,
            "best row": leader.best.title,
            "metric": leader.metric,
            "level, 95% interval": Number(value=leader.best.mean, low=leader.low, high=leader.high),
            "cannot be told apart": len(leader.rivals) if leader.is_compared else None,
            "of rows": len(leader.places),
            "read with care": ", ".join(leader.lacks),
        }
        for season in seasons
        for data in season.datasets
        for leader in data.leaders
    ]
    return Table.of("Who leads", lines)


def claim_table(rows: Sequence[LedgerRow]) -> Table:
    """A row per finding on these claims; of a claim on several pairs, that which decides is
    named."""
    lines = []
    for row in rows:
        for number, finding in enumerate(row.findings):
            compared = finding.compared
            pair = f": {compared.first} against {compared.second}" * (compared.pairs > 1)
            lines.append(
                {
                    "claim": statement(row) if number == 0 else "",
                    "data": f"{finding.place}{pair}",
                    "verdict": finding.conclusion,
                    "metric": compared.metric,
                    "difference, 95% interval": difference(compared),
                    "printed": signed(compared.printed, compared.decimals),
                    "needed": finding.needs,
                }
            )
    return Table.of("Claims", lines)


def fidelity_page() -> str:
    """reports/fidelity.md: paper, official code and this implementation, topic by topic."""
    tables = {}
    for name, entries in fidelity().items():
        lines = []
        for entry in entries:
            option = f"option {entry.option}" if entry.option else ""
            why = "; ".join(filter(None, (entry.why, option)))
            line = {"topic": entry.topic, "paper": entry.paper, "official code": entry.code}
            lines.append(line | {"ours": entry.ours, "why; option": why})
        tables[name] = Table.of(name, lines)
    return filled("fidelity.md.j2", papers=papers(), tables=tables)


def statement(row: LedgerRow) -> str:
    """The claim; where its sentence names other data alone, that it does."""
    return told(row.claim.statement, row.is_elsewhere)


def difference(compared: Compared) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing of other
    trainings."""
    ends = None if compared.low is None else (compared.low, compared.high)
    note = DAGGER * compared.is_of_these_trainings
    return signed(compared.difference, compared.decimals, ends, note)
