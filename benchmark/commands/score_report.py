"""What `score` prints of a result, and the tables that it writes."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.boards.row_warnings import TIMES, choices_of, near_chance, rsum_by_chance
from benchmark.commands.external_scores import SPLIT, External, Given
from benchmark.core.errors import printable
from benchmark.core.files import atomic, write_text
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import OWN, RankKey
from benchmark.data.results import Ranks
from benchmark.scoring.metrics import (
    ALL_RANKS,
    METRICS,
    RANK_METRICS,
    RECALLED_K,
    Metric,
    rsum_terms,
)
from benchmark.scoring.relevance import layers_of, queries_of
from benchmark.stats import LEVEL
from benchmark.stats.comparisons import sample_of_queries
from benchmark.stats.significance import score_interval

SURE = f"{LEVEL:.0%}"
CUTS = {f"r{k}": k for k in RECALLED_K}  # recall, as declared -> its K
SHOWN = (*rsum_terms(("i2t", "t2i")), "rsum")  # columns of the table of recalls
# what to check where scores are as random ones
ORDER_HINTS = {
    Given.EMBEDDINGS: "rows, or give ids ({order})",
    Given.SCORES: "rows (images) and columns (captions), or give ids ({order})",
    Given.RANKS: "queries",
}
SIGN_HINTS = {  # and where they are far worse
    Given.EMBEDDINGS: "are the vectors of one file negated?",
    Given.SCORES: "are these distances? The best item must have the greatest score",
    Given.RANKS: "is the rank of the best item 0?",
}


def measured(
    terms: Sequence[tuple[Metric, Ranks, pd.Series]],
) -> tuple[float, float, float]:
    """A sum of means over queries, and its interval over test images. A term has a
    metric of ranks, these, and the cluster of each query."""
    groups = pd.Index(pd.concat([clusters for *_, clusters in terms]).unique())
    means = []
    for metric, ranks, clusters in terms:
        values = {0: metric.of_queries(ranks)}
        means.append((groups.get_indexer(clusters), values))
    sample = sample_of_queries(means)
    span = sum(metric.range[1] for metric, *_ in terms)
    variance = float(np.square(sample.noise[0]).sum())
    interval = score_interval(sample.mean, variance, span, sample.units)
    return sample.mean, *interval


@dataclass(frozen=True)
class Mean:
    """A mean over queries, or a sum of means, with the ends of its interval over test
    images."""

    layer: str
    is_of_folds: bool
    metric: str
    value: float
    low: float
    high: float
    # of a recall by a layer of which people judged some pairs: if all others were right
    at_most: float | None = None

    @property
    def line(self) -> str:
        name = METRICS[self.metric].heading
        ends = f"[{self.low:.2f}, {self.high:.2f}]"
        line = f"  {name:16} {self.value:6.2f}  {ends}"
        return line if self.at_most is None else f"{line}, at most {self.at_most:.2f}"


def _recalls_of(keys: Sequence[RankKey]) -> list[tuple[RankKey, Metric]]:
    """The recalls that rsum adds up."""
    terms = []
    for key in keys:
        terms += [(key, METRICS[name]) for name in rsum_terms([key.direction])]
    return terms


class ScoreReport:
    """A result with what its numbers are read against: queries with their clusters,
    and layers of relevance."""

    def __init__(self, data: Prepared, external: External, order: str) -> None:
        self.data, self.external, self.order = data, external, order
        self.metrics = external.result.metrics
        self.ranks: Mapping[RankKey, Ranks] = external.result.scores.ranks
        self.queries = queries_of(data)
        self.split = data.split(SPLIT)
        self.layers = layers_of(data, self.split)
        layer_cards = data.card.get("layers", {})
        self.partial = [name for name in layer_cards if layer_cards[name]["partial"]]

    def show(self) -> None:
        """Print the recalls of both directions by each layer of relevance, and their
        sum; then every metric with its interval, S, and what a reader must know."""
        split = self.split
        counts = f"{len(split.image_rows)} images, {len(split.caption_rows)} captions"
        print(printable(f"{self.data.card['title']}: {counts}"))
        print(self.recalls().to_string(index=False))
        for key, ranks in self.ranks.items():
            print(f"{self.gallery(key)}: {key.direction}, {len(ranks)} queries")
            for mean in self.means(key, ranks):
                print(mean.line)
        print(f"[low, high]: {SURE} interval over test images")
        print(*map(printable, self.notes()), sep="\n")

    def gallery(self, key: RankKey) -> str:
        """The layer of relevance of ranks, and the gallery where that is not the whole
        split."""
        if key.is_of_folds:
            return f"{key.layer}, mean of {self.data.card['folds']} folds"
        return key.layer

    def recalls(self) -> pd.DataFrame:
        """A row for each layer and gallery: the recalls of both directions, and their
        sum with its interval."""
        keys_of: dict[str, list[RankKey]] = {}
        for key in self.ranks:
            keys_of.setdefault(self.gallery(key), []).append(key)
        rows = [self._recall_row(name, keys) for name, keys in keys_of.items()]
        heads = [METRICS[name].heading for name in SHOWN[:-1]]
        return pd.DataFrame(rows, columns=["", *heads, f"rsum, {SURE} interval"])

    def _recall_row(self, name: str, keys: Sequence[RankKey]) -> list[str]:
        terms, cells = _recalls_of(keys), {}
        for key, metric in terms:
            if self.is_known(key, metric):
                value = self.measured([(key, metric)])[0]
                cells[metric.name] = f"{value:.1f}"
        if len(cells) == len(terms):
            value, low, high = self.measured(terms)
            cells["rsum"] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
        return [name, *(cells.get(column, "-") for column in SHOWN)]

    def facts(self) -> dict:
        """The same as data: every mean over queries, rsum, S and the notes."""
        split = self.split
        keys_of: dict[tuple[str, bool], list[RankKey]] = {}
        means = []
        for key, ranks in self.ranks.items():
            keys_of.setdefault((key.layer, key.is_of_folds), []).append(key)
            means += self.means(key, ranks)
        for (layer, is_of_folds), keys in keys_of.items():
            terms = _recalls_of(keys)
            if all(self.is_known(*term) for term in terms):
                value, low, high = self.measured(terms)
                means.append(
                    Mean(layer, is_of_folds, "rsum", value=value, low=low, high=high)
                )
        return {
            "dataset": self.data.card["title"],
            "images": len(split.image_rows),
            "captions": len(split.caption_rows),
            "means": [asdict(mean) for mean in means],
            "overlap_s": self.metrics.get("overlap_s"),
            "notes": list(self.notes()),
        }

    def is_known(self, key: RankKey, metric: Metric) -> bool:
        """Whether the ranks tell the metric: lists end, and may know only the best."""
        return key != RankKey(key.direction) or metric.name in self.metrics

    def means(self, key: RankKey, ranks: Ranks) -> Iterator[Mean]:
        """Every mean over the queries of one direction that is known."""
        has_one_each = bool((ranks.counts == 1).all())
        for declared in (*RANK_METRICS, *ALL_RANKS):
            metric = METRICS.get(f"{key.direction}_{declared.name}")
            if metric is None:  # it is of the other direction
                continue
            is_known = ranks.knows_all or self.is_known(key, metric)
            repeats_another = metric.needs_all and has_one_each  # R@1, or MRR
            if metric.of_queries is None or repeats_another or not is_known:
                continue
            value, low, high = self.measured([(key, metric)])
            most = None
            if key.layer in self.partial and declared.name in CUTS:
                most = self._most(key, CUTS[declared.name])
            of_folds = key.is_of_folds
            yield Mean(key.layer, of_folds, metric.name, value, low, high, most)

    def _most(self, key: RankKey, k: int) -> float:
        """R@K by a layer if all pairs that nobody judged were right, in percent."""
        first_items = self.external.result.retrieved[key.direction]
        judged = self.layers[key.layer][key.direction].judged(first_items)[:, :k]
        return 100 * (judged >= 0).any(1).mean()

    def measured(
        self, terms: Sequence[tuple[RankKey, Metric]]
    ) -> tuple[float, float, float]:
        """A sum of means over queries, and its interval over test images. Terms are
        metrics of ranks."""
        return measured(
            [
                (metric, self.ranks[key], self.queries[key]["cluster"])
                for key, metric in terms
            ]
        )

    def notes(self) -> Iterator[str]:
        """What a reader must know."""
        if "overlap_s" in self.metrics:
            overlap = self.metrics["overlap_s"]
            yield f"S, the overlap of matched and unmatched scores: {overlap:.2f}"
        yield from self.data.card.get("notes", ())
        yield from self.external.notes
        if not self.layers:
            lacking = "human judgements of these images and captions are not here"
            yield f"no layer beside {OWN}: {lacking} (docs/datasets.md)"
        if self.partial:
            unjudged = "unjudged pairs count as wrong, in 'at most' as right"
            yield f"{', '.join(self.partial)}: {unjudged}"
        if "rsum" in self.metrics:
            yield from self.doubts()

    def doubts(self) -> Iterator[str]:
        """What ties and twins cost, and what may be wrong with scores that are as
        random ones, or far worse."""
        twins = self.data.card.get("twins", {})
        if any(twins.values()):
            images, captions = twins["images"], twins["captions"]
            yield f"twins in test: {images} images, {captions} captions"
        ways = self.data.card["ways"]
        for way, tied in self.external.result.ties.items():
            for k in RECALLED_K:
                misses, hits, mean = tied.recalls_at(k)
                if hits > misses:
                    ends = f"{misses:.2f} as misses, {hits:.2f} as hits"
                    yield f"ties: {way} R@{k} {ends}, {mean:.2f} on average in any order"
        images = choices_of(self.split.group_of_image)
        rsum, by_chance = self.metrics["rsum"], rsum_by_chance(len(ways), images)
        given = self.external.given
        if rsum < by_chance / TIMES:
            far = f"rsum {rsum:.1f}, random {by_chance:.1f}"
            yield f"far below chance: {far}; {SIGN_HINTS[given]}"
        elif doubt := near_chance(rsum, len(ways), images):
            hint = ORDER_HINTS[given].format(order=self.order)
            yield f"near chance: {doubt}; check the order of the {hint}"


def write_ranks(path: Path, seed: int, data: Prepared, external: External) -> None:
    """One row per query, direction and layer: the rank of the best right item, -1 where
    it was not found."""
    queries, tables = queries_of(data), []
    for key, ranks in external.result.scores.ranks.items():
        best = ranks.best
        if key == RankKey(key.direction) and key.direction in external.lost:
            best = np.where(external.lost[key.direction], -1, best)
        tables.append(queries[key].assign(seed=seed, rank=best))
    table = pd.concat(tables)
    if external.depths:
        table["depth"] = table["direction"].map(external.depths)
    with atomic(path) as part:
        table.to_parquet(part, index=False)


def write_items(data: Prepared, raw: Path, folder: Path) -> None:
    """Write images.csv and captions.csv of the test split, in the order of rows without
    ids. `raw` is the folder of the images, where there are some."""
    split, raw = data.split(SPLIT), Path(os.path.abspath(raw))
    images = data.images.iloc[split.image_rows][["image_id", "file"]]
    paths = []
    for file in images["file"]:
        paths.append(str(raw / file) if (raw / file).is_file() else "")
    heads = ["caption_id", "image_id", "text"]
    captions = data.captions.iloc[split.caption_rows][heads]
    for name, table in (("images", images.assign(path=paths)), ("captions", captions)):
        text = table.to_csv(index=False, lineterminator="\n")
        write_text(folder / f"{name}.csv", text)
        print(f"{folder / name}.csv: {len(table)} rows")
