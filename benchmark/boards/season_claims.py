"""What a season says on the claims, as data: reports/<season>/claims.json.

The ledger of all seasons reads these files and no records, so that no season depends on another.
Numbers are rounded to DIGITS significant digits.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import RANKED_BY, Board
from benchmark.boards.claims import Verdict
from benchmark.core.errors import checked, corrected_by
from benchmark.core.files import read_object
from benchmark.core.names import Name
from benchmark.papers.claimed_quantities import quantity
from benchmark.season.parameters import Params, Strict
from benchmark.stats.verdicts import Conclusion, Size

FILE = "claims.json"
DIGITS = 6
DRAWN = "drawn"  # split of a dataset that the code draws


class Compared(Strict):
    """The comparison that decides a claim on a dataset."""

    first: str
    second: str  # "": a difference of two metrics of the first
    pairs: int  # of the claim; the one that decides is this one
    metric: str  # heading
    decimals: int
    difference: float  # positive: the first is better
    low: float | None  # ends of the 95% interval; None: there is none
    high: float | None
    p: float | None  # after Holm's adjustment, of a conclusion that rests on it
    is_of_these_trainings: bool  # the interval says nothing of other trainings
    printed: float | None
    margin: float
    size: Size | None
    seeds: int | None = None  # further trainings that would decide it
    images: int | None = None  # test images that would decide it
    seeds_beside: int = 0  # further trainings that these images need


class Judged(Strict):
    """The verdict on a claim."""

    paper: str
    id: str
    conclusion: Conclusion
    reason: str
    is_elsewhere: bool  # the sentence names another dataset
    cautions: list[str]  # flags.said of what speaks against trusting it
    compared: Compared | None  # None: it was not run


class Place(Strict):
    """Where a row stands."""

    title: str
    mean: float  # of the metric that ranks
    letters: str  # rows that share none can be told apart


class Leader(Strict):
    """The best row of a task, and those below it."""

    task: str
    metric: str
    low: float | None  # ends of the 95% interval of the best; None: there is none
    high: float | None
    is_compared: bool  # whether any two rows could be told apart
    places: list[Place]  # of all rows with a result, the best first
    unconverged: int  # of these
    few_seeds: int  # of these
    lacks: list[str]  # what speaks against trusting the best row itself

    @property
    def best(self) -> Place:
        return self.places[0]

    @property
    def rows(self) -> int:
        return len(self.places)

    @property
    def rivals(self) -> list[str]:
        """Titles of the rows that cannot be told apart from the best."""
        best = set(self.best.letters)
        return [place.title for place in self.places[1:] if best & set(place.letters)]


class Measured(Strict):
    """A dataset of a season."""

    dataset: Name
    title: str
    split: str  # its name; two may have as many test images
    images: int  # of the test split
    leaders: list[Leader]
    budgets: dict[str, dict[str, str]]  # title of a row -> options that the season set
    claims: list[Judged]

    @property
    def is_drawn(self) -> bool:
        """Whether its images are drawn by the code, no photographs."""
        return self.split == DRAWN


class SeasonClaims(Strict):
    """A season's claims.json."""

    season: Name
    title: str
    commits: list[str]  # of the code, as its records name them
    versions: list[str]  # of torch
    datasets: list[Measured]


def season_claims(
    params: Params, boards: Sequence[Board], verdicts: Mapping[str, Sequence[Verdict]]
) -> SeasonClaims:
    """What the boards of a season say, each with its verdicts by dataset."""
    outcomes = [outcome for board in boards for outcome in board.outcomes]
    runs = [facts for outcome in outcomes for facts in (*outcome.trainings, outcome.scoring)]
    return SeasonClaims(
        season=params.season,
        title=params.title,
        commits=sorted({facts.git_commit for facts in runs}),
        versions=sorted({facts.packages["torch"] for facts in runs}),
        datasets=[_measured(board, verdicts[board.dataset]) for board in boards],
    )


def read_seasons(folder: Path) -> list[SeasonClaims]:
    """Every <season>/claims.json of a folder, by name. Raises UserError for one that is none."""
    seasons = []
    for path in sorted(folder.glob(f"*/{FILE}")):
        with corrected_by(f"rematch report --season {path.parent.name}"):
            seasons.append(checked(SeasonClaims, read_object(path), str(path)))
    return seasons


def _measured(board: Board, verdicts: Sequence[Verdict]) -> Measured:
    budgets = {}
    for row in board.rows:
        options = row.record.options
        budgets[row.title] = {n: str(options[n]) for n in row.record.scaled if n in options}
    return Measured(
        dataset=board.dataset,
        title=board.title,
        split=board.card["split"],
        images=board.card["counts"]["test"]["images"],
        leaders=[_leader(of) for of in (board.retrieval, board.localisation) if of.ranked],
        budgets=budgets,
        claims=[
            Judged(
                paper=verdict.paper,
                id=verdict.claim.id,
                conclusion=verdict.conclusion,
                reason=verdict.reason,
                is_elsewhere=verdict.is_elsewhere,
                cautions=[flags.said(flag) for flag in verdict.flags if not flag.blocks],
                compared=compared(verdict) if verdict.pairs else None,
            )
            for verdict in verdicts
        ],
    )


def _leader(board: Board) -> Leader:
    """Of a board of one task."""
    ranked, letters = board.ranked, comparisons.rank_letters(board)
    metric = RANKED_BY[ranked[0].task]
    is_alone = metric == "rsum" and len(board.ways) == 1
    low, high = comparisons.interval(board, ranked[0], metric) or (None, None)
    flagged = [flags.letters(flags.row_flags(board, row)) for row in ranked]
    return Leader(
        task=ranked[0].task,
        metric=f"rsum of {board.ways[0]} alone" if is_alone else quantity(metric).heading,
        low=_rounded(low),
        high=_rounded(high),
        is_compared=comparisons.is_compared(board),
        places=[
            Place(title=row.title, mean=_rounded(row.mean(metric)), letters=of_row)
            for row, of_row in zip(ranked, letters, strict=True)
        ],
        unconverged=sum("C" in of_row for of_row in flagged),
        few_seeds=sum("S" in of_row for of_row in flagged),
        lacks=[flags.NAMES[letter] for letter in flagged[0]],
    )


def compared(verdict: Verdict) -> Compared:
    """The comparison that decides a claim which was run."""
    decisive, metric = verdict.decisive, quantity(verdict.claim.metric)
    comparison = decisive.comparison
    low, high = comparison.interval or (None, None)
    # No p where the verdict does not rest on it, as where an interval within the margin decides.
    is_asserted = verdict.conclusion == decisive.rule.asserted(comparison.difference)
    # What decides every undecided pair; None of what would not decide one of them.
    limits = verdict.limits if verdict.conclusion == Conclusion.UNDECIDED else []
    seeds, images = ([limit and limit[part] for limit in limits] for part in (0, 1))
    return Compared(
        first=comparison.titles[0],
        second=comparison.titles[1],
        pairs=len(verdict.pairs),
        metric=metric.heading,
        decimals=metric.decimals,
        difference=_rounded(comparison.difference),
        low=_rounded(low),
        high=_rounded(high),
        p=_rounded(decisive.adjusted_p if is_asserted else None),
        is_of_these_trainings=comparison.is_of_these_trainings and low is not None,
        printed=_rounded(decisive.printed),
        margin=_rounded(decisive.margin),
        size=decisive.size,
        seeds=max(seeds) if limits and None not in seeds else None,
        images=max(images) if limits and None not in images else None,
        seeds_beside=max((limit.seeds_beside for limit in limits if limit), default=0),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
