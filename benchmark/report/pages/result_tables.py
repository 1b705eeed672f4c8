"""The tables of a dataset's results: one function a table, a board in, a grid out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from statistics import fmean, stdev

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.protocol import METRICS, table_metrics
from benchmark.report.table_formats import Cell, Grid

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"  # narrow cells break before the sign, never behind it
NONE = "-"
COARSE = "*"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A metric as a column: how many decimals, and which end of it is the good one."""

    head: str
    metric: str
    decimals: int = 1
    best: Callable[..., float | None] = max
    is_binned: bool = False  # a histogram's, and worthless where its bins are too coarse


def _column(metric: str) -> Column:
    """A recall, a rank or a sum of recalls, as the papers' tables head it; means need a decimal."""
    known = METRICS[metric]
    return Column(head=known.heading, metric=metric, best=min if known.less_is_better else max)


def _way(way: str) -> list[Column]:
    return [_column(name) for name in table_metrics(way)]


S = Column(head="S", metric="overlap_s", decimals=3, best=min, is_binned=True)
SENTENCES = tuple(_way("s2s"))
LOCALISED = (*_way("p2r"), _column("rsum"))
LIMITS = (_column("p2r_bound"), _column("p2r_chance_r1"))
OVERLAP = (
    S,
    replace(S, head="S, half the bins", metric="overlap_s_half_bins"),
    replace(S, head="S, double the bins", metric="overlap_s_double_bins"),
    Column(head="1 - KS", metric="one_minus_ks", decimals=3, best=min),
)
MEANS = (
    Column(head="mean matched", metric="mean_matched", decimals=3),
    Column(head="mean unmatched", metric="mean_unmatched", decimals=3),
)


def spread(values: Sequence[float], decimals: int) -> str:
    """Mean and sample standard deviation; of one value the value, of none a dash."""
    if not values:
        return NONE
    if len(values) == 1:
        return str(values[0]) if isinstance(values[0], int) else f"{values[0]:.{decimals}f}"
    return f"{fmean(values):.{decimals}f} {PLUS_MINUS}{NO_BREAK}{stdev(values):.{decimals}f}"


# Of what follows, a table of retrieval takes `board.retrieval`, one of phrase localisation
# `board.localisation`, and one that fits both takes either.


def leaderboard(board: Board) -> Grid:
    """Retrieval: one row a preset, highest mean rsum first; those without a result last."""
    ways = [column for way in board.ways for column in _way(way)]
    return _ranking(board, f"{board.card['title']}: results on test", [*ways, _column("rsum"), S])


def localised(board: Board) -> Grid:
    """Phrase localisation as `leaderboard`, with what no preset can exceed and what none should
    fall below."""
    found = _ranking(board, f"{board.card['title']}: phrases localised on test", LOCALISED)
    limits = _columns(board.ranked, LIMITS, emphasis=False)
    more = [
        [interval(board, standing, "p2r_r1"), *cells]
        for standing, cells in zip(board.ranked, limits, strict=True)
    ]
    more += [[NONE] * (1 + len(LIMITS))] * (len(found.rows) - len(more))
    rows = [[*row, *cells] for row, cells in zip(found.rows, more, strict=True)]
    heads = [*found.heads, "95% of p2r R@1", *(column.head for column in LIMITS)]
    return replace(found, heads=heads, rows=rows)


def folds(board: Board) -> Grid | None:
    """Means over the folds of the test split, and how far the folds lie apart; None without."""
    if board.folds == 1:
        return None
    names = [
        *(name for way in board.ways for name in table_metrics(way, folds=True)),
        "fold_rsum",
    ]
    heads = [METRICS[name.removeprefix("fold_")].heading for name in names]
    rows = [
        [s.row.title, *(_over_folds(s, name) for name in names), interval(board, s, "fold_rsum")]
        for s in sorted(board.ranked, key=lambda s: -s.mean("fold_rsum"))
    ]
    title = f"{board.card['title']}: means of {board.folds} folds of test"
    return Grid(title=title, heads=["preset", *heads, "95% of rsum"], rows=rows)


def cost(board: Board) -> Grid:
    """What the presets cost, in the order of the leaderboard."""
    return _costs(
        board, f"{board.card['title']}: cost", {"per_image": "an image", "per_caption": "a caption"}
    )


def localisation_cost(board: Board) -> Grid:
    """As `cost`; scoring a phrase with a proposal includes encoding them."""
    return _costs(board, f"{board.card['title']}: cost of localising phrases", {})


def overlaps(board: Board) -> Grid:
    """S with its interval, how much it depends on its bins, and the bound that needs none."""
    heads = ["preset", *(column.head for column in OVERLAP + MEANS), "95% of S", "range"]
    best, means = _columns(board.ranked, OVERLAP), _columns(board.ranked, MEANS, emphasis=False)
    rows = [
        [s.row.title, *cells, *more, interval(board, s, "overlap_s", decimals=3), _range(s)]
        for s, cells, more in zip(board.ranked, best, means, strict=True)
    ]
    return Grid(title=f"{board.card['title']}: overlap of the scores", heads=heads, rows=rows)


def over_seeds(board: Board) -> Grid | None:
    """rsum of every seed; None where no seed but one was played."""
    seeds = list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes))
    if len(seeds) < 2:
        return None
    heads = ["preset", *(f"seed {seed}" for seed in seeds), "highest - lowest"]
    rows = [_seed_row(standing, seeds) for standing in board.ranked]
    return Grid(title=f"{board.card['title']}: rsum of every seed", heads=heads, rows=rows)


def sentences(board: Board) -> Grid | None:
    """Sentence-to-sentence retrieval of the presets that embed text; None where none does."""
    able = [s for s in board.ranked if "s2s_r1" in s.played[0].record.metrics]
    heads = ["preset", *(column.head for column in SENTENCES)]
    cells = _columns(able, SENTENCES)
    rows = [[standing.row.title, *found] for standing, found in zip(able, cells, strict=True)]
    title = f"{board.card['title']}: sentence to sentence"
    return Grid(title=title, heads=heads, rows=rows) if rows else None


def failures(board: Board) -> Grid | None:
    """Every cell without a result, with the reason; None where there is none."""
    rows = [
        [standing.row.title, str(outcome.record.seed), _status(outcome), outcome.record.reason]
        for standing in board.standings
        for outcome in standing.outcomes
        if not outcome.is_ok
    ]
    heads = ["preset", "seed", "status", "reason"]
    title = f"{board.card['title']}: cells without a result"
    return Grid(title=title, heads=heads, rows=rows, names=4) if rows else None


def remarks(board: Board) -> Grid:
    """What was changed, and for which presets: budget, features, and the presets' own notes."""
    names_of: dict[tuple[str, str], list[str]] = {}
    for standing in board.standings:
        for remark in _remarks(standing):
            names_of.setdefault(remark, []).append(standing.row.title)
    shared: dict[tuple[str, str], list[str]] = {}  # remarks on the same presets share a row
    for (kind, text), names in names_of.items():
        whose = "all" if len(names) == len(board.standings) else "; ".join(names)
        shared.setdefault((kind, whose), []).append(text)
    rows = [[kind, "; ".join(texts), whose] for (kind, whose), texts in sorted(shared.items())]
    title = f"{board.card['title']}: what differs from the papers"
    return Grid(title=title, heads=["kind", "what", "presets"], rows=rows, names=3)


def interval(board: Board, standing: Standing, metric: str, decimals: int = 1) -> str:
    """The 95% interval over the images, for readers."""
    ends = comparisons.interval(board, standing, metric)
    return NONE if ends is None else between(*(f"{end:.{decimals}f}" for end in ends))


def between(low: str, high: str) -> str:
    """An interval that stays on one line."""
    return f"[{low},{NO_BREAK}{high}]"


def _ranking(board: Board, title: str, columns: Sequence[Column]) -> Grid:
    """A row a preset with its group, highest mean rsum first; those without a result last."""
    heads = ["preset", "group", "seeds", *(column.head for column in columns), "95% of rsum"]
    rows = [
        [
            standing.row.title,
            str(group),
            _seeds(standing),
            *cells,
            interval(board, standing, "rsum"),
        ]
        for standing, group, cells in zip(
            board.ranked,
            comparisons.rank_groups(board),
            _columns(board.ranked, columns),
            strict=True,
        )
    ]
    lost = [standing for standing in board.standings if not standing.played]
    blank = [NONE] * (len(heads) - 4)
    rows += [[s.row.title, NONE, _seeds(s), _status(s.outcomes[0]), *blank] for s in lost]
    return Grid(title=title, heads=heads, rows=rows)


def _over_folds(standing: Standing, metric: str) -> str:
    """Mean and sample standard deviation of the folds, each the mean of its seeds."""
    name = metric.removeprefix("fold_")
    by_seed = [outcome.record.metrics["fold_values"][name] for outcome in standing.played]
    return spread([fmean(of_fold) for of_fold in zip(*by_seed, strict=True)], 1)


def _costs(board: Board, title: str, encoded: dict[str, str]) -> Grid:
    heads = [
        "preset",
        "parameters (M)",
        "training (s)",
        "epochs",
        "selected epoch",
        "peak memory (MiB)",
        *(f"encode {item} (ms)" for item in encoded.values()),
        "score a pair (\N{MICRO SIGN}s)",
    ]
    rows = [_cost_row(standing, encoded) for standing in board.ranked]
    return Grid(title=title, heads=heads, rows=rows)


def _columns(
    standings: Sequence[Standing], columns: Sequence[Column], emphasis: bool = True
) -> list[list[str | Cell]]:
    """The cells of every standing; the best of a column is bold, and all that print alike."""
    found = [[_cell(standing, column) for column in columns] for standing in standings]
    if not emphasis or len(standings) < 2:
        return found
    for number, column in enumerate(columns):
        shown = [_shown(standing, column) for standing in standings]
        best = column.best([value for value in shown if value is not None], default=None)
        for row, value in zip(found, shown, strict=True):
            if value is not None and value == best:
                row[number] = Cell(row[number], is_bold=True)
    return found


def _cell(standing: Standing, column: Column) -> str:
    text = spread(standing.values(column.metric), column.decimals)
    return (
        f"{text}{NO_BREAK}{COARSE}"
        if column.is_binned and comparisons.is_coarse(standing)
        else text
    )


def _shown(standing: Standing, column: Column) -> float | None:
    """The mean as it prints; None where it means nothing and cannot be the best."""
    if column.is_binned and comparisons.is_coarse(standing):
        return None
    return round(standing.mean(column.metric), column.decimals)


def _seeds(standing: Standing) -> str:
    played, declared = len(standing.played), len(standing.outcomes)
    return str(played) if played == declared else f"{played} of {declared}"


def _status(outcome: Outcome) -> str:
    return outcome.record.status.replace("_", " ")


def _cost_row(standing: Standing, encoded: dict[str, str]) -> list[str]:
    played = standing.played
    return [
        standing.row.title,
        f"{played[0].record.parameters / 1e6:.2f}",
        f"{fmean(outcome.training_seconds for outcome in played):.1f}",
        _range_of([len(o.history) for o in played if o.history is not None]),
        _range_of([o.record.selected_epoch for o in played if o.record.selected_epoch]),
        f"{max(_peak_memory(outcome) for outcome in played):.0f}",
        *(_time(standing, name, 1e3) for name in encoded),
        _time(standing, "per_pair", 1e6),
    ]


def _peak_memory(outcome: Outcome) -> float:
    """Of the device where the training ran on one, else of the process."""
    return max(t.peak_device_memory_mib or t.peak_memory_mib for t in outcome.trainings)


def _time(standing: Standing, name: str, unit: float) -> str:
    """Mean over the seeds, in so many parts of a second; a dash where none was taken."""
    found = [o.scoring.seconds[name] for o in standing.played if name in o.scoring.seconds]
    return _three_digits(unit * fmean(found)) if found else NONE


def _three_digits(value: float) -> str:
    """Three significant digits, never with an exponent."""
    return f"{value:.{max(0, 2 - floor(log10(value)))}f}" if value > 0 else "0"


def _range_of(values: Sequence[int]) -> str:
    if not values:
        return NONE
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _range(standing: Standing) -> str:
    ranges = standing.values("overlap_range")
    low, high = min(span[0] for span in ranges), max(span[1] for span in ranges)
    return f"{low:.3g} to {high:.3g}"


def _seed_row(standing: Standing, seeds: Sequence[int]) -> list[str]:
    rsums = {outcome.record.seed: outcome.record.metrics["rsum"] for outcome in standing.played}
    cells = [f"{rsums[seed]:.1f}" if seed in rsums else NONE for seed in seeds]
    gap = f"{max(rsums.values()) - min(rsums.values()):.1f}" if len(rsums) > 1 else NONE
    return [standing.row.title, *cells, gap]


def _ended_at_its_best(outcome: Outcome) -> bool:
    history = outcome.history
    return history is not None and outcome.record.selected_epoch == len(history)


def _remarks(standing: Standing) -> list[tuple[str, str]]:
    """Pairs of kind and sentence. A fusion has the options of its members' rows."""
    record = standing.outcomes[0].record
    scaled = [name for name in record.scaled if name in record.options]
    found = [("scaled", f"{name} = {record.options[name]}") for name in scaled]
    if standing.row.fuse:
        members = " and ".join(standing.row.fuse.of)
        found.append(("fusion", f"{standing.row.fuse.how} of {members}, options as theirs"))
    alphas = [outcome.record.metrics.get("alpha") for outcome in standing.played]
    if alphas and None not in alphas:
        weights = ", ".join(f"{alpha:g}" for alpha in alphas)
        found.append(("fusion", f"weight of the second score: {weights}, chosen on validation"))
    if standing.row.start:
        found.append(("start", f"goes on from {standing.row.start}"))
    found += [("deviation", deviation) for deviation in record.deviations]
    if any(_ended_at_its_best(outcome) for outcome in standing.played):
        found.append(("training", "the last epoch was the best: more epochs may help"))
    if standing.row.note:
        found.append(("note", standing.row.note))
    return found
