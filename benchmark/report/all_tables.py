"""Every table of a season by its name, for export. Knows neither torch nor
matplotlib."""

from collections.abc import Sequence

from benchmark.boards import claims
from benchmark.boards.boards import Board
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.claim_tables import claims_table
from benchmark.report.pages.dataset_tables import dataset_tables
from benchmark.report.pages.paper_tables import paper_table
from benchmark.report.tables import Table
from benchmark.season.parameters import Params


def tables_of(params: Params, boards: Sequence[Board]) -> dict[str, Table]:
    """Every table that has rows by its name: <dataset>/<what>, and <paper>/<number>
    <place> with the dataset where the season has several."""
    tables: dict[str, Table] = {}
    for board in boards:
        for what, table in dataset_tables(params, board).items():
            if table:
                tables[f"{board.dataset}/{what}"] = table
        title = f"{board.title}: claims"
        claim_tests = claims.claim_tests(board)
        tables[f"{board.dataset}/claims"] = claims_table(title, claim_tests)
        dataset = f" {board.dataset}" if len(boards) > 1 else ""
        for name, paper in papers().items():
            for number, printed in paper.tables.items():
                for place in printed.places:
                    table = paper_table(paper, number, place, board)
                    tables[f"{name}/{number} {place}{dataset}"] = table
    return tables
