"""Write the pages over all seasons: the ledger of claims, and how methods differ from
papers.

Reads reports/*/claims.json, which every report writes, and results/claims/NAME/claims.yaml,
the claims that others brought with their results (docs/claims.md); the same files give the
same bytes.

    reports/README.md     every claim with what photographs say, what drawings say, and the evidence
    reports/papers.svg    how many claims of each paper hold
    reports/ledger.svg    every claim as one figure
    README.md             where it asks for them, the main findings
    reports/records.md    how the results of all seasons were made
    reports/fidelity.md   paper, official code and this implementation, topic by topic; every table
                          and figure of the papers, and where it is
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmark.boards.claim_ledger import LedgerRow, ledger
from benchmark.boards.claims_file import (
    FILE,
    SeasonClaims,
    read_evidence,
    read_seasons,
)
from benchmark.commands.judge import judge_claims
from benchmark.commands.verdict_facts import lines
from benchmark.commands.written_claims import (
    check_is_inside,
    read_claims,
    read_claims_file,
)
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.data.results import RESULTS
from benchmark.report import ROOT, figure_style
from benchmark.report.ledger_figures import figures_of
from benchmark.report.markdown import picture
from benchmark.report.pages import filled
from benchmark.report.pages.fidelity_page import fidelity_page
from benchmark.report.pages.ledger_pages import (
    IN_REPORTS,
    BroughtClaim,
    BroughtClaims,
    findings,
    ledger_page,
)

BROUGHT = RESULTS / "claims"  # NAME/claims.yaml, with the results beside it
# of the project; where it has START and END, findings stand between them
FRONT = Path("README.md")
START = "<!-- findings: written by `rematch ledger` -->\n"
END = "<!-- end of findings -->"


def configure(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments."""


def main(_arguments: argparse.Namespace) -> None:
    print(write_ledger())


def write_ledger() -> Path:
    """Write the pages and the figures; returns the first page."""
    seasons = read_seasons(ROOT)
    rows = read_ledger(seasons, ROOT)
    brought = brought_claims(BROUGHT)
    for of in brought:
        print(f"{BROUGHT / of.name}: {len(of.claims)} claims that others brought")
    if not seasons:
        where = f"{ROOT}/*/{FILE}"
        raise UserError(where, "the report of a season", "none", "run: rematch report")
    text = ledger_page(seasons, rows, IN_REPORTS, write_figures(rows, ROOT), brought)
    write_text(ROOT / "README.md", text)
    write_text(ROOT / "records.md", filled("records.md.j2", seasons=seasons))
    write_text(ROOT / "fidelity.md", fidelity_page(seasons))
    if FRONT.is_file():
        before, start, rest = FRONT.read_text(encoding="utf-8").partition(START)
        _, end, after = rest.partition(END)
        if start and end:  # without an end, all that follows would go
            text = findings(seasons, rows)
            write_text(FRONT, before + START + text + END + after)
    return ROOT / "README.md"


def read_ledger(seasons: Sequence[SeasonClaims], folder: Path) -> list[LedgerRow]:
    """The ledger over seasons, with the evidence that stands beside their claims."""
    evidence = {of.season: read_evidence(folder, of.season) for of in seasons}
    return ledger(seasons, evidence)


def write_figures(rows: Sequence[LedgerRow], folder: Path) -> dict[str, str]:
    """Write the figures of the ledger into the folder; returns their Markdown by
    name."""
    pictures = {}
    for drawn in figures_of(rows):
        path = figure_style.save(drawn.figure, folder / drawn.name)
        pictures[drawn.name] = picture(drawn.alt, path.name)
    return pictures


def brought_claims(folder: Path) -> list[BroughtClaims]:
    """The claims that others brought, judged here by the results beside them. Raises
    UserError for a file that is wrong, and for results that are elsewhere."""
    brought = []
    for path in sorted(folder.glob("*/claims.yaml")):
        file = read_claims_file(path)
        check_is_inside(file, path)
        claims = []
        for facts in judge_claims(read_claims(path)):
            sentences = lines(facts | {"statement": ""})
            claims.append(BroughtClaim(facts["statement"], sentences))
        name = path.parent.name
        brought.append(BroughtClaims(name, file.title or name, claims))
    return brought
