"""The page of a dataset: everything that was measured on it. Imports no torch."""

from collections.abc import Iterable, Iterator
from math import isinf

from benchmark.boards import comparisons, flags, row_warnings
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board
from benchmark.boards.row_settings import captions_seen
from benchmark.boards.row_warnings import choice_of, is_corrected, validation_of
from benchmark.report.figure_listing import FigureFolder, FigureInputs
from benchmark.report.pages import Page, SeasonInputs, filled, result_tables
from benchmark.report.pages.dataset_tables import dataset_tables
from benchmark.report.pages.examples import example_sections
from benchmark.report.tables import Table
from benchmark.scoring import distribution_overlap
from benchmark.season.parameters import Declaration
from benchmark.stats.comparisons import FREEDOM_FOR_SINGLES
from benchmark.stats.significance import RankCorrelation, rank_correlation

RETRIEVAL_SECTIONS = ("result", "similarity", "training", "cost")  # of figures


def pages(inputs: SeasonInputs) -> Iterator[Page]:
    """A page for each dataset."""
    for board in inputs.boards:
        yield Page(
            path=f"datasets/{board.dataset}.md",
            text=dataset_page(inputs.params, board, inputs.figures),
            title=board.title,
            about="every preset and metric, costs, training curves, hits and misses",
        )


def dataset_page(params: Declaration, board: Board, figures: FigureFolder) -> str:
    """The page as Markdown; saves the figures that it shows."""
    retrieval = board.retrieval
    localisation = board.localisation
    drawn = dict.fromkeys((*RETRIEVAL_SECTIONS, "localisation"), "")
    page = f"datasets/{board.dataset}.md"
    if retrieval.ranked:
        inputs = FigureInputs(board=retrieval)
        for section in RETRIEVAL_SECTIONS:
            drawn[section] = figures.save_section(section, inputs, board.dataset, page)
    if localisation.ranked:
        inputs = FigureInputs(board=localisation)
        stem = f"{board.dataset}-localisation"
        drawn["localisation"] = figures.save_section("training", inputs, stem, page)
    tables = dataset_tables(params, board)
    seen = [captions_seen(board, row) for row in board.ranked]
    leaderboards = [tables["leaderboard"], tables["localisation"]]
    shared = result_tables.shared_flags(board)
    return filled(
        "dataset.md.j2",
        board=board,
        card=board.card,
        season=params.season,
        seeds=list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes)),
        few_queries=few_queries(board),
        tables=tables,
        legend=legend(leaderboards, shared),
        shared=[flags.NAMES[letter] for letter in shared],
        spread=seed_spread(retrieval),
        is_coarse=any(map(comparisons.is_coarse, retrieval.ranked)),
        tie_gap=tie_gap(retrieval),
        overlap_and_rsum=overlap_and_rsum(retrieval),
        features=_features(board),
        twins=_twins(board),
        choice=choice_of(retrieval) if len(retrieval.ranked) > 1 else None,
        validation_of=validation_of,
        captions_seen=list(filter(None, seen)),
        figures=drawn,
        examples=example_sections(params, board, figures),
        bins=distribution_overlap.BINS,
        carries=FREEDOM_FOR_SINGLES,
        min_queries=MIN_TEST_QUERIES,
    )


def tie_gap(board: Board) -> float | None:
    """The most that ties could add to an R@1, in points, if they counted for the method;
    None where only ranks are known."""
    gaps = []
    for row in board.ranked:
        for outcome in row.played:
            for way in board.ways:
                gap = outcome.record.metrics.get(f"{way}_r1_tie_gap")
                if gap is not None:
                    gaps.append(gap)
    return max(gaps, default=None)


def overlap_and_rsum(board: Board) -> RankCorrelation | None:
    """How rsum depends on S over the rows, those of corrected scores left out: a
    correction changes S and no model. None of few rows."""
    rows = [row for row in board.ranked if row.has_scores and not is_corrected(row)]
    overlaps = [row.mean(result_tables.S) for row in rows]
    rsums = [row.mean("rsum") for row in rows]
    methods = [row.method for row in rows]
    return rank_correlation(overlaps, rsums, methods)


def few_queries(board: Board) -> dict[str, int]:
    """The tasks with too few test queries for any conclusion, with their number."""
    tasks = dict.fromkeys(row.task for row in board.rows)
    return {task: board.test_queries(task) for task in tasks if board.is_small(task)}


def legend(tables: Iterable[Table], shared_letters: Iterable[str] = ()) -> str:
    """What the flag letters in the tables mean, then the flags that all rows share; empty
    if there are none."""
    shown: set[str] = set()
    for table in tables:
        for letters in table.frame.get("flags", []):
            shown.update(letters or "")
    parts = []
    for letter, name in flags.NAMES.items():
        if letter in shown:
            parts.append(f"{letter} {name}")
    texts = [", ".join(parts)] if parts else []
    shared_names = [flags.NAMES[letter] for letter in shared_letters]
    if shared_names:
        texts.append(f"all rows: {', '.join(shared_names)}")
    return "; ".join(texts)


def seed_spread(board: Board) -> dict:
    """How far trainings lie apart, and whether rows vary alike; empty where that is not
    known."""
    if not board.ranked:
        return {}
    task = board.ranked[0].task
    spread = comparisons.spread_of(board, task, RANKED_BY[task])
    if len(spread.pool) < 2:
        return {}
    has_own = spread.prior is not None and not isinf(spread.prior.freedom)
    return {"of": spread, "has_own": has_own}


def _twins(board: Board) -> dict:
    """How many test images have a twin in another split, and how rsum changes without
    the queries of those that the card names; empty where it names none, or where no row
    can be measured without them."""
    named = row_warnings.named_twins(board.card)
    if not named:
        return {}
    changes = []
    for row in board.ranked:
        without = row_warnings.without_twins(board, row, "rsum")
        if without is not None:
            changes.append(without - row.mean("rsum"))
    if not changes:
        return {}
    return {
        "low": min(changes),
        "high": max(changes),
        "named": len(named),
        "all": row_warnings.twins_in_all(board.card),
    }


def _features(board: Board) -> list[str]:
    """The features that were used, and by which methods: a line each."""
    methods: dict[str, set[str]] = {}
    for outcome in board.outcomes:
        images = outcome.record.image_features
        text = outcome.record.text_features
        weights = images.get("weights", {}).get("file", "unknown")
        encoder = images.get("encoder", "unknown")
        parts = []
        if "vocabulary" in text:
            parts.append(f"{text['vocabulary']} words")
        for key in ("encoder", "vectors"):
            if key in text:
                parts.append(str(text[key]))
        words = ", ".join(parts) or "never read"
        used = f"Images: {encoder}, weights: {weights}. Text: {words}"
        methods.setdefault(used, set()).add(outcome.record.method)
    return [f"{', '.join(sorted(names))}. {used}" for used, names in methods.items()]
