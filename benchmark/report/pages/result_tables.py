"""The tables of a dataset's results: one function per table, from a board to a table.

The board holds one task: tables of retrieval take `board.retrieval`, tables of phrase localisation
`board.localisation`; `over_seeds` and `failures` take either. Knows no torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean, median

from benchmark.analysis import comparisons, departures, ranking
from benchmark.analysis.boards import RANKED_BY, Board, Outcome, Standing
from benchmark.analysis.departures import Departure
from benchmark.protocol import METRICS, table_metrics
from benchmark.protocol.metrics import PROPOSAL_METRICS, SCORE_METRICS
from benchmark.report.costs import has_costs, training_seconds
from benchmark.report.number_texts import (
    NO_BREAK,
    NONE,
    between,
    percent,
    spread,
    three_digits,
)
from benchmark.report.table_formats import Entry, Table

COARSE = "*"
S = "overlap_s"
BINNED = (S, "overlap_s_half_bins", "overlap_s_double_bins")  # no use if bins are too coarse
LIMITS = [metric.name for metric in PROPOSAL_METRICS if metric.in_tables]  # of localisation
THESE_TRAININGS = "over test images, these trainings only"  # the spread of others is not known
BEST = "best (%)"  # the probability
DIFFERS = "differs by"  # from the paper, in short
SAID_ELSEWHERE = (Departure.REGIONS, Departure.WORDS, Departure.BUDGET, Departure.FEW)  # of remarks
OF_SCORES = [metric.name for metric in SCORE_METRICS if metric.in_tables]


def leaderboard(board: Board) -> Table:
    """Retrieval: one row per preset, best first; presets without a result last."""
    metrics = [metric for way in board.ways for metric in table_metrics(way)]
    return _ranking(board, f"{board.card['title']}: results on test", [*metrics, "rsum", S])


def localised(board: Board) -> Table:
    """Phrase localisation: `leaderboard` with the upper bound and the R@1 of a random order."""
    title = f"{board.card['title']}: phrases localised on test"
    ranking = _ranking(board, title, [*table_metrics("p2r"), "rsum"])
    limits = metric_entries(board, board.ranked, LIMITS, emphasis=False)
    limits += [[NONE] * len(LIMITS)] * (len(ranking.rows) - len(limits))
    rows = [[*row, *entries] for row, entries in zip(ranking.rows, limits, strict=True)]
    return replace(ranking, heads=[*ranking.heads, *headings(LIMITS)], rows=rows)


def folds(board: Board) -> Table | None:
    """Means over the folds of the test split and their spread; None for a single fold."""
    if board.folds == 1:
        return None
    names = [name for way in board.ways for name in table_metrics(way, folds=True)]
    names += ["fold_rsum"]
    heads = headings([name.removeprefix("fold_") for name in names])
    of_folds = [standing for standing in board.ranked if standing.values("fold_rsum")]
    ranked = sorted(of_folds, key=lambda s: -s.mean("fold_rsum"))
    more_heads, intervals = _intervals(board, ranked, "fold_rsum")
    rows = [
        [s.row.title, *(_over_folds(s, name) for name in names), *ends]
        for s, ends in zip(ranked, intervals, strict=True)
    ]
    title = f"{board.card['title']}: means of {board.folds} folds of test"
    heads = ["preset", *heads, *more_heads]
    return Table(title=title, heads=heads, rows=rows, ids=_ids(ranked))


def cost(board: Board, standings: Sequence[Standing] | None = None) -> Table:
    """What the presets cost, in the order of the leaderboard: all of them, or `standings`."""
    encoded = {"per_image": "an image", "per_caption": "a caption"}
    return _costs(board, "cost", standings or board.ranked, encoded)


def localisation_cost(board: Board, standings: Sequence[Standing] | None = None) -> Table:
    """`cost` of phrase localisation; the time of a pair includes encoding both."""
    return _costs(board, "cost of localising phrases", standings or board.ranked, {})


def overlaps(board: Board) -> Table:
    """S with its interval, its dependence on the bins, its bound without bins, and the range."""
    scored = [standing for standing in board.ranked if standing.has_scores]
    columns = metric_entries(board, scored, OF_SCORES)
    more_heads, intervals = _intervals(board, scored, S, decimals=3)
    heads = ["preset", *headings(OF_SCORES), *more_heads, "range"]
    rows = [
        [s.row.title, *entries, *ends, _range(s)]
        for s, entries, ends in zip(scored, columns, intervals, strict=True)
    ]
    title = f"{board.card['title']}: overlap of the scores"
    return Table(title=title, heads=heads, rows=rows, ids=_ids(scored))


def over_seeds(board: Board) -> Table | None:
    """rsum of every seed; None if only one seed was played."""
    seeds = list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes))
    if len(seeds) < 2:
        return None
    heads = ["preset", *(f"seed {seed}" for seed in seeds), "highest - lowest"]
    rows = [_seed_row(standing, seeds) for standing in board.ranked]
    title = f"{board.card['title']}: rsum of every seed"
    return Table(title=title, heads=heads, rows=rows, ids=_ids(board.ranked))


def sentences(board: Board) -> Table | None:
    """Sentence-to-sentence retrieval of the presets that embed text; None if there are none."""
    standings = [s for s in board.ranked if "s2s_r1" in s.played[0].record.metrics]
    metrics = table_metrics("s2s")
    columns = metric_entries(board, standings, metrics)
    rows = [[s.row.title, *entries] for s, entries in zip(standings, columns, strict=True)]
    title = f"{board.card['title']}: sentence to sentence"
    heads = ["preset", *headings(metrics)]
    return Table(title=title, heads=heads, rows=rows, ids=_ids(standings)) if rows else None


def failures(board: Board) -> Table | None:
    """Every cell without a result, with the reason; None if there is none."""
    lost = [
        (standing, outcome)
        for standing in board.standings
        for outcome in standing.outcomes
        if not outcome.is_ok
    ]
    rows = [
        [standing.row.title, str(outcome.record.seed), status_of(outcome), outcome.record.reason]
        for standing, outcome in lost
    ]
    heads = ["preset", "seed", "status", "reason"]
    title = f"{board.card['title']}: cells without a result"
    ids = _ids([standing for standing, _ in lost])
    return Table(title=title, heads=heads, rows=rows, names=4, ids=ids) if rows else None


def remarks(board: Board) -> Table:
    """What differs from the papers, and for which presets: budget, features, notes."""
    names_of: dict[tuple[str, str], list[str]] = {}
    for standing in board.standings:
        for remark in _remarks(board, standing):
            names_of.setdefault(remark, []).append(standing.row.title)
    shared: dict[tuple[str, str], list[str]] = {}  # remarks on the same presets share a row
    for (kind, text), names in names_of.items():
        whose = "all" if len(names) == len(board.standings) else "; ".join(names)
        shared.setdefault((kind, whose), []).append(text)
    rows = [[kind, "; ".join(texts), whose] for (kind, whose), texts in sorted(shared.items())]
    title = f"{board.card['title']}: what differs from the papers"
    return Table(title=title, heads=["kind", "what", "presets"], rows=rows, names=3)


@lru_cache(maxsize=4096)  # several tables show it
def interval(board: Board, standing: Standing, metric: str, decimals: int = 1) -> str:
    """The 95% interval of a preset as text: over images and seeds; a dash if there is none."""
    return _ends(comparisons.interval(board, standing, metric), decimals)


@lru_cache(maxsize=4096)
def interval_of_these(board: Board, standing: Standing, metric: str, decimals: int = 1) -> str:
    """The 95% interval of a preset over the test images, as text, where nothing is known of other
    trainings; else a dash."""
    if comparisons.seed_part(board, standing, metric):
        return NONE
    return _ends(comparisons.interval_over_images(board, standing, metric), decimals)


def groups(board: Board) -> list[str]:
    """The letters of each of `board.ranked`, of one task; a dash where no rows were compared."""
    ranked = board.ranked
    return ranking.rank_letters(board) if ranking.is_compared(board) else [NONE] * len(ranked)


def _ranking(board: Board, title: str, metrics: Sequence[str]) -> Table:
    """One row per preset with its group, highest mean rsum first; presets without a result last."""
    metric = RANKED_BY[board.ranked[0].task] if board.ranked else "rsum"
    more_heads, intervals = _intervals(board, board.ranked, metric)
    chances = _chances(board)
    heads = ["preset", "group", "seeds", *headings(metrics), *more_heads, *[BEST] * bool(chances)]
    heads.append(DIFFERS)
    columns = metric_entries(board, board.ranked, metrics)
    facts = zip(
        board.ranked,
        groups(board),
        columns,
        intervals,
        chances or [()] * len(columns),
        strict=True,
    )
    rows = [
        [s.row.title, group, seeds_played(s), *entries, *ends, *chance, differs(board, s)]
        for s, group, entries, ends, chance in facts
    ]
    without = [standing for standing in board.standings if not standing.played]
    blank = [NONE] * (len(heads) - 4)
    rows += [
        [s.row.title, NONE, seeds_played(s), status_of(s.outcomes[0]), *blank] for s in without
    ]
    return Table(title=title, heads=heads, rows=rows, ids=_ids([*board.ranked, *without]))


def differs(board: Board, standing: Standing) -> str:
    """By what the row is not that of the paper, or not to be trusted, in short words."""
    return ", ".join(departures.departures(board, standing)) or NONE


def _chances(board: Board) -> list[list[str]]:
    """Of each preset the probability to be the best, in percent; empty: it is not known."""
    if not board.ranked or board.is_small(board.ranked[0].task):
        return []
    chances = ranking.chances_to_be_best(board) or []
    return [[percent(chance)] for chance in chances]


def _intervals(
    board: Board, standings: Sequence[Standing], metric: str, decimals: int = 1
) -> tuple[list[str], list[list[str]]]:
    """Headings and entries of the intervals of presets. If nothing is known of other trainings of
    some, the intervals of these are a column of their own."""
    name = f"95% of {METRICS[metric.removeprefix('fold_')].heading}"
    makers = {name: interval}
    if any(comparisons.seed_part(board, standing, metric) is None for standing in standings):
        makers[f"{name} {THESE_TRAININGS}"] = interval_of_these
    entries = [[make(board, s, metric, decimals) for make in makers.values()] for s in standings]
    return list(makers), entries


def _ends(ends: tuple[float, float] | None, decimals: int) -> str:
    return NONE if ends is None else between(*(f"{end:.{decimals}f}" for end in ends))


def _over_folds(standing: Standing, metric: str) -> str:
    """Mean and sample standard deviation of the folds, each the mean of its seeds."""
    by_seed = standing.by_fold(metric.removeprefix("fold_"))
    return spread([fmean(of_fold) for of_fold in zip(*by_seed, strict=True)], 1)


def _costs(board: Board, what: str, standings: Sequence[Standing], encoded: dict) -> Table:
    timed = list(filter(has_costs, standings))
    on_gpu = any(map(_device_memory, timed))
    heads = [
        "preset",
        "parameters (M)",
        "training (s)",
        "epochs",
        *(["GPU memory (MiB)"] if on_gpu else []),
        *(f"encode {item} (ms)" for item in encoded.values()),
        METRICS["per_pair"].heading,
    ]
    rows = [_cost_row(board, standing, encoded, on_gpu) for standing in timed]
    title = f"{board.card['title']}: {what}"
    return Table(title=title, heads=heads, rows=rows, ids=_ids(timed))


def _ids(standings: Sequence[Standing]) -> list[str]:
    return [standing.preset for standing in standings]


def headings(metrics: Sequence[str]) -> list[str]:
    return [METRICS[metric].heading for metric in metrics]


def metric_entries(
    board: Board, standings: Sequence[Standing], metrics: Sequence[str], emphasis: bool = True
) -> list[list[str | Entry]]:
    """One row of entries per standing.

    The best of a column is bold, with all that print alike; scores of different presets have
    different scales, so none of them is best. From too few test queries none is, either.
    """
    rows = [[_entry(standing, metric) for metric in metrics] for standing in standings]
    if not emphasis or len(standings) < 2 or board.is_small(standings[0].task):
        return rows
    for number, metric in enumerate(metrics):
        if METRICS[metric].unit == "score":
            continue
        means = [_printed_mean(standing, metric) for standing in standings]
        choose = min if METRICS[metric].less_is_better else max
        best = choose([mean for mean in means if mean is not None], default=None)
        for row, mean in zip(rows, means, strict=True):
            if mean is not None and mean == best:
                row[number] = Entry(row[number], is_bold=True)
    return rows


def _decimals(metric: str) -> int:
    """As papers print it, but at least one, for means over seeds, and at most three."""
    return min(max(METRICS[metric].decimals, 1), 3)


def _entry(standing: Standing, metric: str) -> str:
    values = standing.values(metric)
    text = spread(values[:1] if _has_no_chance(standing) else values, _decimals(metric))
    return f"{text}{NO_BREAK}{COARSE}" if _is_coarse(standing, metric) else text


def _has_no_chance(standing: Standing) -> bool:
    """Whether every seed gave the same in everything: there is no spread to tell of."""
    first, *others = (outcome.record.metrics for outcome in standing.played)
    return all(metrics == first for metrics in others)


def _printed_mean(standing: Standing, metric: str) -> float | None:
    """The mean as it is printed; None if it is missing or from bins that are too coarse."""
    mean = standing.mean(metric)
    if mean is None or _is_coarse(standing, metric):
        return None
    return round(mean, _decimals(metric))


def _is_coarse(standing: Standing, metric: str) -> bool:
    return metric in BINNED and comparisons.is_coarse(standing)


def seeds_played(standing: Standing) -> str:
    played, declared = len(standing.played), len(standing.outcomes)
    return str(played) if played == declared else f"{played} of {declared}"


def status_of(outcome: Outcome) -> str:
    return outcome.record.status.replace("_", " ")


def _cost_row(board: Board, standing: Standing, encoded: dict[str, str], on_gpu: bool) -> list[str]:
    played = standing.played
    memory = f"{_device_memory(standing):.0f}" if _device_memory(standing) else NONE
    return [
        standing.row.title,
        f"{played[0].record.parameters / 1e6:.2f}",
        f"{training_seconds(board, standing):.1f}",
        _range_of([len(o.history) for o in played if o.history is not None]),
        *([memory] if on_gpu else []),
        *(_time(standing, name, 1e3) for name in encoded),
        _time(standing, "per_pair", 1e6),
    ]


def _device_memory(standing: Standing) -> float:
    """The highest of all trainings, in MiB; 0 on the CPU, where a process holds more."""
    trainings = [training for outcome in standing.played for training in outcome.trainings]
    return max(training.peak_device_memory_mib or 0.0 for training in trainings)


def _time(standing: Standing, name: str, unit: float) -> str:
    """Median over the seeds, in 1 / `unit` seconds; a dash if it was not measured."""
    seconds = [o.scoring.seconds[name] for o in standing.played if name in o.scoring.seconds]
    return three_digits(unit * median(seconds)) if seconds else NONE


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
    entries = [f"{rsums[seed]:.1f}" if seed in rsums else NONE for seed in seeds]
    gap = f"{max(rsums.values()) - min(rsums.values()):.1f}" if len(rsums) > 1 else NONE
    return [standing.row.title, *entries, gap]


def _remarks(board: Board, standing: Standing) -> list[tuple[str, str]]:
    """Pairs of kind and sentence. The options of a fusion are those of its members."""
    record = standing.outcomes[0].record
    scaled = [name for name in record.scaled if name in record.options]
    pairs = [("scaled", f"{name} = {record.options[name]}") for name in scaled]
    if standing.row.fuse:
        members = " and ".join(standing.row.fuse.of)
        pairs.append(("fusion", f"{standing.row.fuse.how} of {members}, options as theirs"))
        if standing.row.fuse.how == "adaptive":
            pairs.append(("fusion", "S is of the scores of image queries"))
    alphas = [outcome.record.metrics.get("alpha") for outcome in standing.played]
    if alphas and None not in alphas:
        weights = ", ".join(f"{alpha:g}" for alpha in alphas)
        pairs.append(("fusion", f"weight of the second score: {weights}, chosen on validation"))
    if standing.row.start:
        pairs.append(("start", f"continues from {standing.row.start}"))
    pairs += [("deviation", line) for line in record.deviations if not standing.is_own]
    reasons = departures.departures(board, standing)
    pairs += [(str(kind), text) for kind, text in reasons.items() if kind not in SAID_ELSEWHERE]
    if standing.row.note:
        pairs.append(("note", standing.row.note))
    return pairs
