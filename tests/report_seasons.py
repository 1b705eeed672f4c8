"""A season as if it had been played, for tests of its report: what each cell leaves
behind.

Two datasets: `open` may be published, `gated` may not.
"""

import hashlib
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import builders
import numpy as np
import pandas as pd
import pytest
from oracles import whole_matrices
from PIL import Image

from benchmark.boards import boards, flags, row_warnings
from benchmark.commands.ledger import write_ledger
from benchmark.core.files import npz_of, read_json, write_json
from benchmark.core.records import Costs, Provenance, Record
from benchmark.data import results
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import BINS, CellResult, Histograms
from benchmark.data.vocabularies import tokenise
from benchmark.papers import printed_tables
from benchmark.report import __main__ as report
from benchmark.report import figure_listing
from benchmark.scoring import distribution_overlap
from benchmark.scoring.metrics import overlap_interval, retrieval_metrics
from benchmark.season.parameters import Cell, DatasetSettings, Fusion, Params, Season
from benchmark.season.plugins import presets
from benchmark.season.resolving import resolve
from seasons import write_params

FOLDER = Path("reports/try")
README = FOLDER / "README.md"
IMAGES, CAPTIONS = 12, 24
OWNERS = np.repeat(np.arange(IMAGES), CAPTIONS // IMAGES)
GRID_CELLS = 4  # of the pictures that words look at
HOSTILE = (
    "a | b <script>alert(1)</script> ](http://evil.example) `typed` **fat**\n\n# top"
)
MEMBERS = ("scan_t2i_avg", "scan_i2t_lse")
FUSION = "scan_t2i_avg_i2t_lse"
PRESETS = ("two_branch_bidirectional", *MEMBERS, FUSION)
DRAWN = {  # of a small season with every kind of figure
    "gated": ("scan_i2t_avg",),
    "open": (
        "dual_path_instance_1",
        "dual_path_full_2",
        "scan_i2t_avg",
        "scan_12_regions",
        "cyclematch",
        "cyclematch_adaptive",
    ),
}
DATASETS = ("gated", "open")
PAPERS = Path(printed_tables.__file__).parent


def declared(
    seeds: tuple[int, ...] = (0, 1), played: tuple[str, ...] = PRESETS
) -> Season:
    """Both datasets, with these seeds and presets."""
    return Season(
        title="Try | it",
        datasets={dataset: DatasetSettings(reader="folder") for dataset in DATASETS},
        presets=list(played),
        seeds=list(seeds),
    )


@cache
def season(
    seeds: tuple[int, ...] = (0, 1), played: tuple[str, ...] = PRESETS
) -> Params:
    """The same, resolved."""
    return resolve("try", declared(seeds, played))


DRAWN_SEASON = Season(
    title=HOSTILE,
    datasets={
        dataset: DatasetSettings(reader="folder", presets=list(played))
        for dataset, played in DRAWN.items()
    },
    presets=list(DRAWN["open"]),
    seeds=[0, 1],
)


@cache
def drawn_season() -> Params:
    return resolve("try", DRAWN_SEASON)


def cells(params: Params) -> list[Cell | Fusion]:
    return [*params.cells.values(), *params.fusions.values()]


def prepare(
    dataset: str,
    *,
    owners: np.ndarray = OWNERS,
    texts: list[str] | None = None,
    groups: list[str] | None = None,
    phrases: Sequence[int] = (),
    has_images: bool = True,
    **facts: object,
) -> Path:
    """A folder of pictures and its prepared tables; `facts` go on its card."""
    images = int(max(owners)) + 1
    card = {
        "title": f"Dataset {dataset}",
        "reader": dataset,
        "source": "Doe_et_al <2020>",
        "licence": "none",
        "split": "made",
        "manifest": "m",
        "may_publish": dataset == "open",
        "notes": ["A note."],
        "leakage": {"notes": ["0 pictures leak."]},
        "counts": {"test": {"images": images, "captions": len(owners)}},
    }
    given = {"groups": groups, "phrases": phrases, "card": card | facts}
    folder = builders.prepare(dataset, owners, **given)
    files = [f"{number}.png" if has_images else "" for number in range(images)]
    add_column(folder / "images.parquet", "file", files)
    add_column(folder / "captions.parquet", "text", texts or texts_of(dataset))
    builders.seal_tables(dataset)
    raw = Path("data/raw") / dataset
    raw.mkdir(parents=True)
    for number, file in enumerate(filter(None, files)):
        Image.new("RGB", (200, 100 + number), (20 * number, 90, 90)).save(raw / file)
    write_json(raw / "captions.json", [])
    return folder


def add_column(path: Path, name: str, values: list[str]) -> None:
    pd.read_parquet(path).assign(**{name: values}).to_parquet(path)


def texts_of(dataset: str) -> list[str]:
    # odd ones are hostile
    ends = ("", f" {HOSTILE}")
    return [f"{dataset} text {number}{ends[number % 2]}" for number in range(CAPTIONS)]


def record(cell: Cell | Fusion, metrics: dict, **changes: object) -> Record:
    facts = {
        "dataset": cell.dataset,
        "images": IMAGES,
        "captions": CAPTIONS,
        "method": presets()[cell.preset][0],
        "options": {"epochs": 3},
        "scaled": ["epochs"],
        "image_features": {
            "encoder": "cnn",
            "weights": {"file": "w_1.pt", "sha256": "ab" * 32},
        },
        "text_features": {"vocabulary": 9},
        "departures": [{"aspect": "image_network", "here": "cnn"}],
        "parameters": 1_500_000,
        "selected_epoch": None if isinstance(cell, Fusion) else 2,
        "metrics": metrics,
    }
    return builders.record(cell.preset, cell.seed, **(facts | changes))


def play(
    cell: Cell | Fusion,
    quality: float,
    noise: float = 0.2,
    machine: str = "x86_64, 2 cores, Linux",
    **changes: object,
) -> None:
    """Higher `quality`, better scores; without noise 1 hits with every query, and -1
    with none."""
    rng = np.random.default_rng([cell.seed, len(cell.preset)])
    relevant = np.equal.outer(np.arange(IMAGES), OWNERS)
    scores = np.clip(rng.normal(0, noise, relevant.shape) + quality * relevant, -1, 1)
    both = {"i2t": scores, "t2i": scores.T}
    ranks = whole_matrices.ranks_by_way(both, relevant)
    metrics = retrieval_metrics(ranks) | whole_matrices.tie_gap(both, relevant)
    metrics |= whole_matrices.score_metrics(scores[relevant], scores[~relevant])
    replicates = rng.normal(metrics["overlap_s"], 0.01, distribution_overlap.RESAMPLES)
    metrics |= overlap_interval(metrics["overlap_s"], replicates)
    retrieved = {
        "i2t": [np.lexsort(keys)[:10] for keys in zip(relevant, -scores, strict=True)],
        "t2i": [
            np.lexsort(keys)[:10] for keys in zip(relevant.T, -scores.T, strict=True)
        ],
    }
    samples = {"similarity": scores[:, ::2]} | of_model(cell, rng)
    edges = np.linspace(scores.min(), scores.max(), BINS + 1)
    counted = [np.histogram(scores[of], edges)[0] for of in (relevant, ~relevant)]
    histograms = Histograms(edges, *counted)
    by_key = {RankKey(way): of_way for way, of_way in ranks.items()}
    kept = results.Scores(ranks=by_key, histograms=histograms, replicates=replicates)
    seconds = {"per_image": 1e-3, "per_caption": 2e-3, "per_pair": 3e-6}
    costs, facts = Costs(scoring=cost(machine, **seconds)), {}
    if "correlation_after" in of_model(cell, rng):
        facts["sampled"] = {"correlation_before": 0.0, "correlation_after": 0.0}
    if isinstance(cell, Cell):
        costs = costs.model_copy(
            update={"training": cost(machine, training=10.0 + cell.seed)}
        )
        facts["history"] = {
            "epoch": [1, 2, 3],
            "loss": [3.0, 2.0, 1.5],
            "val_rsum": [90, 99, 98.0],
        }
    arrays = {
        results.RANKS: results.scores_npz(kept),
        results.RETRIEVED: npz_of(retrieved),
        results.SAMPLES: npz_of(samples),
    }
    facts["files"] = {
        name: hashlib.sha256(npz).hexdigest() for name, npz in arrays.items()
    }
    keep(cell, record(cell, metrics, **(facts | changes)), costs, arrays)


def keep(
    cell: Cell | Fusion, made: Record, costs: Costs, arrays: dict[str, bytes]
) -> None:
    """A result in results/try/, in the place of one that the cell has."""
    folder = results.RESULTS / "try" / cell.dataset
    result = CellResult(place=cell.inside, record=made, costs=costs, arrays=arrays)
    results.write_folder(folder, results.read_folder(folder) | {cell.name: result})


def cost(machine: str, **seconds: float) -> Provenance:
    return builders.cost(machine=machine, packages={"torch": "2"}, **seconds)


def of_model(cell: Cell | Fusion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What benchmark.evaluate.figure_samples keeps of a cell beyond its scores."""
    if isinstance(cell, Fusion):
        return of_fusion(len(cell.members), rng) if cell.how == "adaptive" else {}
    samples = {
        "correlation_before": np.eye(IMAGES),
        "correlation_after": np.eye(IMAGES),
    }
    if cell.method == "scan":
        return samples | of_words(cell.dataset, rng)
    spaces = ("visual", "latent") if cell.method == "cyclematch" else ("joint",)
    return samples | {
        f"tsne_{space}": rng.normal(size=(2 * IMAGES, 2)) for space in spaces
    }


def of_fusion(members: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    samples = {}
    for way, queries in (("i2t", IMAGES), ("t2i", CAPTIONS)):
        samples[f"weights_{way}"] = rng.uniform(size=(members, queries))
        samples[f"curves_{way}"] = -np.sort(-rng.uniform(size=(members, 2, 200)))
        samples[f"curve_queries_{way}"] = np.array([0, 11])
    return samples


def of_words(dataset: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Samples of captions 7, which is hostile, and 8."""
    rows = np.array([7, 8])
    counts = [len(tokenise(texts_of(dataset)[row])) for row in rows]
    drops = np.full((2, max(counts)), np.nan)
    attention = np.full((2, max(counts), GRID_CELLS), np.nan)
    for row, count in enumerate(counts):
        drops[row, :count] = rng.normal(size=count)
        attention[row, :count] = rng.dirichlet(np.ones(GRID_CELLS), count)
    samples = {"words_captions": rows, "words_drop": drops}
    return samples | {"attention_captions": rows, "attention": attention}


def lose(
    dataset: str, preset: str, seed: int, reason: str, status: str = "failed"
) -> None:
    """The cell failed in its training, or there was none."""
    every = [*cells(season()), *cells(drawn_season())]
    cell = next(
        c for c in every if (c.dataset, c.preset, c.seed) == (dataset, preset, seed)
    )
    facts = {"status": status, "reason": reason, "selected_epoch": None}
    costs = results.read_kept("try", dataset)[cell.name].costs
    arrays = dict.fromkeys((results.RETRIEVED, results.SAMPLES), npz_of({}))
    arrays[results.RANKS] = results.scores_npz(results.Scores())
    keep(cell, record(cell, {}, **facts), costs, arrays)


def stop_at_once(dataset: str, preset: str, seed: int) -> None:
    # as another number of regions for the same weights: nothing was trained
    edit_record(dataset, preset, seed, selected_epoch=None, history={})


def edit_record(dataset: str, preset: str, seed: int, **changes: object) -> None:
    path = records_of(dataset)
    content = read_json(path)
    content[f"{preset}/{seed}"] |= changes
    write_json(path, content)


def lose_record(dataset: str, preset: str, seed: int) -> None:
    content = read_json(records_of(dataset))
    del content[f"{preset}/{seed}"]
    write_json(records_of(dataset), content)


def records_of(dataset: str) -> Path:
    return Path(f"results/try/{dataset}/records.json")


def record_of(preset: str, seed: int) -> dict:
    return read_json(records_of("open"))[f"{preset}/{seed}"]


def quality_of(preset: str) -> float:
    qualities = {
        "two_branch_bidirectional": 0.3,
        FUSION: 0.8,
        "cyclematch_adaptive": 0.8,
    }
    return qualities.get(preset, 0.5)


def enter_played_season(
    factory: pytest.TempPathFactory, folder: Path, patch: pytest.MonkeyPatch
) -> Params:
    """Fill `folder` with a season and all its records, and make it the working
    directory.

    Reports draw no figures, which would take most of the time. They conclude from its
    few queries.
    """
    return _enter(_played_season(factory.getbasetemp()), folder, patch)


def enter_reported_season(
    factory: pytest.TempPathFactory, folder: Path, patch: pytest.MonkeyPatch
) -> Params:
    """As `enter_played_season`, after `write_report` and `write_ledger`."""
    return _enter(_reported_season(factory.getbasetemp()), folder, patch)


def _enter(played: Path, folder: Path, patch: pytest.MonkeyPatch) -> Params:
    conclude_from_few(patch)
    draw_nothing(patch)
    patch.chdir(shutil.copytree(played, folder))
    return season()


def conclude_from_few(patch: pytest.MonkeyPatch) -> None:
    """Let a made-up test set be large enough for conclusions, in tests of something
    else; of a few images, nearly any score is near chance."""
    patch.setattr(boards, "MIN_TEST_QUERIES", 1)
    none_near = {"near_chance": lambda *_: "", "is_near_chance": lambda *_: False}
    of_flags = SimpleNamespace(**vars(row_warnings) | none_near)
    patch.setattr(flags, "row_warnings", of_flags)


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(figure_listing, "figures", lambda *_: [])


@cache
def _played_season(base: Path) -> Path:
    folder = base / "played_season"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = season()
        write_params(params, declared())
        for dataset in DATASETS:
            prepare(dataset)
        for cell in cells(params):
            play(cell, quality_of(cell.preset))
    return folder


@cache
def _reported_season(base: Path) -> Path:
    folder = base / "reported_season"
    with pytest.MonkeyPatch.context() as patch:
        report.write_report(_enter(_played_season(base), folder, patch))
        write_ledger()
    return folder


def write_drawn_report(folder: Path) -> None:
    """In `folder`, the season of DRAWN with its report; all text that others write is
    hostile.

    Its test set is too small for conclusions. One preset was never trained, one failed
    with one seed, one is not applicable.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = drawn_season()
        write_params(params, DRAWN_SEASON)
        for dataset in DATASETS:
            facts = dict.fromkeys(("source", "licence"), HOSTILE)
            facts |= {"notes": [HOSTILE], "leakage": {"notes": [HOSTILE]}}
            prepare(dataset, title=f"Dataset {dataset} {HOSTILE}", **facts)
        for cell in cells(params):
            play(cell, quality_of(cell.preset), machine=HOSTILE, **hostile_facts())
        lose("open", "dual_path_instance_1", 1, HOSTILE)
        for seed in (0, 1):
            lose("open", "dual_path_full_2", seed, HOSTILE, status="not_applicable")
            stop_at_once("open", "scan_12_regions", seed)
        report.write_report(params)
        write_ledger()


def hostile_facts() -> dict:
    weights = {"file": HOSTILE, "sha256": HOSTILE}
    return {
        "departures": [{"aspect": "image_network", "here": HOSTILE}],
        "image_features": {"encoder": HOSTILE, "weights": weights},
        "text_features": {"encoder": HOSTILE, "vectors": HOSTILE},
        "options": {"epochs": HOSTILE},
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
