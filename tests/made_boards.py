"""What seasons said of claims, made up, for tests of the ledger."""

import builders
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.boards import claim_ledger, claims_file
from benchmark.data.results import Histograms
from benchmark.papers.printed_tables import papers
from benchmark.report.figures.intervals import Look
from benchmark.stats.claim_kinds import Conclusion
from benchmark.stats.significance import Doubt
from benchmark.stats.verdicts import Size

CLAIM = papers()["scan"].claims[0]
HOSTILE = (
    "_a_ $x^2$ $\\frac{$ <script>x</script> & %d \\\n\r\tnew line \N{DOG FACE} ]]> \x07"
)
LONG = "word " * 80 + "x" * 200
NAMES = (HOSTILE, LONG, "")
IMAGES = 30
HISTORY = pd.DataFrame(
    {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.9], "val_rsum": [10.0, 30.0, 20.0]}
)
LOOK = Look(title="l", colour="black")


def compared(**facts: object) -> claims_file.VerdictEntry:
    """2 points of 4 that are printed."""
    known = {"first": "A", "second": "B", "metric": "rsum", "decimals": 1}
    known["conclusion"] = Conclusion.HOLDS
    known |= {"difference": 2.0, "low": 1.0, "high": 3.0, "p": None, "printed": 4.0}
    known |= {"is_of_these_trainings": False, "margin": 1.5, "size": Size.SMALLER}
    error = 1 / 1.96
    known["doubt"] = Doubt(
        images=error**2, interaction=0.0, image_count=10**6, seeds=()
    )
    return claims_file.VerdictEntry(**(known | facts))


def judged(
    conclusion: str, claim: str = CLAIM.id, /, **facts: object
) -> claims_file.ClaimEntry:
    is_run = conclusion != Conclusion.NOT_RUN
    part = {"conclusion": Conclusion(conclusion)} | facts
    return claims_file.ClaimEntry(
        paper="scan",
        id=claim,
        conclusion=Conclusion(conclusion),
        reason="the reason",
        on_test_set=Conclusion(conclusion),
        is_elsewhere=False,
        cautions=["not converged: A"] if is_run else [],
        parts=[compared(**part)] if is_run else [],
        decisive=0 if is_run else None,
    )


def places(rows: dict[str, tuple[float, list[int]]]) -> list[claims_file.RowEntry]:
    """title -> mean and ranks of rivals; the interval is ten points to both sides."""
    facts = {"flags": {"extra input": "x", "best early": "y"}, "ranks": (1, 4)}
    return [
        claims_file.RowEntry(
            title=title, mean=mean, rivals=own, low=mean - 10, high=mean + 10, **facts
        )
        for title, (mean, own) in rows.items()
    ]


def made() -> claims_file.Made:
    facts = {
        "trainings": 4,
        "epochs": [3, 9],
        "images": 1000,
        "hours": 2.5,
        "commits": ["abc+"],
    }
    facts |= {"seeds": [0, 1], "settings": ["a machine"]}
    return claims_file.Made(**facts)


def season(
    name: str, *claims: claims_file.ClaimEntry, **facts: object
) -> claims_file.SeasonClaims:
    """Its dataset is its own unless the facts name one."""
    leader = claims_file.Leader(
        task="retrieval",
        metric="rsum",
        is_compared=True,
        places=places(
            {
                "A | b": (200.0, [2]),
                "B": (195.0, [1, 3]),
                "C": (80.0, [2]),
                "D": (9, []),
            }
        ),
    )
    known = {"title": f"Data of {name}", "dataset": f"d_{name}", "images": 1000}
    known |= {"split": "official", "test_images": f"of {name}"}
    known["made"] = made()
    measured = claims_file.Measured(
        leaders=[leader], claims=list(claims), **(known | facts)
    )
    return claims_file.SeasonClaims(
        season=name, title=f"Season {name}", datasets=[measured]
    )


def row_of_first_claim(*claims: claims_file.ClaimEntry) -> claim_ledger.LedgerRow:
    told = [season(f"s{number}", claim) for number, claim in enumerate(claims)]
    return next(
        r
        for r in claim_ledger.ledger(told)
        if (r.paper, r.claim.id) == ("scan", CLAIM.id)
    )


def at_level(name: str, verdict: str, level: float) -> claims_file.SeasonClaims:
    """A season whose best row in retrieval has this level."""
    told = season(name, judged(verdict), title="Photos")
    (data,) = told.datasets
    (leader,) = data.leaders
    best = leader.places[0].model_copy(update={"mean": level})
    leader = leader.model_copy(update={"places": [best, *leader.places[1:]]})
    data = data.model_copy(update={"leaders": [leader]})
    return told.model_copy(update={"datasets": [data]})


# Boards -------------------------------------------------------------------------------


def enter_made(tmp_path, monkeypatch) -> None:
    """A working folder with the dataset of the boards."""
    monkeypatch.chdir(tmp_path)
    builders.prepare("made", np.arange(IMAGES))


def histograms(matched: np.ndarray, unmatched: np.ndarray) -> Histograms:
    edges = np.linspace(-1, 1, 1001)
    return Histograms(
        edges=edges,
        matched=np.histogram(matched, edges)[0],
        unmatched=np.histogram(unmatched, edges)[0],
    )


def row(preset: str, *shares: float, title: str | None = None, **facts: object):
    """One training per share of the queries that find their item in the first
    position."""
    outcomes = []
    for seed, share in enumerate(shares):
        ranks = np.where(np.arange(IMAGES) < share * IMAGES, 0, 12)
        metrics = {"overlap_s": 1 - share, "one_minus_ks": 1.1 - share}
        given = {
            "ranks": {"i2t": ranks, "t2i": ranks},
            "seconds": {"per_image": 1e-3, "per_pair": 1e-5},
            "images": IMAGES,
            "captions": IMAGES,
            "metrics": metrics | {"mean_matched": share, "mean_unmatched": 0.1},
            "selected_epoch": 2,
            "history": HISTORY,
        }
        outcomes.append(builders.outcome(preset, seed, **(given | facts)))
    return builders.standing(preset, outcomes, title or preset)


def board(*rows):
    return builders.board(
        *rows, title="Made", ways=["i2t", "t2i"], reader="shapes", split="drawn"
    )


def points_of_marker(axes: Axes, marker: str) -> list[list[float]]:
    drawn = [line.get_xydata() for line in axes.lines if line.get_marker() == marker]
    return np.concatenate(drawn).tolist() if drawn else []


def titles(figure: Figure) -> list[str]:
    """Of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]
