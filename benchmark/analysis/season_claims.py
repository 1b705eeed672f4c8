"""What a season says on the claims, as data: reports/<season>/claims.json.

The ledger of all seasons reads these files and no records, so that no season depends on another.
Numbers are rounded to DIGITS significant digits. Knows no torch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.analysis import comparisons, ranking, validity
from benchmark.analysis.boards import RANKED_BY, Board, Standing
from benchmark.analysis.claims import Verdict
from benchmark.analysis.verdict_rules import Conclusion, Size
from benchmark.core.errors import UserError, checked, corrected_by
from benchmark.core.json_objects import read_object
from benchmark.core.names import Name
from benchmark.papers.claimed_quantities import quantity
from benchmark.season.parameters import Params, Strict

FILE = "claims.json"
DIGITS = 6
DRAWN = "drawn"  # split of a dataset that the code draws
CONVERGED, SEEDS = "C", "S"  # letters of validity.MARKS


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
    cautions: list[str]
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
        return [of.title for of in self.places[1:] if not are_apart(of, self.best)]


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
        """Whether its pictures are drawn by the code, no photographs."""
        return self.split == DRAWN


class SeasonClaims(Strict):
    """A season's claims.json."""

    season: Name
    title: str
    commits: list[str]  # of the code, as its records name them
    versions: list[str]  # of torch
    datasets: list[Measured]


def are_apart(one: Place, other: Place) -> bool:
    """Whether two rows of a board can be told apart (ranking.py)."""
    return set(one.letters).isdisjoint(other.letters)


def season_claims(
    params: Params, boards: Sequence[Board], verdicts: Mapping[str, Sequence[Verdict]]
) -> SeasonClaims:
    """What the boards of a season say, each with its verdicts by dataset."""
    runs = [
        facts
        for board in boards
        for outcome in board.outcomes
        for facts in (*outcome.trainings, outcome.scoring)
    ]
    return SeasonClaims(
        season=params.season,
        title=params.title,
        commits=sorted({facts.git_commit for facts in runs}),
        versions=sorted({facts.packages["torch"] for facts in runs}),
        datasets=[_measured(board, verdicts[board.dataset]) for board in boards],
    )


def read_seasons(folder: Path) -> list[SeasonClaims]:
    """Every <season>/claims.json of a folder, by name. Raises UserError for one that is none."""
    paths = sorted(folder.glob(f"*/{FILE}"))
    seasons = []
    for path in paths:
        with corrected_by(f"python -m benchmark report --season {path.parent.name}"):
            said = checked(SeasonClaims, read_object(path), str(path))
            if said.season != path.parent.name:
                folder_name = repr(path.parent.name)
                raise UserError(f"{path}: season", folder_name, repr(said.season), "write it again")
            seasons.append(said)
    return seasons


def _measured(board: Board, verdicts: Sequence[Verdict]) -> Measured:
    of_tasks = (board.retrieval, board.localisation)
    return Measured(
        dataset=board.dataset,
        title=board.card["title"],
        split=board.card["split"],
        images=board.card["counts"]["test"]["images"],
        leaders=[_leader(of_task) for of_task in of_tasks if of_task.ranked],
        budgets={standing.row.title: _budget(standing) for standing in board.standings},
        claims=[_judged(verdict) for verdict in verdicts],
    )


def _budget(standing: Standing) -> dict[str, str]:
    """Options that the season set to fit its budget, with their values."""
    record = standing.outcomes[0].record
    return {name: str(record.options[name]) for name in record.scaled if name in record.options}


def _leader(board: Board) -> Leader:
    best = board.ranked[0]
    metric = RANKED_BY[best.task]
    ends = comparisons.interval(board, best, metric)
    shown = [validity.marks(board, standing) for standing in board.ranked]
    return Leader(
        task=best.task,
        metric=_heading(board, metric),
        low=_rounded(ends[0]) if ends else None,
        high=_rounded(ends[1]) if ends else None,
        is_compared=ranking.is_compared(board),
        places=[
            Place(title=standing.row.title, mean=_rounded(standing.mean(metric)), letters=letters)
            for standing, letters in zip(board.ranked, ranking.rank_letters(board), strict=True)
        ],
        unconverged=sum(CONVERGED in of_row for of_row in shown),
        few_seeds=sum(SEEDS in of_row for of_row in shown),
        lacks=validity.lacks(shown[0]),
    )


def _heading(board: Board, metric: str) -> str:
    """Of the metric; of rsum with its direction where there is only one."""
    is_alone = metric == "rsum" and len(board.ways) == 1
    return f"{metric} of {board.ways[0]} alone" if is_alone else quantity(metric).heading


def _judged(verdict: Verdict) -> Judged:
    return Judged(
        paper=verdict.paper,
        id=verdict.claim.id,
        conclusion=verdict.conclusion,
        reason=verdict.reason,
        is_elsewhere=verdict.is_elsewhere,
        cautions=verdict.cautions,
        compared=_compared(verdict) if verdict.tested else None,
    )


def _compared(verdict: Verdict) -> Compared:
    decisive = verdict.decisive
    comparison = decisive.comparison
    low, high = comparison.interval or (None, None)
    return Compared(
        first=comparison.titles[0],
        second=comparison.titles[1],
        pairs=len(verdict.tested),
        metric=quantity(verdict.claim.metric).heading,
        decimals=quantity(verdict.claim.metric).decimals,
        difference=_rounded(comparison.difference),
        low=_rounded(low),
        high=_rounded(high),
        p=_rounded(_p(verdict)),
        is_of_these_trainings=comparison.is_of_these_trainings and low is not None,
        printed=_rounded(decisive.printed),
        margin=_rounded(decisive.rule.margin),
        size=decisive.size,
        **_needs(verdict),
    )


def _p(verdict: Verdict) -> float | None:
    """Adjusted; None where the verdict does not rest on it, as where an interval within the margin
    decides."""
    decisive = verdict.decisive
    asserted = decisive.rule.asserted(decisive.comparison.difference)
    return decisive.on_other_images.adjusted_p if verdict.conclusion == asserted else None


def _needs(verdict: Verdict) -> dict[str, int | None]:
    """What decides every undecided pair of an undecided claim; None of what would not decide one of
    them."""
    is_open = verdict.conclusion == Conclusion.UNDECIDED
    limits = verdict.limits if is_open else []
    seeds = [limit and limit.seeds for limit in limits]
    images = [limit and limit.images for limit in limits]
    return {
        "seeds": max(seeds) if limits and None not in seeds else None,
        "images": max(images) if limits and None not in images else None,
        "seeds_beside": max((limit.seeds_beside for limit in limits if limit), default=0),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
