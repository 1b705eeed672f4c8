"""The page of a dataset: everything that was measured on it. Knows no torch."""

from collections.abc import Callable, Iterator

from benchmark.analysis import comparisons, validity
from benchmark.analysis.boards import MIN_TEST_QUERIES, Board, Outcome
from benchmark.analysis.seed_spread import CARRIES
from benchmark.core.provenance import Provenance
from benchmark.core.records import Record
from benchmark.protocol import distribution_overlap
from benchmark.report.costs import by_setting
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.markdown import code, escaped, pipe_table
from benchmark.report.number_texts import PLUS_MINUS
from benchmark.report.pages import integrity_tables, leaderboards, result_tables, summary
from benchmark.report.pages.example_sections import example_sections
from benchmark.report.pages.figure_files import FigureFolder
from benchmark.report.pages.template_filling import filled
from benchmark.report.pages.tuning_table import trials_per_method, tuning
from benchmark.report.table_formats import Table
from benchmark.season.parameters import Params
from datasets import SPLITS

OF_RETRIEVAL: dict[str, Callable[[Board], Table | None]] = {
    "leaderboard": result_tables.leaderboard,
    "folds": result_tables.folds,
    "failures": result_tables.failures,
    "seeds": result_tables.over_seeds,
    "sentences": result_tables.sentences,
    "overlap": result_tables.overlaps,
    "cost": result_tables.cost,
}
OF_LOCALISATION: dict[str, Callable[[Board], Table | None]] = {
    "localisation": result_tables.localised,
    "localisation-failures": result_tables.failures,
    "localisation-seeds": result_tables.over_seeds,
    "localisation-cost": result_tables.localisation_cost,
}
FIGURES_OF_RETRIEVAL = ("result", "similarity", "training", "cost")
FIGURES_OF_LOCALISATION = ("training", "localisation")
NUMBERS = {
    "bins": distribution_overlap.BINS,
    "plus_minus": PLUS_MINUS,
    "carries": CARRIES,
    "min_queries": MIN_TEST_QUERIES,
}
UP = "../"  # from datasets/ to the folder of the report


def dataset_tables(board: Board) -> dict[str, Table | None]:
    """The tables of a dataset's page by name; None for those that would be empty."""
    tables: dict[str, Table | None] = {}
    of_tasks = ((board.retrieval, OF_RETRIEVAL), (board.localisation, OF_LOCALISATION))
    for of_task, makers in of_tasks:
        tables |= {
            name: make(of_task) if of_task.standings else None for name, make in makers.items()
        }
    return tables | {
        "remarks": result_tables.remarks(board),
        "leakage": integrity_tables.shared(board.card),
        "twins": integrity_tables.twins(board.card),
        "captions-per-image": integrity_tables.captions_per_image(board.card),
    }


def dataset_page(
    params: Params, board: Board, tables: dict[str, Table | None], figures: FigureFolder
) -> str:
    """The page as Markdown; `tables` are its `dataset_tables`."""
    retrieval, localisation = board.retrieval, board.localisation
    return filled(
        "dataset.md.j2",
        name=board.dataset,
        title=board.card["title"],
        card=board.card,
        season=params.season,
        seeds=list(dict.fromkeys(outcome.record.seed for outcome in board.outcomes)),
        few_queries=summary.few_queries(board),
        tables=tables | _shown(board) | {"tuning": tuning(params, board)},
        trials=trials_per_method(params, board),
        rows=_rows(board),
        legend=validity.LEGEND,
        limits=leaderboards.limits(localisation),
        costs=_costs(retrieval, result_tables.cost),
        localisation_costs=_costs(localisation, result_tables.localisation_cost),
        has_one_way=len(board.ways) == 1,
        has_phrases=bool(localisation.standings),
        spread_sentence=leaderboards.spread_sentence(retrieval),
        **NUMBERS,
        has_retrieved=bool(retrieval.ranked),
        has_localised=bool(localisation.ranked),
        is_coarse=is_coarse(board),
        tie_gap=_tie_gap(board),
        machines=_machines(retrieval),
        localisation_machines=_machines(localisation),
        counts=_counts(board),
        feature_sentences=_feature_sentences(board),
        untwinned=_untwinned(board),
        twins_sentence=integrity_tables.twins_sentence(board.card),
        integrity_sentences=integrity_tables.integrity_sentences(board.card),
        figures=_figures(board, figures),
        examples=example_sections(params, board, figures),
    )


def _shown(board: Board) -> dict[str, Table | list[Table] | None]:
    """The tables that the page shows in the place of wide ones."""
    recalls = [leaderboards.recalls(board.retrieval, way) for way in board.ways]
    return {
        "shown": leaderboards.leaderboard(board.retrieval),
        "recalls": [table for table in recalls if table],
        "localisation-shown": leaderboards.leaderboard(board.localisation),
    }


def _untwinned(board: Board) -> list[Table]:
    """Scores without the queries of twins, of each task that has some."""
    tables = map(integrity_tables.without_twins, (board.retrieval, board.localisation))
    return [table for table in tables if table]


def _costs(board: Board, table: Callable[..., Table]) -> list[tuple[str, Table]]:
    """One table per setting in which times were measured."""
    return [(setting, table(board, timed)) for setting, timed in by_setting(board).items()]


def _rows(board: Board) -> str:
    """Every row with its id and its records, as Markdown."""
    up = f"{UP}{UP}{UP}"  # from datasets/ to the root
    rows = []
    for standing in board.standings:
        records = [
            f"[{outcome.record.seed}]({up}{outcome.folder.as_posix()}/record.json)"
            for outcome in standing.outcomes
            if outcome.folder.is_relative_to("results")
        ]
        rows.append([escaped(standing.row.title), code(standing.preset), " ".join(records)])
    return pipe_table(["row", "id", "records by seed"], rows, "lll")


def is_coarse(board: Board) -> bool:
    """Whether S of any preset has too coarse bins."""
    return any(comparisons.is_coarse(standing) for standing in board.retrieval.ranked)


def _figures(board: Board, figures: FigureFolder) -> dict[str, dict[str, list[str]]]:
    """Task -> section -> Markdown of its figures; of a task without results, no figures."""
    of_tasks = {
        "retrieval": (board.retrieval, FIGURES_OF_RETRIEVAL, board.dataset),
        "localisation": (
            board.localisation,
            FIGURES_OF_LOCALISATION,
            f"{board.dataset}-localisation",
        ),
    }
    return {
        task: {
            section: figures.section(section, FigureInputs(board=of_task), stem, UP)
            if of_task.ranked
            else []
            for section in sections
        }
        for task, (of_task, sections, stem) in of_tasks.items()
    }


def _tie_gap(board: Board) -> str:
    """What ties could change; empty where nothing is known of them, as of ranks alone."""
    recorded = [
        outcome.record.metrics.get(f"{way}_r1_tie_gap")
        for standing in board.retrieval.ranked
        for outcome in standing.played
        for way in board.ways
    ]
    gaps = [gap for gap in recorded if gap is not None]
    if not gaps:
        return ""
    highest = max(gaps)
    if highest == 0:
        return "Ties: none decides an R@1; counting them for the method changes nothing."
    return (
        f"Ties: counting them for the method instead of against it would raise an R@1 by up to "
        f"{highest:.2f} points."
    )


def _counts(board: Board) -> Table:
    by_split = board.card["counts"]
    has_phrases = any(numbers.get("phrases", 0) for numbers in by_split.values())
    kinds = ["images", "captions", *["phrases"] * has_phrases]
    rows = [
        [name, *(str(by_split[name][kind]) for kind in kinds)]
        for name in SPLITS
        if name in by_split
    ]
    return Table(title="Splits", heads=["split", *kinds], rows=rows)


def _feature_sentences(board: Board) -> list[str]:
    """The notes of the dataset and the features that were used, as Markdown; for which methods,
    where not for all."""
    methods: dict[str, set[str]] = {}
    for record in (outcome.record for outcome in board.outcomes):
        for sentence in (_image_features(record), _text_features(record)):
            methods.setdefault(sentence, set()).add(record.method)
    every = set.union(set(), *methods.values())
    used = [
        sentence if of == every else f"{sentence} ({', '.join(map(code, sorted(of)))})"
        for sentence, of in methods.items()
    ]
    return [*map(escaped, board.card["notes"]), *(f"{line}." for line in used)]


def _image_features(record: Record) -> str:
    facts, weights = record.image_features, record.image_features.get("weights", {})
    origin = f"{weights.get('file', 'unknown')}, sha256 {weights.get('sha256', 'unknown')[:12]}"
    what = "Proposals" if record.task == "localisation" else "Image features"
    return f"{what}: {code(facts.get('encoder', 'unknown'))}, weights: {escaped(origin)}"


def _text_features(record: Record) -> str:
    facts = record.text_features
    if not facts:
        return "Text: never read"
    if "vocabulary" in facts:
        words = escaped(str(facts["vocabulary"]))
        return f"Text as words: a vocabulary of {words} from the training captions"
    origin = f", {escaped(facts['vectors'])}" if "vectors" in facts else ""
    kind = "phrase" if record.task == "localisation" else "sentence"
    return f"Text as {kind} vectors: {code(facts['encoder'])}{origin}"


def _machines(board: Board) -> list[str]:
    """Where the cells were trained and scored, and with which code; each machine once."""
    lines = [line for outcome in board.outcomes for line in _machines_of(outcome)]
    return sorted(dict.fromkeys(lines), reverse=True)


def _machines_of(outcome: Outcome) -> Iterator[str]:
    for facts in outcome.trainings:
        yield f"trained on {_machine(facts)}"
    yield f"scored on {_machine(outcome.scoring)}"


def _machine(facts: Provenance) -> str:
    device = f"threads: {facts.threads}" if facts.device == "cpu" else facts.device
    return f"{facts.machine}, {device}; commit {facts.git_commit}; torch {facts.packages['torch']}"
