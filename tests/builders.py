"""Made-up results: prepared datasets, records, outcomes, standings and boards, below
the working directory. Image n has the id "i<n>", caption n "c<n>", phrase n "p<n>"."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.boards.boards import MIN_TEST_QUERIES, QUERIES, Board, Outcome, Row
from benchmark.core.files import npz_of
from benchmark.core.records import Costs, Provenance, Record
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import CellResult, Ranks, Scores
from benchmark.scoring import metrics as metrics_of
from benchmark.season.plugins import Preset, versions


def prepare(
    dataset: str,
    owners: Sequence[int],
    *,
    groups: Sequence[str] | None = None,
    trained: int = 0,
    phrases: Sequence[int] = (),
    card: Mapping | None = None,
) -> Path:
    """`owners` is the image of each test caption, `phrases` that of each phrase,
    `groups` the group of each test image (default: its own). `trained` training images
    with a caption each come first: "t0" with caption "c-1" and so on."""
    folder = Path("data/prepared") / dataset
    folder.mkdir(parents=True, exist_ok=True)
    training = [f"t{number}" for number in range(trained)]
    test = [f"i{number}" for number in range(max(owners) + 1)]
    images = pd.DataFrame({"image_id": training + test})
    images["split"] = ["train"] * trained + ["test"] * len(test)
    images["group"] = training + list(groups or test)
    captions = pd.DataFrame({"caption_id": ids("c", range(-trained, len(owners)))})
    captions["image_id"] = training + ids("i", owners)
    captions["split"] = ["train"] * trained + ["test"] * len(owners)
    images.to_parquet(folder / "images.parquet")
    captions.to_parquet(folder / "captions.parquet")
    write_regions(folder, ids("i", phrases))
    prepared_tables.write_card(dataset, dict(card or {}))
    return folder


def seal_tables(dataset: str, **facts: object) -> None:
    """The card agrees with the tables afterwards, and has these facts."""
    prepared_tables.write_card(dataset, prepared_tables.read_card(dataset) | facts)


def prepared_on_disk(
    images: pd.DataFrame, captions: pd.DataFrame, regions: pd.DataFrame
) -> Prepared:
    folder = Path("prepared")
    folder.mkdir(exist_ok=True)
    tables = {"images": images, "captions": captions, "regions": regions}
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    return Prepared(**tables, card={"manifest": "m"}, folder=folder)


def write_regions(folder: Path, image_ids: Sequence[str]) -> None:
    regions = {
        "phrase_id": ids("p", range(len(image_ids))),
        "image_id": list(image_ids),
    }
    pd.DataFrame(regions).to_parquet(folder / "regions.parquet")
    if (prepared_tables.CARDS / folder.name).is_dir():
        seal_tables(folder.name)


def ids(letter: str, numbers: Sequence[int]) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def record(preset: str = "a", seed: int = 0, **changes: object) -> Record:
    """A record with any of its fields changed."""
    facts = {
        "protocol_version": versions()["protocol"],
        "season": "try",
        "dataset": "made",
        "split": "made/test",
        "images": 2,
        "captions": 4,
        "manifest_sha256": "m",
        "preset": preset,
        "method": "scan",
        "family": "paper",
        "seed": seed,
        "options": {},
        "scaled": [],
        "image_features": {},
        "text_features": {},
        "departures": [],
        "parameters": 1,
        "selected_epoch": 1,
        "status": "ok",
        "metrics": {},
    }
    return Record(**(facts | changes))


def cost(
    *, machine: str = "m", packages: dict | None = None, **seconds: float
) -> Provenance:
    return Provenance(
        git_commit="0123456789ab",
        packages=packages or {},
        machine=machine,
        device="cpu",
        threads=1,
        seconds=seconds,
        peak_memory_mib=1.0,
        peak_device_memory_mib=None,
    )


def outcome(
    preset: str = "a",
    seed: int = 0,
    *,
    ranks: Mapping[str, np.ndarray] | None = None,
    seconds: Mapping[str, float] | None = None,
    training: Sequence[float] = (9.0,),
    history: pd.DataFrame | None = None,
    **facts: object,
) -> Outcome:
    """A cell with any fields of its record changed.

    `ranks` are kept and measured; `metrics` among the facts come on top. `seconds` are
    those of scoring, `training` those of each training.
    """
    made = record(preset, seed, **facts)
    metrics = (
        metrics_of_best_ranks(ranks or {}) | made.metrics if made.status == "ok" else {}
    )
    trained = tuple(cost(training=duration) for duration in training)
    changes = {
        "metrics": metrics,
        "history": {} if history is None else history.to_dict("list"),
    }
    own = trained[0] if len(trained) == 1 else None
    kept = CellResult(
        place=f"try/{made.dataset}/{preset}/{seed}",
        record=made.model_copy(update=changes),
        costs=Costs(training=own, scoring=cost(**(seconds or {}))),
    )
    made_outcome = Outcome(kept=kept, record=kept.record, trainings=trained)
    if ranks is not None:
        keep_ranks(made_outcome, ranks)
    return made_outcome


def metrics_of_best_ranks(ranks: Mapping[str, np.ndarray]) -> dict:
    """With rsum: of i2t and t2i, or of p2r."""
    metrics = {}
    for direction, ranks_Q in ranks.items():
        key = RankKey.read(direction)
        of_ranks = metrics_of.rank_metrics(key.direction, Ranks.of_best(ranks_Q))
        prefix = "fold_" if key.is_of_folds else ""
        metrics |= {f"{prefix}{name}": value for name, value in of_ranks.items()}
    for prefix, directions in {
        "": ("i2t", "t2i", "p2r"),
        "fold_": ("i2t", "t2i"),
    }.items():
        recalls = [f"{prefix}{d}_r{k}" for d in directions for k in (1, 5, 10)]
        if any(recall in metrics for recall in recalls):
            metrics[f"{prefix}rsum"] = sum(metrics.get(recall, 0) for recall in recalls)
    return metrics


def keep_ranks(
    outcome: Outcome, ranks: Mapping[str, np.ndarray], **facts: object
) -> None:
    """Best ranks by direction; `facts` are histograms and replicates."""
    best = {RankKey.read(name): Ranks.of_best(of) for name, of in ranks.items()}
    outcome.kept.arrays[results.RANKS] = results.scores_npz(Scores(ranks=best, **facts))


def keep_arrays(outcome: Outcome, name: str, **arrays: np.ndarray) -> None:
    outcome.kept.arrays[name] = npz_of(arrays)


def standing(
    preset: str, outcomes: Sequence[Outcome], title: str | None = None, **row: object
) -> Row:
    """A preset with its outcomes, one per seed."""
    return Row(
        preset=preset,
        declared=Preset(title=title or preset, **row),
        outcomes=list(outcomes),
    )


def board(*standings: Row, dataset: str = "made", **card: object) -> Board:
    """A dataset with its standings, and these facts on its card: it counts as large
    enough for conclusions, unless they say otherwise."""
    counts = {"test": dict.fromkeys(QUERIES.values(), MIN_TEST_QUERIES)}
    return Board(dataset=dataset, card={"counts": counts} | card, rows=list(standings))
