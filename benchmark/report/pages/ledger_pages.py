"""The pages over all seasons: the ledger of claims, and where methods differ from their
papers.

Knows no torch.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter

from benchmark.boards import flags
from benchmark.boards.claim_ledger import (
    DRAWN,
    FAILING,
    HOLDING,
    OUTCOMES,
    ClaimEntry,
    Group,
    LedgerRow,
    SeasonClaims,
    VerdictEntry,
    judged_again,
    untested_for,
)
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.report.markdown import inside, pipe_table
from benchmark.report.pages import filled
from benchmark.report.pages.claim_tables import INDENT, level
from benchmark.report.tables import DAGGER, Number, Table, signed

AGAINST = "✕"  # beside the mark of an undecided test with a result against the paper
IN_PART = "°"  # beside the mark of a test without some parts of its claim


def ledger_page(
    seasons: Sequence[SeasonClaims],
    rows: Sequence[LedgerRow],
    figures: Mapping[str, str],
) -> str:
    """reports/README.md; `figures` are the Markdown of the figures by name."""
    compared = [of for of in best_rows(seasons) if of[2].is_compared]
    rivals = [
        (season, data, place, of.like(place)) for season, data, of, place in compared
    ]
    # Photographs on which rows reach furthest come first.
    places = {f.place: f.level for row in rows for f in row.photographs}
    places = sorted(places, key=places.__getitem__, reverse=True)
    of_papers = {
        name: sorted(
            (r for r in rows if r.paper == name), key=lambda row: not row.claim.headline
        )
        for name in papers()
    }
    return filled(
        "ledger.md.j2",
        figures=figures,
        seasons=seasons,
        numbers=numbers(rows),
        group=Group,
        withheld=[row for row in rows if row.is_withheld],
        leaders=leaders(seasons),
        rivals=[of for of in rivals if of[-1]],
        again=judged_again(rows),
        outcomes=OUTCOMES,
        gains=gains(seasons),
        layers=of_layers(seasons),
        of_papers=of_papers,
        matrices={
            name: matrix(of_paper, places) for name, of_paper in of_papers.items()
        },
        of_paper={name: numbers(of_paper) for name, of_paper in of_papers.items()},
        papers=papers(),
        anchor=anchor,
        tests=lambda row: claim_table(row.findings + row.alike),
        untested=Counter(
            untested_for(row.claim) for row in rows if row.group == Group.UNTESTED
        ),
        in_part=IN_PART,
        against=Group.UNDECIDED.mark + AGAINST,
        untested_for=untested_for,
    )


def findings(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> str:
    """Markdown for the first page of a project: what photographs say of the headlines
    of each paper that has a printed number for one of them, and the best row on
    photographs."""
    of_claim, told = {(row.paper, row.claim.id): row for row in rows}, []
    for name, paper in papers().items():
        heads = []
        for row in (
            of_claim[name, claim.id] for claim in paper.claims if claim.headline
        ):
            said_so = [
                found for found in row.photographs if row.grouped([found]) == row.group
            ]
            heads += [(row, found) for found in [*said_so, *row.photographs][:1]]
        heads.sort(key=lambda head: head[1].compared.printed is None)
        if heads and heads[0][1].compared.printed is not None:
            groups = {}
            for row, found in heads:
                groups.setdefault(row.group.partition(",")[0], []).append((row, found))
            told.append((paper.paper.cited, groups))
    best = [
        of
        for of in best_rows(seasons)
        if of[1].split != DRAWN and of[2].metric == "rsum"
    ]
    best = [
        (season, leader, place)
        for season, _, leader, place in best
        if place == leader.fair
    ]
    helpers = {"anchor": anchor, "difference": difference, "signed": signed}
    facts = {"numbers": numbers(rows), "papers": papers(), "Group": Group}
    return filled("readme_findings.md.j2", findings=told, best=best, **helpers, **facts)


def numbers(rows: Sequence[LedgerRow]) -> dict:
    """How many claims there are, and what became of them on photographs."""
    counts = Counter(row.group for row in rows)
    said = {"holding": HOLDING, "failing": FAILING}
    said |= {"mixed": [Group.MIXED], "undecided": [Group.UNDECIDED]}
    told = {
        name: sum(counts[group] for group in groups) for name, groups in said.items()
    }
    told["tested"] = sum(told.values())
    told |= {
        "smaller": counts[Group.SMALLER],
        "counted": len(rows) - counts[Group.UNCOUNTED],
    }
    told |= {"in_part": sum(row.holds_in_part for row in rows)}
    return told | {"groups": counts, "withheld": sum(row.is_withheld for row in rows)}


def matrix(rows: Sequence[LedgerRow], places: Sequence[str]) -> str:
    """Markdown: a row per claim that was tested; marks, on photographs by place, on
    drawings of all seasons, with the effects of one part: that which decides in the
    first test; empty without."""
    told = {"rows": [row for row in rows if row.findings], "places": places}
    told |= {"in_part": IN_PART, "against": AGAINST}
    return filled("matrix.md.j2", **told, anchor=anchor, signed=signed).strip()


def anchor(row: LedgerRow) -> str:
    return f"{row.paper}-{row.claim.id}".replace("_", "-")


def gains(seasons: Sequence[SeasonClaims]) -> Table:
    """What rows gain that were run on two sets of features of the same photographs."""
    boards = [
        (
            data.title,
            leader.best.mean,
            {place.title: place.mean for place in leader.places},
        )
        for season in seasons
        for data in season.datasets
        for leader in data.leaders
        if data.split != DRAWN and leader.task == "retrieval"
    ]
    lines, rising = [], sorted(boards, key=itemgetter(1))
    for title in dict.fromkeys(title for title, *_ in boards):
        weak, strong = [{}, *(of for name, _, of in rising if name == title)][-2:]
        lines += [
            {
                "row": row,
                "weaker features": Number(value=weak[row]),
                "stronger features": Number(value=level),
                "gain": signed(level - weak[row], 1),
            }
            for row, level in strong.items()
            if row in weak
        ]
    return Table.of("Gains", lines)


def of_layers(seasons: Sequence[SeasonClaims]) -> list[dict]:
    """What further layers of relevance change: by season and dataset how many claims
    they tell, and those whose verdict one of them changes."""
    known, found = {(p, c.id): c for p, of in papers().items() for c in of.claims}, []
    for season in seasons:
        for data in season.datasets:
            told = [
                of for of in data.claims if of.layers and (of.paper, of.id) in known
            ]
            changed = [
                {
                    "claim": known[of.paper, of.id],
                    "layer": layer,
                    "own": own,
                    "here": here,
                }
                for of in told
                for layer, (own, here, is_changed) in of.layers.items()
                if is_changed
            ]
            if told:
                facts = {
                    "season": season.season,
                    "dataset": data.dataset,
                    "title": data.title,
                }
                facts["layers"] = list(
                    dict.fromkeys(layer for of in told for layer in of.layers)
                )
                found.append(facts | {"told": len(told), "changed": changed})
    return found


def best_rows(seasons: Sequence[SeasonClaims]) -> list[tuple]:
    """The best row of every board with its season, Measured and Leader, photographs
    first; where it knows more than others, the best of the others, too."""
    of_all = [(season, data) for season in seasons for data in season.datasets]
    of_all.sort(
        key=lambda of: (
            of[1].split == DRAWN,
            -max((x.best.mean for x in of[1].leaders), default=0),
        )
    )
    return [
        (season, data, leader, place)
        for season, data in of_all
        for leader in data.leaders
        for place in leader.places
        if place in (leader.best, leader.fair)
    ]


def leaders(seasons: Sequence[SeasonClaims]) -> Table:
    """The best row of every board: its interval, how many are not significantly
    different, and what speaks against trusting it."""
    lines = [
        {
            "season": season.title,
            "board": f"{data.title}, {leader.task}",
            "test images": data.images,
            "rows": len(leader.places),
            "best row": place.title,
            "metric": leader.metric,
            "level, 95% interval": level(place),
            "not significantly different": len(leader.like(place))
            if leader.is_compared
            else None,
            "flags": ", ".join(
                name for name in flags.NAMES.values() if name in place.flags
            ),
        }
        for season, data, leader, place in best_rows(seasons)
    ]
    return Table.of("The best rows", lines)


def claim_table(findings: Sequence[ClaimEntry]) -> Table:
    """A row per finding on a claim, and of a claim with several parts a row for
    each."""
    lines = []
    for finding in findings:
        head = {"test": finding.place, "verdict": finding.conclusion}
        head["would decide it"] = finding.needs
        alone = len(finding.parts) == 1
        lines += [] if alone else [head]
        for part in finding.parts:
            names = " over ".join(filter(None, (part.first, part.second)))
            of_part = {"test": f"{INDENT}{names}", "verdict": part.conclusion}
            line = {
                "metric": part.metric,
                "difference, 95% interval": difference(part),
                "printed": signed(part.printed, part.decimals),
            }
            if part.withheld:
                line["verdict"] = f"{part.conclusion}; unconfirmed: {part.withheld}"
            lines.append((head if alone else of_part) | line)
            for of in part.controls:
                control = f"{INDENT}control: {of.first} over {of.second}"
                said = {"test": control, "verdict": of.conclusion, "metric": of.metric}
                lines.append(said | {"difference, 95% interval": difference(of)})
    order = (
        "test",
        "verdict",
        "metric",
        "difference, 95% interval",
        "printed",
        "would decide it",
    )
    return Table.of(
        "Tests", [{name: line.get(name) for name in order} for line in lines]
    )


def fidelity_page(pages: Mapping[str, str]) -> str:
    """reports/fidelity.md: paper, official code and this implementation, topic by
    topic, and where each table and figure is; `pages` are those of the seasons by their
    path from there."""
    tables = {}
    for name, entries in fidelity().items():
        lines = []
        for entry in entries:
            option = f"option {entry.option}" if entry.option else ""
            why = "; ".join(filter(None, (entry.why, option)))
            line = {
                "topic": entry.topic,
                "paper": entry.paper,
                "official code": entry.code,
            }
            lines.append(line | {"ours": entry.ours, "why; option": why})
        tables[name] = Table.of(name, lines)
    return filled(
        "fidelity.md.j2", papers=papers(), tables=tables, drawn=drawn_table(pages)
    )


def drawn_table(pages: Mapping[str, str]) -> str:
    """Markdown of every table and figure of the papers, with the pages that show it, or
    why none does."""
    lines = []
    for name, paper in papers().items():
        marks = {
            f"table {n}": (t.title, "", f"^## Table {n}:")
            for n, t in paper.tables.items()
        }
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


def difference(compared: VerdictEntry) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing
    of other trainings."""
    ends = None if compared.low is None else (compared.low, compared.high)
    note = DAGGER * compared.is_of_these_trainings
    return signed(compared.difference, compared.decimals, ends, note)
