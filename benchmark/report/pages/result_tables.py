"""The tables of a dataset's results: one function per table, from a board to a table.

The board is of one task: `board.retrieval` or `board.localisation`. A table without
rows is false. Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

import pandas as pd

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import QUERIES, RANKED_BY, Board, Row, spelt
from benchmark.boards.timing import settings_of, time_settings
from benchmark.core.departures import sentence
from benchmark.core.records import Record
from benchmark.data.rank_keys import RankKey
from benchmark.report.tables import (
    DAGGER,
    Code,
    Number,
    Table,
    in_runs,
    mean,
    three_digits,
)
from benchmark.scoring import METRICS, table_metrics
from benchmark.scoring.metrics import ALL_RANKS, PROPOSAL_METRICS, SCORE_METRICS
from benchmark.season.parameters import CORRECTIONS

COARSE = "*"
S = "overlap_s"
# no use if bins are too coarse
BINNED = (S, "overlap_s_half_bins", "overlap_s_double_bins")
# of localisation
LIMITS = tuple(metric.name for metric in PROPOSAL_METRICS if metric.in_tables)
OF_SCORES = tuple(metric.name for metric in SCORE_METRICS if metric.in_tables)
BESIDE = {  # task -> metrics of the leaderboard beside that which ranks
    "retrieval": ("i2t_r1", "t2i_r1"),
    "localisation": ("p2r_r5", "p2r_r10"),
}
SHOWN = 5  # rows on the first page of a season, without external ones
IN_OTHER_ROWS = "FGBS"  # flags whose sentences the other remarks have, too


def leaderboard(board: Board) -> Table:
    """A row per preset, best first, those without a result last: the metric that ranks
    with its interval, two beside it, the ranks of the rows that do not differ, seeds,
    and the flags that not all rows have."""
    task = board.rows[0].task if board.rows else "retrieval"
    metrics, known = [RANKED_BY[task], *BESIDE[task]], ("rsum", "p2r", *board.ways)
    metrics = [metric for metric in metrics if metric.partition("_")[0] in known]
    main, *others = columns = metric_cells(board, board.ranked, metrics)
    is_compared, lines = comparisons.is_compared(board), []
    of_all = shared_flags(board)
    cells = zip(board.ranked, comparisons.rivals(board), *columns.values(), strict=True)
    for rank, (row, rivals, level, *beside) in enumerate(cells, 1):
        letters = [
            of for of in flags.letters(flags.row_flags(board, row)) if of not in of_all
        ]
        line = {"rank": rank, "preset": row.title, main: level}
        line["95% interval"] = interval_of(board, row, metrics[0])
        line |= dict(zip(others, beside, strict=True))
        line |= {
            "rivals": in_runs(rivals) if is_compared else None,
            "seeds": seeds(row),
        }
        lines.append(line | {"flags": Code("".join(letters)) if letters else None})
    lost = [row for row in board.rows if not row.played]
    for of in lost:
        lines.append(
            {
                "preset": of.title,
                main: Number(note=status(of.record)),
                "seeds": seeds(of),
            }
        )
    ids = [row.preset for row in [*board.ranked, *lost]]
    return Table.of(f"{board.title}: {task}", lines, ids)


def first_page(board: Board) -> Table:
    """Rows of the leaderboard with their ranks: the best of each method, then the next
    best ones, up to SHOWN, the last of them for the best own method; and all external
    ones."""
    table, best = (
        leaderboard(board),
        {row.method: row for row in reversed(board.ranked)},
    )
    ordered = sorted(board.ranked, key=lambda row: row is not best[row.method])
    shown, own = (
        ordered[:SHOWN],
        next((row for row in board.ranked if row.is_own), None),
    )
    if own and own not in shown:
        shown[-1] = own
    kept = {*shown, *(row for row in board.ranked if row.is_external)}
    frame = table.frame.drop(columns=["rivals", "seeds"], errors="ignore")
    return Table(
        table.title, frame[[board.row(preset) in kept for preset in frame.index]]
    )


def of_direction(board: Board, way: str) -> Table:
    """Every metric of a direction, of the presets that have them; s2s: of those that
    embed text."""
    metrics = [*table_metrics(way), *(LIMITS if way == "p2r" else ())]
    rows = [row for row in board.ranked if row.values(metrics[0])]
    return _of_rows(f"{board.title}: {way}", rows, metric_cells(board, rows, metrics))


def of_all_items(board: Board, way: str) -> Table:
    """The metrics of all relevant items of a direction, of the rows whose ranks tell
    them; no rows where each query has one such item."""
    metrics = [f"{way}_{metric.name}" for metric in ALL_RANKS]
    rows = [row for row in board.ranked if comparisons.usable(row, metrics[1])]
    key = RankKey(way)
    rows = [row for row in rows if (row.played[0].scores.ranks[key].counts > 1).any()]
    columns = {
        METRICS[metric].heading: [
            mean(comparisons.values(row, metric), 1) for row in rows
        ]
        for metric in metrics
    }
    return _of_rows(f"{board.title}: {way}, all relevant items", rows, columns)


def folds(board: Board) -> Table:
    """Means over the folds of the test split with their spread; no rows for a single
    fold."""
    names = [name for way in board.ways for name in table_metrics(way, folds=True)] + [
        "fold_rsum"
    ]
    rows = [row for row in board.ranked if board.folds > 1 and row.values("fold_rsum")]
    rows = sorted(rows, key=lambda row: -row.mean("fold_rsum"))
    columns = {}
    for name in names:
        own = name.removeprefix("fold_")
        of_folds = [map(fmean, zip(*row.by_fold(own), strict=True)) for row in rows]
        columns[METRICS[own].heading] = [mean(list(values), 1) for values in of_folds]
    columns["95% of rsum"] = [interval_of(board, row, "fold_rsum") for row in rows]
    return _of_rows(
        f"{board.title}: means of {board.folds} folds of test", rows, columns
    )


def overlaps(board: Board) -> Table:
    """S with its interval, its dependence on the bins, its bound without bins, and the
    range."""
    rows = [row for row in board.ranked if row.has_scores]
    columns = metric_cells(board, rows, OF_SCORES)
    columns["95% of S"] = [interval_of(board, row, S, decimals=3) for row in rows]
    ranges = [list(zip(*row.values("overlap_range"), strict=True)) for row in rows]
    columns["range"] = [f"{min(low):.3g} to {max(high):.3g}" for low, high in ranges]
    return _of_rows(f"{board.title}: overlap of the scores", rows, columns)


def _of_rows(
    title: str, rows: Sequence[Row], columns: dict[str, Sequence[object]]
) -> Table:
    """A table of columns, with the titles of the rows in front."""
    cells = {"preset": [row.title for row in rows], **columns}
    return Table.of(title, cells, [row.preset for row in rows])


def costs(board: Board) -> Table:
    """What the presets cost, those of external scores left out; settings, where there
    are several, by their numbers on the page of the records."""
    known, lines = settings_of(board.whole or board), []
    times = {"per_image": ("encode an image (ms)", 1e3)}
    times["per_caption"] = ("encode a caption (ms)", 1e3)
    # of localisation with encoding both
    times["per_pair"] = (METRICS["per_pair"].heading, 1e6)
    rows = [row for row in board.ranked if not row.is_external]
    for row in rows:
        memories = [
            t.peak_device_memory_mib or 0 for o in row.played for t in o.trainings
        ]
        memory = max(memories, default=0)
        epochs = sorted({len(o.history) for o in row.played if o.history is not None})
        numbers = [str(known.index(setting) + 1) for setting in time_settings(row)]
        line = {
            "preset": row.title,
            "parameters (M)": Number(value=row.record.parameters / 1e6, form=".2f"),
            "training (s)": Number(value=training_seconds(board, row)),
            "epochs": " to ".join(map(str, sorted({*epochs[:1], *epochs[-1:]})))
            or None,
            "GPU memory (MiB)": Number(value=memory, form=".0f") if memory else None,
            "setting": " and ".join(numbers) if len(known) > 1 else None,
        }
        for name, (heading, unit) in times.items():
            if row.task == "retrieval" or name == "per_pair":
                of = [
                    o.scoring.seconds[name]
                    for o in row.played
                    if name in o.scoring.seconds
                ]
                line[heading] = three_digits(unit * median(of)) if of else None
        lines.append(line)
    table = Table.of(f"{board.title}: cost", lines, [row.preset for row in rows])
    return Table(table.title, table.frame.dropna(axis="columns", how="all"))


def training_seconds(board: Board, row: Row) -> float:
    """Median over the seeds, with the training that it goes on from; of a fusion, of
    all trainings of its members together."""
    own = median(outcome.training_seconds for outcome in row.played)
    start = board.row(row.declared.start) if row.declared.start else None
    return own + (training_seconds(board, start) if start and start.played else 0.0)


def query_seconds(row: Row) -> float:
    """Time to encode a query once and to score it with every item of the gallery.

    The query is an image among all captions or, on datasets without image queries, a
    caption among all images. Median over the seeds.
    """
    record, all_seconds = row.played[0].record, [o.scoring.seconds for o in row.played]
    encoding, items = ("per_caption", record.images)
    if "i2t_r1" in record.metrics:
        encoding, items = ("per_image", record.captions)
    return median(
        seconds[encoding] + items * seconds["per_pair"] for seconds in all_seconds
    )


def failures(board: Board) -> Table:
    """Every cell without a result, with the reason."""
    lost = [(row, o.record) for row in board.rows for o in row.outcomes if not o.is_ok]
    lines = [
        {
            "preset": row.title,
            "seed": of.seed,
            "status": status(of),
            "reason": of.reason,
        }
        for row, of in lost
    ]
    return Table.of(f"{board.title}: cells without a result", lines)


def of_each_row(board: Board) -> Table:
    """Against which rows nothing is concluded, the other flags of a row but those that
    all rows have, and how many options a season scaled, of a fusion those of its
    members."""
    rows, lines = sorted(board.ranked, key=lambda row: row.title), []
    of_all = set(shared_flags(board))
    are_mixed = any(
        flags.has_flag(board, row, flags.OTHER_TEXT_ENCODER) for row in rows
    )
    for row in rows:
        letters = flags.letters(flags.row_flags(board, row))
        is_known = comparisons.interval(board, row, RANKED_BY[row.task]) is not None
        against = {
            of: f"any row ({flags.NAMES[of]})" for of in ("ND" if is_known else "NDS")
        }
        against["G"] = "rows with the paper's text encoder"
        blocking = [against[of] for of in letters if of in against]
        if are_mixed and row.has_paper and "G" not in letters:
            blocking.append("rows with another text encoder")
        others = [
            flags.NAMES[of] for of in letters if of not in against and of not in of_all
        ]
        trained = [
            comparisons.known(board, name)
            for name in comparisons.trainings_of(board, row)
        ]
        scaled = {
            x
            for of in trained
            if of
            for x in of.record.scaled
            if x in of.record.options
        }
        line = {"row": row.title, "no verdict against": ", ".join(blocking)}
        lines.append(
            line | {"warns": ", ".join(others), "options changed": len(scaled)}
        )
    return Table.of(f"{board.title}: flags", lines)


def shared_flags(board: Board) -> list[str]:
    """The letters of the flags that all rows of a dataset have, and that block no
    verdict."""
    rows = (board.whole or board).ranked
    of_rows = [set(flags.letters(flags.row_flags(board, row))) for row in rows]
    return [
        of
        for of in flags.NAMES
        if of not in flags.BLOCKING and all(of in x for x in of_rows)
    ]


def remarks(board: Board) -> Table:
    """What differs from the papers, and for which presets; what is said of the same
    presets shares a row."""
    heads = ["kind", "what", "presets"]
    said = [
        [*remark, row.title] for row in board.rows for remark in _remarks(board, row)
    ]
    whose = (
        pd.DataFrame(said, columns=heads).groupby(heads[:2])["presets"].agg("; ".join)
    )
    whose = whose.replace(
        "; ".join(row.title for row in board.rows), "all"
    ).reset_index()
    what = whose.groupby(["kind", "presets"], as_index=False)["what"].agg("; ".join)
    return Table(
        f"{board.title}: what differs from the papers", what[heads].astype(object)
    )


def _remarks(board: Board, row: Row) -> list[tuple[str, str]]:
    """Pairs of kind and sentence. The options of a fusion are those of its members."""
    record, declared = row.record, row.declared
    scaled = [name for name in record.scaled if name in record.options]
    pairs = [("scaled", f"{name} = {record.options[name]}") for name in scaled]
    if declared.fuse:
        members = " and ".join(declared.fuse.of)
        how = CORRECTIONS.get(declared.fuse.how, declared.fuse.how)
        pairs.append(("fusion", f"{how} of {members}, options as theirs"))
    alphas = [outcome.record.metrics.get("alpha") for outcome in row.played]
    if alphas and None not in alphas:
        weights = ", ".join(f"{alpha:g}" for alpha in alphas)
        pairs.append(
            ("fusion", f"weight of the second score: {weights}, chosen on validation")
        )
    told = [outcome.record.metrics.get("correction", {}) for outcome in row.played]
    told = [
        ", ".join(f"{way} {spelt(of[way])}" for way in QUERIES if way in of)
        for of in told
    ]
    pairs += [
        ("correction", parameters) for parameters in dict.fromkeys(filter(None, told))
    ]
    if declared.start:
        pairs.append(("start", f"continues from {declared.start}"))
    if not row.is_own:
        pairs += [("departure", sentence(each)) for each in record.departures]
    if row.is_external:
        digests = record.options["files"].items()
        files = [f"{name}, sha256 {digest[:12]}" for name, digest in digests]
        given = record.options["given"]
        pairs.append(("external", f"{given}, not trained here: {', '.join(files)}"))
    own = [
        flag for flag in flags.row_flags(board, row) if flag.letter not in IN_OTHER_ROWS
    ]
    pairs += [(flags.NAMES[flag.letter], flag.sentence) for flag in own]
    return [*pairs, ("note", declared.note)] if declared.note else pairs


def metric_cells(
    board: Board, rows: Sequence[Row], metrics: Sequence[str]
) -> dict[str, list[Number | None]]:
    """A column per metric, by its heading: means over the seeds with their standard
    deviation.

    The best of a column is marked, with all that print alike; scores of different
    presets have different scales, so none of them is best. From too few test queries
    none is, either.
    """
    columns = {}
    for metric in metrics:
        declared = METRICS[metric]
        # of papers, but one at least for a mean
        decimals = min(max(declared.decimals, 1), 3)
        cells = []
        for row in rows:
            values = row.values(metric)
            first, *others = (outcome.record.metrics for outcome in row.played)
            # nothing is drawn at random
            if all(measured == first for measured in others):
                values = values[:1]
            is_coarse = metric in BINNED and comparisons.is_coarse(row)
            cells.append(mean(values, decimals, COARSE * is_coarse))
        is_ranked = (
            len(rows) > 1
            and declared.unit != "score"
            and not board.is_small(rows[0].task)
        )
        fine = [cell for cell in cells if cell and not cell.note] if is_ranked else []
        printed = {id(cell): round(cell.value, decimals) for cell in fine}
        best = (min if declared.less_is_better else max)(printed.values(), default=None)
        for place, cell in enumerate(cells):
            if id(cell) in printed and printed[id(cell)] == best:
                cells[place] = replace(cell, is_best=True)
        columns[declared.heading] = cells
    return columns


def interval_of(
    board: Board, row: Row, metric: str, decimals: int = 1
) -> Number | None:
    """The 95% interval of a row for other images and other trainings. Where nothing is
    known of other trainings it is over the test images only, and has a dagger."""
    ends, note = comparisons.interval(board, row, metric), ""
    if ends is None:
        ends, note = comparisons.interval_over_images(board, row, metric), DAGGER
    return ends and Number(low=ends[0], high=ends[1], note=note, form=f".{decimals}f")


def seeds(row: Row) -> Number:
    """How many of a row's seeds have a result."""
    is_whole = len(row.played) == len(row.outcomes)
    note = "" if is_whole else f"of {len(row.outcomes)}"
    return Number(value=len(row.played), form="d", note=note)


def status(record: Record) -> str:
    """How a cell without a result ended."""
    return record.status.replace("_", " ")
