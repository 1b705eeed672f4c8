"""What a season says on the claims, as its claims.json has it: entries of the ledger."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.boards.claims import ClaimTest, claim_tests
from benchmark.boards.claims_file import (
    DRAWN,
    ClaimEntry,
    Leader,
    Made,
    Measured,
    RowEntry,
    SeasonClaims,
    VerdictEntry,
    column,
)
from benchmark.boards.row_settings import board_time_settings
from benchmark.core.files import json_text
from benchmark.papers.printed_tables import quantity
from benchmark.season.parameters import Declaration
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.comparisons import Comparison


def season_claims(
    params: Declaration,
    boards: Sequence[Board],
    layers: Callable[[Board], Sequence],
    folds: Sequence[Board] = (),
) -> SeasonClaims:
    """What the boards of a season say; `layers` gives the BoardLayers of a board. Those
    of `folds` are further set-ups of the claims, and rank no rows."""
    datasets = [_measured(board, layers(board)) for board in boards]
    datasets += [_measured(board, ()) for board in folds]
    return SeasonClaims(season=params.season, title=params.title, datasets=datasets)


def _measured(board: Board, layers: Sequence) -> Measured:
    tasks = () if board.fold_boards else board.by_task
    return Measured(
        dataset=board.dataset,
        title=board.title,
        split=board.card["split"],
        images=board.test_image_count,
        test_images=test_images(board),
        made=made(board),
        leaders=[leader(of_task) for of_task in tasks if of_task.ranked],
        claims=[_claim_entry(board, test, layers) for test in claim_tests(board)],
    )


def test_images(board: Board) -> str:
    """A digest of which test images a board has, and of their order: that of the raw
    files, of the split, and of the images of all queries."""
    digest = hashlib.sha256()
    for part in board.fold_boards or (board,):
        digest.update(f"{part.card['manifest']} {part.card['split']}".encode())
        groups = part.groups
        for images in (groups.of_image, *groups.image_of_query.values()):
            digest.update(np.ascontiguousarray(images, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def evidence(boards: Sequence[Board]) -> pd.DataFrame:
    """What each test image, or group of them, does to the difference of each part of a
    claim, on photographs: a row per image and dataset, a column per part (column). The
    squares of a column add up to the variance over images. NaN where a part has fewer
    terms, or is not known."""
    tables = [pd.DataFrame({"dataset": pd.Series(dtype=str)})]
    for board in boards:
        if board.card["split"] == DRAWN:
            continue
        columns = {}
        for test in claim_tests(board):
            for verdict in test.verdicts:
                noise = verdict.comparison.noise
                if noise is not None and test.is_counted:
                    name = column(test.paper, test.claim.id, verdict.part)
                    columns[name] = pd.Series(noise, dtype=np.float32)
        table = pd.DataFrame(columns)
        table.insert(0, "dataset", board.dataset)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _claim_entry(board: Board, test: ClaimTest, layers: Sequence) -> ClaimEntry:
    parts = []
    for verdict in test.verdicts:
        parts.append(VerdictEntry.of(verdict, _features(board, verdict.comparison)))
    return ClaimEntry(
        paper=test.paper,
        id=test.claim.id,
        conclusion=test.conclusion,
        on_test_set=test.on_test_set,
        reason=test.reason,
        is_elsewhere=test.is_elsewhere,
        cautions=[flags.said(flag) for flag in test.flags if not flag.blocks],
        parts=parts,
        decisive=test.verdicts.index(test.decisive) if test.verdicts else None,
        layers=_by_layers(test, layers),
    )


def _features(board: Board, comparison: Comparison) -> str:
    """A digest of the features, with their weights, that both rows read."""
    read = []
    for preset in filter(None, (comparison.first, comparison.second)):
        record = board.row(preset).record
        read.append([record.image_features, record.text_features])
    return hashlib.sha256(json_text(read).encode()).hexdigest()[:16]


def _by_layers(
    test: ClaimTest, layers: Sequence
) -> dict[str, tuple[Conclusion, Conclusion, bool]]:
    """By layer: the conclusions by `own` and by the layer, and whether it changes the
    verdict."""
    conclusions = {}
    for layer in layers:
        judged = layer.judged_claims.get((test.paper, test.claim.id))
        if judged:
            own, here = judged.own.conclusion, judged.here.conclusion
            conclusions[layer.name] = own, here, judged.is_changed
    return conclusions


def made(board: Board) -> Made:
    """How the results of a board were made, as its records and costs say."""
    trained, costs = [], []
    for row in board.rows:
        trained += [outcome for outcome in row.played if outcome.record.history]
    for outcome in board.outcomes:
        costs += [*outcome.trainings, outcome.scoring]
    epochs = sorted({len(outcome.record.epochs) for outcome in trained})
    seconds = sum(outcome.training_seconds for outcome in trained)
    return Made(
        seeds=sorted({outcome.record.seed for outcome in board.outcomes}),
        trainings=len(trained),
        epochs=[*epochs[:1], *epochs[-1:]],
        images=board.card["counts"].get("train", {}).get("images", 0),
        hours=seconds / 3600,
        settings=[str(setting) for setting in board_time_settings(board)],
        commits=sorted({each.git_commit for each in costs}),
    )


def leader(board: Board) -> Leader:
    """The rows of a board of one task, the best first."""
    ranked, rivals = board.ranked, comparisons.rivals(board)
    ranks = comparisons.rank_intervals(board)
    metric = RANKED_BY[ranked[0].task]
    heading = quantity(metric).heading
    if metric == "rsum" and len(board.ways) == 1:
        heading = f"rsum of {board.ways[0]} alone"
    places = []
    for row, of_row, ends in zip(ranked, rivals, ranks, strict=True):
        of_both = comparisons.interval(board, row, metric)
        of_images = comparisons.interval_over_images(board, row, metric)
        low, high = of_both or of_images or (None, None)
        row_flags = flags.row_flags(board, row)
        place = RowEntry(
            title=row.title,
            mean=row.mean(metric),
            rivals=of_row,
            ranks=ends,
            low=low,
            high=high,
            is_of_these_trainings=of_both is None and low is not None,
            flags={flags.NAMES[flag.letter]: flag.sentence for flag in row_flags},
        )
        places.append(place)
    return Leader(
        task=ranked[0].task,
        metric=heading,
        is_compared=comparisons.is_compared(board),
        places=places,
    )
