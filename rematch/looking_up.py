"""What is known before anything is run: printed numbers, plans, leaderboards."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.core.errors import UserError
from rematch.answers import Audit, Plan, PrintedRows

if TYPE_CHECKING:
    import pandas as pd


def printed(wanted: str | float) -> PrintedRows:
    """The rows of the papers' tables that print a number, or that have a name.

    Parameters
    ----------
    wanted : a number as it is printed (58.6, "58.60", "0.586"), or a paper, table,
        preset or label

    Raises
    ------
    UserError (a ValueError) for what is in no table.

    >>> rematch.printed("scan/1")[0]["place"]
    'flickr30k/test'
    """
    from benchmark.commands.printed import facts_of, looked_up

    lines, of_share = looked_up(str(wanted))
    return PrintedRows(tuple(facts_of(line) for line in (*lines, *of_share)))


def audit(
    table: "pd.DataFrame | str | PathLike[str]",
    queries: int | tuple[int, int] | None = None,
    folds: int = 1,
) -> Audit:
    """Numbers in a table of recalls that no ranks can give.

    Parameters
    ----------
    table : a DataFrame, or a .csv or .tsv, with columns such as i2t_r1, "t2i R@5",
        MedR, MRR, rsum and mean, in per cent; texts keep the zeros that are printed
    queries : how many each direction has, or (images, captions); None: shares of them
        are not checked
    folds : of how many folds the numbers are means

    Raises
    ------
    UserError (a ValueError) for a table without recalls, and for what is no number.

    >>> table = pd.DataFrame({"R@1": ["43.15"], "R@5": ["41.0"]})
    >>> [finding["rule"] for finding in rematch.audit(table, 1000).impossible]
    ['count', 'order']
    """
    import pandas as pd

    from benchmark.commands import audit as command

    name = "table"
    if not isinstance(table, pd.DataFrame):
        name = str(table)
        table = command.read_printed(Path(name))
    counts = queries if isinstance(queries, tuple) else [queries]
    text = None if queries is None else ",".join(map(str, counts))
    rows = command.rows_of(table, command.queries_of(text), folds, name)
    suspicious = command.findings(rows)
    facts = tuple(command.facts_of(finding) for finding in suspicious)
    return Audit(facts, command.shown(suspicious, rows))


def plan(
    difference: float | None = None,
    *,
    kind: str = "ordered",
    metric: str = "rsum",
    margin: float | None = None,
    power: float = 0.8,
    seeds: Sequence[int] | None = None,
    images: Sequence[int] | None = None,
    sd_seeds: float | None = None,
    se_images: float | None = None,
    of_images: int | None = None,
    season: str | None = None,
    dataset: str | None = None,
    like: tuple[str, str] | None = None,
) -> Plan:
    """How many seeds and test images a claim needs.

    Parameters
    ----------
    difference : the true one, in the metric's unit; None: the smallest that is shown
    kind : "ordered", "far", "alike" or "not_better"
    metric, margin : of the claim; default of margin: that of verdicts
    power : to reach, between 0 and 1
    seeds, images : trainings of each row, and test images, to tabulate
    sd_seeds, se_images, of_images : standard deviation of trainings, standard error
        over images of a difference of two trainings, and how many images gave it
    season, dataset, like : or a season that tells them, and two of its presets

    Raises
    ------
    UserError (a ValueError) for numbers that contradict each other or are incomplete.
    """
    from benchmark.commands import plan as command

    if kind not in command.KINDS:
        known = ", ".join(command.KINDS)
        raise UserError("kind", f"one of {known}", kind, "correct it")
    planned = command.plan_of(
        difference,
        kind=kind,
        metric=metric,
        margin=margin,
        goal=power,
        sd_seeds=sd_seeds,
        se_images=se_images,
        of_images=of_images,
        season=season,
        dataset=dataset,
        like=like,
    )
    counts = [None if given is None else list(given) for given in (seeds, images)]
    return Plan(command.facts_of(planned, *counts))


def leaderboard(
    season: str | None = None, dataset: str | None = None
) -> "pd.DataFrame":
    """The leaderboard of a season, best first: a column for each number, its interval
    and its spread: of a project's folder or, elsewhere, of a ready-made season.

    Parameters
    ----------
    season : its name; default: the active one
    dataset : one of its datasets; default: all of them, with a column dataset

    Raises
    ------
    UserError (a ValueError) for an unknown season or dataset, and for one without
    results.
    """
    import pandas as pd

    from benchmark.boards.season_boards import read_boards
    from benchmark.core.errors import entry
    from benchmark.report.pages.result_tables import leaderboard as table_of
    from benchmark.season.parameter_files import read_declaration

    boards = {board.dataset: board for board in read_boards(read_declaration(season))}
    if dataset is not None:
        boards = {dataset: entry(boards, dataset, "dataset")}
    frames = []
    for name, board in boards.items():
        frame = table_of(board).for_programs()
        frame.insert(0, "dataset", name)
        frames.append(frame.infer_objects())
    return pd.concat(frames, ignore_index=True)
