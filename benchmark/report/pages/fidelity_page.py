"""The page on where methods differ from their papers: topic by topic, and where each
table and figure of the papers is. Imports no torch."""

from collections.abc import Sequence

from benchmark.boards.claims_file import PageContents, SeasonClaims
from benchmark.papers.printed_tables import fidelity, papers
from benchmark.report.markdown import inside, pipe_table
from benchmark.report.pages import filled
from benchmark.report.tables import Table

NOWHERE = "on no published page"


def fidelity_page(seasons: Sequence[SeasonClaims]) -> str:
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


def drawn_table(seasons: Sequence[SeasonClaims]) -> str:
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
