"""The pages over all seasons: the ledger of claims, and where methods differ from their papers.

Knows no torch.
"""

import re
from collections.abc import Mapping, Sequence

from benchmark.boards import flags
from benchmark.boards.claim_ledger import (
    FAILED,
    OUTCOMES,
    Compared,
    Finding,
    Group,
    LedgerRow,
    SeasonClaims,
    judged_again,
    untested_for,
    untested_reasons,
)
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.report.markdown import inside, pipe_table
from benchmark.report.pages.claim_tables import INDENT
from benchmark.report.pages.templates import filled
from benchmark.report.tables import DAGGER, Number, Table, signed

FAILING = (Group.REVERSED, Group.UNLIKE, Group.NULL, Group.MIXED)  # the most surprising first


def ledger_page(
    seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow], figures: Mapping[str, str]
) -> str:
    """reports/README.md; `figures` are the Markdown of papers and ledger."""
    by_group = {group: [row for row in rows if row.group == group] for group in Group}
    failing = [row for group in FAILING for row in by_group[group]]
    again = judged_again(rows)
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
        counted=len(rows) - len(by_group[Group.UNCOUNTED]),
        tested=sum(bool(row.findings) for row in rows if row.group != Group.UNCOUNTED),
        by_group=by_group,
        withheld=sum(row.is_withheld for row in rows),
        group=Group,
        blocking={flags.NAMES[letter]: of for letter, of in flags.BLOCKING.items()},
        leaders=leaders(seasons),
        again=again,
        outcomes=[(of, [a for a in again if a.outcome == of]) for of in OUTCOMES],
        on_features=claim_table({a.row: [a.weak, a.strong] for a in again}),
        layers=of_layers(seasons),
        surprises=failing,
        rows=rows,
        papers=papers(),
        tables={
            group: claim_table({row: row.findings for row in by_group[group]})
            for group in Group
            if by_group[group] and group not in (Group.UNTESTED, Group.UNCOUNTED)
        },
        beside=claim_table(
            {row: row.findings + row.alike for row in by_group[Group.UNCOUNTED]}
            | {row: row.alike for row in rows if row.alike and row.group != Group.UNCOUNTED}
        ),
        untested=untested_reasons(rows),
        untested_for=untested_for,
        difference=difference,
    )


def of_layers(seasons: Sequence[SeasonClaims]) -> list[dict]:
    """What further layers of relevance change: by season and dataset how many claims they tell, and
    those whose verdict one of them changes."""
    known, found = {(p, c.id): c for p, of in papers().items() for c in of.claims}, []
    for season in seasons:
        for data in season.datasets:
            told = [of for of in data.claims if of.layers and (of.paper, of.id) in known]
            changed = [
                {"claim": known[of.paper, of.id], "layer": layer, "own": own, "here": here}
                for of in told
                for layer, (own, here, is_changed) in of.layers.items()
                if is_changed
            ]
            if told:
                facts = {"season": season.season, "dataset": data.dataset, "title": data.title}
                facts["layers"] = list(dict.fromkeys(layer for of in told for layer in of.layers))
                found.append(facts | {"told": len(told), "changed": changed})
    return found


def leaders(seasons: Sequence[SeasonClaims]) -> Table:
    """The best row of every board, with its interval, those that cannot be told apart from it, and
    what speaks against trusting it."""
    lines = [
        {
            "board": f"{data.title} ({season.season}), {leader.task}",
            "test images": data.images,
            "features": data.features,
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


def claim_table(findings: Mapping[LedgerRow, Sequence[Finding]]) -> Table:
    """A row per finding on a claim, and of a claim with several parts a row for each."""
    lines = []
    for row, of_claim in findings.items():
        for number, finding in enumerate(of_claim):
            head = {"claim": row.claim.statement if number == 0 else "", "data": finding.place}
            head |= {"verdict": finding.conclusion, "needed": finding.needs}
            alone = len(finding.parts) == 1
            lines += [] if alone else [head]
            for part in finding.parts:
                names = " over ".join(filter(None, (part.first, part.second)))
                of_part = {"claim": "", "data": f"{INDENT}{names}", "verdict": part.conclusion}
                line = {
                    "metric": part.metric,
                    "difference, 95% interval": difference(part),
                    "printed": signed(part.printed, part.decimals),
                }
                if part.withheld:
                    line["verdict"] = f"{part.conclusion}; without a control: {part.withheld}"
                lines.append((head if alone else of_part) | line)
                for of in part.controls:
                    control = f"{INDENT}control: {of.first} over {of.second}"
                    said = {"data": control, "verdict": of.conclusion, "metric": of.metric}
                    lines.append(said | {"difference, 95% interval": difference(of)})
    order = ("claim", "data", "verdict", "metric", "difference, 95% interval", "printed", "needed")
    return Table.of("Claims", [{name: line.get(name) for name in order} for line in lines])


def fidelity_page(pages: Mapping[str, str]) -> str:
    """reports/fidelity.md: paper, official code and this implementation, topic by topic, and where
    each table and figure is; `pages` are those of the seasons by their path from there."""
    tables = {}
    for name, entries in fidelity().items():
        lines = []
        for entry in entries:
            option = f"option {entry.option}" if entry.option else ""
            why = "; ".join(filter(None, (entry.why, option)))
            line = {"topic": entry.topic, "paper": entry.paper, "official code": entry.code}
            lines.append(line | {"ours": entry.ours, "why; option": why})
        tables[name] = Table.of(name, lines)
    return filled("fidelity.md.j2", papers=papers(), tables=tables, drawn=drawn_table(pages))


def drawn_table(pages: Mapping[str, str]) -> str:
    """Markdown of every table and figure of the papers, with the pages that show it, or why none
    does."""
    lines = []
    for name, paper in papers().items():
        marks = {f"table {n}": (t.title, "", f"^## Table {n}:") for n, t in paper.tables.items()}
        for number, figure in paper.figures.items():
            several = "s" * (", " in number)
            what = number.lower() if "Table" in number else f"figure{several} {number}"
            mark = rf"\]\(\S+-{figure.where}[-.]"
            marks[what] = (figure.title, figure.lacks, mark)
        for what, (title, lacks, mark) in marks.items():
            found = [
                f"[{path.split('/')[0]}]({path})"
                for path, text in pages.items()
                if re.search(mark, text, re.MULTILINE)
                and (path.endswith(f"/{name}.md") or not what.startswith("table"))
            ]
            place = inside(lacks) or ", ".join(found) or "on no published page"
            lines.append([name, what, inside(title), place])
    return pipe_table(["paper", "number", "title", "where it is here"], lines, "llll")


def difference(compared: Compared) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing of other
    trainings."""
    ends = None if compared.low is None else (compared.low, compared.high)
    note = DAGGER * compared.is_of_these_trainings
    return signed(compared.difference, compared.decimals, ends, note)
