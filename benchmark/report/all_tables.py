"""Every table of a season by its name, for export. Knows neither torch nor
matplotlib."""

from collections.abc import Sequence
from functools import partial

from benchmark.boards import claims
from benchmark.boards.boards import Board
from benchmark.papers.printed_tables import papers
from benchmark.report.pages import dataset_tables
from benchmark.report.pages.claim_tables import claims_table
from benchmark.report.pages.dataset_tables import Maker
from benchmark.report.pages.paper_tables import paper_table
from benchmark.report.tables import Table
from benchmark.season.parameters import Declaration


def tables_of(params: Declaration, boards: Sequence[Board]) -> dict[str, Table]:
    """Every table that has rows, by its name."""
    tables = {}
    for name, make in table_makers(params, boards).items():
        table = make()
        if table:
            tables[name] = table
    return tables


def table_makers(params: Declaration, boards: Sequence[Board]) -> dict[str, Maker]:
    """What makes each table by its name: <dataset>/<what>, and <paper>/<number> <place>
    with the dataset where the season has several. Some have no rows."""
    makers: dict[str, Maker] = {}
    for board in boards:
        for what, make in dataset_tables.table_makers(params, board).items():
            makers[f"{board.dataset}/{what}"] = make
        makers[f"{board.dataset}/claims"] = partial(_claims, board)
        dataset = f" {board.dataset}" if len(boards) > 1 else ""
        for name, paper in papers().items():
            for number, printed in paper.tables.items():
                for place in printed.places:
                    make = partial(paper_table, paper, number, place, board)
                    makers[f"{name}/{number} {place}{dataset}"] = make
    return makers


def _claims(board: Board) -> Table:
    return claims_table(f"{board.title}: claims", claims.claim_tests(board))
