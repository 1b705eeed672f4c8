"""The pages over all seasons: the ledger of claims, and where methods differ from their
papers.

Knows no torch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.boards import flags
from benchmark.boards.claim_ledger import LedgerRow, untested_for
from benchmark.boards.claims_file import (
    DRAWN,
    ClaimEntry,
    Leader,
    Measured,
    RowEntry,
    SeasonClaims,
    VerdictEntry,
)
from benchmark.boards.grades import (
    FAILING,
    MARKS,
    Grade,
    PooledPart,
    part_of,
    verdicts_alone,
)
from benchmark.core.confidence import PERCENT
from benchmark.papers.printed_tables import Claim, fidelity, papers
from benchmark.report.markdown import inside, pipe_table
from benchmark.report.page_contents import PageContents, SeasonContents
from benchmark.report.pages import filled
from benchmark.report.pages.claim_tables import INDENT, level, limited
from benchmark.report.tables import DAGGER, Number, Table, signed
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.verdicts import WORST_FIRST, Limit

UNDECIDED = Conclusion.UNDECIDED
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
    untested = [row.claim for row in rows if row.grade == Grade.UNTESTED]
    return filled(
        "ledger.md.j2",
        figures=figures,
        seasons=seasons,
        numbers=numbers(rows),
        Grade=Grade,
        FAILING=FAILING,
        MARKS=MARKS,
        leaders=leaders(seasons),
        rivals=[best for best in best_rows(seasons) if best.is_rivalled],
        gains=gains(seasons),
        layers=layer_changes(seasons),
        of_papers=of_papers,
        matrices=matrices,
        of_paper=counts,
        papers=papers(),
        anchor=anchor,
        evidence=evidence_table,
        untested=Counter(map(untested_for, untested)),
        in_part=IN_PART,
        untested_for=untested_for,
    )


def _places(rows: Sequence[LedgerRow]) -> list[str]:
    """The photographs of the tests, those on which rows reach furthest first."""
    levels = {}
    for row in rows:
        for finding in row.photographs:
            levels[finding.place] = finding.level
    return sorted(levels, key=levels.__getitem__, reverse=True)


def findings(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> str:
    """Markdown for the first page of a project: what photographs say of the headlines
    of each paper that has a printed number for one of them, and the best row on
    photographs."""
    of_papers = {}  # paper -> grade -> rows
    for name, paper in papers().items():
        headlines = _headlines(name, rows)
        if any(_is_printed(row) for row in headlines):
            grades: dict[str, list[LedgerRow]] = {}
            for row in headlines:
                grades.setdefault(row.grade, []).append(row)
            of_papers[paper.paper.cited] = grades
    fair = [best for best in best_rows(seasons) if best.place == best.leader.fair]
    return filled(
        "readme_findings.md.j2",
        findings=of_papers,
        best=[b for b in fair if not b.is_drawn and b.leader.metric == "rsum"],
        numbers=numbers(rows),
        papers=papers(),
        anchor=anchor,
        pooled=pooled_difference,
        signed=signed,
        heading=metric_of,
        FAILING=FAILING,
    )


def _headlines(paper: str, rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Those that were tested on photographs; those with a printed number first."""
    of_claim = {row.claim.id: row for row in rows if row.paper == paper}
    headlines = []
    for claim in papers()[paper].claims:
        row = of_claim[claim.id]
        if claim.headline and row.graded:
            headlines.append(row)
    return sorted(headlines, key=lambda row: not _is_printed(row))


def _is_printed(row: LedgerRow) -> bool:
    return row.graded.decisive.verdict.printed is not None


def numbers(rows: Sequence[LedgerRow]) -> dict:
    """How many claims there are, and what became of them on photographs."""
    grades = Counter(row.grade for row in rows)
    graded = [row for row in rows if row.graded]
    denied = [row for row in graded if row.grade in FAILING]
    return {
        "grades": grades,
        "tested": len(graded),
        "counted": len(rows) - grades[Grade.UNCOUNTED],
        "smaller": sum(row.graded.is_smaller for row in graded),
        "in_part": sum(row.holds_in_part for row in rows),
        "denied_twice": sum(row.graded.is_confirmed for row in denied),
        "denied": len(denied),
    }


def matrix(rows: Sequence[LedgerRow], places: Sequence[str]) -> str:
    """Markdown: a row per claim that was tested: its grade, what all set-ups say
    together and each for itself, and drawings; the effects are of the part that
    decides. Empty without a row."""
    text = filled(
        "matrix.md.j2",
        rows=[row for row in rows if row.findings],
        places=places,
        Grade=Grade,
        FAILING=FAILING,
        anchor=anchor,
        signed=signed,
        pooled=pooled_difference,
        printed=printed_difference,
        metric_of=metric_of,
        needed=needed,
        of_place=_of_place,
        of_drawings=_of_drawings,
    )
    return text.strip()


def pooled_difference(row: LedgerRow) -> Number | None:
    """Of the part that decides, over all set-ups, with its interval; None without a
    test on photographs."""
    return _pooled_difference(row.graded.decisive) if row.graded else None


def _pooled_difference(part: PooledPart) -> Number | None:
    """None where no set-up can judge it."""
    if not part.set_ups:
        return None
    verdict = part.verdict
    note = DAGGER if verdict.comparison.is_of_these_trainings else ""
    return signed(verdict.difference, part.decimals, verdict.interval, note)


def metric_of(row: LedgerRow) -> str:
    """The heading of the metric of the part that decides."""
    if row.graded:
        return row.graded.decisive.verdict.comparison.metric
    return row.findings[0].compared.metric


def printed_difference(row: LedgerRow) -> Number | None:
    """What the paper prints for the part that decides."""
    if row.graded:
        part = row.graded.decisive
        return signed(part.verdict.printed, part.decimals)
    compared = row.findings[0].compared
    return signed(compared.printed, compared.decimals)


def needed(row: LedgerRow) -> str:
    """What would decide an open claim, or why nothing here can; "" of others."""
    if row.grade == Grade.DRAWINGS:
        return row.findings[0].needs
    if row.grade == Grade.OUT_OF_REACH:
        return _lacking(row)
    if row.grade != Grade.UNDECIDED:
        return ""
    if row.graded.contradicting:
        return "set-ups that do not contradict each other"
    parts = [p for p in row.graded.parts if p.verdict.conclusion == UNDECIDED]
    decisive = row.graded.decisive
    if decisive.verdict.difference < 0 and decisive.verdict.limit:
        parts = [decisive]  # which alone may deny the claim
    limits = [part.verdict.limit for part in parts]
    if None in limits:
        reasons = [part.verdict.reason for part in parts if not part.verdict.limit]
        return ", ".join(dict.fromkeys(reasons))
    return limited(Limit(_most(limits, "seeds"), _most(limits, "folds")))


def _lacking(row: LedgerRow) -> str:
    if row.claim.out_of_reach:
        return row.claim.out_of_reach.removesuffix(".")
    parts = [part for part in row.graded.parts if part.is_out_of_reach]
    return ", ".join(dict.fromkeys(part.verdict.reason for part in parts))


def _most(limits: Sequence[Limit], what: str) -> int | None:
    """What decides all of several comparisons; None where it is no number for one."""
    numbers = [getattr(limit, what) for limit in limits]
    return None if None in numbers else max(numbers)


def _of_place(row: LedgerRow, place: str) -> str:
    """Marks and effects on photographs of one place: each test for itself."""
    cells = [_cell(row, f) for f in row.photographs if f.place == place]
    return ", ".join(cells)


def _of_drawings(row: LedgerRow) -> str:
    drawn = [finding for finding in row.findings if finding.is_drawn]
    return ", ".join(_cell(row, finding) for finding in drawn)


def _cell(row: LedgerRow, finding: ClaimEntry) -> str:
    """The mark and the effect of a test, by the part that decides over all set-ups;
    and whether parts are missing."""
    part, conclusion = finding.compared, finding.conclusion
    if row.graded:
        decisive = row.graded.decisive
        part = part_of(finding, decisive.index)
        if finding.is_drawn:
            conclusion = part.conclusion if part else UNDECIDED
        else:
            conclusion = decisive.alone_in(finding)
    mark = MARKS[conclusion] + (IN_PART if row.is_in_part(finding) else "")
    return f"{mark} {signed(part.difference, part.decimals)}" if part else mark


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


def evidence_table(row: LedgerRow) -> Table:
    """What all set-ups say together, a line per part; then a line per finding, and of
    a claim with several parts a line for each."""
    lines, parts = [], row.graded.parts if row.graded else ()
    for part in parts:
        name = "all set-ups"
        if len(parts) > 1:
            name += f": {part.verdict.comparison.names}"
        line = {
            "test": name,
            "verdict": part.verdict.conclusion,
            "metric": part.verdict.comparison.metric,
            f"difference, {PERCENT} interval": _pooled_difference(part),
            "printed": signed(part.verdict.printed, part.decimals),
            "would decide it": limited(part.verdict.limit)
            if part.verdict.limit
            else "",
        }
        lines.append(line)
    for finding in row.findings + row.alike:
        lines += _finding_lines(row.claim, finding)
    return Table.of("Tests", lines)


def _finding_lines(claim: Claim, finding: ClaimEntry) -> list[dict]:
    """A finding on photographs has its verdicts for itself, without an adjustment for
    other claims; what would decide it stands beside all set-ups."""
    conclusions = {part.part: part.conclusion for part in finding.parts}
    needs = finding.needs
    if not finding.is_drawn:
        alone = verdicts_alone(claim, finding)
        conclusions = {part: alone[part].conclusion for part in alone}
        needs = ""
    if len(finding.parts) == 1:
        (part,) = finding.parts
        return [_test_line(finding.place, conclusions[part.part], part, needs)]
    worst = min(conclusions.values(), key=WORST_FIRST.index)
    lines = [_test_line(finding.place, worst, needs=needs)]
    for part in finding.parts:
        names = " over ".join(filter(None, (part.first, part.second)))
        lines.append(_test_line(f"{INDENT}{names}", conclusions[part.part], part))
    return lines


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
