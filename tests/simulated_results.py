"""Made-up results whose true difference is known, for simulations of `judge`."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.commands.judged_results import Question, of_files
from benchmark.commands.result_files import KEY, SAME, Kind, Result
from benchmark.stats.claim_kinds import ORDERED, Conclusion
from benchmark.stats.verdicts import judge as conclude

LEVEL = {"hits": 0.4, "ranks": 1.0, "values": 0.0}
STEP = {"hits": 0.05, "ranks": 0.25, "values": 0.15}
DRAWN = 400_000  # queries that tell the true value
METRIC = {"ranks": "r5"}
# the luck of a training with a query
LEFT = float(np.sqrt(1 - 0.6**2 - 0.4**2 - 0.5**2))


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
