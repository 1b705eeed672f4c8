"""Why a part of a claim was not run on a board."""

from collections.abc import Sequence

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import Board, Row
from benchmark.boards.encoders import other_encoder, reads_other_words
from benchmark.papers.printed_tables import Claim, Part, quantity, title_of
from benchmark.stats.verdicts import Flag


def not_run(board: Board, claim: Claim, part: Part) -> Flag | None:
    """Why a part of a claim was not run on a board; None where it was."""
    reason = claim.unplayed.removesuffix(".")
    if not reason:
        reason = _missing_row(board, claim, part)
    if not reason:
        rows = [board.row(preset) for preset in part.presets]
        reason = _other_weights(board, claim, rows) or _too_alike(rows)
    return flags.NOT_RUN.flag(reason, blocks=True) if reason else None


def _missing_row(board: Board, claim: Claim, part: Part) -> str:
    """A row that is not there, has no result, or was run with other settings than the
    claim is about."""
    for preset in part.presets:
        row = board.row(preset)
        if row is None:
            return f"{title_of(preset)} was not run"
        if not row.played:
            status = row.record.status.replace("_", " ")
            return f"{row.title}: {status}: {row.record.reason}"
        if not comparisons.usable(row, part.metric):
            return f"{quantity(part.metric).heading} of {row.title} was not measured"
        for name, wanted in claim.settings.items():
            others = _other_values(board, row, name, wanted)
            if others:
                return f"{row.title} was run with {' and '.join(others)} {name}"
    return ""


def _other_values(board: Board, row: Row, name: str, wanted: str | float) -> list[str]:
    """The values of an option, in the trainings of a row, that a claim is not about."""
    values = set()
    for preset in comparisons.trainings_of(board, row):
        trained = comparisons.known(board, preset)
        options = trained.record.options if trained else {}
        if options.get(name) != wanted:
            values.add(str(options.get(name, "another")))
    return sorted(values)


def _other_weights(board: Board, claim: Claim, rows: Sequence[Row]) -> str:
    """A claim about trained weights is not tested with random ones nor, where one side
    alone reads word vectors, with vectors that were trained on the captions at hand."""
    if not claim.weights:
        return ""
    random = [
        row.title
        for row in rows
        if flags.has_flag(board, row, flags.RANDOM_TEXT_ENCODER)
    ]
    if random:
        return f"{' and '.join(random)} was run with a random text encoder"
    words = [
        row.title for row in rows if not row.is_own and reads_other_words(row.record)
    ]
    if 0 < len(words) < len(rows):
        return f"{' and '.join(words)} was run with other word vectors"
    return ""


def _too_alike(rows: Sequence[Row]) -> str:
    """What a paper compares under one method must differ here, too, and be its own."""
    if len({row.method for row in rows}) > 1:
        return ""
    if len({row.declared.sentence for row in rows}) > 1:
        for row in rows:
            if other := other_encoder(row):
                return f"{row.title} was run with {other}"
    networks = {row.network for row in rows}
    in_paper = {row.declared.network for row in rows}
    if len(in_paper) > 1 and len(networks) == 1 and None not in networks:
        return f"all were run with {networks.pop()}"
    return ""
