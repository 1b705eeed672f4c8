"""Write the pages over all seasons: the ledger of claims, and how methods differ from papers.

Reads reports/*/claims.json, which every report writes; the same files give the same bytes.

    reports/README.md     what was learned, what surprised, what cannot be said; every claim
    reports/papers.png    how many claims of each paper hold, and .svg
    reports/ledger.png    every claim as one picture, and .svg
    reports/fidelity.md   paper, official code and this implementation, topic by topic
"""

import argparse
from pathlib import Path

from benchmark.analysis.claim_ledger import ledger
from benchmark.analysis.season_claims import FILE, read_seasons
from benchmark.core.errors import UserError
from benchmark.core.files import write_text
from benchmark.report import figure_style, papers_figure
from benchmark.report.ledger_figure import alt_text, ledger_figure
from benchmark.report.pages.ledger_pages import fidelity_page, ledger_page

ROOT = Path("reports")


def configure(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments."""


def main(_arguments: argparse.Namespace) -> None:
    print(write_ledger())


def write_ledger() -> Path:
    """Write the pages and the picture; returns the first page. Raises UserError without any
    season."""
    seasons = read_seasons(ROOT)
    if not seasons:
        do = "run: python -m benchmark report"
        raise UserError(f"{ROOT}/*/{FILE}", "the report of a season", "none", do)
    rows = ledger(seasons)
    figures = {"papers": papers_figure.papers_figure(rows), "ledger": ledger_figure(rows)}
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            figure_style.save(figure, ROOT / f"{name}.{kind}")
    alts = {"papers": papers_figure.alt_text(rows), "ledger": alt_text(rows)}
    write_text(ROOT / "README.md", ledger_page(seasons, rows, alts))
    write_text(ROOT / "fidelity.md", fidelity_page())
    return ROOT / "README.md"
