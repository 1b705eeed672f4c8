"""The whole pipeline on a small `shapes`, twice: equal bytes, and a page that can be read."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_seasons import leave_figures_empty
from sklearn.manifold import TSNE

from benchmark.__main__ import main
from benchmark.commands import run, task_queue
from benchmark.commands.local_workers import Processes
from benchmark.commands.task_queue import Task
from benchmark.core.files import read_yaml
from benchmark.encode import drawn_pretraining
from benchmark.evaluate import figure_samples
from benchmark.report import __main__ as report
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import (
    DatasetSettings,
    ImageEncoder,
    Params,
    SentenceEncoder,
    WordVectors,
)
from benchmark.season.pipeline import write_pipelines
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season

VOLATILE = (
    "training/cost.json",
    "scores/cost.json",
    "README.md",
    "datasets/shapes.md",
)  # hold times
PRESETS = [
    "dual_path_instance_1",
    "dual_path_full_2",
    "two_branch_constraints",
    "cyclematch",
    "cyclematch_three_adaptive",
    "scan_t2i_avg",
    "scan_i2t_lse",
    "scan_t2i_avg_i2t_lse",
]
TWICE = ["dual_path_instance_1", "two_branch_constraints", "cyclematch", "scan_t2i_avg"]


def small_season() -> Params:
    image = ImageEncoder(
        network="drawn_cnn", input_size=96, flip=False, standardise=True, pixels=96
    )
    settings = DatasetSettings(
        options={"train": 48, "val": 12, "test": 20},
        image=image,
        words=WordVectors(size=16),
        sentence={
            "hglmm": SentenceEncoder(centres=2, size=12),
            "bilstm_max": SentenceEncoder(hidden=8),
        },
    )
    season = Season(
        title="Small",
        datasets={"shapes": settings},
        presets=PRESETS,
        seeds=[0],
        seeds_of={preset: [0, 1] for preset in TWICE},  # one of each method
        device="cpu",
        options={
            "dual_path": {
                "blocks": "1,1,1,1",
                "text_width": 1 / 64,
                "word_size": 16,
                "hidden_size": 8,
                "image_hidden_size": 8,
                "embedding_size": 8,
                "epochs": 1,
            },
            "cyclematch": {"hidden_size": 8, "embedding_size": 8, "epochs": 1},
            "two_branch_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 2},
            "scan": {"embedding_size": 8, "word_size": 8, "epochs": 2, "decay_after": 1},
        },
    )
    return resolve("small", season)


def played(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Every file that a season leaves in results/ and reports/, played in an empty folder."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(figure_samples, "TSNE", lambda **facts: TSNE(**facts | {"max_iter": 250}))
    params = small_season()
    write_params(params)
    write_pipelines(params)
    run.play(params, "shapes", None)
    report.write_report(params)
    assert main(["export", "--metrics", "--season", "small"]) == 0
    return files_below(folder / "results", folder / "reports", folder / "data/checkpoints")


def files_below(*roots: Path) -> dict[str, bytes]:
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(Path.cwd())): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("first") / "work"


@pytest.fixture(scope="module")
def first(work) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_figures_empty(monkeypatch)
        return played(work, monkeypatch)


@pytest.mark.slow
def test_a_second_run_leaves_the_same_bytes(first, tmp_path, monkeypatch):
    """All but the figures: test_report.py has equal bytes of them."""
    leave_figures_empty(monkeypatch)
    second = played(tmp_path / "work", monkeypatch)
    assert set(first) == set(second)
    stable = [name for name in first if not name.endswith(VOLATILE) and "/figures/" not in name]
    params = small_season()
    for file in ("record.json", "ranks.parquet", "samples.npz"):
        count = sum(name.endswith(f"/{file}") for name in stable)
        assert count == len(params.cells) + len(params.fusions)
    assert {cell.checkpoint for cell in params.cells.values()} <= set(stable)
    assert {"reports/small/claims.md", "reports/small/metrics.json"} <= set(stable)
    assert [name for name in stable if first[name] != second[name]] == []


def in_this_process(tasks: dict[str, Task], workers: Processes) -> dict[str, str]:
    """In the order in which they are declared, which is one that they can be played in."""
    for task in tasks.values():
        task.function(*task.arguments)
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("rsum", [None, 1.0], ids=["as played", "another committed number"])
def test_verify_plays_cells_again_and_compares(first, work, rsum, monkeypatch, capsys):
    monkeypatch.chdir(work)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(task_queue, "play", in_this_process)
    path = Path("results/small/shapes/two_branch_constraints/1/record.json")
    committed = path.read_text()
    if rsum:
        record = json.loads(committed)
        path.write_text(json.dumps(record | {"metrics": record["metrics"] | {"rsum": rsum}}))
    # The other number is itself in the spread of seeds; equal numerics must give equal bytes.
    status = main(["verify", "small", "--cells", "shapes-two_branch_constraints-1"])
    path.write_text(committed)
    said = capsys.readouterr().out.splitlines()
    assert status == (1 if rsum else 0)
    assert said[-1].endswith(", as committed")
    number = f"{json.loads(committed)['metrics']['rsum']:.2f}"
    before = f"{rsum:.2f}" if rsum else number
    how = "within the spread of seeds" if rsum else "identical"
    assert said[1].split(maxsplit=3) == ["shapes-two_branch_constraints-1", before, number, how]


def test_stages_leave_what_their_pipelines_say(first, work):
    """What DVC would miss after a stage, it refuses."""
    pipelines = list((work / "seasons").rglob("dvc.yaml"))
    stages = [stage for path in pipelines for stage in read_yaml(path)["stages"].values()]
    assert len(stages) > 2 * len(PRESETS)
    for stage in stages:
        if stage["cmd"] != "python -m benchmark code":
            written = [out for kind in ("outs", "metrics", "plots") for out in stage.get(kind, [])]
            assert written, stage["cmd"]
            for out in written:
                path = out if isinstance(out, str) else next(iter(out))
                assert (work / path).exists(), path


def test_another_seed_gives_another_record(first):
    for preset in TWICE:
        records = [
            json.loads(first[f"results/small/shapes/{preset}/{seed}/record.json"])
            for seed in (0, 1)
        ]
        assert records[0]["metrics"] != records[1]["metrics"]


def test_records_hold_the_promised_keys(first):
    record = json.loads(first["results/small/shapes/scan_t2i_avg/0/record.json"])
    assert record["status"] == "ok" and record["split"] == "drawn/test"
    assert (record["images"], record["captions"]) == (20, 100)
    metrics = record["metrics"]
    for way in ("i2t", "t2i"):
        for key in ("r1", "r5", "r10", "medr", "meanr"):
            assert metrics[f"{way}_{key}"] >= 0
    recalls = [metrics[f"{way}_r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert metrics["rsum"] == pytest.approx(sum(recalls))
    assert 0 <= metrics["overlap_s"] <= 1
    assert 0 <= metrics["overlap_s_low"] <= metrics["overlap_s_high"] <= 1
    assert record["options"]["embedding_size"] == 8
    assert record["scaled"] == ["decay_after", "embedding_size", "epochs", "word_size"]


def test_captions_find_their_siblings(first):
    for preset in ("two_branch_constraints", "cyclematch", "dual_path_full_2"):
        record = json.loads(first[f"results/small/shapes/{preset}/0/record.json"])
        assert 0 <= record["metrics"]["s2s_r1"] <= record["metrics"]["s2s_r10"] <= 100
    record = json.loads(first["results/small/shapes/scan_t2i_avg/0/record.json"])
    assert "s2s_r1" not in record["metrics"]  # SCAN has no vector of a caption


def ranks_of(first: dict[str, bytes], preset: str) -> pd.DataFrame:
    return pd.read_parquet(BytesIO(first[f"results/small/shapes/{preset}/0/scores/ranks.parquet"]))


def test_every_query_has_a_rank(first):
    ranks = ranks_of(first, "scan_t2i_avg_i2t_lse")
    assert ranks.groupby("direction").size().to_dict() == {"i2t": 20, "t2i": 100}
    assert ranks["query"].is_unique


def test_sentences_that_ask_for_their_siblings_have_ranks(first):
    ranks = ranks_of(first, "cyclematch")
    assert ranks.groupby("direction").size().to_dict() == {"i2t": 20, "s2s": 100, "t2i": 100}
    s2s, t2i = (ranks[ranks["direction"] == way] for way in ("s2s", "t2i"))
    assert s2s["query"].tolist() == t2i["query"].tolist()
    record = json.loads(first["results/small/shapes/cyclematch/0/record.json"])
    assert record["metrics"]["s2s_r5"] == pytest.approx(100 * (s2s["rank"] < 5).mean())


EVERYWHERE = {"similarity": (20, 20), "overlap_replicates": (200,)}
BEFORE, AFTER = {"correlation_before": (20, 20)}, {"correlation_after": (20, 20)}
WORDS = {"words_captions": (12,), "words_drop": (12, None)}
SAMPLES = {  # None: as many as the longest caption has words
    "dual_path_instance_1": BEFORE | AFTER | WORDS | {"tsne_joint": (40, 2)},
    "dual_path_full_2": AFTER | WORDS | {"tsne_joint": (40, 2)},
    "two_branch_constraints": BEFORE | AFTER | {"tsne_joint": (40, 2)},
    "cyclematch": BEFORE
    | AFTER
    | {f"tsne_{space}": (40, 2) for space in ("visual", "textual", "latent")},
    "cyclematch_three_adaptive": {
        **{"weights_i2t": (3, 20), "weights_t2i": (3, 100)},
        **{"curves_i2t": (3, 3, 200), "curves_t2i": (3, 3, 200)},
        **{"curve_queries_i2t": (3,), "curve_queries_t2i": (3,)},
    },
    "scan_t2i_avg": BEFORE
    | AFTER
    | WORDS
    | {"attention_captions": (6,), "attention": (6, None, 36)},
    "scan_i2t_lse": BEFORE | AFTER | WORDS,
    "scan_t2i_avg_i2t_lse": {},
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_leaves_the_samples_it_can_give(first, preset):
    file = BytesIO(first[f"results/small/shapes/{preset}/0/scores/samples.npz"])
    expected = EVERYWHERE | SAMPLES[preset]
    with np.load(file) as arrays:
        assert set(arrays.files) == set(expected)
        for key, shape in expected.items():
            pairs = zip(arrays[key].shape, shape, strict=True)
            assert all(wanted in (size, None) for size, wanted in pairs), key
        if "attention" in expected:
            sums = arrays["attention"].sum(-1)
            assert sums[np.isfinite(sums)] == pytest.approx(1, abs=1e-5)
            assert np.isfinite(sums).sum(1).min() > 0


def test_the_report_names_every_preset(first):
    page = first["reports/small/README.md"].decode()
    for title in ("SCAN t-i AVG", "SCAN t-i AVG + i-t LSE", "Two-branch", "CycleMatch, three"):
        assert title in page
    assert "figures/gallery/shapes/" in first["reports/small/datasets/shapes.md"].decode()
