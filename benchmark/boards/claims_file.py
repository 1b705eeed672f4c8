"""A season's claims.json: what it says on the claims, and which of the papers' tables
and figures its pages show, as data. `of` makes each of its parts from boards.

A report writes reports/<season>/claims.json, and beside it what each test image does to
each difference (EVIDENCE); the ledger reads these files and neither records nor
Markdown, so that no season depends on another. Numbers have DIGITS significant digits.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import AfterValidator

from benchmark.boards import comparisons, flags
from benchmark.boards.board_layers import BoardLayer, board_layers
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.boards.claims import ClaimTest, claim_tests
from benchmark.boards.row_settings import board_time_settings
from benchmark.core.errors import Strict, checked, corrected_by
from benchmark.core.files import read_object
from benchmark.core.names import Name, is_reserved
from benchmark.papers.printed_tables import quantity
from benchmark.season.parameters import Declaration
from benchmark.stats.claim_kinds import ClaimKind, Conclusion, Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Flag, Limit, Rule, Size, Verdict

DIGITS = 6  # significant ones
FILE = "claims.json"
# a row per test image of a dataset of photographs, a column per part of a claim
EVIDENCE = "papers/evidence.parquet"
DRAWN = "drawn"  # split of a dataset that the code draws


def rounded(value: float) -> float:
    """To DIGITS significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _rounded_doubt(doubt: Doubt) -> Doubt:
    seeds = []
    for part in doubt.seeds:
        numbers = part.variance, part.interaction, part.freedom
        seeds.append(SeedPart(part.counts, *map(rounded, numbers), part.is_own))
    images, interaction = rounded(doubt.images), rounded(doubt.interaction)
    return Doubt(images, interaction, doubt.image_count, tuple(seeds))


SixDigits = Annotated[float, AfterValidator(rounded)]
RoundedDoubt = Annotated[Doubt, AfterValidator(_rounded_doubt)]


class VerdictEntry(Strict):
    """A Verdict on a dataset, as it is written."""

    first: str  # title
    second: str  # "": a difference of two metrics of the first
    conclusion: Conclusion
    metric: str  # heading
    decimals: int
    difference: SixDigits  # positive: the first is better
    low: SixDigits | None  # ends of the interval; None: there is none
    high: SixDigits | None
    p: SixDigits | None  # after Holm's adjustment, of a conclusion that rests on it
    is_of_these_trainings: bool  # the interval says nothing of other trainings
    printed: SixDigits | None
    margin: SixDigits
    size: Size | None
    seeds: int | None = None  # as of its Limit
    folds: int | None = None
    remedy: str = ""
    part: int = 0
    doubt: RoundedDoubt
    slopes: tuple[SixDigits, SixDigits] = (1.0, 1.0)
    favours: Side | None = None  # the side that all biases favour
    is_blocked: bool = False  # whether nothing can be concluded, whatever the numbers
    is_out_of_reach: bool = False
    features: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        comparison = verdict.comparison
        low, high = comparison.interval or (None, None)
        limit = verdict.limit or Limit(None, None)
        # Where an interval within the margin decides, the verdict rests on no p.
        rests_on_p = verdict.conclusion in verdict.rule.kind.asserted
        return cls(
            first=comparison.titles[0],
            second=comparison.titles[1],
            conclusion=verdict.conclusion,
            metric=comparison.heading,
            decimals=comparison.decimals,
            difference=comparison.difference,
            low=low,
            high=high,
            p=verdict.adjusted_p if rests_on_p else None,
            is_of_these_trainings=comparison.is_of_these_trainings and low is not None,
            printed=verdict.printed,
            margin=verdict.margin,
            size=verdict.size,
            seeds=limit.seeds,
            folds=limit.folds,
            remedy=verdict.remedy,
            part=verdict.part,
            doubt=comparison.doubt,
            slopes=verdict.slopes or (1.0, 1.0),
            favours=verdict.favoured,
            is_blocked=verdict.blocked is not None and verdict.blocked.favours is None,
            is_out_of_reach=verdict.is_out_of_reach,
            features=comparison.features,
        )

    def verdict(self, kind: ClaimKind, reason: str, **evidence: object) -> Verdict:
        """What was written, of a part of this kind; `reason` is that of its claim,
        `evidence` the images and noise of the comparison. What may favour either side
        blocks."""
        bias = Flag(
            letter="",
            sentence=self.remedy or reason,
            favours=self.favours,
            remedy=self.remedy,
            is_out_of_reach=self.is_out_of_reach,
        )
        blocked = limit = None
        if self.is_blocked:
            blocked = bias._replace(favours=None)
        elif self.favours == Side.UNKNOWN:
            blocked = bias
        elif self.conclusion == Conclusion.UNDECIDED and not self.favours:
            limit = Limit(self.seeds, self.folds)
        comparison = Comparison(
            first=self.first,
            second=self.second,
            titles=(self.first, self.second),
            heading=self.metric,
            decimals=self.decimals,
            difference=self.difference,
            doubt=self.doubt,
            written=None if self.low is None else (self.low, self.high),
            is_of_these_trainings=self.is_of_these_trainings,
            features=self.features,
            **evidence,
        )
        return Verdict(
            comparison=comparison,
            rule=Rule(kind=kind, margin=self.margin),
            part=self.part,
            printed=self.printed,
            blocked=blocked,
            biases=(bias,) if self.favours else (),
            slopes=None if self.size is None else self.slopes,
            conclusion=self.conclusion,
            adjusted_p=self.p,
            size=self.size,
            limit=limit,
        )


class ByLayer(NamedTuple):
    """Conclusions on the queries and in the directions of a layer of relevance."""

    own: Conclusion  # by the captions' own images
    here: Conclusion  # by the layer
    is_changed: bool


class ClaimEntry(Strict):
    """The verdict on a claim, on a dataset of a season."""

    paper: str
    id: str
    conclusion: Conclusion
    reason: str
    is_elsewhere: bool  # the sentence names another dataset: shown, not counted
    cautions: list[str]  # flags.said of what speaks against trusting it
    parts: list[VerdictEntry]  # those that were run
    # the part whose conclusion is that of the claim; None: none was run
    decisive: int | None
    on_test_set: Conclusion  # for other trainings
    layers: dict[str, ByLayer] = {}  # by name, beside `own`

    @classmethod
    def of(cls, test: ClaimTest, layers: Sequence[BoardLayer] = ()) -> Self:
        by_layers = {}
        for layer in layers:
            judged = layer.judged_claims.get((test.paper, test.claim.id))
            if judged:
                own, here = judged.own.conclusion, judged.here.conclusion
                by_layers[layer.name] = ByLayer(own, here, judged.is_changed)
        return cls(
            paper=test.paper,
            id=test.claim.id,
            conclusion=test.conclusion,
            on_test_set=test.on_test_set,
            reason=test.reason,
            is_elsewhere=test.is_elsewhere,
            cautions=list(map(flags.said, test.cautions)),
            parts=list(map(VerdictEntry.of, test.verdicts)),
            decisive=test.verdicts.index(test.decisive) if test.verdicts else None,
            layers=by_layers,
        )


class RowEntry(Strict):
    """Where a row stands."""

    title: str
    mean: SixDigits  # of the metric that ranks
    rivals: list[int]  # ranks, from 1, of the rows that are not significantly different
    ranks: tuple[int, int]  # the best and the worst that it could have
    low: SixDigits | None = None  # ends of the interval; None: there is none
    high: SixDigits | None = None
    is_of_these_trainings: bool = False  # the interval says nothing of other trainings
    flags: dict[str, str] = {}  # name -> sentence

    @property
    def knows(self) -> list[str]:
        """Its flags that say that it knows more than others."""
        return [name for name in flags.FLATTERING if name in self.flags]


class Leader(Strict):
    """The best row of a task, and those below it."""

    task: str
    metric: str
    is_compared: bool  # whether any two rows could differ significantly
    places: list[RowEntry]  # of all rows with a result, the best first

    @classmethod
    def of(cls, board: Board) -> Self:
        """Of a board of one task."""
        task = board.ranked[0].task
        metric = RANKED_BY[task]
        heading = quantity(metric).heading
        if metric == "rsum" and len(board.ways) == 1:
            heading = f"rsum of {board.ways[0]} alone"
        rivals, ranks = comparisons.rivals(board), comparisons.rank_intervals(board)
        places = []
        for row, of_row, ends in zip(board.ranked, rivals, ranks, strict=True):
            interval, is_of_these = comparisons.known_interval(board, row, metric)
            low, high = interval or (None, None)
            row_flags = flags.row_flags(board, row)
            place = RowEntry(
                title=row.title,
                mean=row.mean(metric),
                rivals=of_row,
                ranks=ends,
                low=low,
                high=high,
                is_of_these_trainings=is_of_these,
                flags={flags.NAMES[flag.letter]: flag.sentence for flag in row_flags},
            )
            places.append(place)
        is_compared = comparisons.is_compared(board)
        return cls(task=task, metric=heading, is_compared=is_compared, places=places)

    @property
    def best(self) -> RowEntry:
        return self.places[0]

    @property
    def fair(self) -> RowEntry | None:
        """The best row that knows no more than others."""
        return next((place for place in self.places if not place.knows), None)

    def like(self, place: RowEntry) -> list[RowEntry]:
        """The other rows that are not significantly different from one."""
        return [self.places[rank - 1] for rank in place.rivals]


def feature_levels(leaders: Sequence[Leader]) -> list[float]:
    """How strong the features of each board are: the mean of the rows that all have, or
    its best row without such rows."""
    titles = [{place.title for place in leader.places} for leader in leaders]
    shared = set.intersection(*titles) if titles else set()
    levels = []
    for leader in leaders:
        means = [place.mean for place in leader.places if place.title in shared]
        levels.append(fmean(means or [leader.best.mean]))
    return levels


class Made(Strict):
    """How the results on a dataset were made, as its records and costs say."""

    seeds: list[int]
    trainings: int
    # of the shortest and of the longest training; empty: there is none
    epochs: list[int]
    images: int  # of the training split
    hours: SixDigits  # of all trainings, one after the other
    # in which times were measured; tables of costs count them from 1
    settings: list[str]
    commits: list[str]  # of the code

    @classmethod
    def of(cls, board: Board) -> Self:
        trained, costs = [], []
        for row in board.rows:
            trained += [outcome for outcome in row.played if outcome.record.history]
        for outcome in board.outcomes:
            costs += [*outcome.trainings, outcome.scoring]
        epochs = sorted({len(outcome.record.epochs) for outcome in trained})
        return cls(
            seeds=sorted({outcome.record.seed for outcome in board.outcomes}),
            trainings=len(trained),
            epochs=[*epochs[:1], *epochs[-1:]],
            images=board.card["counts"].get("train", {}).get("images", 0),
            hours=sum(outcome.training_seconds for outcome in trained) / 3600,
            settings=[str(setting) for setting in board_time_settings(board)],
            commits=sorted({each.git_commit for each in costs}),
        )


class Measured(Strict):
    """A dataset of a season."""

    dataset: Name
    title: str
    split: str  # its name; two may have as many test images
    images: int  # of the test split
    test_images: str  # digest of which ones these are
    made: Made
    leaders: list[Leader]
    claims: list[ClaimEntry]

    @classmethod
    def of(cls, board: Board, layers: Sequence[BoardLayer] = ()) -> Self:
        """Folds, which are further set-ups of the claims, rank no rows."""
        tasks = () if board.fold_boards else board.by_task
        return cls(
            dataset=board.dataset,
            title=board.title,
            split=board.card["split"],
            images=board.test_image_count,
            test_images=digest_of_images(board),
            made=Made.of(board),
            leaders=[Leader.of(of_task) for of_task in tasks if of_task.ranked],
            claims=[ClaimEntry.of(test, layers) for test in claim_tests(board)],
        )

    @property
    def is_drawn(self) -> bool:
        """Whether its images are no photographs."""
        return self.split == DRAWN

    @property
    def is_of_folds(self) -> bool:
        """Whether it is the further folds of a dataset."""
        return is_reserved(self.dataset)

    @property
    def of_retrieval(self) -> Leader | None:
        return next((each for each in self.leaders if each.task == "retrieval"), None)


class PageContents(Strict):
    """What a page shows of the papers."""

    path: str  # from the folder of the season's report
    tables: dict[str, list[str]] = {}  # paper -> numbers of its tables
    # names of figures (ReportFigure.name); of a gallery <preset>-found
    figures: list[str] = []

    def has(self, paper: str, number: str) -> bool:
        return number in self.tables.get(paper, ())

    def draws(self, pattern: str) -> bool:
        """Whether it has a figure whose whole name matches, as papers name theirs."""
        return any(re.fullmatch(pattern, name) for name in self.figures)


class SeasonClaims(Strict):
    """A season's claims.json."""

    season: Name
    title: str
    datasets: list[Measured]
    pages: list[PageContents] = []  # those that show something of the papers, by path

    @classmethod
    def of(
        cls, params: Declaration, boards: Sequence[Board], folds: Sequence[Board]
    ) -> Self:
        datasets = [Measured.of(board, board_layers(board)) for board in boards]
        datasets += map(Measured.of, folds)
        return cls(season=params.season, title=params.title, datasets=datasets)


def digest_of_images(board: Board) -> str:
    """Which test images a board has, and their order: those of the raw files, of the
    split, and of all queries."""
    digest = hashlib.sha256()
    for part in board.fold_boards or (board,):
        digest.update(f"{part.card['manifest']} {part.card['split']}".encode())
        groups = part.groups
        for images in (groups.of_image, *groups.image_of_query.values()):
            digest.update(np.ascontiguousarray(images, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


# Evidence -----------------------------------------------------------------------------


def column(paper: str, claim: str, part: int) -> str:
    """Of EVIDENCE: a part of a claim, from 0."""
    return f"{paper}/{claim}/{part}"


def evidence(boards: Sequence[Board]) -> pd.DataFrame:
    """What each test image, or group of them, does to the difference of each part of a
    claim, on photographs: a row per image and dataset, a column per part. The squares
    of a column add up to the variance over images; NaN where a part has fewer terms."""
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
        if columns:
            tables.append(pd.DataFrame({"dataset": board.dataset} | columns))
    return pd.concat(tables, ignore_index=True)


def read_evidence(folder: Path, season: str) -> pd.DataFrame:
    """Of a season's report, by dataset; empty where it has none."""
    path = folder / season / EVIDENCE
    if not path.is_file():
        return pd.DataFrame({"dataset": []})
    return pd.read_parquet(path)


def read_seasons(folder: Path, season: str = "*") -> list[SeasonClaims]:
    """Those of a folder, by name, or of one season. Raises UserError."""
    seasons = []
    for path in sorted(folder.glob(f"{season}/{FILE}")):
        with corrected_by(f"rematch report --season {path.parent.name}"):
            seasons.append(checked(SeasonClaims, read_object(path), str(path)))
    return seasons
