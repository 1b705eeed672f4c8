"""The pages over all seasons, as Markdown. Knows no torch."""

from collections import Counter
from collections.abc import Sequence

from benchmark.analysis.claim_ledger import Finding, Group, LedgerRow
from benchmark.analysis.season_claims import Compared, Leader, SeasonClaims
from benchmark.papers.fidelity_notes import Entry, fidelity
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.claim_tables import DAGGER
from benchmark.report.pages.result_tables import NO_BREAK, NONE, between
from benchmark.report.pages.template_filling import filled
from benchmark.report.table_formats import Table

SURPRISES = (Group.REVERSED, Group.MIXED, Group.NULL)
PAPER_OF = {  # file of fidelity/ -> paper whose method it is
    "cyclematch": "cyclematch",
    "dual_path": "instance_loss",
    "scan": "scan",
    "two_branch_embedding": "two_branch",
    "two_branch_phrase_embedding": "two_branch",
    "two_branch_phrase_similarity": "two_branch",
    "two_branch_similarity": "two_branch",
}


def ledger_page(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> str:
    """reports/README.md"""
    by_group = {group: [row for row in rows if row.group == group] for group in Group}
    tested = [row for row in rows if row.findings]
    return filled(
        "ledger.md.j2",
        seasons=seasons,
        counts={group: len(of_group) for group, of_group in by_group.items()},
        total=len(rows),
        tested=len(tested),
        by_paper=by_paper(rows),
        leaders=[
            (season, dataset, leader)
            for season in seasons
            for dataset in season.datasets
            for leader in dataset.leaders
        ],
        leader_line=leader_line,
        surprises=[row for group in SURPRISES for row in by_group[group]],
        finding_line=finding_line,
        open_rows=by_group[Group.UNDECIDED],
        cautions=cautions(tested),
        tables={group: claim_table(of_group) for group, of_group in by_group.items()
                if of_group and group != Group.UNTESTED},
        untested=by_group[Group.UNTESTED],
        untested_reasons=untested_reasons(by_group[Group.UNTESTED]),
    )  # fmt: skip


def fidelity_page() -> str:
    """reports/fidelity.md"""
    return filled(
        "fidelity.md.j2",
        key=_key(),
        methods={name: _entries(name, entries) for name, entries in fidelity().items()},
    )


def by_paper(rows: Sequence[LedgerRow]) -> Table:
    """How many claims of each paper are in each group."""
    groups = [group for group in Group if any(row.group == group for row in rows)]
    lines = []
    for name, paper in papers().items():
        counts = Counter(row.group for row in rows if row.paper == name)
        lines.append([paper.paper.title, *(str(counts[group]) for group in groups)])
    return Table(title="Claims by paper", heads=["paper", *groups], rows=lines)


def leader_line(leader: Leader) -> str:
    """The best row of a task with its interval, those who may be as good, and what speaks against
    trusting the board; plain text."""
    ends = f" {between(f'{leader.low:.1f}', f'{leader.high:.1f}')}" if leader.low else ""
    text = f"{leader.title}, {leader.metric} {leader.mean:.1f}{ends}"
    if leader.rivals:
        text += f"; {len(leader.rivals)} of {leader.rows - 1} others cannot be told apart from it"
    elif leader.rows > 1:
        text += f"; all {leader.rows - 1} others are distinguishable from it"
    if leader.lacks:
        text += f". Not to be trusted as a replay: {', '.join(leader.lacks)}"
    lacks = {"not converged": leader.unconverged, "fewer than three seeds": leader.few_seeds}
    said = [f"{count} of {leader.rows} rows {what}" for what, count in lacks.items() if count]
    return f"{text} ({'; '.join(said)})." if said else f"{text}."


def finding_line(finding: Finding) -> str:
    """The difference on a dataset with its interval; plain text."""
    return f"{finding.dataset} ({finding.season}): {_difference(finding.compared)}"


def claim_table(rows: Sequence[LedgerRow]) -> Table:
    """A row per finding: the claim, where, the difference, the printed one."""
    is_open = any(row.needs for row in rows)
    heads = ["claim", "data", "difference, 95% interval", "printed", *["needed"] * is_open]
    lines = []
    for row in rows:
        for number, finding in enumerate(row.findings):
            entries = [
                row.claim.statement if number == 0 else "",
                f"{finding.dataset} ({finding.season})",
                _difference(finding.compared),
                _printed(finding.compared),
            ]
            needed = [(row.needs or NONE) if number == 0 else ""]
            lines.append([*entries, *(needed if is_open else [])])
    return Table(title="Claims", heads=heads, rows=lines, names=2)


def cautions(rows: Sequence[LedgerRow]) -> Counter:
    """How many tested claims rest on presets with each reason for caution."""
    kinds = Counter()
    for row in rows:
        said = {c.partition(":")[0] for finding in row.findings for c in finding.judged.cautions}
        kinds.update(said)
    return kinds


def untested_reasons(rows: Sequence[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """Untested claims by whether a preset could play them."""
    unplayable = [row for row in rows if row.claim.unplayed]
    playable = [row for row in rows if not row.claim.unplayed]
    named = {
        "about methods or data that no preset plays": unplayable,
        "playable, and in no season's report yet": playable,
    }
    return {reason: of_reason for reason, of_reason in named.items() if of_reason}


def _difference(compared: Compared) -> str:
    decimals = compared.decimals
    text = f"{compared.metric} {compared.difference:+.{decimals}f}"
    if compared.low is None:
        return text
    ends = between(f"{compared.low:+.{decimals}f}", f"{compared.high:+.{decimals}f}")
    dagger = f"{NO_BREAK}{DAGGER}" if compared.is_of_test_set else ""
    return f"{text} {ends}{dagger}"


def _printed(compared: Compared) -> str:
    return NONE if compared.printed is None else f"{compared.printed:+.{compared.decimals}f}"


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
