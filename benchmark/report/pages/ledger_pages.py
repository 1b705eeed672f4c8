"""The pages over all seasons: the ledger of claims, and where methods differ from their
papers.

Knows no torch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.boards import flags
from benchmark.boards.claim_ledger import (
    DRAWN,
    FAILING,
    HOLDING,
    OUTCOMES,
    ClaimEntry,
    Group,
    Leader,
    LedgerRow,
    Measured,
    RowEntry,
    SeasonClaims,
    VerdictEntry,
    judged_again,
    untested_for,
)
from benchmark.core.confidence import PERCENT
from benchmark.papers.printed_tables import Claim, fidelity, papers
from benchmark.report.markdown import inside, pipe_table
from benchmark.report.page_contents import PageContents, SeasonContents
from benchmark.report.pages import filled
from benchmark.report.pages.claim_tables import INDENT, level
from benchmark.report.tables import DAGGER, Number, Table, signed
from benchmark.stats.claim_kinds import Conclusion

AGAINST = "✕"  # beside the mark of an undecided test with a result against the paper
IN_PART = "°"  # beside the mark of a test without some parts of its claim
NOWHERE = "on no published page"


def ledger_page(
    seasons: Sequence[SeasonClaims],
    rows: Sequence[LedgerRow],
    figures: Mapping[str, str],
) -> str:
    """reports/README.md; `figures` are the Markdown of the figures by name."""
    of_papers, matrices, counts = {}, {}, {}
    for name in papers():
        of_paper = [row for row in rows if row.paper == name]
        of_paper.sort(key=lambda row: not row.claim.headline)
        of_papers[name], counts[name] = of_paper, numbers(of_paper)
        matrices[name] = matrix(of_paper, _places(rows))
    untested = [row.claim for row in rows if row.group == Group.UNTESTED]
    return filled(
        "ledger.md.j2",
        figures=figures,
        seasons=seasons,
        numbers=numbers(rows),
        group=Group,
        withheld=[row for row in rows if row.is_withheld],
        leaders=leaders(seasons),
        rivals=[best for best in best_rows(seasons) if best.is_rivalled],
        again=judged_again(rows),
        outcomes=OUTCOMES,
        gains=gains(seasons),
        layers=layer_changes(seasons),
        of_papers=of_papers,
        matrices=matrices,
        of_paper=counts,
        papers=papers(),
        anchor=anchor,
        tests=lambda row: claim_table(row.findings + row.alike),
        untested=Counter(map(untested_for, untested)),
        in_part=IN_PART,
        against=Group.UNDECIDED.mark + AGAINST,
        untested_for=untested_for,
    )


def _places(rows: Sequence[LedgerRow]) -> list[str]:
    """The photographs of the tests, those on which rows reach furthest first."""
    levels = {}
    for row in rows:
        for finding in row.photographs:
            levels[finding.place] = finding.level
    return sorted(levels, key=levels.__getitem__, reverse=True)


@dataclass(frozen=True)
class Headline:
    """A claim that a paper is known for, and the finding that is told of it."""

    row: LedgerRow
    finding: ClaimEntry


def findings(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> str:
    """Markdown for the first page of a project: what photographs say of the headlines
    of each paper that has a printed number for one of them, and the best row on
    photographs."""
    of_papers = {}  # paper -> group -> headlines
    for name, paper in papers().items():
        headlines = _headlines(name, rows)
        if any(_is_printed(headline) for headline in headlines):
            groups: dict[str, list[Headline]] = {}
            for headline in headlines:
                group = headline.row.group
                if group == Group.SMALLER:  # stands among those that hold
                    group = Group.REPLICATED
                groups.setdefault(group, []).append(headline)
            of_papers[paper.paper.cited] = groups
    fair = [best for best in best_rows(seasons) if best.place == best.leader.fair]
    return filled(
        "readme_findings.md.j2",
        findings=of_papers,
        best=[b for b in fair if not b.is_drawn and b.leader.metric == "rsum"],
        numbers=numbers(rows),
        papers=papers(),
        Group=Group,
        anchor=anchor,
        difference=difference,
        signed=signed,
    )


def _headlines(paper: str, rows: Sequence[LedgerRow]) -> list[Headline]:
    """Those that were tested on photographs, each with the first finding that says what
    its group says, or else the first; those with a printed number first."""
    of_claim = {row.claim.id: row for row in rows if row.paper == paper}
    headlines = []
    for claim in papers()[paper].claims:
        row = of_claim[claim.id]
        if claim.headline and row.photographs:
            alike = [f for f in row.photographs if row.grouped([f]) == row.group]
            headlines.append(Headline(row, [*alike, *row.photographs][0]))
    return sorted(headlines, key=lambda headline: not _is_printed(headline))


def _is_printed(headline: Headline) -> bool:
    return headline.finding.compared.printed is not None


def numbers(rows: Sequence[LedgerRow]) -> dict:
    """How many claims there are, and what became of them on photographs."""
    groups = Counter(row.group for row in rows)
    tested = {
        "holding": sum(groups[group] for group in HOLDING),
        "failing": sum(groups[group] for group in FAILING),
        "mixed": groups[Group.MIXED],
        "undecided": groups[Group.UNDECIDED],
    }
    return {
        **tested,
        "tested": sum(tested.values()),
        "smaller": groups[Group.SMALLER],
        "counted": len(rows) - groups[Group.UNCOUNTED],
        "in_part": sum(row.holds_in_part for row in rows),
        "groups": groups,
        "withheld": sum(row.is_withheld for row in rows),
    }


def matrix(rows: Sequence[LedgerRow], places: Sequence[str]) -> str:
    """Markdown: a row per claim that was tested; marks, on photographs by place, on
    drawings of all seasons, with the effects of one part: that which decides in the
    first test; empty without."""
    text = filled(
        "matrix.md.j2",
        rows=[row for row in rows if row.findings],
        places=places,
        in_part=IN_PART,
        against=AGAINST,
        anchor=anchor,
        signed=signed,
    )
    return text.strip()


def anchor(row: LedgerRow) -> str:
    return f"{row.paper}-{row.claim.id}".replace("_", "-")


def gains(seasons: Sequence[SeasonClaims]) -> Table:
    """What rows gain that were run on two sets of features of the same photographs."""
    boards: dict[str, list[Leader]] = {}  # title of a dataset -> its leaders
    for season in seasons:
        for data in season.datasets:
            for leader in data.leaders:
                if data.split != DRAWN and leader.task == "retrieval":
                    boards.setdefault(data.title, []).append(leader)
    lines = []
    for of_dataset in boards.values():
        if len(of_dataset) < 2:
            continue
        *_, weaker, stronger = sorted(of_dataset, key=lambda leader: leader.best.mean)
        means = {place.title: place.mean for place in weaker.places}
        for place in stronger.places:
            if place.title in means:
                weak = means[place.title]
                line = {
                    "row": place.title,
                    "weaker features": Number(value=weak),
                    "stronger features": Number(value=place.mean),
                    "gain": signed(place.mean - weak, 1),
                    "flags": ", ".join(place.knows),
                }
                lines.append(line)
    return Table.of("Gains", lines)


@dataclass(frozen=True)
class Change:
    """A verdict that a layer of relevance changes."""

    claim: Claim
    layer: str
    own: Conclusion  # by the captions' own images
    here: Conclusion  # by the layer


@dataclass(frozen=True)
class LayerChanges:
    """What the layers of relevance of a dataset change."""

    season: str
    data: Measured
    layers: list[str]
    judged: list[ClaimEntry]  # the claims that a layer tells
    changed: list[Change]


def layer_changes(seasons: Sequence[SeasonClaims]) -> list[LayerChanges]:
    """What further layers of relevance change, for each dataset that has some: claims
    of papers alone."""
    claims = {}
    for name, paper in papers().items():
        for claim in paper.claims:
            claims[name, claim.id] = claim
    listed = []
    for season in seasons:
        for data in season.datasets:
            judged, changed, layers = [], [], {}
            for finding in data.claims:
                claim = claims.get((finding.paper, finding.id))
                if claim is None or not finding.layers:
                    continue
                judged.append(finding)
                layers |= finding.layers
                for layer, (own, here, is_changed) in finding.layers.items():
                    if is_changed:
                        changed.append(Change(claim, layer, own, here))
            if judged:
                of_dataset = LayerChanges(
                    season.season, data, list(layers), judged, changed
                )
                listed.append(of_dataset)
    return listed


@dataclass(frozen=True)
class BestRow:
    """The best row of a board, or the best that knows no more than others."""

    season: SeasonClaims
    data: Measured
    leader: Leader
    place: RowEntry

    @property
    def is_drawn(self) -> bool:
        """Whether its images are no photographs."""
        return self.data.split == DRAWN

    @property
    def alike(self) -> list[RowEntry]:
        """The rows that are not significantly different."""
        return self.leader.like(self.place)

    @property
    def is_rivalled(self) -> bool:
        """Whether rows are compared, and some are not significantly different."""
        return self.leader.is_compared and bool(self.alike)


def best_rows(seasons: Sequence[SeasonClaims]) -> list[BestRow]:
    """The best row of every board, photographs first; where it knows more than others,
    the best of the others, too."""
    listed = []
    for season in seasons:
        for data in season.datasets:
            for leader in data.leaders:
                for place in leader.places:
                    if place in (leader.best, leader.fair):
                        listed.append(BestRow(season, data, leader, place))
    return sorted(listed, key=lambda best: (best.is_drawn, -_highest(best.data)))


def _highest(data: Measured) -> float:
    return max(leader.best.mean for leader in data.leaders)


def leaders(seasons: Sequence[SeasonClaims]) -> Table:
    """The best row of every board: its interval, how many are not significantly
    different, and what speaks against trusting it."""
    lines = []
    for best in best_rows(seasons):
        leader, place = best.leader, best.place
        known = [name for name in flags.NAMES.values() if name in place.flags]
        line = {
            "season": best.season.title,
            "board": f"{best.data.title}, {leader.task}",
            "test images": best.data.images,
            "rows": len(leader.places),
            "best row": place.title,
            "metric": leader.metric,
            f"level, {PERCENT} interval": level(place),
            "not significantly different": None,
            "flags": ", ".join(known),
        }
        if leader.is_compared:
            line["not significantly different"] = len(best.alike)
        lines.append(line)
    return Table.of("The best rows", lines)


def claim_table(findings: Sequence[ClaimEntry]) -> Table:
    """A row per finding on a claim, and of a claim with several parts a row for
    each."""
    lines = []
    for finding in findings:
        needs = finding.needs
        if len(finding.parts) == 1:
            (part,) = finding.parts
            verdict = _verdict(part, finding.conclusion)
            lines.append(_test_line(finding.place, verdict, part, needs))
            lines += _control_lines(part)
            continue
        lines.append(_test_line(finding.place, finding.conclusion, needs=needs))
        for part in finding.parts:
            names = " over ".join(filter(None, (part.first, part.second)))
            verdict = _verdict(part, part.conclusion)
            lines.append(_test_line(f"{INDENT}{names}", verdict, part))
            lines += _control_lines(part)
    return Table.of("Tests", lines)


def _test_line(
    test: str, verdict: str, part: VerdictEntry | None = None, needs: str | None = None
) -> dict:
    return {
        "test": test,
        "verdict": verdict,
        "metric": part and part.metric,
        f"difference, {PERCENT} interval": part and difference(part),
        "printed": part and signed(part.printed, part.decimals),
        "would decide it": needs,
    }


def _verdict(part: VerdictEntry, conclusion: Conclusion) -> str:
    if part.withheld:
        return f"{part.conclusion}; unconfirmed: {part.withheld}"
    return conclusion


def _control_lines(part: VerdictEntry) -> list[dict]:
    lines = []
    for control in part.controls:
        test = f"{INDENT}control: {control.first} over {control.second}"
        line = _test_line(test, control.conclusion, control)
        lines.append(line | {"printed": None})
    return lines


def fidelity_page(seasons: Sequence[SeasonContents]) -> str:
    """reports/fidelity.md: paper, official code and this implementation, topic by
    topic, and where each table and figure of the papers is."""
    tables = {}
    for name, entries in fidelity().items():
        lines = []
        for entry in entries:
            option = f"option {entry.option}" if entry.option else ""
            line = {
                "topic": entry.topic,
                "paper": entry.paper,
                "official code": entry.code,
                "ours": entry.ours,
                "why; option": "; ".join(filter(None, (entry.why, option))),
            }
            lines.append(line)
        tables[name] = Table.of(name, lines)
    drawn = drawn_table(seasons)
    return filled("fidelity.md.j2", papers=papers(), tables=tables, drawn=drawn)


def drawn_table(seasons: Sequence[SeasonContents]) -> str:
    """Markdown of every table and figure of the papers, with the pages that show it, or
    why none does."""
    pages: dict[str, PageContents] = {}  # by a link to each
    for season in seasons:
        for page in season.pages:
            pages[f"[{season.season}]({season.season}/{page.path})"] = page
    lines = []
    for name, paper in papers().items():
        for number, table in paper.tables.items():
            links = [link for link, page in pages.items() if page.has(name, number)]
            place = ", ".join(links) or NOWHERE
            lines.append([name, f"table {number}", inside(table.title), place])
        for number, figure in paper.figures.items():
            several = "s" if ", " in number else ""
            is_table = "Table" in number
            what = number.lower() if is_table else f"figure{several} {number}"
            links = [link for link, page in pages.items() if page.draws(figure.where)]
            place = inside(figure.lacks) or ", ".join(links) or NOWHERE
            lines.append([name, what, inside(figure.title), place])
    heads = ["paper", "number", "title", "where it is here"]
    return pipe_table(heads, lines, "llll")


def difference(compared: VerdictEntry) -> Number:
    """The measured difference with its interval; a dagger marks one that says nothing
    of other trainings."""
    ends = None if compared.low is None else (compared.low, compared.high)
    note = DAGGER if compared.is_of_these_trainings else ""
    return signed(compared.difference, compared.decimals, ends, note)
