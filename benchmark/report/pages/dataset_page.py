"""The page of a dataset: everything that was measured on it. Knows no torch."""

from collections.abc import Iterable
from math import isinf

from benchmark.boards import boards, comparisons, flags
from benchmark.boards.boards import MIN_TEST_QUERIES, RANKED_BY, Board
from benchmark.contracts.datasets import SPLITS
from benchmark.papers.printed_tables import title_of
from benchmark.report.figure_listing import FigureFolder, FigureInputs
from benchmark.report.pages import filled, result_tables
from benchmark.report.pages.examples import example_sections
from benchmark.report.tables import Number, Table
from benchmark.scoring import distribution_overlap
from benchmark.season.parameters import Params
from benchmark.stats.comparisons import CARRIES

UP = "../"  # from datasets/ to the folder of the report
SHARED = {  # field of the card's leakage -> what it counts
    "pictures": "images, pixel for pixel",
    "near_pictures": "images, nearly (pairs)",
    "captions": "captions, word for word",
    "near_captions": "captions but for case, punctuation and spaces",
}


def dataset_tables(params: Params, board: Board) -> dict[str, Table]:
    """The tables of a dataset by name, those for export among them; without rows:
    nothing."""
    retrieval, localisation = board.retrieval, board.localisation
    return {
        "leaderboard": result_tables.leaderboard(retrieval),
        "folds": result_tables.folds(retrieval),
        "failures": result_tables.failures(board),
        **{
            way: result_tables.of_direction(retrieval, way)
            for way in ("i2t", "t2i", "s2s")
        },
        **{
            f"{way}_all": result_tables.of_all_items(retrieval, way)
            for way in board.ways
        },
        "p2r": result_tables.of_direction(localisation, "p2r"),
        "overlap": result_tables.overlaps(retrieval),
        "localisation": result_tables.leaderboard(localisation),
        "flags": result_tables.of_each_row(board),
        "remarks": result_tables.remarks(board),
        "tuning": tuning(params, board),
        "leakage": leakage(board.card),
        "cost": result_tables.costs(retrieval),
        "localisation_cost": result_tables.costs(localisation),
    }


def dataset_page(params: Params, board: Board, figures: FigureFolder) -> str:
    """The page as Markdown; saves the figures that it shows."""
    retrieval, localisation = board.retrieval, board.localisation
    drawn = dict.fromkeys(("result", "similarity", "training", "cost", "phrases"), "")
    for section in (
        ("result", "similarity", "training", "cost") if retrieval.ranked else ()
    ):
        drawn[section] = figures.section(
            section, FigureInputs(board=retrieval), board.dataset, UP
        )
    if localisation.ranked:
        inputs, stem = FigureInputs(board=localisation), f"{board.dataset}-localisation"
        drawn["phrases"] = figures.section("training", inputs, stem, UP)
    tables = dataset_tables(params, board)
    measured = [
        outcome.record.metrics for row in retrieval.ranked for outcome in row.played
    ]
    # What ties add to an R@1 at most, if they count for the method; not known of ranks
    # alone.
    names = [f"{way}_r1_tie_gap" for way in board.ways]
    gaps = [of[name] for of in measured for name in names if name in of]
    leaderboards = [tables["leaderboard"], tables["localisation"]]
    return filled(
        "dataset.md.j2",
        board=board,
        card=board.card,
        season=params.season,
        seeds=list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes)),
        few_queries=few_queries(board),
        tables=tables,
        legend=legend(leaderboards, result_tables.shared_flags(board)),
        shared=[flags.NAMES[letter] for letter in result_tables.shared_flags(board)],
        spread=spread_of(retrieval),
        is_coarse=any(map(comparisons.is_coarse, retrieval.ranked)),
        tie_gap=max(gaps, default=None),
        features=_features(board),
        twins=_twins(board),
        figures=drawn,
        examples=example_sections(params, board, figures),
        bins=distribution_overlap.BINS,
        carries=CARRIES,
        min_queries=MIN_TEST_QUERIES,
    )


def few_queries(board: Board) -> dict[str, int]:
    """The tasks with too few test queries for any conclusion, with their number."""
    tasks = dict.fromkeys(row.task for row in board.rows)
    return {task: board.test_queries(task) for task in tasks if board.is_small(task)}


def legend(tables: Iterable[Table], of_all: Iterable[str] = ()) -> str:
    """What the letters of the flags say that the tables show, and those of all rows;
    empty where there are none."""
    shown = {
        letter
        for table in tables
        for cell in table.frame.get("flags", [])
        for letter in cell or ""
    }
    told = ", ".join(
        f"{letter} {name}" for letter, name in flags.NAMES.items() if letter in shown
    )
    shared = ", ".join(flags.NAMES[letter] for letter in of_all)
    return "; ".join(filter(None, [told, f"all rows: {shared}" if shared else ""]))


def spread_of(board: Board) -> dict:
    """How far trainings lie apart, and whether rows vary alike; empty where that is not
    known."""
    if not board.ranked:
        return {}
    task = board.ranked[0].task
    spread = comparisons.spread_of(board, task, RANKED_BY[task])
    has_own = spread.prior is not None and not isinf(spread.prior.freedom)
    return {"of": spread, "has_own": has_own} if len(spread.pool) > 1 else {}


def tuning(params: Params, board: Board) -> Table:
    """What was tried on validation, a row per trial."""
    trials, lines = boards.read_trials(params.season), []
    for trial in trials[trials["dataset"] == board.dataset].itertuples():
        row = board.row(trial.preset)
        is_taken = row is not None and boards.is_taken(trial.options, row.record)
        line = {"preset": title_of(trial.preset), "options": trial.options}
        line |= {"epoch kept": int(trial.epoch), "rsum": Number(value=trial.val_rsum)}
        lines.append(line | {"taken": "yes" if is_taken else ""})
    return Table.of(f"{board.title}: trials on validation", lines)


def leakage(card: dict) -> Table:
    """What occurs in more than one split, and how many items of each split have such a
    twin."""
    found, lines = card["leakage"], []
    for name, what in SHARED.items() if "items" in found else ():
        count = found["near_pictures_total" if name == "near_pictures" else name]
        count = len(count) if isinstance(count, list) else count
        line = {"in more than one split": what, "found": count}
        lines.append(
            line | {f"of {split}": found["items"][name][split] for split in SPLITS[:3]}
        )
    return Table.of(f"{card['title']}: what the splits share", lines)


def _twins(board: Board) -> dict:
    """How many test images have a twin in another split, and how rsum changes without
    the queries of those that the card names; empty where it names none."""
    named = comparisons.named_twins(board.card)
    changes = [
        left - row.mean("rsum")
        for row in (board.ranked if named else ())
        if (left := comparisons.without_twins(board, row, "rsum")) is not None
    ]
    facts = {
        "low": min(changes, default=0),
        "high": max(changes, default=0),
        "named": len(named),
    }
    return facts | {"all": comparisons.twins_in_all(board.card)} if changes else {}


def _features(board: Board) -> list[str]:
    """The features that were used, and by which methods: a line each."""
    methods: dict[tuple[str, str], set[str]] = {}
    for record in (outcome.record for outcome in board.outcomes):
        images, text = record.image_features, record.text_features
        weights = images.get("weights", {}).get("file", "unknown")
        used = f"{images.get('encoder', 'unknown')}, weights: {weights}"
        parts = [f"{text['vocabulary']} words"] if "vocabulary" in text else []
        parts += [str(text[key]) for key in ("encoder", "vectors") if key in text]
        methods.setdefault((used, ", ".join(parts) or "never read"), set()).add(
            record.method
        )
    return [
        f"{', '.join(sorted(of))}. Images: {images}. Text: {text}"
        for (images, text), of in methods.items()
    ]
