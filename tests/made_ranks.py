"""Made-up cells with ranks, for tests of comparisons, and naive loops over their
queries; made-up results whose true difference is known, for simulations of `judge`."""

from functools import cache
from typing import NamedTuple

import builders
import numpy as np
import pandas as pd
from builders import standing
from scipy import stats

from benchmark.boards.boards import Outcome, Row
from benchmark.commands.judged_results import Question, of_files
from benchmark.commands.result_files import KEY, SAME, Kind, Result
from benchmark.stats import significance
from benchmark.stats.claim_kinds import ORDERED, Conclusion
from benchmark.stats.verdicts import judge as conclude

CUTOFFS = (1, 5, 10)
EACH = [1, 3, 2, 5, 1, 2, 4, 2, 3, 2] * 4  # captions of each image
IMAGES, CAPTIONS = len(EACH), sum(EACH)
OWNER = np.repeat(np.arange(IMAGES), EACH)
WITH_SIBLING = np.flatnonzero(np.array(EACH)[OWNER] > 1)
LEVEL = {"hits": 0.4, "ranks": 1.0, "values": 0.0}
STEP = {"hits": 0.05, "ranks": 0.25, "values": 0.15}
DRAWN = 400_000  # queries that tell the true value
METRIC = {"ranks": "r5"}
# the luck of a training with a query
LEFT = float(np.sqrt(1 - 0.6**2 - 0.4**2 - 0.5**2))


def prepare() -> None:
    """A prepared dataset whose test split comes after two training images."""
    builders.prepare("made", OWNER, trained=2)


def ranks_of(rng: np.random.Generator, quality: float) -> dict[str, np.ndarray]:
    # an image that is hard is so for all its queries
    hard = rng.exponential(4, IMAGES) / quality
    owners = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    return {way: rng.poisson(hard[owner]) for way, owner in owners.items()}


def any_ranks() -> dict[str, np.ndarray]:
    return ranks_of(np.random.default_rng(0), 1.0)


def outcome(
    preset: str, seed: int, ranks: dict[str, np.ndarray], **changes: object
) -> Outcome:
    """A cell with these ranks; metrics and seconds may be changed, or its status."""
    return builders.outcome(preset, seed, ranks=ranks, **changes)


def played(preset: str, quality: float, seeds: tuple[int, ...] = (0, 1, 2)) -> Row:
    # seeds share what is hard, as presets do
    ranks = {seed: ranks_of(np.random.default_rng(seed), quality) for seed in seeds}
    return standing(
        preset, [outcome(preset, seed, drawn) for seed, drawn in ranks.items()]
    )


def varied(preset: str, qualities: list[float], **changes: object) -> Row:
    cells = []
    # one generator: the same images
    for seed, quality in enumerate(qualities):
        ranks = ranks_of(np.random.default_rng(0), quality)
        moved = {way: r + seed for way, r in ranks.items()}
        cells.append(outcome(preset, seed, moved, **changes))
    return standing(preset, cells)


def timed(preset: str, seconds: list[float], name: str = "per_pair") -> Row:
    ranks = any_ranks()
    return standing(
        preset,
        [
            outcome(preset, seed, ranks, seconds={name: s})
            for seed, s in enumerate(seconds)
        ],
    )


def queries_of(cell: Outcome, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per recall: images, and values in percent."""
    images = {"i2t": np.arange(IMAGES), "t2i": OWNER, "s2s": OWNER[WITH_SIBLING]}
    recalls = [(way, k) for way in ("i2t", "t2i") for k in CUTOFFS]
    if metric != "rsum":
        recalls = [metric.split("_r")]
    return [(images[way], 100.0 * (cell.ranks(way) < int(k))) for way, k in recalls]


def noise_of_images(
    preset: Row, metric: str, seeds: tuple[int, ...] | None = None
) -> np.ndarray:
    """What each image does to the mean of the trainings, by a loop."""
    cells = [
        cell for cell in preset.played if seeds is None or cell.record.seed in seeds
    ]
    return np.mean([of_training(cell, metric) for cell in cells], axis=0)


def of_training(cell: Outcome, metric: str) -> np.ndarray:
    """A sum over recalls of (hits - queries x recall) / all queries, (IMAGES,)."""
    left = np.zeros(IMAGES)
    for owner, hits in queries_of(cell, metric):
        for image, value in zip(owner, hits, strict=True):
            left[image] += (value - hits.mean()) / len(hits)
    asked = len(np.unique(owner))
    return left * np.sqrt(asked / (asked - 1))


def interaction_of(preset: Row, metric: str) -> float:
    mean = noise_of_images(preset, metric)
    squares = [
        ((of_training(cell, metric) - mean) ** 2).sum() for cell in preset.played
    ]
    return sum(squares) / (len(squares) - 1)


def expected_interval(
    owner: np.ndarray, values: np.ndarray, span: float
) -> tuple[float, float]:
    """Wilson's of a mean over queries, with the variance over their owners."""
    owners = np.unique(owner)
    left = [(values[owner == o] - values.mean()).sum() / len(values) for o in owners]
    square = sum(x * x for x in left) * len(owners) / (len(owners) - 1)
    return significance.score_interval(values.mean(), square, span, len(owners))


# Simulated results --------------------------------------------------------------------


class Setting(NamedTuple):
    kind: str  # hits, ranks or values
    queries: int = 300
    clusters: int = 0  # of unequal sizes; 0: every query is one
    seeds: tuple[int, int] = (1, 1)
    level: float | None = None
    spread: float = 0.0  # of trainings, in standard deviations of a query


SETTINGS = {
    f"{kind}{', clustered' * bool(clusters)}{', three seeds' * (seeds[0] > 1)}": Setting(
        kind, 300, clusters, seeds, spread=0.05 * (seeds[0] > 1)
    )
    for kind in ("hits", "ranks", "values")
    for clusters in (0, 60)
    for seeds in ((1, 1), (3, 3))
} | {
    "hits, 100 queries": Setting("hits", 100),
    "hits, rare": Setting("hits", 300, level=0.05),
    "hits, few clusters": Setting("hits", 300, 30),
    "values, few clusters": Setting("values", 300, 30),
}


class Shares(NamedTuple):
    covered: float  # of equal results
    covered_step: float  # of results that differ
    false: float  # equal results that are said to differ
    runs: int  # of equal results


def judged(setting: Setting, runs: int, seed: int) -> Shares:
    rng, covered, told, false = np.random.default_rng(seed), [0, 0], [0, 0], 0
    metric = METRIC.get(setting.kind)
    question = Question(kind=ORDERED, metric=metric, margin=0.0)
    for nth, step in enumerate((0.0, STEP[setting.kind])):
        true = true_mean(setting, step) - true_mean(setting, 0.0)
        for _ in range(runs):
            both = draw(setting, step, rng)
            asked = of_files(*both, both, question).verdict
            ((pair,),) = conclude([[asked]])
            if pair.blocked:
                continue
            low, high = pair.interval
            covered[nth] += low <= true <= high
            told[nth] += 1
            false += nth == 0 and pair.conclusion in (
                Conclusion.HOLDS,
                Conclusion.REVERSED,
            )
    shares = (count / of for count, of in zip(covered, told, strict=True))
    return Shares(*shares, false / told[0], told[0])


def draw(setting: Setting, step: float, rng: np.random.Generator) -> list[Result]:
    """The first is better by `step` of the scale below."""
    count = setting.queries
    owner = np.arange(count)
    if setting.clusters:
        sizes = rng.dirichlet(np.full(setting.clusters, 3.0))
        owner = np.r_[
            np.arange(setting.clusters),
            rng.choice(setting.clusters, count - setting.clusters, p=sizes),
        ]
    hard = 0.6 * rng.normal(size=count)[owner] + 0.4 * rng.normal(size=count)
    keys = [["i2t"] * count, list(map(str, range(count)))]
    index = pd.MultiIndex.from_arrays(keys, names=KEY)
    facts = pd.DataFrame({"cluster": owner, **SAME}, index)
    made = []
    for name, add, seeds in zip("ab", (step, 0.0), setting.seeds, strict=True):
        # What a method finds hard, alike within a cluster; then luck of each training.
        own = hard + 0.5 * rng.normal(size=count)[owner]
        columns = {}
        for seed in range(seeds):
            luck = setting.spread * rng.normal()
            columns[seed] = measured_of_kind(
                setting, own + luck + LEFT * rng.normal(size=count), add
            )
        table = pd.DataFrame(columns, index) * (100 if setting.kind == "hits" else 1)
        known = {"facts": facts, "depth": 0, "notes": []}
        made.append(Result(name=name, kind=Kind(setting.kind), table=table, **known))
    return made


def measured_of_kind(setting: Setting, ability: np.ndarray, add: float) -> np.ndarray:
    """Of abilities (Q,), which are standard normal but for the luck of trainings."""
    level = LEVEL[setting.kind] if setting.level is None else setting.level
    if setting.kind == "hits":
        return 1.0 * (ability < stats.norm.ppf(level + add))
    if setting.kind == "ranks":  # of log-normal size
        return np.floor(np.exp(2 * ability + 2 * (level - add)))
    return np.sinh(ability) + add


@cache
def true_mean(setting: Setting, step: float) -> float:
    width = np.sqrt(1 + setting.spread**2)
    ability = width * stats.norm.ppf((np.arange(DRAWN) + 0.5) / DRAWN)
    values = measured_of_kind(setting, ability, step)
    scale = 1 if setting.kind == "values" else 100
    return float(scale * (values < 5 if setting.kind == "ranks" else values).mean())
