"""The page over all seasons: the ledger of claims. Imports no torch."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmark.boards import flags
from benchmark.boards.boards import MIN_TEST_QUERIES
from benchmark.boards.claim_ledger import LedgerRow, untested_for
from benchmark.boards.claims_file import (
    ByLayer,
    Leader,
    Measured,
    RowEntry,
    SeasonClaims,
    feature_levels,
)
from benchmark.boards.grades import (
    FAILING,
    HOLDING,
    MARKS,
    Grade,
    PooledPart,
)
from benchmark.papers.printed_tables import Claim, papers, quantity
from benchmark.report.pages import filled
from benchmark.report.pages.claim_tables import (
    DIFFERENCE,
    INDENT,
    OPEN,
    decided_by,
    difference,
    level,
    printed_difference,
    verdict_columns,
)
from benchmark.report.tables import NONE, Number, Table, signed
from benchmark.stats import PERCENT
from benchmark.stats.claim_kinds import FAILED, Conclusion
from benchmark.stats.verdicts import MOST_FOLDS, MOST_SEEDS, Limit, Verdict

UNDECIDED = Conclusion.UNDECIDED
BEYOND = f"more than {MOST_SEEDS} seeds or {MOST_FOLDS} folds"
IN_PART = "°"  # beside the mark of a test without some parts of its claim
# where a table does not say what would decide an open test
NOT_KNOWN, SEE_ABOVE, SEE_ALL = "not known", "see above", "see all set-ups"


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where the ledger leads to; "" of what is not there."""

    front: str  # the first page of a season, in its folder
    claims: str  # of a season, in its folder
    # of a season and a dataset, its rows by further layers of relevance
    layers: Callable[[str, str], str]
    docs: str = ""  # the folder of the documentation
    records: str = ""
    fidelity: str = ""


IN_REPORTS = Links(
    front="README.md",
    claims="claims.md",
    layers="{}/datasets/{}-relevance.md".format,
    docs="../docs/",
    records="records.md",
    fidelity="fidelity.md",
)


@dataclass(frozen=True)
class BroughtClaim:
    statement: str  # in their words; "": without any
    sentences: list[str]  # what became of it, the verdict first


@dataclass(frozen=True)
class BroughtClaims:
    """Claims of a file on results that others brought."""

    name: str  # of its folder in results/claims/
    title: str
    claims: list[BroughtClaim]


def ledger_page(
    seasons: Sequence[SeasonClaims],
    rows: Sequence[LedgerRow],
    links: Links,
    figures: Mapping[str, str],
    brought: Sequence[BroughtClaims] = (),
) -> str:
    """reports/README.md, and the same for a site, which has other `links`; `figures`
    are Markdown by name."""
    places, of_papers = {}, {name: [] for name in papers()}
    for row in sorted(rows, key=lambda row: not row.claim.headline):
        places |= {finding.place: finding.level for finding in row.photographs}
        of_papers[row.paper].append(row)
    untested = [row.claim for row in rows if row.grade == Grade.UNTESTED]
    return _filled(
        "ledger.md.j2",
        links=links,
        figures=figures,
        seasons=seasons,
        rows=rows,
        of_papers=of_papers,
        # where tests on photographs were made, the highest level first
        places=sorted(places, key=places.__getitem__, reverse=True),
        brought=brought,
        best_rows=best_rows(seasons),
        leaders=leaders(seasons),
        gains=gains(seasons),
        layers=layer_changes(seasons),
        matrix=matrix,
        evidence=evidence_table,
        untested=Counter(map(untested_for, untested)),
        untested_for=untested_for,
    )


def findings(seasons: Sequence[SeasonClaims], rows: Sequence[LedgerRow]) -> str:
    """Markdown for the first page of a project: the headlines of each paper that prints
    a number for one, and the best row, on photographs."""
    of_papers = {}  # paper -> grade -> rows, first those with a printed number
    for name, paper in papers().items():
        of_claim = {row.claim.id: row for row in rows if row.paper == name}
        headlines = [of_claim[claim.id] for claim in paper.claims if claim.headline]
        headlines = [row for row in headlines if row.graded]
        headlines.sort(key=lambda row: row.decisive.printed is None)
        if headlines and headlines[0].decisive.printed is not None:
            grades = defaultdict(list)
            for row in headlines:
                grades[row.grade].append(row)
            of_papers[paper.paper.cited] = grades
    best = []
    for row in best_rows(seasons):
        is_large = row.data.images >= MIN_TEST_QUERIES and not row.data.is_drawn
        if is_large and row.is_fair and row.leader.metric == "rsum":
            best.append(row)
    return _filled("readme_findings.md.j2", rows=rows, findings=of_papers, best=best)


def _filled(template: str, **values: object) -> str:
    """A template with what all of the ledger's say claims with."""
    return filled(
        template,
        Grade=Grade,
        FAILING=FAILING,
        HOLDING=HOLDING,
        MARKS=MARKS,
        NONE=NONE,
        in_part=IN_PART,
        papers=papers(),
        numbers=numbers,
        anchor=anchor,
        pooled=pooled_difference,
        printed=printed_difference,
        **values,
    )


def numbers(rows: Sequence[LedgerRow]) -> dict:
    """How many claims there are, and what became of them on photographs."""
    grades = Counter(row.grade for row in rows)
    graded = [row for row in rows if row.graded]
    denied = [row for row in graded if row.grade in FAILING]
    return {
        "grades": grades,
        "tested": len(graded) - grades[Grade.OUT_OF_REACH],
        "counted": len(rows) - grades[Grade.UNCOUNTED],
        "smaller": sum(row.graded.is_smaller for row in graded),
        "in_part": sum(row.holds_in_part for row in rows),
        "denied_twice": sum(row.graded.is_confirmed for row in denied),
        "denied": len(denied),
    }


def matrix(rows: Sequence[LedgerRow], places: Sequence[str]) -> str:
    """Markdown: a row per claim that was tested, by the part that decides. Empty
    without a row."""
    tested = [row for row in rows if row.findings]
    facts = {"rows": tested, "places": places, "needed": needed, "signed": signed}
    return _filled("matrix.md.j2", **facts).strip()


def pooled_difference(row: LedgerRow) -> Number | None:
    """On the part that decides, over all set-ups; None where none can judge it."""
    is_judged = row.graded and row.graded.decisive.set_ups
    return difference(row.decisive.comparison) if is_judged else None


# What would decide a claim ------------------------------------------------------------


def needed(row: LedgerRow) -> str:
    """What would decide an open claim, or why nothing here can; "" of others."""
    if row.grade == Grade.DRAWINGS:
        return needs(row.findings[0].verdicts, row.decisive)
    if row.grade not in (Grade.UNDECIDED, Grade.OUT_OF_REACH):
        return ""
    if row.graded.contradicting:
        return _contradiction(row.graded.decisive)
    verdicts = [part.verdict for part in row.graded.parts]
    if row.grade == Grade.OUT_OF_REACH:
        reasons = [verdict.reason for verdict in verdicts if verdict.is_out_of_reach]
        return row.claim.out_of_reach.removesuffix(".") or _listed(reasons)
    undecided = _undecided(verdicts, row.decisive)
    reasons = [verdict.reason for verdict in undecided if not verdict.limit]
    return _listed(reasons) if reasons else decided_by(_limit_of_all(undecided))


def _listed(reasons: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(reasons))


def _contradiction(part: PooledPart) -> str:
    """What all set-ups say together of a part, and what each says alone."""
    together = f"all together: {part.verdict.conclusion}"
    if part.verdict.conclusion == Conclusion.NO_DIFFERENCE:
        together += f" of {part.verdict.margin:.3g}"
    said = [together]
    for finding, conclusion in zip(part.set_ups, part.alone, strict=True):
        if conclusion != UNDECIDED:
            said.append(f"{finding.place} alone: {conclusion}")
    return f"set-ups that agree ({'; '.join(said)})"


def needs(verdicts: Sequence[Verdict], decisive: Verdict) -> str:
    """What would decide an undecided test, in short: seeds, or else folds, or else what
    its parts lack. Nothing where a part denies the claim."""
    undecided = _undecided(verdicts, decisive)
    if decisive.conclusion in FAILED or not undecided:
        return ""
    limit = _limit_of_all(undecided)
    for count, what in ((limit.seeds, "seed"), (limit.folds, "fold")):
        if count:
            return f"{count} more {what}{'s' if count > 1 else ''}"
    remedies = [verdict.remedy for verdict in undecided if verdict.remedy]
    return _listed(remedies) or BEYOND


def _undecided(verdicts: Sequence[Verdict], decisive: Verdict) -> list[Verdict]:
    """What has to be decided: all, or the decisive one alone where further trainings
    may show that one denies the claim."""
    undecided = [each for each in verdicts if each.conclusion == UNDECIDED]
    for verdict in undecided:
        if verdict.difference < 0 and verdict.limit and any(verdict.limit):
            return [decisive]
    return undecided


def _limit_of_all(verdicts: Sequence[Verdict]) -> Limit:
    """The most seeds and the most folds that one needs; None where no number does."""
    limits = [verdict.limit or Limit(None, None) for verdict in verdicts]
    most = []
    for counts in zip(*limits, strict=True):
        most.append(None if None in counts else max(counts))
    return Limit(*most)


def anchor(row: LedgerRow) -> str:
    return f"{row.paper}-{row.claim.id}".replace("_", "-")


# Rows and layers of relevance ---------------------------------------------------------


def gains(seasons: Sequence[SeasonClaims]) -> Table:
    """What rows gain from the weakest to the strongest features of the same images."""
    boards: dict[str, list[Leader]] = {}  # title of a dataset -> its leaders
    for _, data in _measured(seasons):
        if data.of_retrieval and not data.is_drawn:
            boards.setdefault(data.title, []).append(data.of_retrieval)
    lines = []
    for of_dataset in boards.values():
        levels = feature_levels(of_dataset)
        weaker = of_dataset[levels.index(min(levels))]
        stronger = of_dataset[levels.index(max(levels))]
        means = {place.title: place.mean for place in weaker.places}
        for place in stronger.places if len(of_dataset) > 1 else ():
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


@dataclass(frozen=True, kw_only=True)
class ChangedVerdict:
    """On a claim, by a layer of relevance."""

    claim: Claim
    layer: str
    conclusions: ByLayer


@dataclass(frozen=True, kw_only=True)
class LayerChanges:
    """What the layers of relevance of a dataset change for claims of papers."""

    season: str
    data: Measured
    layers: list[str]
    judged: int  # claims that a layer tells
    changed: list[ChangedVerdict]


def layer_changes(seasons: Sequence[SeasonClaims]) -> Iterator[LayerChanges]:
    """By dataset, of those with such layers."""
    claims = {}
    for name, paper in papers().items():
        claims |= {(name, claim.id): claim for claim in paper.claims}
    for season, data in _measured(seasons):
        told = [entry for entry in data.claims if entry.layers]
        told = [entry for entry in told if (entry.paper, entry.id) in claims]
        layers, changed = {}, []
        for entry in told:
            layers |= entry.layers
            claim = claims[entry.paper, entry.id]
            for layer, by_layer in entry.layers.items():
                if by_layer.is_changed:
                    verdict = ChangedVerdict(
                        claim=claim, layer=layer, conclusions=by_layer
                    )
                    changed.append(verdict)
        if told:
            yield LayerChanges(
                season=season.season,
                data=data,
                layers=list(layers),
                judged=len(told),
                changed=changed,
            )


def _measured(
    seasons: Sequence[SeasonClaims],
) -> Iterator[tuple[SeasonClaims, Measured]]:
    for season in seasons:
        for data in season.datasets:
            yield season, data


@dataclass(frozen=True)
class BestRow:
    """The best row of a board, or the best that knows no more than others."""

    season: SeasonClaims
    data: Measured
    leader: Leader
    place: RowEntry

    @property
    def alike(self) -> list[RowEntry]:
        """The rows that are not significantly different."""
        return self.leader.like(self.place)

    @property
    def is_fair(self) -> bool:
        return self.place == self.leader.fair

    @property
    def is_rivalled(self) -> bool:
        return self.leader.is_compared and bool(self.alike)


def best_rows(seasons: Sequence[SeasonClaims]) -> list[BestRow]:
    """Of every board, photographs first; where the best knows more than others, the
    best of the others, too."""
    listed = []
    for season, data in _measured(seasons):
        for leader in data.leaders:
            for place in leader.places:
                if place in (leader.best, leader.fair):
                    listed.append(BestRow(season, data, leader, place))

    def place_of(best: BestRow) -> tuple[bool, float]:
        return best.data.is_drawn, -max(of.best.mean for of in best.data.leaders)

    return sorted(listed, key=place_of)


def leaders(seasons: Sequence[SeasonClaims]) -> Table:
    """The best row of every board, and what speaks against trusting it."""
    lines = []
    for best in best_rows(seasons):
        leader, place, alike = best.leader, best.place, None
        if leader.is_compared:
            alike = f"{len(best.alike)} of {len(leader.places) - 1}"
            fair = [other for other in leader.places if not other.knows]
            if len(fair) < len(leader.places) and not place.knows:
                fair_alike = sum(not other.knows for other in best.alike)
                others = f"{len(fair) - 1} without extra information"
                alike += f"; {fair_alike} of {others}"
        line = {
            "season": f"{best.season.title} ({best.season.season})",
            "board": f"{best.data.title}, {leader.task}",
            "test images": best.data.images,
            "rows": len(leader.places),
            "best row": place.title,
            "metric": leader.metric,
            f"level, {PERCENT} interval": level(place),
            "not significantly different": alike,
            "flags": ", ".join(filter(place.flags.get, flags.NAMES.values())),
        }
        lines.append(line)
    return Table.of("The best rows", lines)


# The evidence for a claim -------------------------------------------------------------


def evidence_table(row: LedgerRow) -> Table:
    """A line per part over all set-ups; then one per finding, and of a claim with
    several parts one for each. What would decide a pooled finding is said above it."""
    lines = []
    parts = row.graded.parts if row.graded else ()
    for part in parts:
        name, verdict = "all set-ups", part.verdict
        if len(parts) > 1:
            name += f": {verdict.comparison.names}"
        line = _line(row, name, verdict.conclusion, verdict, NOT_KNOWN)
        line[DIFFERENCE] = line[DIFFERENCE] if part.set_ups else None
        line[OPEN] = _open_part(row, part) or line[OPEN]
        lines.append(line)
    for finding in row.findings + row.alike:
        open_by = of_parts = SEE_ALL if finding in row.photographs else NOT_KNOWN
        verdicts = list(finding.alone.values())
        remedy = needs(verdicts, finding.decisive) if finding.is_drawn else ""
        if remedy:
            open_by, of_parts = remedy, SEE_ABOVE
        only = verdicts[0] if len(verdicts) == 1 else None
        lines.append(_line(row, finding.place, finding.conclusion, only, open_by))
        for verdict in () if only else verdicts:
            name = f"{INDENT}{verdict.comparison.names}"
            lines.append(_line(row, name, verdict.conclusion, verdict, of_parts))
    return Table.of("Tests", lines)


def _line(
    row: LedgerRow,
    name: str,
    conclusion: Conclusion,
    verdict: Verdict | None,
    open_by: str,
) -> dict:
    """A test on a claim; the metric says so if less of it is better."""
    line = {"test": name, "verdict": conclusion, **verdict_columns(verdict)}
    if verdict and quantity(row.claim.parts[verdict.part].metric).less_is_better:
        line["metric"] += " (smaller is better)"
    return line | {OPEN: open_by if conclusion == UNDECIDED else ""}


def _open_part(row: LedgerRow, part: PooledPart) -> str:
    """What would decide a part over all set-ups; "" where that is not known, or it is
    decided."""
    verdict = part.verdict
    if verdict.limit:
        return decided_by(verdict.limit)
    is_open = verdict.conclusion == UNDECIDED
    if part is row.graded.decisive or (is_open and row.grade == Grade.OUT_OF_REACH):
        return needed(row)
    return verdict.remedy if is_open else ""
