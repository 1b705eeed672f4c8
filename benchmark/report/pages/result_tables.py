"""The tables of a dataset's results: one function per table, from a board to a table.

The board is of one task: `board.retrieval` or `board.localisation`. A table without
rows is false. Imports no torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import QUERIES, RANKED_BY, Board, Row
from benchmark.boards.row_settings import board_time_settings, time_settings
from benchmark.boards.row_warnings import is_corrected
from benchmark.core.records import Record, sentence
from benchmark.data.rank_keys import RankKey
from benchmark.report.tables import (
    DAGGER,
    WHOLE,
    Code,
    Number,
    Table,
    mean,
    three_digits,
)
from benchmark.scoring import METRICS, table_metrics
from benchmark.scoring.metrics import (
    ALL_RANKS,
    PROPOSAL_METRICS,
    SCORE_METRICS,
    leaderboard_metrics,
)
from benchmark.season.parameters import CORRECTIONS
from benchmark.season.tuning import written
from benchmark.stats import PERCENT

COARSE = "*"
S = "overlap_s"
# no use if bins are too coarse
BINNED = (S, "overlap_s_half_bins", "overlap_s_double_bins")
# of localisation
LIMITS = tuple(metric.name for metric in PROPOSAL_METRICS if metric.in_tables)
OF_SCORES = tuple(metric.name for metric in SCORE_METRICS if metric.in_tables)
SHOWN = 5  # rows on the first page of a season, without external ones
# flags whose sentences the other remarks have, too
IN_OTHER_ROWS = (
    flags.other_features,
    flags.other_text_encoder,
    flags.twins_within,
    flags.few_seeds,
)


def leaderboard(board: Board) -> Table:
    """A row per preset, best first, those without a result last: the metric that ranks
    with its interval, two beside it, seeds, and the flags that not all rows have. A rank
    has its interval where rows can be compared."""
    task = board.rows[0].task if board.rows else "retrieval"
    metrics = [RANKED_BY[task]]
    for way in board.directions(task):
        metrics += leaderboard_metrics(way)
    main, *beside = metric_cells(board, board.ranked, metrics).items()
    is_compared = comparisons.is_compared(board)
    of_all = shared_flags(board)
    lines = []
    ranks = comparisons.rank_intervals(board)
    for index, (row, (low, high)) in enumerate(zip(board.ranked, ranks, strict=True)):
        own = [letter for letter in _letters(board, row) if letter not in of_all]
        with_ends = Number(value=index + 1, low=low, high=high, form=WHOLE)
        line = {
            "rank": with_ends if is_compared else index + 1,
            "preset": row.title,
            main[0]: main[1][index],
            f"{PERCENT} interval": interval_of(board, row, metrics[0]),
        }
        for heading, cells in beside:
            line[heading] = cells[index]
        line["seeds"] = seeds(row)
        line["flags"] = Code("".join(own)) if own else None
        lines.append(line)
    others = [row for row in board.rows if not row.played]
    for row in others:
        level = Number(note=status(row.record))
        lines.append({"preset": row.title, main[0]: level, "seeds": seeds(row)})
    ids = [row.preset for row in (*board.ranked, *others)]
    return Table.of(f"{board.title}: {task}", lines, ids)


def _letters(board: Board, row: Row) -> str:
    return flags.letters(flags.row_flags(board, row))


def first_page(board: Board) -> Table:
    """Rows of the leaderboard with their ranks: the best of each method, then the next
    best ones, up to SHOWN, the last of them for the best own method; and all external
    ones. Rows of corrected scores are left out, unless there are no others."""
    table = leaderboard(board)
    plain = [row for row in board.ranked if not is_corrected(row)] or board.ranked
    best_of: dict[str, Row] = {}  # of each method
    for row in plain:
        best_of.setdefault(row.method, row)
    best = list(best_of.values())
    others = [row for row in plain if row not in best]
    shown = [*best, *others][:SHOWN]
    own = [row for row in plain if row.is_own]
    if own and own[0] not in shown:
        shown[-1] = own[0]
    shown += [row for row in board.ranked if row.is_external]
    kept = [row.preset for row in shown]
    frame = table.frame.drop(columns=["seeds"], errors="ignore")
    return Table(table.title, frame[frame.index.isin(kept)])


def of_direction(board: Board, way: str) -> Table:
    """Every metric of a direction, of the presets that have them; s2s: of those that
    embed text."""
    metrics = [*table_metrics(way), *(LIMITS if way == "p2r" else ())]
    rows = [row for row in board.ranked if row.values(metrics[0])]
    return _table_of_rows(
        f"{board.title}: {way}", rows, metric_cells(board, rows, metrics)
    )


def of_all_items(board: Board, way: str) -> Table:
    """The metrics of all relevant items of a direction, of the rows whose ranks tell
    them; no rows where each query has one such item."""
    names = [f"{way}_{metric.name}" for metric in ALL_RANKS]
    metrics = [name for name in names if name in METRICS]  # some are of one direction
    rows = []
    for row in board.ranked:
        if comparisons.usable(row, f"{way}_map"):
            counts = row.played[0].scores.ranks[RankKey(way)].counts
            if (counts > 1).any():
                rows.append(row)
    columns = {}
    for metric in metrics:
        cells = [mean(comparisons.values(row, metric), 1) for row in rows]
        columns[METRICS[metric].heading] = cells
    title = f"{board.title}: {way}, all relevant items"
    return _table_of_rows(title, rows, columns)


def folds(board: Board) -> Table:
    """Means over the folds of the test split with their spread; no rows for a single
    fold."""
    rows = []
    if board.folds > 1:
        rows = [row for row in board.ranked if row.values("fold_rsum")]
    rows.sort(key=lambda row: -row.mean("fold_rsum"))
    names = []
    for way in board.ways:
        names += table_metrics(way, folds=True)
    columns = {}
    for name in (*names, "fold_rsum"):
        metric = name.removeprefix("fold_")
        cells = []
        for row in rows:
            of_seeds = [values[metric] for values in row.values("fold_values")]
            by_fold = zip(*of_seeds, strict=True)
            cells.append(mean(list(map(fmean, by_fold)), 1))
        columns[METRICS[metric].heading] = cells
    intervals = [interval_of(board, row, "fold_rsum") for row in rows]
    columns[f"{PERCENT} of rsum"] = intervals
    title = f"{board.title}: means of {board.folds} folds of test"
    return _table_of_rows(title, rows, columns)


def overlaps(board: Board) -> Table:
    """S with its interval, its dependence on the bins, its bound without bins, and the
    range."""
    rows = [row for row in board.ranked if row.has_scores]
    columns = metric_cells(board, rows, OF_SCORES)
    columns[f"{PERCENT} of S"] = [interval_of(board, row, S, 3) for row in rows]
    columns["range"] = []
    for row in rows:
        lows, highs = zip(*row.values("overlap_range"), strict=True)
        columns["range"].append(f"{min(lows):.3g} to {max(highs):.3g}")
    return _table_of_rows(f"{board.title}: overlap of the scores", rows, columns)


def _table_of_rows(
    title: str, rows: Sequence[Row], columns: dict[str, Sequence[object]]
) -> Table:
    """A table of columns, with the titles of the rows in front."""
    cells = {"preset": [row.title for row in rows], **columns}
    return Table.of(title, cells, [row.preset for row in rows])


def costs(board: Board) -> Table:
    """What the presets cost, those of external scores left out; settings, where there
    are several, by their numbers on the page of the records."""
    known = board_time_settings(board.whole or board)
    rows = [row for row in board.ranked if not row.is_external]
    lines = []
    for row in rows:
        memory = _memory(row)
        numbers = [str(known.index(setting) + 1) for setting in time_settings(row)]
        line = {
            "preset": row.title,
            "parameters (M)": Number(value=row.record.parameters / 1e6, form=".2f"),
            "training (s)": Number(value=training_seconds(board, row)),
            "epochs": _epochs(row),
            "GPU memory (MiB)": Number(value=memory, form=".0f") if memory else None,
            "setting": " and ".join(numbers) if len(known) > 1 else None,
        }
        if row.task == "retrieval":
            line["encode an image (ms)"] = _median_time(row, "per_image", 1e3)
            line["encode a caption (ms)"] = _median_time(row, "per_caption", 1e3)
        # of localisation with encoding both
        line[METRICS["per_pair"].heading] = _median_time(row, "per_pair", 1e6)
        lines.append(line)
    table = Table.of(f"{board.title}: cost", lines, [row.preset for row in rows])
    return Table(table.title, table.frame.dropna(axis="columns", how="all"))


def _memory(row: Row) -> float:
    """The most that a training of a row took of the GPU's, in MiB; 0 without one."""
    most = 0
    for outcome in row.played:
        for training in outcome.trainings:
            most = max(most, training.peak_device_memory_mib or 0)
    return most


def _epochs(row: Row) -> str | None:
    """Of the shortest to those of the longest training; None where nothing was
    trained."""
    trained = [outcome for outcome in row.played if outcome.record.history]
    epochs = [len(outcome.record.epochs) for outcome in trained]
    ends = sorted({min(epochs), max(epochs)}) if epochs else ()
    return " to ".join(map(str, ends)) or None


def _median_time(row: Row, name: str, unit: float) -> Number | None:
    """Over the seeds that measured it, in parts of a second of which `unit` are one."""
    seconds = [outcome.scoring.seconds.get(name) for outcome in row.played]
    measured = [value for value in seconds if value is not None]
    return three_digits(unit * median(measured)) if measured else None


def training_seconds(board: Board, row: Row) -> float:
    """Median over the seeds, with the training that it goes on from; of a fusion, of
    all trainings of its members together."""
    seconds = median(outcome.training_seconds for outcome in row.played)
    start = board.row(row.declared.start) if row.declared.start else None
    if start and start.played:
        seconds += training_seconds(board, start)
    return seconds


def query_seconds(row: Row) -> float:
    """Time to encode a query once and to score it with every item of the gallery.

    The query is an image among all captions or, on datasets without image queries, a
    caption among all images. Median over the seeds.
    """
    record = row.played[0].record
    encoding, items = "per_caption", record.images
    if "i2t_r1" in record.metrics:
        encoding, items = "per_image", record.captions
    times = []
    for outcome in row.played:
        seconds = outcome.scoring.seconds
        times.append(seconds[encoding] + items * seconds["per_pair"])
    return median(times)


def failures(board: Board) -> Table:
    """Every cell without a result, with the reason."""
    lines = []
    for row in board.rows:
        for outcome in row.outcomes:
            if not outcome.is_ok:
                line = {
                    "preset": row.title,
                    "seed": outcome.record.seed,
                    "status": status(outcome.record),
                    "reason": outcome.record.reason,
                }
                lines.append(line)
    return Table.of(f"{board.title}: cells without a result", lines)


def of_each_row(board: Board) -> Table:
    """Against which rows nothing is concluded, the other flags of a row but those that
    all rows have, and how many options a season scaled, of a fusion those of its
    members."""
    of_all = set(shared_flags(board))
    lines = []
    other_encoder = flags.other_text_encoder
    are_mixed = any(flags.has_flag(board, row, other_encoder) for row in board.ranked)
    for row in sorted(board.ranked, key=lambda row: row.title):
        is_known = comparisons.interval(board, row, RANKED_BY[row.task]) is not None
        blocking = []
        warnings = []
        for flag in flags.row_flags(board, row):
            kind = flags.BY_LETTER[flag.letter]
            is_harmless = kind is flags.few_seeds and is_known
            if kind.remedy and not is_harmless:
                blocking.append(kind.against or f"any row ({kind.name})")
            elif kind.letter not in of_all:
                warnings.append(kind.name)
        has_other_encoder = flags.has_flag(board, row, other_encoder)
        if are_mixed and row.has_paper and not has_other_encoder:
            blocking.append("rows with another text encoder")
        line = {
            "row": row.title,
            "no verdict against": ", ".join(blocking),
            "warns": ", ".join(warnings),
            "options changed": len(_scaled(board, row)),
        }
        lines.append(line)
    return Table.of(f"{board.title}: flags", lines)


def _scaled(board: Board, row: Row) -> set[str]:
    """The options that a season scaled, of all trainings of a row."""
    scaled: set[str] = set()
    for name in comparisons.trainings_of(board, row):
        training = comparisons.row_of_any_task(board, name)
        if training:
            options = training.record.options
            scaled.update(name for name in training.record.scaled if name in options)
    return scaled


def shared_flags(board: Board) -> list[str]:
    """The letters of the flags that all rows of a dataset have, and that block no
    verdict."""
    shared = [letter for letter in flags.NAMES if letter not in flags.BLOCKING]
    for row in (board.whole or board).ranked:
        of_row = _letters(board, row)
        shared = [letter for letter in shared if letter in of_row]
    return shared


def remarks(board: Board) -> Table:
    """What differs from the papers, and for which presets; what is said of the same
    presets shares a row."""
    import pandas as pd

    heads = ["kind", "what", "presets"]
    lines = []
    for row in board.rows:
        lines += [(*remark, row.title) for remark in _remarks(board, row)]
    frame = pd.DataFrame(lines, columns=heads)
    by_remark = frame.groupby(heads[:2])["presets"].agg("; ".join)
    every = "; ".join(row.title for row in board.rows)
    presets = by_remark.replace(every, "all").reset_index()
    by_presets = presets.groupby(["kind", "presets"], as_index=False)
    what = by_presets["what"].agg("; ".join)
    title = f"{board.title}: what differs from the papers"
    return Table(title, what[heads].astype(object))


def _remarks(board: Board, row: Row) -> list[tuple[str, str]]:
    """Pairs of kind and sentence. The options of a fusion are those of its members."""
    record = row.record
    declared = row.declared
    pairs = []
    for name in record.scaled:
        if name in record.options:
            pairs.append(("scaled", f"{name} = {record.options[name]}"))
    if declared.fuse:
        members = " and ".join(declared.fuse.of)
        way = CORRECTIONS.get(declared.fuse.how, declared.fuse.how)
        pairs.append(("fusion", f"{way} of {members}, options as theirs"))
    alphas = [outcome.record.metrics.get("alpha") for outcome in row.played]
    if alphas and None not in alphas:
        weights = ", ".join(f"{alpha:g}" for alpha in alphas)
        text = f"weight of the second score: {weights}, chosen on validation"
        pairs.append(("fusion", text))
    pairs += [("correction", each) for each in _corrections(row)]
    if declared.start:
        pairs.append(("start", f"continues from {declared.start}"))
    if not row.is_own:
        pairs += [("departure", sentence(each)) for each in record.departures]
    if row.is_external:
        digests = record.options["files"].items()
        files = [f"{name}, sha256 {digest[:12]}" for name, digest in digests]
        given = record.options["given"]
        pairs.append(("external", f"{given}, not trained here: {', '.join(files)}"))
    for flag in flags.row_flags(board, row):
        if flags.BY_LETTER[flag.letter] not in IN_OTHER_ROWS:
            pairs.append((flags.NAMES[flag.letter], flag.sentence))
    if declared.note:
        pairs.append(("note", declared.note))
    return pairs


def _corrections(row: Row) -> list[str]:
    """The parameters of the correction of scores that trainings chose, by direction."""
    sentences = {}
    for outcome in row.played:
        correction = outcome.record.metrics.get("correction", {})
        ways = [way for way in QUERIES if way in correction]
        if ways:
            spelled = ", ".join(f"{way} {written(correction[way])}" for way in ways)
            sentences[spelled] = None
    return list(sentences)


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
        # as papers print it, but one at least for a mean
        decimals = min(max(declared.decimals, 1), 3)
        cells = [_metric_cell(row, metric, decimals) for row in rows]
        is_small = bool(rows) and board.is_small(rows[0].task)
        if len(rows) > 1 and declared.unit != "score" and not is_small:
            cells = _best_marked(cells, decimals, declared.less_is_better)
        columns[declared.heading] = cells
    return columns


def _metric_cell(row: Row, metric: str, decimals: int) -> Number | None:
    values = row.values(metric)
    measured = [outcome.record.metrics for outcome in row.played]
    if measured.count(measured[0]) == len(measured):  # nothing is drawn at random
        values = values[:1]
    is_coarse = metric in BINNED and comparisons.is_coarse(row)
    return mean(values, decimals, COARSE if is_coarse else "")


def _best_marked(
    cells: Sequence[Number | None], decimals: int, less_is_better: bool
) -> list[Number | None]:
    """Cells with the best marked, and all that print alike; those with a note are never
    the best."""
    ranked = [cell for cell in cells if cell is not None and not cell.note]
    shown = [round(cell.value, decimals) for cell in ranked]
    best = min(shown, default=None) if less_is_better else max(shown, default=None)
    marked = []
    for cell in cells:
        if cell in ranked and round(cell.value, decimals) == best:
            cell = replace(cell, is_best=True)
        marked.append(cell)
    return marked


def interval_of(
    board: Board, row: Row, metric: str, decimals: int = 1
) -> Number | None:
    """The interval of a row for other images and other trainings. Where nothing is
    known of other trainings it is over the test images only, and has a dagger."""
    ends, is_of_these = comparisons.known_interval(board, row, metric)
    note = DAGGER if is_of_these else ""
    return ends and Number(low=ends[0], high=ends[1], note=note, form=f".{decimals}f")


def seeds(row: Row) -> Number:
    """How many of a row's seeds have a result."""
    is_whole = len(row.played) == len(row.outcomes)
    note = "" if is_whole else f"of {len(row.outcomes)}"
    return Number(value=len(row.played), form="d", note=note)


def status(record: Record) -> str:
    """How a cell without a result ended."""
    return record.status.replace("_", " ")
