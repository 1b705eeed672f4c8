"""The tables of a report, as Markdown: one function a table, a board in, text out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import floor, log10
from statistics import fmean, stdev

from benchmark.markdown import bold, code, escaped, table
from benchmark.outcomes import Board, Outcome, Standing
from benchmark.presets import Reported

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"  # narrow cells break before the sign, never behind it
NONE = "-"
SLACK = 0.01  # by which S may exceed its bound before its bins are called too coarse
COARSE = r"\*"
RECALLS = ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A metric as a column: how many decimals, and which end of it is the good one."""

    head: str
    metric: str
    decimals: int = 1
    best: Callable[..., float | None] = max
    is_binned: bool = False  # a histogram's, and worthless where its bins are too coarse


LEADERBOARD = (
    Column(head="i2t R@1", metric="i2t_r1"),
    Column(head="i2t R@5", metric="i2t_r5"),
    Column(head="i2t R@10", metric="i2t_r10"),
    Column(head="i2t MedR", metric="i2t_medr", best=min),
    Column(head="t2i R@1", metric="t2i_r1"),
    Column(head="t2i R@5", metric="t2i_r5"),
    Column(head="t2i R@10", metric="t2i_r10"),
    Column(head="t2i MedR", metric="t2i_medr", best=min),
    Column(head="rsum", metric="rsum"),
    Column(head="S", metric="overlap_s", decimals=3, best=min, is_binned=True),
)
SENTENCES = (
    Column(head="s2s R@1", metric="s2s_r1"),
    Column(head="s2s R@5", metric="s2s_r5"),
    Column(head="s2s R@10", metric="s2s_r10"),
    Column(head="s2s MedR", metric="s2s_medr", best=min),
)
OVERLAP = (
    Column(head="S", metric="overlap_s", decimals=3, best=min, is_binned=True),
    Column(
        head="S, half the bins", metric="overlap_s_half_bins", decimals=3, best=min, is_binned=True
    ),
    Column(
        head="S, double the bins",
        metric="overlap_s_double_bins",
        decimals=3,
        best=min,
        is_binned=True,
    ),
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


def leaderboard(board: Board) -> str:
    """One row a preset, highest mean rsum first; those without a result last."""
    heads = ["preset", "seeds", *(column.head for column in LEADERBOARD)]
    metrics = _columns(board.ranked, LEADERBOARD)
    rows = [
        [title(standing), _seeds(standing), *cells]
        for standing, cells in zip(board.ranked, metrics, strict=True)
    ]
    lost = [standing for standing in board.standings if not standing.played]
    rows += [[title(s), _seeds(s), _status(s.outcomes[0])] for s in lost]
    return table(heads, rows)


def cost(board: Board) -> str:
    """What the presets cost, in the order of the leaderboard."""
    heads = [
        "preset",
        "parameters (M)",
        "training (s)",
        "epochs",
        "selected epoch",
        "peak memory (MiB)",
        "encode an image (ms)",
        "encode a caption (ms)",
        "score a pair (\N{MICRO SIGN}s)",
    ]
    return table(heads, [_cost_row(standing) for standing in board.ranked])


def overlaps(board: Board) -> str:
    """S, how much it depends on its bins, and the bound that needs none."""
    heads = ["preset", *(column.head for column in OVERLAP + MEANS), "range"]
    best, means = _columns(board.ranked, OVERLAP), _columns(board.ranked, MEANS, emphasis=False)
    ranges = [_range(standing) for standing in board.ranked]
    parts = zip(board.ranked, best, means, ranges, strict=True)
    return table(heads, [[title(s), *cells, *more, end] for s, cells, more, end in parts])


def over_seeds(board: Board) -> str:
    """rsum of every seed; empty where no preset was played with two."""
    seeds = list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes))
    if len(seeds) < 2:
        return ""
    heads = ["preset", *(f"seed {seed}" for seed in seeds), "highest - lowest"]
    return table(heads, [_seed_row(standing, seeds) for standing in board.ranked])


def reported(board: Board) -> str:
    """The papers' numbers under ours, each with the reason why they may not be compared."""
    recalls = [column.head for column in LEADERBOARD if column.metric in RECALLS]
    heads = ["preset", "numbers of", "remark", *recalls, "rsum"]
    rows = chain.from_iterable(_reported_rows(board, standing) for standing in board.ranked)
    return table(heads, list(rows), names=3)


def sentences(board: Board) -> str:
    """Sentence-to-sentence retrieval of the presets that embed text; empty where none does."""
    able = [s for s in board.ranked if "s2s_r1" in s.played[0].record.metrics]
    heads = ["preset", *(column.head for column in SENTENCES)]
    cells = _columns(able, SENTENCES)
    rows = [[title(standing), *found] for standing, found in zip(able, cells, strict=True)]
    return table(heads, rows) if rows else ""


def failures(board: Board) -> str:
    """Every cell without a result, with the reason; empty where there is none."""
    lost = [
        (standing, outcome)
        for standing in board.standings
        for outcome in standing.outcomes
        if not outcome.is_ok
    ]
    rows = [[title(s), str(o.record.seed), _status(o), escaped(o.record.reason)] for s, o in lost]
    return table(["preset", "seed", "status", "reason"], rows, names=4) if rows else ""


def remarks(board: Board) -> str:
    """What was changed, and for which presets: budget, features, and the presets' own notes."""
    names_of: dict[tuple[str, str], list[str]] = {}
    for standing in board.standings:
        for remark in _remarks(standing):
            names_of.setdefault(remark, []).append(title(standing))
    shared: dict[tuple[str, str], list[str]] = {}  # remarks on the same presets share a row
    for (kind, text), names in names_of.items():
        whose = "all" if len(names) == len(board.standings) else "; ".join(names)
        shared.setdefault((kind, whose), []).append(text)
    rows = [[kind, "; ".join(texts), whose] for (kind, whose), texts in sorted(shared.items())]
    return table(["kind", "what", "presets"], rows, names=3) if rows else ""


def is_coarse(standing: Standing) -> bool:
    """Whether S lies above 1 - KS, which bounds the true overlap: its bins are too coarse."""
    return standing.mean("overlap_s") > standing.mean("one_minus_ks") + SLACK


def title(standing: Standing) -> str:
    return escaped(standing.row.title)


def _columns(
    standings: Sequence[Standing], columns: Sequence[Column], emphasis: bool = True
) -> list[list[str]]:
    """The cells of every standing; the best of a column is bold, and all that print alike."""
    found = [[_cell(standing, column) for column in columns] for standing in standings]
    if not emphasis or len(standings) < 2:
        return found
    for number, column in enumerate(columns):
        shown = [_shown(standing, column) for standing in standings]
        best = column.best([value for value in shown if value is not None], default=None)
        for row, value in zip(found, shown, strict=True):
            if value is not None and value == best:
                row[number] = bold(row[number])
    return found


def _cell(standing: Standing, column: Column) -> str:
    text = spread(standing.values(column.metric), column.decimals)
    return f"{text} {COARSE}" if column.is_binned and is_coarse(standing) else text


def _shown(standing: Standing, column: Column) -> float | None:
    """The mean as it prints; None where it means nothing and cannot be the best."""
    if column.is_binned and is_coarse(standing):
        return None
    return round(standing.mean(column.metric), column.decimals)


def _seeds(standing: Standing) -> str:
    played, declared = len(standing.played), len(standing.outcomes)
    return str(played) if played == declared else f"{played} of {declared}"


def _status(outcome: Outcome) -> str:
    return outcome.record.status.replace("_", " ")


def _cost_row(standing: Standing) -> list[str]:
    played = standing.played
    scorings = [outcome.scoring.seconds for outcome in played]
    return [
        title(standing),
        f"{played[0].record.parameters / 1e6:.2f}",
        f"{fmean(_training_seconds(outcome) for outcome in played):.1f}",
        _range_of([len(o.history) for o in played if o.history is not None]),
        _range_of([o.record.selected_epoch for o in played if o.record.selected_epoch]),
        f"{max(_peak_memory(outcome) for outcome in played):.0f}",
        _three_digits(1e3 * fmean(seconds["per_image"] for seconds in scorings)),
        _three_digits(1e3 * fmean(seconds["per_caption"] for seconds in scorings)),
        _three_digits(1e6 * fmean(seconds["per_pair"] for seconds in scorings)),
    ]


def _training_seconds(outcome: Outcome) -> float:
    return sum(training.seconds["training"] for training in outcome.trainings)


def _peak_memory(outcome: Outcome) -> float:
    """Of the device where the training ran on one, else of the process."""
    return max(t.peak_device_memory_mib or t.peak_memory_mib for t in outcome.trainings)


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
    return [title(standing), *cells, gap]


def _reported_rows(board: Board, standing: Standing) -> list[list[str]]:
    """Ours, then the papers'; a row that several tables print alike is shown once."""
    ours = [spread(standing.values(metric), 1) for metric in (*RECALLS, "rsum")]
    rows = [[title(standing), f"here: {escaped(board.card['title'])}", "", *ours]]
    tables_of: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for numbers in standing.row.reported:
        printed = tuple(_printed(numbers))
        if set(printed) != {NONE}:
            key = (numbers.dataset, numbers.split, printed)
            tables_of.setdefault(key, []).append(numbers.table)
    for (dataset, split, printed), names in tables_of.items():
        where = f"{dataset}, validation" if split == "val" else dataset
        shown = escaped(f"paper: {where}, {', '.join(names)}")
        rows.append(["", shown, _comparison(board, standing, dataset), *printed])
    return rows


def _printed(numbers: Reported) -> list[str]:
    values = [getattr(numbers, metric) for metric in RECALLS]
    total = NONE if None in values else f"{sum(values):.1f}"
    return [NONE if value is None else f"{value:.1f}" for value in values] + [total]


def _comparison(board: Board, standing: Standing, dataset: str) -> str:
    deviations = standing.outcomes[0].record.deviations
    encoder = ", other encoder" if deviations else ""
    if dataset != board.dataset:
        return f"not comparable: other dataset{encoder}"
    if deviations:
        return "same dataset, but not comparable: other encoder"
    return f"same dataset; played here on split {code(standing.outcomes[0].record.split)}"


def _ended_at_its_best(outcome: Outcome) -> bool:
    history = outcome.history
    return history is not None and outcome.record.selected_epoch == len(history)


def _remarks(standing: Standing) -> list[tuple[str, str]]:
    """Pairs of kind and sentence. A fusion has the options of its members' rows."""
    record = standing.outcomes[0].record
    scaled = [name for name in record.scaled if name in record.options]
    found = [("scaled", code(f"{name} = {record.options[name]}")) for name in scaled]
    if standing.row.fuse:
        members = " and ".join(code(member) for member in standing.row.fuse.of)
        found.append(("fusion", f"{standing.row.fuse.how} of {members}, options as theirs"))
    if standing.row.start:
        found.append(("start", f"goes on from {code(standing.row.start)}"))
    found += [("deviation", escaped(deviation)) for deviation in record.deviations]
    if any(_ended_at_its_best(outcome) for outcome in standing.played):
        found.append(("training", "the last epoch was the best: more epochs may help"))
    if standing.row.note:
        found.append(("note", escaped(standing.row.note)))
    return found
